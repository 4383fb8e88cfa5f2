package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/base/naming"
	"portolan/internal/engine/store"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/identity"
	"portolan/internal/manager/model"
	"portolan/internal/manager/notify"
	"portolan/internal/servicepoint/application/all"
	"portolan/internal/testkit/agenttest"
	"portolan/internal/testkit/apitest"
	"portolan/internal/testkit/deploytest"
	"portolan/internal/testkit/pgtest"
	"portolan/internal/testkit/snmpagent"
)

// databases are the databases of data directories, so that a manager that is started again finds its own.
var databases sync.Map

// databaseFor returns the PostgreSQL database for a data directory; empty means SQLite in the directory. A new one has the schema already.
func databaseFor(t *testing.T, data string) string {
	t.Helper()
	if os.Getenv(apitest.OnPostgres) == "" {
		if files, err := os.ReadDir(data); err != nil || len(files) > 0 {
			return ""
		}
		if err := apitest.CopyTemplate(data, "whole", func(dir string) error { return makeSchema(store.Options{Dir: dir}) }); err != nil {
			t.Fatal(err)
		}
		return ""
	}
	if url, ok := databases.Load(data); ok {
		return url.(string)
	}
	url := pgtest.Filled(t, "whole", func(url string) error { return makeSchema(store.Options{Database: url}) })
	databases.Store(data, url)
	return url
}

// makeSchema creates the schema in an empty database.
func makeSchema(o store.Options) error {
	o.Layout, o.Exclusive = model.Layout(), true
	s, err := store.Open(o)
	if err != nil {
		return err
	}
	return s.Close()
}

// TestOnPostgreSQL runs the tests of this package again on PostgreSQL.
func TestOnPostgreSQL(t *testing.T) { apitest.RunOnPostgreSQL(t) }

func TestMain(m *testing.M) {
	agenttest.Application()
	snmpagent.Answer()
	os.Exit(apitest.Run(m))
}

const adminPassword = apitest.AdminPassword

// manager is a running manager under test, with a client that is an administrator.
type manager struct {
	*Manager
	apitest.Client
	http *http.Client
}

// startAlone is startManager for a test of rules, whose one client sends one request after another. The race detector skips tests without
// concurrency, because SQLite takes ten times as long under it.
func startAlone(t *testing.T, change ...func(*Options)) *manager {
	t.Helper()
	if apitest.UnderRace {
		t.Skip("one client, and one request after another")
	}
	apitest.SkipOnPostgreSQL(t)
	return startManager(t, change...)
}

// silentSoon disconnects a service point after three seconds without contact. In other tests it takes three minutes, because tests on a
// busy machine pause for seconds.
func silentSoon(o *Options) { o.Interval = time.Second }

// startOnce is startManager for a test that depends little on the database. apitest.SkipOnPostgreSQL says when it runs on PostgreSQL.
func startOnce(t *testing.T, change ...func(*Options)) *manager {
	t.Helper()
	apitest.SkipOnPostgreSQL(t)
	return startManager(t, change...)
}

func startManager(t *testing.T, change ...func(*Options)) *manager {
	t.Helper()
	apitest.RunParallel(t)
	o := Options{Programs: all.Programs(),
		Data: t.TempDir(), Listen: "127.0.0.1:0", CheckinListen: "127.0.0.1:0", AdminPassword: adminPassword, Version: "test",
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})), LogLevel: "error", Interval: time.Minute,
		Speedup: 10, FigureBytes: -1}
	var err error
	if o.Mail, err = notify.ParseMail("smtp://127.0.0.1:9?from=portolan@example.net"); err != nil { // a closed port
		t.Fatal(err)
	}
	for _, f := range change {
		f(&o)
	}
	if o.Database == "" {
		o.Database = databaseFor(t, o.Data)
	}
	started, err := Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	var m *manager
	t.Cleanup(func() {
		if err := started.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
		started, m.Manager = nil, nil // testing keeps what a test that has ended gave to Cleanup: with all of them, gigabytes
	})
	m = clientOf(t, started, &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}, "")
	if m.Token, err = m.Identity.CreateToken(context.Background(),
		identity.Grant{Name: "test", Role: authz.Administrator, User: "admin"}); err != nil {
		t.Fatal(err)
	}
	return m
}

// clientOf returns a client of a manager.
func clientOf(t *testing.T, served *Manager, over *http.Client, token string) *manager {
	m := &manager{Manager: served, http: over}
	m.Client = apitest.Client{T: t, Token: token, Data: served.Address, Base: func() string { return m.URL() },
		Send: func(r *http.Request) (*http.Response, error) { return m.http.Do(r) }}
	return m
}

// reply is an answer with its body read.
type reply = apitest.Reply

// filter is the query parameter of a filter.
func filter(text string) string { return apitest.Filter(text) }

// readZone reads a zone file; a fault of an entry is an error.
func readZone(text, origin string) (zone string, records []dns.RR, err error) {
	z, err := naming.ReadZone(strings.NewReader(text), origin, nil)
	if err == nil && len(z.Faults) > 0 {
		err = errors.New(z.Faults[0])
	}
	if err != nil {
		return "", nil, err
	}
	return z.Zone, z.Records, nil
}

// deployment creates a DNS server with a service point that never answers, below a configuration.
func (m *manager) deployment(configuration string) *deploytest.Plan {
	m.T.Helper()
	point, _ := m.create("wire")
	m.Want(202, "POST", "/user/api/v1/fleetInstances/"+point+"/applications",
		`{"name":"dns-authoritative-service","configuration":{"listen":[{"address":"127.0.0.1"}]}}`)
	return deploytest.NewPlan(&m.Client, configuration, point)
}
