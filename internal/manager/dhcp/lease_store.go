package dhcp

import (
	"context"
	"embed"
	"fmt"
	"time"

	"portolan/internal/base/space"
	"portolan/internal/engine/store"
)

//go:embed migrations/*/*.sql
var leaseMigrations embed.FS

// extensionName is the name of the extension with the tables of leases. Its State is a *Leases, which package ipam finds by this name.
const extensionName = "leases"

// Leases reads the leases of the extension, for packages that do not import this one.
type Leases struct{}

// newLeaseExtension returns the extension that stores leases. They are not resources: they have no history and no change feed.
func newLeaseExtension() *store.Extension {
	columns := []string{"id", "collection", "type", "name", "parent", "configuration", "low", "high", "key", "version", "refs", "body"}
	return &store.Extension{Name: extensionName, State: &Leases{}, Migrations: leaseMigrations, Verify: verifyLeases,
		Follow: func(tx *store.Tx) store.Follower { return &leaseFollower{tx: tx} },
		Tables: []store.Table{
			{Name: string(leaseRows), Columns: append(columns[:len(columns):len(columns)], "state", "server", "span", "snapshot"), Key: 1},
			{Name: "dhcp_lease_page", Columns: []string{"configuration", "first", "ends"}, Key: 2},
			{Name: string(spanRows), Columns: append(columns[:len(columns):len(columns)], "start", "stop"), Key: 1},
			{Name: "dhcp_lease_mark", Columns: []string{"server", "node", "journal", "sequence", "snapshot"}, Key: 2}}}
}

// leaseFollower moves leases to other networks when networks are split, merged or resized, and deletes those without a network.
type leaseFollower struct {
	tx *store.Tx
	// gone are the networks that the transaction deletes, with their former spans; configurations and servers are deleted, too.
	gone                    []store.Resource
	configurations, servers []int64
}

// Changed records deleted networks and configurations.
func (f *leaseFollower) Changed(before, after *store.Resource) error {
	switch {
	case after != nil || before == nil:
	case before.Collection == "networks":
		f.gone = append(f.gone, store.Resource{ID: before.ID, Configuration: before.Configuration, Low: before.Low, High: before.High})
	case before.Collection == "configurations":
		f.configurations = append(f.configurations, before.ID)
	case before.Collection == "servers":
		f.servers = append(f.servers, before.ID)
	}
	return nil
}

// BeforeCommit moves or deletes the leases of deleted networks. Spans without a network are kept for administrators.
func (f *leaseFollower) BeforeCommit() error {
	for _, network := range f.gone {
		some, err := f.tx.Exists(store.Query{From: leaseRows, Where: store.HasParent(network.ID)})
		if err != nil {
			return err
		}
		spans, err := f.tx.Exists(store.Query{From: spanRows, Where: store.HasParent(network.ID)})
		if err != nil {
			return err
		}
		if !some && !spans {
			continue
		}
		if err := f.moveLeases(network); err != nil {
			return fmt.Errorf("moving the leases of network %d: %w", network.ID, err)
		}
	}
	for _, id := range f.servers {
		if err := f.tx.Write("DELETE FROM dhcp_lease_mark WHERE server = ?", id); err != nil {
			return err
		}
	}
	for _, id := range f.configurations {
		for _, table := range []string{string(leaseRows), "dhcp_lease_page", string(spanRows)} {
			if err := f.tx.Write("DELETE FROM "+table+" WHERE configuration = ?", id); err != nil {
				return err
			}
		}
	}
	return nil
}

// moveLeases moves the leases of a deleted network to the networks that now have its space.
func (f *leaseFollower) moveLeases(network store.Resource) error {
	var now []*store.Resource
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
	for _, one := range now {
		for _, table := range []store.Source{leaseRows, spanRows} {
			if err := f.tx.Write("UPDATE "+string(table)+" SET parent = ? WHERE parent = ? AND low >= ? AND low <= ?", one.ID, network.ID,
				one.Low, one.High); err != nil {
				return err
			}
		}
	}
	return f.tx.Write("DELETE FROM dhcp_lease WHERE parent = ?", network.ID)
}

// verifyLeases reports leases outside of their networks.
func verifyLeases(tx *store.Tx, fault func(format string, args ...any)) error {
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
