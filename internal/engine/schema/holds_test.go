package schema

import (
	"runtime"
	"testing"
)

// TestHolds checks that Holds compares like the store. A number with a huge exponent must not need much memory.
func TestHolds(t *testing.T) {
	text := func(s string) *string { return &s }
	for _, c := range []struct {
		text  *string
		op    string
		value string
		want  bool
	}{
		{nil, "eq", "null", true}, {nil, "ne", "'a'", true}, {nil, "gt", "1", false}, {nil, "contains", "''", false},
		{text("a"), "eq", "'a'", true}, {text("a"), "ne", "null", true}, {text("a"), "eq", "null", false},
		{text("12"), "gt", "9", true}, {text("12"), "gt", "'9'", true}, {text("x"), "gt", "9", false}, {text("x"), "gt", "'a'", true},
		{text("9223372036854775807"), "ge", "9223372036854775807", true}, {text("9223372036854775806"), "ge", "9223372036854775807", false},
		{text("0.5"), "lt", "0.50001", true}, {text("7"), "gt", "1.5e-999999", true}, {text("7"), "lt", "1e999999", false},
		{text("007"), "gt", "1", false}, {text("1e3"), "gt", "1", false}, // not numbers for the store
		{text("north"), "contains", "'ort'", true}, {text("north"), "startsWith", "'N'", false}, {text("north"), "endsWith", "'th'", true},
	} {
		n, err := ParseFilter("x:" + c.op + "(" + c.value + ")")
		if err != nil {
			t.Fatalf("%s(%s): %v", c.op, c.value, err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := n.Holds(c.text)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; got != c.want || used > 64<<10 {
			t.Errorf("%v %s(%s) is %v, with %d bytes", c.text, c.op, c.value, got, used)
		}
	}
}
