package dhcp

import (
	"maps"

	"portolan/internal/wire/dhcplease"
)

// Limits of the detection of clones.
const (
	// maxMoves is the maximum number of clients whose last change of the hardware address is remembered, for moveSeconds.
	maxMoves    = 10_000
	moveSeconds = 86400
	// sweepSeconds is the time between two searches for moves that are too old.
	sweepSeconds = 60
	// maxClones is the maximum number of clones that wait for the next observation.
	maxClones = 50
)

// move is the last change of the hardware address of a client.
type move struct {
	from string
	at   int64
	// reported is the time of the last report; 0 for none.
	reported int64
}

// move records that a lease continues with another hardware address. Two machines with one identifier, such as clones of one image, renew
// in turn: a client that returns to its former address within moveSeconds is reported, once in that time. A machine that gets a new
// interface does not return. The source of the rule is D671.
func (o *observer) move(before, after *lease) {
	from, to := before.holder.hardware, after.holder.hardware
	if from == "" || to == "" {
		return
	}
	now := after.renewed
	o.mu.Lock()
	defer o.mu.Unlock()
	had, known := o.moves[after.holder.client]
	if !known && len(o.moves) >= maxMoves {
		if now-o.swept >= sweepSeconds { // a flood does not search again
			o.swept = now
			maps.DeleteFunc(o.moves, func(_ string, one move) bool { return now-one.at >= moveSeconds })
		}
		if len(o.moves) >= maxMoves {
			return
		}
	}
	next := move{from: from, at: now, reported: had.reported}
	if known && had.from == to && now-had.at < moveSeconds && (had.reported == 0 || now-had.reported >= moveSeconds) &&
		len(o.clones) < maxClones {
		next.reported = now
		l := after.report()
		o.clones = append(o.clones, dhcplease.Clone{Network: l.Network, Address: l.Address, ClientID: l.ClientID, DUID: l.DUID,
			MACs: [2]string{octets([]byte(from)), octets([]byte(to))}})
		o.log.Info("client identifier shared", "address", l.Address, "client", l.ClientID, "duid", l.DUID, "mac", octets([]byte(to)),
			"other", octets([]byte(from)))
	}
	o.moves[after.holder.client] = next
}

// stepped records a step of the wall clock for the manager.
func (o *observer) stepped(seconds, at int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.steps) < dhcplease.MaxClockSteps {
		o.steps = append(o.steps, dhcplease.ClockStep{Seconds: seconds, At: at})
	}
}
