package nameserver

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/testkit/freeport"
	"portolan/internal/testkit/peers"
	"portolan/internal/wire/zonedata"
)

// keyed returns a TSIG key and an access list that permits it.
func keyed(name, algorithm string) (zonedata.SigningKey, []zonedata.Match) {
	secret := []byte("a secret of the test for " + name)
	return zonedata.SigningKey{Name: name, Algorithm: algorithm, Secret: secret}, []zonedata.Match{{Key: name}}
}

// listening makes an application listen and returns the address.
func listening(t *testing.T, a *nameServer) netip.AddrPort {
	t.Helper()
	at := freeport.Reserve(t)
	if err := a.Configure(json.RawMessage(fmt.Sprintf(`{"listen":[{"address":"127.0.0.1","port":%d}]}`, at.Port()))); err != nil {
		t.Fatal(err)
	}
	return at
}

// TestSigned checks that signed queries get signed answers if the key is permitted, and that an invalid signature is explained.
func TestSigned(t *testing.T) {
	for _, algorithm := range []string{dns.HmacSHA1, dns.HmacSHA256, dns.HmacSHA512} { // the client does not support MD5
		key, match := keyed("client-key.", algorithm)
		other, _ := keyed("other.", dns.HmacSHA256)
		zone := given{name: "harbour.example.", records: harbour, query: match, transfer: match, keys: []zonedata.SigningKey{key, other}}
		at := listening(t, start(t, nil, zone)).String()
		secret := base64.StdEncoding.EncodeToString(key.Secret)
		ask := func(network, name, secret string, at2 int64) (*dns.Msg, error) {
			m := new(dns.Msg)
			m.SetQuestion("mail.harbour.example.", dns.TypeA)
			m.SetEdns0(1232, false)
			if name != "" {
				m.SetTsig(name, algorithm, 300, at2)
			}
			r, _, err := (&dns.Client{Net: network, TsigSecret: map[string]string{name: secret}}).Exchange(m, at)
			return r, err
		}
		now := time.Now().Unix()
		for _, network := range []string{"udp", "tcp"} {
			if r, err := ask(network, "client-key.", secret, now); err != nil || len(r.Answer) != 1 || r.IsTsig() == nil {
				t.Errorf("%s %s: %v %v", algorithm, network, r, err)
			}
		}
		if r, err := ask("udp", "", "", now); err != nil || r.Rcode != dns.RcodeRefused {
			t.Errorf("without a key: %v %v", r, err)
		}
		for name, want := range map[string]uint16{"client-key.": dns.RcodeBadSig, "unknown.": dns.RcodeBadKey} {
			wrong := base64.StdEncoding.EncodeToString([]byte("another secret"))
			r, err := ask("udp", name, wrong, now)
			if err == nil || r == nil || r.Rcode != dns.RcodeNotAuth || r.IsTsig() == nil || r.IsTsig().Error != want || r.IsTsig().MACSize != 0 {
				t.Errorf("%s with a wrong secret: %v %v", name, r, err)
			}
		}
		for _, late := range []int64{-301, 360} { // time passes during the test, so 300 could be within the window
			r, err := ask("udp", "client-key.", secret, now+late)
			if r == nil || r.Rcode != dns.RcodeNotAuth || r.IsTsig() == nil || r.IsTsig().Error != dns.RcodeBadTime || r.IsTsig().OtherLen != 6 {
				t.Errorf("%d seconds off: %v %v", late, r, err)
			}
		}
		if records, err := transferred(at, key, 0); err != nil || len(records) != len(zone.entries(t))+1 {
			t.Errorf("%d records are transferred: %v", len(records), err)
		}
		if records, err := transferred(at, other, 0); err == nil {
			t.Errorf("%d records are transferred with a key that may not", len(records))
		}
	}
}

