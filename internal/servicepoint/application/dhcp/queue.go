package dhcp

import "errors"

// enqueue adds a commit to the queue, or undoes it if the queue is full. The caller holds mu.
func (e *engine) enqueue(c commit) (queued bool) {
	select {
	case e.commits <- c:
		return true
	default:
		c.undo()
		return false
	}
}

// undo rolls back a group that was not written, and all commits in the queue: they may build on it, and a renewal without the beginning of
// its lease would be lost after a restart. Afterwards the table contains what the disk contains.
func (e *engine) undo(group []commit) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for waiting := true; waiting; {
		select {
		case c := <-e.commits:
			group = append(group, c)
		default:
			waiting = false
		}
	}
	for i := len(group) - 1; i >= 0; i-- {
		group[i].undo()
	}
}

var (
	errNotWritten = errors.New("a change of leases could not be written, or too many are waiting")
	errStopped    = errors.New("the server stops")
)

// flush waits until all commits of the queue are on the disk. It returns an error if one of them has failed.
func (e *engine) flush() error {
	result := make(chan error, 1)
	e.mu.Lock()
	e.enqueue(commit{undo: func() { result <- errNotWritten }, done: func() { result <- nil }})
	e.mu.Unlock()
	select {
	case err := <-result:
		return err
	case <-e.committed: // the queue has no reader any more
	}
	select {
	case err := <-result:
		return err
	default:
		return errStopped
	}
}

// tryDisk writes a record without a meaning, to find out whether the disk accepts writes again.
func (e *engine) tryDisk() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.enqueue(commit{entries: [][]byte{{entryOrder, 0}}, undo: func() {}, done: func() {}})
}

// commitAll stores commits in groups with one sync each.
func (e *engine) commitAll() {
	defer close(e.committed)
	for {
		var group []commit
		select {
		case c := <-e.commits:
			group = append(group, c)
		case <-e.stop:
			select {
			case c := <-e.commits:
				group = append(group, c)
			default:
				return
			}
		}
		for len(group) < maxGroup && len(e.commits) > 0 {
			group = append(group, <-e.commits)
		}
		e.commitGroup(group)
	}
}

func (e *engine) commitGroup(group []commit) {
	var entries [][]byte
	for _, c := range group {
		entries = append(entries, c.entries...)
	}
	e.names.prepare(group)
	var err error
	if len(entries) > 0 || e.full.Load() { // a disk that has failed is tried also without entries
		err = e.journal.append(entries)
	}
	if err != nil {
		e.undo(group)
		if !e.full.Swap(true) {
			e.log.Error("lease journal write failed", "error", err)
		}
		e.counters.refuse(0, journalFull)
		return
	}
	if len(entries) > 0 && e.full.Swap(false) {
		e.log.Info("lease journal write succeeded again")
	}
	e.mu.Lock()
	for _, c := range group {
		for _, l := range c.leases {
			e.table.stored(l)
		}
	}
	e.mu.Unlock()
	e.outbox.openBatch()
	for _, c := range group {
		e.names.applyLeases(c.named)
		c.done()
	}
	e.outbox.closeBatch()
}

// commitRest stores the commits that are left when the engine stops, and the digests.
func (e *engine) commitRest() {
	var group []commit
	for len(e.commits) > 0 {
		group = append(group, <-e.commits)
	}
	if len(group) > 0 {
		e.commitGroup(group)
	}
	e.mu.Lock()
	c, ok := e.takeDigests()
	e.mu.Unlock()
	if ok {
		e.commitGroup([]commit{c})
	}
}

// keepRenewal returns a function that sets the renewal of an address as it is now, for undo. The caller of both holds mu.
func (e *engine) keepRenewal(l *lease) func() {
	expires, had := e.renewals[l.network][l.address]
	return func() {
		if e.renewals.forget(l); had {
			e.renewals.put(l.network, l.address, expires)
		}
	}
}
