package resolver

import (
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	dns "portolan/internal/base/dnsmsg"

	"github.com/coredns/coredns/plugin/acl"
	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// The counters of CoreDNS's plugin cache, which that does not export.
var (
	cacheRequests = registeredMetric(prometheus.NewCounterVec(prometheus.CounterOpts{Name: "coredns_cache_requests_total",
		Help: "The count of cache requests."}, []string{"server", "zones", "view"}))
	cacheHits = registeredMetric(prometheus.NewCounterVec(prometheus.CounterOpts{Name: "coredns_cache_hits_total",
		Help: "The count of cache hits."}, []string{"server", "type", "zones", "view"}))
)

// registeredMetric returns the registered metric with the same description. It panics at the start of the program if CoreDNS has another
// one.
func registeredMetric[M prometheus.Collector](like M) M {
	var is prometheus.AlreadyRegisteredError
	err := prometheus.Register(like)
	if errors.As(err, &is) {
		if m, ok := is.ExistingCollector.(M); ok {
			return m
		}
	}
	panic(fmt.Sprintf("a metric is not the one of CoreDNS: %v", err))
}

// packedAnswers counts the answers that CoreDNS was not asked for. They are in the metrics of CoreDNS as well.
var packedAnswers = promauto.NewCounterVec(prometheus.CounterOpts{Name: "portolan_resolver_packed_answers_total",
	Help: "UDP queries answered with a packed answer from the cache, by server."}, []string{"server"})

// hitCounters count the answers of a front like CoreDNS counts its own.
type hitCounters struct {
	given, requests, success, denials prometheus.Counter
	// allowed is nil unless clients are restricted.
	allowed prometheus.Counter
	// The following counters are nil unless metrics are enabled.
	withDO, noErrors, nameErrors        prometheus.Counter
	duration, responseSizes, querySizes prometheus.Observer
	types                               [2][len(countedTypes) + 1]atomic.Pointer[prometheus.Counter]
}

// countedTypes are the types that CoreDNS counts by name, and unnamed is the label of all others.
var countedTypes = [...]uint16{dns.TypeA, dns.TypeAAAA, dns.TypePTR, dns.TypeHTTPS, dns.TypeMX, dns.TypeTXT, dns.TypeSRV, dns.TypeNS,
	dns.TypeSOA, dns.TypeCNAME, dns.TypeDS, dns.TypeDNSKEY, dns.TypeSVCB, dns.TypeRRSIG, dns.TypeNSEC, dns.TypeNSEC3, dns.TypeANY}

const unnamed = "other"

// writer is the label for the plugin that writes answers: the one after the metrics.
const writer = "errors"

// load looks up the counters.
func (h *hitCounters) load(f *front) {
	server := f.server.Addr
	h.given = packedAnswers.WithLabelValues(server)
	h.requests = cacheRequests.WithLabelValues(server, ".", "")
	h.success = cacheHits.WithLabelValues(server, "success", ".", "")
	h.denials = cacheHits.WithLabelValues(server, "denial", ".", "")
	if len(f.generation.settings.allow) > 0 {
		h.allowed = acl.RequestAllowCount.WithLabelValues(server, "")
	}
	if !f.generation.settings.measured {
		return
	}
	h.withDO = vars.RequestDo.WithLabelValues(server, ".", "")
	h.noErrors = vars.ResponseRcode.WithLabelValues(server, ".", "", dns.RcodeToString[dns.RcodeSuccess], writer)
	h.nameErrors = vars.ResponseRcode.WithLabelValues(server, ".", "", dns.RcodeToString[dns.RcodeNameError], writer)
	h.duration = vars.RequestDuration.WithLabelValues(server, ".", "")
	h.responseSizes = vars.ResponseSize.WithLabelValues(server, ".", "", "udp")
	h.querySizes = vars.RequestSize.WithLabelValues(server, ".", "", "udp")
}

// count counts an answer to a client. since is when the query was received, and size its size in bytes.
func (h *hitCounters) count(f *front, q *packedQuery, a *packedAnswer, size int, client netip.Addr, since int64) {
	h.given.Inc()
	f.generation.resolver.answers.add(int(a.wire[3] & 15))
	h.requests.Inc()
	if a.denied {
		h.denials.Inc()
	} else {
		h.success.Inc()
	}
	if h.allowed != nil {
		h.allowed.Inc()
	}
	if h.duration == nil {
		return
	}
	h.ofType(f, q.kind, client).Inc()
	if q.dnssec {
		h.withDO.Inc()
	}
	if a.wire[3]&15 == dns.RcodeSuccess {
		h.noErrors.Inc()
	} else {
		h.nameErrors.Inc()
	}
	h.duration.Observe(time.Duration(clock() - since).Seconds())
	h.responseSizes.Observe(float64(a.size))
	h.querySizes.Observe(float64(size))
}

// ofType returns the counter of queries of a type.
func (h *hitCounters) ofType(f *front, kind uint16, client netip.Addr) prometheus.Counter {
	at, label := len(countedTypes), unnamed
	for i, one := range countedTypes {
		if one == kind {
			at, label = i, dns.TypeToString[kind]
			break
		}
	}
	family, name := 0, "1"
	if client.Is6() {
		family, name = 1, "2"
	}
	place := &h.types[family][at]
	if c := place.Load(); c != nil {
		return *c
	}
	c := vars.RequestCount.WithLabelValues(f.server.Addr, ".", "", "udp", name, label)
	place.Store(&c)
	return c
}
