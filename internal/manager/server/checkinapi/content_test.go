package checkinapi

import (
	"strings"
	"testing"
)

// A panic while a request that waits is looked at is an error of that request: it has no goroutine of a server that would recover it.
func TestLookThatPanics(t *testing.T) {
	broken := &wantedContent{} // without what it holds
	if _, _, err := broken.check(t.Context(), false); err == nil || !strings.Contains(err.Error(), "panic") {
		t.Errorf("a look that panics returns %v", err)
	}
}
