package resolver

import (
	"context"
	"errors"
	"net/netip"
	"time"

	dns "portolan/internal/base/dnsmsg"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/forward"
	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/request"
	"github.com/prometheus/client_golang/prometheus"
)

// upstreams is the name of the plugin before forward. It asks the upstreams of forward over UDP, with less work. It uses the order and the
// health checks of forward, and leaves everything unusual to it: truncated answers, signed queries, and upstreams that are all down.
const upstreams = "upstreams"

// Limits of a query, as in forward: failed health checks after which an upstream is down, the time for an answer, the time for all
// attempts, and the attempts per upstream.
const (
	maxFails         = 2
	upstreamTime     = 2 * time.Second
	allUpstreamsTime = 5 * time.Second
	upstreamAttempts = 2
)

// The counters of CoreDNS's package proxy, which that does not export.
var (
	upstreamDuration = registeredMetric(prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "coredns_proxy_request_duration_seconds",
		Help: "Histogram of the time each request took."}, []string{"proxy_name", "to", "rcode"}))
	upstreamSockets = registeredMetric(prometheus.NewCounterVec(prometheus.CounterOpts{Name: "coredns_proxy_conn_cache_misses_total",
		Help: "Counter of connection cache misses per upstream and protocol."}, []string{"proxy_name", "to", "proto"}))
)

// upstreamAsker is the plugin.
type upstreamAsker struct {
	next  plugin.Handler
	asker *asker
	// zones are the zones of the instances of forward in the order of the chain. The last one is the root.
	zones []string
}

// newUpstreamAsker returns the plugin for a configuration; nil if forward must ask.
func (c *Configuration) newUpstreamAsker() (*upstreamAsker, error) {
	if !canAsk || c.Dnstap != "" || c.Upstreams[0].TLSServerName != "" {
		return nil, nil //nolint:nilnil // it is not used
	}
	a, err := newAsker()
	if err != nil {
		return nil, err
	}
	u := &upstreamAsker{asker: a}
	for _, z := range c.Zones {
		u.zones = append(u.zones, dns.CanonicalName(z.Name))
	}
	u.zones = append(u.zones, ".")
	return u, nil
}

// close stops the plugin. It may be called more than once.
func (u *upstreamAsker) close() error {
	if u == nil {
		return nil
	}
	return u.asker.close()
}

// Name returns the name of the plugin.
func (u *upstreamAsker) Name() string { return upstreams }

// proxies returns the upstreams for a name that are not down, in the order of the policy.
func (u *upstreamAsker) proxies(name string) (up []*proxy.Proxy) {
	at := u.next
	for _, zone := range u.zones {
		f, is := at.(*forward.Forward)
		if !is {
			return nil
		}
		if dns.IsSubDomain(zone, name) {
			for _, p := range f.List() {
				if !p.Down(maxFails) {
					up = append(up, p)
				}
			}
			return up
		}
		at = f.Next
	}
	return nil
}

// ServeDNS asks the upstreams of a query in turn, or calls the next plugin.
func (u *upstreamAsker) ServeDNS(ctx context.Context, w dns.ResponseWriter, m *dns.Msg) (int, error) {
	r := request.Request{W: w, Req: m}
	up := u.proxies(r.Name())
	if len(up) == 0 || m.Opcode != dns.OpcodeQuery || m.IsTsig() != nil {
		return u.pass(ctx, w, m)
	}
	wire, err := m.Pack()
	if err != nil {
		return u.pass(ctx, w, m)
	}
	limit := max(dns.MinMsgSize, r.Size())
	deadline := time.Now().Add(allUpstreamsTime)
	for i := range len(up) * upstreamAttempts {
		if i > 0 && (ctx.Err() != nil || time.Now().After(deadline)) {
			break
		}
		var answer *dns.Msg
		if answer, err = u.ask(up[i%len(up)], &r, wire, limit); err == nil {
			answer.Id = m.Id
			_ = w.WriteMsg(answer) // the client repeats its query
			return dns.RcodeSuccess, nil
		}
		if errors.Is(err, errTooLarge) {
			return u.pass(ctx, w, m)
		}
		up[i%len(up)].Healthcheck()
	}
	return dns.RcodeServerFailure, err
}

// pass calls the next plugin.
func (u *upstreamAsker) pass(ctx context.Context, w dns.ResponseWriter, m *dns.Msg) (int, error) {
	return plugin.NextOrFailure(u.Name(), u.next, ctx, w, m)
}

// Errors of an upstream.
var (
	errWrongAnswer = errors.New("the response of the upstream has another question")
	errTooLarge    = errors.New("the answer is too large for UDP")
)

// ask asks an upstream. The error is errTooLarge if the answer must be read over TCP.
func (u *upstreamAsker) ask(p *proxy.Proxy, r *request.Request, wire []byte, limit int) (*dns.Msg, error) {
	to, err := netip.ParseAddrPort(p.Addr())
	if err != nil {
		return nil, err
	}
	began := time.Now()
	answer := new(dns.Msg)
	err = u.asker.ask(to, wire, upstreamTime, func(text []byte) error {
		if len(text) > limit {
			return errTooLarge
		}
		return answer.Unpack(text)
	})
	upstreamSockets.WithLabelValues("forward", p.Addr(), "udp").Inc()
	switch {
	case err != nil:
		return nil, err
	case answer.Truncated:
		return nil, errTooLarge
	case !r.Match(answer):
		return nil, errWrongAnswer
	}
	upstreamDuration.WithLabelValues("forward", p.Addr(), dns.RcodeToString[answer.Rcode]).Observe(time.Since(began).Seconds())
	return answer, nil
}
