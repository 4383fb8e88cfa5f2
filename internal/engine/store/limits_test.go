package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/testkit/pgtest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// TestFilePermissions checks that the database files are only accessible by their owner, also in an existing directory.
func TestFilePermissions(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // an operator may have created it like this
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		s := open(t, dir)
		insert(t, s, thing("x"))
		for _, name := range []string{databaseFile, databaseFile + "-wal", databaseFile + "-shm", "lock"} {
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil {
				t.Error(err)
				continue
			}
			if info.Mode().Perm() != 0o600 {
				t.Errorf("%s has the mode %v", name, info.Mode().Perm())
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	check()
	if err := os.Chmod(filepath.Join(dir, databaseFile), 0o644); err != nil { //nolint:gosec // as older versions created it
		t.Fatal(err)
	}
	check()
}

// TestUnreadListsBlockNoOther checks that lists whose clients stopped reading block neither reads nor readiness nor changes.
func TestUnreadListsBlockNoOther(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		insert(t, s, thing("x"))
		ctx, cancel := context.WithCancel(t.Context())
		release := make(chan struct{})
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				_ = s.Lists(ctx, func(tx *Tx) error { // most of them wait for a connection
					return tx.List(Query{From: Resources}, func(*Resource) error { <-release; return nil })
				})
			})
		}
		defer all.Wait()
		defer cancel()
		defer close(release)
		quick, stop := context.WithTimeout(t.Context(), 30*time.Second)
		defer stop()
		if count(t, s) != 1 {
			t.Error("a read does not see existing rows")
		}
		if err := s.Ready(quick); err != nil {
			t.Errorf("readiness: %v", err)
		}
		if err := s.Update(quick, Author{}, func(tx *Tx) error { return tx.Insert(thing("y")) }); err != nil {
			t.Errorf("a change: %v", err)
		}
	})
}

// TestLongReadsEnd checks that a long read ends when its deadline passes or its client disconnects, also within a statement.
func TestLongReadsEnd(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		endless := "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000000000) SELECT count(*) FROM n"
		for name, want := range map[string]error{"deadline": ErrTooLong, "gone": context.Canceled} {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			if name == "gone" {
				ctx, cancel = context.WithCancel(t.Context())
				time.AfterFunc(200*time.Millisecond, cancel)
			}
			err := s.Lists(ctx, func(tx *Tx) error {
				var n int64
				return tx.QueryRow(endless).Scan(&n)
			})
			cancel()
			if !errors.Is(err, want) { // the statement would take hours
				t.Errorf("%s: %v", name, err)
			}
		}
		insert(t, s, thing("x"))
		if err := s.Lists(t.Context(), func(tx *Tx) error { _, err := tx.Count(Query{From: Resources}); return err }); err != nil {
			t.Errorf("the next long read: %v", err)
		}
	})
}

// shared opens a PostgreSQL database in the mode of a manager.
func shared(t *testing.T, url string, change ...func(*Options)) *Store {
	t.Helper()
	o := Options{Database: url, Exclusive: true}
	for _, f := range change {
		f(&o)
	}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestNumbersDoNotWait checks that the assignment of a number never waits for an update that needs a number: here the first change after a
// start, while others wait for its lock.
func TestNumbersDoNotWait(t *testing.T) {
	s := shared(t, pgtest.URL(t))
	entered, goOn := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		if err := s.Update(t.Context(), Author{}, func(tx *Tx) error {
			if _, err := tx.Exec("SELECT 1"); err != nil { // takes the locks
				return err
			}
			close(entered)
			<-goOn
			return tx.Insert(thing("holder"))
		}); err != nil {
			t.Errorf("the update with the lock returned %v", err)
		}
	})
	<-entered
	for i := range 4 { // each as if in another process: within this one they would wait for turns before the database
		all.Go(func() {
			pg := s.engine.(*postgresEngine).pg
			pooled, err := pg.pool.Acquire(t.Context())
			if err != nil {
				t.Errorf("acquiring a connection returned %v", err)
				return
			}
			err = pg.runOn(t.Context(), pooled, beginLocked, func(c *pgConn) error {
				query, args := locks{exclusive: lockOfAll}.statement()
				c.enqueue(query, args...)
				tx := &Tx{store: s, ctx: t.Context(), conn: c, now: time.Now(), ids: &sequences{pg, c}, writing: true}
				if err := tx.Insert(thing(fmt.Sprint("waiter ", i))); err != nil {
					return err
				}
				return c.commit()
			})
			if err != nil {
				t.Errorf("the waiting update returned %v", err)
			}
		})
	}
	for waiting := 0; waiting < 4; time.Sleep(5 * time.Millisecond) { // until they wait in the database
		if err := s.View(t.Context(), func(tx *Tx) error {
			return tx.QueryRow("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = " +
				"(SELECT oid FROM pg_database WHERE datname = current_database())").Scan(&waiting)
		}); err != nil {
			t.Fatal(err)
		}
	}
	close(goOn)
	all.Wait()
}

