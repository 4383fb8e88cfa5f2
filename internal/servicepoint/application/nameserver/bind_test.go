package nameserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/testkit/freeport"
	"portolan/internal/testkit/peers"
	"portolan/internal/wire/zonedata"
)

// driven is a BIND process that a test controls.
type driven struct {
	*bind
	t    *testing.T
	dir  string
	at   netip.AddrPort
	stop func()
}

// drive creates the application without starting BIND.
func drive(t *testing.T) *driven {
	t.Helper()
	for _, name := range []string{"named", "rndc", "named-checkconf"} {
		peers.Program(t, name)
	}
	d := &driven{t: t, dir: t.TempDir(), at: freeport.Reserve(t), stop: func() {}}
	options := filepath.Join(d.dir, "options")
	if err := os.WriteFile(options, []byte("\tpid-file none;\n\tsession-keyfile none;\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.bind = newBind(Bind{Config: filepath.Join(d.dir, "named.conf"), Zones: filepath.Join(d.dir, "zones"), Control: freeport.Reserve(t),
		Options: options}, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// begin starts BIND with the generated configuration.
func (d *driven) begin() {
	d.t.Helper()
	log, err := os.Create(filepath.Join(d.dir, "log"))
	if err != nil {
		d.t.Fatal(err)
	}
	c := exec.Command("named", "-g", "-n", "1", "-c", d.Config) //nolint:gosec // the installed program
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.stop = func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		_ = log.Close()
	}
	d.t.Cleanup(func() { d.stop() })
}

// becomes waits until the application is healthy, or reports an error that contains a text.
func (d *driven) becomes(trouble string) {
	d.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		all := strings.Join(d.Health(), "; ")
		if trouble == "" && all == "" || trouble != "" && strings.Contains(all, trouble) {
			return
		}
		if time.Now().After(end) {
			text, _ := os.ReadFile(filepath.Join(d.dir, "log"))
			d.t.Fatalf("it is %q, not %q\n%s", all, trouble, text)
		}
	}
}

// answers queries BIND over TCP.
func (d *driven) answers(name string, kind uint16, want string) {
	d.t.Helper()
	m := new(dns.Msg)
	m.SetQuestion(name, kind)
	got := ""
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		r, _, err := (&dns.Client{Net: "tcp"}).Exchange(m, d.at.String())
		if err != nil {
			got = err.Error()
			continue
		}
		if got = dns.RcodeToString[r.Rcode]; len(r.Answer) > 0 {
			got += " " + strings.TrimPrefix(r.Answer[0].String(), r.Answer[0].Header().String())
		}
		if got == want {
			return
		}
	}
	d.t.Errorf("%s is %s, not %s", name, got, want)
}

func (d *driven) take(stream []byte) {
	d.t.Helper()
	if err := d.ApplyContent(bytes.NewReader(stream)); err != nil {
		d.t.Fatal(err)
	}
}

