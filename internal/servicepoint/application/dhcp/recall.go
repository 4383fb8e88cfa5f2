package dhcp

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"

	"portolan/internal/wire/dhcpdata"
)

// waitsForLeases is the reason of messages of clients without a known lease, while the manager restores lost leases.
const waitsForLeases = "leases-not-restored"

// recallFile exists in the folder of a new journal until the manager has restored the leases that it knows of this server.
const recallFile = "recall"

// maxRecall is the time in seconds that a server without its leases waits for the manager. After that it serves all clients, and probes
// addresses, as after a damage of the journal.
const maxRecall = 60

// recall is the state of a server whose journal is new, or has lost records: the manager may know leases that it does not.
type recall struct {
	// wanted is true until the leases are restored. isNew is true for a new journal. until is the end of the wait; 0 before the content.
	wanted, isNew bool
	until         int64
	// list is the ID of the first list of leases that the manager completes; 0 before it is written. Later lists have higher IDs.
	list, last int64
}

// startRecall wants the leases back if the journal is new, or damaged.
func (e *engine) startRecall(isNew bool) error {
	path := filepath.Join(e.dir, recallFile)
	if isNew {
		if err := errors.Join(os.WriteFile(path, nil, 0o600), syncFolder(e.dir)); err != nil { //nolint:gosec // in the service point's folder
			return err
		}
	} else if _, err := os.Stat(path); err == nil { //nolint:gosec // in the service point's folder
		isNew = true
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	e.recall = recall{wanted: isNew || e.damaged, isNew: isNew}
	return nil
}

// newList returns the ID of a list of leases, and whether it has to be completed by the manager. The IDs of such lists grow with time. The
// caller holds mu.
func (e *engine) newList() (id uint64, lost bool) {
	if !e.recall.wanted {
		return rand.Uint64(), false //nolint:gosec // it tells lists apart
	}
	e.recall.last = max(e.recall.last+1, e.clock.now()<<30|rand.Int64N(1<<30)) //nolint:gosec // it tells lists apart
	if e.recall.list == 0 {
		e.recall.list = e.recall.last
	}
	return uint64(e.recall.last), true //nolint:gosec // not negative
}

// takeRecall ends the wait if the content has the orders for the lost leases, which were performed, or if the manager does not restore
// leases, as the previous release. Content without a manager, in tests, requests no leases. The caller holds mu.
func (e *engine) takeRecall(s dhcpdata.Server, restores bool) {
	r := &e.recall
	switch {
	case !r.wanted || s.Snapshot == 0:
	case r.list != 0 && s.Restored >= r.list:
		e.log.Info("leases restored", "server", s.Name)
		e.endRecall()
	case !restores:
		e.log.Warn("leases not restored", "reason", "the manager is older than this service point")
		e.serveUnknown()
	case r.until == 0:
		r.until = e.clock.now() + maxRecall
	}
}

// serveUnknown ends the wait without the leases: addresses are probed for a time, as after a damage of the journal. The caller holds mu.
func (e *engine) serveUnknown() {
	e.endRecall()
	if e.recall.isNew {
		e.suspectUntil = e.clock.now() + minSuspicion
		e.enqueue(commit{entries: [][]byte{appendNumber([]byte{entryDamage}, e.suspectUntil)}, undo: func() {}, done: func() {}})
	}
}

// endRecall forgets that leases are wanted. The caller holds mu.
func (e *engine) endRecall() {
	e.recall.wanted = false
	path := filepath.Join(e.dir, recallFile)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) { //nolint:gosec // in the service point's folder
		e.log.Error("lease recovery file not deleted", "error", err)
	}
}

// tickRecall ends the wait when it has taken too long.
func (e *engine) tickRecall() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.recall.wanted || e.recall.until == 0 || e.clock.now() < e.recall.until {
		return
	}
	e.log.Warn("leases not restored", "reason", fmt.Sprintf("the manager has not answered for %d s", maxRecall))
	e.serveUnknown()
}

// waits reports whether an address may belong to a lease that the manager has not restored yet: the client has no lease of it here. The
// caller holds mu.
func (e *engine) waits(a netip.Addr, client string) bool {
	if !e.recall.wanted || e.recall.until == 0 {
		return false
	}
	l := e.table.lease(a)
	return l == nil || l.state != dhcpdata.Leased || l.holder.client != client
}

// refusesUnknown returns the reason why a message waits for the leases of the manager; empty if it does not. The caller holds mu.
func (e *engine) refusesUnknown(r *request, d *dhcpdata.Decision) string {
	if r.facts.Type != dhcpdata.Inform && d.Reply != 0 && e.waits(d.Address, d.Client) {
		return waitsForLeases
	}
	return ""
}

// refusesUnknown6 is refusesUnknown for DHCPv6.
func (e *engine) refusesUnknown6(d *dhcpdata.Decision6) string {
	for _, one := range d.Changes {
		if grants(one.Action) && e.waits(one.Address, one.Client) {
			return waitsForLeases
		}
	}
	return ""
}
