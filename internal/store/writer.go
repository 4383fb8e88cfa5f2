package store

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// Author is who makes a change and what they say of it.
type Author struct {
	// User is the id of the user resource; 0 for the manager itself.
	User int64
	// Name is the user's name at the time of the change.
	Name string
	// Comment is the client's x-bcn-change-control-comment.
	Comment string
}

// job is one update waiting for its commit.
type job struct {
	ctx    context.Context
	author Author
	fn     func(*Tx) error
	err    error
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
var errStopped = errors.New("the store is closing")

// Update runs fn in a transaction and commits it. If fn changed resources, a transaction of the
// history with the author is written with it. If fn fails nothing is kept and its error is given.
func (s *Store) Update(ctx context.Context, author Author, fn func(*Tx) error) error {
	j := &job{ctx: ctx, author: author, fn: fn, done: make(chan struct{})}
	select {
	case <-s.stop:
		return errStopped
	default:
	}
	select {
	case s.jobs <- j:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.stop:
		return errStopped
	}
	select {
	case <-j.done:
		return j.err
	case <-s.stopped:
		// The writer has gone: either it finished this job before it went, or never saw it.
		select {
		case <-j.done:
			return j.err
		default:
			return errStopped
		}
	}
}

// write is the writer's loop; it ends when the store closes and the queue is empty.
func (s *Store) write(w *session) {
	defer close(s.stopped)
	defer w.close()
	for {
		select {
		case j := <-s.jobs:
			s.group(w, j)
		case <-s.stop:
			for {
				select {
				case j := <-s.jobs:
					s.group(w, j)
				default:
					return
				}
			}
		}
	}
}

// group runs first and the jobs waiting behind it in one transaction, and answers them all.
func (s *Store) group(w *session, first *job) {
	jobs := []*job{first}
	err := s.commit(w, &jobs)
	for _, j := range jobs {
		if err != nil {
			j.err = err
		}
		close(j.done)
	}
	if err == nil {
		s.feed.wake()
	}
}

func (s *Store) commit(w *session, jobs *[]*job) (err error) {
	if err := w.exec("BEGIN IMMEDIATE"); err != nil {
		return Unavailable(fmt.Errorf("beginning a transaction: %w", err))
	}
	defer func() {
		if err != nil {
			_ = w.exec("ROLLBACK") // fails where a failed COMMIT already rolled back
		}
	}()
	ids, err := readCounters(w)
	if err != nil {
		return Unavailable(err)
	}
	before := *ids
	began := time.Now()
	for i := 0; ; i++ {
		if err := s.run(w, (*jobs)[i], ids); err != nil {
			return err
		}
		if len(*jobs) >= maxGroup || time.Since(began) > maxGroupTime {
			break
		}
		select {
		case next := <-s.jobs:
			*jobs = append(*jobs, next)
			continue
		default:
		}
		break
	}
	if *ids != before {
		if err := writeCounters(w, ids); err != nil {
			return Unavailable(err)
		}
	}
	if err := w.exec("COMMIT"); err != nil {
		return Unavailable(fmt.Errorf("committing: %w", err))
	}
	return nil
}

// run runs one job in a savepoint. Its own failure goes into the job; an error it gives is one of
// the connection, which ends the whole group.
func (s *Store) run(w *session, j *job, ids *counters) error {
	if err := j.ctx.Err(); err != nil {
		j.err = err
		return nil
	}
	if err := w.exec("SAVEPOINT job"); err != nil {
		return Unavailable(err)
	}
	before := *ids
	tx := &Tx{ctx: context.WithoutCancel(j.ctx), session: w, now: s.now(), ids: ids, author: j.author, writing: true}
	j.err = Unavailable(guard(tx, j.fn))
	if j.err != nil {
		*ids = before
		if err := w.exec("ROLLBACK TO job"); err != nil {
			return Unavailable(err)
		}
	}
	if err := w.exec("RELEASE job"); err != nil {
		return Unavailable(err)
	}
	return nil
}

// guard runs the job and its history, and turns a panic into an error: one bad request must not
// take the writer down.
func guard(tx *Tx, fn func(*Tx) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic in a transaction: %v\n%s", r, debug.Stack())
		}
	}()
	if err := fn(tx); err != nil {
		return err
	}
	return tx.writeHistory()
}

// counters are the last numbers given out. They are read and written inside the group's
// transaction, so numbers are never given twice and none is lost to a crash.
type counters struct {
	resource, txn, change int64
}

// firstResource is the first id of user data (reference/address-manager-behaviour.md).
const firstResource = 100000

func readCounters(w *session) (*counters, error) {
	c := &counters{resource: firstResource - 1}
	stmt, err := w.prepare("SELECT name, value FROM counter")
	if err != nil {
		return nil, err
	}
	rows, err := stmt.Query()
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		var value int64
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		switch name {
		case "resource":
			c.resource = value
		case "txn":
			c.txn = value
		case "change":
			c.change = value
		}
	}
	return c, rows.Err()
}

func writeCounters(w *session, c *counters) error {
	return w.exec("INSERT OR REPLACE INTO counter (name, value) VALUES ('resource', ?), ('txn', ?), ('change', ?)",
		c.resource, c.txn, c.change)
}
