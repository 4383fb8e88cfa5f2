package servicepoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"portolan/internal/base/ping"
	"portolan/internal/wire/checkin"

	"golang.org/x/net/http/httpproxy"
)

// Results of a probe without a numeric result.
const (
	OK            = "OK"
	Failed        = "FAILED"
	NotConfigured = "NOT_CONFIGURED" // switched off, or without a target
	Unknown       = "UNKNOWN"        // before the first run
)

// Targets are the targets of the probes. Off disables a probe. Empty means the default: the gateway of the routing table, a public
// resolver, and a public website.
type Targets struct {
	Gateway, Ping, HTTP string
	// Proxy is the HTTP proxy for all outgoing requests of the service point and its applications; nil means none. Its password is kept in
	// memory only.
	Proxy *url.URL
	// NoProxy is a comma-separated list of destinations that are reached without the proxy: domain names including their subdomains,
	// addresses and prefixes. Requests to this machine itself never use the proxy.
	NoProxy string
}

// proxy returns the proxy for a request. It has the signature of http.Transport.Proxy.
func (t Targets) proxy(rq *http.Request) (*url.URL, error) {
	if t.Proxy == nil {
		return nil, nil
	}
	by := t.Proxy.String()
	return (&httpproxy.Config{HTTPProxy: by, HTTPSProxy: by, NoProxy: t.NoProxy}).ProxyFunc()(rq.URL)
}

// environment returns the common environment variables that describe the proxy to applications.
func (t Targets) environment() []string {
	if t.Proxy == nil {
		return nil
	}
	return []string{"HTTP_PROXY=" + t.Proxy.String(), "HTTPS_PROXY=" + t.Proxy.String(), "NO_PROXY=" + t.NoProxy}
}

// Off as a target switches the probe off.
const Off = "off"

// Targets in production.
const (
	publicResolver = "9.9.9.9"
	publicSite     = "https://example.com/"
)

// probes run independently, each with a time limit, and keep their last results.
type probes struct {
	targets Targets
	host    host
	every   time.Duration
	limit   time.Duration
	manager func() *manager
	log     interface {
		Info(msg string, args ...any)
	}

	mu sync.Mutex
	// last and reasons are guarded by mu.
	last    checkin.Connectivity
	reasons map[string]string
	changed func()
}

// noResults is the result before the first run.
var noResults = checkin.Connectivity{InternetPingStatus: Unknown, LocalIPStatus: Unknown, LocalNetworkStatus: Unknown}

// result is the result of one run of a probe; reason explains a failure.
type result struct {
	text   string
	number int
	reason string
}

func (p *probes) results() checkin.Connectivity {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// run probes until the context ends.
func (p *probes) run(ctx context.Context) {
	var group sync.WaitGroup
	for _, probe := range []struct {
		name  string
		every time.Duration
		run   func(context.Context) result
		keep  func(*checkin.Connectivity, result)
	}{
		{"local interfaces", p.every, p.localIP, func(c *checkin.Connectivity, r result) { c.LocalIPStatus = r.text }},
		{"default gateway", p.every, p.localNetwork, func(c *checkin.Connectivity, r result) { c.LocalNetworkStatus = r.text }},
		{"public ping", p.interval(p.targets.Ping), p.internetPing, func(c *checkin.Connectivity, r result) { c.InternetPingStatus = r.text }},
		{"public HTTP", p.interval(p.targets.HTTP), p.internetHTTP, func(c *checkin.Connectivity, r result) { c.InternetHTTPStatus = r.number }},
		{"manager", p.every, p.fleetEndpoint, func(c *checkin.Connectivity, r result) {
			c.FleetMgmtEndpointStatus, c.FleetMgmtEndpointErrorMessage = r.number, r.reason
		}},
	} {
		group.Go(func() {
			p.repeat(ctx, probe.every, func(limited context.Context) {
				r := probe.run(limited)
				if ctx.Err() != nil && r.reason != "" { // cut short by the agent's own end
					return
				}
				p.record(probe.name, r, probe.keep)
			})
		})
	}
	group.Wait()
}

// interval returns the probe interval of a target in the public network. The default targets belong to others and are probed less often,
// so that a large fleet does not load them.
func (p *probes) interval(target string) time.Duration {
	if target == "" {
		return max(p.every, publicInterval)
	}
	return p.every
}

// publicInterval is the probe interval of the default public targets.
const publicInterval = 5 * time.Minute

// repeat runs a probe immediately and then at intervals, each time within the time limit. The intervals vary by a fifth, so that service
// points that started together do not probe at the same time.
func (p *probes) repeat(ctx context.Context, every time.Duration, probe func(context.Context)) {
	for ctx.Err() == nil {
		limited, cancel := context.WithTimeout(ctx, p.limit)
		probe(limited)
		cancel()
		pause := time.NewTimer(every - every/10 + rand.N(every/5+1)) //nolint:gosec // jitter needs no secrecy
		select {
		case <-ctx.Done():
		case <-pause.C:
		}
		pause.Stop()
	}
}

func (p *probes) record(name string, r result, set func(*checkin.Connectivity, result)) {
	p.mu.Lock()
	before := p.last
	set(&p.last, r)
	moved := before != p.last
	if old := p.reasons[name]; old != r.reason {
		p.reasons[name] = r.reason
		if r.reason != "" {
			p.log.Info("probe failed", "probe", name, "reason", r.reason)
		} else {
			p.log.Info("probe recovered", "probe", name)
		}
	}
	p.mu.Unlock()
	if moved && p.changed != nil {
		p.changed()
	}
}

// conditions returns the error conditions of the probes. Failures of the gateway, the public address and the public site do not count,
// because they depend on the environment (spec.md 2.5).
func (p *probes) conditions() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last.LocalIPStatus == Failed {
		return []string{"local network interface is not working: " + p.reasons["local interfaces"]}
	}
	return []string{}
}