// TestAddressKeyInParallel checks that addresses in bodies also compare in parallel workers. A text that is not an address has no key.
func TestAddressKeyInParallel(t *testing.T) {
	url := pgtest.URL(t)
	shared(t, url)
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	for _, text := range []string{"10.0.0.1", "255.255.255.255", "0.0.0.0", "::", "::1", "2001:db8::1", "1:2:3:4:5:6:7:8", "fe80::1:2:3:4",
		"1::", "1:2:3:4:5:6:7:0"} {
		var key []byte
		if err := c.QueryRow(t.Context(), "SELECT address_key($1)", text).Scan(&key); err != nil ||
			!bytes.Equal(key, AddrKey(netip.MustParseAddr(text))) {
			t.Errorf("%s has the key %x, %v", text, key, err)
		}
	}
	for _, text := range []string{"", "10.0.0", "10.0.0.256", "01.0.0.1", "10.0.0.1.", ":::", "1::2::3", "1:2:3:4:5:6:7:8:9", "g::",
		"12345::", "1:2:3:4:5:6:7", "::1:2:3:4:5:6:7:8", "x"} {
		var key []byte
		if err := c.QueryRow(t.Context(), "SELECT address_key($1)", text).Scan(&key); err != nil || key != nil {
			t.Errorf("%q has the key %x, %v", text, key, err)
		}
	}
	for _, statement := range []string{"INSERT INTO resource (id, collection, type, version, body) SELECT i, 'n', 'N', 1, " +
		"'{\"gateway\":\"10.0.0.1\"}' FROM generate_series(1, 20000) i",
		"ANALYZE resource", "SET parallel_setup_cost = 0", "SET parallel_tuple_cost = 0", "SET min_parallel_table_scan_size = 0",
		"SET max_parallel_workers_per_gather = 2"} {
		if _, err := c.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	var plan, n string
	if err := c.QueryRow(t.Context(),
		"SELECT count(*)::text FROM resource WHERE address_key(body::json #>> '{gateway}') = address_key('10.0.0.1')").Scan(&n); err != nil ||
		n != "20000" {
		t.Errorf("%s rows, %v", n, err)
	}
	rows, err := c.Query(t.Context(),
		"EXPLAIN SELECT count(*) FROM resource WHERE address_key(body::json #>> '{gateway}') = address_key('10.0.0.1')")
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		plan += line + "\n"
	}
	if !strings.Contains(plan, "Parallel") {
		t.Errorf("the query does not run in parallel:\n%s", plan)
	}
}

// TestPatienceLimitsWaitingOnly checks that the duration of a change is not limited. A change that waits too long for another one gets an
// error that tells the client to try again.
func TestPatienceLimitsWaitingOnly(t *testing.T) {
	url := pgtest.URL(t)
	impatient := func(o *Options) { o.Patience = 300 * time.Millisecond }
	one, two := shared(t, url, impatient), shared(t, url, impatient)
	entered, waited := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		if err := one.Update(t.Context(), Author{}, func(tx *Tx) error {
			if _, err := tx.Exec("SELECT 1"); err != nil {
				return err
			}
			close(entered)
			_, err := tx.Exec("SELECT pg_sleep(0.5)") // longer than the patience of others
			<-waited
			return err
		}); err != nil {
			t.Errorf("a slow change returned %v", err)
		}
	})
	<-entered
	for name, s := range map[string]*Store{"the same manager": one, "another manager": two} {
		err := s.Update(t.Context(), Author{}, func(tx *Tx) error { return tx.Insert(thing("x")) })
		if !problem.Is(err, "DatabaseBusy") {
			t.Errorf("the waiting change in %s returned %v", name, err)
		}
	}
	close(waited)
	all.Wait()
}

