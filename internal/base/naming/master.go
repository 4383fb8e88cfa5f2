package naming

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	dns "portolan/internal/base/dnsmsg"
)

// ZoneFile is the content of a zone file (RFC 1035 section 5).
type ZoneFile struct {
	// Zone is the name of the SOA record or, without one, the origin: absolute, in lower case.
	Zone string
	// Records are in the order of the file, with absolute names. All records of an RRset have the same TTL.
	Records []dns.RR
	// Places are the files and lines of the records.
	Places []string
	// Notes describe entries that were changed when they were read. Faults describe entries that are not valid records. Each starts with
	// file and line.
	Notes, Faults []string
}

// MaxGenerated is the maximum number of records from all $GENERATE directives of a zone file.
const MaxGenerated = 1 << 20

// maxIncludes is the maximum nesting of included files.
const maxIncludes = 20

// maxTTL is the maximum time to live (RFC 2181 section 8).
const maxTTL = 1<<31 - 1

// ReadZone reads a zone file, or the text of a transfer, in the same way as BIND. It supports $ORIGIN, $TTL, $GENERATE, $INCLUDE and
// omitted owners, and TTLs by RFC 2308 section 4 or, without $TTL, by RFC 1035.
//
// The origin completes relative names; it may be empty if the file sets it. include opens included files; nil rejects $INCLUDE. An invalid
// entry is added to Faults, and the rest is read. An error is returned only if the whole file cannot be read.
func ReadZone(in io.Reader, origin string, include func(name string) (io.ReadCloser, error)) (*ZoneFile, error) {
	r := &zoneFileReader{include: include, ttls: map[string]uint32{}, single: map[string]singleRecord{}, file: &ZoneFile{}}
	if origin != "" {
		var err error
		if r.origin, err = FQDN(origin); err != nil {
			return nil, err
		}
	}
	given := r.origin
	if err := r.read(in, ""); err != nil {
		return nil, err
	}
	z := r.file
	for i, rr := range z.Records {
		rr.Header().Ttl = r.ttls[r.sets[i]]
	}
	if z.Zone == "" {
		z.Zone = dns.CanonicalName(given)
	}
	if z.Zone == "" || z.Zone == "." && given != "." {
		if len(z.Faults) > 0 {
			return nil, errors.New(z.Faults[0])
		}
		return nil, errors.New("the file contains no SOA record, so its zone is unknown")
	}
	return z, nil
}

// zoneFileReader is the state of reading a zone file (RFC 1035 section 5.1). Included files have their own origin and owner, and share the
// TTLs.
type zoneFileReader struct {
	include       func(name string) (io.ReadCloser, error)
	file          *ZoneFile
	origin, owner string
	// defaultTTL is the value of $TTL, lastTTL that of the previous record; nil before the first.
	defaultTTL, lastTTL *uint32
	// ttls are the TTLs of the RRsets, by owner and type. run is the owner of the current consecutive records, and runTTLs are their TTLs
	// by type.
	ttls    map[string]uint32
	run     string
	runTTLs map[uint32]uint32
	// sets are the RRsets of the records. single holds the records of types that a name can have only once.
	sets             []string
	single           map[string]singleRecord
	depth, generated int
	// name is the current file; empty for the first one. line is the start of the entry.
	name string
	line int
}

// position returns the current file and line.
func (r *zoneFileReader) position() string {
	if r.name == "" {
		return fmt.Sprintf("line %d", r.line)
	}
	return fmt.Sprintf("%s line %d", r.name, r.line)
}

// maxFaults is the maximum number of notes that are kept.
const maxFaults = 1000

func (r *zoneFileReader) addFault(format string, args ...any) {
	r.file.Faults = append(r.file.Faults, r.position()+": "+fmt.Sprintf(format, args...))
}

func (r *zoneFileReader) addNote(format string, args ...any) {
	if len(r.file.Notes) < maxFaults {
		r.file.Notes = append(r.file.Notes, r.position()+": "+fmt.Sprintf(format, args...))
	}
}

