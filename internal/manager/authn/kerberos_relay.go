package authn

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"portolan/internal/manager/outbound"
)

// maxKerberosMessage is the maximum size of a message from a key distribution center, in bytes. A ticket with the authorization data of
// Active Directory has at most 64 KiB (MS-KILE section 3.1.1.3).
const maxKerberosMessage = 128 << 10

// kerberosRelay relays the messages of the Kerberos library to a center. The library dials by itself, takes no context, and allocates any
// length that an answer announces. It therefore connects to the relay, which uses the manager's dialer and limits the answers.
type kerberosRelay struct {
	ctx      context.Context //nolint:containedctx // it lives as long as one sign-in
	listener net.Listener
	center   string
	done     sync.WaitGroup
	mu       sync.Mutex
	// failed is the first error of a connection to the center; guarded by mu.
	failed error
}

// newKerberosRelay starts a relay on a loopback port to a center at host and port. It runs until close is called.
func newKerberosRelay(ctx context.Context, center string) (*kerberosRelay, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &kerberosRelay{ctx: ctx, listener: l, center: center}
	r.done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil { // the listener was closed
				return
			}
			if err := r.relay(c); err != nil {
				r.fail(err)
			}
			_ = c.Close() // the library has the answer, or reads the end
		}
	})
	return r, nil
}

func (r *kerberosRelay) address() string { return r.listener.Addr().String() }

func (r *kerberosRelay) close() {
	_ = r.listener.Close() // nothing was written to it
	r.done.Wait()
}

func (r *kerberosRelay) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.failed = err
	}
}

// failure returns the first error of a connection to the center; nil if there was none.
func (r *kerberosRelay) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// relay sends one message to the center and returns its answer.
func (r *kerberosRelay) relay(from net.Conn) error {
	to, err := outbound.Dialer().DialContext(r.ctx, "tcp", r.center)
	if err != nil {
		return err
	}
	defer to.Close() //nolint:errcheck // the answer was read, or the error is returned
	stop := context.AfterFunc(r.ctx, func() { _, _ = from.Close(), to.Close() })
	defer stop()
	if err := relayMessage(to, from); err != nil {
		return fmt.Errorf("send to the key distribution center: %w", err)
	}
	if err := relayMessage(from, to); err != nil {
		return fmt.Errorf("read from the center: %w", errors.Join(err, r.ctx.Err()))
	}
	return nil
}

// relayMessage copies a message with its length prefix (RFC 4120 section 7.2.2).
func relayMessage(to io.Writer, from io.Reader) error {
	var head [4]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return err
	}
	length := binary.BigEndian.Uint32(head[:])
	if length > maxKerberosMessage {
		return fmt.Errorf("the message has %d bytes, more than %d", length, maxKerberosMessage)
	}
	message := make([]byte, len(head)+int(length))
	copy(message, head[:])
	if _, err := io.ReadFull(from, message[len(head):]); err != nil {
		return err
	}
	_, err := to.Write(message)
	return err
}
