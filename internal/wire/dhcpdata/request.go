package dhcpdata

import (
	"net/netip"
	"slices"
)

// kindOfRequest is the state of the client that sends a REQUEST (RFC 2131 section 4.3.2).
type kindOfRequest string

const (
	selecting  kindOfRequest = "SELECTING"
	initReboot kindOfRequest = "INIT-REBOOT"
	renewing   kindOfRequest = "RENEWING"
	rebinding  kindOfRequest = "REBINDING"
)

// ownID reports whether an address identifies this server to the client.
func (d *decider) ownID(a netip.Addr) bool {
	if slices.Contains(d.f.Local, a) || slices.Contains(d.c.Server.Addresses, a) || a == d.identifier(d.layers(d.candidates[0], nil, nil)) {
		return true
	}
	return slices.ContainsFunc(d.candidates, func(n *network) bool { return n.Identifier == a })
}

// identifier returns the address that the server identifies itself by.
func (d *decider) identifier(all layers) netip.Addr {
	if data, ok := d.f.option(optRelay, subServerIDOverride); ok && len(data) == 4 && d.f.Options[optRelay] != nil && d.f.Relay.IsValid() {
		return netip.AddrFrom4([4]byte(data))
	}
	if s := all.service("server-identifier"); s != nil {
		return s.address
	}
	for _, p := range d.f.Interface {
		if d.networkOf(p.Addr()) != nil {
			return p.Addr()
		}
	}
	if a := d.candidates[0].Identifier; a.IsValid() {
		return a
	}
	for _, a := range slices.Concat(d.c.Server.Addresses, d.f.Local) {
		if a.Is4() {
			return a
		}
	}
	return netip.Addr{}
}

// decideRequest decides on a REQUEST.
func (d *decider) decideRequest() {
	kind, address := initReboot, d.requested
	switch {
	case d.f.Client.IsValid() && d.f.Unicast && !d.f.Relay.IsValid():
		kind, address = renewing, d.f.Client
	case d.f.Client.IsValid():
		kind, address = rebinding, d.f.Client
	case d.serverID.IsValid():
		kind = selecting
	}
	if !address.IsValid() {
		d.refuse(BadMessage, Source{})
		return
	}
	d.note(Source{}, "request", "%s, for %s", kind, address)
	if kind == selecting && !d.ownID(d.serverID) && d.layers(d.candidates[0], nil, nil).flag("server-id-check", true) {
		d.refuse(OtherServer, Source{})
		d.d.Action = ActWithdraw
		return
	}
	c, from, reason := d.examine(kind, address)
	if reason == Served {
		d.grant(c, Ack, ActCommit)
		return
	}
	d.deny(kind, from, reason)
}

// deny sends a NAK or, where the server does not know that the address is wrong, nothing.
func (d *decider) deny(kind kindOfRequest, from Source, reason Reason) {
	authoritative := d.layers(d.candidates[0], nil, nil).flag("authoritative", false)
	switch {
	case reason == OwnedByPartner, reason == WrongNetwork && kind != selecting && !authoritative, reason == NotLeased && kind != selecting,
		(kind == initReboot || kind == rebinding) && aboutClient(reason) && !d.isKnown(kind):
		d.refuse(reason, from)
		return
	}
	d.d.Reply, d.d.Action, d.d.Reason, d.d.Address = Nak, ActNothing, reason, netip.Addr{}
	if kind == selecting {
		d.d.Action = ActWithdraw
	}
	d.note(from, "reply", "NAK: %s", reason)
	all := d.layers(d.candidates[0], nil, nil)
	d.d.ServerID = d.identifier(all)
	d.d.Options = []Sent{{Code: optServerID, Name: "dhcp-server-identifier", Value: d.d.ServerID.AsSlice()},
		{Code: optMessage, Name: "dhcp-message", Value: []byte(reason)}}
	d.d.Options = d.echo(all, d.d.Options)
}

// aboutClient reports whether a reason only tells that this server does not lease the address to the client. Another server of the link
// may, so a client that this server does not know gets no NAK (RFC 2131 section 4.3.2).
func aboutClient(reason Reason) bool {
	switch reason {
	case WrongNetwork, LeasedToOther, ReservedForOther, HasReservation, EndedByOperator:
		return false
	}
	return true
}

// isKnown reports whether the client is known by a lease in one of its networks.
func (d *decider) isKnown(kind kindOfRequest) bool {
	return slices.ContainsFunc(d.candidates, func(n *network) bool {
		l, ok := d.leases.ClientLease(n.ID, d.d.Client)
		return ok && l.makesKnown(kind)
	})
}

// makesKnown reports whether a client is known by its lease. A client that rebinds has a lease: if the one here is a former one, another
// server has leased the address since.
func (l LeaseState) makesKnown(kind kindOfRequest) bool {
	return l.State == Leased || l.State == Free && kind == initReboot
}

