package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"portolan/internal/testkit/pgtest"
)

// TestTotals checks that the counters equal the number of rows after any concurrent inserts, moves, deletions and rollbacks.
func TestTotals(t *testing.T) { both(t, totalsHold) }

var errFailed = errors.New("failed")

func totalsHold(t *testing.T, s *Store) {
	ctx := t.Context()
	parents := make([]int64, 4)
	for i := range parents {
		r := &Resource{Collection: "parents", Type: "Parent", Name: fmt.Sprint(i), Body: []byte("{}")}
		insert(t, s, r)
		parents[i] = r.ID
	}
	var workers sync.WaitGroup
	for worker := range 4 {
		workers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 1)) //nolint:gosec // the test must be reproducible
			var mine []*Resource
			for range 80 {
				failing, after := random.IntN(5) == 0, mine
				err := s.Update(ctx, Author{}, func(tx *Tx) (err error) {
					if after, err = changeTotals(tx, random, parents, mine); err == nil && failing {
						err = errFailed
					}
					return err
				})
				switch {
				case err == nil:
					mine = after
				case !failing:
					t.Error(err)
					return
				}
			}
		})
	}
	workers.Wait()
	verifyTotals(t, s)
	if err := s.View(ctx, func(tx *Tx) error {
		for _, parent := range append(parents, everywhere) {
			for _, kind := range []string{"", "A", "B", "C"} {
				q := Query{From: Resources, Where: All{InCollection("things")}}
				if parent != everywhere {
					q.Where = All{q.Where, HasParent(parent)}
				}
				if kind != "" {
					q.Where = All{q.Where, Compare{Field{Kind: ColumnText, Path: []string{"type"}}, "eq", kind}}
				}
				if _, ok := q.total(); !ok {
					t.Errorf("%v does not match a counter", q.Where)
				}
				var want int64
				if err := tx.List(q, func(*Resource) error { want++; return nil }); err != nil {
					return err
				}
				if n, err := tx.Count(q); err != nil || n != want {
					t.Errorf("below %d of type %q: %d, %v, want %d", parent, kind, n, err, want)
				}
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	// No counters are left for deleted parents, and recalculated counters are the same.
	update(t, s, func(tx *Tx) error {
		for _, parent := range parents {
			below := Query{From: Resources, Where: All{InCollection("things"), HasParent(parent)}}
			var all []*Resource
			if err := tx.List(below, func(r *Resource) error { all = append(all, r.Clone()); return nil }); err != nil {
				return err
			}
			if err := tx.RemoveMany(all); err != nil {
				return err
			}
			r, err := tx.Get(parent)
			if err != nil {
				return err
			}
			if err := tx.Remove(r); err != nil {
				return err
			}
		}
		return nil
	})
	verifyTotals(t, s)
	update(t, s, func(tx *Tx) error {
		var left int64
		if err := tx.QueryRow("SELECT count(*) FROM total WHERE parent > 0").Scan(&left); err != nil || left != 0 {
			t.Errorf("%d counters are left for deleted parents, %v", left, err)
		}
		return recountTotals(tx)
	})
	verifyTotals(t, s)
}

// changeTotals inserts, moves, retypes and deletes things, one at a time and in batches.
func changeTotals(tx *Tx, random *rand.Rand, parents []int64, mine []*Resource) ([]*Resource, error) {
	parent := parents[random.IntN(len(parents))]
	fresh := make([]*Resource, 1+random.IntN(3))
	for i := range fresh {
		fresh[i] = &Resource{Collection: "things", Type: string(rune('A' + random.IntN(3))), Parent: parent, Body: []byte("{}")}
	}
	mine = append([]*Resource(nil), mine...)
	switch what := random.IntN(6); {
	case what == 0 || len(mine) < 3:
		return append(mine, fresh...), tx.InsertMany(fresh)
	case what == 1:
		return append(mine, fresh[0]), tx.Insert(fresh[0])
	case what == 2:
		young := mine[0].Clone()
		young.Type, young.Parent = fresh[0].Type, parent
		err := tx.Replace(mine[0], young)
		mine[0] = young
		return mine, err
	case what == 3:
		moved, err := tx.Reparent(mine[:2], parent)
		return append(moved, mine[2:]...), err
	case what == 4:
		return mine[2:], tx.RemoveMany(mine[:2])
	}
	return mine[1:], tx.Remove(mine[0])
}

func verifyTotals(t *testing.T, s *Store) {
	t.Helper()
	if err := s.View(t.Context(), func(tx *Tx) error {
		return tx.totalsFaults(func(format string, args ...any) { t.Errorf(format, args...) })
	}); err != nil {
		t.Fatal(err)
	}
}

// TestTotalsOfEmptyFilter checks that a filter by an empty value is not treated as no filter.
func TestTotalsOfEmptyFilter(t *testing.T) {
	kind, parent := Field{Kind: ColumnText, Path: []string{"type"}}, Field{Kind: ColumnInt, Path: []string{"parent"}}
	for _, e := range []Expr{Compare{kind, "eq", ""}, Compare{kind, "eq", nil}, Compare{kind, "ne", "A"},
		Compare{parent, "eq", int64(everywhere)},
		All{Compare{kind, "eq", "A"}, Compare{kind, "eq", "B"}}, All{HasParent(1), HasParent(2)}, Not{Compare{kind, "eq", "A"}},
		InCollection("other"),
		Any{Compare{kind, "eq", "A"}, Compare{kind, "eq", "B"}}} {
		if k, ok := (Query{From: Resources, Where: All{InCollection("things"), e}}).total(); ok {
			t.Errorf("%v was mapped to counter %v", e, k)
		}
	}
}

// TestTotalsAreMerged checks that a counter that every second transaction changes is merged as well.
func TestTotalsAreMerged(t *testing.T) {
	s := shared(t, pgtest.URL(t))
	for range 1_000 {
		insert(t, s, thing("a"))
		insert(t, s, &Resource{Collection: "others", Type: "Other", Body: []byte("{}")})
	}
	if err := s.View(t.Context(), func(tx *Tx) error {
		return tx.Each(func(scan func(...any) error) error {
			var collection string
			var rows int64
			err := scan(&collection, &rows)
			if rows > 700 { // happens by chance once in 10,000 runs
				t.Errorf("%d rows contain the number of %s", rows, collection)
			}
			return err
		}, "SELECT collection, count(*) FROM total WHERE parent = -1 GROUP BY collection")
	}); err != nil {
		t.Fatal(err)
	}
	verifyTotals(t, s)
}

// TestWrongTotalsAreFound checks that a wrong counter is detected, and corrected by a recount.
func TestWrongTotalsAreFound(t *testing.T) { both(t, wrongTotals) }

func wrongTotals(t *testing.T, s *Store) {
	insert(t, s, thing("one"))
	update(t, s, func(tx *Tx) error {
		_, err := tx.Exec("UPDATE total SET n = n + 1 WHERE parent = -1")
		return err
	})
	found := 0
	if err := s.View(t.Context(), func(tx *Tx) error {
		return tx.totalsFaults(func(format string, args ...any) {
			found++
			t.Logf(format, args...)
		})
	}); err != nil || found != 1 {
		t.Errorf("%d faults, %v; want 1", found, err)
	}
	update(t, s, recountTotals)
	verifyTotals(t, s)
}
