package dhcp

import (
	"encoding/binary"
	"encoding/json"

	"portolan/internal/wire/dhcpdata"
)

// startNames gives the registrar the leases that were read.
func (e *engine) startNames() {
	leases := make([]*lease, 0, len(e.table.slots))
	for _, s := range e.table.slots {
		if s.lease != nil {
			leases = append(leases, s.lease)
		}
	}
	e.names.start(leases)
}

// keepNames keeps the names of a lease that goes on with the same names, so that they are in memory once. A lease without names records
// that its names end.
func (e *engine) keepNames(before, l *lease) {
	switch {
	case before != nil && before.names != nil && before.names.Same(l.names) && before.state == dhcpdata.Leased:
		l.names = before.names
	case l.names == nil && e.names.knows(l.address):
		l.names = &dhcpdata.Names{}
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

// extensionNames is the number of the names in a stored lease, after the fixed members.
const extensionNames = 1

// appendNames appends the names to a lease in the form of the journal: a number, and a text with its length.
func (l *lease) appendNames(to []byte) []byte {
	if l.names == nil {
		return to
	}
	text, err := json.Marshal(l.names)
	if err != nil { // it has no member that cannot be encoded
		return to
	}
	to = binary.AppendUvarint(to, extensionNames)
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}

// readNames reads the names at the end of a stored lease. Earlier versions stored none.
func (l *lease) readNames(r *reader) {
	if r.err != nil || len(r.text) == 0 {
		return
	}
	if r.number() != extensionNames {
		r.err = errLease
		return
	}
	n := &dhcpdata.Names{}
	if err := json.Unmarshal(r.bytes(), n); err != nil && r.err == nil {
		r.err = err
	}
	l.names = n
}
