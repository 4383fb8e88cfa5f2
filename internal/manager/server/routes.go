package server

import (
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzhttp"

	"portolan/console"
	"portolan/internal/base/problem"
	"portolan/internal/engine/family"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/server/addressapi"
	"portolan/internal/manager/server/checkinapi"
	"portolan/internal/manager/server/fleetapi"
	"portolan/internal/manager/server/middleware"
	"portolan/internal/manager/server/signin"
	"portolan/internal/wire/checkin"
)

// routes is a multiplexer that lists its patterns.
type routes struct {
	mux      http.ServeMux
	patterns []string
}

// Handle adds a route.
func (r *routes) Handle(pattern string, h http.Handler) {
	r.patterns = append(r.patterns, pattern)
	r.mux.Handle(pattern, h)
}

// families returns the API families of a manager, the address API first. The routes, the OpenAPI document and the error for an unknown path
// follow from them. An API at another root is a folder with a Family, a parameter here, and an argument in apiHandler and Document.
func families(address *addressapi.API, fleet *fleetapi.API) []*family.Family {
	return []*family.Family{address.Family(), fleet.Family()}
}

// mount adds the paths of a family.
func (m *Manager) mount(mux *routes, f *family.Family) {
	api := middleware.API{Name: f.Name, Errors: f.Errors, Audited: true}
	if f.Root == Base { // its level is a setting
		api.Log = m.REST.Log
	}
	for i := range f.Paths {
		mux.Handle(f.Paths[i].Pattern, m.chain.Handler(api, f.Paths[i].Handler()))
	}
}

// apiHandler returns the handler of the API listener.
func (m *Manager) apiHandler() (http.Handler, error) {
	mux := &routes{}
	all := families(m.addressAPI, m.fleetAPI())
	declared := all[0]
	for _, f := range all {
		m.mount(mux, f)
	}
	address := m.chain.Handler(middleware.API{Name: declared.Name, Errors: declared.Errors, Audited: true, Log: m.REST.Log},
		m.addressAPI.Serve)
	health := middleware.Plain("health")
	mux.Handle("/healthz", m.chain.Reading(health, m.healthz))
	mux.Handle("/readyz", m.chain.Reading(health, m.readyz))
	if m.figures == nil {
		mux.Handle("/metrics", m.chain.Reading(middleware.Plain("metrics"), m.showMetrics))
	}
	// The document is created at the first request, because that takes more memory than all else at the start.
	document := sync.OnceValues(func() ([]byte, error) { return document(m.REST, all...) })
	mux.Handle("/api/openapi.json", m.chain.Reading(middleware.Plain(declared.Name), func(w http.ResponseWriter, _ *http.Request) error {
		text, err := document()
		if err != nil {
			return fmt.Errorf("derive the OpenAPI document: %w", err)
		}
		w.Header().Set("Content-Type", "application/json")
		_, err = w.Write(text)
		return err
	}))
	served := "the console is at /"
	for _, f := range all {
		served += ", the " + f.Name + " API at " + f.Root
	}
	nothing := m.chain.Handler(middleware.Plain("none"), notFound(served+", and their documentation at /api/docs"))
	screens := console.Handler(nothing)
	pages := m.chain.Reading(middleware.Plain("console"), func(w http.ResponseWriter, r *http.Request) error {
		screens.ServeHTTP(w, r)
		return nil
	})
	(&signin.API{Chain: m.chain, Identity: m.Identity}).Routes(mux)
	mux.Handle("/{$}", pages)
	mux.Handle("/api/docs", pages) // a screen of the console without sign-in
	mux.Handle("/api/docs/", pages)
	mux.Handle(console.Base, pages)
	mux.Handle("/", nothing)
	m.routes = mux.patterns
	// The address API is routed first and by prefix: the multiplexer would answer odd paths by itself.
	return compress(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rest, is := strings.CutPrefix(r.URL.Path, Base)
		if is && (rest == "" || rest[0] == '/') && !addressapi.IsOwn(r.URL.Path) {
			address.ServeHTTP(w, r)
			return
		}
		middleware.SetSecurityHeaders(w.Header(), m.chain.Secure) // also for answers of the multiplexer itself
		mux.mux.ServeHTTP(w, r)
	}))
}

// fleetAPI returns the fleet API of this manager.
func (m *Manager) fleetAPI() *fleetapi.API {
	return &fleetapi.API{Fleet: m.Fleet, Identity: m.Identity, Scopes: authz.PolicyOf(m.Store).FleetScopes, Endpoint: m.RegistrationEndpoint,
		Releases: m.releases, Log: m.log}
}

// checkinHandler returns the handler of the check-in listener.
func (m *Manager) checkinHandler() http.Handler {
	mux := &routes{}
	(&checkinapi.API{Chain: m.chain, Fleet: m.Fleet, Store: m.Store, Address: m.Address, Parking: m.parking, Planners: m.planners(),
		Data: m.options.Data, Releases: m.options.Releases, Log: m.log, Observer: checkinapi.Observer{
			CheckedIn: func(err error) { countAccepted(m.metrics.checkIns, err) },
			Enrolled:  func(err error) { countAccepted(m.metrics.enrolments, err) }, Updated: m.metrics.countUpdate,
		}}).Routes(mux)
	mux.Handle(checkin.HealthPath, m.chain.Reading(middleware.Plain("health"), m.healthz))
	mux.Handle("/", m.chain.Handler(middleware.Plain("none"),
		notFound("this listener serves the check-ins of service points; the APIs have a listener of their own")))
	m.checkinRoutes = mux.patterns
	return &mux.mux
}

// compress wraps a handler so that answers are compressed with zstd or gzip on request.
func compress(h http.Handler) (http.Handler, error) {
	wrap, err := gzhttp.NewWrapper(gzhttp.EnableZstd(true), gzhttp.EnableGzip(true), gzhttp.MinSize(1024), gzhttp.CompressionLevel(1))
	if err != nil {
		return nil, fmt.Errorf("set up compression: %w", err)
	}
	return wrap(h), nil
}

// notFound answers a request for a path that a listener does not have. served says what the listener serves.
func notFound(served string) func(http.ResponseWriter, *http.Request) error {
	return func(_ http.ResponseWriter, r *http.Request) error {
		return problem.NotFound("%s does not exist: %s", r.URL.Path, served)
	}
}

// maxLogged is the maximum length in bytes of an unverified name in the log.
const maxLogged = 64
