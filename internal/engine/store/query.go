package store

import (
	"database/sql"
	"slices"
	"strconv"
	"strings"
)

// Source is a table in the shape of resources.
type Source string

// Resources is the table of the resources themselves. Rooms may have views in their shape.
const Resources Source = "resource"

// Query selects resources from a source.
type Query struct {
	From  Source
	Where Expr
	// Order is by these fields, then by id.
	Order         []Order
	Limit, Offset int64
	// After, where there is one, is the place behind which the list goes on; the order is then by one field at most.
	After *Place
	// Shown leaves out what no answer shows: the high end of the span, key and links.
	Shown bool
	// Direct says that one index serves the whole condition: nothing is counted first.
	Direct bool
	// countable says that the statement may count what it finds, and find nothing where that is more than a few; usual that the limit is
	// one that others ask for, too.
	countable, usual bool
}

// Order is one field of an order.
type Order struct {
	By         Field
	Descending bool
	// Whole says that everything the query selects has a value there, Spaceless that nothing of it has space: so that an index
	// can be used that has those alone.
	Whole, Spaceless bool
}

type builder struct {
	strings.Builder
	*dialect
	args []any
	rows int
	// hide says that no index is to be used.
	hide bool
	// layout has the names of scopes and of what has space.
	layout *Layout
}

// dialect is where the databases differ in their words.
type dialect struct {
	// member gives the value at a path inside a body, as the kind of a field.
	member func(b *builder, row string, f Field)
	// position, front and back are the conditions contains, startsWith and endsWith.
	position, front, back func(b *builder, column func(), text string)
	// nulls is put behind an ascending and a descending order: what has no value comes first, and last.
	nulls [2]string
	// truth gives the form a boolean has inside a body.
	truth func(bool) any
	// feed selects what comes behind a position of the change feed: its two numbers, and how many.
	feed string
	// oldest and newest select the first and the last transaction of the feed: its number, time and place.
	oldest, newest string
	// upwards begins a statement with up (id, parent): the resources for which a condition holds, and what lies above them
	// of some collections, which are put in as a list in quotes.
	upwards func(condition, collections string) string
	// lineage selects the resources whose ids up has.
	lineage string
	// hasTable asks whether there is a table.
	hasTable string
	// indexes lists the names of the indexes of resource.
	indexes string
	// roundTrips says that a statement costs more than what it does: two are put into one where that can be.
	roundTrips bool
	// around lists ids, with the collection of scopes and the steps put in, and the arguments low and high: it walks down from the scopes,
	// by one seek for each step. of is the collection that is asked for, empty: all.
	around func(scopes string, steps []walkStep, of string) string
	// among is put before and behind a list of numbers that one is compared with. The list may be empty.
	among [2]string
	// hidden is put before and behind a field of a kind, so that it is compared without an index.
	hidden func(kind FieldKind) [2]string
	// fragment is the condition that a row may have a text. fragments selects a number for each row for which it may hold, of all
	// collections or of one; nil where they are not counted so soon that it helps (Tx.estimate).
	fragment  func(b *builder, row string, f Fragment)
	fragments func(b *builder, f Fragment)
	// size gives the number behind the slash of a text, NULL where there is none.
	size func(b *builder, text func())
}

func (b *builder) arg(v any) {
	b.args = append(b.args, v)
	b.WriteByte('?')
}

func (nothing) sql(b *builder, _ string) { b.WriteString("FALSE") }

// Exists reports whether the query selects anything.
func (tx *Tx) Exists(q Query) (there bool, err error) {
	query, args, err := q.build(tx, "1")
	if err != nil {
		return false, err
	}
	err = tx.QueryRow("SELECT EXISTS ("+query+")", args...).Scan(&there)
	return there, err
}

// CountBy counts what the query selects by the value of a text field; what has none is counted under "".
func (tx *Tx) CountBy(q Query, by Field) (map[string]int64, error) {
	b := &builder{dialect: tx.conn.sqlDialect()}
	by.column(b, "r")
	query, args, err := q.build(tx, b.String()+" AS value, count(*)")
	if err != nil {
		return nil, err
	}
	counts := map[string]int64{}
	err = tx.Each(func(scan func(...any) error) error {
		var value sql.NullString
		var n int64
		err := scan(&value, &n)
		counts[value.String] += n
		return err
	}, query+" GROUP BY 1", append(b.args, args...)...)
	return counts, err
}

