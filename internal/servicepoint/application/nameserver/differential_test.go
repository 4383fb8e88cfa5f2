package nameserver

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
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

// variant is the way of signing a generated zone.
type variant struct {
	name                   string
	signed, hashed, optOut bool
	transferred            bool
}

var variants = []variant{
	{name: "unsigned"},
	{name: "NSEC", signed: true},
	{name: "NSEC3", signed: true, hashed: true},
	{name: "NSEC transferred", signed: true, transferred: true},
	{name: "NSEC3 transferred", signed: true, hashed: true, transferred: true},
	{name: "NSEC3 opt-out transferred", signed: true, hashed: true, optOut: true, transferred: true},
}

// differentialZone generates a zone with few labels, so that names, wildcards, aliases, DNAMEs and delegations interact. others are the
// apexes of the other zones of the server, relative to the root.
func differentialZone(random *rand.Rand, others []string) (records string, names []string) {
	labels := []string{"a", "b", "c", "*"}
	name := func(depth int) string {
		parts := make([]string, 1+random.IntN(depth))
		for i := range parts {
			parts[i] = labels[random.IntN(len(labels))]
		}
		return strings.Join(parts, ".")
	}
	target := func() string {
		switch random.IntN(8) {
		case 0:
			return "x.far.test."
		case 1:
			return name(2) + "." + others[random.IntN(len(others))]
		case 2:
			return "@"
		}
		return name(3)
	}
	lines := []string{"@ 3600 NS ns", "@ 3600 NS ns.far.test.", "ns 3600 A 192.0.2.1"}
	alias, data := map[string]bool{}, map[string]bool{"ns": true}
	add := func(owner, format string, args ...any) {
		lines = append(lines, owner+" "+fmt.Sprintf(format, args...))
		names = append(names, owner)
	}
	if random.IntN(6) == 0 { // then the zone has no other name (RFC 6672 section 2.4)
		target := []string{"x.far.test.", others[random.IntN(len(others))]}[random.IntN(2)]
		return "@ 3600 SOA ns.far.test. h 1 3600 600 86400 60\n@ 3600 NS ns.far.test.\n@ 60 A 192.0.2.1\n@ 60 DNAME " + target +
			"\n", []string{"@"}
	}
	if random.IntN(3) == 0 {
		add("@", "60 MX 10 %s", name(2))
	}
	redirected := map[string]bool{}
	for range 6 + random.IntN(18) {
		n := name(3)
		if alias[n] || redirected[n] {
			continue
		}
		switch kind := random.IntN(12); {
		case kind < 3 && !data[n]:
			alias[n] = true
			add(n, "60 CNAME %s", target())
		case kind == 3 && !strings.Contains(n, "*") && n != "ns":
			data[n] = true
			switch random.IntN(4) {
			case 0: // glue
				add(n, "60 NS ns.%s", n)
				add("ns."+n, "60 A 192.0.2.2")
				alias["ns."+n] = true
			case 1: // glue of a sibling
				add(n, "60 NS ns.c")
			case 2: // a server elsewhere
				add(n, "60 NS ns.far.test.")
			default:
				add(n, "60 NS ns")
			}
			if random.IntN(2) == 0 {
				add(n, "60 DS 1 13 2 %s", strings.Repeat("ef", 32))
			}
		case kind == 4 && !strings.Contains(n, "*") && !data[n]:
			redirected[n] = true
			add(n, "60 DNAME %s", []string{"x.far.test.", name(2), others[random.IntN(len(others))]}[random.IntN(3)])
		case kind == 5:
			data[n] = true
			add(n, "60 MX 10 %s", name(2))
		case kind == 6:
			data[n] = true
			add(n, "60 SRV 0 1 80 %s", name(2))
		case kind == 7:
			data[n] = true
			add(n, "60 TXT \"%d\"", random.IntN(3))
		case kind == 8:
			data[n] = true
			add(n, "60 TYPE65400 \\# 2 0102")
		default:
			data[n] = true
			add(n, "60 A 192.0.2.%d", 10+random.IntN(3))
			if random.IntN(3) == 0 {
				add(n, "60 AAAA 2001:db8::%d", random.IntN(3))
			}
		}
	}
	lines = slices.DeleteFunc(lines, func(line string) bool { // no server loads names below a DNAME
		owner, _, _ := strings.Cut(line, " ")
		for _, above, found := strings.Cut(owner, "."); found; _, above, found = strings.Cut(above, ".") {
			if redirected[above] {
				return true
			}
		}
		return false
	})
	lines = slices.Compact(slices.Sorted(slices.Values(lines)))
	return "@ 3600 SOA ns h 1 3600 600 86400 60\n" + strings.Join(lines, "\n") + "\n", names
}

