package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"portolan/internal/testkit/pgtest"

	"github.com/jackc/pgx/v5"
)

// TestFeed checks that every follower receives each transaction once and in the same order from any position, also during concurrent and
// rolled-back writes.
func TestFeed(t *testing.T) { both(t, feed) }

func feed(t *testing.T, s *Store) {
	const writers, each = 8, 40
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var committed sync.Map
	var wrote atomic.Int64
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				r := thing(fmt.Sprintf("%d-%d", w, i))
				err := s.Update(ctx, Author{User: 7}, func(tx *Tx) error {
					if err := tx.Insert(r); err != nil {
						return err
					}
					if i%5 == 4 {
						return errors.New("changed my mind")
					}
					return nil
				})
				if (err == nil) != (i%5 != 4) {
					t.Errorf("%s: %v", r.Name, err)
				}
				if err == nil {
					committed.Store(r.ID, r.Name)
					wrote.Add(1)
				}
			}
		})
	}
	// One follower runs all the time; its positions are recorded.
	seen := map[int64]int{}
	var order []int64
	var places []Position
	const want = writers * each * 4 / 5
	done := errors.New("seen all")
	err := s.Follow(ctx, Position{}, func(entries []Entry) error {
		for _, e := range entries {
			var changes []EntryChange
			if err := s.EachChange(ctx, e, func(c EntryChange) error { changes = append(changes, c); return nil }); err != nil {
				return err
			}
			if e.User != 7 || len(changes) != 1 || changes[0].After == nil || changes[0].Before != nil {
				t.Fatalf("the entry is %+v with changes %+v", e, changes)
			}
			seen[changes[0].Resource]++
			order, places = append(order, e.ID), append(places, e.Position)
		}
		if len(order) >= want {
			return done
		}
		return nil
	})
	if !errors.Is(err, done) {
		t.Fatalf("Follow returned %v after %d of %d", err, len(order), want)
	}
	all.Wait()
	committed.Range(func(id, name any) bool {
		if seen[id.(int64)] != 1 {
			t.Errorf("%v, %v, was received %d times", id, name, seen[id.(int64)])
		}
		return true
	})
	// A later follower receives the same order from any position.
	for _, from := range []int{-1, 0, want / 2, want - 1} {
		after := Position{}
		if from >= 0 {
			if after, err = ParsePosition(places[from].String()); err != nil {
				t.Fatal(err)
			}
		}
		var again []int64
		for {
			entries, err := s.Feed(ctx, after, 17)
			if err != nil {
				t.Fatal(err)
			}
			if len(entries) == 0 {
				break
			}
			for _, e := range entries {
				again = append(again, e.ID)
			}
			after = entries[len(entries)-1].Position
		}
		if !slices.Equal(again, order[from+1:]) {
			t.Errorf("the order differs from position %d on", from)
		}
	}
	foreign := places[0]
	foreign.Origin = "elsewhere"
	if _, err := s.Feed(ctx, foreign, 1); !errors.Is(err, ErrForeignPosition) {
		t.Errorf("a position of another database returned %v", err)
	}
	// A database that was restored to an earlier state assigns later numbers again.
	taken := places[0]
	taken.At++
	if _, err := s.Feed(ctx, taken, 1); !errors.Is(err, ErrForeignPosition) {
		t.Errorf("a position whose number was assigned again returned %v", err)
	}
	taken.Transaction, taken.At = 1<<40, time.Now().UnixMilli()
	if _, err := s.Feed(ctx, taken, 1); !errors.Is(err, ErrForeignPosition) {
		t.Errorf("a position of a missing transaction returned %v", err)
	}
	for _, bad := range []string{"x", "a.b.c", "a.1", "a.-1.5", ".1.1", "a.1.-1"} {
		if p, err := ParsePosition(bad); err == nil {
			t.Errorf("%q was parsed as %+v", bad, p)
		}
	}
}

