package nameserver

import (
	"bytes"
	"crypto"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
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

// signedBy returns a zone with keys of an algorithm, and their records.
func (g given) signedBy(t testing.TB, algorithm uint8, hashed bool) given {
	t.Helper()
	bits := map[uint8]int{dns.ECDSAP256SHA256: 256, dns.ED25519: 256, dns.RSASHA256: 1024}[algorithm]
	g.signing = &zonedata.Signing{Validity: 1209600, Renewal: 259200, Hashed: hashed}
	tags := map[uint16]bool{} // BIND uses one file for two keys with the same tag
	for _, flags := range []uint16{257, 256} {
		key := &dns.DNSKEY{Hdr: dns.RR_Header{Name: g.name, Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET, Ttl: 3600}, Flags: flags, Protocol: 3,
			Algorithm: algorithm}
		var private crypto.PrivateKey
		for private == nil || tags[key.KeyTag()] {
			var err error
			if private, err = key.Generate(bits); err != nil {
				t.Fatal(err)
			}
		}
		tags[key.KeyTag()] = true
		g.signing.Keys = append(g.signing.Keys, zonedata.ZoneKey{Flags: flags, Algorithm: algorithm, Public: key.PublicKey,
			Private: key.PrivateKeyString(private)})
		g.records += key.String() + "\n"
	}
	if hashed {
		g.records += "@ 0 NSEC3PARAM 1 0 0 -\n"
	}
	return g
}

// keyRecords returns the DNSKEY records of a zone's keys.
func (g given) keyRecords() (all []*dns.DNSKEY) {
	for _, k := range g.signing.Keys {
		all = append(all, &dns.DNSKEY{Hdr: dns.RR_Header{Name: g.name, Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET, Ttl: 3600}, Flags: k.Flags,
			Protocol: 3, Algorithm: k.Algorithm, PublicKey: k.Public})
	}
	return all
}

// signAsBind signs a zone file with BIND's program and the keys of the zone.
func (g given) signAsBind(t *testing.T, dir, file string) {
	t.Helper()
	args := []string{"-x", "-o", g.name, "-f", file, "-N", "keep"} // only key signing keys sign the DNSKEY RRset
	if g.signing.Hashed {
		args = append(args, "-3", "-", "-H", "0")
		if g.optOut {
			args = append(args, "-A")
		}
	}
	args = append(args, filepath.Join(dir, file))
	for i, k := range g.keyRecords() {
		name := filepath.Join(dir, fmt.Sprintf("K%s+%03d+%05d", g.name, k.Algorithm, k.KeyTag()))
		for end, text := range map[string]string{".key": k.String() + "\n", ".private": g.signing.Keys[i].Private} {
			if err := os.WriteFile(name+end, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if args = append(args, name); k.Flags == 257 {
			args = slices.Insert(args, 0, "-k", name)
			args = args[:len(args)-1]
		}
	}
	c := exec.Command("dnssec-signzone", args...) //nolint:gosec // the installed program
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("dnssec-signzone: %v\n%s\nof %s", err, out, g.records)
	}
}

// plainSignatures checks the signatures of a zone's answer and removes the data that depends on the signing time.
func plainSignatures(t *testing.T, g *given, m *dns.Msg) {
	t.Helper()
	for _, section := range []*[]dns.RR{&m.Answer, &m.Ns, &m.Extra} {
		for i, rr := range *section {
			if rr.Header().Rrtype == dns.TypeNSEC3 { // its owner is a hash in upper or lower case
				rr.Header().Name = strings.ToLower(rr.Header().Name)
			}
			signature, ok := rr.(*dns.RRSIG)
			if ok && g.primaries != nil {
				signature.Hdr.Name = strings.ToLower(signature.Hdr.Name)
			}
			if !ok || g.signing == nil {
				continue
			}
			var of []dns.RR
			for _, other := range *section {
				if h := other.Header(); h.Rrtype == signature.TypeCovered && strings.EqualFold(h.Name, signature.Hdr.Name) {
					other = dns.Copy(other)
					other.Header().Ttl = signature.OrigTtl
					of = append(of, other)
				}
			}
			if !slices.ContainsFunc(g.keyRecords(), func(k *dns.DNSKEY) bool {
				return k.KeyTag() == signature.KeyTag && signature.Verify(k, of) == nil
			}) || !signature.ValidityPeriod(time.Now()) {
				t.Errorf("a signature is not good: %s of %s", signature, of)
			}
			plain := *signature
			plain.Hdr.Name = strings.ToLower(plain.Hdr.Name)
			plain.Signature, plain.Inception, plain.Expiration = "", 0, 0
			(*section)[i] = &plain
		}
	}
}

// withoutEmptyWildcard removes the proof that BIND omits: that an empty non-terminal wildcard has no records (RFC 4035 section 3.1.3.4
// requires it).
func withoutEmptyWildcard(theirs, ours *dns.Msg) {
	if ours.Rcode != dns.RcodeSuccess || theirs.Rcode != ours.Rcode {
		return
	}
	text := fmt.Sprint(theirs.Ns)
	ours.Ns = slices.DeleteFunc(ours.Ns, func(rr dns.RR) bool {
		kind := rr.Header().Rrtype
		if signature, ok := rr.(*dns.RRSIG); ok {
			kind = signature.TypeCovered
		}
		return kind == dns.TypeNSEC && !strings.Contains(text, rr.String())
	})
}

// TestSignedAnswersMatchBIND checks that this name server and BIND give equal answers for signed zones, with all signatures and proofs,
// and that all signatures are valid.
func TestSignedAnswersMatchBIND(t *testing.T) {
	peers.Program(t, "dnssec-signzone")
	for name, hashed := range map[string]bool{"NSEC": false, "NSEC3": true} {
		t.Run(name, func(t *testing.T) {
			asNamed(t, 30, func(g given) given { return g.signedBy(t, dns.ECDSAP256SHA256, hashed) })
		})
	}
}

// TestPresignedAnswersMatchBIND checks that a presigned zone is answered as by BIND, also after a change.
func TestPresignedAnswersMatchBIND(t *testing.T) {
	peers.Program(t, "dnssec-signzone")
	for name, hashed := range map[string]bool{"NSEC": false, "NSEC3": true} {
		t.Run(name, func(t *testing.T) {
			asNamed(t, 30, func(g given) given { return g.signedBy(t, dns.ECDSAP256SHA256, hashed).presigned(t) })
		})
	}
}

// presigned returns a zone that BIND's program has signed.
func (g given) presigned(t *testing.T) given {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "zone"), []byte("$ORIGIN "+g.name+"\n"+g.records), 0o600); err != nil {
		t.Fatal(err)
	}
	g.signAsBind(t, dir, "zone")
	text, err := os.ReadFile(filepath.Join(dir, "zone"))
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	p := dns.NewZoneParser(bytes.NewReader(text), g.name, "")
	for rr, ok := p.Next(); ok; rr, ok = p.Next() {
		fmt.Fprintln(&lines, rr)
	}
	if err := p.Err(); err != nil {
		t.Fatal(err)
	}
	g.records, g.signing, g.primaries = lines.String(), nil, []netip.Addr{netip.MustParseAddr("192.0.2.99")}
	return g
}

