package dhcppublish

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"portolan/internal/base/space"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dhcp"
	"portolan/internal/manager/ipam"
	"portolan/internal/wire/dhcpdata"
)

// sortedKeys returns the keys of a map in order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// The states of addresses that are never leased: the gateway, and the address of the server itself.
const (
	gatewayState = "GATEWAY"
	ownState     = "SERVER"
)

// usedAddress is an address of a network that is in use.
type usedAddress struct {
	address netip.Addr
	state   string
}

// compileSpace compiles the ranges and reservations of a network.
func (c *compiler) compileSpace(unit string, n *servedNetwork, x dhcpdata.Network) error {
	rows, err := c.tx.ListBelow(n.row.ID, "addresses", n.row.Low, n.row.High)
	if err != nil {
		return err
	}
	used := make([]usedAddress, 0, len(rows))
	clients := map[string]netip.Addr{}
	for _, row := range rows {
		o, err := c.api.Object(row)
		if err != nil {
			return err
		}
		one := usedAddress{address: store.KeyAddr(row.Low), state: c.api.TypeNamed(row.Type).TextOf(o, "state")}
		used = append(used, one)
		if one.state != "DHCP_RESERVED" {
			if len(c.options[row.ID]) > 0 {
				c.warn("the DHCP options of address %s have no effect: it is %s, not DHCP_RESERVED", one.address, one.state)
			}
			continue
		}
		r, err := c.reservation(row, o, one.address)
		if err != nil {
			return err
		}
		for _, key := range []string{"MAC address " + r.MAC.String(), "client identifier " + r.ClientID.String(), "DUID " + r.DUID.String()} {
			if key[len(key)-1] == ' ' {
				continue
			}
			if other, there := clients[key]; there {
				c.fail("%s %s has two reservations for the %s: %s and %s", n.row.Type, c.label(n.row), key, other, one.address)
			}
			clients[key] = one.address
		}
		if len(r.MAC)+len(r.ClientID)+len(r.DUID) == 0 {
			c.fail("the reservation of %s in %s %s names no client: set its macAddress or clientIdentifier", one.address, n.row.Type,
				c.label(n.row))
			continue
		}
		c.add(unit, r)
		n.reservations++
		if err := c.addNearer(unit, &n.nearer, level{dhcpdata.AtAddress, row}); err != nil {
			return err
		}
	}
	if x.Gateway.IsValid() {
		used = append(used, usedAddress{x.Gateway, gatewayState})
	}
	if x.Identifier.IsValid() && x.Prefix.Contains(x.Identifier) { // the server's own address
		used = append(used, usedAddress{x.Identifier, ownState})
	}
	slices.SortFunc(used, func(a, b usedAddress) int { return a.address.Compare(b.address) })
	ranges, err := c.tx.ListBelow(n.row.ID, "ranges", n.row.Low, n.row.High)
	if err != nil {
		return err
	}
	for _, row := range ranges {
		p, err := c.pool(row, used)
		if err != nil {
			return err
		}
		c.add(unit, p)
		n.pools++
		if err := c.addNearer(unit, &n.nearer, level{dhcpdata.AtRange, row}); err != nil {
			return err
		}
	}
	return nil
}

// identifierOf returns the identifier of a client as text; empty for other objects.
func identifierOf(o schema.Object) string {
	switch x := o.(type) {
	case *ipam.DHCPClientIdentifier:
		var uid struct {
			ClientIdentifier string `json:"clientIdentifier"`
		}
		if json.Unmarshal(x.UID, &uid) != nil { // checked when it was stored
			return ""
		}
		return uid.ClientIdentifier
	case *ipam.DHCPUniqueIdentifier:
		return x.DUID
	case *ipam.MACAddress:
		return x.Address
	}
	return ""
}

// identifier returns the text of a client identifier or a hardware address by its id; empty for the id 0.
func (c *compiler) identifier(known map[int64]string, id int64) (string, error) {
	if id == 0 {
		return "", nil
	}
	if text, there := known[id]; there {
		return text, nil
	}
	_, o, err := c.get(id)
	if err != nil {
		return "", err
	}
	known[id] = identifierOf(o)
	return known[id], nil
}

