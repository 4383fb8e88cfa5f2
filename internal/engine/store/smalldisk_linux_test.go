package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLogOnASmallDisk checks that the log stays small on a small disk, so that nearly all of the space is available to the database.
func TestLogOnASmallDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=32m"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("mounting a test disk failed: %v", err)
		}
		t.Skipf("mounting a test disk is not possible: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	s := open(t, dir)
	defer func() { _ = s.Close() }()
	var failed error
	written := 0
	for failed == nil {
		failed = s.Update(context.Background(), Author{}, func(tx *Tx) error {
			return tx.Insert(&Resource{Type: "Thing", Collection: "things", Parent: 1, Name: "large",
				Body: []byte(`{"colour":"` + strings.Repeat("x", 64<<10) + `"}`)})
		})
		written++
	}
	if is, _, _ := s.Condition(); is != Full {
		t.Errorf("the database is %s: %v", is, failed)
	}
	size := func(name string) int64 {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size() >> 20
	}
	if database, log := size(databaseFile), size(databaseFile+"-wal"); database < 22 || log > 6 {
		t.Errorf("after %d changes the database has %d MiB, its log %d", written, database, log)
	}
}

// TestEmptyDatabaseIsRefused checks that an empty database file next to backups of an earlier database is not treated as a new database.
func TestEmptyDatabaseIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, databaseFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(Options{Dir: dir, Exclusive: true})
	if err != nil {
		t.Fatalf("opening after an interrupted first start returned %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Truncate(filepath.Join(dir, databaseFile), 0), os.Mkdir(filepath.Join(dir, "backups"), 0o700),
		os.WriteFile(filepath.Join(dir, "backups", "one"), []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if s, err := Open(Options{Dir: dir, Exclusive: true}); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("the empty database was opened: %v", err)
		if err == nil {
			_ = s.Close()
		}
	}
}
