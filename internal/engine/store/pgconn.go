package store

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// pgConn is a connection, usually in a transaction. The statement that begins the transaction, and statements without a result, are
// queued and sent with the next query or with the commit: a round trip costs more than most statements.
type pgConn struct {
	ctx context.Context
	p   *postgres
	// pg is the connection, and pooled its handle in the pool. A reader acquires it at its first query that the gatherer does not answer;
	// until then both are nil.
	pg     *pgx.Conn
	pooled *pgxpool.Conn
	from   *pgxpool.Pool
	// mu guards the connection and all fields below. It is held from a query until its answer, because a list may be read concurrently.
	mu sync.Mutex
	// beginStatement is the statement that begins the transaction. It is empty once it was sent.
	beginStatement string
	// genericPlans is true if the following statements use generic plans. sentGenericPlans is the mode that was sent to the transaction.
	genericPlans, sentGenericPlans bool
	// queued are statements that were not sent yet.
	queued []statement
	// failed is the first error of the transaction. After it PostgreSQL rejects all statements with errors that do not help.
	failed error
	// cursors is the number of opened cursors, for their names.
	cursors int
	// words are texts that many rows contain, such as names of types, so that each is stored once.
	words map[string]string
}

type statement struct {
	query string
	args  []any
}

// connected returns the connection and acquires it if necessary. mu must be held.
func (c *pgConn) connected() (*pgx.Conn, error) {
	if c.pg == nil {
		pooled, err := c.from.Acquire(c.ctx)
		if err != nil {
			return nil, err
		}
		c.pooled, c.pg = pooled, pooled.Conn()
	}
	return c.pg, nil
}

// isIdle reports whether no transaction is open on the connection.
func (c *pgConn) isIdle() bool { return c.pg == nil || c.pg.PgConn().TxStatus() == 'I' }

// isUnused reports whether the connection was not used yet, and has no queued statements.
func (c *pgConn) isUnused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pg == nil && c.beginStatement == "" && len(c.queued) == 0 && c.failed == nil
}

// setPlanMode sets whether the following statements use generic plans, or are planned for their arguments.
func (c *pgConn) setPlanMode(kept bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.genericPlans = kept
}

// planSetting returns the PostgreSQL setting for a plan mode.
func planSetting(kept bool) string {
	if kept {
		return "plan_cache_mode = force_generic_plan"
	}
	return "plan_cache_mode = force_custom_plan"
}

// genericPlansKey is the key under which a connection records that its session uses generic plans, unless a transaction overrides that.
const genericPlansKey = "kept plans"

// usesGenericPlans reports whether the session of a connection uses generic plans.
func usesGenericPlans(pg *pgx.Conn) bool {
	kept, _ := pg.PgConn().CustomData()[genericPlansKey].(bool)
	return kept
}

// hasPending reports whether something has to be sent before the next statement. mu must be held.
func (c *pgConn) hasPending() bool {
	return c.beginStatement != "" || len(c.queued) > 0 || c.failed != nil || c.sentGenericPlans != c.genericPlans
}

// isFirstQuery reports whether a snapshot on a connection for pages or lists has not been used yet.
func (c *pgConn) isFirstQuery() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pg == nil && c.isBeforeSnapshotLocked()
}

// isBeforeSnapshotLocked reports whether a snapshot on a connection for pages or lists has not started yet. mu must be held.
func (c *pgConn) isBeforeSnapshotLocked() bool {
	return c.beginStatement == beginSnapshot && len(c.queued) == 0 && c.failed == nil && (c.from == c.p.pages || c.from == c.p.lists)
}

// isBeforeSnapshot is isBeforeSnapshotLocked for callers that do not hold mu.
func (c *pgConn) isBeforeSnapshot() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.isBeforeSnapshotLocked()
}

// queryAlone runs a query before the snapshot starts. The snapshot then starts a moment later and sees as much as the query, or more. If
// nothing follows, no transaction is required.
func (c *pgConn) queryAlone(query string, args []any, fn func(row) error) error {
	all, ok := piecePool.Get().(*pgRows)
	if !ok {
		all = &pgRows{}
	}
	defer piecePool.Put(all)
	c.mu.Lock()
	c.failed = c.sendAlone(query, args, all)
	err := c.failed
	c.mu.Unlock()
	if err != nil {
		return err
	}
	return all.each(c, fn)
}

