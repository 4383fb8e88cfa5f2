package dhcpdata

import (
	"bytes"
	"math"
	"net/netip"
	"slices"
)

// choice is an address for the client.
type choice struct {
	network     *network
	pool        *pool
	reservation *reservation
	address     netip.Addr
	probe       bool
}

// decideDiscover chooses an address and offers it.
func (d *decider) decideDiscover() {
	if d.prefersIPv6(choice{network: d.candidates[0], reservation: d.reservation()}) {
		return
	}
	chosen, from, reason := d.choose()
	if (reason == Served || reason == Exhausted) && d.prefersIPv6(chosen) {
		return
	}
	if reason != Served {
		d.refuseAddress(from, reason)
		return
	}
	d.grant(chosen, Offer, ActOffer)
}

// prefersIPv6 answers a client that asks for IPv6 only, where the option is set, without an address (RFC 8925). c is the choice whose
// options apply: at first without a range. A full range needs no address for that.
func (d *decider) prefersIPv6(c choice) bool {
	all := d.layers(c.network, c.pool, c.reservation)
	o := all.option(optionKey{code: optIPv6Only})
	if o == nil || !d.requests[optIPv6Only] {
		return false
	}
	d.note(o.From, "IPv6 only", "the client asks for the option, and gets no address")
	d.d.Reply, d.d.Action, d.d.Reason = Offer, ActNothing, IPv6OnlyPreferred
	d.reply(all, choice{network: c.network, reservation: c.reservation})
	return true
}

// refuseAddress ends the decision on a DISCOVER without an address. A client that asks about automatic configuration gets that option
// (RFC 2563).
func (d *decider) refuseAddress(from Source, reason Reason) {
	all := d.layers(d.candidates[0], nil, nil)
	if o := all.option(optionKey{code: optAutoConfig}); o != nil && d.f.Options[optAutoConfig] != nil {
		d.note(o.From, "automatic configuration", "no address: %s", reason)
		d.d.Reply, d.d.Action, d.d.Reason = Offer, ActNothing, NoAutoConfigure
		d.requests[optAutoConfig] = true
		d.reply(all, choice{network: d.candidates[0]})
		return
	}
	d.refuse(reason, from)
}

// choose chooses an address: the reservation, the address of the client's lease, its former address, the address it asks for, or the one
// that has been free for longest.
func (d *decider) choose() (c choice, from Source, reason Reason) {
	r := d.reservation()
	if r == nil {
		return d.chooseDynamic()
	}
	c = choice{network: r.network, reservation: r, pool: r.network.findPool(r.Address), address: r.Address}
	if d.available(r) {
		d.note(r.source(), "address", "reserved for the client")
		return c, Source{}, Served
	}
	if d.isOfPartner(r.Address) {
		return choice{}, r.source(), OwnedByPartner
	}
	d.note(r.source(), "address", "reserved for the client, and abandoned or still leased to another one")
	other, from, reason := d.chooseDynamic()
	if l, ok := d.leases.Lease(r.Address); reason != Served && ok && l.State == Abandoned {
		c.probe = true
		return c, Source{}, Served
	}
	return other, from, reason
}

// chooseDynamic chooses an address of a range. If the ranges have none, the choice is the first range, and the reason is Exhausted.
func (d *decider) chooseDynamic() (c choice, from Source, reason Reason) {
	from, reason = d.candidates[0].source(), NoRange
	var pools []*pool
	for _, n := range d.candidates {
		for _, p := range n.pools {
			if p.DelegatedLength != 0 || len(p.Ranges) == 0 {
				continue
			}
			why, not := d.permits(p)
			if not != Served {
				d.note(why, "range", "%d %s does not serve the client: %s", p.ID, p.Name, not)
				from, reason = why, not
				continue
			}
			pools = append(pools, p)
		}
	}
	if len(pools) == 0 {
		return c, from, reason
	}
	if a := d.preferred(pools); a.IsValid() {
		return d.chosen(pools, a), Source{}, Served
	}
	for _, abandoned := range []bool{false, true} {
		for _, p := range pools {
			a, ok := d.nextFree(p, abandoned)
			if ok {
				d.note(p.source(), "address", "%s is free", a)
				c := d.chosen([]*pool{p}, a)
				c.probe = c.probe || abandoned
				return c, Source{}, Served
			}
			d.note(p.source(), "range", "%d %s has no free address", p.ID, p.Name)
		}
	}
	return choice{network: pools[0].network, pool: pools[0]}, pools[0].source(), Exhausted
}

