package dhcp

import (
	"container/heap"
	"container/list"
	"net/netip"
	"slices"

	"portolan/internal/wire/dhcpdata"
)

// table contains the leases and offers in memory, with their indexes. The caller holds the lock of the server. It implements
// dhcpdata.Leases.
type table struct {
	now    func() int64
	slots  map[netip.Addr]*slot
	expiry expiryHeap
	// clients and hardware contain the slots by dhcpdata.Identity and by hardware address.
	clients  map[string][]*slot
	hardware map[string][]*slot
	pools    map[int64]*poolState
	members  map[int64]int
	offers   offers
	// owns reports whether the server may lease the free address of a lease of a failover pair to any client.
	owns func(l *lease) bool
}

// slot is an address. lease is nil for one that was offered and never leased.
type slot struct {
	address netip.Addr
	lease   *lease
	offer   *offer
	heap    int           // the position in the expiry heap; -1 if it is not in it
	free    *list.Element // the position in the list of free or abandoned addresses of the range
	in      *list.List
}

// poolState is the state of a range.
type poolState struct {
	// free contains the addresses that were leased before, the one that has been free for longest first. abandoned contains the abandoned
	// ones. returned contains addresses that were offered and never leased.
	free, abandoned list.List
	returned        []netip.Addr
	// cursor is the first address that was never leased or offered.
	cursor netip.Addr
	used   uint64
	// exhausted is true after a search for a free address that found none, until an address of the range changes. A flood of new clients
	// does not search again.
	exhausted bool
	// logged is true after a message about log-threshold-high.
	logged bool
}

func newTable(now func() int64) *table {
	return &table{now: now, slots: map[netip.Addr]*slot{}, clients: map[string][]*slot{}, hardware: map[string][]*slot{},
		pools: map[int64]*poolState{}, members: map[int64]int{}, offers: newOffers(), owns: func(*lease) bool { return true }}
}

func (t *table) pool(id int64) *poolState {
	p := t.pools[id]
	if p == nil {
		p = &poolState{}
		t.pools[id] = p
	}
	return p
}

func (t *table) slot(a netip.Addr) *slot {
	s := t.slots[a]
	if s == nil {
		s = &slot{address: a, heap: -1}
		t.slots[a] = s
	}
	return s
}

// set replaces the lease of an address; l is nil to forget the address.
func (t *table) set(a netip.Addr, l *lease) {
	s := t.slot(a)
	if s.lease != nil {
		t.unlink(s)
	}
	before := s.lease
	if s.lease = l; l != nil {
		t.link(s)
		return
	}
	if before != nil {
		t.pool(before.pool).exhausted = false
	}
	if s.offer == nil {
		delete(t.slots, a)
	}
}

// unlink removes a slot from the indexes of its lease.
func (t *table) unlink(s *slot) {
	l := s.lease
	removeSlot(t.clients, l.holder.client, s)
	removeSlot(t.hardware, string(l.holder.hardware), s)
	if s.heap >= 0 {
		heap.Remove(&t.expiry, s.heap)
	}
	if s.free != nil {
		s.in.Remove(s.free)
		s.free, s.in = nil, nil
	}
	if l.state == dhcpdata.Leased {
		t.count(l, -1)
	}
}

// link adds a slot to the indexes of its lease.
func (t *table) link(s *slot) {
	l := s.lease
	t.clients[l.holder.client] = append(t.clients[l.holder.client], s)
	t.hardware[string(l.holder.hardware)] = append(t.hardware[string(l.holder.hardware)], s)
	if l.state == dhcpdata.Leased {
		t.count(l, 1)
	}
	if s.offer == nil {
		t.list(s, false)
	}
	if (l.state != dhcpdata.Free || l.isHeld()) && l.expires < dhcpdata.InfiniteTime {
		heap.Push(&t.expiry, s)
	}
}