// differentialTypes are the types in queries.
var differentialTypes = []uint16{dns.TypeA, dns.TypeA, dns.TypeAAAA, dns.TypeTXT, dns.TypeMX, dns.TypeNS, dns.TypeCNAME, dns.TypeDS,
	dns.TypeDNAME, dns.TypeSOA,
	dns.TypeSRV, dns.TypeDNSKEY, dns.TypeNSEC, dns.TypeNSEC3, dns.TypeNSEC3PARAM, dns.TypeRRSIG, dns.TypeANY, 65400, 65401, dns.TypePTR}

// differentialQuestion generates a query for a zone.
func differentialQuestion(random *rand.Rand, z *given, names []string) []byte {
	under := func(n string) string {
		if n == "@" || n == "" {
			return z.name
		}
		return n + "." + z.name
	}
	var name string
	switch random.IntN(10) {
	case 0:
		name = z.name
	case 1, 2, 3:
		name = []string{"a", "b", "e", "*", "c.a", "ns"}[random.IntN(6)] + "." + under(names[random.IntN(len(names))])
	case 4:
		name = under([]string{"e", "a", "e.b", "a.e.c", "*", "ns", "A.B"}[random.IntN(7)])
	case 5: // the parent of a name
		n := names[random.IntN(len(names))]
		_, rest, _ := strings.Cut(n, ".")
		name = under(rest)
	default:
		name = under(names[random.IntN(len(names))])
	}
	m := new(dns.Msg)
	m.SetQuestion(name, differentialTypes[random.IntN(len(differentialTypes))])
	m.RecursionDesired = random.IntN(2) == 0
	m.CheckingDisabled = random.IntN(8) == 0
	m.AuthenticatedData = random.IntN(8) == 0
	if random.IntN(5) > 0 {
		m.SetEdns0(1232, random.IntN(3) > 0)
	}
	wire, err := m.Pack()
	if err != nil {
		panic(err)
	}
	return wire
}

// nsd starts NSD with zone files and returns a connection to it.
func nsd(t *testing.T, dir string, zones []given, files []string) *dns.Conn {
	t.Helper()
	program := peers.Program(t, "nsd")
	at := freeport.Reserve(t)
	var text strings.Builder
	fmt.Fprintf(&text, `server:
 ip-address: 127.0.0.1@%d
 chroot: ""
 username: ""
 zonesdir: %q
 pidfile: ""
 database: ""
 xfrdfile: ""
 zonelistfile: ""
 minimal-responses: yes
 refuse-any: no
 server-count: 1
 round-robin: no
remote-control:
 control-enable: no
`, at.Port(), dir)
	for i, z := range zones {
		fmt.Fprintf(&text, "zone:\n name: %q\n zonefile: %q\n", z.name, files[i])
	}
	conf := filepath.Join(dir, "nsd.conf")
	if err := os.WriteFile(conf, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "nsd.log"))
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, "-d", "-c", conf) //nolint:gosec // the installed program
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt)
		_ = c.Wait()
		_ = log.Close()
	})
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := (&dns.Client{Net: "tcp", Timeout: time.Second}).Dial(at.String())
		if err == nil {
			t.Cleanup(func() { _ = conn.Close() })
			return conn
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(filepath.Join(dir, "nsd.log"))
			t.Fatalf("nsd does not answer: %v\n%s", err, text)
		}
	}
}

