package dhcp

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// reservedAddress is an address that a transaction reserves for a DHCP client, or whose reservation it ends.
type reservedAddress struct {
	configuration int64
	low           []byte
	is            bool
}

// isReserved reports whether a row is an address that is reserved for a DHCP client.
func isReserved(row *store.Resource) (bool, error) {
	if row == nil {
		return false, nil
	}
	var body store.Object
	if err := body.Read(row.Body); err != nil {
		return false, fmt.Errorf("address %d: %w", row.ID, err)
	}
	return textOf(&body, "state") == "DHCP_RESERVED", nil
}

// follow records an address that becomes reserved, or is not reserved any more.
func (f *leaseFollower) follow(before, after *store.Resource) error {
	was, err := isReserved(before)
	is, wrong := isReserved(after)
	if err != nil || wrong != nil || was == is {
		return errors.Join(err, wrong)
	}
	row := after
	if row == nil {
		row = before
	}
	f.reserved = append(f.reserved, reservedAddress{row.Configuration, row.Low, is})
	return nil
}

// markReserved makes the leases of addresses that became reserved those of reserved addresses, and others those of ranges. Usage then
// counts each address once, before the server reports the change at the next renewal. It reports whether it changed a lease.
func (f *leaseFollower) markReserved() (changed bool, err error) {
	leases, err := f.leasesOfReserved()
	if err != nil || len(leases) == 0 {
		return false, err
	}
	counts := newLeaseCounts(f.tx)
	for _, one := range f.reserved {
		l := leases[addressKey{one.configuration, string(one.low)}]
		from, to := stateLeased, stateAllocated
		if one.is {
			from, to = to, from
		}
		if l == nil || l.state != from || l.prefix > 0 {
			continue
		}
		var body store.Object
		if err := body.Read([]byte(l.body)); err != nil {
			return false, fmt.Errorf("lease %d: %w", l.id, err)
		}
		body.Set("state", schema.AppendString(nil, to))
		l.state, l.body = to, string(body.Text())
		if err := errors.Join(counts.add(l.server, l.parent, one.low, from, -1), counts.add(l.server, l.parent, one.low, to, 1),
			f.tx.Write("UPDATE dhcp_lease SET state = ?, body = ?, version = version + 1 WHERE id = ?", to, l.body, l.id)); err != nil {
			return false, err
		}
		changed = true
	}
	return changed, counts.write()
}

// addressKey identifies an address in a configuration.
type addressKey struct {
	configuration int64
	low           string
}

// readAtOnce is the maximum number of addresses whose leases one query reads.
const readAtOnce = 100

// leasesOfReserved returns the leases of the addresses that become reserved, or are not reserved any more.
func (f *leaseFollower) leasesOfReserved() (map[addressKey]*storedLease, error) {
	keys := map[int64][]any{}
	for _, one := range f.reserved {
		keys[one.configuration] = append(keys[one.configuration], one.low)
	}
	leases := map[addressKey]*storedLease{}
	for configuration, all := range keys {
		for some := range slices.Chunk(all, readAtOnce) {
			size := 1
			for size < len(some) { // few different statements
				size *= 10
			}
			args := append([]any{configuration}, some...)
			for len(args) <= size {
				args = append(args, some[0])
			}
			if err := f.tx.Each(func(scan func(...any) error) error {
				var l storedLease
				var low []byte
				err := l.scan(scan, &low)
				leases[addressKey{configuration, string(low)}] = &l
				return err
			}, "SELECT "+leaseColumns+" FROM dhcp_lease WHERE configuration = ? AND low IN (?"+strings.Repeat(", ?", size-1)+")",
				args...); err != nil {
				return nil, err
			}
		}
	}
	return leases, nil
}