// TestSignedTransfer checks with BIND's program that a transferred signed zone is valid, for all algorithms.
func TestSignedTransfer(t *testing.T) {
	program := peers.Program(t, "dnssec-verify")
	random := rand.New(rand.NewPCG(5, 6)) //nolint:gosec // a test
	for _, algorithm := range []uint8{dns.ECDSAP256SHA256, dns.ED25519, dns.RSASHA256} {
		for _, hashed := range []bool{false, true} {
			for range 5 {
				g, _ := randomZone(random)
				g.name = "zone.example."
				g = g.signedBy(t, algorithm, hashed)
				g.transfer = []zonedata.Match{{Prefix: netip.MustParsePrefix("127.0.0.1/32")}}
				at := listening(t, start(t, nil, g))
				m := new(dns.Msg)
				m.SetAxfr(g.name)
				got, err := new(dns.Transfer).In(m, at.String())
				if err != nil {
					t.Fatal(err)
				}
				var text strings.Builder
				seen := false
				for e := range got {
					if e.Error != nil {
						t.Fatal(e.Error)
					}
					for _, rr := range e.RR {
						if rr.Header().Rrtype == dns.TypeSOA && seen { // the last record
							continue
						}
						seen = true
						fmt.Fprintln(&text, rr)
					}
				}
				file := filepath.Join(t.TempDir(), "zone")
				if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
					t.Fatal(err)
				}
				if out, err := exec.Command(program, "-o", g.name, file).CombinedOutput(); err != nil { //nolint:gosec // the installed program
					t.Errorf("dnssec-verify: %v\n%s\nof %s", err, out, text.String())
				}
			}
		}
	}
}

