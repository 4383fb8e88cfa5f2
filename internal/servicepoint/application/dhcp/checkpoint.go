package dhcp

import (
	"net/netip"

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
	addresses := make([]netip.Addr, 0, len(e.table.slots))
	for a, s := range e.table.slots {
		if s.lease != nil {
			addresses = append(addresses, a)
		}
	}
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
		for at := 0; at < len(addresses); at += checkpointStep {
			var entries [][]byte
			e.mu.Lock()
			for _, a := range addresses[at:min(at+checkpointStep, len(addresses))] {
				if s := e.table.slots[a]; s != nil && s.lease != nil && e.forgets6(s.lease) {
					e.table.set(a, nil)
				} else if s != nil && s.lease != nil {
					entries = append(entries, s.lease.append([]byte{entryLease}))
				}
			}
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