// reservation compiles a reserved address.
func (c *compiler) reservation(row *store.Resource, o schema.Object, a netip.Addr) (r dhcpdata.Reservation, err error) {
	r = dhcpdata.Reservation{ID: row.ID, Name: row.Name, Address: a, HostName: row.Name}
	if len(r.HostName) > 255 {
		r.HostName = ""
	}
	mac, err := c.identifier(c.macs, row.Ref("macAddress"))
	if err != nil {
		return r, err
	}
	text, err := c.identifier(c.identifiers, row.Ref("clientIdentifier"))
	if err != nil {
		return r, err
	}
	x, is6 := o.(*ipam.IPv6Address)
	if mac != "" && (!is6 || x.ReservedUsing != "CLIENT_DUID" || text == "") {
		if r.MAC, err = macOctets(mac); err != nil {
			return r, err
		}
	}
	switch {
	case text == "" || is6 && x.ReservedUsing == "MAC_ADDRESS" && mac != "":
	case is6:
		if r.DUID, err = hex.DecodeString(text); err != nil {
			return r, fmt.Errorf("the DUID %s of %s: %w", text, a, err)
		}
	default:
		if r.ClientID, err = dhcp.ReadValue(text); err != nil {
			return r, fmt.Errorf("the client identifier %s of %s: %w", text, a, err)
		}
	}
	return r, nil
}

// macOctets returns the octets of a hardware address.
func macOctets(text string) ([]byte, error) {
	mac, err := space.ParseHardware(text)
	return mac, err
}

// pool compiles a range: without its exclusions and the addresses in use. Static addresses stay in a range that is not split around them;
// they are probed before they are leased.
func (c *compiler) pool(row *store.Resource, used []usedAddress) (p dhcpdata.Pool, err error) {
	p = dhcpdata.Pool{ID: row.ID, Name: row.Name}
	o, err := c.api.Object(row)
	if err != nil {
		return p, err
	}
	whole := space.Range{Low: store.KeyAddr(row.Low), High: store.KeyAddr(row.High)}
	p.Whole = dhcpdata.Interval{First: whole.Low, Last: whole.High}
	if err := c.delegate(level{dhcpdata.AtRange, row}, &p); err != nil {
		return p, err
	}
	split := true
	left := space.Set{whole}
	if x, ok := o.(*ipam.IPv4DHCPRange); ok {
		split = x.SplitAroundStaticAddresses
		p.LowWaterMark, p.HighWaterMark = markOf(x.LowWaterMark), markOf(x.HighWaterMark)
		var out space.Set
		for _, text := range x.ExclusionRanges {
			one, err := exclusion(text)
			if err != nil {
				return p, err
			}
			out = out.Union(space.Set{one})
		}
		left = out.Complement(whole)
	}
	first, _ := slices.BinarySearchFunc(used, whole.Low, func(u usedAddress, a netip.Addr) int { return u.address.Compare(a) })
	probed := 0
	for _, part := range left {
		low := part.Low
		for _, u := range used[first:] {
			if part.High.Less(u.address) {
				break
			}
			if u.address.Less(low) {
				continue
			}
			if u.state == "STATIC" && !split {
				p.Probed = append(p.Probed, dhcpdata.Interval{First: u.address, Last: u.address})
				probed++
				continue
			}
			if u.state == gatewayState || u.state == ownState {
				c.warn("range %s contains %s, the address of the %s, which is not leased", c.label(row), u.address,
					map[string]string{gatewayState: "gateway", ownState: "server"}[u.state])
			}
			if low.Less(u.address) {
				p.Ranges = append(p.Ranges, dhcpdata.Interval{First: low, Last: u.address.Prev()})
			}
			low = u.address.Next()
		}
		if low.IsValid() && !part.High.Less(low) {
			p.Ranges = append(p.Ranges, dhcpdata.Interval{First: low, Last: part.High})
		}
	}
	if probed > 0 {
		c.warn("range %s contains %d static addresses, which are leased if they do not answer a probe: set splitAroundStaticAddresses",
			c.label(row), probed)
	}
	if len(p.Ranges) == 0 {
		c.warn("range %s has no address to lease: all are excluded or in use", c.label(row))
	}
	return p, nil
}

// markOf returns a water mark; 0 means none.
func markOf(mark *int64) int {
	if mark == nil {
		return 0
	}
	return int(*mark)
}

// exclusion parses an excluded part of a range.
func exclusion(text string) (space.Range, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return space.Range{Low: a, High: a}, nil
	}
	return space.Parse(text)
}
