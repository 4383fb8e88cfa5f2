package server

import (
	"net/http"
	"testing"

	"portolan/internal/pgtest"
)

// The database goes and comes back. Meanwhile the manager says so and answers 503, never 500; then it
// goes on, without being started again, and what was acknowledged is there.
func TestDatabaseGoesAndComes(t *testing.T) {
	database := pgtest.New(t)
	url := database.URL("postgres")
	m := startManager(t, func(o *Options) { o.Database = url })
	configuration, _, _, _, network := m.basics()
	if err := database.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, r := range []reply{
		m.do("GET", "/api/v2/networks/"+network, ""), m.do("GET", "/api/v2/networks", ""),
		m.do("POST", "/api/v2/configurations/"+configuration+"/views", `{"name":"x"}`), m.do("GET", "/user/api/v1/fleetInstances", ""),
		m.do("GET", "/readyz", "", "Authorization:"),
	} {
		if r.StatusCode != http.StatusServiceUnavailable || r.text("code") != "DatabaseUnavailable" || r.Header.Get("Retry-After") == "" {
			t.Errorf("%s %s without a database: %d %s", r.Request.Method, r.Request.URL.Path, r.StatusCode, r.body)
		}
	}
	m.want(http.StatusOK, "GET", "/healthz", "", "Authorization:")
	if err := database.Revive(); err != nil {
		t.Fatal(err)
	}
	m.want(http.StatusOK, "GET", "/readyz", "", "Authorization:")
	m.want(http.StatusOK, "GET", "/api/v2/networks/"+network, "")
	m.id("/api/v2/configurations/"+configuration+"/views", `{"name":"x"}`)
	m.verify()
}
