package dhcp

import (
	"cmp"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"portolan/internal/base/dhcpmsg"
	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"
	"portolan/internal/wire/dhcppair"
)

// probeFunc reports whether a machine answers at an address within a number of seconds. hardware is its hardware address; nil if unknown.
type probeFunc func(a netip.Addr, seconds uint32) (hardware net.HardwareAddr, answers bool)

// engine decides on messages, keeps the leases, and stores each lease on the disk before its reply. It knows no sockets but the outbox.
type engine struct {
	log   *slog.Logger
	clock *clock
	// wall returns the time of the wall clock.
	wall     func() time.Time
	content  atomic.Pointer[content]
	journal  *journal
	counters *counters
	names    *registrar
	observer *observer
	// outbox sends the replies to several messages together.
	outbox outbox
	// probe reports whether an address answers within a time; tests replace it.
	probe probeFunc
	// probes limits the concurrent probes.
	probes chan struct{}
	// commits are the leases that wait for the disk. full is true after a failed write, until one succeeds.
	commits chan commit
	full    atomic.Bool
	// anchor is that of this start. suspectUntil is the end of the time that leases may be unknown after a damage of the journal.
	anchor       anchor
	suspectUntil int64
	// journalSize is the size of the journal in bytes.
	journalSize atomic.Int64
	// read is the holder of the lease that the start reads.
	read holder
	// stop is closed at the end of the engine, and committed after the last group.
	stop      chan struct{}
	committed chan struct{}
	tasks     sync.WaitGroup

	mu sync.Mutex
	// The following fields are guarded by mu: the leases, the performed orders, the number of the last snapshot, and the renewals that the
	// manager has not learned. unperformed is true if an order could not be stored.
	table       *table
	performed   map[int64]bool
	unperformed bool
	snapshot    int64
	// snapshots is true while the list of all leases is written for the manager.
	snapshots bool
	renewals  renewals
	probes6   probes6
	// pairs are the failover pairs by the id of the partner, and statuses what is stored about them.
	pairs    map[int64]*pair
	statuses map[int64]dhcppair.Status
	recall   recall
	// damaged is true if the journal has lost records. key identifies the server to its partners; it is nil before the first pair.
	damaged bool
	key     *pairKey
	dir     string
	id      string
	// pairListener accepts partners at pairAddress, which is empty before the configuration. pairFailure is the reason why it does not. id
	// identifies the journal.
	pairListener *pairListener
	pairAddress  string
	pairFailure  string
}

// content is the content in use.
type content struct {
	revision string
	units    dhcpdata.Units
	compiled *dhcpdata.Content
	// thresholds are those of compiled.
	thresholds map[int64]dhcpdata.Threshold
}

// commit is a change of leases that has to be stored.
type commit struct {
	entries [][]byte
	// named are the leases whose names in DNS may change.
	named []*lease
	// leases are the new leases among the entries.
	leases []*lease
	// undo takes the change back after a failed write; the lock of the engine is held. done is called after a successful one.
	undo func()
	done func()
}

// Limits of the engine. The queue of commits refuses DISCOVERs first, then new leases, then renewals.
const (
	maxCommits     = 4096
	maxProbes      = 1000
	maxGroup       = maxCommits // all that wait share one sync: a slow disk makes answers late, but not fewer
	digestInterval = time.Minute
	tickInterval   = time.Second
	maxExpired     = 2000 // leases that expire in one step, so that the lock is held for a short time only
	checkpointStep = 1000
	// checkpointAfter is the number of records after which a checkpoint is written.
	checkpointAfter = 500_000
)

// newEngine opens the journal in a folder and starts the engine. damaged is an error of the journal that leaves leases unknown.
func newEngine(dir string, log *slog.Logger, o journalOptions, probe probeFunc) (e *engine, damaged, err error) {
	e = &engine{log: log, clock: newClock(time.Now()), counters: newCounters(), observer: newObserver(log), probe: probe,
		probes: make(chan struct{}, maxProbes), commits: make(chan commit, maxCommits), stop: make(chan struct{}),
		committed: make(chan struct{}), performed: map[int64]bool{}, renewals: renewals{},
		probes6: probes6{map[netip.Addr]bool{}, map[netip.Addr]int64{}},
		pairs:   map[int64]*pair{}, statuses: map[int64]dhcppair.Status{}, dir: dir}
	e.table = newTable(e.clock.now)
	e.table.owns = e.owns
	j, err := openJournal(dir, o, e.applyEntry)
	if j == nil {
		return nil, nil, err
	}
	e.journal, e.damaged = j, err != nil
	isNew := j.last.Load() == 0
	limitGarbage(e.table.slots.used)
	names, failed := openRegistrar(filepath.Join(dir, "names"), log)
	if failed != nil {
		return nil, nil, failed
	}
	e.names, names.notify = names, e.observer.notice
	if o.times == nil {
		o.times = &times{time.Now, bootTime}
	}
	e.wall = o.times.wall
	e.startClock(*o.times)
	if failed := e.startRecall(isNew && !e.damaged); failed != nil {
		return nil, nil, failed
	}
	empty, failed := dhcpdata.Compile(nil, nil)
	if failed != nil {
		return nil, nil, failed
	}
	e.content.Store(&content{compiled: empty})
	e.names.start(e.table.all)
	e.tasks.Go(e.commitAll)
	if e.damaged {
		e.suspect()
	}
	e.tasks.Go(e.tick)
	e.tasks.Go(e.keepJournal)
	return e, err, nil
}

