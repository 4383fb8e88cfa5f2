package store

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"portolan/internal/base/problem"

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
	// Skew is by how much the machine's clock is said to be wrong, in tests.
	Skew time.Duration
	// Hurry divides the pauses of workers (Paced); 0 means 1. Tests set it.
	Hurry int
}

// Store is one database. It is safe for concurrent use.
type Store struct {
	layout *Layout
	engine engine
	now    func() time.Time
	// givenClock says that it is not the machine's.
	hasOwnClock bool
	// hurry is Options.Hurry, at least 1.
	hurry int
	// schema is the version of the schema that the database has.
	schema int
	// condition is how the database is; nil where it is ready.
	condition atomic.Pointer[conditionState]
	// few is how many rows may be looked up and sorted: fewRows, but in tests that make do with fewer.
	sortLimit int64
	// headsKnown is how many lists in a row needed no heads but those that were remembered (Tx.NoteHeads), at most knownInARow or a few more.
	headCacheHits atomic.Int32
	// inline are the members that heads have with them (ShowInline).
	inline atomic.Pointer[inlineMembers]
	// commitNews wakes who waits for a commit, at every one that is heard of; watches are the topics that are remembered.
	commitSignal broadcaster
	hub          hub
	watches      watchList
	closing      sync.Once
	// updates are how many changes are under way, or wait for their turn; trials are those that are only tried.
	updates atomic.Int64
	trials  trials
	commits commits
	// rows are resources that were read alone, as the latest commit has them.
	rowCache *Cache[int64, *Resource]
	// below are the caches of what conditions hold for by where it lies, by the collections that they go through; guarded by belowMu.
	belowMu     sync.Mutex
	belowCaches map[string]*Cache[string, belowResult]
	// timing is told how long changes take (Time).
	timing atomic.Pointer[Timing]
	// observer sees what is read with (Observe).
	observer atomic.Pointer[func(Statement)]
	// common are the trigrams that very many resources have (sampleTexts).
	commonTrigrams atomic.Pointer[map[string]bool]
	// estimates are those of PostgreSQL (Tx.estimate).
	estimates estimates
	// searched are the members that the index of trigrams has, by collection; trigrams says that there is that index.
	searchedFields map[string][]string
	trigrams       bool
}

// engine is the database under the store.
type engine interface {
	// snapshot runs fn on a connection of a kind, in a snapshot that begins after it was called.
	snapshot(ctx context.Context, kind readKind, fn func(conn) error) error
	// latest runs fn on a connection each of whose statements sees the latest commit.
	latest(ctx context.Context, fn func(conn) error) error
	// update runs fn in a transaction and commits it (Store.UpdateIn).
	update(ctx context.Context, scope Scope, author Author, fn func(*Tx) error) error
	// fill runs fn in a transaction that writes whole tables, the numbers given out among them.
	fill(ctx context.Context, fn func(conn) error) error
	// filled is called when whole tables were written: nothing that was known before holds.
	afterFill()
	// shares reports whether this process would hear of it if another one changed something of the topics.
	canShare(topics []string) bool
	// oneWriter reports whether one update runs after another: while one runs, nothing else is committed.
	oneWriter() bool
	// keepIndexes is Store.KeepIndexes.
	keepIndexes(ctx context.Context, all []Index) error
	// sizeQuery asks how large the database is, in bytes.
	sizeQuery() string
	// figures puts in what the engine tells of its database.
	addFigures(ctx context.Context, f *Figures) error
	// contends reports whether other processes that want to change something look for the lock now and then, and stand in no queue.
	needsYield() bool
	// awaitFeed waits until all that was committed before is in the change feed.
	awaitFeed(ctx context.Context) error
	// opened is called when the store is ready: what a manager does beside its work begins.
	afterOpen()
	// close waits for the updates already queued, then closes the database.
	close() error
}

// readKind says for what a connection is: none of them holds up the others.
type readKind int

const (
	readShort  readKind = iota // short answers
	readPage                   // pages of lists that take a moment
	readLong                   // lists and whatever else may take long
	readHealth                 // Ready alone
)

// Open opens the database in the directory and brings its schema up to date. It refuses, with an
// error that says so, a schema newer than this binary and a directory another manager is serving.
func Open(o Options) (*Store, error) {
	if o.Layout == nil {
		o.Layout = &Layout{}
	}
	s := &Store{layout: o.Layout, schema: cmp.Or(o.Schema, o.Layout.Version()), sortLimit: defaultSortLimit,
		searchedFields: o.Layout.searchedOf()}
	s.inline.Store(&inlineMembers{})
	s.hub.store, s.trials.turn = s, make(chan struct{}, 1)
	s.rowCache = NewCache[int64](s, CacheOptions[*Resource]{By: func(r *Resource) string { return r.Collection }, Max: maxCachedRows})
	if err := s.openEngine(o); err != nil {
		return nil, err
	}
	if o.Filling || o.Schema != 0 {
		return s, nil
	}
	if err := s.checkNotFilling(context.Background()); err != nil {
		_ = s.Close() // nothing was written
		return nil, err
	}
	for _, e := range o.Layout.Extensions {
		if e.Opened != nil {
			e.Opened(s)
		}
	}
	s.engine.afterOpen()
	return s, nil
}

