// Package apitest serves the address API of some manager packages over a temporary database, without listeners and background jobs, for
// tests of the rules of these packages.
package apitest

import (
	"context"
	"flag"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/event"
	"portolan/internal/engine/family"
	"portolan/internal/engine/published"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/rest"
	"portolan/internal/engine/store"
	"portolan/internal/engine/timetable"
	"portolan/internal/manager/audit"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/catalog"
	"portolan/internal/manager/history"
	"portolan/internal/manager/identity"
	"portolan/internal/manager/secrets"
	"portolan/internal/manager/settings"
	"portolan/internal/manager/userfields"
	"portolan/internal/testkit/pgtest"
)

// Environment variables that make sets. OnPostgres stores the data of this run in PostgreSQL. AllTests sends all requests of tests that
// otherwise send a sample; with the value "postgres" the run on PostgreSQL contains all tests. LongTests runs long variants of tests.
const (
	OnPostgres = pgtest.OnPostgres
	AllTests   = "PORTOLAN_TEST_ALL"
	LongTests  = "PORTOLAN_TEST_LONG"
)

// API is the address API of some manager packages.
type API struct {
	Client
	Store    *store.Store
	Address  *resource.API
	REST     *rest.Server
	Identity *identity.Service

	// mounted has the operations of mounted families; nil without them.
	mounted *http.ServeMux
	// ctx ends with the test, which then waits for the workers.
	ctx     context.Context
	workers sync.WaitGroup
}

// AdminPassword is the password of the user admin.
const AdminPassword = "correct horse battery"

// maxPage is the maximum page size.
const maxPage = 100_000

// New returns the address API over a new database, with the given packages in addition to users, rights, settings, logs and catalogs. The
// test runs in parallel with others and uses one client. It is skipped on PostgreSQL unless all tests are selected, and under the race
// detector.
func New(t *testing.T, register ...func(*resource.Registry)) *API {
	t.Helper()
	if UnderRace {
		t.Skip("one client, and one request after another")
	}
	SkipOnPostgreSQL(t)
	return NewConcurrent(t, register...)
}

// NewConcurrent is New for a test with several clients or with workers. It runs on both databases, and under the race detector.
func NewConcurrent(t *testing.T, register ...func(*resource.Registry)) *API {
	t.Helper()
	return NewAt(t, nil, register...)
}

// NewAt is NewConcurrent with a clock; nil means that of the machine.
func NewAt(t *testing.T, now func() time.Time, register ...func(*resource.Registry)) *API {
	t.Helper()
	RunParallel(t)
	a := &API{Client: Client{T: t}}
	options := store.Options{Speedup: 10, Now: now}
	var err error
	if os.Getenv(OnPostgres) != "" {
		options.Database = pgtest.Filled(t, key(register), func(url string) error { return fill(store.Options{Database: url}, register) })
	} else {
		options.Dir = t.TempDir()
		err = CopyTemplate(options.Dir, key(register), func(dir string) error { return fill(store.Options{Dir: dir}, register) })
	}
	if err == nil {
		err = a.open(options, register)
	}
	if err != nil {
		t.Fatal(err)
	}
	var stop context.CancelFunc
	a.ctx, stop = context.WithCancel(context.Background())
	t.Cleanup(func() {
		stop()
		a.workers.Wait()
		if err := a.Store.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
		// testing keeps the values of ended tests that Cleanup refers to: several gigabytes in total.
		a.Store, a.Address, a.REST, a.Identity, a.Client = nil, nil, nil, nil, Client{}
	})
	if a.Token, err = a.Identity.CreateToken(t.Context(),
		identity.Grant{Name: "test", Role: authz.Administrator, User: "admin"}); err != nil {
		t.Fatal(err)
	}
	a.Data = a.Address
	a.Base = func() string { return "http://portolan.test" }
	a.Send = func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		r.RemoteAddr = "127.0.0.1:1"
		a.serve(w, r)
		return w.Result(), nil
	}
	return a
}

// Work runs a worker, such as one that performs imports, until the test ends.
func (a *API) Work(run func(ctx context.Context)) {
	a.workers.Go(func() { run(a.ctx) })
}

// registry returns the declarations of the packages.
func registry(register []func(*resource.Registry)) *resource.Registry {
	r := &resource.Registry{Facts: published.Facts{}, Manager: &resource.Manager{}}
	for _, f := range []func(*resource.Registry){authz.Register, identity.Register, secrets.Register, catalog.Register, userfields.Register,
		settings.Register, audit.Register, event.Register} {
		f(r)
	}
	for _, f := range register {
		f(r)
	}
	return r
}

// open opens the database and creates the API.
func (a *API) open(o store.Options, register []func(*resource.Registry)) (err error) {
	o.Layout, o.Exclusive = registry(register).Layout(), true
	o.Layout.Extensions = append(o.Layout.Extensions, rest.Extension(), timetable.Extension(), history.Extension())
	if a.Store, err = store.Open(o); err != nil {
		return err
	}
	a.Identity = identity.ServiceOf(a.Store)
	a.Address = resource.NewAPI(a.Store, registry(register))
	authz.Govern(a.Address)
	a.Address.Sealer = secrets.Sealer{}
	a.REST = rest.New(a.Address, rest.Settings{Base: published.Base, MaxLimit: maxPage, RootType: "AddressManager", Version: "test"})
	a.REST.SetCookie, a.REST.RequestFields = identity.SetCookie, identity.RequestToken
	return nil
}

