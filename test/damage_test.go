package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// spoil overwrites the pages of a database file that contain a text. It returns the number of these pages.
func spoil(t *testing.T, path, text string) (pages int) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	for from := page; from+page <= len(data); from += page {
		if bytes.Contains(data[from:from+page], []byte(text)) {
			copy(data[from:from+page], bytes.Repeat([]byte{0xa5}, page))
			pages++
		}
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return pages
}

// TestRecoveryOfADamagedDatabase follows docs/troubleshoot.md from the alarm about a damaged database to a manager that serves again.
func TestRecoveryOfADamagedDatabase(t *testing.T) {
	t.Parallel()
	m := serve(t, "")
	configuration := m.id("/configurations", `{"name":"main"}`)
	view := m.id("/configurations/"+configuration+"/views", `{"name":"inside"}`)
	zone := m.id("/views/"+view+"/zones", `{"type":"Zone","absoluteName":"harbour.example"}`)
	long := strings.Repeat("mooring", 400)
	for i := range 20 {
		m.id("/zones/"+zone+"/resourceRecords", fmt.Sprintf(`{"type":"TXTRecord","name":"berth-%d","text":%q}`, i, long))
	}
	data := m.where[1]
	backup := filepath.Join(m.dir, "good.backup")
	m.portolan("backup", "--data", data, backup)
	if err := m.process.signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	m.portolan("check", "--data", data) // also moves the log into the database file
	if spoil(t, filepath.Join(data, "portolan.db"), long[:1000]) == 0 {
		t.Fatal("the records are not in the file")
	}

	// The manager starts, and reports the damage when it reads the damaged page.
	m.start()
	status, text, err := m.call("GET", "/zones/"+zone+"/resourceRecords?limit=100", "")
	if status != 503 || !strings.Contains(text, "DatabaseDamaged") || !strings.Contains(text, "docs/troubleshoot.md") || err != nil {
		t.Errorf("read what is damaged: %d %s %v", status, text, err)
	}
	if status, text, err = m.call("GET", "/configurations", ""); status != 200 || err != nil {
		t.Errorf("read what is not: %d %s %v", status, text, err)
	}
	var report struct {
		Database struct{ Condition string }
		Alarms   []struct{ What, Do string }
	}
	_, text, err = m.call("GET", "/status", "")
	if err != nil || json.Unmarshal([]byte(text), &report) != nil || report.Database.Condition != "DAMAGED" ||
		!strings.Contains(text, "The database is damaged") || !strings.Contains(text, "portolan check") {
		t.Errorf("the status is %s, %v", text, err)
	}

	// The steps of the guide: stop, keep a copy, find the damage, restore, check, start.
	if err := m.process.signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(m.dir, "damaged")
	if err := os.CopyFS(kept, os.DirFS(data)); err != nil {
		t.Fatal(err)
	}
	code, found := m.wrong("check", "--data", kept)
	if code == 0 || !strings.Contains(found, "table resource: ") || !strings.Contains(found, "history") {
		t.Errorf("check ends with %d:\n%s", code, found)
	}
	recovered := filepath.Join(m.dir, "recovered")
	m.portolan("restore", "--data", recovered, backup)
	if text := m.portolan("check", "--data", recovered); !strings.Contains(text, "no faults found") {
		t.Errorf("what was restored: %s", text)
	}
	m.where[1] = recovered
	m.start()
	if n := m.count("/zones/"+zone+"/resourceRecords", "type:'TXTRecord'"); n != 20 {
		t.Errorf("%d records came back", n)
	}

	// If the first page is damaged or the file was truncated, nothing can be read. All commands report that with the remedy.
	if err := m.process.signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for what, spoiled := range map[string]func(path string) error{
		"zeros":     func(path string) error { return overwrite(path, make([]byte, 4096)) },
		"noise":     func(path string) error { return overwrite(path, bytes.Repeat([]byte("noise "), 600)) },
		"truncated": func(path string) error { return os.Truncate(path, 100) },
	} {
		dir := filepath.Join(m.dir, what)
		if err := os.CopyFS(dir, os.DirFS(recovered)); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"portolan.db-wal", "portolan.db-shm"} {
			_ = os.Remove(filepath.Join(dir, name)) // usually missing
		}
		if err := spoiled(filepath.Join(dir, "portolan.db")); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"check"}, {"backup", dir + ".backup"},
			{"serve", "--listen", "127.0.0.1:0", "--checkin-listen", "127.0.0.1:0"}} {
			code, text := m.wrong(slices.Insert(args, 1, "--data", dir)...)
			if code == 0 || !strings.Contains(text, "is damaged and cannot be opened") || !strings.Contains(text, "restore a backup") {
				t.Errorf("%s, %s: %d %s", what, args[0], code, text)
			}
		}
	}
}

// overwrite overwrites the beginning of a file.
func overwrite(path string, with []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(with, 0); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
