package nameserver

import (
	"encoding/binary"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/wire/zonedata"
)

// query is a question as it came (RFC 1035 section 4.1), and what came with it.
type query struct {
	id     uint16
	opcode int
	// recursion says that the RD bit is set, sent that the name is at bytes 12 on of the message, in the case in which it was sent.
	recursion bool
	sent      []byte
	// name is in lower case.
	name        string
	kind, class uint16
	// edns says that there is an OPT record (RFC 6891): version, size and dnssec are of it.
	edns    bool
	version byte
	size    int
	dnssec  bool
	// nsid says that the name of the server is asked for (RFC 5001); cookie is what came of one (RFC 7873).
	nsid   bool
	cookie []byte
	// signed says that there is a signature.
	signed    bool
	signature signature
	// serial is that of the SOA that comes with a question for a transfer (RFC 1995 section 3).
	serial uint32
}

const (
	headerSize = 12
	// leastUDP is how long an answer over UDP may be where nothing is said (RFC 1035 section 4.2.1), mostUDP where much is: what passes
	// networks whole (RFC 9715).
	leastUDP = 512
	mostUDP  = 1232
	optSize  = 11
)

// Codes of EDNS options.
const (
	optionNSID   = 3
	optionCookie = 10
)

// parse reads a message. ok is false where it is to be left without an answer; otherwise code is what is wrong with it, or 0.
func (q *query) parse(m []byte) (code int, ok bool) {
	if len(m) < headerSize || m[2]&0x80 != 0 { // too short, or an answer
		return 0, false
	}
	*q = query{id: binary.BigEndian.Uint16(m), opcode: int(m[2] >> 3 & 15), recursion: m[2]&1 != 0, size: leastUDP}
	questions, others := binary.BigEndian.Uint16(m[4:]), binary.BigEndian.Uint16(m[6:])+binary.BigEndian.Uint16(m[8:])
	further := binary.BigEndian.Uint16(m[10:])
	if q.opcode != dns.OpcodeQuery && q.opcode != dns.OpcodeUpdate && q.opcode != dns.OpcodeNotify {
		return dns.RcodeNotImplemented, true
	}
	if questions == 0 && others == 0 {
		return q.cookieAlone(m, further), true
	}
	if questions != 1 {
		return dns.RcodeFormatError, true
	}
	end := zonedata.NameEnd(m, headerSize)
	if end < 0 || end+4 > len(m) {
		return dns.RcodeFormatError, true
	}
	var lower [256]byte
	n := copy(lower[:], m[headerSize:end])
	lowered(lower[:n])
	q.sent, q.name = m[headerSize:end], string(lower[:n])
	q.kind, q.class = binary.BigEndian.Uint16(m[end:]), binary.BigEndian.Uint16(m[end+2:])
	switch q.class {
	case 0, dns.ClassNONE, dns.ClassANY:
		return dns.RcodeFormatError, true
	}
	at := end + 4
	for range others {
		from := at
		if at = skipRecord(m, at); at < 0 {
			return dns.RcodeFormatError, true
		}
		if kind := m[skipName(m, from):]; binary.BigEndian.Uint16(kind) == dns.TypeSOA {
			q.serial = serialOf(m[from:at])
		}
	}
	for range further {
		from := at
		if at = skipRecord(m, at); at < 0 || q.signed { // the signature is the last one (RFC 8945 section 5.1)
			return dns.RcodeFormatError, true
		}
		if binary.BigEndian.Uint16(m[skipName(m, from):]) == dns.TypeTSIG {
			if q.signed = q.signature.read(m[:at], from); !q.signed {
				return dns.RcodeFormatError, true
			}
			continue
		}
		if code := q.further(m[from:at]); code != 0 {
			return code, true
		}
	}
	return 0, true
}

// cookieAlone reads a message without a question. It asks for a cookie (RFC 7873 section 5.4), or it is malformed.
func (q *query) cookieAlone(m []byte, records uint16) (code int) {
	end := headerSize
	for range records {
		from := end
		if end = skipRecord(m, from); end < 0 || q.further(m[from:end]) != 0 {
			return dns.RcodeFormatError
		}
	}
	if q.cookie == nil {
		return dns.RcodeFormatError
	}
	return 0
}

