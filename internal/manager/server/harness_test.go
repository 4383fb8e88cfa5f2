package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/base/naming"
	"portolan/internal/engine/store"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/identity"
	"portolan/internal/manager/notify"
	"portolan/internal/servicepoint/application/all"
	"portolan/internal/testkit/pgtest"
)

// onPostgres in the environment makes every manager under test keep its data in PostgreSQL.
const onPostgres = "PORTOLAN_TEST_ON_POSTGRES"

// databases are the databases of data directories, so that a manager that is started again finds its own.
var databases sync.Map

// databaseFor gives the database that stands for a data directory; empty means SQLite in it.
func databaseFor(t *testing.T, data string) string {
	t.Helper()
	if os.Getenv(onPostgres) == "" {
		return ""
	}
	if url, ok := databases.Load(data); ok {
		return url.(string)
	}
	url := pgtest.Filled(t, "whole", func(url string) error {
		s, err := store.Open(store.Options{Layout: Layout(), Database: url, Exclusive: true})
		if err != nil {
			return err
		}
		return s.Close()
	})
	databases.Store(data, url)
	return url
}

// Everything in this package holds on PostgreSQL, too: the same tests run once more, in a process of
// their own.
func TestOnPostgreSQL(t *testing.T) {
	if os.Getenv(onPostgres) != "" {
		t.Skip("this is that run")
	}
	if underRace {
		t.Skip("what differs is the store, whose own tests run on both under the race detector, too")
	}
	t.Parallel()
	pgtest.URL(t) // skips, or fails, where there is no server to be had
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.count=1")
	if os.Getenv(longTests) != "" { // those alone that were asked for: make test runs the others
		c.Args = append(c.Args, "-test.run="+flag.Lookup("test.run").Value.String())
	}
	c.Env = append(os.Environ(), onPostgres+"=yes")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// longTests in the environment makes tests as long as they are worth now and then (make test-long).
const longTests = "PORTOLAN_TEST_LONG"

// allTests in the environment runs tests with one client on PostgreSQL, too (make test-all, CI).
const allTests = "PORTOLAN_TEST_ALL"

// slow skips a test that takes more than 2 s beside others if the quick ones are wanted (make quick).
func slow(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: it takes more than 2 s")
	}
}

func TestMain(m *testing.M) {
	flag.Parse()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	defaults := map[string]string{}
	if os.Getenv(onPostgres) == "" { // they wait more than they work; one PostgreSQL for all has no room for more
		defaults["test.parallel"] = strconv.Itoa(3 * runtime.GOMAXPROCS(0))
	}
	if os.Getenv(longTests) == "" {
		defaults["rapid.checks"] = "12"
	}
	for name, value := range defaults {
		if given[name] {
			continue
		}
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(pgtest.Run(m))
}

// started are the tests that have a manager already.
var started sync.Map

// beside lets a test run beside others, each with a manager and data of its own.
func beside(t *testing.T) {
	if _, there := started.LoadOrStore(t, true); !there && !strings.Contains(t.Name(), "/") { // parts of a test come one after another
		t.Parallel()
	}
}

const adminPassword = "correct horse battery"

// manager is a running manager under test, with an administrator's bearer token.
type manager struct {
	*Manager
	t     *testing.T
	token string
	http  *http.Client
	// asked, where it is set, sees each request and its answer.
	asked func(method, path, body string, r reply)
}

// startAlone is startManager for a test of rules, whose one client sends one request after another. What runs side by side is for others:
// the race detector, under which SQLite takes ten times as long, passes these over.
func startAlone(t *testing.T) *manager {
	t.Helper()
	if underRace {
		t.Skip("one client, and one request after another")
	}
	if os.Getenv(onPostgres) != "" && os.Getenv(allTests) == "" {
		t.Skip("one client, which SQLite has answered: make test-all and CI ask PostgreSQL, too")
	}
	return startManager(t)
}

func startManager(t *testing.T, change ...func(*Options)) *manager {
	t.Helper()
	beside(t)
	o := Options{Programs: all.Programs(),
		Data: t.TempDir(), Listen: "127.0.0.1:0", CheckinListen: "127.0.0.1:0", AdminPassword: adminPassword, Version: "test",
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})), LogLevel: "error", Interval: time.Second,
		Hurry: 10}
	var err error
	if o.Mail, err = notify.ParseMail("smtp://127.0.0.1:9?from=portolan@example.net"); err != nil { // where nobody listens
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
	m = &manager{Manager: started, t: t, http: &http.Client{CheckRedirect: func(*http.Request,
		[]*http.Request) error {
		return http.ErrUseLastResponse
	}}}
	if m.token, err = m.Identity.CreateToken(context.Background(),
		identity.Grant{Name: "test", Role: authz.Administrator, User: "admin"}); err != nil {
		t.Fatal(err)
	}
	return m
}

