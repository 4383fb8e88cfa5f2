package resolver

import (
	"slices"

	"portolan/internal/wire/checkin"
)

// defaultFor returns the default configuration: the resolver answers at the first free address, and asks the servers of the machine. A
// server at the resolver's own address is left out.
func defaultFor(h checkin.Host) any {
	c := Configuration{Listen: []Listener{}, Upstreams: []Upstream{}, Policy: "sequential", Allow: []string{},
		Cache: Cache{Entries: defaultEntries, MaxTTLSeconds: defaultTTL}}
	listens := h.Free[:min(1, len(h.Free))]
	for _, address := range listens {
		c.Listen = append(c.Listen, Listener{Address: address.String()})
	}
	for _, server := range h.NameServers {
		if !slices.Contains(listens, server) && len(c.Upstreams) < maxUpstreams {
			c.Upstreams = append(c.Upstreams, Upstream{Address: server.String()})
		}
	}
	return c
}
