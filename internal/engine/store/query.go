package store

import (
	"database/sql"
	"slices"
	"strconv"
	"strings"
)

// Source is a table or view with the columns of resources.
type Source string

// Resources is the table of the resources. Extensions may define views with the same columns.
const Resources Source = "resource"

// Query selects resources from a source.
type Query struct {
	From  Source
	Where Expr
	// Order is the sort order. Rows with equal values are ordered by id.
	Order         []Order
	Limit, Offset int64
	// After is the place after which the list continues; nil means the start. With After, Order may have at most one field.
	After *Place
	// Shown omits data that no answer shows: the high end of the span, the key and the links.
	Shown bool
	// Direct is true if one index serves the whole condition. Then no rows are counted to choose an index.
	Direct bool
	// countable is true if the statement may first count its rows, and return none if there are more than a few. hasCommonLimit is true if
	// the limit is a common one, so that it can be part of the statement.
	countable, hasCommonLimit bool
}

// Order is one field of a sort order.
type Order struct {
	By         Field
	Descending bool
	// Whole is true if every selected row has a value in the field. Spaceless is true if no selected row has a span. They allow the use
	// of indexes that contain only such rows.
	Whole, Spaceless bool
}

type builder struct {
	strings.Builder
	*dialect
	args []any
	rows int
	// hide disables the use of indexes for the conditions that are written.
	hide bool
	// layout names the scopes and the collections with space.
	layout *Layout
}

// dialect contains the differences between the SQL of the databases.
type dialect struct {
	// member writes the value at a path in the body, as the kind of the field.
	member func(b *builder, row string, f Field)
	// contains, startsWith and endsWith write the conditions of these names.
	contains, startsWith, endsWith func(b *builder, column func(), text string)
	// nulls is appended to an ascending and to a descending order. Rows without a value come first and last, respectively.
	nulls [2]string
	// content is the recursive part of a query: the resources below those of content, also deleted ones.
	content string
	// truth returns the representation of a boolean in a body.
	truth func(bool) any
	// feed selects the entries after a position of the change feed. Its arguments are the two numbers of the position and the limit.
	feed string
	// changes are the transactions t and changes c after a position of the feed, whether or not they are settled.
	changes string
	// oldest and newest select the first and the last transaction of the feed: its number, time and commit order.
	oldest, newest string
	// withAncestors starts a statement with the table up (id, parent): the resources that match the condition, and the resources above them
	// in the collections, which are a quoted list.
	withAncestors func(condition, collections string) string
	// lineage selects the resources whose ids are in up.
	lineage string
	// hasTable reports whether a table exists.
	hasTable string
	// indexes selects the names of the indexes on the table resource.
	indexes string
	// roundTrips is true if sending a statement costs more than running it, so that statements should be combined.
	roundTrips bool
	// containersOf writes the list of the ids of the resources around a span, whose arguments are low and high. It walks down from the
	// collection scopes with one index seek per step. of limits the result to one collection; empty means all.
	containersOf func(scopes string, steps []walkStep, of string) string
	// numberList is written before and after a list of numbers that a number is compared with. The list may be empty.
	numberList [2]string
	// hidden returns the text before and after a field that prevents the use of an index.
	hidden func(kind FieldKind) [2]string
	// perRow ends a subquery that is evaluated for each row. Without it, PostgreSQL may join the subquery and, without statistics of new
	// rows, read all of its rows for each row.
	perRow string
	// fragment writes the condition that a row may contain a text. fragments selects one number for each possible match, in one
	// collection or in all. It is nil if counting the matches takes as long as finding them (Tx.estimate).
	fragment  func(b *builder, row string, f Fragment)
	fragments func(b *builder, f Fragment)
	// size writes the number after the slash of a text, or NULL if there is none.
	size func(b *builder, text func())
}

func (b *builder) arg(v any) {
	b.args = append(b.args, v)
	b.WriteByte('?')
}

func (never) sql(b *builder, _ string) { b.WriteString("FALSE") }

// Exists reports whether the query selects any row.
func (tx *Tx) Exists(q Query) (exists bool, err error) {
	if isNeverTrue(q.Where) {
		return false, nil
	}
	query, args, err := q.build(tx, "1")
	if err != nil {
		return false, err
	}
	err = tx.QueryRow("SELECT EXISTS ("+query+")", args...).Scan(&exists)
	return exists, err
}