// further reads a record of the additional section.
func (q *query) further(r []byte) (code int) {
	end := skipName(r, 0)
	switch kind := binary.BigEndian.Uint16(r[end:]); {
	case kind != dns.TypeOPT:
	case q.edns || r[0] != 0:
		return dns.RcodeFormatError
	default:
		q.edns, q.version, q.dnssec = true, r[end+5], r[end+6]&0x80 != 0
		q.size = min(max(leastUDP, int(binary.BigEndian.Uint16(r[end+2:]))), mostUDP)
		return q.options(r[end+10:])
	}
	return 0
}

// options reads the options of an OPT record.
func (q *query) options(text []byte) (code int) {
	for len(text) > 0 {
		if len(text) < 4 {
			return dns.RcodeFormatError
		}
		length := int(binary.BigEndian.Uint16(text[2:]))
		if len(text) < 4+length {
			return dns.RcodeFormatError
		}
		switch value := text[4 : 4+length]; binary.BigEndian.Uint16(text) {
		case optionNSID:
			q.nsid = true
		case optionCookie:
			if length != 8 && (length < 16 || length > 40) {
				return dns.RcodeFormatError
			}
			q.cookie = value
		}
		text = text[4+length:]
	}
	return 0
}

// lowered puts a name in wire form into lower case. Lengths of labels are no letters.
func lowered(name []byte) {
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			name[i] = c + 'a' - 'A'
		}
	}
}

// skipName is where a name ends that may be compressed; -1 where there is none.
func skipName(m []byte, at int) int {
	for at < len(m) {
		length := int(m[at])
		switch {
		case length == 0:
			return at + 1
		case length >= 0xc0:
			if at+2 > len(m) {
				return -1
			}
			return at + 2
		case length > 63:
			return -1
		}
		at += 1 + length
	}
	return -1
}

// skipRecord is where a record ends; -1 where there is none.
func skipRecord(m []byte, at int) int {
	if at = skipName(m, at); at < 0 || at+10 > len(m) {
		return -1
	}
	at += 10 + int(binary.BigEndian.Uint16(m[at+8:]))
	if at > len(m) {
		return -1
	}
	return at
}

// answer is an answer that is being written.
type answer struct {
	q *query
	m []byte
	// limit is how long it may get, without the OPT record.
	limit                     int
	answers, authority, extra uint16
	code                      int
	authoritative, truncated  bool
	// apex is the name of the zone that was answered from; empty where there is none.
	apex string
	// origin is the name whose records it has: that of a wildcard, or of a zone that it leads to, where it is not the one asked for. It is
	// empty where it has none.
	origin string
	// signing signs what comes from the zone that is answered from, and chain says what is not there; nil where nobody has asked for
	// signatures, or the zone has none.
	signing *signing
	chain   *chain
	// bare says that records of DNSSEC are asked for as such, by somebody who wants no signatures beside answers.
	bare bool
	// from is the zone that is answered from, where it came with its signatures.
	from *zone
	// denied are the records of chains that are in it.
	denied []denied
	// proofs are records of the authority section that are written behind the answers; they are counted already.
	proofs []byte
	// led are the DNAMEs that have led on: each is in the answer once.
	led []*set
	// fault is why the answer could not be signed.
	fault error
}

// begin writes the header and the question.
func (a *answer) begin(q *query, buf []byte, limit int) {
	*a = answer{q: q, m: append(buf[:0], make([]byte, headerSize)...), limit: limit, proofs: a.proofs[:0], led: a.led[:0]}
	if q.edns {
		a.limit -= optSize + 4 + 40 // what its options take at most
	}
	if q.sent != nil {
		a.m = append(a.m, q.sent...)
		a.m = binary.BigEndian.AppendUint16(a.m, q.kind)
		a.m = binary.BigEndian.AppendUint16(a.m, q.class)
	}
}

// end writes the header as it has become.
func (a *answer) end() []byte {
	q := a.q
	binary.BigEndian.PutUint16(a.m, q.id)
	a.m[2] = 0x80 | byte(q.opcode)<<3 //nolint:gosec // of four bits
	if a.authoritative {
		a.m[2] |= 4
	}
	if a.truncated {
		a.m[2] |= 2
	}
	if q.recursion {
		a.m[2] |= 1
	}
	a.m[3] = byte(a.code & 15)
	if q.sent != nil {
		a.m[5] = 1
	}
	binary.BigEndian.PutUint16(a.m[6:], a.answers)
	binary.BigEndian.PutUint16(a.m[8:], a.authority)
	binary.BigEndian.PutUint16(a.m[10:], a.extra)
	return a.m
}

