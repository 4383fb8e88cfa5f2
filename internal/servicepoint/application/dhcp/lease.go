package dhcp

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"

	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"
)

// lease is the state of an address that was leased or abandoned. It is immutable; a change makes a new one. The table returns another copy
// each time. Times are in Unix seconds by the clock of the server (clock.go).
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
	// unstored is true until the lease is on the disk: no client gets an answer about it before. The lock of the engine guards it.
	unstored bool
	// version identifies the change of the table that made the lease; 0 before.
	version uint32
}

// holder is the client of a lease, as its last request described it. Identifiers and options are octets in strings.
type holder struct {
	client       string // dhcpdata.Identity
	hardwareType uint8
	hardware     string
	clientID     string
	hostName     string
	relayAddress netip.Addr
	relay        string // option 82
	vendor       string
	parameters   string
}

// changed reports whether two holders differ in a way that the manager shows.
func (h *holder) changed(o *holder) bool {
	shown := *o
	shown.client = h.client
	return *h != shown
}

// view returns the lease for a decision. A lease that has expired is free.
func (l *lease) view(now int64) dhcpdata.LeaseState {
	s := dhcpdata.LeaseState{Network: l.network, Address: l.address, State: l.state, Client: l.holder.client,
		Hardware: []byte(l.holder.hardware), Start: l.renewed, Expires: l.expires, Relay: []byte(l.holder.relay), Names: l.names, Ended: l.ended}
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
		HardwareType: h.hardwareType, MAC: hexText(h.hardware), ClientID: hexText(h.clientID), HostName: h.hostName,
		Relay: h.relayAddress, VendorClass: hexText(h.vendor), Abandoned: l.state == dhcpdata.Abandoned, Stranger: dhcpdata.IsStranger(h.client)}
	if l.address.Is6() {
		describe6(h, &out)
	}
	for code, to := range map[uint8]*string{1: &out.CircuitID, 2: &out.RemoteID, 6: &out.SubscriberID} {
		if data, ok := dhcpdata.SubOption([]byte(h.relay), code); ok {
			*to = hex.EncodeToString(data)
		}
	}
	for _, code := range []byte(h.parameters) {
		out.Parameters = append(out.Parameters, int(code))
	}
	return out
}

func hexText(octets string) string { return hex.EncodeToString([]byte(octets)) }

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
	to = appendAddress(to, l.address)
	for _, text := range []string{h.client, h.hardware, h.clientID, h.hostName} {
		to = appendText(to, text)
	}
	to = appendAddress(to, h.relayAddress)
	for _, text := range []string{h.relay, h.vendor, h.parameters} {
		to = appendText(to, text)
	}
	to = binary.AppendUvarint(to, uint64(len(l.counted)))
	for _, id := range l.counted {
		to = binary.AppendUvarint(to, uint64(id))
	}
	return l.pair.append(l.appendNames(to))
}

// readLease reads a lease in the form of append.
func readLease(text []byte) (*lease, error) {
	l := &lease{holder: &holder{}}
	return l, l.read(string(text))
}

// read sets all members of a lease and of its holder from the form of append. They contain parts of the text.
func (l *lease) read(text string) error {
	r := &reader{text: text}
	h := l.holder
	*h = holder{}
	*l = lease{network: int64(r.number()), pool: int64(r.number()), reservation: int64(r.number()), state: dhcpdata.State(r.number()),
		start: int64(r.number()), renewed: int64(r.number()), expires: int64(r.number()), ended: r.number() != 0, holder: h}
	h.hardwareType = uint8(r.number())
	l.address = r.address()
	h.client, h.hardware, h.clientID, h.hostName = r.octets(), r.octets(), r.octets(), r.octets()
	h.relayAddress, h.relay, h.vendor, h.parameters = r.address(), r.octets(), r.octets(), r.octets()
	for n := r.number(); n > 0 && r.err == nil; n-- {
		l.counted = append(l.counted, int64(r.number()))
	}
	l.readNames(r)
	l.pair = r.pairing()
	switch {
	case r.err != nil:
		return r.err
	case len(r.text) > 0 || !l.address.IsValid() || l.state > dhcpdata.Abandoned || l.start < 0 || l.renewed < 0 || l.expires < 0:
		return errLease
	}
	return nil
}

// holderOf returns the client of a message. It copies the octets, because the packet is used again.
func holderOf(r *request, d *dhcpdata.Decision) *holder {
	o := r.facts.Options
	return &holder{client: d.Client, hardwareType: r.facts.HardwareType, hardware: octetsOf(r.facts.Hardware, 16),
		clientID: octetsOf(o[optClientID], 255), hostName: d.HostName, relayAddress: r.facts.Relay, relay: octetsOf(o[optRelay], 255),
		vendor: octetsOf(o[optVendorClass], 255), parameters: octetsOf(o[optParameters], 255)}
}

// octetsOf returns a copy of the first octets.
func octetsOf(octets []byte, limit int) string { return string(octets[:min(len(octets), limit)]) }
