package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// postgres is a store in PostgreSQL. Any number of managers may share it: what is in memory is nobody
// else's business. Reads are snapshots that take no lock; updates whose scopes meet wait for each other.
type postgres struct {
	// id tells what this process says to others from what they say.
	id string
	// pool has the connections that write. readers are for short reads, pages for pages of lists, lists for long
	// ones, health for Ready alone: none of them waits for a writer.
	pool, readers, lists, pages, health *pgxpool.Pool
	layout                              *Layout
	// schema is the version of the schema that this binary works with.
	schema int
	// patience is how long a change waits for its turn.
	patience   time.Duration
	statements placeholders
	turns      keyedMutex
	// near reads what one request shows, for all that come at the same time.
	gatherer       gatherer
	configurations configurationsKnown
	mu             sync.Mutex
	// blocks are the numbers reserved and not yet given out, by sequence; guarded by mu, which is never
	// held while the database is asked.
	blocks map[string]*block
}

type block struct{ next, end int64 }

// sequenceStep is by how much the sequences of numbers go on (migrations/postgres).
const sequenceStep = 256

// writers is how many connections write at a time.
const maxWriters = 16

// openPostgres connects and brings the schema up to the version that is asked for.
func openPostgres(ctx context.Context, o Options) (*postgres, error) {
	p, err := connect(ctx, o.Database, o)
	if err != nil {
		return nil, err
	}
	// The database may be on its way up, or its standby on its way to become it.
	for began, attempt := time.Now(), 0; ; attempt++ {
		if err = p.prepare(ctx, o); !isConnectionLost(err) || time.Since(began) > openTime || !backOff(ctx, attempt) {
			break
		}
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// openTime is how long a database that is not there is waited for.
const openTime = 10 * time.Second

// Deadlines of a manager's connections that write: on waiting, and on a manager that has stopped in the
// middle of a change whose locks others wait for. Work itself has none.
const deadlines = "SET lock_timeout = %d; SET idle_in_transaction_session_timeout = '10s'"

// noJIT has no plan compiled: that takes longer than any statement of ours, and it is the estimate that decides, which conditions that walk
// up the tree make high.
const noJIT = "SET jit = off; "

// connect makes the pools; no connection is made yet.
func connect(ctx context.Context, url string, o Options) (p *postgres, err error) {
	p = &postgres{id: rand.Text(), layout: o.Layout, blocks: map[string]*block{}, schema: o.Schema, patience: o.Patience}
	p.gatherer.p, p.gatherer.patience = p, gatheringPatience
	if p.schema == 0 {
		p.schema = o.Layout.Version()
	}
	setting := func(statement string) func(context.Context, *pgx.Conn) error {
		return func(ctx context.Context, c *pgx.Conn) error {
			_, err := c.Exec(ctx, statement)
			return err
		}
	}
	for _, one := range []struct {
		pool  **pgxpool.Pool
		size  int
		begin func(context.Context, *pgx.Conn) error
	}{
		{&p.pool, maxWriters, setting(noJIT)}, {&p.readers, o.Readers, setting(noJIT)}, {&p.health, 1, nil},
		// A plan for any collection is a bad plan for the rare ones: lists are planned for what they ask.
		{&p.lists, o.ListReaders, setting(noJIT + "SET plan_cache_mode = force_custom_plan")},
		{&p.pages, o.ListReaders, setting(noJIT + "SET plan_cache_mode = force_custom_plan")},
	} {
		config, err := pgxpool.ParseConfig(url)
		if err != nil {
			p.close()
			return nil, errors.New("the database's URL cannot be read") // not repeated: it may hold a password
		}
		config.MaxConns, config.AfterConnect = int32(one.size), one.begin //nolint:gosec // they are few
		if one.pool == &p.pool && o.Exclusive {
			config.AfterConnect = setting(fmt.Sprintf(noJIT+deadlines, o.Patience.Milliseconds()))
		}
		config.ConnConfig.RuntimeParams["application_name"] = "portolan"
		if *one.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
			p.close()
			return nil, fmt.Errorf("connecting to the database: %w", err)
		}
	}
	return p, nil
}

func (p *postgres) close() {
	for _, pool := range []*pgxpool.Pool{p.pool, p.readers, p.lists, p.pages, p.health} {
		if pool != nil {
			pool.Close()
		}
	}
}

// Limits of repetition. An update is repeated within updateTime while it collides with others, and waits
// no longer than that for its turn; how long its work takes is nobody's limit. What did not reach the
// database is repeated lostTimes: it may be a server that was started again, whose old connections are
// found broken one by one.
const (
	updateTime    = 30 * time.Second // Options.Patience
	maxReconnects = 20
	// fewTimes is for what another update inserted first: the next try sees it, and the rules say what is
	// in the way; and for a statement that somebody cancelled.
	maxConflictRetries = 3
)

// Statements that begin a transaction; they travel with its first statement.
const (
	beginSnapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
	// beginSerializable is for updates that nothing but the database keeps apart, beginLocked for those that
	// hold locks: each of their statements sees what was committed before the locks were got.
	beginSerializable = "BEGIN ISOLATION LEVEL SERIALIZABLE"
	beginLocked       = "BEGIN ISOLATION LEVEL READ COMMITTED"
)

// view runs fn in a snapshot. Reading is safe to repeat.
func (p *postgres) view(ctx context.Context, from *pgxpool.Pool, fn func(conn) error) error {
	return p.reading(ctx, from, beginSnapshot, fn)
}

// read runs fn without a transaction around its statements.
func (p *postgres) read(ctx context.Context, fn func(conn) error) error {
	return p.reading(ctx, p.readers, "", fn)
}

func (p *postgres) reading(ctx context.Context, from *pgxpool.Pool, begin string, fn func(conn) error) error {
	for attempt := 0; ; attempt++ {
		err := p.readWith(ctx, from, begin, fn)
		if !isConnectionLost(err) || attempt >= maxReconnects || !backOff(ctx, attempt) {
			return err
		}
	}
}

// with runs fn, which only reads, on a connection.
func (p *postgres) readWith(ctx context.Context, from *pgxpool.Pool, begin string, fn func(conn) error) error {
	return readOn(&pgConn{ctx: ctx, p: p, from: from, begin: begin}, fn)
}

// readOn runs fn, which only reads, on a connection and gives it back. Nobody waits for the end of the snapshot.
func readOn(c *pgConn, fn func(conn) error) error {
	defer func() {
		switch {
		case c.pooled == nil:
		case c.isIdle(): // there is nothing to end
			c.pooled.Release()
		default:
			go c.release()
		}
	}()
	if err := recoverPanic(func() error { return fn(c) }); err != nil {
		return err
	}
	return c.failed // and somebody did not mind
}

// on runs fn on a connection and gives it back. A transaction that is still open at the end is rolled back.
func (p *postgres) runOn(ctx context.Context, pooled *pgxpool.Conn, begin string, fn func(*pgConn) error) error {
	c := &pgConn{ctx: ctx, p: p, pg: pooled.Conn(), pooled: pooled, begin: begin}
	defer c.release()
	return recoverPanic(func() error { return fn(c) })
}

// giveBack ends what is open on a connection and gives it back to its pool, which closes it where that fails.
func (c *pgConn) release() {
	if !c.isIdle() {
		_, _ = c.pg.Exec(context.WithoutCancel(c.ctx), "ROLLBACK")
	}
	c.pooled.Release()
}

// update runs fn in a transaction that is as if it ran alone, again and again while that is safe and
// of use.
func (p *postgres) update(ctx context.Context, scope Scope, fn func(*pgConn) error) error {
	l, err := p.locksFor(ctx, scope)
	if err != nil {
		return err
	}
	// Those of this process wait here, so that they do not hold a connection meanwhile.
	waiting, cancel := context.WithTimeout(ctx, p.patience)
	done, err := p.turns.lock(waiting, l.own)
	cancel()
	if err != nil {
		if ctx.Err() == nil {
			return busyError(err)
		}
		return err
	}
	defer done()
	few := 0
	for began, attempt := time.Now(), 0; ; attempt++ {
		committing, err := p.runOnce(ctx, l, fn)
		switch code := pgCode(err); {
		case err == nil:
			return nil
		case code == serializationFailure || code == deadlockDetected || code == lockNotAvailable:
			if time.Since(began) > p.patience {
				return busyError(err)
			}
		case (code == uniqueViolation || code == queryCanceled) && few < maxConflictRetries:
			few++
		case isConnectionLost(err) && !committing && attempt < maxReconnects:
		case code == schemaChanged:
			return schemaChangedError(p.schema, p.layout.Version())
		default:
			return err
		}
		if !backOff(ctx, attempt) {
			return err
		}
	}
}

// once runs fn in a transaction and says whether it had come to the commit, after which nobody knows
// what became of it.
func (p *postgres) runOnce(ctx context.Context, l locks, fn func(*pgConn) error) (committing bool, err error) {
	begin := beginSerializable
	if l.own != 0 || l.rows {
		begin = beginLocked
	}
	waiting, cancel := context.WithTimeout(ctx, p.patience)
	pooled, err := p.pool.Acquire(waiting)
	cancel()
	if err != nil {
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			err = busyError(err)
		}
		return false, err
	}
	err = p.runOn(ctx, pooled, begin, func(c *pgConn) error {
		if query, args := p.entryStatement(l); query != "" {
			c.enqueue(query, args...)
		}
		if err := fn(c); err != nil {
			return err
		}
		// A client that goes away meanwhile does not leave it open what became of the commit.
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.patience)
		defer cancel()
		c.ctx, committing = within, true
		return c.commit()
	})
	return committing, err
}

