package dhcpdata

import (
	"math"
	"net/netip"
	"slices"
)

// PairOf returns the pair that serves the network that contains an address; 0 if there is none.
func (c *Content) PairOf(a netip.Addr) int64 {
	if len(c.Pairs) == 0 {
		return 0
	}
	if n := c.find(a); n != nil {
		return n.Pair
	}
	return 0
}

// PairOfNetwork returns the pair that serves a network; 0 if there is none.
func (c *Content) PairOfNetwork(id int64) int64 {
	if n := c.networks[id]; n != nil {
		return n.Pair
	}
	return 0
}

// PairedNetworks returns the networks of a pair by id.
func (c *Content) PairedNetworks(pair int64) map[int64]bool {
	all := map[int64]bool{}
	for id, n := range c.networks {
		if n.Pair == pair {
			all[id] = true
		}
	}
	return all
}

// NetworkAt returns the ids of the network and the range that contain an address; 0 if there are none.
func (c *Content) NetworkAt(a netip.Addr) (network, pool int64) {
	n := c.find(a)
	if n == nil {
		return 0, 0
	}
	if p := n.poolOf(a); p != nil {
		pool = p.ID
	}
	return n.ID, pool
}

// IsReserved reports whether an address is reserved for the client with an identity or a hardware address.
func (c *Content) IsReserved(a netip.Addr, client string, hardware []byte) bool {
	return c.ReservationOf(a, client, hardware) != 0
}

// ReservationOf returns the id of the reservation of an address for the client with an identity or a hardware address; 0 if there is none.
func (c *Content) ReservationOf(a netip.Addr, client string, hardware []byte) int64 {
	n := c.find(a)
	if n == nil {
		return 0
	}
	i := slices.IndexFunc(n.byAddress[a], func(r *reservation) bool {
		return len(r.MAC) > 0 && string(r.MAC) == string(hardware) || len(r.ClientID) > 0 && client == "c"+string(r.ClientID) ||
			len(r.DUID) > 0 && len(client) > 5 && client[5:] == string(r.DUID)
	})
	if i < 0 {
		return 0
	}
	return n.byAddress[a][i].ID
}

// KnowsServer reports whether an address or a DUID identifies this server or another DHCP server of the configuration: one that is not a
// stranger.
func (c *Content) KnowsServer(a netip.Addr, duid []byte) bool {
	return len(duid) > 0 && c.known[string(duid)] || a.IsValid() && c.known[string(a.AsSlice())]
}

// knownServers returns the addresses and DUIDs of this server and of those that its unit lists, as octets.
func knownServers(s Server, pairs map[int64]Pair) map[string]bool {
	all := map[string]bool{string(s.DUID): true}
	for _, a := range slices.Concat(s.Addresses, s.OtherAddresses) {
		all[string(a.AsSlice())] = true
	}
	for _, id := range s.Others {
		all[string(DUIDOf(s.Configuration, id))] = true
	}
	for _, p := range pairs {
		all[string(p.Endpoint.Addr().AsSlice())] = true
		all[string(DUIDOf(s.Configuration, p.Partner))] = true
	}
	return all
}

// maxShared is the maximum number of addresses of a range that a pair counts and divides anew. In a larger range a server gives addresses
// when its partner has none left.
const maxShared = 1 << 17

// SharedPools returns the ranges of the network of a pair: those whose addresses can be divided anew, and the larger ones.
func (c *Content) SharedPools(network int64) (ids, large []int64) {
	n := c.networks[network]
	if n == nil {
		return nil, nil
	}
	for _, p := range n.pools {
		switch size := p.length(); {
		case size > maxShared:
			large = append(large, p.ID)
		case size > 0:
			ids = append(ids, p.ID)
		}
	}
	return ids, large
}

// length returns the number of addresses or prefixes of a range.
func (p *pool) length() uint64 {
	if p.network.Prefix.Addr().Is4() {
		return p.size
	}
	return p.size6
}

// Shared calls fn for the addresses or prefixes of a range with numbers from first, at most count, that can be leased to any client. It
// returns the next number; 0 after the last address.
func (c *Content) Shared(network, id int64, first, count uint64, fn func(a netip.Addr)) (next uint64) {
	n := c.networks[network]
	if n == nil {
		return 0
	}
	i := slices.IndexFunc(n.pools, func(p *pool) bool { return p.ID == id })
	if i < 0 {
		return 0
	}
	p := n.pools[i]
	size := min(p.length(), math.MaxInt64)
	for number := first; number < min(first+count, size); number++ {
		a := p.addressAt(number)
		if len(n.byAddress[a]) == 0 && !p.reservedPrefixes[a] && a != n.Gateway && !n.isSpecial(a) && a != n.Prefix.Addr() {
			fn(a)
		}
	}
	if first+count >= size {
		return 0
	}
	return first + count
}

// addressAt returns the address or prefix with a number.
func (p *pool) addressAt(number uint64) netip.Addr {
	if !p.network.Prefix.Addr().Is4() {
		return p.nth(number)
	}
	for _, i := range p.Ranges {
		n := i.size()
		if number < n {
			sum, _ := numberOf(i.First).add(number, 0)
			return sum.addr().Unmap()
		}
		number -= n
	}
	return netip.Addr{}
}
