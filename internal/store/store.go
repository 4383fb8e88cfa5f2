package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"portolan/internal/problem"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"zombiezen.com/go/sqlite"
)

// Options say where the data is and who keeps the time.
type Options struct {
	// Dir is the data directory; it is made when missing. The database is portolan.db in it.
	Dir string
	// Database is the URL of a PostgreSQL; empty means SQLite in Dir.
	Database string
	// DatabaseRead is the URL of a standby of Database; lists are read there when it is not behind.
	DatabaseRead string
	// Layout is what the rooms above keep in the database; nil means the store alone.
	Layout *Layout
	// Schema is the version of the schema to bring the database to; 0 means the newest. With another
	// one nothing but Load works.
	Schema int
	// Filling opens a database that Carry is to fill, or has begun to.
	Filling bool
	// Exclusive is a manager, or a tool that must be the only one: it takes the directory's lock, brings
	// the schema up to date and, on PostgreSQL, listens to the others. Tools do not; they refuse a schema
	// that is not theirs while a manager may be serving it.
	Exclusive bool
	// Alone is Exclusive for a tool that no manager may change the data under, on either database.
	Alone bool
	// ReadOnly opens what is there for reading alone, also on a file system that cannot be written.
	ReadOnly bool
	// Readers is how many connections there may be for short reads; 0 means 8, on PostgreSQL 16.
	Readers int
	// ListReaders is how many there may be for lists and whatever else may take long; 0 means 4. There are as many
	// again for pages of lists that take a moment.
	ListReaders int
	// Patience is how long a change waits for its turn on PostgreSQL; 0 means 30 seconds.
	Patience time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Store is one database. It is safe for concurrent use.
type Store struct {
	layout *Layout
	// pg is the database where it is PostgreSQL, replica one of its standbys, if there is one to read
	// from, listener what hears of other processes.
	pg       *postgres
	replica  *replica
	listener *listener
	// alone is a connection that keeps managers away; nil where they may come.
	alone *pgx.Conn
	now   func() time.Time
	// inline are the members that heads have with them (ShowInline).
	inline inlineMembers
	// commitNews wakes who waits for a commit, at every one that is heard of; watches are the topics that are remembered.
	commitNews broadcaster
	watches    watched
	commits    commits
	// The rest is SQLite's. readers are the connections for short reads, pages those for pages of lists, lists those for long ones, health
	// is one that only Ready uses: a reader that takes its time holds up its like alone.
	readers, lists, pages, health *pool
	jobs                          chan *job
	stop                          chan struct{}
	stopped                       chan struct{}
	watched                       chan struct{} // closed when watch has ended; nil where nothing watches
	// ended is what closing the write connection gave; set before stopped is closed.
	ended error
	// exclusive says that no other manager has the directory. given and reserved are the writer's
	// own: the numbers it has given out, and the mark in the database.
	exclusive, readOnly bool
	given, reserved     counters
	version             int64 // the database's, when the mark was last read
	// noticed is the database's version, as the writer's connection tells it, when it was last looked at: it changes
	// with the commits of other processes. The writer's own; check asks it to look.
	noticed int64
	check   chan struct{}
	// remark says that the marks in the database were written by somebody else than the writer.
	remark atomic.Bool
	lock   *os.File
	// schema is the version of the schema that the database has.
	schema int
}

// Open opens the database in the directory and brings its schema up to date. It refuses, with an
// error that says so, a schema newer than this binary and a directory another manager is serving.
func Open(o Options) (*Store, error) {
	if o.Layout == nil {
		o.Layout = &Layout{}
	}
	s, err := openEither(o)
	if err != nil || o.Filling || o.Schema != 0 {
		return s, err
	}
	if err := s.complete(context.Background()); err != nil {
		_ = s.Close() // nothing was written
		return nil, err
	}
	for _, e := range o.Layout.Extensions {
		if e.Opened != nil {
			e.Opened(s)
		}
	}
	return s, nil
}

func openEither(o Options) (*Store, error) {
	if o.Readers <= 0 {
		o.Readers = 8
		if o.Database != "" {
			o.Readers = 16
		}
	}
	if o.ListReaders <= 0 {
		o.ListReaders = 4
	}
	if o.Patience <= 0 {
		o.Patience = updateTime
	}
	o.Exclusive = o.Exclusive || o.Alone && o.Database == ""
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Database != "" {
		return openShared(o)
	}
	if o.DatabaseRead != "" {
		return nil, errors.New("a database to read from needs one to write to")
	}
	if o.ReadOnly {
		return openReadOnly(o)
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the data directory: %w", err)
	}
	path := filepath.Join(o.Dir, databaseFile)
	if err := protect(path); err != nil {
		return nil, err
	}
	s := &Store{layout: o.Layout, now: o.Now, jobs: make(chan *job, 1024), stop: make(chan struct{}), stopped: make(chan struct{}),
		check:     make(chan struct{}, 1),
		exclusive: o.Exclusive, schema: cmp.Or(o.Schema, o.Layout.Version())}
	if o.Exclusive {
		var err error
		if s.lock, err = lockDir(o.Dir); err != nil {
			return nil, err
		}
	}
	if err := s.open(path, o); err != nil {
		s.unlock()
		return nil, err
	}
	return s, nil
}

// openShared opens a PostgreSQL. A manager, which is what Exclusive stands for, listens to the others.
func openShared(o Options) (*Store, error) {
	pg, err := openPostgres(context.Background(), o)
	if err != nil {
		return nil, err
	}
	s := &Store{layout: o.Layout, pg: pg, now: o.Now, schema: cmp.Or(o.Schema, o.Layout.Version())}
	if o.Alone {
		if s.alone, err = pg.holdAlone(context.Background()); err != nil {
			pg.close()
			return nil, err
		}
	}
	if o.DatabaseRead != "" {
		if s.replica, err = openReplica(context.Background(), o.DatabaseRead, o); err != nil {
			pg.close()
			return nil, err
		}
	}
	if o.Exclusive {
		s.listen()
	}
	return s, nil
}

func (s *Store) open(path string, o Options) error {
	writer, err := newSession(path, writeSession)
	if err != nil {
		return fmt.Errorf("opening %s: %w", path, err)
	}
	if err := s.upToDate(writer, o); err != nil {
		_ = writer.close()
		return err
	}
	s.pools(path, o, writeSession)
	if s.exclusive {
		watcher, err := newSession(path, writeSession)
		if err != nil {
			_ = writer.close()
			return fmt.Errorf("opening %s: %w", path, err)
		}
		s.watched = make(chan struct{})
		go s.watch(watcher)
	}
	go s.write(writer)
	return nil
}

// watchEvery is how often a manager looks for commits of other processes.
const watchEvery = 100 * time.Millisecond

// watch notices what other processes commit, such as a token that is revoked on the command line.
func (s *Store) watch(w *session) {
	defer close(s.watched)
	defer func() { _ = w.close() }() // a reader has nothing to lose
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	var last int64
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
		}
		var version int64
		err := first(w, "PRAGMA data_version", nil, func(r row) error { return r.scan(&version) })
		if err != nil || version != last { // this connection does not tell whose commit it was
			last = version
			select {
			case s.check <- struct{}{}:
			default: // it is about to look
			}
		}
	}
}

