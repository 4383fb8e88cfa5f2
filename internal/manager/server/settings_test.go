package server

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"portolan/internal/manager/identity"
	"portolan/internal/testkit/apitest"
)

// settingsOf gives the path of the settings of a type.
func (m *manager) settingsOf(kind string) string {
	m.T.Helper()
	return "/api/v2/settings/" + m.Want(200, "GET", "/api/v2/settings?"+filter("type:'"+kind+"'"), "").Text("data.0.id")
}

// session begins a session of admin, and gives its id and the header of its requests.
func (m *manager) session() (string, string) {
	m.T.Helper()
	r := m.Want(201, "POST", "/api/v2/sessions", `{"username":"admin","password":"`+adminPassword+`"}`)
	return r.Text("id"), "Authorization: Basic " + r.Text("basicAuthenticationCredentials")
}

// TestSessionTimeout checks that a session in use lasts a day, and that an unused session ends after the configured time, also if it was
// opened before the setting.
func TestSessionTimeout(t *testing.T) {
	var c clock
	m := startManager(t, func(o *Options) { o.Now = c.now })
	early, before := m.session()
	m.Want(200, "PATCH", m.settingsOf("GlobalSettings"), `{"sessionTimeout":"PT20M"}`, apitest.MergePatch)
	idle, unused := m.session()
	busy, used := m.session()
	for range 9 {
		c.advance(5 * time.Minute)
		m.Want(200, "GET", "/api/v2/configurations", "", used)
	}
	m.Want(401, "GET", "/api/v2/configurations", "", unused)
	m.Want(401, "GET", "/api/v2/configurations", "", before)
	if err := identity.ExpireSessions(t.Context(), m.Address, m.Identity, m.Store.Update); err != nil {
		t.Fatal(err)
	}
	for id, state := range map[string]string{early: "TIMED_OUT", idle: "TIMED_OUT", busy: "LOGGED_IN"} {
		if r := m.Want(200, "GET", "/api/v2/sessions/"+id, ""); r.Text("state") != state {
			t.Errorf("the session is %s, want %s: %s", r.Text("state"), state, r.Body)
		}
	}
	// A longer time also applies to open sessions.
	m.Want(200, "PATCH", m.settingsOf("GlobalSettings"), `{"sessionTimeout":"PT24H"}`, apitest.MergePatch)
	m.Want(200, "GET", "/api/v2/configurations", "", used)
	c.advance(3 * time.Hour)
	m.Want(200, "GET", "/api/v2/configurations", "", used)
	for range 24 * 4 {
		c.advance(15 * time.Minute)
		m.Do("GET", "/api/v2/configurations", "", used)
	}
	m.Want(401, "GET", "/api/v2/configurations", "", used)
	if err := identity.ExpireSessions(t.Context(), m.Address, m.Identity, m.Store.Update); err != nil {
		t.Fatal(err)
	}
	if r := m.Want(200, "GET", "/api/v2/sessions/"+busy, ""); r.Text("state") != "EXPIRED" {
		t.Errorf("after a day the session is %s", r.Body)
	}
	m.Verify()
}

// TestLoginPolicy checks the configured lockout: after a number of failures within a time, sign-ins are refused for another time.
func TestLoginPolicy(t *testing.T) {
	var c clock
	m := startManager(t, func(o *Options) { o.Now = c.now })
	m.Want(200, "PATCH", m.settingsOf("LoginPolicySettings"),
		`{"enabled":true,"failureLimit":2,"failureLimitPeriod":"PT10M","delayDuration":"PT7M"}`, apitest.MergePatch)
	m.ID("/api/v2/users", `{"type":"User","name":"ada","password":"`+adminPassword+`","email":"a@example.net","accessType":"API","securityPrivilege":"NO_ACCESS"}`)
	try := func(status int, password string) reply {
		t.Helper()
		return m.Want(status, "POST", "/api/v2/sessions", `{"username":"ada","password":"`+password+`"}`, "Authorization:")
	}
	try(401, "wrong")
	c.advance(11 * time.Minute) // the first failure counts no more
	try(401, "wrong")
	try(401, "wrong")
	if r := try(429, adminPassword); r.Header.Get("Retry-After") != "420" {
		t.Errorf("to wait are %s s, want 420", r.Header.Get("Retry-After"))
	}
	c.advance(6 * time.Minute)
	try(429, adminPassword)
	c.advance(61 * time.Second)
	try(401, "wrong") // which is a third failure within the time
	try(429, adminPassword)
	c.advance(8 * time.Minute)
	try(201, adminPassword)
	// A password that is known to be right waits with the guesses of its own address, and another policy begins anew.
	try(401, "wrong")
	try(401, "wrong")
	try(429, adminPassword)
	m.Want(200, "PATCH", m.settingsOf("LoginPolicySettings"), `{"delayDuration":"PT1S"}`, apitest.MergePatch)
	try(201, adminPassword)
}

// lines are log lines.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

// TestLogLevels checks that the log level of each component is that of the settings, unless the command line sets it.
func TestLogLevels(t *testing.T) {
	apitest.Slow(t)
	var log lines
	m := startOnce(t, func(o *Options) { o.Log, o.LogLevel = slog.New(slog.NewTextHandler(&log, nil)), "" })
	settings := m.settingsOf("LogLevelSettings")
	m.Refused(400, "UnsupportedResourceFieldValue", "snmpClient", "PATCH", settings, `{"snmpClient":"DEBUG"}`, apitest.MergePatch)
	m.Refused(400, "InvalidEnumValue", "restV2", "PATCH", settings, `{"restV2":"LOUD"}`, apitest.MergePatch)
	if m.Want(200, "GET", "/api/v2/configurations?limit=7", ""); log.has("msg=request") {
		t.Error("requests are logged at INFO")
	}
	m.Want(200, "PATCH", settings, `{"restV2":"DEBUG"}`, apitest.MergePatch)
	apitest.Eventually(t, "requests are logged", func() bool {
		m.Want(200, "GET", "/api/v2/configurations?limit=8", "")
		return log.has("msg=request")
	})
	if log.has("door=fleet") {
		t.Error("the other doors log as the API does")
	}
	if r := m.Want(200, "PATCH", settings, `{"addressManager":"WARN"}`, apitest.MergePatch); r.Text("rrdTool") != "WARN" || r.Text("restV2") != "DEBUG" {
		t.Errorf("the parts that log with the manager are %s", r.Body)
	}
	fixed := startOnce(t)
	fixed.Refused(400, "UnsupportedResourceFieldValue", "--log-level", "PATCH", fixed.settingsOf("LogLevelSettings"), `{"restV2":"DEBUG"}`, apitest.MergePatch)
	fixed.Want(200, "PATCH", fixed.settingsOf("LogLevelSettings"), `{"restV2":"INFO"}`, apitest.MergePatch)
}