// TestChainsFollow checks that the chain after small and large changes equals a new chain, also for presigned zones.
func TestChainsFollow(t *testing.T) {
	_, err := exec.LookPath("dnssec-signzone")
	random := rand.New(rand.NewPCG(7, 8)) //nolint:gosec // a test
	for _, hashed := range []bool{false, true} {
		withKeys := func(g given) given {
			for _, k := range g.keyRecords() {
				g.records += k.String() + "\n"
			}
			return g
		}
		chainsFollow(t, random, hashed, 60, withKeys)
		if err == nil {
			chainsFollow(t, random, hashed, 20, func(g given) given { return withKeys(g).presigned(t) })
		}
	}
}

func chainsFollow(t *testing.T, random *rand.Rand, hashed bool, rounds int, signs func(given) given) {
	t.Helper()
	first, _ := randomZone(random)
	first.name = "zone.example."
	first = first.signedBy(t, dns.ED25519, hashed)
	before := signs(first)
	a := start(t, nil, before)
	for round := range rounds {
		after, _ := randomZone(random)
		if round%10 == 0 { // many names at a time
			for i := range 200 {
				after.records += fmt.Sprintf("h%d.%d 60 A 192.0.2.1\n", i, random.IntN(9))
			}
		}
		after.name, after.signing = first.name, first.signing
		after = signs(after)
		var h zonedata.Hash
		for _, e := range after.entries(t) {
			h.Add(e.Record())
		}
		to := zonedata.Revision{Number: int64(round) + 2, Hash: zonedata.Total(a.served.Load().settings, map[string]string{"0": h.String()})}
		if err := a.ApplyContent(bytes.NewReader(delta(t, a, before, after, to.String()))); err != nil {
			t.Fatal(err)
		}
		z := a.served.Load().zones["0"]
		anew := z.presigned()
		if !z.chain.isPresigned {
			anew = z.newChain(hashed)
		}
		if !slices.Equal(anew.links, z.chain.links) {
			t.Fatalf("round %d: %d names in order, %d anew", round, len(z.chain.links), len(anew.links))
		}
		before = after
	}
}

