package backup_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"portolan/internal/engine/store"
	"portolan/internal/engine/store/archive"
	"portolan/internal/testkit/apitest"
)

// TestBackupSchedules checks that backups run on request, are kept in the number of the schedule, can be downloaded, and can be restored.
func TestBackupSchedules(t *testing.T) {
	apitest.Slow(t)
	m := start(t, t.TempDir())
	m.Basics()
	database := "/api/v2/databases/" + m.Want(200, "GET", "/api/v2/databases", "").Text("data.0.id")
	schedule := database + "/schedules/" + m.ID(database+"/schedules", `{"type":"DatabaseBackupSchedule","name":"by hand","maxFileCount":2,"filePrefix":"mine"}`)
	dir := m.dir
	ids := map[string]bool{}
	var newest string
	for n := 1; n <= 3; n++ {
		m.Want(200, "PATCH", schedule, `{"state":"QUEUED"}`)
		apitest.Eventually(t, "a backup is made", func() bool {
			r := m.Want(200, "GET", database+"/backups?orderBy=desc(id)", "")
			newest = r.Text("data.0.id")
			if newest == "" || ids[newest] {
				return false
			}
			ids[newest] = true
			return true
		})
	}
	if r := m.Want(200, "GET", database+"/backups", ""); r.Count() != 2 {
		t.Errorf("there are %s", r.Body)
	}
	apitest.Eventually(t, "the file of the oldest is gone", func() bool {
		files, err := filepath.Glob(filepath.Join(dir, "mine-*.portolan"))
		return err == nil && len(files) == 2
	})
	r := m.Want(200, "GET", database+"/backups/"+newest, "", "Accept: application/octet-stream")
	again := store.Options{Layout: m.Store.Layout(), Dir: filepath.Join(t.TempDir(), "again")}
	sum, err := archive.Restore(context.Background(), again, strings.NewReader(string(r.Body)), func(int64) {})
	if err != nil || sum.Rows() == 0 {
		t.Errorf("restored %d rows: %v", sum.Rows(), err)
	}
	if m.Want(200, "GET", database, "").Text("lastBackupDateTime") == "" {
		t.Error("the database does not say when it was backed up")
	}
	m.Want(204, "DELETE", database+"/backups/"+newest, "")
	apitest.Eventually(t, "its file is gone", func() bool {
		files, err := filepath.Glob(filepath.Join(dir, "mine-*"))
		return err == nil && len(files) == 1
	})
	for body, field := range map[string]string{
		`{"name":"x","remoteBackupsEnabled":true}`:                  "transferProtocol",
		`{"name":"x","filePrefix":"../up"}`:                         "filePrefix",
		`{"name":"far too long"}`:                                   "name",
		`{"name":"x","maxFileCount":1}`:                             "maxFileCount",
		`{"name":"x","interval":"P1D"}`:                             "startDateTime",
		`{"name":"x","state":"QUEUED","localBackupsEnabled":false}`: "state",
	} {
		if r := m.Do("POST", database+"/schedules", body); r.StatusCode != 400 || !r.Names(field) {
			t.Errorf("%s: %d %s", body, r.StatusCode, r.Body)
		}
	}
	m.Verify()
}

// TestBackupsAreSent checks that a backup that is uploaded to the manager is listed and stored as a file that can be restored. An upload
// that is not a backup is refused and leaves nothing behind.
func TestBackupsAreSent(t *testing.T) {
	m := startOnce(t)
	m.Basics()
	database := "/api/v2/databases/" + m.Want(200, "GET", "/api/v2/databases", "").Text("data.0.id")
	dir := m.dir
	var b strings.Builder
	if _, err := archive.Write(t.Context(), m.Store, &b, "test", func(int64) {}); err != nil {
		t.Fatal(err)
	}
	whole := b.String()
	send := func(name, content string, headers ...string) apitest.Reply {
		body, kind := apitest.FormNamed(nil, name, content)
		return m.Do("POST", database+"/backups", body, append(headers, kind)...)
	}
	for name, content := range map[string]string{"cut": whole[:len(whole)-9], "none": "what is this",
		"turned": whole[:len(whole)/2] + "x" + whole[len(whole)/2+1:]} {
		if r := send(name, content); r.StatusCode != 400 || !r.Names("fileData") {
			t.Errorf("%s: %d %s", name, r.StatusCode, r.Body)
		}
	}
	for _, name := range []string{".hidden", "a b", strings.Repeat("x", 101)} {
		if r := send(name, whole); r.StatusCode != 400 || !r.Names("fileData") {
			t.Errorf("%s: %d %s", name, r.StatusCode, r.Body)
		}
	}
	m.Refused(400, "MissingRequiredField", "fileData", "POST", database+"/backups", `{}`)
	if r := send("tried", whole, "x-portolan-dry-run: true"); r.StatusCode != 200 && r.StatusCode != 201 {
		t.Errorf("trying it: %d %s", r.StatusCode, r.Body)
	}
	if r := m.Want(200, "GET", database+"/backups", ""); r.Count() != 0 {
		t.Errorf("what was refused is there: %s", r.Body)
	}
	made := send("from-afar", whole)
	if made.StatusCode != 201 || made.Text("name") != "from-afar.portolan" || made.Text("sent") != "true" ||
		made.Text("size") != fmt.Sprint(len(whole)) {
		t.Fatalf("it is %d %s", made.StatusCode, made.Body)
	}
	self := made.Text("_links.self.href")
	apitest.Eventually(t, "it is a file", func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "sent", "from-afar.portolan"))
		return err == nil && string(text) == whole
	})
	if got := m.Want(200, "GET", self, "", "Accept: application/octet-stream").Body; string(got) != whole {
		t.Errorf("%d bytes come back, of %d", len(got), len(whole))
	}
	if r := send("from-afar.portolan", whole); r.StatusCode != 409 {
		t.Errorf("the same again: %d %s", r.StatusCode, r.Body)
	}
	if at := m.Want(200, "GET", database, "").Get("lastBackupDateTime"); at != nil {
		t.Errorf("it counts as a backup of this database, of %v", at)
	}
	apitest.Eventually(t, "there is an event", func() bool {
		return strings.Contains(m.Want(200, "GET", "/api/v2/events?"+apitest.Filter("eventType:'SUCCESS'"), "").Text("data.0.message"),
			"was uploaded to")
	})
	m.Want(204, "DELETE", self, "")
	apitest.Eventually(t, "its file is gone", func() bool {
		files, err := filepath.Glob(filepath.Join(dir, "sent", "*"))
		hidden, other := filepath.Glob(filepath.Join(dir, "sent", ".*"))
		return err == nil && other == nil && len(files)+len(hidden) == 0
	})
	m.Verify()
}