// nextFree returns a free address of a range: for a BOOTP client of a range whose addresses are probed the first one, otherwise the one
// that has been free for longest. A BOOTP client cannot have a probed address, and NextFree does not return to addresses that it has
// skipped.
func (d *decider) nextFree(p *pool, abandoned bool) (netip.Addr, bool) {
	if !d.f.isBOOTP() || len(p.Probed) == 0 {
		return d.leases.NextFree(p.network.ID, p.ID, p.Ranges, abandoned, func(a netip.Addr) bool { return d.leasable(p, a) })
	}
	limit, tries := d.leases.CountUsed(p.ID), uint64(0)
	if abandoned || limit >= p.size {
		return netip.Addr{}, false
	}
	for _, i := range p.Probed {
		limit += i.size()
	}
	for _, i := range p.Ranges {
		for a := i.First; i.Contains(a) && tries < limit+maxTries; a = a.Next() {
			if tries++; d.isFree(a) && d.leasable(p, a) {
				return a, true
			}
		}
	}
	return netip.Addr{}, false
}

// isOfPartner reports whether the partner of a failover pair may have leased an address.
func (d *decider) isOfPartner(a netip.Addr) bool {
	l, _ := d.leases.Lease(a)
	return l.Partner
}

// preferred returns the address that the client holds, held, or asks for, if a pool contains it and it is free for the client.
func (d *decider) preferred(pools []*pool) netip.Addr {
	for _, state := range []State{Leased, Offered, Free} {
		for _, n := range d.candidates {
			l, ok := d.leases.ClientLease(n.ID, d.d.Client)
			if ok && l.State == state && !l.Ended && d.isFree(l.Address) && d.inPools(pools, l.Address) {
				d.note(n.source(), "address", "the client holds or held %s", l.Address)
				return l.Address
			}
		}
	}
	if a := d.requested; a.IsValid() && d.isFree(a) && d.inPools(pools, a) {
		d.note(Source{}, "address", "the client asks for %s", a)
		return a
	}
	return netip.Addr{}
}

func (d *decider) inPools(pools []*pool, a netip.Addr) bool {
	for _, p := range pools {
		if contains(p.Ranges, a) {
			return d.leasable(p, a)
		}
	}
	return false
}

// isFree reports whether an address is not held by or offered to another client, and not abandoned.
func (d *decider) isFree(a netip.Addr) bool {
	l, ok := d.leases.Lease(a)
	return !ok || l.State == Free || l.State != Abandoned && !l.Ended && d.holds(l)
}

// leasable reports whether an address of a pool can be leased to any client: it is not reserved, and not an address of the network or of
// the server. BOOTP has no offers, so an address that must be probed is not leased to its clients.
func (d *decider) leasable(p *pool, a netip.Addr) bool {
	n := p.network
	if d.f.isBOOTP() && contains(p.Probed, a) || len(n.byAddress[a]) > 0 || a == n.Gateway || n.isSpecial(a) {
		return false
	}
	return a != n.Identifier && !slices.Contains(d.f.Local, a) && !slices.Contains(d.c.Server.Addresses, a)
}

// isSpecial reports whether an address is the first or last one of a network with at most 30 bits.
func (n *network) isSpecial(a netip.Addr) bool {
	if !a.Is4() || n.Prefix.Bits() > 30 {
		return false
	}
	p, err := a.Prefix(n.Prefix.Bits())
	if err != nil || p.Addr() == a {
		return true
	}
	return !n.Prefix.Contains(a.Next())
}

