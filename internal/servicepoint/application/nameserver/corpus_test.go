package nameserver

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/testkit/peers"
	"portolan/internal/wire/zonedata"
)

// allTypes is a zone with a record of each type that both the DNS library and BIND can parse. IPSECKEY is the last one, because the
// library parses the following text as part of it.
const allTypes = `@ 3600 SOA ns h 1 1 1 1 60
@ 3600 NS ns
ns 3600 A 192.0.2.1
a 60 AAAA 2001:db8::1
afsdb 60 AFSDB 1 afs.example.
apl 60 APL 1:192.0.2.0/24 !2:2001:db8::/32
caa 60 CAA 0 issue "ca.example.net; policy=ev"
cert 60 CERT PGP 0 0 AQIDBA==
cname 60 CNAME a
csync 60 CSYNC 66 3 A NS AAAA
dhcid 60 DHCID AAIBY2/AuCccgoJbsaxcQc9TUapptP69lOjxfNuVAA2kjEA=
dname 60 DNAME other.example.
ds 60 NS ns.ds
ds 60 DS 60485 5 1 2BB183AF5F22588179A53B0A98631FAD1A292118
ns.ds 60 A 192.0.2.2
eui48 60 EUI48 00-00-5e-00-53-2a
eui64 60 EUI64 00-00-5e-ef-10-00-00-2a
hinfo 60 HINFO "VAX 11" Unix
https 60 HTTPS 1 . alpn=h2,h3 ipv4hint=192.0.2.1
kx 60 KX 10 kx.example.
loc 60 LOC 52 22 23.000 N 4 53 32.000 E -2.00m 0.00m 10000m 10m
mb 60 MB mb.example.
mg 60 MG mg.example.
minfo 60 MINFO a.example. b.example.
mr 60 MR mr.example.
mx 60 MX 10 MiXed.Case
naptr 60 NAPTR 100 10 "u" "E2U+sip" "!^.*$!sip:info@example.com!" .
odd\.label.\097b 60 TXT "in an odd place"
openpgpkey 60 OPENPGPKEY AQIDBA==
ptr 60 PTR host.example.
px 60 PX 10 a.example. b.example.
rp 60 RP admin.example. text.example.
rt 60 RT 2 relay.example.
smimea 60 SMIMEA 3 1 1 0D6FCB3A4E1B2F2E3C4D5E6F708192A3B4C5D6E7F8091A2B3C4D5E6F70819293
spf 60 SPF "v=spf1 -all"
_s._tcp 60 SRV 0 5 443 a
sshfp 60 SSHFP 2 1 123456789abcdef67890123456789abcdef67890
svcb 60 SVCB 1 svc.example. alpn=h3
tlsa 60 TLSA 3 1 1 0D6FCB3A4E1B2F2E3C4D5E6F708192A3B4C5D6E7F8091A2B3C4D5E6F70819293
txt 60 TXT "one" "two; \"three\"" "\200"
unknown 60 TYPE65400 \# 3 010203
uri 60 URI 10 1 "ftp://ftp.example/public"
x25 60 X25 311061700956
ipseckey 60 IPSECKEY 10 1 2 192.0.2.38 AQIDBA==
`

// compiled returns the sorted records of a zone file as BIND's program writes them.
func compiled(t *testing.T, program, text string) []string {
	t.Helper()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	if err := os.WriteFile(in, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := exec.Command(program, "-i", "none", "-k", "ignore", "-n", "ignore", "-f", "text", "-F", "text", "-o", out,
		"zone.example", in).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, said, text)
	}
	read, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.Collect(strings.Lines(strings.ToLower(string(read))))
	slices.Sort(lines)
	return slices.Compact(lines)
}

// TestTransfersLoadInBIND checks that BIND reads the same records from a zone transfer as from the zone file.
func TestTransfersLoadInBIND(t *testing.T) {
	program := peers.Program(t, "named-compilezone")
	random := rand.New(rand.NewPCG(21, 22)) //nolint:gosec // a test
	zones := []string{allTypes}
	for range 40 {
		g, _ := randomZone(random)
		zones = append(zones, g.records)
	}
	for _, records := range zones {
		a := start(t, nil, given{name: "zone.example.", records: records,
			transfer: []zonedata.Match{{Prefix: netip.MustParsePrefix("127.0.0.0/8")}}})
		m := new(dns.Msg)
		m.SetAxfr("zone.example.")
		envelopes, err := new(dns.Transfer).In(m, listening(t, a).String())
		if err != nil {
			t.Fatal(err)
		}
		var all []dns.RR
		for e := range envelopes {
			if e.Error != nil {
				t.Fatal(e.Error)
			}
			all = append(all, e.RR...)
		}
		var text strings.Builder
		for _, rr := range all[:len(all)-1] { // the SOA occurs twice
			fmt.Fprintln(&text, rr)
		}
		want, got := compiled(t, program, "$ORIGIN zone.example.\n"+records), compiled(t, program, text.String())
		if !slices.Equal(want, got) {
			t.Errorf("BIND reads\n%s\nof a transfer, and of the text\n%s", strings.Join(got, ""), strings.Join(want, ""))
		}
	}
}

// TestSlowClients checks that clients that request a zone transfer and do not read it do not block others.
func TestSlowClients(t *testing.T) {
	var b strings.Builder
	b.WriteString(harbour)
	for i := range 20_000 {
		fmt.Fprintf(&b, "h%d 300 TXT \"%0200d\"\n", i, i)
	}
	a := start(t, nil, given{name: "harbour.example.", records: b.String(),
		transfer: []zonedata.Match{{Prefix: netip.MustParsePrefix("127.0.0.0/8")}}})
	at := listening(t, a).String()
	for range 50 {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		m := new(dns.Msg)
		m.SetAxfr("harbour.example.")
		if err := (&dns.Conn{Conn: c}).WriteMsg(m); err != nil {
			t.Fatal(err)
		}
	}
	for _, network := range []string{"udp", "tcp"} {
		for range 20 {
			m := new(dns.Msg)
			m.SetQuestion("mail.harbour.example.", dns.TypeA)
			if r, _, err := (&dns.Client{Net: network, Timeout: 5 * time.Second}).Exchange(m, at); err != nil || len(r.Answer) == 0 {
				t.Fatalf("beside slow clients: %v %v", r, err)
			}
		}
	}
}
