package store

import (
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// FieldKind is the storage format of a field. It determines the comparison.
type FieldKind int

// Kinds of fields.
const (
	Text       FieldKind = iota // in the body, as text
	Number                      // in the body, as a number
	Numeral                     // in the body, a number or a decimal text of up to 20 characters; null otherwise
	Bool                        // in the body, true or false
	AddrText                    // in the body, an address as text; compared as an address
	ColumnID                    // the column id
	ColumnText                  // the column named by Path: name, type, collection, key
	ColumnInt                   // the column named by Path: parent, configuration
	ColumnSpan                  // the column low or high
	PrefixLen                   // the prefix length after the slash of the body's text at Path
)

// Field is a property of a resource that can be compared.
type Field struct {
	Kind FieldKind
	// Path is the column, or the path in the body with one member per element.
	Path []string
	// Via names a single-valued reference or, with ViaColumn, the column parent or configuration. The field is then one of the referenced
	// resource. It is used for orders.
	Via       string
	ViaColumn bool
	// ViaSeen is a condition on the resource that Via refers to. If it is not met, the field is null. nil means no condition.
	ViaSeen Expr
	// Indexed is true if the layout has an index of the field (Layout.Indexes). Searched is true if the trigram index covers it: a name,
	// or a field in Layout.Searched.
	Indexed, Searched bool
}

// Expr is a condition on a resource.
type Expr interface{ sql(b *builder, row string) }

// The kinds of conditions. Values are strings, numbers, booleans and span keys.
type (
	// All is true if all of its conditions are.
	All []Expr
	// Any is true if at least one of its conditions is.
	Any []Expr
	// Not negates a condition.
	Not struct{ Expr Expr }
	// Compare compares a field. Op is eq, ne, gt, ge, lt, le, contains, startsWith or endsWith. The value nil is null; it works with eq
	// and ne.
	Compare struct {
		Field Field
		Op    string
		Value any
	}
	// Through is true if the resource that Ref refers to meets Where. Ref is a field of single-valued references or, with Column, the
	// column parent or configuration. If Where is nil, the reference only has to be set.
	Through struct {
		Ref    string
		Column bool
		Where  Expr
	}
	// LinkedFrom is true for the targets of a field of the resource with the id Source.
	LinkedFrom struct {
		Source int64
		Field  string
	}
	// LinksTo is true for the resources whose field refers to one of Targets. An empty Field means any field.
	LinksTo struct {
		Targets []int64
		Field   string
	}
	// IDs is true for the resources with these ids.
	IDs []int64
	// Touching is true for the transactions that changed the resource.
	Touching struct{ Resource int64 }
	// Recheck is its condition, evaluated without an index. Another condition next to it must find the candidate rows.
	Recheck struct{ Expr Expr }
)

func (e Recheck) sql(b *builder, row string) { hidden{e.Expr}.sql(b, row) }

func (e All) sql(b *builder, row string) { b.join(e, row, " AND ", "TRUE") }

// sql writes equalities of one field as IN. If each alternative starts with an equality of the same field, it also writes IN before the
// alternatives: SQLite without statistics uses an index for IN but not for OR.
func (e Any) sql(b *builder, row string) {
	var same []Compare
	plain := true
	for _, one := range e {
		c, ok := one.(Compare)
		if all, is := one.(All); is && len(all) > 1 {
			c, ok = all[0].(Compare)
			plain = false
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
	if !plain {
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

// isNeverTrue reports whether no row can meet the condition, so that none has to be read.
func isNeverTrue(e Expr) bool {
	switch x := e.(type) {
	case All:
		return slices.ContainsFunc(x, isNeverTrue)
	case Any:
		return !slices.ContainsFunc(x, func(one Expr) bool { return !isNeverTrue(one) })
	case IDs:
		return len(x) == 0
	case LinksTo:
		return len(x.Targets) == 0
	case never:
		return true
	}
	return false
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
	case e.Op == "ne": // rows without a value are different as well
		e.Field.column(b, row)
		b.WriteString(" IS DISTINCT FROM ")
		b.arg(value)
	case e.Op == "contains":
		b.contains(b, column, text)
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
		b.startsWith(b, column, text)
	case e.Op == "endsWith" && text == "": // every text ends with the empty text
		column()
		b.WriteString(" IS NOT NULL")
	case e.Op == "endsWith":
		b.endsWith(b, column, text)
	default:
		e.Field.column(b, row)
		b.WriteString(operators[e.Op])
		b.arg(value)
	}
}

// isRange reports whether the matches of a startsWith are adjacent in an index. Both databases compare texts byte by byte.
func (e Compare) isRange() bool {
	text, ok := e.Value.(string)
	return ok && text != "" && e.Op == "startsWith" && e.Field.isIndexed() && (e.Field.Kind == ColumnText || e.Field.Kind == Text)
}

// prefixEnd returns the first text after all texts with the prefix, or "" if there is none.
func prefixEnd(prefix string) string {
	for prefix != "" {
		last, size := utf8.DecodeLastRuneInString(prefix)
		prefix = prefix[:len(prefix)-size]
		switch last {
		case utf8.MaxRune:
		case 0xd7ff: // surrogates, from 0xd800 to 0xdfff, are not characters
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
	b.writeAmong(row+".id", e)
}

// writeAmong writes a comparison of a number with a list.
func (b *builder) writeAmong(number string, list []int64) {
	b.WriteString(number + b.numberList[0] + idList(list) + b.numberList[1])
}

// idList returns a comma-separated list of ids for IN.
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
		b.WriteString(b.perRow + ")")
		return
	}
	b.WriteString(row + ".id IN (SELECT source FROM reference l WHERE ")
	e.link(b, "l")
	b.WriteByte(')')
}

// fewLinks is LinksTo with one target and at most limit sources. They are read first, in the order of the index: a generic plan of
// PostgreSQL would not know that they are few and would choose another join.
type fewLinks struct {
	LinksTo
	limit int64
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
		strconv.FormatInt(e.limit+1, 10) + "))")
}

// link writes the condition on a row of the table reference.
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

// False is a condition that is never true.
var False Expr = never{}

type never struct{}

// InCollection is true for resources in one of the collections.
func InCollection(names ...string) Expr {
	return inCollections(names)
}

type inCollections []string

// sql writes the names of the collections into the statement, so that the planner can use the partial index of a collection.
func (e inCollections) sql(b *builder, row string) {
	if b.hide {
		marks := b.hidden(ColumnText)
		b.WriteString(marks[0] + row + ".collection" + marks[1] + " IN (" + quoteNames(e...) + ")")
		return
	}
	if len(e) == 1 {
		b.WriteString(CollectionIs(row, e[0]))
		return
	}
	b.WriteString(row + ".collection IN (" + quoteNames(e...) + ")")
}

// HasParent is true for resources directly below the given parent.
func HasParent(parent int64) Expr {
	return Compare{Field: Field{Kind: ColumnInt, Path: []string{"parent"}}, Op: "eq", Value: parent}
}

// Inherited is true if a condition holds for the effective value of a member: the value of the row or, if the row does not set one, that
// of the nearest resource above that does. From are the collections that the value can be inherited from.
type Inherited struct {
	// Cond is the condition on the value of a row itself. Unset is the condition that the row sets no value.
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
	e.writeOwn(b, above)
	b.WriteString(" UNION SELECT " + above + ".id FROM " + down + " JOIN resource " + above + " ON " + above + ".parent = " +
		down + ".id WHERE ")
	from.sql(b, above)
	b.WriteString(" AND ")
	e.Unset.sql(b, above)
	b.WriteString(") SELECT id FROM " + down + ") OR (")
	e.writeTopCondition(b, row)
	b.WriteString(" AND ")
	e.Cond.sql(b, row)
	b.WriteString("))))")
}

// writeOwn writes the condition that Cond is true for a resource that sets the value, or that has nothing to inherit from.
func (e Inherited) writeOwn(b *builder, row string) {
	b.WriteString("((NOT ")
	e.Unset.sql(b, row)
	b.WriteString(" OR ")
	e.writeTopCondition(b, row)
	b.WriteString(") AND ")
	e.Cond.sql(b, row)
	b.WriteByte(')')
}

// writeTopCondition writes the condition that a resource is not below a resource of a collection in From.
func (e Inherited) writeTopCondition(b *builder, row string) {
	b.rows++
	above := "p" + strconv.Itoa(b.rows)
	b.WriteString("NOT EXISTS (SELECT 1 FROM resource " + above + " WHERE " + above + ".id = " + row + ".parent AND ")
	InCollection(e.From...).sql(b, above)
	b.WriteByte(')')
}
