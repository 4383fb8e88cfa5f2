package dhcpdata

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
)

// TestBounds checks that values that could not be sent, or that would end each lease at once, are refused.
func TestBounds(t *testing.T) {
	text := func(n int) string { return strconv.Quote(strings.Repeat("a", n)) }
	for _, c := range []struct {
		name, value string
		v6, valid   bool
	}{
		{"min-lease-time", "0", false, false}, {"min-lease-time", "1", false, true}, {"min-lease-time", "0", true, false},
		{"default-lease-time", "0", false, false}, {"default-lease-time", "0", true, false}, {"default-lease-time", "1", true, true},
		{"max-lease-time", "0", false, false}, {"max-lease-time", "0", true, false},
		{"filename", text(127), false, true}, {"filename", text(128), false, false},
		{"server-name", text(63), false, true}, {"server-name", text(64), false, false},
	} {
		if err := checkService(c.name, c.v6, json.RawMessage(c.value)); (err == nil) != c.valid {
			t.Errorf("%s %s: %v", c.name, c.value, err)
		}
	}
}