// TestFeedWithoutGaps checks that a follower whose connections are killed at random, while two managers write, misses nothing and receives
// nothing twice.
func TestFeedWithoutGaps(t *testing.T) {
	url := pgtest.URL(t)
	stores := make([]*Store, 3)
	for i := range stores {
		var err error
		if stores[i], err = Open(Options{Database: url, Exclusive: true}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = stores[i].Close() })
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const writers, length = 6, 4 * time.Second
	var wrote atomic.Int64
	written := make(chan struct{})
	var all sync.WaitGroup
	ends := time.Now().Add(length)
	for w := range writers {
		all.Go(func() {
			for n := 0; time.Now().Before(ends); n++ {
				err := stores[w%2].Update(ctx, Author{}, func(tx *Tx) error {
					if err := tx.Insert(thing(fmt.Sprintf("%d-%d", w, n))); err != nil {
						return err
					}
					if n%7 == 0 { // some transactions take longer than later ones
						time.Sleep(time.Duration(rand.N(20)) * time.Millisecond) //nolint:gosec // randomness needs no secrecy
					}
					return nil
				})
				if err == nil {
					wrote.Add(1)
				}
			}
		})
	}
	go func() {
		all.Wait()
		close(written)
		// One more transaction, so that the follower queries again after all writes.
		for ctx.Err() == nil && stores[0].Update(ctx, Author{}, func(tx *Tx) error { return tx.Insert(thing("the last")) }) != nil {
		}
	}()
	killed := killConnections(t, url, written)
	seen := map[int64]bool{}
	var last Position
	var there int64 // counted after the last page, because "the last" may arrive later
	done := errors.New("seen all")
	err := stores[2].Follow(ctx, Position{}, func(entries []Entry) error {
		for _, e := range entries {
			if seen[e.ID] {
				t.Errorf("transaction %d was received twice", e.ID)
			}
			if p := e.Position; p.Settled < last.Settled || p.Settled == last.Settled && p.Transaction <= last.Transaction {
				t.Errorf("%v was received after %v", p, last)
			}
			seen[e.ID], last = true, e.Position
		}
		select {
		case <-written:
			if there = count(t, stores[2]); int64(len(seen)) >= there {
				return done
			}
		default:
		}
		return nil
	})
	if !errors.Is(err, done) {
		t.Fatalf("Follow returned %v: %d of %d received", err, len(seen), wrote.Load())
	}
	// An update whose connection was killed may or may not be committed. Acknowledged updates must be.
	if there < wrote.Load() || there != int64(len(seen)) {
		t.Errorf("%d were acknowledged, %d exist, %d were received", wrote.Load(), there, len(seen))
	}
	if killed() == 0 {
		t.Error("no connection was killed")
	}
	t.Logf("%d transactions; %d connections were killed", len(seen), killed())
}

// killConnections kills connections of managers at random until stop. The returned function returns their number.
func killConnections(t *testing.T, url string, stop <-chan struct{}) func() int {
	t.Helper()
	var n atomic.Int64
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(20+rand.N(80)) * time.Millisecond): //nolint:gosec // randomness needs no secrecy
			}
			tag, err := conn.Exec(context.Background(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"+
				" WHERE application_name = 'portolan' AND datname = current_database() AND random() < 0.3")
			if err != nil {
				t.Error(err)
				return
			}
			n.Add(tag.RowsAffected())
		}
	}()
	t.Cleanup(func() { <-ended; _ = conn.Close(context.Background()) })
	return func() int { return int(n.Load()) }
}

// TestNotifications checks that a value that one manager caches is discarded after another manager changed it.
func TestNotifications(t *testing.T) {
	url := pgtest.URL(t)
	var stores [2]*Store
	for i := range stores {
		var err error
		if stores[i], err = Open(Options{Database: url, Exclusive: true}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = stores[i].Close() })
	}
	told := make(chan struct{}, 100)
	stores[0].Watch("things", nil)
	stores[1].Watch("things", func([]string) { told <- struct{}{} })
	topics := []string{"things"}
	eventually(t, "both managers receive notifications", func() bool { return stores[0].canShare(topics) && stores[1].canShare(topics) })
	things := NewCache[int](stores[1], CacheOptions[string]{Topics: topics})
	all := NewCache[int](stores[1], CacheOptions[string]{})
	among := NewCache[int](stores[1], CacheOptions[string]{By: func(v string) string { return v }, Among: topics})
	eventually(t, "the values are cached", func() bool {
		err := stores[1].View(t.Context(), func(tx *Tx) error { things.Put(tx, 1, "before"); all.Put(tx, 1, "before"); return nil })
		if err != nil {
			t.Fatal(err)
		}
		_, ok := things.Now(1)
		return ok
	})
	if _, ok := all.Now(1); ok {
		t.Error("a value that depends on everything is cached without notifications of everything")
	}
	if err := stores[1].View(t.Context(), func(tx *Tx) error {
		among.Put(tx, 1, "things")
		among.Put(tx, 2, "others")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, ok := among.Now(1); !ok {
		t.Error("a value of a watched topic is not cached")
	}
	if _, ok := among.Now(2); ok {
		t.Error("a value of an unwatched topic is cached")
	}
	mine := stores[0].LastCommit()
	for len(told) > 0 { // notifications of possibly missed changes
		<-told
	}
	insert(t, stores[0], thing("news"))
	<-told
	if _, ok := things.Now(1); ok { // the value is discarded before the callback
		t.Error("a value that another manager changed is cached")
	}
	if _, ok := among.Now(1); ok {
		t.Error("a value that another manager changed is cached by topic")
	}
	if stores[0].LastCommit() == mine {
		t.Error("a manager did not count its own change")
	}
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); {
		if time.Now().After(deadline) {
			t.Fatalf("timeout waiting for: %s", what)
		}
		time.Sleep(5 * time.Millisecond) // between two checks
	}
}

