package ipam

import (
	"maps"
	"net/netip"
	"slices"

	"portolan/internal/engine/store"
)

// leasesName is the name of the extension with the leases that DHCP servers report. Its State is a leases.
const leasesName = "leases"

// leases are the leases of DHCP servers, as far as networks, addresses and ranges show them.
type leases interface {
	// CountRanges returns the numbers of leases by state of DHCP ranges, by id.
	CountRanges(tx *store.Tx, ids []int64) (map[int64]map[string]int64, error)
	// CountNetworks returns the numbers of leases by state of all networks, by id. It counts rows, for a verification or a copy.
	CountNetworks(tx *store.Tx) (map[int64]map[string]int64, error)
	// Trends returns how the numbers of leases of DHCP ranges have changed; a range without a history is missing.
	Trends(tx *store.Tx, ids []int64) (map[int64]Trend, error)
	// Client returns the client that leases an address now: its hardware address and its client identifier or DUID, as an address names
	// them. Both are empty if the address has no lease.
	Client(tx *store.Tx, configuration int64, a netip.Addr) (hardware, identifier string, err error)
	// Complete adds the values of their leases to whole bodies of reserved addresses.
	Complete(tx *store.Tx, rows []*store.Resource) error
}

// Trend is the change of the number of leases of a range: the average per hour, over a number of hours.
type Trend struct{ PerHour, Hours float64 }

// leasesIn returns the leases of the database; nil if it has none.
func leasesIn(tx *store.Tx) leases {
	if e := tx.Extension(leasesName); e != nil {
		if l, ok := e.State.(leases); ok {
			return l
		}
	}
	return nil
}

// The states of leases. A lease of a reserved address is leased, and the address counts as reserved. An address that is free was leased,
// and counts as unassigned.
const (
	allocated = "DHCP_ALLOCATED"
	abandoned = "DHCP_ABANDONED"
	leased    = "DHCP_LEASED"
)

// usedByLeases are the states of leases that count as usage. They are not states of stored addresses.
var usedByLeases = []string{allocated, abandoned}

// addLeases adds the leases in ranges to their usage. The keys of leases are the ids of the ranges.
func addLeases(rows []*store.Resource, leases map[int64]map[string]int64, usages []Usage) {
	for i, r := range rows {
		for _, state := range usedByLeases {
			if n := leases[r.ID][state]; n != 0 {
				usages[i][state] += n
			}
		}
	}
}

// leasesOfRanges returns the numbers of leases by state of DHCP ranges, by id.
func leasesOfRanges(tx *store.Tx, rows []*store.Resource) (map[int64]map[string]int64, error) {
	l := leasesIn(tx)
	if l == nil {
		return nil, nil //nolint:nilnil // a database without leases
	}
	ids := make([]int64, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	return l.CountRanges(tx, ids)
}

// withoutLeases returns the usage without leases: the number of stored addresses by state.
func (u Usage) withoutLeases() Usage {
	if u[allocated] == 0 && u[abandoned] == 0 {
		return u
	}
	own := maps.Clone(u)
	maps.DeleteFunc(own, func(state string, _ int64) bool { return slices.Contains(usedByLeases, state) })
	return own
}

// LeasesChanged updates the water levels of a network at the end of the transaction, after the leases in it have changed.
func LeasesChanged(tx *store.Tx, network int64) { markDirty(tx, network) }

// CountLeases adds n leases of a state to the usage of a network and of the blocks above it. Other states than those of usage have no
// effect.
func CountLeases(tx *store.Tx, network int64, state string, n int64) {
	if n != 0 && slices.Contains(usedByLeases, state) {
		usageDeltaOf(tx).add(network, state, n)
	}
}

// WriteLeases writes the usage that CountLeases has changed after the usage of the transaction was written.
func WriteLeases(tx *store.Tx) error { return usageDeltaOf(tx).write() }
