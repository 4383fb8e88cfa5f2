package nameserver

import (
	"bytes"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	dns "portolan/internal/base/dnsmsg"
)

// signatureKey identifies an RRset with cached signatures.
type signatureKey struct {
	by    *signing
	owner string
	kind  uint16
}

// cachedSignature is a cache entry: the signatures, the signed data, and the renewal time in Unix seconds. It is immutable.
type cachedSignature struct {
	set   set
	data  []byte
	until int64
}

// Size of the cache. Each shard keeps two generations of entries. It drops an entry that was not used while maxSignatures others were.
const (
	signatureShards = 16
	maxSignatures   = 1 << 15
)

// signatures caches the signatures of all zones, because creating one costs a thousand times as much as a lookup. It is safe for
// concurrent use.
type signatures struct {
	seed   maphash.Seed
	shards [signatureShards]signatureShard
	// created counts the created signatures.
	created atomic.Int64
}

// signatureShard is a part of the cache.
type signatureShard struct {
	mu sync.Mutex
	// The following fields are guarded by mu: the entries used recently, and the generation before them.
	now, before map[signatureKey]*cachedSignature
}

// forget removes the signatures of zones that are no longer signed, or by other keys.
func (c *signatures) forget(current map[*signing]bool) {
	for i := range c.shards {
		shard := &c.shards[i]
		shard.mu.Lock()
		for _, generation := range []map[signatureKey]*cachedSignature{shard.now, shard.before} {
			maps.DeleteFunc(generation, func(key signatureKey, _ *cachedSignature) bool { return !current[key.by] })
		}
		shard.mu.Unlock()
	}
}

// get returns the signatures of an RRset. It creates them if they are missing, belong to other data, or must be renewed before until, in
// Unix seconds.
func (c *signatures) get(key signatureKey, of *set, until int64, sign func() (*set, int64, error)) (*set, error) {
	shard := &c.shards[maphash.String(c.seed, key.owner)%signatureShards]
	if there := shard.find(key); there != nil && there.set.ttl == of.ttl && until < there.until && bytes.Equal(there.data, of.data) {
		return &there.set, nil
	}
	out, renewal, err := sign()
	if err != nil {
		return nil, err
	}
	c.created.Add(1)
	key.owner = strings.Clone(key.owner) // it may be in the memory of a query
	one := &cachedSignature{*out, of.data, renewal}
	if key.kind == dns.TypeNSEC || key.kind == dns.TypeNSEC3 { // generated for the answer
		one.data = slices.Clone(one.data)
	}
	shard.put(key, one)
	return &one.set, nil
}

// find returns an entry; nil if it does not exist.
func (s *signatureShard) find(key signatureKey) *cachedSignature {
	s.mu.Lock()
	defer s.mu.Unlock()
	there := s.now[key]
	if there == nil {
		if there = s.before[key]; there != nil {
			s.store(key, there)
		}
	}
	return there
}

func (s *signatureShard) put(key signatureKey, one *cachedSignature) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store(key, one)
}

// store stores an entry. The caller holds mu.
func (s *signatureShard) store(key signatureKey, one *cachedSignature) {
	if s.now == nil || len(s.now) >= maxSignatures {
		s.now, s.before = map[signatureKey]*cachedSignature{}, s.now
	}
	s.now[key] = one
}
