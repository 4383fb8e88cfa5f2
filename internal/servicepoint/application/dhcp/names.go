package dhcp

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"maps"
	"net/netip"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"
)

// registrar keeps the names of clients in DNS. The names that an address should have come from the leases on the disk. A journal of its own
// contains the names that DNS may have, so that a restart continues: each difference is a task. Tasks wait while the servers of their zone
// do not answer. No message of a client waits for the registrar.
type registrar struct {
	log *slog.Logger
	// notify is called with notices for the manager. The lock of the registrar is held.
	notify  func(dhcplease.NameNotice)
	journal *journal
	sender  *updateSender
	stop    context.Context //nolint:containedctx // it ends with close
	end     context.CancelFunc
	tasks   sync.WaitGroup
	// lastLine is the second of the last line about a single client: there is at most one in a second.
	lastLine atomic.Int64

	mu sync.Mutex
	// The following fields are guarded by mu: the content with the zones, the records by address, the addresses by forward name, the queues by
	// zone, the numbers of outcomes, and the times.
	content *dhcpdata.Content
	records map[netip.Addr]*nameRecord
	hosts   map[string]map[netip.Addr]bool
	queues  map[string]*zoneQueue
	counts  map[outcome]int64
	times   registrarTimes
	closed  bool
}

// registrarTimes are the times of a registrar, which tests shorten.
type registrarTimes struct {
	// A zone whose servers do not answer waits from minDelay to maxDelay. A name that was refused, or that another client has, is tried again
	// after again.
	minDelay, maxDelay, again time.Duration
}

var usualTimes = registrarTimes{minDelay: time.Second, maxDelay: time.Minute, again: 10 * time.Minute}

// namesTick is the time between two examinations of the queues.
const namesTick = 250 * time.Millisecond

// nameSide is one of the two kinds of records.
type nameSide uint8

const (
	forward nameSide = iota
	reverse
)

// nameRecord is the state of the names of an address.
type nameRecord struct {
	// wanted are the names that the address should have; nil for none.
	wanted *dhcpdata.Names
	// sent are the names that DNS may have, by side; nil for none. added is true for those that DNS has.
	sent  [2]*dhcpdata.Names
	added [2]bool
	// queued is true for a side that is in a queue. failed is the outcome of a task that did not succeed, until it is tried again.
	queued [2]bool
	failed [2]outcome
}

// zoneQueue contains the tasks of a zone. One goroutine performs them in order.
type zoneQueue struct {
	zone  string
	items []nameItem
	// later are the tasks to repeat, in the order of their times.
	later   []laterItem
	working bool
	// delay is the current delay after a failure, until its end, and reason the failure.
	delay  time.Duration
	until  time.Time
	reason string
}

type nameItem struct {
	address netip.Addr
	side    nameSide
}

type laterItem struct {
	nameItem
	at time.Time
}

// nameTask is a task: to register names, or to remove them.
type nameTask struct {
	nameItem
	zone   dhcpdata.Zone
	names  *dhcpdata.Names
	remove bool
	others []netip.Addr
}

// openRegistrar opens the journal of names in a folder.
func openRegistrar(dir string, log *slog.Logger) (*registrar, error) {
	r := &registrar{log: log, notify: func(dhcplease.NameNotice) {}, times: usualTimes, sender: &updateSender{port: dnsPort},
		records: map[netip.Addr]*nameRecord{},
		hosts:   map[string]map[netip.Addr]bool{}, queues: map[string]*zoneQueue{}, counts: map[outcome]int64{}}
	r.stop, r.end = context.WithCancel(context.Background())
	j, err := openJournal(dir, journalOptions{segmentSize: namesSegment}, r.applyEntry)
	if j == nil {
		return nil, err
	}
	if err != nil { // some records may stay in DNS
		log.Error("journal of client names damaged", "error", err)
	}
	r.journal = j
	return r, nil
}

// start takes the leases that were read at the start, and begins to work. Names that DNS may have, and that no lease has, are removed.
func (r *registrar) start(leases iter.Seq[*lease]) {
	r.mu.Lock()
	for l := range leases {
		switch n, whose := namesOf(l); {
		case whose == ofPartner:
			r.forget(l.address)
		case n != nil && whose == ofServer:
			r.setNames(l.address, n)
		}
	}
	r.mu.Unlock()
	r.tasks.Go(r.tick)
}

// holderOfNames tells which server keeps the names of an address.
type holderOfNames uint8

// The holders. Nobody keeps the names that the partner of a failover pair has left: this server removes them.
const (
	ofServer holderOfNames = iota
	ofPartner
	ofNobody
)

