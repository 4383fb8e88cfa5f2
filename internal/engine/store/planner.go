package store

import (
	"bytes"
	"math"
	"slices"
	"strconv"
)

// This file decides how a list finds its rows, in the same way on both databases. Their own planners see the shape of a statement but not
// its arguments. A selective condition (a key, an address) is always used. Of the other conditions with an index, each is tried: its rows
// are counted up to a bound (Tx.sortBound). The rows of the condition with the fewest matches are read and sorted. If all conditions
// exceed the bound, the rows are read in the requested order and filtered: many matches fill a page quickly, unless all are at the end.

// defaultSortLimit is the number of rows that may always be looked up and sorted. maxSortLimit is that number if a page in order would
// cost more.
const (
	defaultSortLimit = 5_000
	maxSortLimit     = 200_000
)

// access describes how the rows of a query are found.
type access struct {
	// condition is the whole condition. Conditions whose indexes must not be used are hidden from the planner.
	condition Expr
	// sorted is true if the rows come from the index of a condition, so that indexes of the order must not be used. large is true if they
	// are more than a few; then only their ids are sorted before the page is read.
	sorted, large bool
	// driver is the single-valued reference along which the rows are read in the order of their ids; nil if there is none.
	driver *LinksTo
	// selective is true if a condition matches only a few rows. byName is true if it is one name in its index, which usually matches few.
	// byReference is true if the rows are the few that refer to one resource. byWord is true if only the trigram index finds the rows, by
	// words.
	selective, byName, byReference, byWord bool
	// cacheable is true if one plan suits all arguments: the rows are those of a collection, those after a place, or those directly below
	// one resource, and the index has them in their order.
	cacheable bool
	// counted is the condition that finds the rows if it matches few; the statement counts its rows first. It is nil if nothing is
	// counted.
	counted *candidate
}

// candidate is a condition with an index.
type candidate struct {
	// parts are the indexes of the candidate's conditions in the conjunction.
	parts []int
	expr  Expr
	// fragment is the search text in the trigram index, which is used instead of an index of the condition itself. nil means no fragment.
	fragment *Fragment
	// ordered is true if the index returns the rows in the order of their ids. selective is true if it matches only a few rows, so that
	// they need not be counted.
	ordered, selective bool
	// byKey is true if the condition compares keys, whose index does not contain the collection.
	byKey bool
}

// hasStablePlan reports whether the condition is one range of one index of resources alone, so that PostgreSQL has one good plan for it.
func (c candidate) hasStablePlan() bool {
	if c.fragment != nil {
		return false
	}
	switch e := c.expr.(type) {
	case All: // bounds of the span
		return true
	case Any:
		_, ok := e.isRange()
		return ok || !slices.ContainsFunc(e, func(one Expr) bool { return !isName(one) })
	case Compare:
		return e.isRange() || isName(e) || e.Op == "eq" && e.Field.Kind == ColumnInt && e.Field.Path[0] == "parent"
	}
	return false
}

// planAccess decides how to find the rows of a query, whose references must be resolved.
func (tx *Tx) planAccess(q Query) (a access, err error) {
	if isNeverTrue(q.Where) { // neither database tries its indexes
		return access{condition: False}, nil
	}
	a.condition = q.Where
	if q.From != Resources || tx.writing || q.Direct { // an update only reads rows that it knows to be few
		tx.setPlanMode(q.Direct)
		err = tx.planRows(&a, q)
		return a, err
	}
	all := tightenBounds(listConjuncts(nil, q.Where))
	within, single := ofOneCollection(all)
	if !single {
		tx.planEachTime()
		a.condition = lookUpNameEverywhere(all)
		return a, nil
	}
	if limitAround(all, within.(inCollections)[0]) {
		a.condition = All(all)
	}
	found := tx.candidates(all)
	best, done, err := tx.choose(&a, q, all, found, within)
	if err != nil || done {
		return a, err
	}
	if best < 0 && q.Limit == 0 { // if all of many rows are read or counted, all indexes are equal
		return a, nil
	}
	a.sorted = best >= 0
	if best < 0 && len(q.Order) == 0 { // use an index that has the rows in order, if there is one
		best = slices.IndexFunc(found, func(c candidate) bool { return c.ordered })
		if best >= 0 && isLink(found[best].expr) {
			link := found[best].expr.(LinksTo)
			a.driver = &link
		}
	}
	hide := make([]bool, len(all))
	for i, c := range found {
		for _, part := range c.parts {
			hide[part] = i != best
		}
	}
	var where All
	if best >= 0 && found[best].fragment != nil {
		where = append(where, *found[best].fragment)
	}
	for i, e := range all {
		switch {
		case hide[i] || a.sorted && isPlace(e) || best >= 0 && (found[best].byKey || a.byWord) && isCollection(e):
			where = append(where, hidden{e})
		case a.byReference && slices.Contains(found[best].parts, i):
			where = append(where, fewLinks{e.(LinksTo), tx.store.sortLimit})
		case a.driver == nil || !isLink(e):
			where = append(where, e)
		}
	}
	a.condition = where
	return a, nil
}

