package dhcpdata

import (
	"encoding/binary"
	"math"
	"net/netip"
	"slices"

	"portolan/internal/base/dhcpmsg"
)

// result is the answer to an association: its bindings, addresses that the client must not use any more, and a status.
type result struct {
	association
	granted []grant6
	removed []hint
	status  Status6
	reason  Reason
}

// grant6 is a binding with its lifetimes.
type grant6 struct {
	binding
	preferred, valid uint32
}

// decideSolicit offers addresses or, with rapid commit, leases them.
func (d *decider6) decideSolicit() {
	n := d.candidates[0]
	_, rapid := d.f.Message.Options.Find(dhcpmsg.OptRapidCommit6)
	if rapid = rapid && d.layers(n, nil, nil).flag("rapid-commit", false); rapid {
		d.note(sourceOf(d.layers(n, nil, nil), "rapid-commit"), "reply", "the addresses are leased at once")
	}
	var results []result
	for _, a := range d.all {
		results = append(results, d.assign(a))
	}
	d.d.Reply = dhcpmsg.Advertise6
	action := ActOffer
	if rapid && slices.ContainsFunc(results, func(r result) bool { return len(r.granted) > 0 }) {
		d.d.Reply, action = dhcpmsg.Reply6, ActCommit
	}
	d.finish(results, action)
}

// decideRequest leases addresses.
func (d *decider6) decideRequest() {
	var results []result
	for _, a := range d.all {
		if a.code != dhcpmsg.OptIAPD6 && slices.ContainsFunc(a.hints, func(h hint) bool { return !d.onLink(h.address) }) {
			d.note(d.candidates[0].source(), "address", "the client asks for an address of another link")
			results = append(results, result{association: a, status: NotOnLink6, reason: WrongNetwork})
			continue
		}
		results = append(results, d.assign(a))
	}
	d.d.Reply = dhcpmsg.Reply6
	d.finish(results, ActCommit)
}

// onLink reports whether an address is of one of the networks of the client's link.
func (d *decider6) onLink(a netip.Addr) bool {
	return slices.ContainsFunc(d.candidates, func(n *network) bool { return n.Prefix.Contains(a) })
}

// assign chooses the address or prefix of an association.
func (d *decider6) assign(a association) result {
	r := result{association: a, status: noStatus6}
	b, from, reason := binding{}, Source{}, NoRange
	if a.code != dhcpmsg.OptIATA6 { // temporary addresses are not assigned: RFC 9915 made them obsolete
		b, from, reason = d.choose(a)
	}
	if reason != Served {
		r.status, r.reason = NoAddrsAvail6, reason
		if a.code == dhcpmsg.OptIAPD6 {
			r.status = NoPrefixAvail6
		}
		d.note(from, "address", "none for the association %d: %s", a.iaid, reason)
		return r
	}
	d.grant(&r, b)
	return r
}

// grant adds a binding to a result. Other addresses that the client names must not be used any more.
func (d *decider6) grant(r *result, b binding) {
	d.assigned[b.address] = true
	g := grant6{binding: b}
	g.preferred, g.valid = d.lifetimes(b, r.hints)
	r.granted = append(r.granted, g)
	if d.f.Message.Type == dhcpmsg.Renew6 || d.f.Message.Type == dhcpmsg.Rebind6 {
		for _, h := range r.hints {
			if h.address != b.address {
				r.removed = append(r.removed, h)
			}
		}
	}
}

