package server

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/manager/backup"
	"portolan/internal/manager/fleet"
	"portolan/internal/manager/ipam"
	"portolan/internal/manager/server/middleware"
	"portolan/internal/testkit/apitest"
)

// TestStatus checks that the status is shown to users who see everything, names networks that run out of addresses, and agrees with the
// metrics.
func TestStatus(t *testing.T) {
	m := startManager(t, func(o *Options) { o.NearlyFull = 50 })
	configuration := m.ID("/api/v2/configurations", `{"name":"main"}`)
	block := m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/8"}`)
	for _, prefix := range []string{"10.1.0.0/30", "10.2.0.0/24"} {
		m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"`+prefix+`"}`)
	}
	r := m.Want(200, "GET", "/api/v2/status", "")
	if r.Text("version") != "test" || r.Text("space.mark") != "50" || r.Text("space.nearlyFull.main") != "1" ||
		r.Text("space.fullest.0.range") != "10.1.0.0/30" || r.Text("space.fullest.0.used") != "1" {
		t.Errorf("the status is %s", r.Body)
	}
	if kind := r.Text("database.kind"); kind != "SQLite" && kind != "PostgreSQL" || r.Text("database.bytes") == "0" {
		t.Errorf("the database is %s", r.Body)
	}
	if !strings.Contains(string(r.Body), "No backups are configured.") || !strings.Contains(string(r.Body),
		"1 network is 50% full or more: 10.1.0.0/30.") {
		t.Errorf("the alarms are %s", r.Body)
	}
	text := string(m.Want(200, "GET", "/metrics", "").Body)
	for _, want := range []string{`portolan_network_used_ratio{configuration="main",network="10.1.0.0/30"} 0.5`,
		`portolan_networks_nearly_full{configuration="main"} 1`, `portolan_build_info{go="`, `portolan_alarms{severity="warning"} 3`,
		`portolan_change_duration_seconds_count `, `portolan_commit_duration_seconds_count `, `portolan_certificate_days_left{certificate="check-in"} `,
		`portolan_backup_last_time_seconds 0`} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics have no %s", want)
		}
	}
	m.Want(405, "POST", "/api/v2/status", `{}`)
	m.Refused(401, "InvalidAuthorizationToken", "", "GET", "/api/v2/status", "", "Authorization: Bearer ptl_none")
	m.ID("/api/v2/users", `{"name":"carol","email":"carol@example.net","accessType":"API","securityPrivilege":"NO_ACCESS","password":"a-long-password"}`)
	m.Refused(403, "AccessDenied", "permission to view the status", "GET", "/api/v2/status", "", apitest.BasicAuth("carol", "a-long-password"))
}