// ask sends a query and returns the answer; nil if the server closes the connection without one.
func ask(t *testing.T, conn **dns.Conn, wire []byte) *dns.Msg {
	t.Helper()
	framed := append(binary.BigEndian.AppendUint16(nil, uint16(len(wire))), wire...) //nolint:gosec // a short one
	for try := range 2 {
		_ = (*conn).SetDeadline(time.Now().Add(time.Minute))
		_, err := (*conn).Conn.Write(framed)
		if err == nil {
			var m *dns.Msg
			if m, err = (*conn).ReadMsg(); err == nil {
				return m
			}
		}
		again, failed := net.Dial("tcp", (*conn).RemoteAddr().String())
		if failed != nil {
			t.Fatalf("%v, and then %v", err, failed)
		}
		_ = (*conn).Close()
		*conn = &dns.Conn{Conn: again}
		_ = try
	}
	return nil
}

// sections returns an answer in a comparable form: the header, then each section sorted. Of the additional section only glue counts.
func sections(m *dns.Msg) string {
	var flags []string
	for name, set := range map[string]bool{"aa": m.Authoritative, "tc": m.Truncated, "rd": m.RecursionDesired, "ra": m.RecursionAvailable,
		"ad": m.AuthenticatedData, "cd": m.CheckingDisabled, "z": m.Zero} {
		if set {
			flags = append(flags, name)
		}
	}
	slices.Sort(flags)
	return fmt.Sprintf("%d %d %s %s", m.Opcode, len(m.Question), strings.Join(flags, ","), words(m))
}

// partial reports whether an answer to ANY or RRSIG contains a part of the other answer. An answer with one RRset is complete (RFC 8482
// section 4.1).
func partial(ours, theirs *dns.Msg) bool {
	if kind := ours.Question[0].Qtype; kind != dns.TypeANY && kind != dns.TypeRRSIG || ours.Rcode != theirs.Rcode || len(ours.Answer) == 0 {
		return false
	}
	all := fmt.Sprint(theirs.Answer)
	for _, rr := range ours.Answer {
		signature, is := rr.(*dns.RRSIG)
		if is {
			rr = &dns.RRSIG{Hdr: signature.Hdr, TypeCovered: signature.TypeCovered}
		}
		if !is && !strings.Contains(all, rr.String()) || is && !slices.ContainsFunc(theirs.Answer, func(o dns.RR) bool {
			other, also := o.(*dns.RRSIG)
			return also && other.TypeCovered == signature.TypeCovered && other.Hdr.Name == signature.Hdr.Name && other.KeyTag == signature.KeyTag
		}) {
			return false
		}
	}
	return true
}

// TestAnswersEqualThoseOfBINDAndNSD sends BIND, NSD and this name server the same random queries for the same random zones. An answer
// must equal that of BIND or, where BIND and NSD differ, that of NSD. docs/decisions.md lists the remaining differences, each with its
// RFC.
func TestAnswersEqualThoseOfBINDAndNSD(t *testing.T) {
	zones, questions, validations := 10, 60, 4
	if os.Getenv("PORTOLAN_TEST_LONG") != "" {
		zones, questions, validations = 40, 120, 100
	}
	for i, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			d := &differential{random: rand.New(rand.NewPCG(42, uint64(i))), keys: map[string][]*dns.DNSKEY{}} //nolint:gosec // a test
			d.start(t, v, zones)
			d.compare(t, questions)
			d.validate(t, validations)
		})
	}
}

// differential is a set of zones that three servers serve.
type differential struct {
	random *rand.Rand
	zones  []given
	names  [][]string
	// keys are the keys of signed zones by zone name.
	keys      map[string][]*dns.DNSKEY
	ours      *nameServer
	bind, nsd *dns.Conn
}

