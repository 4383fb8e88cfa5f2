package dhcp

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"time"

	"portolan/internal/base/space"
	"portolan/internal/engine/store"
	"portolan/internal/manager/ipam"
)

//go:embed migrations/*/*_leases.sql migrations/*/*_lease_counts.sql migrations/*/*_lease_imports.sql migrations/*/*_lease_filters.sql
var leaseMigrations embed.FS

// extensionName is the name of the extension with the tables of leases. Its State is a *Leases, which package ipam finds by this name.
const extensionName = "leases"

// Leases reads the leases of the extension, for packages that do not import this one.
type Leases struct {
	// Connection returns whether a service point exists, and is connected. Servers returns the servers that a network is deployed to. The
	// manager sets both; without them, all servers count as connected.
	Connection func(tx *store.Tx, servicePoint string) (there, connected bool, err error)
	Servers    func(tx *store.Tx, network int64) ([]int64, error)
}

// newLeaseExtension returns the extension that stores leases. They are not resources: they have no history and no change feed.
func newLeaseExtension() *store.Extension {
	columns := []string{"id", "collection", "type", "name", "parent", "configuration", "low", "high", "key", "version", "refs", "body"}
	return &store.Extension{Name: extensionName, State: &Leases{}, Migrations: leaseMigrations, Verify: verifyLeases,
		Rebuild: recountLeases,
		Follow:  func(tx *store.Tx) store.Follower { return &leaseFollower{tx: tx} },
		Tables: []store.Table{
			{Name: string(leaseRows), Columns: append(columns[:len(columns):len(columns)], "state", "server", "span", "snapshot"), Key: 1},
			{Name: "dhcp_lease_page", Columns: []string{"configuration", "first", "ends", "earliest", "latest"}, Key: 2},
			{Name: string(spanRows), Columns: append(columns[:len(columns):len(columns)], "start", "stop"), Key: 1},
			{Name: "dhcp_lease_count", Columns: []string{"container", "state", "n"}, Key: 2, Derived: "recomputed from the leases"},
			{Name: "dhcp_lease_import", Columns: []string{"id", "configuration", "low", "data"}, Key: 1},
			{Name: "dhcp_lease_history", Columns: []string{"container", "samples"}, Key: 1},
			{Name: "dhcp_lease_mark", Columns: []string{"server", "node", "journal", "sequence", "snapshot", "lost"}, Key: 2}}}
}

// leaseFollower moves leases to other networks when networks are split, merged, moved or resized, and deletes those without a network. It
// also counts the leases of DHCP ranges that change.
type leaseFollower struct {
	tx *store.Tx
	// networks are the networks that the transaction deletes, or whose spans it changes, with their former spans. configurations and
	// servers are deleted. ranges are the DHCP ranges that are created, changed or deleted.
	networks                        []store.Resource
	configurations, servers, ranges []int64
	// reserved are the addresses that become reserved, or are not reserved any more.
	reserved []reservedAddress
}

// Changed records changed networks and ranges, and deleted configurations and servers.
func (f *leaseFollower) Changed(before, after *store.Resource) error {
	r := before
	if r == nil {
		r = after
	}
	gone := after == nil
	switch r.Collection {
	case "networks":
		if before != nil && (gone || !bytes.Equal(before.Low, after.Low) || !bytes.Equal(before.High, after.High)) {
			f.networks = append(f.networks, store.Resource{ID: before.ID, Configuration: before.Configuration, Low: before.Low, High: before.High})
		}
	case "ranges":
		if before == nil || gone || before.Parent != after.Parent || !bytes.Equal(before.Low, after.Low) ||
			!bytes.Equal(before.High, after.High) {
			f.ranges = append(f.ranges, r.ID)
		}
	case "configurations":
		if gone {
			f.configurations = append(f.configurations, r.ID)
		}
	case "addresses":
		return f.follow(before, after)
	case "servers":
		if gone {
			f.servers = append(f.servers, r.ID)
		}
	}
	return nil
}

// BeforeCommit moves or deletes the leases of changed networks. Spans without a network are kept for administrators.
func (f *leaseFollower) BeforeCommit() error {
	some := false
	for _, network := range f.networks {
		leases, err := f.tx.Exists(store.Query{From: leaseRows, Where: store.HasParent(network.ID)})
		if err != nil {
			return err
		}
		spans, err := f.tx.Exists(store.Query{From: spanRows, Where: store.HasParent(network.ID)})
		if err != nil {
			return err
		}
		some = some || leases
		if !leases && !spans {
			continue
		}
		if err := f.moveLeases(network); err != nil {
			return fmt.Errorf("move the leases of network %d: %w", network.ID, err)
		}
	}
	marked, err := f.markReserved()
	if err != nil {
		return err
	}
	if some = some || marked; some {
		if err := ipam.WriteLeases(f.tx); err != nil {
			return err
		}
	}
	for _, id := range f.servers {
		if err := f.tx.Write("DELETE FROM dhcp_lease_mark WHERE server = ?", id); err != nil {
			return err
		}
	}
	for _, id := range f.configurations {
		if err := f.forget("configuration = ?", id); err != nil {
			return err
		}
		for _, table := range []string{"dhcp_lease_page", string(spanRows)} {
			if err := f.tx.Write("DELETE FROM "+table+" WHERE configuration = ?", id); err != nil {
				return err
			}
		}
	}
	for _, id := range f.ranges {
		if err := recountRange(f.tx, id); err != nil {
			return err
		}
	}
	return nil
}

