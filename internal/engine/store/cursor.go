package store

import (
	"database/sql"
)

// Place is a position in a list: the id of a row, and its value of the order field. The value is a string, a []byte, or nil if the row
// has none. The row may have been deleted.
type Place struct {
	Value any
	ID    int64
}

// parts returns the queries whose results, one after the other, are the rows after the place. Rows without a value of the order field are
// queried separately: they are first in ascending order, and last in descending order.
func (q Query) parts() []Query {
	if q.After == nil {
		return []Query{q}
	}
	at := *q.After
	q.After = nil
	and := func(e Expr) Query {
		part := q
		part.Where = All{q.Where, e}
		return part
	}
	id, next, o := Field{Kind: ColumnID}, "gt", Order{By: Field{Kind: ColumnID}}
	if len(q.Order) > 0 {
		o = q.Order[0]
	}
	if o.Descending {
		next = "lt"
	}
	without, with := Compare{Field: o.By, Op: "eq"}, Compare{Field: o.By, Op: "ne"}
	switch {
	case o.By.Kind == ColumnID:
		return []Query{and(Compare{Field: id, Op: next, Value: at.ID})}
	case at.Value == nil && o.Descending:
		return []Query{and(All{without, Compare{Field: id, Op: next, Value: at.ID}})}
	case at.Value == nil:
		return []Query{and(All{without, Compare{Field: id, Op: next, Value: at.ID}}), and(with)}
	case o.Descending && !o.Whole:
		return []Query{and(afterPlace{o, at}), and(without)}
	}
	return []Query{and(afterPlace{o, at})}
}

// afterPlace is true for the rows after a place that have a value of the order field.
type afterPlace struct {
	Order
	Place
}

func (e afterPlace) sql(b *builder, row string) {
	b.WriteByte('(')
	e.By.column(b, row)
	b.WriteString(", " + row + ".id) ")
	if e.Descending {
		b.WriteByte('<')
	} else {
		b.WriteByte('>')
	}
	b.WriteString(" (")
	b.arg(e.Value)
	b.WriteString(", ")
	b.arg(e.ID)
	b.WriteByte(')')
}

func isPlace(e Expr) bool {
	_, ok := e.(afterPlace)
	return ok
}

// hasPlaces reports whether the list can continue after a place. Its order must be by id or, for resources, by one field with an index
// that is not a number.
func (q Query) hasPlaces() bool {
	byID := len(q.Order) == 0 || len(q.Order) == 1 && q.Order[0].By.Kind == ColumnID
	return byID || q.From == Resources && len(q.Order) == 1 && q.Order[0].By.isIndexed() && q.Order[0].By.Kind != Number
}

// CanContain reports whether a place can belong to the list.
func (q Query) CanContain(at Place) bool {
	if !q.hasPlaces() {
		return false
	}
	switch at.Value.(type) {
	case nil:
		return true
	case []byte:
		return len(q.Order) == 1 && q.Order[0].By.Kind == ColumnSpan
	case string:
		return len(q.Order) == 1 && (q.Order[0].By.Kind == ColumnText || q.Order[0].By.Kind == Text)
	}
	return false
}

// isLow reports whether the field is the low end of the row's own span.
func (f Field) isLow() bool { return f.Via == "" && f.Kind == ColumnSpan && f.Path[0] == "low" }

// placeInRow reports whether a shown row contains its place in the list, so that no query is needed for it.
func (q Query) placeInRow() bool {
	if !q.hasPlaces() || len(q.Order) == 0 {
		return true
	}
	by := q.Order[0].By
	return by.Kind == ColumnID || by.isNameColumn() || by.isLow()
}

// PlaceOf returns the place of a resource in the list. name and low are its name and the low end of its span, or empty. ok is false if
// the list has no places.
func (q Query) PlaceOf(tx *Tx, id int64, name string, low []byte) (at Place, ok bool, err error) {
	at.ID = id
	if q.placeInRow() {
		switch {
		case len(q.Order) != 1:
		case name != "" && q.Order[0].By.isNameColumn():
			at.Value = name
		case len(low) > 0 && q.Order[0].By.isLow():
			at.Value = low
		}
		return at, q.hasPlaces(), nil
	}
	b := &builder{dialect: tx.conn.sqlDialect(), layout: tx.store.layout}
	b.WriteString("SELECT ")
	q.Order[0].By.column(b, "r")
	b.WriteString(" FROM resource r WHERE r.id = ")
	b.arg(id)
	if q.Order[0].By.Kind == ColumnSpan {
		var key []byte
		err = tx.QueryRow(b.String(), b.args...).Scan(&key)
		if key != nil {
			at.Value = key
		}
		return at, err == nil, err
	}
	var text sql.NullString
	err = tx.QueryRow(b.String(), b.args...).Scan(&text)
	if text.Valid {
		at.Value = text.String
	}
	return at, err == nil, err
}
