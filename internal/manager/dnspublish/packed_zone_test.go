package dnspublish

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/base/naming"
	"portolan/internal/wire/zonedata"
)

func packed(t *testing.T, texts ...string) ([]zonedata.Entry, error) {
	t.Helper()
	p := &packedZone{apex: "example.", key: zonedata.Key([]byte("\x07example\x00"))}
	for _, text := range texts {
		rr, err := wire.NewRR(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.add(rr); err != nil {
			return nil, err
		}
	}
	return p.sortEntries()
}

// TestPackedZoneEqualsCompile compares the records of a packed zone with those of naming.Compile, in either order of the input.
func TestPackedZoneEqualsCompile(t *testing.T) {
	t.Parallel()
	texts := []string{"example. 300 IN SOA a. b. 1 2 3 4 5", "b.example. 60 IN A 192.0.2.2", "b.example. 30 IN A 192.0.2.1",
		"b.example. 60 IN A 192.0.2.2", "a.example. 60 IN MX 1 Mail.example.",
		"a.example. 60 IN MX 1 mail.example.", "a.example. 60 IN TXT \"Mail\"", "a.example. 60 IN TXT \"mail\"",
		`\000\001.example. 5 IN TXT "low"`, "*.example. 5 IN CNAME a.example.", `a\.b.example. 5 IN A 192.0.2.3`}
	for range 2 {
		var rrs []wire.RR
		for _, text := range texts {
			rr, err := wire.NewRR(text)
			if err != nil {
				t.Fatal(err)
			}
			rrs = append(rrs, rr)
		}
		zone, err := naming.Compile("example.", rrs)
		if err != nil {
			t.Fatal(err)
		}
		want, err := entriesOf(zone)
		if err != nil {
			t.Fatal(err)
		}
		have, err := packed(t, texts...)
		same := slices.EqualFunc(have, want, func(a, b zonedata.Entry) bool { return bytes.Equal(a.Key(), b.Key()) && a.Compare(b) == 0 })
		if err != nil || !same || len(have) != len(texts)-2 {
			t.Errorf("%v\n%d records, want\n%v %v", have, len(have), want, err)
		}
		for i := range len(texts) / 2 {
			texts[i], texts[len(texts)-1-i] = texts[len(texts)-1-i], texts[i]
		}
	}
}

func TestPackedZoneRefuses(t *testing.T) {
	t.Parallel()
	for want, texts := range map[string][]string{
		"is not in the zone":                   {"example.net. 5 IN A 192.0.2.1"},
		"has a CNAME record and other records": {"a.example. 5 IN CNAME b.example.", "a.example. 5 IN TXT \"x\""},
		"a.example. has a CNAME":               {"a.example. 5 IN CNAME b.example.", "a.example. 5 IN CNAME c.example."},
	} {
		if _, err := packed(t, texts...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", texts, err, want)
		}
	}
}
