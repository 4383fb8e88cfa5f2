package dhcp

import (
	"encoding/binary"
	"encoding/json"

	"portolan/internal/wire/dhcpdata"
)

// keepNames keeps the names of a lease that continues with the same names, so that they are in memory once. A lease without names records
// that its names end.
func (e *engine) keepNames(before, l *lease) {
	switch {
	case before != nil && before.names != nil && before.names.Same(l.names) && before.state == dhcpdata.Leased:
		l.names = before.names
	case l.names == nil && (before != nil && before.names != nil || e.names.knows(l.address)):
		l.names = &dhcpdata.Names{}
	}
}

// takeNames returns the leases whose names in DNS may change when a lease is granted. If the partner of a pair has kept another name for
// the client, the lease before comes first, so that its names are removed.
func (e *engine) takeNames(before, l *lease) []*lease {
	if before == nil || before.names == nil || !before.names.Partner || before.state != dhcpdata.Leased ||
		l.names != nil && l.names.Host == before.names.Host {
		return e.named(before, l)
	}
	ended := *before
	ended.state = dhcpdata.Free
	return []*lease{&ended, l}
}

// leaveNames leaves the names of a lease that ends to the partner that keeps them. Without a connection to it this server removes them.
func (p *pair) leaveNames(after *lease) {
	if after.names != nil && after.names.Partner && after.state != dhcpdata.Leased && p.link != nil {
		after.names = nil
	}
}

// namesOfPartner changes the names of a lease as the partner describes it: what the partner keeps, this server does not.
func (l *lease) namesOfPartner() {
	if l.names != nil {
		n := *l.names
		n.Partner = !n.Partner
		l.names = &n
	}
}

// named returns the leases whose names in DNS may change. Names that stay are not among them, unless each renewal updates DNS.
func (e *engine) named(before, l *lease) []*lease {
	stays := before != nil && before.state == l.state && before.ended == l.ended && before.names == l.names
	if stays && (l.names == nil || !l.names.Always) || l.names == nil && !e.names.knows(l.address) {
		return nil
	}
	return []*lease{l}
}

// appendNames appends the names to a lease in the form of the journal, with their length. A lease without names and without a pair ends
// before.
func (l *lease) appendNames(to []byte) []byte {
	if l.names == nil && l.pair == nil {
		return to
	}
	var text []byte
	if l.names != nil {
		var err error
		if text, err = json.Marshal(l.names); err != nil { // it has no member that cannot be encoded
			text = nil
		}
	}
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}

// readNames reads the names of a stored lease. Earlier versions stored none.
func (l *lease) readNames(r *reader) {
	if r.err != nil || len(r.text) == 0 {
		return
	}
	text := r.octets()
	if r.err != nil || len(text) == 0 {
		return
	}
	l.names = &dhcpdata.Names{}
	r.err = json.Unmarshal([]byte(text), l.names)
}