// close stops the engine after the pending commits.
func (e *engine) close() error {
	close(e.stop)
	e.closePairs()
	e.tasks.Wait()
	e.commitRest()
	return errors.Join(e.names.close(), e.journal.close())
}

// request is a message with the facts about its way here.
type request struct {
	message *dhcpmsg.Message
	packet  []byte
	facts   dhcpdata.Facts
	// reply sends a reply. It may be called later, and from another goroutine.
	reply func(d *dhcpdata.Decision, packet []byte)
}

// handle decides on a message and carries the decision out.
func (e *engine) handle(r *request) { e.decide(r, 0) }

// maxProbed is the number of addresses that are probed for one DISCOVER.
const maxProbed = 3

func (e *engine) decide(r *request, probed int) {
	e.mu.Lock()
	c := e.content.Load().compiled
	d := dhcpdata.Decide(c, &r.facts, e.leasesFor(c), e.clock.now())
	reason, sendsNow := cmp.Or(e.refusesUnknown(r, d), e.refusesPaired(c, r, d)), false
	if reason == "" {
		e.probesSuspects(d)
		reason, sendsNow = e.carryOut(r, d, probed)
	}
	e.mu.Unlock()
	if reason != "" {
		e.counters.refuse(d.Network, reason)
		e.observe(r, d.Network, reason)
	}
	if sendsNow && d.Reply != 0 {
		e.send(r, d)
	}
}

// carryOut changes the leases. It returns the reason why the client is not served, and whether the reply, if there is one, is sent at once.
// The caller holds mu.
func (e *engine) carryOut(r *request, d *dhcpdata.Decision, probed int) (reason string, sendsNow bool) {
	switch d.Action {
	case dhcpdata.ActNothing:
	case dhcpdata.ActRenew:
		if l := e.unstoredLease(d.Address); l != nil { // the client asks again while the lease waits for the disk
			return e.wait(l, func() { e.send(r, d) }), false
		}
	case dhcpdata.ActWithdraw:
		e.withdraw(r, d)
	case dhcpdata.ActOffer:
		return e.offer(r, d, probed)
	case dhcpdata.ActCommit:
		return e.lease(r, d), false
	case dhcpdata.ActDecline:
		e.withdraw(r, d)
		e.abandon(d, holderOf(r, d), dhcplease.Decline)
	case dhcpdata.ActRelease:
		e.withdraw(r, d)
		if l := e.table.lease(d.Address); l != nil && l.state == dhcpdata.Leased {
			e.change(l, endedLease(l, e.clock.now()), dhcplease.Release, 0)
		}
	}
	return string(d.Reason), true
}

// offer holds the address for the client, and sends the offer after the probe, if one is needed. The caller holds mu.
func (e *engine) offer(r *request, d *dhcpdata.Decision, probed int) (reason string, sendsNow bool) {
	if e.full.Load() {
		return journalFull, false
	}
	if len(e.commits) > maxCommits*3/4 {
		return busy, false
	}
	o := offer{network: d.Network, pool: d.Pool, client: d.Client, hardware: append([]byte(nil), r.facts.Hardware...), relay: r.facts.Relay}
	if before := e.table.offers.clients[d.Client]; before != nil && before.address == d.Address {
		if before.probing { // the client gets the offer at the end of the probe
			return "", false
		}
		o.probed = before.probed
	}
	if !e.table.offer(o, d.Address) {
		return tooMany, false
	}
	held := e.table.offers.clients[d.Client]
	if !d.Probe || held.probed {
		return "", true
	}
	select {
	case e.probes <- struct{}{}:
	default:
		e.table.withdraw(d.Client)
		return busy, false
	}
	held.probing = true
	e.tasks.Go(func() {
		hardware, answers := e.probe(d.Address, d.ProbeSeconds)
		<-e.probes
		e.mu.Lock()
		l := e.table.lease(d.Address)
		if e.table.offers.addresses[d.Address] != held || l != nil && l.view(e.clock.now()).State == dhcpdata.Leased {
			e.mu.Unlock() // the client has another offer, or leased the address meanwhile
			return
		}
		held.probing, held.probed = false, true
		if !answers {
			e.mu.Unlock()
			e.send(r, d)
			return
		}
		e.table.withdraw(d.Client)
		e.abandon(d, holderWithout(hardware), dhcplease.Abandon)
		e.mu.Unlock()
		e.log.Warn("address without a lease answered", "address", d.Address, "network", d.Network, "hardware", hardware.String())
		if probed+1 < maxProbed {
			e.decide(r, probed+1)
		}
	})
	return "", false
}

