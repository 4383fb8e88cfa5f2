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

// The change feed is the history in the order in which it became visible. A follower that has seen a
// position has seen everything before it: on SQLite transactions are numbered as they are committed;
// on PostgreSQL they are ordered by the number of the database's own transaction, and only those are
// given that none still running can come before.

// Position is a place in the change feed: behind one transaction. The zero Position is its beginning.
type Position struct {
	// Origin is the database that the position belongs to.
	Origin string
	// Settled is the number of PostgreSQL's own transaction; 0 on SQLite.
	Settled int64
	// Transaction is the number of the transaction in the history; 0 before the first one of this database.
	Transaction int64
	// At is when it was, in Unix milliseconds: a database that was taken back to an earlier moment gives its
	// number to another one. 0 in positions of older portolans, which are not held to it.
	At int64
}

// String gives the position in a form that ParsePosition reads; empty for the beginning.
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

// ParsePosition reads what String gave.
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
		return Position{}, fmt.Errorf("%q is no position in a change feed", text)
	}
	return p, nil
}

// ErrForeignPosition is a position in the feed of another database, or of this one before it was taken
// back to an earlier moment. ErrPruned is one behind which changes are not kept any more.
var (
	ErrForeignPosition = errors.New("the position belongs to the change feed of another database, or of this one before it was taken " +
		"back to an earlier moment: begin anew")
	ErrPruned = errors.New("what changed behind the position is not kept any more: begin anew")
)

// Entry is one transaction in the change feed. EachChange gives what it changed.
type Entry struct {
	Position  Position
	ID        int64
	At        time.Time
	User      int64
	Operation string
	// Body is the transaction as the history shows it.
	Body json.RawMessage
	// first and last are the numbers of its first and its last change, noChanges where it has none.
	first, last int64
}

// EntryChange is one change, with the resource before and after it; nil where there was none.
type EntryChange struct {
	Sequence  int64           `json:"sequence"`
	Resource  int64           `json:"resource"`
	Operation string          `json:"operation"`
	Before    json.RawMessage `json:"before"`
	After     json.RawMessage `json:"after"`
}

// Feed gives the transactions right behind a position, at most limit of them.
func (s *Store) Feed(ctx context.Context, after Position, limit int) (entries []Entry, err error) {
	err = s.View(ctx, func(tx *Tx) error {
		entries = nil
		var origin string
		if err := tx.QueryRow("SELECT id FROM origin").Scan(&origin); err != nil {
			return fmt.Errorf("reading the feed's origin: %w", err)
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
			return fmt.Errorf("reading the change feed: %w", err)
		}
		return nil
	})
	return entries, err
}

// known checks that nothing behind a position was taken out of the history, and that the transaction of the
// position is the one that it was given for.
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
	case p.At == 0 || p.Transaction == horizon.Transaction && p.At == horizon.At: // which nothing was taken behind
		return nil
	}
	var at int64
	err = tx.QueryRow("SELECT at FROM txn WHERE id = ?", p.Transaction).Scan(&at)
	if errors.Is(err, sql.ErrNoRows) || err == nil && at != p.At {
		return ErrForeignPosition
	}
	return err
}

// changesPage is how many changes of a transaction are in memory at a time.
const changesPage = 500

// Noted reports whether the transaction stands in the history without a change of a resource (Tx.Note).
func (e Entry) Noted() bool { return e.first == noChanges }

// EachChange calls fn for each change of a transaction, in order. Few of them are in memory at a time.
func (s *Store) EachChange(ctx context.Context, e Entry, fn func(EntryChange) error) error {
	last := int64(0)
	for {
		var page []EntryChange
		if err := s.View(ctx, func(tx *Tx) (err error) {
			if err = tx.Whole(e); err == nil {
				page, err = tx.readChanges(e.ID, last, changesPage)
			}
			return err
		}); err != nil {
			return fmt.Errorf("reading the change feed: %w", err)
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

// Whole gives ErrPruned where the changes of a transaction of the feed are not all kept any more: the first one goes first.
func (tx *Tx) Whole(e Entry) error {
	if e.Noted() {
		return nil
	}
	var whole bool
	err := tx.QueryRow("SELECT EXISTS (SELECT 1 FROM change WHERE txn = ? AND seq = ?)", e.ID, e.first).Scan(&whole)
	if err == nil && !whole {
		err = ErrPruned
	}
	return err
}

// changesOf reads the changes of a transaction behind a number, at most limit of them.
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

// settleTime is how long Settled waits for transactions that are still running.
const settleTime = 10 * time.Second

// Settled waits until the feed has all that was committed before it was called: on PostgreSQL that has
// to wait for every transaction that was running then. After ten seconds it waits no longer.
func (s *Store) Settled(ctx context.Context) error {
	return s.engine.awaitFeed(ctx)
}

// feedPage is how many transactions a follower is given at a time.
const feedPage = 100

// followEvery is how often a follower looks without being told that there is something.
const followEvery = time.Second

// Follow gives fn the transactions behind a position as they are committed, by whichever process, in
// pages, until ctx ends or fn fails; its error is given. A database that cannot be reached is waited
// for: nothing is left out, and nothing comes twice.
func (s *Store) Follow(ctx context.Context, after Position, fn func([]Entry) error) error {
	for attempt := 0; ; {
		signal := s.commitSignal.wait() // before looking, so that a commit meanwhile is not missed
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
