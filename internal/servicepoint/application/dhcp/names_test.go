package dhcp

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
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/testkit/freeport"
	"portolan/internal/testkit/peers"
	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/rfc1035label"
)

const (
	keyOfTests    = "dhcp."
	secretOfTests = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=" //nolint:gosec // for tests
)

// namesOptions are the options that enable updates of DNS.
func namesOptions(more ...dhcpdata.Item) []dhcpdata.Item {
	return append([]dhcpdata.Item{noPing, option("ddns-updates", true), option("ddns-domainname", "lab.example"),
		option("dhcp-cache-threshold", 0)}, more...)
}

// withItems adds items to a unit.
func withItems(t testing.TB, u dhcpdata.Units, id string, more ...dhcpdata.Item) dhcpdata.Units {
	t.Helper()
	for _, r := range u[id].Records {
		x, err := dhcpdata.Decode(r)
		if err != nil {
			t.Fatal(err)
		}
		more = append(more, x)
	}
	u[id] = unit(t, id, more...)
	return u
}

// withZones adds the zones lab.example and 0.10.in-addr.arpa to content, and those of IPv6.
func withZones(t testing.TB, u dhcpdata.Units, change ...func(*dhcpdata.Zone)) dhcpdata.Units {
	t.Helper()
	var items []dhcpdata.Item
	for i, name := range []string{"lab.example.", "0.10.in-addr.arpa.", "lab.example.", "8.b.d.0.1.0.0.2.ip6.arpa."} {
		z := dhcpdata.Zone{ID: int64(60 + i), Name: name, V6: i > 1, Primary: netip.MustParseAddr("127.0.0.1"), KeyName: keyOfTests,
			KeyAlgorithm: dns.HmacSHA256, KeySecret: dhcpdata.Hex("01234567890123456789012345678901")}
		for _, one := range change {
			one(&z)
		}
		items = append(items, z)
	}
	return withItems(t, u, dhcpdata.ServerUnit, items...)
}

// dnsServer is BIND with the zones of withZones.
type dnsServer struct {
	t       testing.TB
	program string
	dir     string
	at      netip.AddrPort
	process *exec.Cmd
}

