package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The change feed is the history in the order of visibility. A follower at a position has seen everything before it. On SQLite
// transactions are numbered as they are committed. On PostgreSQL they are ordered by the id of the database transaction, and an entry is
// returned only when no running transaction can precede it.

// Position is a place in the change feed, after one transaction. The zero Position is the beginning of the feed.
type Position struct {
	// Origin identifies the database of the position.
	Origin string
	// Settled is the id of PostgreSQL's own transaction; 0 on SQLite.
	Settled int64
	// Transaction is the number of the transaction in the history; 0 before the first one.
	Transaction int64
	// At is the time of the transaction in Unix milliseconds. It detects a database that was restored to an earlier state and then
	// assigned the number again. It is 0, and not checked, in positions of older versions.
	At int64
}

// String returns the position in the form that ParsePosition reads. It is empty for the beginning.
func (p Position) String() string {
	if p == (Position{}) {
		return ""
	}
	text := p.Origin + "." + strconv.FormatInt(p.Settled, 10) + "." + strconv.FormatInt(p.Transaction, 10)
	if p.At != 0 {
		text += "." + strconv.FormatInt(p.At, 10)
	}
	return text
}

// ParsePosition parses the result of Position.String.
func ParsePosition(text string) (p Position, err error) {
	if text == "" {
		return p, nil
	}
	parts := strings.Split(text, ".")
	p.Origin = parts[0]
	for i, number := range []*int64{&p.Settled, &p.Transaction, &p.At} {
		if i+1 < len(parts) && err == nil {
			*number, err = strconv.ParseInt(parts[i+1], 10, 64)
		}
	}
	if len(parts) < 3 || len(parts) > 4 || err != nil || p.Origin == "" || p.Settled < 0 || p.Transaction < 0 || p.At < 0 {
		return Position{}, fmt.Errorf("%q is not a position in a change feed", text)
	}
	return p, nil
}

// ErrForeignPosition is returned for a position of another database, or of this one before it was restored to an earlier state. ErrPruned
// is returned for a position whose following changes are no longer kept.
var (
	ErrForeignPosition = errors.New("the position belongs to the change feed of another database, or of this one before a backup " +
		"was restored; start again without a position")
	ErrPruned = errors.New("the changes after the position were pruned; start again without a position")
)

// Entry is one transaction in the change feed. EachChange reads its changes.
type Entry struct {
	Position  Position
	ID        int64
	At        time.Time
	User      int64
	Operation string
	// Body is the transaction in the form that the history shows.
	Body json.RawMessage
	// first and last are the numbers of its first and last change; noChanges if there are none.
	first, last int64
}

// EntryChange is one change, with the resource before and after it. Before is nil for a new resource, After for a deleted one.
type EntryChange struct {
	Sequence  int64           `json:"sequence"`
	Resource  int64           `json:"resource"`
	Operation string          `json:"operation"`
	Before    json.RawMessage `json:"before"`
	After     json.RawMessage `json:"after"`
}

// Feed returns the transactions after a position, at most limit of them.
func (s *Store) Feed(ctx context.Context, after Position, limit int) (entries []Entry, err error) {
	err = s.View(ctx, func(tx *Tx) error {
		entries = nil
		var origin string
		if err := tx.QueryRow("SELECT id FROM origin").Scan(&origin); err != nil {
			return fmt.Errorf("read the origin of the change feed: %w", err)
		}
		if after.Origin != "" && after.Origin != origin {
			return ErrForeignPosition
		}
		if err := tx.checkPosition(after); err != nil {
			return err
		}
		d := tx.conn.sqlDialect()
		if err := tx.Each(func(scan func(...any) error) error {
			e := Entry{Position: Position{Origin: origin}}
			var at int64
			var body []byte
			err := scan(&e.ID, &at, &e.User, &e.Operation, &body, &e.Position.Settled, &e.first, &e.last)
			e.At, e.Body, e.Position.Transaction, e.Position.At = time.UnixMilli(at).UTC(), body, e.ID, at
			entries = append(entries, e)
			return err
		}, d.feed, after.Settled, after.Transaction, limit); err != nil {
			return fmt.Errorf("read the change feed: %w", err)
		}
		return nil
	})
	return entries, err
}