// lifetimes returns the preferred and valid lifetime of a binding: the wish of the client between the limits, else default-lease-time.
func (d *decider6) lifetimes(b binding, hints []hint) (preferred, valid uint32) {
	all := d.layers(b.network, b.pool, b.reservation)
	standard := all.number("default-lease-time", 86400)
	minimum := all.number("min-lease-time", min(300, standard))
	maximum := all.number("max-lease-time", max(standard, minimum, 86400))
	minimum = min(minimum, maximum)
	valid = standard
	for _, h := range hints {
		if h.address == b.address && h.valid > 0 {
			valid = h.valid
		}
	}
	valid = max(min(valid, maximum), minimum)
	preferred = Infinite
	if valid != Infinite {
		preferred = uint32(uint64(valid) * 5 / 8)
	}
	preferred = min(all.number("preferred-lifetime", preferred), valid)
	d.note(sourceOf(all, "default-lease-time"), "lease time", "%d s, between %d and %d, preferred for %d s", valid, minimum, maximum,
		preferred)
	return preferred, valid
}

// decideConfirm tells the client whether its addresses are of its link.
func (d *decider6) decideConfirm() {
	named, all := 0, true
	for _, a := range d.all {
		if a.code == dhcpmsg.OptIAPD6 {
			continue
		}
		for _, h := range a.hints {
			named++
			all = all && d.onLink(h.address)
		}
	}
	if named == 0 { // RFC 9915 section 18.3.3
		d.refuse(BadMessage, Source{})
		return
	}
	status := Success6
	if !all {
		status, d.d.Reason = NotOnLink6, WrongNetwork
	}
	d.d.Reply = dhcpmsg.Reply6
	d.head()
	d.add(dhcpmsg.OptStatus6, "status-code", statusOf(status), d.candidates[0].source())
	d.note(d.candidates[0].source(), "reply", "%d addresses were confirmed: %t", named, all)
}

// decideRenew extends the leases of the client. The server accepts an address that it does not know as leased, if it is free.
func (d *decider6) decideRenew(rebinds bool) {
	var results []result
	for _, a := range d.all {
		r := result{association: a, status: noStatus6}
		switch {
		case a.code == dhcpmsg.OptIATA6:
			r.status, r.reason = NoBinding6, NotLeased
		case len(a.hints) == 0 && !rebinds && !d.hasBinding(a), // a further association (RFC 9915 section 18.3.4)
			!d.hasBinding(a) && d.hasReservation(a):
			r = d.assign(a)
		case d.hasBinding(a):
			if r = d.assign(a); len(r.granted) == 0 {
				r.status, r.removed = noStatus6, a.hints
			}
		default:
			b, ok := d.claimed(a)
			if ok {
				d.grant(&r, b)
				break
			}
			r.reason = NotLeased
			if !rebinds {
				r.status = NoBinding6
				break
			}
			pools, _, _ := d.pools(a.code == dhcpmsg.OptIAPD6, a)
			for _, h := range a.hints {
				_, known := d.dynamic(pools, h.address)
				if prefix := a.code == dhcpmsg.OptIAPD6; prefix && !known && d.onLink(h.address) || !prefix && !d.onLink(h.address) {
					r.removed, r.reason = append(r.removed, h), WrongNetwork
				}
			}
			if len(r.removed) == 0 {
				continue // another server may know the lease
			}
		}
		results = append(results, r)
	}
	if len(results) == 0 {
		d.refuse(NotLeased, d.candidates[0].source())
		return
	}
	d.d.Reply = dhcpmsg.Reply6
	d.finish(results, ActCommit)
}

// hasBinding reports whether the client has a lease for an association, or had one that an operator ended.
func (d *decider6) hasBinding(a association) bool {
	client := Identity6(a.code == dhcpmsg.OptIAPD6, a.iaid, d.d.DUID)
	for _, n := range d.candidates {
		if l, ok := d.leases.ClientLease(n.ID, client); ok && l.State == Leased {
			return true
		}
	}
	return false
}

// hasReservation reports whether an address or prefix is reserved for an association and free.
func (d *decider6) hasReservation(a association) bool {
	prefix := a.code == dhcpmsg.OptIAPD6
	return slices.ContainsFunc(d.reservations(prefix), func(r *reservation) bool {
		return d.available(r, Identity6(prefix, a.iaid, d.d.DUID))
	})
}

