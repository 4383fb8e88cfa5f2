package resolver

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/testkit/freeport"

	"golang.org/x/sys/unix"
)

// askerOf starts an asker and an upstream, which answers each packet with those of fn.
func askerOf(t *testing.T, fn func(query []byte, from netip.AddrPort) [][]byte) (a *asker, at netip.AddrPort) {
	t.Helper()
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, from, err := c.ReadFromUDPAddrPort(buffer)
			if err != nil {
				return
			}
			for _, answer := range fn(bytes.Clone(buffer[:n]), from) {
				_, _ = c.WriteToUDPAddrPort(answer, from)
			}
		}
	}()
	if a, err = newAsker(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.close(); err != nil {
			t.Error(err)
		}
	})
	return a, c.LocalAddr().(*net.UDPAddr).AddrPort()
}

// answerTo returns the answer of the test to a query: the query itself with the bit QR.
func answerTo(query []byte) []byte {
	answer := bytes.Clone(query)
	answer[2] |= 0x80
	return answer
}

// TestAskerIgnoresForeignPackets checks that packets with another id, queries and short packets are ignored, that late packets are not
// taken for the answer to the next query, and that the ports of queries differ although sockets are used again.
func TestAskerIgnoresForeignPackets(t *testing.T) {
	var mu sync.Mutex
	ports := map[uint16]int{}
	a, at := askerOf(t, func(query []byte, from netip.AddrPort) [][]byte {
		mu.Lock()
		ports[from.Port()]++
		mu.Unlock()
		other := answerTo(query)
		other[1]++
		return [][]byte{{1}, query, other, answerTo(query), other, answerTo(query), answerTo(query)}
	})
	var clients sync.WaitGroup
	for worker := range 8 {
		clients.Go(func() {
			for i := range 100 {
				query := append(make([]byte, headerSize), byte(worker), byte(i))
				if err := a.ask(at, query, 10*time.Second, func(answer []byte) error {
					if !bytes.Equal(answer, answerTo(query)) {
						t.Errorf("%x is answered with %x", query, answer)
					}
					return nil
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	clients.Wait()
	mu.Lock()
	defer mu.Unlock()
	if len(ports) < 700 {
		t.Errorf("800 queries left from %d ports", len(ports))
	}
	if n := len(a.sockets); n > 8 {
		t.Errorf("8 clients have opened %d sockets", n)
	}
}

// TestUnusedSocketsHaveNoPackets checks that a socket that is used again has no packets of the query before, whose id may be that of the
// next query.
func TestUnusedSocketsHaveNoPackets(t *testing.T) {
	a, at := askerOf(t, func(query []byte, _ netip.AddrPort) [][]byte {
		return slices.Repeat([][]byte{answerTo(query)}, 20)
	})
	var buffer [maxReply]byte
	for i := range 100 {
		if err := a.ask(at, append(make([]byte, headerSize), byte(i)), 10*time.Second, func([]byte) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if n, err := unix.Read(a.idle[0][0].fd, buffer[:]); !errors.Is(err, unix.EAGAIN) {
			t.Fatalf("after query %d: %d bytes are left (%v)", i, n, err)
		}
	}
}

// TestAskerFails checks the errors of an asker: no answer, an unreachable upstream, a large answer, and its end.
func TestAskerFails(t *testing.T) {
	a, at := askerOf(t, func(query []byte, _ netip.AddrPort) [][]byte {
		if query[headerSize] == 1 {
			return [][]byte{append(answerTo(query), make([]byte, maxReply)...)}
		}
		return nil
	})
	ask := func(to netip.AddrPort, kind byte, timeout time.Duration) error {
		return a.ask(to, append(make([]byte, headerSize), kind), timeout, func([]byte) error { return nil })
	}
	if err := ask(at, 0, 20*time.Millisecond); !errors.Is(err, errNoAnswer) {
		t.Errorf("without an answer: %v", err)
	}
	if err := ask(at, 1, 10*time.Second); !errors.Is(err, errTooLarge) {
		t.Errorf("with a large answer: %v", err)
	}
	if err := ask(freeport.Reserve(t), 0, 10*time.Second); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("without a server: %v", err)
	}
	if len(a.sockets) != 0 {
		t.Errorf("%d sockets are kept after an error", len(a.sockets))
	}
	failed := make(chan error)
	go func() { failed <- ask(at, 0, time.Minute) }()
	soon(t, "it is asked", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return len(a.sockets) == 1 })
	if err := a.close(); err != nil {
		t.Error(err)
	}
	if err := <-failed; !errors.Is(err, errAskerClosed) {
		t.Errorf("at its end: %v", err)
	}
	if err := ask(at, 0, time.Minute); !errors.Is(err, errAskerClosed) {
		t.Errorf("after its end: %v", err)
	}
}

// TestTruncatedAnswersAreRetriedOverTCP checks that an answer that does not fit is asked for over TCP, and given to a client over TCP.
func TestTruncatedAnswersAreRetriedOverTCP(t *testing.T) {
	_, at := startResolver(t, variedUpstream(t), &lines{}, "")
	m := new(dns.Msg)
	m.SetQuestion("many1.t300.test.", dns.TypeA)
	if answer := exchange(m, "udp", "127.0.0.1", at); answer == nil || !answer.Truncated {
		t.Errorf("over UDP: %v", answer)
	}
	if answer := exchange(m, "tcp", "127.0.0.1", at); answer == nil || answer.Truncated || len(answer.Answer) != 30 {
		t.Errorf("over TCP: %v", answer)
	}
}
