package store

import (
	"database/sql"
)

// Place is a place in a list: a row by its id, and its value of the field that the list is ordered by: a string, a []byte, or nil
// where it has none. The row need not be there any more.
type Place struct {
	Value any
	ID    int64
}

// parts gives the queries that, one behind the other, give what comes behind the place: rows without a value of the field that
// orders them are apart from those with one. Ascending they come first, descending last.
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

// behind holds for the rows behind a place that have a value there.
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

// hasPlaces reports whether the list can go on behind a place: its order is that of the ids or, of resources, by one field with an index.
func (q Query) hasPlaces() bool {
	byID := len(q.Order) == 0 || len(q.Order) == 1 && q.Order[0].By.Kind == ColumnID
	return byID || q.From == Resources && len(q.Order) == 1 && q.Order[0].By.isIndexed()
}

// Takes reports whether a place may be one of the list.
func (q Query) Takes(at Place) bool {
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

// isLow reports whether the field is the low end of the span of the row itself.
func (f Field) isLow() bool { return f.Via == "" && f.Kind == ColumnSpan && f.Path[0] == "low" }

// placeInRow reports whether a row that is shown has what its place in the list is: nothing is to be asked for it.
func (q Query) placeInRow() bool {
	if !q.hasPlaces() || len(q.Order) == 0 {
		return true
	}
	by := q.Order[0].By
	return by.Kind == ColumnID || by.isNameColumn() || by.isLow()
}

// PlaceOf gives the place, in a list of that order, of a resource with a name and the low end of a span, which are empty where it has none;
// ok is false where there can be none.
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