// transferred copies a zone, incrementally from a serial if there is one.
func transferred(at string, key zonedata.SigningKey, since uint32) (records []dns.RR, err error) {
	m := new(dns.Msg)
	if m.SetAxfr("harbour.example."); since > 0 {
		m.SetIxfr("harbour.example.", since, "ns.harbour.example.", "h.harbour.example.")
	}
	transfer := new(dns.Transfer)
	if key.Name != "" {
		m.SetTsig(key.Name, key.Algorithm, 300, time.Now().Unix())
		transfer.TsigSecret = map[string]string{key.Name: base64.StdEncoding.EncodeToString(key.Secret)}
	}
	envelopes, err := transfer.In(m, at)
	if err != nil {
		return nil, err
	}
	for e := range envelopes {
		if e.Error != nil {
			err = e.Error
		}
		records = append(records, e.RR...)
	}
	return records, err
}

// numbered returns a zone with many records at a serial: the hosts from the serial on.
func numbered(serial, hosts int) given {
	var text strings.Builder
	fmt.Fprintf(&text, "@ 60 SOA ns h %d 60 1 100 60\n@ 60 NS ns\nns 60 A 192.0.2.1\n", serial)
	for i := range hosts {
		fmt.Fprintf(&text, "host-%d 60 A 10.0.%d.%d\nhost-%d 60 TXT \"%s\"\n", serial+i, i/250, i%250, serial+i, strings.Repeat("x", 200))
	}
	return given{name: "harbour.example.", records: text.String()}
}

// move replaces the content of the only zone.
func move(t *testing.T, a *nameServer, before, after given) {
	t.Helper()
	_, to := content(t, []zonedata.View{{ID: 0, Name: "default"}}, after)
	if err := a.ApplyContent(bytes.NewReader(delta(t, a, before, after, to))); err != nil {
		t.Fatal(err)
	}
}

// TestChangesAreTransferred checks incremental transfers, and complete ones if the serial is unknown, in many signed messages.
func TestChangesAreTransferred(t *testing.T) {
	key, match := keyed("copy.", dns.HmacSHA256)
	at := func(serial int) given {
		g := numbered(serial, 200)
		g.transfer, g.keys = match, []zonedata.SigningKey{key}
		return g
	}
	a := start(t, nil, at(11))
	place := listening(t, a).String()
	for serial := 12; serial < 15; serial++ {
		move(t, a, at(serial-1), at(serial))
	}
	all := len(at(14).entries(t)) + 1
	for since, want := range map[uint32]int{14: 1, 11: all, 7: all, 0: all} {
		records, err := transferred(place, key, since)
		if err != nil || len(records) != want {
			t.Errorf("since %d: %d records, not %d: %v", since, len(records), want, err)
		}
	}
	// Two steps: each contains two SOAs, and the data of all hosts, which moved by one.
	records, err := transferred(place, key, 12)
	if err != nil {
		t.Fatal(err)
	}
	held := map[string]bool{}
	for _, e := range at(12).entries(t) {
		rr, err := e.Record().RR()
		if err != nil {
			t.Fatal(err)
		}
		if rr.Header().Rrtype != dns.TypeSOA {
			held[rr.String()] = true
		}
	}
	adding := true
	for _, rr := range records[1 : len(records)-1] {
		switch {
		case rr.Header().Rrtype == dns.TypeSOA:
			adding = !adding
		case adding == held[rr.String()]:
			t.Fatalf("%s comes or goes twice", rr)
		case adding:
			held[rr.String()] = true
		default:
			delete(held, rr.String())
		}
	}
	for _, e := range at(14).entries(t) {
		rr, err := e.Record().RR()
		if err == nil && rr.Header().Rrtype != dns.TypeSOA && !held[rr.String()] {
			t.Fatalf("%s is missing", rr)
		}
		delete(held, rr.String())
	}
	if len(held) > 0 || len(records) < 800 {
		t.Errorf("%d records too many, of %d", len(held), len(records))
	}
}

