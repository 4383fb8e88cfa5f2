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

// ZoneFile is what a zone file says (RFC 1035 section 5).
type ZoneFile struct {
	// Zone is the name of its SOA or, where it has none, the origin: absolute, in lower case.
	Zone string
	// Records are in the order of the file, with the names in them absolute. All records of an RRset have one TTL.
	Records []dns.RR
	// Places are where the records stand: their files and lines.
	Places []string
	// Notes say what was read otherwise than it is written. Faults are the entries that are no records. Each begins with its file and line.
	Notes, Faults []string
}

// MaxGenerated is how many records the $GENERATE directives of a zone file may make in all.
const MaxGenerated = 1 << 20

// maxIncludes is how deep files may include each other.
const maxIncludes = 20

// maxTTL is the longest time to live (RFC 2181 section 8).
const maxTTL = 1<<31 - 1

// ReadZone reads a zone file, or the text of a transfer, as BIND does: $ORIGIN, $TTL, $GENERATE and $INCLUDE, owners that are left out,
// TTLs by RFC 2308 section 4 and, without $TTL, by RFC 1035. origin completes relative names; it may be empty where the file says its own.
// include opens the files that it includes; nil refuses those. An entry that is no record is a fault of it, and the rest is read. The error
// is set where the file as a whole cannot be read.
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
		return nil, errors.New("the file names no zone: there is no SOA in it")
	}
	return z, nil
}

// zoneFileReader is a zone file that is being read. The state is that of RFC 1035 section 5.1: included files have an origin and an owner
// of their own, and share the TTLs.
type zoneFileReader struct {
	include       func(name string) (io.ReadCloser, error)
	file          *ZoneFile
	origin, owner string
	// defaultTTL is that of $TTL, lastTTL that of the record before; nil before there is one.
	defaultTTL, lastTTL *uint32
	// ttls are those of the RRsets, by owner and type, run is the owner of the records that stand together, and runTTLs are theirs by type.
	ttls    map[string]uint32
	run     string
	runTTLs map[uint32]uint32
	// sets are the RRsets of the records; single are the records of types of which a name has one.
	sets             []string
	single           map[string]singleRecord
	depth, generated int
	// name is the file that is being read; empty for the first one. line is where the entry begins.
	name string
	line int
}

// at words where the reader is.
func (r *zoneFileReader) at() string {
	if r.name == "" {
		return fmt.Sprintf("line %d", r.line)
	}
	return fmt.Sprintf("%s line %d", r.name, r.line)
}

// maxFaults is how many faults and notes are worded; further ones are counted.
const maxFaults = 1000

func (r *zoneFileReader) fault(format string, args ...any) {
	r.file.Faults = append(r.file.Faults, r.at()+": "+fmt.Sprintf(format, args...))
}

func (r *zoneFileReader) note(format string, args ...any) {
	if len(r.file.Notes) < maxFaults {
		r.file.Notes = append(r.file.Notes, r.at()+": "+fmt.Sprintf(format, args...))
	}
}

// read reads a file to its end.
func (r *zoneFileReader) read(in io.Reader, name string) error {
	if r.depth++; r.depth > maxIncludes {
		return fmt.Errorf("%s: files include each other more than %d deep", r.at(), maxIncludes)
	}
	before, line := r.name, r.line
	r.name = name
	s := &entryScanner{in: bufio.NewReader(in), line: 1}
	if mark, err := s.in.Peek(len(byteOrderMark)); err == nil && string(mark) == byteOrderMark {
		_, _ = s.in.Discard(len(byteOrderMark))
	}
	for {
		e, err := s.next()
		r.line = e.line
		var open unclosed
		if errors.As(err, &open) {
			r.fault("%v", err)
			if !open.atEnd {
				continue
			}
			err = io.EOF
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", r.at(), err)
		}
		if err := r.entry(e); err != nil {
			return err
		}
	}
	r.depth--
	r.name, r.line = before, line
	return nil
}

// byteOrderMark begins files of some editors.
const byteOrderMark = "\xef\xbb\xbf"

// entry takes an entry: a directive or a record.
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
		} else if !absolute(r.owner) {
			if r.origin == "" {
				r.fault("%q is relative, and no origin is known", r.owner)
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
		r.fault("the record has no owner")
		return nil
	}
	r.record(r.owner, tokens)
	return nil
}

// absolute reports whether a name of a zone file ends with a dot that is no part of its last label.
func absolute(name string) bool {
	return strings.HasSuffix(name, ".") && !escaped(name, len(name)-1)
}

// unquotedName gives a name that stands between quotation marks without them, its octets escaped where they have to be.
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
		r.fault("%s needs an argument", what)
		return nil
	}
	switch what {
	case "$ORIGIN":
		r.origin = r.complete(arguments[0])
	case "$TTL":
		ttl, ok := r.ttl(arguments[0])
		if !ok {
			r.fault("%s: %q is not a time to live", what, arguments[0])
			return nil
		}
		r.defaultTTL = &ttl
	case "$INCLUDE":
		return r.includes(arguments)
	case "$GENERATE":
		return r.generate(arguments)
	case "$DATE": // when the file was written, by BIND
	default:
		r.fault("%s is not a directive of zone files", what)
	}
	return nil
}

// complete gives a name absolute.
func (r *zoneFileReader) complete(name string) string {
	switch {
	case name == "@":
		return r.origin
	case absolute(name):
		return name
	case r.origin == ".":
		return name + "."
	}
	return Join(name, r.origin)
}

