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

// postgres is the connection of a store to PostgreSQL. Any number of managers may share the database, so its state in memory does not
// affect other processes. Reads are snapshots without locks. Updates with overlapping scopes wait for each other.
type postgres struct {
	// id identifies the notifications of this process.
	id string
	// pool has the connections that write. readers serves short reads, pages serves single pages of lists, lists serves long reads, and
	// health serves only Ready. None of these waits for a writer.
	pool, readers, lists, pages, health *pgxpool.Pool
	layout                              *Layout
	// schema is the schema version that this binary works with.
	schema int
	// maxLockWait is the maximum time that a change waits for its locks.
	maxLockWait time.Duration
	statements  placeholders
	turns       keyedMutex
	// gatherer combines concurrent reads of single rows.
	gatherer       gatherer
	configurations configurationsKnown
	mu             sync.Mutex
	// blocks are the numbers reserved and not yet assigned, by sequence. mu guards it and is never held during a query.
	blocks map[string]*block
}

type block struct{ next, end int64 }

// sequenceStep is the increment of the sequences of numbers (migrations/postgres).
const sequenceStep = 256

// maxWriters is the maximum number of connections that write at the same time.
const maxWriters = 16

// openPostgres connects and migrates the schema to the requested version.
func openPostgres(ctx context.Context, o Options) (*postgres, error) {
	p, err := connect(ctx, o.Database, o)
	if err != nil {
		return nil, err
	}
	// The database may be starting, or its standby may be in the middle of a promotion.
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

// openTime is the maximum time to wait for an unreachable database.
const openTime = 10 * time.Second

// deadlines are the timeouts of a manager's writing connections: for locks, and for a manager that stopped in the middle of a change
// while others wait for its locks. Running statements have no timeout.
const deadlines = "SET lock_timeout = %d; SET idle_in_transaction_session_timeout = '10s'"

// noJIT disables JIT compilation. It takes longer than any of the statements, and the planner chooses it by estimates that are too high
// for conditions that walk up the tree.
const noJIT = "SET jit = off; "

// connect creates the connection pools. It does not connect yet.
func connect(ctx context.Context, url string, o Options) (p *postgres, err error) {
	p = &postgres{id: rand.Text(), layout: o.Layout, blocks: map[string]*block{}, schema: o.Schema, maxLockWait: o.Patience}
	p.gatherer.p, p.gatherer.maxWait = p, gatheringPatience
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
		// A plan for any collection is bad for the rare ones, so lists are planned for their arguments.
		{&p.lists, o.ListReaders, setting(noJIT + "SET plan_cache_mode = force_custom_plan")},
		{&p.pages, o.ListReaders, setting(noJIT + "SET plan_cache_mode = force_custom_plan")},
	} {
		config, err := pgxpool.ParseConfig(url)
		if err != nil {
			p.close()
			return nil, errors.New("the URL of the database is malformed") // the URL is not repeated, because it may contain a password
		}
		config.MaxConns, config.AfterConnect = int32(one.size), one.begin //nolint:gosec // the sizes are small
		if one.pool == &p.pool && o.Exclusive {
			config.AfterConnect = setting(fmt.Sprintf(noJIT+deadlines, o.Patience.Milliseconds()))
		}
		config.ConnConfig.RuntimeParams["application_name"] = "portolan"
		if *one.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
			p.close()
			return nil, fmt.Errorf("connect to the database: %w", err)
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

// Limits of retries. An update that conflicts with others is retried within updateTime, which is also the maximum wait for its locks. The
// duration of its own work is not limited. If the connection was lost before the commit, it is retried maxReconnects times: after a
// restart of the server, the old connections are found broken one by one.
const (
	updateTime    = 30 * time.Second // Options.Patience
	maxReconnects = 20
	// maxConflictRetries applies if another update inserted the same key first: the retry sees it, and the rules report the conflict. It
	// also applies to a statement that was cancelled on the server.
	maxConflictRetries = 3
)

// Statements that begin a transaction. They are sent with its first statement.
const (
	beginSnapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
	// beginSerializable is for updates without locks of their own. beginLocked is for updates that hold locks: each statement sees
	// everything that was committed before the locks were acquired.
	beginSerializable = "BEGIN ISOLATION LEVEL SERIALIZABLE"
	beginLocked       = "BEGIN ISOLATION LEVEL READ COMMITTED"
)

// view runs fn in a snapshot. Reads can be retried safely.
func (p *postgres) view(ctx context.Context, from *pgxpool.Pool, fn func(conn) error) error {
	return p.runRead(ctx, from, beginSnapshot, fn)
}

// read runs fn without a transaction.
func (p *postgres) read(ctx context.Context, fn func(conn) error) error {
	return p.runRead(ctx, p.readers, "", fn)
}

// runRead runs fn on a connection of a pool and retries it while connections are lost.
func (p *postgres) runRead(ctx context.Context, from *pgxpool.Pool, begin string, fn func(conn) error) error {
	for attempt := 0; ; attempt++ {
		err := p.readWith(ctx, from, begin, fn)
		if !isConnectionLost(err) || attempt >= maxReconnects || !backOff(ctx, attempt) {
			return err
		}
	}
}

// readWith runs fn, which only reads, on a connection.
func (p *postgres) readWith(ctx context.Context, from *pgxpool.Pool, begin string, fn func(conn) error) error {
	return readOn(&pgConn{ctx: ctx, p: p, from: from, beginStatement: begin}, fn)
}

// readOn runs fn, which only reads, on a connection and releases the connection. It does not wait for the end of the snapshot.
func readOn(c *pgConn, fn func(conn) error) error {
	defer func() {
		switch {
		case c.pooled == nil:
		case c.isIdle(): // no transaction is open
			c.pooled.Release()
		default:
			go c.release()
		}
	}()
	if err := recoverPanic(func() error { return fn(c) }); err != nil {
		return err
	}
	return c.failed // the error of a statement that fn ignored
}

// runOn runs fn on a connection and releases the connection. An open transaction is rolled back.
func (p *postgres) runOn(ctx context.Context, pooled *pgxpool.Conn, begin string, fn func(*pgConn) error) error {
	c := &pgConn{ctx: ctx, p: p, pg: pooled.Conn(), pooled: pooled, beginStatement: begin}
	defer c.release()
	return recoverPanic(func() error { return fn(c) })
}

// release rolls back an open transaction and returns the connection to its pool. The pool closes it if the rollback failed.
func (c *pgConn) release() {
	if !c.isIdle() {
		_, _ = c.pg.Exec(context.WithoutCancel(c.ctx), "ROLLBACK")
	}
	c.pooled.Release()
}

// update runs fn in a transaction that is isolated from all others with an overlapping scope. It retries while that is safe and useful.
func (p *postgres) update(ctx context.Context, scope Scope, fn func(*pgConn) error) error {
	l, err := p.locksFor(ctx, scope)
	if err != nil {
		return err
	}
	// Updates of this process wait here, so that they do not occupy a connection.
	waitCtx, cancel := context.WithTimeout(ctx, p.maxLockWait)
	done, err := p.turns.lock(waitCtx, l.exclusive)
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
			if time.Since(began) > p.maxLockWait {
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

// runOnce runs fn in a transaction. committing is true if the commit was started; an error after that leaves its outcome unknown.
func (p *postgres) runOnce(ctx context.Context, l locks, fn func(*pgConn) error) (committing bool, err error) {
	begin := beginSerializable
	if l.exclusive != 0 || l.rows {
		begin = beginLocked
	}
	waitCtx, cancel := context.WithTimeout(ctx, p.maxLockWait)
	pooled, err := p.pool.Acquire(waitCtx)
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
		// The commit continues if the client disconnects, so that its outcome is known.
		commitCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.maxLockWait)
		defer cancel()
		c.ctx, committing = commitCtx, true
		return c.commit()
	})
	return committing, err
}

// entryStatement returns the first statement of every update. It takes the locks, and fails if a tool has exclusive use of the database
// or has migrated the schema. It is one statement because a round trip costs more than its content. require_schema is volatile, so it
// sees what was committed while the locks were awaited.
func (p *postgres) entryStatement(l locks) (query string, args []any) {
	if l.exclusive != 0 {
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

// checkedSchema is the first version of the schema with require_schema.
const checkedSchema = 4

// backOff waits about 2^attempt ms, at most 64 ms, with a jitter of 50 %. It returns false if ctx ended.
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

// recoverPanic runs fn and converts a panic into an error.
func recoverPanic(fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic in a transaction: %v\n%s", r, debug.Stack())
		}
	}()
	return fn()
}

// numbers returns n numbers of a sequence, in ascending order. It discards the rest of the last reserved block.
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

// number returns the next number of a sequence. Numbers are reserved in blocks.
func (p *postgres) number(c *pgConn, sequence string) (int64, error) {
	if n, ok := p.nextReserved(sequence); ok {
		return n, nil
	}
	// Queued statements, such as those that take locks, are sent first: a lock may be held by an update that needs a number.
	if err := c.flush(); err != nil {
		return 0, err
	}
	var first int64
	if err := c.each("SELECT nextval('number_"+sequence+"')", nil, func(r row) error { return r.scan(&first) }); err != nil {
		return 0, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// If another update reserved a block in the meantime, the rest of that block is not used.
	p.blocks[sequence] = &block{first + 1, first + sequenceStep}
	return first, nil
}

// nextReserved returns the next number of the reserved block. ok is false if the block is used up.
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

// Error codes of PostgreSQL (documentation, appendix A), and the code raised by require_schema.
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

// pgCode returns PostgreSQL's code of an error, or "" if the error is not from PostgreSQL.
func pgCode(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// isConnectionLost reports whether the error is one of the connection: the server is unreachable, starting, stopping or has no free
// connections, or it ended the transaction because this process was suspended.
func isConnectionLost(err error) bool {
	if code := pgCode(err); code != "" {
		return strings.HasPrefix(code, "08") || strings.HasPrefix(code, "57P") || code == readOnlyTransaction || code == tooManyConnections ||
			code == idleTransaction
	}
	var dial *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &dial) || errors.As(err, &network) && !errors.Is(err, context.DeadlineExceeded) ||
		pgconn.SafeToRetry(err) && !errors.Is(err, context.DeadlineExceeded) || // otherwise the caller's deadline has passed
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		err != nil && strings.Contains(err.Error(), "conn closed")
}

// connectionProblem converts a connection error into 503 DatabaseUnavailable, and an update that did not get its locks into 503
// DatabaseBusy. A statement that the database cancelled counts as unavailable. Other errors are returned unchanged.
func connectionProblem(err error) error {
	switch code := pgCode(err); {
	case errors.Is(err, context.Canceled): // the client disconnected, possibly during the connection attempt
		return err
	case code == serializationFailure || code == deadlockDetected || code == lockNotAvailable:
		return busyError(err)
	case isConnectionLost(err) || code == queryCanceled:
		return unavailableError(err)
	}
	return err
}
