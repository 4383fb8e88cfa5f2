package resolver

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	dns "portolan/internal/base/dnsmsg"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/request"
)

// QueryLog contains the settings of the query log.
type QueryLog struct {
	// Every is the sampling interval: 1 logs each query, 100 every hundredth; 1 to 1,000,000.
	Every int `json:"every"`
}

// maxEvery is the maximum of QueryLog.Every.
const maxEvery = 1_000_000

// queryLog logs queries with their results.
type queryLog struct {
	next  plugin.Handler
	log   *slog.Logger
	every uint64
	seen  atomic.Uint64
}

// Name returns the name of the plugin.
func (q *queryLog) Name() string { return "log" }

// ServeDNS calls the next plugin and logs the query if it is sampled. Health checks of the resolver itself are not logged.
func (q *queryLog) ServeDNS(ctx context.Context, w dns.ResponseWriter, m *dns.Msg) (int, error) {
	if isOwnQuery(w, m) || !q.isSampled() {
		return plugin.NextOrFailure(q.Name(), q.next, ctx, w, m)
	}
	began := time.Now()
	recorder := dnstest.NewRecorder(w)
	code, err := plugin.NextOrFailure(q.Name(), q.next, ctx, recorder, m)
	r := request.Request{W: w, Req: m}
	answered := recorder.Rcode
	if recorder.Msg == nil { // CoreDNS writes the error answer later
		answered = code
	}
	q.write(r.IP(), r.Proto(), r.Name(), r.Type(), answered, recorder.Len, time.Since(began))
	return code, err
}

// isOwnQuery reports whether a query is a health check of the resolver itself.
func isOwnQuery(w dns.ResponseWriter, m *dns.Msg) bool {
	r := request.Request{W: w, Req: m}
	if r.QClass() != dns.ClassCHAOS || r.Name() != ownQuestion {
		return false
	}
	client, err := netip.ParseAddr(r.IP())
	return err == nil && isOwn(client)
}

// isSampled counts a query and reports whether it is logged.
func (q *queryLog) isSampled() bool { return q.seen.Add(1)%q.every == 0 }

// write logs a query.
func (q *queryLog) write(client, protocol, name, kind string, code, bytes int, took time.Duration) {
	q.log.Info("query", "client", client, "protocol", protocol, "name", name, "type", kind, "code", dns.RcodeToString[code],
		"bytes", bytes, "took", fmt.Sprintf("%.2fms", float64(took.Microseconds())/1000))
}
