package resource

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"portolan/internal/store"
)

// flushAt is how many bytes of a list gather before they are sent; batch is how many rows wait
// for their inlined references.
const (
	flushAt = 64 << 10
	batch   = 256
)

// subQuery selects what a subcollection of a resource holds, as far as the caller may see it.
func (a *API) subQuery(s *Sub, id int64, caller Caller) store.Query {
	q := store.Query{From: store.Resources}
	if s.Relation == History {
		q.From, q.Where = store.Transactions, store.Touching{Resource: id}
		return q
	}
	if from := a.source(s); from != store.Resources {
		q.From, q.Where = from, store.Compare{Field: store.Field{Kind: store.ColumnInt, Path: []string{"parent"}}, Op: "eq", Value: id}
		return q
	}
	var all store.All
	switch s.Relation {
	case Children:
		all = append(all, store.Compare{Field: store.Field{Kind: store.ColumnInt, Path: []string{"parent"}}, Op: "eq", Value: id})
	case Linked:
		all = append(all, store.LinkedFrom{Source: id, Field: s.Field})
	case Linking:
		all = append(all, store.LinksTo{Target: id, Field: s.Field})
	case Computed: // found in the transaction, see computed
		all = append(all, store.Any{})
	}
	if s.Items[0] != "*" {
		all = append(all, a.inCollections(s.Items, caller))
	} else {
		all = append(all, a.visible(caller))
	}
	q.Where = all
	return q
}

// source is the table that a subcollection's resources come from.
func (a *API) source(s *Sub) store.Source {
	switch {
	case s.Relation == History:
		return store.Transactions
	case s.Items[0] == "*":
		return store.Resources
	}
	return a.byName[s.Items[0]].From
}

// computed gives the query of a subcollection whose content has to be found out first; other queries are
// given back.
func (a *API) computed(tx *store.Tx, s *Sub, id int64, q store.Query, caller Caller) (store.Query, error) {
	if s == nil || s.Relation != Computed {
		return q, nil
	}
	above, err := tx.Get(id)
	if err != nil {
		return q, err
	}
	ids, err := s.Find(tx, a, above)
	if err != nil {
		return q, err
	}
	q.Where = store.All{store.IDs(ids), a.visible(caller)}
	return q, nil
}

func inCollection(name string) store.Expr {
	return store.Compare{Field: store.Field{Kind: store.ColumnText, Path: []string{"collection"}}, Op: "eq", Value: name}
}

func (a *API) inCollections(names []string, caller Caller) store.Expr {
	var any store.Any
	for _, name := range names {
		one := store.All{inCollection(name)}
		if visible := a.byName[name].Visible; visible != nil {
			if e := visible(caller); e != nil {
				one = append(one, e)
			}
		}
		if len(one) == 1 {
			any = append(any, one[0])
		} else {
			any = append(any, one)
		}
	}
	if len(any) == 1 {
		return any[0]
	}
	return any
}

// visible is the condition for lists that span collections.
func (a *API) visible(caller Caller) store.Expr {
	var all store.All
	for _, c := range a.collections {
		switch {
		case c.From != store.Resources:
		case c.Hidden:
			all = append(all, store.Not{Expr: inCollection(c.Name)})
		case c.Visible != nil:
			if e := c.Visible(caller); e != nil {
				all = append(all, store.Any{store.Not{Expr: inCollection(c.Name)}, e})
			}
		}
	}
	return all
}

// listQuery gives the query of a list target and the types it may hold.
func (a *API) listQuery(t target, caller Caller) (store.Query, scope) {
	switch {
	case t.root:
		return store.Query{From: store.Resources, Where: a.visible(caller)}, scope{a, a.allTypes()}
	case t.sub != nil:
		return a.subQuery(t.sub, t.id, caller), scope{a, a.itemTypes(t.sub)}
	case t.collection.From != store.Resources:
		return store.Query{From: t.collection.From, Where: store.All{}}, scope{a, t.collection.Types}
	}
	return store.Query{From: store.Resources, Where: a.inCollections([]string{t.collection.Name}, caller)}, scope{a, t.collection.Types}
}

// lister gathers a list's bytes and sends them when there are enough. What is sent goes out while the
// next rows are read.
type lister struct {
	w       http.ResponseWriter
	limit   time.Duration // of one write
	buf     []byte
	started bool
	head    bool
	status  func()
	// full has the buffers to send, spare those that were; both nil until there is a second one.
	full, spare chan []byte
	sent        chan error
}

// flush sends what has gathered, without waiting for it to be gone.
func (l *lister) flush() error {
	if l.full == nil {
		l.begin()
		l.full, l.spare, l.sent = make(chan []byte), make(chan []byte, 2), make(chan error, 1)
		l.spare <- make([]byte, 0, cap(l.buf))
		go l.send()
	}
	select {
	case l.full <- l.buf:
		l.buf = (<-l.spare)[:0]
		return nil
	case err := <-l.sent:
		l.sent <- err // for finish
		return err
	}
}