// fill creates the initial content of a database.
func fill(o store.Options, register []func(*resource.Registry)) error {
	var a API
	if err := a.open(o, register); err != nil {
		return err
	}
	err := a.Store.Update(context.Background(), store.Author{Comment: "set-up"}, func(tx *store.Tx) error {
		c := &resource.Change{Tx: tx, API: a.Address, Extra: map[string]string{}, SetFields: map[string]bool{"password": true}}
		if err := identity.CreateAdmin(c, AdminPassword); err != nil {
			return err
		}
		if err := catalog.SeedLocations(&resource.Change{Tx: tx, API: a.Address, Extra: map[string]string{}}); err != nil {
			return err
		}
		return a.Address.Seed(tx)
	})
	if closing := a.Store.Close(); err == nil {
		err = closing
	}
	return err
}

// Log returns a logger for workers, which writes errors to standard error.
func Log() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}

// Mount also serves the operations of a family, which authenticates its callers itself. It must be called before the first request.
func (a *API) Mount(f *family.Family) {
	if a.mounted == nil {
		a.mounted = http.NewServeMux()
	}
	for i := range f.Paths {
		handle := f.Paths[i].Handler()
		a.mounted.HandleFunc(f.Paths[i].Pattern, func(w http.ResponseWriter, r *http.Request) { a.answerError(w, r, handle(w, r)) })
	}
}

// serve handles a request as a manager does.
func (a *API) serve(w http.ResponseWriter, r *http.Request) {
	if a.mounted != nil {
		if h, pattern := a.mounted.Handler(r); pattern != "" {
			h.ServeHTTP(w, r)
			return
		}
	}
	var caller resource.Caller
	var err error
	if r.Method != http.MethodPost || r.URL.Path != published.Base+"/sessions" {
		var p authz.Principal
		if p, err = a.Identity.AuthenticateAny(r); err == nil {
			err = p.OpensAddress()
		}
		caller = authz.CallerOf(p)
		caller.Remote, caller.Client = identity.Remote(r), r.UserAgent()
	}
	if err == nil {
		err = a.REST.Serve(w, r, caller)
	}
	a.answerError(w, r, err)
}

// answerError answers a request with an error. An unexpected error fails the test.
func (a *API) answerError(w http.ResponseWriter, r *http.Request, err error) {
	if err == nil {
		return
	}
	p, is := problem.As(err)
	if !is {
		a.T.Errorf("%s %s: %v", r.Method, r.URL, err)
		p = problem.New(http.StatusInternalServerError, "InternalError", "%v", err)
	}
	family.PlainErrors().Write(w, r, p)
}

// templates are the template data directories, by the packages. Copying one takes a tenth of the time for creating the schema.
var templates struct {
	mu   sync.Mutex
	dirs map[string]string
}

// key identifies the packages.
func key(register []func(*resource.Registry)) string {
	names := make([]string, len(register))
	for i, f := range register {
		names[i] = runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name()
	}
	return strings.Join(names, " ")
}

// CopyTemplate copies the template of a key into a data directory. fill creates the template on the first call with the key in this
// process.
func CopyTemplate(to, key string, fill func(dir string) error) error {
	templates.mu.Lock()
	defer templates.mu.Unlock()
	from, there := templates.dirs[key]
	if !there {
		var err error
		if from, err = os.MkdirTemp("", "portolan-template-"); err != nil {
			return err
		}
		if err := fill(from); err != nil {
			return err
		}
		if templates.dirs == nil {
			templates.dirs = map[string]string{}
		}
		templates.dirs[key] = from
	}
	files, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(from, f.Name()))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, f.Name()), text, 0o600); err != nil { //nolint:gosec // of a test
			return err
		}
	}
	return nil
}

// Run runs the tests of a package and removes the templates. TestMain calls it.
func Run(m *testing.M) int {
	flag.Parse()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	defaults := map[string]string{}
	if os.Getenv(OnPostgres) == "" { // the tests mostly wait; the shared PostgreSQL server cannot serve more
		defaults["test.parallel"] = strconv.Itoa(3 * runtime.GOMAXPROCS(0))
	}
	if flag.Lookup("rapid.checks") != nil && os.Getenv(LongTests) == "" {
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
	code := pgtest.Run(m)
	for _, dir := range templates.dirs {
		_ = os.RemoveAll(dir)
	}
	return code
}

// started are the tests that already have an API.
var started sync.Map

// RunParallel makes a test run in parallel with others, which have their own data. Subtests run one after another.
func RunParallel(t *testing.T) {
	if _, there := started.LoadOrStore(t, true); !there && !strings.Contains(t.Name(), "/") {
		t.Parallel()
	}
}

// InSample reports whether a test of many similar requests sends request i. It sends all of them with LongTests and, on SQLite, with
// AllTests as in CI, otherwise one of n, spread over groups of any size.
func InSample(i, n int) bool {
	return os.Getenv(LongTests) != "" || os.Getenv(AllTests) != "" && os.Getenv(OnPostgres) == "" || (i+i/n+i/n/n)%n == 0
}

// Long skips a test that needs size unless LongTests is set, as in make test-long.
func Long(t *testing.T) {
	t.Helper()
	if os.Getenv(LongTests) == "" {
		t.Skip("this needs size; make test-long runs it")
	}
}

// Slow skips, with -short, a test that takes more than 2 s in parallel with others (make quick).
func Slow(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: it takes more than 2 s")
	}
}
