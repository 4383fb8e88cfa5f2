package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"portolan/internal/base/dirlock"
)

// sqliteEngine is a SQLite file with one writer and concurrent snapshots.
type sqliteEngine struct {
	store *Store
	// readers serves short reads, pages serves single pages of lists, lists serves long reads, and health serves only Ready. A long read
	// therefore delays only reads of its own kind.
	readers, lists, pages, health *pool
	// path is the path of the database file.
	path    string
	jobs    chan *job
	stop    chan struct{}
	stopped chan struct{}
	// watchDone and indexDone are closed when watch and runIndexer have ended. They are nil if these do not run.
	watchDone, indexDone chan struct{}
	// closeErr is the error of closing the write connection. It is set before stopped is closed.
	closeErr error
	// exclusive is true if no other manager can use the directory. issued and reserved belong to the writer: the last assigned numbers,
	// and the marks in the database.
	exclusive, readOnly bool
	issued, reserved    counters
	markVersion         int64 // the database's data version when the marks were last read
	// seenVersion is the database's data version at the last check on the writer's connection. Commits of other processes change it. It
	// belongs to the writer; checkRequests asks the writer to check it.
	seenVersion   int64
	checkRequests chan struct{}
	// postponed is a large job that starts the next group. Only the writer uses it.
	postponed *job
	// marksStale is true if the marks in the database were not written by the writer.
	marksStale atomic.Bool
	lock       *os.File
	// fileGone is true if the database file was moved, deleted or replaced.
	fileGone atomic.Bool
}

// openFile opens the database in the directory.
func openFile(s *Store, o Options) (*sqliteEngine, error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the data directory: %w", err)
	}
	path := filepath.Join(o.Dir, databaseFile)
	if err := protectFiles(path); err != nil {
		return nil, err
	}
	e := &sqliteEngine{store: s, path: path, jobs: make(chan *job, 1024), stop: make(chan struct{}), stopped: make(chan struct{}),
		checkRequests: make(chan struct{}, 1), exclusive: o.Exclusive}
	if o.Exclusive {
		var err error
		if e.lock, err = lockDir(o.Dir); err != nil {
			return nil, err
		}
	}
	err := e.open(path, o)
	if err == nil && o.Exclusive {
		err = markUsed(path)
	}
	if err != nil {
		e.unlock()
		return nil, err
	}
	return e, nil
}

func (e *sqliteEngine) open(path string, o Options) error {
	if err := e.checkLog(path, o.Dir); err != nil {
		return err
	}
	writer, err := newSession(path, writeSession)
	if err != nil {
		return openError(path, err)
	}
	if err := e.migrateSchema(writer, o); err != nil {
		_ = writer.close()
		return openError(path, err)
	}
	e.openPools(path, o, writeSession)
	if e.exclusive {
		// This removes remains of a power failure after the end of the log, which findLogFault would later report as damage. It fails if
		// the disk is full.
		_, _ = writer.exec("PRAGMA wal_checkpoint(TRUNCATE)")
		watcher, err := newSession(path, writeSession)
		if err != nil {
			_ = writer.close()
			return openError(path, err)
		}
		info, err := os.Stat(path)
		if err != nil {
			return errors.Join(openError(path, err), writer.close(), watcher.close())
		}
		e.watchDone = make(chan struct{})
		go e.watch(watcher, info)
	}
	go e.runWriter(writer)
	e.store.trigrams = e.store.schema >= trigramSchema
	return nil
}

// checkLog returns an error if the log is damaged. It checks nothing while a manager has locked the directory, because that manager
// writes the log.
func (e *sqliteEngine) checkLog(path, dir string) error {
	if !e.exclusive {
		lock, err := dirlock.Acquire(dir, "manager")
		if err != nil {
			return nil //nolint:nilerr // a running manager has checked the log
		}
		if lock != nil {
			defer func() { _ = lock.Close() }() // nothing was written
		}
	}
	return checkWholeLog(path)
}

// lockTime is the maximum time that a starting manager waits for the lock of the directory. A command that checks the log holds it
// briefly.
const lockTime = 2 * time.Second

// lockDir takes the lock of the directory for a manager.
func lockDir(dir string) (lock *os.File, err error) {
	for until := time.Now().Add(lockTime); ; time.Sleep(watchEvery) {
		if lock, err = dirlock.Acquire(dir, "manager"); err == nil || time.Now().After(until) {
			return lock, err
		}
	}
}

// watchEvery is the interval at which a manager checks for commits of other processes.
const watchEvery = 100 * time.Millisecond

// watch detects commits of other processes, such as the revocation of a token on the command line, and the removal of the database file.
func (e *sqliteEngine) watch(w *session, open os.FileInfo) {
	defer close(e.watchDone)
	defer func() { _ = w.close() }() // a reader has no unwritten data
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	var last int64
	for {
		select {
		case <-e.stop:
			return
		case <-tick.C:
		}
		if !e.fileGone.Load() && !isSameFile(e.path, open) {
			e.fileGone.Store(true)
			_ = e.store.recordCondition(errFileGone, true) // sets the condition of the database
		}
		var version int64
		err := queryFirst(w, "PRAGMA data_version", nil, func(r row) error { return r.scan(&version) })
		if err != nil || version != last { // this connection cannot tell whether the commit was the writer's
			last = version
			select {
			case e.checkRequests <- struct{}{}:
			default: // a check is already requested
			}
		}
	}
}