// reply is an answer with its body read.
type reply struct {
	*http.Response
	body []byte
}

// get gives a member of the answer by a dotted path; numbers step into arrays.
func (r reply) get(path string) any {
	var v any
	d := json.NewDecoder(bytes.NewReader(r.body))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil
	}
	for step := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[step]
		case []any:
			var i int
			if _, err := fmt.Sscan(step, &i); err != nil || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

// count gives the number of resources of a page.
func (r reply) count() int {
	n, err := strconv.Atoi(r.text("count"))
	if err != nil {
		return -1
	}
	return n
}

func (r reply) text(path string) string {
	v := r.get(path)
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// do sends a request; headers are "Name: value" lines. A header "Authorization:" sends none.
func (m *manager) do(method, path, body string, headers ...string) reply {
	m.t.Helper()
	rq, err := http.NewRequest(method, m.URL()+path, strings.NewReader(body))
	if err != nil {
		m.t.Fatal(err)
	}
	rq.Header.Set("Authorization", "Bearer "+m.token)
	if body != "" {
		rq.Header.Set("Content-Type", "application/json")
	}
	seen := map[string]bool{}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ":")
		if !seen[name] {
			rq.Header.Del(name)
		}
		seen[name] = true
		if value = strings.TrimSpace(value); value != "" {
			rq.Header.Add(name, value)
		}
	}
	rs, err := m.http.Do(rq)
	if err != nil {
		m.t.Fatal(err)
	}
	defer func() { _ = rs.Body.Close() }()
	data, err := io.ReadAll(rs.Body)
	if err != nil {
		m.t.Fatal(err)
	}
	r := reply{rs, data}
	if m.asked != nil {
		m.asked(method, path, body, r)
	}
	return r
}

// want sends a request and fails the test where the status is another one.
func (m *manager) want(status int, method, path, body string, headers ...string) reply {
	m.t.Helper()
	r := m.do(method, path, body, headers...)
	if r.StatusCode != status {
		m.t.Fatalf("%s %s answers %d, want %d: %s", method, path, r.StatusCode, status, r.body)
	}
	return r
}

// id creates something and gives its id.
func (m *manager) id(path, body string, headers ...string) string {
	m.t.Helper()
	return m.want(http.StatusCreated, http.MethodPost, path, body, headers...).text("id")
}

// refused sends a request that must be refused with that status and code, naming something, and
// must change nothing.
func (m *manager) refused(status int, code, naming, method, path, body string, headers ...string) {
	m.t.Helper()
	before := m.do(http.MethodGet, "/api/v2/transactions?limit=1&total=true", "").text("totalCount")
	r := m.do(method, path, body, headers...)
	if r.StatusCode != status || r.text("code") != code || !strings.Contains(r.text("message"), naming) {
		m.t.Errorf("%s %s %s\n answers %d %s\n want %d %s naming %q", method, path, body[:min(len(body), 300)], r.StatusCode, r.body, status,
			code, naming)
	}
	if r.StatusCode >= 400 && (r.text("reason") == "" || r.text("status") != fmt.Sprint(r.StatusCode) ||
		r.Header.Get("Content-Type") != "application/json") {
		m.t.Errorf("%s %s: the error is worded wrong: %s %s", method, path, r.Header.Get("Content-Type"), r.body)
	}
	if after := m.do(http.MethodGet, "/api/v2/transactions?limit=1&total=true", "").text("totalCount"); after != before {
		m.t.Errorf("%s %s: the refused request left a transaction", method, path)
	}
}

// basics makes a configuration with a view, a zone, a block and a network.
func (m *manager) basics() (configuration, view, zone, block, network string) {
	m.t.Helper()
	configuration = m.id("/api/v2/configurations", `{"name":"main"}`)
	view = m.id("/api/v2/configurations/"+configuration+"/views", `{"name":"internal"}`)
	zone = m.id("/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"example.com"}`)
	block = m.id("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/8"}`)
	network = m.id("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.0.0/24","name":"office"}`)
	return configuration, view, zone, block, network
}

// filter words a filter for a query string.
func filter(text string) string { return "filter=" + url.QueryEscape(text) }

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
