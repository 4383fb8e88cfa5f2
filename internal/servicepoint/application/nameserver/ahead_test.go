package nameserver

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/wire/zonedata"
)

// awaitSigned waits until no names are left to sign ahead, and returns the number of created signatures.
func (a *nameServer) awaitSigned(t testing.TB) int64 {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); a.ahead.zones() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("names are still to be signed")
		}
	}
	return a.signatures.created.Load()
}

// transferAll reads all RRsets of the only zone, as a transfer does.
func (a *nameServer) transferAll(t testing.TB) (sets int) {
	t.Helper()
	for _, z := range a.served.Load().views[0].zones {
		if err := z.eachSet(time.Now(), func(string, *set) error { sets++; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	return sets
}

// TestSignedAhead checks that neither the first questions nor a transfer create signatures: after the first content, after the same content
// anew, and after each of many small changes.
func TestSignedAhead(t *testing.T) {
	for _, hashed := range []bool{false, true} {
		random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // a test
		keys := given{name: "zone.example."}.signedBy(t, dns.ECDSAP256SHA256, hashed)
		lines := map[string]bool{"www 60 A 192.0.2.1\n": true, "*.wild 60 TXT \"x\"\n": true, "child 60 NS ns.child\n": true,
			"ns.child 60 A 192.0.2.2\n": true}
		at := func(serial, minimum int) given {
			var all []string
			for one := range lines {
				all = append(all, one)
			}
			slices.Sort(all)
			g := given{name: keys.name, signing: keys.signing}
			g.records = fmt.Sprintf("@ 600 SOA ns h %d 60 1 100 %d\n@ 60 NS ns\nns 60 A 192.0.2.1\n", serial, minimum) + keys.records +
				strings.Join(all, "")
			return g
		}
		now := at(0, 60)
		a := start(t, nil, now)
		made := a.awaitSigned(t)
		unchanged := func(what string) {
			t.Helper()
			if again := a.signatures.created.Load(); again != made || made == 0 {
				t.Errorf("hashed %t, %s: %d signatures were created beside the first %d", hashed, what, again-made, made)
				made = again
			}
		}
		for _, name := range []string{"www", "x.wild", "none", "x.none", "child", "ns", "@"} {
			for _, kind := range []uint16{dns.TypeA, dns.TypeTXT, dns.TypeDS, dns.TypeSOA} {
				a.question(t, strings.TrimPrefix(name+".zone.example.", "@."), kind, func(m *dns.Msg) { m.SetEdns0(1232, true) })
			}
		}
		unchanged("questions")
		if sets := a.transferAll(t); sets < 20 {
			t.Errorf("a transfer has %d RRsets", sets)
		}
		unchanged("a transfer")
		whole, _ := content(t, []zonedata.View{{ID: 0, Name: "default"}}, now)
		if err := a.ApplyContent(bytes.NewReader(whole)); err != nil {
			t.Fatal(err)
		}
		a.awaitSigned(t)
		a.transferAll(t)
		unchanged("the same content anew")
		for round := range 60 {
			for range 1 + random.IntN(3) {
				one := fmt.Sprintf("%c.%c.child%d 60 A 192.0.2.%d\n", 'a'+random.IntN(3), 'a'+random.IntN(3), random.IntN(3), random.IntN(2))
				if lines[one] {
					delete(lines, one)
				} else {
					lines[one] = true
				}
			}
			minimum := 60
			switch round {
			case 20: // the TTLs of all proof records
				minimum = 30
			case 40: // names below appear
				delete(lines, "child 60 NS ns.child\n")
			case 50:
				lines["child0 60 NS ns.child\n"] = true
			}
			after := at(round+1, minimum)
			move(t, a, now, after)
			now, made = after, a.awaitSigned(t)
			a.transferAll(t)
			unchanged(fmt.Sprintf("change %d", round))
		}
	}
}

// TestSignaturesAreForgotten checks that the signatures of replaced keys do not remain in memory.
func TestSignaturesAreForgotten(t *testing.T) {
	g := given{name: "harbour.example.", records: harbour}
	a := start(t, nil, g.signedBy(t, dns.ECDSAP256SHA256, false))
	a.awaitSigned(t)
	before := a.transferAll(t)
	text, _ := content(t, []zonedata.View{{ID: 0, Name: "default"}}, g.signedBy(t, dns.ECDSAP256SHA256, false))
	if err := a.ApplyContent(bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	a.awaitSigned(t)
	if after := a.transferAll(t); after != before {
		t.Errorf("%d RRsets, before %d", after, before)
	}
	current, n := a.served.Load().signings(), 0
	for i := range a.signatures.shards {
		for key := range a.signatures.shards[i].now {
			if n++; !current[key.by] {
				t.Errorf("a signature of %q remains", key.owner)
			}
		}
	}
	if n == 0 {
		t.Error("the signatures are missing")
	}
}

// TestCopiedSignaturesLast checks that signatures are kept between transfers and renewed so early that none ends before the next serial.
func TestCopiedSignaturesLast(t *testing.T) {
	g := given{name: "harbour.example.", records: harbour}.signedBy(t, dns.ECDSAP256SHA256, false)
	a := start(t, nil, g)
	made := a.awaitSigned(t)
	z := a.served.Load().views[0].zones["\x07harbour\x07example\x00"]
	validity, renewal := time.Duration(g.signing.Validity)*time.Second, time.Duration(g.signing.Renewal)*time.Second
	for _, c := range []struct {
		age  time.Duration
		kept bool
	}{{0, true}, {(validity-renewal)/2 - time.Hour, true}, {(validity-renewal)/2 + time.Hour, false}} {
		now := time.Now().Add(c.age)
		err := z.eachSet(now, func(owner string, s *set) error {
			if s.kind != dns.TypeRRSIG {
				return nil
			}
			s.eachRecord(0, func(data []byte) bool {
				end := time.Unix(int64(binary.BigEndian.Uint32(data[8:])), 0)
				if least := now.Add(renewal + (validity-renewal)/2 - time.Minute); end.Before(least) {
					t.Errorf("after %s the signature of %q ends at %s, before %s", c.age, owner, end, least)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if again := a.signatures.created.Load(); (again == made) != c.kept {
			t.Errorf("after %s %d signatures were created, want them kept: %t", c.age, again-made, c.kept)
		}
	}
}

// TestSigningAheadEnds checks that a closed name server stops signing.
func TestSigningAheadEnds(t *testing.T) {
	a := start(t, nil, numbered(1, 5000).signedBy(t, dns.ECDSAP256SHA256, false))
	if err := a.Close(); err != nil { // waits for the goroutine
		t.Fatal(err)
	}
	if made := a.signatures.created.Load(); made >= 15_000 {
		t.Errorf("%d signatures were created after the name server was closed", made)
	}
}
