package nameserver

import (
	"slices"
	"sync"
	"time"
)

// mostRemembered is the maximum number of remembered updates. Beyond it the oldest is forgotten, and updates signed before it are
// rejected.
const mostRemembered = 1 << 16

// replays remember the signed updates by key and signature until their time window ends. A repeated update gets the same answer and
// changes nothing. Updates that were signed before the latest forgotten time are rejected with BADTIME (RFC 8945 section 5.2.3). That
// time is the start of the process, because earlier signatures are unknown, or the time of an update that was forgotten.
type replays struct {
	mu sync.Mutex
	// The following fields are guarded by mu. latest is the latest forgotten time in Unix seconds. order contains the remembered updates in
	// order of arrival.
	latest uint64
	known  map[string]*takenUpdate
	order  []*takenUpdate
}

// takenUpdate is a remembered update. done is closed when code is set.
type takenUpdate struct {
	signed  string
	time    uint64
	forgets int64 // end of the signature's time window in Unix seconds
	done    chan struct{}
	// code is the response code. ok is false if the update got no answer.
	code int
	ok   bool
}

// take remembers an update that a key has signed. again reports a repeated update. late reports an update from before the latest
// forgotten time.
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
		forgets: int64(s.time) + int64(s.fudge)} //nolint:gosec // 48 bits
	r.known[signed], r.order = one, append(r.order, one)
	return one, false, false
}

// forget removes an update. The caller holds mu.
func (r *replays) forget(one *takenUpdate) {
	delete(r.known, one.signed)
	if at := slices.Index(r.order, one); at == 0 {
		r.order = r.order[1:]
	} else if at > 0 {
		r.order = slices.Delete(r.order, at, at+1)
	}
}

// answered sets the code of an update. An update without an answer is forgotten, because its client will repeat it.
func (r *replays) answered(one *takenUpdate, code int, ok bool) {
	one.code, one.ok = code, ok
	close(one.done)
	if !ok {
		r.mu.Lock()
		r.forget(one)
		r.mu.Unlock()
	}
}
