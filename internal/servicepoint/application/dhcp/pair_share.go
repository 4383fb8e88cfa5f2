package dhcp

import (
	"net/netip"

	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"
	"portolan/internal/wire/dhcppair"
)

// Times in seconds of the division of free addresses: between two divisions, and between two requests for addresses.
const (
	shareInterval = 60
	needInterval  = 1
	// shareStep is the number of addresses that are counted with the lock held.
	shareStep = 4096
	// reclaimStep is the number of records of a partner that is down that are examined in a second.
	reclaimStep = 20_000
)

// tickPairs takes the steps of the pairs that wait for a time.
func (e *engine) tickPairs() {
	e.mu.Lock()
	e.listenPairs()
	all := make([]*pair, 0, len(e.pairs))
	for _, p := range e.pairs {
		all = append(all, p)
	}
	e.mu.Unlock()
	for _, p := range all {
		e.mu.Lock()
		now := e.clock.now()
		if p.unstored {
			p.unstored = false
			p.store()
		}
		p.reclaim(now)
		p.report(now)
		due := p.machine.IsNormal() && now-p.shared >= shareInterval
		if due {
			p.shared = now
		}
		networks := p.networks
		e.mu.Unlock()
		if due {
			for network := range networks {
				p.share(network, false)
			}
		}
	}
}

// need asks the partner for addresses of a network. The caller holds mu.
func (p *pair) need(network int64) {
	now := p.e.clock.now()
	if p.link == nil || !p.machine.IsNormal() || now-p.needed < needInterval {
		return
	}
	p.needed = now
	p.link.send(dhcppair.Message{Need: []int64{network}})
}

// shareNetwork divides the free addresses of a network soon, because the partner has none. The caller holds mu.
func (p *pair) shareNetwork(network int64) {
	if !p.networks[network] || p.sharing[network] {
		return
	}
	p.sharing[network] = true
	p.e.tasks.Go(func() {
		p.share(network, true)
		p.e.mu.Lock()
		defer p.e.mu.Unlock()
		delete(p.sharing, network)
	})
}

// Limits of a gift of addresses of a large range: the number of addresses that are examined for one request, and of those that are given.
const (
	maxGiftWalk = 1 << 17
	maxGift     = 4096
)

// share gives half of the difference to the partner if this server owns more free addresses of a network, and the difference exceeds a
// tenth of all. needed is true if the partner has no free address: it then also gets addresses of the large ranges.
func (p *pair) share(network int64, needed bool) {
	small, large := p.e.content.Load().compiled.SharedPools(network)
	for _, pool := range small {
		own, theirs := p.countShares(network, pool)
		if surplus := len(own) - theirs; surplus >= 2 && surplus*10 > len(own)+theirs {
			p.give(own[len(own)-surplus/2:])
		}
	}
	if !needed {
		return
	}
	for _, pool := range large {
		p.give(p.findGift(network, pool))
	}
}

// countShares returns the free addresses of this server in a range, and the number of those of the partner.
func (p *pair) countShares(network, pool int64) (own []netip.Addr, theirs int) {
	for next, begun := uint64(0), false; next != 0 || !begun; begun = true {
		next = p.examine(network, pool, next, func(a netip.Addr, side dhcppair.Side) {
			if side == p.side() {
				own = append(own, a)
			} else {
				theirs++
			}
		})
	}
	return own, theirs
}

// findGift returns free addresses of this server in a large range: each second one, so that the rest stays. It continues where the last
// search ended.
func (p *pair) findGift(network, pool int64) (gift []netip.Addr) {
	p.e.mu.Lock()
	next := p.gifts[pool]
	p.e.mu.Unlock()
	found := 0
	for walked := 0; walked < maxGiftWalk && len(gift) < maxGift; walked += shareStep {
		next = p.examine(network, pool, next, func(a netip.Addr, side dhcppair.Side) {
			if side != p.side() {
				return
			}
			if found++; found%2 == 0 && len(gift) < maxGift {
				gift = append(gift, a)
			}
		})
	}
	p.e.mu.Lock()
	defer p.e.mu.Unlock()
	p.gifts[pool] = next
	return gift
}

