package dhcp

import (
	"encoding/json"
	"maps"
	"net/netip"
	"time"

	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"
	"portolan/internal/wire/dhcppair"
)

// pair is a failover pair with a partner. The lock of the engine guards it.
type pair struct {
	e        *engine
	settings dhcpdata.Pair
	networks map[int64]bool
	machine  *dhcppair.Machine
	link     *pairLink
	// stop is closed when the pair is not in the content any more.
	stop chan struct{}
	// since is the time when the shown state began, contact that of the last message. skew is the clock of the partner minus that of this
	// server in milliseconds.
	shown          string
	since, contact int64
	skew           int64
	// conflicts counts the addresses that both servers had leased, and contested are those since the last report.
	conflicts int64
	contested []dhcplease.Contested
	// tried are the times of the first messages of new clients that the partner should answer.
	tried map[string]int64
	// reclaimed is true after the addresses of a partner that is down became usable. needed is the time of the last request for addresses,
	// and shared that of the last division.
	reclaimed      bool
	needed, shared int64
	// sharing are the networks that are divided now, and gifts the next numbers of large ranges to examine for the partner.
	sharing    map[int64]bool
	gifts      map[int64]uint64
	reported   dhcplease.Pair
	reportedAt int64
	// unstored is true after the disk has refused the status of the machine.
	unstored bool
}

// storedPair is the entry of the journal with the status of a pair.
type storedPair struct {
	Partner int64           `json:"partner"`
	Status  dhcppair.Status `json:"status"`
}

// applyPair applies the status of a pair at the start.
func (e *engine) applyPair(text []byte) error {
	var s storedPair
	if err := decodeJSON(text, &s); err != nil {
		return err
	}
	e.statuses[s.Partner] = s.Status
	return nil
}

// entry returns the entry of a status.
func (s storedPair) entry() []byte {
	text, err := json.Marshal(s)
	if err != nil { // it has numbers and booleans only
		panic(err)
	}
	return append([]byte{entryPair}, text...)
}

// pairEntries returns the entries of all statuses for a checkpoint. The caller holds mu.
func (e *engine) pairEntries() (all [][]byte) {
	for id, s := range e.statuses {
		all = append(all, storedPair{id, s}.entry())
	}
	return all
}

// pairOf returns the pair of a network; nil if there is none. The caller holds mu.
func (e *engine) pairOf(network int64) *pair {
	if len(e.pairs) == 0 {
		return nil
	}
	return e.pairs[e.content.Load().compiled.PairOfNetwork(network)]
}

// owns reports whether the server may lease the free address of a lease to any client. The caller holds mu.
func (e *engine) owns(l *lease) bool {
	p := e.pairOf(l.network)
	if p == nil {
		return true
	}
	r := p.recordOf(l, l.address)
	return !r.IsHeld() && r.Owner == p.side()
}

func (p *pair) side() dhcppair.Side {
	if p.settings.Primary {
		return dhcppair.Primary
	}
	return dhcppair.Secondary
}

func (p *pair) recordOf(l *lease, a netip.Addr) dhcppair.Record { return recordOf(l, a, p.side()) }

// Record implements dhcppair.Records.
func (p *pair) Record(a netip.Addr) dhcppair.Record {
	return p.recordOf(p.e.table.lease(a), a)
}

// Data implements dhcppair.Records.
func (p *pair) Data(a netip.Addr) []byte {
	l := p.e.table.lease(a)
	if l == nil || l.holder.client == "" {
		return nil
	}
	alone := *l
	alone.pair = nil
	return alone.append(nil)
}

// configOf returns the settings of the machine.
func configOf(x dhcpdata.Pair) dhcppair.Config {
	c := dhcppair.Config{MCLT: int64(x.MCLT), Split: x.Split, Override: int64(x.Override), MaxUnacked: int(x.MaxUnackedUpdates)}
	if !x.Primary {
		c.Side = dhcppair.Secondary
	}
	return c
}

// configurePairs applies the pairs of new content. The caller holds mu.
func (e *engine) configurePairs(c *dhcpdata.Content) {
	for id, p := range e.pairs {
		if x, ok := c.Pairs[id]; !ok || x.Primary != p.settings.Primary {
			e.log.Info("failover pair ended", "partner", id)
			close(p.stop)
			p.drop("the content no longer contains the pair")
			delete(e.pairs, id)
			e.table.relink(p.networks)
		}
	}
	for id, x := range c.Pairs {
		networks := c.PairedNetworks(id)
		p := e.pairs[id]
		if p == nil {
			if p = e.newPair(x, networks); p == nil {
				continue
			}
			e.pairs[id] = p
			e.table.relink(networks)
		} else if !maps.Equal(networks, p.networks) {
			e.table.relink(p.networks)
			p.networks = networks
			e.table.relink(networks)
			p.drop("the networks of the pair have changed")
			p.machine.MarkAll(p.addresses())
		}
		if string(p.settings.PartnerKey) != string(x.PartnerKey) || p.settings.Endpoint != x.Endpoint {
			p.drop("the identity of the partner has changed")
		}
		p.settings, p.networks = x, networks
		p.machine.Configure(configOf(x))
		p.declare()
	}
	e.listenPairs()
}