// TestSigningStarts checks that signing starts and stops with the next answer. A zone with unreadable keys is rejected, and the previous
// content remains in use.
func TestSigningStarts(t *testing.T) {
	plain := given{name: "harbour.example.", records: harbour}
	a := start(t, nil, plain)
	do := func(m *dns.Msg) { m.SetEdns0(1232, true) }
	if m := a.question(t, "mail.harbour.example.", dns.TypeA, do); len(m.Answer) != 1 {
		t.Fatalf("unsigned: %s", m)
	}
	signed := plain.signedBy(t, dns.ECDSAP256SHA256, false)
	text, _ := content(t, []zonedata.View{{ID: 0, Name: "default"}}, signed)
	if err := a.ApplyContent(bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	m := a.question(t, "mail.harbour.example.", dns.TypeA, do)
	if len(m.Answer) != 2 || m.Answer[1].Header().Rrtype != dns.TypeRRSIG {
		t.Fatalf("signed: %s", m)
	}
	if m := a.question(t, "mail.harbour.example.", dns.TypeA); len(m.Answer) != 1 {
		t.Fatalf("the answer to a query without the DO bit has signatures: %s", m)
	}
	made := a.awaitSigned(t)
	a.question(t, "mail.harbour.example.", dns.TypeA, do)
	if again := a.signatures.created.Load(); again != made {
		t.Errorf("%d signatures were made for an answer that was given before", again-made)
	}
	broken := signed
	key := signed.signing.Keys[0]
	key.Private = "nothing"
	broken.signing = &zonedata.Signing{Keys: []zonedata.ZoneKey{key, signed.signing.Keys[1]}, Validity: 1000}
	text, _ = content(t, []zonedata.View{{ID: 0, Name: "default"}}, broken)
	if err := a.ApplyContent(bytes.NewReader(text)); err == nil || !strings.Contains(err.Error(), "harbour.example.") {
		t.Errorf("a key that is none: %v", err)
	}
	text, _ = content(t, []zonedata.View{{ID: 0, Name: "default"}}, plain)
	if err := a.ApplyContent(bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	if m := a.question(t, "mail.harbour.example.", dns.TypeA, do); len(m.Answer) != 1 {
		t.Fatalf("no longer signed: %s", m)
	}
}

// TestSignaturesEnd checks that signatures are renewed before they expire, and immediately for other data.
func TestSignaturesEnd(t *testing.T) {
	g := given{name: "harbour.example.", records: harbour}.signedBy(t, dns.ECDSAP256SHA256, false)
	a := start(t, nil, g)
	a.awaitSigned(t)
	z := a.served.Load().views[0].zones["\x07harbour\x07example\x00"]
	s := z.nodes["\x04mail\x07harbour\x07example\x00"].set(dns.TypeA)
	now := time.Now()
	first, err := z.signing.signaturesFor("\x04mail\x07harbour\x07example\x00", s, now)
	if err != nil {
		t.Fatal(err)
	}
	at := func(when time.Time) *set {
		one, err := z.signing.signaturesFor("\x04mail\x07harbour\x07example\x00", s, when)
		if err != nil {
			t.Fatal(err)
		}
		return one
	}
	if at(now.Add(10*24*time.Hour)) != first {
		t.Error("it was made anew too early")
	}
	if at(now.Add(12*24*time.Hour)) == first {
		t.Error("it was not made anew before its end")
	}
}

// TestSignedWildcardAlias checks that the proof of a wildcard alias follows the records of its target (RFC 4035 section 3.1.3.3).
func TestSignedWildcardAlias(t *testing.T) {
	const records = `@ 500 SOA ns1 hostmaster 1 3600 600 86400 60
@ 500 NS ns1
ns1 500 A 192.0.2.53
www 500 A 192.0.2.80
*.apps 500 CNAME www
*.b 500 CNAME x.c
*.c 500 TXT "text"
`
	for name, hashed := range map[string]bool{"NSEC": false, "NSEC3": true} {
		t.Run(name, func(t *testing.T) {
			g := given{name: "example.com.", records: records}.signedBy(t, dns.ECDSAP256SHA256, hashed)
			a := start(t, nil, g)
			for _, q := range []validatedQuestion{{name: "x.apps.example.com.", kind: dns.TypeA}, {name: "y.b.example.com.", kind: dns.TypeTXT}} {
				m := a.question(t, q.name, q.kind, func(m *dns.Msg) { m.SetEdns0(1232, true) })
				var kinds []uint16
				for _, rr := range m.Answer {
					kinds = append(kinds, rr.Header().Rrtype)
				}
				if !slices.Equal(kinds, []uint16{dns.TypeCNAME, dns.TypeRRSIG, q.kind, dns.TypeRRSIG}) || len(m.Ns) == 0 {
					t.Errorf("%s: %s", q.name, m)
				}
			}
			g.delv(t, listening(t, a).Port(), []validatedQuestion{{name: "x.apps.example.com.", kind: dns.TypeA},
				{name: "y.b.example.com.", kind: dns.TypeTXT}, {name: "x.apps.example.com.", kind: dns.TypeMX}}, secure)
		})
	}
}

// TestValidators checks answers with the validators of delv and unbound.
func TestValidators(t *testing.T) {
	for name, hashed := range map[string]bool{"NSEC": false, "NSEC3": true} {
		t.Run(name, func(t *testing.T) {
			g := given{name: "harbour.example.", records: harbour}.signedBy(t, dns.ECDSAP256SHA256, hashed)
			at := listening(t, start(t, nil, g))
			t.Run("delv", func(t *testing.T) { g.delv(t, at.Port(), validated, secure) })
			t.Run("unbound", func(t *testing.T) { g.unbound(t, at.Port()) })
		})
	}
}

// validatedQuestion is a query with the expected response code.
type validatedQuestion struct {
	name string
	kind uint16
	code int
}

// validated are queries for harbour with the expected response codes.
var validated = []validatedQuestion{
	{"mail.harbour.example.", dns.TypeA, 0}, {"mail.harbour.example.", dns.TypeTXT, 0}, {"www.harbour.example.", dns.TypeAAAA, 0},
	{"nobody.harbour.example.", dns.TypeA, dns.RcodeNameError}, {"y.wild.harbour.example.", dns.TypeA, 0},
	{"y.wild.harbour.example.", dns.TypeMX, 0}, {"a.b.c.harbour.example.", dns.TypeA, dns.RcodeNameError},
	{"b.deep.harbour.example.", dns.TypeA, 0}, {"x.old.harbour.example.", dns.TypeA, 0}, {"harbour.example.", dns.TypeSOA, 0},
	{"harbour.example.", dns.TypeDNSKEY, 0},
}

// secure is the text of BIND's validator for a secure answer.
const secure = "fully validated"

// delv sends queries with BIND's validator. It fails if the output contains none of the texts.
func (g given) delv(t *testing.T, port uint16, questions []validatedQuestion, found ...string) {
	t.Helper()
	program := peers.Program(t, "delv")
	anchor := filepath.Join(t.TempDir(), "anchor")
	text := fmt.Sprintf("trust-anchors { %q static-key 257 3 %d %q; };\n", g.name, g.signing.Keys[0].Algorithm, g.signing.Keys[0].Public)
	if err := os.WriteFile(anchor, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, q := range questions {
		out, _ := exec.Command(program, "@127.0.0.1", "-p", fmt.Sprint(port), "-a", anchor, "+root="+strings.TrimSuffix(g.name, "."), q.name,
			dns.TypeToString[q.kind]).CombinedOutput() //nolint:gosec // the installed program
		if !slices.ContainsFunc(found, func(text string) bool { return bytes.Contains(out, []byte(text)) }) {
			t.Errorf("%s %s: %s", q.name, dns.TypeToString[q.kind], out)
		}
	}
}

func (g given) unbound(t *testing.T, port uint16) {
	program := peers.Program(t, "unbound")
	dir, at := t.TempDir(), freeport.Reserve(t)
	text := fmt.Sprintf(`server:
 interface: 127.0.0.1@%d
 chroot: ""
 username: ""
 directory: %q
 pidfile: ""
 use-syslog: no
 do-daemonize: no
 do-not-query-localhost: no
 module-config: "validator iterator"
 trust-anchor: "%s"
stub-zone:
 name: %q
 stub-addr: 127.0.0.1@%d
`, at.Port(), dir, strings.ReplaceAll(g.keyRecords()[0].String(), "\t", " "), g.name, port)
	conf := filepath.Join(dir, "conf")
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, "-d", "-c", conf) //nolint:gosec // the installed program
	var log bytes.Buffer
	c.Stdout, c.Stderr = &log, &log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	}()
	client := &dns.Client{Timeout: 5 * time.Second}
	for _, q := range validated {
		m := new(dns.Msg)
		m.SetQuestion(q.name, q.kind)
		m.SetEdns0(1232, true)
		var got *dns.Msg
		var err error
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			if got, _, err = client.Exchange(m, at.String()); err == nil {
				break
			}
			if time.Now().After(deadline) {
				_ = c.Process.Kill()
				_ = c.Wait()
				t.Fatalf("unbound does not answer: %v\n%s", err, log.String())
			}
		}
		if got.Rcode != q.code || !got.AuthenticatedData {
			t.Errorf("%s %s: %s", q.name, dns.TypeToString[q.kind], got)
		}
	}
}