// opt adds the OPT record.
func (a *answer) opt(options []byte) {
	a.m = append(a.m, 0, 0, byte(dns.TypeOPT), mostUDP>>8, mostUDP&255, byte(a.code>>4), 0, 0, 0, byte(len(options)>>8), byte(len(options)))
	if a.q.dnssec {
		a.m[len(a.m)-4] |= 0x80
	}
	a.m = append(a.m, options...)
	a.extra++
}

// writeName writes a name, and points to the question where the rest stands in it.
func writeName[N string | []byte](a *answer, name N) {
	asked := a.q.name
	for at := 0; at < len(name) && name[at] != 0; at += 1 + int(name[at]) {
		if rest := len(name) - at; rest <= len(asked) && asked[len(asked)-rest:] == string(name[at:]) && a.starts(len(asked)-rest) {
			a.m = append(a.m, name[:at]...)
			a.m = binary.BigEndian.AppendUint16(a.m, uint16(0xc000|headerSize+len(asked)-rest)) //nolint:gosec // below 300
			return
		}
	}
	a.m = append(a.m, name...)
}

// starts reports whether a label of the name asked for begins at a place.
func (a *answer) starts(place int) bool {
	for at := 0; at <= place; at += 1 + int(a.q.name[at]) {
		if at == place {
			return true
		}
		if a.q.name[at] == 0 {
			break
		}
	}
	return false
}

// put writes an RRset of an owner. It reports whether there was room.
func (a *answer) put(owner string, s *set, ttl uint32, section *uint16) bool {
	from, before := len(a.m), *section
	first := 0
	if s.count > 1 && (s.kind == dns.TypeA || s.kind == dns.TypeAAAA) {
		first = int(a.q.id) % int(s.count) // clients take the first, and the others are to have their share
	}
	s.each(first, func(data []byte) bool {
		writeName(a, owner)
		a.m = binary.BigEndian.AppendUint16(a.m, s.kind)
		a.m = append(a.m, 0, dns.ClassINET)
		a.m = binary.BigEndian.AppendUint32(a.m, ttl)
		at := len(a.m)
		a.m = append(a.m, 0, 0)
		a.data(s.kind, data)
		binary.BigEndian.PutUint16(a.m[at:], uint16(len(a.m)-at-2)) //nolint:gosec // at most that of the data
		*section++
		return len(a.m) <= a.limit
	})
	if len(a.m) > a.limit {
		a.m, *section = a.m[:from], before
		return false
	}
	return true
}

// data writes the data of a record. Names in types that everybody knows are compressed (RFC 3597 section 4).
func (a *answer) data(kind uint16, data []byte) {
	switch kind {
	case dns.TypeNS, dns.TypeCNAME, dns.TypePTR:
		a.named(data)
	case dns.TypeMX:
		a.m = append(a.m, data[:2]...)
		a.named(data[2:])
	case dns.TypeSOA:
		end := zonedata.NameEnd(data, 0)
		last := zonedata.NameEnd(data, max(end, 0))
		if end < 0 || last < 0 {
			a.m = append(a.m, data...)
			return
		}
		a.named(data[:end])
		a.named(data[end:last])
		a.m = append(a.m, data[last:]...)
	default:
		a.m = append(a.m, data...)
	}
}

// named writes a name that may have letters in upper case.
func (a *answer) named(name []byte) {
	for _, c := range name {
		if c >= 'A' && c <= 'Z' {
			a.m = append(a.m, name...)
			return
		}
	}
	writeName(a, name)
}

// cut leaves nothing but the question, and says that there is more (RFC 2181 section 9).
func (a *answer) cut() {
	if a.m = a.m[:headerSize]; a.q.sent != nil {
		a.m = a.m[:headerSize+len(a.q.sent)+4]
	}
	a.answers, a.authority, a.extra, a.truncated = 0, 0, 0, true
	a.limit += len(a.proofs)
	a.proofs = a.proofs[:0]
}
