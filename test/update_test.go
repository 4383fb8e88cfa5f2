package test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/testkit/freeport"
	"portolan/internal/testkit/peers"
)

// updating sends a dynamic update of the zone harbour.example and returns the response code. If secret is not empty, the update is signed
// with the key dhcp.
func updating(t *testing.T, at, network, secret string, fill func(m *dns.Msg)) string {
	t.Helper()
	m := new(dns.Msg)
	m.SetUpdate("harbour.example.")
	fill(m)
	c := &dns.Client{Net: network, Timeout: 15 * time.Second}
	if secret != "" {
		m.SetTsig("dhcp.", dns.HmacSHA256, 300, time.Now().Unix())
		c.TsigSecret = map[string]string{"dhcp.": secret}
	}
	r, _, err := c.Exchange(m, at)
	if err != nil && r == nil { // a response that reports a wrong signature is not signed
		t.Fatalf("%s: %v", m, err)
	}
	return dns.RcodeToString[r.Rcode]
}

// updatingZone is updating for another zone, over TCP and without a key.
func updatingZone(t *testing.T, at, zone string, fill func(m *dns.Msg)) string {
	t.Helper()
	return updating(t, at, "tcp", "", func(m *dns.Msg) {
		m.SetUpdate(zone)
		fill(m)
	})
}

// rrs parses records.
func rrs(t *testing.T, lines ...string) (all []dns.RR) {
	t.Helper()
	for _, line := range lines {
		rr, err := dns.NewRR(line)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rr)
	}
	return all
}

// count returns the number of resources in a list.
func (m *manager) count(path, filter string) int {
	m.t.Helper()
	var list struct{ Count int }
	_, text, err := m.call("GET", path+"?"+url.Values{"filter": {filter}}.Encode(), "")
	if err != nil || json.Unmarshal([]byte(text), &list) != nil {
		m.t.Fatal(text, err)
	}
	return list.Count
}

// enableUpdates enables dynamic updates of a zone.
func (m *manager) enableUpdates(zone string) {
	m.t.Helper()
	if status, text, err := m.call("PATCH", "/zones/"+zone, `{"dynamicUpdateEnabled":true}`); status != 200 || err != nil {
		m.t.Fatal(status, text, err)
	}
}

// TestDynamicUpdates checks that a client with the key can change a zone by dynamic updates. The changes are in the manager with their
// author and are answered at once. Updates without the key are rejected.
func TestDynamicUpdates(t *testing.T) {
	t.Parallel()
	onBoth(t, dynamicUpdates)
}

