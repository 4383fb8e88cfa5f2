package dns

import "testing"

func TestMatches(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.5": "10.0.0.5/32", "10.0.0/24": "10.0.0.0/24", "10/8": "10.0.0.0/8", "! 10.0.0.0/8": "!10.0.0.0/8",
		"2001:db8::/32": "2001:db8::/32",
		"any":           "list any", "!inner": "!list inner", "key k1": "key k1", "! key k1": "!key k1", `key "k1"`: "key k1",
	} {
		m, err := ParseMatch(text)
		got := ""
		if m.Not {
			got = "!"
		}
		switch {
		case m.Key != "":
			got += "key " + m.Key
		case m.List != "":
			got += "list " + m.List
		default:
			got += m.Prefix.String()
		}
		if err != nil || got != want {
			t.Errorf("%s: %s %v, want %s", text, got, err, want)
		}
	}
	for _, bad := range []string{"", "!", "10.0.0.1/24", "10.0.0.0/33", "300.0.0.1", "key", "key a b", "a b", "a;b", `a"b`, "fe80::1%eth0", "10net", "a\u2028b"} {
		if m, err := ParseMatch(bad); err == nil {
			t.Errorf("%q is read as %+v", bad, m)
		}
	}
}

// FuzzMatches checks that any element is parsed or rejected, and that renaming an unrelated name does not change it.
func FuzzMatches(f *testing.F) {
	for _, text := range []string{"10.0.0/24", "!key k", "! inner", "::1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseMatch(text)
		if err != nil {
			return
		}
		same, changed := RenameInMatches([]string{text}, func(m Match) string { return m.List + m.Key }, "\x00", "x")
		if changed || same[0] != text {
			t.Errorf("%q (%+v) was renamed to %q", text, m, same[0])
		}
	})
}
