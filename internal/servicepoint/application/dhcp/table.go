package dhcp

import (
	"net/netip"
	"slices"

	"portolan/internal/wire/dhcpdata"
)

// table contains the leases and offers in memory, with their indexes. The caller holds the lock of the server. It implements
// dhcpdata.Leases.
type table struct {
	now   func() int64
	slots slots
	ends  ends
	// unstored are the leases that are not on the disk yet: commitGroup changes them.
	unstored map[netip.Addr]*lease
	changes  uint32 // the last version
	pools    map[int64]*poolState
	members  map[int64]int
	offers   offers
	// owns reports whether the server may lease the free address of a lease of a failover pair to any client.
	owns func(l *lease) bool
}

// listKind is a list of a range.
type listKind uint8

// The lists of a range: addresses that were leased before, the one that has been free for longest first, and abandoned ones.
const (
	inNone listKind = iota
	inFree
	inAbandoned
)

// poolState is the state of a range.
type poolState struct {
	lists    [inAbandoned + 1]slotList // by their kind
	returned returned
	// cursor is the first address that was never leased or offered.
	cursor netip.Addr
	used   uint64
	// exhausted is true after a search for a free address that found none, until an address of the range changes. A flood of new clients
	// does not search again.
	exhausted bool
	// logged is true after a message about log-threshold-high.
	logged bool
}

// returned is a stack of addresses before the cursor of a range that were offered and never leased. An address is in it once. It may have
// been offered or leased again.
type returned struct {
	stack    []netip.Addr
	contents map[netip.Addr]struct{}
}

func (r *returned) push(a netip.Addr) {
	if _, has := r.contents[a]; has {
		return
	}
	if r.contents == nil {
		r.contents = map[netip.Addr]struct{}{}
	}
	r.stack, r.contents[a] = append(r.stack, a), struct{}{}
}

// pop removes the last address.
func (r *returned) pop() {
	last := len(r.stack) - 1
	delete(r.contents, r.stack[last])
	r.stack = r.stack[:last]
}

func newTable(now func() int64) *table {
	t := &table{now: now, slots: newSlots(), unstored: map[netip.Addr]*lease{}, pools: map[int64]*poolState{}, members: map[int64]int{},
		offers: newOffers(), owns: func(*lease) bool { return true }}
	t.ends.slots = &t.slots
	return t
}

func (t *table) pool(id int64) *poolState {
	p := t.pools[id]
	if p == nil {
		p = &poolState{}
		t.pools[id] = p
	}
	return p
}

// lease returns the lease of an address; nil if it was never leased.
func (t *table) lease(a netip.Addr) *lease {
	if l := t.unstored[a]; l != nil {
		return l
	}
	id := t.slots.find(a)
	if id == 0 {
		return nil
	}
	both := &leaseAndHolder{}
	t.unpack(id, &both.lease, &both.holder)
	return &both.lease
}

// leaseAndHolder are a lease and its holder, which are allocated together.
type leaseAndHolder struct {
	lease
	holder
}

// unpack sets a lease and its holder to those of a slot.
func (t *table) unpack(id slotID, l *lease, h *holder) {
	s := t.slots.slot(id)
	s.unpackTo(l, h)
	l.expires, l.version = s.expires, s.version
	l.unstored = t.unstored[l.address] != nil
}

// all is an iterator over the leases, which can be changed meanwhile. A lease is valid until the next one: see scan.
func (t *table) all(yield func(l *lease) bool) { t.scan(1, int(t.slots.end), yield) }

// scan calls fn for the leases of the next n slots. It returns the slot to continue with, 0 after the last one. If fn returns false,
// the next call continues with the same lease. A lease is valid until fn returns.
func (t *table) scan(from slotID, n int, fn func(l *lease) bool) (next slotID) {
	var l lease
	var h holder
	for id := from; id < t.slots.end; id++ {
		if n--; n < 0 {
			return id
		}
		if t.slots.slot(id).text == "" {
			continue
		}
		if t.unpack(id, &l, &h); !fn(&l) {
			return id
		}
	}
	return 0
}

