package dhcp

import (
	"cmp"
	"encoding/hex"
	"net/netip"

	"portolan/internal/base/dhcpmsg"
	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"
)

// request6 is a DHCPv6 message with the facts about its way here.
type request6 struct {
	facts dhcpdata.Facts6
	// reply sends a reply. It may be called later, and from another goroutine.
	reply func(packet []byte)
}

// handle6 decides on a DHCPv6 message and carries the decision out. It shares the leases, the journal and the limits of DHCPv4.
func (e *engine) handle6(r *request6) { e.decide6(r, 0) }

func (e *engine) decide6(r *request6, probed int) {
	e.mu.Lock()
	e.withoutRapidCommit(r)
	c := e.content.Load().compiled
	d := dhcpdata.Decide6(c, &r.facts, e.leasesFor(c), e.clock.now())
	reason, sendsNow := cmp.Or(e.refusesUnknown6(d), e.refusesPaired6(c, r, d)), false
	if unknown, is := e.probing6(r, d); reason == "" && is != probeActive {
		reason, sendsNow = e.carryOut6(r, d)
		if sendsNow && is == probeNeeded && d.Reply != 0 {
			sendsNow = false
			reason = cmp.Or(e.probe6(r, d, unknown, probed), reason)
		}
	}
	e.mu.Unlock()
	if reason != "" {
		e.counters.refuse(d.Network, reason)
		e.observe6(r, d, reason)
	}
	if sendsNow && d.Reply != 0 {
		e.send6(r, d)
	}
}

// carryOut6 changes the leases. It returns the reason why the client is not served, and whether the reply, if there is one, is sent at
// once. All changes of a message are stored together. The caller holds mu.
func (e *engine) carryOut6(r *request6, d *dhcpdata.Decision6) (reason string, sendsNow bool) {
	var p pending6
	for _, change := range d.Changes {
		switch change.Action {
		case dhcpdata.ActOffer:
			if reason := e.offer6(r, d, change); reason != "" {
				return reason, false
			}
		case dhcpdata.ActCommit:
			e.lease6(&p, r, d, change)
		case dhcpdata.ActDecline, dhcpdata.ActRelease:
			e.end6(&p, change)
		case dhcpdata.ActRenew:
			if l := e.unstoredLease(change.Address); l != nil {
				p.waits = append(p.waits, l)
			}
		case dhcpdata.ActNothing, dhcpdata.ActWithdraw:
		}
	}
	for _, id := range d.Exhausted {
		e.table.pool(id).exhausted = e.pairOf(d.Network) == nil // the partner may give addresses, or time may free them
	}
	if len(p.entries)+len(p.waits) == 0 {
		return string(d.Reason), true
	}
	send := func() { e.send6(r, d) }
	c := commit{entries: p.entries, leases: p.leases, named: p.named, done: func() { e.afterStored(p.waits, send) }, undo: func() {
		for i := len(p.undo) - 1; i >= 0; i-- {
			p.undo[i]()
		}
	}}
	if len(e.commits) > maxCommits*7/8 && !p.renews {
		c.undo()
		return busy, false
	}
	select {
	case e.commits <- c:
		for _, l := range p.renewed {
			e.renewals.add(l)
		}
		return string(d.Reason), false
	default:
		c.undo()
		return busy, false
	}
}

// pending6 collects the changes of one message. renews is true if all of them are renewals. leases are the new leases, and waits those that
// the reply repeats, and that wait for the disk.
type pending6 struct {
	entries [][]byte
	undo    []func()
	renewed []*lease
	named   []*lease
	leases  []*lease
	waits   []*lease
	renews  bool
}

// offer6 holds an address for the client. It returns the reason if it cannot.
func (e *engine) offer6(r *request6, d *dhcpdata.Decision6, c dhcpdata.Change6) string {
	switch {
	case e.full.Load():
		return journalFull
	case len(e.commits) > maxCommits*3/4:
		return busy
	}
	o := offer{network: c.Network, pool: c.Pool, client: c.Client, hardware: append([]byte(nil), d.Hardware...), relay: relayOf6(r)}
	if l, ok := e.table.Lease(c.Address); ok && l.State == dhcpdata.Leased { // the client asks again about an address that it has
		return ""
	}
	if !e.table.offer(o, c.Address) {
		return tooMany
	}
	return ""
}

// relayOf6 returns the address of the relay next to the client; invalid without one.
func relayOf6(r *request6) netip.Addr {
	relays := r.facts.Message.Relays
	if len(relays) == 0 {
		return netip.Addr{}
	}
	return relays[len(relays)-1].Link
}

// lease6 leases an address or prefix.
func (e *engine) lease6(p *pending6, r *request6, d *dhcpdata.Decision6, c dhcpdata.Change6) {
	l := &lease{network: c.Network, pool: c.Pool, reservation: c.Reservation, address: c.Address, state: dhcpdata.Leased, start: c.Start,
		renewed: c.Start, expires: c.Expires, holder: holderOf6(r, d, c), names: c.Names,
		unstored: true}
	p.leases = append(p.leases, l)
	before := e.table.lease(c.Address)
	e.keepNames(before, l)
	e.pairGrant(before, l, c.Wanted)
	entry, renews := e.entryOf(before, l)
	p.renews = renews && (p.renews || len(p.entries) == 0)
	p.entries = append(p.entries, entry)
	p.named = append(p.named, e.takeNames(before, l)...)
	p.undo = append(p.undo, func() { e.table.restore(l, before) }, e.keepRenewal(l))
	e.table.set(l.address, l)
	e.table.withdraw(c.Client)
	if e.renewals.forget(l); entry[0] == entryRenewal || entry[0] == entryPairedRenewal {
		p.renewed = append(p.renewed, l)
	}
}

