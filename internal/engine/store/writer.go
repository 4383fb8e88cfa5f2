package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"time"
)

// Author describes who makes a change, for the history.
type Author struct {
	// User is the id of the user resource; 0 for the manager itself.
	User int64
	// Name is the name, at the time of the change, of the user or of a token without a user.
	Name string
	// Comment is the client's x-bcn-change-control-comment.
	Comment string
	// Credential describes the credential of the request: a session or a token with its number, or a password. Remote is the client's
	// address. Client is the program that the client claims to be. All are empty for changes without a request.
	Credential, Remote, Client string
}

// job is an update that waits for its commit.
type job struct {
	ctx    context.Context
	author Author
	fn     func(*Tx) error
	err    error
	topics map[string]int
	done   chan struct{}
	// isLarge is true for a step of large work (LargeStep).
	isLarge bool
}

// Group commit. One goroutine owns the write connection. It starts a transaction for the first job in the queue. All jobs that are
// waiting by then run in the same transaction, each in its own savepoint, before a single commit. A job sees the changes of earlier jobs.
// A job that fails rolls back only its own changes. A large job starts a group of its own (LargeStep). No job is answered before the commit
// returns, so a crash at any point loses only unacknowledged work.
//
// maxGroup bounds the jobs of a group, maxGroupTime its duration.
const (
	maxGroup     = 256
	maxGroupTime = 20 * time.Millisecond
)

// errClosing is returned by an update while the store closes.
var errClosing = errors.New("the store is closing")

// Updater is Store.Update or Lease.Update.
type Updater func(ctx context.Context, author Author, fn func(*Tx) error) error

// Update runs fn in a transaction and commits it. If fn changed resources, Update also writes a transaction with the author to the
// history. If fn returns an error, Update rolls back and returns the error.
func (s *Store) Update(ctx context.Context, author Author, fn func(*Tx) error) error {
	return s.UpdateIn(ctx, Scope{}, author, fn)
}

// UpdateIn is Update for a change that neither reads nor changes anything outside of the scope.
func (s *Store) UpdateIn(ctx context.Context, scope Scope, author Author, fn func(*Tx) error) error {
	s.updates.Add(1)
	defer s.updates.Add(-1)
	defer s.reportChange(ctx, time.Now())
	return s.runAccess(ctx, true, func(ctx context.Context) error { return s.engine.update(ctx, scope, author, fn) })
}

// yieldTime is the pause between two changes of a tool. The lock of the SQLite database is free meanwhile. A waiting process polls
// for the lock every 25 ms at first, so it finds the lock free.
const yieldTime = 30 * time.Millisecond

// Yield pauses between two changes of a tool, so that other processes can get the write lock.
func (s *Store) Yield(ctx context.Context) {
	if s.engine.needsYield() {
		Pause(ctx, yieldTime)
	}
}

// runWriter is the loop of the writer. It ends after the store closes and the queue is empty.
func (e *sqliteEngine) runWriter(w *session) {
	defer func() {
		e.closeErr = w.close()
		close(e.stopped)
	}()
	idle := time.NewTimer(idleTime)
	defer idle.Stop()
	var lastOptimized, lastCheckpoint time.Time
	var space logSpace
	lastError := ""
	for _, pragma := range writerPragmas {
		_ = w.each(pragma, nil, func(row) error { return nil }) // without them the writer is only slower
	}
	for {
		select {
		case j := <-e.jobs:
			for ; j != nil; j, e.postponed = e.postponed, nil {
				e.runGroup(w, j)
				if err := w.checkpointIfLarge(&lastCheckpoint, space.checkpointThreshold(e.path)); err != nil && err.Error() != lastError {
					lastError = err.Error()
					slog.Error("sqlite log checkpoint failed, the log keeps growing", "error", err)
				}
			}
			idle.Reset(idleTime)
		case <-e.checkRequests:
			_, _ = e.detectForeignCommit(w) // the next change returns the same error
		case <-idle.C:
			if time.Since(lastOptimized) > optimizeEvery { // runs first, because it writes to the log as well
				lastOptimized = time.Now()
				w.optimize()
			}
			if !w.truncateLog() {
				idle.Reset(idleTime)
			}
		case <-e.stop:
			for {
				select {
				case j := <-e.jobs:
					for ; j != nil; j, e.postponed = e.postponed, nil {
						e.runGroup(w, j)
					}
				default:
					return
				}
			}
		}
	}
}