// TestReadsDoNotWaitForWriters checks that reads do not wait for changes that wait for each other.
func TestReadsDoNotWaitForWriters(t *testing.T) {
	s := shared(t, pgtest.URL(t))
	insert(t, s, thing("x"))
	entered, release := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		_ = s.Update(t.Context(), Author{}, func(tx *Tx) error { // only blocks others
			_, err := tx.Exec("SELECT 1")
			close(entered)
			<-release
			return err
		})
	})
	<-entered
	for range 40 { // more than there are connections
		all.Go(func() {
			_ = s.engine.(*postgresEngine).pg.readWith(t.Context(), s.engine.(*postgresEngine).pg.pool, beginLocked, func(c conn) error {
				query, args := locks{exclusive: lockOfAll}.statement()
				_, err := c.exec(query, args...)
				return err
			})
		})
	}
	defer all.Wait()
	defer close(release)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := s.View(ctx, func(tx *Tx) error { _, err := tx.Count(Query{From: Resources}); return err }); err != nil {
		t.Errorf("a read: %v", err)
	}
	if err := s.Ready(ctx); err != nil {
		t.Errorf("readiness: %v", err)
	}
}

// TestSchemaBelowARunningManager checks that a tool does not migrate the schema under a running manager, and that a manager does not write
// to another schema than its own.
func TestSchemaBelowARunningManager(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) {
		dir := t.TempDir()
		older, err := Open(Options{Dir: dir, Schema: 3, Exclusive: true})
		if err != nil {
			t.Fatal(err)
		}
		var wrong *SchemaError
		if s, err := Open(Options{Dir: dir}); !errors.As(err, &wrong) || wrong.Database != 3 {
			if err == nil {
				_ = s.Close()
			}
			t.Errorf("the tool got %v", err)
		}
		raw, err := newSession(filepath.Join(dir, databaseFile), writeSession)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := raw.exec("PRAGMA user_version = 4"); err != nil {
			t.Fatal(err)
		}
		if err := older.Update(t.Context(), Author{}, func(tx *Tx) error { return tx.Insert(thing("x")) }); !problem.Is(err, "SchemaChanged") {
			t.Errorf("the older manager's change returned %v", err)
		}
		if _, err := raw.exec("PRAGMA user_version = 3"); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(raw.close(), older.Close()); err != nil {
			t.Fatal(err)
		}
		s, err := Open(Options{Dir: dir}) // no manager is running now
		if err != nil {
			t.Fatal(err)
		}
		_ = s.Close()
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		url := pgtest.URL(t)
		older := shared(t, url, func(o *Options) { o.Schema = 3 })
		var wrong *SchemaError
		eventually(t, "the manager holds its lock", func() (held bool) { // it is taken after the start
			if err := older.View(t.Context(), func(tx *Tx) error {
				return tx.QueryRow("SELECT EXISTS (SELECT 1 FROM pg_locks l JOIN pg_database d ON d.oid = l.database WHERE l.locktype = "+
					"'advisory' AND "+
					"d.datname = current_database() AND l.granted AND l.classid::bigint << 32 | l.objid::bigint = ?)", int64(managerLock)).Scan(&held)
			}); err != nil {
				t.Fatal(err)
			}
			return held
		})
		if s, err := Open(Options{Database: url}); !errors.As(err, &wrong) {
			if err == nil {
				_ = s.Close()
			}
			t.Errorf("the tool got %v", err)
		}
		newer := shared(t, url)
		if err := newer.Update(t.Context(), Author{}, func(tx *Tx) error {
			_, err := tx.Exec("INSERT INTO schema_version (version) VALUES (?)", newer.Layout().Version()+1)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if err := newer.Update(t.Context(), Author{}, func(tx *Tx) error { return tx.Insert(thing("x")) }); !problem.Is(err, "SchemaChanged") {
			t.Errorf("a change under another schema returned %v", err)
		}
		_ = older
	})
}

// TestRetriedErrors checks that a change is retried if the database aborts its transaction.
func TestRetriedErrors(t *testing.T) {
	for code, want := range map[string]string{"25P03": "DatabaseUnavailable", "57014": "DatabaseUnavailable", "55P03": "DatabaseBusy",
		"40001": "DatabaseBusy", "08006": "DatabaseUnavailable", "23514": ""} {
		err := connectionProblem(&pgconn.PgError{Code: code})
		if p, ok := problem.As(err); ok != (want != "") || ok && (p.Code != want || p.Status != 503) {
			t.Errorf("%s was converted to %v", code, err)
		}
	}
	if !isConnectionLost(&pgconn.PgError{Code: "25P03"}) {
		t.Error("a transaction that ended while it waited for this process is not retried")
	}
}

