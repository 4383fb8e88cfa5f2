package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"portolan/internal/testkit/pgtest"
)

func open(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(Options{Dir: dir, Exclusive: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// both runs a test on both databases.
func both(t *testing.T, test func(t *testing.T, s *Store)) { bothAt(t, nil, test) }

// bothAt runs a test on both databases with its own clock. The clock is set before the store opens, because goroutines of the store read
// it.
func bothAt(t *testing.T, now func() time.Time, test func(t *testing.T, s *Store)) {
	for _, name := range []string{"SQLite", "PostgreSQL"} {
		t.Run(name, func(t *testing.T) {
			o := Options{Dir: t.TempDir(), Exclusive: true, Now: now}
			if name == "PostgreSQL" {
				o.Database = pgtest.URL(t)
			}
			s, err := Open(o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			test(t, s)
		})
	}
}

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

func thing(name string) *Resource {
	return &Resource{Collection: "things", Type: "Thing", Name: name, Body: []byte(`{"colour":"red"}`)}
}

func insert(t testing.TB, s *Store, r *Resource) {
	t.Helper()
	if err := s.Update(context.Background(), Author{Name: "test"}, func(tx *Tx) error { return tx.Insert(r) }); err != nil {
		t.Fatal(err)
	}
}

func count(t testing.TB, s *Store) (n int64) {
	t.Helper()
	if err := s.View(context.Background(), func(tx *Tx) (err error) {
		n, err = tx.Count(Query{From: Resources})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestResourceRoundTrip(t *testing.T) { both(t, resourceRoundTrip) }

func resourceRoundTrip(t *testing.T, s *Store) {
	target := thing("target")
	insert(t, s, target)
	r := thing("it")
	r.Low, r.High = AddrKey(netip.MustParseAddr("10.0.0.1")), AddrKey(netip.MustParseAddr("10.0.0.9"))
	r.Key, r.Refs, r.Links = "it.example", []Ref{{"home", target.ID}}, []Ref{{"friends", target.ID}}
	insert(t, s, r)
	if r.ID <= target.ID || target.ID != firstResource {
		t.Errorf("the ids are %d and %d", target.ID, r.ID)
	}
	err := s.View(context.Background(), func(tx *Tx) error {
		got, err := tx.Get(r.ID)
		if err != nil {
			return err
		}
		if err := tx.LoadLinks(got); err != nil {
			return err
		}
		want, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if text, err := json.Marshal(got); err != nil || string(text) != string(want) || string(got.Body) != string(r.Body) {
			t.Errorf("read back: %s %s, %v; want %s", text, got.Body, err, want)
		}
		if KeyAddr(got.Low).String() != "10.0.0.1" {
			t.Errorf("the low end is %v", KeyAddr(got.Low))
		}
		var operation, after string
		err = tx.QueryRow("SELECT c.operation, c.after FROM change c JOIN txn t ON c.seq BETWEEN t.first AND t.last WHERE t.id = ?",
			r.Version).Scan(&operation, &after)
		if err != nil || operation != "ADD" || !strings.Contains(after, `"colour":"red"`) {
			t.Errorf("the history has %s %s, %v", operation, after, err)
		}
		if _, err := tx.Get(1); !errors.Is(err, ErrNotFound) {
			t.Errorf("read a missing resource returned %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSnapshotCannotWrite(t *testing.T) { both(t, snapshotCannotWrite) }

func snapshotCannotWrite(t *testing.T, s *Store) {
	if err := s.View(context.Background(), func(tx *Tx) error { return tx.Insert(thing("x")) }); err == nil {
		t.Error("a snapshot accepted an insert")
	}
}

// TestGroupIsolatesJobs checks that an update that fails or panics rolls back only its own changes, although others share its commit.
func TestGroupIsolatesJobs(t *testing.T) { both(t, groupKeepsJobsApart) }

func groupKeepsJobsApart(t *testing.T, s *Store) {
	var all sync.WaitGroup
	for i := range 300 {
		all.Go(func() {
			err := s.Update(context.Background(), Author{}, func(tx *Tx) error {
				if err := tx.Insert(thing(fmt.Sprint(i))); err != nil {
					return err
				}
				switch i % 3 {
				case 1:
					return errors.New("no")
				case 2:
					panic("no")
				}
				return nil
			})
			if (err == nil) != (i%3 == 0) {
				t.Errorf("job %d: %v", i, err)
			}
		})
	}
	all.Wait()
	if n := count(t, s); n != 100 {
		t.Errorf("%d things, want 100", n)
	}
	var txns int64
	if err := s.View(context.Background(), func(tx *Tx) error { return tx.QueryRow("SELECT count(*) FROM txn").Scan(&txns) }); err != nil ||
		txns != 100 {
		t.Errorf("%d transactions in the history, %v; want 100", txns, err)
	}
}

// TestIdsAreNotReused checks that an id is never assigned twice, even after its resource was deleted and the store was reopened.
func TestIdsAreNotReused(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	r := thing("x")
	insert(t, s, r)
	if err := s.Update(context.Background(), Author{}, func(tx *Tx) error { return tx.Remove(r) }); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	defer func() { _ = s.Close() }()
	next := thing("y")
	insert(t, s, next)
	if next.ID <= r.ID {
		t.Errorf("id %d was assigned again as %d", r.ID, next.ID)
	}
}

func TestOneManagerPerDirectory(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if _, err := Open(Options{Dir: dir, Exclusive: true}); err == nil || !strings.Contains(err.Error(), "in use by another manager") {
		t.Errorf("a second manager got %v", err)
	}
	tool, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatalf("a tool got %v", err)
	}
	insert(t, tool, thing("by the tool"))
	insert(t, s, thing("by the manager"))
	if n := count(t, s); n != 2 {
		t.Errorf("%d things, want 2", n)
	}
	if err := errors.Join(tool.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	insert(t, open(t, dir), thing("afterwards"))
}

func TestNewerSchemaIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := open(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	db, err := newSession(filepath.Join(dir, "portolan.db"), writeSession)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.exec("PRAGMA user_version = 9999"); err != nil {
		t.Fatal(err)
	}
	if err := db.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "schema version 9999, newer than") {
		t.Errorf("a newer schema returned %v", err)
	}
}

func TestDurabilitySettings(t *testing.T) {
	s := open(t, t.TempDir())
	defer func() { _ = s.Close() }()
	err := s.Update(context.Background(), Author{}, func(tx *Tx) error {
		for pragma, want := range map[string]string{"synchronous": "2", "journal_mode": "wal"} {
			var got string
			if err := tx.QueryRow("PRAGMA " + pragma).Scan(&got); err != nil {
				return err
			}
			if got != want {
				t.Errorf("%s is %s, want %s", pragma, got, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestClosedStoreRefuses(t *testing.T) {
	s := open(t, t.TempDir())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Update(context.Background(), Author{}, func(*Tx) error { return nil }); !errors.Is(err, errClosing) {
		t.Errorf("an update after Close returned %v", err)
	}
}

func TestCancelledWhileWaiting(t *testing.T) {
	s := open(t, t.TempDir())
	defer func() { _ = s.Close() }()
	ctx, cancel := context.WithCancel(context.Background())
	entered, leave := make(chan struct{}), make(chan struct{})
	go func() {
		_ = s.Update(context.Background(), Author{}, func(*Tx) error { close(entered); <-leave; return nil })
	}()
	<-entered
	result := make(chan error, 1)
	go func() { result <- s.Update(ctx, Author{}, func(tx *Tx) error { return tx.Insert(thing("x")) }) }()
	for len(s.engine.(*sqliteEngine).jobs) == 0 {
		time.Sleep(time.Millisecond) // until the job is queued
	}
	cancel()
	close(leave)
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled job returned %v", err)
	}
	if n := count(t, s); n != 0 {
		t.Errorf("the cancelled job left %d things", n)
	}
}

// TestLongList checks that a long list is read in pieces, and that other queries can run in between.
func TestLongList(t *testing.T) { both(t, longList) }

func longList(t *testing.T, s *Store) {
	const many = 1300
	if err := s.Update(context.Background(), Author{}, func(tx *Tx) error {
		for i := range many {
			r := thing(fmt.Sprintf("it's %d ?", i%2))
			r.Low, r.High = AddrKey(netip.MustParseAddr("10.0.0.0")), AddrKey(netip.MustParseAddr("10.0.0.9"))
			r.Parent = int64(i + 1)
			if err := tx.Insert(r); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	name := Field{Kind: ColumnText, Path: []string{"name"}}
	q := Query{From: Resources, Where: All{
		Compare{Field: name, Op: "startsWith", Value: "it's 1"}, Compare{Field: Field{Kind: Text, Path: []string{"colour"}}, Op: "eq",
			Value: "red"},
		Compare{Field: Field{Kind: ColumnSpan, Path: []string{"low"}}, Op: "ge", Value: AddrKey(netip.MustParseAddr("10.0.0.0"))},
	}, Order: []Order{{By: name}}}
	err := s.View(context.Background(), func(tx *Tx) error {
		seen, last := 0, int64(0)
		err := tx.List(q, func(r *Resource) error {
			seen++
			if r.ID <= last || r.Name != "it's 1 ?" || string(r.Body) != `{"colour":"red"}` || KeyAddr(r.High).String() != "10.0.0.9" {
				t.Errorf("row %d is %+v", seen, r)
			}
			last = r.ID
			h, err := tx.Head(r.ID)
			if h.Name != r.Name {
				t.Errorf("the head of %d is %+v", r.ID, h)
			}
			return err
		})
		if seen != many/2 {
			t.Errorf("%d rows, want %d", seen, many/2)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestWritesWithinList checks that writes while a list is read succeed, also on the connection of the list.
func TestWritesWithinList(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		const rows = 5000
		if err := s.Update(t.Context(), Author{}, func(tx *Tx) error {
			var all []*Resource
			for i := range rows {
				all = append(all, thing(fmt.Sprint(i)))
			}
			return tx.InsertMany(all)
		}); err != nil {
			t.Fatal(err)
		}
		if err := s.Update(t.Context(), Author{}, func(tx *Tx) error {
			return tx.List(Query{From: Resources, Where: InCollection("things")}, func(r *Resource) error {
				return tx.Write("UPDATE resource SET key = ? WHERE id = ?", "seen", r.ID)
			})
		}); err != nil {
			t.Fatal(err)
		}
		if err := s.View(t.Context(), func(tx *Tx) error {
			key := Field{Kind: ColumnText, Path: []string{"key"}}
			n, err := tx.Count(Query{From: Resources, Where: Compare{Field: key, Op: "eq", Value: "seen"}})
			if n != rows {
				t.Errorf("%d of %d writes found", n, rows)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	})
}

// TestUnloggedRows checks that rows of unlogged collections are not in the history, also if many are written at once.
func TestUnloggedRows(t *testing.T) {
	s, err := Open(Options{Dir: t.TempDir(), Exclusive: true, Layout: &Layout{Unlogged: []string{"things"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if err := s.Update(t.Context(), Author{}, func(tx *Tx) error {
		rows := []*Resource{thing("a"), thing("b")}
		if err := tx.InsertMany(rows); err != nil {
			return err
		}
		_, err := tx.Reparent(rows, rows[0].ID)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.View(t.Context(), func(tx *Tx) error {
		var changes, transactions int
		err := tx.QueryRow("SELECT (SELECT count(*) FROM change), (SELECT count(*) FROM txn)").Scan(&changes, &transactions)
		if changes != 0 || transactions != 0 {
			t.Errorf("there are %d changes in %d transactions", changes, transactions)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("the second Close returned %v", err)
	}
}