// Span is where resources below another one may begin: from one place to another, both with it, as AddrKey gives them.
type Span struct {
	Parent    int64
	Low, High []byte
}

// CountSpans counts the resources of a collection that begin in each of some spans, as CountBy does: in the order of the spans.
func (tx *Tx) CountSpans(collection string, spans []Span, by Field) ([]map[string]int64, error) {
	counts := make([]map[string]int64, len(spans))
	if !tx.RoundTrips() || len(spans) == 1 {
		low := Field{Kind: ColumnSpan, Path: []string{"low"}}
		for i, s := range spans {
			var err error
			if counts[i], err = tx.CountBy(Query{From: Resources, Direct: true, Where: All{HasParent(s.Parent), InCollection(collection),
				Compare{Field: low, Op: "ne"}, Compare{Field: low, Op: "ge", Value: s.Low}, Compare{Field: low, Op: "le", Value: s.High}}},
				by); err != nil {
				return nil, err
			}
		}
		return counts, nil
	}
	parents, lows, highs := make([]int64, len(spans)), make([][]byte, len(spans)), make([][]byte, len(spans))
	for i, s := range spans {
		counts[i], parents[i], lows[i], highs[i] = map[string]int64{}, s.Parent, s.Low, s.High
	}
	b := &builder{dialect: tx.conn.sqlDialect()}
	b.WriteString("SELECT span.place - 1, found.value, found.n FROM unnest(?::bigint[], ?::bytea[], ?::bytea[]) WITH ORDINALITY " +
		"span (parent, low, high, place) CROSS JOIN LATERAL (SELECT ")
	b.args = append(b.args, parents, lows, highs)
	by.column(b, "r")
	b.WriteString(" AS value, count(*) AS n FROM resource r WHERE r.parent = span.parent AND r.collection = ")
	b.arg(collection)
	// Behind OFFSET the spans are looked for one by one: together they would be found among all that there is.
	b.WriteString(" AND r.low IS NOT NULL AND r.low >= span.low AND r.low <= span.high GROUP BY 1 OFFSET 0) found")
	return counts, tx.Each(func(scan func(...any) error) error {
		var value sql.NullString
		var place int
		var n int64
		err := scan(&place, &value, &n)
		if err == nil {
			counts[place][value.String] += n
		}
		return err
	}, b.String(), b.args...)
}

// First gives the first resource that the query selects, in its order; nil where it selects none.
func (tx *Tx) First(q Query) (first *Resource, err error) {
	q.Limit = 1
	err = tx.List(q, func(r *Resource) error {
		first = r.Clone()
		return nil
	})
	return first, err
}

// Some gives at most limit of the resources for which a condition holds, whichever are found first.
func (tx *Tx) Some(where Expr, limit int) ([]*Resource, error) {
	query, args, err := Query{From: Resources, Where: where}.build(tx, "r."+strings.ReplaceAll(columns, ", ", ", r."))
	if err != nil {
		return nil, err
	}
	return tx.queryMany(query+" LIMIT "+strconv.Itoa(limit), args...)
}

// build writes the statement that selects something of what the query selects, without its order.
func (q Query) build(tx *Tx, what string) (string, []any, error) {
	where, err := tx.resolve(q.Where)
	if err != nil {
		return "", nil, err
	}
	q.Where, q.Order, q.Limit, q.Offset = where, nil, 0, 0
	a, err := tx.planAccess(q)
	if err != nil {
		return "", nil, err
	}
	b := &builder{dialect: tx.conn.sqlDialect(), layout: tx.store.layout}
	b.WriteString("SELECT " + what)
	a.from(b, q.From, "")
	return b.String(), b.args, nil
}

// from writes where the rows come from, what is joined to them, and the condition on them.
func (a access) from(b *builder, from Source, joined string) {
	if a.driver != nil {
		b.WriteString(" FROM reference d CROSS JOIN resource r WHERE r.id = d.source AND ")
		a.driver.link(b, "d")
		b.WriteString(" AND ")
	} else {
		b.WriteString(" FROM " + string(from) + " r" + joined + " WHERE ")
	}
	if a.where == nil {
		b.WriteString("TRUE")
	} else {
		a.where.sql(b, "r")
	}
}

// Count counts what the query selects, without its limit and offset.
func (tx *Tx) Count(q Query) (n int64, err error) {
	if k, ok := q.total(); ok && !tx.writing {
		tx.keepPlan()
		return tx.readTotal(k)
	}
	query, args, err := q.build(tx, "count(*)")
	if err != nil {
		return 0, err
	}
	err = tx.QueryRow(query, args...).Scan(&n)
	return n, err
}