// choose returns the index in found of the condition to use, or -1 if none is better than the others. It records the kind of access in a.
// done is true if the rows are read as they are, because there is no candidate or its index has them in order. choose also sets how the
// following statements are planned.
func (tx *Tx) choose(a *access, q Query, all []Expr, found []candidate, within Expr) (best int, done bool, err error) {
	best = slices.IndexFunc(found, func(c candidate) bool { return c.selective })
	alone := len(found) == 1 && found[0].ordered && len(q.Order) == 0 && !isLink(found[0].expr)
	a.byName = alone && isName(found[0].expr)
	switch others := slices.DeleteFunc(slices.Clone(all), isCollection); len(others) {
	case 0:
		a.cacheable = true
	case 1:
		a.cacheable = isPlace(others[0]) || alone && found[0].hasStablePlan()
	}
	a.selective = best >= 0
	tx.setPlanMode(a.selective || a.byName) // the index of names has the rows in order, whatever the name
	switch {
	case len(found) == 0 || alone:
		return best, true, nil
	case best >= 0:
	case q.countable && len(found) == 1 && found[0].fragment == nil:
		best, a.counted = 0, &found[0]
		link, ok := found[0].expr.(LinksTo)
		a.byReference = ok && len(link.Targets) == 1
		tx.setPlanMode(a.byReference || found[0].hasStablePlan())
	default:
		// A range is found in its index, whatever its bounds are.
		tx.setPlanMode(!slices.ContainsFunc(found, func(c candidate) bool { return !c.hasStablePlan() }))
		var rows int64
		if best, rows, err = tx.findFewest(found, q, within); err != nil {
			return best, false, err
		}
		if a.large = rows > tx.store.sortLimit; best < 0 {
			tx.planEachTime()
		} else if link, ok := found[best].expr.(LinksTo); ok && !a.large && len(link.Targets) == 1 && tx.RoundTrips() {
			a.byReference = true
			tx.keepPlan()
		} else if f := found[best].fragment; f != nil && !a.large && len(all) == 2 && tx.RoundTrips() && f.hasWord() {
			a.byWord = true
			tx.keepPlan()
		}
	}
	return best, false, nil
}

// keepPlan makes PostgreSQL use generic plans for the following statements: a selective condition is found by the same plan, whatever its
// value. By default PostgreSQL would plan lists again for each limit, which takes ten times as long as running them.
func (tx *Tx) keepPlan() { tx.setPlanMode(true) }

// planEachTime makes PostgreSQL plan the following statements for their arguments, as on a new connection for lists (connect).
func (tx *Tx) planEachTime() { tx.setPlanMode(false) }

// setPlanMode sets how the following statements are planned. It costs no round trip.
func (tx *Tx) setPlanMode(generic bool) {
	if c, ok := tx.conn.(*pgConn); ok && !tx.latest && !tx.writing {
		c.setPlanMode(generic)
	}
}

// lookUpNameEverywhere rewrites conditions on a name to look it up in each collection. It is used if several collections are searched,
// because names are only indexed within their collection.
func lookUpNameEverywhere(all []Expr) Expr {
	where := make(All, len(all))
	for i, e := range all {
		where[i] = e
		if isName(e) {
			where[i] = namedAnywhere{e.(Compare).Value}
		}
	}
	return where
}

// namedAnywhere is true for the resources of any collection with a name.
type namedAnywhere struct{ name any }

func (e namedAnywhere) sql(b *builder, row string) {
	b.WriteString(row + ".id IN (SELECT n.id FROM (SELECT DISTINCT collection FROM total WHERE parent = " + strconv.Itoa(everywhere) +
		") c CROSS JOIN resource n WHERE n.collection = c.collection AND n.name = ")
	b.arg(e.name)
	b.WriteByte(')')
}

// isName reports whether a condition selects one name.
func isName(e Expr) bool {
	c, ok := e.(Compare)
	return ok && c.Op == "eq" && c.Value != nil && c.Field.isNameColumn()
}