// set replaces the lease of an address; l is nil to forget the address.
func (t *table) set(a netip.Addr, l *lease) {
	if l != nil {
		t.changes++
		l.version = t.changes
	}
	t.put(a, l)
}

// restore takes a change back, unless another one has followed. An address that was never leased is the next one to be offered.
func (t *table) restore(after, before *lease) {
	if id := t.slots.find(after.address); id == 0 || t.slots.slot(id).version != after.version {
		return
	}
	t.put(after.address, before)
	if before == nil {
		t.giveBack(after.pool, after.address)
	}
}

// giveBack makes an address that was never leased the next one to be offered if the cursor of the range has passed it. One of IPv6 is not
// kept for the next client.
func (t *table) giveBack(pool int64, a netip.Addr) {
	p := t.pool(pool)
	p.exhausted = false
	if pool != 0 && a.Is4() && a.Less(p.cursor) {
		p.returned.push(a)
	}
}

// put replaces the lease of an address by one with a version.
func (t *table) put(a netip.Addr, l *lease) {
	id := t.slots.find(a)
	if id != 0 {
		var before lease
		var h holder
		t.unpack(id, &before, &h)
		t.unlink(id, &before)
		if l == nil {
			t.slots.addresses.remove(t.slots.hashes.ofAddress(a), id)
			t.slots.release(id)
			t.pool(before.pool).exhausted = false
		}
	}
	delete(t.unstored, a)
	if l == nil {
		return
	}
	if id == 0 {
		id = t.slots.allocate()
		t.slots.addresses.add(t.slots.hashes.ofAddress(a), id)
	}
	s := t.slots.slot(id)
	s.packed, s.expires, s.version = t.slots.packer.pack(l), l.expires, l.version
	if l.unstored {
		t.unstored[a] = l
	}
	t.link(id, l)
}

// stored marks a lease as one that is on the disk.
func (t *table) stored(l *lease) {
	if l.unstored = false; t.unstored[l.address] == l {
		delete(t.unstored, l.address)
	}
}

// relink puts the leases of networks in the lists that they belong to.
func (t *table) relink(networks map[int64]bool) {
	for l := range t.all {
		if networks[l.network] {
			id := t.slots.find(l.address)
			t.unlink(id, l)
			t.link(id, l)
		}
	}
}

// unlink removes a slot from the indexes of its lease, except that of addresses.
func (t *table) unlink(id slotID, l *lease) {
	t.slots.unlink(id, l.holder)
	t.ends.remove(id)
	t.unlist(id, l.pool)
	if l.state == dhcpdata.Leased {
		t.count(l, -1)
	}
}

// unlist removes a slot from the list of its range that contains it, if there is one.
func (t *table) unlist(id slotID, pool int64) {
	if s := t.slots.slot(id); s.list != inNone {
		t.slots.cut(&t.pool(pool).lists[s.list], id)
		s.list = inNone
	}
}

// link adds a slot to the indexes of its lease, except that of addresses.
func (t *table) link(id slotID, l *lease) {
	t.slots.link(id, l.holder)
	if l.state == dhcpdata.Leased {
		t.count(l, 1)
	}
	if t.offers.addresses[l.address] == nil {
		t.list(id, l, false)
	}
	if (l.state != dhcpdata.Free || l.isHeld()) && l.expires < dhcpdata.InfiniteTime {
		t.ends.add(id)
	}
}

// list adds a slot to the list of free or abandoned addresses of its range, at the front or at the back. The address has no offer.
func (t *table) list(id slotID, l *lease, front bool) {
	p, s := t.pool(l.pool), t.slots.slot(id)
	switch l.state {
	case dhcpdata.Leased:
		return
	case dhcpdata.Abandoned:
		s.list = inAbandoned
	case dhcpdata.Free, dhcpdata.Offered:
		if !t.owns(l) {
			return
		}
		s.list = inFree
	}
	p.exhausted = false
	t.slots.insert(&p.lists[s.list], id, front)
}

