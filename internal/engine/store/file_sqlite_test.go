package store

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// copied copies the files of an open database, as if its process had been killed.
func copied(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	for _, name := range []string{databaseFile, databaseFile + "-wal"} {
		data, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// TestDamagedLogIsRefused checks that damage in the middle of the log is reported before the database opens. The transactions after it are
// only lost if the operator truncates the log. A log that ends within its last transaction is the result of a power failure, and is
// accepted.
func TestDamagedLogIsRefused(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Options{Dir: dir, Exclusive: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if err := s.Update(t.Context(), Author{}, func(tx *Tx) error {
			return tx.Write("INSERT INTO counter (name, value) VALUES (?, 1)", t.Name()+strconv.Itoa(i))
		}); err != nil {
			t.Fatal(err)
		}
	}
	defer func() { _ = s.Close() }()
	log := filepath.Join(copied(t, dir), databaseFile+"-wal")
	whole, err := os.ReadFile(log)
	if err != nil || len(whole) < 4*4096 {
		t.Fatalf("the log has %d bytes: %v", len(whole), err)
	}
	if at, lost, err := findLogFault(log); at != 0 || lost != 0 || err != nil {
		t.Errorf("an undamaged log is reported as damaged at %d: %d %v", at, lost, err)
	}
	for name, cut := range map[string]int{"in its last frame": len(whole) - 100, "behind a frame": len(whole) - 4096 - 24} {
		dir := copied(t, dir)
		if err := os.Truncate(filepath.Join(dir, databaseFile+"-wal"), int64(cut)); err != nil {
			t.Fatal(err)
		}
		if err := checkWholeLog(filepath.Join(dir, databaseFile)); err != nil {
			t.Errorf("a log that ends %s: %v", name, err)
		}
	}
	damagedDir := copied(t, dir)
	path := filepath.Join(damagedDir, databaseFile)
	broken := append([]byte(nil), whole...)
	for i := range 64 {
		broken[32+4120*2+500+i] ^= 0xff
	}
	if err := os.WriteFile(path+"-wal", broken, 0o600); err != nil {
		t.Fatal(err)
	}
	other, err := Open(Options{Dir: damagedDir, Exclusive: true})
	if err == nil {
		_ = other.Close()
		t.Fatal("the database with a damaged log was opened")
	}
	at, _, _ := findLogFault(path + "-wal")
	if !strings.Contains(err.Error(), "is damaged at byte") || at != 32+4120*2 {
		t.Errorf("the damage is reported at %d: %v", at, err)
	}
	if err := os.Truncate(path+"-wal", at); err != nil {
		t.Fatal(err)
	}
	if other, err = Open(Options{Dir: damagedDir, Exclusive: true}); err != nil {
		t.Fatalf("the database with a truncated log was not opened: %v", err)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
}

// TestRemovedDatabase checks that the removal of the database file is detected: no more changes are acknowledged, and no empty database
// replaces it.
func TestRemovedDatabase(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Options{Dir: dir, Exclusive: true})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, databaseFile)
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	within, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	for is := Ready; is != Damaged; is, _, _ = s.Condition() {
		if Pause(within, watchEvery); within.Err() != nil {
			t.Fatal("the removal was not detected")
		}
	}
	if err := s.Update(context.Background(), Author{},
		func(tx *Tx) error { return tx.Write("UPDATE lease SET until = until") }); !IsDamage(err) {
		t.Errorf("a change returned %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if s, err := Open(Options{Dir: dir, Exclusive: true}); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("the database was opened: %v", err)
		if err == nil {
			_ = s.Close()
		}
	}
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(Options{Dir: dir, Exclusive: true}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
