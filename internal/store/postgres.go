package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"portolan/internal/problem"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// postgres is a store in PostgreSQL. Any number of managers may share it: what is in memory is nobody
// else's business. Reads are snapshots that take no lock; an update is a serialisable transaction,
// retried inside the request's time when it met another one.
type postgres struct {
	pool  *pgxpool.Pool
	texts placeholders
	mu    sync.Mutex
	// blocks are the numbers reserved and not yet given out, by sequence; guarded by mu.
	blocks map[string]*block
}

type block struct{ next, end int64 }

// sequenceStep is by how much the sequences of numbers go on (migrations/postgres).
const sequenceStep = 256

func openPostgres(ctx context.Context, url string, readers int) (*postgres, error) {
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
	p := &postgres{pool: pool, blocks: map[string]*block{}}
	if err := p.migrate(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	return p, nil
}

// migrationLock is the advisory lock under which one manager at a time migrates.
const migrationLock = 0x706f72746f6c616e // "portolan"

// migrate brings the schema up to date, each migration in a transaction that records its number.
func (p *postgres) migrate(ctx context.Context) error {
	files, err := fs.Glob(migrations, "migrations/postgres/*.sql")
	if err != nil {
		return err
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
		for i := version; i < len(files); i++ {
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
		return nil
	})
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

// view runs fn in a snapshot. Reading is safe to repeat.
func (p *postgres) view(ctx context.Context, fn func(conn) error) error {
	for attempt := 0; ; attempt++ {
		err := pgx.BeginTxFunc(ctx, p.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			return fn(&pgConn{ctx: ctx, tx: tx, p: p})
		})
		if !lost(err) || attempt >= lostTimes || !pause(ctx, attempt) {
			return err
		}
	}
}

// update runs fn in a serialisable transaction, again and again while that is safe and of use.
func (p *postgres) update(ctx context.Context, fn func(conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, updateTime)
	defer cancel()
	duplicates := 0
	for attempt := 0; ; attempt++ {
		committing, err := p.once(ctx, fn)
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
func (p *postgres) once(ctx context.Context, fn func(conn) error) (committing bool, err error) {
	tx, err := p.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.Serializable})
	if err != nil {
		return false, err
	}
	// After a commit this does nothing; a broken connection has nothing to take back.
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if err := safely(func() error { return fn(&pgConn{ctx: ctx, tx: tx, p: p}) }); err != nil {
		return false, err
	}
	return true, tx.Commit(ctx)
}

// pause waits longer each time, up to 64 ms, with jitter; it reports whether to go on.
func pause(ctx context.Context, attempt int) bool {
	wait := time.Duration(1<<min(attempt, 6)) * time.Millisecond
	timer := time.NewTimer(wait/2 + rand.N(wait)) //nolint:gosec // jitter needs no secrecy
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

// pgConn is a connection in a transaction.
type pgConn struct {
	ctx context.Context
	tx  pgx.Tx
	p   *postgres
	// cursors counts those that were opened, for their names.
	cursors int
}

// fetched is how many rows of a long answer are in memory at a time.
const fetched = 500

// list reads the answer through a cursor, so that fn may ask something else on the same connection
// and the memory does not grow with the answer.
func (c *pgConn) list(query string, args []any, fn func(row) error) error {
	c.cursors++
	name := "list" + strconv.Itoa(c.cursors)
	// A cursor's query takes no parameters over the extended protocol: pgx quotes them into it.
	simple := append([]any{pgx.QueryExecModeSimpleProtocol}, args...)
	if _, err := c.tx.Exec(c.ctx, "DECLARE "+name+" NO SCROLL CURSOR FOR "+c.p.texts.of(query), simple...); err != nil {
		return err
	}
	for {
		n := 0
		err := c.each("FETCH "+strconv.Itoa(fetched)+" FROM "+name, nil, func(r row) error {
			n++
			return fn(r)
		})
		if err != nil {
			return err // the cursor ends with the transaction
		}
		if n < fetched {
			_, err := c.tx.Exec(c.ctx, "CLOSE "+name)
			return err
		}
	}
}

// damage is empty: PostgreSQL checks its pages as it reads them, where it is set to.
func (c *pgConn) damage() ([]string, error) { return nil, nil }

func (c *pgConn) mark(kind string) (value int64, err error) {
	err = c.each("SELECT last_value FROM number_"+kind, nil, func(r row) error { return r.scan(&value) })
	return value + sequenceStep - 1, err
}

func (c *pgConn) setMark(kind string, mark int64) error {
	return c.each("SELECT setval('number_"+kind+"', ?)", []any{mark}, func(row) error { return nil })
}

func (c *pgConn) speaks() *dialect { return &postgresDialect }

func (c *pgConn) exec(query string, args ...any) (int64, error) {
	tag, err := c.tx.Exec(c.ctx, c.p.texts.of(query), args...)
	return tag.RowsAffected(), err
}

// each reads the whole answer before it calls fn, because fn may ask something else on the same
// connection.
func (c *pgConn) each(query string, args []any, fn func(row) error) error {
	rows, err := c.tx.Query(c.ctx, c.p.texts.of(query), args...)
	if err != nil {
		return err
	}
	var all [][]any
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			rows.Close()
			return err
		}
		all = append(all, values)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, values := range all {
		if err := fn(pgRow(values)); err != nil {
			return err
		}
	}
	return nil
}

// pgRow is the values of a row.
type pgRow []any

func (r pgRow) scan(dest ...any) error {
	if len(dest) != len(r) {
		return fmt.Errorf("%d columns are read into %d places", len(r), len(dest))
	}
	for i, d := range dest {
		text, isText := r[i].(string)
		if data, ok := r[i].([]byte); ok {
			text, isText = string(data), true
		}
		number, truth := integer(r[i])
		switch x := d.(type) {
		case *string:
			*x = text
		case *int64:
			*x = number
		case *int:
			*x = int(number)
		case *bool:
			*x = truth || text == "true" || text == "1"
		case *[]byte:
			*x = nil
			if isText {
				*x = []byte(text)
			}
		case *sql.NullString:
			*x = sql.NullString{String: text, Valid: isText}
		case *sql.NullBool:
			*x = sql.NullBool{Bool: truth || text == "true", Valid: r[i] != nil}
		default:
			return fmt.Errorf("column %d is read into a %T", i, d)
		}
	}
	return nil
}

// integer gives a value as a number and as a truth.
func integer(v any) (int64, bool) {
	switch x := v.(type) {
	case int64:
		return x, x != 0
	case int32:
		return int64(x), x != 0
	case int16:
		return int64(x), x != 0
	case bool:
		if x {
			return 1, true
		}
	case string:
		n, err := strconv.ParseInt(x, 10, 64)
		return n, err == nil && n != 0
	}
	return 0, false
}

func (r pgRow) resource(to *Resource) error {
	var refs string
	var low, high, body []byte
	err := r.scan(&to.ID, &to.Collection, &to.Type, &to.Name, &to.Parent, &to.Configuration, &low, &high, &to.Key, &to.Version, &refs, &body)
	to.Low, to.High, to.Body, to.Refs, to.Links = low, high, body, parseRefs(refs), nil
	return err
}

func (r pgRow) shown(to *Resource) error {
	var refs string
	var body []byte
	err := r.scan(&to.ID, &to.Collection, &to.Type, &to.Name, &to.Parent, &to.Configuration, &to.Version, &refs, &body)
	to.Body, to.Refs = body, parseRefs(refs)
	return err
}

func (r pgRow) values() []any { return r }

func (r pgRow) head() (h Head, err error) {
	err = r.scan(&h.ID, &h.Collection, &h.Type, &h.Name, &h.Parent, &h.Configuration)
	return h, err
}

// lost reports whether an error is one of the connection: the server is not there, going, coming, or
// has no room.
func lost(err error) bool {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return strings.HasPrefix(e.Code, "08") || strings.HasPrefix(e.Code, "57P") || e.Code == "53300"
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
	p := problem.New(503, "DatabaseUnavailable", "the database cannot be reached just now; try again")
	p.Err = err
	return p
}