// isNameColumn reports whether the field is the name of the row itself.
func (f Field) isNameColumn() bool { return f.Via == "" && f.Kind == ColumnText && f.Path[0] == "name" }

func isCollection(e Expr) bool {
	_, ok := e.(inCollections)
	return ok
}

func isLink(e Expr) bool {
	l, ok := e.(LinksTo)
	return ok && l.Field != "" && len(l.Targets) > 0
}

// sortBound returns how many rows may be looked up for a query. Reading a page in order examines about (rows of the collection) /
// (matches) rows for each row of the page. Looking up the matches is therefore cheaper as long as they are fewer than the root of page
// size times rows.
func (tx *Tx) sortBound(q Query, within Expr) (int64, error) {
	if q.Limit == 0 {
		return max(maxSortLimit, tx.store.sortLimit), nil
	}
	collection, ok := Query{From: Resources, Where: within}.total()
	if !ok {
		return tx.store.sortLimit, nil
	}
	all, err := tx.readTotal(collection)
	if err != nil {
		return 0, err
	}
	root := int64(math.Sqrt(float64(q.Limit+q.Offset) * float64(all)))
	return max(tx.store.sortLimit, min(root, maxSortLimit)), nil
}

// findFewest returns the index of the candidate that matches the fewest rows of a collection, and that number. It returns -1 if all
// exceed the query's bound.
func (tx *Tx) findFewest(found []candidate, q Query, within Expr) (best int, rows int64, err error) {
	known := map[int]int64{}
	for i, c := range found {
		if c.fragment == nil {
			continue
		}
		n, counted, err := tx.countFragment(c.fragment)
		if err != nil || counted && n <= maxKnownMatches { // other conditions would hardly match fewer
			return i, n, err
		}
		if counted {
			known[i] = n
		}
	}
	// Usually one condition matches so few rows that the size of the collection is not needed.
	best, rows, err = tx.findFewestBelow(tx.store.sortLimit, found, known, within)
	if err != nil || best >= 0 {
		return best, rows, err
	}
	bound, err := tx.sortBound(q, within)
	if err != nil || bound <= tx.store.sortLimit {
		return -1, 0, err
	}
	return tx.findFewestBelow(bound, found, known, within)
}

// findFewestBelow is findFewest with a given bound. known contains the number of matches of some candidates, by their indexes in found.
func (tx *Tx) findFewestBelow(bound int64, found []candidate, known map[int]int64, within Expr) (best int, rows int64, err error) {
	b := &builder{dialect: tx.conn.sqlDialect(), layout: tx.store.layout}
	b.WriteString("SELECT ")
	limit := strconv.FormatInt(bound+1, 10)
	counts, into := make([]int64, len(found)), make([]any, len(found))
	for i, c := range found {
		into[i] = &counts[i]
		if i > 0 {
			b.WriteString(", ")
		}
		if n, ok := known[i]; ok {
			b.WriteString("CAST(" + strconv.FormatInt(n, 10) + " AS BIGINT)")
			continue
		}
		b.WriteByte('(')
		c.count(b, within, limit)
		b.WriteByte(')')
	}
	if err := tx.QueryRow(b.String(), b.args...).Scan(into...); err != nil {
		return -1, 0, err
	}
	best = -1
	for i, n := range counts {
		if n <= bound && (best < 0 || n < rows) {
			best, rows = i, n
		}
	}
	return best, rows, nil
}

// count writes a query for the number of rows of a collection that the condition matches at most, up to a limit.
func (c candidate) count(b *builder, within Expr, limit string) {
	b.WriteString("SELECT count(*) AS n FROM (")
	switch l, isLink := c.expr.(LinksTo); {
	case c.fragment != nil:
		b.fragments(b, *c.fragment)
	case isLink:
		b.WriteString("SELECT 1 FROM reference l WHERE ")
		l.link(b, "l")
	case c.byKey: // in all collections, because the index of keys does not contain them and each row would have to be read
		b.WriteString("SELECT 1 FROM resource r WHERE ")
		c.expr.sql(b, "r")
	default:
		b.WriteString("SELECT 1 FROM resource r WHERE ")
		All{within, c.expr}.sql(b, "r")
	}
	b.WriteString(" LIMIT " + limit + ") few")
}

// listConjuncts returns the conditions of a conjunction as a list.
func listConjuncts(into []Expr, e Expr) []Expr {
	switch x := e.(type) {
	case nil:
	case All:
		for _, part := range x {
			into = listConjuncts(into, part)
		}
	case Any:
		if len(x) == 1 { // a single alternative is a plain condition
			return listConjuncts(into, x[0])
		}
		into = append(into, e)
	default:
		into = append(into, e)
	}
	return into
}

