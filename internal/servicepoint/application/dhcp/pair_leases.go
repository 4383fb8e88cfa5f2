package dhcp

import (
	"net/netip"
	"slices"

	"portolan/internal/base/dhcpmsg"
	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcppair"
)

// pairedLeases is the view of the leases for a decision if there are failover pairs: an address that this server may not lease to a client
// is leased.
type pairedLeases struct {
	*table
	e *engine
	c *dhcpdata.Content
}

var (
	_ dhcpdata.Leases  = pairedLeases{}
	_ dhcpdata.Limiter = pairedLeases{}
)

// leasesFor returns the view of the leases for a decision. The caller holds mu.
func (e *engine) leasesFor(c *dhcpdata.Content) dhcpdata.Leases {
	if len(e.pairs) == 0 {
		return e.table
	}
	return pairedLeases{e.table, e, c}
}

// Lease implements dhcpdata.Leases.
func (v pairedLeases) Lease(a netip.Addr) (dhcpdata.LeaseState, bool) {
	l, ok := v.table.Lease(a)
	p := v.e.pairs[v.c.PairOf(a)]
	if p == nil || ok && l.State == dhcpdata.Offered {
		return l, ok
	}
	now := v.e.clock.now()
	r := p.Record(a)
	switch {
	case p.machine.CanReclaim(r, now):
		l.State = dhcpdata.Free
		return l, ok
	case r.IsHeld() && l.State == dhcpdata.Free:
		if l.State = dhcpdata.Leased; v.table.lease(a).state == dhcpdata.Abandoned {
			l.State = dhcpdata.Abandoned
		}
		return l, ok
	case r.IsHeld() || l.State == dhcpdata.Abandoned || p.machine.May(r, "", now):
		return l, ok
	}
	return dhcpdata.LeaseState{Network: networkAt(v.c, a), Address: a, State: dhcpdata.Leased, Partner: true}, true
}

// NextFree implements dhcpdata.Leases. An abandoned address is used again when both servers have agreed.
func (v pairedLeases) NextFree(network, pool int64, ranges []dhcpdata.Interval, abandoned bool,
	usable func(netip.Addr) bool) (netip.Addr, bool) {
	p := v.e.pairOf(network)
	if p == nil {
		return v.table.NextFree(network, pool, ranges, abandoned, usable)
	}
	if abandoned {
		return netip.Addr{}, false
	}
	now := v.e.clock.now()
	return v.table.NextFree(network, pool, ranges, false, func(a netip.Addr) bool {
		r := p.Record(a)
		return usable(a) && (!r.IsHeld() && p.machine.May(r, "", now) || p.machine.CanReclaim(r, now))
	})
}

// Exhausted implements dhcpdata.Leases. An address also becomes free when the pair changes its state.
func (pairedLeases) Exhausted(int64) bool { return false }

// Limit implements dhcpdata.Limiter.
func (v pairedLeases) Limit(network int64, a netip.Addr, client string, wanted, now int64) int64 {
	p := v.e.pairOf(network)
	if p == nil {
		return wanted
	}
	return p.machine.Limit(p.Record(a), client, wanted, now)
}

// Reasons of a pair for messages without a reply.
const (
	pairNotServing  = "pair-not-serving"
	partnerAnswers  = "partner-answers"
	pairWithoutBOOT = "bootp-with-pair"
)

// maxTried is the maximum number of new clients of the partner that a pair remembers.
const maxTried = 8192