// chosen returns the choice of an address of one of the pools. It is probed if it was never leased. A static address is probed unless the
// client holds it.
func (d *decider) chosen(pools []*pool, a netip.Addr) choice {
	for _, p := range pools {
		if !contains(p.Ranges, a) {
			continue
		}
		l, leased := d.leases.Lease(a)
		pinged := d.layers(p.network, p, nil).flag("ping-check", true) && !leased
		return choice{network: p.network, pool: p, address: a, probe: pinged || contains(p.Probed, a) && l.State != Leased}
	}
	return choice{}
}

// findPool returns the pool whose options apply to an address, also to a reserved or excluded one; nil if it is in no range.
func (n *network) findPool(a netip.Addr) *pool {
	if p := n.poolOf(a); p != nil {
		return p
	}
	for _, p := range n.pools {
		if p.Whole.First.IsValid() && p.Whole.Contains(a) {
			return p
		}
	}
	return nil
}

// poolOf returns the pool that leases an address; nil if none does.
func (n *network) poolOf(a netip.Addr) *pool {
	for _, p := range n.pools {
		if contains(p.Ranges, a) {
			return p
		}
	}
	return nil
}

// available reports whether a reserved address is not held by another client, and not abandoned. A lease that an operator has ended keeps
// the address from others, not from the client that it is reserved for.
func (d *decider) available(r *reservation) bool {
	l, ok := d.leases.Lease(r.Address)
	if !ok || l.State == Free {
		return true
	}
	return l.State != Abandoned && d.holdsReserved(r, l)
}

// holdsReserved reports whether the client with a reservation holds the lease of its address.
func (d *decider) holdsReserved(r *reservation, l LeaseState) bool {
	return l.Client == d.d.Client || len(r.MAC) > 0 && bytes.Equal(l.Hardware, d.f.Hardware) && bytes.Equal(r.MAC, d.f.Hardware)
}

// grant fills in a decision with an address.
func (d *decider) grant(c choice, reply uint8, action Action) {
	all := d.layers(c.network, c.pool, c.reservation)
	out, identity := d.d, d.d.Client
	out.Reply, out.Action, out.Reason = reply, action, Served
	out.Network, out.Address, out.Probe = c.network.ID, c.address, c.probe
	if c.pool != nil {
		out.Pool = c.pool.ID
	}
	if r := c.reservation; r != nil {
		out.Reservation, out.Counted = r.ID, nil
		if len(r.ClientID) == 0 { // the lease belongs to the hardware, whatever identifier it sends
			out.Client = Identity(d.f.HardwareType, d.f.Hardware, nil)
		}
	}
	out.ProbeSeconds = all.number("ping-timeout", 1)
	out.AbandonSeconds = all.number("abandon-lease-time", 86400)
	d.leaseTime(all, c)
	d.nameClient(all, c)
	if action == ActCommit && reply != BOOTP && d.cached(all, c) {
		out.Action = ActRenew
	}
	if action == ActCommit {
		d.endOthers(all, c, identity)
	}
	d.reply(all, c)
}

// nameClient decides on the names of the client in DNS.
func (d *decider) nameClient(all layers, c choice) {
	x := &client{all: all, address: c.address, seconds: d.d.LeaseTime, sent: CleanHostName(d.f.Options[optHostName]), fqdn: d.fqdn,
		reservation: c.reservation, hardware: d.f.Hardware}
	clientID := d.clientID
	if all.flag("ignore-client-uids", false) {
		clientID = nil
	}
	x.identifiers = func() []identifier { return identifiers4(d.f.HardwareType, d.f.Hardware, clientID) }
	d.named = x.decideNames()
	if d.d.Names = d.named.names; d.d.Names != nil {
		d.note(d.named.from, "names in DNS", "%s", d.d.Names)
	}
}