// CountBy counts the selected rows by the value of a text field. Rows without a value are counted under "".
func (tx *Tx) CountBy(q Query, by Field) (map[string]int64, error) {
	if isNeverTrue(q.Where) {
		return map[string]int64{}, nil
	}
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

// Span is a range of low ends of resources below a parent. Low and High are inclusive span keys (AddrKey).
type Span struct {
	Parent    int64
	Low, High []byte
}

// CountSpans is CountBy for the resources of a collection whose low ends are in a span, for each of the spans.
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
	// OFFSET 0 makes the database look up the spans one by one. Otherwise it would search all resources.
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

// ReadFirst returns the first row of the query in its order, or nil if there is none.
func (tx *Tx) ReadFirst(q Query) (first *Resource, err error) {
	q.Limit = 1
	err = tx.List(q, func(r *Resource) error {
		first = r.Clone()
		return nil
	})
	return first, err
}

// ListSome returns at most limit resources that match a condition, in no particular order.
func (tx *Tx) ListSome(where Expr, limit int) ([]*Resource, error) {
	query, args, err := Query{From: Resources, Where: where}.build(tx, rowColumns)
	if err != nil {
		return nil, err
	}
	return tx.queryMany(query+" LIMIT "+strconv.Itoa(limit), args...)
}

// build returns a statement that selects what from the rows of the query, without order and limit.
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
	a.writeFrom(b, q.From, "")
	return b.String(), b.args, nil
}

// writeFrom writes the FROM clause, with the given join, and the WHERE clause.
func (a access) writeFrom(b *builder, writeFrom Source, joined string) {
	if a.driver != nil {
		b.WriteString(" FROM reference d CROSS JOIN resource r WHERE r.id = d.source AND ")
		a.driver.link(b, "d")
		b.WriteString(" AND ")
	} else {
		b.WriteString(" FROM " + string(writeFrom) + " r" + joined + " WHERE ")
	}
	if a.condition == nil {
		b.WriteString("TRUE")
	} else {
		a.condition.sql(b, "r")
	}
}

