package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	id    string
	pool  *pgxpool.Pool
	texts placeholders
	turns turns
	homes homes
	mu    sync.Mutex
	// blocks are the numbers reserved and not yet given out, by sequence; guarded by mu.
	blocks map[string]*block
}

type block struct{ next, end int64 }

// sequenceStep is by how much the sequences of numbers go on (migrations/postgres).
const sequenceStep = 256

// openPostgres connects and brings the schema up to the version; 0 means the newest.
func openPostgres(ctx context.Context, url string, readers, schema int) (*postgres, error) {
	p, err := connect(ctx, url, readers)
	if err != nil {
		return nil, err
	}
	// The database may be on its way up, or its standby on its way to become it.
	for began, attempt := time.Now(), 0; ; attempt++ {
		if err = p.migrate(ctx, schema); !lost(err) || time.Since(began) > openTime || !pause(ctx, attempt) {
			break
		}
	}
	if err != nil {
		p.pool.Close()
		return nil, err
	}
	return p, nil
}

// openTime is how long a database that is not there is waited for.
const openTime = 10 * time.Second

func connect(ctx context.Context, url string, readers int) (*postgres, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("the database's URL cannot be read") // not repeated: it may hold a password
	}
	config.MaxConns = int32(2 * readers)
	config.ConnConfig.RuntimeParams["application_name"] = "portolan"
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the database: %w", err)
	}
	return &postgres{id: rand.Text(), pool: pool, blocks: map[string]*block{}}, nil
}

// migrationLock is the advisory lock under which one manager at a time migrates.
const migrationLock = 0x706f72746f6c616e // "portolan"

// migrate brings the schema up to date, each migration in a transaction that records its number.
func (p *postgres) migrate(ctx context.Context, upTo int) error {
	files, err := fs.Glob(migrations, "migrations/postgres/*.sql")
	if err != nil {
		return err
	}
	if upTo == 0 {
		upTo = len(files)
	}
	return pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(migrationLock)); err != nil {
			return fmt.Errorf("locking the schema: %w", err)
		}
		if _, err := tx.Exec(ctx, "CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)"); err != nil {
			return fmt.Errorf("reading the schema version: %w", err)
		}
		var version int
		if err := tx.QueryRow(ctx, "SELECT coalesce(max(version), 0) FROM schema_version").Scan(&version); err != nil {
			return fmt.Errorf("reading the schema version: %w", err)
		}
		if version > len(files) {
			return fmt.Errorf("the database has schema version %d, newer than this binary's %d: use a newer portolan", version, len(files))
		}
		for i := version; i < upTo; i++ {
			script, err := fs.ReadFile(migrations, files[i])
			if err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, string(script)); err != nil {
				return fmt.Errorf("migration %s: %w", files[i], err)
			}
			if _, err := tx.Exec(ctx, "INSERT INTO schema_version (version) VALUES ($1)", i+1); err != nil {
				return err
			}
		}
		return settle(ctx, tx, max(version, upTo))
	})
}

// settle orders the change feed anew where the database was restored, by its own tools, into a server
// that has counted fewer transactions: what was committed there comes behind those that are here.
func settle(ctx context.Context, tx pgx.Tx, version int) error {
	if version < 2 {
		return nil
	}
	var ahead bool
	err := tx.QueryRow(ctx, "SELECT coalesce((SELECT max(committed) FROM txn) > pg_current_xact_id()::text::bigint, FALSE)").Scan(&ahead)
	if err != nil || !ahead {
		return err
	}
	for _, statement := range []string{"UPDATE txn SET committed = pg_current_xact_id()::text::bigint", "DELETE FROM origin",
		"INSERT INTO origin (id) VALUES (replace(gen_random_uuid()::text, '-', ''))"} {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return fmt.Errorf("ordering the change feed anew: %w", err)
		}
	}
	return nil
}

// Limits of repetition. An update is repeated within updateTime while it collides with others. What
// did not reach the database is repeated lostTimes: it may be a server that was started again, whose
// old connections are found broken one by one.
const (
	updateTime = 30 * time.Second
	lostTimes  = 20
	// duplicateTimes is for what another update inserted first: the next try sees it, and the rules
	// say what is in the way.
	duplicateTimes = 3
)

// Statements that begin a transaction; they travel with its first statement.
const (
	beginSnapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
	// beginApart is for updates that nothing but the database keeps apart, beginLocked for those that
	// hold locks: each of their statements sees what was committed before the locks were got.
	beginApart  = "BEGIN ISOLATION LEVEL SERIALIZABLE"
	beginLocked = "BEGIN ISOLATION LEVEL READ COMMITTED"
	// impatient lets the database end an update whose manager has stopped in the middle of it: others
	// wait for its locks.
	impatient = "SET LOCAL idle_in_transaction_session_timeout = '10s'"
)

// view runs fn in a snapshot. Reading is safe to repeat.
func (p *postgres) view(ctx context.Context, fn func(conn) error) error {
	return p.reading(ctx, beginSnapshot, fn)
}

