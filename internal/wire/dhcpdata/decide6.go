package dhcpdata

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"portolan/internal/base/dhcpmsg"
)

// decider6 holds the state of one decision about a DHCPv6 message.
type decider6 struct {
	c      *Content
	f      *Facts6
	leases Leases
	now    int64
	d      *Decision6

	// candidates are the networks that the client may receive an address of, the one of its link first.
	candidates []*network
	all        []association
	requests   map[uint16]bool
	// assigned are the addresses that other associations of the same message receive.
	assigned map[netip.Addr]bool
	fqdn     clientFQDN
	named    named // of the first address
}

// Decide6 decides on a DHCPv6 message (RFC 9915): the reply, the addresses and prefixes of each identity association, the options and their
// sources. It is pure: the same content, facts, leases and time give the same decision. now is in Unix seconds.
func Decide6(c *Content, f *Facts6, leases Leases, now int64) *Decision6 {
	d := &decider6{c: c, f: f, leases: leases, now: now, d: &Decision6{}, requests: map[uint16]bool{}, assigned: map[netip.Addr]bool{}}
	if reason := d.readMessage(); reason != Served {
		return d.refuse(reason, Source{})
	}
	if !d.findNetworks() {
		return d.refuse(NoNetwork, Source{})
	}
	ends := f.Message.Type == dhcpmsg.Release6 || f.Message.Type == dhcpmsg.Decline6
	if p := d.c.macs[string(d.d.Hardware)].pool; p != nil && p.Deny && !ends {
		return d.refuse(DeniedPool, Source{Level: AtMACPool, ID: p.ID, Name: p.Name})
	}
	n := d.candidates[0]
	switch f.Message.Type {
	case dhcpmsg.Solicit6:
		d.decideSolicit()
	case dhcpmsg.Request6:
		d.decideRequest()
	case dhcpmsg.Confirm6:
		d.decideConfirm()
	case dhcpmsg.Renew6, dhcpmsg.Rebind6:
		d.decideRenew(f.Message.Type == dhcpmsg.Rebind6)
	case dhcpmsg.Release6, dhcpmsg.Decline6:
		d.decideEnd(f.Message.Type == dhcpmsg.Decline6)
	case dhcpmsg.InformationRequest6:
		d.d.Reply = dhcpmsg.Reply6
		d.reply(d.layers(n, nil, nil))
	default:
		d.refuse(BadMessage, Source{})
	}
	return d.d
}

// note adds a step to the explanation.
func (d *decider6) note(from Source, rule, format string, args ...any) {
	if d.f.Explain {
		d.d.Steps = append(d.d.Steps, Step{Rule: rule, Result: fmt.Sprintf(format, args...), From: from})
	}
}

// refuse ends the decision without a reply.
func (d *decider6) refuse(reason Reason, from Source) *Decision6 {
	d.d.Reply, d.d.Changes, d.d.Options, d.d.Reason = 0, nil, nil, reason
	d.note(from, "reply", "no reply: %s", reason)
	return d.d
}

// readMessage reads the options that identify the client and the server, and checks that they are allowed in the message (RFC 9915
// section 16).
func (d *decider6) readMessage() Reason {
	m := d.f.Message
	var wrong bool
	if d.all, wrong = readAssociations(m.Options); wrong {
		return BadMessage
	}
	d.d.DUID, _ = m.Options.Find(dhcpmsg.OptClientID6)
	d.d.HardwareType, d.d.Hardware = m.LinkLayer6()
	request, _ := m.Options.Find(dhcpmsg.OptRequest6)
	if len(request)%2 != 0 {
		return BadMessage
	}
	for ; len(request) > 0; request = request[2:] {
		d.requests[binary.BigEndian.Uint16(request)] = true
	}
	if data, ok := m.Options.Find(dhcpmsg.OptFQDN6); ok {
		d.fqdn = readFQDN6(data)
		d.d.HostName = d.fqdn.name
	}
	server, named := m.Options.Find(dhcpmsg.OptServerID6)
	switch m.Type {
	case dhcpmsg.Solicit6, dhcpmsg.Confirm6, dhcpmsg.Rebind6:
		if named || len(d.d.DUID) == 0 {
			return BadMessage
		}
	case dhcpmsg.InformationRequest6:
		if len(d.all) > 0 {
			return BadMessage
		}
		if named && !bytes.Equal(server, d.c.duid) {
			return OtherServer
		}
	default:
		if !named || len(d.d.DUID) == 0 {
			return BadMessage
		}
		if !bytes.Equal(server, d.c.duid) {
			return OtherServer
		}
	}
	return Served
}