// shortList is the most rows that a list may have in memory at once.
const maxShortList = 1001

// shortPage is the most rows that a page may have which are joined with what is shown beside them, one more than asked for.
const maxShortPage = 101

// List calls fn for each resource the query selects, in its order. The resource is fn's only until it
// returns: what is to stay must be cloned.
func (tx *Tx) List(q Query, fn func(*Resource) error) error {
	wanted, as := columns, row.readResource
	if q.Shown {
		wanted, as = shownColumns, row.readShown
	}
	n, resource := int64(0), &Resource{}
	parts := q.parts()
	for _, part := range parts {
		if q.Limit > 0 {
			if part.Limit = q.Limit - n; part.Limit == 0 {
				return nil
			}
		}
		short := part.Limit > 0 && part.Limit <= maxShortList
		part.usual = short && n == 0
		part.countable = short && part.From == Resources && len(part.Order) == 0 && tx.RoundTrips() && !tx.writing
		l, err := part.buildList(tx, wanted)
		if err != nil {
			return err
		}
		many := false // more than a few were counted, and none was read
		read := func(fn func(row) error) error {
			return tx.conn.list(l.query, l.args, short, fn)
		}
		// What is read behind the first statement may be newer than what that has found, by a moment: never its place in the list.
		if c, ok := tx.conn.(*pgConn); ok && len(parts) == 1 && short && q.placeInRow() && c.isFirstQuery() {
			read = func(fn func(row) error) error { return c.queryAlone(l.query, l.args, fn) }
		}
		take := func(at row) error {
			if l.counted > 0 {
				if many = at.(*pgRow).number(l.counted) > tx.store.sortLimit; many || at.(*pgRow).raw[0] == nil {
					return nil
				}
			}
			if n++; n&1023 == 0 && tx.ctx.Err() != nil { // the client has gone
				return tx.ctx.Err()
			}
			if err := as(at, resource); err != nil {
				return err
			}
			if l.short {
				tx.noteListParents(resource)
			}
			if l.near || l.beside > 0 {
				if err := tx.rememberNear(at, l); err != nil {
					return err
				}
			}
			return fn(resource)
		}
		err = read(take)
		if many && err == nil {
			part.countable = false
			if l, err = part.buildList(tx, wanted); err == nil {
				err = tx.conn.list(l.query, l.args, true, take)
			}
		}
		if err != nil {
			return err
		}
	}
	tx.keepPlan() // what is read beside the rows is found by their numbers
	return nil
}

// listing is the statement of a list.
type listStatement struct {
	query string
	args  []any
	// short says that there are so few rows that a round trip for what is shown beside them costs more than to bring it along; near that
	// the heads of what they lie in come with them, behind the columns.
	short, near bool
	// beside is the first column of what extensions have beside the rows, 0 where they bring nothing.
	beside int
	// counted is the column that has how many there are, 0 where none does.
	counted int
}