// startDNS starts BIND. The test is skipped if it is not installed.
func startDNS(t testing.TB) *dnsServer {
	t.Helper()
	s := &dnsServer{t: t, program: peers.Program(t, "named"), dir: t.TempDir(), at: freeport.Reserve(t)}
	configuration := fmt.Sprintf(`key %q { algorithm hmac-sha256; secret %q; };
options { directory %q; listen-on port %d { 127.0.0.1; }; listen-on-v6 { none; }; pid-file none; session-keyfile none; recursion no;
	notify no; empty-zones-enable no; }; controls { };
`, keyOfTests, secretOfTests, s.dir, s.at.Port())
	for i, zone := range []string{"lab.example", "0.10.in-addr.arpa", "8.b.d.0.1.0.0.2.ip6.arpa"} {
		file := fmt.Sprintf("zone%d", i)
		text := fmt.Sprintf("$ORIGIN %s.\n$TTL 60\n@ SOA ns.lab.example. h.lab.example. 1 3600 600 86400 60\n@ NS ns.lab.example.\n", zone)
		if i == 0 {
			text += "ns A 192.0.2.53\nstatic A 192.0.2.80\n"
		}
		if err := os.WriteFile(filepath.Join(s.dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		configuration += fmt.Sprintf("zone %q { type primary; file %q; allow-update { key %q; }; };\n", zone, file, keyOfTests)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "named.conf"), []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	s.run()
	return s
}

// run starts the process and waits until it answers.
func (s *dnsServer) run() {
	s.t.Helper()
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	c := exec.Command(s.program, "-g", "-n", "1", "-c", filepath.Join(s.dir, "named.conf")) //nolint:gosec // the installed program
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.process = c
	s.t.Cleanup(func() {
		_ = c.Process.Kill() // stopped already, if the test stops it
		_ = c.Wait()
		_ = log.Close()
		if s.t.Failed() {
			if text, err := os.ReadFile(filepath.Join(s.dir, "log")); err == nil {
				s.t.Logf("%s", text)
			}
		}
	})
	waitFor(s.t, func() bool { return s.lookUp("ns.lab.example.", dns.TypeA) != "" })
}

func (s *dnsServer) kill() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}

// lookUp returns the data of the records of a type, sorted.
func (s *dnsServer) lookUp(name string, kind uint16) string {
	return ask(s.at, name, kind)
}

// ask asks a DNS server for the records of a type, and returns their data, sorted.
func ask(at netip.AddrPort, name string, kind uint16) string {
	m := new(dns.Msg)
	m.SetQuestion(name, kind)
	in, _, err := (&dns.Client{Timeout: time.Second}).Exchange(m, at.String())
	if err != nil {
		return ""
	}
	var all []string
	for _, rr := range in.Answer {
		all = append(all, strings.TrimPrefix(rr.String(), rr.Header().String()))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// sendTo makes a service send its updates to a port, with short delays.
func sendTo(at netip.AddrPort) func(*service) {
	return func(s *service) {
		r := s.engine.names
		r.mu.Lock()
		defer r.mu.Unlock()
		r.sender = &updateSender{port: at.Port()}
		r.times = registrarTimes{minDelay: 50 * time.Millisecond, maxDelay: 200 * time.Millisecond, again: 300 * time.Millisecond}
	}
}

// leaseAs performs a four-way exchange with a host name.
func (c *client) leaseAs(name string, change ...dhcpv4.Modifier) string {
	c.t.Helper()
	change = append(change, dhcpv4.WithOption(dhcpv4.OptHostName(name)))
	offer := c.ask(dhcpv4.MessageTypeDiscover, change...)
	if offer == nil {
		c.t.Fatal("no offer")
	}
	ack := c.ask(dhcpv4.MessageTypeRequest, append(change, dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(offer.YourIPAddr)),
		dhcpv4.WithOption(dhcpv4.OptServerIdentifier(offer.ServerIdentifier())))...)
	if ack == nil || ack.MessageType() != dhcpv4.MessageTypeAck {
		c.t.Fatalf("the reply to a request is %v", ack)
	}
	return ack.YourIPAddr.String()
}

// release sends a RELEASE.
func (c *client) release(a string) {
	c.t.Helper()
	if _, err := c.conn.Write(message(c.t.(*testing.T), c, dhcpv4.MessageTypeRelease, dhcpv4.WithClientIP(net.ParseIP(a)))); err != nil {
		c.t.Fatal(err)
	}
}

// reverseName returns the name of the PTR record of an address.
func reverseName(a string) string {
	name, err := dns.ReverseAddr(a)
	if err != nil {
		return ""
	}
	return name
}

// TestNamesInDNS checks the records of clients at BIND: a lease, a second client with the name, a change of the name, a release, and an
// outage of the DNS server.
func TestNamesInDNS(t *testing.T) {
	t.Parallel()
	d := startDNS(t)
	s, address := start(t, t.TempDir(), withZones(t, units(t, namesOptions()...)), sendTo(d.at))
	first, second := dial(t, address, 1), dial(t, address, 2)
	a := first.leaseAs("Desk")
	waitFor(t, func() bool {
		return d.lookUp("desk.lab.example.", dns.TypeA) == a && d.lookUp("desk.lab.example.", dns.TypeDHCID) != "" &&
			d.lookUp(reverseName(a), dns.TypePTR) == "desk.lab.example."
	})
	guard := d.lookUp("desk.lab.example.", dns.TypeDHCID)
	b := second.leaseAs("desk") // another client with the name
	waitFor(t, func() bool { return s.engine.names.state().Conflicts == 1 })
	if got := d.lookUp("desk.lab.example.", dns.TypeA) + d.lookUp(reverseName(b), dns.TypePTR); got != a {
		t.Errorf("with a second client DNS has %s", got)
	}
	third := dial(t, address, 3) // a name that was entered by hand
	third.leaseAs("static")
	waitFor(t, func() bool { return s.engine.names.state().Conflicts == 2 })
	if got := d.lookUp("static.lab.example.", dns.TypeA); got != "192.0.2.80" {
		t.Errorf("a static name has %s", got)
	}
	first.release(a) // the second client gets the name
	waitFor(t, func() bool {
		return d.lookUp("desk.lab.example.", dns.TypeA) == b && d.lookUp(reverseName(a), dns.TypePTR) == "" &&
			d.lookUp(reverseName(b), dns.TypePTR) == "desk.lab.example."
	})
	if d.lookUp("desk.lab.example.", dns.TypeDHCID) == guard {
		t.Error("the DHCID record is that of the first client")
	}
	d.kill() // changes during an outage
	if m := second.ask(dhcpv4.MessageTypeRequest, dhcpv4.WithClientIP(net.ParseIP(b)),
		dhcpv4.WithOption(dhcpv4.OptHostName("chair"))); m == nil {
		t.Fatal("no reply while the DNS server is away")
	}
	c := first.leaseAs("lamp")
	waitFor(t, func() bool { return len(s.engine.names.state().Delayed) == 2 })
	d.run()
	waitFor(t, func() bool {
		return d.lookUp("chair.lab.example.", dns.TypeA) == b && d.lookUp("lamp.lab.example.", dns.TypeA) == c &&
			d.lookUp("desk.lab.example.", dns.TypeANY) == "" && d.lookUp(reverseName(b), dns.TypePTR) == "chair.lab.example."
	})
	waitFor(t, func() bool { return len(s.engine.names.state().Delayed) == 0 })
	var notices []string // those that were not sent yet
	s.engine.observer.mu.Lock()
	for _, n := range s.engine.observer.names {
		if err := (dhcplease.Observation{Names: []dhcplease.NameNotice{n}}).Check(); err != nil {
			t.Errorf("%+v: %v", n, err)
		}
		notices = append(notices, strings.TrimSpace(n.Kind+" "+n.Zone+" "+n.Name))
	}
	s.engine.observer.mu.Unlock()
	slices.Sort(notices)
	if want := []string{"CONFLICT lab.example. desk.lab.example.", "CONFLICT lab.example. static.lab.example.",
		"DELAYED 0.10.in-addr.arpa.", "DELAYED lab.example.", "RESUMED 0.10.in-addr.arpa.", "RESUMED lab.example."}; !slices.Equal(notices,
		want) {
		t.Errorf("the notices are %q, not %q", notices, want)
	}
	s.engine.mu.Lock() // the leases expire
	for _, one := range []string{b, c} {
		l := *s.engine.table.lease(netip.MustParseAddr(one))
		l.expires = s.engine.clock.now() - 1
		s.engine.table.set(l.address, &l)
	}
	s.engine.mu.Unlock()
	waitFor(t, func() bool {
		return d.lookUp("chair.lab.example.", dns.TypeDHCID)+d.lookUp("lamp.lab.example.", dns.TypeA)+d.lookUp(reverseName(b), dns.TypePTR)+
			d.lookUp(reverseName(c), dns.TypePTR) == ""
	})
}

// TestNameStyles checks the guard records of both styles, the rules for conflicts, and clients of both families, at BIND.
func TestNameStyles(t *testing.T) {
	d := startDNS(t)
	for _, one := range []struct {
		name  string
		more  []dhcpdata.Item
		guard uint16
		// taken is true if a second client takes the name over.
		taken bool
	}{
		{"standard", nil, dns.TypeDHCID, false},
		{"interim", []dhcpdata.Item{option("ddns-update-style", "interim")}, dns.TypeTXT, false},
		{"overwritten", []dhcpdata.Item{option("update-conflict-detection", false)}, dns.TypeDHCID, true},
		{"anyguard", []dhcpdata.Item{option("ddns-guard-id-must-match", false)}, dns.TypeDHCID, true},
	} {
		_, address := start(t, t.TempDir(), withZones(t, units(t, namesOptions(one.more...)...)), sendTo(d.at))
		host := one.name + ".lab.example."
		a := dial(t, address, 1).leaseAs(one.name)
		waitFor(t, func() bool { return d.lookUp(host, dns.TypeA) == a })
		if d.lookUp(host, one.guard) == "" {
			t.Errorf("%s: the guard record is missing", one.name)
		}
		b := dial(t, address, 2).leaseAs(one.name)
		if one.taken {
			waitFor(t, func() bool { return d.lookUp(host, dns.TypeA) == b })
		}
	}
	for style, taken := range map[string]bool{"mixed": false, "otherguard": true} { // the name has the guard record of the other style
		options := namesOptions(option("ddns-dual-stack-mixed-mode", true), option("ddns-other-guard-is-dynamic", taken))
		s, address := start(t, t.TempDir(), withZones(t, units(t, append(options, option("ddns-update-style", "interim"))...)), sendTo(d.at))
		one := dial(t, address, 1)
		a := one.leaseAs(style)
		host := style + ".lab.example."
		waitFor(t, func() bool { return d.lookUp(host, dns.TypeA) == a })
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s, address = start(t, t.TempDir(), withZones(t, units(t, options...)), sendTo(d.at))
		two := dial(t, address, 2)
		two.mac = net.HardwareAddr{2, 0, 0, 0, 1, 2}
		two.leaseAs("other")
		b := two.renewAs(style)
		waitFor(t, func() bool { return s.engine.names.state().Conflicts == 1 || d.lookUp(host, dns.TypeDHCID) != "" })
		if got := d.lookUp(host, dns.TypeDHCID) != ""; got != taken {
			t.Errorf("%s: the name was taken over: %t (%s of %s)", style, got, d.lookUp(host, dns.TypeA), b)
		}
	}
}

// renewAs renews the lease of 10.0.1.0 with a host name.
func (c *client) renewAs(name string) string {
	c.t.Helper()
	const a = "10.0.1.0"
	if m := c.ask(dhcpv4.MessageTypeRequest, dhcpv4.WithClientIP(net.ParseIP(a)), dhcpv4.WithOption(dhcpv4.OptHostName(name))); m == nil ||
		m.MessageType() != dhcpv4.MessageTypeAck {
		c.t.Fatalf("the reply to a renewal is %v", m)
	}
	return a
}

// TestNamesOfBothFamilies checks that a machine has an A and an AAAA record of one name, although its identifiers differ.
func TestNamesOfBothFamilies(t *testing.T) {
	d := startDNS(t)
	u := units6(t, option6For("ddns-updates", true), option6For("ddns-domainname", "lab.example"))
	u[dhcpdata.NetworkUnit(7)] = units(t, namesOptions()...)[dhcpdata.NetworkUnit(7)]
	s, at := start6(t, t.TempDir(), withZones(t, u))
	sendTo(d.at)(s)
	address := s.configuration.Listen[0]
	four, six := dial(t, address, 5), dial6(t, at, 5)
	a := four.leaseAs("both")
	waitFor(t, func() bool { return d.lookUp("both.lab.example.", dns.TypeA) == a })
	name := &dhcpv6.OptFQDN{Flags: 1, DomainName: &rfc1035label.Labels{Labels: []string{"both"}}}
	if m := six.ask(dhcpv6.MessageTypeSolicit, withNA(""), dhcpv6.WithOption(name)); m == nil {
		t.Fatal("no reply to a SOLICIT")
	}
	m := six.ask(dhcpv6.MessageTypeRequest, withNA(""), dhcpv6.WithOption(name))
	if m == nil || m.Options.FQDN() == nil || m.Options.FQDN().Flags != 1 || m.Options.FQDN().DomainName.Labels[0] != "both.lab.example" {
		t.Fatalf("the reply to a REQUEST is %v", m)
	}
	b, _ := leased(m)
	waitFor(t, func() bool {
		return d.lookUp("both.lab.example.", dns.TypeAAAA) == b && d.lookUp(reverseName(b), dns.TypePTR) == "both.lab.example."
	})
	four.release(a)
	waitFor(t, func() bool { return d.lookUp("both.lab.example.", dns.TypeA) == "" })
	if d.lookUp("both.lab.example.", dns.TypeAAAA) != b || d.lookUp("both.lab.example.", dns.TypeDHCID) == "" {
		t.Error("the end of one lease removed the records of the other one")
	}
}

// option6For returns a service option of DHCPv6 at the network 40.
func option6For(name string, value any) dhcpdata.Service {
	o := option(name, value)
	o.V6, o.From.ID = true, 40
	return o
}

// TestNamesAfterKill kills the service while updates wait for the DNS server. The next start sends them, also the removals.
func TestNamesAfterKill(t *testing.T) {
	d := startDNS(t)
	t.Setenv(dnsVariable, fmt.Sprint(d.at.Port()))
	dir, address := t.TempDir(), freeport.Reserve(t).String()
	u := withZones(t, units(t, namesOptions()...))
	c := child(t, dir, u, fmt.Sprintf(`{"listen":[%q]}`, address))
	clients, addresses := map[byte]*client{}, map[byte]string{}
	for n := byte(1); n <= 20; n++ {
		clients[n] = dial(t, address, 100+n) // client 9 has a reservation
		addresses[n] = clients[n].leaseAs(fmt.Sprintf("pc-%d", n))
	}
	waitFor(t, func() bool {
		return d.lookUp("pc-20.lab.example.", dns.TypeA) == addresses[20] && d.lookUp("pc-3.lab.example.", dns.TypeA) == addresses[3]
	})
	d.kill()
	for n := byte(21); n <= 40; n++ {
		clients[n] = dial(t, address, 100+n) // client 9 has a reservation
		addresses[n] = clients[n].leaseAs(fmt.Sprintf("pc-%d", n))
	}
	clients[3].release(addresses[3])
	clients[4].lease() // without a name: acknowledged after the release, which is therefore on the disk
	_ = c.Process.Kill()
	_ = c.Wait()
	d.run()
	child(t, dir, u, fmt.Sprintf(`{"listen":[%q]}`, address))
	for n := byte(1); n <= 40; n++ {
		host, want := fmt.Sprintf("pc-%d.lab.example.", n), addresses[n]
		if n == 3 || n == 4 {
			want = ""
		}
		waitFor(t, func() bool {
			return d.lookUp(host, dns.TypeA) == want && (want == "" || d.lookUp(reverseName(want), dns.TypePTR) == host)
		})
	}
}

// refusing is a DNS server that answers each update with a code.
func refusing(t *testing.T, code int) (at netip.AddrPort, count func() int64) {
	t.Helper()
	conn, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	var received atomic.Int64
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			received.Add(1)
			in, out := new(dns.Msg), new(dns.Msg)
			if err := in.Unpack(buffer[:n]); err != nil {
				continue
			}
			out.SetRcode(in, code)
			signature := in.IsTsig()
			out.SetTsig(signature.Hdr.Name, signature.Algorithm, signatureTime, time.Now().Unix())
			if text, _, err := dns.TsigGenerate(out, secretOfTests, signature.MAC, false); err == nil {
				_, _ = conn.WriteTo(text, from) // the client repeats a lost message
			}
		}
	}()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort(), received.Load
}

