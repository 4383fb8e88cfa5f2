package store

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Governed decides by the position of a resource in the tree whether a condition holds. A rule at a resource applies to it and to all
// resources below it, up to a resource with a rule of its own.
type Governed struct {
	// Own is the value for a resource with a rule. Below is the value for the resources below it. Both have the same keys.
	Own, Below map[int64]bool
	// Configurations are the configurations that the keys belong to, or are, by key. It is 0 for keys outside of all configurations. The
	// configuration of a resource never changes.
	Configurations map[int64]int64
	// Collections are the collections of the keys, by key.
	Collections map[int64]string
	// Around describes the position of the resources that are searched. If it is known, the rules are evaluated from above, once;
	// otherwise from each resource upwards, which takes longer for many resources.
	Around Surroundings
	// Otherwise is the value where no resource up to the top has a rule.
	Otherwise bool
}

// Surroundings describes the position of resources.
type Surroundings struct {
	// Of is the collection of all of the resources.
	Of string
	// Collections are the collections of the resources above them, at any height. It is empty if they are not known.
	Collections []string
	// Leaves is true if the direct parents are in other collections than Collections, and their parents are in Collections.
	Leaves bool
}

// Expr returns the condition. It is nil if the condition always holds, and Nothing if it never does.
func (g Governed) Expr() Expr {
	same := func(m map[int64]bool) bool {
		for _, holds := range m {
			if holds != g.Otherwise {
				return false
			}
		}
		return true
	}
	switch {
	case !same(g.Own) || !same(g.Below):
	case g.Otherwise:
		return nil
	default:
		return False
	}
	if len(g.Around.Collections) > 0 {
		return g.fromAbove()
	}
	e := &governed{defaultValue: truth(g.Otherwise), own: map[truth]IDs{}, whole: map[truth]IDs{}}
	roots := slices.Sorted(maps.Keys(g.Own))
	deep := map[int64]bool{} // configurations that contain resources with rules
	for _, id := range roots {
		if g.Configurations[id] != id {
			deep[g.Configurations[id]] = true
		}
	}
	var walked, holding []int64
	for _, id := range roots {
		e.own[truth(g.Own[id])] = append(e.own[truth(g.Own[id])], id)
		walked = append(walked, id)
		if g.Below[id] {
			holding = append(holding, id)
		}
		if g.Configurations[id] == id && !deep[id] {
			e.whole[truth(g.Below[id])] = append(e.whole[truth(g.Below[id])], id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(deep)) {
		e.deep = append(e.deep, id)
	}
	e.walked, e.holding = idList(walked), IDs(holding)
	return e
}

// fromAbove is Expr for rules that are evaluated from above.
func (g Governed) fromAbove() Expr {
	e := &governedBelow{own: map[truth]IDs{}, below: map[truth]IDs{}, surroundings: g.Around, defaultValue: g.Otherwise}
	var deviating, all IDs
	for _, id := range slices.Sorted(maps.Keys(g.Own)) {
		all = append(all, id)
		own, below := truth(g.Own[id]), truth(g.Below[id])
		switch in := g.Collections[id]; {
		case in == g.Around.Of:
			e.own[own] = append(e.own[own], id)
		case g.Around.Leaves && !slices.Contains(g.Around.Collections, in):
			e.below[below] = append(e.below[below], id)
		}
		if g.Below[id] != g.Otherwise {
			deviating = append(deviating, id)
		}
	}
	e.all, e.deviating = idList(all), deviating
	e.key = e.all + ":" + idList(deviating)
	return e
}

// governedBelow is the condition of Governed, evaluated from above: by the rules of the rows themselves, and for other rows by what
// contains them.
type governedBelow struct {
	// own are the ids of rows with rules, by value. below are the ids of parents with rules, by the value for their children, as far as
	// the walk does not include these parents.
	own, below map[truth]IDs
	// all are the ids of all resources with rules, as a list. deviating are those whose value of Below differs from defaultValue.
	all          string
	deviating    IDs
	surroundings Surroundings
	defaultValue bool
	// key identifies all and deviating, which determine resolved.
	key string
	// resolved are the resources whose content has another value than defaultValue, if they are known (Tx.resolveBelow).
	resolved *IDs
}

// maxBelow is the maximum number of deviating resources that are put into a statement by their ids. If there are more, each statement
// walks to them.
const maxBelow = 2_000

// belowResult is the result of the walk: the resources whose content has another value than defaultValue. exceedsMax is true if there are
// more than maxBelow.
type belowResult struct {
	ids        IDs
	exceedsMax bool
}

// resolveBelow returns the condition with its walk evaluated. The result is cached until a resource of the walked collections changes.
func (tx *Tx) resolveBelow(e *governedBelow) (Expr, error) {
	if len(e.deviating) == 0 || tx.writing || tx.latest {
		return e, nil
	}
	cache := tx.store.belowCache(e.surroundings)
	known, ok := cache.Get(tx, e.key)
	if !ok {
		b := &builder{dialect: tx.conn.sqlDialect(), layout: tx.store.layout}
		e.walk(b)
		b.WriteString(" LIMIT " + strconv.Itoa(maxBelow+1))
		ids, err := tx.ids64(b.String(), b.args...)
		if err != nil {
			return nil, err
		}
		if known = (belowResult{ids: ids}); len(ids) > maxBelow {
			known = belowResult{exceedsMax: true}
		}
		cache.Put(tx, e.key, known)
	}
	if known.exceedsMax {
		return e, nil
	}
	with := *e
	with.resolved = &known.ids
	return &with, nil
}

// WatchBelow registers the collections that conditions walk through (Governed), so that changes of them invalidate the cache. It must be
// called before anything is read: on PostgreSQL a manager notifies others only of changes of collections that it watches itself.
func (s *Store) WatchBelow(around Surroundings) {
	if len(around.Collections) > 0 {
		s.belowCache(around)
	}
}

// belowCache returns the cache of the results of conditions that walk through the given collections.
func (s *Store) belowCache(around Surroundings) *Cache[string, belowResult] {
	name := strings.Join(around.Collections, " ")
	s.belowMu.Lock()
	defer s.belowMu.Unlock()
	if s.belowCaches == nil {
		s.belowCaches = map[string]*Cache[string, belowResult]{}
	}
	if s.belowCaches[name] == nil {
		s.belowCaches[name] = NewCache[string](s, CacheOptions[belowResult]{Topics: around.Collections, Max: maxCachedConditions})
	}
	return s.belowCaches[name]
}

// maxCachedConditions is the maximum number of cached results of conditions that walk through the same collections. There is usually one
// for each active user, and one more for each override of a type.
const maxCachedConditions = 2_000

// walk writes the query for the resources whose content has another value than defaultValue.
func (e *governedBelow) walk(b *builder) {
	b.rows++
	n := strconv.Itoa(b.rows)
	down, at := "down"+n, "d"+n
	b.WriteString("WITH RECURSIVE " + down + " (id) AS (SELECT " + at + ".id FROM resource " + at + " WHERE ")
	e.deviating.sql(b, at)
	b.WriteString(" UNION ALL SELECT " + at + ".id FROM " + down + " JOIN resource " + at + " ON " + at + ".parent = " + down + ".id WHERE ")
	InCollection(e.surroundings.Collections...).sql(b, at)
	b.WriteString(" AND " + at + ".id NOT IN (" + e.all + ")) SELECT id FROM " + down)
}

func (e *governedBelow) sql(b *builder, row string) {
	branches := len(e.own)+len(e.below) > 0
	if branches {
		b.WriteString("CASE")
		b.whenIn(row+".id", e.own)
		b.whenIn(row+".parent", e.below)
		b.WriteString(" ELSE ")
	}
	if len(e.deviating) == 0 {
		b.WriteString(truth(e.defaultValue).String())
	} else {
		e.writeParentCondition(b, row)
	}
	if branches {
		b.WriteString(" END")
	}
}

// writeParentCondition writes the condition on the resources that contain a row.
func (e *governedBelow) writeParentCondition(b *builder, row string) {
	parent := row + ".parent"
	if e.surroundings.Leaves { // there are many of these, so they are looked up one by one
		b.rows++
		leaf := "p" + strconv.Itoa(b.rows)
		parent = "(SELECT " + leaf + ".parent FROM resource " + leaf + " WHERE " + leaf + ".id = " + row + ".parent)"
	}
	if e.defaultValue {
		b.WriteString("NOT ")
	}
	if e.resolved != nil {
		b.writeAmong(parent, *e.resolved)
		return
	}
	b.WriteString(parent + " IN (")
	e.walk(b)
	b.WriteByte(')')
}

// truth is a boolean that is written as SQL.
type truth bool

// governed is the condition of Governed, evaluated from each row upwards.
type governed struct {
	// own are the ids of rows with rules, by value. whole are configurations in which all resources without a rule have one value, by
	// value. In the configurations of deep, the value depends on the position. The id 0 stands for resources outside of configurations.
	own, whole map[truth]IDs
	deep       IDs
	// walked are the ids of all resources with rules, as a list. holding are those whose value of Below is true.
	walked       string
	holding      IDs
	defaultValue truth
}

func (t truth) String() string {
	if t {
		return "TRUE"
	}
	return "FALSE"
}

// whenIn writes branches of a CASE for the numbers in a column, by the value of the condition.
func (b *builder) whenIn(column string, ids map[truth]IDs) {
	for _, holds := range []truth{false, true} {
		if len(ids[holds]) > 0 {
			b.WriteString(" WHEN ")
			b.writeAmong(column, ids[holds])
			b.WriteString(" THEN " + holds.String())
		}
	}
}

func (e *governed) sql(b *builder, row string) {
	b.WriteString("CASE")
	b.whenIn(row+".id", e.own)
	b.whenIn(row+".configuration", e.whole)
	if len(e.deep) == 0 {
		b.WriteString(" ELSE " + e.defaultValue.String() + " END")
		return
	}
	b.rows++
	n := strconv.Itoa(b.rows)
	up, at := "up"+n, "u"+n
	b.WriteString(" WHEN " + row + ".configuration NOT IN (" + idList(e.deep) + ") THEN " + e.defaultValue.String() +
		" ELSE coalesce((WITH RECURSIVE " + up + " (id, parent) AS (SELECT " + at + ".id, " + at + ".parent FROM resource " + at +
		" WHERE " + at + ".id = " + row + ".parent UNION ALL SELECT " + at + ".id, " + at + ".parent FROM " + up + " JOIN resource " + at +
		" ON " + at + ".id = " + up + ".parent WHERE " + up + ".id NOT IN (" + e.walked + ")) SELECT ")
	e.holding.sql(b, up)
	b.WriteString(" FROM " + up + " WHERE " + up + ".id IN (" + e.walked + ")), " + e.defaultValue.String() + ") END")
}

// EqualConditions reports whether two conditions are the same one: Nothing, or the same result of Governed.Expr.
func EqualConditions(a, b Expr) bool {
	switch g := a.(type) {
	case *governed:
		return b == Expr(g)
	case *governedBelow:
		return b == Expr(g)
	}
	return a == False && b == False
}

// ResourceCondition is true for the rows of a view that have the id of a resource which meets a condition.
type ResourceCondition struct{ Where Expr }

func (e ResourceCondition) sql(b *builder, row string) {
	b.rows++
	of := "o" + strconv.Itoa(b.rows)
	b.WriteString("EXISTS (SELECT 1 FROM resource " + of + " WHERE " + of + ".id = " + row + ".id AND ")
	e.Where.sql(b, of)
	b.WriteByte(')')
}

// FindNearest returns the first of the given resources on the way up from a resource, including that resource itself. It returns 0 if there
// is none.
func (tx *Tx) FindNearest(from int64, among []int64) (int64, error) {
	found, err := tx.FindNearestOfEach([]int64{from}, among)
	return found[from], err
}

// FindNearestOfEach is Nearest for many resources. The result lacks resources without one.
func (tx *Tx) FindNearestOfEach(from, among []int64) (map[int64]int64, error) {
	found := map[int64]int64{}
	if len(among) == 0 || len(from) == 0 {
		return found, nil
	}
	list := idList(among)
	return found, tx.Each(func(scan func(...any) error) error {
		var one, at int64
		err := scan(&one, &at)
		found[one] = at
		return err
	}, "WITH RECURSIVE up (one, id, parent) AS (SELECT id, id, parent FROM resource WHERE id IN ("+idList(from)+") UNION ALL "+
		"SELECT up.one, r.id, r.parent FROM up JOIN resource r ON r.id = up.parent WHERE up.id NOT IN ("+list+
		")) SELECT one, id FROM up WHERE id IN ("+list+")")
}

// ListAncestors returns the ids of the given resources and of all resources above them.
func (tx *Tx) ListAncestors(ids []int64) (map[int64]bool, error) {
	above, err := tx.ids64("WITH RECURSIVE up (id, parent) AS (SELECT id, parent FROM resource WHERE id IN (" + cmp.Or(idList(ids), "0") +
		") UNION SELECT r.id, r.parent FROM up JOIN resource r ON r.id = up.parent) SELECT id FROM up")
	found := make(map[int64]bool, len(above))
	for _, id := range above {
		found[id] = true
	}
	return found, err
}

// IDs returns those of the given ids whose resources meet a condition.
func (tx *Tx) IDs(of []int64, where Expr) (map[int64]bool, error) {
	query, args, err := Query{From: Resources, Where: All{IDs(of), where}}.build(tx, "r.id")
	if err != nil {
		return nil, err
	}
	ids, err := tx.ids64(query, args...)
	found := make(map[int64]bool, len(ids))
	for _, id := range ids {
		found[id] = true
	}
	return found, err
}
