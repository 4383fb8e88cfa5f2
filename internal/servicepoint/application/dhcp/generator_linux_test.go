package dhcp

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// generator is a relay at 10.0.0.3 with many clients. It measures the time of each exchange, which perfdhcp does not.
type generator struct {
	t    *testing.T
	conn net.PacketConn
	to   net.Addr
	// addresses are those of the clients, as 32 bits; 0 before the first exchange. began and took are the times of the
	// first message and of the ACK in Unix nanoseconds.
	addresses   []atomic.Uint32
	began, took []atomic.Int64
}

func newGenerator(t *testing.T, l *lab, clients int) *generator {
	t.Helper()
	g := &generator{t: t, to: &net.UDPAddr{IP: net.IPv4(10, 0, 0, 2), Port: serverPort}, addresses: make([]atomic.Uint32, clients),
		began: make([]atomic.Int64, clients), took: make([]atomic.Int64, clients)}
	if err := within(l.client, func() (err error) {
		g.conn, err = net.ListenPacket("udp4", "10.0.0.3:67")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.conn.Close() })
	if err := g.conn.(*net.UDPConn).SetReadBuffer(receiveBuffer); err != nil {
		t.Fatal(err)
	}
	return g
}

// message returns a message of a client through the relay.
func (g *generator) message(n int, options ...byte) []byte {
	const relayAt, hardwareAt, size, cookie = 24, 28, 236, 0x63825363
	p := make([]byte, size, 2*size)
	p[0], p[1], p[2], p[3] = 1, 1, 6, 1
	binary.BigEndian.PutUint32(p[4:], uint32(n)) //nolint:gosec // a small number
	copy(p[relayAt:], []byte{10, 0, 0, 3})
	copy(p[hardwareAt:], []byte{2, 7, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
	p = append(binary.BigEndian.AppendUint32(p, cookie), options...)
	return append(p, 55, 4, 1, 3, 6, 15, 255)
}

func (g *generator) discover(n int) []byte { return g.message(n, 53, 1, 1) }

// renewal returns the renewal of a client; nil if it has no lease.
func (g *generator) renewal(n int) []byte {
	a := g.addresses[n].Load()
	if a == 0 {
		return nil
	}
	p := g.message(n, 53, 1, 3)
	binary.BigEndian.PutUint32(p[12:], a)
	return p
}

// run sends the first messages of all clients at a rate per second, and returns the 99th percentile of the time until their ACKs in
// milliseconds.
func (g *generator) run(rate int, first func(n int) []byte) float64 {
	g.t.Helper()
	for n := range g.took {
		g.took[n].Store(0)
	}
	var receiving sync.WaitGroup
	receiving.Go(g.receive)
	sent := 0
	start := time.Now()
	for n := range g.took {
		due := start.Add(time.Duration(n) * time.Second / time.Duration(rate))
		if wait := time.Until(due); wait > 0 {
			pause := unix.NsecToTimespec(wait.Nanoseconds())
			_ = unix.Nanosleep(&pause, nil) // timers of Go are less exact
		}
		if p := first(n); p != nil {
			g.began[n].Store(time.Now().UnixNano())
			if _, err := g.conn.WriteTo(p, g.to); err == nil {
				sent++
			}
		}
	}
	if err := g.conn.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
		g.t.Fatal(err)
	}
	receiving.Wait()
	if err := g.conn.SetReadDeadline(time.Time{}); err != nil {
		g.t.Fatal(err)
	}
	var all []float64
	for n := range g.took {
		if at := g.took[n].Load(); at > 0 {
			all = append(all, float64(at-g.began[n].Load())/1e6)
		}
	}
	if len(all) == 0 {
		g.t.Fatalf("no answer to %d messages", sent)
	}
	slices.Sort(all)
	return all[len(all)*99/100]
}

// lost returns the share of clients without an ACK.
func (g *generator) lost() float64 {
	without := 0
	for n := range g.took {
		if g.took[n].Load() == 0 {
			without++
		}
	}
	return float64(without) / float64(len(g.took))
}

// receive answers offers and notes the times of ACKs, until the deadline of the socket.
func (g *generator) receive() {
	buffer := make([]byte, maxMessage)
	for {
		size, _, err := g.conn.ReadFrom(buffer)
		if err != nil {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				g.t.Error(err)
			}
			return
		}
		const yoursAt, typeAt = 16, 242
		n := int(binary.BigEndian.Uint32(buffer[4:]))
		if size <= typeAt || n >= len(g.took) {
			g.t.Errorf("a message of %d octets for client %d", size, n)
			continue
		}
		address := netip.AddrFrom4([4]byte(buffer[yoursAt:]))
		switch buffer[typeAt] {
		case 2:
			a := address.As4()
			p := g.message(n, 53, 1, 3, 50, 4, a[0], a[1], a[2], a[3], 54, 4, 10, 0, 0, 2)
			_, _ = g.conn.WriteTo(p, g.to) // the exchange is lost
		case 5:
			g.took[n].Store(time.Now().UnixNano())
			g.addresses[n].Store(binary.BigEndian.Uint32(buffer[yoursAt:]))
		}
	}
}
