package store

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"portolan/internal/testkit/pgtest"
)

// accessLayout has scopes, things with an index, and space.
func accessLayout() *Layout {
	return &Layout{Scopes: "scopes", Spaced: []Spaced{{"blocks", []string{"scopes", "blocks"}}},
		Indexes: []Index{{Collection: "things", Field: "code"}}}
}

// openAccess opens an empty database with that layout until the test ends.
func openAccess(t *testing.T, database string) *Store {
	t.Helper()
	o := Options{Dir: t.TempDir(), Exclusive: true, Layout: accessLayout()}
	if database == "PostgreSQL" {
		o.Database = pgtest.URL(t)
	}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// fillAccess inserts two scopes and 1,400 things. Most of them are in one scope and refer to one target.
func fillAccess(t *testing.T, s *Store) (scopes, targets []int64) {
	t.Helper()
	s.sortLimit = 1_000
	if err := s.Update(t.Context(), Author{}, func(tx *Tx) error {
		for i := range 2 {
			scope := &Resource{Collection: "scopes", Type: "Scope", Name: fmt.Sprintf("scope %d", i), Body: []byte("{}")}
			target := &Resource{Collection: "targets", Type: "Target", Name: fmt.Sprintf("target %d", i), Body: []byte("{}")}
			for _, r := range []*Resource{scope, target} {
				if err := tx.Insert(r); err != nil {
					return err
				}
			}
			scopes, targets = append(scopes, scope.ID), append(targets, target.ID)
		}
		var rows []*Resource
		random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the test must be reproducible
		most := func(of []int64) int64 { return of[min(1, random.IntN(50)/49)] }
		for i := range 1_400 {
			r := &Resource{Collection: "things", Type: "Thing", Parent: most(scopes),
				Name: []string{"", "a", "b", "c d", "ü\U0010ffff\ue000"}[random.IntN(5)],
				Key:  fmt.Sprintf("key %d", random.IntN(600)), Refs: []Ref{{"target", most(targets)}},
				Body: fmt.Appendf(nil, `{"code":"%d","size":%d}`, random.IntN(1800), random.IntN(10))}
			r.Configuration = r.Parent
			if random.IntN(3) > 0 {
				a := netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}) //nolint:gosec // the bytes of a number
				r.Low, r.High = AddrKey(a), AddrKey(a)
			}
			rows = append(rows, r)
			if i%3 == 0 { // a name without space, and possibly without a key
				named := *r
				named.Collection, named.Low, named.High = "names", nil, nil
				if random.IntN(4) == 0 {
					named.Key = ""
				}
				rows = append(rows, &named)
			}
		}
		if err := tx.InsertMany(rows); err != nil {
			return err
		}
		return tx.Write("ANALYZE")
	}); err != nil {
		t.Fatal(err)
	}
	return scopes, targets
}

// TestAccessDoesNotChangeResults checks that the result of a list does not depend on the access: each combination of condition, order and
// page returns the same as without a choice.
func TestAccessDoesNotChangeResults(t *testing.T) {
	for _, name := range []string{"SQLite", "PostgreSQL"} {
		t.Run(name, func(t *testing.T) {
			s := openAccess(t, name)
			scopes, targets := fillAccess(t, s)
			random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // the test must be reproducible
			for range 80 {
				q := randomQuery(random, scopes, targets)
				plain := q
				plain.Where = Any{q.Where} // hides the conjunction from the planner
				want, got := idsOf(t, s, plain), idsOf(t, s, q)
				if !slices.Equal(want, got) {
					t.Fatalf("%+v returned %d, without a choice %d:\n%v\n%v", q, len(got), len(want), got, want)
				}
				if behind, ok := behindOf(t, s, q, want); ok && !slices.Equal(behind, want[1+len(want)/3:]) {
					t.Fatalf("%+v after row %d returned\n%v, want\n%v", q, len(want)/3, behind, want[1+len(want)/3:])
				}
			}
		})
	}
}

func idsOf(t *testing.T, s *Store, q Query) (ids []int64) {
	t.Helper()
	if err := s.View(t.Context(), func(tx *Tx) error {
		n, err := tx.Count(q)
		if err != nil {
			return err
		}
		ids = append(ids, n)
		return tx.List(q, func(r *Resource) error {
			ids = append(ids, r.ID)
			return nil
		})
	}); err != nil {
		t.Fatal(err)
	}
	return ids
}

// behindOf returns the ids of a list that continues after one of its rows, up to the end of the original list. It returns false if the
// list cannot continue after a row.
func behindOf(t *testing.T, s *Store, q Query, list []int64) (ids []int64, ok bool) {
	t.Helper()
	at := len(list) / 3 // the first element is the total
	if at == 0 {
		return nil, false
	}
	if err := s.View(t.Context(), func(tx *Tx) error {
		var place Place
		var err error
		row, err := tx.Get(list[at])
		if err != nil {
			return err
		}
		if place, ok, err = q.PlaceOf(tx, row.ID, row.Name, row.Low); err != nil || !ok {
			return err
		}
		q.After, q.Offset, q.Limit = &place, 0, int64(len(list)-1-at)
		return tx.List(q, func(r *Resource) error {
			ids = append(ids, r.ID)
			return nil
		})
	}); err != nil {
		t.Fatal(err)
	}
	return ids, ok
}

