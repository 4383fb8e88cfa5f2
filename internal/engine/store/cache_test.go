package store

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"portolan/internal/testkit/pgtest"

	"github.com/jackc/pgx/v5"
)

// name reads a thing through a cache, like the users of caches do.
func name(c *Cache[int64, Head], tx *Tx, id int64) (name string, remembered bool, err error) {
	if h, ok := c.Get(tx, id); ok {
		return h.Name, true, nil
	}
	h, err := tx.Head(id)
	if err == nil {
		c.Put(tx, id, h)
	}
	return h.Name, false, err
}

// inserted inserts a thing and returns its id.
func inserted(t *testing.T, s *Store, name string) int64 {
	t.Helper()
	r := thing(name)
	insert(t, s, r)
	return r.ID
}

func rename(t *testing.T, s *Store, id int64, to string) {
	t.Helper()
	err := s.Update(t.Context(), Author{}, func(tx *Tx) error { return renameIn(tx, id, to) })
	if err != nil {
		t.Fatal(err)
	}
}

func renameIn(tx *Tx, id int64, to string) error {
	old, err := tx.Get(id)
	if err != nil {
		return err
	}
	after := old.Clone()
	after.Name = to
	return tx.Replace(old, after)
}

// manager opens a store in the mode of a manager.
func manager(t *testing.T) *Store {
	t.Helper()
	s, err := Open(Options{Dir: t.TempDir(), Exclusive: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// managerAndTool open a store in the mode of a manager, and a second time in that of a tool.
func managerAndTool(t *testing.T) (s, tool *Store) {
	t.Helper()
	dir := t.TempDir()
	opened := func(exclusive bool) *Store {
		s, err := Open(Options{Dir: dir, Exclusive: exclusive})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	return opened(true), opened(false)
}

func caches(s *Store) map[string]*Cache[int64, Head] {
	return map[string]*Cache[int64, Head]{
		"by topic":        NewCache[int64](s, CacheOptions[Head]{By: func(h Head) string { return h.Collection }}),
		"by the topics":   NewCache[int64](s, CacheOptions[Head]{Topics: []string{"things", "others"}}),
		"by all there is": NewCache[int64](s, CacheOptions[Head]{}),
	}
}

// TestCacheWithOldSnapshot checks that a value from a snapshot older than a change is not cached for later transactions. A newer cached
// value is not returned to that snapshot.
func TestCacheWithOldSnapshot(t *testing.T) {
	s := manager(t)
	for kind, c := range caches(s) {
		t.Run(kind, func(t *testing.T) {
			id := inserted(t, s, "old "+kind)
			look := func(want string, remembered bool) {
				t.Helper()
				if err := s.View(t.Context(), func(tx *Tx) error {
					got, was, err := name(c, tx, id)
					if got != want || was != remembered {
						t.Errorf("got %q, cached %v; want %q, cached %v", got, was, want, remembered)
					}
					return err
				}); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.View(t.Context(), func(tx *Tx) error {
				if _, err := tx.Head(id); err != nil { // starts the snapshot
					return err
				}
				rename(t, s, id, "new "+kind)
				got, _, err := name(c, tx, id)
				if got != "old "+kind {
					t.Errorf("the old snapshot got %q", got)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			look("new "+kind, false)
			look("new "+kind, true)
			rename(t, s, id, "newest "+kind)
			if _, ok := c.Now(id); ok {
				t.Error("the value is still cached after a change")
			}
			look("newest "+kind, false)
			if h, ok := c.Now(id); !ok || h.Name != "newest "+kind {
				t.Errorf("got %q, cached %v", h.Name, ok)
			}
			// An older snapshot asks for a value that was cached after its start.
			if err := s.View(t.Context(), func(tx *Tx) error {
				if _, err := tx.Head(id); err != nil {
					return err
				}
				rename(t, s, id, "last "+kind)
				look("last "+kind, false)
				if h, ok := c.Get(tx, id); ok {
					t.Errorf("the older snapshot got %q from the cache", h.Name)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestCacheInTransaction checks that a transaction caches values that depend on its own changes for itself alone, and only until its next
// change.
func TestCacheInTransaction(t *testing.T) {
	s := manager(t)
	failed := errors.New("failed")
	for kind, c := range caches(s) {
		t.Run(kind, func(t *testing.T) {
			id := inserted(t, s, "first "+kind)
			err := s.Update(t.Context(), Author{}, func(tx *Tx) error {
				for _, to := range []string{"second " + kind, "third " + kind} {
					if err := renameIn(tx, id, to); err != nil {
						return err
					}
					for i := range 2 {
						if got, remembered, err := name(c, tx, id); got != to || remembered != (i == 1) || err != nil {
							t.Errorf("got %q, cached %v, %v; want %q", got, remembered, err, to)
						}
					}
				}
				return failed
			})
			if !errors.Is(err, failed) {
				t.Fatal(err)
			}
			if err := s.View(t.Context(), func(tx *Tx) error {
				got, remembered, err := name(c, tx, id)
				if got != "first "+kind || remembered {
					t.Errorf("got %q, cached %v, after a failed transaction", got, remembered)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestCacheInGroup checks that a value that depends on the uncommitted change of a job is not shared with the next job of the group. Groups
// collect jobs only for maxGroupTime: on a slow machine the second job may get its own commit, and the test is repeated.
func TestCacheInGroup(t *testing.T) {
	s := manager(t)
	for kind, c := range caches(s) {
		t.Run(kind, func(t *testing.T) {
			for try := range 100 {
				if inOneGroup(t, s, c, fmt.Sprintf("%s %d", kind, try)) {
					return
				}
			}
			t.Error("two jobs never shared a commit")
		})
	}
}

// inOneGroup renames a thing in one job and reads it in the next one. It reports whether they shared a commit.
func inOneGroup(t *testing.T, s *Store, c *Cache[int64, Head], kind string) (shared bool) {
	id := inserted(t, s, "before "+kind)
	inside, second := make(chan struct{}), make(chan error, 1)
	first := make(chan error, 1)
	go func() {
		first <- s.Update(t.Context(), Author{}, func(tx *Tx) error {
			close(inside)
			for len(s.engine.(*sqliteEngine).jobs) == 0 { // until the second job waits
				runtime.Gosched()
			}
			return renameIn(tx, id, "after "+kind)
		})
	}()
	<-inside
	go func() {
		second <- s.Update(context.WithoutCancel(t.Context()), Author{}, func(tx *Tx) error {
			shared = len(tx.groupTopics) > 0
			got, _, err := name(c, tx, id)
			if got != "after "+kind {
				t.Errorf("the second job read %q", got)
			}
			if _, ok := c.Now(id); ok && shared {
				t.Error("an uncommitted value is shared")
			}
			return err
		})
	}()
	if err := errors.Join(<-first, <-second); err != nil {
		t.Fatal(err)
	}
	return shared
}

// TestCacheDetectsForeignCommits checks that a commit of another process is detected, even if its content is unknown. A manager's own
// commits are not treated as those of others.
func TestCacheDetectsForeignCommits(t *testing.T) {
	s, tool := managerAndTool(t)
	id := inserted(t, s, "mine")
	other := NewCache[int](s, CacheOptions[string]{Topics: []string{"nothing changes this"}})
	remember := func() {
		if err := s.View(t.Context(), func(tx *Tx) error { other.Put(tx, 1, "x"); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the first check is done and the value is cached", func() bool { remember(); _, ok := other.Now(1); return ok })
	for i := range 50 { // own commits, over more than one check
		rename(t, s, id, string(rune('a'+i%26))+"x")
	}
	s.engine.(*sqliteEngine).checkRequests <- struct{}{}
	for len(s.engine.(*sqliteEngine).checkRequests) > 0 { // until the writer has started the check
		runtime.Gosched()
	}
	rename(t, s, id, "mine again") // and has finished it
	if _, ok := other.Now(1); !ok {
		t.Error("own commits invalidated the value like foreign ones")
	}
	rename(t, tool, id, "theirs")
	eventually(t, "the commit of another process is detected", func() bool { _, ok := other.Now(1); return !ok })
	c := NewCache[int64](tool, CacheOptions[Head]{Topics: []string{"things"}})
	if err := tool.View(t.Context(), func(tx *Tx) error {
		for i := range 2 {
			if got, remembered, err := name(c, tx, id); got != "theirs" || remembered != (i == 1) || err != nil {
				t.Errorf("got %q, cached %v, %v", got, remembered, err)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, ok := c.Now(id); ok {
		t.Error("a tool shares a value that a manager may change")
	}
}

// TestRowCache checks that a row that is read repeatedly is queried once and reflects the last commit: that of this process at once, that
// of another process shortly afterwards. A change to a returned row does not affect others.
func TestRowCache(t *testing.T) {
	s, tool := managerAndTool(t)
	id := inserted(t, s, "first")
	get := func(s *Store) (r *Resource, err error) {
		err = s.Read(t.Context(), func(tx *Tx) error { r, err = tx.Get(id); return err })
		return r, err
	}
	named := func(s *Store, want string) {
		t.Helper()
		for range 3 {
			r, err := get(s)
			if err != nil || r.Name != want {
				t.Fatalf("%v %v, want %s", r, err, want)
			}
			r.Name, r.Body = "spoilt", append(r.Body, "spoilt"...)
		}
	}
	eventually(t, "the row is cached", func() bool {
		named(s, "first")
		return s.Read(t.Context(), func(tx *Tx) error {
			if _, ok := s.rowCache.Get(tx, id); !ok {
				return ErrNotFound
			}
			return nil
		}) == nil
	})
	body, err := get(s)
	if err != nil || string(body.Body) != string(thing("x").Body) {
		t.Errorf("%s %v", body.Body, err)
	}
	for _, to := range []string{"second", "third"} {
		rename(t, s, id, to)
		named(s, to)
		named(tool, to)
	}
	rename(t, tool, id, "theirs")
	eventually(t, "the commit of another process is detected", func() bool { r, err := get(s); return err == nil && r.Name == "theirs" })
	if err := s.Update(t.Context(), Author{}, func(tx *Tx) error {
		r, err := tx.Get(id)
		if err != nil {
			return err
		}
		return tx.Remove(r)
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := get(s); !errors.Is(err, ErrNotFound) {
		t.Errorf("read a deleted row returned %v", err)
	}
}

// TestCacheKeepsNewerValue checks that a long list that started before a change does not replace values that were read after the change.
func TestCacheKeepsNewerValue(t *testing.T) {
	s := manager(t)
	c := caches(s)["by topic"]
	id := inserted(t, s, "before")
	if err := s.View(t.Context(), func(old *Tx) error {
		h, err := old.Head(id)
		if err != nil {
			return err
		}
		rename(t, s, id, "after")
		if err := s.View(t.Context(), func(tx *Tx) error { _, _, err := name(c, tx, id); return err }); err != nil {
			return err
		}
		c.Put(old, id, h)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if h, ok := c.Now(id); !ok || h.Name != "after" {
		t.Errorf("cached %q, %v", h.Name, ok)
	}
}

// TestCacheAfterLostCommit checks that a commit whose answer was lost still invalidates values when it completes.
func TestCacheAfterLostCommit(t *testing.T) {
	url := pgtest.URL(t)
	s, err := Open(Options{Database: url, Exclusive: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	c := NewCache[int64](s, CacheOptions[Head]{Topics: []string{"things"}})
	id := inserted(t, s, "before")
	eventually(t, "the row is cached", func() bool {
		if err := s.View(t.Context(), func(tx *Tx) error { _, _, err := name(c, tx, id); return err }); err != nil {
			t.Fatal(err)
		}
		_, ok := c.Now(id)
		return ok
	})
	// Simulates a lost answer: the commit is counted before it happens.
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	s.recordCommit([]string{"things"})
	if err := s.View(t.Context(), func(tx *Tx) error { _, _, err := name(c, tx, id); return err }); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{"BEGIN", "UPDATE resource SET name = 'after' WHERE name = 'before'",
		"SELECT pg_notify('" + channel + "', '" + s.engine.(*postgresEngine).pg.id + " things')", "COMMIT"} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the value is discarded", func() bool { _, ok := c.Now(id); return !ok })
}