// holderWithout returns the holder of an address that a machine uses without a lease. Its hardware address may be unknown.
func holderWithout(hardware net.HardwareAddr) *holder {
	const ethernet = 1
	h := &holder{client: dhcpdata.StrangerIdentity(hardware)}
	if len(hardware) > 0 {
		h.hardwareType, h.hardware = ethernet, octetsOf(hardware, 16)
	}
	return h
}

// abandon makes an address unusable for a time. holder is the client that declined it, or the machine that uses it. The caller holds mu.
func (e *engine) abandon(d *dhcpdata.Decision, holder *holder, kind dhcplease.Kind) {
	now := e.clock.now()
	l := &lease{network: d.Network, pool: d.Pool, address: d.Address, state: dhcpdata.Abandoned, start: now, renewed: now,
		expires: now + int64(d.AbandonSeconds), holder: holder}
	before := e.table.lease(d.Address)
	if before != nil {
		l.pool = before.pool
	}
	e.change(before, l, kind, 0)
}

// change stores a change of a lease that needs no reply. The caller holds mu.
func (e *engine) change(before, after *lease, kind dhcplease.Kind, order int64) {
	e.pairEnd(before, after)
	renewal := e.keepRenewal(after)
	e.table.set(after.address, after)
	e.renewals.forget(after)
	c := commit{entries: [][]byte{event(kind, e.clock.now(), order, after)}, leases: []*lease{after}, named: e.named(before, after)}
	c.undo = func() {
		e.table.restore(after, before)
		renewal()
		if order != 0 {
			e.forgetOrder(order)
		}
	}
	c.done = func() {}
	select {
	case e.commits <- c:
	default:
		c.undo()
		e.counters.refuse(after.network, busy)
	}
}

// lease leases the address, stores the lease, and then sends the reply. The caller holds mu.
func (e *engine) lease(r *request, d *dhcpdata.Decision) string {
	l := &lease{network: d.Network, pool: d.Pool, reservation: d.Reservation, address: d.Address, state: dhcpdata.Leased, start: d.Start,
		renewed: d.Start, expires: d.Expires, counted: d.Counted, holder: holderOf(r, d), names: d.Names,
		unstored: true}
	before := e.table.lease(d.Address)
	e.keepNames(before, l)
	e.pairGrant(before, l, d.Wanted)
	entry, renews := e.entryOf(before, l)
	if limit := maxCommits * 7 / 8; len(e.commits) > limit && !renews {
		return busy
	}
	c := commit{entries: [][]byte{entry}, leases: []*lease{l}, named: e.takeNames(before, l), done: func() { e.send(r, d) }}
	undo := []func(){func() { e.table.restore(l, before) }, e.keepRenewal(l)}
	for _, a := range d.Ends {
		old := e.table.lease(a)
		if old == nil || old.state != dhcpdata.Leased {
			continue
		}
		end := endedLease(old, e.clock.now())
		e.pairEnd(old, end)
		undo = append(undo, func() { e.table.restore(end, old) }, e.keepRenewal(end))
		e.table.set(a, end)
		e.renewals.forget(end)
		c.leases = append(c.leases, end)
		c.entries = append(c.entries, event(dhcplease.Conflict, end.expires, 0, end))
		c.named = append(c.named, e.named(old, end)...)
	}
	e.table.set(l.address, l)
	e.withdraw(r, d)
	c.undo = func() {
		for i := len(undo) - 1; i >= 0; i-- {
			undo[i]()
		}
	}
	select {
	case e.commits <- c:
		e.renewals.forget(l)
		if entry[0] == entryRenewal || entry[0] == entryPairedRenewal {
			e.renewals.add(l)
		}
		return ""
	default:
		c.undo()
		return busy
	}
}