// count changes the number of leases of a range and of classes. A reserved address is not one of those that a range leases.
func (t *table) count(l *lease, by int) {
	if l.reservation == 0 {
		t.pool(l.pool).used += uint64(int64(by))
	}
	for _, id := range l.counted {
		t.members[id] += by
	}
}

// eachOf calls fn for the leases of a client. A lease is valid until fn returns.
func (t *table) eachOf(client string, fn func(l *lease)) {
	t.eachIn(&t.slots.clients, client, func(l *lease) {
		if l.holder.client == client {
			fn(l)
		}
	})
}

// eachIn calls fn for the leases with the hash of a key.
func (t *table) eachIn(index *index, key string, fn func(l *lease)) {
	var one *leaseAndHolder // most new clients have none
	index.each(t.slots.hashes.ofText(key), func(id slotID) bool {
		if one == nil {
			one = &leaseAndHolder{}
		}
		t.unpack(id, &one.lease, &one.holder)
		fn(&one.lease)
		return true
	})
}

// known reports whether an address was leased or is offered.
func (t *table) known(a netip.Addr) bool { return t.offers.addresses[a] != nil || t.slots.find(a) != 0 }

// Lease implements dhcpdata.Leases.
func (t *table) Lease(a netip.Addr) (dhcpdata.LeaseState, bool) { return t.view(a, t.lease(a)) }

// view returns the state of an address: an offer counts if the address is not leased. l may be nil.
func (t *table) view(a netip.Addr, l *lease) (state dhcpdata.LeaseState, ok bool) {
	now := t.now()
	if l != nil {
		state, ok = l.view(now), true
	}
	o := t.offers.addresses[a]
	if o != nil && o.until > now && (!ok || state.State == dhcpdata.Free || state.State == dhcpdata.Abandoned) {
		return dhcpdata.LeaseState{Network: o.network, Address: a, State: dhcpdata.Offered, Client: o.client, Hardware: o.hardware,
			Start: now, Expires: o.until}, true
	}
	return state, ok
}

// ClientLease implements dhcpdata.Leases. A lease comes before an offer, and an offer before a former lease.
func (t *table) ClientLease(network int64, client string) (found dhcpdata.LeaseState, ok bool) {
	consider := func(a netip.Addr, l *lease) {
		state, known := t.view(a, l)
		if !known || state.Network != network || state.Client != client {
			return
		}
		if !ok || rank(state.State) > rank(found.State) || state.State == found.State && state.Start > found.Start {
			found, ok = state, true
		}
	}
	t.eachOf(client, func(l *lease) { consider(l.address, l) })
	if o := t.offers.clients[client]; o != nil {
		consider(o.address, t.lease(o.address))
	}
	return found, ok
}

func rank(s dhcpdata.State) int {
	switch s {
	case dhcpdata.Leased:
		return 3
	case dhcpdata.Offered:
		return 2
	case dhcpdata.Free:
		return 1
	case dhcpdata.Abandoned:
	}
	return 0
}

// HardwareLeases implements dhcpdata.Leases.
func (t *table) HardwareLeases(network int64, hardware []byte) (all []dhcpdata.LeaseState) {
	t.eachIn(&t.slots.hardware, string(hardware), func(l *lease) {
		if l.network == network && l.holder.hardware == string(hardware) {
			all = append(all, l.view(t.now()))
		}
	})
	return all
}

// OtherLeases implements dhcpdata.Leases.
func (t *table) OtherLeases(network int64, client string) (all []dhcpdata.LeaseState) {
	t.eachOf(client, func(l *lease) {
		if l.network != network {
			all = append(all, l.view(t.now()))
		}
	})
	return all
}

