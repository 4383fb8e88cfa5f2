package dhcp

import (
	"log/slog"
	"testing"
	"time"

	"portolan/internal/wire/dhcplease"
	"portolan/internal/wire/dhcppair"
)

// FuzzEntries checks that arbitrary entries of a journal do not make the start panic, and that the leases that they leave can be stored,
// moved and ended.
func FuzzEntries(f *testing.F) {
	one, other := sampleLease("10.0.0.9"), sampleLease("2001:db8::9")
	add := func(entries ...[]byte) {
		var all []byte
		for _, e := range entries {
			all = append(append(all, byte(len(e))), e...)
		}
		f.Add(all)
	}
	add(event(dhcplease.Begin, 100, 0, one), renewal(one), event(dhcplease.Release, 120, 7, endedLease(one, 120)))
	add(other.append([]byte{entryLease}), event(dhcplease.Decline, 5, 0, other), anchor{"boot", 5, 100}.entry(3600))
	add(appendNumber([]byte{entryDamage}, 77), appendNumber([]byte{entryOrder}, 9), []byte("D{}"), []byte(`S{"requested":4}`), []byte("F{}"),
		[]byte("P\x04\x0a\x00\x00\x09"))
	f.Fuzz(func(t *testing.T, text []byte) {
		e := &engine{log: slog.New(slog.DiscardHandler), clock: newClock(time.Unix(150, 0)), performed: map[int64]bool{}, renewals: renewals{},
			pairs: map[int64]*pair{}, statuses: map[int64]dhcppair.Status{}}
		e.table = newTable(e.clock.now)
		for len(text) > 1 {
			n := min(int(text[0]), len(text)-1)
			if n == 0 {
				break
			}
			if e.applyEntry(text[1:1+n]) != nil {
				return // the start fails, and says why
			}
			text = text[1+n:]
		}
		e.shiftLeases(-10)
		for l := range e.table.all {
			if _, err := readLease(l.append(nil)); err != nil {
				t.Fatalf("%+v: %v", l, err)
			}
		}
		for _, l := range e.table.expired(1000) {
			e.table.set(l.address, endedLease(l, 150))
		}
		if _, err := e.renewals.digests(); err != nil {
			t.Fatal(err)
		}
	})
}
