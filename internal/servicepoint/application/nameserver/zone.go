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

// zone is the data of a zone. Names are in wire format and in lower case.
type zone struct {
	apex string

	// copying is locked before mu: for reading by goroutines that copy the whole zone, for writing by the one that changes it. Copying is
	// slow, and a goroutine that waits for mu to write blocks all answers.
	copying sync.RWMutex
	mu      sync.RWMutex
	// The following fields are guarded by mu, and change only with copying held. nodes are the existing names, including empty non-terminals
	// (RFC 4592 section 2.2.2).
	nodes map[string]*node
	hash  zonedata.Hash
	// serial is the serial of the SOA. records is the number of records. cuts is the number of names with NS records or a DNAME, not
	// counting the apex's NS.
	serial  uint32
	records int
	cuts    int
	// journal contains the recent changes.
	journal journal
	// chain contains the ordered names of a signed zone; nil if the zone is not signed. touched are the names that the current change added
	// or removed.
	chain   *chain
	touched []string
}

// lock locks the zone for a change.
func (z *zone) lock() {
	z.copying.Lock()
	z.mu.Lock()
}

func (z *zone) unlock() {
	z.mu.Unlock()
	z.copying.Unlock()
}

// node is a name in a zone.
type node struct {
	sets []set
	// children is the number of direct child nodes.
	children int
	// first is the memory of the first RRset, which is read together with the node.
	first [1]set
}

// set is an RRset. data contains the records' data, each with a two-byte length before it.
type set struct {
	kind  uint16
	count uint16
	ttl   uint32
	data  []byte
}

func newZone(apex string) *zone {
	return &zone{apex: apex, nodes: map[string]*node{apex: {}}}
}

// set returns the RRset of a type; nil if there is none.
func (n *node) set(kind uint16) *set {
	for i := range n.sets {
		if n.sets[i].kind == kind {
			return &n.sets[i]
		}
	}
	return nil
}