// TestFullDisk checks that changes that do not fit on a full disk are rejected with DatabaseFull, and that nothing else is lost.
func TestFullDisk(t *testing.T) {
	s := open(t, t.TempDir())
	defer func() { _ = s.Close() }()
	insert(t, s, thing("before"))
	limit := func(pages int) {
		t.Helper()
		if err := s.Update(t.Context(), Author{}, func(tx *Tx) error {
			var n int64
			return tx.QueryRow(fmt.Sprintf("PRAGMA max_page_count = %d", pages)).Scan(&n)
		}); err != nil {
			t.Fatal(err)
		}
	}
	limit(2000) // 8 MiB
	big := func(tx *Tx) error {
		for i := range 64 { // exceeds the cache and spills to disk
			if err := tx.Insert(thing(fmt.Sprint(i, strings.Repeat("x", 1<<20)))); err != nil {
				return err
			}
		}
		return nil
	}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if err := s.Update(t.Context(), Author{}, big); !problem.Is(err, "DatabaseFull") {
				t.Errorf("a change that does not fit returned %v", err)
			}
		})
	}
	all.Wait()
	if is, since, why := s.Condition(); is != Full || since.IsZero() || why == nil {
		t.Errorf("the condition is %s since %s: %v", is, since, why)
	}
	if count(t, s); s.condition.Load() == nil {
		t.Error("a read ended the condition FULL")
	}
	limit(1 << 30)
	insert(t, s, thing("after"))
	if is, _, _ := s.Condition(); is != Full { // a larger change may still fail
		t.Errorf("right after the failed change the condition is %s", is)
	}
	stored := 2
	for deadline := time.Now().Add(time.Minute); ; { // the index of texts may record that it failed, too
		if f := s.condition.Load(); f != nil {
			aged := *f
			aged.lastSeen = time.Now().Add(-fullFor - time.Second)
			s.condition.CompareAndSwap(f, &aged)
		}
		insert(t, s, thing(fmt.Sprint("later", stored)))
		stored++
		is, _, why := s.Condition()
		if is == Ready {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("after a successful change the condition is %s: %v", is, why)
		}
	}
	if n := count(t, s); n != int64(stored) {
		t.Errorf("%d resources", n)
	}
}

// TestReadOnly checks that sessions without write access read a database and refuse changes.
func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	insert(t, s, thing("x"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []sessionKind{readSession, immutableSession} {
		r, err := newSession(filepath.Join(dir, databaseFile), kind)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.exec("DELETE FROM resource"); err == nil {
			t.Error("a read-only store deleted a row")
		}
		if err := r.close(); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Open(Options{Dir: dir, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if count(t, r) != 1 {
		t.Error("a read-only store does not see existing rows")
	}
	if err := r.Update(t.Context(), Author{}, func(*Tx) error { return nil }); err == nil {
		t.Error("a read-only store accepted a change")
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: t.TempDir(), ReadOnly: true}); err == nil {
		t.Error("a missing database was opened for reading")
	}
}

// TestConcurrentFirstStarts checks that concurrent first starts succeed with any default isolation level of the database.
func TestConcurrentFirstStarts(t *testing.T) {
	url := pgtest.URL(t)
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(t.Context(),
		"DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || current_database() || ' SET default_transaction_isolation = ''repeatable read'''; END "+
			"$$"); err != nil {
		t.Fatal(err)
	}
	_ = c.Close(t.Context())
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			s, err := Open(Options{Database: url, Exclusive: true})
			if err != nil {
				t.Error(err)
				return
			}
			_ = s.Close()
		})
	}
	all.Wait()
}

// TestExclusiveTool checks that a tool that must run alone is rejected while a manager runs, and keeps managers from starting.
func TestExclusiveTool(t *testing.T) {
	url := pgtest.URL(t)
	manager, err := Open(Options{Database: url, Exclusive: true})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the tool is rejected", func() bool {
		s, err := Open(Options{Database: url, Alone: true})
		if err == nil {
			_ = s.Close()
		}
		return errors.Is(err, errServed)
	})
	if err := manager.Close(); err != nil {
		t.Fatal(err)
	}
	tool, err := Open(Options{Database: url, Alone: true})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := Open(Options{Database: url, Exclusive: true}); err == nil {
		_ = s.Close()
		t.Error("a manager started while the tool was running")
	}
	if err := tool.Close(); err != nil {
		t.Fatal(err)
	}
	shared(t, url)
}

