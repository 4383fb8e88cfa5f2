package dhcp

import "net/netip"

// unstoredLease returns the lease of an address if it waits for the disk, otherwise nil. The caller holds mu.
func (e *engine) unstoredLease(a netip.Addr) *lease {
	return e.table.unstored[a]
}

// wait calls send when a lease is on the disk. It returns the reason if it cannot. The caller holds mu.
func (e *engine) wait(l *lease, send func()) (reason string) {
	c := commit{undo: func() {}, done: func() { e.afterStored([]*lease{l}, send) }}
	select {
	case e.commits <- c:
		return ""
	default:
		return busy
	}
}

// afterStored calls send if the leases are on the disk. Their commits are before that of the caller; a failed one was rolled back.
func (e *engine) afterStored(leases []*lease, send func()) {
	e.mu.Lock()
	stored := true
	for _, l := range leases {
		stored = stored && !l.unstored
	}
	e.mu.Unlock()
	if stored {
		send()
	}
}
