package store

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Governed says which resources a condition holds for by where they lie: what is said at a resource holds for it, and for all that lies
// below it where nothing nearer says something else.
type Governed struct {
	// Own is whether it holds for a resource at which something is said, Below whether it does for what lies below; they have the same keys.
	Own, Below map[int64]bool
	// Configurations are those that the keys lie in, or are, by key; 0 for those that lie in none. No resource ever changes its own.
	Configurations map[int64]int64
	// Collections are those of the keys, by key.
	Collections map[int64]string
	// Around is what the resources that are asked for lie in. Where it is known, what is said is looked for from above, once; else from each
	// resource upwards, which takes longer where there are many.
	Around Surroundings
	// Otherwise is whether it holds where nothing is said, up to the top.
	Otherwise bool
}

// Surroundings says what resources lie in.
type Surroundings struct {
	// Of is the collection that they are all in.
	Of string
	// Collections are those of what they lie in, at any height; none where that is not known.
	Collections []string
	// Leaves: what they lie in right away is of other collections, and lies in resources of those itself.
	Leaves bool
}

// Expr gives the condition: nil where it always holds, Nothing where it never does.
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
		return Nothing
	}
	if len(g.Around.Collections) > 0 {
		return g.fromAbove()
	}
	e := &governed{otherwise: truth(g.Otherwise), own: map[truth]IDs{}, whole: map[truth]IDs{}}
	roots := slices.Sorted(maps.Keys(g.Own))
	deep := map[int64]bool{} // configurations with something said inside them
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

// fromAbove is Expr where what is said is looked for from above.
func (g Governed) fromAbove() Expr {
	e := &governedBelow{own: map[truth]IDs{}, below: map[truth]IDs{}, around: g.Around, otherwise: g.Otherwise}
	var said, all IDs
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
			said = append(said, id)
		}
	}
	e.all, e.deviating = idList(all), said
	e.key = e.all + ":" + idList(said)
	return e
}

// governedBelow is Governed, as it is asked for from above: it holds for its own resources, and for others by what they lie in.
type governedBelow struct {
	// own are the resources for which it holds, and does not, by themselves, below those right below which it does, and does not, where
	// those are not gone through.
	own, below map[truth]IDs
	// all are all resources at which something is said, said those below which something else holds than otherwise.
	all       string
	deviating IDs
	around    Surroundings
	otherwise bool
	// key stands for all and said, from which it follows what is found.
	key string
	// found are those in which something else holds than otherwise, where that is known (Tx.lookBelow).
	resolved *IDs
}

// mostBelow is how many resources are put into a statement by their ids, as those in which something else holds; where there are more they
// are looked for by each statement.
const maxBelow = 2_000

// belowKnown are the resources in which something else holds than otherwise, as they were found: many says that they are too many.
type belowResult struct {
	ids  IDs
	many bool
}

// lookBelow is a condition with what it has to be looked through for, once for all who ask until something changes among the resources that
// it goes through.
func (tx *Tx) resolveBelow(e *governedBelow) (Expr, error) {
	if len(e.deviating) == 0 || tx.writing || tx.latest {
		return e, nil
	}
	cache := tx.store.belowCache(e.around)
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
			known = belowResult{many: true}
		}
		cache.Put(tx, e.key, known)
	}
	if known.many {
		return e, nil
	}
	with := *e
	with.resolved = &known.ids
	return &with, nil
}

// WatchBelow has the store hear of changes of what conditions go through (Governed). It is called before anything is read: on PostgreSQL a
// manager tells others of changes of those collections alone that it watches itself.
func (s *Store) WatchBelow(around Surroundings) {
	if len(around.Collections) > 0 {
		s.belowCache(around)
	}
}

// belowCache gives the cache of what conditions hold for that go through those collections.
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

// conditionsKept is how many conditions it is known of what they hold for, of those that go through the same collections: most often one
// for each user whose rights are in use, and one more for each override of a type.
const maxCachedConditions = 2_000

// walk selects those in which something else holds than otherwise.
func (e *governedBelow) walk(b *builder) {
	b.rows++
	n := strconv.Itoa(b.rows)
	down, at := "down"+n, "d"+n
	b.WriteString("WITH RECURSIVE " + down + " (id) AS (SELECT " + at + ".id FROM resource " + at + " WHERE ")
	e.deviating.sql(b, at)
	b.WriteString(" UNION ALL SELECT " + at + ".id FROM " + down + " JOIN resource " + at + " ON " + at + ".parent = " + down + ".id WHERE ")
	InCollection(e.around.Collections...).sql(b, at)
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
		b.WriteString(truth(e.otherwise).String())
	} else {
		e.writeParentCondition(b, row)
	}
	if branches {
		b.WriteString(" END")
	}
}

