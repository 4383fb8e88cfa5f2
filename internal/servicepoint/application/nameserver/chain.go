package nameserver

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // the only hash algorithm of NSEC3 (RFC 5155 section 11)
	"encoding/base32"
	"encoding/binary"
	"slices"
	"sort"
	"strings"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/wire/zonedata"
)

// chain contains the names of a signed zone in the order of its proofs of nonexistence: by name for NSEC (RFC 4034 section 4), or by hash
// for NSEC3 (RFC 5155). It contains all existing names; names without a proof record are skipped.
type chain struct {
	hashed bool
	links  []link
	// isPresigned reports a presigned zone, which contains its own signatures and proof records. salt and iterations are its NSEC3
	// parameters; empty and 0 for zones that the name server signs.
	isPresigned bool
	salt        []byte
	iterations  int
}

// link is a name with its sort key.
type link struct{ key, owner string }

// maxKey is the maximum size of a sort key.
const maxKey = 2 * maxName

// keyOf returns the sort key of a name.
func (c *chain) keyOf(owner string) string {
	var key [maxKey]byte
	return string(c.appendKey(key[:0], owner))
}

// appendKey appends the sort key of a name.
func (c *chain) appendKey(key []byte, owner string) []byte {
	if c.hashed { // zones signed here use no salt and no extra iterations (RFC 9276 section 3.1)
		return c.appendHash(key, owner)
	}
	return zonedata.AppendKey(key, bytesOf(owner))
}

// find returns the index of the first link whose key is not below key.
func (c *chain) find(key []byte) (at int, found bool) {
	below, above := 0, len(c.links)
	for below < above {
		middle := int(uint(below+above) >> 1) //nolint:gosec // not negative
		switch order := bytes.Compare(bytesOf(c.links[middle].key), key); {
		case order == 0:
			return middle, true
		case order < 0:
			below = middle + 1
		default:
			above = middle
		}
	}
	return below, false
}

// linkOf returns the link of an owner. ok is false if the owner of an NSEC3 record does not start with a hash.
func (c *chain) linkOf(owner string) (l link, ok bool) {
	if !c.isPresigned || !c.hashed {
		return link{c.keyOf(owner), owner}, true
	}
	sum, err := base32Hex.DecodeString(strings.ToUpper(owner[1 : 1+int(owner[0])]))
	return link{string(sum), owner}, err == nil
}

func compareLinks(a, b link) int { return strings.Compare(a.key, b.key) }

// spare divides the number of names to get the spare capacity of a chain. Spare capacity avoids a slow reallocation for each new name.
const spare = 16

// newChain returns the chain of a zone. The caller prevents concurrent changes of the zone.
func (z *zone) newChain(hashed bool) *chain {
	c := &chain{hashed: hashed, links: make([]link, 0, len(z.nodes)+len(z.nodes)/spare)}
	for owner := range z.nodes {
		c.links = append(c.links, link{c.keyOf(owner), owner})
	}
	slices.SortFunc(c.links, compareLinks)
	return c
}

// maxInserts is the maximum number of names that are inserted one by one; more are merged in one pass.
const maxInserts = 64

// update inserts the names that exist according to there, and deletes the others.
func (c *chain) update(names []string, there func(string) bool) {
	if len(names) > maxInserts {
		c.merge(names, there)
		return
	}
	for _, owner := range names {
		one, ok := c.linkOf(owner)
		if !ok {
			continue
		}
		i, found := slices.BinarySearchFunc(c.links, one, compareLinks)
		switch is := there(owner); {
		case is && !found:
			c.links = slices.Insert(c.links, i, one)
		case !is && found:
			c.links = slices.Delete(c.links, i, i+1)
		}
	}
}

// merge has the effect of update, in one pass.
func (c *chain) merge(names []string, there func(string) bool) {
	changed := make(map[string]bool, len(names))
	var added []link
	for _, owner := range names {
		if one, ok := c.linkOf(owner); ok && !changed[owner] && there(owner) {
			added = append(added, one)
		}
		changed[owner] = true
	}
	slices.SortFunc(added, compareLinks)
	all := make([]link, 0, len(c.links)+len(added))
	for _, one := range c.links {
		if changed[one.owner] {
			continue
		}
		for len(added) > 0 && added[0].key < one.key {
			all, added = append(all, added[0]), added[1:]
		}
		all = append(all, one)
	}
	all = append(all, added...)
	c.links = all
}

// hasProof reports whether a name has a proof record in the chain. Names below a cut have none, and names without records have no NSEC
// (RFC 4035 section 2.3). cut is the topmost name whose NS or DNAME hides the name; empty if there is none.
func (z *zone) hasProof(c *chain, owner string) (yes bool, cut string) {
	if c.isPresigned {
		return true, ""
	}
	if z.cuts > 0 {
		for at := owner; at != z.apex; {
			at = parent(at)
			if n := z.nodes[at]; n != nil && (n.set(dns.TypeDNAME) != nil || at != z.apex && n.set(dns.TypeNS) != nil) {
				cut = at
			}
		}
	}
	n := z.nodes[owner]
	return cut == "" && n != nil && (c.hashed || len(n.sets) > 0), cut
}

