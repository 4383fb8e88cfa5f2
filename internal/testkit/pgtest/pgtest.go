//go:build unix

// Package pgtest starts temporary PostgreSQL servers for tests and benchmarks, from the installed binaries.
package pgtest

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// one is the server that the tests of a process share. It is never killed, so it does not have to sync to disk.
var one struct {
	once   sync.Once
	server *Server
	err    error
	next   atomic.Int64
	// copying guards filled: the template databases of Filled, by key. A template can be copied by only one client at a time.
	copying sync.Mutex
	filled  map[string]string
}

// Run runs a package's tests and stops the server if they have started one. TestMain calls it.
func Run(m *testing.M) int {
	code := m.Run()
	if one.server != nil {
		one.server.Stop()
	}
	return code
}

// OnPostgres is the environment variable of a run of a package's tests on PostgreSQL, after the run on SQLite or beside it.
const OnPostgres = "PORTOLAN_TEST_ON_POSTGRES"

// skipAgain skips a test that has a database of its own, in a run on PostgreSQL: the run on SQLite tests the same.
func skipAgain(t testing.TB) {
	t.Helper()
	if os.Getenv(OnPostgres) != "" {
		t.Skip("the run on SQLite also has this test, on a PostgreSQL database of its own")
	}
}

// URL returns the URL of a new, empty database. With -short, or if PostgreSQL is not installed, the test is skipped. With CI=true it fails
// if PostgreSQL is not installed. In a run on PostgreSQL (OnPostgres) it is skipped, too.
func URL(t testing.TB) string {
	t.Helper()
	skipAgain(t)
	return empty(t)
}

// empty is URL in any run.
func empty(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: not on PostgreSQL")
	}
	one.once.Do(func() { one.server, one.err = Start("fsync=off", "full_page_writes=off") })
	refuse(t, one.err)
	return create(t, "")
}

// Filled returns the URL of a new database with the content that fill creates. fill runs once per key and process. Each database is a copy
// of its result, which takes a tenth of the time for creating the schema. fill must close its connections.
func Filled(t testing.TB, key string, fill func(url string) error) string {
	t.Helper()
	one.copying.Lock()
	defer one.copying.Unlock()
	original, there := one.filled[key]
	if !there {
		url := empty(t)
		if err := fill(url); err != nil {
			t.Fatal(err)
		}
		if one.filled == nil {
			one.filled = map[string]string{}
		}
		original = path.Base(strings.Split(url, "?")[0])
		one.filled[key] = original
	}
	return create(t, "TEMPLATE "+original)
}

// create creates a database on the shared server.
func create(t testing.TB, with string) string {
	t.Helper()
	name := fmt.Sprintf("test%d", one.next.Add(1))
	url, err := one.server.Create(t.Context(), name, with)
	if err != nil {
		t.Fatalf("making a database: %v", err)
	}
	return url
}

// refuse skips or fails a test without a server.
func refuse(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, ErrNone) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// New starts a server for one test, which may kill it. In a run on PostgreSQL (OnPostgres), the test is skipped.
func New(t testing.TB) *Server {
	t.Helper()
	skipAgain(t)
	s, err := Start()
	refuse(t, err)
	t.Cleanup(s.Stop)
	return s
}