// claimed returns the binding of an address or prefix that the client names, and that is free. Nothing is reserved for the client.
func (d *decider6) claimed(a association) (b binding, ok bool) {
	prefix := a.code == dhcpmsg.OptIAPD6
	pools, _, _ := d.pools(prefix, a)
	for _, h := range a.hints {
		if !d.isFree(h.address, Identity6(prefix, a.iaid, d.d.DUID)) {
			continue
		}
		if b, ok := d.dynamic(pools, h.address); ok && (!prefix || b.length == h.length) {
			return b, true
		}
	}
	return b, false
}

// decideEnd releases the leases of the client, or abandons the addresses that it declines.
func (d *decider6) decideEnd(declines bool) {
	var results []result
	for _, a := range d.all {
		prefix := a.code == dhcpmsg.OptIAPD6
		client, held := Identity6(prefix, a.iaid, d.d.DUID), 0
		for _, h := range a.hints {
			l, ok := d.leases.Lease(h.address)
			if !ok || l.Client != client || l.State != Leased && !(declines && l.State == Offered) || declines && prefix {
				continue
			}
			held++
			change := Change6{Action: ActRelease, Address: h.address, PrefixLength: h.length, Network: l.Network, Client: client, IAID: a.iaid}
			if n := d.c.networks[l.Network]; declines && n != nil {
				change.Action = ActDecline
				p := n.findPool(h.address)
				if change.AbandonSeconds = d.layers(n, p, n.reservation6(h.address)).number("abandon-lease-time", 86400); p != nil {
					change.Pool = p.ID
				}
			}
			d.d.Changes = append(d.d.Changes, change)
		}
		if held == 0 {
			results = append(results, result{association: a, status: NoBinding6, reason: NotHolder})
		}
	}
	d.d.Reply = dhcpmsg.Reply6
	d.head()
	d.add(dhcpmsg.OptStatus6, "status-code", statusOf(Success6), Source{})
	for _, r := range results {
		d.d.Reason = r.reason
		d.add(r.code, nameOfAssociation(r.code), r.encode(0, 0), Source{})
	}
}

// finish adds the changes of leases and the options of a reply with results.
func (d *decider6) finish(results []result, action Action) {
	d.head()
	available := len(results) == 0
	scope := d.layersOf(results)
	for _, r := range results {
		for i := range r.granted {
			available = true
			d.change(&r, &r.granted[i], action)
		}
		if r.reason != Served && d.d.Reason == Served {
			d.d.Reason = r.reason
		}
		t1, t2 := d.timers(&r)
		from := d.candidates[0].source()
		if len(r.granted) > 0 && r.granted[0].reservation != nil {
			from = r.granted[0].reservation.source()
		} else if len(r.granted) > 0 && r.granted[0].pool != nil {
			from = r.granted[0].pool.source()
		}
		d.add(r.code, nameOfAssociation(r.code), r.encode(t1, t2), from)
	}
	if available {
		d.d.Reason = Served
	}
	if s := scope.service("preference"); s != nil && d.d.Reply == dhcpmsg.Advertise6 {
		d.add(dhcpmsg.OptPreference6, "preference", []byte{byte(s.number)}, s.From)
	}
	if d.f.Message.Type == dhcpmsg.Solicit6 && d.d.Reply == dhcpmsg.Reply6 {
		d.add(dhcpmsg.OptRapidCommit6, "rapid-commit", nil, sourceOf(scope, "rapid-commit"))
	}
	if !available { // RFC 7083: the client waits longer before it asks again
		d.requests[dhcpmsg.OptSolMaxRT6] = true
	}
	d.addOptions(scope)
}

