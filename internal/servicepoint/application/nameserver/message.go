package nameserver

import (
	"encoding/binary"
	"unsafe"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/wire/zonedata"
)

// query is a parsed request message (RFC 1035 section 4.1).
type query struct {
	id     uint16
	opcode int
	// recursion is the RD bit. sent is the name in its original case, at byte 12 of the message.
	recursion bool
	sent      []byte
	// name is in wire format and in lower case. It is a part of lower, and is valid until the next message is parsed: clone it to keep it.
	name        string
	lower       *[maxName]byte
	kind, class uint16
	// edns reports an OPT record (RFC 6891); version, size and dnssec are its fields.
	edns    bool
	version byte
	size    int
	dnssec  bool
	// nsid reports a request for the name server identifier (RFC 5001). cookie is the value of the cookie option (RFC 7873).
	nsid   bool
	cookie []byte
	// signed reports a TSIG record.
	signed    bool
	signature signature
	// serial is the SOA serial in an IXFR request (RFC 1995 section 3).
	serial uint32
}

const (
	headerSize = 12
	// minUDP is the maximum size of an answer over UDP without EDNS (RFC 1035 section 4.2.1). maxUDP is the maximum with EDNS, which
	// avoids IP fragmentation (RFC 9715).
	minUDP  = 512
	maxUDP  = 1232
	optSize = 11
	// maxName is the maximum size of a name in wire format (RFC 1035 section 2.3.4).
	maxName = 255
)

// Codes of EDNS options.
const (
	optionNSID   = 3
	optionCookie = 10
)

// parse parses a message. ok is false if the message must be ignored. Otherwise code is the response code of an error, or 0.
func (q *query) parse(m []byte) (code int, ok bool) {
	if len(m) < headerSize || m[2]&0x80 != 0 { // too short, or a response
		return 0, false
	}
	lower := q.lower
	if lower == nil {
		lower = new([maxName]byte)
	}
	*q = query{id: binary.BigEndian.Uint16(m), opcode: int(m[2] >> 3 & 15), recursion: m[2]&1 != 0, size: minUDP, lower: lower}
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
	n := copy(lower[:], m[headerSize:end])
	toLower(lower[:n])
	q.sent, q.name = m[headerSize:end], shareString(lower[:n])
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
		if at = skipRecord(m, at); at < 0 || q.signed { // the signature is the last record (RFC 8945 section 5.1)
			return dns.RcodeFormatError, true
		}
		if binary.BigEndian.Uint16(m[skipName(m, from):]) == dns.TypeTSIG {
			if q.signed = q.signature.read(m[:at], from); !q.signed {
				return dns.RcodeFormatError, true
			}
			continue
		}
		if code := q.parseAdditional(m[from:at]); code != 0 {
			return code, true
		}
	}
	return 0, true
}

// cookieAlone parses a message without a question. It is a request for a cookie (RFC 7873 section 5.4), or malformed.
func (q *query) cookieAlone(m []byte, records uint16) (code int) {
	end := headerSize
	for range records {
		from := end
		if end = skipRecord(m, from); end < 0 || q.parseAdditional(m[from:end]) != 0 {
			return dns.RcodeFormatError
		}
	}
	if q.cookie == nil {
		return dns.RcodeFormatError
	}
	return 0
}

// parseAdditional parses a record of the additional section.
func (q *query) parseAdditional(r []byte) (code int) {
	end := skipName(r, 0)
	switch kind := binary.BigEndian.Uint16(r[end:]); {
	case kind != dns.TypeOPT:
	case q.edns || r[0] != 0:
		return dns.RcodeFormatError
	default:
		q.edns, q.version, q.dnssec = true, r[end+5], r[end+6]&0x80 != 0
		q.size = min(max(minUDP, int(binary.BigEndian.Uint16(r[end+2:]))), maxUDP)
		return q.options(r[end+10:])
	}
	return 0
}

// options parses the options of an OPT record.
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

// shareString returns a string that shares the memory of b. It changes with b.
func shareString(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b)) //nolint:gosec // a copy would allocate memory for each query
}

// bytesOf returns the bytes of a string, which must not be changed.
func bytesOf(s string) []byte {
	return unsafe.Slice(unsafe.StringData(s), len(s)) //nolint:gosec // see shared
}

// toLower converts a name in wire format to lower case in place. Length bytes are at most 63, so they are never letters.
func toLower(name []byte) {
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			name[i] = c + 'a' - 'A'
		}
	}
}

// skipName returns the end of a name that may be compressed; -1 if it is malformed.
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

// skipRecord returns the end of a record; -1 if it is malformed.
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

// answer is a response under construction.
type answer struct {
	q *query
	m []byte
	// limit is the maximum size of the response, without the OPT record.
	limit                     int
	answers, authority, extra uint16
	code                      int
	authoritative, truncated  bool
	// apex is the apex of the zone that was answered from; empty if there is none.
	apex string
	// origin is the owner of the first records in the answer. It differs from the question's name for a wildcard or a delegation, and is
	// empty without records.
	origin string
	// signing signs records of the current zone. chain creates its proofs of nonexistence. Both are nil if the client wants no DNSSEC
	// records or the zone is not signed.
	signing *signing
	chain   *chain
	// bare reports a query for DNSSEC records by a client that wants no signatures with the answer.
	bare bool
	// from is the current zone if it is presigned.
	from *zone
	// denied are the chain records in the response.
	denied []denied
	// wildcards contain the wildcard names that were looked up: the owner of the first records in the answer, and the latest one.
	wildcards [2][maxName]byte
	// seen are the names of the aliases that were followed.
	seen [maxAliases]string
	// generated is the proof record that is written.
	generated generatedProof
	// proofs are authority records that are written after the answer section. They are counted already.
	proofs []byte
	// followed are the DNAME RRsets that were followed. Each is written once.
	followed []*set
	// signError is the error of a failed signature.
	signError error
}

