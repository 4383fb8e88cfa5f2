package server

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"portolan/internal/engine/store"
	"portolan/internal/testkit/apitest"
	"portolan/internal/testkit/pgtest"
)

// TestDatabaseHangs checks that readiness and status report a hanging PostgreSQL as AWAY, like a stopped one, each within its time limit.
// It is READY with its next answer.
func TestDatabaseHangs(t *testing.T) {
	apitest.Slow(t)
	database := pgtest.New(t)
	url := database.URL("postgres")
	m := startManager(t, func(o *Options) { o.Database = url })
	_, _, _, _, network := m.Basics()
	if err := database.Pause(); err != nil {
		t.Fatal(err)
	}
	resume := sync.OnceFunc(func() {
		if err := database.Resume(); err != nil {
			t.Error(err)
		}
	})
	defer resume()
	for _, path := range []string{"/readyz", "/api/v2/networks/" + network} { // the second one is bounded since the first has noticed it
		if r := m.Do("GET", path, ""); r.StatusCode != http.StatusServiceUnavailable || r.Text("code") != "DatabaseUnavailable" {
			t.Errorf("GET %s of a database that hangs: %d %s", path, r.StatusCode, r.Body)
		}
	}
	if is, since, why := m.Store.Condition(); is != store.Unreachable || since.IsZero() || why == nil {
		t.Errorf("the condition is %s: %v", is, why)
	}
	s, err := m.readStatus(t.Context())
	if err != nil || !s.Incomplete || s.Database.Condition != store.Unreachable ||
		!slices.ContainsFunc(s.Alarms, func(a Alarm) bool { return a.What == "The database is unreachable." }) {
		t.Errorf("the status is %+v, %v", s, err)
	}
	resume()
	apitest.Eventually(t, "the database is there again", func() bool {
		r := m.Do("GET", "/readyz", "", "Authorization:")
		return r.StatusCode == http.StatusOK && r.Text("database") == "READY"
	})
	if is, _, _ := m.Store.Condition(); is != store.Ready {
		t.Errorf("the condition is %s", is)
	}
}

// TestDamagedPostgreSQL checks that a damaged page of PostgreSQL is an error condition. The check command names its table and continues
// after it.
func TestDamagedPostgreSQL(t *testing.T) {
	apitest.Slow(t)
	database := pgtest.New(t)
	url := database.URL("postgres")
	m := startManager(t, func(o *Options) { o.Database = url })
	m.Basics()
	path := ""
	if err := m.Store.View(t.Context(), func(tx *store.Tx) error {
		return tx.QueryRow("SELECT pg_relation_filepath('txn')").Scan(&path)
	}); err != nil {
		t.Fatal(err)
	}
	if err := database.Do(t.Context(), "CHECKPOINT"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(database.Kill(), database.Spoil(path), database.Revive()); err != nil {
		t.Fatal(err)
	}
	apitest.Eventually(t, "the database is there again", func() bool {
		return m.Do("GET", "/api/v2/configurations",
			"").StatusCode == http.StatusOK
	})
	if r := m.Do("GET", "/api/v2/transactions", ""); r.StatusCode != http.StatusServiceUnavailable || r.Text("code") != "DatabaseDamaged" {
		t.Errorf("the history, which is damaged: %d %s", r.StatusCode, r.Body)
	}
	if is, _, _ := m.Store.Condition(); is != store.Damaged {
		t.Errorf("the condition is %s", is)
	}
	var faults []string
	if err := m.Store.View(t.Context(), func(tx *store.Tx) (err error) {
		faults, err = m.Address.Verify(tx)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(faults, func(text string) bool { return strings.HasPrefix(text, "the database is damaged: table txn: ") }) ||
		slices.ContainsFunc(faults, func(text string) bool { return strings.Contains(text, "table resource") }) {
		t.Errorf("check finds %q", faults)
	}
}

// TestDatabaseOutage checks an interruption of the database. Meanwhile the manager reports it and answers 503, never 500. Afterwards
// it continues without a restart, and acknowledged changes exist.
func TestDatabaseOutage(t *testing.T) {
	apitest.Slow(t)
	database := pgtest.New(t)
	url := database.URL("postgres")
	m := startManager(t, func(o *Options) { o.Database = url })
	configuration, _, _, _, network := m.Basics()
	if err := database.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, r := range []reply{
		m.Do("GET", "/api/v2/networks/"+network, ""), m.Do("GET", "/api/v2/networks", ""),
		m.Do("POST", "/api/v2/configurations/"+configuration+"/views", `{"name":"x"}`), m.Do("GET", "/user/api/v1/fleetInstances", ""),
		m.Do("GET", "/readyz", "", "Authorization:"),
	} {
		if r.StatusCode != http.StatusServiceUnavailable || r.Text("code") != "DatabaseUnavailable" || r.Header.Get("Retry-After") == "" {
			t.Errorf("%s %s without a database: %d %s", r.Request.Method, r.Request.URL.Path, r.StatusCode, r.Body)
		}
	}
	m.Want(http.StatusOK, "GET", "/healthz", "", "Authorization:")
	if err := database.Revive(); err != nil {
		t.Fatal(err)
	}
	m.Want(http.StatusOK, "GET", "/readyz", "", "Authorization:")
	m.Want(http.StatusOK, "GET", "/api/v2/networks/"+network, "")
	m.ID("/api/v2/configurations/"+configuration+"/views", `{"name":"x"}`)
	m.Verify()
}
