package dhcpdata

import (
	"bytes"
	"net/netip"
	"slices"
)

// Codes of the options that decisions use.
const (
	optSubnetMask   = 1
	optRouter       = 3
	optHostName     = 12
	optVendorSpaces = 43
	optRequested    = 50
	optLeaseTime    = 51
	optServerID     = 54
	optParameters   = 55
	optMessage      = 56
	optRenewal      = 58
	optRebinding    = 59
	optVendorClass  = 60
	optClientID     = 61
	optTFTPServer   = 66
	optBootFile     = 67
	optFQDN         = 81
	optRelay        = 82
	optIPv6Only     = 108
	optAutoConfig   = 116
	optSubnet       = 118
	optRoutes       = 121

	subLinkSelection    = 5
	subServerIDOverride = 11
	subVSS              = 151
)

// Decide decides on a DHCPv4 message: the reply, the address, the options and their sources. It is pure: the same content, facts, leases
// and time give the same decision. now is in Unix seconds.
func Decide(c *Content, f *Facts, leases Leases, now int64) *Decision {
	d := &decider{c: c, f: f, leases: leases, now: now, d: &Decision{}}
	if reason := d.readMessage(); reason != Served {
		d.refuse(reason, Source{})
		return d.d
	}
	if !d.findNetworks() {
		d.refuse(NoNetwork, Source{})
		return d.d
	}
	if _, ok := d.f.option(optRelay, subVSS); ok {
		d.refuse(UnknownVSS, d.candidates[0].source())
		return d.d
	}
	d.identify()
	if from, reason := d.checkClient(); reason != Served {
		d.refuse(reason, from)
		return d.d
	}
	switch f.Type {
	case 0:
		d.decideBOOTP()
	case Discover:
		d.decideDiscover()
	case Request:
		d.decideRequest()
	case Decline:
		d.decideDecline()
	case Release:
		d.decideRelease()
	case Inform:
		d.decideInform()
	default:
		d.refuse(BadMessage, Source{})
	}
	return d.d
}

// address returns an option that contains one address. Zero octets are not an address; wrong reports another length.
func (d *decider) address(code uint8) (a netip.Addr, wrong bool) {
	data, ok := d.f.Options[code]
	if !ok {
		return a, false
	}
	if len(data) != 4 {
		return a, true
	}
	a = netip.AddrFrom4([4]byte(data))
	if a.IsUnspecified() {
		return netip.Addr{}, false
	}
	return a, false
}

// readMessage reads the options that identify the client and the server.
func (d *decider) readMessage() Reason {
	var wrongAddress, wrongServer bool
	d.requested, wrongAddress = d.address(optRequested)
	d.serverID, wrongServer = d.address(optServerID)
	d.clientID = d.f.Options[optClientID]
	if wrongAddress || wrongServer || d.serverID.IsMulticast() {
		return BadMessage
	}
	if !bytes.ContainsFunc(d.f.Hardware, func(r rune) bool { return r != 0 }) && len(d.clientID) == 0 {
		return BadMessage // nothing identifies the client
	}
	if d.f.HardwareType == 1 && len(d.f.Hardware) == 6 && d.f.Hardware[0]&1 != 0 { // a group address
		return BadMessage
	}
	for _, code := range d.f.Options[optParameters] {
		d.requests[code] = true
	}
	d.fqdn = readFQDN(d.f.Options[optFQDN])
	if d.d.HostName = CleanHostName(d.f.Options[optHostName]); d.d.HostName == "" {
		d.d.HostName = d.fqdn.name
	}
	return Served
}