// entry words the statement that every update begins with: it takes the locks, and refuses to go on where a tool
// is alone with the database or has brought it to another schema. It is one statement because each costs a client
// more than what is in it; require_schema sees what was committed while the locks were waited for, because it is
// volatile.
func (p *postgres) entryStatement(l locks) (query string, args []any) {
	if l.own != 0 {
		query, args = l.statement()
	}
	if p.schema < checkedSchema {
		return query, args
	}
	if query == "" {
		query = "SELECT "
	} else {
		query += ", "
	}
	return query + "pg_advisory_xact_lock_shared(?), require_schema(?)", append(args, int64(managerLock), int64(p.schema))
}

// checkedSchema is the first version of the schema that has require_schema.
const checkedSchema = 4

// pause waits longer each time, up to 64 ms, with jitter; it reports whether to go on.
func backOff(ctx context.Context, attempt int) bool {
	wait := time.Duration(1<<min(attempt, 6)) * time.Millisecond
	timer := time.NewTimer(wait/2 + mathrand.N(wait)) //nolint:gosec // jitter needs no secrecy
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// safely turns a panic into an error.
func recoverPanic(fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic in a transaction: %v\n%s", r, debug.Stack())
		}
	}()
	return fn()
}

// numbers gives numbers of a sequence, in order, and leaves none of its last block over.
func (p *postgres) numbers(c conn, sequence string, n int) ([]int64, error) {
	numbers := make([]int64, 0, n+sequenceStep)
	err := c.each("SELECT nextval('number_"+sequence+"') FROM generate_series(1, ?)", []any{(n + sequenceStep - 1) / sequenceStep},
		func(r row) error {
			var first int64
			err := r.scan(&first)
			for i := range int64(sequenceStep) {
				numbers = append(numbers, first+i)
			}
			return err
		})
	if err != nil {
		return nil, err
	}
	return numbers[:n], nil
}

