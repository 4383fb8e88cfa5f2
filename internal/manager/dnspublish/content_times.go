package dnspublish

import (
	"sync"
	"time"
)

// contentTimes are the times of the snapshots that recently deployed contents were computed from. A deployment that commits after another
// one of its zone learns from them which of both read later data.
type contentTimes struct {
	mu sync.Mutex
	// since contains, for each stored difference of a zone, a time before its snapshot.
	since map[contentOf]time.Time
}

// contentOf identifies a stored difference: its number, and the hash of the content after it.
type contentOf struct {
	number int64
	hash   string
}

// maxContentTimes is the maximum number of stored times. At the limit all are dropped; deployments then examine the names of those
// differences again.
const maxContentTimes = 4096

// record stores that the content of a difference was computed from a snapshot that is not older than since.
func (t *contentTimes) record(number int64, hash string, since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.since == nil || len(t.since) >= maxContentTimes {
		t.since = map[contentOf]time.Time{}
	}
	t.since[contentOf{number, hash}] = since
}

// isLater reports whether the content of a difference was computed from a snapshot that is not older than one that was read until a time.
func (t *contentTimes) isLater(number int64, hash string, until time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	since, known := t.since[contentOf{number, hash}]
	return known && !since.Before(until)
}

// readTime bounds the moment of the snapshot that a deployment is computed from: since is a time before it, until one after it. times are
// those of other deployments; nil if the moment is not known.
type readTime struct {
	times        *contentTimes
	since, until time.Time
}

// beginRead returns the bounds of a snapshot that is about to be taken.
func (t *contentTimes) beginRead() readTime { return readTime{times: t, since: time.Now()} }

// endRead sets the end of the bounds. It is called after the first read of the snapshot.
func (r *readTime) endRead() { r.until = time.Now() }

// precedes reports whether the content of a difference was computed from a snapshot that is not older than this one.
func (r readTime) precedes(number int64, hash string) bool {
	return r.times != nil && !r.until.IsZero() && r.times.isLater(number, hash, r.until)
}

// record stores the moment for a content that was computed from the snapshot.
func (r readTime) record(number int64, hash string) {
	if r.times != nil {
		r.times.record(number, hash, r.since)
	}
}
