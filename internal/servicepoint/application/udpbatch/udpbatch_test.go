package udpbatch_test

import (
	"errors"
	"net"
	"testing"
	"time"

	"portolan/internal/servicepoint/application/udpbatch"
)

// echo answers each packet with its own text: every second one after the batch.
func echo(t *testing.T, c *net.UDPConn) {
	t.Helper()
	p, err := udpbatch.New(c)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { _ = c.Close(); <-done })
	go func() {
		defer close(done)
		if err := p.Serve(func(n int) {
			for i := range n {
				m := p.Message(i)
				if m[len(m)-1]%2 == 0 {
					p.Reply(i, append(p.Buffer(i), m...))
					continue
				}
				if err := p.Write(p.Origin(i), m); err != nil {
					t.Error(err)
				}
			}
		}, func(err error) { t.Error(err) }); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	}()
}

// TestAnswersLeaveFromTheirAddress checks that the answers of a socket that is bound to no address leave from the address that the client
// has sent its packet to. A connected client receives no others.
func TestAnswersLeaveFromTheirAddress(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:0", "0.0.0.0:0", "[::]:0"} {
		c, err := net.ListenPacket("udp", listen)
		if err != nil {
			t.Logf("%s is left out: %v", listen, err)
			continue
		}
		echo(t, c.(*net.UDPConn))
		_, port, _ := net.SplitHostPort(c.LocalAddr().String())
		to := map[string][]string{"127.0.0.1:0": {"127.0.0.1"}, "0.0.0.0:0": {"127.0.0.1", "127.0.0.7"}, "[::]:0": {"127.0.0.8", "::1"}}
		for _, address := range to[listen] {
			client, err := net.Dial("udp", net.JoinHostPort(address, port))
			if err != nil {
				t.Logf("%s is left out: %v", address, err)
				continue
			}
			for i := range byte(10) {
				if _, err := client.Write([]byte{'a', i}); err != nil {
					t.Fatal(err)
				}
			}
			got := map[byte]bool{}
			for range 10 {
				var answer [16]byte
				_ = client.SetReadDeadline(time.Now().Add(5 * time.Second))
				n, err := client.Read(answer[:])
				if err != nil || n != 2 {
					t.Fatalf("%s at %s: %d bytes, %v", listen, address, n, err)
				}
				got[answer[1]] = true
			}
			if len(got) != 10 {
				t.Errorf("%s at %s: %d different answers of 10", listen, address, len(got))
			}
			_ = client.Close()
		}
	}
}

// TestBatchesAllocateNothing checks that receiving and answering packets allocates no memory.
func TestBatchesAllocateNothing(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:0", "0.0.0.0:0"} {
		c, err := net.ListenPacket("udp", listen)
		if err != nil {
			t.Fatal(err)
		}
		echo(t, c.(*net.UDPConn))
		_, port, _ := net.SplitHostPort(c.LocalAddr().String())
		client, err := net.Dial("udp", "127.0.0.1:"+port)
		if err != nil {
			t.Fatal(err)
		}
		question, answer := []byte{0, 0}, make([]byte, 64)
		for late := range byte(2) {
			question[1] = late
			if n := testing.AllocsPerRun(100, func() {
				if _, err := client.Write(question); err != nil {
					t.Fatal(err)
				}
				if _, err := client.Read(answer); err != nil {
					t.Fatal(err)
				}
			}); n >= 1 {
				t.Errorf("%s: %v allocations", listen, n)
			}
		}
		_ = client.Close()
	}
}
