package dhcp

import (
	"errors"
	"fmt"

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

// markReserved makes the leases of addresses that became reserved those of reserved addresses, and others those of ranges. Usage then counts
// each address once, before the server reports the change at the next renewal. It reports whether it changed a lease.
func (f *leaseFollower) markReserved() (changed bool, err error) {
	counts := newLeaseCounts(f.tx)
	for _, one := range f.reserved {
		w := &leaseWriter{tx: f.tx, configuration: one.configuration}
		l, err := w.read(store.KeyAddr(one.low))
		if err != nil {
			return false, err
		}
		from, to := stateLeased, stateAllocated
		if one.is {
			from, to = to, from
		}
		if !l.there || l.state != from || l.prefix > 0 {
			continue
		}
		var body store.Object
		if err := body.Read([]byte(l.body)); err != nil {
			return false, fmt.Errorf("lease %d: %w", l.id, err)
		}
		body.Set("state", schema.AppendString(nil, to))
		if err := errors.Join(counts.add(l.server, l.parent, one.low, from, -1), counts.add(l.server, l.parent, one.low, to, 1),
			f.tx.Write("UPDATE dhcp_lease SET state = ?, body = ?, version = version + 1 WHERE id = ?", to, string(body.Text()),
				l.id)); err != nil {
			return false, err
		}
		changed = true
	}
	return changed, counts.write()
}