func randomQuery(random *rand.Rand, scopes, targets []int64) Query {
	text := func(column string) Field { return Field{Kind: ColumnText, Path: []string{column}} }
	low := Field{Kind: ColumnSpan, Path: []string{"low"}}
	code, size := Field{Kind: Text, Path: []string{"code"}, Indexed: true}, Field{Kind: Number, Path: []string{"size"}}
	at := func() []byte {
		return AddrKey(netip.AddrFrom4([4]byte{10, 0, byte(random.IntN(6)), byte(random.IntN(256))})) //nolint:gosec // the bytes of a number
	}
	from := at()
	conditions := []Expr{
		Compare{text("name"), "startsWith", []string{"a", "c", "c ", "ü\U0010ffff"}[random.IntN(4)]}, Compare{code, "startsWith", "17"},
		Compare{text("name"), "eq", "a"}, Compare{text("name"), "ne", "a"}, Compare{text("name"), "eq", nil},
		Compare{text("key"), "eq", fmt.Sprintf("key %d", random.IntN(600))}, Compare{low, "eq", from},
		All{Compare{low, "ge", from}, Compare{low, "le", at()}}, Compare{code, "eq", fmt.Sprint(random.IntN(1800))},
		Any{Compare{code, "eq", "7"}, Compare{code, "eq", fmt.Sprint(random.IntN(1800))}}, Compare{size, "ge", int64(random.IntN(12))},
		HasParent(scopes[random.IntN(2)]), LinksTo{targets[random.IntN(2) : 1+random.IntN(2)], "target"}, LinksTo{targets, "target"},
		Through{Ref: "target", Where: Compare{text("name"), "eq", fmt.Sprintf("target %d", random.IntN(3))}},
		Through{Ref: "configuration", Column: true, Where: Compare{text("name"), "eq", fmt.Sprintf("scope %d", random.IntN(3))}},
		Not{Through{Ref: "target", Where: Compare{text("name"), "eq", "target 1"}}},
	}
	collection := []string{"things", "things", "names"}[random.IntN(3)]
	where := All{InCollection(collection)}
	for range random.IntN(4) {
		where = append(where, conditions[random.IntN(len(conditions))])
	}
	q := Query{From: Resources, Where: where, Limit: int64(1 + random.IntN(300)), Offset: int64(random.IntN(2) * random.IntN(400))}
	orders := []Order{{By: text("name")}, {By: text("key"), Whole: collection == "things", Spaceless: collection == "names"}, {By: low},
		{By: code}, {By: size},
		{By: Field{Kind: ColumnText, Path: []string{"name"}, Via: "target"}}}
	for range random.IntN(3) {
		o := orders[random.IntN(len(orders))]
		o.Descending = random.IntN(2) == 0
		q.Order = append(q.Order, o)
	}
	return q
}

