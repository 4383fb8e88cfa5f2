package store

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"portolan/internal/testkit/pgtest"
)

// held lets everybody who reads by id wait for the statement that the test makes: release asks it.
func held(t *testing.T, s *Store) (g *gatherer, release func(waiting int)) {
	t.Helper()
	g = &s.engine.(*postgresEngine).pg.gatherer
	g.mu.Lock()
	g.running++
	g.patience = time.Minute
	g.mu.Unlock()
	return g, func(waiting int) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); ; runtime.Gosched() {
			g.mu.Lock()
			n := len(g.waiting)
			g.mu.Unlock()
			if n == waiting {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d wait, and not %d", n, waiting)
			}
		}
		g.startNext()
	}
}

func shownName(ctx context.Context, s *Store, id int64) (name string, err error) {
	err = s.Read(ctx, func(tx *Tx) error {
		r, err := tx.GetShown(id)
		if err == nil {
			name = r.Name
		}
		return err
	})
	return name, err
}

// Who asks for rows at the same time gets each its own, and what is not there is not there.
func TestGatheredRows(t *testing.T) {
	s := shared(t, pgtest.URL(t))
	s.ShowInline(map[string]string{"Thing": "x"})
	var ids []int64
	for i := range 3 {
		ids = append(ids, inserted(t, s, fmt.Sprint("n", i)))
	}
	_, release := held(t, s)
	const each = 50 // of 200, which are more than a statement is for
	var all sync.WaitGroup
	for i := range 4 * each {
		all.Go(func() {
			if i%4 == 3 {
				if name, err := shownName(t.Context(), s, 99_999_999); !errors.Is(err, ErrNotFound) {
					t.Errorf("a row that is not there: %q, %v", name, err)
				}
				return
			}
			if name, err := shownName(t.Context(), s, ids[i%4]); err != nil || name != fmt.Sprint("n", i%4) {
				t.Errorf("row %d: %q, %v", i%4, name, err)
			}
		})
	}
	// And one who has another way of showing them.
	all.Go(func() {
		err := s.Read(t.Context(), func(tx *Tx) error {
			r, err := tx.Get(ids[0])
			if err == nil && r.Name != "n0" {
				t.Errorf("without what is beside: %q", r.Name)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
	release(4*each + 1)
	all.Wait()
}

// Who leaves while it waits takes nothing from the others, and who asks after a change sees it.
func TestGatheredRowsAreOwn(t *testing.T) {
	s := shared(t, pgtest.URL(t))
	id := inserted(t, s, "before")
	_, release := held(t, s)
	leaving, leave := context.WithCancel(t.Context())
	var all sync.WaitGroup
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if _, err := shownName(leaving, s, id); !errors.Is(err, context.Canceled) {
			t.Errorf("one who left: %v", err)
		}
	}()
	all.Go(func() {
		if name, err := shownName(t.Context(), s, id); err != nil || name != "after" {
			t.Errorf("one who stayed: %q, %v", name, err)
		}
	})
	rename(t, s, id, "after")
	for waits := 0; waits < 2; runtime.Gosched() { // both are there before one leaves
		g := &s.engine.(*postgresEngine).pg.gatherer
		g.mu.Lock()
		waits = len(g.waiting)
		g.mu.Unlock()
	}
	leave()
	<-gone
	release(1)
	all.Wait()
}

// A statement that hangs holds nobody up for long: who waits asks alone, and so does who comes then.
func TestNobodyWaitsForAStatementThatHangs(t *testing.T) {
	s := shared(t, pgtest.URL(t))
	id := inserted(t, s, "x")
	g, _ := held(t, s) // and it is never released
	g.patience = gatheringPatience
	for range 2 {
		if name, err := shownName(t.Context(), s, id); err != nil || name != "x" {
			t.Fatalf("beside a statement that hangs: %q, %v", name, err)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) != 0 || g.running != 1 {
		t.Errorf("%d wait, and %d statements are under way", len(g.waiting), g.running)
	}
}

// Who waited for a statement that fails asks again, or is told.
func TestGatheredStatementThatFails(t *testing.T) {
	s := shared(t, pgtest.URL(t))
	g, release := held(t, s)
	wrong := rowQuery{one: "SELECT 1 WHERE 1 = ?", any: "SELECT nothing FROM nowhere WHERE 1 = ANY(?)"}
	var all sync.WaitGroup
	all.Go(func() {
		c := &pgConn{ctx: t.Context(), p: g.p, from: g.p.readers}
		if err := g.readRow(c, wrong, 7, func(*pgRow) error { return nil }); pgCode(err) != "42P01" { // undefined_table
			t.Errorf("it gives %v", err)
		}
	})
	release(1)
	all.Wait()
	if name, err := shownName(t.Context(), s, inserted(t, s, "x")); err != nil || name != "x" {
		t.Errorf("behind it: %q, %v", name, err)
	}
}

// Where rows come slowly, from a disk, each asks for its own for a while.
func TestSlowRowsAreNotGathered(t *testing.T) {
	s := shared(t, pgtest.URL(t))
	id := inserted(t, s, "x")
	g, release := held(t, s)
	slow := func(n int) {
		for range n {
			g.recordDuration(minTimedRows, minTimedRows*slowRow+1)
		}
	}
	slow(maxSlowStatements - 1)
	g.recordDuration(minTimedRows, minTimedRows*slowRow) // it was none of the disk
	slow(maxSlowStatements - 1)
	g.recordDuration(minTimedRows-1, time.Hour) // a round trip may be long
	if !g.directUntil.IsZero() {
		t.Error("rows that come fast are not gathered")
	}
	slow(1)
	if name, err := shownName(t.Context(), s, id); err != nil || name != "x" { // it waits for nobody
		t.Errorf("apart: %q, %v", name, err)
	}
	g.directUntil = time.Now() // and again after that while
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := shownName(t.Context(), s, id); err != nil {
			t.Error(err)
		}
	})
	release(1)
	all.Wait()
	eventually(t, "no statement is under way", func() bool { // who waited has its row a moment before its statement is noted as ended
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.running == 0 && len(g.waiting) == 0
	})
}
