package store

import (
	"context"
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
	// Transaction is the number of the transaction in the history.
	Transaction int64
}

// String gives the position in a form that ParsePosition reads; empty for the beginning.
func (p Position) String() string {
	if p == (Position{}) {
		return ""
	}
	return p.Origin + "." + strconv.FormatInt(p.Settled, 10) + "." + strconv.FormatInt(p.Transaction, 10)
}

// ParsePosition reads what String gave.
func ParsePosition(text string) (p Position, err error) {
	if text == "" {
		return p, nil
	}
	parts := strings.Split(text, ".")
	if len(parts) == 3 {
		p.Origin = parts[0]
		p.Settled, err = strconv.ParseInt(parts[1], 10, 64)
		if err == nil {
			p.Transaction, err = strconv.ParseInt(parts[2], 10, 64)
		}
	}
	if len(parts) != 3 || err != nil || p.Origin == "" || p.Settled < 0 || p.Transaction < 1 {
		return Position{}, fmt.Errorf("%q is no position in a change feed", text)
	}
	return p, nil
}

// ErrForeignPosition is a position in the feed of another database.
var ErrForeignPosition = errors.New("the position belongs to the change feed of another database: begin anew")

// Entry is one transaction in the change feed.
type Entry struct {
	Position  Position
	ID        int64
	At        time.Time
	User      int64
	Operation string
	// Body is the transaction as the history shows it.
	Body json.RawMessage
	// Changes are what it changed, in order.
	Changes []EntryChange
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
		d := tx.conn.speaks()
		if err := tx.Each(func(scan func(...any) error) error {
			e := Entry{Position: Position{Origin: origin}}
			var at int64
			var body []byte
			err := scan(&e.ID, &at, &e.User, &e.Operation, &body, &e.Position.Settled)
			e.At, e.Body, e.Position.Transaction = time.UnixMilli(at).UTC(), body, e.ID
			entries = append(entries, e)
			return err
		}, d.feed, after.Settled, after.Transaction, limit); err != nil {
			return fmt.Errorf("reading the change feed: %w", err)
		}
		for i := range entries {
			if err := tx.entryChanges(&entries[i]); err != nil {
				return fmt.Errorf("reading the change feed: %w", err)
			}
		}
		return nil
	})
	return entries, err
}

func (tx *Tx) entryChanges(e *Entry) error {
	return tx.Each(func(scan func(...any) error) error {
		var c EntryChange
		var before, after []byte
		err := scan(&c.Sequence, &c.Resource, &c.Operation, &before, &after)
		c.Before, c.After = before, after
		e.Changes = append(e.Changes, c)
		return err
	}, "SELECT seq, resource, operation, before, after FROM change WHERE txn = ? ORDER BY seq", e.ID)
}

// settleTime is how long Settled waits for transactions that are still running.
const settleTime = 10 * time.Second

// Settled waits until the feed has all that was committed before it was called: on PostgreSQL that has
// to wait for every transaction that was running then. After ten seconds it waits no longer.
func (s *Store) Settled(ctx context.Context) error {
	if s.pg == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	var next int64
	for attempt := 0; ; attempt++ {
		var low, high int64
		err := s.Read(ctx, func(tx *Tx) error {
			return tx.QueryRow("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint, pg_snapshot_xmax(pg_current_snapshot())::text::bigint").Scan(&low, &high)
		})
		if next == 0 {
			next = high
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err == nil && low >= next || !pause(ctx, attempt) {
			return nil
		}
	}
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
		news := s.bell.next() // before looking, so that what is rung meanwhile is not missed
		entries, err := s.Feed(ctx, after, feedPage)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && lost(err):
			attempt++
			pause(ctx, attempt)
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
		case <-news:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}
