package dhcp

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net/netip"

	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"
)

// lease is the state of an address that was leased or abandoned. It is immutable; a change makes a new one. Times are in Unix seconds by
// the clock of the server (clock.go).
type lease struct {
	network, pool, reservation int64
	address                    netip.Addr
	state                      dhcpdata.State
	// start is the beginning of the lease, renewed the time of its last renewal, and expires its end.
	start, renewed, expires int64
	// ended is true for a lease that an operator ended: the address is not leased again until expires.
	ended bool
	// counted are the classes and subclasses whose limits the lease counts for.
	counted []int64
	holder  *holder
	// names are the names in DNS that this server has decided on with the lease; nil if it has not.
	names *dhcpdata.Names
	// pair is nil for the lease of a network without a failover pair.
	pair *pairing
	// unstored is true until the lease is on the disk: no client is told about it before. The lock of the engine guards it.
	unstored bool
}

// holder is the client of a lease, as its last request described it.
type holder struct {
	client       string // dhcpdata.Identity
	hardwareType uint8
	hardware     []byte
	clientID     []byte
	hostName     string
	relayAddress netip.Addr
	relay        []byte // option 82
	vendor       []byte
	parameters   []byte
}

// same reports whether two holders are equal.
func (h *holder) same(o *holder) bool {
	return h.client == o.client && h.hardwareType == o.hardwareType && string(h.hardware) == string(o.hardware) &&
		string(h.clientID) == string(o.clientID) && h.hostName == o.hostName && h.relayAddress == o.relayAddress &&
		string(h.relay) == string(o.relay) && string(h.vendor) == string(o.vendor) && string(h.parameters) == string(o.parameters)
}

// changed reports whether two holders differ in a way that the manager shows.
func (h *holder) changed(o *holder) bool {
	return h.hostName != o.hostName || string(h.relay) != string(o.relay) || string(h.vendor) != string(o.vendor) ||
		string(h.parameters) != string(o.parameters) || string(h.clientID) != string(o.clientID) || h.hardwareType != o.hardwareType ||
		string(h.hardware) != string(o.hardware) || h.relayAddress != o.relayAddress
}

// view returns the lease for a decision. A lease that has expired is free.
func (l *lease) view(now int64) dhcpdata.LeaseState {
	s := dhcpdata.LeaseState{Network: l.network, Address: l.address, State: l.state, Client: l.holder.client, Hardware: l.holder.hardware,
		Start: l.renewed, Expires: l.expires, Relay: l.holder.relay, Names: l.names, Ended: l.ended}
	if l.expires <= now {
		s.State, s.Ended = dhcpdata.Free, false
	}
	return s
}

// report returns the lease for the manager.
func (l *lease) report() dhcplease.Lease {
	h := l.holder
	out := dhcplease.Lease{Network: l.network, Pool: l.pool, Address: l.address, Reservation: l.reservation, Start: l.start,
		Expires:      l.expires,
		HardwareType: h.hardwareType, MAC: hex.EncodeToString(h.hardware), ClientID: hex.EncodeToString(h.clientID), HostName: h.hostName,
		Relay: h.relayAddress, VendorClass: hex.EncodeToString(h.vendor), Abandoned: l.state == dhcpdata.Abandoned}
	if l.address.Is6() {
		describe6(h, &out)
	}
	for code, to := range map[uint8]*string{1: &out.CircuitID, 2: &out.RemoteID, 6: &out.SubscriberID} {
		if data, ok := dhcpdata.SubOption(h.relay, code); ok {
			*to = hex.EncodeToString(data)
		}
	}
	for _, code := range h.parameters {
		out.Parameters = append(out.Parameters, int(code))
	}
	return out
}

// append appends the lease in the form of the journal.
func (l *lease) append(to []byte) []byte {
	h := l.holder
	ended := uint64(0)
	if l.ended {
		ended = 1
	}
	for _, n := range []uint64{uint64(l.network), uint64(l.pool), uint64(l.reservation), uint64(l.state), uint64(l.start),
		uint64(l.renewed), uint64(l.expires), ended, uint64(h.hardwareType)} {
		to = binary.AppendUvarint(to, n)
	}
	for _, text := range [][]byte{l.address.AsSlice(), []byte(h.client), h.hardware, h.clientID, []byte(h.hostName), h.relayAddress.AsSlice(),
		h.relay, h.vendor, h.parameters} {
		to = append(binary.AppendUvarint(to, uint64(len(text))), text...)
	}
	to = binary.AppendUvarint(to, uint64(len(l.counted)))
	for _, id := range l.counted {
		to = binary.AppendUvarint(to, uint64(id))
	}
	return l.pair.append(l.appendNames(to))
}

// errLease reports a lease in the journal that cannot be read.
var errLease = errors.New("the lease is truncated")

// reader reads numbers and texts.
type reader struct {
	text []byte
	err  error
}

func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.text)
	if size <= 0 {
		r.text, r.err = nil, errLease
		return 0
	}
	r.text = r.text[size:]
	return n
}

// bytes returns a copy, so that a lease does not keep a whole record in memory.
func (r *reader) bytes() []byte {
	n := r.number()
	if n > uint64(len(r.text)) {
		r.text, r.err = nil, errLease
		return nil
	}
	out := append([]byte(nil), r.text[:n]...)
	r.text = r.text[n:]
	return out
}

func (r *reader) address() netip.Addr {
	text := r.bytes()
	a, ok := netip.AddrFromSlice(text)
	if !ok && len(text) > 0 {
		r.err = errLease
	}
	return a
}

// readLease reads a lease in the form of append.
func readLease(text []byte) (*lease, error) {
	r := &reader{text: text}
	h := &holder{}
	l := &lease{network: int64(r.number()), pool: int64(r.number()), reservation: int64(r.number()), state: dhcpdata.State(r.number()),
		start: int64(r.number()), renewed: int64(r.number()), expires: int64(r.number()), ended: r.number() != 0, holder: h}
	h.hardwareType = uint8(r.number())
	l.address = r.address()
	h.client, h.hardware, h.clientID, h.hostName = string(r.bytes()), r.bytes(), r.bytes(), string(r.bytes())
	h.relayAddress, h.relay, h.vendor, h.parameters = r.address(), r.bytes(), r.bytes(), r.bytes()
	for n := r.number(); n > 0 && r.err == nil; n-- {
		l.counted = append(l.counted, int64(r.number()))
	}
	l.readNames(r)
	l.pair = r.pairing()
	switch {
	case r.err != nil:
		return nil, r.err
	case len(r.text) > 0 || !l.address.IsValid() || l.state > dhcpdata.Abandoned || l.start < 0 || l.renewed < 0 || l.expires < 0:
		return nil, errLease
	}
	return l, nil
}

// holderOf returns the client of a message. It copies the octets, because the packet is used again.
func holderOf(r *request, d *dhcpdata.Decision) *holder {
	copied := func(b []byte, limit int) []byte { return append([]byte(nil), b[:min(len(b), limit)]...) }
	o := r.facts.Options
	return &holder{client: d.Client, hardwareType: r.facts.HardwareType, hardware: copied(r.facts.Hardware, 16),
		clientID: copied(o[optClientID], 255), hostName: d.HostName, relayAddress: r.facts.Relay, relay: copied(o[optRelay], 255),
		vendor: copied(o[optVendorClass], 255), parameters: copied(o[optParameters], 255)}
}

// restore takes a change back, unless another one has followed. The caller holds mu.
func (e *engine) restore(after, before *lease) {
	if s := e.table.slots[after.address]; s != nil && s.lease == after {
		e.table.set(after.address, before)
	}
}
