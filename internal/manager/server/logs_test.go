package server

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"portolan/internal/manager/authz"
	"portolan/internal/manager/identity"
)

// TestLogs checks that the manager lists its logs for administrators and sends them unchanged. The message for a log that is not kept
// states how to keep it.
func TestLogs(t *testing.T) {
	journal := filepath.Join(t.TempDir(), "access.log")
	m := startOnce(t, func(o *Options) { o.AccessLog = journal })
	m.options.Log.Error("the quay is full", "ships", 12)
	m.options.Log.Warn("a record that is not requested")
	list := m.Want(200, "GET", "/api/v2/logs?orderBy=asc(name)", "")
	if list.Count() != 3 || list.Text("data.0.name") != "access.log" || list.Text("data.1.name") != "audit.log" ||
		list.Text("data.2.name") != "manager.log" {
		t.Fatalf("there are %s", list.Body)
	}
	if list.Get("data.1.size") != nil || list.Text("data.0.size") == "" || list.Text("data.2.modificationDateTime") == "" {
		t.Errorf("they are %s", list.Body)
	}
	self := list.Text("data.2._links.self.href")
	bytes := func(path string) string {
		return string(m.Want(200, "GET", path, "", "Accept: application/octet-stream").Body)
	}
	var found struct {
		Msg   string
		Ships int
		Level string
	}
	for line := range strings.Lines(bytes(self)) {
		if strings.Contains(line, "quay") {
			if err := json.Unmarshal([]byte(line), &found); err != nil {
				t.Error(err)
			}
		}
	}
	if found.Msg != "the quay is full" || found.Ships != 12 || found.Level != "ERROR" || strings.Contains(bytes(self), "nobody asked") {
		t.Errorf("the log has %v", found)
	}
	before := filepath.Join(m.options.Data, "logs", "manager.log.1") // what it was before it was begun anew
	if err := os.WriteFile(before, []byte("earlier\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text := bytes(self); !strings.HasPrefix(text, "earlier\n{") || !strings.Contains(text, "quay") {
		t.Errorf("both files are %s", text)
	}
	if text := bytes(list.Text("data.0._links.self.href")); !strings.Contains(text, "GET /api/v2/logs") {
		t.Errorf("the access log is %s", text)
	}
	m.Refused(409, "ResourceConflictsWithOther", "--audit-log", "GET", list.Text("data.1._links.self.href"), "",
		"Accept: application/octet-stream")
	m.Want(405, "DELETE", self, "")
	m.Want(405, "POST", "/api/v2/logs", `{"name":"x"}`)
	m.Refused(404, "ResourceNotFound", "", "GET", "/api/v2/systemLogs", "")
	if r := m.Want(200, "GET", "/api/v2?"+filter("type:'SystemLog'"), ""); r.Count() != 3 || r.Text("data.0._links.self.href") == "" {
		t.Errorf("everything has %s", r.Body)
	}
	analyst, err := m.Identity.CreateToken(t.Context(), identity.Grant{Name: "reader", Role: authz.Analyst})
	if err != nil {
		t.Fatal(err)
	}
	if r := m.Want(200, "GET", "/api/v2/logs", "", "Authorization: Bearer "+analyst); r.Count() != 0 {
		t.Errorf("another user sees %s", r.Body)
	}
	for _, path := range []string{self, "/api/v2/" + self[strings.LastIndex(self, "/")+1:]} {
		if r := m.Do("GET", path, "", "Authorization: Bearer "+analyst); r.StatusCode != 403 && r.StatusCode != 404 {
			t.Errorf("another user gets %d %s", r.StatusCode, r.Body)
		}
	}
	// A user sees them by a right of its own, and by no other.
	user, as := m.User("ada", "NO_ACCESS")
	m.Right(user, "", "FULL", "")
	if r := m.Want(200, "GET", "/api/v2/logs", "", as); r.Count() != 0 {
		t.Errorf("a user without the right sees %s", r.Body)
	}
	m.ID("/api/v2/accessRights", `{"type":"AdministrativeAccessRight","userScope":{"id":`+user+
		`},"administrativeAccessRights":[{"resourceType":"Log","accessLevel":"VIEW"}]}`)
	if r := m.Want(200, "GET", "/api/v2/logs", "", as); r.Count() != 3 {
		t.Errorf("a user with the right sees %s", r.Body)
	}
	if r := m.Want(200, "GET", self, "", as, "Accept: application/octet-stream"); !strings.Contains(string(r.Body), "quay") {
		t.Errorf("a user with the right reads %s", r.Body)
	}
	m.Want(405, "DELETE", self, "", as)
	m.Verify()
}
