package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLogIsTruncated checks that the log is truncated when nothing is written.
func TestLogIsTruncated(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	defer func() { _ = s.Close() }()
	insert(t, s, thing(strings.Repeat("x", 1<<20)))
	eventually(t, "the log is empty", func() bool {
		info, err := os.Stat(filepath.Join(dir, databaseFile+"-wal"))
		return err == nil && info.Size() == 0
	})
	insert(t, s, thing("y"))
	if count(t, s) != 2 {
		t.Error("a row is missing")
	}
}

// TestLogIsCheckpointed checks that a grown log is checkpointed after the answer, while other changes continue: its size does not grow with
// the written data.
func TestLogIsCheckpointed(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	defer func() { _ = s.Close() }()
	const each = checkpointPages << 9 // an eighth of the checkpoint threshold; each change writes it twice, in the row and in the history
	for range 24 {
		large := thing("large")
		large.Body = []byte(`{"colour":"` + strings.Repeat("x", each) + `"}`)
		insert(t, s, large)
	}
	info, err := os.Stat(filepath.Join(dir, databaseFile+"-wal"))
	if err != nil || info.Size() > 2*checkpointPages<<12 {
		t.Errorf("after %d MiB of changes the log has %d MiB (%v)", 2*24*each>>20, info.Size()>>20, err)
	}
	if count(t, s) != 24 {
		t.Error("a row is missing")
	}
}
