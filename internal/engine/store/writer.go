package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"
)

// Author is who makes a change and what they say of it.
type Author struct {
	// User is the id of the user resource; 0 for the manager itself.
	User int64
	// Name is what the user, or the token that is no user, was called at the time of the change.
	Name string
	// Comment is the client's x-bcn-change-control-comment.
	Comment string
	// Credential is what they showed that it is they: a session or a token by its number, or a password. Remote is the address that the
	// request came from, Client the program that sent it, as it says itself. All are empty where there was no request.
	Credential, Remote, Client string
}

// job is one update waiting for its commit.
type job struct {
	ctx    context.Context
	author Author
	fn     func(*Tx) error
	err    error
	topics map[string]int
	done   chan struct{}
}

// Group commit. One goroutine owns the write connection. It begins a transaction for the first job
// it finds, runs every other job that is waiting by then inside the same transaction, each in a
// savepoint of its own, and commits once. Jobs see what the jobs before them did; a job that fails
// takes back its own work and nobody else's. No job is answered before the commit returned, so a
// crash at any line loses only work that nobody was told of.
const (
	maxGroup     = 256
	maxGroupTime = 20 * time.Millisecond
)

// errStopped is what an update gets while the store closes.
var errClosing = errors.New("the store is closing")

// Updater is Store.Update, or Lease.Update.
type Updater func(ctx context.Context, author Author, fn func(*Tx) error) error

// Update runs fn in a transaction and commits it. If fn changed resources, a transaction of the
// history with the author is written with it. If fn fails nothing is kept and its error is given.
func (s *Store) Update(ctx context.Context, author Author, fn func(*Tx) error) error {
	return s.UpdateIn(ctx, Scope{}, author, fn)
}

// UpdateIn is Update for what neither depends on nor changes anything outside of the scope.
func (s *Store) UpdateIn(ctx context.Context, scope Scope, author Author, fn func(*Tx) error) error {
	s.updates.Add(1)
	defer s.updates.Add(-1)
	defer s.reportChange(ctx, time.Now())
	return s.runAccess(ctx, true, func(ctx context.Context) error { return s.engine.update(ctx, scope, author, fn) })
}

// yieldTime is how long a tool leaves the lock of an SQLite database to others between two changes of many. SQLite looks for the lock
// every 25 ms at first: who waits for it finds it free.
const yieldTime = 30 * time.Millisecond

// Yield lets others change something, between two changes of many that one process makes.
func (s *Store) Yield(ctx context.Context) {
	if s.engine.needsYield() {
		Pause(ctx, yieldTime)
	}
}

// write is the writer's loop; it ends when the store closes and the queue is empty.
func (e *sqliteEngine) runWriter(w *session) {
	defer func() {
		e.closeErr = w.close()
		close(e.stopped)
	}()
	idle := time.NewTimer(idleTime)
	defer idle.Stop()
	var planned, folded time.Time
	var room logSpace
	lastError := ""
	for _, pragma := range writerPragmas {
		_ = w.each(pragma, nil, func(row) error { return nil }) // without them it is slower
	}
	for {
		select {
		case j := <-e.jobs:
			e.runGroup(w, j)
			if err := w.checkpointIfLarge(&folded, room.checkpointThreshold(e.path)); err != nil && err.Error() != lastError {
				lastError = err.Error()
				slog.Error("the log cannot be folded into the database: it grows with what is changed", "error", err)
			}
			idle.Reset(idleTime)
		case <-e.checkRequests:
			_, _ = e.detectForeignCommit(w) // an error is that of the next change as well
		case <-idle.C:
			if time.Since(planned) > optimizeEvery { // first: the figures are written, too
				planned = time.Now()
				w.optimize()
			}
			if !w.truncateLog() {
				idle.Reset(idleTime)
			}
		case <-e.stop:
			for {
				select {
				case j := <-e.jobs:
					e.runGroup(w, j)
				default:
					return
				}
			}
		}
	}
}

// idleTime is how long nothing must have been written before the log is made small again.
const idleTime = 2 * time.Second

// planEvery is how often the planner's figures are looked after.
const optimizeEvery = time.Hour

// plan lets SQLite bring the figures up to date that it plans by, where a table has changed much. It reads few
// rows of each index.
func (s *session) optimize() {
	for _, pragma := range []string{"PRAGMA analysis_limit = 1000", "PRAGMA optimize = 0x10002"} {
		_ = s.each(pragma, nil, func(row) error { return nil }) // older figures plan, too
	}
}

