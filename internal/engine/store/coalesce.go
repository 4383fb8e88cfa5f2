package store

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// gatherer reads rows by id and combines concurrent reads. While a statement is running, requests for other rows wait for its end, and one
// statement then reads the rows of all of them: a round trip costs more than the rows that it returns. A single request never waits, and no
// request waits longer than maxWait, because a statement may hang. A row is always read by a statement that was sent after its request, so
// it is as recent as if it had been read separately.
type gatherer struct {
	p *postgres
	// maxWait is the maximum time that a request waits for the statements of others.
	maxWait time.Duration
	// mu guards the fields below. It is never held during a query.
	mu sync.Mutex
	// running is the number of running statements.
	running int
	// directUntil is the time until which each request reads its own row, because rows come from a disk, which serves concurrent reads
	// better, or because a statement hangs.
	directUntil time.Time
	// slowCount is the number of consecutive slow statements.
	slowCount int
	// waiting are the requests whose statement was not sent yet.
	waiting []*rowRequest
}

// Limits of a gatherer: the rows of a statement, the wait of a request, and the duration of a statement. When the latter is reached, its
// requests have stopped waiting.
const (
	maxGatheredRows   = 64
	gatheringPatience = 50 * time.Millisecond
	gatheringTime     = 5 * time.Second
)

// A statement with at least minTimedRows rows is slow if it takes longer than slowRow per row. After maxSlowStatements consecutive slow
// statements, the rows are probably not in memory, and requests are not combined for directTime. A single slow statement may only have
// waited for a processor.
const (
	maxSlowStatements = 4
	minTimedRows      = 8
	slowRow           = 250 * time.Microsecond
	directTime        = time.Second
)

// rowQuery is a statement in two forms: byID reads the row with one id, byIDs the rows with any of a list of ids. The first column is the
// id.
type rowQuery struct{ byID, byIDs string }

// rowRequest is a waiting request for a row.
type rowRequest struct {
	id    int64
	query rowQuery
	// done is closed when rows or err is set. rows is nil if the row does not exist; otherwise it contains only that row.
	done chan struct{}
	rows *pgRows
	err  error
}

// readRow reads a row for a connection that was not used yet, and calls fn with the row if it exists.
func (g *gatherer) readRow(c *pgConn, query rowQuery, id int64, fn func(*pgRow) error) error {
	g.mu.Lock()
	if g.running == 0 || time.Now().Before(g.directUntil) {
		g.running++
		g.mu.Unlock()
		defer g.startNext()
		return c.each(query.byID, []any{id}, onPgRow(fn))
	}
	w := &rowRequest{id: id, query: query, done: make(chan struct{})}
	g.waiting = append(g.waiting, w)
	g.mu.Unlock()
	timeout := time.NewTimer(g.maxWait)
	defer timeout.Stop()
	select {
	case <-c.ctx.Done():
		g.abandon(w, false)
		return c.ctx.Err()
	case <-timeout.C:
		g.abandon(w, true)
		return c.each(query.byID, []any{id}, onPgRow(fn))
	case <-w.done:
	}
	if w.err != nil || w.rows == nil {
		return w.err
	}
	return w.rows.each(c, onPgRow(fn))
}

// abandon removes a request that stops waiting. After a timeout, requests are not combined for directTime.
func (g *gatherer) abandon(w *rowRequest, timedOut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = slices.DeleteFunc(g.waiting, func(one *rowRequest) bool { return one == w })
	if timedOut {
		g.directUntil = time.Now().Add(directTime)
	}
}

// startNext starts a statement for the waiting requests, if there are any, after another statement has ended.
func (g *gatherer) startNext() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		g.running--
		return
	}
	// Requests with another statement, which shows resources differently, continue to wait.
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
		g.readRows(query.byIDs, taken)
		g.recordDuration(len(taken), time.Since(began))
	}()
}

// recordDuration records how long a statement for the given number of rows took.
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

// readRows reads the requested rows and answers the requests.
func (g *gatherer) readRows(query string, wanted []*rowRequest) {
	ids := make([]int64, 0, len(wanted))
	byID := make(map[int64][]*rowRequest, len(wanted))
	for _, w := range wanted {
		if byID[w.id] == nil {
			ids = append(ids, w.id)
		}
		byID[w.id] = append(byID[w.id], w)
	}
	// The context is independent of the requests, so that a cancelled one does not affect the others.
	ctx, cancel := context.WithTimeout(context.Background(), gatheringTime)
	defer cancel()
	err := g.p.readWith(ctx, g.p.readers, "", func(on conn) error {
		c := on.(*pgConn) //nolint:errcheck,forcetypeassert // readWith passes no other type
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
