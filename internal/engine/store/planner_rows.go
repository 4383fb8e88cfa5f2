package store

import "slices"

// planRows decides how the rows of another source than Resources are found. Databases may expect many rows of a condition, and then read
// all rows in the order of the list: a condition that matches few rows is looked up, and its rows are sorted.
func (tx *Tx) planRows(a *access, q Query) error {
	if q.From == Resources || tx.writing || q.Direct {
		return nil
	}
	var ranges []All
	for _, e := range conjuncts(nil, q.Where) {
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
	for _, one := range ranges {
		b := &builder{dialect: tx.conn.sqlDialect(), layout: tx.store.layout}
		b.WriteString("SELECT count(*) FROM (SELECT 1 FROM " + string(q.From) + " r WHERE ")
		one.sql(b, "r")
		b.WriteString(" LIMIT ")
		b.arg(maxSortLimit + 1)
		b.WriteString(") few")
		var n int64
		if err := tx.QueryRow(b.String(), b.args...).Scan(&n); err != nil {
			return err
		}
		if n <= maxSortLimit {
			a.sorted = true
			return nil
		}
	}
	return nil
}

// isOwnID reports whether the field is the id of the row itself, which is never null.
func (f Field) isOwnID() bool { return f.Kind == ColumnID && f.Via == "" }
