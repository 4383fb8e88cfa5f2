package nameserver

import (
	"bytes"
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// signed names an RRset whose signatures are kept.
type signed struct {
	by    *signing
	owner string
	kind  uint16
}

// kept are signatures: of which data they are, and until when they are good.
type kept struct {
	ttl   uint32
	data  []byte
	until int64
	set   *set
}

// Bounds of what is kept: a shard gives up what was not asked for while as many others were.
const (
	signatureShards = 16
	mostSignatures  = 8192
)

// signatures keeps signatures of all zones: making one costs a thousand times as much as looking it up. All of it may be used by many at
// a time.
type signatures struct {
	seed   maphash.Seed
	shards [signatureShards]signatureShard
	// made is how many were made.
	made atomic.Int64
}

// signatureShard holds a part of them.
type signatureShard struct {
	mu sync.Mutex
	// What follows is guarded by mu: those that were asked for lately, and those that were before.
	now, before map[signed]kept
}

// get gives the signatures of an RRset, made where they are not there, of other data, or due at a time in Unix seconds.
func (c *signatures) get(key signed, of *set, now int64, sign func() (*set, int64, error)) (*set, error) {
	shard := &c.shards[maphash.String(c.seed, key.owner)%signatureShards]
	if there, ok := shard.find(key); ok && there.ttl == of.ttl && now < there.until && bytes.Equal(there.data, of.data) {
		return there.set, nil
	}
	out, until, err := sign()
	if err != nil {
		return nil, err
	}
	c.made.Add(1)
	shard.put(key, kept{of.ttl, of.data, until, out})
	return out, nil
}

func (s *signatureShard) find(key signed) (kept, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if there, ok := s.now[key]; ok {
		return there, true
	}
	there, ok := s.before[key]
	if ok {
		s.keep(key, there)
	}
	return there, ok
}

func (s *signatureShard) put(key signed, one kept) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(key, one)
}

// keep is called with mu held.
func (s *signatureShard) keep(key signed, one kept) {
	if s.now == nil || len(s.now) >= mostSignatures {
		s.now, s.before = map[signed]kept{}, s.now
	}
	s.now[key] = one
}
