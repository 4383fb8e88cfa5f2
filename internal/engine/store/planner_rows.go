package store

import (
	"slices"
	"strconv"
)

// planRows decides how the rows of another source than Resources are found. Databases may expect many rows of a condition, and then read
// all rows in the order of the list: a condition that matches few rows is looked up, and its rows are sorted.
func (tx *Tx) planRows(a *access, q Query) error {
	if q.From == Resources || tx.writing || q.Direct {
		return nil
	}
	var ranges []All
	for _, e := range listConjuncts(nil, q.Where) {
		c, ok := e.(Compare)
		switch {
		case !ok || !c.Field.isIndexed() || c.Value == nil:
		case c.Op == "eq" && c.Field.Kind != Text: // its index is used, and conditions beside it cost little
			return nil
		case c.Field.Kind == Text && slices.Contains([]string{"eq", "gt", "ge", "lt", "le"}, c.Op):
			if slices.ContainsFunc(q.Order, func(o Order) bool { return slices.Equal(o.By.Path, c.Field.Path) }) {
				return nil // the index has the rows in order
			}
			i := slices.IndexFunc(ranges, func(all All) bool { return slices.Equal(all[0].(Compare).Field.Path, c.Field.Path) })
			if i < 0 {
				ranges = append(ranges, All{c})
			} else {
				ranges[i] = append(ranges[i], c)
			}
		}
	}
	var err error
	if a.sorted, err = tx.matchesFew(q.From, ranges, tx.store.sortLimit); err != nil || a.sorted || len(ranges) == 0 {
		return err
	}
	if q.Limit > 0 && len(q.Order) == 0 {
		if soon, err := tx.fillsPageSoon(q); err != nil || soon {
			return err
		}
	}
	a.sorted, err = tx.matchesFew(q.From, ranges, maxSortLimit)
	return err
}

// matchesFew reports whether one of the conditions on the rows of a source matches at most limit rows.
func (tx *Tx) matchesFew(from Source, ranges []All, limit int64) (bool, error) {
	for _, one := range ranges {
		b := &builder{dialect: tx.conn.sqlDialect(), layout: tx.store.layout}
		b.WriteString("SELECT count(*) FROM (SELECT 1 FROM " + string(from) + " r WHERE ")
		one.sql(b, "r")
		b.WriteString(" LIMIT ")
		b.arg(limit + 1)
		b.WriteString(") few")
		var n int64
		if err := tx.QueryRow(b.String(), b.args...).Scan(&n); err != nil || n <= limit {
			return err == nil, err
		}
	}
	return false, nil
}

// firstRows is the number of rows in the order of their ids that are examined for a page before the matches of a condition are counted.
const firstRows = 1_000

// fillsPageSoon reports whether the first rows of the source in the order of their ids fill the page. It is then read in that order.
func (tx *Tx) fillsPageSoon(q Query) (bool, error) {
	b := &builder{dialect: tx.conn.sqlDialect(), layout: tx.store.layout}
	b.WriteString("SELECT count(*) FROM (SELECT 1 FROM (SELECT * FROM " + string(q.From) + " ORDER BY id LIMIT " + strconv.Itoa(firstRows) +
		") r WHERE ")
	q.Where.sql(b, "r")
	b.WriteString(" LIMIT ")
	b.arg(q.Limit + q.Offset)
	b.WriteString(") page")
	var n int64
	err := tx.QueryRow(b.String(), b.args...).Scan(&n)
	return n == q.Limit+q.Offset, err
}

// isOwnID reports whether the field is the id of the row itself, which is never null.
func (f Field) isOwnID() bool { return f.Kind == ColumnID && f.Via == "" }
