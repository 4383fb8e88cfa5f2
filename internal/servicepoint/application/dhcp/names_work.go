package dhcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"portolan/internal/base/dnsmsg"
	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"
)

// The kinds of entries of the journal of names: names that DNS may have from now on, names that DNS has, and names that it has no longer.
const (
	nameSent  = 'P'
	nameAdded = 'A'
	nameGone  = 'G'
)

// Limits of the journal of names, and the number of tasks with one entry in it.
const (
	namesSegment    = 8 << 20
	namesCheckpoint = 100_000
	nameGroup       = 64
)

// nameEntry is an entry of the journal of names after its kind.
type nameEntry struct {
	Address netip.Addr      `json:"a"`
	Side    nameSide        `json:"s,omitempty"`
	Names   *dhcpdata.Names `json:"n,omitempty"`
}

func (e nameEntry) encode(kind byte) ([]byte, error) {
	text, err := json.Marshal(e)
	return append([]byte{kind}, text...), err
}

// applyEntry applies an entry of the journal at the start.
func (r *registrar) applyEntry(entry []byte) error {
	var e nameEntry
	if err := json.Unmarshal(entry[1:], &e); err != nil {
		return err
	}
	if !e.Address.IsValid() || e.Side > reverse || entry[0] == nameSent && e.Names == nil {
		return fmt.Errorf("an entry %q of the journal of client names is invalid", entry)
	}
	one := r.records[e.Address]
	if one == nil {
		one = &nameRecord{}
		r.records[e.Address] = one
	}
	switch entry[0] {
	case nameSent:
		one.sent[e.Side], one.added[e.Side] = e.Names, false
	case nameAdded:
		one.added[e.Side] = one.sent[e.Side] != nil
	case nameGone:
		one.sent[e.Side], one.added[e.Side] = nil, false
		if one.sent == [2]*dhcpdata.Names{} {
			delete(r.records, e.Address)
		}
	default:
		return fmt.Errorf("%w: %q, of client names", errNewer, entry[0])
	}
	return nil
}

// writeCheckpoint writes the names that DNS may have to a checkpoint.
func (r *registrar) writeCheckpoint() error {
	number := r.journal.last.Load()
	var entries [][]byte
	var failed error
	r.mu.Lock()
	for a, one := range r.records {
		for _, s := range []nameSide{forward, reverse} {
			if one.sent[s] == nil {
				continue
			}
			sent, err := nameEntry{a, s, one.sent[s]}.encode(nameSent)
			failed = errors.Join(failed, err)
			entries = append(entries, sent)
			if one.added[s] {
				added, err := nameEntry{Address: a, Side: s}.encode(nameAdded)
				failed = errors.Join(failed, err)
				entries = append(entries, added)
			}
		}
	}
	r.mu.Unlock()
	if failed != nil {
		return failed
	}
	if err := r.journal.acknowledge(number); err != nil { // nothing else reads the records
		return err
	}
	return r.journal.writeCheckpoint(number, func(add func([]byte) error) error {
		for _, one := range entries {
			if err := add(one); err != nil {
				return err
			}
		}
		return nil
	})
}

