package store

import (
	"database/sql"
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
	// Shown leaves out what no answer shows: span, key and links.
	Shown bool
}

// Order is one field of an order.
type Order struct {
	By         Field
	Descending bool
}

// FieldKind says how a field is kept and so how it compares.
type FieldKind int

// Kinds of fields.
const (
	Text       FieldKind = iota // in the body, as text
	Number                      // in the body, as a number
	Bool                        // in the body, true or false
	AddrText                    // in the body, an address as text; compares as an address
	ColumnID                    // the column id
	ColumnText                  // the column named by Path: name, type, collection, key
	ColumnInt                   // the column named by Path: parent, configuration
	ColumnSpan                  // the column low or high
	PrefixLen                   // the length behind the slash of the body's text at Path
)

// Field is something of a resource that can be compared.
type Field struct {
	Kind FieldKind
	// Path is a column, or the path inside the body, one member a step.
	Path []string
	// Via names a single reference, or with ViaColumn the column parent or configuration: the field
	// is then one of the resource it leads to. For orders.
	Via       string
	ViaColumn bool
	// Indexed says that the layout has an index of it (Layout.Indexes).
	Indexed bool
}

// Expr is a condition on a resource.
type Expr interface{ sql(b *builder, row string) }

// The forms of conditions. Values are strings, numbers, booleans and span keys.
type (
	// All holds where every one of its conditions does.
	All []Expr
	// Any holds where one of its conditions does.
	Any []Expr
	// Not holds where its condition does not.
	Not struct{ Expr Expr }
	// Compare compares a field: eq ne gt ge lt le contains startsWith endsWith. The value nil
	// stands for null, with eq and ne.
	Compare struct {
		Field Field
		Op    string
		Value any
	}
	// Through holds where the resource that Ref leads to meets a condition. Ref is a field of
	// single references, or "parent" or "configuration" for the column; Set alone asks that
	// there is one.
	Through struct {
		Ref    string
		Column bool
		Where  Expr
	}
	// LinkedFrom holds for the targets of a field of the resource with id Source.
	LinkedFrom struct {
		Source int64
		Field  string
	}
	// LinksTo holds for the resources whose field leads to Target; an empty Field means any field.
	LinksTo struct {
		Target int64
		Field  string
	}
	// IDs holds for the resources with these numbers.
	IDs []int64
	// Touching holds for the transactions that changed the resource.
	Touching struct{ Resource int64 }
	// AnyScope holds for every resource inside some scope of the layout, of any where it has none. It costs nothing and
	// lets a condition on a span use the index, which is by scope.
	AnyScope struct{}
)

type builder struct {
	strings.Builder
	*dialect
	args []any
	rows int
	// scopes is the collection of the layout's scopes.
	scopes string
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
	// oldest selects the first transaction of the feed: its number, time and place.
	oldest string
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
	// size gives the number behind the slash of a text, NULL where there is none.
	size func(b *builder, text func())
}

func (b *builder) arg(v any) {
	b.args = append(b.args, v)
	b.WriteByte('?')
}

func (e All) sql(b *builder, row string) { b.join(e, row, " AND ", "TRUE") }
func (e Any) sql(b *builder, row string) { b.join(e, row, " OR ", "FALSE") }

func (b *builder) join(list []Expr, row, with, none string) {
	if len(list) == 0 {
		b.WriteString(none)
		return
	}
	b.WriteByte('(')
	for i, e := range list {
		if i > 0 {
			b.WriteString(with)
		}
		e.sql(b, row)
	}
	b.WriteByte(')')
}

func (e Not) sql(b *builder, row string) {
	b.WriteString("NOT ")
	All{e.Expr}.sql(b, row)
}