// newPair creates a pair, and starts its tasks. It returns nil without a key. The caller holds mu.
func (e *engine) newPair(x dhcpdata.Pair, networks map[int64]bool) *pair {
	if e.key == nil {
		key, err := readPairKey(e.dir)
		if err != nil {
			e.log.Error("read failover key failed", "error", err)
			return nil
		}
		e.key = key
	}
	p := &pair{e: e, settings: x, networks: networks, stop: make(chan struct{}), tried: map[string]int64{},
		sharing: map[int64]bool{}, gifts: map[int64]uint64{}}
	status := e.statuses[x.ID]
	leases := false
	for l := range e.table.all {
		if leases = networks[l.network]; leases {
			break
		}
	}
	now := e.clock.now()
	p.machine = dhcppair.New(configOf(x), status, e.id, now, leases, e.damaged && status.Known)
	p.since = now
	if p.machine.Status() != status {
		p.store()
	}
	e.tasks.Go(p.run)
	if x.Primary {
		e.tasks.Go(p.dial)
	}
	return p
}

// declare follows the declarations of an operator. The caller holds mu.
func (p *pair) declare() {
	now := p.e.clock.now()
	changed := false
	if p.settings.PartnerDown {
		changed = p.machine.Declare(p.settings.Declaration, now)
	}
	if p.settings.DeclaredDown > 0 {
		changed = p.machine.FollowDeclaration(p.settings.DeclaredDown, now) || changed
	}
	if changed {
		p.e.log.Warn("failover declaration followed", "partner", p.settings.PartnerName, "state", p.machine.State(now))
		p.store()
	}
}

// store stores the status. The caller holds mu.
func (p *pair) store() {
	s := p.machine.Status()
	p.e.statuses[p.settings.ID] = s
	p.commit(commit{entries: [][]byte{storedPair{p.settings.ID, s}.entry()}, undo: func() { p.unstored = true }, done: func() {}})
}

// commit enqueues a commit. If it cannot be stored the connection ends, so that the servers exchange their records again. The caller holds
// mu.
func (p *pair) commit(c commit) {
	undo := c.undo
	c.undo = func() {
		undo()
		p.drop("the records could not be stored on the disk")
	}
	p.e.enqueue(c)
}

// addresses returns the addresses of the pair with records. The caller holds mu.
func (p *pair) addresses() (all []netip.Addr) {
	for l := range p.e.table.all {
		if p.networks[l.network] {
			all = append(all, l.address)
		}
	}
	return all
}

// pairGrant completes a lease that is granted. wanted is its end without the limits of the pair. The caller holds mu.
func (e *engine) pairGrant(before, l *lease, wanted int64) {
	p := e.pairOf(l.network)
	if p == nil {
		return
	}
	r := p.machine.Grant(p.recordOf(before, l.address), l.holder.client, e.clock.now(), l.expires, wanted)
	l.pair = pairingOf(r)
	p.machine.Mark(l.address)
}

// pairEnd completes a lease that ends, or an address that is abandoned. The caller holds mu.
func (e *engine) pairEnd(before, after *lease) {
	p := e.pairOf(after.network)
	if p == nil {
		after.pair = nil
		return
	}
	r := p.recordOf(before, after.address)
	now := e.clock.now()
	switch {
	case after.ended && after.state == dhcpdata.Leased:
		r = p.machine.Touch(r)
	default:
		r = p.machine.End(r, now, after.state == dhcpdata.Abandoned, after.expires)
	}
	after.pair = pairingOf(r)
	p.leaveNames(after)
	p.machine.Mark(after.address)
}

// isHeldByPair reports whether the servers of a pair have not agreed yet that the address of a lease is free. The caller holds mu.
func (e *engine) isHeldByPair(l *lease) bool {
	p := e.pairOf(l.network)
	return p != nil && p.recordOf(l, l.address).IsHeld()
}

