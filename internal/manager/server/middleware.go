package server

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
	"portolan/internal/engine/resource"
	"portolan/internal/engine/rest"
	"portolan/internal/engine/store"
	"portolan/internal/manager/authn"
	"portolan/internal/manager/identity"

	"github.com/klauspost/compress/gzhttp"
	"github.com/prometheus/client_golang/prometheus"
)

// recorder remembers the status that was sent, and how much behind it.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
	// of is the request that is answered; parked says that it is answered later (park.go).
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

// passing is a request on its way through a door.
type passing struct {
	asked
	manager *Manager
	door    string
	log     *slog.Logger
	request *http.Request
	answer  recorder
	began   time.Time
	// taken takes the seconds that it took, endSpan the status that was sent.
	taken   prometheus.Observer
	endSpan func(status int)
}

// end counts, times and logs a request that was answered.
func (p *passing) end() {
	m, r, status, took := p.manager, p.request, p.answer.status, time.Since(p.began)
	p.taken.Observe(took.Seconds())
	p.endSpan(status)
	m.accessed(r, &p.asked, &p.answer, took)
	m.audited(p.door, r, &p.asked, &p.answer)
	m.metrics.requests.WithLabelValues(p.door, method(r), strconv.Itoa(status)).Inc()
	if p.log.Enabled(r.Context(), slog.LevelDebug) {
		p.log.DebugContext(r.Context(), "request", "door", p.door, "method", r.Method, "path", r.URL.Path, "status", status,
			"duration", took, "remote", r.RemoteAddr)
	}
}

// handle wraps the handler of a door: it counts, times and logs requests, turns panics into 500, and
// sets the headers that every answer has.
func (m *Manager) handle(name string, handle func(w http.ResponseWriter, r *http.Request) error) http.Handler {
	duration, log := m.metrics.duration.WithLabelValues(name), m.log
	if name == "address" {
		log = m.REST.Log
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &passing{manager: m, door: name, log: log, began: time.Now(), taken: duration}
		p.answer.ResponseWriter, p.answer.of = w, p
		r = begin(r, &p.asked)
		w.Header().Set(requestHeader, p.id)
		p.request, p.endSpan = m.traces.begin(r, name, &p.asked)
		setSecurityHeaders(w.Header(), m.secure)
		aborted := true
		defer func() {
			if aborted {
				p.answer.status = 499
			}
			if !p.answer.parked {
				p.end()
			}
		}()
		m.safely(&p.answer, p.request, handle)
		aborted = false
	})
}

// The pages have their style in themselves, by its hash, and nothing else: no script, no frame, no form.
var pagePolicy = "default-src 'none'; style-src '" + rest.StyleHash() + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// securityHeaders are the headers that every answer has. Answers share their values: nobody writes to them, and who adds one has a list of
// its own, as each is full.
var securityHeaders = []struct {
	name   string // in its canonical form
	values []string
}{{"X-Content-Type-Options", []string{"nosniff"}}, {"Cache-Control", []string{"no-store"}},
	{"Content-Security-Policy", []string{pagePolicy}}, {"Referrer-Policy", []string{"no-referrer"}}}

// setSecurityHeaders sets the headers that every answer has; secure says that the listener is TLS.
func setSecurityHeaders(h http.Header, secure bool) {
	for _, one := range securityHeaders {
		h[one.name] = one.values
	}
	if secure { // RFC 6797 section 6.1
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// safely runs the handler; http.ErrAbortHandler goes on up, because it cuts the connection.
func (m *Manager) safely(w *recorder, r *http.Request, handle func(w http.ResponseWriter, r *http.Request) error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) || w.status != 0 {
			panic(http.ErrAbortHandler)
		}
		m.fail(w, r, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
	}()
	err := refuseNUL(r)
	if err == nil {
		err = sameOrigin(r)
	}
	if err == nil {
		err = handle(w, r)
	}
	if err != nil {
		identity.ForgetCookie(w, r, err)
		m.fail(w, r, err)
	}
}

// refuseNUL refuses a NUL character in a path or a query: nothing that is kept has one.
func refuseNUL(r *http.Request) error {
	if strings.ContainsRune(r.URL.Path, 0) {
		return problem.NotFound("there is nothing at a path with a NUL character")
	}
	if strings.Contains(r.URL.RawQuery, "%00") {
		return problem.BadRequest("InvalidQueryParameterValue", "the query string holds a NUL character")
	}
	return nil
}

// compressed wraps a handler so that its answers are compressed with zstd or gzip when asked for.
func compressed(h http.Handler) (http.Handler, error) {
	wrap, err := gzhttp.NewWrapper(gzhttp.EnableZstd(true), gzhttp.EnableGzip(true), gzhttp.MinSize(1024), gzhttp.CompressionLevel(1))
	if err != nil {
		return nil, fmt.Errorf("setting up compression: %w", err)
	}
	return wrap(h), nil
}

// sameOrigin refuses what a page of another origin makes a browser send, but for what identity providers send by browsers: those messages
// are signed, and let in nobody whom this browser has not been sent for.
func sameOrigin(r *http.Request) error {
	if r.URL.Path == authn.SAMLConsumePath || r.URL.Path == authn.SAMLLogoutPath {
		return nil
	}
	return identity.SameOrigin(r)
}

// authorOf is who changes something by a request, as the history has it, with the comment of the request.
func authorOf(r *http.Request, caller resource.Caller) (store.Author, error) {
	comment, err := rest.Comment(r)
	caller.Remote, caller.Client = identity.Remote(r), r.UserAgent()
	return caller.Author(comment), err
}