// tightenBounds keeps only the highest lower bound and the lowest upper bound of the span's low end: SQLite uses one of each, but not the
// best one.
func tightenBounds(all []Expr) (left []Expr) {
	var bounds [2]*Compare
	for _, e := range all {
		c, ok := e.(Compare)
		key, isKey := c.Value.([]byte)
		if !ok || !isKey || c.Field.Kind != ColumnSpan || c.Field.Path[0] != "low" {
			left = append(left, e)
			continue
		}
		side, better := 0, 1
		switch c.Op {
		case "ge", "gt":
		case "le", "lt":
			side, better = 1, -1
		default:
			left = append(left, e)
			continue
		}
		strict := func(op string) bool { return op == "gt" || op == "lt" }
		if bounds[side] == nil {
			bounds[side] = &c
			continue
		}
		was, _ := bounds[side].Value.([]byte)
		if way := bytes.Compare(key, was); way == better || way == 0 && strict(c.Op) {
			bounds[side] = &c
		}
	}
	for _, b := range bounds {
		if b != nil {
			left = append(left, *b)
		}
	}
	return left
}

// ofOneCollection returns the condition that selects a single collection.
func ofOneCollection(all []Expr) (Expr, bool) {
	for _, e := range all {
		if c, ok := e.(inCollections); ok && len(c) == 1 {
			return e, true
		}
	}
	return nil, false
}

// candidates returns those of the conditions that have an index. All bounds of the span are one candidate.
func (tx *Tx) candidates(all []Expr) (found []candidate) {
	bounds, collection := -1, ""
	if within, ok := ofOneCollection(all); ok && tx.store.trigrams {
		collection = within.(inCollections)[0]
	}
	for i, e := range all {
		switch x := e.(type) {
		case Compare:
			fragment, narrowed := x.fragment(collection)
			fragment.common = tx.store.loadCommonTrigrams()
			switch {
			case collection != "" && narrowed && !x.isRange():
				found = append(found, candidate{parts: []int{i}, expr: e, fragment: &fragment})
			case !x.Field.isIndexed() || x.Value == nil:
			case x.Op == "eq":
				found = append(found, candidate{parts: []int{i}, expr: e, ordered: !x.Field.isKey(), selective: x.Field.isSelective()})
			case x.isRange():
				found = append(found, candidate{parts: []int{i}, expr: e, byKey: x.Field.isKey()})
			case x.Field.Kind == ColumnSpan && x.Field.Path[0] == "low" && x.Op != "ne":
				if bounds < 0 {
					bounds = len(found)
					found = append(found, candidate{expr: All{}})
				}
				c := &found[bounds]
				c.parts, c.expr = append(c.parts, i), append(c.expr.(All), e)
			}
		case Any:
			if key, ok := x.isRange(); ok {
				found = append(found, candidate{parts: []int{i}, expr: e, byKey: key})
			}
			if fields, ok := x.equalityFields(); ok {
				found = append(found, candidate{parts: []int{i}, expr: e,
					selective: !slices.ContainsFunc(fields, func(f Field) bool { return !f.isSelective() }),
					byKey:     !slices.ContainsFunc(fields, func(f Field) bool { return !f.isKey() })})
			}
		case LinksTo:
			if isLink(e) {
				found = append(found, candidate{parts: []int{i}, expr: e, ordered: len(x.Targets) == 1})
			}
		case IDs, Around:
			found = append(found, candidate{parts: []int{i}, expr: e, selective: true})
		}
	}
	return found
}

// isIndexed reports whether the field has an index, within a collection.
func (f Field) isIndexed() bool {
	switch {
	case f.Via != "":
		return false
	case f.Kind == ColumnID || f.Indexed:
		return true
	case f.Kind == ColumnText:
		return f.Path[0] == "name" || f.Path[0] == "key"
	case f.Kind == ColumnInt:
		return f.Path[0] == "parent" || f.Path[0] == "configuration"
	}
	return f.Kind == ColumnSpan && f.Path[0] == "low"
}

// isSelective reports whether a value of the field belongs to one resource, or to a few, in each scope.
func (f Field) isSelective() bool {
	return f.Kind == ColumnID || f.Kind == ColumnSpan || f.isKey()
}

// isKey reports whether the field is the key. In its index the rows of a configuration are adjacent.
func (f Field) isKey() bool { return f.Kind == ColumnText && f.Path[0] == "key" }
