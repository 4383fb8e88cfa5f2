package nameserver

import (
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
)

// named starts BIND with zones and returns a connection to it. It skips the test if BIND is not installed.
func named(t *testing.T, zones ...given) *dns.Conn {
	t.Helper()
	program := peers.Program(t, "named")
	dir, at := t.TempDir(), freeport.Reserve(t)
	configuration := fmt.Sprintf(`options { directory %q; listen-on port %d { 127.0.0.1; }; listen-on-v6 { none; }; pid-file none;
		session-keyfile none; recursion no; minimal-responses yes; minimal-any yes; notify no; tcp-clients 10;
		zero-no-soa-ttl no; empty-zones-enable no; allow-transfer { any; }; }; controls { };
`, dir, at.Port())
	for i, z := range zones {
		file := fmt.Sprintf("zone%d", i)
		if err := os.WriteFile(filepath.Join(dir, file), []byte("$ORIGIN "+z.name+"\n"+z.records), 0o600); err != nil {
			t.Fatal(err)
		}
		if z.signing != nil {
			z.signAsBind(t, dir, file)
		}
		configuration += fmt.Sprintf("zone %q { type primary; file %q; check-names ignore; check-integrity no; };\n", z.name, file)
	}
	runNamed(t, program, dir, configuration)
	return connected(t, dir, at)
}

// runNamed starts BIND with a configuration.
func runNamed(t *testing.T, program, dir, configuration string) {
	t.Helper()
	conf := filepath.Join(dir, "named.conf")
	if err := os.WriteFile(conf, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, "-g", "-n", "1", "-c", conf) //nolint:gosec // the installed program
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		_ = log.Close()
	})
}

// connected waits until BIND answers.
func connected(t *testing.T, dir string, at netip.AddrPort) *dns.Conn {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := (&dns.Client{Net: "tcp", Timeout: time.Second}).Dial(at.String())
		if err == nil {
			t.Cleanup(func() { _ = conn.Close() })
			return conn
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(filepath.Join(dir, "log"))
			t.Fatalf("named does not answer: %v\n%s", err, text)
		}
	}
}

// furtherData is data of record types without special handling, in zone file format; some of it refers to hosts.
var furtherData = []string{"AAAA 2001:db8::1", "AAAA 2001:db8::2", "SRV 0 1 80 a", "SRV 0 1 80 far.example.", "PTR b", "HINFO PC Linux",
	`NAPTR 1 2 "u" "x" "!a!b!" .`, `CAA 0 issue "ca.example"`, "TLSA 3 1 1 " + strings.Repeat("ab", 32), "SSHFP 1 1 " + strings.Repeat("cd", 20),
	"LOC 59 0 0 N 10 0 0 E 5m 1m 1m 1m", "RP h.far.example. .", "AFSDB 1 a", "KX 1 b", "SVCB 1 a alpn=h2", "HTTPS 1 . alpn=h2",
	`URI 1 2 "https://x/"`, "CERT 1 2 3 AAAA", "DHCID AAAA", `SPF "v=spf1 -all"`, "TYPE65400 \\# 2 0102", "MX 1 far.example."}

// randomZone creates a zone with all features of zones and few names, so that they interact.
func randomZone(random *rand.Rand) (g given, names []string) {
	labels := []string{"a", "b", "c", "*", "d"}
	name := func() string {
		parts := make([]string, 1+random.IntN(3))
		for i := range parts {
			parts[i] = labels[random.IntN(len(labels))]
		}
		return strings.Join(parts, ".")
	}
	var text strings.Builder
	text.WriteString("@ 3600 SOA ns h 1 1 1 1 60\n@ 3600 NS ns\n@ 3600 NS ns.far.example.\nns 3600 A 192.0.2.1\n")
	alias, taken, below := map[string]bool{}, map[string]bool{"ns": true}, map[string]bool{}
	for range 5 + random.IntN(20) {
		n := name()
		kind := random.IntN(14)
		switch {
		case alias[n] || below[n]:
		case kind == 0 && !taken[n]:
			alias[n] = true
			target := name()
			if random.IntN(4) == 0 {
				target = "far.example."
			}
			fmt.Fprintf(&text, "%s 60 CNAME %s\n", n, target)
		case kind == 1 && !strings.HasPrefix(n, "*"):
			taken[n] = true
			fmt.Fprintf(&text, "%s 60 NS ns.%s\nns.%s 60 A 192.0.2.2\n%s 60 NS ns\n", n, n, n, n)
			if random.IntN(2) == 0 {
				fmt.Fprintf(&text, "%s 60 DS 1 13 2 %s\n", n, strings.Repeat("ef", 32))
			}
			names = append(names, "ns."+n)
		case kind == 2 && !strings.Contains(n, "*") && !taken[n]:
			below[n] = true
			fmt.Fprintf(&text, "%s 60 DNAME %s.far.example.\n", n, labels[random.IntN(3)])
		case kind == 3:
			taken[n] = true
			fmt.Fprintf(&text, "%s 60 MX 10 %s\n", n, name())
		case kind == 4:
			taken[n] = true
			fmt.Fprintf(&text, "%s 60 TXT \"%d\"\n%s 60 TXT \"two\"\n", n, random.IntN(3), n)
		case kind > 9:
			taken[n] = true
			for range 1 + random.IntN(3) {
				fmt.Fprintf(&text, "%s 60 %s\n", n, furtherData[random.IntN(len(furtherData))])
			}
		default:
			taken[n] = true
			fmt.Fprintf(&text, "%s 60 A 192.0.2.%d\n%s 60 A 192.0.2.%d\n", n, 10+random.IntN(3), n, 20+random.IntN(3))
		}
		names = append(names, n)
	}
	lines := slices.Compact(slices.Sorted(strings.Lines(text.String()))) // the SOA at the apex is the first line
	return given{records: strings.Join(lines, "")}, names
}