// refusesPaired returns the reason why a server of a pair does not answer a message; empty if it does. The caller holds mu.
func (e *engine) refusesPaired(c *dhcpdata.Content, r *request, d *dhcpdata.Decision) string {
	p := e.pairs[c.PairOfNetwork(d.Network)]
	if p == nil || r.facts.Type == dhcpdata.Inform {
		return ""
	}
	id := r.facts.Options[61]
	if len(id) == 0 {
		id = r.facts.Hardware
	}
	begins := r.facts.Type == dhcpdata.Discover || r.facts.Type == 0
	switch {
	case !p.machine.Serving(e.clock.now()):
		return pairNotServing
	case r.facts.Type == 0 && d.Reservation == 0 && d.Action == dhcpdata.ActCommit: // its client knows no end of the lease
		return pairWithoutBOOT
	case begins && d.Reason == dhcpdata.Exhausted:
		p.need(d.Network)
		return ""
	case grants(d.Action) && !p.may(d.Address, d.Client, d.Reservation):
		return string(dhcpdata.OwnedByPartner)
	case begins && d.Reply != 0 && !p.answers(id, int64(d.Secs)) && !p.isFirstOfReservation(d):
		return partnerAnswers
	}
	return ""
}

// grants reports whether an action leases or offers an address.
func grants(a dhcpdata.Action) bool {
	return a == dhcpdata.ActOffer || a == dhcpdata.ActCommit || a == dhcpdata.ActRenew
}

// may reports whether the rules of the pair allow a lease that the decision allows. A reserved address belongs to the hardware, whatever
// identity its lease has.
func (p *pair) may(a netip.Addr, client string, reservation int64) bool {
	r := p.Record(a)
	return p.machine.May(r, client, p.e.clock.now()) || reservation != 0 && r.IsHeld() && r.State != dhcppair.Abandoned
}

// isFirstOfReservation reports whether a decision is about a reserved address that no client has had. Its owner answers, whatever the
// buckets say.
func (p *pair) isFirstOfReservation(d *dhcpdata.Decision) bool {
	return d.Reservation != 0 && !p.Record(d.Address).IsHeld()
}

// elapsedTime6 is the code of the option with the time for which a client has tried, in hundredths of a second.
const elapsedTime6 = 8

// refusesPaired6 is refusesPaired for DHCPv6.
func (e *engine) refusesPaired6(c *dhcpdata.Content, r *request6, d *dhcpdata.Decision6) string {
	p := e.pairs[c.PairOfNetwork(d.Network)]
	kind := r.facts.Message.Type
	if p == nil || kind == dhcpmsg.InformationRequest6 || kind == dhcpmsg.Confirm6 {
		return ""
	}
	switch {
	case !p.machine.Serving(e.clock.now()):
		return pairNotServing
	case d.Reason == dhcpdata.OwnedByPartner || slices.ContainsFunc(d.Changes, func(one dhcpdata.Change6) bool {
		return grants(one.Action) && !p.may(one.Address, one.Client, one.Reservation)
	}):
		return string(dhcpdata.OwnedByPartner)
	case kind != dhcpmsg.Solicit6:
		return ""
	case d.Reason == dhcpdata.Exhausted:
		p.need(d.Network)
		return ""
	}
	seconds := int64(0)
	if data, ok := r.facts.Message.Options.Find(elapsedTime6); ok && len(data) == 2 {
		seconds = (int64(data[0])<<8 | int64(data[1])) / 100
	}
	for _, one := range d.Changes {
		if one.Reservation != 0 && !p.Record(one.Address).IsHeld() {
			return ""
		}
	}
	if !p.answers(d.DUID, seconds) {
		return partnerAnswers
	}
	return ""
}

// answers reports whether the server answers a new client. A client whose messages always state no time has tried since its first message.
func (p *pair) answers(id []byte, seconds int64) bool {
	now := p.e.clock.now()
	if p.machine.Answers(id, seconds, now) {
		return true
	}
	first, known := p.tried[string(id)]
	if !known || now-first > 60 {
		if len(p.tried) >= maxTried {
			clear(p.tried)
		}
		p.tried[string(id)] = now
		return false
	}
	return p.machine.Answers(id, now-first, now)
}

func networkAt(c *dhcpdata.Content, a netip.Addr) int64 {
	network, _ := c.NetworkAt(a)
	return network
}