func (d *differential) start(t *testing.T, v variant, zones int) {
	t.Helper()
	var apexes []string
	for i := range zones {
		apexes = append(apexes, fmt.Sprintf("zone%d.example.", i))
	}
	dir := t.TempDir()
	var files []string
	for _, apex := range apexes {
		g := given{name: apex}
		var names []string
		g.records, names = differentialZone(d.random, apexes)
		if v.signed {
			g = g.signedBy(t, dns.ECDSAP256SHA256, v.hashed)
			g.optOut = v.optOut
			d.keys[apex] = g.keyRecords()
		}
		if v.transferred {
			g = g.presigned(t)
		}
		file := g.name + "zone"
		if err := os.WriteFile(filepath.Join(dir, file), []byte("$ORIGIN "+g.name+"\n"+g.records), 0o600); err != nil {
			t.Fatal(err)
		}
		if g.signing != nil {
			g.signAsBind(t, dir, file)
		}
		d.zones, d.names, files = append(d.zones, g), append(d.names, names), append(files, file)
	}
	d.bind, d.nsd, d.ours = named(t, d.zones...), nsd(t, dir, d.zones, files), start(t, nil, d.zones...)
}

func (d *differential) compare(t *testing.T, questions int) {
	t.Helper()
	differing := 0
	for i := range d.zones {
		z := &d.zones[i]
		for range questions {
			wire := differentialQuestion(d.random, z, d.names[i])
			ours := new(dns.Msg)
			if err := ours.Unpack(d.ours.answer(wire, nil, loopback, true)); err != nil {
				t.Fatal(err)
			}
			theirs, others := d.askBIND(t, wire), ask(t, &d.nsd, wire)
			// only recursive servers copy it (RFC 4035 section 3.2.2)
			theirs.CheckingDisabled = ours.CheckingDisabled
			if ours.Rcode == dns.RcodeServerFailure && theirs.Rcode == ours.Rcode { // endless aliases, included to different depths
				continue
			}
			for _, m := range []*dns.Msg{ours, theirs, others} {
				m.Extra = needed(m)
				for _, fault := range d.normalize(m) {
					if m == ours {
						t.Error(fault)
					}
				}
			}
			texts := []string{sections(ours), sections(theirs), sections(others)}
			if texts[0] != texts[2] {
				withoutEmptyWildcard(theirs, ours)
				texts[0] = sections(ours)
			}
			if texts[0] == texts[1] || texts[0] == texts[2] || partial(ours, theirs) {
				continue
			}
			if differing++; differing < 6 {
				q := ours.Question[0]
				t.Errorf("%s %s:\n ours %s\n BIND %s\n  NSD %s\nof\n%s", q.Name, dns.Type(q.Qtype), texts[0], texts[1], texts[2], z.records)
			}
		}
	}
	if differing > 0 {
		t.Errorf("%d of %d answers differ from those of both", differing, len(d.zones)*questions)
	}
}

