package dhcp

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"portolan/internal/base/space"
	"portolan/internal/engine/store"
	"portolan/internal/manager/ipam"
)

// countKey is a number of leases: the id of a DHCP range or of a server, and the state of the leases.
type countKey struct {
	container int64
	state     string
}

// leaseCounts collects the changes of the numbers of leases in a transaction, so that no request counts leases. It also changes the usage
// of networks.
type leaseCounts struct {
	tx    *store.Tx
	delta map[countKey]int64
	// ranges caches the DHCP ranges of networks, in the order of their addresses.
	ranges map[int64][]*store.Resource
}

func newLeaseCounts(tx *store.Tx) *leaseCounts {
	return &leaseCounts{tx: tx, delta: map[countKey]int64{}, ranges: map[int64][]*store.Resource{}}
}

// add counts n leases of a state of an address, which a server has assigned in a network.
func (c *leaseCounts) add(server, network int64, address []byte, state string, n int64) error {
	ranges, known := c.ranges[network]
	if !known {
		if err := c.tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("ranges"), store.HasParent(network)}},
			func(r *store.Resource) error {
				ranges = append(ranges, r.Clone())
				return nil
			}); err != nil {
			return err
		}
		slices.SortFunc(ranges, func(a, b *store.Resource) int { return bytes.Compare(a.Low, b.Low) })
		c.ranges[network] = ranges
	}
	i, found := slices.BinarySearchFunc(ranges, address, func(r *store.Resource, a []byte) int { return bytes.Compare(r.Low, a) })
	if !found {
		i--
	}
	if i >= 0 && bytes.Compare(address, ranges[i].High) <= 0 {
		c.delta[countKey{ranges[i].ID, state}] += n
	}
	c.delta[countKey{server, state}] += n
	ipam.CountLeases(c.tx, network, state, n)
	return nil
}

// write stores the changes, in the order of their keys, so that transactions do not deadlock.
func (c *leaseCounts) write() error {
	keys := slices.SortedFunc(maps.Keys(c.delta), func(a, b countKey) int {
		return cmp.Or(cmp.Compare(a.container, b.container), cmp.Compare(a.state, b.state))
	})
	for _, key := range keys {
		n := c.delta[key]
		if n == 0 {
			continue
		}
		if err := c.tx.Write("INSERT INTO dhcp_lease_count (container, state, n) VALUES (?, ?, ?) ON CONFLICT (container, state) DO UPDATE "+
			"SET n = dhcp_lease_count.n + excluded.n", key.container, key.state, n); err != nil {
			return fmt.Errorf("count leases: %w", err)
		}
	}
	c.delta = map[countKey]int64{}
	return nil
}

// countsAtOnce is the number of containers that one statement reads.
const countsAtOnce = 500