// idleTime is the minimum idle time of the writer before it truncates the log.
const idleTime = 2 * time.Second

// optimizeEvery is the interval at which the statistics of the query planner are updated.
const optimizeEvery = time.Hour

// optimize updates SQLite's planner statistics of tables that changed much. It reads only a few rows of each index.
func (s *session) optimize() {
	for _, pragma := range []string{"PRAGMA analysis_limit = 1000", "PRAGMA optimize = 0x10002"} {
		_ = s.each(pragma, nil, func(row) error { return nil }) // plans with older statistics still work
	}
}

// checkpoint runs PRAGMA wal_checkpoint with the given mode. It returns the number of pages in the log and how many of them are in the
// database already. The mode NOOP only reads these numbers.
func (s *session) checkpoint(mode string) (busy bool, pages, checkpointed int64, err error) {
	err = queryFirst(s, "PRAGMA wal_checkpoint("+mode+")", nil, func(r row) error { return r.scan(&busy, &pages, &checkpointed) })
	return busy, pages, checkpointed, err
}

// checkpointIfLarge checkpoints the log if at least from of its pages are not in the database yet. It runs after the jobs of a commit
// were answered, and the log already holds the commit on disk, so only the next change waits for it. SQLite restarts the log at its
// beginning only while no reader uses it. If that did not happen and the log keeps growing, the checkpoint is retried every
// restartLogEvery. last is the time of the previous attempt.
func (s *session) checkpointIfLarge(last *time.Time, from int64) error {
	_, pages, checkpointed, err := s.checkpoint("NOOP")
	if err != nil || pages <= checkpointed || pages-checkpointed < from && (pages < 2*from || time.Since(*last) < restartLogEvery) {
		return err
	}
	*last = time.Now()
	_, _, _, err = s.checkpoint("PASSIVE")
	return err
}

// restartLogEvery is the interval at which the writer retries to restart a long log.
const restartLogEvery = 50 * time.Millisecond

// truncateLog checkpoints the log and truncates its file if no reader uses it. It does not wait: done is false if a reader blocks it, and
// the caller retries later.
func (s *session) truncateLog() (done bool) {
	s.conn.SetBusyTimeout(0)
	defer s.conn.SetBusyTimeout(busyTimeout)
	busy, pages, checkpointed, err := s.checkpoint("PASSIVE")
	if err != nil || pages <= 0 {
		return true // without a log there is nothing to do, and checkpointIfLarge reports the error after a change
	}
	if busy || pages != checkpointed {
		return false
	}
	busy, _, _, err = s.checkpoint("TRUNCATE")
	return err == nil && !busy // a new reader keeps the log
}

// runGroup runs the first job and all waiting jobs in one transaction, and answers all of them. If the commit reaches a damaged page, each
// job is repeated in a transaction of its own, so that it fails only the job that needs the page.
func (e *sqliteEngine) runGroup(w *session, first *job) {
	jobs := []*job{first}
	began := time.Now()
	err := e.commitGroup(w, &jobs, maxGroup)
	e.store.reportCommit(began)
	if IsDamage(err) && len(jobs) > 1 {
		for _, j := range jobs {
			one := []*job{j}
			e.answer(one, e.commitGroup(w, &one, 1))
		}
		return
	}
	e.answer(jobs, err)
}

// answer answers jobs after their commit. err is its error.
func (e *sqliteEngine) answer(jobs []*job, err error) {
	// Recorded before the jobs are answered, so that a client that got its answer reads its own change.
	if topics, changed := touchedTopics(jobs, err); changed {
		e.store.recordCommit(topics)
	}
	for _, j := range jobs {
		if err != nil {
			j.err = err
		}
		close(j.done)
	}
}

// touchedTopics returns the topics that the jobs of a group touched, without those of jobs that were rolled back. changed is false if all
// jobs were rolled back. failed is the error of the commit; after it, the outcome of all jobs is unknown.
func touchedTopics(jobs []*job, failed error) (topics []string, changed bool) {
	all := map[string]bool{}
	for _, j := range jobs {
		if j.err != nil && failed == nil {
			continue
		}
		changed = true
		for topic := range j.topics {
			all[topic] = true
		}
	}
	return slices.Collect(maps.Keys(all)), changed
}