func (r *zoneFileReader) includes(arguments []string) error {
	name := strings.Trim(arguments[0], `"`)
	if r.include == nil {
		return fmt.Errorf("%s: $INCLUDE %s: files are included only where the zone is read from a file", r.at(), name)
	}
	f, err := r.include(name)
	if err != nil {
		r.fault("$INCLUDE: %v", err)
		return nil //nolint:nilerr // which is a fault of the file
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

// ttl reads a time to live: seconds, or numbers with the units of BIND. One above 2^31-1 counts as 0 (RFC 2181 section 8).
func (r *zoneFileReader) ttl(text string) (ttl uint32, ok bool) {
	seconds, ok := durationOf(text)
	if !ok {
		return 0, false
	}
	if seconds > maxTTL {
		r.note("the time to live %s is above %d, and counts as 0 (RFC 2181 section 8)", text, maxTTL)
		return 0, true
	}
	return uint32(seconds), true
}

// durationOf reads seconds, or numbers with units: 1W2D3H4M5S. It gives false for what is neither, or more than 2^32-1.
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

// withoutZeros gives a type or class that is written by its number, such as TYPE016, without zeros in front of the number; others as they
// are.
func withoutZeros(prefix, text string) string {
	rest, is := strings.CutPrefix(text, prefix)
	if n, err := strconv.ParseUint(rest, 10, 16); is && err == nil {
		return prefix + strconv.FormatUint(n, 10)
	}
	return text
}

// record takes the record of an owner: an optional TTL and class in either order, the type, and the data.
func (r *zoneFileReader) record(owner string, tokens []string) {
	var given *uint32
	class := false
	for len(tokens) > 0 {
		if upper := withoutZeros("CLASS", strings.ToUpper(tokens[0])); !class && (upper == "IN" || upper == "CLASS1") {
			class, tokens = true, tokens[1:]
			continue
		} else if _, is := dns.StringToClass[upper]; !class && is && upper != "ANY" && upper != "NONE" {
			r.fault("%s is of the class %s: zones are of the class IN", owner, upper)
			return
		}
		ttl, ok := r.ttl(tokens[0])
		if given != nil || !ok {
			break
		}
		given, tokens = &ttl, tokens[1:]
	}
	if len(tokens) == 0 {
		r.fault("%s has no type", owner)
		return
	}
	kind, data := withoutZeros("TYPE", strings.ToUpper(tokens[0])), tokens[1:]
	rr, err := r.parse(owner, kind, data)
	if err != nil {
		r.fault("%s %s: %v", owner, kind, err)
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
		r.fault("%s %s has no time to live: there is neither a $TTL nor a record with one before it", owner, kind)
		return
	}
	if isSOA {
		zone := dns.CanonicalName(h.Name)
		if r.file.Zone != "" && r.file.Zone != zone {
			r.fault("there is a second SOA, of %s", h.Name)
			return
		}
		r.file.Zone = zone
	}
	r.add(rr)
}

// singleRecord is a record of a type of which a name has one: its data, and where it stands.
type singleRecord struct{ data, at string }

// another reports whether a name has another record of a type of which it has one (RFC 1034 section 3.6.2, RFC 6672 section 2.4); that is a
// fault.
func (r *zoneFileReader) another(rr dns.RR, set string) bool {
	h := rr.Header()
	switch h.Rrtype {
	case dns.TypeSOA, dns.TypeCNAME, dns.TypeDNAME:
	default:
		return false
	}
	data := strings.ToLower(strings.TrimPrefix(rr.String(), h.String()))
	first, there := r.single[set]
	if !there {
		r.single[set] = singleRecord{data, r.at()}
	}
	if !there || first.data == data {
		return false
	}
	r.fault("%s %s: the name has another one in %s: remove one of the two", h.Name, dns.Type(h.Rrtype), first.at)
	return true
}

// add takes a record. Where records of one owner stand together, the first one of a type says the TTL; where an RRset goes on elsewhere,
// the TTL there becomes that of all of it, as BIND has it.
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
	if r.another(rr, set) {
		return
	}
	first, together := r.runTTLs[kind]
	before, known := r.ttls[set]
	switch {
	case together && first != h.Ttl:
		r.note("%s %s: the time to live %d becomes %d, that of the record before (RFC 2181 section 5.2)", h.Name, dns.Type(h.Rrtype), h.Ttl,
			first)
	case !together && known && before != h.Ttl:
		r.note("%s %s: the time to live of the records before becomes %d (RFC 2181 section 5.2)", h.Name, dns.Type(h.Rrtype), h.Ttl)
	}
	if !together {
		first = h.Ttl
		r.runTTLs[kind], r.ttls[set] = first, first
	}
	r.lastTTL = &first
	r.file.Records, r.file.Places, r.sets = append(r.file.Records, rr), append(r.file.Places, r.at()), append(r.sets, set)
}

// setOf names an RRset.
func setOf(owner string, kind uint32) string {
	return strconv.FormatUint(uint64(kind), 36) + " " + owner
}

// parse reads the data of a record.
func (r *zoneFileReader) parse(owner, kind string, data []string) (dns.RR, error) {
	origin := r.origin
	if origin == "" {
		origin = "."
	}
	return newRecord(octetsEscaped(owner), origin, 0, kind, strings.Join(data, " "))
}

// normal gives a record as it is read from the wire, with the names in it in the one form that the DNS library writes.
func normal(rr dns.RR) (dns.RR, error) {
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

// octetsEscaped escapes the octets of a text that are not ASCII: names in zone files are octets, and not Unicode.
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