// TestLease checks that a lease has one holder at a time. A late holder changes nothing.
func TestLease(t *testing.T) {
	var late atomic.Int64 // the offset of the clock in nanoseconds
	start := time.Now()
	clock := func() time.Time { return start.Add(time.Duration(late.Load())) }
	bothAt(t, clock, func(t *testing.T, s *Store) {
		lease(t, s, func(d time.Duration) { late.Add(int64(d)) })
	})
}

// lease tests leases. pass advances the clock.
func lease(t *testing.T, s *Store, pass func(time.Duration)) {
	ctx := t.Context()
	one, two := s.NewLease("work", time.Minute), s.NewLease("work", time.Minute)
	take := func(l *Lease, want bool) {
		t.Helper()
		if held, err := l.Acquire(ctx); err != nil || held != want {
			t.Fatalf("Take returned %v, %v; want %v", held, err, want)
		}
	}
	work := func(l *Lease, want error) {
		t.Helper()
		before := count(t, s)
		err := l.Update(ctx, Author{}, func(tx *Tx) error { return tx.Insert(thing("w")) })
		if !errors.Is(err, want) || (count(t, s) == before) != (want != nil) {
			t.Errorf("Update returned %v, want %v", err, want)
		}
	}
	work(one, ErrLeaseLost)
	take(one, true)
	take(two, false)
	work(one, nil)
	work(two, ErrLeaseLost)
	pass(59 * time.Second)
	take(one, true) // renew
	pass(59 * time.Second)
	take(two, false)
	pass(2 * time.Second)
	take(two, true) // the holder was late
	work(one, ErrLeaseLost)
	work(two, nil)
	take(one, false)
	if err := two.Release(ctx); err != nil {
		t.Fatal(err)
	}
	take(one, true)
	work(two, ErrLeaseLost)
	// Of many concurrent attempts one succeeds.
	pass(2 * time.Minute)
	var held atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if ok, err := s.NewLease("work", time.Minute).Acquire(ctx); err != nil {
				t.Error(err)
			} else if ok {
				held.Add(1)
			}
		})
	}
	all.Wait()
	if held.Load() != 1 {
		t.Errorf("%d processes hold the lease", held.Load())
	}
}

