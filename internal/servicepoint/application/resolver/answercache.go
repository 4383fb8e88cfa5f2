package resolver

import (
	"encoding/binary"
	"errors"
	"hash/maphash"
	"math/bits"
	"sync/atomic"
	"time"

	dns "portolan/internal/base/dnsmsg"
)

// Sizes of the cache of packed answers: the number of answers that may have the same place, and the maximum number of all.
const (
	cacheWays       = 8
	maxPacked       = 1 << 18
	maxPackedAnswer = 1232
)

// packedCache contains packed answers by question. It is bounded, and lookups need no lock. Each answer has one of the cacheWays places
// that the hash of its key selects; places are filled in order and never emptied.
type packedCache struct {
	seed  maphash.Seed
	slots []atomic.Pointer[packedAnswer]
	// mask selects the places of a hash.
	mask uint64
}

// packedAnswer is an immutable answer in wire format, compressed and without an OPT record.
type packedAnswer struct {
	key  string
	wire []byte
	// ttls are the offsets of the TTLs in wire.
	ttls []uint16
	// stored and expires are times of clock. content is the content generation of the answer.
	stored, expires int64
	content         uint64
	// size is the size without compression, which metrics and the query log report. denied reports a negative answer.
	size   int
	denied bool
	// ttl is the lowest TTL in seconds. passes is the number of recent queries that CoreDNS has answered from its cache, and original the
	// highest TTL that they had.
	ttl, original int64
	passes        int
}

// newPackedCache returns a cache for a resolver with a number of cached positive answers, and as many negative ones.
func newPackedCache(entries int) *packedCache {
	wanted := max(cacheWays, min(2*entries, maxPacked))
	n := 1 << bits.Len(uint(wanted-1)) //nolint:gosec // at least 7
	return &packedCache{seed: maphash.MakeSeed(), slots: make([]atomic.Pointer[packedAnswer], n), mask: uint64(n/cacheWays - 1)}
}

// place returns the i-th place of a hash.
func (c *packedCache) place(hash uint64, i int) *atomic.Pointer[packedAnswer] {
	first := hash & c.mask * cacheWays
	return &c.slots[first+(hash>>61+uint64(i))%cacheWays] //nolint:gosec // i is small
}

// find returns the answer with a key, whether it is still valid or not; nil if there is none.
func (c *packedCache) find(key []byte) *packedAnswer {
	hash := maphash.Bytes(c.seed, key)
	for i := range cacheWays {
		a := c.place(hash, i).Load()
		if a == nil {
			return nil
		}
		if a.key == string(key) {
			return a
		}
	}
	return nil
}

// put stores an answer. It replaces the one with the same key, else an invalid one, else the one in the first place. An answer that another
// call stores at the same time may be lost.
func (c *packedCache) put(a *packedAnswer, now int64) {
	hash := maphash.String(c.seed, a.key)
	replaced := c.place(hash, 0)
	for i := range cacheWays {
		at := c.place(hash, i)
		other := at.Load()
		if other == nil || other.key == a.key {
			at.Store(a)
			return
		}
		if other.expires <= now || other.content != a.content {
			replaced = at
		}
	}
	replaced.Store(a)
}

// start is the beginning of clock.
var start = time.Now()

// clock returns a monotonic time in nanoseconds.
func clock() int64 { return int64(time.Since(start)) }

// headerSize is the size of the header of a message in bytes.
const headerSize = 12

// errMalformed reports a packed message that cannot be walked.
var errMalformed = errors.New("malformed message")

// pack returns the packed form of an answer at a time. It is nil if the answer has no TTL or is too large. An answer is valid a second
// shorter than its TTL, because the cache of CoreDNS reports whole seconds.
func pack(m *dns.Msg, now int64) (*packedAnswer, error) {
	bare := *m
	bare.Extra = nil
	for _, rr := range m.Extra {
		if rr.Header().Rrtype != dns.TypeOPT {
			bare.Extra = append(bare.Extra, rr)
		}
	}
	if len(bare.Answer)+len(bare.Ns)+len(bare.Extra) == 0 {
		return nil, nil //nolint:nilnil // there is nothing to keep
	}
	bare.Compress = false
	a := &packedAnswer{size: bare.Len(), stored: now}
	bare.Compress = true
	wire, err := bare.Pack()
	if err != nil {
		return nil, err
	}
	if len(wire) > maxPackedAnswer {
		return nil, nil //nolint:nilnil // too large
	}
	a.wire = wire
	at := skipName(wire, headerSize) + 4 // behind the question
	lowest := uint32(1<<32 - 1)
	for range len(bare.Answer) + len(bare.Ns) + len(bare.Extra) {
		if at = skipName(wire, at); at < 0 || at+10 > len(wire) {
			return nil, errMalformed
		}
		a.ttls = append(a.ttls, uint16(at+4)) //nolint:gosec // below maxPackedAnswer
		lowest = min(lowest, binary.BigEndian.Uint32(wire[at+4:]))
		at += 10 + int(binary.BigEndian.Uint16(wire[at+8:]))
	}
	a.ttl, a.original, a.passes = int64(lowest), int64(lowest), 1
	a.expires = now + (a.ttl-1)*int64(time.Second)
	a.denied = isDenial(&bare)
	return a, nil
}

// Prefetching by CoreDNS, as the configuration sets it: the number of queries within a time, and the part of the TTL that is left.
const (
	prefetchHits  = 5
	prefetchTime  = time.Minute
	prefetchParts = 10
)

// adoptQueries takes over the queries of a previous answer to the same question.
func (a *packedAnswer) adoptQueries(previous *packedAnswer) {
	age := a.stored - previous.stored
	if a.content != previous.content || age > int64(prefetchTime) {
		return
	}
	a.passes += previous.passes
	if a.ttl <= previous.ttl-age/int64(time.Second) { // it has not been refreshed in between
		a.original = previous.original
	}
}

// leavesToPrefetch reports whether CoreDNS must see a query for the answer, because it counts queries and refreshes the answer before it
// expires. It sees the first queries, later one each second, and all of them in the time of the refresh.
func (a *packedAnswer) leavesToPrefetch(now int64) bool {
	age := now - a.stored
	return a.passes < prefetchHits || age >= int64(time.Second) || (a.ttl-1)*prefetchParts <= a.original
}

// isDenial reports whether an answer says that the name or its type does not exist.
func isDenial(m *dns.Msg) bool {
	if m.Rcode == dns.RcodeNameError {
		return true
	}
	soa, found := false, false
	for _, rr := range m.Ns {
		soa = soa || rr.Header().Rrtype == dns.TypeSOA
	}
	kind := m.Question[0].Qtype
	for _, rr := range m.Answer {
		found = found || rr.Header().Rrtype == kind || kind == dns.TypeANY
	}
	return soa && !found
}

// skipName returns the end of a name that may be compressed; -1 if it is malformed.
func skipName(m []byte, at int) int {
	for at < len(m) {
		switch length := int(m[at]); {
		case length == 0:
			return at + 1
		case length >= 0xc0:
			return at + 2
		case length > 63:
			return -1
		default:
			at += 1 + length
		}
	}
	return -1
}
