package store

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"portolan/internal/base/problem"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestDamagedDatabase overwrites pages in the middle of a database. Requests that need them return DatabaseDamaged, the condition stays
// DAMAGED, and other requests succeed.
func TestDamagedDatabase(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for i := range 200 {
		insert(t, s, thing(fmt.Sprint(i, strings.Repeat("x", 4000))))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, databaseFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	hit := 0
	for from := page; from+page <= len(text); from += page { // all pages with names: rows and the index of names
		if bytes.Contains(text[from:from+page], []byte(strings.Repeat("x", 1000))) {
			copy(text[from:from+page], bytes.Repeat([]byte{0xa5}, page))
			hit++
		}
	}
	if hit == 0 {
		t.Fatal("the names of the resources are not in the file")
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	defer func() { _ = s.Close() }()
	whole := func() error {
		return s.View(t.Context(), func(tx *Tx) error {
			return tx.List(Query{From: Resources}, func(*Resource) error { return nil })
		})
	}
	if err := Unavailable(whole()); !problem.Is(err, "DatabaseDamaged") {
		t.Fatalf("reading all rows returned %v", err)
	}
	if err := s.View(t.Context(), func(*Tx) error { return nil }); err != nil {
		t.Errorf("another read returned %v", err)
	}
	is, since, why := s.Condition()
	if is != Damaged || since.IsZero() || why == nil {
		t.Errorf("the condition is %s: %v", is, why)
	}
	if err := s.View(t.Context(), func(tx *Tx) error {
		faults, err := tx.Damage()
		if err != nil || !slices.ContainsFunc(faults, func(text string) bool { return strings.HasPrefix(text, "table resource: ") }) {
			t.Errorf("the reported damage is %q: %v", faults, err)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if err := s.Ready(t.Context()); !problem.Is(err, "DatabaseDamaged") {
		t.Errorf("Ready returned %v", err)
	}
}

// TestConditionsOfPostgreSQL checks the problems for PostgreSQL's errors about its disk and its data.
func TestConditionsOfPostgreSQL(t *testing.T) {
	for code, want := range map[string]string{pgDiskFull: "DatabaseFull", pgDataCorrupted: "DatabaseDamaged",
		pgIndexCorrupted: "DatabaseDamaged"} {
		if err := Unavailable(fmt.Errorf("reading: %w", &pgconn.PgError{Code: code})); !problem.Is(err, want) {
			t.Errorf("%s is %v, want %s", code, err, want)
		}
	}
}
