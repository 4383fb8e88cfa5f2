package rest

import (
	"bytes"
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"sync"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// flushAt is the number of bytes of a list that are collected before they are sent. batch is the number of rows that wait for their
// inlined references. Completed rows are cached for pages with at most smallPage rows.
const (
	flushAt   = 64 << 10
	batch     = 256
	smallPage = 100
)

// listPlan is a parsed list request, without any data.
type listPlan struct {
	options
	target resource.Target
	caller resource.Caller
	scope  resource.Scope
	// query is complete, except for the ids of a computed subcollection.
	query store.Query
}

// plan parses a list request.
func (a *Server) plan(r *http.Request, t resource.Target, caller resource.Caller) (p listPlan, err error) {
	p = listPlan{target: t, caller: caller}
	p.query, p.scope = a.ListQuery(t, caller)
	if p.options, err = a.options(r, p.scope, true); err != nil {
		return p, err
	}
	if p.condition != nil {
		p.query.Where = store.All{p.query.Where, p.condition}
	}
	p.query.Order, p.query.Limit, p.query.Offset, p.query.Shown = p.order, p.limit+1, p.offset, true
	if p.after != nil {
		if !p.query.CanContain(*p.after) {
			return p, invalidPlace()
		}
		p.query.After, p.query.Offset = p.after, 0
	}
	return p, nil
}

// list serves GET of a list. It is planned, then run in one pass through the store, and written by one writer. It streams: its memory
// does not grow with the page. If it fails after the first bytes were sent, it closes the connection, so that a client does not mistake a
// part for the whole list.
func (a *Server) list(w http.ResponseWriter, r *http.Request, t resource.Target, caller resource.Caller) error {
	p, err := a.plan(r, t, caller)
	if err != nil {
		return err
	}
	listIgnored(w, p.ignored)
	share, done, err := a.lists.acquire(r.Context(), caller.Owner())
	if err != nil {
		return err
	}
	defer done()
	spool := newSpool(&a.backlog, &share.spooled, a.Log)
	l := &lister{w: w, buf: newPiece(), spool: spool, limit: a.WriteTime, head: r.Method == http.MethodHead, status: func() {
		w.Header().Set("Content-Type", p.media.contentType())
		w.Header().Add("Vary", "Accept")
		w.WriteHeader(http.StatusOK)
	}}
	defer l.abandon()
	err = a.longRead(r.Context(), caller, p.isPlainPage(), func(tx *store.Tx) error {
		if l.started { // the database connection was lost in the middle, and sent data cannot be withdrawn
			return errCut
		}
		l.buf = l.buf[:0]
		return a.run(tx, p, l, r)
	})
	if err != nil {
		l.spool.fail(err)
		_ = l.stop() // the answer has failed already
	} else {
		err = l.sendRest()
	}
	if err != nil && l.started {
		if r.Context().Err() == nil {
			a.Log.ErrorContext(r.Context(), "list aborted", "path", r.URL.Path, "error", err)
		}
		panic(http.ErrAbortHandler)
	}
	return err
}

// run writes a planned list from one snapshot.
func (a *Server) run(tx *store.Tx, p listPlan, l *lister, r *http.Request) error {
	if p.target.Sub != nil {
		if err := a.Exists(tx, p.target.Collection, p.target.ID, p.caller); err != nil {
			if err := a.historyOfDeleted(tx, p, err); err != nil {
				return err
			}
		}
	}
	q, err := a.NarrowComputed(tx, p.target.Sub, p.target.ID, p.query)
	if err != nil {
		return err
	}
	v, err := a.findVacancies(tx, p.target, p.options, p.caller)
	if err != nil {
		return err
	}
	if v != nil && p.after != nil { // vacant resources have offsets only
		return invalidPlace()
	}
	rows, err := a.rowCount(tx, p, &q)
	if err != nil {
		return err
	}
	total := ""
	if p.total {
		n, err := rows.get()
		if err != nil {
			return err
		}
		if total, err = v.total(n); err != nil {
			return err
		}
	}
	return a.page(tx, l, r, q, p, v, rows, total)
}

// historyOfDeleted permits the history of a deleted resource for callers that see the whole history, because they most often want to know
// who deleted it. Other callers get notThere, the error for the missing resource.
func (a *Server) historyOfDeleted(tx *store.Tx, p listPlan, notThere error) error {
	hidden := p.caller.Limited() || !p.caller.Administrator && p.caller.History == "HIDE"
	if p.target.Sub.Relation != resource.History || hidden || !problem.Is(notThere, "ResourceNotFound") {
		return notThere
	}
	last, err := tx.LastImage(p.target.ID)
	if err == nil && (last == nil || last.Collection != p.target.Collection.Name) {
		err = notThere
	}
	return err
}

// longRead runs fn in a snapshot for reads that may take long: within ReadTime, and within the caller's limit of concurrent reads. isShort
// is true for reads that take only a moment, such as a page in stored order or a search. These use connections of their own, so that long
// reads do not delay them. If the time runs out it returns FilterNeedsRefinement.
func (a *Server) longRead(ctx context.Context, caller resource.Caller, isShort bool, fn func(*store.Tx) error) error {
	turn, read := &a.reading, a.Store.Lists
	if isShort {
		turn, read = &a.paging, a.Store.Pages
	}
	_, done, err := turn.acquire(ctx, caller.Owner())
	if err != nil {
		return err
	}
	defer done()
	within, cancel := context.WithTimeout(ctx, a.ReadTime)
	defer cancel()
	err = read(within, fn)
	if errors.Is(err, store.ErrTooLong) {
		return problem.BadRequest("FilterNeedsRefinement",
			"the query took longer than %v; filter by an indexed field, or use fewer terms", a.ReadTime)
	}
	return err
}

// errCut is the error of a list whose database connection was lost after the first bytes were sent.
var errCut = errors.New("the database connection was lost in the middle of a list")

// formatter writes the rows of a list in one media type.
type formatter interface {
	writeHead(b []byte) []byte
	row(b []byte, object []byte, first bool) ([]byte, error)
	end(b []byte, f footer) []byte
}

// footer is the information behind the last row.
type footer struct {
	count      int64
	total      string // a number; empty if the request does not want it
	prev, next string
}

// pager turns rows into a page. Rows wait in a batch until their referenced resources were read for all of them.
type pager struct {
	rd     *renderer
	l      *lister
	form   formatter
	fields *schema.Projection
	caller resource.Caller
	limit  int64
	count  int64
	more   bool // there are rows after the page
	// last is the id of the last row of the page, lastName its name, lastLow the low end of its span.
	last     int64
	lastName string
	lastLow  []byte
	*waitingRoom
}

// waitingRoom is the memory of a pager; it is reused.
type waitingRoom struct {
	waiting []store.Resource
	// completed says for each waiting row that it is complete, with a cached body. The bodies of the other rows are in bodies, one after
	// the other.
	completed       []bool
	bodies, scratch []byte
}

var pagerMemories = sync.Pool{New: func() any { return new(waitingRoom) }}

// release puts the memory back, when nothing of it is in use any more. Large memory is left to the garbage collector.
func (w *waitingRoom) release() {
	if cap(w.bodies) > maxRoom || cap(w.scratch) > maxRoom {
		return
	}
	clear(w.waiting[:cap(w.waiting)]) // drop the references
	w.waiting, w.completed, w.bodies, w.scratch = w.waiting[:0], w.completed[:0], w.bodies[:0], w.scratch[:0]
	pagerMemories.Put(w)
}

// maxRoom is the maximum size of reused memory, in bytes.
const maxRoom = 1 << 20

func (a *Server) page(tx *store.Tx, l *lister, r *http.Request, q store.Query, plan listPlan, v *vacancies, rows *rowCount,
	total string) error {
	room, _ := pagerMemories.Get().(*waitingRoom)
	defer room.release()
	p := &pager{rd: a.renderer(tx, plan.media, plan.caller), l: l, form: jsonRows{}, fields: plan.fields, caller: plan.caller,
		limit: plan.limit, waitingRoom: room}
	switch plan.media {
	case asCSV:
		p.form = newCSVRows(plan.scope, plan.fields)
	case asHTML:
		p.form = htmlRows{r.URL.Path, a.Base, a.TypeNamed}
	}
	l.buf = p.form.writeHead(l.buf)
	if err := tx.List(q, p.add); err != nil {
		return err
	}
	if !p.more {
		if err := v.list(rows, p); err != nil {
			return err
		}
	}
	if err := p.drain(); err != nil {
		return err
	}
	f := footer{count: p.count, total: total}
	after := ""
	if p.more && v == nil {
		at, ok, err := q.PlaceOf(tx, p.last, p.lastName, p.lastLow)
		if err != nil {
			return err
		}
		if ok {
			after = formatPlace(at, plan.offset+plan.limit, listDigest(r.URL.Path, r.URL.Query()))
		}
	}
	all := plan.offset + p.count
	if p.count == 0 && plan.offset > 0 { // after the last row
		n, err := rows.get()
		if err != nil {
			return err
		}
		text, err := v.total(n)
		if err != nil {
			return err
		}
		if all, err = strconv.ParseInt(text, 10, 64); err != nil { // more than an int64, such as all addresses of an IPv6 network
			all = math.MaxInt64
		}
	}
	f.prev, f.next = pageLinks(r, plan.options, p.more, all, after)
	l.buf = p.form.end(l.buf, f)
	return l.finish()
}

// add adds a row to the page.
func (p *pager) add(row *store.Resource) error {
	if p.count+int64(len(p.waiting)) == p.limit {
		p.more = true
		return nil
	}
	p.last, p.lastName, p.lastLow = row.ID, row.Name, append(p.lastLow[:0], row.Low...)
	kept := *row
	kept.Low = nil
	completed := p.isSmall() && p.rd.loadCached(&kept)
	if !completed {
		from := len(p.bodies)
		var err error
		if p.bodies, err = p.rd.appendFullBody(p.bodies, row); err != nil {
			return err
		}
		kept.Body = p.bodies[from:len(p.bodies):len(p.bodies)]
	}
	p.waiting, p.completed = append(p.waiting, kept), append(p.completed, completed)
	if len(p.waiting) < batch {
		return nil
	}
	return p.drain()
}

// isSmall reports whether the page has at most smallPage rows so far, so that completed rows are cached.
func (p *pager) isSmall() bool { return p.count == 0 && len(p.waiting) <= smallPage }

// drain writes the waiting rows.
func (p *pager) drain() error {
	rows, others := make([]*store.Resource, len(p.waiting)), make([]*store.Resource, 0, len(p.waiting))
	for i := range p.waiting {
		rows[i] = &p.waiting[i]
		if !p.completed[i] {
			others = append(others, rows[i])
		}
	}
	if err := p.rd.complete(others); err != nil {
		return err
	}
	if p.isSmall() && len(others) > 0 && p.rd.api.shown.QuietSinceLast(p.rd.tx) {
		for _, r := range others {
			p.rd.storeCached(r)
		}
	}
	if err := p.rd.loadFor(rows); err != nil {
		return err
	}
	for i := range p.waiting {
		if err := p.write(&p.waiting[i]); err != nil {
			return err
		}
		p.count++
		switch {
		case len(p.l.buf) < flushAt:
		case p.fields != nil && len(p.fields.Embeds) > 0: // sent completely or not at all
			if len(p.l.buf) > maxEmbedBytes {
				return errEmbed()
			}
		case p.l.head:
			p.l.buf = p.l.buf[:0]
		default:
			if err := p.l.flush(); err != nil {
				return err
			}
		}
	}
	p.waiting, p.completed, p.bodies = p.waiting[:0], p.completed[:0], p.bodies[:0]
	return nil
}

func (p *pager) write(row *store.Resource) (err error) {
	if _, ok := p.form.(jsonRows); ok && p.fields == nil { // directly into the buffer
		if p.count > 0 {
			p.l.buf = append(p.l.buf, ',')
		}
		p.l.buf, err = p.rd.append(p.l.buf, row, nil)
		return err
	}
	if p.scratch, err = p.rd.project(p.scratch[:0], row, p.fields, p.caller, nil); err != nil {
		return err
	}
	p.l.buf, err = p.form.row(p.l.buf, p.scratch, p.count == 0)
	return err
}

// jsonRows writes a list as JSON: data first, because the count is known only at the end.
type jsonRows struct{}

func (jsonRows) writeHead(b []byte) []byte { return append(b, `{"data":[`...) }

func (jsonRows) row(b []byte, object []byte, first bool) ([]byte, error) {
	if !first {
		b = append(b, ',')
	}
	return append(b, object...), nil
}

func (j jsonRows) end(b []byte, f footer) []byte {
	if begun := j.writeHead(nil); f.count == 0 && f.total == "" && f.prev == "" && f.next == "" && bytes.HasSuffix(b, begun) {
		return append(b[:len(b)-len(begun)], `{"count":0,"data":[]}`...) // the published order, which scripts expect
	}
	b = append(b, `],"count":`...)
	b = strconv.AppendInt(b, f.count, 10)
	if f.total != "" {
		b = append(b, `,"totalCount":`...)
		b = append(b, f.total...)
	}
	if f.prev != "" || f.next != "" {
		b = append(b, `,"_links":{`...)
		if f.prev != "" {
			b = append(b, `"prev":{"href":`...)
			b = append(schema.AppendString(b, f.prev), '}')
		}
		if f.prev != "" && f.next != "" {
			b = append(b, ',')
		}
		if f.next != "" {
			b = append(b, `"next":{"href":`...)
			b = append(schema.AppendString(b, f.next), '}')
		}
		b = append(b, '}')
	}
	return append(b, '}', '\n')
}