// column writes the field as SQL.
func (f Field) column(b *builder, row string) {
	if f.Via != "" {
		inner := f
		inner.Via = ""
		b.rows++
		target := "v" + strconv.Itoa(b.rows)
		b.WriteString("(SELECT ")
		inner.column(b, target)
		b.WriteString(" FROM resource " + target + " WHERE " + target + ".id = ")
		if f.ViaColumn {
			b.WriteString(row + "." + f.Via + ")")
			return
		}
		b.WriteString("(SELECT target FROM reference WHERE source = " + row + ".id AND field = ")
		b.arg(f.Via)
		b.WriteString("))")
		return
	}
	switch f.Kind {
	case ColumnID:
		b.WriteString(row + ".id")
	case ColumnText, ColumnInt, ColumnSpan:
		b.WriteString(row + "." + f.Path[0])
	case AddrText:
		b.WriteString("address_key(")
		f.json(b, row)
		b.WriteByte(')')
	case PrefixLen:
		b.size(b, func() { f.json(b, row) })
	default:
		f.json(b, row)
	}
}

func (f Field) json(b *builder, row string) { b.member(b, row, f) }

func plain(path []string) bool {
	for _, step := range path {
		for _, c := range step {
			if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
				return false
			}
		}
	}
	return true
}

var operators = map[string]string{"eq": " = ", "gt": " > ", "ge": " >= ", "lt": " < ", "le": " <= "}

func (e Compare) sql(b *builder, row string) {
	value := e.Value
	if v, ok := value.(bool); ok {
		value = b.truth(v)
	}
	text, _ := value.(string)
	column := func() { e.Field.column(b, row) }
	switch {
	case value == nil:
		e.Field.column(b, row)
		if e.Op == "ne" {
			b.WriteString(" IS NOT NULL")
		} else {
			b.WriteString(" IS NULL")
		}
	case e.Op == "ne": // what has no value is different, too
		e.Field.column(b, row)
		b.WriteString(" IS DISTINCT FROM ")
		b.arg(value)
	case e.Op == "contains":
		b.position(b, column, text)
	case e.Op == "startsWith":
		b.front(b, column, text)
	case e.Op == "endsWith" && text == "": // every text ends with nothing
		column()
		b.WriteString(" IS NOT NULL")
	case e.Op == "endsWith":
		b.back(b, column, text)
	default:
		e.Field.column(b, row)
		b.WriteString(operators[e.Op])
		b.arg(value)
	}
}

func (e Through) sql(b *builder, row string) {
	b.rows++
	target := "t" + strconv.Itoa(b.rows)
	if e.Column {
		b.WriteString("EXISTS (SELECT 1 FROM resource " + target + " WHERE " + target + ".id = " + row + "." + e.Ref + " AND ")
	} else {
		link := "l" + strconv.Itoa(b.rows)
		b.WriteString("EXISTS (SELECT 1 FROM reference " + link + " JOIN resource " + target + " ON " + target + ".id = " + link +
			".target WHERE " + link + ".source = " + row + ".id AND " + link + ".field = ")
		b.arg(e.Ref)
		b.WriteString(" AND ")
	}
	if e.Where == nil {
		b.WriteString("TRUE")
	} else {
		e.Where.sql(b, target)
	}
	b.WriteByte(')')
}

func (e IDs) sql(b *builder, row string) {
	if len(e) == 0 {
		b.WriteString("FALSE")
		return
	}
	b.WriteString(row + ".id IN (")
	for i, id := range e {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatInt(id, 10))
	}
	b.WriteByte(')')
}

func (e LinkedFrom) sql(b *builder, row string) {
	b.WriteString(row + ".id IN (SELECT target FROM reference WHERE source = ")
	b.arg(e.Source)
	b.WriteString(" AND field = ")
	b.arg(e.Field)
	b.WriteByte(')')
}

func (e LinksTo) sql(b *builder, row string) {
	b.WriteString(row + ".id IN (SELECT source FROM reference WHERE target = ")
	b.arg(e.Target)
	if e.Field != "" {
		b.WriteString(" AND field = ")
		b.arg(e.Field)
	}
	b.WriteByte(')')
}

func (e Touching) sql(b *builder, row string) {
	b.WriteString(row + ".id IN (SELECT txn FROM change WHERE resource = ")
	b.arg(e.Resource)
	b.WriteByte(')')
}

// Nothing is a condition that never holds.
var Nothing Expr = nothing{}

type nothing struct{}