// findNetworks finds the networks of the client: the link address of the relay closest to it that has one, or else the interface.
func (d *decider6) findNetworks() bool {
	var n *network
	relays := d.f.Message.Relays
	at := netip.Addr{}
	for _, r := range slices.Backward(relays) {
		if !r.Link.IsUnspecified() { // a relay on layer 2 has no link address (RFC 6221)
			at = r.Link
			break
		}
	}
	if at.IsValid() {
		n = d.c.find(at)
		d.note(Source{}, "network", "the relay has the link address %s", at)
	} else {
		for _, p := range d.f.Interface {
			if !p.Addr().Is4() && !p.Addr().IsLinkLocalUnicast() {
				if n = d.c.find(p.Addr()); n != nil {
					d.note(Source{}, "network", "the interface has the address %s", p)
					break
				}
			}
		}
	}
	if n == nil || n.Prefix.Addr().Is4() {
		return false
	}
	d.candidates = []*network{n}
	if n.Shared != 0 {
		for _, other := range d.c.shared[n.Shared] {
			if other != n && !other.Prefix.Addr().Is4() {
				d.candidates = append(d.candidates, other)
			}
		}
	}
	d.d.Network = n.ID
	d.note(n.source(), "network", "%s, %s", n.Prefix, n.company(len(d.candidates)))
	return true
}

// layers returns the scopes for an address of a network, the most specific one first. p and r may be nil.
func (d *decider6) layers(n *network, p *pool, r *reservation) (all layers) {
	if r != nil && r.own6 != nil {
		all = append(all, r.own6)
	}
	if p != nil {
		return append(all, p.scope6)
	}
	return append(all, n.scope6)
}

// reservation6 returns the reservation of an IPv6 address, nil without one.
func (n *network) reservation6(a netip.Addr) *reservation {
	if all := n.byAddress[a]; len(all) > 0 {
		return all[0]
	}
	return nil
}

// binding is an address or prefix for an association, with the objects that it comes from.
type binding struct {
	network     *network
	pool        *pool
	reservation *reservation
	address     netip.Addr
	length      int
}

// String returns the address, or the prefix with its length.
func (b binding) String() string {
	if b.length == 0 {
		return b.address.String()
	}
	return netip.PrefixFrom(b.address, b.length).String()
}

// reservations returns the reservations of the client for addresses, or for prefixes: by DUID first, then by hardware address.
func (d *decider6) reservations(prefix bool) (all []*reservation) {
	for _, n := range d.candidates {
		if r := n.reserved6.find(prefix, d.d.DUID, d.d.Hardware); r != nil {
			all = append(all, r)
		}
	}
	return all
}

// choose chooses the address or prefix of an association: a reservation, the one that it holds or held, the one that it asks for, or a free
// one. reason tells why there is none.
func (d *decider6) choose(a association) (b binding, from Source, reason Reason) {
	prefix := a.code == dhcpmsg.OptIAPD6
	client := Identity6(prefix, a.iaid, d.d.DUID)
	for _, r := range d.reservations(prefix) {
		if d.available(r, client) {
			d.note(r.source(), "address", "reserved for the client")
			return binding{r.network, r.network.findPool(r.Address), r, r.Address, r.PrefixLength}, Source{}, Served
		}
		if l, _ := d.leases.Lease(r.Address); l.Partner {
			return b, r.source(), OwnedByPartner
		}
		d.note(r.source(), "address", "reserved for the client, and leased to another association or client")
	}
	pools, from, reason := d.pools(prefix, a)
	if len(pools) == 0 {
		return b, from, reason
	}
	kind := "address"
	if prefix {
		kind = "prefix"
	}
	var wanted []netip.Addr
	for _, n := range d.candidates {
		if l, ok := d.leases.ClientLease(n.ID, client); ok && !l.Ended {
			wanted = append(wanted, l.Address)
		}
	}
	for _, h := range a.hints {
		wanted = append(wanted, h.address)
	}
	for _, one := range wanted {
		if b, ok := d.dynamic(pools, one); ok && d.isFree(one, client) {
			d.note(b.pool.source(), "address", "the client holds, held or asks for %s", b)
			return b, Source{}, Served
		}
	}
	for _, p := range pools {
		if one, ok := d.pick(p, client); ok {
			b := binding{p.network, p, nil, one, p.DelegatedLength}
			d.note(p.source(), "address", "%s is free", b)
			return b, Source{}, Served
		}
		d.note(p.source(), "range", "%d %s has no free %s", p.ID, p.Name, kind)
	}
	return b, pools[0].source(), Exhausted
}

// pools returns the ranges of addresses, or of prefixes, that serve the client. Ranges with prefixes of the length that the client asks for
// come first.
func (d *decider6) pools(prefix bool, a association) (all []*pool, from Source, reason Reason) {
	from, reason = d.candidates[0].source(), NoRange
	for _, n := range d.candidates {
		for _, p := range n.pools {
			if (p.DelegatedLength > 0) != prefix || len(p.Ranges) == 0 {
				continue
			}
			known := len(d.reservations(false))+len(d.reservations(true)) > 0
			if s := (layers{p.scope6}).service("boot-unknown-clients"); s != nil && !s.flag && !known {
				from, reason = s.From, UnknownClient
				d.note(from, "range", "%d %s does not serve the client: %s", p.ID, p.Name, reason)
				continue
			}
			all = append(all, p)
		}
	}
	if prefix && len(a.hints) > 0 {
		all = orderByLength(all, a.hints[0].length)
	}
	return all, from, reason
}

