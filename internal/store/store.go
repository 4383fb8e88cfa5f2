package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"portolan/internal/problem"

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
	// Schema is the version of the schema to bring the database to; 0 means the newest. With another
	// one nothing but Load works.
	Schema int
	// Filling opens a database that Carry is to fill, or has begun to.
	Filling bool
	// Exclusive takes the directory's lock: a manager has it while it serves, tools do not.
	Exclusive bool
	// Readers is how many read connections there may be; 0 means 8.
	Readers int
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Store is one database. It is safe for concurrent use.
type Store struct {
	// Counted, where it is set, is called at the end of an update that changed the usage of networks and
	// blocks; it is given those that the change was in, without what lies above them. It is set before the
	// store is used.
	Counted func(tx *Tx, containers []int64) error
	// pg is the database where it is PostgreSQL, replica one of its standbys, if there is one to read
	// from, listener what hears of other processes.
	pg       *postgres
	replica  *replica
	listener *listener
	now      func() time.Time
	// bell is rung at every commit that is heard of; watches are the topics that are remembered.
	bell    bell
	watches watched
	// The rest is SQLite's.
	readers *pool
	jobs    chan *job
	stop    chan struct{}
	stopped chan struct{}
	watched chan struct{} // closed when watch has ended; nil where nothing watches
	// ended is what closing the write connection gave; set before stopped is closed.
	ended error
	// exclusive says that no other manager has the directory. given and reserved are the writer's
	// own: the numbers it has given out, and the mark in the database.
	exclusive       bool
	given, reserved counters
	version         int64 // the database's, when the mark was last read
	// revision counts the commits that this process knows of; topics count those that changed
	// something of a topic, by its name.
	revision atomic.Uint64
	topics   sync.Map
	// foreign counts the commits of other processes that were noticed. Commits of this process look
	// foreign to the connection that watches, so it counts those as well.
	foreign atomic.Uint64
	lock    *os.File
	// asked is the schema that Options asked for.
	asked int
}

// schema is the version of the schema that the database has.
func (s *Store) schema() int {
	if s.asked == 0 {
		return SchemaVersion()
	}
	return s.asked
}

// Open opens the database in the directory and brings its schema up to date. It refuses, with an
// error that says so, a schema newer than this binary and a directory another manager is serving.
func Open(o Options) (*Store, error) {
	s, err := openEither(o)
	if err != nil || o.Filling || o.Schema != 0 {
		return s, err
	}
	if err := s.complete(context.Background()); err != nil {
		_ = s.Close() // nothing was written
		return nil, err
	}
	return s, nil
}

