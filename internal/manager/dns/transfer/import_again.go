package transfer

import (
	"fmt"
	"hash/maphash"
	"iter"
	"net/netip"
	"slices"
	"strings"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dns"
	"portolan/internal/manager/ipam"
)

// zoneDifference is the difference between the records of a file and the existing zone.
type zoneDifference struct {
	// existing is the number of records that the zone already has. missing are the other records, without those at names that also have
	// records outside of the file.
	existing int
	missing  []wire.RR
	// names are the names whose records change, wanted contains all records for each of them.
	names  []string
	wanted map[string][]wire.RR
	// differences lists records that the file lacks, changes lists records with a different TTL in the file.
	differences, changes []string
	// addresses are the addresses of records that are deleted.
	addresses []netip.Addr
	// zoneExists reports whether the zone exists.
	zoneExists bool
}

// maxDifferences is the maximum number of listed differences. Further ones are only counted.
const maxDifferences = 100_000

// recordSum returns a hash of the name, type, TTL and data of a record.
func recordSum(seed maphash.Seed, rr wire.RR) uint64 { return maphash.String(seed, sameRecord(rr)) }

// compare returns the difference between the records of a file and the zone. If the zone does not exist, all records are missing.
func (i *zoneImport) compare(tx *store.Tx, a *resource.API, configuration, view, name string, records []wire.RR) (*zoneDifference, error) {
	d := &zoneDifference{missing: records, wanted: map[string][]wire.RR{}}
	v, err := dns.FindView(tx, configuration, view)
	if err != nil {
		return nil, err
	}
	zone, err := dns.FindZoneIn(tx, v, name)
	if err != nil || zone == nil {
		return d, err
	}
	seed, inFile := maphash.MakeSeed(), map[uint64]bool{} // true if the zone has the record
	for _, rr := range records {
		inFile[recordSum(seed, rr)] = false
	}
	z := &dns.ZoneReader{Tx: tx, API: a}
	if err := z.Read(zone, func(rr wire.RR) bool {
		sum := recordSum(seed, rr)
		if _, both := inFile[sum]; both {
			inFile[sum] = true
			return false
		}
		return true
	}); err != nil {
		return nil, err
	}
	for _, rr := range z.Records {
		at := wire.CanonicalName(rr.Header().Name)
		if _, known := d.wanted[at]; !known {
			d.names, d.wanted[at] = append(d.names, at), nil
		}
	}
	d.missing, d.zoneExists = nil, true
	for _, rr := range records {
		at := wire.CanonicalName(rr.Header().Name)
		_, differs := d.wanted[at]
		if differs {
			d.wanted[at] = append(d.wanted[at], rr)
		}
		if inFile[recordSum(seed, rr)] {
			d.existing++
		} else if !differs {
			d.missing = append(d.missing, rr)
		}
	}
	d.addOthers(z.Records, i.prune)
	return d, nil
}

// recordLine returns a record on one line.
func recordLine(rr wire.RR) string { return strings.Join(strings.Fields(rr.String()), " ") }

// addOthers lists the records that the file lacks, and keeps them unless the import prunes.
func (d *zoneDifference) addOthers(others []wire.RR, prune bool) {
	further := 0
	for _, rr := range others {
		at := wire.CanonicalName(rr.Header().Name)
		if same := slices.IndexFunc(d.wanted[at], func(one wire.RR) bool { return dataOf(one) == dataOf(rr) }); same >= 0 {
			if len(d.changes) < maxDifferences {
				d.changes = append(d.changes, fmt.Sprintf("%s: the time to live becomes %d", recordLine(rr), d.wanted[at][same].Header().Ttl))
			}
			continue
		}
		if !prune {
			d.wanted[at] = append(d.wanted[at], rr)
		} else if a, ok := addressOf(rr); ok && !slices.Contains(d.addresses, a) {
			d.addresses = append(d.addresses, a)
		}
		if len(d.differences) < maxDifferences {
			d.differences = append(d.differences, recordLine(rr))
		} else {
			further++
		}
	}
	if further > 0 {
		d.differences = append(d.differences, fmt.Sprintf("and %d more", further))
	}
}

// listUnnamed returns a line for each address of a deleted record that is still assigned but no longer has a record.
func (d *zoneDifference) listUnnamed(tx *store.Tx, configuration int64) (lines []string, err error) {
	for _, a := range d.addresses {
		network, err := ipam.NetworkOf(tx, configuration, a)
		if store.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		key := store.AddrKey(a)
		rows, err := tx.ListBelow(network.ID, "addresses", key, key)
		if err != nil {
			return nil, err
		}
		if len(rows) == 0 { // the address is not assigned
			continue
		}
		links, err := tx.Referring(rows[0].ID)
		if err != nil {
			return nil, err
		}
		if len(links) == 0 {
			lines = append(lines, fmt.Sprintf("the address %v no longer has a record but stays assigned: delete it if it is free "+
				"(portolan delete addresses/%v)", a, a))
		}
	}
	return lines, nil
}

// nameBatch is the number of existing names that one step changes.
const nameBatch = 200

// steps returns the steps of the import: first changes of existing names, then missing records.
func (i *zoneImport) steps(zone string, d *zoneDifference) iter.Seq[func() error] {
	return func(yield func(func() error) bool) {
		if d.zoneExists && i.authority != nil && !yield(func() error { return i.changeAuthority(i.authority) }) {
			return
		}
		for names := range slices.Chunk(d.names, nameBatch) {
			if !yield(func() error { return i.changeNames(names, d.wanted) }) {
				return
			}
		}
		for job := range i.jobs(zone, d.missing) {
			if !yield(job) {
				return
			}
		}
	}
}

// changeNames replaces the records of names by the wanted records.
func (i *zoneImport) changeNames(names []string, wanted map[string][]wire.RR) error {
	apex, err := dns.FQDN(i.zone.Key)
	if err != nil {
		return err
	}
	u := &updater{c: i.c, zone: i.zone, apex: wire.CanonicalName(apex), names: map[string]*updatedName{},
		dataCache: map[wire.RR]string{}, importer: i}
	for _, name := range names {
		n, err := u.loadName(name)
		if err != nil {
			return err
		}
		n.wanted = slices.DeleteFunc(slices.Clone(wanted[name]), func(rr wire.RR) bool { return rr.Header().Rrtype == wire.TypeSOA })
	}
	_, err = u.writeAll()
	return err
}