// LastCommit is the number of the last commit that this process knows of. It grows with each.
func (s *Store) LastCommit() uint64 { return s.commits.last.Load() }

// committed counts a commit of this process that changed something of the topics, before whoever made it is answered.
func (s *Store) committed(topics []string) {
	s.commits.count(topics, true)
	s.commitNews.wake()
}

// Close waits for the updates already queued, then closes the database.
func (s *Store) Close() error {
	if s.pg != nil {
		if s.listener != nil {
			s.listener.close()
		}
		s.replica.close()
		s.pg.close()
		if s.alone != nil {
			// The lock is given back before the connection goes, which the server notices only a moment later.
			leaving, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_, _ = s.alone.Exec(leaving, "SELECT pg_advisory_unlock_all()") // the connection may be lost: so is the lock then
			return s.alone.Close(leaving)
		}
		return nil
	}
	close(s.stop)
	<-s.stopped
	if s.watched != nil {
		<-s.watched
	}
	s.readers.close()
	s.lists.close()
	s.pages.close()
	s.health.close()
	s.unlock()
	return s.ended
}

func (s *Store) unlock() {
	if s.lock != nil {
		_ = s.lock.Close()
	}
}

// Now gives the store's time.
func (s *Store) Now() time.Time { return s.now() }

// Duplicate reports whether an error is that of a unique index.
func Duplicate(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "23505" || err != nil && sqlite.ErrCode(err) == sqlite.ResultConstraintUnique
}

// Unavailable words a failure of the database itself as 503 DatabaseUnavailable; other errors pass.
func Unavailable(err error) error {
	if err == nil {
		return nil
	}
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultBusy, sqlite.ResultLocked, sqlite.ResultIOErr, sqlite.ResultFull, sqlite.ResultCantOpen:
		return unavailable(err)
	}
	return err
}

// unavailableSchema is what a change gets whose database was brought to another schema by another portolan.
func unavailableSchema(version, binary int) error {
	p := problem.New(503, "SchemaChanged",
		"the database was brought to another version of the schema by another portolan: this manager must be replaced by it")
	p.Err = &SchemaError{Database: version, Binary: binary}
	return p
}

// busy is what a change gets that never had its turn.
func busy(err error) error {
	p := problem.New(503, "DatabaseBusy", "others are changing the same just now, for longer than this change may wait; try again")
	p.Err = err
	return p
}

func unavailable(err error) error {
	p := problem.New(503, "DatabaseUnavailable", "the database cannot be reached just now; try again")
	p.Err = err
	return p
}
