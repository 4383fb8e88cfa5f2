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

// chain holds the names of a signed zone in the order in which records say what lies between them: by themselves (NSEC, RFC 4034
// section 4), or by their hashes (NSEC3, RFC 5155). It holds all names that exist; those that no record speaks of are passed over.
type chain struct {
	hashed bool
	links  []link
	// given says that the zone came with its signatures, and with the records that say what lies between names; salt and iterations are
	// those of its hashes, and nothing where we sign.
	given      bool
	salt       []byte
	iterations int
}

// link is a name, with the key that it is ordered by.
type link struct{ key, owner string }

// keyOf gives the key of a name.
func (c *chain) keyOf(owner string) string {
	if c.hashed { // where we sign without salt, in one round (RFC 9276 section 3.1)
		return c.hashOf(owner)
	}
	return string(zonedata.Key([]byte(owner)))
}

// linkOf gives the link of an owner; false where that can be none.
func (c *chain) linkOf(owner string) (l link, ok bool) {
	if !c.given || !c.hashed {
		return link{c.keyOf(owner), owner}, true
	}
	sum, err := base32Hex.DecodeString(strings.ToUpper(owner[1 : 1+int(owner[0])]))
	return link{string(sum), owner}, err == nil
}

func compareLinks(a, b link) int { return strings.Compare(a.key, b.key) }

// spare is which part more names a chain has room for: moving all of them for one takes long.
const spare = 16

// newChain orders the names of a zone. It is called while nobody changes the zone.
func (z *zone) newChain(hashed bool) *chain {
	c := &chain{hashed: hashed, links: make([]link, 0, len(z.nodes)+len(z.nodes)/spare)}
	for owner := range z.nodes {
		c.links = append(c.links, link{c.keyOf(owner), owner})
	}
	slices.SortFunc(c.links, compareLinks)
	return c
}

// mostInserts is how many names are put in their places one by one; where there are more all are ordered anew.
const mostInserts = 64

// update takes names in that are there, and out that are not.
func (c *chain) update(names []string, there func(string) bool) {
	if len(names) > mostInserts {
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

// merge is update in one pass.
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

// speaks reports whether a record of the chain speaks of a name: what lies below a cut is not the zone's own, and an NSEC speaks of no
// name without records (RFC 4035 section 2.3). cut is the name that hides it, where one does.
func (z *zone) speaks(c *chain, owner string) (yes bool, cut string) {
	if c.given {
		return true, ""
	}
	if z.cuts > 0 {
		for at := owner; at != z.apex; {
			at = parent(at)
			if n := z.nodes[at]; n != nil && (n.of(dns.TypeDNAME) != nil || at != z.apex && n.of(dns.TypeNS) != nil) {
				cut = at
			}
		}
	}
	n := z.nodes[owner]
	return cut == "" && n != nil && (c.hashed || len(n.sets) > 0), cut
}

// before gives the last link at or before a place that a record speaks of. Before the first one is the last one.
func (z *zone) before(c *chain, i int) int {
	for range len(c.links) {
		if i < 0 {
			i = len(c.links) - 1
		}
		yes, cut := z.speaks(c, c.links[i].owner)
		if yes {
			break
		}
		if i--; cut != "" && !c.hashed {
			i, _ = slices.BinarySearchFunc(c.links, link{key: c.keyOf(cut)}, compareLinks)
		}
	}
	return i
}

// behind gives the first link behind a place that a record speaks of. Behind the last one is the first one.
func (z *zone) behind(c *chain, i int) int {
	for range len(c.links) {
		if i++; i == len(c.links) {
			i = 0
		}
		yes, cut := z.speaks(c, c.links[i].owner)
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

// find gives the link of a name, or the one whose record says that the name is not there.
func (z *zone) find(c *chain, owner string) int {
	i, found := slices.BinarySearchFunc(c.links, link{key: c.keyOf(owner)}, compareLinks)
	if !found {
		i--
	}
	return z.before(c, i)
}

// base32Hex writes hashes as labels (RFC 5155 section 3.3).
var base32Hex = base32.HexEncoding.WithPadding(base32.NoPadding)

// denial gives the record of a link: its owner, and its data as an RRset.
func (z *zone) denial(c *chain, i int, ttl uint32) (owner string, s *set) {
	if c.given {
		owner = c.links[i].owner
		return owner, z.nodes[owner].of(c.kind())
	}
	one, next := c.links[i], c.links[z.behind(c, i)]
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

// bitmap says which types a name has (RFC 4034 section 4.1.2, RFC 5155 section 3.2.1): at a cut those that are the zone's own.
func (z *zone) bitmap(owner string, hashed bool) []byte {
	n := z.nodes[owner]
	cut := owner != z.apex && n.of(dns.TypeNS) != nil
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

// negativeTTL is for how long it may be kept that something is not there, in seconds (RFC 9077 section 3).
func (s *set) negativeTTL() uint32 {
	ttl := s.ttl
	s.each(0, func(data []byte) bool {
		if len(data) >= 4 {
			ttl = min(ttl, binary.BigEndian.Uint32(data[len(data)-4:]))
		}
		return false
	})
	return ttl
}
