package store

import (
	"bytes"
	"math"
	"slices"
	"strconv"
)

// How a list is found is decided here, the same way on both databases, and not left to their planners, which see the shape of a
// statement and not what it is asked for. A condition that names one place (a key, an address) is used as it is. Of the other
// conditions that have an index each is tried: how many rows it lets through, up to a bound (Query.bound). What is found by the one
// that lets the fewest through is sorted; where all let more through, the rows are taken in the order that was asked for, and
// those left out that do not meet the conditions: of so many, a page is soon full, unless they all lie at the other end.

// fewRows is how many rows may always be looked up and sorted, mostRows how many where a page by the order would cost more.
const (
	defaultSortLimit = 5_000
	maxSortLimit     = 200_000
)

// access is how the rows of a query are found.
type access struct {
	// where is the whole condition, with those conditions hidden from the planner that it must not go by.
	where Expr
	// sorted says that the rows come out of an index of a condition: those of the order must not be used. many says that they are
	// more than a few: they are sorted by their ids alone, and read when they are known.
	sorted, large bool
	// driver, where there is one, is the single reference that the rows are read along, in the order of their ids.
	driver *LinksTo
	// sharp says that a condition names one place: there are few rows. named says that it is one name in its index, of which there are
	// mostly few, linked that the rows are the few that refer to one resource, worded that the index of trigrams finds them by words, and
	// nothing else does.
	selective, byName, byReference, byWord bool
	// steady says that one plan is as good as any: the rows are those of a collection, those of it behind a place, or those right below one
	// resource, whose index has them in their order.
	cacheable bool
	// counted, where there is one, is the condition by which the rows are found if it lets few through: the statement counts them first.
	counted *candidate
}

// candidate is a condition that has an index.
type candidate struct {
	// parts are the members of the conjunction that it is.
	parts []int
	expr  Expr
	// fragment, where there is one, is what has the index: the condition alone has none.
	fragment *Fragment
	// ordered says that the index gives the rows in the order of their ids; sharp, that it names one place, and is not tried.
	ordered, selective bool
	// key says that it asks for some keys, whose index knows no collections.
	byKey bool
}

// plain reports whether the condition is a part of one index, of resources alone: PostgreSQL has one good plan for it.
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

