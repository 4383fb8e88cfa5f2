package nameserver

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/wire/zonedata"
)

// zone is the data of a zone. Names are in wire form and in lower case.
type zone struct {
	apex string

	// copying is held by those who read all of the zone, which takes long, and by who changes it, before mu: while somebody waits for mu to
	// change it nobody is answered.
	copying sync.RWMutex
	mu      sync.RWMutex
	// What follows is guarded by mu, and changes with copying held, too. nodes are the names that exist, those without records of their own
	// but with names below included (RFC 4592 section 2.2.2).
	nodes map[string]*node
	hash  zonedata.Hash
	// serial is that of its SOA, records how many there are; cuts is how many names have NS records or a DNAME, without the apex's NS.
	serial  uint32
	records int
	cuts    int
	// journal is what has changed of it lately.
	journal journal
	// chain is the order of its names where it is signed, else nil; touched are the names that a change that goes on has made or removed.
	chain   *chain
	touched []string
}

// lock is for who changes the zone.
func (z *zone) lock() {
	z.copying.Lock()
	z.mu.Lock()
}

func (z *zone) unlock() {
	z.mu.Unlock()
	z.copying.Unlock()
}

// node is a name.
type node struct {
	sets []set
	// children is how many nodes lie right below.
	children int
}

// set is an RRset: the data of its records, each with its length in two bytes before it.
type set struct {
	kind  uint16
	count uint16
	ttl   uint32
	data  []byte
}

func newZone(apex string) *zone {
	return &zone{apex: apex, nodes: map[string]*node{apex: {}}}
}

// of gives the RRset of a type; nil where there is none.
func (n *node) of(kind uint16) *set {
	for i := range n.sets {
		if n.sets[i].kind == kind {
			return &n.sets[i]
		}
	}
	return nil
}

// each gives the data of the records, beginning with one of them and going round.
func (s *set) each(from int, fn func(data []byte) bool) {
	at := 0
	for range from {
		at += 2 + int(binary.BigEndian.Uint16(s.data[at:]))
	}
	for range s.count {
		if at == len(s.data) {
			at = 0
		}
		length := int(binary.BigEndian.Uint16(s.data[at:]))
		if !fn(s.data[at+2 : at+2+length]) {
			return
		}
		at += 2 + length
	}
}

// parent is the name above another one.
func parent(name string) string { return name[1+int(name[0]):] }

// errNoRecord is what a change says that removes what is not there.
var errNoRecord = errors.New("a record that is removed is not there")

// has reports whether a record is there. It is called with mu held.
func (z *zone) has(r zonedata.Record) bool {
	n := z.nodes[string(r.Owner())]
	if n == nil {
		return false
	}
	s := n.of(r.Type())
	found := false
	if s != nil && (s.ttl == r.TTL() || r.Type() == dns.TypeRRSIG) { // signatures of a name have the TTLs of what they sign
		s.each(0, func(data []byte) bool {
			found = string(data) == string(r.Data())
			return !found
		})
	}
	return found
}

// inside refuses a record that does not lie in the zone.
func (z *zone) inside(r zonedata.Record) error {
	owner := string(r.Owner())
	for ; len(owner) > len(z.apex); owner = parent(owner) {
	}
	if owner != z.apex {
		return errors.New("a record does not lie in its zone")
	}
	return nil
}

// isCut reports whether an RRset ends what the zone says itself at a name.
func (z *zone) isCut(owner string, kind uint16) bool {
	return kind == dns.TypeNS && owner != z.apex || kind == dns.TypeDNAME
}

// add takes a record in that is not there. It is called with mu held, or before anybody knows the zone.
func (z *zone) add(r zonedata.Record) {
	owner := string(r.Owner())
	n := z.nodes[owner]
	if n == nil {
		n = z.grow(owner)
	}
	kind, data := r.Type(), r.Data()
	s := n.of(kind)
	if s == nil {
		n.sets = append(n.sets, set{kind: kind})
		s = &n.sets[len(n.sets)-1]
		if z.isCut(owner, kind) {
			z.cuts++
		}
	}
	s.ttl = r.TTL() // all records of an RRset have the same (RFC 2181 section 5.2)
	s.count++
	// The data is copied: readers that hold mu no more may still send what was there.
	size := []byte{byte(len(data) >> 8), byte(len(data))} //nolint:gosec // a record's data is at most 65,535 bytes
	s.data = slices.Concat(s.data, size, data)
	z.records++
	z.hash.Add(r)
	if kind == dns.TypeSOA {
		z.serial = serialOf(data)
	}
}

// serialOf gives the serial number in the data of an SOA (RFC 1035 section 3.3.13).
func serialOf(data []byte) uint32 {
	if len(data) < 20 {
		return 0
	}
	return binary.BigEndian.Uint32(data[len(data)-20:])
}

