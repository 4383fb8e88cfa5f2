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

// held makes all readers by id wait for the statement of the test. release runs that statement.
func held(t *testing.T, s *Store) (g *gatherer, release func(waiting int)) {
	t.Helper()
	g = &s.engine.(*postgresEngine).pg.gatherer
	g.mu.Lock()
	g.running++
	g.maxWait = time.Minute
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
				t.Fatalf("%d requests wait, want %d", n, waiting)
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

// TestGatheredRows checks that each concurrent request gets its own row, and that a missing row is reported as such.
func TestGatheredRows(t *testing.T) {
	s := shared(t, pgtest.URL(t))
	s.ShowInline(map[string]string{"Thing": "x"})
	var ids []int64
	for i := range 3 {
		ids = append(ids, inserted(t, s, fmt.Sprint("n", i)))
	}
	_, release := held(t, s)
	const each = 50 // of 200 requests, which are more than fit into a statement
	var all sync.WaitGroup
	for i := range 4 * each {
		all.Go(func() {
			if i%4 == 3 {
				if name, err := shownName(t.Context(), s, 99_999_999); !errors.Is(err, ErrNotFound) {
					t.Errorf("a missing row returned %q, %v", name, err)
				}
				return
			}
			if name, err := shownName(t.Context(), s, ids[i%4]); err != nil || name != fmt.Sprint("n", i%4) {
				t.Errorf("row %d: %q, %v", i%4, name, err)
			}
		})
	}
	// A request that shows resources differently gets its own statement.
	all.Go(func() {
		err := s.Read(t.Context(), func(tx *Tx) error {
			r, err := tx.Get(ids[0])
			if err == nil && r.Name != "n0" {
				t.Errorf("a query without extension texts returned %q", r.Name)
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

// TestCancelledGatheredRow checks that a cancelled request does not affect the others, and that a request after a change sees the change.
func TestCancelledGatheredRow(t *testing.T) {
	s := shared(t, pgtest.URL(t))
	id := inserted(t, s, "before")
	_, release := held(t, s)
	leaving, leave := context.WithCancel(t.Context())
	var all sync.WaitGroup
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if _, err := shownName(leaving, s, id); !errors.Is(err, context.Canceled) {
			t.Errorf("the cancelled request returned %v", err)
		}
	}()
	all.Go(func() {
		if name, err := shownName(t.Context(), s, id); err != nil || name != "after" {
			t.Errorf("the other request returned %q, %v", name, err)
		}
	})
	rename(t, s, id, "after")
	for waits := 0; waits < 2; runtime.Gosched() { // until both requests wait
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

// TestHangingGatheredStatement checks that a hanging statement does not block others for long: waiting and new requests then read their
// rows themselves.
func TestHangingGatheredStatement(t *testing.T) {
	s := shared(t, pgtest.URL(t))
	id := inserted(t, s, "x")
	g, _ := held(t, s) // it is never released
	g.maxWait = gatheringPatience
	for range 2 {
		if name, err := shownName(t.Context(), s, id); err != nil || name != "x" {
			t.Fatalf("a request during a hanging statement returned %q, %v", name, err)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) != 0 || g.running != 1 {
		t.Errorf("%d requests wait, %d statements are running", len(g.waiting), g.running)
	}
}

// TestFailingGatheredStatement checks that if the statement of waiting requests fails, each of them reads its row itself or gets the error.
func TestFailingGatheredStatement(t *testing.T) {
	s := shared(t, pgtest.URL(t))
	g, release := held(t, s)
	wrong := rowQuery{byID: "SELECT 1 WHERE 1 = ?", byIDs: "SELECT nothing FROM nowhere WHERE 1 = ANY(?)"}
	var all sync.WaitGroup
	all.Go(func() {
		c := &pgConn{ctx: t.Context(), p: g.p, from: g.p.readers}
		if err := g.readRow(c, wrong, 7, func(*pgRow) error { return nil }); pgCode(err) != "42P01" { // undefined_table
			t.Errorf("the failing statement returned %v", err)
		}
	})
	release(1)
	all.Wait()
	if name, err := shownName(t.Context(), s, inserted(t, s, "x")); err != nil || name != "x" {
		t.Errorf("the next request returned %q, %v", name, err)
	}
}

// TestSlowRowsAreNotGathered checks that requests read rows separately for a while if the rows are slow, because they come from a disk.
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
	g.recordDuration(minTimedRows, minTimedRows*slowRow) // a fast statement resets the count
	slow(maxSlowStatements - 1)
	g.recordDuration(minTimedRows-1, time.Hour) // a small statement may take long, because of its round trip
	if !g.directUntil.IsZero() {
		t.Error("fast rows are not combined")
	}
	slow(1)
	if name, err := shownName(t.Context(), s, id); err != nil || name != "x" { // it does not wait for a statement
		t.Errorf("a direct request returned %q, %v", name, err)
	}
	g.directUntil = time.Now() // after that time, requests are combined again
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := shownName(t.Context(), s, id); err != nil {
			t.Error(err)
		}
	})
	release(1)
	all.Wait()
	eventually(t, "no statement is running", func() bool { // a request is answered shortly before its statement is counted as ended
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.running == 0 && len(g.waiting) == 0
	})
}