// examine returns the choice for the address of a REQUEST, or the reason against it.
func (d *decider) examine(kind kindOfRequest, a netip.Addr) (c choice, from Source, reason Reason) {
	n := d.networkOf(a)
	if n == nil {
		return c, d.candidates[0].source(), WrongNetwork
	}
	l, recorded := d.leases.Lease(a)
	r := d.reservation()
	if recorded && l.Ended && d.holds(l) && (kind != selecting || r == nil || r.Address != a) { // else it has got a new offer since
		return c, n.source(), EndedByOperator
	}
	if recorded && l.Partner {
		return c, n.source(), OwnedByPartner
	}
	if r != nil {
		if r.Address == a {
			if !d.available(r) {
				return c, r.source(), LeasedToOther
			}
			return choice{network: r.network, reservation: r, pool: r.network.findPool(a), address: a}, Source{}, Served
		}
		if d.available(r) {
			return c, r.source(), HasReservation
		}
	}
	if others := n.byAddress[a]; len(others) > 0 {
		return c, others[0].source(), ReservedForOther
	}
	p := n.poolOf(a)
	if p == nil || !d.leasable(p, a) {
		return c, n.source(), NotServedAddress
	}
	if from, reason := d.permits(p); reason != Served && !(reason == ClassLimit && recorded && l.State == Leased && d.holds(l)) {
		return c, from, reason
	}
	if from, reason := d.examineLease(kind, p, a, l, recorded); reason != Served {
		return c, from, reason
	}
	return choice{network: n, pool: p, address: a}, Source{}, Served
}

// examineLease examines the record of a dynamic address.
func (d *decider) examineLease(kind kindOfRequest, p *pool, a netip.Addr, l LeaseState, recorded bool) (Source, Reason) {
	switch {
	case recorded && (l.State == Abandoned || l.Ended):
		return p.source(), LeasedToOther
	case contains(p.Probed, a) && (kind == selecting || kind == initReboot) && (l.State != Leased && l.State != Offered || !d.holds(l)):
		return p.source(), NotLeased // a static address is probed before each offer
	case recorded && d.holds(l):
		return Source{}, Served // also a former lease whose address no other client has received
	case recorded && l.State != Free:
		return p.source(), LeasedToOther
	}
	switch kind {
	case selecting: // the offer was forgotten in a restart
		return Source{}, Served
	case renewing: // RFC 2131 section 4.3.2: the server trusts a client that renews. The address is free.
		return Source{}, Served
	}
	for _, n := range d.candidates { // a client that the server knows asks for a wrong address
		if held, ok := d.leases.ClientLease(n.ID, d.d.Client); ok && held.Address != a && held.makesKnown(kind) {
			return n.source(), LeasedToOther
		}
	}
	return p.source(), NotLeased
}

// decideBOOTP decides on a BOOTP request: a reservation or, with dynamic-bootp, an address of a range.
func (d *decider) decideBOOTP() {
	c, from, reason := d.choose()
	if reason != Served {
		d.refuse(reason, from)
		return
	}
	d.grant(c, BOOTP, ActCommit)
}

// decideDecline abandons an address that the client holds or was offered.
func (d *decider) decideDecline() {
	all := d.layers(d.candidates[0], nil, nil)
	if d.serverID.IsValid() && !d.ownID(d.serverID) {
		d.refuse(OtherServer, Source{})
		return
	}
	if s := all.service("declines"); s != nil && !s.flag {
		d.refuse(DeclinesOff, s.From)
		return
	}
	l, ok := d.leases.Lease(d.requested)
	n := d.networkOf(d.requested)
	if !ok || n == nil || !d.holds(l) || l.State != Leased && l.State != Offered {
		d.refuse(NotHolder, Source{})
		return
	}
	p := n.findPool(d.requested)
	d.refuse(Served, Source{})
	d.d.Action, d.d.Address, d.d.Network = ActDecline, d.requested, n.ID
	d.d.AbandonSeconds = d.layers(n, p, d.reservationOf(d.requested)).number("abandon-lease-time", 86400)
	if p != nil {
		d.d.Pool = p.ID
	}
}

// decideRelease ends the lease of an address that the client holds.
func (d *decider) decideRelease() {
	if d.serverID.IsValid() && !d.ownID(d.serverID) {
		d.refuse(OtherServer, Source{})
		return
	}
	l, ok := d.leases.Lease(d.f.Client)
	n := d.networkOf(d.f.Client)
	if !ok || n == nil || l.State != Leased || !d.holds(l) {
		d.refuse(NotHolder, Source{})
		return
	}
	if l.Expires == InfiniteTime && d.layers(n, n.findPool(d.f.Client), d.reservationOf(d.f.Client)).flag("infinite-is-reserved", false) {
		d.refuse(Served, n.source())
		d.note(n.source(), "release", "an infinite lease is kept")
		return
	}
	d.refuse(Served, Source{})
	d.d.Action, d.d.Address, d.d.Network = ActRelease, d.f.Client, n.ID
}

// decideInform answers with options only.
func (d *decider) decideInform() {
	if !d.f.Client.IsValid() {
		d.refuse(BadMessage, Source{})
		return
	}
	n := d.networkOf(d.f.Client)
	if n == nil {
		n = d.candidates[0]
	}
	r := d.reservation()
	if r != nil && r.Address != d.f.Client {
		r = nil
	}
	p := n.findPool(d.f.Client)
	d.d.Reply, d.d.Network = Ack, n.ID
	d.reply(d.layers(n, p, r), choice{network: n, pool: p, reservation: r})
}
