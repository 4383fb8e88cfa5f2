package nameserver

import (
	"slices"
	"sync"
	"time"
)

// maxReplays is the maximum number of remembered updates. Beyond it the oldest is forgotten, and updates signed before it are
// rejected.
const maxReplays = 1 << 16

// replays remember the signed updates by key and signature until their time window ends. A repeated update gets the same answer and
// changes nothing. Updates that were signed before the latest forgotten time are rejected with BADTIME (RFC 8945 section 5.2.3). That
// time is the start of the process, because earlier signatures are unknown, or the time of an update that was forgotten.
type replays struct {
	mu sync.Mutex
	// The following fields are guarded by mu. latestForgotten is the latest forgotten time in Unix seconds. order contains the remembered
	// updates in order of arrival.
	latestForgotten uint64
	known           map[string]*knownUpdate
	order           []*knownUpdate
}

// knownUpdate is a remembered update. done is closed when code is set.
type knownUpdate struct {
	signed  string
	time    uint64
	expires int64 // end of the signature's time window in Unix seconds
	done    chan struct{}
	// code is the response code. ok is false if the update got no answer.
	code int
	ok   bool
}

// register remembers an update that a key has signed. again reports a repeated update. late reports an update from before the latest
// forgotten time.
func (r *replays) register(k *key, s *signature, now time.Time) (one *knownUpdate, again, late bool) {
	signed := k.name + string(s.mac)
	r.mu.Lock()
	defer r.mu.Unlock()
	if one = r.known[signed]; one != nil {
		return one, true, false
	}
	if s.time < r.latestForgotten {
		return nil, false, true
	}
	for len(r.order) > 0 && (r.order[0].expires < now.Unix() || len(r.order) >= maxReplays) {
		if r.order[0].expires >= now.Unix() {
			r.latestForgotten = max(r.latestForgotten, r.order[0].time+1)
		}
		r.forget(r.order[0])
	}
	if r.known == nil {
		r.known = map[string]*knownUpdate{}
	}
	one = &knownUpdate{signed: signed, time: s.time, done: make(chan struct{}),
		expires: int64(s.time) + int64(s.fudge)} //nolint:gosec // 48 bits
	r.known[signed], r.order = one, append(r.order, one)
	return one, false, false
}

// forget removes an update. The caller holds mu.
func (r *replays) forget(one *knownUpdate) {
	delete(r.known, one.signed)
	if at := slices.Index(r.order, one); at == 0 {
		r.order = r.order[1:]
	} else if at > 0 {
		r.order = slices.Delete(r.order, at, at+1)
	}
}

// complete sets the code of an update. An update without an answer is forgotten, because its client will repeat it.
func (r *replays) complete(one *knownUpdate, code int, ok bool) {
	one.code, one.ok = code, ok
	close(one.done)
	if !ok {
		r.mu.Lock()
		r.forget(one)
		r.mu.Unlock()
	}
}
