package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// What is old goes: the history behind a horizon, and events. The horizon is written down, so that undo and
// followers of the feed can tell what is not kept any more from what never was.

// pruneAtOnce is how many transactions one update takes out of the history: a writer waits for no more.
const pruneAtOnce = 200

// horizonName is the horizon's name among the markers.
const horizonName = "history-horizon"

// Horizon is the time, in Unix milliseconds, up to which the history is not kept any more; 0 where all of it is.
func (tx *Tx) Horizon() (at int64, err error) {
	var text string
	err = tx.QueryRow("SELECT value FROM marker WHERE name = ?", horizonName).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err == nil {
		at, err = strconv.ParseInt(text, 10, 64)
	}
	if err != nil {
		return 0, fmt.Errorf("reading the horizon of the history: %w", err)
	}
	return at, nil
}

// PruneHistory takes the transactions before a time out of the history, some at a time, each time in an
// update of its own. It gives how many those were. update is that of a lease, so that one manager does it.
func (s *Store) PruneHistory(ctx context.Context, update Updater, before time.Time) (pruned int, err error) {
	for {
		n := 0
		if err := update(ctx, Author{}, func(tx *Tx) (err error) {
			n, err = tx.prune(before.UnixMilli())
			return err
		}); err != nil {
			return pruned, fmt.Errorf("pruning the history: %w", err)
		}
		if pruned += n; n < pruneAtOnce {
			return pruned, nil
		}
	}
}

// prune takes the oldest transactions before a time out of the history.
func (tx *Tx) prune(before int64) (n int, err error) {
	var ids []int64
	horizon := int64(0)
	if err := tx.Each(func(scan func(...any) error) error {
		var id int64
		err := scan(&id, &horizon)
		ids = append(ids, id)
		return err
	}, "SELECT id, at FROM txn WHERE at < ? ORDER BY at, id LIMIT ?", before, pruneAtOnce); err != nil || len(ids) == 0 {
		return 0, err
	}
	list, args := in(ids)
	for _, query := range []string{"DELETE FROM change WHERE txn IN ", "DELETE FROM reverting WHERE txn IN ", "DELETE FROM txn WHERE id IN "} {
		if err := tx.Write(query+list, args...); err != nil {
			return 0, err
		}
	}
	return len(ids), tx.Write("INSERT INTO marker (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", horizonName, strconv.FormatInt(horizon, 10))
}

// PruneEvents takes the events that were made before a time away, some at a time.
func (s *Store) PruneEvents(ctx context.Context, update Updater, before time.Time) (pruned int, err error) {
	limit := before.UTC().Format(time.RFC3339)
	for {
		n := int64(0)
		if err := update(ctx, Author{}, func(tx *Tx) (err error) {
			// Numbers rise with time: the oldest are the first.
			n, err = tx.Exec("DELETE FROM event WHERE id IN (SELECT id FROM (SELECT id, json_extract(body, '$.dateTime') AS at FROM event ORDER BY id LIMIT ?) o WHERE at < ?)", pruneAtOnce, limit)
			return err
		}); err != nil {
			return pruned, fmt.Errorf("pruning events: %w", err)
		}
		if pruned += int(n); n < pruneAtOnce {
			return pruned, nil
		}
	}
}