// leaseTime computes the length of the lease.
func (d *decider) leaseTime(all layers, c choice) {
	standard := all.number("default-lease-time", 86400)
	minimum := all.number("min-lease-time", min(300, standard))
	maximum := all.number("max-lease-time", max(standard, minimum, 86400))
	minimum = min(minimum, maximum)
	seconds, from := standard, all.service("default-lease-time")
	if data := d.f.Options[optLeaseTime]; len(data) == 4 {
		seconds, from = uint32(data[0])<<24|uint32(data[1])<<16|uint32(data[2])<<8|uint32(data[3]), nil
	}
	if d.f.isBOOTP() {
		seconds, maximum = all.number("dynamic-bootp-lease-length", Infinite), Infinite
	}
	if c.reservation == nil && c.pool != nil && !d.f.isBOOTP() {
		held, ok := d.leases.Lease(c.address)
		mine := ok && held.State == Leased && d.holds(held)
		if s := all.service("adaptive-lease-time-threshold"); s != nil && !mine && c.pool.size > 0 &&
			float64(d.leases.CountUsed(c.pool.ID))*100 > float64(c.pool.size)*float64(s.number) {
			seconds, from = minimum, s
		}
	}
	seconds = max(min(seconds, maximum), minimum)
	d.d.Start, d.d.LeaseTime = d.now, seconds
	d.d.Expires = d.now + int64(seconds)
	if seconds == Infinite {
		d.d.Expires = InfiniteTime
	}
	d.limit(c)
	source := Source{}
	if from != nil {
		source = from.From
	}
	if d.f.Explain {
		d.note(source, "lease time", "%d s, between %d and %d", seconds, minimum, maximum)
	}
}

// limit shortens the lease to what a failover pair allows.
func (d *decider) limit(c choice) {
	out := d.d
	out.Wanted = out.Expires
	l, ok := d.leases.(Limiter)
	if !ok {
		return
	}
	if end := l.Limit(c.network.ID, c.address, out.Client, out.Expires, d.now); end < out.Expires {
		out.Expires, out.LeaseTime = end, uint32(min(max(end-d.now, 1), math.MaxUint32-1)) //nolint:gosec // within its limits
		d.note(Source{}, "lease time", "the partner of the failover pair has acknowledged at most %d s", out.LeaseTime)
	}
}

// cached reports whether a renewal comes so early that the rest of the lease is enough (dhcp-cache-threshold).
func (d *decider) cached(all layers, c choice) bool {
	l, ok := d.leases.Lease(c.address)
	if !ok || l.State != Leased || l.Ended || l.Client != d.d.Client || !bytes.Equal(l.Hardware, d.f.Hardware) || l.Expires <= d.now {
		return false
	}
	if relay, relayed := d.f.Options[optRelay]; relayed && !bytes.Equal(relay, l.Relay) { // the client moved to another port
		return false
	}
	out := d.d
	if !out.Names.Same(l.Names) { // another name is stored, and updated in DNS
		return false
	}
	if l.Expires == InfiniteTime {
		out.Start, out.Expires = l.Start, l.Expires
		return out.LeaseTime == Infinite
	}
	percent := int64(all.number("dhcp-cache-threshold", 25))
	if (d.now-l.Start)*100 >= (l.Expires-l.Start)*percent || l.Expires-d.now > int64(out.LeaseTime) {
		return false
	}
	out.Start, out.Expires = l.Start, l.Expires
	out.LeaseTime = uint32(min(l.Expires-d.now, math.MaxUint32-1))
	d.note(Source{}, "lease time", "the lease is renewed early, and has %d s left", out.LeaseTime)
	return true
}

// endOthers lists the leases of the client that end: at other addresses of the network, with other identifiers unless duplicates are
// allowed, and in other networks with one-lease-per-client. identity is that of the message; the holder of a reserved address can have
// another one.
func (d *decider) endOthers(all layers, c choice, identity string) {
	add := func(l LeaseState) {
		if l.State == Leased && l.Address != c.address && !slices.Contains(d.d.Ends, l.Address) {
			d.d.Ends = append(d.d.Ends, l.Address)
		}
	}
	for _, client := range []string{d.d.Client, identity} {
		for _, n := range d.candidates {
			if l, ok := d.leases.ClientLease(n.ID, client); ok {
				add(l)
			}
		}
		if all.flag("one-lease-per-client", false) {
			for _, l := range d.leases.OtherLeases(c.network.ID, client) {
				add(l)
			}
		}
	}
	if !all.flag("duplicates", true) {
		for _, l := range d.leases.HardwareLeases(c.network.ID, d.f.Hardware) {
			add(l)
		}
	}
}
