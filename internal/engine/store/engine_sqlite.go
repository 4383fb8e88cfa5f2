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

// sqliteEngine is a SQLite file: one writer, snapshots beside it.
type sqliteEngine struct {
	store *Store
	// readers are the connections for short reads, pages those for pages of lists, lists those for long ones, health is one
	// that only Ready uses: a reader that takes its time holds up its like alone.
	readers, lists, pages, health *pool
	// path is the file.
	path    string
	jobs    chan *job
	stop    chan struct{}
	stopped chan struct{}
	// watched and indexed are closed when watch and keepIndexed have ended; nil where there are none.
	watchDone, indexDone chan struct{}
	// ended is what closing the write connection gave; set before stopped is closed.
	closeErr error
	// exclusive says that no other manager has the directory. given and reserved are the writer's
	// own: the numbers it has given out, and the mark in the database.
	exclusive, readOnly bool
	issued, reserved    counters
	markVersion         int64 // the database's, when the mark was last read
	// noticed is the database's version, as the writer's connection tells it, when it was last looked at: it changes
	// with the commits of other processes. The writer's own; check asks it to look.
	seenVersion   int64
	checkRequests chan struct{}
	// remark says that the marks in the database were written by somebody else than the writer.
	marksStale atomic.Bool
	lock       *os.File
	// gone says that the file is not where it was opened.
	fileGone atomic.Bool
}

// openFile opens the database in the directory.
func openFile(s *Store, o Options) (*sqliteEngine, error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the data directory: %w", err)
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
		// What a loss of power left behind the end of the log goes: logFault would take it for damage later. Without room it stays.
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

// checkLog returns an error if the log is damaged. Where a manager has the directory nothing is looked at: it writes the log.
func (e *sqliteEngine) checkLog(path, dir string) error {
	if !e.exclusive {
		lock, err := dirlock.Take(dir, "manager")
		if err != nil {
			return nil //nolint:nilerr // a manager serves, and has looked
		}
		if lock != nil {
			defer func() { _ = lock.Close() }() // nothing was written
		}
	}
	return checkWholeLog(path)
}

// lockTime is how long a manager that begins waits for the directory: a command that looks at the log has it for a moment.
const lockTime = 2 * time.Second

// takeDir takes the lock of the directory for a manager.
func lockDir(dir string) (lock *os.File, err error) {
	for until := time.Now().Add(lockTime); ; time.Sleep(watchEvery) {
		if lock, err = dirlock.Take(dir, "manager"); err == nil || time.Now().After(until) {
			return lock, err
		}
	}
}

// watchEvery is how often a manager looks for commits of other processes.
const watchEvery = 100 * time.Millisecond

// watch notices what other processes commit, such as a token that is revoked on the command line, and that the file is not there any more.
func (e *sqliteEngine) watch(w *session, open os.FileInfo) {
	defer close(e.watchDone)
	defer func() { _ = w.close() }() // a reader has nothing to lose
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
			_ = e.store.recordCondition(errFileGone, true) // it is the condition from now on
		}
		var version int64
		err := queryFirst(w, "PRAGMA data_version", nil, func(r row) error { return r.scan(&version) })
		if err != nil || version != last { // this connection does not tell whose commit it was
			last = version
			select {
			case e.checkRequests <- struct{}{}:
			default: // it is about to look
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

// indexEvery is how long what has changed may wait for the index of trigrams, where nothing else keeps the writer.
const indexEvery = 250 * time.Millisecond

// keepIndexed moves what is due into the index of trigrams, in steps that others get between.
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
			if err := e.store.findCommonTrigrams(ctx); err != nil && ctx.Err() == nil { // all trigrams are looked for
				slog.Error("searches and filters on parts of texts are slower than they need be", "error", err)
			}
			sampled = time.Now()
		}
		signal := e.store.commitSignal.wait() // before looking, so that a commit meanwhile is not missed
		switch err := e.store.IndexTexts(ctx); {
		case err == nil:
			lastError = ""
		case ctx.Err() == nil && !errors.Is(err, errClosing) && err.Error() != lastError: // it is tried again behind the next commit
			lastError = err.Error()
			slog.Error("the index of trigrams falls behind: searches and filters on parts of texts get slow", "error", err)
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

// contends is so beside a manager, whose own changes stand in its queue.
func (e *sqliteEngine) needsYield() bool { return !e.exclusive }

func (e *sqliteEngine) awaitFeed(context.Context) error { return nil }

// snapshot interrupts what may take long when the context ends.
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
		return fmt.Errorf("beginning a snapshot: %w", err)
	}
	defer func() {
		if _, e := r.exec("ROLLBACK"); e != nil && err == nil {
			err = fmt.Errorf("ending a snapshot: %w", e)
		}
	}()
	if kind == readPage || kind == readLong {
		r.conn.SetInterrupt(ctx.Done())
		defer r.conn.SetInterrupt(nil)
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

// update gives a job to the writer and waits for its commit.
func (e *sqliteEngine) update(ctx context.Context, _ Scope, author Author, fn func(*Tx) error) error {
	if e.readOnly {
		return errors.New("the database was opened for reading alone")
	}
	if e.fileGone.Load() {
		return errFileGone
	}
	j := &job{ctx: ctx, author: author, fn: fn, done: make(chan struct{})}
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
		// The writer has gone: either it finished this job before it went, or never saw it.
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

// filled lets the marks that came with the data be read again.
func (e *sqliteEngine) afterFill() { e.marksStale.Store(true) }

func (e *sqliteEngine) sizeQuery() string {
	return "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
}