// findNetworks finds the networks of the client: link selection, subnet selection, the relay, the client's own address, the interface.
func (d *decider) findNetworks() bool {
	var n *network
	link, linked := d.f.option(optRelay, subLinkSelection)
	subnet := d.f.Options[optSubnet]
	switch {
	case linked && len(link) == 4 && d.f.Relay.IsValid(): // only a relay knows the links
		n = d.c.find(netip.AddrFrom4([4]byte(link)))
		d.note(Source{}, "network", "the relay selects the link %s", netip.AddrFrom4([4]byte(link)))
	case len(subnet) == 4:
		n = d.c.find(netip.AddrFrom4([4]byte(subnet)))
		d.note(Source{}, "network", "the client selects the subnet %s", netip.AddrFrom4([4]byte(subnet)))
	case d.f.Relay.IsValid():
		n = d.c.find(d.f.Relay)
		if d.f.Explain { // the note of most messages, whose arguments are allocated
			d.note(Source{}, "network", "the relay is %s", d.f.Relay)
		}
	case d.f.Unicast && d.f.Client.IsValid():
		n = d.c.find(d.f.Client)
		d.note(Source{}, "network", "the client writes from %s", d.f.Client)
	default:
		for _, p := range d.f.Interface {
			if n = d.c.find(p.Addr()); n != nil {
				d.note(Source{}, "network", "the interface has the address %s", p)
				break
			}
		}
	}
	if n == nil {
		return false
	}
	d.candidates = []*network{n}
	if n.Shared != 0 {
		for _, other := range d.c.shared[n.Shared] {
			if other != n && other.Prefix.Addr().Is4() {
				d.candidates = append(d.candidates, other)
			}
		}
	}
	d.d.Network = n.ID
	if d.f.Explain {
		d.note(n.source(), "network", "%s, %s", n.Prefix, n.company(len(d.candidates)))
	}
	return true
}

// identify finds the reservation, the MAC pool and the classes of the client.
func (d *decider) identify() {
	d.f.stashed = nil
	base := layers{d.candidates[0].scope}
	d.d.Client = Identity(d.f.HardwareType, d.f.Hardware, d.clientID)
	if base.flag("ignore-client-uids", false) {
		d.d.Client = Identity(d.f.HardwareType, d.f.Hardware, nil)
		d.note(base.service("ignore-client-uids").From, "identity", "the client identifier is ignored")
	}
	if _, relayed := d.f.Options[optRelay]; !relayed && d.f.Client.IsValid() && base.flag("stash-agent-options", true) {
		if l, ok := d.leases.Lease(d.f.Client); ok && l.State == Leased && d.holds(l) {
			d.f.stashed = l.Relay
		}
	}
	d.f.known = d.reservation() != nil
	d.member = d.c.macs[string(d.f.Hardware)]
	if d.member.pool != nil {
		d.note(Source{Level: AtMACPool, ID: d.member.pool.ID, Name: d.member.pool.Name}, "MAC pool", "the client is a member")
	}
	for _, one := range d.c.classes {
		m := matched{class: one}
		if one.If != nil {
			if !one.If.holds(d.f) {
				continue
			}
		} else {
			data, ok := one.Match.evaluate(d.f)
			if m.subclass = one.subclasses[string(data)]; !ok || m.subclass == nil {
				continue
			}
		}
		d.classes = append(d.classes, m)
		d.d.Classes = append(d.d.Classes, one.Name)
		d.note(Source{Level: AtClass, ID: one.ID, Name: one.Name}, "class", "the client is a member")
	}
}

// holds reports whether the client of the message is the holder of a lease. A reservation by hardware address belongs to the hardware,
// whatever identifier it sends.
func (d *decider) holds(l LeaseState) bool {
	if l.Client == d.d.Client {
		return true
	}
	return slices.ContainsFunc(d.networkOf(l.Address).reservations(l.Address), func(r *reservation) bool {
		return len(r.MAC) > 0 && bytes.Equal(r.MAC, d.f.Hardware) && bytes.Equal(l.Hardware, d.f.Hardware)
	})
}

// networkOf returns the candidate network that contains an address; nil if none does.
func (d *decider) networkOf(a netip.Addr) *network {
	for _, n := range d.candidates {
		if n.Prefix.Contains(a) {
			return n
		}
	}
	return nil
}

// reservations returns the reservations of an address. n may be nil.
func (n *network) reservations(a netip.Addr) []*reservation {
	if n == nil {
		return nil
	}
	return n.byAddress[a]
}

// reservation returns the reservation of the client; nil if it has none. Of several networks, it is that of the address which the client
// has leased (RFC 2131 section 4.3.1), or else of the first network, which is that of the relay or interface.
func (d *decider) reservation() (first *reservation) {
	for _, n := range d.candidates {
		r := n.reservationFor(d.clientID, d.f.Hardware)
		switch {
		case r == nil:
		case first == nil && len(d.candidates) == 1:
			return r
		case d.hasLeased(r):
			return r
		case first == nil:
			first = r
		}
	}
	return first
}

