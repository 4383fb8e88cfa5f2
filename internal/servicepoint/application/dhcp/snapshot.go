package dhcp

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/netip"

	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"
)

// snapshotStep is the maximum number of addresses that are examined under one lock.
const snapshotStep = 500

// wantSnapshot starts to write the list of all leases for the manager, if the content requests one that was not written. A list that could
// not be written is written again.
func (e *engine) wantSnapshot(number int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if number <= e.snapshot || e.snapshots || e.full.Load() {
		return
	}
	e.snapshots = true
	e.tasks.Go(func() {
		err := e.writeSnapshot(number)
		e.mu.Lock()
		if e.snapshots = false; err == nil {
			e.snapshot = max(e.snapshot, number)
		}
		e.mu.Unlock()
		if err != nil && !errors.Is(err, errStopped) {
			e.log.Error("lease snapshot failed", "error", err)
		}
	})
}

// snapshotWriter writes the list of all leases in parts.
type snapshotWriter struct {
	e    *engine
	part dhcplease.Snapshot
}

// writeSnapshot stores a list of all leases for the manager in the journal, and waits until it is on the disk. Each part contains the
// leases as they are when it is queued: changes of them are before or after it in the queue and in the journal.
func (e *engine) writeSnapshot(requested int64) error {
	e.mu.Lock()
	addresses := make([]netip.Addr, 0, len(e.table.slots))
	for a := range e.table.slots {
		addresses = append(addresses, a)
	}
	e.mu.Unlock()
	failures := e.journal.failures.Load()
	w := &snapshotWriter{e: e}
	w.part.ID, w.part.Requested = rand.Uint64(), requested //nolint:gosec // it tells lists apart
	for {
		n := min(snapshotStep, len(addresses))
		done, err := w.queue(addresses[:n], n == len(addresses))
		if err != nil {
			return err
		}
		if addresses = addresses[done:]; w.part.Last {
			break
		}
	}
	if err := e.flush(); err != nil {
		return err
	}
	if e.journal.failures.Load() != failures {
		return errNotWritten
	}
	return nil
}

// queue queues a part with the leases of the first addresses, and returns their number. last means that no addresses follow these. While
// too many changes wait for the disk, it waits as well.
func (w *snapshotWriter) queue(addresses []netip.Addr, last bool) (done int, err error) {
	e := w.e
	e.mu.Lock()
	if len(e.commits) > maxCommits/2 {
		e.mu.Unlock()
		return 0, e.flush()
	}
	defer e.mu.Unlock()
	if done, err = w.collect(addresses, e.clock.now()); err != nil {
		return 0, err
	}
	if w.part.Last = last && done == len(addresses); len(w.part.Leases) == 0 && !w.part.Last {
		return done, nil
	}
	entry, err := snapshotEntry(w.part)
	if err != nil {
		return 0, err
	}
	e.enqueue(commit{entries: [][]byte{entry}, undo: func() {}, done: func() {}}) // there is room in the queue, see above
	w.part.Part++
	return done, nil
}

// collect puts the leases of the first addresses in the part, up to its maximum size, and returns the number of these addresses. The caller
// holds the lock of the engine.
func (w *snapshotWriter) collect(addresses []netip.Addr, now int64) (done int, err error) {
	size := 0
	w.part.Leases = []dhcplease.Lease{}
	for i, a := range addresses {
		s := w.e.table.slots[a]
		if s == nil || s.lease == nil || s.lease.state == dhcpdata.Free || s.lease.ended || s.lease.expires <= now {
			continue
		}
		one := s.lease.report()
		text, err := json.Marshal(one)
		if err != nil {
			return 0, err
		}
		if size += len(text) + 1; size > dhcplease.MaxSnapshotPart && len(w.part.Leases) > 0 {
			return i, nil
		}
		w.part.Leases = append(w.part.Leases, one)
	}
	return len(addresses), nil
}

// snapshotEntry returns the entry of a part of a snapshot.
func snapshotEntry(part dhcplease.Snapshot) ([]byte, error) {
	text, err := json.Marshal(part)
	return append([]byte{entrySnapshot}, text...), err
}
