package dhcpdata

import "net/netip"

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

// NetworkOf returns the id of the most specific network that contains an address; 0 if there is none.
func (c *Content) NetworkOf(a netip.Addr) int64 {
	if n := c.find(a); n != nil {
		return n.ID
	}
	return 0
}