// previousProof returns the last link at or before index i that has a proof record. It wraps around.
func (z *zone) previousProof(c *chain, i int) int {
	for range len(c.links) {
		if i < 0 {
			i = len(c.links) - 1
		}
		yes, cut := z.hasProof(c, c.links[i].owner)
		if yes {
			break
		}
		if i--; cut != "" && !c.hashed {
			var key [maxKey]byte
			i, _ = c.find(c.appendKey(key[:0], cut))
		}
	}
	return i
}

// nextProof returns the first link after index i that has a proof record. It wraps around.
func (z *zone) nextProof(c *chain, i int) int {
	for range len(c.links) {
		if i++; i == len(c.links) {
			i = 0
		}
		yes, cut := z.hasProof(c, c.links[i].owner)
		if yes {
			break
		}
		if cut != "" && !c.hashed {
			above := c.keyOf(cut)
			i = sort.Search(len(c.links), func(j int) bool { return c.links[j].key > above && !strings.HasPrefix(c.links[j].key, above) }) - 1
		}
	}
	return i
}

// proofIndex returns the index of a name's link, or of the link whose proof record covers the name.
func (z *zone) proofIndex(c *chain, owner string) int {
	var key [maxKey]byte
	i, found := c.find(c.appendKey(key[:0], owner))
	if !found {
		i--
	}
	return z.previousProof(c, i)
}

// base32Hex decodes and base32Lower encodes hashes as labels (RFC 5155 section 3.3).
var (
	base32Hex   = base32.HexEncoding.WithPadding(base32.NoPadding)
	base32Lower = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)
)

// generatedProof is the memory of a proof record, which is generated for each answer.
type generatedProof struct {
	set   set
	owner []byte
	kinds []uint16
}

// proofRecord returns the proof record of a link: its owner, and its data as an RRset. Both are in out, unless the zone is presigned.
func (z *zone) proofRecord(c *chain, i int, ttl uint32, out *generatedProof) (owner string, s *set) {
	if c.isPresigned {
		owner = c.links[i].owner
		return owner, z.nodes[owner].set(c.kind())
	}
	one, next := c.links[i], c.links[z.nextProof(c, i)]
	data := out.set.data[:0]
	data = append(data, 0, 0) // the size
	if c.hashed {
		data = append(append(data, dns.SHA1, 0, 0, 0, 0, byte(len(next.key))), next.key...)
		var hash [sha1.Size]byte
		label := base32Lower.EncodedLen(copy(hash[:], one.key))
		out.owner = base32Lower.AppendEncode(append(out.owner[:0], byte(label)), hash[:len(one.key)]) //nolint:gosec // 32
		out.owner = append(out.owner, z.apex...)
		owner = shareString(out.owner)
	} else {
		data = append(data, next.owner...)
		owner = one.owner
	}
	data = z.appendBitmap(data, one.owner, c.hashed, out)
	binary.BigEndian.PutUint16(data, uint16(len(data)-2)) //nolint:gosec // at most 9,000
	out.set = set{kind: c.kind(), ttl: ttl, count: 1, data: data}
	return owner, &out.set
}

// appendBitmap appends the type bitmap of a name (RFC 4034 section 4.1.2, RFC 5155 section 3.2.1). At a delegation it contains only the
// parent's types.
func (z *zone) appendBitmap(out []byte, owner string, hashed bool, memory *generatedProof) []byte {
	n := z.nodes[owner]
	cut := owner != z.apex && n.set(dns.TypeNS) != nil
	kinds := memory.kinds[:0]
	signs := false
	for _, s := range n.sets {
		if cut && s.kind != dns.TypeNS && s.kind != dns.TypeDS {
			continue
		}
		kinds = append(kinds, s.kind)
		signs = signs || !cut || s.kind == dns.TypeDS
	}
	if !hashed {
		kinds = append(kinds, dns.TypeNSEC, dns.TypeRRSIG)
	} else if signs {
		kinds = append(kinds, dns.TypeRRSIG)
	}
	slices.Sort(kinds)
	memory.kinds = kinds
	for len(kinds) > 0 {
		window := kinds[0] >> 8
		var bits [32]byte
		last := 0
		for ; len(kinds) > 0 && kinds[0]>>8 == window; kinds = kinds[1:] {
			at := int(kinds[0] & 255)
			bits[at/8] |= 0x80 >> (at % 8)
			last = at / 8
		}
		out = append(append(out, byte(window), byte(last+1)), bits[:last+1]...)
	}
	return out
}

// negativeTTL returns the TTL of negative answers in seconds (RFC 9077 section 3). s is the SOA.
func (s *set) negativeTTL() uint32 {
	ttl := s.ttl
	s.eachRecord(0, func(data []byte) bool {
		if len(data) >= 4 {
			ttl = min(ttl, binary.BigEndian.Uint32(data[len(data)-4:]))
		}
		return false
	})
	return ttl
}
