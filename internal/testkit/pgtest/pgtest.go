//go:build unix

// Package pgtest starts throw-away PostgreSQL servers for tests and benchmarks, from the binaries on
// the machine.
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

// one is the server that the tests of a process share. Nobody kills it, so it need not wait for a disk.
var one struct {
	once   sync.Once
	server *Server
	err    error
	next   atomic.Int64
	// copying guards filled: the databases that those of Filled are copies of, by key. A database is copied by one client at a time.
	copying sync.Mutex
	filled  map[string]string
}

// Run runs a package's tests and stops the server, if they started one. TestMain calls it.
func Run(m *testing.M) int {
	code := m.Run()
	if one.server != nil {
		one.server.Stop()
	}
	return code
}

// URL gives the URL of a fresh, empty database. With -short, and without a server's
// binaries, the test is skipped; without them and with CI=true it fails.
func URL(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: not on PostgreSQL")
	}
	one.once.Do(func() { one.server, one.err = Start("fsync=off", "full_page_writes=off") })
	refuse(t, one.err)
	return create(t, "")
}

// Filled is URL for a copy of the database that fill filled when the key was asked for first in this process: a copy takes a tenth of the time
// of the schema. fill must have closed its connections when it returns.
func Filled(t testing.TB, key string, fill func(url string) error) string {
	t.Helper()
	one.copying.Lock()
	defer one.copying.Unlock()
	original, there := one.filled[key]
	if !there {
		empty := URL(t)
		if err := fill(empty); err != nil {
			t.Fatal(err)
		}
		if one.filled == nil {
			one.filled = map[string]string{}
		}
		original = path.Base(strings.Split(empty, "?")[0])
		one.filled[key] = original
	}
	return create(t, "TEMPLATE "+original)
}

// create makes a database of the shared server.
func create(t testing.TB, with string) string {
	t.Helper()
	name := fmt.Sprintf("test%d", one.next.Add(1))
	url, err := one.server.Create(t.Context(), name, with)
	if err != nil {
		t.Fatalf("making a database: %v", err)
	}
	return url
}

// refuse skips or fails a test that has no server.
func refuse(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, ErrNone) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// New starts a server for one test alone, which may kill it.
func New(t testing.TB) *Server {
	t.Helper()
	s, err := Start()
	refuse(t, err)
	t.Cleanup(s.Stop)
	return s
}
