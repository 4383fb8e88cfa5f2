package dhcpdata

import (
	"fmt"
	"slices"
	"strings"

	"portolan/internal/wire/zonedata"
)

// Hash identifies a set of records. It does not depend on their order.
type Hash = zonedata.Hash

// Revision identifies the content of a server.
type Revision = zonedata.Revision

// Total returns the hash of a server's content: the content hash of each unit by its id.
func Total(units map[string]string) Hash { return zonedata.Total(nil, units) }

// EmptyRevision returns the revision of a server without content.
func EmptyRevision() string { return Revision{Hash: Total(nil)}.String() }

// HashOf returns the hash of records.
func HashOf(records []Record) (h Hash) {
	for _, r := range records {
		h.Add(zonedata.Record(r))
	}
	return h
}

// Sort sorts records and removes duplicates.
func Sort(records []Record) []Record {
	slices.SortFunc(records, compareRecords)
	return slices.CompactFunc(records, func(a, b Record) bool { return string(a) == string(b) })
}

func compareRecords(a, b Record) int { return strings.Compare(string(a), string(b)) }

// Diff returns the records to remove from before, and those to add to it, so that it equals after. Both must be sorted by Sort.
func Diff(before, after []Record) (removed, added []Record) {
	for len(before) > 0 && len(after) > 0 {
		switch c := compareRecords(before[0], after[0]); {
		case c < 0:
			removed, before = append(removed, before[0]), before[1:]
		case c > 0:
			added, after = append(added, after[0]), after[1:]
		default:
			before, after = before[1:], after[1:]
		}
	}
	return append(removed, before...), append(added, after...)
}

// Unit is a set of records with its hash. It is not changed after it was created.
type Unit struct {
	ID      string
	Hash    string
	Records []Record
}

// NewUnit returns a unit. It sorts the records.
func NewUnit(id string, records []Record) (*Unit, error) {
	if _, _, err := parseUnit(id); err != nil {
		return nil, err
	}
	records = Sort(records)
	return &Unit{ID: id, Hash: HashOf(records).String(), Records: records}, nil
}

// EncodeUnit returns the unit of items.
func EncodeUnit(id string, items ...Item) (*Unit, error) {
	records := make([]Record, 0, len(items))
	for _, x := range items {
		r, err := Encode(x)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
		records = append(records, r)
	}
	return NewUnit(id, records)
}

// Units is the content of a server, by the ids of its units.
type Units map[string]*Unit

// Hash returns the hash of the content.
func (u Units) Hash() Hash {
	hashes := make(map[string]string, len(u))
	for id, one := range u {
		hashes[id] = one.Hash
	}
	return Total(hashes)
}
