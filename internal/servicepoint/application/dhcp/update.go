package dhcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"
)

// revision returns the revision of the content in use.
func (e *engine) revision() string { return e.content.Load().revision }

// takeContent applies content streams. Messages are decided on by the content before until the new content is complete. If one of several
// streams is invalid, the content before it is used.
func (e *engine) takeContent(in io.Reader) error {
	before := e.content.Load()
	last, units, invalid := dhcpdata.ReadAll(in, before.revision, before.units)
	revision := last.To
	if invalid != nil && revision == before.revision {
		return invalid
	}
	compiled, err := dhcpdata.Compile(units, before.compiled)
	if err != nil {
		return errors.Join(invalid, err)
	}
	e.mu.Lock()
	e.content.Store(&content{revision: revision, units: units, compiled: compiled, thresholds: compiled.Thresholds()})
	e.moveLeases(before.compiled, compiled, changedNetworks(before.units, units))
	for _, pool := range compiled.ChangedPools(before.compiled) {
		e.table.resetCursor(pool)
	}
	e.configurePairs(compiled)
	e.performOrders(compiled)
	e.takeRecall(compiled.Server, last.Restores)
	e.names.setContent(compiled)
	e.mu.Unlock()
	e.wantSnapshot(compiled.Server.Snapshot)
	return invalid
}

// moveLeases gives former and current leases to the ranges that contain their addresses now, so that new clients can get the addresses. The
// caller holds mu.
func (e *engine) moveLeases(before, after *dhcpdata.Content, networks []int64) {
	gained, total := map[int64][]dhcpdata.Interval{}, uint64(0)
	for _, id := range networks {
		all, count := after.Gained(before, id)
		gained[id] = all
		total = max(total, total+count, count) // a sum beyond the largest number is not smaller
	}
	move := func(l *lease) {
		if l.unstored || gained[l.network] == nil { // an unstored lease moves when it is renewed
			return
		}
		if pool := after.PoolAt(l.network, l.address); pool != l.pool && pool != 0 {
			moved := *l
			moved.pool = pool
			e.table.set(l.address, &moved)
		}
	}
	if total > uint64(e.table.slots.used) {
		for l := range e.table.all {
			move(l)
		}
		return
	}
	for _, all := range gained {
		for _, i := range all {
			for a := i.First; i.Contains(a); a = a.Next() {
				if l := e.table.lease(a); l != nil {
					move(l)
				}
			}
		}
	}
}

// changedNetworks returns the ids of the networks whose units differ.
func changedNetworks(before, after dhcpdata.Units) (ids []int64) {
	for id, one := range after {
		if n, ok := dhcpdata.NetworkOf(id); ok && (before[id] == nil || before[id].Hash != one.Hash) {
			ids = append(ids, n)
		}
	}
	return ids
}

// performOrders performs the orders in the content that were not performed yet, and forgets those that are not in it any more. The caller
// holds mu.
func (e *engine) performOrders(c *dhcpdata.Content) {
	present := map[int64]bool{}
	restores := restored{e: e}
	for network, all := range c.Orders() {
		for _, o := range all {
			present[o.ID] = true
			if !e.performed[o.ID] {
				e.performed[o.ID] = true // an order that cannot be stored is forgotten again
				if o.Lease != nil {
					restores.perform(c, network, o)
				} else {
					e.perform(network, o)
				}
			}
		}
	}
	restores.flush()
	for id := range e.performed {
		if !present[id] {
			delete(e.performed, id)
		}
	}
}

// endedSeconds is the time that the address of an infinite lease is not leased after an operator has ended it.
const endedSeconds = 86400

// perform performs an order. The caller holds mu.
func (e *engine) perform(network int64, o dhcpdata.Order) {
	now := e.clock.now()
	before := e.table.lease(o.Address)
	switch {
	case before == nil:
	case o.Action == dhcpdata.ClearAddress && before.state == dhcpdata.Abandoned && (before.expires > now || e.isHeldByPair(before)):
		e.change(before, endedLease(before, now), dhcplease.Clear, o.ID)
		return
	case before.expires <= now:
	case o.Start != 0 && o.Action == dhcpdata.EndLease && before.start != o.Start: // the lease that the operator saw has ended
	case o.Action == dhcpdata.EndLease && before.state == dhcpdata.Leased && !before.ended:
		l := *before
		if l.ended = true; l.expires == dhcpdata.InfiniteTime { // the client knows no end
			l.expires = now + endedSeconds
		}
		e.change(before, &l, dhcplease.End, o.ID)
		return
	}
	l := &lease{network: network, address: o.Address, start: now, renewed: now, expires: now, holder: &holder{}}
	e.enqueue(commit{entries: [][]byte{event(dhcplease.Ordered, now, o.ID, l)}, undo: func() { e.forgetOrder(o.ID) }, done: func() {}})
}

// forgetOrder makes an order that could not be stored one that is not performed. The caller holds mu.
func (e *engine) forgetOrder(id int64) {
	delete(e.performed, id)
	e.unperformed = true
}

// retryOrders performs the orders that could not be stored, after the disk accepts writes again.
func (e *engine) retryOrders() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.unperformed && !e.full.Load() {
		e.unperformed = false
		e.performOrders(e.content.Load().compiled)
	}
}

// record returns the record for the manager of an entry of the journal; ok is false if the manager does not learn it.
func (e *engine) record(journal string, number uint64, entry []byte) (r dhcplease.Record, ok bool, err error) {
	r = dhcplease.Record{Journal: journal, Sequence: number, At: e.clock.now() * 1000}
	switch text := entry[1:]; entry[0] {
	case entryEvent:
		kind, at, order, l, err := readEvent(text)
		if err != nil {
			return r, false, err
		}
		r.At = at * 1000
		r.Event = &dhcplease.Event{Kind: kind, Order: order, Lease: l.report()}
	case entryDigest:
		r.Renewals = &dhcplease.Renewals{}
		if err := decodeJSON(text, r.Renewals); err != nil {
			return r, false, err
		}
	case entrySnapshot:
		r.Snapshot = &dhcplease.Snapshot{}
		if err := decodeJSON(text, r.Snapshot); err != nil {
			return r, false, err
		}
	case entryPairReport:
		r.Pair = &dhcplease.Pair{}
		if err := decodeJSON(text, r.Pair); err != nil {
			return r, false, err
		}
	default:
		return r, false, nil
	}
	return r, true, nil
}

// pairReport returns the entry of a report about a failover pair.
func pairReport(p dhcplease.Pair) ([]byte, error) {
	text, err := json.Marshal(p)
	return append([]byte{entryPairReport}, text...), err
}

func decodeJSON(text []byte, into any) error {
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(into); err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	return nil
}
