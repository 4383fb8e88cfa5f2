package identity

import "testing"

// What a token is revoked by is no flag on a command line.
func TestIDsAreNoFlags(t *testing.T) {
	for range 2_000 {
		if id := newID(12); len(id) != 12 || id[0] == '-' {
			t.Fatalf("an id is %q", id)
		}
	}
}