// eachRecord calls fn with the data of each record, starting at index from and wrapping around, until fn returns false.
func (s *set) eachRecord(from int, fn func(data []byte) bool) {
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

// parent returns the parent of a name.
func parent(name string) string { return name[1+int(name[0]):] }

// errNoRecord reports a change that removes a record that does not exist.
var errNoRecord = errors.New("a record to remove does not exist")

// hasRecord reports whether a record exists. The caller holds mu.
func (z *zone) hasRecord(r zonedata.Record) bool {
	n := z.nodes[string(r.Owner())]
	if n == nil {
		return false
	}
	s := n.set(r.Type())
	found := false
	if s != nil && (s.ttl == r.TTL() || r.Type() == dns.TypeRRSIG) { // signatures of a name have the TTLs of the RRsets that they sign
		s.eachRecord(0, func(data []byte) bool {
			found = string(data) == string(r.Data())
			return !found
		})
	}
	return found
}

// checkOwner returns an error if a record is outside the zone.
func (z *zone) checkOwner(r zonedata.Record) error {
	owner := string(r.Owner())
	for ; len(owner) > len(z.apex); owner = parent(owner) {
	}
	if owner != z.apex {
		return errors.New("a record is outside of its zone")
	}
	return nil
}

// isCut reports whether an RRset delegates or redirects the names below its owner.
func (z *zone) isCut(owner string, kind uint16) bool {
	return kind == dns.TypeNS && owner != z.apex || kind == dns.TypeDNAME
}

// add adds a record that does not exist yet. The caller holds mu, or the zone is not in use yet.
func (z *zone) add(r zonedata.Record) {
	owner := string(r.Owner())
	n := z.nodes[owner]
	if n == nil {
		n = z.addNode(owner)
	}
	kind, data := r.Type(), r.Data()
	s := n.set(kind)
	if s == nil {
		if n.sets == nil {
			n.sets = n.first[:0]
		}
		n.sets = append(n.sets, set{kind: kind})
		s = &n.sets[len(n.sets)-1]
		if z.isCut(owner, kind) {
			z.cuts++
		}
	}
	s.ttl = r.TTL() // all records of an RRset have the same TTL (RFC 2181 section 5.2)
	s.count++
	// The data is copied, because readers that have released mu may still send the old data.
	size := []byte{byte(len(data) >> 8), byte(len(data))} //nolint:gosec // a record's data is at most 65,535 bytes
	s.data = slices.Concat(s.data, size, data)
	z.records++
	z.hash.Add(r)
	if kind == dns.TypeSOA {
		z.serial = serialOf(data)
	}
}

// serialOf returns the serial number in the data of an SOA (RFC 1035 section 3.3.13).
func serialOf(data []byte) uint32 {
	if len(data) < 20 {
		return 0
	}
	return binary.BigEndian.Uint32(data[len(data)-20:])
}

// currentSerial returns the serial of the SOA.
func (z *zone) currentSerial() uint32 {
	z.mu.RLock()
	defer z.mu.RUnlock()
	return z.serial
}

// takeJournal takes the journal of the zone that a new one replaces, if both have the same content. before can be nil.
func (z *zone) takeJournal(before *zone) {
	if before == nil || before.apex != z.apex {
		return
	}
	before.mu.RLock()
	defer before.mu.RUnlock()
	if before.hash == z.hash {
		z.journal = before.journal
		z.journal.steps = slices.Clip(z.journal.steps) // both can append
	}
}

// touch records that a name was added or removed.
func (z *zone) touch(owner string) {
	if z.chain != nil {
		z.touched = append(z.touched, owner)
	}
}

// updateChain updates the chain with the touched names. anew rebuilds the chain of a presigned zone, because its order has changed. The
// caller holds mu.
func (z *zone) updateChain(anew bool) {
	switch {
	case z.chain != nil && z.chain.isPresigned && !anew:
		z.chain.update(z.touched, func(owner string) bool {
			n := z.nodes[owner]
			return n != nil && n.set(z.chain.kind()) != nil
		})
		if len(z.chain.links) == 0 {
			z.chain = nil
		}
	case z.chain != nil && z.chain.isPresigned:
		z.chain = z.presigned()
	case z.chain != nil && len(z.touched) > 0:
		z.chain.update(z.touched, func(owner string) bool { return z.nodes[owner] != nil })
	}
	z.touched = nil
}

// addNode creates a node and its missing parents.
func (z *zone) addNode(owner string) *node {
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

// remove removes a record. It returns errNoRecord if the record does not exist. The caller holds mu.
func (z *zone) remove(r zonedata.Record) error {
	owner := string(r.Owner())
	n := z.nodes[owner]
	if n == nil {
		return errNoRecord
	}
	s := n.set(r.Type())
	if s == nil {
		return errNoRecord
	}
	data := make([]byte, 0, len(s.data))
	gone := false
	s.eachRecord(0, func(one []byte) bool {
		if !gone && string(one) == string(r.Data()) {
			gone = true
			return true
		}
		data = append(append(data, byte(len(one)>>8), byte(len(one))), one...) //nolint:gosec // see add
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

// prune removes nodes that have neither records nor children.
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

// change is the change of a zone in a stream.
type change struct {
	zonedata.Change
	removed, added []zonedata.Record
	// whole is the new zone if the change begins at nothing; nil before its first record.
	whole *zone
	// serial is the serial of the zone before the change, if the change does not begin at nothing.
	serial uint32
}

// isWhole reports whether the change replaces the whole zone.
func (c *change) isWhole() bool { return c.From == "" }

// check returns an error if the change does not lead from the current content to the announced one.
func (c *change) check(z *zone) error {
	z.mu.RLock()
	defer z.mu.RUnlock()
	if z.hash.String() != c.From {
		return fmt.Errorf("the change does not start at the current content of zone %s", c.ID)
	}
	sum := z.hash
	for _, r := range c.removed {
		if !z.hasRecord(r) {
			return fmt.Errorf("zone %s: %w", c.ID, errNoRecord)
		}
		sum.Remove(r)
	}
	for _, r := range c.added {
		if err := z.checkOwner(r); err != nil {
			return fmt.Errorf("zone %s: %w", c.ID, err)
		}
		sum.Add(r)
	}
	if sum.String() != c.To {
		return fmt.Errorf("zone %s: the content after the change does not match its hash", c.ID)
	}
	return nil
}

// apply changes the zone atomically for all readers.
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
		if z.chain == nil || !z.chain.isPresigned {
			break
		}
		if one, all := z.chain.affectedLinks(r); one {
			z.touch(lowerName(r.Owner()))
			anew = anew || all
		}
	}
	if z.updateChain(anew); told {
		z.journal.add(step, z.records)
	}
	return nil
}