func openEither(o Options) (*Store, error) {
	if o.Readers <= 0 {
		o.Readers = 8
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Database != "" {
		return openShared(o)
	}
	if o.DatabaseRead != "" {
		return nil, errors.New("a database to read from needs one to write to")
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the data directory: %w", err)
	}
	s := &Store{now: o.Now, jobs: make(chan *job, 1024), stop: make(chan struct{}), stopped: make(chan struct{}), exclusive: o.Exclusive, asked: o.Schema}
	if o.Exclusive {
		var err error
		if s.lock, err = lockDir(o.Dir); err != nil {
			return nil, err
		}
	}
	if err := s.open(filepath.Join(o.Dir, "portolan.db"), o.Readers, o.Schema); err != nil {
		s.unlock()
		return nil, err
	}
	return s, nil
}

// openShared opens a PostgreSQL. A manager, which is what Exclusive stands for, listens to the others.
func openShared(o Options) (*Store, error) {
	pg, err := openPostgres(context.Background(), o.Database, o.Readers, o.Schema)
	if err != nil {
		return nil, err
	}
	s := &Store{pg: pg, now: o.Now, asked: o.Schema}
	if o.DatabaseRead != "" {
		if s.replica, err = openReplica(context.Background(), o.DatabaseRead, o.Readers); err != nil {
			pg.pool.Close()
			return nil, err
		}
	}
	if o.Exclusive {
		s.listen()
	}
	return s, nil
}

func (s *Store) open(path string, readers, schema int) error {
	writer, err := newSession(path)
	if err != nil {
		return fmt.Errorf("opening %s: %w", path, err)
	}
	if err := migrate(writer.conn, schema); err != nil {
		_ = writer.close()
		return err
	}
	s.readers = newPool(path, readers)
	if s.exclusive {
		watcher, err := newSession(path)
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
		if err != nil || version != last { // when in doubt, what is remembered is looked up again
			last = version
			s.news(nil)
		}
	}
}

// Revision changes with every commit of this process that touched one of the topics, or with every
// commit where none is named, at once; and with every commit of another process, within a tenth of a
// second. A collection is a topic; rooms that keep tables of their own name theirs by Tx.Touch. What
// was read at a revision may be remembered while it stands; ok is false for a store that does not
// watch, and on PostgreSQL for topics that are not watched or while the others cannot be heard: their
// data must be read each time.
func (s *Store) Revision(topics ...string) (revision uint64, ok bool) {
	ok = s.exclusive
	if s.pg != nil {
		ok = s.listener != nil && len(topics) > 0 && s.listener.alive() && len(s.watches.of(topics)) == len(topics)
	}
	if len(topics) == 0 {
		return s.revision.Load(), ok
	}
	revision = s.foreign.Load()
	for _, topic := range topics {
		if n, ok := s.topics.Load(topic); ok {
			revision += n.(*atomic.Uint64).Load()
		}
	}
	return revision, ok
}

// touched counts a commit that changed something of the topics.
func (s *Store) touched(topics []string) {
	for _, topic := range topics {
		n, ok := s.topics.Load(topic)
		if !ok {
			n, _ = s.topics.LoadOrStore(topic, &atomic.Uint64{})
		}
		n.(*atomic.Uint64).Add(1)
	}
	s.revision.Add(1)
	s.bell.ring()
}

// Close waits for the updates already queued, then closes the database.
func (s *Store) Close() error {
	if s.pg != nil {
		if s.listener != nil {
			s.listener.close()
		}
		s.replica.close()
		s.pg.pool.Close()
		return nil
	}
	close(s.stop)
	<-s.stopped
	if s.watched != nil {
		<-s.watched
	}
	s.readers.close()
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

// View runs fn on one consistent snapshot. It takes no lock that a writer would wait for.
func (s *Store) View(ctx context.Context, fn func(*Tx) error) (err error) {
	if s.pg != nil {
		return unreachable(s.pg.view(ctx, s.onto(ctx, fn)))
	}
	r, err := s.readers.take(ctx)
	if err != nil {
		return err
	}
	defer s.readers.put(r)
	if _, err := r.exec("BEGIN"); err != nil {
		return fmt.Errorf("beginning a snapshot: %w", err)
	}
	defer func() {
		if _, e := r.exec("ROLLBACK"); e != nil && err == nil {
			err = fmt.Errorf("ending a snapshot: %w", e)
		}
	}()
	return fn(&Tx{ctx: ctx, conn: r, now: s.now()})
}

// onto gives fn a Tx on a connection.
func (s *Store) onto(ctx context.Context, fn func(*Tx) error) func(conn) error {
	return func(c conn) error { return fn(&Tx{ctx: ctx, conn: c, now: s.now()}) }
}

// Lists is View for long answers. It is read from the standby where there is one and it has caught up
// with everything that was committed when the request came, by whichever manager.
func (s *Store) Lists(ctx context.Context, fn func(*Tx) error) error {
	if s.replica != nil && s.replica.caughtUp(ctx, s.pg) {
		err := s.replica.pg.view(ctx, s.onto(ctx, fn))
		if !s.replica.failed(err) {
			return unreachable(err)
		}
	}
	return s.View(ctx, fn)
}

// Read runs fn on a read connection without a snapshot around it: each of its statements sees the
// latest commit. For one statement that is the same and costs half.
func (s *Store) Read(ctx context.Context, fn func(*Tx) error) error {
	if s.pg != nil {
		return unreachable(s.pg.read(ctx, func(c conn) error { return fn(&Tx{ctx: ctx, conn: c, now: s.now(), latest: true}) }))
	}
	r, err := s.readers.take(ctx)
	if err != nil {
		return err
	}
	defer s.readers.put(r)
	return fn(&Tx{ctx: ctx, conn: r, now: s.now(), latest: true})
}

// Ready reports whether the database answers.
func (s *Store) Ready(ctx context.Context) error {
	return s.View(ctx, func(tx *Tx) error {
		var n int
		return tx.QueryRow("SELECT 1").Scan(&n)
	})
}

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

func unavailable(err error) error {
	p := problem.New(503, "DatabaseUnavailable", "the database cannot be reached just now; try again")
	p.Err = err
	return p
}
