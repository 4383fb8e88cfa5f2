package space

import (
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"10.0.0.0/8", "10.0.0.0/8"},
		{" 10.0.0.0 / 255.255.255.0 ", "10.0.0.0/24"},
		{"10.0.0.0-10.0.0.255", "10.0.0.0/24"},
		{"10.0.0.1-10.0.0.9", "10.0.0.1-10.0.0.9"},
		{"2001:DB8::/32", "2001:db8::/32"},
		{"0.0.0.0/0", "0.0.0.0/0"},
		{"::/0", "::/0"},
	} {
		r, err := Parse(c.in)
		if err != nil || r.String() != c.want {
			t.Errorf("Parse(%q) = %v, %v; want %s", c.in, r, err, c.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for in, why := range map[string]string{
		"10.0.0.1/24":             "host bits set; the network is 10.0.0.0/24",
		"10.0.0.0":                "must be CIDR",
		"10.0.0.0/33":             "between 0 and 32",
		"10.0.0.0/+1":             "not a prefix length",
		"10.0.0.0/255.0.255.0":    "contiguous",
		"10.0.0.9-10.0.0.1":       "ends before it starts",
		"10.0.0.1-2001:db8::1":    "use one family",
		"ten/8":                   "not an IP address",
		"fe80::1%eth0/128":        "zone",
		"":                        "must be CIDR",
		"10.0.0.0/":               "not a prefix length",
		"2001:db8::/255.255.0.0":  "prefix length",
		"10.0.0.0/0000000000000":  "not a prefix length",
		"10.0.0.0-10.0.0.1-x":     "not an IP address",
		"::ffff:10.0.0.0/96":      "between 0 and 32",
		"10.0.0.0/24/24":          "not a prefix length",
		"١٠.0.0.0/8":              "not an IP address",
		"10.0.0.0/255.255.255.az": "not a netmask",
	} {
		if r, err := Parse(in); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("Parse(%q) = %v, %v; want an error with %q", in, r, err, why)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"10.0.0.0/8", "1.2.3.4-1.2.3.9", "::/0", "/24", "10.0.0.0/255.0.0.0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Parse(text)
		if err != nil {
			return
		}
		if again, err := Parse(r.String()); err != nil || again != r {
			t.Errorf("%q gives %v, which reads as %v, %v", text, r, again, err)
		}
	})
}

func addr4(v uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
}

// TestFirstFitIsFirst checks that FirstFit returns the first aligned prefix in the free range, or an error if there is none. It compares
// the result with a trial of every aligned start.
func TestFirstFitIsFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.Uint32Range(0, 2000).Draw(t, "low")
		high := rapid.Uint32Range(low, low+600).Draw(t, "high")
		bits := rapid.IntRange(20, 32).Draw(t, "bits")
		size := uint32(1) << (32 - bits)
		want := ""
		for start := uint32(0); start+size-1 <= high; start += size {
			if start >= low {
				want = Range{addr4(start), addr4(start + size - 1)}.String()
				break
			}
		}
		got, err := FirstFit(Range{addr4(low), addr4(high)}, bits)
		if (err == nil) != (want != "") || err == nil && got.String() != want {
			t.Fatalf("FirstFit(%d-%d, /%d) = %v, %v; want %q", low, high, bits, got, err, want)
		}
	})
}

func TestFirstFitAtTheEndOfSpace(t *testing.T) {
	last := netip.MustParseAddr("255.255.255.255")
	if r, err := FirstFit(Range{last, last}, 24); err == nil {
		t.Errorf("a /24 fits into one address: %v", r)
	}
	if r, err := FirstFit(Range{last, last}, 32); err != nil || r.Low != last {
		t.Errorf("FirstFit = %v, %v", r, err)
	}
}

func TestHosts(t *testing.T) {
	for in, want := range map[string]string{
		"10.0.0.0/24": "10.0.0.1-10.0.0.254", "10.0.0.0/31": "10.0.0.0/31", "10.0.0.7/32": "10.0.0.7/32",
		"10.0.0.0/30": "10.0.0.1-10.0.0.2", "2001:db8::/126": "2001:db8::1-2001:db8::3", "2001:db8::/127": "2001:db8::/127",
	} {
		r, err := Parse(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := Hosts(r).String(); got != want {
			t.Errorf("Hosts(%s) = %s; want %s", in, got, want)
		}
	}
}