func (e *sqliteEngine) afterOpen() {
	if e.exclusive && e.store.trigrams {
		e.indexDone = make(chan struct{})
		go e.runIndexer()
	}
}

// indexEvery is the delay between a commit and the update of the trigram index.
const indexEvery = 250 * time.Millisecond

// runIndexer updates the trigram index with pending resources, in small updates between which others can run.
func (e *sqliteEngine) runIndexer() {
	defer close(e.indexDone)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-e.stop
		cancel()
	}()
	var sampled time.Time
	for lastError := ""; ; {
		if time.Since(sampled) > sampleEvery {
			if err := e.store.findCommonTrigrams(ctx); err != nil && ctx.Err() == nil { // searches use all trigrams
				slog.Error("common trigrams not determined, text searches are slower", "error", err)
			}
			sampled = time.Now()
		}
		signal := e.store.commitSignal.wait() // taken before the check, so that no commit is missed
		switch err := e.store.IndexTexts(ctx); {
		case err == nil:
			lastError = ""
		case ctx.Err() == nil && !errors.Is(err, errClosing) && err.Error() != lastError: // retried after the next commit
			lastError = err.Error()
			slog.Error("trigram index update failed, text searches get slower", "error", err)
		}
		select {
		case <-e.stop:
			return
		case <-signal:
		}
		select {
		case <-e.stop:
			return
		case <-time.After(indexEvery):
		}
	}
}

func (e *sqliteEngine) close() error {
	close(e.stop)
	<-e.stopped
	for _, ended := range []chan struct{}{e.watchDone, e.indexDone} {
		if ended != nil {
			<-ended
		}
	}
	for _, p := range []*pool{e.readers, e.lists, e.pages, e.health} {
		p.close()
	}
	e.unlock()
	return e.closeErr
}

func (e *sqliteEngine) unlock() {
	if e.lock != nil {
		_ = e.lock.Close()
	}
}

func (e *sqliteEngine) canShare([]string) bool { return e.exclusive }

func (e *sqliteEngine) oneWriter() bool { return true }

// needsYield is true in a tool next to a manager. The changes of a manager itself wait in its queue.
func (e *sqliteEngine) needsYield() bool { return !e.exclusive }

func (e *sqliteEngine) awaitFeed(context.Context) error { return nil }

// snapshot interrupts long reads when the context ends.
func (e *sqliteEngine) snapshot(ctx context.Context, kind readKind, fn func(conn) error) (err error) {
	from := e.readers
	switch kind {
	case readPage:
		from = e.pages
	case readLong:
		from = e.lists
	case readHealth:
		from = e.health
	}
	r, err := from.acquire(ctx)
	if err != nil {
		return err
	}
	defer from.release(r)
	if _, err := r.exec("BEGIN"); err != nil {
		return fmt.Errorf("begin snapshot: %w", err)
	}
	defer func() {
		if _, e := r.exec("ROLLBACK"); e != nil && err == nil {
			err = fmt.Errorf("end snapshot: %w", e)
		}
	}()
	if kind == readPage || kind == readLong {
		defer r.interruptWith(ctx)()
	}
	return fn(r)
}

func (e *sqliteEngine) latest(ctx context.Context, fn func(conn) error) error {
	r, err := e.readers.acquire(ctx)
	if err != nil {
		return err
	}
	defer e.readers.release(r)
	return fn(r)
}

// update passes a job to the writer and waits for its commit.
func (e *sqliteEngine) update(ctx context.Context, _ Scope, author Author, fn func(*Tx) error) error {
	if e.readOnly {
		return errors.New("the database is open for reading only")
	}
	if e.fileGone.Load() {
		return errFileGone
	}
	j := &job{ctx: ctx, author: author, fn: fn, done: make(chan struct{}), isLarge: largeStep(ctx) != nil}
	select {
	case <-e.stop:
		return errClosing
	default:
	}
	select {
	case e.jobs <- j:
	case <-ctx.Done():
		return ctx.Err()
	case <-e.stop:
		return errClosing
	}
	select {
	case <-j.done:
		return j.err
	case <-e.stopped:
		// The writer has ended. It either finished this job before, or never received it.
		select {
		case <-j.done:
			return j.err
		default:
			return errClosing
		}
	}
}

func (e *sqliteEngine) fill(ctx context.Context, fn func(conn) error) error {
	return e.update(ctx, Scope{}, Author{}, func(tx *Tx) error { return fn(tx.conn) })
}

// afterFill marks the number marks as stale, because they were loaded with the data.
func (e *sqliteEngine) afterFill() { e.marksStale.Store(true) }

func (e *sqliteEngine) sizeQuery() string {
	return "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
}
