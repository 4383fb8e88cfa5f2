package store

import (
	"database/sql"
	"strconv"
	"strings"
	"unicode/utf8"
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
	// Shown leaves out what no answer shows: span, key and links.
	Shown bool
}

// Order is one field of an order.
type Order struct {
	By         Field
	Descending bool
	// Whole says that everything the query selects has a value there, Spaceless that nothing of it has space: so that an index
	// can be used that has those alone.
	Whole, Spaceless bool
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
	// LinksTo holds for the resources whose field leads to one of Targets; an empty Field means any field.
	LinksTo struct {
		Targets []int64
		Field   string
	}
	// IDs holds for the resources with these numbers.
	IDs []int64
	// Touching holds for the transactions that changed the resource.
	Touching struct{ Resource int64 }
	// Around holds for the resources with space (Layout.Spaced) whose span has all of low to high in it.
	Around struct{ Low, High []byte }
)

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
	// around begins a list of ids, with scopes and collections put in as lists in quotes, and the arguments low and high; it is
	// walked down from the scopes by one seek for each collection.
	around func(scopes string, collections []string) string
	// hidden is put before and behind a field of a kind, so that it is compared without an index.
	hidden func(kind FieldKind) [2]string
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
	if b.hide && f.indexed() {
		b.hide = false
		marks := b.hidden(f.Kind)
		b.WriteString(marks[0])
		f.column(b, row)
		b.WriteString(marks[1])
		b.hide = true
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
	case e.Op == "startsWith" && e.ranged():
		b.WriteByte('(')
		e.Field.column(b, row)
		b.WriteString(" >= ")
		b.arg(text)
		if behind := behindPrefix(text); behind != "" {
			b.WriteString(" AND ")
			e.Field.column(b, row)
			b.WriteString(" < ")
			b.arg(behind)
		}
		b.WriteByte(')')
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

// ranged reports whether what begins with a text lies side by side in an index: texts compare byte by byte in both databases.
func (e Compare) ranged() bool {
	text, ok := e.Value.(string)
	return ok && text != "" && e.Op == "startsWith" && e.Field.indexed() && (e.Field.Kind == ColumnText || e.Field.Kind == Text)
}

// behindPrefix gives the first text behind all that begin with a prefix; empty where there is none.
func behindPrefix(prefix string) string {
	for prefix != "" {
		last, size := utf8.DecodeLastRuneInString(prefix)
		prefix = prefix[:len(prefix)-size]
		switch last {
		case utf8.MaxRune:
		case 0xd7ff: // behind it come no characters before 0xe000
			return prefix + "\ue000"
		default:
			return prefix + string(last+1)
		}
	}
	return ""
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
	b.WriteString(row + ".id IN (" + idList(e) + ")")
}

// idList lists numbers for IN.
func idList(ids []int64) string {
	var b strings.Builder
	for i, id := range ids {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatInt(id, 10))
	}
	return b.String()
}

func (e LinkedFrom) sql(b *builder, row string) {
	b.WriteString(row + ".id IN (SELECT target FROM reference WHERE source = ")
	b.arg(e.Source)
	b.WriteString(" AND field = ")
	b.arg(e.Field)
	b.WriteByte(')')
}

func (e LinksTo) sql(b *builder, row string) {
	if len(e.Targets) == 0 {
		b.WriteString("FALSE")
		return
	}
	if b.hide {
		b.rows++
		l := "l" + strconv.Itoa(b.rows)
		b.WriteString("EXISTS (SELECT 1 FROM reference " + l + " WHERE " + l + ".source = " + row + ".id AND ")
		e.link(b, l)
		b.WriteByte(')')
		return
	}
	b.WriteString(row + ".id IN (SELECT source FROM reference l WHERE ")
	e.link(b, "l")
	b.WriteByte(')')
}

// link is the condition on a reference.
func (e LinksTo) link(b *builder, l string) {
	if len(e.Targets) == 1 {
		b.WriteString(l + ".target = ")
		b.arg(e.Targets[0])
	} else {
		b.WriteString(l + ".target IN (" + idList(e.Targets) + ")")
	}
	if e.Field != "" {
		b.WriteString(" AND " + l + ".field = ")
		b.arg(e.Field)
	}
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
		b.WriteString(CollectionIs(row, e[0]))
		return
	}
	b.WriteString(row + ".collection IN (" + quoted(e...) + ")")
}

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
	b := &builder{dialect: tx.conn.speaks()}
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