// sendAlone sends a query and reads the whole answer. mu must be held.
func (c *pgConn) sendAlone(query string, args []any, all *pgRows) error {
	pg, err := c.connected()
	if err != nil {
		return err
	}
	text := c.p.statements.numberPlaceholders(query)
	if usesGenericPlans(pg) == c.genericPlans {
		rows, err := pg.Query(c.ctx, text, args...)
		if err != nil {
			return err
		}
		return all.read(rows)
	}
	b := &pgx.Batch{}
	b.Queue("SET " + planSetting(c.genericPlans))
	b.Queue(text, args...)
	results := pg.SendBatch(c.ctx, b)
	_, err = results.Exec()
	if err == nil {
		var rows pgx.Rows
		if rows, err = results.Query(); err == nil {
			err = all.read(rows)
		}
	}
	if e := results.Close(); err == nil {
		err = e
	}
	if err == nil { // otherwise the SET was rolled back with the query
		pg.PgConn().CustomData()[genericPlansKey] = c.genericPlans
	}
	return err
}

// send sends the queued statements and then the given one, in one round trip, and calls read for its answer.
func (c *pgConn) send(query string, args []any, read func(pgx.BatchResults) error) error {
	if c.failed == nil {
		c.failed = c.sendAll(query, args, read)
	}
	return c.failed
}

func (c *pgConn) sendAll(query string, args []any, read func(pgx.BatchResults) error) error {
	pg, err := c.connected()
	if err != nil {
		return err
	}
	b := &pgx.Batch{}
	if c.beginStatement != "" {
		b.Queue(c.beginStatement)
		c.beginStatement, c.sentGenericPlans = "", usesGenericPlans(pg)
	}
	if c.sentGenericPlans != c.genericPlans {
		b.Queue("SET LOCAL " + planSetting(c.genericPlans))
		c.sentGenericPlans = c.genericPlans
	}
	for _, s := range c.queued {
		b.Queue(c.p.statements.numberPlaceholders(s.query), s.args...)
	}
	c.queued = nil
	before := b.Len()
	b.Queue(c.p.statements.numberPlaceholders(query), args...)
	results := pg.SendBatch(c.ctx, b)
	for range before {
		if _, err := results.Exec(); err != nil {
			_ = results.Close() // returns the same error
			return err
		}
	}
	err = read(results)
	if e := results.Close(); err == nil {
		err = e
	}
	return err
}

// commit commits the transaction, unless it is empty.
func (c *pgConn) commit() error {
	if c.failed != nil { // the error of a statement that the caller ignored
		return c.failed
	}
	if (c.beginStatement != "" || c.isIdle()) && len(c.queued) == 0 {
		return nil
	}
	_, err := c.exec("COMMIT")
	return err
}

// enqueue queues a statement.
func (c *pgConn) enqueue(query string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queued = append(c.queued, statement{query, args})
}

func (c *pgConn) execLater(query string, args ...any) error {
	c.enqueue(query, args...)
	return nil
}