// BenchmarkSigned measures answers with cached signatures.
func BenchmarkSigned(b *testing.B) {
	g := given{name: "harbour.example.", records: harbour}.signedBy(b, dns.ECDSAP256SHA256, false)
	a := start(b, nil, g)
	m := new(dns.Msg)
	m.SetQuestion("mail.harbour.example.", dns.TypeA)
	m.SetEdns0(1232, true)
	wire, err := m.Pack()
	if err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, 0, 4096)
	for b.Loop() {
		if a.answer(wire, buf, loopback, false) == nil {
			b.Fatal("no answer")
		}
	}
}

// FuzzUpdate checks that no UPDATE or NOTIFY message causes a failure, and that answers can be parsed.
func FuzzUpdate(f *testing.F) {
	key, match := keyed("copy.", dns.HmacSHA256)
	a := start(f, nil, given{name: "harbour.example.", records: harbour, query: match, keys: []zonedata.SigningKey{key},
		primaries: []netip.Addr{netip.MustParseAddr("192.0.2.99")}})
	m := new(dns.Msg)
	m.SetUpdate("harbour.example.")
	m.Insert([]dns.RR{&dns.TXT{Hdr: dns.RR_Header{Name: "x.harbour.example.", Rrtype: dns.TypeTXT, Class: dns.ClassINET}, Txt: []string{"x"}}})
	for _, opcode := range []int{dns.OpcodeUpdate, dns.OpcodeNotify} {
		m.Opcode = opcode
		wire, err := m.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(wire)
		f.Add(wire[:len(wire)-3])
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		if !isUpdate(wire) {
			return
		}
		got := a.update(wire, loopback)
		if got == nil {
			return
		}
		answer := new(dns.Msg)
		if err := answer.Unpack(got); err != nil {
			t.Errorf("% x is answered by % x: %v", wire, got, err)
		}
	})
}

