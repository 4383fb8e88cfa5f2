package ping

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"
)

// TestLoopbackAnswers checks that the loopback addresses answer. The test sends nothing to other addresses.
func TestLoopbackAnswers(t *testing.T) {
	for _, a := range []string{"127.0.0.1", "127.3.2.1"} {
		yes, err := Answers(t.Context(), netip.MustParseAddr(a), time.Second)
		if errors.Is(err, ErrForbidden) {
			t.Skip(err)
		}
		if err != nil || !yes {
			t.Errorf("%s answers: %v, %v", a, yes, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if yes, err := Answers(ended, netip.MustParseAddr("127.0.0.1"), time.Second); yes && err != nil {
		t.Errorf("with the context ended: %v, %v", yes, err)
	}
}
