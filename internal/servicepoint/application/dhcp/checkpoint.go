package dhcp

import (
	"portolan/internal/wire/dhcplease"
)

// takeDigests returns the commit of the renewals since the last digest, for the manager; ok is false if there are none. The caller holds mu
// until the commit is in the queue, so that the digest is in the journal after the renewals that it contains.
func (e *engine) takeDigests() (c commit, ok bool) {
	pending := e.renewals
	entries, err := pending.digests()
	if err != nil {
		e.log.Error("lease digest failed", "error", err)
		return c, false
	}
	e.renewals = renewals{}
	undo := func() {
		for network, all := range pending {
			for a, expires := range all {
				if _, newer := e.renewals[network][a]; !newer {
					e.renewals.put(network, a, expires)
				}
			}
		}
	}
	return commit{entries: entries, undo: undo, done: func() {}}, len(entries) > 0
}

// writeDigests stores the renewals since the last digest for the manager.
func (e *engine) writeDigests() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c, ok := e.takeDigests(); ok {
		e.enqueue(c)
	}
}

// writeCheckpoint writes all leases to a checkpoint. Leases that change meanwhile have records after it.
func (e *engine) writeCheckpoint() error {
	number, failures := e.journal.last.Load(), e.journal.failures.Load()
	e.writeDigests() // the renewals before the checkpoint are not replayed
	if err := e.flush(); err != nil {
		return err
	}
	e.mu.Lock()
	orders := make([]int64, 0, len(e.performed))
	for id := range e.performed {
		orders = append(orders, id)
	}
	statuses := append(e.pairEntries(), e.anchor.entry(0), appendNumber([]byte{entryDamage}, e.suspectUntil))
	snapshot, err := snapshotEntry(dhcplease.Snapshot{Last: true, Requested: e.snapshot})
	e.mu.Unlock()
	if err != nil {
		return err
	}
	return e.journal.writeCheckpoint(number, func(add func([]byte) error) error {
		for _, one := range statuses {
			if err := add(one); err != nil {
				return err
			}
		}
		if err := add(snapshot); err != nil {
			return err
		}
		for _, id := range orders {
			if err := add(appendNumber([]byte{entryOrder}, id)); err != nil {
				return err
			}
		}
		for next := slotID(1); next != 0; {
			var entries [][]byte
			e.mu.Lock()
			next = e.table.scan(next, checkpointStep, func(l *lease) bool {
				if e.forgets6(l) {
					e.table.set(l.address, nil)
				} else {
					entries = append(entries, l.append([]byte{entryLease}))
				}
				return true
			})
			e.mu.Unlock()
			for _, one := range entries {
				if err := add(one); err != nil {
					return err
				}
			}
		}
		if err := e.flush(); err != nil {
			return err
		}
		if e.journal.failures.Load() != failures { // a change that the disk refused may be in the checkpoint
			return errNotWritten
		}
		return nil
	})
}