// examine calls fn for the free addresses of a step of a range, with the side that owns them. It returns the next step; 0 after the last
// one.
func (p *pair) examine(network, pool int64, next uint64, fn func(a netip.Addr, side dhcppair.Side)) uint64 {
	e := p.e
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.content.Load().compiled.Shared(network, pool, next, shareStep, func(a netip.Addr) {
		l := e.table.lease(a)
		switch r := p.recordOf(l, a); {
		case r.IsHeld() || l != nil && l.state != dhcpdata.Free:
		case r.Owner != p.side():
			fn(a, r.Owner)
		case e.table.offers.addresses[a] == nil:
			fn(a, r.Owner)
		}
	})
}

// give gives free addresses to the partner.
func (p *pair) give(all []netip.Addr) {
	for len(all) > 0 {
		n := min(len(all), checkpointStep)
		p.e.mu.Lock()
		now := p.e.clock.now()
		var x dhcppair.Effects
		for _, a := range all[:n] {
			r := p.Record(a)
			if p.machine.IsNormal() && p.machine.CanGive(r, now) && p.e.table.offers.addresses[a] == nil {
				x.Changes = append(x.Changes, dhcppair.Change{Address: a, Record: p.machine.GiveToPartner(r)})
				p.machine.Mark(a)
			}
		}
		p.follow(x)
		p.e.mu.Unlock()
		all = all[n:]
	}
}

// reclaim takes the free addresses of a partner that is down, and ends the leases that no client can hold any more. The caller holds mu.
func (p *pair) reclaim(now int64) {
	status := p.machine.Status()
	if status.Phase != dhcppair.PartnerDown || status.Since+p.machine.Config().MCLT > now {
		p.reclaimed = false
		return
	}
	if !p.reclaimed {
		p.reclaimed = true
		for network := range p.networks { // addresses that were never leased are found again
			for _, pool := range p.e.content.Load().compiled.PoolsOf(network) {
				p.e.table.resetCursor(pool)
			}
		}
	}
	var x dhcppair.Effects
	for l := range p.e.table.all {
		if len(x.Changes) >= reclaimStep {
			break
		}
		if !p.networks[l.network] {
			continue
		}
		r := p.recordOf(l, l.address)
		if r.Owner == p.side() && !r.IsHeld() || !p.machine.CanReclaim(r, now) ||
			p.e.content.Load().compiled.IsReserved(l.address, l.holder.client, []byte(l.holder.hardware)) {
			continue
		}
		x.Changes = append(x.Changes, dhcppair.Change{Address: l.address, Record: p.machine.Reclaim(r), Freed: r.IsHeld()})
		p.machine.Mark(l.address)
	}
	p.follow(x)
}

// state returns what the manager shows about the pair. The caller holds mu.
func (p *pair) state(now int64) dhcplease.Pair {
	return dhcplease.Pair{Partner: p.settings.ID, State: p.machine.State(now), Since: p.since, Connected: p.machine.IsConnected(),
		Contact: p.contact, SkewMillis: p.skew, Pending: int64(p.machine.Pending()), Conflicts: p.conflicts,
		Contested: p.contested, Key: p.e.key.fingerprint(),
		MCLT: p.machine.Config().MCLT, Port: p.e.pairPort(), Declaration: p.machine.Status().Declaration, Downed: p.machine.Status().Downed}
}

// reportInterval is the time in seconds after which the manager learns the figures of a pair again.
const reportInterval = 20

// report logs a change of the state, and reports it to the manager. The caller holds mu.
func (p *pair) report(now int64) {
	if state := p.machine.State(now); state != p.shown {
		p.e.log.Info("failover state changed", "partner", p.settings.PartnerName, "before", p.shown, "state", state)
		p.shown, p.since = state, now
	}
	s := p.state(now)
	if s.State == p.reported.State && s.Port == p.reported.Port && s.Key == p.reported.Key && s.Connected == p.reported.Connected &&
		s.Conflicts == p.reported.Conflicts && s.Declaration == p.reported.Declaration && s.Downed == p.reported.Downed &&
		now-p.reportedAt < reportInterval {
		return
	}
	entry, err := pairReport(s)
	if err != nil {
		p.e.log.Error("failover report failed", "error", err)
		return
	}
	if p.e.enqueue(commit{entries: [][]byte{entry}, undo: func() {}, done: func() {}}) { // else in the next second
		p.reported, p.reportedAt, p.contested = s, now, nil
	}
}
