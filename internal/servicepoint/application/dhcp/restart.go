package dhcp

import (
	"errors"
	"fmt"
	"time"

	"portolan/internal/wire/dhcpdata"
)

// anchor relates the clock of leases to the time since the boot of the machine, which no step of the wall clock changes.
type anchor struct {
	boot      string // identifies the boot; empty if it is not known
	up, clock int64  // seconds since the boot, and the clock of leases at that moment
}

// entry returns the entry of the anchor. shift is the number of seconds by which the leases before it move.
func (a anchor) entry(shift int64) []byte {
	to := appendNumber([]byte{entryClock}, int64(len(a.boot)))
	to = append(to, a.boot...)
	return appendNumber(appendNumber(appendNumber(to, a.up), a.clock), shift)
}

// applyClock applies an entry of an anchor at the start.
func (e *engine) applyClock(text []byte) error {
	r := &reader{text: string(text)}
	e.anchor = anchor{boot: r.octets(), up: int64(r.number()), clock: int64(r.number())}
	if shift := int64(r.number()); r.err == nil && shift != 0 {
		e.shiftLeases(shift)
	}
	return r.err
}

// times are the sources of time at a start, which tests replace.
type times struct {
	wall func() time.Time
	boot func() (id string, up int64)
}

// startClock sets the clock of leases. Within a boot it continues at the time of the previous process; if the wall clock was set
// meanwhile, the leases move with it, so that each one keeps its rest. After a boot the clock does not go back behind the last record: a
// machine without a battery for its clock starts in the past.
func (e *engine) startClock(t times) {
	wall := t.wall().Unix()
	boot, up := t.boot()
	before, base, shift := e.anchor, wall, int64(0)
	switch latest := e.latest(); {
	case boot != "" && before.boot == boot:
		base = before.clock + up - before.up
		if step := wall - base; step > maxStep || step < -maxStep {
			e.reportStep(step)
			if len(e.statuses) == 0 { // a failover partner knows the times of the leases
				base, shift = wall, step
			}
		}
	case latest > wall:
		if latest-wall > maxStep {
			e.reportStep(wall - latest)
		}
		base = latest
	}
	e.anchor = anchor{boot: boot, up: up, clock: base}
	if err := e.journal.append([][]byte{e.anchor.entry(shift)}); err != nil {
		e.log.Error("lease journal write failed", "error", err)
		base -= shift // the leases on the disk have not moved
	} else if shift != 0 {
		e.shiftLeases(shift)
	}
	e.clock.base = base
}

// reportStep logs a step of the wall clock, and reports it to the manager.
func (e *engine) reportStep(seconds int64) {
	e.log.Warn("clock stepped", "seconds", seconds)
	e.observer.stepped(seconds, e.wall().Unix())
}

// latest returns the time of the last change of a lease.
func (e *engine) latest() (last int64) {
	for l := range e.table.all {
		last = max(last, l.renewed)
	}
	return last
}

// shiftLeases moves all leases in time.
func (e *engine) shiftLeases(seconds int64) {
	move := func(at int64) int64 {
		if at >= dhcpdata.InfiniteTime {
			return at
		}
		return max(0, at+seconds)
	}
	for l := range e.table.all {
		l.start, l.renewed, l.expires = move(l.start), move(l.renewed), move(l.expires)
		e.table.set(l.address, l)
	}
	for _, all := range e.renewals {
		for a, expires := range all {
			all[a] = move(expires)
		}
	}
}

// Limits of the time in seconds that addresses are probed after a damage of the journal.
const (
	minSuspicion = 86400
	maxSuspicion = 30 * 86400
)

// suspect makes the server probe each address without a lease before it offers it, until the leases that the journal lost have ended: for
// as long as the longest lease that it contains.
func (e *engine) suspect() {
	longest := int64(minSuspicion)
	for l := range e.table.all {
		if l.expires < dhcpdata.InfiniteTime {
			longest = max(longest, l.expires-l.renewed)
		}
	}
	e.suspectUntil = e.clock.now() + min(longest, maxSuspicion)
	err := e.journal.append([][]byte{appendNumber([]byte{entryDamage}, e.suspectUntil)})
	if err == nil {
		err = e.writeCheckpoint() // the next start does not find the damage again
	}
	if err != nil {
		e.log.Error("lease checkpoint failed", "error", err)
	}
}

// limitJournal drops records if the journal is too large because the manager does not get them.
func (e *engine) limitJournal() {
	dropped, err := e.journal.shrink(maxJournal)
	size, failed := e.journal.usage()
	if err = errors.Join(err, failed); err != nil {
		e.log.Error("lease checkpoint failed", "error", err)
		return
	}
	if dropped > 0 {
		e.log.Warn("lease records dropped", "records", dropped, "bytes", size)
	}
	e.journalSize.Store(size)
}

// journalConditions returns why the operator has to look after the journal.
func (e *engine) journalConditions() (all []string) {
	e.mu.Lock()
	until, waits := e.suspectUntil, e.recall.wanted && e.recall.until != 0
	e.mu.Unlock()
	if waits {
		all = append(all, "leases were lost: new clients are served when the manager has restored those that it knows, or after a minute")
	}
	if e.clock.now() < until {
		all = append(all, "the lease journal was damaged, so some leases may be unknown: until "+
			time.Unix(until, 0).UTC().Format(time.RFC3339)+" an address is probed before it is offered")
	}
	if size := e.journalSize.Load(); size > maxJournal/2 {
		all = append(all, fmt.Sprintf("the manager lacks lease records: %d of %d MiB wait for it, then records of renewals are dropped",
			size>>20, maxJournal>>20))
	}
	return all
}

// probesSuspects makes an offer of an address without a lease wait for a probe while leases may be unknown. The caller holds mu.
func (e *engine) probesSuspects(d *dhcpdata.Decision) {
	if d.Action != dhcpdata.ActOffer || d.Probe || e.clock.now() >= e.suspectUntil {
		return
	}
	if l, ok := e.table.Lease(d.Address); !ok || l.State == dhcpdata.Free {
		d.Probe = true
	}
}
