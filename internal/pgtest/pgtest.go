//go:build unix

// Package pgtest starts a throw-away PostgreSQL server for tests, from the binaries on the machine:
// a data directory and a socket in a temporary directory, durability on, gone with the test process.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// server is the one server of a test process.
type server struct {
	once sync.Once
	dir  string
	bin  string
	as   *syscall.SysProcAttr
	cmd  *exec.Cmd
	err  error
	next atomic.Int64
}

var one server

// errNone is a machine without PostgreSQL.
var errNone = errors.New("there are no PostgreSQL server binaries on this machine (Debian: apt-get install postgresql)")

// Run runs a package's tests and stops the server, if they started one. TestMain calls it.
func Run(m *testing.M) int {
	code := m.Run()
	one.stop()
	return code
}

// URL gives the URL of a fresh, empty database. Without a server's binaries the test is skipped; with
// CI=true it fails.
func URL(t testing.TB) string {
	t.Helper()
	one.once.Do(func() { one.err = one.start() })
	if errors.Is(one.err, errNone) && os.Getenv("CI") != "true" {
		t.Skip(one.err)
	}
	if one.err != nil {
		t.Fatal(one.err)
	}
	name := fmt.Sprintf("test%d", one.next.Add(1))
	conn, err := pgx.Connect(t.Context(), one.url("postgres"))
	if err == nil {
		_, err = conn.Exec(t.Context(), "CREATE DATABASE "+name)
		_ = conn.Close(t.Context())
	}
	if err != nil {
		t.Fatalf("making a database: %v", err)
	}
	return one.url(name)
}

func (s *server) url(database string) string {
	return fmt.Sprintf("postgres:///%s?host=%s&user=postgres", database, s.dir)
}

// binaries finds the newest server on the machine.
func binaries() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path), nil
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", errNone
	}
	return filepath.Dir(found[len(found)-1]), nil
}

func (s *server) start() error {
	bin, err := binaries()
	if err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp("", "pg"); err != nil {
		return err
	}
	// initdb and postgres refuse root: there they run as the user that the package made.
	var as *syscall.SysProcAttr
	if os.Geteuid() == 0 {
		u, err := user.Lookup("postgres")
		if err != nil {
			return errNone
		}
		uid, err := strconv.Atoi(u.Uid)
		if err != nil {
			return err
		}
		gid, err := strconv.Atoi(u.Gid)
		if err != nil {
			return err
		}
		if err := os.Chown(s.dir, uid, gid); err != nil {
			return err
		}
		as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}} //nolint:gosec // ids of a user are small
	}
	data := filepath.Join(s.dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8")
	initdb.SysProcAttr, initdb.Dir = as, s.dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	s.bin, s.as = bin, as
	return s.run()
}

// run starts the server on its data and waits until it answers.
func (s *server) run() error {
	s.cmd = exec.Command(filepath.Join(s.bin, "postgres"), "-D", filepath.Join(s.dir, "data"), "-k", s.dir, "-c", "listen_addresses=", "-c", "max_connections=200")
	s.cmd.SysProcAttr, s.cmd.Dir = s.as, s.dir
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("starting postgres: %w", err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		conn, err := pgx.Connect(context.Background(), s.url("postgres"))
		if err == nil {
			return conn.Close(context.Background())
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("postgres does not answer: %w", err)
		}
		time.Sleep(20 * time.Millisecond) // between two looks
	}
}

// Kill kills the server, all of it, as a crash would, and Revive starts it again on what is on disk.
func Kill(t testing.TB) {
	t.Helper()
	// The postmaster first: it would start its children again.
	if err := one.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = one.cmd.Wait() // killed is what it says
	// Its children notice by themselves and end; the next server waits for that.
}

// Revive starts the server again after Kill.
func Revive(t testing.TB) {
	t.Helper()
	if err := one.run(); err != nil {
		t.Fatal(err)
	}
}

func (s *server) stop() {
	if s.cmd != nil && s.cmd.Process != nil {
		_ = s.cmd.Process.Signal(syscall.SIGINT) // a fast shutdown
		_ = s.cmd.Wait()
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}