// touch notes that a name was made or removed.
func (z *zone) touch(owner string) {
	if z.chain != nil {
		z.touched = append(z.touched, owner)
	}
}

// reorder puts the names that were touched in their places; anew says that their order is another one. It is called with mu held.
func (z *zone) reorder(anew bool) {
	switch {
	case z.chain != nil && z.chain.given && !anew:
		z.chain.update(z.touched, func(owner string) bool {
			n := z.nodes[owner]
			return n != nil && n.of(z.chain.kind()) != nil
		})
		if len(z.chain.links) == 0 {
			z.chain = nil
		}
	case z.chain != nil && z.chain.given:
		z.chain = z.presigned()
	case z.chain != nil && len(z.touched) > 0:
		z.chain.update(z.touched, func(owner string) bool { return z.nodes[owner] != nil })
	}
	z.touched = nil
}

// grow makes a node, and those above it that are not there.
func (z *zone) grow(owner string) *node {
	n := &node{}
	z.nodes[owner] = n
	z.touch(owner)
	for owner != z.apex {
		owner = parent(owner)
		above := z.nodes[owner]
		if above != nil {
			above.children++
			break
		}
		z.nodes[owner] = &node{children: 1}
		z.touch(owner)
	}
	return n
}

// remove takes a record out that is there. It is called with mu held.
func (z *zone) remove(r zonedata.Record) error {
	owner := string(r.Owner())
	n := z.nodes[owner]
	if n == nil {
		return errNoRecord
	}
	s := n.of(r.Type())
	if s == nil {
		return errNoRecord
	}
	data := make([]byte, 0, len(s.data))
	gone := false
	s.each(0, func(one []byte) bool {
		if !gone && string(one) == string(r.Data()) {
			gone = true
			return true
		}
		data = append(append(data, byte(len(one)>>8), byte(len(one))), one...) //nolint:gosec // as above
		return true
	})
	if !gone {
		return errNoRecord
	}
	s.data = data
	s.count--
	z.records--
	z.hash.Remove(r)
	if s.count > 0 {
		return nil
	}
	if z.isCut(owner, s.kind) {
		z.cuts--
	}
	kind := s.kind
	n.sets = slices.DeleteFunc(slices.Clone(n.sets), func(one set) bool { return one.kind == kind })
	z.prune(owner)
	return nil
}

// prune takes nodes away that have neither records nor names below.
func (z *zone) prune(owner string) {
	for owner != z.apex {
		n := z.nodes[owner]
		if len(n.sets) > 0 || n.children > 0 {
			return
		}
		delete(z.nodes, owner)
		z.touch(owner)
		owner = parent(owner)
		z.nodes[owner].children--
	}
}

// change is what a stream says of a zone.
type change struct {
	zonedata.Change
	removed, added []zonedata.Record
	// whole is the zone that is made anew where the change begins at nothing; nil before its first record.
	whole *zone
}

// anew reports whether the change replaces the zone whole.
func (c *change) anew() bool { return c.From == "" }

// check refuses a change that does not lead from what is there to what it says.
func (c *change) check(z *zone) error {
	z.mu.RLock()
	defer z.mu.RUnlock()
	if z.hash.String() != c.From {
		return fmt.Errorf("zone %s has another content than the change begins at", c.ID)
	}
	sum := z.hash
	for _, r := range c.removed {
		if !z.has(r) {
			return fmt.Errorf("zone %s: %w", c.ID, errNoRecord)
		}
		sum.Remove(r)
	}
	for _, r := range c.added {
		if err := z.inside(r); err != nil {
			return fmt.Errorf("zone %s: %w", c.ID, err)
		}
		sum.Add(r)
	}
	if sum.String() != c.To {
		return fmt.Errorf("zone %s: the change does not lead to the content that it says", c.ID)
	}
	return nil
}

// apply changes a zone, for all who ask at once.
func (c *change) apply(z *zone) error {
	z.lock()
	defer z.unlock()
	step, told := c.step(z.serial)
	for _, r := range c.removed {
		if err := z.remove(r); err != nil {
			return fmt.Errorf("zone %s: %w", c.ID, err)
		}
	}
	for _, r := range c.added {
		z.add(r)
	}
	anew := false
	for _, r := range slices.Concat(c.removed, c.added) {
		if z.chain == nil || !z.chain.given {
			break
		}
		if one, all := z.chain.orders(r); one {
			z.touch(lowerName(r.Owner()))
			anew = anew || all
		}
	}
	if z.reorder(anew); told {
		z.journal.note(step, z.records)
	}
	return nil
}
