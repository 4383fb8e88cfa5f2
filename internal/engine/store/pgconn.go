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

// pgConn is a connection, most often in a transaction. What begins the transaction, and statements
// whose outcome nobody asks for, wait and travel with the next statement that is asked for, or with
// the commit: a round trip costs more than most statements.
type pgConn struct {
	ctx context.Context
	p   *postgres
	// pg is the connection, pooled what is given back in the end. Who only reads takes it out of the pool from when something is
	// asked that is not gathered (gatherer): both are nil until then.
	pg     *pgx.Conn
	pooled *pgxpool.Conn
	from   *pgxpool.Pool
	// busy guards the connection and all below: it is held while something is asked and answered, because a list may be read
	// at the same time.
	mu sync.Mutex
	// begin is the statement that begins the transaction, empty once it was sent.
	begin string
	// kept says that statements from here on are planned once for all, keeps that the transaction has been told so.
	genericPlans, sentGenericPlans bool
	// waiting are statements that were not sent yet.
	queued []statement
	// failed is the first error of the transaction: after it the database does nothing more, and says
	// nothing that would help.
	failed error
	// cursors counts those that were opened, for their names.
	cursors int
	// words are the texts that stand in row after row, such as the names of types: kept once.
	words map[string]string
}

type statement struct {
	query string
	args  []any
}

// connected gives the connection; busy is held.
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

// idle says that no transaction is open on the connection.
func (c *pgConn) isIdle() bool { return c.pg == nil || c.pg.PgConn().TxStatus() == 'I' }

// untouched says that nothing was asked yet, and that nothing has to be asked before what comes first.
func (c *pgConn) isUnused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pg == nil && c.begin == "" && len(c.queued) == 0 && c.failed == nil
}

// plan says whether the statements from here on are planned once for all, or each for what it asks.
func (c *pgConn) setPlanMode(kept bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.genericPlans = kept
}

// planMode is how PostgreSQL is told.
func planSetting(kept bool) string {
	if kept {
		return "plan_cache_mode = force_generic_plan"
	}
	return "plan_cache_mode = force_custom_plan"
}

// keptPlans is where a connection notes that its session plans statements once for all, where no transaction says otherwise.
const genericPlansKey = "kept plans"

// keepsPlans reads that.
func usesGenericPlans(pg *pgx.Conn) bool {
	kept, _ := pg.PgConn().CustomData()[genericPlansKey].(bool)
	return kept
}

// waits reports whether something has to be sent before the next statement; busy is held.
func (c *pgConn) hasPending() bool {
	return c.begin != "" || len(c.queued) > 0 || c.failed != nil || c.sentGenericPlans != c.genericPlans
}

// first reports whether nothing was asked yet of a snapshot whose connection is one for pages and lists.
func (c *pgConn) isFirstQuery() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pg == nil && c.isBeforeSnapshotLocked()
}

// toBegin reports whether a snapshot whose connection is one for pages and lists has still to begin; busy is held.
func (c *pgConn) isBeforeSnapshotLocked() bool {
	return c.begin == beginSnapshot && len(c.queued) == 0 && c.failed == nil && (c.from == c.p.pages || c.from == c.p.lists)
}

// unbegun is toBegin for who does not hold busy.
func (c *pgConn) isBeforeSnapshot() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.isBeforeSnapshotLocked()
}

// alone asks something before the snapshot begins, which is as of a moment later then: what follows sees as much, or more. Where nothing
// follows, no transaction is needed.
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

// askAlone asks, and reads the whole answer; busy is held.
func (c *pgConn) sendAlone(query string, args []any, all *pgRows) error {
	pg, err := c.connected()
	if err != nil {
		return err
	}
	text := c.p.statements.numbered(query)
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
	if err == nil { // else it was taken back with the statement
		pg.PgConn().CustomData()[genericPlansKey] = c.genericPlans
	}
	return err
}

