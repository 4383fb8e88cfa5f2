// Package zonedata is the data of zones as name servers serve it: records in wire form, revisions of zones and of the content of a server,
// their differences, and the stream format. It has no side effects. Managers create the data, service points store it, and applications
// serve it.
package zonedata

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	dns "portolan/internal/base/dnsmsg"
)

// Record is a resource record in wire form (RFC 1035 section 4.1.3) without compression, with the owner in lower case. Two records are
// equal if their bytes are.
type Record []byte

// fixedSize is the size of the fields between the owner and the data, in octets: type, class, TTL, and the length of the data.
const fixedSize = 10

// NewRecord converts a record to wire form.
func NewRecord(rr dns.RR) (Record, error) {
	h := rr.Header()
	h.Name = dns.CanonicalName(h.Name)
	wire := make([]byte, dns.Len(rr))
	n, err := dns.PackRR(rr, wire, 0, nil, false)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", h.Name, dns.Type(h.Rrtype), err)
	}
	r := Record(wire[:n])
	if err := r.Check(); err != nil { // such as a name of more than 255 octets
		return nil, fmt.Errorf("%s %s: %w", h.Name, dns.Type(h.Rrtype), err)
	}
	return r, nil
}

// Check returns an error if the bytes are not a record.
func (r Record) Check() error {
	end := NameEnd(r, 0)
	if end < 0 || len(r) < end+fixedSize || len(r) != end+fixedSize+int(binary.BigEndian.Uint16(r[end+8:])) {
		return fmt.Errorf("%d bytes that are not a record", len(r))
	}
	return nil
}

// Owner returns the owner in wire form.
func (r Record) Owner() []byte { return r[:NameEnd(r, 0)] }

// Type returns the record type.
func (r Record) Type() uint16 { return binary.BigEndian.Uint16(r[NameEnd(r, 0):]) }

// TTL returns the time to live, in seconds.
func (r Record) TTL() uint32 { return binary.BigEndian.Uint32(r[NameEnd(r, 0)+4:]) }

// Data returns the record data.
func (r Record) Data() []byte { return r[NameEnd(r, 0)+fixedSize:] }

// RR returns the record for the DNS library. Data that the library cannot parse, such as a UID of one octet, is returned as octets (RFC
// 3597).
func (r Record) RR() (dns.RR, error) {
	rr, _, err := dns.UnpackRR(r, 0)
	if err == nil {
		return rr, nil
	}
	name, _, bad := dns.UnpackDomainName(r, 0)
	if bad != nil {
		return nil, err
	}
	return &dns.RFC3597{Hdr: dns.RR_Header{Name: name, Rrtype: r.Type(), Class: dns.ClassINET, Ttl: r.TTL(),
		Rdlength: uint16(len(r.Data()))}, Rdata: hex.EncodeToString(r.Data())}, nil //nolint:gosec // a record has no more
}

// NameEnd returns the offset after the uncompressed wire-form name that starts at from; -1 if the name is invalid.
func NameEnd(wire []byte, from int) int {
	for at := from; at < len(wire) && at-from < 255; {
		length := int(wire[at])
		if length == 0 {
			return at + 1
		}
		if length > 63 {
			return -1
		}
		at += 1 + length
	}
	return -1
}

// WireName returns a name, absolute or not, in wire form and lower case.
func WireName(name string) (string, error) {
	var buf [256]byte
	n, err := dns.PackDomainName(dns.CanonicalName(name), buf[:], 0, nil, false)
	if err != nil {
		return "", fmt.Errorf("%q is not a name: %w", name, err)
	}
	if n > 255 {
		return "", fmt.Errorf("%q is longer than 255 octets", name)
	}
	return string(buf[:n]), nil
}

// Key converts a name in wire form and lower case to bytes that sort in canonical order (RFC 4034 section 6.1). A name sorts before all
// names below it, and those before the next name.
func Key(owner []byte) []byte { return AppendKey(make([]byte, 0, len(owner)), owner) }

// AppendKey appends the result of Key to key.
func AppendKey(key, owner []byte) []byte {
	var starts [128]int
	labels := 0
	for at := 0; at < len(owner) && owner[at] != 0 && labels < len(starts); at += 1 + int(owner[at]) {
		starts[labels] = at
		labels++
	}
	for i := labels - 1; i >= 0; i-- {
		label := owner[starts[i]+1 : starts[i]+1+int(owner[starts[i]])]
		for _, c := range label {
			if c <= 1 { // 0 ends a label; 1 escapes a byte 0 or 1 in a label
				key = append(key, 1, c+1)
				continue
			}
			key = append(key, c)
		}
		key = append(key, 0)
	}
	return key
}

// Entry is a record with the key of its owner. It refers to its octets by their place in a Block, because the list of the records of a
// large zone takes much memory.
type Entry struct {
	octets       *[]byte
	offset, size uint32 // of the length of the key in two octets, the key and the record
}

// keyLength is the number of octets before the key of an entry.
const keyLength = 2

// NewEntry returns the entry of a record, in a block of its own.
func NewEntry(r Record) Entry {
	e, _ := NewBlock(entrySize(r)).Add(r)
	return e
}

// entrySize returns the maximum number of octets of the entry of a record. An escaped octet of a key takes two.
func entrySize(r Record) int { return keyLength + 2*NameEnd(r, 0) + len(r) }

// Key returns the key of the owner.
func (e Entry) Key() []byte {
	entry := (*e.octets)[e.offset : e.offset+e.size]
	end := keyLength + int(binary.BigEndian.Uint16(entry))
	return entry[keyLength:end:end]
}

// Record returns the record.
func (e Entry) Record() Record {
	entry := (*e.octets)[e.offset : e.offset+e.size : e.offset+e.size]
	return Record(entry[keyLength+int(binary.BigEndian.Uint16(entry)):])
}

// Block contains the octets of entries.
type Block struct{ octets *[]byte }

// NewBlock returns an empty block of at most 4 GiB.
func NewBlock(size int) Block {
	octets := make([]byte, 0, size)
	return Block{&octets}
}

// Add adds an entry. ok is false if the block may have no space for it.
func (b Block) Add(r Record) (e Entry, ok bool) {
	if b.octets == nil || cap(*b.octets)-len(*b.octets) < entrySize(r) {
		return e, false
	}
	all := *b.octets
	start := len(all)
	all = AppendKey(append(all, 0, 0), r.Owner())
	binary.BigEndian.PutUint16(all[start:], uint16(len(all)-start-keyLength)) //nolint:gosec // a name has at most 255 octets
	all = append(all, r...)
	*b.octets = all
	return Entry{b.octets, uint32(start), uint32(len(all) - start)}, true //nolint:gosec // within the block
}

// Compare compares entries by owner, then by type with the SOA first, then by bytes.
func (e Entry) Compare(o Entry) int {
	if c := bytes.Compare(e.Key(), o.Key()); c != 0 {
		return c
	}
	one, other := e.Record(), o.Record()
	a, b := one[NameEnd(one, 0):], other[NameEnd(other, 0):]
	if soa, second := isSOA(a), isSOA(b); soa != second {
		if soa {
			return -1
		}
		return 1
	}
	return bytes.Compare(a, b)
}

func isSOA(behind []byte) bool { return binary.BigEndian.Uint16(behind) == dns.TypeSOA }

// Less reports whether an entry sorts before another.
func (e Entry) Less(o Entry) bool { return e.Compare(o) < 0 }
