package dhcp

import (
	"context"
	"embed"
	"time"

	"portolan/internal/engine/store"
)

//go:embed migrations/*/*_refused.sql migrations/*/*_refused_filters.sql
var refusedMigrations embed.FS

// newRefusedExtension returns the extension that stores refused clients. Like leases, they have no history and no change feed.
func newRefusedExtension() *store.Extension {
	columns := []string{"id", "collection", "type", "name", "parent", "configuration", "low", "high", "key", "version", "refs", "body",
		"identity"}
	return &store.Extension{Name: "refused", Migrations: refusedMigrations,
		Follow: func(tx *store.Tx) store.Follower { return &refusedFollower{tx: tx} },
		Tables: []store.Table{
			{Name: string(refusedRows), Columns: append(columns[:len(columns):len(columns)], "last"), Key: 1},
			{Name: string(refusedCountRows), Columns: append(columns[:len(columns):len(columns)], "day", "n"), Key: 1}},
		Verify: func(tx *store.Tx, fault func(format string, args ...any)) error {
			for _, table := range []store.Source{refusedRows, refusedCountRows} {
				if err := tx.ReportFaults(fault, "refused clients belong to resource %d, which does not exist%s",
					"SELECT DISTINCT t.parent, '' FROM "+string(table)+" t LEFT JOIN resource r ON r.id = t.parent WHERE r.id IS NULL"); err != nil {
					return err
				}
			}
			return nil
		}}
}

// refusedFollower deletes the refused clients of deleted networks and servers.
type refusedFollower struct {
	tx   *store.Tx
	gone []int64
}

// Changed records deleted networks and servers.
func (f *refusedFollower) Changed(before, after *store.Resource) error {
	if after == nil && (before.Collection == "networks" || before.Collection == "servers") {
		f.gone = append(f.gone, before.ID)
	}
	return nil
}

// BeforeCommit deletes the rows of the deleted resources.
func (f *refusedFollower) BeforeCommit() error {
	for _, id := range f.gone {
		for _, table := range []store.Source{refusedRows, refusedCountRows} {
			if err := f.tx.Write("DELETE FROM "+string(table)+" WHERE parent = ?", id); err != nil {
				return err
			}
		}
	}
	return nil
}

// KeepRefused is how long refused clients, and the numbers of refused messages, are kept.
const KeepRefused = 7 * 24 * time.Hour

// PruneRefused deletes the refused clients and the numbers of refused messages from before a time, and returns their number.
func PruneRefused(ctx context.Context, update store.Updater, before time.Time) (pruned int, err error) {
	for _, statement := range []struct {
		text  string
		value int64
	}{{"DELETE FROM dhcp_refused_client WHERE id IN (SELECT id FROM dhcp_refused_client WHERE last < ? ORDER BY last LIMIT ?)", before.Unix()},
		{"DELETE FROM dhcp_refused_count WHERE id IN (SELECT id FROM dhcp_refused_count WHERE day < ? ORDER BY day LIMIT ?)", dayOf(before)}} {
		for {
			var n int64
			if err := update(ctx, store.Author{}, func(tx *store.Tx) (err error) {
				n, err = tx.Exec(statement.text, statement.value, pruneAtOnce)
				return err
			}); err != nil {
				return pruned, err
			}
			if pruned += int(n); n < pruneAtOnce {
				break
			}
		}
	}
	return pruned, nil
}

const secondsOfDay = 86400

// dayOf returns the number of days since 1970.
func dayOf(at time.Time) int64 { return at.Unix() / secondsOfDay }