// start resets the answer and writes the header and the question.
func (a *answer) start(q *query, buf []byte, limit int) {
	a.reset(q, limit)
	a.m = buf[:0]
	a.m = append(a.m, make([]byte, headerSize)...)
	if q.edns {
		a.limit -= optSize + 4 + 40 // the maximum size of the options
	}
	if q.sent != nil {
		a.m = append(a.m, q.sent...)
		a.m = binary.BigEndian.AppendUint16(a.m, q.kind)
		a.m = binary.BigEndian.AppendUint16(a.m, q.class)
	}
}

// reset clears all fields except for the memory that is used again.
func (a *answer) reset(q *query, limit int) {
	a.q, a.limit = q, limit
	a.answers, a.authority, a.extra, a.code = 0, 0, 0, 0
	a.authoritative, a.truncated = false, false
	a.apex, a.origin = "", ""
	a.signing, a.chain, a.from, a.bare = nil, nil, nil, false
	a.denied, a.proofs, a.followed, a.signError = a.denied[:0], a.proofs[:0], a.followed[:0], nil
}

// finish writes the final header and returns the message.
func (a *answer) finish() []byte {
	q := a.q
	binary.BigEndian.PutUint16(a.m, q.id)
	a.m[2] = 0x80 | byte(q.opcode)<<3 //nolint:gosec // four bits
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

// startOPT adds the OPT record without options. The options follow, and endOPT.
func (a *answer) startOPT() {
	a.m = append(a.m, 0, 0, byte(dns.TypeOPT), maxUDP>>8, maxUDP&255, byte(a.code>>4), 0, 0, 0, 0, 0)
	if a.q.dnssec {
		a.m[len(a.m)-4] |= 0x80
	}
	a.extra++
}

// endOPT writes the size of the options that were added since the OPT record ended at offset from.
func (a *answer) endOPT(from int) {
	binary.BigEndian.PutUint16(a.m[from-2:], uint16(len(a.m)-from)) //nolint:gosec // at most 100
}

// writeName writes a name. It compresses the name with a pointer into the question if both share a suffix.
func writeName[N string | []byte](a *answer, name N) {
	asked := a.q.name
	for at := 0; at < len(name) && name[at] != 0; at += 1 + int(name[at]) {
		if rest := len(name) - at; rest <= len(asked) && asked[len(asked)-rest:] == string(name[at:]) && a.isLabelStart(len(asked)-rest) {
			a.m = append(a.m, name[:at]...)
			a.m = binary.BigEndian.AppendUint16(a.m, uint16(0xc000|headerSize+len(asked)-rest)) //nolint:gosec // below 300
			return
		}
	}
	a.m = append(a.m, name...)
}

// isLabelStart reports whether a label of the question's name starts at this offset.
func (a *answer) isLabelStart(place int) bool {
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

// writeSet writes an RRset for an owner. If the size limit does not permit that, it writes nothing and returns false.
func (a *answer) writeSet(owner string, s *set, ttl uint32, section *uint16) bool {
	from, before := len(a.m), *section
	first := 0
	if s.count > 1 && (s.kind == dns.TypeA || s.kind == dns.TypeAAAA) {
		first = int(a.q.id) % int(s.count) // clients use the first address, so rotation distributes the load
	}
	s.eachRecord(first, func(data []byte) bool {
		writeName(a, owner)
		a.m = binary.BigEndian.AppendUint16(a.m, s.kind)
		a.m = append(a.m, 0, dns.ClassINET)
		a.m = binary.BigEndian.AppendUint32(a.m, ttl)
		at := len(a.m)
		a.m = append(a.m, 0, 0)
		a.writeData(s.kind, data)
		binary.BigEndian.PutUint16(a.m[at:], uint16(len(a.m)-at-2)) //nolint:gosec // at most the size of the data
		*section++
		return len(a.m) <= a.limit
	})
	if len(a.m) > a.limit {
		a.m, *section = a.m[:from], before
		return false
	}
	return true
}

// writeData writes the data of a record. Only names in well-known types are compressed (RFC 3597 section 4).
func (a *answer) writeData(kind uint16, data []byte) {
	switch kind {
	case dns.TypeNS, dns.TypeCNAME, dns.TypePTR:
		a.writeCasedName(data)
	case dns.TypeMX:
		a.m = append(a.m, data[:2]...)
		a.writeCasedName(data[2:])
	case dns.TypeSOA:
		end := zonedata.NameEnd(data, 0)
		last := zonedata.NameEnd(data, max(end, 0))
		if end < 0 || last < 0 {
			a.m = append(a.m, data...)
			return
		}
		a.writeCasedName(data[:end])
		a.writeCasedName(data[end:last])
		a.m = append(a.m, data[last:]...)
	default:
		a.m = append(a.m, data...)
	}
}

// writeCasedName writes a name. It does not compress a name with upper-case letters, to keep their case.
func (a *answer) writeCasedName(name []byte) {
	for _, c := range name {
		if c >= 'A' && c <= 'Z' {
			a.m = append(a.m, name...)
			return
		}
	}
	writeName(a, name)
}

// truncate removes all records and sets the TC bit (RFC 2181 section 9).
func (a *answer) truncate() {
	if a.m = a.m[:headerSize]; a.q.sent != nil {
		a.m = a.m[:headerSize+len(a.q.sent)+4]
	}
	a.answers, a.authority, a.extra, a.truncated = 0, 0, 0, true
	a.limit += len(a.proofs)
	a.proofs = a.proofs[:0]
}