// namesOf returns the names that a lease should have in DNS, nil for none, and the server that keeps them. For names of nobody it returns
// those to remove.
func namesOf(l *lease) (*dhcpdata.Names, holderOfNames) {
	partner := l.names != nil && l.names.Partner
	switch {
	case partner && l.state != dhcpdata.Leased:
		return l.names, ofNobody
	case l.state != dhcpdata.Leased || l.ended:
		return nil, ofServer
	case partner || l.names == nil:
		return nil, ofPartner
	case l.names.Host == "":
		return nil, ofServer
	}
	return l.names, ofServer
}

// prepare stores the names that the partners of failover pairs have left, before the leases are stored that end them: after a restart
// they are removed all the same. If the leases are not stored, the partner keeps the names.
func (r *registrar) prepare(group []commit) {
	var entries [][]byte
	var failed error
	for _, c := range group {
		for _, l := range c.named {
			if _, whose := namesOf(l); whose != ofNobody {
				continue
			}
			n := leftNames(l)
			for s, is := range []bool{n.Forward, n.Reverse != ""} {
				if !is {
					continue
				}
				entry, err := nameEntry{l.address, nameSide(s), n}.encode(nameSent)
				failed = errors.Join(failed, err)
				entries = append(entries, entry)
			}
		}
	}
	if failed == nil {
		failed = r.store(entries)
	}
	if err := failed; err != nil { // they are removed unless the server restarts before
		r.log.Error("names of a partner not stored", "error", err)
	}
}

// leftNames returns the names that a partner has left with a lease, as those of this server.
func leftNames(l *lease) *dhcpdata.Names {
	n := *l.names
	n.Partner = false
	return &n
}

// applyLeases queues the changes of names of leases that are on the disk.
func (r *registrar) applyLeases(leases []*lease) {
	if len(leases) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range leases {
		n, whose := namesOf(l)
		switch {
		case whose == ofPartner:
			r.forget(l.address)
		case whose == ofNobody:
			r.adopt(l)
		case n != nil || r.records[l.address] != nil:
			r.setNames(l.address, n)
			r.enqueue(l.address)
		}
	}
}

// adopt removes the names that a partner has left. The caller holds mu.
func (r *registrar) adopt(l *lease) {
	n := leftNames(l)
	r.setNames(l.address, nil)
	one := r.records[l.address]
	for s, is := range []bool{n.Forward, n.Reverse != ""} {
		if is && one.sent[s] == nil {
			one.sent[s] = n
		}
	}
	r.enqueue(l.address)
}

// forget forgets the names of an address: the partner of a failover pair keeps them. The caller holds mu.
func (r *registrar) forget(a netip.Addr) {
	one := r.records[a]
	if one == nil {
		return
	}
	r.setNames(a, nil)
	one.sent, one.added = [2]*dhcpdata.Names{}, [2]bool{}
	if one.queued == [2]bool{} {
		delete(r.records, a)
	}
}

// knows reports whether DNS may have names of an address, or should have them.
func (r *registrar) knows(a netip.Addr) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.records[a] != nil
}

// setNames sets the names that an address should have. The caller holds mu.
func (r *registrar) setNames(a netip.Addr, n *dhcpdata.Names) {
	one := r.records[a]
	if one == nil {
		one = &nameRecord{}
		r.records[a] = one
	}
	if one.wanted != nil && !one.wanted.Same(n) {
		delete(r.hosts[one.wanted.Host], a)
		if len(r.hosts[one.wanted.Host]) == 0 {
			delete(r.hosts, one.wanted.Host)
		}
	}
	if !n.Same(one.wanted) {
		one.failed = [2]outcome{}
	}
	if n != nil {
		if r.hosts[n.Host] == nil {
			r.hosts[n.Host] = map[netip.Addr]bool{}
		}
		r.hosts[n.Host][a] = true
		if n.Always {
			one.added = [2]bool{}
		}
	}
	one.wanted = n
}

// setContent uses the zones of new content. If they have changed, all names are examined again.
func (r *registrar) setContent(c *dhcpdata.Content) {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed := r.content == nil || !reflect.DeepEqual(r.content.Zones, c.Zones)
	if r.content = c; !changed {
		return
	}
	for _, q := range r.queues {
		q.delay, q.until = 0, time.Time{}
	}
	for a, one := range r.records {
		one.failed = [2]outcome{}
		r.enqueue(a)
	}
}