// read runs fn without a transaction around its statements.
func (p *postgres) read(ctx context.Context, fn func(conn) error) error {
	return p.reading(ctx, "", fn)
}

func (p *postgres) reading(ctx context.Context, begin string, fn func(conn) error) error {
	for attempt := 0; ; attempt++ {
		err := p.with(ctx, begin, func(c *pgConn) error {
			if err := fn(c); err != nil {
				return err
			}
			return c.end("COMMIT")
		})
		if !lost(err) || attempt >= lostTimes || !pause(ctx, attempt) {
			return err
		}
	}
}

// with runs fn on a connection. A transaction that is still open at the end is rolled back.
func (p *postgres) with(ctx context.Context, begin string, fn func(*pgConn) error) error {
	pooled, err := p.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer pooled.Release()
	c := &pgConn{ctx: ctx, pg: pooled.Conn(), p: p, begin: begin}
	defer func() {
		if c.pg.PgConn().TxStatus() != 'I' { // what cannot be rolled back is closed by the pool
			_, _ = c.pg.Exec(context.WithoutCancel(ctx), "ROLLBACK")
		}
	}()
	return safely(func() error { return fn(c) })
}

// update runs fn in a transaction that is as if it ran alone, again and again while that is safe and
// of use.
func (p *postgres) update(ctx context.Context, scope Scope, fn func(*pgConn) error) error {
	limited, cancel := context.WithTimeout(ctx, updateTime)
	defer cancel()
	err := p.repeat(limited, scope, fn)
	if ctx.Err() == nil && limited.Err() != nil && errors.Is(err, context.DeadlineExceeded) {
		return unavailable(err)
	}
	return err
}

func (p *postgres) repeat(ctx context.Context, scope Scope, fn func(*pgConn) error) error {
	l, err := p.locks(ctx, scope)
	if err != nil {
		return err
	}
	// Those of this process wait here, so that they do not hold a connection meanwhile.
	done, err := p.turns.take(ctx, l.own)
	if err != nil {
		return err
	}
	defer done()
	duplicates := 0
	for attempt := 0; ; attempt++ {
		committing, err := p.once(ctx, l, fn)
		var e *pgconn.PgError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &e) && (e.Code == "40001" || e.Code == "40P01"): // serialization_failure, deadlock_detected
		case errors.As(err, &e) && e.Code == "23505" && duplicates < duplicateTimes: // unique_violation
			duplicates++
		case lost(err) && !committing && attempt < lostTimes:
		default:
			return err
		}
		if !pause(ctx, attempt) {
			return err
		}
	}
}

// once runs fn in a transaction and says whether it had come to the commit, after which nobody knows
// what became of it.
func (p *postgres) once(ctx context.Context, l locks, fn func(*pgConn) error) (committing bool, err error) {
	begin := beginApart
	if l.own != 0 {
		begin = beginLocked
	}
	err = p.with(ctx, begin, func(c *pgConn) error {
		c.wait(impatient)
		if l.own != 0 {
			query, args := l.take()
			c.wait(query, args...)
		}
		if err := fn(c); err != nil {
			return err
		}
		committing = true
		return c.end("COMMIT")
	})
	return committing, err
}

// pause waits longer each time, up to 64 ms, with jitter; it reports whether to go on.
func pause(ctx context.Context, attempt int) bool {
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
func safely(fn func() error) (err error) {
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
	err := c.each("SELECT nextval('number_"+sequence+"') FROM generate_series(1, ?)", []any{(n + sequenceStep - 1) / sequenceStep}, func(r row) error {
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
func (p *postgres) number(c conn, sequence string) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.blocks[sequence]
	if b == nil || b.next == b.end {
		var first int64
		err := c.each("SELECT nextval('number_"+sequence+"')", nil, func(r row) error { return r.scan(&first) })
		if err != nil {
			return 0, err
		}
		b = &block{first, first + sequenceStep}
		p.blocks[sequence] = b
	}
	b.next++
	return b.next - 1, nil
}

// lost reports whether an error is one of the connection: the server is not there, going, coming, or
// has no room.
func lost(err error) bool {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		// 25006: it has become a standby; 53300: it has no room for one more connection.
		return strings.HasPrefix(e.Code, "08") || strings.HasPrefix(e.Code, "57P") || e.Code == "25006" || e.Code == "53300"
	}
	var dial *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &dial) || errors.As(err, &network) && !errors.Is(err, context.DeadlineExceeded) || pgconn.SafeToRetry(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		err != nil && strings.Contains(err.Error(), "conn closed")
}

// unreachable words a failure of the connection as 503 DatabaseUnavailable, and an update that never
// got its turn likewise; other errors pass.
func unreachable(err error) error {
	var e *pgconn.PgError
	if !lost(err) && !(errors.As(err, &e) && (e.Code == "40001" || e.Code == "40P01")) {
		return err
	}
	return unavailable(err)
}