// entryOf returns the entry for a lease: a renewal if nothing but the time has changed. It keeps the start of a lease that continues. One
// that an operator ended does not continue.
func (e *engine) entryOf(before, l *lease) (entry []byte, renews bool) {
	if before == nil || before.state != dhcpdata.Leased || before.ended || before.holder.client != l.holder.client ||
		before.expires <= e.clock.now() {
		return event(dhcplease.Begin, l.renewed, 0, l), false
	}
	l.start = before.start
	if before.holder.hardware != l.holder.hardware {
		e.observer.move(before, l)
	}
	if len(l.holder.relay) == 0 && !l.holder.relayAddress.IsValid() { // a unicast renewal: the relay information of the first request holds
		l.holder.relay, l.holder.relayAddress = before.holder.relay, before.holder.relayAddress
	}
	if before.holder.changed(l.holder) || before.reservation != l.reservation || before.pool != l.pool ||
		!before.names.Same(l.names) {
		return event(dhcplease.Change, l.renewed, 0, l), true
	}
	if l.pair != nil {
		return pairedRenewal(l), true
	}
	return renewal(l), true
}

// send encodes and sends the reply of a decision.
func (e *engine) send(r *request, d *dhcpdata.Decision) {
	out := dhcpmsg.Reply{To: r.message, Type: d.Reply, Yours: d.Address, Server: d.NextServer, File: d.File, ServerName: d.ServerName,
		KeepClient: r.facts.Type == dhcpdata.Inform || d.Action == dhcpdata.ActCommit || d.Action == dhcpdata.ActRenew,
		Broadcast:  d.Reply == dhcpdata.Nak && r.facts.Relay.IsValid()}
	if d.Reply == dhcpdata.BOOTP {
		out.Type = 0
	}
	out.Options = make([]dhcpmsg.Option, 0, len(d.Options))
	for _, o := range d.Options {
		out.Options = append(out.Options, dhcpmsg.Option{Code: o.Code, Value: o.Value})
	}
	buffer := replies.Get().(*[]byte) //nolint:forcetypeassert // the pool contains no other type
	packet, dropped := out.Append((*buffer)[:0], dhcpmsg.MaxSize(r.facts.Options[optMaxSize]))
	if len(dropped) > 0 {
		e.counters.refuse(d.Network, "option-too-long")
	}
	e.counters.send(messageName(d.Reply))
	r.reply(d, packet)
}

// tick ends leases that have expired, drops old offers, and writes digests. It never waits for the disk.
func (e *engine) tick() {
	ticker := time.NewTicker(tickInterval)
	defer ticker.Stop()
	digests := time.NewTicker(digestInterval)
	defer digests.Stop()
	for {
		select {
		case <-e.stop:
			return
		case <-digests.C:
			e.writeDigests()
		case <-ticker.C:
			e.expire()
			e.tickPairs()
			e.tickRecall()
			e.logThresholds()
			if e.full.Load() { // without clients that renew, nothing else shows that there is space again
				e.tryDisk()
			}
			e.retryOrders()
			e.wantSnapshot(e.content.Load().compiled.Server.Snapshot)
			if seconds, stepped := e.clock.check(e.wall()); stepped {
				e.reportStep(seconds)
			}
		}
	}
}

// keepJournal writes checkpoints, and limits the size of the journal. Both wait for the disk.
func (e *engine) keepJournal() {
	ticker := time.NewTicker(tickInterval)
	defer ticker.Stop()
	limits := time.NewTicker(digestInterval)
	defer limits.Stop()
	for {
		select {
		case <-e.stop:
			return
		case <-limits.C:
			e.limitJournal()
		case <-ticker.C:
			if e.journal.sinceCheckpoint() > checkpointAfter {
				if err := e.writeCheckpoint(); err != nil && !errors.Is(err, errStopped) {
					e.log.Error("lease checkpoint failed", "error", err)
				}
				e.mu.Lock()
				limitGarbage(e.table.slots.used)
				e.mu.Unlock()
			}
		}
	}
}

// expire ends the leases that have expired.
func (e *engine) expire() {
	for {
		e.mu.Lock()
		e.table.dropExpired()
		all := e.table.expired(maxExpired)
		for _, l := range all {
			if e.pairExpire(l) {
				continue
			}
			kind := dhcplease.Expire
			if l.state == dhcpdata.Abandoned {
				kind = dhcplease.Clear
			}
			e.change(l, endedLease(l, e.clock.now()), kind, 0)
		}
		e.mu.Unlock()
		if len(all) < maxExpired || len(e.commits) > maxCommits/2 {
			return
		}
	}
}
