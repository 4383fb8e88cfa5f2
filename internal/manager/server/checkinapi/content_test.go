package checkinapi

import (
	"strings"
	"testing"
)

// TestPanicInRecheck checks that a panic during the recheck of a waiting request is an error of that request. Its goroutine does not belong
// to an HTTP server, which would recover it.
func TestPanicInRecheck(t *testing.T) {
	broken := &contentRequest{} // without what it holds
	if _, _, err := broken.check(t.Context(), false); err == nil || !strings.Contains(err.Error(), "panic") {
		t.Errorf("a look that panics returns %v", err)
	}
}
