package dhcp

import (
	"encoding/binary"
	"net/netip"
	"unique"

	"portolan/internal/wire/dhcpdata"
)

// packed is a lease as the table keeps it: text contains what is its own, and common what many leases share. Its end is in the slot.
type packed struct {
	text   string
	common unique.Handle[string]
}

// Bits of the octet of a packed lease behind its client. The lower two are the state.
const (
	packedEnded    = 4 << iota
	packedHardware // the client ends with the hardware address
	packedID       // the client ends with the client identifier
	packedNames
	packedPair
	packedCounted
)

// Octets of dhcpdata.Identity before the client identifier and before the hardware address.
const (
	beforeID       = 1
	beforeHardware = 2
)

// packer packs leases. It keeps its buffers, and the last common part, which the next lease often has as well.
type packer struct {
	text, shared []byte
	last         unique.Handle[string]
}

// pack packs a lease.
func (p *packer) pack(l *lease) packed {
	h := l.holder
	p.shared = appendNumber(appendNumber(p.shared[:0], l.network), l.pool)
	p.shared = appendAddress(append(p.shared, h.hardwareType), h.relayAddress)
	p.shared = appendText(appendText(p.shared, h.vendor), h.parameters)
	if p.last == (unique.Handle[string]{}) || p.last.Value() != string(p.shared) {
		p.last = unique.Make(string(p.shared))
	}
	flags := byte(l.state)
	set := func(condition bool, flag byte) {
		if condition {
			flags |= flag
		}
	}
	set(l.ended, packedEnded)
	set(len(h.client) >= beforeHardware && h.client[beforeHardware:] == h.hardware, packedHardware)
	set(len(h.client) >= beforeID && h.client[beforeID:] == h.clientID, packedID)
	set(l.names != nil, packedNames)
	set(l.pair != nil, packedPair)
	set(len(l.counted) > 0, packedCounted)
	to := append(appendText(appendAddress(p.text[:0], l.address), h.client), flags)
	to = binary.AppendVarint(appendNumber(to, l.start), l.renewed-l.start)
	to = appendNumber(to, l.reservation)
	if flags&packedHardware == 0 {
		to = appendText(to, h.hardware)
	}
	if flags&packedID == 0 {
		to = appendText(to, h.clientID)
	}
	to = appendText(appendText(to, h.hostName), h.relay)
	if flags&packedCounted != 0 {
		to = appendNumber(to, int64(len(l.counted)))
		for _, id := range l.counted {
			to = appendNumber(to, id)
		}
	}
	if flags&packedNames != 0 {
		to = packNames(to, l.names)
	}
	p.text = l.pair.append(to)
	return packed{string(p.text), p.last}
}

// address returns the address of a packed lease.
func (p packed) address() netip.Addr {
	r := reader{text: p.text}
	return r.address()
}

// unpackTo sets all members of a lease and its holder but those that the slot has. They contain parts of the packed lease.
func (p packed) unpackTo(l *lease, h *holder) {
	shared := reader{text: p.common.Value()}
	*l = lease{network: int64(shared.number()), pool: int64(shared.number()), holder: h}
	*h = holder{hardwareType: shared.octet(), relayAddress: shared.address(), vendor: shared.octets(), parameters: shared.octets()}
	r := reader{text: p.text}
	l.address, h.client = r.address(), r.octets()
	flags := r.octet()
	l.state, l.ended = dhcpdata.State(flags&3), flags&packedEnded != 0
	l.start = int64(r.number())
	l.renewed = l.start + r.signed()
	l.reservation = int64(r.number())
	if h.hardware = ""; flags&packedHardware != 0 {
		h.hardware = h.client[beforeHardware:]
	} else {
		h.hardware = r.octets()
	}
	if flags&packedID != 0 {
		h.clientID = h.client[beforeID:]
	} else {
		h.clientID = r.octets()
	}
	h.hostName, h.relay = r.octets(), r.octets()
	if flags&packedCounted != 0 {
		l.counted = make([]int64, r.number())
		for i := range l.counted {
			l.counted[i] = int64(r.number())
		}
	}
	if flags&packedNames != 0 {
		l.names = unpackNames(&r)
	}
	if flags&packedPair != 0 {
		l.pair = r.pairing()
	}
}

// nameFlags returns the conditions of names in the order of their bits.
func nameFlags(n *dhcpdata.Names) [7]*bool {
	return [...]*bool{&n.Forward, &n.Overwrite, &n.AnyGuard, &n.Mixed, &n.OtherGuard, &n.Always, &n.Partner}
}

// packNames appends names.
func packNames(to []byte, n *dhcpdata.Names) []byte {
	flags := byte(0)
	for i, condition := range nameFlags(n) {
		if *condition {
			flags |= 1 << i
		}
	}
	to = appendText(appendText(appendText(append(to, flags), n.Host), n.Reverse), n.Guard)
	to = appendNumber(appendNumber(to, int64(n.TTL)), int64(len(n.IDs)))
	for _, id := range n.IDs {
		to = appendText(to, id)
	}
	source := ""
	if n.Source.IsValid() {
		source = n.Source.String()
	}
	return appendText(to, source)
}

// unpackNames reads names.
func unpackNames(r *reader) *dhcpdata.Names {
	n := &dhcpdata.Names{}
	flags := r.octet()
	for i, condition := range nameFlags(n) {
		*condition = flags&(1<<i) != 0
	}
	n.Host, n.Reverse, n.Guard, n.TTL = r.octets(), r.octets(), dhcpdata.Guard(r.octets()), uint32(r.number())
	if count := r.number(); count > 0 {
		n.IDs = make([]dhcpdata.Hex, count)
		for i := range n.IDs {
			n.IDs[i] = dhcpdata.Hex(r.octets())
		}
	}
	if source := r.octets(); source != "" {
		n.Source = netip.MustParseAddr(source)
	}
	return n
}