// layersOf returns the scopes of the options of a reply: those of the reservations of all associations, then those of the first address or,
// without one, of the first prefix.
func (d *decider6) layersOf(results []result) (all layers) {
	var first *binding
	for _, prefixes := range []bool{false, true} {
		for _, r := range results {
			if prefixes != (r.code == dhcpmsg.OptIAPD6) {
				continue
			}
			for i := range r.granted {
				b := &r.granted[i].binding
				if first == nil {
					first = b
				}
				if b.reservation != nil && b.reservation.own6 != nil {
					all = append(all, b.reservation.own6)
				}
			}
		}
	}
	if first == nil {
		return d.layers(d.candidates[0], nil, nil)
	}
	return append(all, d.layers(first.network, first.pool, nil)...)
}

// change adds the change of a lease, and the ends of the leases that it replaces.
func (d *decider6) change(r *result, g *grant6, action Action) {
	client := Identity6(r.code == dhcpmsg.OptIAPD6, r.iaid, d.d.DUID)
	c := Change6{Action: action, Address: g.address, PrefixLength: g.length, Network: g.network.ID, Client: client, IAID: r.iaid,
		Preferred: g.preferred, Valid: g.valid, Start: d.now, Expires: d.now + int64(g.valid)}
	if g.valid == Infinite {
		c.Expires = InfiniteTime
	}
	c.Wanted = c.Expires
	if l, ok := d.leases.(Limiter); ok {
		if end := l.Limit(c.Network, c.Address, client, c.Expires, d.now); end < c.Expires {
			short := uint32(min(max(end-d.now, 1), math.MaxUint32-1)) //nolint:gosec // within its limits
			g.preferred = uint32(uint64(min(g.preferred, g.valid)) * uint64(short) / uint64(g.valid))
			c.Expires, c.Valid, c.Preferred, g.valid = end, short, g.preferred, short
			d.note(Source{}, "lease time", "the partner of the failover pair has acknowledged at most %d s", short)
		}
	}
	if g.pool != nil {
		c.Pool = g.pool.ID
	}
	if g.reservation != nil {
		c.Reservation = g.reservation.ID
	}
	all := d.layers(g.network, g.pool, g.reservation)
	if c.PrefixLength == 0 {
		d.nameClient(all, &c, g)
	}
	if action == ActCommit {
		if d.cached(all, &c) {
			g.preferred, g.valid = c.Preferred, c.Valid
		}
		d.endOthers(all, g, client)
	}
	d.d.Changes = append(d.d.Changes, c)
}

// nameClient decides on the names of the client in DNS for an address.
func (d *decider6) nameClient(all layers, c *Change6, g *grant6) {
	x := &client{all: all, v6: true, address: c.Address, seconds: c.Valid, fqdn: d.fqdn, reservation: g.reservation, hardware: d.d.Hardware,
		duid: d.d.DUID, identifiers: func() []identifier {
			return identifiers6(d.d.DUID, d.d.HardwareType, d.d.Hardware)
		}}
	n := x.decideNames()
	if c.Names = n.names; c.Names != nil {
		d.note(n.from, "names in DNS", "%s", c.Names)
	}
	if d.named.names == nil {
		d.named = n
	}
}

// cached makes a change a renewal that is not stored, if the lease is so young that the rest of it is enough (dhcp-cache-threshold).
func (d *decider6) cached(all layers, c *Change6) bool {
	l, ok := d.leases.Lease(c.Address)
	if !ok || l.State != Leased || l.Ended || l.Client != c.Client || l.Expires <= d.now || l.Expires == InfiniteTime ||
		!c.Names.Same(l.Names) ||
		(d.now-l.Start)*100 >= (l.Expires-l.Start)*int64(all.number("dhcp-cache-threshold", 25)) || l.Expires > c.Expires {
		return false
	}
	rest := uint32(min(l.Expires-d.now, math.MaxUint32-1))
	c.Action, c.Start, c.Expires = ActRenew, l.Start, l.Expires
	c.Preferred = uint32(uint64(c.Preferred) * uint64(rest) / uint64(max(c.Valid, 1)))
	c.Valid = rest
	d.note(Source{}, "lease time", "the lease is renewed early, and has %d s left", rest)
	return true
}

