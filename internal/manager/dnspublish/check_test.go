package dnspublish

import (
	"strings"
	"testing"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/wire/zonedata"
)

// TestChecks checks that each check finds its problem, with the configured severity.
func TestChecks(t *testing.T) {
	const zone = "$ORIGIN example.\n$TTL 60\n@ SOA ns h 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\nalias CNAME ns\n"
	for _, c := range []struct {
		what, records, want string
		set                 func(c *checks, level string)
	}{
		{"a name of a host", "a_b A 192.0.2.2", "a_b.example. is not a host name", func(c *checks, level string) { c.Names = level }},
		{"mail to an address", "@ MX 1 192.0.2.9.", "points to an address", func(c *checks, level string) { c.MX = level }},
		{"mail to an alias", "@ MX 1 alias", "the MX record of example. points to an alias", func(c *checks, level string) { c.MXAlias = level }},
		{"a service at an alias", "_x._tcp SRV 0 0 1 alias", "the SRV record of _x._tcp.example. points to an alias",
			func(c *checks, level string) { c.SRVAlias = level }},
		{"a name server that is an address", "sub NS 192.0.2.9.", "points to an address", func(c *checks, level string) { c.NS = level }},
		{"a name server that is an alias", "sub NS alias", "the NS record of sub.example. points to an alias", func(c *checks,
			level string) {
			c.NS = level
		}},
		{"a wildcard inside", "x.*.y A 192.0.2.2", "has a * that is not at the start", func(c *checks, level string) { c.Wildcard = level }},
		{"mail to a name without an address", "@ MX 1 nobody", "nobody.example., which has no address", nil},
		{"a name server without glue", "sub NS ns.sub", "which is below it and has no address here (glue)", nil},
		{"a name server of another delegation", "sub NS ns.other\nother NS ns\n", "", nil},
		{"a name server far away", "sub NS ns.elsewhere.", "", nil},
		{"glue that is there", "sub NS ns.sub\nns.sub A 192.0.2.3", "", nil},
		{"a name that others answer for", "sub NS ns\nwww.sub A 192.0.2.3",
			"the A record of www.sub.example. is in sub.example., which is delegated", nil},
		{"a record beside a delegation", "sub NS ns\nsub TXT x", "the TXT record of sub.example. is in sub.example.", nil},
		{"what is signed of a delegation", "sub NS ns\nsub DS 1 8 2 " + strings.Repeat("00", 32), "", nil},
	} {
		for _, level := range []string{"IGNORE", "WARN", "FAIL"} {
			checked := checks{Zones: true, Integrity: "LOCAL", MXAlias: "IGNORE", MX: "IGNORE", Names: "IGNORE", NS: "IGNORE", SRVAlias: "IGNORE",
				Wildcard: "IGNORE"}
			want := level
			switch {
			case c.set != nil:
				c.set(&checked, level)
				checked.Integrity = "NONE"
			case c.want == "" || level == "IGNORE": // the integrity only warns
				checked.Integrity, want = map[bool]string{true: "NONE", false: "LOCAL"}[level == "IGNORE"], "IGNORE"
			default:
				want = "WARN"
			}
			var entries []zonedata.Entry
			p := wire.NewZoneParser(strings.NewReader(zone+c.records+"\n"), "example.", "")
			for rr, ok := p.Next(); ok; rr, ok = p.Next() {
				record, err := zonedata.NewRecord(rr)
				if err != nil {
					t.Fatal(err)
				}
				entries = append(entries, zonedata.NewEntry(record))
			}
			if err := p.Err(); err != nil {
				t.Fatal(err)
			}
			var f findings
			if err := checked.checkZone(&f, "example.", entries); err != nil {
				t.Fatal(err)
			}
			found := map[string][]string{"WARN": f.warnings, "FAIL": f.errors}
			for at, texts := range found {
				if at != want && len(texts) > 0 || at == want && (len(texts) != 1 || !strings.Contains(texts[0], c.want)) {
					t.Errorf("%s, %s: %v, expected one of %s with %q", c.what, level, found, want, c.want)
				}
			}
		}
	}
}