// read reads a file to its end.
func (r *zoneFileReader) read(in io.Reader, name string) error {
	if r.depth++; r.depth > maxIncludes {
		return fmt.Errorf("%s: files include each other more than %d deep", r.position(), maxIncludes)
	}
	before, line := r.name, r.line
	r.name = name
	s := &entryScanner{reader: bufio.NewReader(in), line: 1}
	if mark, err := s.reader.Peek(len(byteOrderMark)); err == nil && string(mark) == byteOrderMark {
		_, _ = s.reader.Discard(len(byteOrderMark))
	}
	for {
		e, err := s.next()
		r.line = e.line
		var open unclosed
		if errors.As(err, &open) {
			r.addFault("%v", err)
			if !open.atEnd {
				continue
			}
			err = io.EOF
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", r.position(), err)
		}
		if err := r.entry(e); err != nil {
			return err
		}
	}
	r.depth--
	r.name, r.line = before, line
	return nil
}

// byteOrderMark is at the start of files from some editors.
const byteOrderMark = "\xef\xbb\xbf"

// entry processes an entry: a directive or a record.
func (r *zoneFileReader) entry(e entryText) error {
	if first := e.tokens[0]; !e.blank && strings.HasPrefix(first, "$") {
		return r.directive(strings.ToUpper(first), e.tokens[1:])
	}
	tokens := e.tokens
	if !e.blank {
		quoted := tokens[0] == `"@"`
		r.owner, tokens = unquotedName(tokens[0]), tokens[1:]
		if r.owner == "@" || quoted {
			r.owner = r.origin
		} else if !isAbsolute(r.owner) {
			if r.origin == "" {
				r.addFault("%q is relative and the origin is unknown; add $ORIGIN", r.owner)
				r.owner = ""
				return nil
			}
			r.owner = Join(r.owner, r.origin)
			if r.origin == "." {
				r.owner += "."
			}
		}
	}
	if r.owner == "" {
		r.addFault("the record has no owner")
		return nil
	}
	r.record(r.owner, tokens)
	return nil
}

// isAbsolute reports whether a name of a zone file ends with a dot that is not escaped.
func isAbsolute(name string) bool {
	return strings.HasSuffix(name, ".") && !isEscaped(name, len(name)-1)
}

