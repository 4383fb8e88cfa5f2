package store

import (
	"fmt"
	"strings"
	"testing"

	"portolan/internal/testkit/pgtest"
)

// TestDeclaredIndexes checks that a declared index is created at the start of a manager, also for existing rows, and is used by conditions
// and orders.
func TestDeclaredIndexes(t *testing.T) {
	for _, name := range []string{"SQLite", "PostgreSQL"} {
		t.Run(name, func(t *testing.T) {
			o := Options{Dir: t.TempDir(), Exclusive: true}
			if name == "PostgreSQL" {
				o.Database = pgtest.URL(t)
			}
			begin := func() *Store {
				s, err := Open(o)
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			s := begin()
			var rows []*Resource
			for i := range 2000 {
				rows = append(rows, &Resource{Collection: []string{"places", "things"}[i%2], Type: "Place",
					Body: fmt.Appendf(nil, `{"code":"c%d","size":%d}`, i, i)})
			}
			if err := s.Update(t.Context(), Author{}, func(tx *Tx) error { return tx.InsertMany(rows) }); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time they exist
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				o.Layout = &Layout{Indexes: []Index{{Collection: "places", Field: "code"}, {Collection: "places", Field: "size", Number: true}}}
				s = begin()
			}
			defer func() { _ = s.Close() }()
			code := Field{Kind: Text, Path: []string{"code"}, Indexed: true}
			eq := Query{From: Resources, Where: All{InCollection("places"), Compare{Field: code, Op: "eq", Value: "c4"}}}
			if err := s.View(t.Context(), func(tx *Tx) error {
				n, err := tx.Count(eq)
				if n != 1 {
					t.Errorf("%d places found", n)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if plan := planOf(t, s, eq); !strings.Contains(plan, "field_places_code") {
				t.Errorf("the plan is %s", plan)
			}
			size := Field{Kind: Number, Path: []string{"size"}, Indexed: true}
			for _, number := range []any{int64(4), 4.0} {
				numbered := Query{From: Resources, Where: All{InCollection("places"), Compare{Field: size, Op: "eq", Value: number}},
					Order: []Order{{By: size}}}
				var found []int64
				if err := s.View(t.Context(), func(tx *Tx) error {
					return tx.List(numbered, func(r *Resource) error {
						found = append(found, r.ID)
						return nil
					})
				}); err != nil || len(found) != 1 {
					t.Errorf("places of size %v: %v %v", number, found, err)
				}
				if plan := planOf(t, s, numbered); !strings.Contains(plan, "field_places_size") {
					t.Errorf("the plan is %s", plan)
				}
			}
			// An index that is no longer declared is dropped.
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			o.Layout = &Layout{Indexes: []Index{{Collection: "places", Field: "town"}}}
			s = begin()
			if plan := planOf(t, s, eq); strings.Contains(plan, "field_places_code") {
				t.Errorf("after the index was dropped the plan is %s", plan)
			}
		})
	}
}

// planOf returns the plan of a query with sequential scans disabled and, on PostgreSQL, with the given settings off.
func planOf(t *testing.T, s *Store, q Query, forbidden ...string) (plan string) {
	t.Helper()
	err := s.View(t.Context(), func(tx *Tx) error {
		l, err := q.buildList(tx, "r.id")
		if err != nil {
			return err
		}
		query, args := l.query, l.args
		if tx.RoundTrips() {
			for _, name := range forbidden {
				var off string
				if err := tx.QueryRow("SELECT set_config(?, 'off', TRUE)", name).Scan(&off); err != nil {
					return err
				}
			}
		}
		lines, err := tx.Explain(Statement{query, args})
		plan = strings.Join(lines, "\n") + "\n"
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}
