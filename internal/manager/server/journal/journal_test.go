package journal

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLogsAreBounded checks that a full log is rotated and the previous one kept. A log continues after a restart, and after its file was
// deleted.
func TestLogsAreBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "own.log")
	j, err := Open(path, 100, slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Repeat("x", 39) + "\n"
	for range 5 {
		j.Append([]byte(line))
	}
	for i, want := range []int64{80, 40} {
		if info, err := os.Stat(j.Files()[i]); err != nil || info.Size() != want {
			t.Errorf("%s: %v %v", j.Files()[i], info, err)
		}
	}
	j.Close()
	if j, err = Open(path, 100, slog.Default()); err != nil { // it continues at its position
		t.Fatal(err)
	}
	defer j.Close()
	j.Append([]byte(line))
	j.Append([]byte(line))
	if info, err := os.Stat(path); err != nil || info.Size() != 40 {
		t.Errorf("%v %v", info, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		j.Append([]byte(line))
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 100 {
		t.Errorf("behind that it was taken away: %v %v", info, err)
	}
}