// find decides how to find what a query selects, whose references are resolved.
func (tx *Tx) planAccess(q Query) (a access, err error) {
	a.where = q.Where
	if q.From != Resources || tx.writing || q.Direct { // a rule asks for what it knows to be few
		tx.setPlanMode(q.Direct)
		return a, nil
	}
	all := tightenBounds(conjuncts(nil, q.Where))
	within, single := ofOneCollection(all)
	if !single {
		tx.planEachTime()
		a.where = lookUpNameEverywhere(all)
		return a, nil
	}
	if limitAround(all, within.(inCollections)[0]) {
		a.where = All(all)
	}
	found := tx.candidates(all)
	best, done, err := tx.choose(&a, q, all, found, within)
	if err != nil || done {
		return a, err
	}
	if best < 0 && q.Limit == 0 { // all of many are wanted, or counted: no index is worse than another
		return a, nil
	}
	a.sorted = best >= 0
	if best < 0 && len(q.Order) == 0 { // along one that has them in order, if any
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
	a.where = where
	return a, nil
}

// choose gives the condition, of those that were found to have an index, by which rows are to be found, -1 where none is better than
// others, and notes what that is; done says that the index of the only one has the rows as they are wanted. It says how the statements
// that follow are planned.
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
	tx.setPlanMode(a.selective || a.byName) // the index of names has the rows in their order, whatever the name
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
		// Whatever its ends are, a range is found in its index.
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

// keepPlan lets PostgreSQL plan the statements that follow once for all: what names one place is found there whatever it names. (Left to
// itself it plans lists anew for their limits, which takes ten times as long as they do.)
// planAgain has them planned for what they ask, as on a new connection for lists (connect). They cost no round trip.
func (tx *Tx) keepPlan() { tx.setPlanMode(true) }

func (tx *Tx) planEachTime() { tx.setPlanMode(false) }

func (tx *Tx) setPlanMode(kept bool) {
	if c, ok := tx.conn.(*pgConn); ok && !tx.latest && !tx.writing {
		c.setPlanMode(kept)
	}
}

// named lets a name be looked up in each collection, where resources of several are asked for: there is no index of names alone.
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

// namedAnywhere holds for the resources of any collection with a name.
type namedAnywhere struct{ name any }

func (e namedAnywhere) sql(b *builder, row string) {
	b.WriteString(row + ".id IN (SELECT n.id FROM (SELECT DISTINCT collection FROM total WHERE parent = " + strconv.Itoa(everywhere) +
		") c CROSS JOIN resource n WHERE n.collection = c.collection AND n.name = ")
	b.arg(e.name)
	b.WriteByte(')')
}

// isName reports whether a condition asks for one name.
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

// bound is how many rows may be looked up for a query. By the order, a page takes about as many rows of the collection as go, in
// it, on one row that is let through: so what is looked up costs less while it is below the root of that product.
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

// fewest finds the condition that lets the fewest rows of a collection through, and how many; -1 where all let more through than
// the query's bound.
func (tx *Tx) findFewest(found []candidate, q Query, within Expr) (best int, rows int64, err error) {
	known := map[int]int64{}
	for i, c := range found {
		if c.fragment == nil {
			continue
		}
		n, counted, err := tx.countFragment(c.fragment)
		if err != nil || counted && n <= maxKnownMatches { // others would not let much fewer through
			return i, n, err
		}
		if counted {
			known[i] = n
		}
	}
	// Most often one lets so few through that nobody has to know how large the collection is.
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

// fewestBelow is fewest with that bound. known has how many rows some of the conditions let through, by their places in found.
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

// count selects how many rows of a collection a condition lets through, up to a limit.
func (c candidate) count(b *builder, within Expr, limit string) {
	b.WriteString("SELECT count(*) AS n FROM (")
	switch l, isLink := c.expr.(LinksTo); {
	case c.fragment != nil:
		b.fragments(b, *c.fragment)
	case isLink:
		b.WriteString("SELECT 1 FROM reference l WHERE ")
		l.link(b, "l")
	case c.byKey:
		b.WriteString("SELECT 1 FROM resource r WHERE ")
		All{hidden{within}, c.expr}.sql(b, "r")
	default:
		b.WriteString("SELECT 1 FROM resource r WHERE ")
		All{within, c.expr}.sql(b, "r")
	}
	b.WriteString(" LIMIT " + limit + ") few")
}

// conjuncts gives the conditions that must all hold.
func conjuncts(into []Expr, e Expr) []Expr {
	switch x := e.(type) {
	case nil:
	case All:
		for _, part := range x {
			into = conjuncts(into, part)
		}
	case Any:
		if len(x) == 1 { // one alternative alone is a condition
			return conjuncts(into, x[0])
		}
		into = append(into, e)
	default:
		into = append(into, e)
	}
	return into
}

// tightened leaves, of the bounds of the span's low end, the highest lower one and the lowest upper one: SQLite uses one of each, and
// not the best.
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

// ofOneCollection gives the condition that names the only collection.
func ofOneCollection(all []Expr) (Expr, bool) {
	for _, e := range all {
		if c, ok := e.(inCollections); ok && len(c) == 1 {
			return e, true
		}
	}
	return nil, false
}

// candidates gives those of the conditions that have an index. Bounds of the span are one together.
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
				found = append(found, candidate{parts: []int{i}, expr: e, selective: !slices.ContainsFunc(fields, func(f Field) bool { return !f.isSelective() }),
					byKey: !slices.ContainsFunc(fields, func(f Field) bool { return !f.isKey() })})
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

// indexed reports whether there is an index of the field, within a collection.
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

// sharp reports whether a value of the field is that of one resource in each scope, or of a few.
func (f Field) isSelective() bool {
	return f.Kind == ColumnID || f.Kind == ColumnSpan || f.isKey()
}

// isKey reports whether the field is the key, whose index has a configuration's rows side by side.
func (f Field) isKey() bool { return f.Kind == ColumnText && f.Path[0] == "key" }

// ranged reports whether each of the alternatives is a range in an index, and whether those are of keys.
func (e Any) isRange() (key, ok bool) {
	key = true
	for _, one := range e {
		c, is := one.(Compare)
		if !is || !c.isRange() {
			return false, false
		}
		key = key && c.Field.isKey()
	}
	return key, len(e) > 0
}

// oneOf gives, where each of the alternatives asks for a value of a field with an index, those fields.
func (e Any) equalityFields() (fields []Field, ok bool) {
	for _, one := range e {
		all, ok := one.(All) // an address with its family, the two ends of a range
		if !ok {
			all = All{one}
		}
		at := slices.IndexFunc(all, func(part Expr) bool {
			c, ok := part.(Compare)
			return ok && c.Field.isIndexed() && c.Op == "eq" && c.Value != nil
		})
		if at < 0 {
			return nil, false
		}
		fields = append(fields, all[at].(Compare).Field)
	}
	return fields, len(fields) > 0
}

// hidden is a condition that no index is used for.
type hidden struct{ Expr }

func (e hidden) sql(b *builder, row string) {
	was := b.hide
	b.hide = true
	e.Expr.sql(b, row)
	b.hide = was
}