// openEngine opens the database that the options name.
func (s *Store) openEngine(o Options) (err error) {
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
	s.hasOwnClock, s.hurry = o.Now != nil, max(1, o.Hurry)
	if s.now = o.Now; s.now == nil {
		s.now = func() time.Time { return time.Now().Add(o.Skew) }
	}
	switch {
	case o.Database != "":
		s.engine, err = openShared(s, o)
	case o.DatabaseRead != "":
		return errors.New("a database to read from needs one to write to")
	case o.ReadOnly:
		s.engine, err = openReadOnly(s, o)
	default:
		s.engine, err = openFile(s, o)
	}
	return err
}

// LastCommit is the number of the last commit that this process knows of. It grows with each.
func (s *Store) LastCommit() uint64 { return s.commits.last.Load() }

// committed counts a commit of this process that changed something of the topics, before whoever made it is answered.
func (s *Store) recordCommit(topics []string) {
	s.commits.record(topics, true)
	s.commitSignal.wake()
}

// Close waits for the updates already queued, then closes the database. A second time it does nothing.
func (s *Store) Close() (err error) {
	s.closing.Do(func() { err = s.engine.close() })
	return err
}

// Now gives the store's time.
func (s *Store) Now() time.Time { return s.now() }

// Ahead is by how much the database's clock is ahead of this process's: where several managers share a database, its time is the one
// that they all have. It is zero where the clock was given (Options.Now), and on SQLite.
func (s *Store) Ahead(ctx context.Context) (ahead time.Duration, err error) {
	if s.hasOwnClock {
		return 0, nil
	}
	err = s.Read(ctx, func(tx *Tx) error {
		if _, shared := tx.conn.(*pgConn); !shared {
			return nil
		}
		before := s.now()
		var millis int64
		err := tx.QueryRow("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)").Scan(&millis)
		took := s.now().Sub(before)
		ahead = time.UnixMilli(millis).Sub(before.Add(took / 2))
		return err
	})
	return ahead, err
}

// Duplicate reports whether an error is that of a unique index.
func Duplicate(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "23505" || err != nil && sqlite.ErrCode(err) == sqlite.ResultConstraintUnique
}

// IsFailure reports whether an error comes from the database, from a lease that was lost, or from an end of the context, and not from what
// was read: the next try may go well.
func IsFailure(err error) bool {
	var pg *pgconn.PgError
	var network net.Error
	code := sqlite.ErrCode(err)
	p, is := problem.As(err)
	return err != nil && (code != sqlite.ResultError || errors.As(err, &pg) || errors.As(err, &network) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.Canceled) || errors.Is(err, ErrLeaseLost) ||
		errors.Is(err, context.DeadlineExceeded) ||
		is && p.Status >= 500)
}

// NoRoom reports whether an error says that the disk of a SQLite has no room left.
func NoRoom(err error) bool { return sqlite.ErrCode(err).ToPrimary() == sqlite.ResultFull }

// Unavailable words a failure of the database itself: 507 DatabaseFull, 503 DatabaseDamaged or 503 DatabaseUnavailable; other errors pass.
func Unavailable(err error) error {
	if err == nil {
		return nil
	}
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultBusy, sqlite.ResultLocked, sqlite.ResultIOErr, sqlite.ResultCantOpen:
		return unavailableError(err)
	case sqlite.ResultFull:
		return fullError(err)
	case sqlite.ResultCorrupt, sqlite.ResultNotADB:
		return damagedError(err)
	}
	switch pgCode(err) {
	case pgDiskFull:
		return fullError(err)
	case pgDataCorrupted, pgIndexCorrupted:
		return damagedError(err)
	}
	return err
}

// unavailableSchema is what a change gets whose database was brought to another schema by another portolan.
func schemaChangedError(version, binary int) error {
	p := problem.New(503, "SchemaChanged",
		"the database was brought to another version of the schema by another portolan: this manager must be replaced by it")
	p.Err = &SchemaError{Database: version, Binary: binary}
	return p
}

// busy is what a change gets that never had its turn.
func busyError(err error) error {
	p := problem.New(503, "DatabaseBusy", "others are changing the same just now, for longer than this change may wait; try again")
	p.Err = err
	return p
}

func unavailableError(err error) error {
	p := problem.New(503, "DatabaseUnavailable", "the database cannot be reached just now; try again")
	p.Err = err
	return p
}