// needed returns the glue addresses that a referral requires; other addresses are optional.
func needed(m *dns.Msg) (glue []dns.RR) {
	for _, rr := range m.Extra {
		if len(m.Ns) > 0 && m.Ns[0].Header().Rrtype == dns.TypeNS && dns.IsSubDomain(m.Ns[0].Header().Name, rr.Header().Name) {
			glue = append(glue, rr)
		}
	}
	return glue
}

// TestAnswersMatchBIND checks that this name server and BIND return the same code, flags, answer, referral and negative proof. Accepted
// differences: any RRset answers ANY (RFC 8482). Queries for NSEC itself are not compared, because BIND returns that of a wildcard under
// the query's name. With alias loops only SERVFAIL is compared.
func TestAnswersMatchBIND(t *testing.T) { asNamed(t, 100, func(g given) given { return g }) }

// asNamed sends BIND and this name server the same queries for random zones.
func asNamed(t *testing.T, zones int, prepare func(given) given) {
	t.Helper()
	random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // a test
	questions := 200
	if os.Getenv("PORTOLAN_TEST_LONG") != "" {
		questions = 500
	}
	var all []given
	var names [][]string
	for i := range zones {
		g, n := randomZone(random)
		g.name = fmt.Sprintf("zone%d.example.", i)
		all, names = append(all, prepare(g)), append(names, n)
	}
	conn := named(t, all...)
	a := start(t, nil, all...)
	kinds := []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeTXT, dns.TypeMX, dns.TypeNS, dns.TypeCNAME, dns.TypeDS, dns.TypeDNAME, dns.TypeSOA,
		dns.TypeDNSKEY, dns.TypeNSEC3PARAM, dns.TypeCDS, dns.TypeCDNSKEY}
	for _, text := range furtherData {
		rr, err := dns.NewRR("x.example. 60 " + text)
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, rr.Header().Rrtype)
	}
	differences := 0
	for i, z := range all {
		for range questions {
			name := z.name
			switch random.IntN(8) {
			case 0:
			case 1, 2:
				name = []string{"a", "b", "e", "*", "c.a"}[random.IntN(5)] + "." + names[i][random.IntN(len(names[i]))] + "." + z.name
			case 3:
				name = []string{"e", "a", "e.b", "a.e.c", "*", "ns"}[random.IntN(6)] + "." + z.name
			default:
				name = names[i][random.IntN(len(names[i]))] + "." + z.name
			}
			m := new(dns.Msg)
			m.SetQuestion(name, kinds[random.IntN(len(kinds))])
			m.RecursionDesired = false
			m.SetEdns0(1232, random.IntN(2) == 0)
			if err := conn.WriteMsg(m); err != nil {
				t.Fatal(err)
			}
			theirs, err := conn.ReadMsg()
			if err != nil {
				t.Fatal(err)
			}
			wire, err := m.Pack()
			if err != nil {
				t.Fatal(err)
			}
			ours := new(dns.Msg)
			if err := ours.Unpack(a.answer(wire, nil, loopback, true)); err != nil {
				t.Fatal(err)
			}
			theirs.Extra, ours.Extra = needed(theirs), needed(ours)
			if theirs.Rcode == dns.RcodeServerFailure && ours.Rcode == theirs.Rcode { // alias loops
				continue
			}
			plainSignatures(t, &z, theirs)
			plainSignatures(t, &z, ours)
			if z.signing != nil || z.primaries != nil {
				withoutEmptyWildcard(theirs, ours)
			}
			if got, want := words(ours), words(theirs); got != want {
				if differences++; differences < 10 {
					t.Errorf("%s %s:\n ours %s\ntheirs %s\nof\n%s", name, dns.TypeToString[m.Question[0].Qtype], got, want, z.records)
				}
			}
		}
	}
	if differences > 0 {
		t.Errorf("%d of %d answers differ", differences, zones*questions)
	}
}