// send sends what waits and then the statement, in one round trip, and lets read have its answer.
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
	if c.begin != "" {
		b.Queue(c.begin)
		c.begin, c.sentGenericPlans = "", usesGenericPlans(pg)
	}
	if c.sentGenericPlans != c.genericPlans {
		b.Queue("SET LOCAL " + planSetting(c.genericPlans))
		c.sentGenericPlans = c.genericPlans
	}
	for _, s := range c.queued {
		b.Queue(c.p.statements.numbered(s.query), s.args...)
	}
	c.queued = nil
	before := b.Len()
	b.Queue(c.p.statements.numbered(query), args...)
	results := pg.SendBatch(c.ctx, b)
	for range before {
		if _, err := results.Exec(); err != nil {
			_ = results.Close() // gives the same error
			return err
		}
	}
	err = read(results)
	if e := results.Close(); err == nil {
		err = e
	}
	return err
}

// commit commits the transaction, if it was begun or has anything to do.
func (c *pgConn) commit() error {
	if c.failed != nil { // and somebody did not mind
		return c.failed
	}
	if (c.begin != "" || c.isIdle()) && len(c.queued) == 0 {
		return nil
	}
	_, err := c.exec("COMMIT")
	return err
}

// wait lets a statement wait.
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
		if pgCode(err) == queryCanceled && c.ctx.Err() == nil { // it was we who broke it off, because a value does not fit
			return fmt.Errorf("writing %s: %s", table, err.Error())
		}
		return fmt.Errorf("writing %s: %w", table, err)
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
		tag, err := pg.Exec(c.ctx, c.p.statements.numbered(query), args...)
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

// each reads the whole answer before it calls fn, because fn may ask something else on the same
// connection.
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

// query asks and lets read have the answer.
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
	rows, err := pg.Query(c.ctx, c.p.statements.numbered(query), args...)
	if err == nil {
		err = read(rows)
	}
	c.failed = err
	return err
}

// A list is read while what was read before is used: rows come in pieces, and the connection is free
// for what fn asks between one page of the cursor and the next.
const (
	// fetched is how many rows of a long answer are asked for at a time, piece how many are used at a time.
	fetchRows = 1000
	pieceRows = 125
	// pages is how many pages of a cursor may be in memory.
	maxPages = 2
)

// list gives rows to fn while others are read. Where the answer may be long it is read through a
// cursor, so that the memory does not grow with it; short says that it has few rows.
func (c *pgConn) list(query string, args []any, short bool, fn func(row) error) error {
	c.mu.Lock()
	if c.begin == "" && c.isIdle() { // a cursor needs a transaction
		short = true
	}
	c.mu.Unlock()
	l := &pgList{c: c, pieces: make(chan *pgRows, maxPages*fetchRows/pieceRows+maxPages), credits: make(chan struct{}, maxPages), stop: make(chan struct{})}
	if short {
		go l.read(func() (bool, error) { return true, c.query(query, args, l.split) })
	} else {
		c.cursors++
		// The connection remembers which columns the answer to a FETCH has: cursors of one name have the same ones.
		columns := fnv.New32a()
		_, _ = columns.Write([]byte(query)) // it never fails
		name := fmt.Sprintf("list%d_%08x", c.cursors, columns.Sum32())
		if err := c.flush(); err != nil {
			return err
		}
		// A cursor's query takes no parameters over the extended protocol: pgx quotes them into it.
		simple := append([]any{pgx.QueryExecModeSimpleProtocol}, args...)
		if _, err := c.exec("DECLARE "+name+" NO SCROLL CURSOR FOR "+query, simple...); err != nil {
			return err
		}
		fetch := "FETCH " + strconv.Itoa(fetchRows) + " FROM " + name
		go l.read(func() (last bool, err error) {
			before := l.rows
			err = c.query(fetch, nil, l.split)
			return l.rows-before < fetchRows, err // the cursor ends with the transaction
		})
	}
	defer func() { // also where fn panics: nobody may read when the connection is given back
		close(l.stop)
		for range l.pieces { //nolint:revive // they are not wanted any more
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

// pgList is a list that is being read. Its reader owns everything but stop until pieces is closed.
type pgList struct {
	c      *pgConn
	pieces chan *pgRows
	// credits has a token for each page that is in memory.
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

// take cuts an answer into pieces. There is room for all of them.
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

// used are pieces whose memory can be used again.
var piecePool = sync.Pool{New: func() any { return &pgRows{} }}

func newPiece(rows pgx.Rows) *pgRows {
	p, ok := piecePool.Get().(*pgRows)
	if !ok {
		p = &pgRows{}
	}
	p.reset(rows)
	return p
}

// flush sends what waits.
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