// validate makes BIND's validator send random queries for signed zones. Answers that lead to another zone, or end at an insecure
// delegation, have no chain of trust in this test.
func (d *differential) validate(t *testing.T, questions int) {
	t.Helper()
	if len(d.keys) == 0 {
		return
	}
	port := listening(t, d.ours).Port()
	for range questions {
		i := d.random.IntN(len(d.zones))
		wire, m := differentialQuestion(d.random, &d.zones[i], d.names[i]), new(dns.Msg)
		if err := m.Unpack(d.ours.answer(wire, nil, loopback, true)); err != nil {
			t.Fatal(err)
		}
		q := m.Question[0]
		if len(m.Answer) == 0 && !m.Authoritative || m.Rcode == dns.RcodeServerFailure || slices.Contains([]uint16{dns.TypeANY, dns.TypeRRSIG,
			dns.TypeNSEC,
			dns.TypeNSEC3}, q.Qtype) || q.Name == d.zones[i].name && q.Qtype == dns.TypeDS || !strings.HasSuffix(q.Name, d.zones[i].name) {
			continue
		}
		leaves := slices.ContainsFunc(slices.Concat(m.Answer, m.Ns), func(rr dns.RR) bool {
			alias, is := rr.(*dns.CNAME)
			return is && !dns.IsSubDomain(d.zones[i].name, alias.Target) || !dns.IsSubDomain(d.zones[i].name, rr.Header().Name) ||
				rr.Header().Rrtype == dns.TypeNS && !m.Authoritative
		})
		ends := len(m.Ns) > 0 && m.Ns[0].Header().Rrtype == dns.TypeNS
		if leaves || ends {
			continue
		}
		g := d.zones[i]
		if g.signing == nil { // presigned
			g = given{name: g.name, signing: &zonedata.Signing{}}
			for _, k := range d.keys[g.name] {
				g.signing.Keys = append(g.signing.Keys, zonedata.ZoneKey{Flags: k.Flags, Algorithm: k.Algorithm, Public: k.PublicKey})
			}
		}
		// The proof of an opt-out record is not secure (RFC 5155 section 9.2).
		found := []string{secure}
		if slices.ContainsFunc(m.Ns, func(rr dns.RR) bool {
			n, is := rr.(*dns.NSEC3)
			return is && n.Flags&1 != 0
		}) {
			found = append(found, "unsigned answer")
		}
		g.delv(t, port, []validatedQuestion{{name: q.Name, kind: q.Qtype}}, found...)
	}
}

// askBIND returns BIND's answer. Without recursion BIND does not follow an alias into another zone that it serves. RFC 1034 section 4.3.2
// step 3a requires that, so askBIND adds the answer for the alias's target.
func (d *differential) askBIND(t *testing.T, wire []byte) *dns.Msg {
	t.Helper()
	m := ask(t, &d.bind, wire)
	q := m.Question[0]
	if q.Qtype == dns.TypeCNAME || q.Qtype == dns.TypeANY || m.Rcode != dns.RcodeSuccess {
		return m
	}
	for _, rr := range m.Ns {
		if kind := rr.Header().Rrtype; kind == dns.TypeNS || kind == dns.TypeSOA { // the end of the chain
			return m
		}
	}
	target := q.Name
	for range m.Answer {
		for _, rr := range m.Answer {
			if alias, is := rr.(*dns.CNAME); is && strings.EqualFold(alias.Hdr.Name, target) {
				target = alias.Target
				break
			}
		}
	}
	served := slices.ContainsFunc(d.zones, func(z given) bool { return dns.IsSubDomain(z.name, target) })
	if target == q.Name || !served || slices.ContainsFunc(m.Answer, func(rr dns.RR) bool {
		return strings.EqualFold(rr.Header().Name,
			target)
	}) {
		return m
	}
	next := new(dns.Msg)
	if err := next.Unpack(wire); err != nil {
		t.Fatal(err)
	}
	next.Question[0].Name = target
	wire, err := next.Pack()
	if err != nil {
		t.Fatal(err)
	}
	rest := d.askBIND(t, wire)
	m.Answer, m.Ns, m.Extra, m.Rcode = append(m.Answer, rest.Answer...), append(m.Ns, rest.Ns...), rest.Extra, rest.Rcode
	return m
}