// TestAlarms checks that each problem raises an alarm with a remedy, and that no alarm exists without a problem.
func TestAlarms(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	recent, old, size := now.Add(-time.Hour), now.Add(-72*time.Hour), func(n int64) *int64 { return &n }
	good := Status{MasterKey: true, FreeBytes: size(1 << 40), Database: store.Figures{LogBytes: size(1 << 20)},
		Backups: backup.Figures{Last: &recent,
			Schedules: 1},
		Fleet: fleet.Figures{Statuses: map[string]int64{"HEALTHY": 3}},
		Certificates: []CertificateStatus{{Name: "api", NotAfter: now.Add(90 * 24 * time.Hour)},
			{Name: "check-in", NotAfter: now.Add(24 * time.Hour), Renewed: true}}}
	if all := good.alarms(now); len(all) != 0 {
		t.Errorf("where all is well there are %v", all)
	}
	for says, change := range map[string]func(s *Status){
		"CRITICAL The certificate of the API expired on 2026-01-01.": func(s *Status) {
			s.Certificates = []CertificateStatus{{Name: "api", NotAfter: now.Add(-24 * time.Hour)}}
		},
		"WARNING The certificate of the API expires on 2026-01-09.": func(s *Status) {
			s.Certificates = []CertificateStatus{{Name: "api", NotAfter: now.Add(7 * 24 * time.Hour)}}
		},
		"CRITICAL The certificate of dns-resolver-service on buoy expired on 2026-01-01.": func(s *Status) {
			s.Certificates = []CertificateStatus{{Name: "dns-resolver-service on buoy", NotAfter: now.Add(-24 * time.Hour), ServicePoint: "b"}}
		},
		"CRITICAL The disk of the data directory has 100 MiB left.": func(s *Status) { s.FreeBytes = size(100 << 20) },
		"WARNING The write-ahead log of the database has 2048 MiB.": func(s *Status) { s.Database.LogBytes = size(2 << 30) },
		"WARNING The standby is 128 MiB behind.":                    func(s *Status) { s.Database.StandbyBytes = size(128 << 20) },
		"WARNING No backups are configured.":                        func(s *Status) { s.Backups = backup.Figures{} },
		"WARNING The last backup was made on 2025-12-30 03:04:05, and one was due on 2025-12-31 03:04:05.": func(s *Status) {
			due := old.Add(24 * time.Hour)
			s.Backups.Last, s.Backups.Due = &old, &due
		},
		"WARNING No backup was made yet, and one was due on 2025-12-30 03:04:05.": func(s *Status) {
			s.Backups.Last, s.Backups.Due = nil, &old
		},
		"WARNING Backups could not be uploaded to another machine: away: no route.": func(s *Status) {
			s.Backups.UploadFault = "away: no route"
		},
		"WARNING 2 service points are not connected.": func(s *Status) { s.Fleet.Disconnected = 2 },
		"WARNING buoy is unhealthy.": func(s *Status) {
			s.Fleet.Statuses = map[string]int64{"UNHEALTHY": 1}
			s.Fleet.Troubled = []fleet.Troubled{{ID: "b", Name: "buoy", Status: "UNHEALTHY"}}
		},
		"WARNING 1 index of user-defined fields could not be created: no room.": func(s *Status) {
			s.Indexes = IndexStatus{Missing: 1, Fault: "no room"}
		},
		"WARNING The application dns is unhealthy on buoy and 1 more.": func(s *Status) {
			s.Fleet.Applications = map[string]map[string]int64{"dns": {"UNHEALTHY": 2}}
			s.Fleet.Troubled = []fleet.Troubled{{ID: "b", Name: "buoy", Status: "UNHEALTHY", Application: "dns"}}
		},
		"WARNING The application dns could not be deployed on 2 service points.": func(s *Status) {
			s.Fleet.Applications = map[string]map[string]int64{"dns": {"DEPLOY_FAILED": 2}}
		},
		"WARNING The update failed on 3 service points.": func(s *Status) { s.Fleet.Updates = map[string]int64{"UPDATE_FAILED": 3} },
		"WARNING Encryption keys are stored next to the data: anyone with the database or a backup can decrypt the secrets.": func(s *Status) {
			s.MasterKey = false
		},
		"WARNING 1 rollout has halted.": func(s *Status) { s.Fleet.Rollouts = map[string]int64{"HALTED": 1} },
		"WARNING 3 networks are 90% full or more: 10.0.0.0/24.": func(s *Status) {
			s.Space = SpaceStatus{Mark: 90, NearlyFull: map[string]int64{"a": 2, "b": 1}, Fullest: []FullNetwork{{"a",
				ipam.Full{Range: "10.0.0.0/24"}}}}
		},
	} {
		bad := good
		change(&bad)
		all := bad.alarms(now)
		if len(all) != 1 || all[0].Severity+" "+all[0].What != says || all[0].Do == "" {
			t.Errorf("%v, want %s", all, says)
		}
	}
}

// TestJournals checks that every request has an id, which its answer and the logs contain. The audit log contains changes and sign-ins.
func TestJournals(t *testing.T) {
	dir := t.TempDir()
	access, audit := filepath.Join(dir, "access.log"), filepath.Join(dir, "audit.log")
	var log bytes.Buffer
	m := startOnce(t, func(o *Options) {
		o.AccessLog, o.AuditLog = access, audit
		o.Log, o.LogLevel = slog.New(slog.NewTextHandler(&log, nil)), "info"
	})
	r := m.Want(201, "POST", "/api/v2/configurations", `{"name":"main"}`, "X-Request-Id: trace-7", "User-Agent: a \"client\"")
	if got := r.Header.Get("X-Request-Id"); got != "trace-7" {
		t.Errorf("it is named %q", got)
	}
	if got := m.Do("GET", "/api/v2/configurations", "", "X-Request-Id: a b\tc").Header.Get("X-Request-Id"); len(got) != 16 {
		t.Errorf("a name that is none became %q", got)
	}
	m.Refused(401, "InvalidAuthorizationCredentials", "", "POST", "/api/v2/sessions", `{"username":"admin","password":"wrong-password"}`,
		"Authorization:", "Content-Type: application/json")
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	apitest.Eventually(t, "the journals have it", func() bool { return strings.Count(read(audit), "\n") >= 3 })
	if lines := read(access); !strings.Contains(lines, `127.0.0.1 - admin [`) ||
		!strings.Contains(lines, `"POST /api/v2/configurations HTTP/1.1" 201 `) || !strings.Contains(lines, `"a \"client\""`) ||
		!strings.Contains(lines, " trace-7\n") {
		t.Errorf("the access log is\n%s", lines)
	}
	var change, signIn middleware.AuditLine
	for line := range strings.Lines(read(audit)) {
		var one middleware.AuditLine
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatal(err, line)
		}
		if one.Request == "trace-7" {
			change = one
		}
		if one.Event == "sign-in" {
			signIn = one
		}
		if one.Method == "GET" {
			t.Errorf("read is audited: %s", line)
		}
	}
	if change.User != "admin" || change.Status != 201 || change.Transaction == "" || change.Path != "/api/v2/configurations" {
		t.Errorf("the change is %+v", change)
	}
	if signIn.User != "admin" || signIn.Result != "refused" || signIn.Remote != "127.0.0.1" {
		t.Errorf("the sign-in is %+v", signIn)
	}
	// Renamed and opened anew, nothing is lost.
	if err := os.Rename(access, access+".1"); err != nil {
		t.Fatal(err)
	}
	if err := m.Reload(); err != nil {
		t.Fatal(err)
	}
	m.Want(200, "GET", "/api/v2/configurations", "", "X-Request-Id: after")
	apitest.Eventually(t, "the new file has it", func() bool { return strings.Contains(read(access), " after\n") })
}

