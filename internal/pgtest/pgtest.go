//go:build unix

// Package pgtest starts throw-away PostgreSQL servers for tests and benchmarks, from the binaries on
// the machine.
package pgtest

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
)

// one is the server that the tests of a process share.
var one struct {
	once   sync.Once
	server *Server
	err    error
	next   atomic.Int64
}

// Run runs a package's tests and stops the server, if they started one. TestMain calls it.
func Run(m *testing.M) int {
	code := m.Run()
	if one.server != nil {
		one.server.Stop()
	}
	return code
}

// URL gives the URL of a fresh, empty database. Without a server's binaries the test is skipped; with
// CI=true it fails.
func URL(t testing.TB) string {
	t.Helper()
	one.once.Do(func() { one.server, one.err = Start() })
	refuse(t, one.err)
	url, err := one.server.Create(t.Context(), fmt.Sprintf("test%d", one.next.Add(1)))
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