// orderByLength applies the option prefix-length-mode of the first range to the wish for a length of a prefix: prefer (the default) orders
// the ranges, exact, minimum and maximum leave out others, ignore does nothing.
func orderByLength(all []*pool, length int) []*pool {
	if len(all) == 0 {
		return all
	}
	mode := "prefer"
	if s := (layers{all[0].scope6}).service("prefix-length-mode"); s != nil {
		mode = s.text
	}
	distance := func(p *pool) int { return max(p.DelegatedLength-length, length-p.DelegatedLength) }
	kept := slices.Clone(all)
	switch mode {
	case "ignore":
		return all
	case "exact":
		kept = slices.DeleteFunc(kept, func(p *pool) bool { return p.DelegatedLength != length })
	case "minimum":
		kept = slices.DeleteFunc(kept, func(p *pool) bool { return p.DelegatedLength < length })
	case "maximum":
		kept = slices.DeleteFunc(kept, func(p *pool) bool { return p.DelegatedLength > length })
	}
	slices.SortStableFunc(kept, func(a, b *pool) int { return distance(a) - distance(b) })
	return kept
}

// dynamic returns the binding of an address or prefix of one of the ranges; ok is false if none contains it, or it is reserved.
func (d *decider6) dynamic(pools []*pool, a netip.Addr) (b binding, ok bool) {
	for _, p := range pools {
		if !contains(p.Ranges, a) || !d.leasable(p, a) {
			continue
		}
		if p.DelegatedLength > 0 {
			whole := netip.PrefixFrom(a, p.DelegatedLength)
			if whole.Masked().Addr() != a || !contains(p.Ranges, lastOf(whole)) {
				continue
			}
		}
		return binding{p.network, p, nil, a, p.DelegatedLength}, true
	}
	return b, false
}

// leasable reports whether an address of a range can be leased to any client.
func (d *decider6) leasable(p *pool, a netip.Addr) bool {
	n := p.network
	if p.DelegatedLength > 0 {
		return !p.reservedPrefixes[a]
	}
	// The first address of a network is the anycast address of its routers (RFC 4291 section 2.6.1).
	return len(n.byAddress[a]) == 0 && a != n.Gateway && a != n.Prefix.Addr() && a != n.Identifier &&
		!slices.Contains(d.f.Local, a) && !slices.Contains(d.c.Server.Addresses, a)
}

// isFree reports whether an address or prefix is not held by another client or association, and not abandoned.
func (d *decider6) isFree(a netip.Addr, client string) bool {
	l, ok := d.leases.Lease(a)
	return !d.assigned[a] && (!ok || l.State == Free || l.State != Abandoned && !l.Ended && l.Client == client)
}

// available reports whether a reserved address or prefix is free for the client. One that is reserved for a hardware address belongs to the
// hardware: firmware, boot loader and operating system of a machine have different DUIDs, and each replaces the lease of the one before. A
// lease that an operator has ended keeps the address from others, and from the client until it asks for a new lease.
func (d *decider6) available(r *reservation, client string) bool {
	if d.isFree(r.Address, client) {
		return true
	}
	l, ok := d.leases.Lease(r.Address)
	begins := d.f.Message.Type == dhcpmsg.Solicit6 || d.f.Message.Type == dhcpmsg.Request6
	if !ok || d.assigned[r.Address] || l.State == Abandoned || l.Ended && !begins {
		return false
	}
	_, duid, _ := ParseIdentity6(l.Client)
	return l.Client == client || len(r.MAC) > 0 && bytes.Equal(r.MAC, d.d.Hardware) && bytes.Equal(r.MAC, l.Hardware) &&
		!bytes.Equal(duid, d.d.DUID)
}

// maxTries is the maximum number of addresses that pick examines beyond those that are known to be in use.
const maxTries = 4096

// pick returns a free address or prefix of a range. Its place follows from the client, so a client gets the same address again if it can,
// and neighbours of an address tell nothing about other clients (RFC 7824 section 4.3). From there on it examines each address in turn.
func (d *decider6) pick(p *pool, client string) (netip.Addr, bool) {
	size := p.size6
	if size == 0 || d.leases.CountUsed(p.ID) >= size || d.leases.Exhausted(p.ID) {
		return netip.Addr{}, false
	}
	seed := sha256.Sum256(fmt.Appendf(nil, "%x %d %x", d.c.duid, p.ID, client))
	start := binary.BigEndian.Uint64(seed[:]) % size
	tries := min(size, d.leases.CountUsed(p.ID)+maxTries)
	for i := range tries {
		a := p.nth((start + i) % size)
		if d.isFree(a, client) && d.leasable(p, a) {
			return a, true
		}
	}
	if tries == size && len(d.assigned) == 0 {
		d.d.Exhausted = append(d.d.Exhausted, p.ID)
	}
	return netip.Addr{}, false
}