// TestBackupsAreSentAndDeleted checks that an uploaded backup that is deleted before it was stored as a file does not become one.
func TestBackupsAreSentAndDeleted(t *testing.T) {
	m := startOnce(t)
	database := "/api/v2/databases/" + m.Want(200, "GET", "/api/v2/databases", "").Text("data.0.id")
	var b strings.Builder
	if _, err := archive.Write(t.Context(), m.Store, &b, "test", func(int64) {}); err != nil {
		t.Fatal(err)
	}
	for n := range 5 {
		body, kind := apitest.FormNamed(nil, fmt.Sprintf("short-%d", n), b.String())
		m.Want(204, "DELETE", m.Want(201, "POST", database+"/backups", body, kind).Text("_links.self.href"), "")
	}
	apitest.Eventually(t, "nothing is left", func() bool {
		files, err := filepath.Glob(filepath.Join(m.dir, "sent", "*"))
		left := -1
		if err := m.Store.View(t.Context(), func(tx *store.Tx) error {
			return tx.QueryRow("SELECT (SELECT count(*) FROM backup_sent) + (SELECT count(*) FROM backup_gone)").Scan(&left)
		}); err != nil {
			t.Fatal(err)
		}
		return err == nil && len(files) == 0 && left == 0
	})
	m.Verify()
}

// TestUnstoredBackupsDelayNoOther checks that an uploaded backup that cannot be stored as a file is an event, and delays no other backup.
// It can be deleted.
func TestUnstoredBackupsDelayNoOther(t *testing.T) {
	m := startOnce(t)
	dir := m.dir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "sent"), nil, 0o600); err != nil { // where a folder is to be
		t.Fatal(err)
	}
	database := "/api/v2/databases/" + m.Want(200, "GET", "/api/v2/databases", "").Text("data.0.id")
	var b strings.Builder
	if _, err := archive.Write(t.Context(), m.Store, &b, "test", func(int64) {}); err != nil {
		t.Fatal(err)
	}
	body, kind := apitest.FormNamed(nil, "afar", b.String())
	self := m.Want(201, "POST", database+"/backups", body, kind).Text("_links.self.href")
	apitest.Eventually(t, "it is said", func() bool {
		r := m.Want(200, "GET", "/api/v2/events?"+apitest.Filter("category:'DATABASE_MAINTENANCE' and eventType:'FAILED'"), "")
		return r.Count() == 1 && strings.Contains(r.Text("data.0.message"), "be retried")
	})
	m.ID(database+"/schedules", `{"name":"mine","state":"QUEUED"}`)
	apitest.Eventually(t, "another one is made", func() bool {
		files, err := filepath.Glob(filepath.Join(dir, "*.portolan"))
		return err == nil && len(files) == 1
	})
	m.Want(204, "DELETE", self, "")
	m.Verify()
}

// TestBackupFails checks that a failed backup is an event, and does not stop the others.
func TestBackupFails(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m := start(t, blocked)
	database := "/api/v2/databases/" + m.Want(200, "GET", "/api/v2/databases", "").Text("data.0.id")
	m.ID(database+"/schedules", `{"name":"blocked","state":"QUEUED"}`)
	apitest.Eventually(t, "the alarm reports a missing backup", func() bool {
		r := m.Want(200, "GET", "/api/v2/events?"+apitest.Filter("category:'DATABASE_MAINTENANCE' and eventType:'FAILED'"), "")
		return strings.Contains(r.Text("data.0.message"), "blocked")
	})
}
