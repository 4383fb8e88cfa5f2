package rest

import (
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// rowCount is the number of stored rows of a list, without its limit and offset. It is read at the first use.
type rowCount struct {
	tx    *store.Tx
	q     store.Query
	n     int64
	known bool
}

// rowCount returns the number of rows of a list. If the resource above stores numbers of its children by the filtered field, the list
// needs not read rows in vain: q is limited to the rows that exist, and becomes empty if there are none.
func (a *Server) rowCount(tx *store.Tx, p listPlan, q *store.Query) (*rowCount, error) {
	rows := &rowCount{tx: tx, q: store.Query{From: q.From, Where: q.Where}}
	t := p.target
	if t.Sub == nil || t.Sub.Relation != resource.Children || p.filter == nil || t.Collection.Counts.Children != t.Sub.Name ||
		!mentions(p.filter, t.Collection.Counts.Field) {
		return rows, nil
	}
	above, err := tx.Get(t.ID)
	if err != nil {
		return nil, err
	}
	counts, err := t.Collection.Counts.Of(tx, above)
	if err != nil {
		return nil, err
	}
	n, exact, ok := countMatches(p.filter, t.Collection.Counts.Field, counts)
	if !ok {
		return rows, nil
	}
	left := n
	if q.After == nil {
		left -= q.Offset
	}
	switch {
	case n == 0:
		q.Where, rows.q.Where = store.False, store.False
	case left <= 0:
		q.Where = store.False
	default:
		q.Limit = min(q.Limit, left)
	}
	if exact && !p.caller.Limited() { // a limited caller may not see all of them
		rows.n, rows.known = n, true
	}
	return rows, nil
}

// get returns the number.
func (c *rowCount) get() (n int64, err error) {
	if !c.known {
		if c.n, err = c.tx.Count(c.q); err != nil {
			return 0, err
		}
		c.known = true
	}
	return c.n, nil
}

// mentions reports whether a filter compares a field.
func mentions(n *schema.Node, field string) bool {
	for _, part := range n.And {
		if mentions(part, field) {
			return true
		}
	}
	for _, part := range n.Or {
		if mentions(part, field) {
			return true
		}
	}
	return len(n.Path) == 1 && n.Path[0] == field
}

// countMatches returns the maximum number of resources that match a filter, from the numbers by the values of a field that every resource
// has. exact is true if it is the number of matches. ok is false if the numbers give no limit.
func countMatches(n *schema.Node, field string, counts map[string]int64) (most int64, exact, ok bool) {
	switch {
	case n.And != nil:
		for _, part := range n.And {
			one, same, limited := countMatches(part, field, counts)
			if limited && (!ok || one < most) {
				most, exact, ok = one, same && len(n.And) == 1, true
			}
		}
		return most, exact, ok
	case n.Or != nil:
		for _, part := range n.Or {
			one, _, limited := countMatches(part, field, counts)
			if !limited {
				return 0, false, false
			}
			most += one
		}
		return most, false, true
	case len(n.Path) != 1 || n.Path[0] != field || n.Op != "eq" && n.Op != "in":
		return 0, false, false
	}
	seen := map[string]bool{}
	for _, l := range n.Values {
		if l.Null() || seen[l.Text] {
			continue
		}
		seen[l.Text] = true
		most += counts[l.Text]
	}
	return most, true, true
}