func dynamicUpdates(t *testing.T, database string) {
	t.Helper()
	a, zone, _, network := liveServer(t, database)
	m := a.m
	secret := base64.StdEncoding.EncodeToString([]byte("nobody is to know this secret..."))
	add := func(lines ...string) func(*dns.Msg) { return func(m *dns.Msg) { m.Insert(rrs(t, lines...)) } }
	winch := add("winch.harbour.example. 300 A 10.0.0.40")
	m.enableUpdates(zone)
	if got := updating(t, a.address, "udp", "", winch); got != "REFUSED" {
		t.Errorf("an update without permission is answered with %s", got)
	}
	var configurations struct{ Data []struct{ ID int64 } }
	if _, text, err := m.call("GET", "/configurations", ""); err != nil || json.Unmarshal([]byte(text), &configurations) != nil {
		t.Fatal(text, err)
	}
	m.id(fmt.Sprintf("/configurations/%d/signingKeys", configurations.Data[0].ID),
		`{"type":"TSIGKey","name":"dhcp","algorithm":"SHA256","length":256,"privateKey":"`+secret+`"}`)
	m.id("/zones/"+zone+"/deploymentOptions", `{"type":"DNSOption","name":"allow-update","value":["key dhcp"]}`)
	if got := ""; !until(func() bool { got = updating(t, a.address, "udp", secret, winch); return got == "NOERROR" }) {
		t.Fatalf("with the key an update is %s\n%s\n%s", got, a.process.text(), m.process.text())
	}
	// The name is answered at once, and the address gets a PTR record.
	if got := a.asks("winch.harbour.example.", dns.TypeA); got != "NOERROR 10.0.0.40" {
		t.Errorf("behind the update the name is %s", got)
	}
	a.answersWith("40.0.0.10.in-addr.arpa.", dns.TypePTR, "NOERROR winch.harbour.example.")
	if got := m.count("/resourceRecords", "absoluteName:'winch.harbour.example' and dynamic:true"); got != 1 {
		t.Errorf("there are %d hosts", got)
	}
	if got := m.count("/networks/"+network+"/addresses", "address:'10.0.0.40' and state:'STATIC'"); got != 1 {
		t.Errorf("there are %d addresses", got)
	}
	if _, text, err := m.call("GET", "/transactions?limit=1&orderBy=desc(id)&filter=principal:'key%20dhcp'", ""); err != nil ||
		!strings.Contains(text, "dynamic update from 127.0.0.1") {
		t.Errorf("the history says %s %v", text, err)
	}
	for _, c := range []struct {
		what, want string
		fill       func(*dns.Msg)
	}{
		{"a name that is to be free", "YXDOMAIN", func(m *dns.Msg) { m.NameNotUsed(rrs(t, "winch.harbour.example. A 10.0.0.40")) }},
		{"a name that is to be there", "NXDOMAIN", func(m *dns.Msg) { m.NameUsed(rrs(t, "nobody.harbour.example. A 10.0.0.40")) }},
		{"another zone", "NOTZONE", add("winch.elsewhere.example. 300 A 10.0.0.40")},
		{"a chain", "NOERROR", add("hoist.harbour.example. 60 CNAME winch.harbour.example.", "_x.harbour.example. 60 SRV 0 0 5 far.example.")},
		{"an address without an owner", "NOERROR", add("far.harbour.example. 60 A 192.0.2.9")},
		{"what others lead to", "NOERROR", func(m *dns.Msg) { m.RemoveName(rrs(t, "winch.harbour.example. A 10.0.0.40")) }},
		{"another address", "NOERROR", func(m *dns.Msg) {
			m.RemoveRRset(rrs(t, "winch.harbour.example. A 10.0.0.40"))
			m.Insert(rrs(t, "winch.harbour.example. 300 A 10.0.0.41"))
		}},
		{"a key of the zone", "REFUSED", add("harbour.example. 60 DNSKEY 256 3 13 AAAA")},
		{"a name of a zone below", "REFUSED", add("x.quay.harbour.example. 60 A 192.0.2.9")},
		{"more than a name may have", "REFUSED", func(m *dns.Msg) {
			for i := range 201 {
				m.Insert(rrs(t, fmt.Sprintf("many.harbour.example. 60 TXT \"%d\"", i)))
			}
		}},
		{"mail that is not taken", "NOERROR", add("dumb.harbour.example. 60 MX 0 .", "deaf.harbour.example. 60 MX 0 .")},
		{"mail that is taken again", "NOERROR", func(m *dns.Msg) { m.Remove(rrs(t, "deaf.harbour.example. 60 MX 0 .")) }},
		{"cannot point to the root", "REFUSED", add("odd.harbour.example. 60 CNAME .")},
		{"a host that is deleted with its alias", "NOERROR", func(m *dns.Msg) {
			m.RemoveName(rrs(t, "winch.harbour.example. A 10.0.0.40"))
			m.RemoveRRset(rrs(t, "hoist.harbour.example. CNAME winch.harbour.example."))
		}},
		{"an alias that comes before its host", "NOERROR", add("lift.harbour.example. 60 CNAME jib.harbour.example.",
			"jib.harbour.example. 60 A 10.0.0.42")},
	} {
		if got := updating(t, a.address, "tcp", secret, c.fill); got != c.want {
			t.Errorf("%s is %s, not %s\n%s", c.what, got, c.want, m.process.text())
		}
	}
	if got := a.asks("lift.harbour.example.", dns.TypeA); got != "NOERROR 10.0.0.42 jib.harbour.example." {
		t.Errorf("the alias is %s", got)
	}
	// A null MX (RFC 7505) is stored as a GenericRecord, which is answered and deleted like other records.
	if got := m.count("/resourceRecords",
		"type:'GenericRecord' and absoluteName:in('dumb.harbour.example','deaf.harbour.example')"); got != 1 {
		t.Errorf("%d names take no mail", got)
	}
	a.answersWith("deaf.harbour.example.", dns.TypeMX, "NXDOMAIN")
	if got := a.asks("dumb.harbour.example.", dns.TypeMX); !strings.HasPrefix(got, "NOERROR") || got == "NOERROR" {
		t.Errorf("the name that takes no mail is %s", got)
	}
	if got := a.asks("winch.harbour.example.", dns.TypeA); got != "NXDOMAIN" {
		t.Errorf("behind its end the name is %s", got)
	}
	if got := m.count("/networks/"+network+"/addresses", "address:in('10.0.0.40','10.0.0.41') and state:'STATIC'"); got != 0 {
		t.Errorf("%d addresses were not released", got)
	}
	if got := updating(t, a.address, "udp", base64.StdEncoding.EncodeToString([]byte("another")), winch); got != "NOTAUTH" {
		t.Errorf("with another secret an update is %s", got)
	}
	if program, err := exec.LookPath("nsupdate"); err == nil {
		host, port, _ := strings.Cut(a.address, ":")
		script := fmt.Sprintf("server %s %s\nzone harbour.example\nupdate add capstan.harbour.example 300 A 10.0.0.50\nsend\n", host, port)
		c := exec.Command(program, "-y", "hmac-sha256:dhcp:"+secret)
		c.Stdin = strings.NewReader(script)
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("nsupdate: %v %s", err, out)
		}
		if got := a.asks("capstan.harbour.example.", dns.TypeA); got != "NOERROR 10.0.0.50" {
			t.Errorf("what nsupdate made is %s", got)
		}
	}
	// A view that is not live any more rejects updates at once, because they would not be published.
	live := func(yes bool) {
		if status, text, err := m.call("PATCH", "/views/"+m.first("views", "name:'default'"), fmt.Sprintf(`{"liveDeployment":%v}`, yes)); status != 200 {
			t.Fatal(status, text, err)
		}
	}
	live(false)
	if got := updating(t, a.address, "udp", secret, winch); got != "REFUSED" {
		t.Errorf("in a view that is not live an update is %s", got)
	}
	live(true)
	// PTR records of hosts are visible to updates. If a DHCP server removes or recreates one, it stays with the host.
	view := m.first("views", "name:'default'")
	reverse := m.id("/views/"+view+"/zones", `{"type":"Zone","absoluteName":"0.0.10.in-addr.arpa","deploymentEnabled":true}`)
	m.enableUpdates(reverse)
	m.id("/zones/"+reverse+"/deploymentOptions", `{"type":"DNSOption","name":"allow-update","value":["key dhcp"]}`)
	const back, ptr = "42.0.0.10.in-addr.arpa.", "42.0.0.10.in-addr.arpa. 0 PTR jib.harbour.example."
	backwards := func(fill func(m *dns.Msg)) string {
		return updating(t, a.address, "tcp", secret, func(m *dns.Msg) {
			m.SetUpdate("0.0.10.in-addr.arpa.")
			fill(m)
		})
	}
	if got := ""; !until(func() bool {
		got = backwards(func(m *dns.Msg) { m.Used(rrs(t, ptr)) })
		return got == "NOERROR"
	}) {
		t.Errorf("that a host is led back to, as a prerequisite, is %s", got)
	}
	if got := backwards(func(m *dns.Msg) {
		m.RemoveRRset(rrs(t, ptr))
		m.Insert(rrs(t, "42.0.0.10.in-addr.arpa. 1200 PTR jib.harbour.example."))
	}); got != "NOERROR" || a.asks(back, dns.TypePTR) != "NOERROR jib.harbour.example." {
		t.Errorf("made anew it is %s %s", got, a.asks(back, dns.TypePTR))
	}
	if got := m.count("/zones/"+reverse+"/resourceRecords", ""); got != 0 {
		t.Errorf("%d records differ from those of the hosts", got)
	}
	a.nothingElse()

	// Without a manager, updates fail.
	if err := m.process.signal(syscall.SIGTERM); err != nil {
		t.Log(err)
	}
	if got := updating(t, a.address, "tcp", secret, add("late.harbour.example. 60 A 192.0.2.9")); got != "SERVFAIL" {
		t.Errorf("without a manager an update is %s", got)
	}
	m.start()
	m.check()
}

