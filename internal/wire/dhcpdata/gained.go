package dhcpdata

import "net/netip"

// PoolAt returns the id of the range of a network that contains an address; 0 if none does.
func (c *Content) PoolAt(network int64, a netip.Addr) int64 {
	if n := c.networks[network]; n != nil {
		if p := n.poolOf(a); p != nil {
			return p.ID
		}
	}
	return 0
}

// Gained returns the addresses that the ranges of a network have, and did not have in previous content, and their number, at most the
// largest uint64.
func (c *Content) Gained(previous *Content, network int64) (all []Interval, count uint64) {
	n, before := c.networks[network], map[int64][]Interval{}
	if n == nil {
		return nil, 0
	}
	if old := previous.networks[network]; old != nil {
		for _, p := range old.pools {
			before[p.ID] = p.Ranges
		}
	}
	for _, p := range n.pools {
		all = append(all, subtractIntervals(p.Ranges, before[p.ID])...)
	}
	for _, i := range all {
		if count+i.size() < count {
			return all, ^uint64(0)
		}
		count += i.size()
	}
	return all, count
}

// subtractIntervals returns the parts of sorted intervals that are in none of other sorted intervals.
func subtractIntervals(all, taken []Interval) (rest []Interval) {
	for _, i := range all {
		for len(taken) > 0 && taken[0].Last.Less(i.First) {
			taken = taken[1:]
		}
		first, done := i.First, false
		for _, t := range taken {
			if i.Last.Less(t.First) {
				break
			}
			if first.Less(t.First) {
				rest = append(rest, Interval{first, t.First.Prev()})
			}
			if first = t.Last.Next(); !first.IsValid() || i.Last.Less(first) {
				done = true
				break
			}
		}
		if !done {
			rest = append(rest, Interval{first, i.Last})
		}
	}
	return rest
}
