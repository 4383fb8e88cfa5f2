package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"portolan/internal/problem"

	"modernc.org/sqlite"
)

// Options say where the data is and who keeps the time.
type Options struct {
	// Dir is the data directory; it is made when missing. The database is portolan.db in it.
	Dir string
	// Exclusive takes the directory's lock: a manager has it while it serves, tools do not.
	Exclusive bool
	// Readers is how many read connections there may be; 0 means 8.
	Readers int
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Store is one database. It is safe for concurrent use.
type Store struct {
	db      *sql.DB
	now     func() time.Time
	readers chan *session
	jobs    chan *job
	stop    chan struct{}
	stopped chan struct{}
	feed    feed
	lock    *os.File
}

// Open opens the database in the directory and brings its schema up to date. It refuses, with an
// error that says so, a schema newer than this binary and a directory another manager is serving.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.Readers <= 0 {
		o.Readers = 8
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the data directory: %w", err)
	}
	s := &Store{now: o.Now, jobs: make(chan *job, 1024), stop: make(chan struct{}), stopped: make(chan struct{})}
	if o.Exclusive {
		var err error
		if s.lock, err = lockDir(o.Dir); err != nil {
			return nil, err
		}
	}
	if err := s.open(ctx, filepath.Join(o.Dir, "portolan.db"), o.Readers); err != nil {
		if s.db != nil {
			_ = s.db.Close()
		}
		s.unlock()
		return nil, err
	}
	return s, nil
}

// dsn says how every connection is set up. The page cache is 16 MiB a connection; mmap spares the
// copies of a long list without counting as memory of ours.
func dsn(path string) string {
	return "file:" + path + "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(10000)" +
		"&_pragma=foreign_keys(OFF)&_pragma=cache_size(-16384)&_pragma=mmap_size(0)&_pragma=temp_store(MEMORY)&_txlock=deferred"
}

func (s *Store) open(ctx context.Context, path string, readers int) error {
	if err := registerFunctions(); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", dsn(path))
	if err != nil {
		return fmt.Errorf("opening %s: %w", path, err)
	}
	s.db = db
	db.SetMaxOpenConns(readers + 1)
	db.SetMaxIdleConns(readers + 1)
	writer, err := newSession(ctx, db)
	if err != nil {
		return fmt.Errorf("opening %s: %w", path, err)
	}
	if err := migrate(ctx, writer.conn); err != nil {
		return err
	}
	s.readers = make(chan *session, readers)
	for range readers {
		s.readers <- nil // opened at first use, so that start-up costs one connection
	}
	go s.write(writer)
	return nil
}

// Close waits for the updates already queued, then closes the database.
func (s *Store) Close() error {
	close(s.stop)
	<-s.stopped
	for range cap(s.readers) {
		if r := <-s.readers; r != nil {
			r.close()
		}
	}
	err := s.db.Close()
	s.unlock()
	return err
}

func (s *Store) unlock() {
	if s.lock != nil {
		_ = s.lock.Close()
	}
}

// Now gives the store's time.
func (s *Store) Now() time.Time { return s.now() }

// View runs fn on one consistent snapshot. It takes no lock that a writer would wait for.
func (s *Store) View(ctx context.Context, fn func(*Tx) error) (err error) {
	var r *session
	select {
	case r = <-s.readers:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { s.readers <- r }()
	if r == nil {
		if r, err = newSession(context.Background(), s.db); err != nil {
			return fmt.Errorf("opening a read connection: %w", err)
		}
	}
	if err := r.exec("BEGIN"); err != nil {
		return fmt.Errorf("beginning a snapshot: %w", err)
	}
	defer func() {
		if e := r.exec("ROLLBACK"); e != nil && err == nil {
			err = fmt.Errorf("ending a snapshot: %w", e)
		}
	}()
	return fn(&Tx{ctx: ctx, session: r, now: s.now()})
}

// Ready reports whether the database answers.
func (s *Store) Ready(ctx context.Context) error {
	return s.View(ctx, func(tx *Tx) error {
		var n int
		return tx.QueryRow("SELECT 1").Scan(&n)
	})
}

// Unavailable words a failure of the database itself as 503 DatabaseUnavailable; other errors pass.
func Unavailable(err error) error {
	var e *sqlite.Error
	if errors.As(err, &e) {
		switch e.Code() & 0xff {
		case 5, 6, 10, 13, 14: // busy, locked, input/output, full, cannot open
			p := problem.New(503, "DatabaseUnavailable", "the database cannot be reached just now; try again")
			p.Err = err
			return p
		}
	}
	return err
}
