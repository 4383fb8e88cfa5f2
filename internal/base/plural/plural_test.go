package plural

import "testing"

// TestOf checks the forms of nouns by number.
func TestOf(t *testing.T) {
	for want, got := range map[string]string{
		"1 zone": Of(1, "zone"), "0 zones": Of(0, "zone"), "2 zones": Of(int64(2), "zone"), "1 entry": Of(1, "entry"), "3 entries": Of(3, "entry"),
		"2 keys": Of(2, "key"), "2 IP addresses": Of(2, "IP address"), "1 index": Of(1, "index"), "2 indexes": Of(2, "index"),
		"2 matches": Of(2, "match"), "2 service points": Of(2, "service point"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if Verb(1, "is", "are") != "is" || Verb(0, "is", "are") != "are" {
		t.Error("the verbs do not follow the number")
	}
}
