package dhcplease

import (
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// TestPack checks that renewals of both families survive packing, and are small.
func TestPack(t *testing.T) {
	for _, start := range []string{"10.0.0.250", "2001:db8::fffe"} {
		var all []Renewal
		for a, n := netip.MustParseAddr(start), int64(0); n < MaxRenewals; a, n = a.Next(), n+1 {
			all = append(all, Renewal{Address: a, Expires: 1_800_000_000 + n%60})
		}
		packed := Pack(slices.Clone(all))
		got, err := Unpack(packed)
		if err != nil || !slices.Equal(got, all) {
			t.Errorf("%s: %d of %d, %v", start, len(got), len(all), err)
		}
		if len(packed) > 8*len(all) {
			t.Errorf("%d renewals have %d octets", len(all), len(packed))
		}
	}
}

// TestCheck checks that an invalid record is rejected by its field.
func TestCheck(t *testing.T) {
	lease := Lease{Network: 1, Address: netip.MustParseAddr("10.0.0.1"), Start: 1, Expires: 2}
	valid := Record{Journal: "a", Sequence: 1, Event: &Event{Kind: Begin, Lease: lease}}
	if err := valid.Check(); err != nil {
		t.Error(err)
	}
	with := func(change func(*Lease)) Lease {
		l := lease
		change(&l)
		return l
	}
	for want, r := range map[string]Record{
		"journal":         {Sequence: 1, Event: valid.Event},
		"sequence":        {Journal: "a", Event: valid.Event},
		"exactly one":     {Journal: "a", Sequence: 1},
		"renewals.packed": {Journal: "a", Sequence: 1, Renewals: &Renewals{Packed: []byte{4, 15}}},
		"event.kind":      {Journal: "a", Sequence: 1, Event: &Event{Kind: "DANCE", Lease: lease}},
		"event.lease":     {Journal: "a", Sequence: 1, Event: &Event{Kind: Begin}},
		"snapshot.leases": {Journal: "a", Sequence: 1, Snapshot: &Snapshot{Leases: []Lease{{}}}},
		"at: ":            {Journal: "a", Sequence: 1, At: math.MaxInt64, Event: &Event{Kind: Begin, Lease: lease}},
		"year 9999":       {Journal: "a", Sequence: 1, Event: &Event{Kind: Begin, Lease: with(func(l *Lease) { l.Start = math.MaxInt64 })}},
		"prefix length 4": {Journal: "a", Sequence: 1, Event: &Event{Kind: Begin, Lease: with(func(l *Lease) { l.PrefixLength = 4 })}},
		"hexadecimal":     {Journal: "a", Sequence: 1, Event: &Event{Kind: Begin, Lease: with(func(l *Lease) { l.ClientID = "0" })}},
	} {
		if err := r.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// FuzzUnpack checks that arbitrary octets do not panic, and that accepted ones have a packed form.
func FuzzUnpack(f *testing.F) {
	f.Add(Pack([]Renewal{{netip.MustParseAddr("10.0.0.1"), 5}, {netip.MustParseAddr("10.0.0.2"), 7}}))
	f.Fuzz(func(t *testing.T, packed []byte) {
		all, err := Unpack(packed)
		if err != nil || len(all) == 0 {
			return
		}
		if again, err := Unpack(Pack(slices.Clone(all))); err != nil || len(again) != len(all) {
			t.Errorf("%d become %d: %v", len(all), len(again), err)
		}
	})
}