func (c *pgConn) bulk(table string, columns []string, rows [][]any) error {
	if err := c.flush(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	pg, err := c.connected()
	if err != nil {
		return err
	}
	if _, err := pg.CopyFrom(c.ctx, pgx.Identifier{table}, columns, pgx.CopyFromRows(rows)); err != nil {
		if pgCode(err) == queryCanceled && c.ctx.Err() == nil { // pgx cancelled the COPY, because a value does not fit
			return fmt.Errorf("write %s: %s", table, err.Error())
		}
		return fmt.Errorf("write %s: %w", table, err)
	}
	return nil
}

func (c *pgConn) exec(query string, args ...any) (n int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.hasPending() {
		var pg *pgx.Conn
		if pg, c.failed = c.connected(); c.failed != nil {
			return 0, c.failed
		}
		tag, err := pg.Exec(c.ctx, c.p.statements.numberPlaceholders(query), args...)
		c.failed = err
		return tag.RowsAffected(), err
	}
	err = c.send(query, args, func(r pgx.BatchResults) error {
		tag, err := r.Exec()
		n = tag.RowsAffected()
		return err
	})
	return n, err
}

// each reads the whole answer before it calls fn, because fn may run another query on the connection.
func (c *pgConn) each(query string, args []any, fn func(row) error) error {
	all, ok := piecePool.Get().(*pgRows)
	if !ok {
		all = &pgRows{}
	}
	if err := c.query(query, args, all.read); err != nil {
		return err
	}
	defer piecePool.Put(all)
	return all.each(c, fn)
}

// query runs a query and calls read for its answer.
func (c *pgConn) query(query string, args []any, read func(pgx.Rows) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hasPending() {
		return c.send(query, args, func(r pgx.BatchResults) error {
			rows, err := r.Query()
			if err != nil {
				return err
			}
			return read(rows)
		})
	}
	var pg *pgx.Conn
	if pg, c.failed = c.connected(); c.failed != nil {
		return c.failed
	}
	rows, err := pg.Query(c.ctx, c.p.statements.numberPlaceholders(query), args...)
	if err == nil {
		err = read(rows)
	}
	c.failed = err
	return err
}

// A list is read while its earlier rows are processed. Rows are passed on in pieces, and the connection is free for the queries of fn
// between two pages of the cursor.
const (
	// fetchRows is the number of rows per FETCH of a long answer. pieceRows is the number of rows per piece.
	fetchRows = 1000
	pieceRows = 125
	// maxPages is the maximum number of cursor pages in memory.
	maxPages = 2
)

// list calls fn for each row while later rows are read. Long answers are read through a cursor, so that memory use does not grow with
// them. short means that the answer has few rows.
func (c *pgConn) list(query string, args []any, short bool, fn func(row) error) error {
	c.mu.Lock()
	if c.beginStatement == "" && c.isIdle() { // a cursor requires a transaction
		short = true
	}
	c.mu.Unlock()
	l := &pgList{c: c, pieces: make(chan *pgRows, maxPages*fetchRows/pieceRows+maxPages), credits: make(chan struct{}, maxPages),
		stop: make(chan struct{})}
	if short {
		go l.read(func() (bool, error) { return true, c.query(query, args, l.split) })
	} else {
		c.cursors++
		// pgx caches the columns of a FETCH by its text. The name contains a hash of the query, so that equal names have equal columns.
		columns := fnv.New32a()
		_, _ = columns.Write([]byte(query)) // it never fails
		name := fmt.Sprintf("list%d_%08x", c.cursors, columns.Sum32())
		if err := c.flush(); err != nil {
			return err
		}
		// The query of a cursor has no parameters in the extended protocol. In the simple protocol, pgx writes the quoted arguments into
		// it.
		simple := append([]any{pgx.QueryExecModeSimpleProtocol}, args...)
		if _, err := c.exec("DECLARE "+name+" NO SCROLL CURSOR FOR "+query, simple...); err != nil {
			return err
		}
		fetch := "FETCH " + strconv.Itoa(fetchRows) + " FROM " + name
		go l.read(func() (last bool, err error) {
			before := l.rows
			err = c.query(fetch, nil, l.split)
			return l.rows-before < fetchRows, err // the cursor is closed with the transaction
		})
	}
	defer func() { // also if fn panics: the reader must have stopped before the connection is released
		close(l.stop)
		for range l.pieces { //nolint:revive // discard the remaining pieces
		}
	}()
	for p := range l.pieces {
		if err := p.each(c, fn); err != nil {
			return err
		}
		if p.last {
			<-l.credits
		}
		piecePool.Put(p)
	}
	return l.err
}

// pgList is a list that is being read. Its reader owns all fields but stop until pieces is closed.
type pgList struct {
	c      *pgConn
	pieces chan *pgRows
	// credits holds a token for each page in memory.
	credits chan struct{}
	stop    chan struct{}
	rows    int
	err     error
}

// read reads pages until the last one.
func (l *pgList) read(page func() (last bool, err error)) {
	defer close(l.pieces)
	for {
		select {
		case <-l.stop:
			return
		case l.credits <- struct{}{}:
		}
		last, err := page()
		l.pieces <- &pgRows{last: true}
		if l.err = err; last || err != nil {
			return
		}
	}
}

// split splits an answer into pieces and sends them. The channel has room for all of them.
func (l *pgList) split(rows pgx.Rows) error {
	p := newPiece(rows)
	for rows.Next() {
		l.rows++
		p.add(rows.RawValues())
		if p.count() == pieceRows && cap(l.pieces)-len(l.pieces) > 2 {
			l.pieces <- p
			p = newPiece(rows)
		}
	}
	l.pieces <- p
	return rows.Err()
}

// piecePool contains pieces whose memory can be reused.
var piecePool = sync.Pool{New: func() any { return &pgRows{} }}

func newPiece(rows pgx.Rows) *pgRows {
	p, ok := piecePool.Get().(*pgRows)
	if !ok {
		p = &pgRows{}
	}
	p.reset(rows)
	return p
}

// flush sends the queued statements.
func (c *pgConn) flush() error {
	c.mu.Lock()
	waits := c.hasPending()
	c.mu.Unlock()
	if !waits {
		return nil
	}
	_, err := c.exec("SELECT 1")
	return err
}

func (c *pgConn) mark(kind string) (value int64, err error) {
	err = c.each("SELECT last_value FROM number_"+kind, nil, func(r row) error { return r.scan(&value) })
	return value + sequenceStep - 1, err
}

func (c *pgConn) setMark(kind string, mark int64) error {
	return c.each("SELECT setval('number_"+kind+"', ?)", []any{mark}, func(row) error { return nil })
}

func (c *pgConn) sqlDialect() *dialect { return &postgresDialect }
