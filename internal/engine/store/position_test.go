package store

import "testing"

// FuzzParsePosition checks that a parsed position is formatted as it was, except for leading zeros and signs without a meaning.
func FuzzParsePosition(f *testing.F) {
	for _, text := range []string{"", "a.0.1", "a1b2.838.1", "x", "a.b.c", "a.-1.5", ".1.1", "a.1.0", "a.1.2.3", "a.99999999999999999999.1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePosition(text)
		if err != nil {
			return
		}
		if again, err := ParsePosition(p.String()); err != nil || again != p {
			t.Errorf("%q was parsed as %+v, and then as %+v, %v", text, p, again, err)
		}
	})
}
