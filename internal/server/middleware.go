package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"portolan/internal/access"
	"portolan/internal/fleet"
	"portolan/internal/history"
	"portolan/internal/problem"
	"portolan/internal/rest"
	"portolan/internal/store"

	"github.com/klauspost/compress/gzhttp"
	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what /metrics shows of the doors.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	signIns  *prometheus.CounterVec
	batches  *prometheus.HistogramVec
	webhooks *prometheus.CounterVec
	imports  *prometheus.CounterVec
	rows     *prometheus.CounterVec
	moves    *prometheus.CounterVec
	deployed *prometheus.CounterVec
	live     prometheus.Counter
	// links counts transactions that were chained, historyLines those that were sent to the syslog, historyFailures what could not be done.
	links, historyLines, historyFailures prometheus.Counter
	keys                                 *prometheus.CounterVec
	updates                              *prometheus.CounterVec
	copies                               *prometheus.CounterVec
	backups                              *prometheus.CounterVec
	notices                              *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portolan_http_requests_total",
			Help: "Requests answered, by door, method and status."}, []string{"door", "method", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "portolan_http_request_duration_seconds",
			Help: "Time to answer, by door.", Buckets: prometheus.ExponentialBuckets(0.0005, 4, 9)}, []string{"door"}),
	}
	m.signIns = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portolan_sign_ins_total",
		Help: "Sign-ins with a password or a key set, by result: accepted, refused, or throttled where somebody guesses."}, []string{"result"})
	m.batches = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "portolan_batch_changes",
		Help:    "Changes of the batches, and lists that were posted, by result: made, tried or refused.",
		Buckets: prometheus.ExponentialBuckets(1, 10, 5)}, []string{"result"})
	m.webhooks = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portolan_webhook_messages_total",
		Help: "Messages that were sent to webhooks, each attempt, by result: taken or refused."}, []string{"result"})
	m.moves = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portolan_fleet_moves_total",
		Help: "Moves of service points, their applications and updates, and of rollouts: the field, and what it became."},
		[]string{"field", "to"})
	m.imports = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portolan_imports_total",
		Help: "Imports that have ended, by the state that they ended in."}, []string{"state"})
	m.rows = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portolan_import_rows_total",
		Help: "Rows of imports that were worked off, by result: created, updated, unchanged or refused."}, []string{"result"})
	m.deployed = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portolan_deployments_total",
		Help: "Deployments that have ended, by their type and the state that they ended in."}, []string{"type", "state"})
	m.live = prometheus.NewCounter(prometheus.CounterOpts{Name: "portolan_live_changes_total",
		Help: "Names and addresses of live views that were deployed because they had changed."})
	m.backups = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portolan_backups_total",
		Help: "Backups that schedules made, by result: made or failed."}, []string{"result"})
	m.notices = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portolan_notifications_total",
		Help: "Messages to notification groups, each attempt, by type and result: sent or failed."}, []string{"type", "result"})
	registry.MustRegister(m.backups, m.notices)
	m.links = prometheus.NewCounter(prometheus.CounterOpts{Name: "portolan_history_links_total",
		Help: "Transactions that were chained."})
	m.historyLines = prometheus.NewCounter(prometheus.CounterOpts{Name: "portolan_history_sent_total",
		Help: "Transactions that were sent to the syslog."})
	m.historyFailures = prometheus.NewCounter(prometheus.CounterOpts{Name: "portolan_history_failures_total",
		Help: "Times that the history could not be chained, signed, written to its file or sent."})
	registry.MustRegister(m.links, m.historyLines, m.historyFailures)
	m.keys = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portolan_zone_keys_total",
		Help: "Keys of signed zones that were made because another one ends, or removed because another one has taken over."}, []string{"what"})
	m.updates = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portolan_dynamic_updates_total",
		Help: "Messages that change zones (RFC 2136), by the response code that they were answered with."}, []string{"code"})
	m.copies = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portolan_zone_copies_total",
		Help: "Looks at zones of servers of others, by what came of them: copied, changed, current or failed."}, []string{"result"})
	registry.MustRegister(m.copies, m.updates, m.keys)
	registry.MustRegister(m.requests, m.duration, m.signIns, m.batches, m.webhooks, m.moves, m.imports, m.rows, m.deployed, m.live)
	return m
}

// batched counts a batch.
func (m *metrics) batched(changes int, result string) {
	m.batches.WithLabelValues(result).Observe(float64(changes))
}

// fleetMoved counts a move.
func (m *metrics) fleetMoved(move fleet.Move) { m.moves.WithLabelValues(move.Field, move.After).Inc() }

// deploymentEnded counts a deployment.
func (m *metrics) deploymentEnded(kind, state string) { m.deployed.WithLabelValues(kind, state).Inc() }

// chained counts transactions that were chained, historySent those that were sent to the syslog, historyFailed what of it could not be
// done.
func (m *metrics) chained(n int)     { m.links.Add(float64(n)) }
func (m *metrics) historySent(n int) { m.historyLines.Add(float64(n)) }
func (m *metrics) historyFailed()    { m.historyFailures.Inc() }

// backupEnded counts a backup.
func (m *metrics) backupEnded(whole bool) {
	m.backups.WithLabelValues(word(whole, "made", "failed")).Inc()
}

// notified counts a message to a notification group.
func (m *metrics) notified(kind string, sent bool) {
	m.notices.WithLabelValues(kind, word(sent, "sent", "failed")).Inc()
}

// word gives one of two words.
func word(yes bool, one, other string) string {
	if yes {
		return one
	}
	return other
}

// deployedLive counts what was deployed of live views.
func (m *metrics) deployedLive(n int) { m.live.Add(float64(n)) }

// updated counts messages that change zones.
func (m *metrics) updated(code int) { m.updates.WithLabelValues(strconv.Itoa(code)).Inc() }

