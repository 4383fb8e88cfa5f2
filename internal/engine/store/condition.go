package store

import (
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// FieldKind says how a field is kept and so how it compares.
type FieldKind int

// Kinds of fields.
const (
	Text       FieldKind = iota // in the body, as text
	Number                      // in the body, as a number
	Numeral                     // in the body, a number or a text that is one, in decimals, of up to 20 characters; what is neither is null
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
	// ViaSeen is what the resource that Via leads to has to meet, or the field is null. nil: nothing.
	ViaSeen Expr
	// Indexed says that the layout has an index of it (Layout.Indexes); Searched, that what stands anywhere in it is found by the index
	// of trigrams: a name, or what is in Layout.Searched.
	Indexed, Searched bool
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
	// Recheck holds where its condition does, which no index is used for: another condition beside it finds what it may hold for.
	Recheck struct{ Expr Expr }
)

func (e Recheck) sql(b *builder, row string) { hidden{e.Expr}.sql(b, row) }

func (e All) sql(b *builder, row string) { b.join(e, row, " AND ", "TRUE") }

// sql words equalities with one field as IN, and puts that before alternatives that each begin with one: SQLite, which may not have counted
// yet what there is, takes an index for it at once, and for OR does not.
func (e Any) sql(b *builder, row string) {
	var same []Compare
	alone := true
	for _, one := range e {
		c, ok := one.(Compare)
		if all, is := one.(All); is && len(all) > 1 {
			c, ok = all[0].(Compare)
			alone = false
		}
		if !ok || c.Op != "eq" || c.Value == nil || len(same) > 0 && !reflect.DeepEqual(c.Field, same[0].Field) {
			b.join(e, row, " OR ", "FALSE")
			return
		}
		same = append(same, c)
	}
	if len(same) < 2 {
		b.join(e, row, " OR ", "FALSE")
		return
	}
	b.WriteByte('(')
	same[0].Field.column(b, row)
	for i, c := range same {
		b.WriteString([]string{" IN (", ", "}[min(i, 1)])
		value := c.Value
		if v, ok := value.(bool); ok {
			value = b.truth(v)
		}
		b.arg(value)
	}
	b.WriteByte(')')
	if !alone {
		b.WriteString(" AND ")
		b.join(e, row, " OR ", "FALSE")
	}
	b.WriteByte(')')
}

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
		inner.Via, inner.ViaSeen = "", nil
		b.rows++
		target := "v" + strconv.Itoa(b.rows)
		b.WriteString("(SELECT ")
		inner.column(b, target)
		b.WriteString(" FROM resource " + target + " WHERE " + target + ".id = ")
		if f.ViaColumn {
			b.WriteString(row + "." + f.Via)
		} else {
			b.WriteString("(SELECT target FROM reference WHERE source = " + row + ".id AND field = ")
			b.arg(f.Via)
			b.WriteByte(')')
		}
		if f.ViaSeen != nil {
			b.WriteString(" AND ")
			f.ViaSeen.sql(b, target)
		}
		b.WriteByte(')')
		return
	}
	if b.hide && f.isIndexed() {
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

func isPlainPath(path []string) bool {
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
	case e.Op == "startsWith" && e.isRange():
		b.WriteByte('(')
		e.Field.column(b, row)
		b.WriteString(" >= ")
		b.arg(text)
		if behind := prefixEnd(text); behind != "" {
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
func (e Compare) isRange() bool {
	text, ok := e.Value.(string)
	return ok && text != "" && e.Op == "startsWith" && e.Field.isIndexed() && (e.Field.Kind == ColumnText || e.Field.Kind == Text)
}

// behindPrefix gives the first text behind all that begin with a prefix; empty where there is none.
func prefixEnd(prefix string) string {
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
	b.among(row+".id", e)
}

// among compares a number with those of a list.
func (b *builder) among(number string, list []int64) {
	b.WriteString(number + b.dialect.among[0] + idList(list) + b.dialect.among[1])
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

// fewLinks is LinksTo with one target that so many resources refer to at the most. They are found once, in the order of the index: a plan
// of PostgreSQL that is kept would not know that they are few, and join them otherwise.
type fewLinks struct {
	LinksTo
	most int64
}

func (e fewLinks) sql(b *builder, row string) {
	b.WriteString(row + ".id = ANY(ARRAY(SELECT l.source FROM reference l WHERE (l.target, l.field, l.source) >= (")
	b.arg(e.Targets[0])
	b.WriteString(", ")
	b.arg(e.Field)
	b.WriteString(", 0) AND (l.target, l.field, l.source) <= (")
	b.arg(e.Targets[0])
	b.WriteString(", ")
	b.arg(e.Field)
	b.WriteString(", " + strconv.FormatInt(math.MaxInt64, 10) + ") ORDER BY l.target, l.field, l.source LIMIT " +
		strconv.FormatInt(e.most+1, 10) + "))")
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

// InCollection is the condition that a resource is of one of some collections.
func InCollection(names ...string) Expr {
	return inCollections(names)
}

type inCollections []string

// sql names the collections in the statement itself: an index of one collection is used where the planner sees its name.
func (e inCollections) sql(b *builder, row string) {
	if b.hide {
		marks := b.hidden(ColumnText)
		b.WriteString(marks[0] + row + ".collection" + marks[1] + " IN (" + quoted(e...) + ")")
		return
	}
	if len(e) == 1 {
		b.WriteString(CollectionIs(row, e[0]))
		return
	}
	b.WriteString(row + ".collection IN (" + quoted(e...) + ")")
}

// HasParent is the condition that a resource lies right below another one.
func HasParent(parent int64) Expr {
	return Compare{Field: Field{Kind: ColumnInt, Path: []string{"parent"}}, Op: "eq", Value: parent}
}

// Inherited holds where a condition on a member holds for the value that is in effect: the row's own or, where that is not set, the one of
// the nearest resource above that sets it. From are the collections of what it comes from.
type Inherited struct {
	// Cond is the condition on a row's own value, Unset that it has none.
	Cond, Unset Expr
	From        []string
}

func (e Inherited) sql(b *builder, row string) {
	b.rows++
	n := strconv.Itoa(b.rows)
	down, above := "down"+n, "a"+n
	from := InCollection(e.From...)
	b.WriteString("((NOT ")
	e.Unset.sql(b, row)
	b.WriteString(" AND ")
	e.Cond.sql(b, row)
	b.WriteString(") OR (")
	e.Unset.sql(b, row)
	b.WriteString(" AND (" + row + ".parent IN (WITH RECURSIVE " + down + " (id) AS (SELECT " + above + ".id FROM resource " +
		above + " WHERE ")
	from.sql(b, above)
	b.WriteString(" AND ")
	e.own(b, above)
	b.WriteString(" UNION SELECT " + above + ".id FROM " + down + " JOIN resource " + above + " ON " + above + ".parent = " +
		down + ".id WHERE ")
	from.sql(b, above)
	b.WriteString(" AND ")
	e.Unset.sql(b, above)
	b.WriteString(") SELECT id FROM " + down + ") OR (")
	e.top(b, row)
	b.WriteString(" AND ")
	e.Cond.sql(b, row)
	b.WriteString("))))")
}

// own is where a resource sets the value, or nothing above it could.
func (e Inherited) own(b *builder, row string) {
	b.WriteString("((NOT ")
	e.Unset.sql(b, row)
	b.WriteString(" OR ")
	e.top(b, row)
	b.WriteString(") AND ")
	e.Cond.sql(b, row)
	b.WriteByte(')')
}

// top is where nothing that the value comes from lies above a resource.
func (e Inherited) top(b *builder, row string) {
	b.rows++
	above := "p" + strconv.Itoa(b.rows)
	b.WriteString("NOT EXISTS (SELECT 1 FROM resource " + above + " WHERE " + above + ".id = " + row + ".parent AND ")
	InCollection(e.From...).sql(b, above)
	b.WriteByte(')')
}
