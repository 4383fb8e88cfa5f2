package dhcp

import (
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"portolan/internal/engine/store"
)

// pages are the ends of leases, packed for 256 addresses each, so that a renewal costs a part of a row and no index. The changes are
// written by write.
type pages struct {
	tx            *store.Tx
	configuration int64
	all           map[string]*page
}

// page contains the ends of leases by the last octet of the address, in Unix seconds.
type page struct {
	first   []byte
	ends    map[byte]uint32
	existed bool
	changed bool
}

// entrySize is the size of an entry of a page: the last octet of an address, and the end.
const entrySize = 5

// infinite is the end of a lease without an end.
const infinite = 1<<32 - 1

// newPages returns the pages of a configuration.
func newPages(tx *store.Tx, configuration int64) *pages {
	return &pages{tx: tx, configuration: configuration, all: map[string]*page{}}
}

// pageOf returns the key of the first address of the page of an address, and the last octet of the address.
func pageOf(a netip.Addr) (first []byte, octet byte) {
	first = slices.Clone(store.AddrKey(a))
	octet = first[len(first)-1]
	first[len(first)-1] = 0
	return first, octet
}

// find returns the page of an address, and its last octet.
func (p *pages) find(a netip.Addr) (*page, byte, error) {
	first, octet := pageOf(a)
	if one := p.all[string(first)]; one != nil {
		return one, octet, nil
	}
	one := &page{first: first, ends: map[byte]uint32{}}
	var packed []byte
	err := p.tx.QueryRow("SELECT ends FROM dhcp_lease_page WHERE configuration = ? AND first = ?", p.configuration, first).Scan(&packed)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, 0, err
	}
	if one.existed = err == nil; len(packed)%entrySize != 0 {
		return nil, 0, fmt.Errorf("the page of %s has %d octets", a, len(packed))
	}
	for entry := range slices.Chunk(packed, entrySize) {
		one.ends[entry[0]] = binary.BigEndian.Uint32(entry[1:])
	}
	p.all[string(first)] = one
	return one, octet, nil
}

// set stores the end of the lease of an address.
func (p *pages) set(a netip.Addr, end time.Time) error {
	one, octet, err := p.find(a)
	if err != nil {
		return err
	}
	seconds := uint32(min(max(0, end.Unix()), infinite)) //nolint:gosec // within the bounds
	if had, there := one.ends[octet]; !there || had != seconds {
		one.ends[octet], one.changed = seconds, true
	}
	return nil
}

// clear removes the end of the lease of an address.
func (p *pages) clear(a netip.Addr) error {
	one, octet, err := p.find(a)
	if err != nil {
		return err
	}
	if _, there := one.ends[octet]; there {
		delete(one.ends, octet)
		one.changed = true
	}
	return nil
}

// end returns the end of the lease of an address; the zero time if it has none, or is infinite.
func (p *pages) end(a netip.Addr) (time.Time, error) {
	one, octet, err := p.find(a)
	if err != nil {
		return time.Time{}, err
	}
	seconds, there := one.ends[octet]
	if !there || seconds == infinite {
		return time.Time{}, nil
	}
	return time.Unix(int64(seconds), 0).UTC(), nil
}

// write stores the changed pages, in the order of their addresses, so that transactions do not deadlock.
func (p *pages) write() error {
	keys := make([]string, 0, len(p.all))
	for key, one := range p.all {
		if one.changed {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		one := p.all[key]
		packed, earliest, latest := one.pack()
		var err error
		switch {
		case len(packed) == 0:
			err = p.tx.Write("DELETE FROM dhcp_lease_page WHERE configuration = ? AND first = ?", p.configuration, one.first)
		case one.existed:
			err = p.tx.Write("UPDATE dhcp_lease_page SET ends = ?, earliest = ?, latest = ? WHERE configuration = ? AND first = ?", packed,
				earliest, latest, p.configuration, one.first)
		default:
			err = p.tx.Write("INSERT INTO dhcp_lease_page (configuration, first, ends, earliest, latest) VALUES (?, ?, ?, ?, ?)", p.configuration,
				one.first, packed, earliest, latest)
		}
		if err != nil {
			return err
		}
		one.changed, one.existed = false, len(packed) > 0
	}
	return nil
}

// pack returns the entries of the page in the order of the addresses, and its first and last end; nil if no lease of it has an end.
func (one *page) pack() (packed []byte, earliest, latest any) {
	packed = make([]byte, 0, len(one.ends)*entrySize)
	first, last := uint32(infinite), uint32(0)
	for octet := range 256 {
		seconds, there := one.ends[byte(octet)]
		if !there {
			continue
		}
		packed = binary.BigEndian.AppendUint32(append(packed, byte(octet)), seconds)
		if seconds != infinite {
			first, last = min(first, seconds), max(last, seconds)
		}
	}
	if first == infinite {
		return packed, nil, nil
	}
	return packed, packEnd(int64(first)), packEnd(int64(last))
}