// TestJournalOutlivesFullContent checks that a full stream keeps the journal of a zone that it does not change, and that the changes of
// either zone are not added to that of the other one.
func TestJournalOutlivesFullContent(t *testing.T) {
	a := start(t, nil, numbered(11, 10))
	for serial := 12; serial < 15; serial++ {
		move(t, a, numbered(serial-1, 10), numbered(serial, 10))
	}
	before := a.served.Load().zones["0"]
	whole, _ := content(t, []zonedata.View{{ID: 0, Name: "default"}}, numbered(14, 10))
	if err := a.ApplyContent(bytes.NewReader(whole)); err != nil {
		t.Fatal(err)
	}
	move(t, a, numbered(14, 10), numbered(15, 10))
	before.journal.add(step{from: 14, to: 99}, before.records)
	after := a.served.Load().zones["0"]
	if steps := after.journal.changesAfter(12); len(steps) != 3 || steps[2].to != 15 {
		t.Errorf("%d steps are left", len(steps))
	}
	if whole, _ = content(t, []zonedata.View{{ID: 0, Name: "default"}}, numbered(16, 10)); a.ApplyContent(bytes.NewReader(whole)) != nil ||
		len(a.served.Load().zones["0"].journal.steps) > 0 {
		t.Error("the journal of another content is kept")
	}
}

// TestChangedZonesAreReported checks which zones applyContent returns, whose other servers are notified: new ones and those with another
// serial, also those of the streams before an invalid one.
func TestChangedZonesAreReported(t *testing.T) {
	views := []zonedata.View{{ID: 0, Name: "default"}}
	other := numbered(1, 1)
	other.name = "other.example."
	a := start(t, nil, numbered(11, 10))
	changed := func(what string, want []string, wantError bool, streams ...[]byte) {
		t.Helper()
		zones, err := a.applyContent(bytes.NewReader(slices.Concat(streams...)))
		if got := slices.Sorted(maps.Keys(zones)); !slices.Equal(got, want) || (err != nil) != wantError {
			t.Errorf("%s: zones %v, not %v: %v", what, got, want, err)
		}
	}
	stream := func(zones ...given) []byte {
		text, _ := content(t, views, zones...)
		return text
	}
	step := func(from, to int) []byte {
		_, revision := content(t, views, numbered(to, 10))
		return delta(t, a, numbered(from, 10), numbered(to, 10), revision)
	}
	changed("the same content", nil, false, stream(numbered(11, 10)))
	changed("a change", []string{"0"}, false, step(11, 12))
	changed("a change before an invalid stream", []string{"0"}, true, step(12, 13), []byte("x"))
	changed("a new zone", []string{"1"}, false, stream(numbered(13, 10), other))
	changed("another serial", []string{"0"}, false, stream(numbered(14, 10), other))
	changed("full content before an invalid stream", nil, true, stream(numbered(15, 10)), []byte("x"))
	changed("a zone less", nil, false, stream(numbered(14, 10)))
}

// TestJournal checks that the journal leads to the current content without gaps and within its limits.
func TestJournal(t *testing.T) {
	var j journal
	record := zonedata.Record("r")
	for serial := range uint32(3000) {
		j.add(step{from: serial, to: serial + 1, added: []zonedata.Record{record}}, 10)
	}
	if j.size != minJournalSize || len(j.changesAfter(2000)) != 1000 || j.changesAfter(1999) != nil || j.changesAfter(3000) != nil {
		t.Errorf("%d records, %d steps", j.size, len(j.steps))
	}
	j.add(step{from: 3005, to: 3006}, 10)
	if j.changesAfter(2500) != nil || len(j.changesAfter(3005)) != 1 {
		t.Error("there is a gap")
	}
	if j.add(step{from: 3006, to: 3001}, 10); len(j.steps) != 0 {
		t.Error("a decreased serial is sent as a difference")
	}
	j.add(step{from: 0xffff_ffff, to: 2, added: make([]zonedata.Record, 5000)}, 10)
	if len(j.steps) != 0 || j.size != 0 {
		t.Error("a difference that is longer than the zone is sent")
	}
}

