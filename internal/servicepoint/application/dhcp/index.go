package dhcp

import (
	"hash/maphash"
	"net/netip"
)

// index contains the slots by the hash of a key: an entry stands at the place that its hash names, or at the next free one. It grows by
// shard, so that no message waits until a million entries have moved.
type index struct {
	shards [256]shard
}

type shard struct {
	entries []indexEntry // an entry without a slot is free
	count   int
}

type indexEntry struct {
	hash uint32
	id   slotID
}

// minEntries is the first number of entries of a shard.
const minEntries = 8

func (x *index) shardOf(hash uint32) *shard { return &x.shards[hash>>24] }

// place returns the place that a hash names.
func (s *shard) place(hash uint32) int { return int(uint64(hash<<8) * uint64(len(s.entries)) >> 32) }

// after returns the next place.
func (s *shard) after(i int) int {
	if i++; i == len(s.entries) {
		return 0
	}
	return i
}

// distance returns the number of places from one to another.
func (s *shard) distance(from, to int) int {
	if to < from {
		to += len(s.entries)
	}
	return to - from
}

// each calls fn for the slots with a hash until it returns false.
func (x *index) each(hash uint32, fn func(id slotID) bool) {
	s := x.shardOf(hash)
	if len(s.entries) == 0 {
		return
	}
	for i := s.place(hash); s.entries[i].id != 0; i = s.after(i) {
		if one := s.entries[i]; one.hash == hash && !fn(one.id) {
			return
		}
	}
}

// add adds a slot. At most four of five entries are in use.
func (x *index) add(hash uint32, id slotID) {
	s := x.shardOf(hash)
	if n := len(s.entries); s.count*5 >= n*4 {
		before := s.entries
		s.entries = make([]indexEntry, max(n+n/4, minEntries))
		// Entries with equal hashes are next to each other: each is put behind the one before, so that many of them take no quadratic time.
		last := indexEntry{}
		at := 0
		for _, one := range before {
			if one.id == 0 {
				continue
			}
			if last.id == 0 || one.hash != last.hash {
				at = s.place(one.hash)
			}
			for s.entries[at].id != 0 {
				at = s.after(at)
			}
			s.entries[at], last = one, one
		}
	}
	s.count++
	s.put(indexEntry{hash, id})
}

func (s *shard) put(one indexEntry) {
	i := s.place(one.hash)
	for s.entries[i].id != 0 {
		i = s.after(i)
	}
	s.entries[i] = one
}

// remove removes a slot, and moves the entries behind it that are not at the place of their hash.
func (x *index) remove(hash uint32, id slotID) {
	s := x.shardOf(hash)
	free := s.place(hash)
	for s.entries[free].id != id {
		free = s.after(free)
	}
	for i := s.after(free); s.entries[i].id != 0; i = s.after(i) {
		if s.distance(s.place(s.entries[i].hash), i) >= s.distance(free, i) {
			s.entries[free], free = s.entries[i], i
		}
	}
	s.entries[free] = indexEntry{}
	s.count--
}

// hashes computes hashes that clients cannot predict.
type hashes struct{ seed maphash.Seed }

func (h hashes) ofText(key string) uint32 { return uint32(maphash.String(h.seed, key)) } //nolint:gosec // the lower half

func (h hashes) ofAddress(a netip.Addr) uint32 {
	octets := a.As16()
	return uint32(maphash.Bytes(h.seed, octets[:])) //nolint:gosec // the lower half
}
