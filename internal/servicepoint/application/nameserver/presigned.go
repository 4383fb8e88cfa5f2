package nameserver

import (
	"crypto/sha1" //nolint:gosec // the only hash algorithm of NSEC3 (RFC 5155 section 11)
	"encoding/binary"
	"slices"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/wire/zonedata"
)

// presigned returns the chain of a zone that contains its own signatures, such as a copied zone. It contains the names with NSEC or NSEC3
// records. It returns nil if the zone is not signed.
func (z *zone) presigned() *chain {
	apex := z.nodes[z.apex]
	if apex.set(dns.TypeRRSIG) == nil || apex.set(dns.TypeDNSKEY) == nil {
		return nil
	}
	c := &chain{isPresigned: true}
	if parameters := apex.set(dns.TypeNSEC3PARAM); parameters != nil {
		parameters.eachRecord(0, func(data []byte) bool {
			if len(data) >= 5 && len(data) == 5+int(data[4]) {
				c.hashed, c.iterations, c.salt = true, int(binary.BigEndian.Uint16(data[2:])), data[5:]
			}
			return !c.hashed
		})
	}
	if c.iterations > zonedata.MaxIterations { // such zones are not copied
		return nil
	}
	for owner, n := range z.nodes {
		if n.set(c.kind()) == nil {
			continue
		}
		if one, ok := c.linkOf(owner); ok {
			c.links = append(c.links, one)
		}
	}
	if len(c.links) == 0 {
		return nil
	}
	slices.SortFunc(c.links, compareLinks)
	return c
}

// kind returns the type of the chain's proof records.
func (c *chain) kind() uint16 {
	if c.hashed {
		return dns.TypeNSEC3
	}
	return dns.TypeNSEC
}

// affectedLinks reports whether a record changes the chain of a presigned zone. link reports a change of one link; all reports a change
// of the whole order.
func (c *chain) affectedLinks(r zonedata.Record) (link, all bool) {
	switch r.Type() {
	case c.kind():
		return true, false
	case dns.TypeNSEC3PARAM, dns.TypeDNSKEY:
		return true, true
	}
	return false, false
}

// appendHash appends the NSEC3 hash of a name (RFC 5155 section 5).
func (c *chain) appendHash(out []byte, owner string) []byte {
	var of [maxName + 255]byte                                   // a salt has at most 255 bytes
	sum := sha1.Sum(append(append(of[:0], owner...), c.salt...)) //nolint:gosec // see the import
	for range c.iterations {
		sum = sha1.Sum(append(append(of[:0], sum[:]...), c.salt...)) //nolint:gosec // see the import
	}
	return append(out, sum[:]...)
}

// signaturesOf returns the signatures of an RRset in a presigned zone; nil if there are none.
func (z *zone) signaturesOf(owner string, s *set) *set {
	n := z.nodes[owner]
	if n == nil {
		return nil
	}
	all := n.set(dns.TypeRRSIG)
	if all == nil {
		return nil
	}
	out := &set{kind: dns.TypeRRSIG, ttl: s.ttl}
	all.eachRecord(0, func(data []byte) bool {
		if len(data) >= 2 && binary.BigEndian.Uint16(data) == s.kind {
			out.append(data)
		}
		return true
	})
	if out.count == 0 {
		return nil
	}
	return out
}
