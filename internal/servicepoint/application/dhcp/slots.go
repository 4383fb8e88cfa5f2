package dhcp

import (
	"hash/maphash"
	"net/netip"

	"portolan/internal/wire/dhcpdata"
)

// slotID identifies a slot; 0 is none.
type slotID = uint32

// slot contains the lease of an address. Slots refer to each other by their ids, so that a million of them is a small number of objects.
type slot struct {
	packed
	expires int64
	version uint32
	// place is the place in the queue of ends plus one; 0 if it is not in it.
	place uint32
	// list is the list of the range that contains the slot, between previous and next. An unused slot has the next unused one.
	list           listKind
	previous, next slotID
}

// slotsOfBlock is the number of slots that are allocated together.
const slotsOfBlock = 1024

// slots are the leases by address, client, and hardware address.
type slots struct {
	blocks []*[slotsOfBlock]slot
	// used is the number of leases, end the id after the highest one, and unused the first slot of those that were used.
	used        int
	end, unused slotID
	hashes      hashes
	addresses   index
	clients     index
	hardware    index
	packer      packer
}

func newSlots() slots { return slots{end: 1, hashes: hashes{maphash.MakeSeed()}} }

// slot returns a slot.
func (s *slots) slot(id slotID) *slot { return &s.blocks[id/slotsOfBlock][id%slotsOfBlock] }

// allocate returns a slot that is not used.
func (s *slots) allocate() (id slotID) {
	s.used++
	if id = s.unused; id != 0 {
		s.unused = s.slot(id).next
		return id
	}
	id = s.end
	if s.end++; int(id/slotsOfBlock) == len(s.blocks) {
		s.blocks = append(s.blocks, new([slotsOfBlock]slot))
	}
	return id
}

// release makes a slot one that is not used.
func (s *slots) release(id slotID) {
	s.used--
	*s.slot(id) = slot{next: s.unused}
	s.unused = id
}

// find returns the slot of an address; 0 if it has no lease.
func (s *slots) find(a netip.Addr) (found slotID) {
	s.addresses.each(s.hashes.ofAddress(a), func(id slotID) bool {
		if s.slot(id).address() == a {
			found = id
		}
		return found == 0
	})
	return found
}

// link adds a slot to the indexes of clients. A lease without a client or a hardware address is not found by it, and neither is a machine
// without a lease: one that answers for a whole network would fill a part of the index.
func (s *slots) link(id slotID, h *holder) {
	if dhcpdata.IsStranger(h.client) {
		return
	}
	if h.client != "" {
		s.clients.add(s.hashes.ofText(h.client), id)
	}
	if h.hardware != "" {
		s.hardware.add(s.hashes.ofText(h.hardware), id)
	}
}

// unlink removes a slot from the indexes of clients.
func (s *slots) unlink(id slotID, h *holder) {
	if dhcpdata.IsStranger(h.client) {
		return
	}
	if h.client != "" {
		s.clients.remove(s.hashes.ofText(h.client), id)
	}
	if h.hardware != "" {
		s.hardware.remove(s.hashes.ofText(h.hardware), id)
	}
}

// slotList is a list of slots.
type slotList struct {
	first, last slotID
	length      int
}

// insert adds a slot to a list, at the front or at the back.
func (s *slots) insert(all *slotList, id slotID, front bool) {
	one := s.slot(id)
	all.length++
	switch {
	case all.first == 0:
		all.first, all.last = id, id
	case front:
		one.next, s.slot(all.first).previous, all.first = all.first, id, id
	default:
		one.previous, s.slot(all.last).next, all.last = all.last, id, id
	}
}

// cut removes a slot from a list.
func (s *slots) cut(all *slotList, id slotID) {
	one := s.slot(id)
	all.length--
	if one.previous == 0 {
		all.first = one.next
	} else {
		s.slot(one.previous).next = one.next
	}
	if one.next == 0 {
		all.last = one.previous
	} else {
		s.slot(one.next).previous = one.previous
	}
	one.previous, one.next = 0, 0
}
