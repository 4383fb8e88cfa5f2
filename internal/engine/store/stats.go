package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"
)

// Figures are what a store tells of its database.
type Figures struct {
	// Kind is SQLite or PostgreSQL, Version what it says of itself.
	Kind    string `json:"kind"`
	Version string `json:"version"`
	// Condition is how it is; Since is since when, where it is not READY.
	Condition Condition  `json:"condition"`
	Since     *time.Time `json:"since,omitempty"`
	// Bytes is how large the database is. LogBytes is how long the log of SQLite is that is not folded into it yet; nil on PostgreSQL, which
	// looks after its own.
	Bytes    int64  `json:"bytes"`
	LogBytes *int64 `json:"logBytes,omitempty"`
	// StandbyBytes is how far the standby that lists are read from is behind; nil where there is none, or it cannot be asked.
	StandbyBytes *int64 `json:"standbyBytes,omitempty"`
	// Waiting is how many changes are under way at this manager, or wait for their turn.
	Waiting int64 `json:"waiting"`
	// Transactions is the number of the latest one of the history.
	Transactions int64 `json:"transactions"`
}

// Figures asks the database how it is.
func (s *Store) Figures(ctx context.Context) (f Figures, err error) {
	f.Waiting = s.updates.Load()
	var since time.Time
	if f.Condition, since, _ = s.Condition(); f.Condition != Ready {
		f.Since = &since
	}
	err = s.Read(ctx, func(tx *Tx) error {
		if err := tx.QueryRow(s.engine.sizeQuery()).Scan(&f.Bytes); err != nil {
			return err
		}
		return tx.QueryRow("SELECT coalesce(max(id), 0) FROM txn").Scan(&f.Transactions)
	})
	if err == nil {
		err = s.engine.addFigures(ctx, &f)
	}
	return f, err
}

func (e *sqliteEngine) addFigures(ctx context.Context, f *Figures) error {
	f.Kind = "SQLite"
	info, err := os.Stat(e.path + "-wal")
	size := int64(0)
	switch {
	case err == nil:
		size = info.Size()
	case !errors.Is(err, fs.ErrNotExist): // there is none where nothing was written
		return err
	}
	f.LogBytes = &size
	return e.store.Read(ctx, func(tx *Tx) error { return tx.QueryRow("SELECT sqlite_version()").Scan(&f.Version) })
}

func (e *postgresEngine) addFigures(ctx context.Context, f *Figures) error {
	f.Kind = "PostgreSQL"
	if err := e.store.Read(ctx, func(tx *Tx) error {
		return tx.QueryRow("SELECT current_setting('server_version')").Scan(&f.Version)
	}); err != nil || e.replica == nil {
		return err
	}
	var position string
	if err := e.pg.readers.QueryRow(ctx, "SELECT pg_current_wal_flush_lsn()::text").Scan(&position); err != nil {
		return connectionProblem(err)
	}
	var behind int64
	err := e.replica.pg.lists.QueryRow(ctx,
		"SELECT greatest(pg_wal_lsn_diff($1::text::pg_lsn, coalesce(pg_last_wal_replay_lsn(), '0/0')), 0)::bigint",
		position).Scan(&behind)
	if err == nil { // a standby that is away is no reason to say nothing of the database
		f.StandbyBytes = &behind
	}
	return nil
}

// Timing is told how long changes take: from when they are asked for until they are on the disk, and, of that, how long a commit of one
// or of several together takes from its beginning.
type Timing struct {
	Change func(ctx context.Context, began time.Time)
	Commit func(time.Duration)
}

// Time lets somebody be told how long changes take, from now on.
func (s *Store) Time(t Timing) { s.timing.Store(&t) }

// changed and committedIn tell who is told, where somebody is.
func (s *Store) reportChange(ctx context.Context, began time.Time) {
	if t := s.timing.Load(); t != nil {
		t.Change(ctx, began)
	}
}

func (s *Store) reportCommit(began time.Time) {
	if t := s.timing.Load(); t != nil {
		t.Commit(time.Since(began))
	}
}