// checkpoint looks at the log, or folds it into the database as a mode of PRAGMA wal_checkpoint says: how many pages it has, and how many
// of them are in the database.
func (s *session) checkpoint(mode string) (busy bool, pages, folded int64, err error) {
	err = queryFirst(s, "PRAGMA wal_checkpoint("+mode+")", nil, func(r row) error { return r.scan(&busy, &pages, &folded) })
	return busy, pages, folded, err
}

// foldLog folds the log into the database where it has grown much. It is called behind the answers of a commit, which is on the disk with
// the log already: nobody waits for it but who changes something next. A log that is in the database is written from its beginning again
// once nobody reads of it: where that has not come about, and it has grown further, it is tried again from time to time. last is when it
// was. from is the number of pages from which the log is folded.
func (s *session) checkpointIfLarge(last *time.Time, from int64) error {
	_, pages, folded, err := s.checkpoint("NOOP")
	if err != nil || pages <= folded || pages-folded < from && (pages < 2*from || time.Since(*last) < restartLogEvery) {
		return err
	}
	*last = time.Now()
	_, _, _, err = s.checkpoint("PASSIVE")
	return err
}

// roomForLog is how much room there is for the log.
type logSpace struct {
	readAt    time.Time
	threshold int64
}

// leastFold is the least number of pages from which on the log is folded, logShare the share of the free room that it may take, and
// roomEvery the interval at which the free room is read.
const (
	minCheckpointPages = 64
	logShare           = 16
	logSpaceEvery      = time.Second
)

// foldFrom gives the number of pages from which the log of a database is folded: foldAt, or a share of the free room where that is less.
// Folding itself needs room for the pages that the database did not have before.
func (r *logSpace) checkpointThreshold(path string) int64 {
	if time.Since(r.readAt) < logSpaceEvery {
		return r.threshold
	}
	r.readAt, r.threshold = time.Now(), checkpointPages
	if free, err := FreeBytes(filepath.Dir(path)); err == nil && free != nil {
		r.threshold = min(checkpointPages, max(minCheckpointPages, *free/logShare>>12))
	}
	return r.threshold
}

// beginLogEvery is how often it is tried to begin a long log again.
const restartLogEvery = 50 * time.Millisecond

// shrinkLog folds the log into the database and gives its space back, where it has grown and no reader
// needs it. It waits for nobody: done is false where somebody reads, and the log stays until it is looked at again.
func (s *session) truncateLog() (done bool) {
	s.conn.SetBusyTimeout(0)
	defer s.conn.SetBusyTimeout(busyTimeout)
	busy, pages, folded, err := s.checkpoint("PASSIVE")
	if err != nil || pages <= 0 {
		return true // there is none, or what is wrong with it is said behind a change that makes it long (foldLog)
	}
	if busy || pages != folded {
		return false
	}
	busy, _, _, err = s.checkpoint("TRUNCATE")
	return err == nil && !busy // a reader that has just come keeps the log
}