// send writes buffers until there are no more, or one cannot be written.
func (l *lister) send() {
	for b := range l.full {
		if err := l.write(b); err != nil {
			l.sent <- err
			return
		}
		l.spare <- b
	}
	l.sent <- nil
}

func (l *lister) begin() {
	if !l.started {
		l.started = true
		l.status()
	}
}

// stop waits until nothing is being sent any more. It must be called before the answer ends.
func (l *lister) stop() error {
	if l.full == nil {
		return nil
	}
	close(l.full)
	err := <-l.sent
	l.full = nil
	return err
}

// finish sends the rest.
func (l *lister) finish() error {
	if err := l.stop(); err != nil {
		return err
	}
	l.begin()
	if l.head || len(l.buf) == 0 {
		return nil
	}
	return l.write(l.buf)
}

// write sends bytes within the limit. The server sets its own deadline again at the next request.
func (l *lister) write(b []byte) error {
	err := http.NewResponseController(l.w).SetWriteDeadline(time.Now().Add(l.limit))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	_, err = l.w.Write(b)
	return err
}

// list answers GET of a list. It streams: the memory it takes does not grow with the page. When
// it fails after the first bytes went out, the connection is cut, so that no client takes a part
// for the whole.
func (a *API) list(w http.ResponseWriter, r *http.Request, t target, caller Caller) error {
	q, s := a.listQuery(t, caller)
	o, err := a.options(r, s, true)
	if err != nil {
		return err
	}
	q.Order, q.Limit, q.Offset, q.Shown = o.order, o.limit+1, o.offset, true
	l := &lister{w: w, limit: a.WriteTime, head: r.Method == http.MethodHead, status: func() {
		w.Header().Set("Content-Type", o.media.String()+contentSuffix(o.media))
		w.Header().Add("Vary", "Accept")
		w.WriteHeader(http.StatusOK)
	}}
	err = a.Store.Lists(r.Context(), func(tx *store.Tx) error {
		if l.started { // the database went away in the middle: what was sent cannot be taken back
			return errCut
		}
		l.buf = l.buf[:0]
		if t.sub != nil {
			if err := a.exists(tx, t.collection, t.id, caller); err != nil {
				return err
			}
		}
		q, err := a.computed(tx, t.sub, t.id, q, caller)
		if err != nil {
			return err
		}
		if o.where != nil {
			q.Where = store.All{q.Where, o.where}
		}
		v, err := a.vacant(tx, t, o)
		if err != nil {
			return err
		}
		total := ""
		if o.total {
			n, err := tx.Count(store.Query{From: q.From, Where: q.Where})
			if err != nil {
				return err
			}
			if total, err = v.total(n); err != nil {
				return err
			}
		}
		return a.page(tx, l, r, q, s, o, v, total, caller)
	})
	if e := l.stop(); err == nil {
		err = e
	}
	if err != nil && l.started {
		if r.Context().Err() == nil {
			a.Log.ErrorContext(r.Context(), "a list was cut short", "path", r.URL.Path, "error", err)
		}
		panic(http.ErrAbortHandler)
	}
	return err
}

// errCut is a list whose database went away after the first bytes were sent.
var errCut = errors.New("the database was lost in the middle of a list")

func contentSuffix(m media) string {
	if m == asHTML || m == asCSV {
		return "; charset=utf-8"
	}
	return ""
}

// formatter writes the rows of a list in one media type.
type formatter interface {
	begin(b []byte) []byte
	row(b []byte, object []byte, first bool) ([]byte, error)
	end(b []byte, f footer) []byte
}

// footer is what is known once the last row was read.
type footer struct {
	count      int64
	total      string // a number; empty where it was not asked for
	prev, next string
}

// pager turns rows into a page. Rows wait in a batch until what they refer to was read for all of
// them; their bodies lie side by side in one piece of memory.
type pager struct {
	rd      *renderer
	l       *lister
	form    formatter
	fields  *projection
	caller  Caller
	limit   int64
	count   int64
	more    bool // there are rows behind the page
	waiting []store.Resource
	bodies  []byte
	scratch []byte
}