// Count returns the number of rows of the query, without its limit and offset.
func (tx *Tx) Count(q Query) (n int64, err error) {
	if isNeverTrue(q.Where) {
		return 0, nil
	}
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

// maxShortList is the maximum number of rows of a list that is read into memory at once.
const maxShortList = 1001

// maxShortPage is the maximum number of rows of a page that is joined with the data shown beside it. It includes the extra row that tells
// whether there are more.
const maxShortPage = 101

// List calls fn for each resource that the query selects, in its order. The resource is only valid until fn returns; fn must clone what
// it keeps.
func (tx *Tx) List(q Query, fn func(*Resource) error) error {
	if isNeverTrue(q.Where) {
		tx.keepPlan()
		return nil
	}
	wanted, as := rowColumns, row.readResource
	if q.Shown {
		wanted, as = shownRowColumns, row.readShown
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
		part.hasCommonLimit = short && n == 0
		part.countable = short && part.From == Resources && len(part.Order) == 0 && tx.RoundTrips() && !tx.writing
		l, err := part.buildList(tx, wanted)
		if err != nil {
			return err
		}
		tooMany := false // the statement counted more than a few rows and returned none of them
		read := func(fn func(row) error) error {
			return tx.conn.list(l.query, l.args, short, fn)
		}
		// Queries after the first one may return slightly newer data, but the position of a row must come from the list itself.
		if c, ok := tx.conn.(*pgConn); ok && len(parts) == 1 && short && q.placeInRow() && c.isFirstQuery() {
			read = func(fn func(row) error) error { return c.queryAlone(l.query, l.args, fn) }
		}
		handleRow := func(at row) error {
			if l.counted > 0 {
				if tooMany = at.(*pgRow).number(l.counted) > tx.store.sortLimit; tooMany || at.(*pgRow).raw[0] == nil {
					return nil
				}
			}
			if n++; n&1023 == 0 && tx.ctx.Err() != nil { // the client has disconnected
				return tx.ctx.Err()
			}
			if err := as(at, resource); err != nil {
				return err
			}
			if l.short {
				tx.noteListParents(resource)
			}
			if l.hasHeads || l.textColumn > 0 {
				if err := tx.rememberNear(at, l); err != nil {
					return err
				}
			}
			return fn(resource)
		}
		err = read(handleRow)
		if tooMany && err == nil {
			part.countable = false
			if l, err = part.buildList(tx, wanted); err == nil {
				err = tx.conn.list(l.query, l.args, true, handleRow)
			}
		}
		if err != nil {
			return err
		}
	}
	tx.keepPlan() // the following look-ups are by id
	return nil
}

// listStatement is the statement of a list.
type listStatement struct {
	query string
	args  []any
	// short is true if the list has so few rows that a separate round trip for the data beside them costs more than a join. hasHeads is
	// true if the heads of parents and configurations follow the columns of the row.
	short, hasHeads bool
	// textColumn is the index of the first column with texts of extensions, or 0 if there are none.
	textColumn int
	// counted is the index of the column with the number of rows, or 0 if they are not counted.
	counted int
}

// usualStatement is the usual length of the statement of a list at most, in bytes.
const usualStatement = 512

// buildList returns the statement that selects the wanted columns of the rows, in their order.
func (q Query) buildList(tx *Tx, wanted string) (l listStatement, err error) {
	if q.Where, err = tx.resolve(q.Where); err != nil {
		return l, err
	}
	for _, o := range q.Order {
		if o.Spaceless && o.By.isKey() { // the index of keys contains only rows without a span; another index would have to check each row
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
	b.Grow(usualStatement)
	if a.counted != nil {
		return q.countingList(tx, b, a, wanted), nil
	}
	shown, joined := wanted, ""
	readLater := q.From == Resources && (q.Offset > 0 || a.large)
	few := a.selective || (a.byName || a.byReference) && q.Limit > 0 && q.Limit <= maxShortPage
	l.short = q.Shown && few && a.driver == nil && !readLater && tx.conn.sqlDialect().roundTrips
	l.hasHeads = l.short && !tx.headsAreCached()
	within, single := ofOneCollection(listConjuncts(nil, q.Where))
	switch {
	case l.hasHeads:
		shown, joined = shown+nearHeadColumns(tx.inline)+joinedColumns(tx.inline.joinedTexts), nearJoins
		l.textColumn = shownSize + 2*headSize
	case l.short && (!single || tx.hasJoinedTexts(within)) || q.loadsJoinedTexts(tx, within):
		shown += joinedColumns(tx.inline.joinedTexts)
		l.textColumn = shownSize
	}
	if readLater { // skipped rows are counted in the index alone
		b.WriteString("SELECT " + shown + " FROM (SELECT r.id")
	} else {
		b.WriteString("SELECT " + shown)
	}
	a.writeFrom(b, q.From, joined)
	q.order(b, a)
	switch {
	case q.hasCommonLimit && q.Offset == 0 && b.roundTrips: // a generic plan must know the limit
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
	if readLater {
		b.WriteString(") page CROSS JOIN resource r WHERE r.id = page.id")
		q.order(b, access{})
	}
	l.query, l.args = b.String(), b.args
	return l, nil
}

// loadsJoinedTexts reports whether the rows include the texts of extensions. The list must be short, and the single collection within must
// have texts; within is nil for several collections. A separate query must cost a round trip.
func (q Query) loadsJoinedTexts(tx *Tx, within Expr) bool {
	return within != nil && q.Shown && q.From == Resources && q.Limit > 0 && q.Limit <= maxShortPage && !tx.writing && tx.RoundTrips() &&
		tx.hasJoinedTexts(within)
}

// hasJoinedTexts reports whether an extension has texts for resources of a collection.
func (tx *Tx) hasJoinedTexts(within Expr) bool {
	return slices.ContainsFunc(tx.inline.joinedTexts, func(b JoinedText) bool {
		return slices.Contains(b.Collections(), within.(inCollections)[0])
	})
}

// countingList is buildList for a statement that also counts the rows: a round trip costs more than counting a few rows.
func (q Query) countingList(tx *Tx, b *builder, a access, wanted string) listStatement {
	l := listStatement{counted: strings.Count(wanted, ", ") + 1}
	b.WriteString("SELECT " + strings.ReplaceAll(wanted, "r.", "page.") + ", few.n")
	besides := ""
	within, _ := ofOneCollection(listConjuncts(nil, q.Where))
	if q.loadsJoinedTexts(tx, within) {
		l.textColumn = l.counted + 1
		besides = joinedColumns(tx.inline.joinedTexts)
		b.WriteString(joinedNames(tx.inline.joinedTexts, "page"))
	}
	b.WriteString(" FROM (")
	a.counted.count(b, within, strconv.FormatInt(tx.store.sortLimit+1, 10))
	b.WriteString(") few LEFT JOIN LATERAL (SELECT " + wanted + besides)
	a.writeFrom(b, q.From, "")
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

// order writes the ORDER BY clause. Rows with equal values are ordered by id in the direction of the last field, as in an index.
func (q Query) order(b *builder, a access) {
	b.WriteString(" ORDER BY ")
	b.rows += 1000 // keeps the aliases of the order distinct from those of the condition
	b.hide = a.sorted
	last := ""
	for _, o := range q.Order {
		o.By.column(b, "r")
		nulls := b.nulls[0]
		if last = ""; o.Descending {
			last, nulls = " DESC", b.nulls[1]
		}
		if !o.Whole && !o.By.isOwnID() { // an index of rows that have a value does not cover NULLs
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