// moveLeases moves the leases that a network does not contain any more to the networks that have their space now, and deletes the others.
func (f *leaseFollower) moveLeases(network store.Resource) error {
	var now []*store.Resource
	rest := "parent = ?"
	args := []any{network.ID}
	if err := f.tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("networks"),
		store.Compare{Field: configurationColumn, Op: "eq", Value: network.Configuration},
		store.Compare{Field: lowColumn, Op: "le", Value: network.High},
		store.Compare{Field: store.Field{Kind: store.ColumnSpan, Path: []string{"high"}}, Op: "ge", Value: network.Low}}},
		func(r *store.Resource) error {
			now = append(now, r.Clone())
			return nil
		}); err != nil {
		return err
	}
	head, err := f.tx.Head(network.ID)
	if err != nil && !store.IsNotFound(err) {
		return err
	}
	still := err == nil && head.Collection == "networks"
	for _, one := range now {
		if one.ID == network.ID {
			rest, args = "parent = ? AND (low < ? OR low > ?)", append(args, one.Low, one.High)
		}
	}
	count := func(id, n int64, where string, args ...any) error {
		return f.tx.Each(func(scan func(...any) error) error {
			var state string
			var some int64
			err := scan(&state, &some)
			ipam.CountLeases(f.tx, id, state, n*some)
			return err
		}, "SELECT state, count(*) FROM dhcp_lease WHERE "+where+" GROUP BY state", args...)
	}
	if still { // the usage of a deleted network is deleted with it
		if err := count(network.ID, -1, rest, args...); err != nil {
			return err
		}
	}
	for _, one := range now {
		if one.ID == network.ID {
			continue
		}
		const moved = "parent = ? AND low >= ? AND low <= ?"
		if err := count(one.ID, 1, moved, network.ID, one.Low, one.High); err != nil {
			return err
		}
		for _, table := range []store.Source{leaseRows, spanRows} {
			if err := f.tx.Write("UPDATE "+string(table)+" SET parent = ? WHERE "+moved, one.ID, network.ID, one.Low, one.High); err != nil {
				return err
			}
		}
	}
	return f.forget(rest, args...)
}

// forget deletes leases, and their numbers by server. The numbers of ranges are counted again, because the ranges change as well.
func (f *leaseFollower) forget(where string, args ...any) error {
	counts := newLeaseCounts(f.tx)
	if err := f.tx.Each(func(scan func(...any) error) error {
		var server, n int64
		var state string
		err := scan(&server, &state, &n)
		counts.delta[countKey{server, state}] -= n
		return err
	}, "SELECT server, state, count(*) FROM dhcp_lease WHERE "+where+" GROUP BY server, state", args...); err != nil {
		return err
	}
	if err := counts.write(); err != nil {
		return err
	}
	return errors.Join(f.tx.Write("DELETE FROM dhcp_lease WHERE "+where, args...), f.tx.Write("DELETE FROM dhcp_lease_import WHERE NOT EXISTS"+
		" (SELECT 1 FROM dhcp_lease l WHERE l.configuration = dhcp_lease_import.configuration AND l.low = dhcp_lease_import.low)"))
}

// verifyLeases reports leases outside of their networks, and wrong numbers of leases.
func verifyLeases(tx *store.Tx, fault func(format string, args ...any)) error {
	if err := verifyCounts(tx, fault); err != nil {
		return err
	}
	return tx.Each(func(scan func(...any) error) error {
		var id, network int64
		var low, high, address []byte
		if err := scan(&id, &network, &address, &low, &high); err != nil {
			return err
		}
		if low == nil {
			fault("lease %d belongs to network %d, which does not exist", id, network)
			return nil
		}
		if within := (space.Range{Low: store.KeyAddr(low), High: store.KeyAddr(high)}); !within.Has(store.KeyAddr(address)) {
			fault("lease %d of %s is not in network %d (%s)", id, store.KeyAddr(address), network, within)
		}
		return nil
	}, "SELECT l.id, l.parent, l.low, r.low, r.high FROM dhcp_lease l LEFT JOIN resource r ON r.id = l.parent AND r.collection = 'networks'"+
		" WHERE r.id IS NULL OR l.low < r.low OR l.low > r.high")
}

// pruneAtOnce is the maximum number of spans that one transaction deletes.
const pruneAtOnce = 2000

// PruneSpans deletes the spans that ended before a time, and returns their number.
func PruneSpans(ctx context.Context, update store.Updater, before time.Time) (pruned int, err error) {
	for {
		var n int64
		if err := update(ctx, store.Author{}, func(tx *store.Tx) (err error) {
			n, err = tx.Exec("DELETE FROM dhcp_lease_span WHERE id IN (SELECT id FROM dhcp_lease_span WHERE stop IS NOT NULL AND stop < ?"+
				" ORDER BY stop LIMIT ?)", before.Unix(), pruneAtOnce)
			return err
		}); err != nil {
			return pruned, err
		}
		if pruned += int(n); n < pruneAtOnce {
			return pruned, nil
		}
	}
}