func (a *API) page(tx *store.Tx, l *lister, r *http.Request, q store.Query, s scope, o options, v *vacancies, total string, caller Caller) error {
	p := &pager{rd: a.renderer(tx, o.media), l: l, form: jsonRows{}, fields: o.fields, caller: caller, limit: o.limit,
		waiting: make([]store.Resource, 0, batch)}
	switch o.media {
	case asCSV:
		p.form = newCSVRows(s, o.fields)
	case asHTML:
		p.form = htmlRows{path: r.URL.Path, base: a.Base}
	}
	l.buf = p.form.begin(l.buf)
	if err := tx.List(q, p.add); err != nil {
		return err
	}
	if !p.more {
		if err := v.list(q, p); err != nil {
			return err
		}
	}
	if err := p.drain(); err != nil {
		return err
	}
	f := footer{count: p.count, total: total}
	f.prev, f.next = pageLinks(r, o, p.more)
	l.buf = p.form.end(l.buf, f)
	return l.finish()
}

// add takes a row.
func (p *pager) add(row *store.Resource) error {
	if p.count+int64(len(p.waiting)) == p.limit {
		p.more = true
		return nil
	}
	from := len(p.bodies)
	p.bodies = append(p.bodies, row.Body...)
	kept := *row
	kept.Body = p.bodies[from:len(p.bodies):len(p.bodies)]
	if p.waiting = append(p.waiting, kept); len(p.waiting) < batch {
		return nil
	}
	return p.drain()
}

// drain writes the rows that wait.
func (p *pager) drain() error {
	rows := make([]*store.Resource, len(p.waiting))
	for i := range p.waiting {
		rows[i] = &p.waiting[i]
	}
	if err := p.rd.ready(rows); err != nil {
		return err
	}
	for i := range p.waiting {
		if err := p.write(&p.waiting[i]); err != nil {
			return err
		}
		p.count++
		switch {
		case len(p.l.buf) < flushAt:
		case p.l.head:
			p.l.buf = p.l.buf[:0]
		default:
			if err := p.l.flush(); err != nil {
				return err
			}
		}
	}
	p.waiting, p.bodies = p.waiting[:0], p.bodies[:0]
	return nil
}

func (p *pager) write(row *store.Resource) (err error) {
	if _, ok := p.form.(jsonRows); ok && p.fields == nil { // straight into the buffer
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

// jsonRows writes a list as JSON: data first, because the count is known last.
type jsonRows struct{}

func (jsonRows) begin(b []byte) []byte { return append(b, `{"data":[`...) }

func (jsonRows) row(b []byte, object []byte, first bool) ([]byte, error) {
	if !first {
		b = append(b, ',')
	}
	return append(b, object...), nil
}

func (jsonRows) end(b []byte, f footer) []byte {
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
			b = append(appendString(b, f.prev), '}')
		}
		if f.prev != "" && f.next != "" {
			b = append(b, ',')
		}
		if f.next != "" {
			b = append(b, `"next":{"href":`...)
			b = append(appendString(b, f.next), '}')
		}
		b = append(b, '}')
	}
	return append(b, '}', '\n')
}

// exists gives a 404 where the resource is not in the collection or the caller may not see it.
func (a *API) exists(tx *store.Tx, c *Collection, id int64, caller Caller) error {
	_, err := a.find(tx, c, id, caller)
	return err
}

// find reads one resource of a collection; nil stands for any collection.
func (a *API) find(tx *store.Tx, c *Collection, id int64, caller Caller) (*store.Resource, error) {
	if c != nil && c.From != store.Resources {
		return a.findIn(tx, c, id)
	}
	get := tx.Get
	if c != nil && c.Counted {
		get = tx.GetUsed
	}
	r, err := get(id)
	if err != nil {
		return nil, store.Problem(err, "there is no resource %d%s", id, within(c))
	}
	if c != nil && r.Collection != c.Name || c == nil && a.byName[r.Collection].Hidden {
		return nil, store.Problem(store.ErrNotFound, "there is no resource %d%s", id, within(c))
	}
	if visible := a.byName[r.Collection].Visible; visible != nil {
		if e := visible(caller); e != nil {
			n, err := tx.Count(store.Query{From: store.Resources, Where: store.All{hasID(id), e}})
			if err != nil {
				return nil, err
			}
			if n == 0 {
				return nil, store.Problem(store.ErrNotFound, "there is no resource %d%s", id, within(c))
			}
		}
	}
	return r, nil
}

func hasID(id int64) store.Expr {
	return store.Compare{Field: store.Field{Kind: store.ColumnID}, Op: "eq", Value: id}
}

func within(c *Collection) string {
	if c == nil {
		return ""
	}
	return " in " + c.Name
}

func (a *API) findIn(tx *store.Tx, c *Collection, id int64) (found *store.Resource, err error) {
	err = tx.List(store.Query{From: c.From, Where: hasID(id), Limit: 1}, func(r *store.Resource) error {
		found = r.Clone()
		return nil
	})
	if err == nil && found == nil {
		err = store.Problem(store.ErrNotFound, "there is no resource %d%s", id, within(c))
	}
	return found, err
}
