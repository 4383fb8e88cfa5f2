package dhcpdata

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
