package resolver

import (
	"encoding/binary"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/wire/zonedata"
)

// packedQuery is a query in wire format whose answer may be cached.
type packedQuery struct {
	// sent is the name as it was sent, key the key of the answer: the name in lower case, the type, the flags and the view.
	sent, key []byte
	kind      uint16
	// limit is the maximum size of the answer in bytes. size is the one of the client's OPT record, and flags are the flags there.
	limit             int
	edns              bool
	size, flags       uint16
	recursion, dnssec bool
	buffer            [255 + 5]byte
}

// Flags of a key: what an answer depends on besides the question.
const (
	keyDNSSEC = 1 << iota
	keyChecking
	keyAuthentic
)

// Options of an OPT record that no answer depends on: NSID, cookie and padding.
const (
	optionNSID    = 3
	optionCookie  = 10
	optionPadding = 12
)

// optSize is the size of an OPT record without options in bytes.
const optSize = 11

// parse parses a message. It returns false if the answer of the message is never cached, or if anything about it is unusual.
func (q *packedQuery) parse(m []byte) bool {
	if len(m) < headerSize || m[2]&^1 != 0 || m[3]&^0x30 != 0 || // a query with RD, AD and CD at most
		binary.BigEndian.Uint32(m[4:]) != 1<<16 || m[8]|m[9]|m[10] != 0 || m[11] > 1 { // one question, at most one additional record
		return false
	}
	end := zonedata.NameEnd(m, headerSize)
	if end < 0 || end+4 > len(m) || binary.BigEndian.Uint16(m[end+2:]) != dns.ClassINET {
		return false
	}
	q.kind = binary.BigEndian.Uint16(m[end:])
	q.edns, q.dnssec, q.flags, q.limit = false, false, 0, dns.MinMsgSize
	if rest := m[end+4:]; m[11] == 1 {
		if !q.parseOPT(rest) {
			return false
		}
	} else if len(rest) > 0 {
		return false
	}
	q.recursion, q.sent = m[2]&1 != 0, m[headerSize:end]
	n := copy(q.buffer[:], q.sent)
	for i, c := range q.buffer[:n] { // length bytes are at most 63, so they are not letters
		if c >= 'A' && c <= 'Z' {
			q.buffer[i] = c + 'a' - 'A'
		}
	}
	var flags byte
	if q.dnssec {
		flags = keyDNSSEC
	}
	if m[3]&0x10 != 0 {
		flags |= keyChecking
	}
	if m[3]&0x20 != 0 {
		flags |= keyAuthentic
	}
	binary.BigEndian.PutUint16(q.buffer[n:], q.kind)
	q.buffer[n+2] = flags
	q.key = q.buffer[:n+5]
	q.setView(0)
	return true
}

// setView sets the view in the key.
func (q *packedQuery) setView(view uint16) { binary.BigEndian.PutUint16(q.key[len(q.key)-2:], view) }

// parseOPT parses an OPT record that must fill the rest of a message.
func (q *packedQuery) parseOPT(r []byte) bool {
	if len(r) < optSize || r[0] != 0 || binary.BigEndian.Uint16(r[1:]) != dns.TypeOPT || r[5] != 0 || r[6] != 0 ||
		int(binary.BigEndian.Uint16(r[9:])) != len(r)-optSize {
		return false
	}
	for options := r[optSize:]; len(options) > 0; {
		if len(options) < 4 || len(options) < 4+int(binary.BigEndian.Uint16(options[2:])) {
			return false
		}
		switch binary.BigEndian.Uint16(options) {
		case optionNSID, optionCookie, optionPadding:
		default:
			return false
		}
		options = options[4+int(binary.BigEndian.Uint16(options[2:])):]
	}
	q.edns, q.size, q.flags = true, binary.BigEndian.Uint16(r[3:]), binary.BigEndian.Uint16(r[7:])
	q.dnssec, q.limit = q.flags&0x8000 != 0, max(dns.MinMsgSize, int(q.size))
	return true
}

// write writes an answer to the query into a buffer. It returns nil if the answer is too large for the client.
func (q *packedQuery) write(buf, m []byte, a *packedAnswer, now int64) []byte {
	n := len(a.wire)
	if q.edns {
		n += optSize
	}
	if n > q.limit || n > cap(buf) {
		return nil
	}
	out := buf[:len(a.wire)]
	copy(out, a.wire)
	out[0], out[1] = m[0], m[1]
	out[2] = out[2]&^1 | m[2]&1
	copy(out[headerSize:], q.sent)        // in the case of the client
	age := uint32((now - a.stored) / 1e9) //nolint:gosec // an answer is valid for a day at most
	for _, at := range a.ttls {
		ttl := out[at : at+4]
		binary.BigEndian.PutUint32(ttl, binary.BigEndian.Uint32(ttl)-age)
	}
	if q.edns {
		out = append(out, 0, 0, byte(dns.TypeOPT), byte(q.size>>8), byte(q.size), 0, 0, byte(q.flags>>8), 0, 0, 0)
		binary.BigEndian.PutUint16(out[10:], binary.BigEndian.Uint16(out[10:])+1)
	}
	return out
}

// text returns the name for the query log.
func (q *packedQuery) text() string {
	name, _, err := dns.UnpackDomainName(q.key, 0)
	if err != nil {
		return "" // the name was parsed before
	}
	return name
}

// typeText returns the name of a type.
func typeText(kind uint16) string { return dns.Type(kind).String() }
