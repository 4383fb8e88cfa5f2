package dhcp

import (
	"encoding/json"
	"errors"

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
	isLost := e.recall.wanted && e.recall.list == 0 && number > 0
	if number <= e.snapshot && !isLost || e.snapshots || e.full.Load() {
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
	failures := e.journal.failures.Load()
	w := &snapshotWriter{e: e}
	e.mu.Lock()
	w.part.ID, w.part.Lost = e.newList()
	e.mu.Unlock()
	w.part.Requested = requested
	for next := slotID(1); next != 0; {
		var err error
		if next, err = w.queue(next); err != nil {
			return err
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

// queue queues a part with the leases from a slot on, and returns the slot to go on with, 0 after the last part. While too many changes
// wait for the disk, it waits as well.
func (w *snapshotWriter) queue(from slotID) (next slotID, err error) {
	e := w.e
	e.mu.Lock()
	if len(e.commits) > maxCommits/2 {
		e.mu.Unlock()
		return from, e.flush()
	}
	defer e.mu.Unlock()
	if next, err = w.collect(from, e.clock.now()); err != nil {
		return 0, err
	}
	if w.part.Last = next == 0; len(w.part.Leases) == 0 && !w.part.Last {
		return next, nil
	}
	entry, err := snapshotEntry(w.part)
	if err != nil {
		return 0, err
	}
	e.enqueue(commit{entries: [][]byte{entry}, undo: func() {}, done: func() {}}) // there is room in the queue, see above
	w.part.Part++
	return next, nil
}

// collect puts the leases from a slot on in the part, up to its maximum size, and returns the slot to go on with. The caller holds the lock
// of the engine.
func (w *snapshotWriter) collect(from slotID, now int64) (next slotID, err error) {
	size := 0
	w.part.Leases = []dhcplease.Lease{}
	next = w.e.table.scan(from, snapshotStep, func(l *lease) bool {
		if l.state == dhcpdata.Free || l.ended || l.expires <= now {
			return true
		}
		one := l.report()
		var text []byte
		if text, err = json.Marshal(one); err != nil {
			return false
		}
		if size += len(text) + 1; size > dhcplease.MaxSnapshotPart && len(w.part.Leases) > 0 {
			return false
		}
		w.part.Leases = append(w.part.Leases, one)
		return true
	})
	return next, err
}

// snapshotEntry returns the entry of a part of a snapshot.
func snapshotEntry(part dhcplease.Snapshot) ([]byte, error) {
	text, err := json.Marshal(part)
	return append([]byte{entrySnapshot}, text...), err
}