// TestNamesRefused checks that a refused name is tried again without stopping the others, and is in the log and the diagnostics.
func TestNamesRefused(t *testing.T) {
	at, count := refusing(t, dns.RcodeRefused)
	var log lockedBuffer
	s, address := start(t, t.TempDir(), withZones(t, units(t, namesOptions()...)), sendTo(at), func(s *service) {
		s.engine.names.log = slog.New(slog.NewTextHandler(&log, nil))
	})
	dial(t, address, 1).leaseAs("one")
	dial(t, address, 2).leaseAs("two")
	waitFor(t, func() bool { return s.engine.names.state().Refused == 2 && count() >= 4 })
	if !strings.Contains(log.String(), "client name not updated in dns") || !strings.Contains(log.String(), "REFUSED") {
		t.Errorf("the log is %s", log.String())
	}
	text, err := json.Marshal(s.Diagnostics())
	if err != nil || !bytes.Contains(text, []byte(`"refused":2`)) {
		t.Errorf("the diagnostics are %s", text)
	}
	o := newObserver(slog.New(slog.DiscardHandler)) // the notices about names are limited, and those about a zone
	for i := range 2 * maxNotices {
		o.notice(dhcplease.NameNotice{Kind: dhcplease.NameRefused, Zone: "z.", Name: strings.Repeat("n", i/2), Reason: "\x00\xff"})
		o.notice(dhcplease.NameNotice{Kind: dhcplease.ZoneDelayed, Zone: "z."})
		if i%20 == 0 {
			o.takeObservations(time.Now().Add(time.Duration(i) * time.Hour))
		}
	}
	if len(o.noticed) != maxNoticed || o.noticed["zone z."] != maxZoneNotices || o.noticed["name nn"] != 1 {
		t.Errorf("%d names were noticed: %v", len(o.noticed), o.noticed)
	}
}