// TestDNSSECQueries checks that queries for DNSSEC record types are answered without the DO bit (RFC 4035 section 3.1).
func TestDNSSECQueries(t *testing.T) {
	for name, hashed := range map[string]bool{"NSEC": false, "NSEC3": true} {
		a := start(t, nil, given{name: "harbour.example.", records: harbour}.signedBy(t, dns.ECDSAP256SHA256, hashed))
		for _, c := range []struct {
			name string
			kind uint16
			want int // minimum number of answers
		}{{"mail.harbour.example.", dns.TypeRRSIG, 1}, {"mail.harbour.example.", dns.TypeNSEC, 1}, {"none.harbour.example.", dns.TypeNSEC, 0},
			{"none.harbour.example.", dns.TypeRRSIG, 0}} {
			m := new(dns.Msg)
			m.SetQuestion(c.name, c.kind)
			wire, err := m.Pack()
			if err != nil {
				t.Fatal(err)
			}
			got := new(dns.Msg)
			if err := got.Unpack(a.answer(wire, nil, loopback, false)); err != nil {
				t.Fatal(err)
			}
			if hashed && c.kind == dns.TypeNSEC { // the zone has no NSEC records
				c.want = 0
			}
			if len(got.Answer) < c.want || c.want == 0 && len(got.Answer) > 0 {
				t.Errorf("%s: %s %s: %s", name, c.name, dns.TypeToString[c.kind], got)
			}
			for _, rr := range slices.Concat(got.Answer, got.Ns) {
				if kind := rr.Header().Rrtype; kind != c.kind && kind != dns.TypeSOA {
					t.Errorf("%s: %s %s has %s", name, c.name, dns.TypeToString[c.kind], rr)
				}
			}
		}
	}
}
