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

// Options configure Open: the location of the data, the kind of access and the clock.
type Options struct {
	// Dir is the data directory. Open creates it if it does not exist. It contains the database portolan.db.
	Dir string
	// Database is the URL of a PostgreSQL database. Empty means SQLite in Dir.
	Database string
	// DatabaseRead is the URL of a standby of Database. Lists are read from the standby while it has caught up.
	DatabaseRead string
	// Layout describes the tables of all packages in the database. nil means only those of the store.
	Layout *Layout
	// Schema is the target version of Open's schema migration; 0 means the newest. With any other version only Load works.
	Schema int
	// Filling opens a database that Carry fills, or has started to fill.
	Filling bool
	// Exclusive is set by managers, and by tools that must be the only process. It takes the lock of the directory, migrates the schema
	// and, on PostgreSQL, listens for the changes of other processes. Without it, Open returns an error if the schema has another version
	// and a manager may be running.
	Exclusive bool
	// Alone is Exclusive for a tool during whose run no manager may change the data. It works on both databases.
	Alone bool
	// ReadOnly opens an existing database for reading. It also works on a read-only file system.
	ReadOnly bool
	// Readers is the maximum number of connections for short reads. 0 means 8 on SQLite and 16 on PostgreSQL.
	Readers int
	// ListReaders is the maximum number of connections for lists and other long reads; 0 means 4. Single pages of lists have another pool
	// of that size.
	ListReaders int
	// Patience is the maximum time that a change waits for its locks on PostgreSQL; 0 means 30 seconds.
	Patience time.Duration
	// Now is the clock. nil means time.Now.
	Now func() time.Time
	// Skew is added to the clock of the machine, in tests.
	Skew time.Duration
	// Speedup divides the pauses of background workers (ShortenPause) and the work of hashing a password; 0 means 1. Tests set it.
	Speedup int
}

// Store is an open database. It is safe for concurrent use.
type Store struct {
	layout *Layout
	engine engine
	now    func() time.Time
	// hasOwnClock is true if Options.Now was set, so that the clock is not that of the machine.
	hasOwnClock bool
	// speedup is Options.Speedup, at least 1.
	speedup int
	// schema is the version of the database's schema.
	schema int
	// condition is the current condition of the database. It is nil if the database is ready.
	condition atomic.Pointer[conditionState]
	// sortLimit is the number of rows that may always be looked up and sorted: defaultSortLimit, except in tests.
	sortLimit int64
	// headCacheHits counts the latest consecutive lists whose required heads were all cached (Tx.NoteHeads). It stops near
	// minHeadCacheHits.
	headCacheHits atomic.Int32
	// inline are the body members that heads include (ShowInline).
	inline atomic.Pointer[inlineMembers]
	// commitSignal is signalled at every commit that this process learns of. watches are the topics whose values are cached.
	commitSignal broadcaster
	hub          hub
	watches      watchList
	closing      sync.Once
	// updates counts the changes that are running or waiting. trials are the changes that are only tried.
	updates atomic.Int64
	trials  trials
	commits commits
	// rowCache contains resources that were read one at a time, as of the latest commit.
	rowCache *Cache[int64, *Resource]
	// belowCaches contains the results of Governed conditions, by the collections that the conditions walk through. belowMu guards it.
	belowMu     sync.Mutex
	belowCaches map[string]*Cache[string, belowResult]
	// timing receives the durations of changes (Time).
	timing atomic.Pointer[Timing]
	// observer receives the statements that read (Observe).
	observer atomic.Pointer[func(Statement)]
	// commonTrigrams are the trigrams that very many resources contain (findCommonTrigrams).
	commonTrigrams atomic.Pointer[map[string]bool]
	// estimates caches row estimates of PostgreSQL (Tx.estimate).
	estimates estimates
	// searchedFields are the body members in the trigram index, by collection. trigrams is true if the database has that index.
	searchedFields map[string][]string
	trigrams       bool
}

