package udpbatch

import (
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// filled returns a socket with n waiting packets, and the client that has sent them.
func filled(t *testing.T, n int) (server, client *net.UDPConn, p *Conn) {
	t.Helper()
	at := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}
	server, err := net.ListenUDP("udp4", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	if p, err = New(server); err != nil {
		t.Fatal(err)
	}
	client, err = net.DialUDP("udp4", at, server.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	for i := range n {
		if _, err := fmt.Fprintf(client, "packet %d", i); err != nil {
			t.Fatal(err)
		}
	}
	return server, client, p
}

// TestPacketsAreServed checks that all waiting packets and later ones are answered, in batches.
func TestPacketsAreServed(t *testing.T) {
	const waiting, later = 3*Size + 5, 20
	server, client, p := filled(t, waiting)
	largest, ended := 0, make(chan error)
	go func() {
		ended <- p.Serve(func(n int) {
			largest = max(largest, n)
			for i := range n {
				p.Reply(i, append(p.Buffer(i), p.Message(i)...))
			}
		}, func(err error) { t.Error(err) })
	}()
	buf := make([]byte, 100)
	if err := client.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for i := range waiting + later {
		if i >= waiting { // the socket is empty, so the server waits in the poller
			if _, err := fmt.Fprintf(client, "packet %d", i); err != nil {
				t.Fatal(err)
			}
		}
		n, err := client.Read(buf)
		if want := fmt.Sprintf("packet %d", i); err != nil || string(buf[:n]) != want {
			t.Fatalf("%q, %v, want %q", buf[:n], err, want)
		}
	}
	_ = server.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("serving ends with %v", err)
	}
	if largest != Size {
		t.Errorf("the largest batch has %d packets, want %d", largest, Size)
	}
}

// TestClosedUnderLoad checks that a socket with waiting packets can always be closed.
func TestClosedUnderLoad(t *testing.T) {
	server, _, p := filled(t, 4*Size)
	batches, closed := 0, make(chan error)
	err := p.Serve(func(int) {
		if batches++; batches > 1 {
			return
		}
		go func() { closed <- server.Close() }()
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
			if p.raw.Control(func(uintptr) {}) != nil {
				return
			}
			if time.Now().After(deadline) {
				t.Error("the socket is not closed")
				return
			}
		}
	}, func(err error) { t.Error(err) })
	if !errors.Is(err, net.ErrClosed) || batches != 1 {
		t.Errorf("%d batches, %v", batches, err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// TestBuffersAreLarge checks the receive buffer of a socket: bufferSize, or the limit of the system.
func TestBuffersAreLarge(t *testing.T) {
	_, _, p := filled(t, 0)
	size := 0
	if err := p.raw.Control(func(fd uintptr) {
		size, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
	}); err != nil {
		t.Fatal(err)
	}
	plain, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = plain.Close() }()
	if err := plain.SetReadBuffer(bufferSize); err != nil {
		t.Fatal(err)
	}
	raw, err := plain.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	limit := 0
	if err := raw.Control(func(fd uintptr) {
		limit, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
	}); err != nil {
		t.Fatal(err)
	}
	if size < limit || limit == 0 {
		t.Errorf("the receive buffer has %d bytes, want at least %d", size, limit)
	}
}

// TestFailures checks that each failure of a socket is reported, and that the caller can slow it down. The descriptor is that of a file.
func TestFailures(t *testing.T) {
	server, _, p := filled(t, Size) // after a full batch it reads again without waiting
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	failures := 0
	err = p.Serve(func(int) {
		if err := p.raw.Control(func(fd uintptr) {
			if err := unix.Dup3(int(file.Fd()), int(fd), unix.O_CLOEXEC); err != nil {
				t.Error(err)
			}
		}); err != nil {
			t.Error(err)
		}
	}, func(err error) {
		if failures++; !errors.Is(err, unix.ENOTSOCK) {
			t.Error(err)
		}
		if failures == 3 {
			_ = server.Close() // the descriptor is a file
		}
	})
	if !errors.Is(err, net.ErrClosed) || failures != 3 {
		t.Errorf("%d failures, %v", failures, err)
	}
}
