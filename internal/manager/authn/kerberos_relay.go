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

// longestKerberos bounds a message from a key distribution center, in bytes. A ticket with the authorization data of Active Directory has
// at most 64 KiB (MS-KILE section 3.1.1.3).
const longestKerberos = 128 << 10

// kerberosRelay passes the messages of the Kerberos library on to a center. The library dials by itself, takes no context, and allocates
// any length that an answer states: it gets the address of the relay instead, which dials as the manager does and bounds answers.
type kerberosRelay struct {
	ctx      context.Context //nolint:containedctx // it lives as long as one sign-in
	listener net.Listener
	center   string
	done     sync.WaitGroup
	mu       sync.Mutex
	// failed is the first error of reaching the center, guarded by mu.
	failed error
}

// newKerberosRelay starts a relay on loopback, to a center at host and port, until close is called.
func newKerberosRelay(ctx context.Context, center string) (*kerberosRelay, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &kerberosRelay{ctx: ctx, listener: l, center: center}
	r.done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil { // it was closed
				return
			}
			if err := r.pass(c); err != nil {
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

// failure gives why the center could not be reached; nil where it was.
func (r *kerberosRelay) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// pass sends one message to the center, and its answer back.
func (r *kerberosRelay) pass(from net.Conn) error {
	to, err := outbound.Dialer().DialContext(r.ctx, "tcp", r.center)
	if err != nil {
		return err
	}
	defer to.Close() //nolint:errcheck // the answer is there, or the error is told
	stop := context.AfterFunc(r.ctx, func() { _, _ = from.Close(), to.Close() })
	defer stop()
	if err := passMessage(to, from); err != nil {
		return fmt.Errorf("sending to the center: %w", err)
	}
	if err := passMessage(from, to); err != nil {
		return fmt.Errorf("reading from the center: %w", errors.Join(err, r.ctx.Err()))
	}
	return nil
}

// passMessage copies a message, which has its length in front (RFC 4120 section 7.2.2).
func passMessage(to io.Writer, from io.Reader) error {
	var head [4]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return err
	}
	length := binary.BigEndian.Uint32(head[:])
	if length > longestKerberos {
		return fmt.Errorf("the message has %d bytes, more than %d", length, longestKerberos)
	}
	message := make([]byte, len(head)+int(length))
	copy(message, head[:])
	if _, err := io.ReadFull(from, message[len(head):]); err != nil {
		return err
	}
	_, err := to.Write(message)
	return err
}