// inside is the condition by what a row lies in.
func (e *governedBelow) writeParentCondition(b *builder, row string) {
	parent := row + ".parent"
	if e.around.Leaves { // of which there are many: they are looked at one by one
		b.rows++
		leaf := "p" + strconv.Itoa(b.rows)
		parent = "(SELECT " + leaf + ".parent FROM resource " + leaf + " WHERE " + leaf + ".id = " + row + ".parent)"
	}
	if e.otherwise {
		b.WriteString("NOT ")
	}
	if e.resolved != nil {
		b.among(parent, *e.resolved)
		return
	}
	b.WriteString(parent + " IN (")
	e.walk(b)
	b.WriteByte(')')
}

type truth bool

// governed is Governed, as it is asked for.
type governed struct {
	// own are the resources for which it holds, and does not, by themselves; whole the configurations in which it does, and does not, for
	// all that lies in them; deep those in which that depends. 0 is among the latter for what lies in none.
	own, whole map[truth]IDs
	deep       IDs
	// walked are all at which something is said, holding those below which it holds.
	walked    string
	holding   IDs
	otherwise truth
}

func (t truth) String() string {
	if t {
		return "TRUE"
	}
	return "FALSE"
}

// whenIn writes the branches of a CASE for the numbers in a column for which something holds, and for which it does not.
func (b *builder) whenIn(column string, ids map[truth]IDs) {
	for _, holds := range []truth{false, true} {
		if len(ids[holds]) > 0 {
			b.WriteString(" WHEN ")
			b.among(column, ids[holds])
			b.WriteString(" THEN " + holds.String())
		}
	}
}

func (e *governed) sql(b *builder, row string) {
	b.WriteString("CASE")
	b.whenIn(row+".id", e.own)
	b.whenIn(row+".configuration", e.whole)
	if len(e.deep) == 0 {
		b.WriteString(" ELSE " + e.otherwise.String() + " END")
		return
	}
	b.rows++
	n := strconv.Itoa(b.rows)
	up, at := "up"+n, "u"+n
	b.WriteString(" WHEN " + row + ".configuration NOT IN (" + idList(e.deep) + ") THEN " + e.otherwise.String() +
		" ELSE coalesce((WITH RECURSIVE " + up + " (id, parent) AS (SELECT " + at + ".id, " + at + ".parent FROM resource " + at +
		" WHERE " + at + ".id = " + row + ".parent UNION ALL SELECT " + at + ".id, " + at + ".parent FROM " + up + " JOIN resource " + at +
		" ON " + at + ".id = " + up + ".parent WHERE " + up + ".id NOT IN (" + e.walked + ")) SELECT ")
	e.holding.sql(b, up)
	b.WriteString(" FROM " + up + " WHERE " + up + ".id IN (" + e.walked + ")), " + e.otherwise.String() + ") END")
}

// Same reports whether two conditions are one and the same: Nothing, or one that Governed gave.
func Same(a, b Expr) bool {
	switch g := a.(type) {
	case *governed:
		return b == Expr(g)
	case *governedBelow:
		return b == Expr(g)
	}
	return a == Nothing && b == Nothing
}

// OfResource holds for the rows of a view that show a resource, by its number, for which a condition holds.
type OfResource struct{ Where Expr }

func (e OfResource) sql(b *builder, row string) {
	b.rows++
	of := "o" + strconv.Itoa(b.rows)
	b.WriteString("EXISTS (SELECT 1 FROM resource " + of + " WHERE " + of + ".id = " + row + ".id AND ")
	e.Where.sql(b, of)
	b.WriteByte(')')
}

// Nearest gives the first one of some resources that is met on the way up from a resource, itself included; 0 where none is.
func (tx *Tx) Nearest(from int64, among []int64) (int64, error) {
	found, err := tx.Deciding([]int64{from}, among)
	return found[from], err
}

// Deciding is Nearest for many resources; those that meet none are not in it.
func (tx *Tx) Deciding(from, among []int64) (map[int64]int64, error) {
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

// Above gives the numbers of some resources, and of all that they lie in.
func (tx *Tx) Above(ids []int64) (map[int64]bool, error) {
	above, err := tx.ids64("WITH RECURSIVE up (id, parent) AS (SELECT id, parent FROM resource WHERE id IN (" + cmp.Or(idList(ids), "0") +
		") UNION SELECT r.id, r.parent FROM up JOIN resource r ON r.id = up.parent) SELECT id FROM up")
	found := make(map[int64]bool, len(above))
	for _, id := range above {
		found[id] = true
	}
	return found, err
}

// IDs gives the numbers of those among some resources for which a condition holds.
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
