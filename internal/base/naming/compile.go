package naming

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"

	dns "portolan/internal/base/dnsmsg"
)

// RRset contains the records of one name and one type (RFC 2181 section 5), without duplicates. They all have the lowest of their TTLs.
type RRset struct {
	Name string // absolute, with its final dot, in lower case
	Type uint16
	Data []dns.RR
}

// Zone is the data of a zone: its RRsets in canonical order (RFC 4034 section 6.1), the SOA first.
type Zone struct {
	Name string // absolute, with its final dot, in lower case
	Sets []RRset
}

// Compile creates a zone from records in any order. It returns an error for records outside of the zone, for an alias with other data (RFC
// 2181 section 10.1), and for a zone without exactly one SOA at its apex.
func Compile(zone string, records []dns.RR) (*Zone, error) {
	apex := dns.CanonicalName(zone)
	entries := make([]entry, len(records))
	top := canonicalKey(apex)
	for i, rr := range records {
		h := rr.Header()
		if !canonical(h.Name) {
			h.Name = dns.CanonicalName(h.Name)
		}
		key, ok := strings.CutPrefix(canonicalKey(h.Name), top)
		if !ok || key != "" && top != "" && key[0] != 0 {
			return nil, fmt.Errorf("%s is not in the zone %s", h.Name, apex)
		}
		entries[i] = entry{key: key, rr: rr, order: order(rr), place: i}
		if key != "" {
			var front [8]byte
			copy(front[:], key[min(1, len(top)):])
			entries[i].namePrefix = binary.BigEndian.Uint64(front[:])
		}
	}
	slices.SortFunc(entries, entry.compare)
	z := &Zone{Name: apex}
	for from := 0; from < len(entries); {
		to := from + 1
		h := entries[from].rr.Header()
		for to < len(entries) && entries[to].key == entries[from].key && entries[to].rr.Header().Rrtype == h.Rrtype {
			to++
		}
		set := RRset{Name: h.Name, Type: h.Rrtype}
		for _, e := range entries[from:to] {
			set.Data = append(set.Data, e.rr)
		}
		set.Data = Unify(set.Data)
		z.Sets = append(z.Sets, set)
		from = to
	}
	return z, z.check()
}

// Unify returns the records of a set, without duplicates and with the lowest TTL of all (RFC 2181 section 5.2). Of duplicates that differ
// in the case of letters, it keeps the one with the lowest text, whatever their order. It changes the records.
func Unify(set []dns.RR) (unique []dns.RR) {
	ttl := set[0].Header().Ttl
	for _, rr := range set {
		ttl = min(ttl, rr.Header().Ttl)
	}
	for _, rr := range set {
		rr.Header().Ttl = ttl
		i := slices.IndexFunc(unique, func(known dns.RR) bool { return dns.IsDuplicate(known, rr) })
		switch {
		case i < 0:
			unique = append(unique, rr)
		case rr.String() < unique[i].String():
			unique[i] = rr
		}
	}
	return unique
}

// entry is a record with its sort key. namePrefix, the first bytes of the name, decides most comparisons.
type entry struct {
	namePrefix uint64
	key        string // name below the zone, in a form that sorts in canonical order
	order      uint16
	place      int // original position; keeps the order of records with the same name and type
	rr         dns.RR
}

func (e entry) compare(o entry) int {
	if e.namePrefix != o.namePrefix {
		return cmp.Compare(e.namePrefix, o.namePrefix)
	}
	if c := strings.Compare(e.key, o.key); c != 0 {
		return c
	}
	if e.order != o.order {
		return cmp.Compare(e.order, o.order)
	}
	return cmp.Compare(e.place, o.place)
}

// canonical reports whether a name is absolute and in lower case.
func canonical(name string) bool {
	for i := range len(name) {
		if c := name[i]; c >= 'A' && c <= 'Z' || c >= 0x80 || c == '\\' {
			return false
		}
	}
	return strings.HasSuffix(name, ".")
}

// order returns the sort order of the type; the SOA is first.
func order(rr dns.RR) uint16 {
	if t := rr.Header().Rrtype; t != dns.TypeSOA {
		return t
	}
	return 0
}

func (z *Zone) check() error {
	if len(z.Sets) == 0 || z.Sets[0].Type != dns.TypeSOA || z.Sets[0].Name != z.Name || len(z.Sets[0].Data) != 1 {
		return fmt.Errorf("the zone %s must have exactly one SOA record at its apex", z.Name)
	}
	for i := range z.Sets {
		s := &z.Sets[i]
		if s.Type != dns.TypeCNAME {
			continue
		}
		beside := i > 0 && z.Sets[i-1].Name == s.Name || i+1 < len(z.Sets) && z.Sets[i+1].Name == s.Name
		if beside || len(s.Data) > 1 {
			return fmt.Errorf("%s has a CNAME record and other records", s.Name)
		}
	}
	return nil
}

// canonicalKey converts an absolute name in lower case to text that sorts in canonical order (RFC 4034 section 6.1).
func canonicalKey(name string) string {
	if strings.IndexByte(name, '\\') >= 0 {
		return escapedKey(Clean(name))
	}
	name = strings.TrimSuffix(name, ".")
	if name == "" {
		return ""
	}
	b := make([]byte, 0, len(name))
	for end := len(name); ; {
		at := strings.LastIndexByte(name[:end], '.')
		b = append(b, name[at+1:end]...)
		if at < 0 {
			return string(b)
		}
		b = append(b, 0)
		end = at
	}
}

// escapedKey is canonicalKey for a name with escapes. An octet 0 or 1 is prefixed with an octet 1, so that it sorts after the end of a
// label.
func escapedKey(name string) string {
	labels := Labels(name)
	b := make([]byte, 0, len(name))
	for i := len(labels) - 1; i >= 0; i-- {
		octets, err := octetsOf(labels[i])
		if err != nil { // records have valid names: they were parsed or created from names before
			octets = labels[i]
		}
		for j := range len(octets) {
			if octets[j] < 2 {
				b = append(b, 1)
			}
			b = append(b, octets[j])
		}
		if i > 0 {
			b = append(b, 0)
		}
	}
	return string(b)
}

// Write writes the zone as a zone file with absolute names (RFC 1035 section 5).
func (z *Zone) Write(w io.Writer) error {
	for _, s := range z.Sets {
		for _, rr := range s.Data {
			if _, ok := rr.(*dns.NULL); ok { // the library has no text form for it
				unknown := &dns.RFC3597{}
				if err := unknown.ToRFC3597(rr); err != nil {
					return err
				}
				rr = unknown
			}
			line := rr.String() + "\n"
			if line[0] == '$' { // an owner, not a directive
				line = `\` + line
			}
			if _, err := io.WriteString(w, line); err != nil {
				return err
			}
		}
	}
	return nil
}