// number gives the next number of a sequence; they are reserved many at a time.
func (p *postgres) number(c *pgConn, sequence string) (int64, error) {
	if n, ok := p.nextReserved(sequence); ok {
		return n, nil
	}
	// What waits to be sent, the taking of locks among it, is sent first: it may wait for somebody who needs
	// a number.
	if err := c.flush(); err != nil {
		return 0, err
	}
	var first int64
	if err := c.each("SELECT nextval('number_"+sequence+"')", nil, func(r row) error { return r.scan(&first) }); err != nil {
		return 0, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// Where somebody else was faster, what is left of theirs is left out.
	p.blocks[sequence] = &block{first + 1, first + sequenceStep}
	return first, nil
}

// reserved gives a number that was reserved.
func (p *postgres) nextReserved(sequence string) (n int64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.blocks[sequence]
	if b == nil || b.next == b.end {
		return 0, false
	}
	b.next++
	return b.next - 1, true
}

// Codes of errors (PostgreSQL's documentation, appendix A), and ours of require_schema.
const (
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	uniqueViolation      = "23505"
	lockNotAvailable     = "55P03"
	queryCanceled        = "57014"
	idleTransaction      = "25P03"
	readOnlyTransaction  = "25006"
	tooManyConnections   = "53300"
	schemaChanged        = "PTSCH"
)

// codeOf gives the database's code of an error; empty where it is none of the database's.
func pgCode(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// lost reports whether an error is one of the connection: the server is not there, going, coming, or
// has no room, or it has ended the transaction because this process was stopped in the middle of it.
func isConnectionLost(err error) bool {
	if code := pgCode(err); code != "" {
		return strings.HasPrefix(code, "08") || strings.HasPrefix(code, "57P") || code == readOnlyTransaction || code == tooManyConnections ||
			code == idleTransaction
	}
	var dial *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &dial) || errors.As(err, &network) && !errors.Is(err, context.DeadlineExceeded) ||
		pgconn.SafeToRetry(err) && !errors.Is(err, context.DeadlineExceeded) || // else the caller's time has ended
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		err != nil && strings.Contains(err.Error(), "conn closed")
}

// unreachable words a failure of the connection as 503 DatabaseUnavailable, and an update that never
// got its turn, or was cancelled by the database's own limits, likewise; other errors pass.
func connectionProblem(err error) error {
	switch code := pgCode(err); {
	case errors.Is(err, context.Canceled): // who asked has gone, though it may be while a connection was made
		return err
	case code == serializationFailure || code == deadlockDetected || code == lockNotAvailable:
		return busyError(err)
	case isConnectionLost(err) || code == queryCanceled:
		return unavailableError(err)
	}
	return err
}
