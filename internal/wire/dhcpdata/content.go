package dhcpdata

import (
	"net/netip"
	"slices"
)

// Threshold is the size of a range, with the percentages of log-threshold-high and log-threshold-low.
type Threshold struct {
	Network   int64
	Size      uint64
	High, Low uint32
}

// Thresholds returns the IPv4 ranges with log-threshold-high, by id.
func (c *Content) Thresholds() map[int64]Threshold {
	all := map[int64]Threshold{}
	for _, n := range c.networks {
		for _, p := range n.pools {
			if s := p.scope.services["log-threshold-high"]; s != nil && p.size > 0 && n.Prefix.Addr().Is4() {
				all[p.ID] = Threshold{Network: n.ID, Size: p.size, High: s.number, Low: layers{p.scope}.number("log-threshold-low", s.number)}
			}
		}
	}
	return all
}

// NetworkOf returns the id of the network of a unit; ok is false for another unit.
func NetworkOf(unit string) (id int64, ok bool) {
	prefix, id, err := parseUnit(unit)
	return id, err == nil && prefix == networkPrefix
}

// ChangedPools returns the ids of the ranges of IPv4 that can have free addresses before the last one that was leased: ranges with other
// addresses than in previous content, and those of networks whose gateway or reservations no longer keep an address.
func (c *Content) ChangedPools(previous *Content) (ids []int64) {
	for unit, one := range c.units {
		id, ok := NetworkOf(unit)
		if !ok || previous.units[unit].hash == one.hash {
			continue
		}
		n, old := c.networks[id], previous.networks[id]
		if old == nil {
			continue
		}
		var freed []netip.Addr
		if old.Gateway.IsValid() && old.Gateway != n.Gateway {
			freed = append(freed, old.Gateway)
		}
		for a := range old.byAddress {
			if len(n.byAddress[a]) == 0 {
				freed = append(freed, a)
			}
		}
		for _, p := range n.pools {
			i := slices.IndexFunc(old.pools, func(o *pool) bool { return o.ID == p.ID })
			if i >= 0 && slices.Equal(old.pools[i].Ranges, p.Ranges) &&
				!slices.ContainsFunc(freed, func(a netip.Addr) bool { return contains(p.Ranges, a) }) {
				continue
			}
			ids = append(ids, p.ID)
		}
	}
	return ids
}

// PoolsOf returns the ids of the ranges of a network.
func (c *Content) PoolsOf(network int64) (ids []int64) {
	if n := c.networks[network]; n != nil {
		for _, p := range n.pools {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

// Orders returns the orders by network.
func (c *Content) Orders() map[int64][]Order {
	all := map[int64][]Order{}
	for id, n := range c.networks {
		if len(n.orders) > 0 {
			all[id] = n.orders
		}
	}
	return all
}

// Serves reports whether a network contains an address.
func (c *Content) Serves(a netip.Addr) bool { return c.find(a) != nil }

// HasNetworks reports whether there are networks of IPv4, or of IPv6.
func (c *Content) HasNetworks(v4 bool) bool {
	for p := range c.byPrefix {
		if p.Addr().Is4() == v4 {
			return true
		}
	}
	return false
}

// NetworkOf returns the id of the most specific network that contains an address; 0 if there is none.
func (c *Content) NetworkOf(a netip.Addr) int64 {
	if n := c.find(a); n != nil {
		return n.ID
	}
	return 0
}