// next returns the next task for a side of an address; ok is false if there is none, or no zone contains the name. The caller holds mu.
func (r *registrar) next(i nameItem) (t nameTask, ok bool) {
	one := r.records[i.address]
	if one == nil || r.content == nil || one.failed[i.side] != "" {
		return t, false
	}
	wanted, sent := one.wanted, one.sent[i.side]
	switch {
	case wanted == nil:
	case i.side == forward && !wanted.Forward, i.side == reverse && wanted.Reverse == "":
		wanted = nil
	case i.side == reverse && wanted.Forward && !one.added[forward]:
		wanted = nil // the PTR record follows the address record
		if sent.Same(one.wanted) {
			return t, false
		}
	}
	t = nameTask{nameItem: i, names: wanted}
	switch {
	case sent != nil && !sent.Same(wanted):
		t.names, t.remove = sent, true
	case wanted == nil || sent != nil && one.added[i.side]:
		return t, false
	}
	name := t.names.Host
	if i.side == reverse {
		name = t.names.Reverse
	}
	if t.zone, ok = r.content.ZoneOf(name, !i.address.Is4()); !ok {
		return t, false
	}
	if i.side == forward && !t.remove {
		for a := range r.hosts[name] {
			if other := r.records[a]; a != i.address && a.Is4() == i.address.Is4() && other.added[forward] && other.wanted.Forward &&
				string(other.wanted.IDs[0]) == string(t.names.IDs[0]) {
				t.others = append(t.others, a)
			}
		}
	}
	return t, true
}

// queueOf returns the queue of a zone. The caller holds mu.
func (r *registrar) queueOf(z dhcpdata.Zone) *zoneQueue {
	key := z.Name + " " + z.Primary.String()
	q := r.queues[key]
	if q == nil {
		q = &zoneQueue{zone: z.Name}
		r.queues[key] = q
	}
	return q
}

// enqueue queues the tasks of an address. It forgets an address without names. The caller holds mu.
func (r *registrar) enqueue(a netip.Addr) {
	one := r.records[a]
	if one == nil {
		return
	}
	if one.wanted == nil && one.sent == [2]*dhcpdata.Names{} && one.queued == [2]bool{} {
		delete(r.records, a)
		return
	}
	for _, s := range []nameSide{forward, reverse} {
		t, ok := r.next(nameItem{a, s})
		if !ok || one.queued[s] {
			continue
		}
		one.queued[s] = true
		q := r.queueOf(t.zone)
		q.items = append(q.items, t.nameItem)
		r.work(q)
	}
}

// work starts the goroutine of a queue if there is something to do. The caller holds mu.
func (r *registrar) work(q *zoneQueue) {
	if q.working || len(q.items) == 0 || r.closed || time.Now().Before(q.until) {
		return
	}
	q.working = true
	r.tasks.Go(func() { r.workOn(q) })
}

// tick repeats tasks that are due, and writes checkpoints.
func (r *registrar) tick() {
	ticker := time.NewTicker(namesTick)
	defer ticker.Stop()
	for {
		select {
		case <-r.stop.Done():
			return
		case now := <-ticker.C:
			r.mu.Lock()
			for _, q := range r.queues {
				for len(q.later) > 0 && !q.later[0].at.After(now) {
					r.retry(q.later[0].nameItem)
					q.later = q.later[1:]
				}
				r.work(q)
			}
			r.mu.Unlock()
			if r.journal.sinceCheckpoint() > namesCheckpoint {
				if err := r.writeCheckpoint(); err != nil {
					r.log.Error("checkpoint of client names failed", "error", err)
				}
			}
		}
	}
}

// retry queues a task that did not succeed. The caller holds mu.
func (r *registrar) retry(i nameItem) {
	if one := r.records[i.address]; one != nil && one.failed[i.side] != "" {
		one.failed[i.side] = ""
		r.enqueue(i.address)
	}
}

// close stops the tasks. Those that are not finished continue after the next start.
func (r *registrar) close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.end()
	r.tasks.Wait()
	return r.journal.close()
}

// nameState is a summary for the diagnostics and the metrics.
type nameState struct {
	// Kept is the number of addresses with names in DNS, and Pending that of the tasks that wait.
	Kept    int `json:"kept"`
	Pending int `json:"pending"`
	// Outcomes counts the updates. Delayed contains the zones whose servers do not answer, with the reason.
	Outcomes map[outcome]int64 `json:"outcomes"`
	Delayed  map[string]string `json:"delayed,omitempty"`
	// Conflicts and Refused are the numbers of addresses whose name another client has, or that was refused. WithoutZone is the number of
	// those whose name is in no zone.
	Conflicts   int `json:"conflicts"`
	Refused     int `json:"refused"`
	WithoutZone int `json:"withoutZone"`
}

func (r *registrar) state() nameState {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := nameState{Outcomes: maps.Clone(r.counts), Delayed: map[string]string{}}
	for _, one := range r.records {
		switch {
		case one.failed[forward] == outcomeConflict:
			s.Conflicts++
		case one.failed[forward] == outcomeRefused, one.failed[reverse] == outcomeRefused:
			s.Refused++
		case one.added[forward] || one.added[reverse]:
			s.Kept++
		case one.queued == [2]bool{}:
			s.WithoutZone++
		}
	}
	for _, q := range r.queues {
		s.Pending += len(q.items)
		if q.reason != "" {
			s.Delayed[q.zone] = q.reason
		}
	}
	return s
}