// endOthers ends the leases of the association at other addresses of the link and, with release-on-roam, in other networks.
func (d *decider6) endOthers(all layers, g *grant6, client string) {
	release := func(l LeaseState) {
		if l.State == Leased && l.Address != g.address {
			d.d.Changes = append(d.d.Changes, Change6{Action: ActRelease, Address: l.Address, Network: l.Network, Client: client,
				PrefixLength: d.lengthOf(l)})
		}
	}
	for _, n := range d.candidates {
		if l, ok := d.leases.ClientLease(n.ID, client); ok {
			release(l)
		}
	}
	if all.flag("release-on-roam", false) {
		for _, l := range d.leases.OtherLeases(g.network.ID, client) {
			if !slices.ContainsFunc(d.candidates, func(n *network) bool { return n.ID == l.Network }) {
				release(l)
			}
		}
	}
}

// lengthOf returns the length of the prefix of a lease; 0 for an address.
func (d *decider6) lengthOf(l LeaseState) int {
	n := d.c.networks[l.Network]
	if n == nil || l.Client == "" || l.Client[0] != 'p' {
		return 0
	}
	if p := n.poolOf(l.Address); p != nil {
		return p.DelegatedLength
	}
	for _, r := range n.byAddress[l.Address] {
		return r.PrefixLength
	}
	return 0
}

// timers returns T1 and T2 of an association: 0.5 and 0.8 of the shortest preferred lifetime (RFC 9915 section 21.4), or 0 where
// dhcpv6-set-tee-times leaves them to the client.
func (d *decider6) timers(r *result) (t1, t2 uint32) {
	if len(r.granted) == 0 {
		return 0, 0
	}
	shortest := Infinite
	for _, g := range r.granted {
		shortest = min(shortest, g.preferred)
	}
	g := r.granted[0]
	switch {
	case !d.layers(g.network, g.pool, g.reservation).flag("dhcpv6-set-tee-times", true):
		return 0, 0
	case shortest == Infinite:
		return Infinite, Infinite
	}
	return shortest / 2, uint32(uint64(shortest) * 4 / 5)
}

func nameOfAssociation(code uint16) string {
	switch code {
	case dhcpmsg.OptIAPD6:
		return "ia-pd"
	case dhcpmsg.OptIATA6:
		return "ia-ta"
	}
	return "ia-na"
}

// encode returns the data of the option of an association.
func (r *result) encode(t1, t2 uint32) []byte {
	out := binary.BigEndian.AppendUint32(nil, r.iaid)
	if r.code != dhcpmsg.OptIATA6 {
		out = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(out, t1), t2)
	}
	put := func(a netip.Addr, length int, preferred, valid uint32) {
		var data []byte
		times := func() {
			data = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(data, preferred), valid)
		}
		if r.code == dhcpmsg.OptIAPD6 {
			times()
			out = dhcpmsg.AppendOption6(out, dhcpmsg.OptIAPrefix6, append(append(data, byte(length)), a.AsSlice()...))
			return
		}
		data = a.AsSlice()
		times()
		out = dhcpmsg.AppendOption6(out, dhcpmsg.OptIAAddress6, data)
	}
	for _, g := range r.granted {
		put(g.address, g.length, g.preferred, g.valid)
	}
	for _, h := range r.removed {
		put(h.address, h.length, 0, 0)
	}
	if r.status != noStatus6 {
		out = dhcpmsg.AppendOption6(out, dhcpmsg.OptStatus6, statusOf(r.status))
	}
	return out
}

// statusOf returns the data of a status code option.
func statusOf(s Status6) []byte {
	text := map[Status6]string{NoAddrsAvail6: "no address is available", NoBinding6: "the server has no such lease",
		NotOnLink6: "an address is not of this link", NoPrefixAvail6: "no prefix is available"}[s]
	return append(binary.BigEndian.AppendUint16(nil, uint16(s)), text...)
}
