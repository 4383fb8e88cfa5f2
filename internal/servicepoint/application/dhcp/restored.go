package dhcp

import (
	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"
)

// restoredAtOnce is the maximum number of restored leases in one commit, so that those of a whole network fit in the queue.
const restoredAtOnce = 500

// restored collects the commits of restored leases. The caller of its methods holds mu.
type restored struct {
	e       *engine
	entries [][]byte
	named   []*lease
	undo    []func()
}

// perform performs the order to restore a lease of another server. A newer lease of the address stays, and is reported.
func (r *restored) perform(c *dhcpdata.Content, network int64, o dhcpdata.Order) {
	e, now := r.e, r.e.clock.now()
	l := restoredLease(c, network, o)
	before := e.table.lease(o.Address)
	if before != nil && isNewer(before, l, now) {
		r.add(o.ID, event(kindOf(before), now, o.ID, before), nil, func() {})
		return
	}
	if l.expires <= now { // it ended on the way here
		none := &lease{network: network, address: o.Address, start: now, renewed: now, expires: now, holder: &holder{}}
		r.add(o.ID, event(dhcplease.Ordered, now, o.ID, none), nil, func() {})
		return
	}
	kind := dhcplease.Begin
	switch {
	case l.state == dhcpdata.Abandoned:
		kind = dhcplease.Abandon
		e.pairEnd(before, l)
	case before != nil && before.state == dhcpdata.Leased && before.holder.client == l.holder.client && before.expires > now:
		kind = dhcplease.Change
		l.start, l.expires, l.names = before.start, max(l.expires, before.expires), before.names
		e.pairGrant(before, l, l.expires)
	default:
		e.pairGrant(before, l, l.expires)
	}
	renewal := e.keepRenewal(l)
	e.table.set(l.address, l)
	e.renewals.forget(l)
	r.add(o.ID, event(kind, now, o.ID, l), e.named(before, l), func() {
		e.table.restore(l, before)
		renewal()
	})
}

// isNewer reports whether the lease of an address is newer than a restored one, so that it stays.
func isNewer(before, l *lease, now int64) bool {
	if before.view(now).State == dhcpdata.Free && !before.isHeld() {
		return false
	}
	if l.state == dhcpdata.Abandoned { // a client has the address here
		return before.state == dhcpdata.Leased || before.expires >= l.expires
	}
	if before.state == dhcpdata.Abandoned {
		return before.renewed > l.renewed
	}
	return before.renewed >= l.renewed
}

// kindOf returns the kind of an event that reports a lease as it is.
func kindOf(l *lease) dhcplease.Kind {
	switch l.state {
	case dhcpdata.Leased:
		return dhcplease.Change
	case dhcpdata.Abandoned:
		return dhcplease.Abandon
	case dhcpdata.Free, dhcpdata.Offered: // of a pair: its client may still have it
	}
	return dhcplease.Expire
}

// restoredLease returns the lease of an order.
func restoredLease(c *dhcpdata.Content, network int64, o dhcpdata.Order) *lease {
	x := o.Lease
	h := &holder{client: x.Identity(o.Address.Is6()), hardwareType: x.HardwareType, hardware: string(x.Hardware),
		clientID: string(x.ClientID), hostName: x.HostName, vendor: string(x.VendorClass)}
	add := func(code byte, data []byte) {
		if len(data) > 0 && len(h.relay)+2+len(data) <= 255 {
			h.relay += string([]byte{code, byte(len(data))}) + string(data)
		}
	}
	if o.Address.Is6() {
		add(stored6RemoteID, x.RemoteID)
		if x.PrefixLength > 0 {
			add(stored6PrefixLength, []byte{byte(x.PrefixLength)})
		}
	} else {
		add(1, x.CircuitID)
		add(2, x.RemoteID)
	}
	l := &lease{network: network, pool: c.PoolAt(network, o.Address), address: o.Address, state: dhcpdata.Leased, start: x.Start,
		renewed: x.Start, expires: x.Expires, holder: h}
	if x.Abandoned {
		l.state = dhcpdata.Abandoned
	} else {
		l.reservation = c.ReservationOf(o.Address, h.client, []byte(h.hardware))
	}
	return l
}

// add adds the entry of an order.
func (r *restored) add(order int64, entry []byte, named []*lease, undo func()) {
	r.entries, r.named = append(r.entries, entry), append(r.named, named...)
	r.undo = append(r.undo, func() {
		undo()
		r.e.forgetOrder(order)
	})
	if len(r.entries) >= restoredAtOnce {
		r.flush()
	}
}

// flush queues the entries that were added.
func (r *restored) flush() {
	if len(r.entries) == 0 {
		return
	}
	undo := r.undo
	r.e.enqueue(commit{entries: r.entries, named: r.named, undo: func() {
		for i := len(undo) - 1; i >= 0; i-- {
			undo[i]()
		}
	}, done: func() {}})
	r.entries, r.named, r.undo = nil, nil, nil
}