// unquotedName removes the quotation marks around a name and escapes octets if necessary.
func unquotedName(token string) string {
	if len(token) < 2 || token[0] != '"' {
		return token
	}
	var b strings.Builder
	for i := 1; i < len(token)-1; i++ {
		switch c := token[i]; {
		case c == '\\':
			b.WriteString(token[i:min(i+2, len(token)-1)])
			i++
		case strings.IndexByte(` ;()@$"`, c) >= 0:
			fmt.Fprintf(&b, "\\%03d", c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func (r *zoneFileReader) directive(what string, arguments []string) error {
	if len(arguments) == 0 {
		r.addFault("%s requires an argument", what)
		return nil
	}
	switch what {
	case "$ORIGIN":
		r.origin = r.complete(arguments[0])
	case "$TTL":
		ttl, ok := r.ttl(arguments[0])
		if !ok {
			r.addFault("%s: %q is not a time to live", what, arguments[0])
			return nil
		}
		r.defaultTTL = &ttl
	case "$INCLUDE":
		return r.includeFile(arguments)
	case "$GENERATE":
		return r.generate(arguments)
	case "$DATE": // the time when BIND wrote the file
	default:
		r.addFault("%s is not a directive of zone files", what)
	}
	return nil
}

// complete returns the absolute form of a name.
func (r *zoneFileReader) complete(name string) string {
	switch {
	case name == "@":
		return r.origin
	case isAbsolute(name):
		return name
	case r.origin == ".":
		return name + "."
	}
	return Join(name, r.origin)
}

func (r *zoneFileReader) includeFile(arguments []string) error {
	name := strings.Trim(arguments[0], `"`)
	if r.include == nil {
		return fmt.Errorf("%s: $INCLUDE %s: included files are supported only if the zone is read from a file", r.position(), name)
	}
	f, err := r.include(name)
	if err != nil {
		r.addFault("$INCLUDE: %v", err)
		return nil //nolint:nilerr // it is recorded as a fault of the file
	}
	defer func() { _ = f.Close() }()
	origin, owner := r.origin, r.owner
	if len(arguments) > 1 {
		r.origin = r.complete(arguments[1])
	}
	if err := r.read(f, name); err != nil {
		return err
	}
	r.origin, r.owner = origin, owner
	return nil
}

// ttl parses a time to live: seconds, or numbers with the units of BIND. A value above 2^31-1 counts as 0 (RFC 2181 section 8).
func (r *zoneFileReader) ttl(text string) (ttl uint32, ok bool) {
	seconds, ok := durationOf(text)
	if !ok {
		return 0, false
	}
	if seconds > maxTTL {
		r.addNote("the time to live %s is above %d and is read as 0 (RFC 2181 section 8)", text, maxTTL)
		return 0, true
	}
	return uint32(seconds), true
}

// durationOf parses seconds, or numbers with units, such as 1W2D3H4M5S. ok is false for other texts and for more than 2^32-1 seconds.
func durationOf(text string) (seconds uint64, ok bool) {
	units := map[byte]uint64{'s': 1, 'm': 60, 'h': 3600, 'd': 86400, 'w': 604800}
	number, digits := uint64(0), 0
	for i := range len(text) {
		c := text[i] | 0x20
		switch unit := units[c]; {
		case text[i] >= '0' && text[i] <= '9':
			number, digits = number*10+uint64(text[i]-'0'), digits+1
		case unit > 0 && digits > 0:
			seconds, number, digits = seconds+number*unit, 0, 0
		default:
			return 0, false
		}
		if number > 1<<32 || seconds > 1<<32 {
			return 0, false
		}
	}
	seconds += number
	return seconds, text != "" && seconds < 1<<32
}

// withoutZeros removes leading zeros from a numeric type or class such as TYPE016. It returns other texts unchanged.
func withoutZeros(prefix, text string) string {
	rest, is := strings.CutPrefix(text, prefix)
	if n, err := strconv.ParseUint(rest, 10, 16); is && err == nil {
		return prefix + strconv.FormatUint(n, 10)
	}
	return text
}

// record processes the record of an owner: an optional TTL and class in either order, the type, and the data.
func (r *zoneFileReader) record(owner string, tokens []string) {
	var given *uint32
	class := false
	for len(tokens) > 0 {
		if upper := withoutZeros("CLASS", strings.ToUpper(tokens[0])); !class && (upper == "IN" || upper == "CLASS1") {
			class, tokens = true, tokens[1:]
			continue
		} else if _, is := dns.StringToClass[upper]; !class && is && upper != "ANY" && upper != "NONE" {
			r.addFault("%s has the class %s; records must have the class IN", owner, upper)
			return
		}
		ttl, ok := r.ttl(tokens[0])
		if given != nil || !ok {
			break
		}
		given, tokens = &ttl, tokens[1:]
	}
	if len(tokens) == 0 {
		r.addFault("%s has no type", owner)
		return
	}
	kind, data := withoutZeros("TYPE", strings.ToUpper(tokens[0])), tokens[1:]
	rr, err := r.parse(owner, kind, data)
	if err != nil {
		r.addFault("%s %s: %v", owner, kind, err)
		return
	}
	h := rr.Header()
	soa, isSOA := rr.(*dns.SOA)
	switch {
	case given != nil:
		h.Ttl = *given
	case r.defaultTTL != nil:
		h.Ttl = *r.defaultTTL
	case r.lastTTL != nil:
		h.Ttl = *r.lastTTL
	case isSOA:
		h.Ttl = min(soa.Minttl, maxTTL)
		r.defaultTTL = &h.Ttl
	default:
		r.addFault("%s %s has no time to live; add a $TTL directive", owner, kind)
		return
	}
	if isSOA {
		zone := dns.CanonicalName(h.Name)
		if r.file.Zone != "" && r.file.Zone != zone {
			r.addFault("the zone has a second SOA record, at %s", h.Name)
			return
		}
		r.file.Zone = zone
	}
	r.add(rr)
}

// singleRecord is a record of a type that a name can have only once: its data and position.
type singleRecord struct{ data, position string }

// hasOther reports whether a name already has a different record of a type that it can have only once (RFC 1034 section 3.6.2, RFC 6672
// section 2.4). It records that as a fault.
func (r *zoneFileReader) hasOther(rr dns.RR, set string) bool {
	h := rr.Header()
	switch h.Rrtype {
	case dns.TypeSOA, dns.TypeCNAME, dns.TypeDNAME:
	default:
		return false
	}
	data := strings.ToLower(strings.TrimPrefix(rr.String(), h.String()))
	first, there := r.single[set]
	if !there {
		r.single[set] = singleRecord{data, r.position()}
	}
	if !there || first.data == data {
		return false
	}
	r.addFault("%s %s: the name has another record of this type in %s; remove one of them", h.Name, dns.Type(h.Rrtype), first.position)
	return true
}

// add adds a record. Among consecutive records of one owner, the first of a type sets the TTL. If an RRset continues in another place, the
// TTL there becomes that of the whole RRset, as in BIND.
func (r *zoneFileReader) add(rr dns.RR) {
	h := rr.Header()
	kind := uint32(h.Rrtype)
	if signature, is := rr.(*dns.RRSIG); is {
		kind |= uint32(signature.TypeCovered) << 16
	}
	owner := dns.CanonicalName(h.Name)
	if r.run != h.Name {
		r.run, r.runTTLs = h.Name, map[uint32]uint32{}
	}
	set := setOf(owner, kind)
	if r.hasOther(rr, set) {
		return
	}
	first, together := r.runTTLs[kind]
	before, known := r.ttls[set]
	switch {
	case together && first != h.Ttl:
		r.addNote("%s %s: the time to live %d becomes %d, as in the previous record (RFC 2181 section 5.2)", h.Name, dns.Type(h.Rrtype), h.Ttl,
			first)
	case !together && known && before != h.Ttl:
		r.addNote("%s %s: the time to live of the previous records becomes %d (RFC 2181 section 5.2)", h.Name, dns.Type(h.Rrtype), h.Ttl)
	}
	if !together {
		first = h.Ttl
		r.runTTLs[kind], r.ttls[set] = first, first
	}
	r.lastTTL = &first
	r.file.Records, r.file.Places, r.sets = append(r.file.Records, rr), append(r.file.Places, r.position()), append(r.sets, set)
}

// setOf returns the key of an RRset.
func setOf(owner string, kind uint32) string {
	return strconv.FormatUint(uint64(kind), 36) + " " + owner
}

// parse parses the data of a record.
func (r *zoneFileReader) parse(owner, kind string, data []string) (dns.RR, error) {
	origin := r.origin
	if origin == "" {
		origin = "."
	}
	return newRecord(octetsEscaped(owner), origin, 0, kind, strings.Join(data, " "))
}

// normalizeRecord packs and unpacks a record, so that the names in it have the form that the DNS library writes.
func normalizeRecord(rr dns.RR) (dns.RR, error) {
	b := make([]byte, dns.Len(rr)+16)
	n, err := dns.PackRR(rr, b, 0, nil, false)
	if err != nil && strings.Contains(err.Error(), "overflow") {
		b = make([]byte, dns.MaxMsgSize)
		n, err = dns.PackRR(rr, b, 0, nil, false)
	}
	if err == nil {
		rr, _, err = dns.UnpackRR(b[:n], 0)
	}
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "dns: "))
	}
	return rr, nil
}

// octetsEscaped escapes the octets of a text that are not ASCII. Names in zone files are octets, not Unicode.
func octetsEscaped(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if text[i] >= 0x80 {
			fmt.Fprintf(&b, "\\%03d", text[i])
		} else {
			b.WriteByte(text[i])
		}
	}
	return b.String()
}
