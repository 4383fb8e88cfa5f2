package server

import (
	"path/filepath"
	"testing"

	"portolan/internal/testkit/apitest"
)

// TestBackupRehearsal checks that a backup is restored on trial, and that the trial leaves nothing behind.
func TestBackupRehearsal(t *testing.T) {
	m := startOnce(t)
	database := "/api/v2/databases/" + m.Want(200, "GET", "/api/v2/databases", "").Text("data.0.id")
	m.ID(database+"/schedules", `{"name":"by hand","state":"QUEUED"}`)
	var newest string
	apitest.Eventually(t, "a backup is made", func() bool {
		newest = m.Want(200, "GET", database+"/backups", "").Text("data.0.id")
		return newest != ""
	})
	const rehearsal = "/api/v2/backupRehearsal"
	if r := m.Want(200, "GET", rehearsal, ""); r.Text("state") != "NONE" {
		t.Errorf("before the first rehearsal there is %s", r.Body)
	}
	m.Refused(404, "ResourceNotFound", "backups/1", "POST", rehearsal, `{"backup":1}`)
	m.Refused(400, "InvalidResourceFieldValue", "backup", "POST", rehearsal, `{"backup":"x"}`)
	m.Want(202, "POST", rehearsal, `{"backup":`+newest+`}`)
	apitest.Eventually(t, "the backup is rehearsed", func() bool {
		r := m.Want(200, "GET", rehearsal, "")
		return r.Text("state") == "PASSED" && r.Text("backup") == newest && r.Text("rows") != "0"
	})
	if left, err := filepath.Glob(filepath.Join(m.options.Data, rehearsalDir+"*")); err != nil || len(left) > 0 {
		t.Errorf("the rehearsal leaves %v (%v)", left, err)
	}
	m.Verify()
}
