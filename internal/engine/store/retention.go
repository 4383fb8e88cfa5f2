package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// What is old goes: the history up to a horizon, and events. The horizon is written down before anything goes,
// so that undo and followers of the feed can tell what is not kept any more, or only in part, from what never was.

// pruneAtOnce is how many changes, or events, one update takes away: others wait for no more.
const pruneAtOnce = 2000

// Horizon is the last transaction that the history does not keep any more, in the order of the feed. The zero
// Horizon is before all of them.
type Horizon struct {
	// At is when it was, in Unix milliseconds.
	At int64
	// Settled and Transaction are its place in the feed (Position).
	Settled, Transaction int64
}

// behind reports whether something that is not kept any more comes behind a position.
func (h Horizon) removedAfter(p Position) bool {
	return p.Settled < h.Settled || p.Settled == h.Settled && p.Transaction < h.Transaction
}

// horizonName is the horizon's name among the markers.
const horizonName = "history-horizon"

// Horizon gives up to where the history is not kept any more.
func (tx *Tx) Horizon() (h Horizon, err error) {
	var text string
	err = tx.QueryRow("SELECT value FROM marker WHERE name = ?", horizonName).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return h, nil
	}
	if err == nil {
		_, err = fmt.Sscanf(text, "%d.%d.%d", &h.At, &h.Settled, &h.Transaction)
	}
	if err != nil {
		return h, fmt.Errorf("reading the horizon of the history: %w", err)
	}
	return h, nil
}

// moveHorizon notes that a transaction is not kept any more. A database that came from another one may have them in another order than its
// feed: the horizon never goes back.
func (tx *Tx) moveHorizon(to Horizon) error {
	was, err := tx.Horizon()
	if err != nil || to.Settled < was.Settled || to.Settled == was.Settled && to.Transaction < was.Transaction {
		return err
	}
	return tx.Write("INSERT INTO marker (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
		horizonName, fmt.Sprintf("%d.%d.%d", to.At, to.Settled, to.Transaction))
}

// PruneHistory takes the transactions before a time out of the history, those that are chained, oldest first, some changes at a time, each
// time in an update of its own. It gives how many transactions have gone. update is that of a lease, so that one
// manager does it. begins is told, in each update that takes something away, behind which link the chain begins then; nil where nobody
// asks.
func (s *Store) PruneHistory(ctx context.Context, update Updater, before time.Time, begins func(tx *Tx, base Link) error) (pruned int,
	err error) {
	for {
		gone, more := 0, false
		if err := update(ctx, Author{}, func(tx *Tx) (err error) {
			was, err := tx.chainBase()
			if err != nil {
				return err
			}
			if gone, more, err = tx.prune(before.UnixMilli()); err != nil || begins == nil {
				return err
			}
			base, err := tx.chainBase()
			if err == nil && base.Place != was.Place {
				err = begins(tx, base)
			}
			return err
		}); err != nil {
			return pruned, fmt.Errorf("pruning the history: %w", err)
		}
		if pruned += gone; !more {
			return pruned, nil
		}
	}
}

// prune takes changes of the oldest transactions before a time away, and those transactions that have none left.
// more says that there is more to do.
func (tx *Tx) prune(before int64) (gone int, more bool, err error) {
	for left := int64(pruneAtOnce); left > 0; {
		var h Horizon
		err := tx.QueryRow(tx.conn.sqlDialect().oldest).Scan(&h.Transaction, &h.At, &h.Settled)
		if errors.Is(err, sql.ErrNoRows) || err == nil && h.At >= before {
			return gone, false, nil
		}
		if err == nil {
			err = tx.moveChainBase(h.Transaction)
		}
		if err == nil {
			err = tx.moveHorizon(h)
		}
		if err != nil {
			return 0, false, err
		}
		n, err := tx.Exec("DELETE FROM change WHERE seq IN (SELECT seq FROM change WHERE txn = ? ORDER BY seq LIMIT ?)", h.Transaction, left)
		if err != nil {
			return 0, false, err
		}
		if n == left { // as many as this update may; there may be more of the same transaction
			return gone, true, nil
		}
		left -= n + 1
		for _, query := range []string{"DELETE FROM reverting WHERE txn = ?", "DELETE FROM reverting WHERE undo = ?",
			"DELETE FROM history_link WHERE txn = ?", "DELETE FROM txn WHERE id = ?"} {
			if err := tx.Write(query, h.Transaction); err != nil {
				return 0, false, err
			}
		}
		gone++
	}
	return gone, true, nil
}
