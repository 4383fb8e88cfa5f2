package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"
)

// Figures are statistics of the database.
type Figures struct {
	// Kind is SQLite or PostgreSQL. Version is the version that the database reports.
	Kind    string `json:"kind"`
	Version string `json:"version"`
	// Condition is the condition of the database. Since is the start of a condition other than READY.
	Condition Condition  `json:"condition"`
	Since     *time.Time `json:"since,omitempty"`
	// Bytes is the size of the database. LogBytes is the size of the SQLite log file. It is nil on PostgreSQL, which maintains its own
	// log.
	Bytes    int64  `json:"bytes"`
	LogBytes *int64 `json:"logBytes,omitempty"`
	// StandbyBytes is the replication lag of the standby in bytes of the log. It is nil if there is no standby, or if it cannot be
	// reached.
	StandbyBytes *int64 `json:"standbyBytes,omitempty"`
	// Waiting is the number of changes that are running or waiting at this manager.
	Waiting int64 `json:"waiting"`
	// Transactions is the number of the latest transaction of the history.
	Transactions int64 `json:"transactions"`
}

// Figures returns statistics of the database.
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
	case !errors.Is(err, fs.ErrNotExist): // the log does not exist before the first write
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
	if err == nil { // an unreachable standby must not hide the other figures
		f.StandbyBytes = &behind
	}
	return nil
}

// Timing receives durations. Change is called after each change with the time at which it was requested. Commit is called with the
// duration of each commit, which one or more changes share.
type Timing struct {
	Change func(ctx context.Context, began time.Time)
	Commit func(time.Duration)
}

// Time sets the receiver of the durations of changes.
func (s *Store) Time(t Timing) { s.timing.Store(&t) }

// reportChange reports the end of a change to the receiver set by Time, if any.
func (s *Store) reportChange(ctx context.Context, began time.Time) {
	if t := s.timing.Load(); t != nil {
		t.Change(ctx, began)
	}
}

// reportCommit reports the duration of a commit to the receiver set by Time, if any.
func (s *Store) reportCommit(began time.Time) {
	if t := s.timing.Load(); t != nil {
		t.Commit(time.Since(began))
	}
}
