package zonedata

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	dns "portolan/internal/base/dnsmsg"
)

func record(t testing.TB, text string) Record {
	t.Helper()
	rr, err := dns.NewRR(text)
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewRecord(rr)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestOrder checks that names are sorted in canonical order (the example of RFC 4034 section 6.1).
func TestOrder(t *testing.T) {
	names := []string{"example.", "a.example.", "yljkjljk.a.example.", "Z.a.example.", "zABC.a.EXAMPLE.", "z.example.", "\\001.z.example.",
		"*.z.example.", "\\200.z.example."}
	var entries []Entry
	for _, name := range names {
		r := record(t, name+" 60 IN A 192.0.2.1")
		entries = append(entries, NewEntry(r))
	}
	sorted := slices.Clone(entries)
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(sorted), func(i, j int) { sorted[i], sorted[j] = sorted[j], sorted[i] }) //nolint:gosec // a test
	slices.SortFunc(sorted, Entry.Compare)
	for i := range names {
		if !bytes.Equal(sorted[i].Record(), entries[i].Record()) {
			rr, err := sorted[i].Record().RR()
			t.Errorf("at %d stands %v %v, not %s", i, rr, err, names[i])
		}
	}
}

// TestHash checks that the hash of a zone does not depend on the order, and that undoing a change restores the previous hash.
func TestHash(t *testing.T) {
	var one, other Hash
	a, b := record(t, "a.example. 60 IN A 192.0.2.1"), record(t, "a.example. 61 IN A 192.0.2.1")
	one.Add(a)
	one.Add(b)
	other.Add(b)
	other.Add(a)
	if one != other || one == (Hash{}) {
		t.Errorf("%s and %s", one, other)
	}
	if read, err := ParseHash(one.String()); err != nil || read != one {
		t.Errorf("%s %v", read, err)
	}
	one.Remove(a)
	one.Remove(b)
	if one != (Hash{}) {
		t.Error(one)
	}
	r := Revision{7, other}
	if read, err := ParseRevision(r.String()); err != nil || read != r {
		t.Errorf("%s %v", read, err)
	}
	for _, text := range []string{"", "7", "-1-" + other.String(), "x-" + other.String(), "7-00"} {
		if _, err := ParseRevision(text); err == nil {
			t.Errorf("%q is a revision", text)
		}
	}
}

// TestDiff checks that applying a difference to the first list results in the second. Consecutive differences accumulate to their Net.
func TestDiff(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6)) //nolint:gosec // a test
	list := func() (all []Entry) {
		for i := range 20 {
			if random.IntN(2) == 0 {
				r := record(t, fmt.Sprintf("n%d.example. 60 IN A 192.0.2.%d", i/3, i))
				all = append(all, NewEntry(r))
			}
		}
		slices.SortFunc(all, Entry.Compare)
		return all
	}
	for range 50 {
		first := list()
		last, net := first, Net{}
		for range 3 {
			next := list()
			removed, added := Diff(last, next)
			for _, e := range removed {
				net.Removed(e.Record())
			}
			for _, e := range added {
				net.Added(e.Record())
			}
			last = next
		}
		removed, added := Diff(first, last)
		if len(net) != len(removed)+len(added) {
			t.Fatalf("%d of %d and %d", len(net), len(removed), len(added))
		}
		for _, e := range removed {
			if net[string(e.Record())] != -1 {
				t.Error("something is removed, and not in the net")
			}
		}
		for _, e := range added {
			if net[string(e.Record())] != 1 {
				t.Error("something is added, and not in the net")
			}
		}
	}
}

// TestAccessListDecides checks that the first matching element decides. A nested list that refuses a client does not match.
func TestAccessListDecides(t *testing.T) {
	at := func(text string) Match { return Match{Prefix: netip.MustParsePrefix(text)} }
	not := func(m Match) Match { m.Not = true; return m }
	inner := Match{List: []Match{not(at("10.1.0.0/16")), at("10.0.0.0/8")}}
	for _, c := range []struct {
		list   []Match
		client string
		want   bool
	}{
		{[]Match{at("10.0.0.0/8")}, "10.1.2.3", true},
		{[]Match{at("10.0.0.0/8")}, "::ffff:10.1.2.3", true},
		{[]Match{at("10.0.0.0/8")}, "192.0.2.1", false},
		{[]Match{not(at("10.1.0.0/16")), at("10.0.0.0/8")}, "10.1.2.3", false},
		{[]Match{inner, at("10.1.2.0/24")}, "10.1.2.3", true},
		{[]Match{inner}, "10.1.2.3", false},
		{[]Match{not(inner), at("0.0.0.0/0")}, "10.2.2.3", false},
		{[]Match{not(inner), at("0.0.0.0/0")}, "10.1.2.3", true},
		{[]Match{{}}, "10.1.2.3", false},
		{[]Match{}, "10.1.2.3", false},
	} {
		if got := Allows(c.list, Client{Address: netip.MustParseAddr(c.client)}, true); got != c.want {
			t.Errorf("%+v of %s: %v", c.list, c.client, got)
		}
	}
	if !Allows(nil, Client{}, true) || Allows(nil, Client{}, false) {
		t.Error("no list says something")
	}
}