// pairExpire handles the end of a lease of a pair by time: the owner asks the partner whether the address is free. It returns false for
// other leases. The caller holds mu.
func (e *engine) pairExpire(l *lease) bool {
	p := e.pairOf(l.network)
	if p == nil {
		return false
	}
	reserved := l.state != dhcpdata.Abandoned &&
		e.content.Load().compiled.IsReserved(l.address, l.holder.client, []byte(l.holder.hardware))
	r := p.recordOf(l, l.address)
	if l.state == dhcpdata.Abandoned && !r.IsHeld() { // of an earlier release, which stored no holder: nobody else knows of it
		return false
	}
	if r.Owner == p.side() && r.IsHeld() && !reserved { // a reserved address stays with its client
		p.machine.NoteEnded(l.address)
	}
	return true
}

// follow carries out effects: the memory at once, then the disk, then the messages. The caller holds mu.
func (p *pair) follow(x dhcppair.Effects) {
	e := p.e
	if x.All {
		p.machine.MarkAll(p.addresses())
	}
	for _, network := range x.Need {
		p.shareNetwork(network)
	}
	if len(x.Changes)+len(x.Messages) == 0 && x.Status == nil {
		return
	}
	var entries [][]byte
	type former struct {
		after, before *lease
		renewal       func()
	}
	var all []former
	var leases, named []*lease
	for _, c := range x.Changes {
		before, after := p.changed(c)
		if after == nil {
			continue
		}
		after.unstored = true // a copied one may be, and the client gets no reply before the disk has its entry
		e.table.set(c.Address, after)
		all = append(all, former{after, before, e.keepRenewal(after)})
		leases = append(leases, after)
		if c.Unstored {
			continue
		}
		if c.Conflict {
			p.contest(c, before, after)
		}
		entry := after.append([]byte{entryLease})
		if c.Freed && before != nil && after.network != 0 {
			switch before.state {
			case dhcpdata.Leased:
				entry = event(dhcplease.Expire, after.expires, 0, after)
			case dhcpdata.Abandoned:
				entry = event(dhcplease.Clear, after.expires, 0, after)
			case dhcpdata.Free, dhcpdata.Offered:
			}
		}
		if after.state != dhcpdata.Leased || after.ended {
			e.renewals.forget(after) // the end is known, so that a digest must not follow it
		}
		entries = append(entries, entry)
		named = append(named, e.named(before, after)...)
	}
	if x.Status != nil {
		e.statuses[p.settings.ID] = *x.Status
		entries = append(entries, storedPair{p.settings.ID, *x.Status}.entry())
	}
	link := p.link
	p.commit(commit{entries: entries, leases: leases, named: named, undo: func() {
		p.unstored = p.unstored || x.Status != nil
		for i := len(all) - 1; i >= 0; i-- {
			e.table.restore(all[i].after, all[i].before)
			all[i].renewal()
		}
	}, done: func() {
		if link != nil {
			link.send(x.Messages...)
		}
	}})
}

// changed returns the lease of an address before and after a change. after is nil if the description of the client is invalid. The caller
// holds mu.
func (p *pair) changed(c dhcppair.Change) (before, after *lease) {
	before = p.e.table.lease(c.Address)
	now := p.e.clock.now()
	switch {
	case len(c.Data) > 0:
		l, err := readLease(c.Data)
		if err != nil || l.address != c.Address || l.network <= 0 || l.holder.client != c.Record.Client {
			p.e.log.Error("record of a partner rejected", "address", c.Address, "error", err)
			p.drop("it sent an invalid record")
			return before, nil
		}
		after, l.renewed = l, now
		l.namesOfPartner()
	case before != nil:
		copied := *before
		after = &copied
	default:
		network, pool := p.e.content.Load().compiled.NetworkAt(c.Address)
		after = &lease{network: network, pool: pool, address: c.Address, renewed: now, holder: &holder{}}
	}
	if len(c.Data) == 0 {
		after.start = max(c.Record.Start, 0)
	} // else it keeps the start by the clock of the partner, which identifies the lease for the manager
	after.state, after.expires, after.pair, after.unstored = statesOfLease[c.Record.State], c.Record.Expires, pairingOf(c.Record), true
	if after.state == dhcpdata.Free {
		after.ended, after.counted = false, nil
	}
	p.leaveNames(after)
	return before, after
}

// exchangeInterval is the time after which changes are sent to the partner.
const exchangeInterval = 20 * time.Millisecond

// run sends records and questions to the partner, and connects to it.
func (p *pair) run() {
	ticker := time.NewTicker(exchangeInterval)
	defer ticker.Stop()
	for {
		select {
		case <-p.e.stop:
			return
		case <-p.stop:
			return
		case <-ticker.C:
			p.e.mu.Lock()
			if p.machine.IsConnected() && len(p.e.commits) < maxCommits/2 {
				now := p.e.clock.now()
				p.follow(p.machine.Tick(now))
				p.follow(p.machine.Outgoing(p, now))
			}
			p.e.mu.Unlock()
		}
	}
}
