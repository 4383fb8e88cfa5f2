package fleet

import (
	"crypto/x509"
	"fmt"
	"testing"
	"time"

	"portolan/internal/wire/checkin"
)

// TestReconnectSpread checks that the reconnection spread grows with the number of service points. It is long enough for a handshake with
// each, and never longer than the accepted silence.
func TestReconnectSpread(t *testing.T) {
	h := newTestFleet(t, "", 0)
	spread := func() time.Duration {
		a := h.f.answer(&x509.Certificate{NotAfter: h.now.time().Add(servicePointLife)}, row{}, checkin.Request{})
		return time.Duration(a.SpreadMillis) * time.Millisecond
	}
	if got := spread(); got != 0 {
		t.Errorf("alone a manager says %v", got)
	}
	heard, before := 0, time.Duration(0)
	for _, n := range []int{1, 1000, 10_000, 100_000} {
		for ; heard < n; heard++ {
			h.f.recordContact(row{at: nodeID{fmt.Sprint(heard), 1}})
		}
		got := spread()
		// One core makes 1,000 handshakes a second or more; a slow one takes three times as long.
		if least := min(time.Duration(n)*3*time.Millisecond, 90*time.Second); got < least || got > 90*time.Second || got < before {
			t.Errorf("to %d service points it says %v, at least %v would do", n, got, least)
		}
		before = got
	}
}