// updateTypes are the types of records in random updates.
var updateTypes = []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeTXT, dns.TypeMX, dns.TypeCNAME, dns.TypeSRV, dns.TypeNS, dns.TypeSOA}

// values are the current records of a name and type on a server. If some is set, the first one is omitted.
type values struct {
	name string
	kind uint16
	some bool
}

// queryValues queries a server for the records and returns them as a prerequisite.
func (v *values) queryValues(t *testing.T, server string) []dns.RR {
	t.Helper()
	m := new(dns.Msg)
	m.SetQuestion(v.name, v.kind)
	r, _, err := (&dns.Client{Net: "tcp", Timeout: 15 * time.Second}).Exchange(m, server)
	if err != nil {
		t.Fatal(err)
	}
	all := slices.DeleteFunc(r.Answer, func(rr dns.RR) bool { return rr.Header().Rrtype != v.kind })
	if v.some && len(all) > 0 {
		all = all[1:]
	}
	to := new(dns.Msg)
	to.SetUpdate("harbour.example.")
	to.Used(all)
	for _, rr := range to.Answer {
		rr.Header().Ttl = 0
	}
	return to.Answer
}

// randomUpdate fills a message with prerequisites and changes of a few names. It returns the values of its prerequisites, or nil.
func randomUpdate(t *testing.T, random *rand.Rand, m *dns.Msg) (used *values) {
	t.Helper()
	name := func() string { return []string{"a", "b", "c", "x.d"}[random.IntN(4)] + ".harbour.example." }
	record := func() []dns.RR {
		switch n := name(); random.IntN(7) {
		case 0:
			return rrs(t, fmt.Sprintf("%s 60 CNAME %s", n, name()))
		case 1:
			return rrs(t, fmt.Sprintf("%s %d TXT \"t%d\"", n, 60+random.IntN(2), random.IntN(3)))
		case 2:
			return rrs(t, fmt.Sprintf("%s 60 MX %d far.example.", n, random.IntN(3)))
		case 3:
			return rrs(t, fmt.Sprintf("%s 60 SRV 0 %d 80 Far.example.", n, random.IntN(2)))
		default:
			return rrs(t, fmt.Sprintf("%s 60 A 10.0.0.%d", n, 20+random.IntN(5)))
		}
	}
	switch random.IntN(6) {
	case 0:
		[]func([]dns.RR){m.NameUsed, m.NameNotUsed, m.RRsetUsed, m.RRsetNotUsed, m.Used}[random.IntN(5)](record())
	case 1:
		used = &values{[]string{name(), "harbour.example."}[random.IntN(2)], updateTypes[random.IntN(len(updateTypes))], random.IntN(4) == 0}
	case 2:
		m.Answer = oddRecord(t, random, name())
	}
	for _, rr := range m.Answer {
		if random.IntN(40) > 0 {
			rr.Header().Ttl = 0
		}
	}
	for range 1 + random.IntN(3) {
		[]func([]dns.RR){m.Insert, m.Insert, m.Insert, m.Remove, m.RemoveRRset, m.RemoveName}[random.IntN(6)](record())
	}
	if random.IntN(8) == 0 { // BIND checks changes before prerequisites, unlike RFC 2136 section 3
		m.Ns, m.Answer, used = append(m.Ns, oddRecord(t, random, name())...), nil, nil
	}
	return used
}