// commitGroup runs the jobs in one transaction and commits it. It adds jobs that arrive meanwhile to jobs, up to limit.
func (e *sqliteEngine) commitGroup(w *session, jobs *[]*job, limit int) (err error) {
	if _, err := w.exec("BEGIN IMMEDIATE"); err != nil {
		return Unavailable(fmt.Errorf("begin transaction: %w", err))
	}
	defer func() {
		if err != nil {
			_, _ = w.exec("ROLLBACK") // fails if a failed COMMIT already rolled back
		}
	}()
	ids, err := e.loadCounters(w)
	if err != nil {
		return Unavailable(err)
	}
	began := time.Now()
	earlier := map[string]bool{} // topics that the jobs so far have touched, including failed ones
	for i := 0; ; i++ {
		j := (*jobs)[i]
		// The first job needs no savepoint while it is alone: its failure rolls back the whole transaction.
		if i == 0 && (limit == 1 || len(e.jobs) == 0) {
			if err := e.runFirstJob(w, j, &ids); err != nil {
				return err
			}
		} else if err := e.runJob(w, j, &ids, earlier); err != nil {
			return err
		}
		for topic := range j.topics {
			earlier[topic] = true
		}
		if j.isLarge { // the jobs that wait for it share its commit
			began = time.Now()
		}
		if len(*jobs) >= limit || time.Since(began) > maxGroupTime {
			break
		}
		select {
		case next := <-e.jobs:
			if next.isLarge {
				e.postponed = next
				break
			}
			*jobs = append(*jobs, next)
			continue
		default:
		}
		break
	}
	reserved, err := e.reserveNumbers(w, ids)
	if err != nil {
		return Unavailable(err)
	}
	if _, err := w.exec("COMMIT"); err != nil {
		return Unavailable(fmt.Errorf("commit: %w", err))
	}
	e.issued, e.reserved = ids, reserved
	return nil
}

// runFirstJob runs the first job of a group without a savepoint. If the job fails, the transaction is started again for the jobs that may
// follow.
func (e *sqliteEngine) runFirstJob(w *session, j *job, ids *counters) error {
	if j.err = j.ctx.Err(); j.err != nil {
		return nil //nolint:nilerr // it is the job's own error: the group continues
	}
	tx := e.newJobTx(w, j, ids, nil)
	j.err = Unavailable(runGuarded(tx, j.fn))
	j.topics = tx.topics
	if j.err == nil {
		return nil
	}
	// If the disk is full, SQLite may already have rolled back everything.
	if _, err := w.exec("ROLLBACK"); err != nil && !w.conn.AutocommitEnabled() {
		return Unavailable(err)
	}
	if _, err := w.exec("BEGIN IMMEDIATE"); err != nil {
		return Unavailable(err)
	}
	// Another process may have committed between the two transactions.
	again, err := e.loadCounters(w)
	*ids = again
	return Unavailable(err)
}

// newJobTx returns the transaction of a job. earlier are the topics of the jobs that ran before it in the same commit.
func (e *sqliteEngine) newJobTx(w *session, j *job, ids *counters, earlier map[string]bool) *Tx {
	tx := e.store.newTx(context.WithoutCancel(j.ctx), w, e.store.commits.last.Load())
	tx.ids, tx.author, tx.writing, tx.groupTopics = ids, j.author, true, earlier
	return tx
}

// runJob runs a job in a savepoint. The job's own error is stored in the job. A returned error is one of the connection; it ends the
// group.
func (e *sqliteEngine) runJob(w *session, j *job, ids *counters, earlier map[string]bool) error {
	if j.err = j.ctx.Err(); j.err != nil {
		return nil //nolint:nilerr // it is the job's own error: the group continues
	}
	if _, err := w.exec("SAVEPOINT job"); err != nil {
		return Unavailable(err)
	}
	before := *ids
	tx := e.newJobTx(w, j, ids, earlier)
	j.err = Unavailable(runGuarded(tx, j.fn))
	j.topics = tx.topics
	if j.err != nil {
		*ids = before
		if w.conn.AutocommitEnabled() { // SQLite rolled back everything, including the earlier jobs
			return fmt.Errorf("the transaction was rolled back: %w", j.err)
		}
		if _, err := w.exec("ROLLBACK TO job"); err != nil {
			return Unavailable(err)
		}
	}
	if _, err := w.exec("RELEASE job"); err != nil {
		return Unavailable(err)
	}
	return nil
}

// runGuarded runs fn and writes its history. It converts a panic into an error, so that one bad request does not stop the writer.
func runGuarded(tx *Tx, fn func(*Tx) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic in a transaction: %v\n%s", r, debug.Stack())
		}
	}()
	defer timeStep(tx.ctx)()
	tx.startFollowers()
	if err := fn(tx); err != nil {
		return err
	}
	return tx.finish()
}