// group runs first and the jobs waiting behind it in one transaction, and answers them all.
func (e *sqliteEngine) runGroup(w *session, first *job) {
	jobs := []*job{first}
	began := time.Now()
	err := e.commitGroup(w, &jobs)
	e.store.reportCommit(began)
	// Before anybody is answered: who was told of a change reads it.
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

// changedBy gives what the jobs of a group have touched, those that were taken back apart; changed is false where all were. Of a group
// whose commit failed nobody knows what it came to.
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

func (e *sqliteEngine) commitGroup(w *session, jobs *[]*job) (err error) {
	if _, err := w.exec("BEGIN IMMEDIATE"); err != nil {
		return Unavailable(fmt.Errorf("beginning a transaction: %w", err))
	}
	defer func() {
		if err != nil {
			_, _ = w.exec("ROLLBACK") // fails where a failed COMMIT already rolled back
		}
	}()
	ids, err := e.loadCounters(w)
	if err != nil {
		return Unavailable(err)
	}
	began := time.Now()
	earlier := map[string]bool{} // what the jobs so far have touched, those that failed among them
	for i := 0; ; i++ {
		j := (*jobs)[i]
		// The first job needs no savepoint while it is alone: what it fails at takes the group along.
		if i == 0 && len(e.jobs) == 0 {
			if err := e.runFirstJob(w, j, &ids); err != nil {
				return err
			}
		} else if err := e.runJob(w, j, &ids, earlier); err != nil {
			return err
		}
		for topic := range j.topics {
			earlier[topic] = true
		}
		if len(*jobs) >= maxGroup || time.Since(began) > maxGroupTime {
			break
		}
		select {
		case next := <-e.jobs:
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
		return Unavailable(fmt.Errorf("committing: %w", err))
	}
	e.issued, e.reserved = ids, reserved
	return nil
}

// runAlone runs the first job of a group in the bare transaction. When it fails the transaction is
// begun anew for those that may follow.
func (e *sqliteEngine) runFirstJob(w *session, j *job, ids *counters) error {
	if j.err = j.ctx.Err(); j.err != nil {
		return nil //nolint:nilerr // the job's own error: the group goes on
	}
	tx := e.newJobTx(w, j, ids, nil)
	j.err = Unavailable(runGuarded(tx, j.fn))
	j.topics = tx.topics
	if j.err == nil {
		return nil
	}
	// Where the disk is full SQLite may have rolled all of it back by itself.
	if _, err := w.exec("ROLLBACK"); err != nil && !w.conn.AutocommitEnabled() {
		return Unavailable(err)
	}
	if _, err := w.exec("BEGIN IMMEDIATE"); err != nil {
		return Unavailable(err)
	}
	// Another process may have had its turn in between.
	again, err := e.loadCounters(w)
	*ids = again
	return Unavailable(err)
}

// tx is the transaction of a job; earlier are the topics of those that ran before it in the same one.
func (e *sqliteEngine) newJobTx(w *session, j *job, ids *counters, earlier map[string]bool) *Tx {
	tx := e.store.newTx(context.WithoutCancel(j.ctx), w, e.store.commits.last.Load())
	tx.ids, tx.author, tx.writing, tx.groupTopics = ids, j.author, true, earlier
	return tx
}

// run runs one job in a savepoint. Its own failure goes into the job; an error it gives is one of
// the connection, which ends the whole group.
func (e *sqliteEngine) runJob(w *session, j *job, ids *counters, earlier map[string]bool) error {
	if j.err = j.ctx.Err(); j.err != nil {
		return nil //nolint:nilerr // the job's own error: the group goes on
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
		if w.conn.AutocommitEnabled() { // SQLite has rolled everything back, the jobs before this one with it
			return fmt.Errorf("the transaction was taken back: %w", j.err)
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

// guard runs the job and its history, and turns a panic into an error: one bad request must not
// take the writer down.
func runGuarded(tx *Tx, fn func(*Tx) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic in a transaction: %v\n%s", r, debug.Stack())
		}
	}()
	tx.startFollowers()
	if err := fn(tx); err != nil {
		return err
	}
	return tx.finish()
}

// counters are the last numbers given out. The database has a mark that no number given out is
// above: it is moved ahead in steps, inside the transaction that needs it, so that numbers are never
// given twice, whatever happens. What is between the mark and the last number is lost at a restart.
type counters struct {
	resource, txn, change int64
}

// numbers gives out the numbers of resources, transactions and changes.
type numbers interface {
	nextResource() (int64, error)
	nextTxn() (int64, error)
	nextChange() (int64, error)
	// many gives n numbers of a kind, in order.
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

// firstResource is the first id of user data (reference/address-manager-behaviour.md); step is how
// far the mark is moved at a time.
const (
	firstResource = 100000
	markStep      = 256
)

// counters gives the numbers to go on from. A manager remembers them while no other process has
// committed anything; then, as a tool does each time, it goes on from the mark, so that transactions
// are numbered as they are committed.
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
	if err != nil { // nothing is known of them until they can be read
		e.marksStale.Store(true)
		return counters{}, err
	}
	e.markVersion, e.issued, e.reserved = version, c, c
	return c, nil
}

// marks reads the numbers above which none was given out.
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

// notice looks whether another process has committed something, of which nobody knows what it was.
func (e *sqliteEngine) detectForeignCommit(w *session) (version int64, err error) {
	err = queryFirst(w, "PRAGMA data_version", nil, func(r row) error { return r.scan(&version) })
	if err != nil || version != e.seenVersion { // when in doubt, what is remembered is looked up again
		e.seenVersion = version
		e.store.recordForeignCommit(nil)
	}
	return version, err
}

// sameSchema refuses to write where another process has changed the schema: what it needs to be kept
// in step is not known here.
func (e *sqliteEngine) checkSchema(w *session) error {
	version, err := schemaVersion(w.conn)
	if err == nil && version != e.store.schema {
		err = schemaChangedError(version, e.store.layout.Version())
	}
	return err
}

// reserve moves the mark where the numbers have passed it.
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
