package plural

import "testing"

// TestCount checks the forms of nouns by number.
func TestCount(t *testing.T) {
	for want, got := range map[string]string{
		"1 zone": Count(1, "zone"), "0 zones": Count(0, "zone"), "2 zones": Count(int64(2), "zone"), "1 entry": Count(1, "entry"),
		"3 entries": Count(3, "entry"),
		"2 keys":    Count(2, "key"), "2 IP addresses": Count(2, "IP address"), "1 index": Count(1, "index"), "2 indexes": Count(2, "index"),
		"2 matches": Count(2, "match"), "2 service points": Count(2, "service point"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if Verb(1, "is", "are") != "is" || Verb(0, "is", "are") != "are" {
		t.Error("the verbs do not follow the number")
	}
}
