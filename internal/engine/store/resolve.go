package store

import "slices"

// resolve looks up the resources that conditions walk through, if they are few and cheap to find, and replaces the conditions by their
// ids. Parent and configuration are never NULL, so a comparison with them may be inside Not. resolve also evaluates conditions by the
// position of resources (resolveBelow).
func (tx *Tx) resolve(e Expr) (_ Expr, err error) {
	switch x := e.(type) {
	case All:
		// For few rows, the same statement can follow the references.
		if tx.RoundTrips() && slices.ContainsFunc(tx.candidates(listConjuncts(nil, x)), func(c candidate) bool { return c.selective }) {
			defer func(was bool) { tx.skipResolve = was }(tx.skipResolve)
			tx.skipResolve = true
		}
		all, err := tx.resolveEach(x)
		return All(all), err
	case Any:
		either, err := tx.resolveEach(x)
		return Any(slices.DeleteFunc(either, isNeverTrue)), err
	case Not:
		x.Expr, err = tx.resolve(x.Expr)
		return x, err
	case Through:
		return tx.resolveThrough(x)
	case *governedBelow:
		return tx.resolveBelow(x)
	}
	return e, nil
}

func (tx *Tx) resolveEach(list []Expr) ([]Expr, error) {
	resolved := make([]Expr, len(list))
	for i, part := range list {
		var err error
		if resolved[i], err = tx.resolve(part); err != nil {
			return nil, err
		}
	}
	return resolved, nil
}

// maxTargets is the maximum number of referenced resources that are put into a statement by their ids.
const maxTargets = 500

func (tx *Tx) resolveThrough(e Through) (Expr, error) {
	if e.Where == nil || tx.skipResolve {
		return e, nil
	}
	q := Query{From: Resources, Where: e.Where}
	soon, err := tx.isCheap(q)
	if err != nil || !soon {
		return e, err
	}
	ids, err := tx.readTargets(q, !e.Column && tx.isSelective(q))
	switch {
	case err != nil:
		return nil, err
	case len(ids) > maxTargets:
		return e, nil
	case len(ids) == 0:
		return False, nil
	case !e.Column:
		return LinksTo{Targets: ids, Field: e.Ref}, nil
	}
	var either Any
	for _, id := range ids {
		either = append(either, Compare{Field: Field{Kind: ColumnInt, Path: []string{e.Ref}}, Op: "eq", Value: id})
	}
	if len(either) == 1 {
		return either[0], nil
	}
	return either, nil
}

// readTargets returns the ids of the resources that a query selects, at most maxTargets+1. With heads it also caches their heads, because
// the answer shows them and another round trip would cost more.
func (tx *Tx) readTargets(q Query, heads bool) (ids []int64, err error) {
	what := "r.id"
	if heads {
		what = tx.inline.columns("r")
	}
	query, args, err := q.build(tx, what)
	if err != nil {
		return nil, err
	}
	query, args = query+" LIMIT ?", append(args, int64(maxTargets+1))
	if !heads {
		return tx.ids64(query, args...)
	}
	if tx.prefetched == nil {
		tx.prefetched = map[int64]Head{}
	}
	err = tx.conn.each(query, args, func(at row) error {
		h, err := tx.inline.extractInline(at.readHead())
		ids, tx.prefetched[h.ID] = append(ids, h.ID), h
		return err
	})
	return ids, err
}

// isSelective reports whether a query in a snapshot of a database with expensive round trips selects a few rows by name or key.
func (tx *Tx) isSelective(q Query) bool {
	return tx.RoundTrips() && !tx.writing && !tx.latest && slices.ContainsFunc(tx.candidates(listConjuncts(nil, q.Where)), func(
		c candidate) bool {
		by, ok := c.expr.(Compare)
		return c.selective || ok && by.Op == "eq" && by.Field.Kind != ColumnInt
	})
}

// isCheap reports whether a query finds its rows by an index or among few rows.
func (tx *Tx) isCheap(q Query) (bool, error) {
	all := listConjuncts(nil, q.Where)
	if len(tx.candidates(all)) > 0 {
		return true, nil
	}
	rows := int64(0)
	for _, e := range all {
		collections, ok := e.(inCollections)
		for _, name := range collections {
			n, err := tx.readTotal(totalKey{parent: everywhere, collection: name})
			if err != nil {
				return false, err
			}
			rows += n
		}
		if ok && rows <= tx.store.sortLimit {
			return true, nil
		}
	}
	return false, nil
}