// TestRetention checks that old transactions are deleted from the history, and that followers that need them get an error.
func TestRetention(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		for i := range 5 {
			insert(t, s, thing(fmt.Sprint(i)))
		}
		entries, err := s.Feed(t.Context(), Position{}, 10)
		if err != nil || len(entries) != 5 {
			t.Fatalf("%d entries, %v", len(entries), err)
		}
		if n, err := s.PruneHistory(t.Context(), s.Update, time.Now().Add(time.Hour), nil); n != 0 || err != nil {
			t.Errorf("%d unlinked transactions were pruned, %v", n, err)
		}
		chain(t, s)
		if n, err := s.PruneHistory(t.Context(), s.Update, time.Now().Add(-time.Hour), nil); n != 0 || err != nil {
			t.Errorf("%d recent transactions were pruned, %v", n, err)
		}
		if n, err := s.PruneHistory(t.Context(), s.Update, time.Now().Add(time.Hour), nil); n != 5 || err != nil {
			t.Errorf("%d transactions were pruned, %v", n, err)
		}
		insert(t, s, thing("later"))
		old := entries[2].Position
		for _, at := range []int64{old.At, 0} { // 0 as in positions of older versions
			if old.At = at; true {
				if _, err := s.Feed(t.Context(), old, 10); !errors.Is(err, ErrPruned) {
					t.Errorf("the follower got %v", err)
				}
			}
		}
		// A follower that has received the last pruned transaction has missed nothing.
		if left, err := s.Feed(t.Context(), entries[4].Position, 10); err != nil || len(left) != 1 {
			t.Errorf("the up-to-date follower got %d entries, %v", len(left), err)
		}
		if left, err := s.Feed(t.Context(), Position{}, 10); err != nil || len(left) != 1 {
			t.Errorf("%d entries left, %v", len(left), err)
		}
		if count(t, s) != 6 {
			t.Error("resources were deleted with their history")
		}
	})
}

// TestFeedOfALargeTransaction checks that the changes of a large transaction are read in pieces.
func TestFeedOfALargeTransaction(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		const n = 3*changesPage + 7
		if err := s.Update(t.Context(), Author{}, func(tx *Tx) error {
			var all []*Resource
			for i := range n {
				all = append(all, thing(fmt.Sprint(i)))
			}
			return tx.InsertMany(all)
		}); err != nil {
			t.Fatal(err)
		}
		entries, err := s.Feed(t.Context(), Position{}, 10)
		if err != nil || len(entries) != 1 {
			t.Fatalf("%d entries, %v", len(entries), err)
		}
		seen, last := 0, int64(0)
		if err := s.EachChange(t.Context(), entries[0], func(c EntryChange) error {
			if seen++; c.Sequence <= last || c.After == nil {
				t.Fatalf("change %d was received after %d", c.Sequence, last)
			}
			last = c.Sequence
			return nil
		}); err != nil || seen != n {
			t.Errorf("%d changes, %v", seen, err)
		}
	})
}

// TestBelowStartsAtPredecessor checks that the search for siblings that overlap a span starts at the sibling before it, however many there
// are.
func TestBelowStartsAtPredecessor(t *testing.T) {
	both(t, func(t *testing.T, s *Store) {
		at := func(i int) []byte { return AddrKey(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})) }
		if err := s.Update(t.Context(), Author{}, func(tx *Tx) error {
			for i := 0; i < 1000; i += 10 {
				r := thing(fmt.Sprint(i))
				r.Parent, r.Low, r.High, r.Links = 7, at(i), at(i+4), []Ref{{"friends", 1}}
				if err := tx.Insert(r); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ low, high, want int }{{0, 999, 100}, {3, 3, 1}, {5, 9, 0}, {4, 10, 2}, {500, 509, 1}, {504, 510, 2},
			{990, 2000, 1}, {2000, 3000, 0}} {
			if err := s.View(t.Context(), func(tx *Tx) error {
				below, err := tx.ListBelow(7, "things", at(c.low), at(c.high))
				if err != nil {
					return err
				}
				within, err := tx.ListWithin(7, "things", at(c.low), at(c.high), 1000)
				if len(below) != c.want || len(within) != c.want {
					t.Errorf("%d-%d: %d and %d, want %d", c.low, c.high, len(below), len(within), c.want)
				}
				for _, r := range below {
					if len(r.Links) != 1 {
						t.Errorf("%s has the links %v", r.Name, r.Links)
					}
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
	})
}
