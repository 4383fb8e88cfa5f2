package dhcp

import (
	"bufio"
	"bytes"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"

	envelopes "portolan/internal/wire/content"
	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"
)

// managed returns content of a manager: with a request for all leases, and the ID of the list that it has completed.
func managed(t testing.TB, number, restored int64, more ...dhcpdata.Item) dhcpdata.Units {
	t.Helper()
	u := units(t, append(more, noPing)...)
	u[dhcpdata.ServerUnit] = unit(t, dhcpdata.ServerUnit, dhcpdata.Server{ID: 1, Name: "buoy", Configuration: 2, Snapshot: number,
		Restored: restored, Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
	return u
}

// lostList returns the ID of the list of a server that has lost leases, when it is complete.
func lostList(t *testing.T, s *service) (id int64) {
	t.Helper()
	collected(t, s, func(all []dhcplease.Record) bool {
		s.engine.mu.Lock()
		id = s.engine.recall.list
		s.engine.mu.Unlock()
		return slices.ContainsFunc(all, func(r dhcplease.Record) bool {
			return isLost(r) && r.Snapshot.ID == uint64(id) //nolint:gosec // not negative
		})
	})
	return id
}

// isLost reports whether a record is the last part of the list of a server that has lost leases.
func isLost(r dhcplease.Record) bool { return r.Snapshot != nil && r.Snapshot.Last && r.Snapshot.Lost }

// silent fails the test if the server answers a message of a new client. A client that is served for certain asks after it.
func silent(t *testing.T, s *service, c *client) {
	t.Helper()
	before := refusals(s, waitsForLeases)
	if _, err := c.conn.Write(message(t, c, dhcpv4.MessageTypeDiscover)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return refusals(s, waitsForLeases) > before })
}

// TestLostLeases checks that a server with a new journal serves no client until the manager has restored the leases that it knows, also
// after a restart, and that the restored address is not given to another client.
func TestLostLeases(t *testing.T) {
	dir := t.TempDir()
	s, address := start(t, dir, managed(t, 5, 0))
	lostList(t, s)
	silent(t, s, dial(t, address, 1))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, address = start(t, dir, managed(t, 5, 0))
	id := lostList(t, s)
	silent(t, s, dial(t, address, 2))
	now := s.engine.clock.now()
	deliver(t, func(text []byte) error { return s.ApplyContent(bytes.NewReader(text)) },
		managed(t, 6, id-1, restore(101, "10.0.100.0", 7, now-100, now+1000)))
	silent(t, s, dial(t, address, 3))
	deliver(t, func(text []byte) error { return s.ApplyContent(bytes.NewReader(text)) },
		managed(t, 7, id, restore(101, "10.0.100.0", 7, now-100, now+1000)))
	if got := dial(t, address, 7).lease(); got != "10.0.100.0" {
		t.Errorf("the holder of the restored lease gets %q", got)
	}
	for n := byte(20); n < 40; n++ {
		if got := dial(t, address, n).lease(); got == "" || got == "10.0.100.0" {
			t.Errorf("a new client gets %q", got)
		}
	}
	if _, err := os.Stat(filepath.Join(s.engine.dir, recallFile)); err == nil {
		t.Error("the server would wait again after a restart")
	}
}

// TestLeasesAreNotRestored checks that a server whose leases the manager does not restore serves after a minute, and probes addresses.
func TestLeasesAreNotRestored(t *testing.T) {
	t.Parallel()
	s, address := start(t, t.TempDir(), managed(t, 5, 0))
	silent(t, s, dial(t, address, 1))
	s.engine.mu.Lock()
	s.engine.recall.until = s.engine.clock.now()
	s.engine.mu.Unlock()
	waitFor(t, func() bool { return dial(t, address, 1).ask(dhcpv4.MessageTypeDiscover) != nil })
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	if s.engine.suspectUntil <= s.engine.clock.now() {
		t.Error("addresses are not probed")
	}
}

// TestLeasesUnderOlderManager checks that a server with a new journal serves at once if the content is that of a manager of the previous
// release, which does not restore leases, and that it probes addresses.
func TestLeasesUnderOlderManager(t *testing.T) {
	t.Parallel()
	s, address := start(t, t.TempDir(), managed(t, 5, 0))
	silent(t, s, dial(t, address, 1))
	deliver(t, func(text []byte) error {
		in := bufio.NewReader(bytes.NewReader(text))
		e, err := envelopes.Read(in)
		if err != nil || !e.Restores {
			t.Fatal(e, err)
		}
		e.Restores = false
		head, err := e.Bytes()
		if err != nil || bytes.Contains(head, []byte("restores")) {
			t.Fatal(string(head), err)
		}
		return s.ApplyContent(io.MultiReader(bytes.NewReader(head), in))
	}, managed(t, 6, 0))
	if m := dial(t, address, 1).ask(dhcpv4.MessageTypeDiscover); m == nil {
		t.Error("a new client is not served")
	}
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	if s.engine.recall.wanted || s.engine.suspectUntil <= s.engine.clock.now() {
		t.Errorf("leases are wanted: %t; addresses are probed until %d", s.engine.recall.wanted, s.engine.suspectUntil)
	}
}

// TestDamagedJournalIsCompleted checks that a server with a damaged journal renews the leases that it knows, and asks the manager for the
// others before it serves a new client.
func TestDamagedJournalIsCompleted(t *testing.T) {
	dir := t.TempDir()
	s, address := start(t, dir, managed(t, 5, 0), func(s *service) { s.engine.endRecall() })
	known := dial(t, address, 1)
	a := known.lease()
	if err := s.Close(); err != nil || a == "" {
		t.Fatal(err, a)
	}
	s, address = start(t, dir, managed(t, 5, 0), func(s *service) {
		s.engine.mu.Lock()
		defer s.engine.mu.Unlock()
		s.engine.damaged = true
		if err := s.engine.startRecall(false); err != nil {
			t.Fatal(err)
		}
	})
	id := lostList(t, s)
	silent(t, s, dial(t, address, 2))
	if m := dial(t, address, 1).renew(a); m == nil || m.MessageType() != dhcpv4.MessageTypeAck {
		t.Errorf("the renewal of a known lease: %v", m)
	}
	deliver(t, func(text []byte) error { return s.ApplyContent(bytes.NewReader(text)) }, managed(t, 6, id))
	if got := dial(t, address, 2).lease(); got == "" || got == a {
		t.Errorf("a new client gets %q", got)
	}
}
