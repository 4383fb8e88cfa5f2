package store

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// A gatherer reads rows by their id. While a statement is under way, who wants another row waits for its end, and all who wait then get
// theirs by one statement: a round trip costs more than the rows that it brings. Who comes alone waits for nobody, and nobody waits longer
// than its patience: a statement may hang. A row is always of a statement that was sent after it was asked for, so that it is as new as
// if it had been read alone.
type gatherer struct {
	p *postgres
	// patience is how long somebody waits for others' statements.
	patience time.Duration
	// mu guards what is below; it is never held while the database is asked.
	mu sync.Mutex
	// asking is how many statements are under way.
	running int
	// apart is until when each asks for its own row: rows come from a disk then, which reads for many at once, or a statement hangs.
	directUntil time.Time
	// slow is how many statements were slow, one behind the other.
	slowCount int
	// waiting are those whose row no statement was sent for.
	waiting []*rowRequest
}

// Bounds of a gatherer: rows of one statement, its patience, and how long one statement may take, for which nobody waits any more by then.
const (
	maxGatheredRows   = 64
	gatheringPatience = 50 * time.Millisecond
	gatheringTime     = 5 * time.Second
)

// Where slowTimes statements of at least severalRows, one behind the other, take longer than slowRow a row, rows are not in memory: none is
// gathered for apartTime. A single one may have waited for a processor.
const (
	maxSlowStatements = 4
	minTimedRows      = 8
	slowRow           = 250 * time.Microsecond
	directTime        = time.Second
)

// gathering is a statement of a gatherer in two forms: for the row with one id, and for those with any of a list of ids. The first column
// of both is the id.
type rowQuery struct{ one, any string }

type rowRequest struct {
	id    int64
	query rowQuery
	// done is closed once rows, or err, are there. rows is nil where there is no such row; else the row is the first one.
	done chan struct{}
	rows *pgRows
	err  error
}

// row asks for one row on behalf of a connection of which nothing was asked yet, and calls fn with it, if it is there.
func (g *gatherer) readRow(c *pgConn, query rowQuery, id int64, fn func(*pgRow) error) error {
	g.mu.Lock()
	if g.running == 0 || time.Now().Before(g.directUntil) {
		g.running++
		g.mu.Unlock()
		defer g.startNext()
		return c.each(query.one, []any{id}, onPgRow(fn))
	}
	w := &rowRequest{id: id, query: query, done: make(chan struct{})}
	g.waiting = append(g.waiting, w)
	g.mu.Unlock()
	timeout := time.NewTimer(g.patience)
	defer timeout.Stop()
	select {
	case <-c.ctx.Done():
		g.abandon(w, false)
		return c.ctx.Err()
	case <-timeout.C:
		g.abandon(w, true)
		return c.each(query.one, []any{id}, onPgRow(fn))
	case <-w.done:
	}
	if w.err != nil || w.rows == nil {
		return w.err
	}
	return w.rows.each(c, onPgRow(fn))
}

// leave is for who waits no more. Where that took too long, nobody is to wait for a while.
func (g *gatherer) abandon(w *rowRequest, timedOut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = slices.DeleteFunc(g.waiting, func(one *rowRequest) bool { return one == w })
	if timedOut {
		g.directUntil = time.Now().Add(directTime)
	}
}

// next asks for those that wait, if there are any, in the place of a statement that has ended.
func (g *gatherer) startNext() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		g.running--
		return
	}
	// Those of another statement, which is another way of showing resources, wait for their own.
	query, taken, left := g.waiting[0].query, make([]*rowRequest, 0, len(g.waiting)), g.waiting[:0]
	for _, w := range g.waiting {
		if w.query == query && len(taken) < maxGatheredRows {
			taken = append(taken, w)
		} else {
			left = append(left, w)
		}
	}
	clear(g.waiting[len(left):])
	g.waiting = left
	go func() {
		defer g.startNext()
		began := time.Now()
		g.readRows(query.any, taken)
		g.recordDuration(len(taken), time.Since(began))
	}()
}

// took notes how long a statement for so many rows took.
func (g *gatherer) recordDuration(rows int, took time.Duration) {
	if rows < minTimedRows {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.slowCount++; took <= time.Duration(rows)*slowRow {
		g.slowCount = 0
	}
	if g.slowCount >= maxSlowStatements {
		g.slowCount, g.directUntil = 0, time.Now().Add(directTime)
	}
}

// ask reads the rows of those and tells them.
func (g *gatherer) readRows(query string, wanted []*rowRequest) {
	ids := make([]int64, 0, len(wanted))
	byID := make(map[int64][]*rowRequest, len(wanted))
	for _, w := range wanted {
		if byID[w.id] == nil {
			ids = append(ids, w.id)
		}
		byID[w.id] = append(byID[w.id], w)
	}
	ctx, cancel := context.WithTimeout(context.Background(), gatheringTime) // nobody's own: one who leaves takes nothing from the others
	defer cancel()
	err := g.p.readWith(ctx, g.p.readers, "", func(on conn) error {
		c := on.(*pgConn) //nolint:errcheck,forcetypeassert // with has no others
		return c.query(query, []any{ids}, func(rows pgx.Rows) error {
			for rows.Next() {
				one := &pgRows{fields: slices.Clone(rows.FieldDescriptions())}
				one.add(rows.RawValues())
				for _, w := range byID[bigint(rows.RawValues()[0])] {
					w.rows = one
				}
			}
			return rows.Err()
		})
	})
	for _, w := range wanted {
		w.err = err
		close(w.done)
	}
}