func (e Around) sql(b *builder, row string) {
	if b.layout.Scopes == "" {
		b.WriteString("(" + row + ".low <= ")
		b.arg(e.Low)
		b.WriteString(" AND " + row + ".high >= ")
		b.arg(e.High)
		b.WriteByte(')')
		return
	}
	b.WriteString(row + ".id IN (" + b.around(quoted(b.layout.Scopes), b.layout.Spaced))
	b.args = append(b.args, e.Low, e.High)
	b.WriteByte(')')
}

// build writes the statement that selects something of what the query selects, without its order.
func (q Query) build(tx *Tx, what string) (string, []any, error) {
	where, err := tx.resolve(q.Where)
	if err != nil {
		return "", nil, err
	}
	q.Where, q.Order, q.Limit, q.Offset = where, nil, 0, 0
	a, err := tx.find(q)
	if err != nil {
		return "", nil, err
	}
	b := &builder{dialect: tx.conn.speaks(), layout: tx.store.layout}
	b.WriteString("SELECT " + what)
	a.from(b, q.From)
	return b.String(), b.args, nil
}

// from writes where the rows come from, and the condition on them.
func (a access) from(b *builder, from Source) {
	if a.driver != nil {
		b.WriteString(" FROM reference d CROSS JOIN resource r WHERE r.id = d.source AND ")
		a.driver.link(b, "d")
		b.WriteString(" AND ")
	} else {
		b.WriteString(" FROM " + string(from) + " r WHERE ")
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
const shortList = 1001

// List calls fn for each resource the query selects, in its order. The resource is fn's only until it
// returns: what is to stay must be cloned.
func (tx *Tx) List(q Query, fn func(*Resource) error) error {
	wanted, take := columns, row.resource
	if q.Shown {
		wanted, take = shownColumns, row.shown
	}
	n, resource := int64(0), &Resource{}
	for _, part := range q.parts() {
		if q.Limit > 0 {
			if part.Limit = q.Limit - n; part.Limit == 0 {
				return nil
			}
		}
		query, args, err := part.list(tx, wanted)
		if err != nil {
			return err
		}
		if err := tx.conn.list(query, args, part.Limit > 0 && part.Limit <= shortList, func(at row) error {
			if n++; n&1023 == 0 && tx.ctx.Err() != nil { // the client has gone
				return tx.ctx.Err()
			}
			if err := take(at, resource); err != nil {
				return err
			}
			return fn(resource)
		}); err != nil {
			return err
		}
	}
	return nil
}

// list writes the statement that selects columns of the rows, in their order.
func (q Query) list(tx *Tx, wanted string) (string, []any, error) {
	var err error
	if q.Where, err = tx.resolve(q.Where); err != nil {
		return "", nil, err
	}
	for _, o := range q.Order {
		if o.Spaceless {
			q.Where = All{q.Where, Compare{Field: Field{Kind: ColumnSpan, Path: []string{"low"}}, Op: "eq"}}
		}
		if o.Whole && o.By.indexed() {
			q.Where = All{q.Where, Compare{Field: o.By, Op: "ne"}}
		}
	}
	a, err := tx.find(q)
	if err != nil {
		return "", nil, err
	}
	b := &builder{dialect: tx.conn.speaks(), layout: tx.store.layout}
	shown := "r." + strings.ReplaceAll(wanted, ", ", ", r.")
	late := q.From == Resources && (q.Offset > 0 || a.many)
	if late { // the rows that are left out are counted in an index alone
		b.WriteString("SELECT " + shown + " FROM (SELECT r.id")
	} else {
		b.WriteString("SELECT " + shown)
	}
	a.from(b, q.From)
	q.order(b, a)
	if q.Limit > 0 {
		b.WriteString(" LIMIT ")
		b.arg(q.Limit)
		b.WriteString(" OFFSET ")
		b.arg(q.Offset)
	}
	if late {
		b.WriteString(") page CROSS JOIN resource r WHERE r.id = page.id")
		q.order(b, access{})
	}
	return b.String(), b.args, nil
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