// list writes the statement that selects columns of the rows, in their order.
func (q Query) buildList(tx *Tx, wanted string) (l listStatement, err error) {
	if q.Where, err = tx.resolve(q.Where); err != nil {
		return l, err
	}
	for _, o := range q.Order {
		if o.Spaceless && o.By.isKey() { // the index of keys has those alone; another one would not answer whether a row has space
			q.Where = All{q.Where, Compare{Field: Field{Kind: ColumnSpan, Path: []string{"low"}}, Op: "eq"}}
		}
		if o.Whole && o.By.isIndexed() {
			q.Where = All{q.Where, Compare{Field: o.By, Op: "ne"}}
		}
	}
	a, err := tx.planAccess(q)
	if err != nil {
		return l, err
	}
	b := &builder{dialect: tx.conn.sqlDialect(), layout: tx.store.layout}
	if a.counted != nil {
		return q.countingList(tx, b, a, wanted), nil
	}
	shown, joined := "r."+strings.ReplaceAll(wanted, ", ", ", r."), ""
	late := q.From == Resources && (q.Offset > 0 || a.large)
	few := a.selective || (a.byName || a.byReference) && q.Limit > 0 && q.Limit <= maxShortPage
	l.short = q.Shown && few && a.driver == nil && !late && tx.conn.sqlDialect().roundTrips
	l.near = l.short && !tx.headsAreCached()
	within, single := ofOneCollection(conjuncts(nil, q.Where))
	switch {
	case l.near:
		shown, joined = shown+nearHeadColumns(tx.inline)+besideColumns(tx.inline.besides), nearJoins
		l.beside = shownSize + 2*headSize
	case l.short && (!single || tx.hasBeside(within)) || q.loadsBeside(tx, within):
		shown += besideColumns(tx.inline.besides)
		l.beside = shownSize
	}
	if late { // the rows that are left out are counted in an index alone
		b.WriteString("SELECT " + shown + " FROM (SELECT r.id")
	} else {
		b.WriteString("SELECT " + shown)
	}
	a.from(b, q.From, joined)
	q.order(b, a)
	switch {
	case q.usual && q.Offset == 0 && b.roundTrips: // a plan that is kept knows how many are wanted
		b.WriteString(" LIMIT " + strconv.FormatInt(q.Limit, 10))
		if a.cacheable {
			tx.keepPlan()
		}
	case q.Limit > 0:
		b.WriteString(" LIMIT ")
		b.arg(q.Limit)
		b.WriteString(" OFFSET ")
		b.arg(q.Offset)
	}
	if late {
		b.WriteString(") page CROSS JOIN resource r WHERE r.id = page.id")
		q.order(b, access{})
	}
	l.query, l.args = b.String(), b.args
	return l, nil
}

// besideComes reports whether rows bring what extensions have beside them: they are few, of the one collection within, nil where there are
// several, of which an extension has something, and asking for it alone would take a round trip.
func (q Query) loadsBeside(tx *Tx, within Expr) bool {
	return within != nil && q.Shown && q.From == Resources && q.Limit > 0 && q.Limit <= maxShortPage && !tx.writing && tx.RoundTrips() &&
		tx.hasBeside(within)
}

// hasBeside reports whether an extension has something beside resources of a collection.
func (tx *Tx) hasBeside(within Expr) bool {
	return slices.ContainsFunc(tx.inline.besides, func(b Beside) bool {
		return slices.Contains(b.Collections(), within.(inCollections)[0])
	})
}

// countingList is list where how many rows there are is counted in the same statement: a round trip costs more than counting a few.
func (q Query) countingList(tx *Tx, b *builder, a access, wanted string) listStatement {
	l := listStatement{counted: strings.Count(wanted, ", ") + 1}
	b.WriteString("SELECT page." + strings.ReplaceAll(wanted, ", ", ", page.") + ", few.n")
	besides := ""
	within, _ := ofOneCollection(conjuncts(nil, q.Where))
	if q.loadsBeside(tx, within) {
		l.beside = l.counted + 1
		besides = besideColumns(tx.inline.besides)
		b.WriteString(besideNames(tx.inline.besides, "page"))
	}
	b.WriteString(" FROM (")
	a.counted.count(b, within, strconv.FormatInt(tx.store.sortLimit+1, 10))
	b.WriteString(") few LEFT JOIN LATERAL (SELECT r." + strings.ReplaceAll(wanted, ", ", ", r.") + besides)
	a.from(b, q.From, "")
	b.WriteString(" AND few.n <= " + strconv.FormatInt(tx.store.sortLimit, 10))
	q.order(b, a)
	b.WriteString(" LIMIT ")
	b.arg(q.Limit)
	b.WriteString(" OFFSET ")
	b.arg(q.Offset)
	b.WriteString(") page ON TRUE ORDER BY page.id")
	l.query, l.args = b.String(), b.args
	return l
}

// order writes the order. What is equal comes in the direction of what is before it, as it stands in an index.
func (q Query) order(b *builder, a access) {
	b.WriteString(" ORDER BY ")
	b.rows += 1000 // row names of the order stay apart from the condition's
	b.hide = a.sorted
	last := ""
	for _, o := range q.Order {
		o.By.column(b, "r")
		nulls := b.nulls[0]
		if last = ""; o.Descending {
			last, nulls = " DESC", b.nulls[1]
		}
		if !o.Whole { // an index of those that have a value says nothing of others
			last += nulls
		}
		b.WriteString(last + ", ")
	}
	if a.driver != nil {
		b.WriteString("d.source")
	} else {
		Field{Kind: ColumnID}.column(b, "r")
	}
	b.hide = false
	if strings.HasPrefix(last, " DESC") {
		b.WriteString(" DESC")
	}
}
