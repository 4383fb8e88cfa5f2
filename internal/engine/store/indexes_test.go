package store

import (
	"fmt"
	"strings"
	"testing"

	"portolan/internal/testkit/pgtest"
)

// An index that follows from a declaration is made when a manager begins, also over rows that are there, and conditions
// and orders use it.
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
					Body: fmt.Appendf(nil, `{"code":"c%d"}`, i)})
			}
			if err := s.Update(t.Context(), Author{}, func(tx *Tx) error { return tx.InsertMany(rows) }); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time they are there
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				o.Layout = &Layout{Indexes: []Index{{"places", "code"}}}
				s = begin()
			}
			defer func() { _ = s.Close() }()
			code := Field{Kind: Text, Path: []string{"code"}, Indexed: true}
			eq := Query{From: Resources, Where: All{InCollection("places"), Compare{Field: code, Op: "eq", Value: "c4"}}}
			if err := s.View(t.Context(), func(tx *Tx) error {
				n, err := tx.Count(eq)
				if n != 1 {
					t.Errorf("%d places are found", n)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if plan := planOf(t, s, eq); !strings.Contains(plan, "field_places_code") {
				t.Errorf("the plan is %s", plan)
			}
			// One that nobody declares any more goes.
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			o.Layout = &Layout{Indexes: []Index{{"places", "town"}}}
			s = begin()
			if plan := planOf(t, s, eq); strings.Contains(plan, "field_places_code") {
				t.Errorf("behind its time the plan is %s", plan)
			}
		})
	}
}

// planOf gives how the database would find what a query selects, were looking through everything forbidden, and, on PostgreSQL, these
// settings off.
func planOf(t *testing.T, s *Store, q Query, forbidden ...string) (plan string) {
	t.Helper()
	err := s.View(t.Context(), func(tx *Tx) error {
		l, err := q.buildList(tx, "id")
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