// normalize checks the signatures of an answer and removes the data that depends on the signing time and key. It returns the errors.
func (d *differential) normalize(m *dns.Msg) (faults []string) {
	for _, section := range []*[]dns.RR{&m.Answer, &m.Ns, &m.Extra} {
		for i, rr := range *section {
			signature, is := rr.(*dns.RRSIG)
			if !is {
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
			valid := slices.ContainsFunc(d.keys[signature.SignerName], func(k *dns.DNSKEY) bool {
				return k.KeyTag() == signature.KeyTag && signature.Verify(k, of) == nil
			}) && signature.ValidityPeriod(time.Now())
			if !valid && (len(of) > 0 || m.Question[0].Qtype != dns.TypeRRSIG && m.Question[0].Qtype != dns.TypeANY) {
				faults = append(faults, fmt.Sprintf("%s %s: %s is not a valid signature of %s", m.Question[0].Name, dns.Type(m.Question[0].Qtype),
					signature, of))
			}
			plain := *signature
			plain.Signature, plain.Inception, plain.Expiration = "", 0, 0
			(*section)[i] = &plain
		}
	}
	for _, section := range [][]dns.RR{m.Answer, m.Ns, m.Extra} { // answers preserve the case of the query
		for _, rr := range section {
			rr.Header().Name = strings.ToLower(rr.Header().Name)
			if alias, is := rr.(*dns.CNAME); is {
				alias.Target = strings.ToLower(alias.Target)
			}
		}
	}
	return faults
}

// oddMessages returns messages that no resolver sends, by description.
func oddMessages(name string) map[string][]byte {
	all := map[string][]byte{}
	base := func(with ...func(*dns.Msg)) []byte {
		m := new(dns.Msg)
		m.SetQuestion(name, dns.TypeSOA)
		m.RecursionDesired = false
		for _, fn := range with {
			fn(m)
		}
		wire, err := m.Pack()
		if err != nil {
			panic(err)
		}
		return wire
	}
	edns := func(change func(*dns.OPT)) func(*dns.Msg) {
		return func(m *dns.Msg) {
			m.SetEdns0(1232, false)
			change(m.Extra[len(m.Extra)-1].(*dns.OPT))
		}
	}
	bytes := func(wire []byte, change func([]byte)) []byte { change(wire); return wire }
	option := func(code uint16, data ...byte) func(*dns.OPT) {
		return func(o *dns.OPT) { o.Option = append(o.Option, &dns.EDNS0_LOCAL{Code: code, Data: data}) }
	}
	all["header alone"] = base()[:12]
	all["header that says it has a question"] = bytes(base()[:12], func(b []byte) { b[5] = 1 })
	all["no question"] = bytes(base()[:12], func(b []byte) { b[5] = 0 })
	all["no question, EDNS"] = append(bytes(base()[:12], func(b []byte) { b[5], b[11] = 0, 1 }), 0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0)
	all["no question, EDNS with a cookie"] = append(bytes(base()[:12], func(b []byte) { b[5], b[11] = 0, 1 }), 0, 0, 41, 4, 208, 0, 0, 0, 0,
		0, 12,
		0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8)
	all["two questions"] = base(func(m *dns.Msg) { m.Question = append(m.Question, m.Question[0]) })
	all["cut short"] = base()[:20]
	all["bytes behind the end"] = append(base(), 1, 2, 3)
	all["EDNS version 1"] = base(edns(func(o *dns.OPT) { o.SetVersion(1) }))
	all["EDNS version 255"] = base(edns(func(o *dns.OPT) { o.SetVersion(255) }))
	all["EDNS flags"] = base(edns(func(o *dns.OPT) { o.SetZ(0x7fff) }))
	all["EDNS size 0"] = base(edns(func(o *dns.OPT) { o.SetUDPSize(0) }))
	all["EDNS unknown option"] = base(edns(option(65001, 1, 2, 3)))
	all["EDNS client subnet"] = base(edns(option(8, 0, 1, 24, 0, 192, 0, 2)))
	all["EDNS short cookie"] = base(edns(option(10, 1, 2, 3)))
	all["EDNS cookie"] = base(edns(option(10, 1, 2, 3, 4, 5, 6, 7, 8)))
	all["EDNS keepalive"] = base(edns(option(11)))
	all["EDNS padding"] = base(edns(option(12, make([]byte, 20)...)))
	all["EDNS option cut short"] = bytes(base(edns(option(65001, 1, 2, 3))), func(b []byte) { b[len(b)-4] = 9 })
	all["two OPT records"] = base(edns(func(*dns.OPT) {}), edns(func(*dns.OPT) {}))
	all["OPT of a name"] = base(edns(func(o *dns.OPT) { o.Hdr.Name = "a." }))
	for _, class := range []uint16{0, 2, dns.ClassCHAOS, dns.ClassHESIOD, dns.ClassNONE, dns.ClassANY, 1000} {
		all[fmt.Sprint("class ", class)] = base(func(m *dns.Msg) { m.Question[0].Qclass = class })
	}
	for _, kind := range []uint16{0, dns.TypeOPT, dns.TypeTSIG, dns.TypeTKEY, dns.TypeMAILA, dns.TypeMAILB, 128, 200, 65535, 65280} {
		all[fmt.Sprint("type ", kind)] = base(func(m *dns.Msg) { m.Question[0].Qtype = kind })
	}
	for _, opcode := range []int{dns.OpcodeIQuery, dns.OpcodeStatus, 3, 6, 7, 15} {
		all[fmt.Sprint("opcode ", opcode)] = base(func(m *dns.Msg) { m.Opcode = opcode })
	}
	all["TC is set"] = base(func(m *dns.Msg) { m.Truncated = true })
	all["AA is set"] = base(func(m *dns.Msg) { m.Authoritative = true })
	all["RA and Z are set"] = base(func(m *dns.Msg) { m.RecursionAvailable, m.Zero = true, true })
	all["code is set"] = base(func(m *dns.Msg) { m.Rcode = 5 })
	record := &dns.A{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 1}, A: net.IPv4(192, 0, 2, 1)}
	all["an answer in the question"] = base(func(m *dns.Msg) { m.Answer = []dns.RR{record} })
	all["authority in the question"] = base(func(m *dns.Msg) { m.Ns = []dns.RR{record} })
	all["a record in the additional section"] = base(func(m *dns.Msg) { m.Extra = []dns.RR{record} })
	all["name that points ahead"] = bytes(base(), func(b []byte) { b[12], b[13] = 0xc0, 40 })
	all["name that points to itself"] = bytes(base(), func(b []byte) { b[12], b[13] = 0xc0, 12 })
	all["label of 64 bytes"] = bytes(base(), func(b []byte) { b[12] = 0x40 })
	return all
}

