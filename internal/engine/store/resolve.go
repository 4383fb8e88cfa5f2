package store

import "slices"

// resolve finds the resources that conditions go through, where they are few and soon found, so that what refers to them is found
// by them. Parent and configuration are never NULL, so that a comparison with them may stand below Not. Of conditions by where
// something lies it finds where they hold (lookBelow).
func (tx *Tx) resolve(e Expr) (_ Expr, err error) {
	switch x := e.(type) {
	case All:
		// Of few rows the same statement sees where they lead.
		if found := tx.candidates(conjuncts(nil, x)); tx.RoundTrips() && slices.ContainsFunc(found, func(c candidate) bool { return c.selective }) {
			defer func(was bool) { tx.skipResolve = was }(tx.skipResolve)
			tx.skipResolve = true
		}
		all, err := tx.resolveEach(x)
		return All(all), err
	case Any:
		either, err := tx.resolveEach(x)
		return Any(either), err
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

// mostTargets is how many resources that are referred to are put into a statement by their ids.
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
		return Nothing, nil
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

// targets gives the ids of what a query selects, one more than mostTargets at most. With heads it remembers what an answer shows of
// them, for what refers to them shows them: a round trip to ask for that costs more.
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

// namesFew reports whether a query of a snapshot, where statements cost round trips, names what it selects.
func (tx *Tx) isSelective(q Query) bool {
	return tx.RoundTrips() && !tx.writing && !tx.latest && slices.ContainsFunc(tx.candidates(conjuncts(nil, q.Where)), func(c candidate) bool {
		by, ok := c.expr.(Compare)
		return c.selective || ok && by.Op == "eq" && by.Field.Kind != ColumnInt
	})
}

// soonFound reports whether what a query selects is found by an index, or among few.
func (tx *Tx) isCheap(q Query) (bool, error) {
	all := conjuncts(nil, q.Where)
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