// oddRecord returns a prerequisite or a change that RFC 2136 rejects in most places.
func oddRecord(t *testing.T, random *rand.Rand, name string) []dns.RR {
	t.Helper()
	rr := rrs(t, name+" 0 A 10.0.0.20")[0]
	classes := []uint16{dns.ClassINET, dns.ClassANY, dns.ClassNONE, dns.ClassCHAOS}
	h := rr.Header()
	switch random.IntN(5) {
	case 0: // of another zone, with a single fault, because servers check in different orders
		h.Name, classes = "a.elsewhere.example.", classes[:1]
	case 1: // without data
		rr = &dns.ANY{Hdr: *h}
		h = rr.Header()
		h.Rrtype = []uint16{dns.TypeA, dns.TypeANY, dns.TypeAXFR, dns.TypeMAILB}[random.IntN(4)]
	case 2:
		h.Name = "harbour.example."
	case 3:
		h.Ttl = 60
	}
	h.Class = classes[random.IntN(len(classes))]
	return []dns.RR{rr}
}

// TestUpdatesMatchBIND checks that the name server and BIND respond equally to the same updates and have the same names afterwards. Two
// differences are intended: an alias loop is rejected, and so is the deletion of a name that other records refer to.
func TestUpdatesMatchBIND(t *testing.T) {
	t.Parallel()
	program := peers.Program(t, "named")
	a, zone, _, _ := liveServer(t, "")
	a.m.enableUpdates(zone)
	a.m.id("/zones/"+zone+"/deploymentOptions", `{"type":"DNSOption","name":"allow-update","value":["127.0.0.1"]}`)
	dir := t.TempDir()
	at := freeport.Reserve(t).String()
	_, port, _ := strings.Cut(at, ":")
	zoneFile := "$ORIGIN harbour.example.\n@ 3600 SOA ns h 1 1 1 1 60\n@ 3600 NS ns\nns 3600 A 192.0.2.1\n"
	conf := fmt.Sprintf(`options { directory %q; listen-on port %s { 127.0.0.1; }; listen-on-v6 { none; }; pid-file none; session-keyfile none;
		recursion no; notify no; empty-zones-enable no; minimal-responses yes; }; controls { };
		zone "harbour.example" { type primary; file "zone"; allow-update { any; }; check-names ignore; };`, dir, port)
	for name, text := range map[string]string{"zone": zoneFile, "conf": conf} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command(program, "-g", "-n", "1", "-c", filepath.Join(dir, "conf"))
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	}()
	if !until(func() bool { return strings.HasPrefix(asked(at, "harbour.example.", dns.TypeNS), "NOERROR") }) {
		t.Fatal("named does not answer")
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
	probe := func(m *dns.Msg) { m.Insert(rrs(t, "z.harbour.example. 60 TXT \"begin\"")) }
	if !until(func() bool { return updating(t, a.address, "tcp", "", probe) == "NOERROR" }) {
		t.Fatal("updates are refused")
	}
	names := func(server string) (all []string) {
		for _, n := range []string{"a", "b", "c", "x.d"} {
			for _, kind := range updateTypes[:6] {
				all = append(all, strings.ToLower(n+" "+dns.TypeToString[kind]+" "+asked(server, n+".harbour.example.", kind)))
			}
		}
		return all
	}
	refusals, messages := 0, 150
	if os.Getenv("PORTOLAN_TEST_LONG") != "" {
		messages = 1500
	}
	for i := range messages {
		m := new(dns.Msg)
		m.SetUpdate("harbour.example.")
		used := randomUpdate(t, random, m)
		send := func(server string) string {
			return updating(t, server, "tcp", "", func(to *dns.Msg) {
				if to.Answer, to.Ns = m.Answer, m.Ns; used != nil {
					to.Answer = used.queryValues(t, server)
				}
			})
		}
		ours := send(a.address)
		if ours == "REFUSED" {
			refusals++
			continue
		}
		if theirs := send(at); ours != theirs {
			t.Fatalf("message %d is %s, and %s by BIND: %s, used %v\n%s", i, ours, theirs, m, used, a.m.process.text())
		}
		if got, want := names(a.address), names(at); !slices.Equal(got, want) {
			t.Fatalf("behind message %d the names are\n%s\nand by BIND\n%s\n%s", i, strings.Join(got, "\n"), strings.Join(want, "\n"), m)
		}
	}
	t.Logf("%d of %d were refused, for reasons that BIND does not have", refusals, messages)
	if refusals > messages/4 {
		t.Errorf("%d were refused", refusals)
	}
	for line := range strings.Lines(a.m.process.text()) {
		if strings.Contains(line, "dynamic update refused") && strings.Contains(line, " code=5 ") && // REFUSED
			!strings.Contains(line, "its target is an alias that points back to it") && !strings.Contains(line, "leads to it") {
			t.Errorf("another reason: %s", line)
		}
	}
	a.nothingElse()
}
