package tftp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// Timing of a transfer. A packet without an acknowledgement is sent again after retryTime, then after twice that time, up to maxRetryTime.
// A client that requests a timeout gets that interval. A transfer fails after maxRetries retransmissions of the same packets, maxWait
// after they were sent first, or after maxDuration: a client that has gone holds the place of another one.
const (
	retryTime    = time.Second
	maxRetryTime = 8 * time.Second
	maxRetries   = 5
	maxWait      = time.Minute
	maxDuration  = 2 * time.Hour
)

// transfer sends a file to a client. Its socket is connected, so that the kernel drops packets of others.
type transfer struct {
	conn *net.UDPConn
	// first is the option acknowledgement; empty without options.
	first []byte
	// block is the number of octets in a data packet, window the number of data packets for each acknowledgement.
	block, window int
	// retry is the interval of the first retransmission. fixed means that later intervals are the same.
	retry time.Duration
	fixed bool
	// timeout is the time that the client has for an acknowledgement.
	timeout time.Duration
	in      io.Reader

	// sent counts the octets of files that were sent and acknowledged.
	sent int64
	// pending are the data packets that are not acknowledged; next is the number of the first of them, which wraps around on the wire.
	pending [][]byte
	next    int64
	// complete reports that the last packet, which is shorter than a block, is in pending or was acknowledged.
	complete bool
	buffer   []byte
}

// negotiate sets the options of the transfer from a request, and the option acknowledgement. maxUnfragmented is the number of octets that
// a data packet can have without fragments.
func (t *transfer) negotiate(r request, size int64, maxUnfragmented int) {
	t.block, t.window, t.retry, t.timeout = defaultBlock, 1, retryTime, maxWait
	var options []byte
	if r.block > 0 {
		t.block = min(r.block, max(maxUnfragmented, defaultBlock))
		options = appendOption(options, "blksize", int64(t.block))
	}
	if r.size && !r.netascii && size > 0 { // the size after the conversion is not known, and curl does not accept a size of 0
		options = appendOption(options, "tsize", size)
	}
	if r.timeout > 0 {
		t.retry, t.fixed = time.Duration(r.timeout)*time.Second, true
		options = appendOption(options, "timeout", int64(r.timeout))
	}
	if r.window > 0 {
		t.window = r.window
		options = appendOption(options, "windowsize", int64(r.window))
	}
	if len(options) > 0 {
		t.first = append([]byte{0, opOptAck}, options...)
	}
}

// run sends the file. It returns nil after the client has acknowledged the last packet.
func (t *transfer) run() error {
	t.buffer = make([]byte, t.block+4)
	end := time.Now().Add(maxDuration)
	if len(t.first) > 0 {
		t.pending = [][]byte{t.first}
		if err := t.exchange(end); err != nil {
			return err
		}
	}
	t.next = 1
	for {
		if err := t.fill(); err != nil {
			t.fail(err)
			return err
		}
		if len(t.pending) == 0 {
			return nil
		}
		if err := t.exchange(end); err != nil {
			return err
		}
	}
}

// fill reads the next data packets, until the window is full or the file ends.
func (t *transfer) fill() error {
	for len(t.pending) < t.window && !t.complete {
		p := make([]byte, 4+t.block)
		n, err := io.ReadFull(t.in, p[4:])
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("read the file: %w", err)
		}
		t.complete = n < t.block
		p[1] = opData
		binary.BigEndian.PutUint16(p[2:], uint16(t.next+int64(len(t.pending)))) //nolint:gosec // the number wraps around on the wire
		t.pending = append(t.pending, p[:4+n])
	}
	return nil
}

// errRepeated reports that the client acknowledged the packet before the pending ones again, because it lost the first of these.
var errRepeated = errors.New("the client repeats an acknowledgement")

// exchange sends the pending packets until the client acknowledges at least one of them, and removes the acknowledged ones.
func (t *transfer) exchange(end time.Time) error {
	wait, last := t.retry, time.Now().Add(t.timeout)
	for tries := 0; ; tries++ {
		if err := t.send(); err != nil {
			return err
		}
		until := time.Now().Add(wait)
		if until.After(last) {
			until = last
		}
		err := t.awaitAck(until, t.window > 1)
		if errors.Is(err, errRepeated) { // once only: a packet for each repeated acknowledgement would double the traffic
			if err = t.send(); err == nil {
				err = t.awaitAck(until, false)
			}
		}
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		if now := time.Now(); tries == maxRetries || !now.Before(last) || now.After(end) {
			return fmt.Errorf("the client does not acknowledge block %d", t.next)
		}
		if !t.fixed {
			wait = min(2*wait, maxRetryTime)
		}
	}
}

// send sends the pending packets.
func (t *transfer) send() error {
	for _, p := range t.pending {
		if _, err := t.conn.Write(p); err != nil {
			return fmt.Errorf("send to the client: %w", err)
		}
	}
	return nil
}

// awaitAck waits for an acknowledgement of a pending packet. An acknowledgement of an earlier packet is ignored: a retransmission for it
// would double every later packet (RFC 1123 section 4.2.3.1). With repeats, errRepeated reports one of the packet before the pending ones
// (RFC 7440 section 4).
func (t *transfer) awaitAck(until time.Time, repeats bool) error {
	if err := t.conn.SetReadDeadline(until); err != nil {
		return err
	}
	for {
		n, err := t.conn.Read(t.buffer)
		if err != nil {
			return fmt.Errorf("wait for the client: %w", err)
		}
		block, failure, ok := parseAnswer(t.buffer[:n])
		if failure != nil {
			return failure
		}
		acknowledged := int(block - uint16(t.next) + 1) //nolint:gosec // numbers wrap around on the wire
		if ok && repeats && acknowledged == 0 && t.next > 1 {
			return errRepeated
		}
		if !ok || acknowledged == 0 || acknowledged > len(t.pending) {
			continue
		}
		if t.next > 0 {
			for _, p := range t.pending[:acknowledged] {
				t.sent += int64(len(p) - 4)
			}
		}
		t.pending = append(t.pending[:0], t.pending[acknowledged:]...)
		t.next += int64(acknowledged)
		return nil
	}
}

// fail tells the client that the transfer has failed.
func (t *transfer) fail(err error) {
	_, _ = t.conn.Write(appendError(nil, codeUndefined, err.Error())) // the client times out without it
}

// netascii converts a file to netascii: the end of a line is CR LF, and a CR of the file is followed by NUL (RFC 764).
type netascii struct {
	source  io.ByteReader
	pending byte
	waits   bool
}

func (a *netascii) Read(to []byte) (n int, err error) {
	for n < len(to) {
		if a.waits {
			to[n], a.waits = a.pending, false
			n++
			continue
		}
		c, err := a.source.ReadByte()
		if err != nil {
			return n, err
		}
		switch c {
		case '\n':
			to[n], a.pending, a.waits = '\r', '\n', true
		case '\r':
			to[n], a.pending, a.waits = '\r', 0, true
		default:
			to[n] = c
		}
		n++
	}
	return n, nil
}
