package ipam

import (
	"portolan/internal/engine/store"
)

// leasesName is the name of the extension with the leases that DHCP servers report. Its State is a leases.
const leasesName = "leases"

// leases are the leases of DHCP servers, as far as addresses and ranges show them.
type leases interface {
	// CountStates returns the numbers of leases by state, of the addresses from low to high in a network. Leases of reserved addresses are
	// not counted.
	CountStates(tx *store.Tx, network int64, low, high []byte) (map[string]int64, error)
	// Complete adds the values of their leases to whole bodies of reserved addresses.
	Complete(tx *store.Tx, rows []*store.Resource) error
}

// leasesIn returns the leases of the database; nil if it has none.
func leasesIn(tx *store.Tx) leases {
	if e := tx.Extension(leasesName); e != nil {
		if l, ok := e.State.(leases); ok {
			return l
		}
	}
	return nil
}

// free is the state of an address that was leased and is not any more. Such an address counts as unassigned.
const free = "DHCP_FREE"

// addLeases adds the leases in ranges to their usage.
func addLeases(tx *store.Tx, spans []store.Span, usages []Usage) error {
	l := leasesIn(tx)
	if l == nil {
		return nil
	}
	for i := range usages {
		states, err := l.CountStates(tx, spans[i].Parent, spans[i].Low, spans[i].High)
		if err != nil {
			return err
		}
		for state, n := range states {
			if state != free {
				usages[i][state] += n
			}
		}
	}
	return nil
}

// LeasesChanged updates the water levels of a network at the end of the transaction, after the leases in it have changed.
func LeasesChanged(tx *store.Tx, network int64) { markDirty(tx, network) }
