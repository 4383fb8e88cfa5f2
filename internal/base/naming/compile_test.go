package naming

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	dns "portolan/internal/base/dnsmsg"
)

func parse(t *testing.T, lines ...string) (rrs []dns.RR) {
	t.Helper()
	for _, line := range lines {
		rr, err := dns.NewRR(line)
		if err != nil {
			t.Fatal(err)
		}
		rrs = append(rrs, rr)
	}
	return rrs
}

const soa = "example. 3600 IN SOA ns.example. h.example. 1 2 3 4 5"

// TestCanonicalOrder sorts the example of RFC 4034 section 6.1.
func TestCanonicalOrder(t *testing.T) {
	names := []string{"example.", "a.example.", "yljkjljk.a.example.", "Z.a.example.", "zABC.a.EXAMPLE.", "z.example.", "\\001.z.example.",
		"*.z.example.", "\\200.z.example."}
	lines := []string{soa}
	for _, name := range names {
		lines = append(lines, name+" 60 IN TXT x")
	}
	want := ""
	for range 20 {
		rrs := parse(t, lines...)
		rand.Shuffle(len(rrs), func(i, j int) { rrs[i], rrs[j] = rrs[j], rrs[i] })
		z, err := Compile("Example", rrs)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, s := range z.Sets {
			got += s.Name + dns.TypeToString[s.Type] + " "
		}
		if want == "" {
			want = got
		}
		if got != want || !strings.HasPrefix(got,
			"example.SOA example.TXT a.example.TXT yljkjljk.a.example.TXT z.a.example.TXT zabc.a.example.TXT z.example.TXT ") {
			t.Fatalf("the order is %s", got)
		}
	}
}

func TestCompile(t *testing.T) {
	z, err := Compile("example.", parse(t, "a.example. 60 IN A 192.0.2.1", soa, "a.example. 30 IN A 192.0.2.2",
		"A.example. 90 IN A 192.0.2.1", "example. 60 IN NS a.example."))
	if err != nil {
		t.Fatal(err)
	}
	if a := z.Sets[2]; len(z.Sets) != 3 || len(a.Data) != 2 || a.Data[0].Header().Ttl != 30 || a.Data[1].Header().Ttl != 30 {
		t.Errorf("the zone is %v", z.Sets)
	}
	for want, lines := range map[string][]string{
		"is not in the zone":     {soa, "example.com. 60 IN A 192.0.2.1"},
		"xexample":               {soa, "xexample. 60 IN A 192.0.2.1"},
		"SOA":                    {"example. 60 IN NS a.example."},
		"has a CNAME record":     {soa, "a.example. 60 IN CNAME b.example.", "a.example. 60 IN A 192.0.2.1"},
		"one SOA":                {soa, "example. 3600 IN SOA other.example. h.example. 1 2 3 4 5"},
		"CNAME record and other": {soa, "example. 60 IN CNAME b.example."},
		"a.example. has a CNAME": {soa, "a.example. 60 IN CNAME b.example.", "a.example. 60 IN CNAME c.example."},
	} {
		if _, err := Compile("example", parse(t, lines...)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v give %v, want %q", lines, err, want)
		}
	}
	if z, err := Compile(".", parse(t, ". 1 IN SOA a. b. 1 2 3 4 5", "org. 60 IN NS a.", "com. 60 IN NS a.")); err != nil ||
		!slices.IsSortedFunc(z.Sets, func(a, b RRset) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("the root is %v, %v", z, err)
	}
}

// FuzzReadZone checks that a zone file either fails to compile, or its compiled form can be written and read again.
func FuzzReadZone(f *testing.F) {
	f.Add("$ORIGIN example.\n$TTL 60\n@ SOA ns h 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\nw*x TXT \"a\\\"b\" c\n")
	f.Add(soa + "\n\\001.example. 60 IN A 192.0.2.1\n")
	f.Add("$GENERATE 1-3 a$ A 192.0.2.$\n")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := ReadZone(strings.NewReader(text), "example", nil)
		if err != nil || len(file.Records) > 1000 {
			return
		}
		z, err := Compile(file.Zone, file.Records)
		if err != nil {
			return
		}
		var out strings.Builder
		if err := z.Write(&out); err != nil {
			t.Fatal(err)
		}
		again, err := ReadZone(strings.NewReader(out.String()), file.Zone, nil)
		if err != nil || len(again.Faults) > 0 {
			return // the library writes some unusual data in a form that it cannot read
		}
		second, err := Compile(file.Zone, again.Records)
		if err != nil || len(second.Sets) != len(z.Sets) {
			t.Fatalf("%s\nis written as\n%s\nand read as another zone: %v", text, out.String(), err)
		}
	})
}

// FuzzHistoric checks that records of historic types are parsed or rejected, and that parsed records can be packed.
func FuzzHistoric(f *testing.F) {
	for _, text := range []string{"0 2001:db8::1", "64 ::1 prefix.example.", "128 prefix.example.", "129", "0x47.0005", "1 2 3 AAEC",
		"192.0.2.1 tcp smtp 80", "192.0.2.1 300", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for kind := range historic {
			if CheckData(kind, text) != nil {
				continue
			}
			rr, err := NewRecord("r.example.", 60, kind, text)
			if err != nil {
				t.Fatalf("%s %q: %v", kind, text, err)
			}
			if again, err := dns.NewRR(rr.String()); err != nil || again == nil {
				t.Errorf("%s %q is written as %s: %v", kind, text, rr, err)
			}
		}
	})
}

// TestReadZoneWithKeys checks that a line after an IPSECKEY record is a separate record.
func TestReadZoneWithKeys(t *testing.T) {
	text := "@ 60 SOA a b 1 1 1 1 1\nk 60 IPSECKEY 10 1 2 192.0.2.38 AQIDBA==\nk ipseckey 10 0 2 . AQIDBA== ; twice\nmail 60 MX 10 mx\n"
	file, err := ReadZone(strings.NewReader("$TTL 60\n"+text), "example.", nil)
	if err != nil || len(file.Records) != 4 {
		t.Errorf("%+v: %v", file, err)
	}
}
