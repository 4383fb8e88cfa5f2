package dhcpdata

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
)

// compileServer6 sets the identifier of the server and its options of DHCPv6.
func (c *Content) compileServer6(p *parsed) {
	c.scope6 = newScope6(nil, p.options[0], p.services[0])
	if c.duid = c.Server.DUID; len(c.duid) == 0 {
		c.duid = DUIDOf(c.Server.Configuration, c.Server.ID)
	}
}

// DUIDOf returns the identifier of a server in DHCPv6: a UUID (RFC 6355) that follows from its ids.
func DUIDOf(configuration, server int64) Hex {
	const uuid = 4
	sum := sha256.Sum256(fmt.Appendf(nil, "dhcp server %d of configuration %d", server, configuration))
	return append(binary.BigEndian.AppendUint16(nil, uuid), sum[:16]...)
}

// reserved6 contains the reservations of a network of IPv6 by DUID and by hardware address: those of addresses, and those of prefixes.
type reserved6 struct{ byDUID, byMAC [2]map[string]*reservation }

// kindOf returns the index in the maps of reserved6.
func kindOf(prefix bool) int {
	if prefix {
		return 1
	}
	return 0
}

// find returns the reservation of a client; nil if it has none.
func (r *reserved6) find(prefix bool, duid, hardware []byte) *reservation {
	kind := kindOf(prefix)
	if found := r.byDUID[kind][string(duid)]; found != nil {
		return found
	}
	if len(hardware) == 0 {
		return nil
	}
	return r.byMAC[kind][string(hardware)]
}

// addReservation6 adds a reservation of an address or of a prefix. A client has at most one of each in a network.
func (n *network) addReservation6(r *reservation, p *parsed) error {
	if !n.Prefix.Contains(r.Address) {
		return fmt.Errorf("the reserved address %s is outside of %s", r.Address, n.Prefix)
	}
	if others := n.byAddress[r.Address]; len(others) > 0 {
		return fmt.Errorf("the address %s is reserved twice, as %d and %d", r.Address, others[0].ID, r.ID)
	}
	kind := kindOf(r.PrefixLength > 0)
	add := func(all *[2]map[string]*reservation, client []byte) error {
		if len(client) == 0 {
			return nil
		}
		if all[kind] == nil {
			all[kind] = map[string]*reservation{}
		}
		if other := all[kind][string(client)]; other != nil {
			return fmt.Errorf("the client %x has two reservations, %s and %s", client, other.Address, r.Address)
		}
		all[kind][string(client)] = r
		return nil
	}
	if err := errors.Join(add(&n.reserved6.byDUID, r.DUID), add(&n.reserved6.byMAC, r.MAC)); err != nil {
		return err
	}
	if options, services := p.options[r.ID], p.services[r.ID]; len(options)+len(services) > 0 {
		r.own6 = newScope6(nil, options, services)
	}
	n.byAddress[r.Address] = append(n.byAddress[r.Address], r)
	return nil
}

// measurePools6 sets the sizes of the ranges of IPv6, and the prefixes of them that are reserved.
func (n *network) measurePools6() {
	if n.Prefix.Addr().Is4() {
		return
	}
	for _, p := range n.pools {
		p.measure6()
		if p.DelegatedLength == 0 {
			continue
		}
		p.reservedPrefixes = map[netip.Addr]bool{}
		for a := range n.byAddress {
			if contains(p.Ranges, a) {
				p.reservedPrefixes[netip.PrefixFrom(a, p.DelegatedLength).Masked().Addr()] = true
			}
		}
	}
}
