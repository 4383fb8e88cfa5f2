package nameserver

import (
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

// keyOf returns the sort key of a name.
func (c *chain) keyOf(owner string) string {
	if c.hashed { // zones signed here use no salt and no extra iterations (RFC 9276 section 3.1)
		return c.hashOf(owner)
	}
	return string(zonedata.Key([]byte(owner)))
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
			i, _ = slices.BinarySearchFunc(c.links, link{key: c.keyOf(cut)}, compareLinks)
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
	i, found := slices.BinarySearchFunc(c.links, link{key: c.keyOf(owner)}, compareLinks)
	if !found {
		i--
	}
	return z.previousProof(c, i)
}

// base32Hex encodes hashes as labels (RFC 5155 section 3.3).
var base32Hex = base32.HexEncoding.WithPadding(base32.NoPadding)

// proofRecord returns the proof record of a link: its owner, and its data as an RRset.
func (z *zone) proofRecord(c *chain, i int, ttl uint32) (owner string, s *set) {
	if c.isPresigned {
		owner = c.links[i].owner
		return owner, z.nodes[owner].set(c.kind())
	}
	one, next := c.links[i], c.links[z.nextProof(c, i)]
	if !c.hashed {
		s = &set{kind: dns.TypeNSEC, ttl: ttl}
		s.append(append([]byte(next.owner), z.bitmap(one.owner, false)...))
		return one.owner, s
	}
	s = &set{kind: dns.TypeNSEC3, ttl: ttl}
	data := append([]byte{dns.SHA1, 0, 0, 0, 0, byte(len(next.key))}, next.key...)
	s.append(append(data, z.bitmap(one.owner, true)...))
	label := strings.ToLower(base32Hex.EncodeToString([]byte(one.key)))
	return string(byte(len(label))) + label + z.apex, s
}

// bitmap returns the type bitmap of a name (RFC 4034 section 4.1.2, RFC 5155 section 3.2.1). At a delegation it contains only the
// parent's types.
func (z *zone) bitmap(owner string, hashed bool) []byte {
	n := z.nodes[owner]
	cut := owner != z.apex && n.set(dns.TypeNS) != nil
	var kinds []uint16
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
	var out []byte
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