// end6 ends the lease of an address or prefix, or abandons a declined address.
func (e *engine) end6(p *pending6, c dhcpdata.Change6) {
	e.table.withdraw(c.Client)
	before := e.table.lease(c.Address)
	now := e.clock.now()
	var after *lease
	kind := dhcplease.Release
	switch {
	case c.Action == dhcpdata.ActRelease && (before == nil || before.state != dhcpdata.Leased):
		return
	case c.Action == dhcpdata.ActRelease:
		after = endedLease(before, now)
	default:
		kind = dhcplease.Decline
		after = &lease{network: c.Network, pool: c.Pool, address: c.Address, state: dhcpdata.Abandoned, start: now, renewed: now,
			expires: now + int64(c.AbandonSeconds), holder: &holder{client: c.Client}}
		if before != nil {
			after.holder, after.pool = before.holder, before.pool
		}
	}
	p.renews = false
	p.leases = append(p.leases, after)
	e.pairEnd(before, after)
	p.entries = append(p.entries, event(kind, now, 0, after))
	p.named = append(p.named, e.named(before, after)...)
	p.undo = append(p.undo, func() { e.table.restore(after, before) }, e.keepRenewal(after))
	e.table.set(c.Address, after)
	e.renewals.forget(after)
}

// The relay information of a lease of IPv6 is stored like sub-options of DHCPv4, with these codes.
const (
	stored6RemoteID     = 2
	stored6SubscriberID = 6
	stored6InterfaceID  = 18
	stored6PrefixLength = 200
)

// holderOf6 returns the client of a message. It copies the octets, because the packet is used again.
func holderOf6(r *request6, d *dhcpdata.Decision6, c dhcpdata.Change6) *holder {
	h := &holder{client: c.Client, hardwareType: uint8(min(d.HardwareType, 255)), hardware: octetsOf(d.Hardware, 16), hostName: d.HostName,
		relayAddress: relayOf6(r)}
	add := func(code byte, data []byte) {
		value := octetsOf(data, 128)
		h.relay += string([]byte{code, byte(len(value))}) + value
	}
	if relays := r.facts.Message.Relays; len(relays) > 0 {
		inner := relays[len(relays)-1].Options
		const enterprise = 4 // a remote id begins with an enterprise number (RFC 4649)
		if data, ok := inner.Find(dhcpmsg.OptRemoteID6); ok && len(data) > enterprise {
			add(stored6RemoteID, data[enterprise:])
		}
		if data, ok := inner.Find(dhcpmsg.OptSubscriberID6); ok && len(data) > 0 {
			add(stored6SubscriberID, data)
		}
		if data, ok := inner.Find(dhcpmsg.OptInterfaceID6); ok && len(data) > 0 {
			add(stored6InterfaceID, data)
		}
	}
	if c.PrefixLength > 0 {
		add(stored6PrefixLength, []byte{byte(c.PrefixLength)})
	}
	if data, ok := r.facts.Message.Options.Find(vendorClass6); ok && len(data) > 6 {
		h.vendor = octetsOf(data[6:], 255) // after the enterprise number and the length of the first class
	}
	return h
}

// vendorClass6 is the code of the vendor class option.
const vendorClass6 = 16

// describe6 sets the members of a lease that only IPv6 has. The identity of the holder contains the DUID and the number of the association.
func describe6(h *holder, out *dhcplease.Lease) {
	if iaid, duid, ok := dhcpdata.ParseIdentity6(h.client); ok {
		out.IAID, out.DUID = iaid, hex.EncodeToString(duid)
	}
	if data, ok := dhcpdata.SubOption([]byte(h.relay), stored6InterfaceID); ok {
		out.InterfaceID = hex.EncodeToString(data)
	}
	if data, ok := dhcpdata.SubOption([]byte(h.relay), stored6PrefixLength); ok && len(data) == 1 {
		out.PrefixLength = int(data[0])
	}
}

// forgetAfter6 is the time in seconds after which a former lease of IPv6 is forgotten. There are too many addresses to remember all.
const forgetAfter6 = 30 * 86400

// forgets6 reports whether a former lease of IPv6 is forgotten.
func (e *engine) forgets6(l *lease) bool {
	return l.address.Is6() && l.state == dhcpdata.Free && l.pair == nil && l.expires < e.clock.now()-forgetAfter6
}

// send6 encodes and sends the reply of a decision.
func (e *engine) send6(r *request6, d *dhcpdata.Decision6) {
	options := make(dhcpmsg.Options6, 0, len(d.Options))
	for _, o := range d.Options {
		options = append(options, dhcpmsg.Option6{Code: o.Code, Data: o.Value})
	}
	e.counters.send(messageName6(d.Reply))
	r.reply(dhcpmsg.Write6(r.facts.Message, d.Reply, options))
}

// messageName6 returns the name of the type of a DHCPv6 message.
func messageName6(kind uint8) string {
	names := []string{"SOLICIT", "ADVERTISE", "REQUEST6", "CONFIRM", "RENEW", "REBIND", "REPLY", "RELEASE6", "DECLINE6", "RECONFIGURE",
		"INFORMATION-REQUEST", "RELAY-FORW", "RELAY-REPL"}
	if kind >= 1 && int(kind) <= len(names) {
		return names[kind-1]
	}
	return "OTHER"
}