// checkPosition returns ErrPruned if a transaction after the position was pruned, and ErrForeignPosition if the number of the position
// now belongs to another transaction.
func (tx *Tx) checkPosition(p Position) error {
	if p == (Position{}) {
		return nil
	}
	horizon, err := tx.Horizon()
	switch {
	case err != nil:
		return err
	case horizon.removedAfter(p):
		return ErrPruned
	case p.At == 0 || p.Transaction == horizon.Transaction && p.At == horizon.At: // nothing after it was pruned
		return nil
	}
	var at int64
	err = tx.QueryRow("SELECT at FROM txn WHERE id = ?", p.Transaction).Scan(&at)
	if errors.Is(err, sql.ErrNoRows) || err == nil && at != p.At {
		return ErrForeignPosition
	}
	return err
}

// changesPage is the maximum number of changes of a transaction in memory.
const changesPage = 500

// IsNoted reports whether the transaction is in the history without changes of resources (Tx.Note).
func (e Entry) IsNoted() bool { return e.first == noChanges }

// EachChange calls fn for each change of a transaction, in order. Only changesPage of them are in memory at a time.
func (s *Store) EachChange(ctx context.Context, e Entry, fn func(EntryChange) error) error {
	last := int64(0)
	for {
		var page []EntryChange
		if err := s.View(ctx, func(tx *Tx) (err error) {
			if err = tx.CheckComplete(e); err == nil {
				page, err = tx.readChanges(e.ID, last, changesPage)
			}
			return err
		}); err != nil {
			return fmt.Errorf("read the change feed: %w", err)
		}
		for _, c := range page {
			last = c.Sequence
			if err := fn(c); err != nil {
				return err
			}
		}
		if len(page) < changesPage {
			return nil
		}
	}
}

// CheckComplete returns ErrPruned if some changes of a transaction are no longer kept. Its first change is pruned first.
func (tx *Tx) CheckComplete(e Entry) error {
	if e.IsNoted() {
		return nil
	}
	var whole bool
	err := tx.QueryRow("SELECT EXISTS (SELECT 1 FROM change WHERE txn = ? AND seq = ?)", e.ID, e.first).Scan(&whole)
	if err == nil && !whole {
		err = ErrPruned
	}
	return err
}

// readChanges returns the changes of a transaction after a number, at most limit of them.
func (tx *Tx) readChanges(transaction, after int64, limit int) (changes []EntryChange, err error) {
	err = tx.Each(func(scan func(...any) error) error {
		var c EntryChange
		var before, after []byte
		err := scan(&c.Sequence, &c.Resource, &c.Operation, &before, &after)
		c.Before, c.After = before, after
		changes = append(changes, c)
		return err
	}, "SELECT seq, resource, operation, before, after FROM change WHERE txn = ? AND seq > ? ORDER BY seq LIMIT ?", transaction, after, limit)
	return changes, err
}

// settleTime is the maximum time that AwaitFeed waits for running transactions.
const settleTime = 10 * time.Second

// AwaitFeed waits until the feed contains everything that was committed before the call. On PostgreSQL it waits for every transaction that
// was running then, but not longer than settleTime.
func (s *Store) AwaitFeed(ctx context.Context) error {
	return s.engine.awaitFeed(ctx)
}

// feedPage is the maximum number of transactions that a follower receives at a time.
const feedPage = 100

// followEvery is the interval at which a follower polls without a notification.
const followEvery = time.Second

// Follow calls fn with pages of transactions after a position, as any process commits them, until ctx ends or fn fails. It returns that
// error. It retries while the database is unreachable; it omits and repeats no transaction.
func (s *Store) Follow(ctx context.Context, after Position, fn func([]Entry) error) error {
	for attempt := 0; ; {
		signal := s.commitSignal.wait() // taken before the query, so that no commit is missed
		entries, err := s.Feed(ctx, after, feedPage)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && isConnectionLost(err):
			attempt++
			backOff(ctx, attempt)
			continue
		case err != nil:
			return err
		}
		attempt = 0
		if len(entries) > 0 {
			if err := fn(entries); err != nil {
				return err
			}
			after = entries[len(entries)-1].Position
			continue
		}
		timer := time.NewTimer(followEvery)
		select {
		case <-signal:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}
