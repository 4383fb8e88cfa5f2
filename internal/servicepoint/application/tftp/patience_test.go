package tftp

import (
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// TestTransferTimeout checks that a transfer whose client has gone ends after its patience, however long the interval of retransmissions
// is.
func TestTransferTimeout(t *testing.T) {
	gone, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.DialUDP("udp4", nil, gone.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	var received atomic.Int64
	go func() {
		for buffer := make([]byte, 100); ; {
			if _, _, err := gone.ReadFromUDP(buffer); err != nil {
				return
			}
			received.Add(1)
		}
	}()
	x := &transfer{conn: conn, buffer: make([]byte, 100), pending: [][]byte{{0, opData, 0, 1}}, next: 1, window: 1}
	for _, c := range []struct {
		retry, patience time.Duration
		packets         int64
	}{
		{time.Hour, 50 * time.Millisecond, 1}, {30 * time.Millisecond, 50 * time.Millisecond, 2}, {time.Millisecond, time.Hour, maxRetries + 1},
	} {
		received.Store(0)
		x.retry, x.fixed, x.timeout = c.retry, true, c.patience
		if err := x.exchange(time.Now().Add(maxDuration)); err == nil {
			t.Error("a transfer without a client has succeeded")
		}
		await(t, "the packets arrive", func() bool { return received.Load() == c.packets })
	}
	x.negotiate(request{timeout: maxTimeout}, 1, 512)
	if x.timeout != maxWait || x.retry > maxWait/2 {
		t.Errorf("%v, %v", x.timeout, x.retry)
	}
	for _, one := range []*net.UDPConn{conn, gone} {
		if err := one.Close(); err != nil {
			t.Error(err)
		}
	}
}