// TestDrivingBIND checks that BIND serves zones, their changes, and no deleted zones. It does so again after it was stopped. A
// configuration of another author is not overwritten.
func TestDrivingBIND(t *testing.T) {
	d := drive(t)
	if err := os.WriteFile(d.Config, []byte("// mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	configuration := json.RawMessage(fmt.Sprintf(`{"listen":[{"address":"127.0.0.1","port":%d}],"identity":"bind-7",`+
		`"rateLimit":{"responsesPerSecond":50}}`, d.at.Port()))
	if err := d.Configure(configuration); err != nil {
		t.Fatal(err)
	}
	d.becomes("was not written by Portolan")
	if text, err := os.ReadFile(d.Config); err != nil || string(text) != "// mine\n" {
		t.Fatalf("the foreign configuration is %s %v", text, err)
	}
	if err := os.Remove(d.Config); err != nil {
		t.Fatal(err)
	}
	key, match := keyed("copy.", dns.HmacSHA256)
	views := []zonedata.View{{ID: 1, Name: "inside", Clients: []zonedata.Match{{Not: true, Prefix: netip.MustParsePrefix("10.0.0.0/8")},
		{Prefix: netip.MustParsePrefix("127.0.0.0/8")}}}, {ID: 2, Name: "outside"}}
	harbour := strings.Replace(harbour, "sub 3600 DS 1 8 2 AB\n", "", 1) // too short for BIND
	before := given{name: "harbour.example.", records: harbour, view: 1, transfer: match, keys: []zonedata.SigningKey{key}}
	outside := given{name: "harbour.example.", records: harbour + "mail 60 TXT \"outside\"\n", view: 2}
	stream, revision := content(t, views, before, outside)
	d.take(stream)
	if d.Content() != "" {
		t.Error("it reports that BIND serves the content, although BIND was not started")
	}
	d.becomes("start it with -c")
	d.begin()
	d.becomes("")
	if got := d.Content(); got != revision {
		t.Errorf("it serves %q", got)
	}
	d.answers("mail.harbour.example.", dns.TypeA, "NOERROR 192.0.2.2")
	d.answers("mail.harbour.example.", dns.TypeTXT, "NOERROR")
	d.answers("nobody.harbour.example.", dns.TypeA, "NXDOMAIN")

	// A change with a new serial.
	after := before
	after.records = strings.Replace(harbour, "hostmaster 7 ", "hostmaster 8 ", 1) + "crane 60 A 192.0.2.77\n"
	stream, revision = content(t, views, after, outside)
	d.take(stream)
	d.answers("crane.harbour.example.", dns.TypeA, "NOERROR 192.0.2.77")
	if got := d.Content(); got != revision {
		t.Errorf("it serves %q, not %q: %v", got, revision, d.Health())
	}

	// BIND is stopped while the content changes.
	d.stop()
	last := after
	last.records = strings.Replace(after.records, "hostmaster 8 ", "hostmaster 9 ", 1) + "winch 60 A 192.0.2.78\n"
	other := given{name: "quay.example.", records: strings.Replace(harbour, "hostmaster 7 ", "hostmaster 1 ", 1), view: 1}
	stream, _ = content(t, views, last, other)
	taken := make(chan error, 1)
	go func() { taken <- d.ApplyContent(bytes.NewReader(stream)) }() // it waits for BIND
	d.begin()
	d.becomes("")
	if err := <-taken; err != nil {
		t.Fatal(err)
	}
	d.answers("winch.harbour.example.", dns.TypeA, "NOERROR 192.0.2.78")
	d.answers("mail.quay.example.", dns.TypeA, "NOERROR 192.0.2.2")
	stream, _ = content(t, views, other)
	d.take(stream)
	d.answers("winch.harbour.example.", dns.TypeA, "REFUSED")
	files, err := filepath.Glob(filepath.Join(d.Zones, "*"+zoneFileEnd))
	if err != nil || len(files) != 1 {
		t.Errorf("the files are %v %v", files, err)
	}
	if err := d.Configure(json.RawMessage(`{"listen":[{"address":"127.0.0.1","tls":true}],"tls":{"certificate":"x","key":"y"}}`)); err == nil {
		t.Error("TLS is not refused")
	}

	// The process is killed between writing and loading. The next start loads the files, and removes nothing before it receives the content.
	other.records = strings.Replace(other.records, "hostmaster 1 ", "hostmaster 2 ", 1) + "late 60 A 192.0.2.79\n"
	stream, revision = content(t, views, other)
	if _, err := d.zones.applyContent(bytes.NewReader(stream)); err != nil {
		t.Fatal(err)
	}
	for _, z := range d.zones.served.Load().bindZones(d.Zones) {
		if changed, err := d.writeZone(z); err != nil || !changed {
			t.Fatal(changed, err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d.bind = newBind(d.Bind, slog.New(slog.DiscardHandler))
	if err := d.Configure(configuration); err != nil {
		t.Fatal(err)
	}
	d.answers("mail.quay.example.", dns.TypeA, "NOERROR 192.0.2.2")
	d.take(stream)
	d.answers("late.quay.example.", dns.TypeA, "NOERROR 192.0.2.79")
	if got := d.Content(); got != revision {
		t.Errorf("behind a kill it serves %q, not %q: %v", got, revision, d.Health())
	}
}

// TestDrivingBINDSigned checks that BIND gets a signed zone with all signatures.
func TestDrivingBINDSigned(t *testing.T) {
	d := drive(t)
	if err := d.Configure(json.RawMessage(fmt.Sprintf(`{"listen":[{"address":"127.0.0.1","port":%d}]}`, d.at.Port()))); err != nil {
		t.Fatal(err)
	}
	g := given{name: "harbour.example.", records: strings.Replace(harbour, "sub 3600 DS 1 8 2 AB\n", "", 1)}
	g = g.signedBy(t, dns.ECDSAP256SHA256, true)
	stream, _ := content(t, []zonedata.View{{ID: 0, Name: "default"}}, g)
	d.take(stream)
	d.begin()
	d.becomes("")
	g.delv(t, d.at.Port(), validated, secure)
}

// TestDrivingBINDResolving checks that BIND resolves names for a role with its forwarders and response policies.
func TestDrivingBINDResolving(t *testing.T) {
	d := drive(t)
	everywhere, corporate := answersAll(t, "192.0.2.1"), answersAll(t, "192.0.2.2")
	if err := d.Configure(json.RawMessage(fmt.Sprintf(`{"listen":[{"address":"127.0.0.1","port":%d}]}`, d.at.Port()))); err != nil {
		t.Fatal(err)
	}
	rules := "@ 60 SOA localhost. hostmaster 1 60 60 60 60\n@ 60 NS localhost.\nbad.test 60 CNAME .\nmoved.test 60 A 192.0.2.9\n"
	policy := given{name: "rpz.", records: rules, view: 1, query: []zonedata.Match{{}}}
	views := []zonedata.View{{ID: 1, Name: "inside", Policies: []zonedata.Policy{{Zone: "0"}, {Zone: "gone"}},
		Recursion: &zonedata.Recursion{Clients: []zonedata.Match{{Prefix: netip.MustParsePrefix("127.0.0.1/32")}}, Only: true,
			Forwarders: []netip.AddrPort{everywhere}, Zones: []zonedata.Forwarded{{Name: "corp.", Only: true, To: []netip.AddrPort{corporate}}}}}}
	stream, revision := content(t, views, policy)
	d.take(stream)
	d.begin()
	d.becomes("")
	d.answers("good.test.", dns.TypeA, "NOERROR 192.0.2.1")
	d.answers("a.corp.", dns.TypeA, "NOERROR 192.0.2.2")
	d.answers("bad.test.", dns.TypeA, "NXDOMAIN")
	d.answers("moved.test.", dns.TypeA, "NOERROR 192.0.2.9")
	d.answers("bad.test.rpz.", dns.TypeCNAME, "REFUSED")
	if d.Content() != revision || d.Engine() != "BIND" {
		t.Errorf("it serves %s by %s", d.Content(), d.Engine())
	}
	views[0].Policies[0] = zonedata.Policy{Zone: "0", Override: "ALLOWLIST"}
	stream, _ = content(t, views, policy)
	d.take(stream)
	d.answers("bad.test.", dns.TypeA, "NOERROR 192.0.2.1")
	views[0].Policies[0] = zonedata.Policy{Zone: "0", Override: "REDIRECT", Target: "192.0.2.3"}
	stream, _ = content(t, views, policy)
	d.take(stream)
	d.becomes("cannot redirect all names")
	if d.Content() == revision { // everything else is served
		t.Error("what it can do is not served")
	}
	views[0].Policies = nil
	views[0].Recursion.Forwarders, views[0].Recursion.Closed, views[0].Recursion.Zones[0].Only = nil, true, false
	stream, _ = content(t, views, policy)
	d.take(stream)
	d.becomes("")
	d.answers("a.corp.", dns.TypeA, "NOERROR 192.0.2.2")
	d.answers("other.test.", dns.TypeA, "SERVFAIL") // nothing is forwarded
	views[0].Recursion.Zones[0].Stub = true
	stream, _ = content(t, views, policy)
	d.take(stream)
	d.becomes("")
}

// answersAll starts a server that answers each name with an address.
func answersAll(t *testing.T, address string) netip.AddrPort {
	t.Helper()
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &dns.Server{PacketConn: packets, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg).SetReply(r)
		m.RecursionAvailable, m.Authoritative = true, true
		if r.Question[0].Qtype == dns.TypeA {
			m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: r.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60},
				A: net.ParseIP(address)}}
		}
		_ = w.WriteMsg(m)
	})}
	go func() { _ = s.ActivateAndServe() }()
	t.Cleanup(func() { _ = s.Shutdown() })
	return packets.LocalAddr().(*net.UDPAddr).AddrPort() //nolint:forcetypeassert // the network is udp
}

// TestZoneLines checks that each record becomes exactly one record in BIND, for generic types and for names that look like directives.
func TestZoneLines(t *testing.T) {
	head := func(name string, kind uint16) dns.RR_Header {
		return dns.RR_Header{Name: name, Rrtype: kind, Class: dns.ClassINET, Ttl: 60}
	}
	null := &dns.NULL{Hdr: head("x.example.", dns.TypeNULL), Data: "\n$INCLUDE \"/etc/passwd\"\n"}
	directive := &dns.A{Hdr: head("$include.example.", dns.TypeA), A: []byte{192, 0, 2, 1}}
	for _, rr := range []dns.RR{null, directive} {
		line, err := zoneLine(rr)
		if err != nil || strings.Count(line, "\n") != 1 || !strings.HasSuffix(line, "\n") || strings.HasPrefix(line, "$") ||
			strings.Contains(line, "INCLUDE") {
			t.Errorf("%s is %q %v", rr, line, err)
		}
	}
}