// lockedBuffer is a buffer for concurrent use.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// TestSecondaryForNames checks that updates go to the secondary server while the primary does not answer, and that a wrong key is reported.
func TestSecondaryForNames(t *testing.T) {
	d := startDNS(t)
	s, address := start(t, t.TempDir(), withZones(t, units(t, namesOptions()...), func(z *dhcpdata.Zone) {
		z.Primary, z.Secondary = netip.MustParseAddr("127.0.0.2"), z.Primary
	}), sendTo(d.at))
	one := dial(t, address, 1)
	a := one.leaseAs("one")
	waitFor(t, func() bool { return d.lookUp("one.lab.example.", dns.TypeA) == a })
	deliver(t, func(text []byte) error { return s.ApplyContent(bytes.NewReader(text)) },
		withZones(t, units(t, namesOptions()...), func(z *dhcpdata.Zone) { z.KeyName = "other." }))
	dial(t, address, 2).leaseAs("two")
	waitFor(t, func() bool {
		return strings.Contains(s.engine.names.state().Delayed["lab.example."], "rejects the key other.: BADKEY")
	})
}

// TestNamesWithoutZone checks that names without a zone wait for it, and that names of content without updates are removed at a renewal.
func TestNamesWithoutZone(t *testing.T) {
	d := startDNS(t)
	s, address := start(t, t.TempDir(), units(t, namesOptions()...), sendTo(d.at))
	one := dial(t, address, 1)
	a := one.leaseAs("one")
	waitFor(t, func() bool { return s.engine.names.state().WithoutZone == 1 })
	send := func(u dhcpdata.Units) {
		deliver(t, func(text []byte) error { return s.ApplyContent(bytes.NewReader(text)) }, u)
	}
	send(withZones(t, units(t, namesOptions()...)))
	waitFor(t, func() bool { return d.lookUp("one.lab.example.", dns.TypeA) == a })
	send(withZones(t, units(t, noPing, option("dhcp-cache-threshold", 0))))
	one.renew(a)
	waitFor(t, func() bool { return d.lookUp("one.lab.example.", dns.TypeANY) == "" })
	waitFor(t, func() bool { return !s.engine.names.knows(netip.MustParseAddr(a)) })
}

