package dhcp

import (
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"portolan/internal/wire/dhcpdata"
)

// TestClockAcrossRestarts checks that a step of the wall clock between two processes changes the rest of no lease, that the clock does not
// go back behind a record after a boot, and that each of these survives further restarts.
func TestClockAcrossRestarts(t *testing.T) {
	for name, one := range map[string]struct {
		boot     string
		up, wall int64 // seconds later
		// want is the rest of a lease of 3,600 s.
		want int64
	}{
		"a restart after 100 s":       {"a", 100, 100, 3500},
		"set forward by a day":        {"a", 100, 100 + 86400, 3500},
		"set back by a day":           {"a", 100, 100 - 86400, 3500},
		"set back to 1970":            {"a", 100, -1_700_000_000, 3500},
		"a boot":                      {"b", 30, 200, 3400},
		"a boot without a clock":      {"b", 30, -1_700_000_000, 3600},
		"a boot of an unknown system": {"", 0, 200, 3400},
	} {
		dir, start := t.TempDir(), time.Now()
		engineAt := func(boot string, up, wall int64) *engine {
			e, damaged, err := newEngine(dir, slog.New(slog.DiscardHandler), journalOptions{times: &times{
				wall: func() time.Time { return start.Add(time.Duration(wall) * time.Second) },
				boot: func() (string, int64) { return boot, up }}}, nil)
			if err != nil || damaged != nil {
				t.Fatal(err, damaged)
			}
			return e
		}
		e := engineAt("a", 1000, 0)
		deliver(t, (&service{engine: e}).engineTake, units(t, noPing, option("default-lease-time", 3600)))
		replies := make(chan *dhcpdata.Decision, 1)
		askEngine(t, e, 1, "10.0.1.5", replies)
		<-replies
		rest := func() int64 { return e.table.lease(netip.MustParseAddr("10.0.1.5")).expires - e.clock.now() }
		if got := rest(); got < 3598 || got > 3600 {
			t.Fatalf("%s: the rest of a new lease is %d", name, got)
		}
		for range 2 { // also a second restart, and one after a checkpoint
			if err := e.close(); err != nil {
				t.Fatal(err)
			}
			e = engineAt(one.boot, 1000+one.up, one.wall)
			if got := rest(); got < one.want-2 || got > one.want {
				t.Errorf("%s: the rest is %d, want %d", name, got, one.want)
			}
			if err := e.writeCheckpoint(); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDamagedLeases checks that a server with a damaged record knows the other leases, reports the damage in its health, probes addresses
// that it may not know, and does so after another restart.
func TestDamagedLeases(t *testing.T) {
	dir := t.TempDir()
	s, address := start(t, dir, units(t, noPing))
	for n := range byte(9) {
		dial(t, address, n+10).lease()
	}
	path := s.engine.journal.path(1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		probed := make(chan netip.Addr, 10)
		s, address = start(t, dir, units(t, noPing), func(s *service) {
			s.engine.probe = func(a netip.Addr, _ uint32) (net.HardwareAddr, bool) { probed <- a; return nil, false }
		})
		if (s.damaged != nil) != (round == 0) || !strings.Contains(strings.Join(s.Health(), " "), "damaged") {
			t.Errorf("round %d: %v %v", round, s.damaged, s.Health())
		}
		s.engine.mu.Lock()
		n := s.engine.table.CountUsed(8)
		s.engine.mu.Unlock()
		if n != 8+uint64(round) {
			t.Errorf("round %d: %d leases", round, n)
		}
		if a := dial(t, address, byte(100+round)).lease(); a != (<-probed).String() {
			t.Errorf("round %d: %s was not probed", round, a)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
