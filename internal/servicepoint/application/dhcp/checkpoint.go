package dhcp

import "net/netip"

// writeDigests stores the renewals since the last digest for the manager.
func (e *engine) writeDigests() {
	e.mu.Lock()
	pending := e.renewals
	e.renewals = renewals{}
	e.mu.Unlock()
	entries, err := pending.digests()
	if err == nil && len(entries) > 0 {
		err = e.journal.append(entries)
	}
	if err == nil {
		return
	}
	e.log.Error("lease digest failed", "error", err)
	e.mu.Lock()
	defer e.mu.Unlock()
	for network, all := range pending {
		for a, expires := range all {
			if e.renewals[network] == nil {
				e.renewals[network] = map[netip.Addr]int64{}
			}
			if _, newer := e.renewals[network][a]; !newer {
				e.renewals[network][a] = expires
			}
		}
	}
}

// writeCheckpoint writes all leases to a checkpoint. Leases that change meanwhile have records after it.
func (e *engine) writeCheckpoint() error {
	e.writeDigests() // the renewals before the checkpoint are not replayed
	number := e.journal.last.Load()
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
	e.mu.Unlock()
	return e.journal.writeCheckpoint(number, func(add func([]byte) error) error {
		for _, one := range statuses {
			if err := add(one); err != nil {
				return err
			}
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
		return nil
	})
}