// TestStoredNames checks that names are stored with a lease, that leases of earlier versions are read, and the journal of names.
func TestStoredNames(t *testing.T) {
	l := sampleLease("10.0.0.9")
	before := l.append(nil)
	l.names = &dhcpdata.Names{Host: "x.example.", Forward: true, TTL: 60, Guard: dhcpdata.GuardStandard, IDs: []dhcpdata.Hex{{1, 2}}}
	again, err := readLease(l.append(nil))
	if err != nil || !again.names.Same(l.names) || again.names.TTL != 60 {
		t.Errorf("%+v, %v", again, err)
	}
	if old, err := readLease(before); err != nil || old.names != nil {
		t.Errorf("a lease of an earlier version: %+v, %v", old, err)
	}
	for _, tail := range [][]byte{{1}, {1, 9, '{'}, {2, 0}, {1, 1, 'x'}} {
		if _, err := readLease(append(slices.Clone(before), tail...)); err == nil {
			t.Errorf("a lease with the end %x is accepted", tail)
		}
	}
	dir := t.TempDir()
	open := func() *registrar {
		r, err := openRegistrar(dir, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := open()
	var entries [][]byte
	for n := range byte(3) {
		for _, kind := range []byte{nameSent, nameAdded, nameGone}[:3-n%2] {
			e, err := nameEntry{netip.AddrFrom4([4]byte{10, 0, 0, n}), nameSide(n % 2), l.names}.encode(kind)
			if err != nil {
				t.Fatal(err)
			}
			entries = append(entries, e)
		}
	}
	if err := r.journal.append(entries); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.close(); err != nil {
			t.Fatal(err)
		}
		r = open()
		one := r.records[netip.AddrFrom4([4]byte{10, 0, 0, 1})]
		if len(r.records) != 1 || one == nil || !one.added[reverse] || !one.sent[reverse].Same(l.names) || one.sent[forward] != nil {
			t.Errorf("the records are %+v", r.records)
		}
		if err := r.writeCheckpoint(); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"P{}", `P{"a":"10.0.0.1"}`, "Px", `X{"a":"10.0.0.1"}`, `A{"a":"10.0.0.1","s":9}`} {
		if err := r.applyEntry([]byte(text)); err == nil {
			t.Errorf("the entry %s is accepted", text)
		}
	}
	if err := r.close(); err != nil {
		t.Fatal(err)
	}
}