// CountRanges returns the numbers of leases by state of DHCP ranges, by id.
func (*Leases) CountRanges(tx *store.Tx, ids []int64) (map[int64]map[string]int64, error) {
	all := make(map[int64]map[string]int64, len(ids))
	for part := range slices.Chunk(ids, countsAtOnce) {
		list, args := store.InList(part)
		if err := readCounts(tx, all, "SELECT container, state, n FROM dhcp_lease_count WHERE container IN "+list, args...); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// CountUsed returns the number of leased addresses of a DHCP range, without those of reservations.
func CountUsed(tx *store.Tx, id int64) (used uint64, err error) {
	all := map[int64]map[string]int64{}
	err = readCounts(tx, all, "SELECT container, state, n FROM dhcp_lease_count WHERE container = ?", id)
	return uint64(max(0, all[id][stateAllocated])), err //nolint:gosec // not negative
}

// CountNetworks returns the numbers of leases by state of all networks, by id. It counts rows.
func (*Leases) CountNetworks(tx *store.Tx) (map[int64]map[string]int64, error) {
	all := map[int64]map[string]int64{}
	return all, readCounts(tx, all, "SELECT parent, state, count(*) FROM dhcp_lease GROUP BY parent, state")
}

// CountServers returns the numbers of leases by state of all servers and DHCP ranges, by id.
func CountServers(tx *store.Tx) (map[int64]map[string]int64, error) {
	all := map[int64]map[string]int64{}
	return all, readCounts(tx, all, "SELECT c.container, c.state, c.n FROM dhcp_lease_count c JOIN resource r ON r.id = c.container "+
		"WHERE r.collection = 'servers'")
}

func readCounts(tx *store.Tx, into map[int64]map[string]int64, query string, args ...any) error {
	return tx.Each(func(scan func(...any) error) error {
		var id, n int64
		var state string
		if err := scan(&id, &state, &n); err != nil || n == 0 {
			return err
		}
		if into[id] == nil {
			into[id] = map[string]int64{}
		}
		into[id][state] = n
		return nil
	}, query, args...)
}

// selectCounts are the statements that count the leases of all servers and DHCP ranges.
var selectCounts = []string{"SELECT server, state, count(*) FROM dhcp_lease GROUP BY server, state",
	"SELECT r.id, l.state, count(*) FROM resource r JOIN dhcp_lease l ON l.parent = r.parent AND l.low >= r.low AND l.low <= r.high " +
		"WHERE r.collection = 'ranges' GROUP BY r.id, l.state"}

// recountLeases replaces the numbers of leases by newly counted ones.
func recountLeases(tx *store.Tx) error {
	if err := tx.Write("DELETE FROM dhcp_lease_count"); err != nil {
		return err
	}
	for _, one := range selectCounts {
		if err := tx.Write("INSERT INTO dhcp_lease_count (container, state, n) " + one); err != nil {
			return err
		}
	}
	return nil
}

// verifyCounts reports numbers of leases that differ from the leases.
func verifyCounts(tx *store.Tx, fault func(format string, args ...any)) error {
	stored, counted := map[int64]map[string]int64{}, map[int64]map[string]int64{}
	if err := readCounts(tx, stored, "SELECT container, state, n FROM dhcp_lease_count"); err != nil {
		return err
	}
	for _, one := range selectCounts {
		if err := readCounts(tx, counted, one); err != nil {
			return err
		}
	}
	for id, states := range counted {
		if !maps.Equal(states, stored[id]) {
			fault("the numbers of leases of resource %d are stored as %v and are %v", id, stored[id], states)
		}
	}
	for id, states := range stored {
		if counted[id] == nil {
			fault("the numbers of leases of resource %d are stored as %v, and it has none", id, states)
		}
	}
	return nil
}

// recountRange counts the leases of a DHCP range that was created, changed or deleted.
func recountRange(tx *store.Tx, id int64) error {
	if err := tx.Write("DELETE FROM dhcp_lease_count WHERE container = ?", id); err != nil {
		return err
	}
	return tx.Write("INSERT INTO dhcp_lease_count (container, state, n) SELECT r.id, l.state, count(*) FROM resource r JOIN dhcp_lease l "+
		"ON l.parent = r.parent AND l.low >= r.low AND l.low <= r.high WHERE r.id = ? AND r.collection = 'ranges' GROUP BY r.id, l.state", id)
}

// LeasedRange is a DHCP range with leases. Leased is the number of leased and abandoned addresses or prefixes, and Size that of all.
type LeasedRange struct {
	ID           int64
	Leased, Size float64
}

// Share returns the leased part of the range, from 0 to 1.
func (r LeasedRange) Share() float64 { return r.Leased / max(r.Size, 1) }

// LeasedRanges returns all DHCP ranges with leases.
func LeasedRanges(tx *store.Tx) (all []LeasedRange, err error) {
	var six []int64
	wholes := map[int64]space.Range{}
	err = tx.Each(func(scan func(...any) error) error {
		var r LeasedRange
		var low, high []byte
		var n int64
		if err := scan(&r.ID, &low, &high, &n); err != nil {
			return err
		}
		whole := space.Range{Low: store.KeyAddr(low), High: store.KeyAddr(high)}
		r.Leased = float64(n)
		r.Size, _ = new(big.Float).SetInt(whole.Size()).Float64()
		if all = append(all, r); whole.Low.Is6() {
			six = append(six, r.ID)
			wholes[r.ID] = whole
		}
		return nil
	}, "SELECT r.id, r.low, r.high, CAST(sum(c.n) AS BIGINT) FROM dhcp_lease_count c JOIN resource r ON r.id = c.container "+
		"WHERE r.collection = 'ranges' AND c.state IN ('DHCP_ALLOCATED', 'DHCP_ABANDONED') GROUP BY r.id, r.low, r.high HAVING sum(c.n) > 0")
	if err != nil {
		return nil, err
	}
	lengths, err := ipam.DelegatedLengths(tx, six)
	for i, r := range all {
		if length := lengths[r.ID]; length > 0 {
			all[i].Size, _ = new(big.Float).SetInt(ipam.CountPrefixes(wholes[r.ID].Low, wholes[r.ID].High, length)).Float64()
		}
	}
	return all, err
}