// CountUsed implements dhcpdata.Leases.
func (t *table) CountUsed(pool int64) uint64 { return t.pool(pool).used }

// Members implements dhcpdata.Leases.
func (t *table) Members(class int64, without string) int {
	n := t.members[class]
	t.eachOf(without, func(l *lease) {
		if l.state == dhcpdata.Leased && slices.Contains(l.counted, class) {
			n--
		}
	})
	return n
}

// NextFree implements dhcpdata.Leases: first the addresses that were never leased, then those that have been free for longest. The caller
// need not use the address: the next call returns it again.
func (t *table) NextFree(_, pool int64, ranges []dhcpdata.Interval, abandoned bool, usable func(netip.Addr) bool) (netip.Addr, bool) {
	p := t.pool(pool)
	if p.exhausted {
		return netip.Addr{}, false
	}
	if abandoned {
		a, ok := t.first(p.lists[inAbandoned], ranges, usable)
		p.exhausted = !ok
		return a, ok
	}
	for ; len(p.returned.stack) > 0; p.returned.pop() {
		if a := p.returned.stack[len(p.returned.stack)-1]; !t.known(a) && containsAddress(ranges, a) && usable(a) {
			return a, true
		}
	}
	if a, ok := t.advance(p, ranges, usable); ok {
		return a, true
	}
	return t.first(p.lists[inFree], ranges, usable)
}

// advance moves the cursor to the next address that was never leased or offered. It stays before an address that it returns.
func (t *table) advance(p *poolState, ranges []dhcpdata.Interval, usable func(netip.Addr) bool) (netip.Addr, bool) {
	from := 0
	if p.cursor.IsValid() {
		from = searchAfter(ranges, p.cursor)
	}
	for _, i := range ranges[from:] {
		a := i.First
		if p.cursor.IsValid() && a.Less(p.cursor) {
			a = p.cursor
		}
		for ; i.Contains(a); a = a.Next() {
			if p.cursor = a; !t.known(a) && usable(a) {
				return a, true
			}
		}
		p.cursor = a
	}
	return netip.Addr{}, false
}

// first returns the first address of a list that is usable. The addresses of a list are not offered.
func (t *table) first(all slotList, ranges []dhcpdata.Interval, usable func(netip.Addr) bool) (netip.Addr, bool) {
	for id := all.first; id != 0; id = t.slots.slot(id).next {
		if a := t.slots.slot(id).address(); containsAddress(ranges, a) && usable(a) {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// containsAddress reports whether one of the sorted intervals contains an address.
func containsAddress(ranges []dhcpdata.Interval, a netip.Addr) bool {
	i := searchAfter(ranges, a)
	return i < len(ranges) && ranges[i].Contains(a)
}

// searchAfter returns the index of the first of the sorted intervals that does not end before an address.
func searchAfter(ranges []dhcpdata.Interval, a netip.Addr) int {
	i, _ := slices.BinarySearchFunc(ranges, a, func(one dhcpdata.Interval, a netip.Addr) int { return one.Last.Compare(a) })
	return i
}

// Exhausted implements dhcpdata.Leases.
func (t *table) Exhausted(pool int64) bool { return t.pool(pool).exhausted }

// resetCursor makes the next search of a range begin at its start, after the range has changed.
func (t *table) resetCursor(pool int64) {
	if p := t.pools[pool]; p != nil {
		p.cursor, p.returned, p.exhausted = netip.Addr{}, returned{}, false
	}
}

// expired returns the leases that have expired, at most limit. It does not return them again.
func (t *table) expired(limit int) (all []*lease) {
	now := t.now()
	for len(all) < limit {
		id := t.ends.first()
		if id == 0 || t.slots.slot(id).expires > now {
			break
		}
		all = append(all, t.lease(t.slots.slot(id).address()))
		t.ends.remove(id)
	}
	return all
}
