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

// Results of a probe that has no number.
const (
	OK            = "OK"
	Failed        = "FAILED"
	NotConfigured = "NOT_CONFIGURED" // switched off, or there is nothing to probe
	Unknown       = "UNKNOWN"        // before the first run
)

// Targets say what is probed. Off switches a probe off; empty means what production wants: the
// routing table's gateway, a public resolver, a public site.
type Targets struct {
	Gateway, Ping, HTTP string
	// Proxy is the HTTP proxy for whatever the service point and its applications ask for; nil means none. Its password stays in their memory.
	Proxy *url.URL
	// NoProxy lists what is asked for without the proxy, with commas between: names, with what lies below them, addresses and prefixes.
	// This machine itself never is asked by a proxy.
	NoProxy string
}

// proxy gives the proxy for a request, as http.Transport asks for it.
func (t Targets) proxy(rq *http.Request) (*url.URL, error) {
	if t.Proxy == nil {
		return nil, nil
	}
	by := t.Proxy.String()
	return (&httpproxy.Config{HTTPProxy: by, HTTPSProxy: by, NoProxy: t.NoProxy}).ProxyFunc()(rq.URL)
}

// environment tells applications of the proxy, in the variables that most programs know.
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

// probes run each on its own, with a time limit, and keep their last results.
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

// unprobed is what is known before the first run.
var unprobed = checkin.Connectivity{InternetPingStatus: Unknown, LocalIPStatus: Unknown, LocalNetworkStatus: Unknown}

// result is what one run of a probe found; the reason says why where it failed.
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
		{"public ping", p.public(p.targets.Ping), p.internetPing, func(c *checkin.Connectivity, r result) { c.InternetPingStatus = r.text }},
		{"public HTTP", p.public(p.targets.HTTP), p.internetHTTP, func(c *checkin.Connectivity, r result) { c.InternetHTTPStatus = r.number }},
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
				p.keep(probe.name, r, probe.keep)
			})
		})
	}
	group.Wait()
}

// public is how often a target in the public network is probed: that of somebody else seldom, so that a large fleet is no burden.
func (p *probes) public(target string) time.Duration {
	if target == "" {
		return max(p.every, publicInterval)
	}
	return p.every
}

// publicInterval is how often a target is probed that nobody has set.
const publicInterval = 5 * time.Minute

// repeat runs a probe now and then again and again, each time within the limit. The pauses differ by a fifth, so that service points
// that began together do not probe together.
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

func (p *probes) keep(name string, r result, set func(*checkin.Connectivity, result)) {
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

// conditions gives the sentences that make the service point unhealthy. What may fail depending on
// the environment (spec.md 2.5: the gateway, the public address and site) is no such thing.
func (p *probes) conditions() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last.LocalIPStatus == Failed {
		return []string{"local network interface is not working: " + p.reasons["local interfaces"]}
	}
	return []string{}
}

func failed(format string, args ...any) result {
	return result{text: Failed, reason: fmt.Sprintf(format, args...)}
}

// localIP looks whether an interface beside loopback is up and has an address.
func (p *probes) localIP(context.Context) result {
	all, links, err := addresses()
	if err != nil { // which says nothing of the network
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
	return failed("no interface is up with an address")
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
			return failed("there is no IPv4 default route")
		}
		target = r.via.String()
	}
	return answers(ctx, target)
}

func (p *probes) internetPing(ctx context.Context) result {
	target := p.targets.Ping
	switch target {
	case Off:
		return result{text: NotConfigured}
	case "":
		target = publicResolver
	}
	return answers(ctx, target)
}

// answers tells whether the target answers echo requests.
func answers(ctx context.Context, target string) result {
	addr, err := netip.ParseAddr(target)
	if err != nil {
		return failed("%q is not an IP address", target)
	}
	yes, err := ping.Answers(ctx, addr, pingLimit)
	switch {
	case errors.Is(err, ping.ErrForbidden): // which says nothing of the network
		return result{text: Unknown, reason: err.Error()}
	case err != nil:
		return failed("%v", err)
	case !yes:
		return failed("no answer from %s", addr)
	}
	return result{text: OK}
}

const pingLimit = 3 * time.Second

// internetHTTP asks a public site, through the proxy where there is one.
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
		return failed("%q is not a URL", target)
	}
	rs, err := client.Do(rq)
	if err != nil {
		return failed("%s", p.hide(unwrapURL(err).Error()))
	}
	_, _ = io.CopyN(io.Discard, rs.Body, 1<<16) // the status is what was asked for
	_ = rs.Body.Close()
	return result{number: rs.StatusCode}
}

// hide takes the proxy's password out of a text.
func (p *probes) hide(text string) string {
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

// fleetEndpoint asks the manager's door.
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
		return result{number: status, reason: fmt.Sprintf("the manager answers %d", status)}
	}
	return result{number: status}
}
