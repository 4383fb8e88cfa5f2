package dnspublish

import (
	"context"
	"fmt"
	"time"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// pruneBatch is the number of deployments that one update deletes, so that other writers do not wait longer.
const pruneBatch = 500

// Prune deletes the deployments that ended before a time, in batches. It returns the number of deleted deployments.
func Prune(ctx context.Context, a *resource.API, update store.Updater, before time.Time) (pruned int, err error) {
	limit := before.UTC().Format(time.RFC3339)
	for {
		n := 0
		if err := update(ctx, store.Author{}, func(tx *store.Tx) error {
			var rows []*store.Resource
			if err := tx.List(store.Query{From: store.Resources, Limit: pruneBatch, Where: store.All{store.InCollection(deployments),
				store.Compare{Field: store.Field{Kind: store.Text, Path: []string{"completionDateTime"}}, Op: "lt", Value: limit}}},
				func(r *store.Resource) error {
					rows = append(rows, r.Clone())
					return nil
				}); err != nil {
				return err
			}
			n = len(rows)
			c := &resource.Change{Tx: tx, API: a}
			for _, row := range rows {
				if err := c.Following().Delete(row); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return pruned, fmt.Errorf("prune deployments: %w", err)
		}
		if pruned += n; n < pruneBatch {
			return pruned, nil
		}
	}
}