// TestReplica checks that lists are read from the standby once it has everything that was acknowledged, and from the database itself while
// the standby is behind or unreachable.
func TestReplica(t *testing.T) {
	primary := pgtest.New(t)
	standby, err := primary.Standby(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(standby.Stop)
	s, err := Open(Options{Database: primary.URL("postgres"), DatabaseRead: standby.URL("postgres")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	// ask returns the number of things in a list, and whether the list was read from a standby.
	ask := func() (n int64, replica bool) {
		t.Helper()
		if err := s.Lists(t.Context(), func(tx *Tx) (err error) {
			if n, err = tx.Count(Query{From: Resources}); err != nil {
				return err
			}
			return tx.QueryRow("SELECT pg_is_in_recovery()").Scan(&replica)
		}); err != nil {
			t.Fatal(err)
		}
		return n, replica
	}
	fromReplica := 0
	for i := range 50 {
		insert(t, s, thing(fmt.Sprint(i)))
		n, replica := ask()
		if n != int64(i+1) {
			t.Fatalf("%d things read, %d acknowledged (standby: %v)", n, i+1, replica)
		}
		if replica {
			fromReplica++
		}
	}
	if fromReplica == 0 {
		t.Error("no list was read from the standby")
	}
	// A standby that stops replaying is behind after the next change.
	if err := standby.Do(t.Context(), "SELECT pg_wal_replay_pause()"); err != nil {
		t.Fatal(err)
	}
	if err := primary.Do(t.Context(), "ALTER SYSTEM SET synchronous_standby_names = ''", "SELECT pg_reload_conf()"); err != nil {
		t.Fatal(err)
	}
	insert(t, s, thing("behind"))
	if n, replica := ask(); n != 51 || replica {
		t.Errorf("%d things, read from the standby: %v", n, replica)
	}
	if err := standby.Kill(); err != nil {
		t.Fatal(err)
	}
	insert(t, s, thing("gone"))
	if n, replica := ask(); n != 52 || replica {
		t.Errorf("%d things, read from the standby: %v", n, replica)
	}
}

// TestCarry checks that Carry can be interrupted at any step, continues, and ends with equal databases. Until then the target cannot be
// used for anything else.
func TestCarry(t *testing.T) {
	for _, way := range []string{"SQLite to PostgreSQL", "PostgreSQL to SQLite"} {
		t.Run(way, func(t *testing.T) {
			from, to := Options{Dir: t.TempDir(), Exclusive: true}, Options{Database: pgtest.URL(t)}
			if way == "PostgreSQL to SQLite" {
				from, to = to, from
			}
			source, err := Open(from)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = source.Close() })
			for range 5 { // more than one step
				if err := source.Update(t.Context(), Author{}, func(tx *Tx) error {
					for i := range 5000 {
						if err := tx.Insert(thing(fmt.Sprint(i))); err != nil {
							return err
						}
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
			}
			carry := func(ctx context.Context, progress Progress) error {
				t.Helper()
				o := to
				o.Filling = true
				target, err := Open(o)
				if err != nil {
					t.Fatal(err)
				}
				_, err = Carry(ctx, source, target, progress)
				if e := target.Close(); e != nil {
					t.Error(e)
				}
				return err
			}
			for cutAt := range 4 {
				ctx, cancel := context.WithCancel(t.Context())
				steps := 0
				if err := carry(ctx, func(string, int64, int64) {
					if steps++; steps == 3+2*cutAt {
						cancel()
					}
				}); err == nil {
					break
				}
				cancel()
				if s, err := Open(to); !errors.Is(err, ErrFilling) {
					if err == nil {
						_ = s.Close()
					}
					t.Fatalf("opening an incomplete copy returned %v", err)
				}
			}
			if cutOff := carry(t.Context(), func(string, int64, int64) {}); cutOff != nil {
				t.Fatal(cutOff)
			}
			target, err := Open(to)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = target.Close() })
			if count(t, target) != 25000 {
				t.Errorf("%d resources", count(t, target))
			}
			last := thing("the next")
			insert(t, target, last)
			if last.ID <= 25000 {
				t.Errorf("the numbers start again at %d", last.ID)
			}
			if _, err := Carry(t.Context(), source, target, func(string, int64, int64) {}); !errors.Is(err, ErrNotEmpty) {
				t.Errorf("copying to a database with data returned %v", err)
			}
		})
	}
}

// TestCarryChangedSource checks that a change of the source during an interruption of Carry is detected.
func TestCarryChangedSource(t *testing.T) {
	source, target := open(t, t.TempDir()), open(t, t.TempDir())
	t.Cleanup(func() { _ = source.Close(); _ = target.Close() })
	insert(t, source, thing("first"))
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := Carry(ctx, source, target, func(string, int64, int64) { cancel() }); err == nil {
		t.Fatal("the copy was not interrupted")
	}
	insert(t, source, thing("second"))
	if _, err := Carry(t.Context(), source, target, func(string, int64, int64) {}); !errors.Is(err, ErrOtherSource) {
		t.Errorf("continuing from a changed source returned %v", err)
	}
}

// TestHubChecksPositions checks that a hub returns the entries after a position that it has, and none if the number of the position was
// assigned again.
func TestHubChecksPositions(t *testing.T) {
	at := func(n int64) Position { return Position{Origin: "o", Transaction: n, At: 1000 + n} }
	h := &hub{reading: true, from: at(5), latest: []Entry{{Position: at(6)}, {Position: at(7)}}}
	old := at(6)
	old.At = 0
	again, foreign := at(6), at(6)
	again.At, foreign.Origin = 999, "other"
	for name, c := range map[string]struct {
		after Position
		want  int
		known bool
	}{
		"the beginning of the hub": {at(5), 2, true}, "the middle": {at(6), 1, true}, "the end": {at(7), 0, true},
		"an older form": {old, 1, true}, "further behind": {at(4), 0, false},
		"a number given again": {again, 0, false}, "another database": {foreign, 0, false}, "the start": {Position{}, 0, false},
	} {
		if entries, known := h.listAfter(c.after, 10); len(entries) != c.want || known != c.known {
			t.Errorf("%s: %d transactions, known: %v", name, len(entries), known)
		}
	}
}
