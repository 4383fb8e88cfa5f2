// Package middleware handles what all requests have in common: it names, times, counts, logs and traces them, sets the headers that every
// answer has, turns panics into errors, and writes errors in the form of their API. Parking keeps connections without a goroutine while
// their requests wait.
package middleware

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/family"
	"portolan/internal/engine/rest"
	"portolan/internal/manager/authn"
	"portolan/internal/manager/identity"
	"portolan/internal/manager/server/journal"

	"github.com/prometheus/client_golang/prometheus"
)

// recorder keeps the status and the length of an answer.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
	// of is the request that is answered; parked says that it is answered later (Parking).
	of     *passing
	parked bool
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(b)
	r.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// method names a method for a metric; a client must not make up ever new ones.
func method(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodHead, http.MethodOptions:
		return r.Method
	}
	return "other"
}

// Chain wraps the handlers of a manager. Its fields do not change once it serves.
type Chain struct {
	// Log takes events and errors.
	Log *slog.Logger
	// Secure says that the listener of the APIs is TLS: answers tell browsers to come by nothing else (RFC 6797).
	Secure bool
	// Access and Audit take a line for each request, and for each that changes something; nil: they are not kept.
	Access, Audit *journal.Journal
	// Traces takes spans; nil: none are sent.
	Traces *Traces

	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

// New returns a chain whose metrics are registered.
func New(registry prometheus.Registerer) *Chain {
	c := &Chain{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portolan_http_requests_total",
			Help: "Requests by listener (door), method and status."}, []string{"door", "method", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "portolan_http_request_duration_seconds",
			Help: "Response time by listener (door).", Buckets: prometheus.ExponentialBuckets(0.0005, 4, 9)}, []string{"door"}),
	}
	registry.MustRegister(c.requests, c.duration)
	return c
}

// API describes how requests to one API are counted, logged and rejected.
type API struct {
	// Name is the label of the API in metrics, logs and traces.
	Name string
	// Errors is the form of its errors.
	Errors family.Errors
	// Audited reports whether its requests are written to the audit log.
	Audited bool
	// Log takes a line for each request at level DEBUG; nil means Chain.Log.
	Log *slog.Logger
}

// Plain returns an API without a form of its own, such as health and the pages of the console.
func Plain(name string) API { return API{Name: name, Errors: family.BriefErrors()} }

// passing is a request that is being answered.
type passing struct {
	requestInfo
	chain     *Chain
	api       API
	request   *http.Request
	answer    recorder
	startedAt time.Time
	// duration takes the seconds that the request took, endSpan the status of the answer.
	duration prometheus.Observer
	endSpan  func(status int)
}

// end counts, times and logs a request that was answered.
func (p *passing) end() {
	c, r, status, took := p.chain, p.request, p.answer.status, time.Since(p.startedAt)
	p.duration.Observe(took.Seconds())
	p.endSpan(status)
	c.logAccess(r, &p.requestInfo, &p.answer, took)
	c.audited(p.api.Audited, r, &p.requestInfo, &p.answer)
	c.requests.WithLabelValues(p.api.Name, method(r), strconv.Itoa(status)).Inc()
	if p.api.Log.Enabled(r.Context(), slog.LevelDebug) {
		p.api.Log.DebugContext(r.Context(), "request", "door", p.api.Name, "method", r.Method, "path", r.URL.Path, "status", status,
			"duration", took, "remote", r.RemoteAddr)
	}
}

// Handle answers a request, or returns the error that it is answered with.
type Handle = func(w http.ResponseWriter, r *http.Request) error

// Mux takes the paths of an API, as http.ServeMux does.
type Mux interface {
	Handle(pattern string, h http.Handler)
}

// Handler returns the handler of an API's requests.
func (c *Chain) Handler(api API, handle Handle) http.Handler {
	duration := c.duration.WithLabelValues(api.Name)
	if api.Log == nil {
		api.Log = c.Log
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &passing{chain: c, api: api, startedAt: time.Now(), duration: duration}
		p.answer.ResponseWriter, p.answer.of = w, p
		r = nameRequest(r, &p.requestInfo)
		w.Header().Set(requestHeader, p.id)
		p.request, p.endSpan = c.Traces.startSpan(r, api.Name, &p.requestInfo)
		SetSecurityHeaders(w.Header(), c.Secure)
		aborted := true
		defer func() {
			if aborted {
				p.answer.status = 499
			}
			if !p.answer.parked {
				p.end()
			}
		}()
		c.safely(&p.answer, p.request, api.Errors, handle)
		aborted = false
	})
}

// Reading returns the handler of requests that may only be GET or HEAD.
func (c *Chain) Reading(api API, handle Handle) http.Handler {
	return c.Handler(api, func(w http.ResponseWriter, r *http.Request) error {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			return family.WrongMethod(w, r, http.MethodGet, http.MethodHead)
		}
		return handle(w, r)
	})
}

// pagePolicy is the content security policy of the pages. It allows the style in the page, by its hash, and nothing else: no script, no
// frame, no form.
var pagePolicy = "default-src 'none'; style-src '" + rest.StyleHash() + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// securityHeaders are the headers of every response. Responses share the value slices, which must not be modified. Each slice is full,
// so append makes a copy.
var securityHeaders = []struct {
	name   string // in its canonical form
	values []string
}{{"X-Content-Type-Options", []string{"nosniff"}}, {"Cache-Control", []string{"no-store"}},
	{"Content-Security-Policy", []string{pagePolicy}}, {"Referrer-Policy", []string{"no-referrer"}}}

// SetSecurityHeaders sets the headers that every answer has; secure says that the listener is TLS.
func SetSecurityHeaders(h http.Header, secure bool) {
	for _, one := range securityHeaders {
		h[one.name] = one.values
	}
	if secure { // RFC 6797 section 6.1
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// safely runs the handler and answers a panic with an error response. After http.ErrAbortHandler, or if the response has begun, it
// panics with http.ErrAbortHandler, which closes the connection.
func (c *Chain) safely(w *recorder, r *http.Request, form family.Errors, handle Handle) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) || w.status != 0 {
			panic(http.ErrAbortHandler)
		}
		c.fail(w, r, form, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
	}()
	err := rejectNUL(r)
	if err == nil {
		err = sameOrigin(r)
	}
	if err == nil {
		err = handle(w, r)
	}
	if err != nil {
		identity.ForgetCookie(w, r, err)
		c.fail(w, r, form, err)
	}
}

// rejectNUL returns an error if a path or a query contains a NUL character: no stored text does.
func rejectNUL(r *http.Request) error {
	if strings.ContainsRune(r.URL.Path, 0) {
		return problem.NotFound("the path contains a NUL character")
	}
	if strings.Contains(r.URL.RawQuery, "%00") {
		return problem.BadRequest("InvalidQueryParameterValue", "the query string contains a NUL character")
	}
	return nil
}

// sameOrigin rejects requests that a page of another origin makes a browser send. SAML messages of identity providers are exempt:
// they are signed and are accepted only for a sign-in that this browser has started.
func sameOrigin(r *http.Request) error {
	if r.URL.Path == authn.SAMLConsumePath || r.URL.Path == authn.SAMLLogoutPath {
		return nil
	}
	return identity.SameOrigin(r)
}