// list adds a slot to the list of free or abandoned addresses of its range, at the front or at the back. The slot has no offer.
func (t *table) list(s *slot, front bool) {
	p := t.pool(s.lease.pool)
	switch s.lease.state {
	case dhcpdata.Leased:
		return
	case dhcpdata.Abandoned:
		s.in = &p.abandoned
	case dhcpdata.Free, dhcpdata.Offered:
		if !t.owns(s.lease) {
			return
		}
		s.in = &p.free
	}
	p.exhausted = false
	if s.free = s.in.PushBack(s); front {
		s.in.MoveToFront(s.free)
	}
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

func removeSlot(index map[string][]*slot, key string, s *slot) {
	all := index[key]
	if i := slices.Index(all, s); i >= 0 {
		all = slices.Delete(all, i, i+1)
	}
	if len(all) == 0 {
		delete(index, key)
		return
	}
	index[key] = all
}

// At implements dhcpdata.Leases.
func (t *table) At(a netip.Addr) (dhcpdata.LeaseState, bool) {
	s := t.slots[a]
	if s == nil {
		return dhcpdata.LeaseState{}, false
	}
	return t.view(s)
}

// view returns the state of a slot: an offer counts if the address is not leased.
func (t *table) view(s *slot) (l dhcpdata.LeaseState, ok bool) {
	now := t.now()
	if s.lease != nil {
		l, ok = s.lease.view(now), true
	}
	if s.offer != nil && s.offer.until > now && (!ok || l.State == dhcpdata.Free || l.State == dhcpdata.Abandoned) {
		o := s.offer
		return dhcpdata.LeaseState{Network: o.network, Address: s.address, State: dhcpdata.Offered, Client: o.client, Hardware: o.hardware,
			Start: now, Expires: o.until}, true
	}
	return l, ok
}

// Of implements dhcpdata.Leases. A lease comes before an offer, and an offer before a former lease.
func (t *table) Of(network int64, client string) (found dhcpdata.LeaseState, ok bool) {
	consider := func(s *slot) {
		l, known := t.view(s)
		if !known || l.Network != network || l.Client != client {
			return
		}
		if !ok || rank(l.State) > rank(found.State) || l.State == found.State && l.Start > found.Start {
			found, ok = l, true
		}
	}
	for _, s := range t.clients[client] {
		consider(s)
	}
	if o := t.offers.clients[client]; o != nil {
		consider(o.slot)
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

// OfHardware implements dhcpdata.Leases.
func (t *table) OfHardware(network int64, hardware []byte) (all []dhcpdata.LeaseState) {
	for _, s := range t.hardware[string(hardware)] {
		if l := s.lease.view(t.now()); l.Network == network {
			all = append(all, l)
		}
	}
	return all
}

// Elsewhere implements dhcpdata.Leases.
func (t *table) Elsewhere(network int64, client string) (all []dhcpdata.LeaseState) {
	for _, s := range t.clients[client] {
		if l := s.lease.view(t.now()); l.Network != network {
			all = append(all, l)
		}
	}
	return all
}

// Used implements dhcpdata.Leases.
func (t *table) Used(pool int64) uint64 { return t.pool(pool).used }

// Members implements dhcpdata.Leases.
func (t *table) Members(class int64, without string) int {
	n := t.members[class]
	for _, s := range t.clients[without] {
		if s.lease.state == dhcpdata.Leased && slices.Contains(s.lease.counted, class) {
			n--
		}
	}
	return n
}

// Next implements dhcpdata.Leases: first the addresses that were never leased, then those that have been free for longest.
func (t *table) Next(_, pool int64, ranges []dhcpdata.Interval, abandoned bool, usable func(netip.Addr) bool) (netip.Addr, bool) {
	p := t.pool(pool)
	if p.exhausted {
		return netip.Addr{}, false
	}
	if abandoned {
		a, ok := t.first(&p.abandoned, ranges, usable)
		p.exhausted = !ok
		return a, ok
	}
	for len(p.returned) > 0 {
		a := p.returned[len(p.returned)-1]
		p.returned = p.returned[:len(p.returned)-1]
		if t.slots[a] == nil && inside(ranges, a) && usable(a) {
			return a, true
		}
	}
	if a, ok := t.advance(p, ranges, usable); ok {
		return a, true
	}
	return t.first(&p.free, ranges, usable)
}

// advance moves the cursor to the next address that was never leased or offered. It stays before an address that it returns.
func (t *table) advance(p *poolState, ranges []dhcpdata.Interval, usable func(netip.Addr) bool) (netip.Addr, bool) {
	from := 0
	if p.cursor.IsValid() {
		from = after(ranges, p.cursor)
	}
	for _, i := range ranges[from:] {
		a := i.First
		if p.cursor.IsValid() && a.Less(p.cursor) {
			a = p.cursor
		}
		for ; i.Contains(a); a = a.Next() {
			if p.cursor = a; t.slots[a] == nil && usable(a) {
				return a, true
			}
		}
		p.cursor = a
	}
	return netip.Addr{}, false
}

// first returns the first address of a list that is usable and not offered.
func (t *table) first(all *list.List, ranges []dhcpdata.Interval, usable func(netip.Addr) bool) (netip.Addr, bool) {
	for e := all.Front(); e != nil; e = e.Next() {
		s := e.Value.(*slot)
		if inside(ranges, s.address) && usable(s.address) {
			return s.address, true
		}
	}
	return netip.Addr{}, false
}

// inside reports whether one of the sorted intervals contains an address.
func inside(ranges []dhcpdata.Interval, a netip.Addr) bool {
	i := after(ranges, a)
	return i < len(ranges) && ranges[i].Contains(a)
}

// after returns the index of the first of the sorted intervals that does not end before an address.
func after(ranges []dhcpdata.Interval, a netip.Addr) int {
	i, _ := slices.BinarySearchFunc(ranges, a, func(one dhcpdata.Interval, a netip.Addr) int { return one.Last.Compare(a) })
	return i
}

// Exhausted implements dhcpdata.Leases.
func (t *table) Exhausted(pool int64) bool { return t.pool(pool).exhausted }

// resetCursor makes the next search of a range begin at its start, after the range has changed.
func (t *table) resetCursor(pool int64) {
	if p := t.pools[pool]; p != nil {
		p.cursor, p.returned, p.exhausted = netip.Addr{}, nil, false
	}
}

// expired returns the leases that have expired, at most limit.
func (t *table) expired(limit int) (all []*lease) {
	now := t.now()
	for len(t.expiry) > 0 && len(all) < limit {
		s := t.expiry[0]
		if s.lease.expires > now {
			break
		}
		all = append(all, s.lease)
		heap.Pop(&t.expiry)
	}
	return all
}

// expiryHeap orders slots by the expiry of their leases.
type expiryHeap []*slot

func (h expiryHeap) Len() int           { return len(h) }
func (h expiryHeap) Less(i, j int) bool { return h[i].lease.expires < h[j].lease.expires }
func (h expiryHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heap, h[j].heap = i, j
}

// Push implements heap.Interface.
func (h *expiryHeap) Push(x any) {
	s := x.(*slot)
	s.heap = len(*h)
	*h = append(*h, s)
}

// Pop implements heap.Interface.
func (h *expiryHeap) Pop() any {
	last := len(*h) - 1
	s := (*h)[last]
	s.heap, (*h)[last] = -1, nil
	*h = (*h)[:last]
	return s
}
