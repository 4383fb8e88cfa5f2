package dhcp

import (
	"maps"
	"sync"
)

// counters count received messages, replies, and refused clients by reason, also by network.
type counters struct {
	mu sync.Mutex
	// The following fields are guarded by mu.
	received, sent map[string]int64
	refused        map[string]int64
	byNetwork      map[int64]map[string]int64
}

// maxCountedNetworks is the maximum number of networks with counters of their own.
const maxCountedNetworks = 20_000

func newCounters() *counters {
	return &counters{received: map[string]int64{}, sent: map[string]int64{}, refused: map[string]int64{},
		byNetwork: map[int64]map[string]int64{}}
}

func (c *counters) receive(kind string) {
	c.mu.Lock()
	c.received[kind]++
	c.mu.Unlock()
}

func (c *counters) send(kind string) {
	c.mu.Lock()
	c.sent[kind]++
	c.mu.Unlock()
}

// refuse counts a client without a reply, or with a NAK. network is 0 if it is not known.
func (c *counters) refuse(network int64, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused[reason]++
	if network == 0 {
		return
	}
	if c.byNetwork[network] == nil {
		if len(c.byNetwork) >= maxCountedNetworks {
			return
		}
		c.byNetwork[network] = map[string]int64{}
	}
	c.byNetwork[network][reason]++
}

// copy returns copies of the counters.
func (c *counters) copy() (received, sent, refused map[string]int64, byNetwork map[int64]map[string]int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	byNetwork = map[int64]map[string]int64{}
	for id, one := range c.byNetwork {
		byNetwork[id] = maps.Clone(one)
	}
	return maps.Clone(c.received), maps.Clone(c.sent), maps.Clone(c.refused), byNetwork
}

// Reasons of the engine for messages without a reply.
const (
	busy        = "overloaded"
	tooMany     = "too-many-offers"
	journalFull = "journal-full"
)
