package nameserver

import (
	"slices"
	"sync"
	"time"
)

// mostRemembered is how many signed updates are remembered at a time. Behind it the oldest is forgotten, and what was signed before it is
// refused.
const mostRemembered = 1 << 16

// replays are the signed updates that were taken, by key and signature, for as long as their time is good. An update that comes again is
// answered as before, and changes nothing. Updates that were signed before the latest time that is not remembered are refused with BADTIME
// (RFC 8945 section 5.2.3): the time of the start, since signatures from before are not known, or that of an update that was forgotten.
type replays struct {
	mu sync.Mutex
	// What follows is guarded by mu. latest is that time, in Unix seconds; order has those that are remembered as they came.
	latest uint64
	known  map[string]*takenUpdate
	order  []*takenUpdate
}

// takenUpdate is a signed update that was taken. done is closed when it has its code.
type takenUpdate struct {
	signed  string
	time    uint64
	forgets int64 // in Unix seconds: behind it the time of the signature is not good any more
	done    chan struct{}
	// code is that of the answer; ok is false where it was left without one.
	code int
	ok   bool
}

// take remembers an update that a key has signed. again says that it was taken before; late that its time is before the latest one that is
// not remembered.
func (r *replays) take(k *key, s *signature, now time.Time) (one *takenUpdate, again, late bool) {
	signed := k.name + string(s.mac)
	r.mu.Lock()
	defer r.mu.Unlock()
	if one = r.known[signed]; one != nil {
		return one, true, false
	}
	if s.time < r.latest {
		return nil, false, true
	}
	for len(r.order) > 0 && (r.order[0].forgets < now.Unix() || len(r.order) >= mostRemembered) {
		if r.order[0].forgets >= now.Unix() {
			r.latest = max(r.latest, r.order[0].time+1)
		}
		r.forget(r.order[0])
	}
	if r.known == nil {
		r.known = map[string]*takenUpdate{}
	}
	one = &takenUpdate{signed: signed, time: s.time, done: make(chan struct{}),
		forgets: int64(s.time) + int64(s.fudge)} //nolint:gosec // of 48 bits
	r.known[signed], r.order = one, append(r.order, one)
	return one, false, false
}

// forget removes an update; the caller holds mu.
func (r *replays) forget(one *takenUpdate) {
	delete(r.known, one.signed)
	if at := slices.Index(r.order, one); at == 0 {
		r.order = r.order[1:]
	} else if at > 0 {
		r.order = slices.Delete(r.order, at, at+1)
	}
}

// answered gives an update its code. One that was left without an answer is forgotten: its client sends it again.
func (r *replays) answered(one *takenUpdate, code int, ok bool) {
	one.code, one.ok = code, ok
	close(one.done)
	if !ok {
		r.mu.Lock()
		r.forget(one)
		r.mu.Unlock()
	}
}
