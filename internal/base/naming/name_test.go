package naming

import (
	"strings"
	"testing"

	dns "portolan/internal/base/dnsmsg"

	"pgregory.net/rapid"
)

func TestCheck(t *testing.T) {
	long := strings.Repeat("a", 64)
	for _, c := range []struct {
		name string
		rule Rule
		ok   bool
	}{
		{"www", HostName, true}, {"WWW.Example", HostName, true}, {"*", HostName, true}, {"*.a", HostName, true},
		{"a.*", HostName, false}, {"-a", HostName, false}, {"a-", HostName, false}, {"a_b", HostName, false},
		{"_sip._tcp", AnyName, true}, {"0/26", AnyName, true}, {"a..b", AnyName, false}, {"", AnyName, false},
		{long, AnyName, false}, {strings.Repeat("a.", 126) + "ab", AnyName, false}, {"a b", AnyName, false},
		{"a\x00b", AnyName, false}, {"bücher", HostName, true}, {"a\u0085", AnyName, false}, {"a@b", AnyName, false},
	} {
		if err := Check(c.name, c.rule); (err == nil) != c.ok {
			t.Errorf("Check(%q, %d) = %v; want ok %v", c.name, c.rule, err, c.ok)
		}
	}
}

func TestKey(t *testing.T) {
	if Key("Bücher.Example.") != "xn--bcher-kva.example" || Key("WWW") != "www" {
		t.Errorf("keys: %q %q", Key("Bücher.Example."), Key("WWW"))
	}
}

// TestJoinAndRelative checks that Relative is the inverse of Join.
func TestJoinAndRelative(t *testing.T) {
	label := rapid.StringMatching(`[a-z0-9]{1,8}`)
	name := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(label, 1, 4).Draw(t, "labels"), ".")
	})
	rapid.Check(t, func(t *rapid.T) {
		n, zone := name.Draw(t, "name"), name.Draw(t, "zone")
		got, ok := Relative(strings.ToUpper(Join(n, zone)), zone)
		if !ok || !strings.EqualFold(got, n) {
			t.Fatalf("Relative(Join(%q, %q)) = %q, %v", n, zone, got, ok)
		}
	})
	if _, ok := Relative("badexample.com", "example.com"); ok {
		t.Error("badexample.com is reported as a name in example.com")
	}
}

func FuzzCheck(f *testing.F) {
	f.Add("www.example.com")
	f.Add("bücher.example")
	f.Fuzz(func(t *testing.T, name string) {
		if Check(name, AnyName) == nil && len(Key(name)) > MaxName {
			t.Errorf("%q passes with a key of %d octets", name, len(Key(name)))
		}
	})
}

// FuzzNames compares the results for names with those of the DNS library: labels, wire format, and membership in a zone.
func FuzzNames(f *testing.F) {
	for _, text := range []string{"www.example.", "a\\.b.example.", "Lab\\032Printer._ipp._tcp.example.", "\\000\\255.x.", "a\\\\.b.",
		"*._x.0/25.", "\\065."} {
		f.Add(text, "example.")
	}
	f.Fuzz(func(t *testing.T, name, zone string) {
		var wire, zoneWire [256]byte
		n, err := dns.PackDomainName(name, wire[:], 0, nil, false)
		z, zoneErr := dns.PackDomainName(zone, zoneWire[:], 0, nil, false)
		if err != nil || zoneErr != nil || !strings.HasSuffix(name, ".") || !strings.HasSuffix(zone, ".") || n < 2 || z < 2 {
			return
		}
		written, _, err := dns.UnpackDomainName(wire[:n], 0)
		if err != nil {
			return
		}
		zoneWritten, _, err := dns.UnpackDomainName(zoneWire[:z], 0)
		if err != nil {
			return
		}
		key, err := ASCII(Clean(written))
		if err != nil {
			t.Fatalf("%q: %v", written, err)
		}
		if got, want := len(Labels(key)), dns.CountLabel(written); got != want {
			t.Errorf("%q has %d labels, and %d by the library", key, got, want)
		}
		if err := Check(key, AnyName); err != nil {
			t.Errorf("%q: %v", key, err)
		}
		back, err := FQDN(key)
		if err != nil || back != written {
			t.Errorf("%q is written as %q, and by the library as %q: %v", key, back, written, err)
		}
		if again, err := ASCII(key); err != nil || again != key {
			t.Errorf("%q becomes %q: %v", key, again, err)
		}
		if _, in := Relative(key, Clean(Key(zoneWritten))); in != dns.IsSubDomain(dns.CanonicalName(zoneWritten), dns.CanonicalName(written)) {
			t.Errorf("that %q is in %q is %v", key, zoneWritten, in)
		}
	})
}