// TestOddMessagesAreAnsweredAsBINDOrNSDDo compares the header and sections of answers to messages that no resolver sends.
func TestOddMessagesAreAnsweredAsBINDOrNSDDo(t *testing.T) {
	d := &differential{random: rand.New(rand.NewPCG(1, 1)), keys: map[string][]*dns.DNSKEY{}} //nolint:gosec // a test
	d.start(t, variants[0], 2)
	show := func(m *dns.Msg) string {
		if m == nil {
			return "no answer"
		}
		switch m.Rcode {
		case dns.RcodeFormatError, dns.RcodeRefused, dns.RcodeNotImplemented: // each server repeats another part of the query
			return dns.RcodeToString[m.Rcode]
		}
		text := fmt.Sprintf("%s question %d", sections(m), len(m.Question))
		if opt := m.IsEdns0(); opt != nil {
			text += fmt.Sprintf(" EDNS %d %#x", opt.Version(), opt.Z())
		}
		return text
	}
	for what, wire := range oddMessages(d.zones[0].name) {
		var ours *dns.Msg
		if got := d.ours.answer(wire, nil, loopback, true); got != nil {
			ours = new(dns.Msg)
			if err := ours.Unpack(got); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		texts := []string{show(ours), show(ask(t, &d.bind, wire)), show(ask(t, &d.nsd, wire))}
		if texts[0] != texts[1] && texts[0] != texts[2] {
			t.Errorf("%s:\n ours %s\n BIND %s\n  NSD %s", what, texts[0], texts[1], texts[2])
		}
	}
}