// counters are the last assigned numbers. The database stores a mark that no assigned number exceeds. The mark is raised in steps, in the
// transaction that needs it, so that a number is never assigned twice. The numbers between the last one and the mark are lost at a
// restart.
type counters struct {
	resource, txn, change int64
}

// numbers assigns the numbers of resources, transactions and changes.
type numbers interface {
	nextResource() (int64, error)
	nextTxn() (int64, error)
	nextChange() (int64, error)
	// nextMany returns n numbers of a kind, in ascending order.
	nextMany(kind string, n int) ([]int64, error)
}

func (c *counters) nextResource() (int64, error) { c.resource++; return c.resource, nil }
func (c *counters) nextTxn() (int64, error)      { c.txn++; return c.txn, nil }
func (c *counters) nextChange() (int64, error)   { c.change++; return c.change, nil }

func (c *counters) nextMany(kind string, n int) ([]int64, error) {
	last := &c.resource
	if kind == "change" {
		last = &c.change
	}
	numbers := make([]int64, n)
	for i := range numbers {
		*last++
		numbers[i] = *last
	}
	return numbers, nil
}

// firstResource is the first id of user data (reference/address-manager-behaviour.md). markStep is the step by which the marks are
// raised.
const (
	firstResource = 100000
	markStep      = 256
)

// loadCounters returns the last assigned numbers. A manager keeps them in memory while no other process commits. After a foreign commit,
// and always in a tool, it continues from the mark, so that transactions are numbered in the order of their commits.
func (e *sqliteEngine) loadCounters(w *session) (counters, error) {
	version, err := e.detectForeignCommit(w)
	if err != nil {
		return counters{}, err
	}
	again := e.marksStale.Swap(false)
	if !again && e.exclusive && e.reserved != (counters{}) && version == e.markVersion {
		return e.issued, nil
	}
	c, err := e.readMarks(w)
	if err != nil { // the counters stay unknown until they can be read
		e.marksStale.Store(true)
		return counters{}, err
	}
	e.markVersion, e.issued, e.reserved = version, c, c
	return c, nil
}

// readMarks reads the marks of the assigned numbers from the database.
func (e *sqliteEngine) readMarks(w *session) (counters, error) {
	if err := e.checkSchema(w); err != nil {
		return counters{}, err
	}
	c := counters{resource: firstResource - 1}
	err := w.each("SELECT name, value FROM counter", nil, func(r row) error {
		var name string
		var value int64
		if err := r.scan(&name, &value); err != nil {
			return err
		}
		switch name {
		case "resource":
			c.resource = value
		case "txn":
			c.txn = value
		case "change":
			c.change = value
		}
		return nil
	})
	return c, err
}

// detectForeignCommit checks whether another process has committed. The content of such a commit is unknown.
func (e *sqliteEngine) detectForeignCommit(w *session) (version int64, err error) {
	err = queryFirst(w, "PRAGMA data_version", nil, func(r row) error { return r.scan(&version) })
	if err != nil || version != e.seenVersion { // on an error, cached values are discarded as well
		e.seenVersion = version
		e.store.recordForeignCommit(nil)
	}
	return version, err
}

// checkSchema returns an error if another process has migrated the schema: this binary does not know how to maintain the new tables.
func (e *sqliteEngine) checkSchema(w *session) error {
	version, err := schemaVersion(w.conn)
	if err == nil && version != e.store.schema {
		err = schemaChangedError(version, e.store.layout.Version())
	}
	return err
}

// reserveNumbers raises the mark if the assigned numbers exceed it.
func (e *sqliteEngine) reserveNumbers(w *session, ids counters) (counters, error) {
	mark := e.reserved
	if ids.resource <= mark.resource && ids.txn <= mark.txn && ids.change <= mark.change {
		return mark, nil
	}
	ahead := int64(0)
	if e.exclusive {
		ahead = markStep
	}
	mark = counters{ids.resource + ahead, ids.txn + ahead, ids.change + ahead}
	_, err := w.exec("INSERT INTO counter (name, value) VALUES ('resource', ?), ('txn', ?), ('change', ?) ON CONFLICT (name) DO UPDATE "+
		"SET value = excluded.value",
		mark.resource, mark.txn, mark.change)
	return mark, err
}
