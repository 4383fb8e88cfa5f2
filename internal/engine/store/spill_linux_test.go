package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// nameless counts the open files of this process without a name.
func nameless(t *testing.T) (n int) {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range open {
		name, err := os.Readlink("/proc/self/fd/" + f.Name())
		if err == nil && strings.HasSuffix(name, " (deleted)") {
			n++
		}
	}
	return n
}

// TestLargeJobsSpillToFile checks that the rollback journal of a large job's savepoint is kept in a file, not in memory, and that the job
// can be rolled back.
func TestLargeJobsSpillToFile(t *testing.T) {
	s, err := newSession(filepath.Join(t.TempDir(), "portolan.db"), writeSession)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.close() }()
	run := func(statements ...string) {
		t.Helper()
		for _, text := range statements {
			if _, err := s.exec(text); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, pragma := range writerPragmas {
		if err := s.each(pragma, nil, func(row) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	run("CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT)",
		"WITH RECURSIVE seq (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM seq WHERE n < 10000)"+
			" INSERT INTO things SELECT n, hex(zeroblob(40)) FROM seq",
		"BEGIN IMMEDIATE", "SAVEPOINT job")
	before := nameless(t)
	run("UPDATE things SET name = 'changed'")
	if nameless(t) <= before {
		t.Error("the journal is not in a file")
	}
	run("ROLLBACK TO job", "RELEASE job", "COMMIT")
	var changed int64
	if err := queryFirst(s, "SELECT count(*) FROM things WHERE name = 'changed'", nil,
		func(r row) error { return r.scan(&changed) }); err != nil {
		t.Fatal(err)
	}
	if changed != 0 {
		t.Errorf("%d rows keep a change that was rolled back", changed)
	}
}