// TestTrustedProxies checks that the client address is that of a trusted proxy's header. Other clients are refused over plain HTTP.
func TestTrustedProxies(t *testing.T) {
	m := startOnce(t, func(o *Options) { o.TrustProxy = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")} })
	seen := ""
	h := m.behindProxies(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.RemoteAddr }))
	for _, c := range []struct {
		from, forwarded string
		status          int
		remote          string
	}{
		{"192.0.2.1:1000", "203.0.113.5", 200, "203.0.113.5:0"},
		// addresses before those of trusted proxies can be forged
		{"192.0.2.1:1000", "198.51.100.1, 203.0.113.5, 192.0.2.7", 200, "203.0.113.5:0"},
		{"192.0.2.1:1000", "", 200, "192.0.2.1:1000"},
		{"192.0.2.1:1000", "nonsense", 200, "192.0.2.1:1000"},
		{"127.0.0.1:1000", "2001:db8::5", 200, "[2001:db8::5]:0"},
		{"203.0.113.9:1000", "10.0.0.1", 403, ""},
		{"[2001:db8::1]:1000", "", 403, ""},
	} {
		seen = ""
		r := httptest.NewRequest(http.MethodGet, "/api/v2", http.NoBody)
		r.RemoteAddr = c.from
		if c.forwarded != "" {
			r.Header.Set("X-Forwarded-For", c.forwarded)
		}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != c.status || seen != c.remote {
			t.Errorf("from %s for %q: %d %q, want %d %q", c.from, c.forwarded, w.Code, seen, c.status, c.remote)
		}
	}
	if m.chain.Secure {
		t.Error("it speaks TLS")
	}
}

// TestBackupEvery checks that backups run at the interval of the command line, by a schedule that a changed flag changes and never creates
// twice.
func TestBackupEvery(t *testing.T) {
	m := startManager(t, func(o *Options) { o.BackupEvery, o.BackupKeep = time.Hour, 3 })
	at := "/api/v2/databases/" + m.Want(200, "GET", "/api/v2/databases", "").Text("data.0.id") + "/schedules"
	schedule := func() reply { return m.Want(200, "GET", at, "") }
	if r := schedule(); r.Text("data.0.name") != "every" || r.Text("data.0.interval") != "PT3600S" || r.Text("data.0.maxFileCount") != "3" {
		t.Errorf("the schedule is %s", r.Body)
	}
	if err := backup.ScheduleEvery(t.Context(), m.Address, 2*time.Hour, 4); err != nil {
		t.Fatal(err)
	}
	if r := schedule(); r.Text("count") != "1" || r.Text("data.0.interval") != "PT7200S" || r.Text("data.0.maxFileCount") != "4" {
		t.Errorf("the schedule is %s", r.Body)
	}
	before := m.Store.LastCommit()
	if err := backup.ScheduleEvery(t.Context(), m.Address, 2*time.Hour, 4); err != nil ||
		backup.ScheduleEvery(t.Context(), m.Address, 0, 4) != nil {
		t.Fatal(err)
	}
	if n := m.Want(200, "GET", "/api/v2/transactions?total=true&filter=comment:'--backup-every'", "").Text("totalCount"); n != "2" {
		t.Errorf("%s transactions, behind commit %d", n, before)
	}
	if err := backup.ScheduleEvery(t.Context(), m.Address, time.Second, 4); err == nil {
		t.Error("every second is taken")
	}
}

// TestSetPassword checks that a new password is set without the old one and ends the sessions. Weak passwords are refused.
func TestSetPassword(t *testing.T) {
	m := startManager(t)
	s := m.Want(201, "POST", "/api/v2/sessions", `{"username":"admin","password":"`+adminPassword+`"}`, "Authorization:")
	if err := SetPassword(t.Context(), m.Address, "nobody", "a-new-password"); err == nil {
		t.Error("no user has a password")
	}
	if err := SetPassword(t.Context(), m.Address, "admin", "short"); err == nil {
		t.Error("a short password is taken")
	}
	if err := SetPassword(t.Context(), m.Address, "admin", "a-new-password"); err != nil {
		t.Fatal(err)
	}
	m.Want(200, "GET", "/api/v2/configurations", "", apitest.BasicAuth("admin", "a-new-password"))
	m.Refused(401, "InvalidAuthorizationCredentials", "", "GET", "/api/v2/configurations", "", apitest.BasicAuth("admin", adminPassword))
	m.Refused(401, "InvalidAuthorizationCredentials", "", "GET", "/api/v2/configurations", "",
		"Authorization: Basic "+s.Text("basicAuthenticationCredentials"))
}