func (nothing) sql(b *builder, _ string) { b.WriteString("FALSE") }

// InCollection is the condition that a resource is of one of some collections.
func InCollection(names ...string) Expr {
	return inCollections(names)
}

type inCollections []string

// sql names the collections in the statement itself: an index of one collection is used where the planner sees its name.
func (e inCollections) sql(b *builder, row string) {
	if len(e) == 1 {
		b.WriteString(row + ".collection = " + quoted(e...))
		return
	}
	b.WriteString(row + ".collection IN (" + quoted(e...) + ")")
}

// Exists reports whether the query selects anything.
func (tx *Tx) Exists(q Query) (there bool, err error) {
	query, args := q.build(tx, "1")
	err = tx.QueryRow("SELECT EXISTS ("+query+")", args...).Scan(&there)
	return there, err
}

// CountBy counts what the query selects by the value of a text field; what has none is counted under "".
func (tx *Tx) CountBy(q Query, by Field) (map[string]int64, error) {
	b := &builder{dialect: tx.conn.speaks()}
	by.column(b, "r")
	query, args := q.build(tx, b.String()+" AS value, count(*)")
	counts := map[string]int64{}
	err := tx.Each(func(scan func(...any) error) error {
		var value sql.NullString
		var n int64
		err := scan(&value, &n)
		counts[value.String] += n
		return err
	}, query+" GROUP BY 1", append(b.args, args...)...)
	return counts, err
}

// HasParent is the condition that a resource lies right below another one.
func HasParent(parent int64) Expr {
	return Compare{Field: Field{Kind: ColumnInt, Path: []string{"parent"}}, Op: "eq", Value: parent}
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

func (AnyScope) sql(b *builder, row string) {
	if b.scopes == "" {
		b.WriteString("TRUE")
		return
	}
	b.WriteString(row + ".configuration IN (SELECT id FROM resource WHERE collection = " + quoted(b.scopes) + ")")
}

func (q Query) build(tx *Tx, what string) (string, []any) {
	b := &builder{dialect: tx.conn.speaks(), scopes: tx.store.layout.Scopes}
	b.WriteString("SELECT " + what + " FROM " + string(q.From) + " r WHERE ")
	if q.Where == nil {
		b.WriteString("TRUE")
	} else {
		q.Where.sql(b, "r")
	}
	return b.String(), b.args
}

// Count counts what the query selects, without its limit and offset.
func (tx *Tx) Count(q Query) (n int64, err error) {
	query, args := q.build(tx, "count(*)")
	err = tx.QueryRow(query, args...).Scan(&n)
	return n, err
}

// shortList is the most rows that a list may have in memory at once.
const shortList = 1001

// List calls fn for each resource the query selects, in its order. The resource is fn's only until it
// returns: what is to stay must be cloned.
func (tx *Tx) List(q Query, fn func(*Resource) error) error {
	wanted, take := columns, row.resource
	if q.Shown {
		wanted, take = shownColumns, row.shown
	}
	query, args := q.build(tx, "r."+strings.ReplaceAll(wanted, ", ", ", r."))
	b := &builder{dialect: tx.conn.speaks(), args: args, rows: 1000} // row names of the order stay apart from the condition's
	b.WriteString(query + " ORDER BY ")
	for _, o := range q.Order {
		o.By.column(b, "r")
		if o.Descending {
			b.WriteString(" DESC" + b.nulls[1])
		} else {
			b.WriteString(b.nulls[0])
		}
		b.WriteString(", ")
	}
	b.WriteString("r.id")
	if q.Limit > 0 {
		b.WriteString(" LIMIT ")
		b.arg(q.Limit)
		b.WriteString(" OFFSET ")
		b.arg(q.Offset)
	}
	n, resource := 0, &Resource{}
	return tx.conn.list(b.String(), b.args, q.Limit > 0 && q.Limit <= shortList, func(at row) error {
		if n++; n&1023 == 0 && tx.ctx.Err() != nil { // the client has gone
			return tx.ctx.Err()
		}
		if err := take(at, resource); err != nil {
			return err
		}
		return fn(resource)
	})
}
