package servicepoint

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"portolan/internal/wire/stream"
)

// counterInterval is the interval of the counters for the manager.
const counterInterval = time.Minute

// reportCounters writes the counters of the applications to their spool until ctx ends.
func (s *supervisor) reportCounters(ctx context.Context) {
	tick := time.NewTicker(counterInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if all := s.counters(); len(all) > 0 {
			s.streams.recordCounters(all)
		}
	}
}

// counters returns the counters of the applications, in order.
func (s *supervisor) counters() (all []stream.Counter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.processes)) {
		all = append(all, countersOf(id, s.processes[id].diagnostics())...)
	}
	return all
}

// countersOf returns the counters in the diagnostics of an application: the answers of name servers and resolvers, and the messages of DHCP
// servers. Other applications have members of these names with another content; they are left out.
func countersOf(id string, diagnostics json.RawMessage) (all []stream.Counter) {
	var members map[string]json.RawMessage
	if json.Unmarshal(diagnostics, &members) != nil {
		return nil
	}
	for _, one := range [][2]string{{"answers", stream.Queries}, {"received", stream.DHCPReceived}, {"sent", stream.DHCPSent}} {
		var counts map[string]int64
		if json.Unmarshal(members[one[0]], &counts) != nil {
			continue
		}
		for _, by := range slices.Sorted(maps.Keys(counts)) {
			if c := (stream.Counter{Application: id, Metric: one[1], By: by, Count: counts[by]}); stream.CheckCounters([]stream.Counter{c}) == nil {
				all = append(all, c)
			}
		}
	}
	return all
}

// recordCounters writes counters to the spool of the agent.
func (s *streams) recordCounters(all []stream.Counter) {
	record, err := json.Marshal(all)
	if err == nil {
		err = s.recordOwn(stream.Counters, record)
	}
	if err != nil {
		s.log.Error("counters not spooled", "error", err)
	}
}