// workOn performs the tasks of a queue until it is empty or its zone must wait.
func (r *registrar) workOn(q *zoneQueue) {
	for {
		r.mu.Lock()
		tasks := r.takeTasks(q)
		if len(tasks) == 0 {
			q.working = false
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
		if err := r.performAll(q, tasks); err != nil {
			r.delay(q, err)
		}
	}
}

// takeTasks returns the next tasks of a queue; none if it must wait. The caller holds mu.
func (r *registrar) takeTasks(q *zoneQueue) (tasks []nameTask) {
	for len(tasks) < nameGroup && len(q.items) > 0 && !r.closed && !time.Now().Before(q.until) {
		i := q.items[0]
		q.items = q.items[1:]
		t, ok := r.next(i)
		if one := r.records[i.address]; !ok && one != nil {
			one.queued[i.side] = false
			r.enqueue(i.address)
			continue
		}
		if other := r.queueOf(t.zone); other != q { // the name changed while it was waiting
			other.items = append(other.items, i)
			r.work(other)
			continue
		}
		tasks = append(tasks, t)
	}
	return tasks
}

// performAll performs tasks in order. Names are in the journal before they are sent. An error means that the zone must wait; the tasks that
// were not finished are in the queue again.
func (r *registrar) performAll(q *zoneQueue, tasks []nameTask) error {
	var entries [][]byte
	for _, t := range tasks {
		if t.remove {
			continue
		}
		entry, err := nameEntry{t.address, t.side, t.names}.encode(nameSent)
		if err != nil {
			return r.putBack(q, tasks, err)
		}
		entries = append(entries, entry)
	}
	if len(entries) > 0 {
		if err := r.journal.append(entries); err != nil {
			return r.putBack(q, tasks, fmt.Errorf("write the journal of client names: %w", err))
		}
	}
	r.mu.Lock()
	for _, t := range tasks {
		if one := r.records[t.address]; one != nil && !t.remove {
			one.sent[t.side], one.added[t.side] = t.names, false
		}
	}
	r.mu.Unlock()
	entries = nil
	for i, t := range tasks {
		done, refusal, err := r.sender.perform(r.stop, t.zone, t.names, t.steps())
		if err != nil {
			return r.putBack(q, tasks[i:], errors.Join(err, r.store(entries)))
		}
		entries = append(entries, r.finish(q, t, done, refusal))
	}
	return r.store(entries)
}

// store appends entries about finished tasks. Without them, the tasks are repeated after a restart.
func (r *registrar) store(entries [][]byte) error {
	if len(entries) == 0 {
		return nil
	}
	if err := r.journal.append(entries); err != nil {
		return fmt.Errorf("write the journal of client names: %w", err)
	}
	return nil
}

// putBack puts tasks back to the beginning of a queue. It returns err.
func (r *registrar) putBack(q *zoneQueue, tasks []nameTask, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	items := make([]nameItem, 0, len(tasks)+len(q.items))
	for _, t := range tasks {
		items = append(items, t.nameItem)
	}
	q.items = append(items, q.items...)
	return err
}

// steps returns the messages of a task.
func (t *nameTask) steps() []nameStep {
	switch {
	case t.side == forward && t.remove:
		return hostRemoval(t.zone.Name, t.names, t.address)
	case t.side == forward:
		return hostSteps(t.zone.Name, t.names, t.address, t.others)
	case t.remove:
		return pointerRemoval(t.zone.Name, t.names)
	}
	return pointerSteps(t.zone.Name, t.names)
}

// finish records the result of a task, queues what follows, and returns the entry for the journal. Names that another client has, or that
// were refused, are tried again later. A removal whose prerequisites do not hold has nothing to remove.
func (r *registrar) finish(q *zoneQueue, t nameTask, done bool, refusal int) (entry []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q.reason != "" {
		q.reason, q.delay = "", 0
		r.log.Info("updates of client names resumed", "zone", t.zone.Name)
		r.notify(dhcplease.NameNotice{Kind: dhcplease.ZoneResumed, Zone: t.zone.Name})
	}
	one := r.records[t.address]
	one.queued[t.side] = false
	result, kind := outcomeAdded, byte(nameAdded)
	switch {
	case refusal != 0:
		result = outcomeRefused
	case t.remove:
		result, kind = outcomeRemoved, nameGone
	case !done:
		result, kind = outcomeConflict, nameGone
	}
	r.counts[result]++
	switch {
	case result == outcomeRefused:
		r.retryLater(q, one, t, result, dnsmsg.RcodeToString[refusal])
		return r.sentAgain(one, t)
	case result == outcomeConflict:
		one.sent[t.side], one.added[t.side] = nil, false
		r.retryLater(q, one, t, result, "another client has the name")
	case t.remove:
		one.sent[t.side], one.added[t.side] = nil, false
		for a := range r.hosts[t.names.Host] { // a client that waits for the name
			if a != t.address && t.side == forward {
				r.retry(nameItem{a, forward})
			}
		}
	default:
		one.added[t.side] = true
		r.log.Debug("client name registered", "name", t.names.Host, "address", t.address, "zone", t.zone.Name)
	}
	r.enqueue(t.address)
	e := nameEntry{Address: t.address, Side: t.side}
	entry, _ = e.encode(kind) // an address can be encoded
	return entry
}

// sentAgain returns the entry for names that were refused: DNS may have them still. The caller holds mu.
func (r *registrar) sentAgain(one *nameRecord, t nameTask) []byte {
	entry, _ := nameEntry{t.address, t.side, one.sent[t.side]}.encode(nameSent) // it was encoded before
	return entry
}

// retryLater repeats a task after a while, and logs the reason. The caller holds mu.
func (r *registrar) retryLater(q *zoneQueue, one *nameRecord, t nameTask, result outcome, reason string) {
	one.failed[t.side] = result
	kind := dhcplease.NameRefused
	if result == outcomeConflict {
		kind = dhcplease.NameConflict
	}
	r.notify(dhcplease.NameNotice{Kind: kind, Zone: t.zone.Name, Name: t.names.Host, Address: t.address, Reason: reason})
	q.later = append(q.later, laterItem{t.nameItem, time.Now().Add(r.times.again)})
	now := time.Now().Unix()
	if last := r.lastLine.Load(); last != now && r.lastLine.CompareAndSwap(last, now) {
		r.log.Warn("client name not updated in dns", "name", t.names.Host, "address", t.address, "zone", t.zone.Name, "removal", t.remove,
			"reason", reason)
	}
}

// delay makes a zone wait after a failure, longer each time.
func (r *registrar) delay(q *zoneQueue, err error) {
	if r.stop.Err() != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	q.delay = min(max(2*q.delay, r.times.minDelay), r.times.maxDelay)
	q.until = time.Now().Add(q.delay)
	if q.reason == "" {
		r.log.Warn("updates of client names delayed", "zone", q.zone, "reason", err)
		r.notify(dhcplease.NameNotice{Kind: dhcplease.ZoneDelayed, Zone: q.zone, Reason: err.Error()})
	}
	q.reason = err.Error()
}