// TestAccessPlans checks that the most frequent queries use an index on both databases, and that none of them scans all resources.
func TestAccessPlans(t *testing.T) {
	for _, name := range []string{"SQLite", "PostgreSQL"} {
		t.Run(name, func(t *testing.T) {
			s := openAccess(t, name)
			scopes, targets := fillAccess(t, s)
			text := func(column string) Field { return Field{Kind: ColumnText, Path: []string{column}} }
			low := Field{Kind: ColumnSpan, Path: []string{"low"}}
			code := Field{Kind: Text, Path: []string{"code"}, Indexed: true}
			things := InCollection("things")
			scope := func(name string) Expr {
				return Through{Ref: "configuration", Column: true, Where: All{InCollection("scopes"), Compare{text("name"), "eq", name}}}
			}
			for _, one := range []struct {
				what  string
				q     Query
				index string
			}{
				{"an address", Query{Where: All{things, Compare{low, "eq", AddrKey(netip.MustParseAddr("10.0.0.7"))}}}, "resource_low"},
				{"a name", Query{Where: All{things, Compare{text("name"), "eq", "x"}}}, "resource_name"},
				{"what a name begins with", Query{Where: All{things, Compare{text("name"), "startsWith", "x"}}}, "resource_name"},
				{"what a field begins with", Query{Where: All{things, Compare{code, "startsWith", "17"}}}, "field_things_code"},
				{"a key", Query{Where: All{things, Compare{text("key"), "eq", "key 7"}}}, "resource_key"},
				{"a field", Query{Where: All{things, Compare{code, "eq", "7"}}}, "field_things_code"},
				{"a field and a scope", Query{Where: All{things, Compare{code, "eq", "7"}, scope("scope 0")}}, "field_things_code"},
				{"a small scope by name", Query{Where: All{things, scope("scope 1")}, Order: []Order{{By: text("name")}}}, "resource_scope"},
				{"a large scope by name", Query{Where: All{things, scope("scope 0")}, Order: []Order{{By: text("name")}}, Limit: 10}, "resource_name"},
				{"names downwards", Query{Where: things, Order: []Order{{By: text("name"), Descending: true}}, Limit: 10}, "resource_name"},
				{"addresses downwards", Query{Where: things, Order: []Order{{By: low, Descending: true, Whole: true}}, Limit: 10}, "resource_low"},
				{"keys far behind", Query{Where: InCollection("names"), Order: []Order{{By: text("key"), Spaceless: true}}, Limit: 10,
					Offset: 200}, "resource_key_order"},
				{"ids far behind", Query{Where: things, Limit: 10, Offset: 1200}, "resource_collection"},
				{"what refers to a target of few", Query{Where: All{things, LinksTo{targets[1:], "target"}}}, "reference_target"},
				{"what refers to a target of many", Query{Where: All{things, LinksTo{targets[:1], "target"}}, Limit: 10}, "reference_target"},
				{"inside a prefix", Query{Where: All{things, Compare{low, "ge", AddrKey(netip.MustParseAddr("10.0.0.0"))},
					Compare{low, "le", AddrKey(netip.MustParseAddr("10.0.0.9"))},
					Compare{Field{Kind: ColumnSpan, Path: []string{"high"}}, "le", AddrKey(netip.MustParseAddr("10.0.0.9"))}}}, "resource_low"},
				{"children", Query{Where: All{things, HasParent(scopes[0])}, Limit: 10}, "resource_parent"},
			} {
				one.q.From = Resources
				if one.q.Limit == 0 {
					one.q.Limit = 100
				}
				plan := planOf(t, s, one.q)
				if name == "PostgreSQL" && one.q.Limit == 10 { // if all rows are in one collection, other indexes are as good
					one.index = ""
				}
				if !strings.Contains(plan, one.index) || strings.Contains(plan, "SCAN r\n") || strings.Contains(plan, "Seq Scan on resource") {
					t.Errorf("%s: the plan is\n%s", one.what, plan)
				}
				if one.q.Limit != 10 || len(one.q.Order) == 0 || one.q.Offset > 0 {
					continue
				}
				plan = planOf(t, s, one.q, "enable_sort")
				if strings.Contains(plan, "TEMP B-TREE") || strings.Contains(plan, "Sort Key") {
					t.Errorf("%s is sorted:\n%s", one.what, plan)
				}
			}
		})
	}
}

// TestSortBound checks that a condition that matches more than a few rows still uses its index if a page in order would cost more, and for
// counts.
func TestSortBound(t *testing.T) { both(t, boundOfFinding) }

func boundOfFinding(t *testing.T, s *Store) {
	rows := make([]*Resource, 2_000)
	for i := range rows {
		rows[i] = &Resource{Collection: "things", Type: "Thing", Name: fmt.Sprintf("%d", i), Body: []byte("{}")}
	}
	update(t, s, func(tx *Tx) error { return tx.InsertMany(rows) })
	s.sortLimit = 5
	begins := func(text string) Expr {
		return Compare{Field{Kind: ColumnText, Path: []string{"name"}}, "startsWith", text}
	}
	things := InCollection("things")
	if err := s.View(t.Context(), func(tx *Tx) error {
		for _, c := range []struct {
			q            Query
			sorted, many bool
		}{
			{Query{Where: All{things, begins("1999")}, Limit: 10}, true, false},
			{Query{Where: All{things, begins("199")}, Limit: 10}, true, true}, // 11 of at most 141
			{Query{Where: All{things, begins("1")}, Limit: 10}, false, false}, // 1,111
			{Query{Where: All{things, begins("1")}, Limit: 1000}, true, true}, // of at most 1,414
			{Query{Where: All{things, begins("1")}}, true, true},              // all of them
			{Query{Where: All{things, begins("1")}, Offset: 1900, Limit: 1}, true, true},
		} {
			c.q.From = Resources
			a, err := tx.planAccess(c.q)
			if err != nil || a.sorted != c.sorted || a.large != c.many {
				t.Errorf("%+v: sorted %v, large %v, %v", c.q, a.sorted, a.large, err)
			}
			n, err := tx.Count(c.q)
			if err != nil {
				return err
			}
			listed := int64(0)
			if err := tx.List(c.q, func(*Resource) error { listed++; return nil }); err != nil {
				return err
			}
			if want := max(0, n-c.q.Offset); c.q.Limit == 0 && listed != want || c.q.Limit > 0 && listed != min(want, c.q.Limit) {
				t.Errorf("%+v listed %d of %d", c.q, listed, n)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// TestPrefixEnd checks that prefixEnd returns the first text after all texts with a prefix, whatever the last characters of the prefix are.
func TestPrefixEnd(t *testing.T) {
	for prefix, want := range map[string]string{"": "", "a": "b", "host-9": "host-:", "a\U0010ffff": "b", "\U0010ffff": "",
		"\ud7ff": "\ue000", "é": "ê"} {
		if got := prefixEnd(prefix); got != want {
			t.Errorf("the text after prefix %q is %q, want %q", prefix, got, want)
		}
	}
}