// reservationFor returns the reservation of a client in the network; nil if it has none.
func (n *network) reservationFor(clientID, hardware []byte) *reservation {
	if r := n.byClientID[string(clientID)]; r != nil && len(clientID) > 0 {
		return r
	}
	if r := n.byMAC[string(hardware)]; r != nil && len(hardware) > 0 {
		return r
	}
	return nil
}

// hasLeased reports whether the client has leased the address of its reservation.
func (d *decider) hasLeased(r *reservation) bool {
	l, ok := d.leases.Lease(r.Address)
	return ok && l.State == Leased && d.holdsReserved(r, l)
}

// reservationOf returns the reservation of an address for the client, nil without one.
func (d *decider) reservationOf(a netip.Addr) *reservation {
	if r := d.reservation(); r != nil && r.Address == a {
		return r
	}
	return nil
}

// checkClient refuses the clients that are not served anywhere in the network.
func (d *decider) checkClient() (Source, Reason) {
	if d.f.Type == Release || d.f.Type == Decline {
		return Source{}, Served
	}
	if p := d.member.pool; p != nil && p.Deny {
		return Source{Level: AtMACPool, ID: p.ID, Name: p.Name}, DeniedPool
	}
	all := d.layers(d.candidates[0], nil, d.reservation())
	if s := all.service("booting"); s != nil && !s.flag {
		return s.From, BootingOff
	}
	if d.f.isBOOTP() {
		if s := all.service("bootp"); s != nil && !s.flag {
			return s.From, BOOTPOff
		}
	}
	secs := d.f.Secs
	if secs > 255 && secs&255 == 0 && all.flag("check-secs-byte-order", false) {
		secs >>= 8
	}
	d.d.Secs = uint32(secs)
	if s := all.service("min-secs"); s != nil && d.f.Type == Discover && d.d.Secs < s.number {
		return s.From, MinSecs
	}
	return Source{}, Served
}

// permits returns the reason why the members of a range do not include the client; Served if they do.
func (d *decider) permits(p *pool) (Source, Reason) {
	all := layers{p.scope}
	pool := int64(0)
	if d.member.pool != nil {
		pool = d.member.pool.ID
	}
	inClass := func(ids []int64) bool {
		return slices.ContainsFunc(d.classes, func(m matched) bool { return slices.Contains(ids, m.ID) })
	}
	if s := all.service("deny-mac-pool"); s != nil && pool != 0 && slices.Contains(s.ids, pool) {
		return s.From, DeniedPool
	}
	if s := all.service("allow-mac-pool"); s != nil && !slices.Contains(s.ids, pool) {
		return s.From, DeniedPool
	}
	if s := all.service("deny-dhcp-class-members"); s != nil && inClass(s.ids) {
		return s.From, DeniedClass
	}
	if s := all.service("allow-dhcp-class-members"); s != nil && !inClass(s.ids) {
		return s.From, DeniedClass
	}
	if s := all.service("deny-unknown-mac-addresses"); s != nil && s.flag && !d.f.known {
		return s.From, UnknownClient
	}
	if s := d.layers(p.network, p, nil).service("boot-unknown-clients"); s != nil && !s.flag && !d.f.known {
		return s.From, UnknownClient
	}
	if d.f.isBOOTP() && !all.flag("dynamic-bootp", false) {
		return p.source(), BOOTPOff
	}
	return d.checkLimits()
}

// checkLimits examines the lease limits of the classes of the client, and notes which ones a lease counts for: also those that are reached,
// because the holder of a lease keeps it after the limit was lowered.
func (d *decider) checkLimits() (from Source, reason Reason) {
	d.d.Counted, reason = nil, Served
	for _, one := range d.classes {
		id, own := one.ID, one.own
		if one.subclass != nil {
			id = one.subclass.ID
			if one.subclass.own != nil && one.subclass.own.services["dhcp-class-lease-limit"] != nil {
				own = one.subclass.own
			}
		}
		if own == nil || own.services["dhcp-class-lease-limit"] == nil {
			continue
		}
		s := own.services["dhcp-class-lease-limit"]
		if reason == Served && uint64(d.leases.Members(id, d.d.Client)) >= uint64(s.number) {
			from, reason = s.From, ClassLimit
		}
		d.d.Counted = append(d.d.Counted, id)
	}
	return from, reason
}