// TestNamedCopies checks that BIND copies a zone with a key and follows its changes after a NOTIFY.
func TestNamedCopies(t *testing.T) {
	program := peers.Program(t, "named")
	key, match := keyed("copy.", dns.HmacSHA256)
	theirs := freeport.Reserve(t)
	at := func(serial int) given {
		g := numbered(serial, 300)
		g.transfer, g.keys, g.notify = match, []zonedata.SigningKey{key}, []netip.AddrPort{theirs}
		return g
	}
	a := start(t, nil, at(1))
	ours := listening(t, a)
	dir := t.TempDir()
	runNamed(t, program, dir, fmt.Sprintf(`options { directory %q; listen-on port %d { 127.0.0.1; }; listen-on-v6 { none; }; pid-file none;
		session-keyfile none; recursion no; notify no; empty-zones-enable no; allow-transfer { any; }; }; controls { };
key "copy" { algorithm hmac-sha256; secret %q; };
zone "harbour.example" { type secondary; file "copy"; primaries { 127.0.0.1 port %d key "copy"; }; };
`, dir, theirs.Port(), base64.StdEncoding.EncodeToString(key.Secret), ours.Port()))
	conn := connected(t, dir, theirs)
	log := func() string {
		text, _ := os.ReadFile(filepath.Join(dir, "log"))
		return string(text)
	}
	follows := func(serial uint32) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			m := new(dns.Msg)
			m.SetQuestion("harbour.example.", dns.TypeSOA)
			if err := conn.WriteMsg(m); err != nil {
				t.Fatal(err)
			}
			r, err := conn.ReadMsg()
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Answer) == 1 && r.Answer[0].(*dns.SOA).Serial == serial {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("it does not follow to %d:\n%s", serial, log())
			}
		}
	}
	follows(1)
	for serial := 2; serial < 5; serial++ {
		move(t, a, at(serial-1), at(serial))
		follows(uint32(serial))
	}
	if !strings.Contains(log(), "Transfer completed: 1 messages") { // a complete transfer needs several messages
		t.Errorf("it did not copy what changed:\n%s", log())
	}
	copied, err := transferred(theirs.String(), zonedata.SigningKey{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	own, err := transferred(ours.String(), key, 0)
	if err != nil {
		t.Fatal(err)
	}
	lines := func(records []dns.RR) (all []string) {
		for _, rr := range records {
			all = append(all, rr.String())
		}
		slices.Sort(all)
		return all
	}
	if !slices.Equal(lines(copied), lines(own)) {
		t.Errorf("%d records are copied of %d", len(copied), len(own))
	}
}

// TestTransferOfManyRecords checks that an RRset that is too large for one message is sent in several.
func TestTransferOfManyRecords(t *testing.T) {
	var b strings.Builder
	b.WriteString(harbour)
	for i := range 5000 {
		fmt.Fprintf(&b, "many 300 IN A 10.1.%d.%d\n", i/250, i%250)
	}
	a := start(t, nil, given{name: "harbour.example.", records: b.String(),
		transfer: []zonedata.Match{{Prefix: netip.MustParsePrefix("127.0.0.0/8")}}})
	at := listening(t, a)
	m := new(dns.Msg)
	m.SetAxfr("harbour.example.")
	envelopes, err := new(dns.Transfer).In(m, at.String())
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for e := range envelopes {
		if e.Error != nil {
			t.Fatal(e.Error)
		}
		n += len(e.RR)
	}
	want := 0
	for _, z := range a.served.Load().zones {
		want += z.records
	}
	if n != want+1 {
		t.Errorf("%d records came, want %d and the SOA once more", n, want)
	}
}
