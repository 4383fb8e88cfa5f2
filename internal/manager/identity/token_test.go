package identity

import "testing"

// TestTokenIDsAreNotFlags checks that a command line does not parse a token id as a flag.
func TestTokenIDsAreNotFlags(t *testing.T) {
	for range 2_000 {
		if id := newID(12); len(id) != 12 || id[0] == '-' {
			t.Fatalf("an id is %q", id)
		}
	}
}