// copied counts looks at zones of servers of others.
func (m *metrics) copied(result string) { m.copies.WithLabelValues(result).Inc() }

// rolled counts keys of signed zones.
func (m *metrics) rolled(what string, n int) { m.keys.WithLabelValues(what).Add(float64(n)) }

// importEnded counts an import.
func (m *metrics) importEnded(state string) { m.imports.WithLabelValues(state).Inc() }

// rowsImported counts rows of imports.
func (m *metrics) rowsImported(rows int, result string) {
	m.rows.WithLabelValues(result).Add(float64(rows))
}

// webhookSent counts an attempt to send to a webhook.
func (m *metrics) webhookSent(taken bool) {
	result := "refused"
	if taken {
		result = "taken"
	}
	m.webhooks.WithLabelValues(result).Inc()
}

// observeStore shows figures of the store; collector says that the history is sent to a syslog.
func observeStore(registry prometheus.Registerer, s *store.Store, collector bool) {
	show := func(name, help string, ask func(context.Context) (int64, error)) {
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			ctx, end := context.WithTimeout(context.Background(), time.Second) // whoever scrapes does not wait for readers that are busy
			defer end()
			n, err := ask(ctx)
			if err != nil {
				return math.NaN()
			}
			return float64(n)
		}))
	}
	show("portolan_texts_due", "Resources whose texts the index of trigrams does not have as they are.", s.TextsDue)
	read := func(name, help string, ask func(*store.Tx) (int64, error)) {
		show(name, help, func(ctx context.Context) (n int64, err error) {
			err = s.Read(ctx, func(tx *store.Tx) error {
				n, err = ask(tx)
				return err
			})
			return n, err
		})
	}
	read("portolan_history_due", "Transactions that are not chained yet.", (*store.Tx).ChainDue)
	read("portolan_history_unsigned", "Links of the history's chain behind the last signed head.", history.Unsigned)
	if collector {
		read("portolan_history_unsent", "Links of the history's chain behind what was sent to the syslog.", history.Unsent)
	}
}

// observeFollowers shows how many follow the changes.
func observeFollowers(registry prometheus.Registerer, followers func() int) {
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "portolan_changes_followers",
		Help: "Clients that follow the changes at this manager."}, func() float64 { return float64(followers()) }))
}

// fleetFigures shows the fleet as the database has it, the same at each manager.
type fleetFigures struct {
	count                       func(context.Context) (fleet.Figures, error)
	points, connected, rollouts *prometheus.Desc
}

// observeFleet shows figures of the fleet.
func observeFleet(registry prometheus.Registerer, count func(context.Context) (fleet.Figures, error)) {
	registry.MustRegister(&fleetFigures{count: count,
		points:    prometheus.NewDesc("portolan_service_points", "Service points, by status.", []string{"status"}, nil),
		connected: prometheus.NewDesc("portolan_service_points_connected", "Service points that are connected.", nil, nil),
		rollouts:  prometheus.NewDesc("portolan_rollouts", "Rollouts, by status.", []string{"status"}, nil)})
}

// Describe names the figures.
func (f *fleetFigures) Describe(all chan<- *prometheus.Desc) {
	for _, one := range []*prometheus.Desc{f.points, f.connected, f.rollouts} {
		all <- one
	}
}

// Collect gives the figures; none where the database does not answer in time.
func (f *fleetFigures) Collect(all chan<- prometheus.Metric) {
	ctx, end := context.WithTimeout(context.Background(), time.Second)
	defer end()
	now, err := f.count(ctx)
	if err != nil {
		return
	}
	for status, n := range now.Statuses {
		all <- prometheus.MustNewConstMetric(f.points, prometheus.GaugeValue, float64(n), status)
	}
	for status, n := range now.Rollouts {
		all <- prometheus.MustNewConstMetric(f.rollouts, prometheus.GaugeValue, float64(n), status)
	}
	all <- prometheus.MustNewConstMetric(f.connected, prometheus.GaugeValue, float64(now.Connected))
}

// recorder remembers the status that was sent.
type recorder struct {
	http.ResponseWriter
	status int
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
	return r.ResponseWriter.Write(b)
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

// handle wraps the handler of a door: it counts, times and logs requests, turns panics into 500, and
// sets the headers that every answer has.
func (m *Manager) handle(name string, handle func(w http.ResponseWriter, r *http.Request) error) http.Handler {
	duration, log := m.metrics.duration.WithLabelValues(name), m.log
	if name == "address" {
		log = m.REST.Log
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		rec := &recorder{ResponseWriter: w}
		setSecurityHeaders(w.Header(), m.secure)
		aborted := true
		defer func() {
			if aborted {
				rec.status = 499
			}
			duration.Observe(time.Since(began).Seconds())
			m.metrics.requests.WithLabelValues(name, method(r), strconv.Itoa(rec.status)).Inc()
			if log.Enabled(r.Context(), slog.LevelDebug) {
				log.DebugContext(r.Context(), "request", "door", name, "method", r.Method, "path", r.URL.Path, "status", rec.status,
					"duration", time.Since(began), "remote", r.RemoteAddr)
			}
		}()
		m.safely(rec, r, handle)
		aborted = false
	})
}

// The pages have their style in themselves, by its hash, and nothing else: no script, no frame, no form.
var pagePolicy = "default-src 'none'; style-src '" + rest.StyleHash() + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// setSecurityHeaders sets the headers that every answer has; secure says that the listener is TLS.
func setSecurityHeaders(h http.Header, secure bool) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("Referrer-Policy", "no-referrer")
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
		err = access.SameOrigin(r)
	}
	if err == nil {
		err = handle(w, r)
	}
	if err != nil {
		access.ForgetCookie(w, r, err)
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