func failedResult(format string, args ...any) result {
	return result{text: Failed, reason: fmt.Sprintf(format, args...)}
}

// localIP checks that an interface other than loopback is up and has an address.
func (p *probes) localIP(context.Context) result {
	all, links, err := addresses()
	if err != nil { // the error does not concern the network
		return result{text: Unknown, reason: err.Error()}
	}
	for _, a := range all {
		if !a.loopback && a.running {
			return result{text: OK}
		}
	}
	if links == 0 {
		return result{text: NotConfigured}
	}
	return failedResult("no interface is up with an address")
}

func (p *probes) localNetwork(ctx context.Context) result {
	target := p.targets.Gateway
	if target == Off {
		return result{text: NotConfigured}
	}
	if target == "" {
		r, ok := p.host.gateway4()
		if !ok {
			if !p.host.hasIPv4() {
				return result{text: NotConfigured}
			}
			return failedResult("no IPv4 default route exists")
		}
		target = r.via.String()
	}
	return pingTarget(ctx, target)
}

func (p *probes) internetPing(ctx context.Context) result {
	target := p.targets.Ping
	switch target {
	case Off:
		return result{text: NotConfigured}
	case "":
		target = publicResolver
	}
	return pingTarget(ctx, target)
}

// pingTarget reports whether the target answers echo requests.
func pingTarget(ctx context.Context, target string) result {
	addr, err := netip.ParseAddr(target)
	if err != nil {
		return failedResult("%q is not an IP address", target)
	}
	yes, err := ping.Answers(ctx, addr, pingLimit)
	switch {
	case errors.Is(err, ping.ErrForbidden): // the error does not concern the network
		return result{text: Unknown, reason: err.Error()}
	case err != nil:
		return failedResult("%v", err)
	case !yes:
		return failedResult("no answer from %s", addr)
	}
	return result{text: OK}
}

const pingLimit = 3 * time.Second

// internetHTTP requests a public site, through the proxy if one is configured.
func (p *probes) internetHTTP(ctx context.Context) result {
	target := p.targets.HTTP
	switch target {
	case Off:
		return result{}
	case "":
		target = publicSite
	}
	transport := &http.Transport{Proxy: p.targets.proxy, DisableKeepAlives: true, DialContext: (&net.Dialer{}).DialContext}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	rq, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return failedResult("%q is not a URL", target)
	}
	rs, err := client.Do(rq)
	if err != nil {
		return failedResult("%s", p.redactPassword(unwrapURL(err).Error()))
	}
	_, _ = io.CopyN(io.Discard, rs.Body, 1<<16) // only the status matters
	_ = rs.Body.Close()
	return result{number: rs.StatusCode}
}

// redactPassword removes the proxy's password from a text.
func (p *probes) redactPassword(text string) string {
	if p.targets.Proxy == nil {
		return text
	}
	if password, ok := p.targets.Proxy.User.Password(); ok && password != "" {
		for _, form := range []string{password, url.QueryEscape(password), url.PathEscape(password),
			url.UserPassword("", password).String()[1:]} {
			text = strings.ReplaceAll(text, form, "…")
		}
	}
	return text
}

// fleetEndpoint requests the health of the manager's check-in endpoint.
func (p *probes) fleetEndpoint(ctx context.Context) result {
	m := p.manager()
	if m == nil {
		return result{reason: "no registration endpoint is known"}
	}
	status, err := m.status(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return result{number: status, reason: fmt.Sprintf("no answer within %v", p.limit)}
	}
	if err != nil {
		return result{number: status, reason: err.Error()}
	}
	if status != http.StatusOK {
		return result{number: status, reason: fmt.Sprintf("the manager returned %d", status)}
	}
	return result{number: status}
}