// engine is the implementation of the store for one kind of database.
type engine interface {
	// snapshot runs fn on a connection of the given kind, in a snapshot that starts after the call.
	snapshot(ctx context.Context, kind readKind, fn func(conn) error) error
	// latest runs fn on a connection on which each statement sees the latest commit.
	latest(ctx context.Context, fn func(conn) error) error
	// update runs fn in a transaction and commits it (Store.UpdateIn).
	update(ctx context.Context, scope Scope, author Author, fn func(*Tx) error) error
	// fill runs fn in a transaction that writes whole tables, including the number marks.
	fill(ctx context.Context, fn func(conn) error) error
	// afterFill is called after whole tables were written. It discards numbers and marks that were read before.
	afterFill()
	// canShare reports whether values that depend on the topics may be cached: this process must learn of changes by other processes.
	canShare(topics []string) bool
	// oneWriter reports whether updates run one after another, so that nothing else is committed during an update.
	oneWriter() bool
	// keepIndexes implements Store.KeepIndexes.
	keepIndexes(ctx context.Context, all []Index) error
	// sizeQuery returns the query for the size of the database in bytes.
	sizeQuery() string
	// addFigures sets the fields of f that depend on the engine.
	addFigures(ctx context.Context, f *Figures) error
	// needsYield reports whether other processes poll for the write lock instead of queueing for it.
	needsYield() bool
	// awaitFeed waits until the change feed contains everything that was committed before the call.
	awaitFeed(ctx context.Context) error
	// afterOpen is called when the store is ready. It starts background work.
	afterOpen()
	// close waits for the queued updates, then closes the database.
	close() error
}

// readKind is the purpose of a read connection. Each kind has its own pool, so that the kinds do not delay one another.
type readKind int

const (
	readShort  readKind = iota // short answers
	readPage                   // single pages of lists
	readLong                   // lists and other long reads
	readHealth                 // only for Ready
)

// Open opens the database and migrates its schema. It returns an error if the schema is newer than this binary, or if another manager has
// locked the directory.
func Open(o Options) (*Store, error) {
	if o.Layout == nil {
		o.Layout = &Layout{}
	}
	s := &Store{layout: o.Layout, schema: cmp.Or(o.Schema, o.Layout.Version()), sortLimit: defaultSortLimit,
		searchedFields: o.Layout.searchedOf()}
	s.inline.Store(&inlineMembers{})
	s.hub.store, s.trials.token = s, make(chan struct{}, 1)
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
	s.hasOwnClock, s.speedup = o.Now != nil, max(1, o.Speedup)
	if s.now = o.Now; s.now == nil {
		s.now = func() time.Time { return time.Now().Add(o.Skew) }
	}
	switch {
	case o.Database != "":
		s.engine, err = openShared(s, o)
	case o.DatabaseRead != "":
		return errors.New("a read-only database requires a database for writes")
	case o.ReadOnly:
		s.engine, err = openReadOnly(s, o)
	default:
		s.engine, err = openFile(s, o)
	}
	return err
}

// LastCommit returns the number of the last commit that this process knows of. The number rises with each commit.
func (s *Store) LastCommit() uint64 { return s.commits.last.Load() }

// recordCommit counts a commit of this process that changed the topics. It must be called before the change is acknowledged.
func (s *Store) recordCommit(topics []string) {
	s.commits.record(topics, true)
	s.commitSignal.wake()
}

// Close waits for the queued updates, then closes the database. Further calls do nothing.
func (s *Store) Close() (err error) {
	s.closing.Do(func() { err = s.engine.close() })
	return err
}

// Now returns the time of the store's clock.
func (s *Store) Now() time.Time { return s.now() }

// ClockOffset returns how far the database's clock is ahead of this process's clock. Managers that share a database use the database's
// time as their common clock. It returns 0 if Options.Now was set, and on SQLite.
func (s *Store) ClockOffset(ctx context.Context) (ahead time.Duration, err error) {
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

// Duplicate reports whether the error is a violation of a unique index.
func Duplicate(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "23505" || err != nil && sqlite.ErrCode(err) == sqlite.ResultConstraintUnique
}

// IsFailure reports whether the error was caused by the database, a lost lease or the end of the context, and not by the data that was
// read. A retry may succeed.
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

// NoRoom reports whether the error means that the disk of a SQLite database is full.
func NoRoom(err error) bool { return sqlite.ErrCode(err).ToPrimary() == sqlite.ResultFull }

// Unavailable converts a failure of the database into 507 DatabaseFull, 503 DatabaseDamaged or 503 DatabaseUnavailable. It returns other
// errors unchanged.
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

// schemaChangedError is the error of a change after another version of portolan migrated the schema of the database.
func schemaChangedError(version, binary int) error {
	p := problem.New(503, "SchemaChanged",
		"another release of portolan migrated the database to another schema version; restart the manager with that release")
	p.Err = &SchemaError{Database: version, Binary: binary}
	return p
}

// busyError is the error of a change that did not get its locks in time.
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
