package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Retention deletes the history up to a horizon. The horizon is stored before anything is deleted, so that undo and followers of the feed
// can distinguish pruned transactions from those that never existed.

// pruneAtOnce is the maximum number of changes that one update deletes. It bounds how long other updates wait.
const pruneAtOnce = 2000

// Horizon is the last pruned transaction, in the order of the feed. The zero Horizon is before all transactions.
type Horizon struct {
	// At is the time of the transaction in Unix milliseconds.
	At int64
	// Settled and Transaction are its place in the feed (Position).
	Settled, Transaction int64
}

// removedAfter reports whether a transaction after the position was pruned.
func (h Horizon) removedAfter(p Position) bool {
	return p.Settled < h.Settled || p.Settled == h.Settled && p.Transaction < h.Transaction
}

// horizonName is the name of the horizon's marker.
const horizonName = "history-horizon"

// Horizon returns the last pruned transaction.
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
		return h, fmt.Errorf("read the horizon of the history: %w", err)
	}
	return h, nil
}

// moveHorizon records that a transaction is no longer kept. The horizon never moves back: in a database that was copied from another one,
// the order of the chain may differ from that of the feed.
func (tx *Tx) moveHorizon(to Horizon) error {
	was, err := tx.Horizon()
	if err != nil || to.Settled < was.Settled || to.Settled == was.Settled && to.Transaction < was.Transaction {
		return err
	}
	return tx.Write("INSERT INTO marker (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
		horizonName, fmt.Sprintf("%d.%d.%d", to.At, to.Settled, to.Transaction))
}

// PruneHistory deletes the linked transactions before a time from the history, oldest first. Each update deletes at most pruneAtOnce
// changes. It returns the number of deleted transactions. update must be Lease.Update, so that only one manager prunes. begins is called
// in each update that moves the base of the chain, with the new base; it may be nil.
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
			return pruned, fmt.Errorf("prune the history: %w", err)
		}
		if pruned += gone; !more {
			return pruned, nil
		}
	}
}

// prune deletes changes of the oldest transactions before a time, and the transactions that have none left. more is true if there is more
// to delete.
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
		if n == left { // the limit of this update; the transaction may have more changes
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
