// Package resolver is the application dns-resolver-service: a DNS server that forwards queries and caches answers. It is CoreDNS with
// only the plugins that the configuration needs.
package resolver

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/servicepoint/application"
	"portolan/internal/wire/checkin"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"

	// The plugins in corefile.
	_ "github.com/coredns/coredns/plugin/acl"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/chaos"
	_ "github.com/coredns/coredns/plugin/dns64"
	_ "github.com/coredns/coredns/plugin/dnstap"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/metrics"
)

// Kind returns the application.
func Kind() application.Kind {
	return application.Kind{Name: checkin.Resolver, Program: checkin.Program{Version: "1.1.0", Hide: hide, Fill: application.FillKey,
		Sample: Configuration{}, Default: defaultFor,
		Provides: func(string) []checkin.Capability {
			return []checkin.Capability{checkin.ResolvesNames, checkin.SharesForwarders}
		},
		Check: func(text json.RawMessage) error { _, err := read(text); return err },
		Claims: func(text json.RawMessage) []string {
			c, err := read(text)
			if err != nil {
				return nil
			}
			return c.claims()
		}},
		New: func(log *slog.Logger) application.Application {
			r := &resolver{log: log, connections: maxConnections, front: newPeriodicCheck(frontInterval), back: newPeriodicCheck(backInterval),
				started: time.Now()}
			r.content.Store(&content{})
			ctx, stop := context.WithCancel(context.Background())
			r.stop = stop
			r.checks.Go(func() { r.watch(ctx, r.front, askFront) })
			r.checks.Go(func() { r.watch(ctx, r.back, askBack) })
			return r
		}}
}

// resolver is the running application.
type resolver struct {
	// answers counts the answers to clients.
	answers answerCounts
	log     *slog.Logger
	// connections is maxConnections, or fewer in tests.
	connections int
	stop        context.CancelFunc
	checks      sync.WaitGroup
	started     time.Time
	// front contains the results of the listener checks, back those of the upstream checks.
	front, back *periodicCheck

	// content is the deployed content. logsQueries reports that the query log is enabled. hasZones reports that some zones have their own
	// upstreams.
	content               atomic.Pointer[content]
	logsQueries, hasZones atomic.Bool
	// contents counts the contents and configurations that were applied. It increases after each of them.
	contents atomic.Uint64
	// applyLock is held while a configuration or content is applied. It guards sockets, the open sockets, metrics, the metrics
	// endpoint, and generation, which serves the configuration in use.
	applyLock  sync.Mutex
	sockets    []*socket
	metrics    *metricsEndpoint
	generation *generation

	mu sync.Mutex
	// The following fields and the check results are guarded by mu, and change only while applyLock is held as well. configuration is the
	// one in use, requested the one before the roles override it.
	instance                 *caddy.Instance
	configuration, requested Configuration
	// effective is the configuration including the roles. recursor is the running unbound. fallbackReason is the reason why the upstreams
	// are used instead.
	effective      Configuration
	recursor       *recursor
	fallbackReason string
}

// periodicCheck is a periodic check.
type periodicCheck struct {
	interval time.Duration
	// wake contains a token when the check must run immediately.
	wake chan struct{}
	// found are the response codes, or the reasons for a missing answer, by address; nil before the first check. failures is the number of
	// addresses without an answer.
	found    map[string]string
	failures int
}

func newPeriodicCheck(every time.Duration) *periodicCheck {
	return &periodicCheck{interval: every, wake: make(chan struct{}, 1)}
}

// Configure applies another configuration. Queries are answered meanwhile.
func (r *resolver) Configure(text json.RawMessage) error {
	c, err := read(text)
	if err != nil {
		return err
	}
	r.applyLock.Lock()
	defer r.applyLock.Unlock()
	return r.start(c, r.content.Load())
}

// start applies a configuration and the roles of a content, unless they are in use already. The caller holds r.applyLock, under which
// alone these fields change. r.mu is locked only at the end, so that status requests do not wait for unbound.
func (r *resolver) start(given Configuration, of *content) error {
	c := of.configurationFor(given)
	if r.instance != nil && reflect.DeepEqual(c, r.effective) {
		return nil
	}
	effective := c
	recursor, fallbackReason, err := r.recursorFor(c)
	if err != nil {
		return err
	}
	if recursor != nil {
		c.Upstreams = []Upstream{{Address: recursor.address}}
	}
	previous := r.recursor
	defer func() { // close the recursor that is not used: the previous one, or the new one after an error
		if r.recursor != recursor && recursor != nil {
			recursor.close()
		}
		if previous != nil && r.recursor != previous {
			previous.close()
		}
	}()
	input := caddy.CaddyfileInput{Contents: c.corefile(), Filepath: "configuration", ServerTypeName: "dns"}
	dnsserver.Quiet, caddy.Quiet = true, true
	next := &starting{resolver: r}
	if c.TLS != nil {
		pair, err := c.TLS.Pair()
		if err != nil {
			return err
		}
		next.tls = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"dot"}}
	}
	sockets, err := r.openFor(c.Listen)
	if err != nil {
		return err
	}
	endpoint, err := r.metricsAt(c.Metrics)
	if err != nil {
		return errors.Join(err, closeExcept(sockets, r.sockets))
	}
	before := r.metrics
	defer func() { // like the recursors
		for _, one := range []*metricsEndpoint{before, endpoint} {
			if one != r.metrics {
				_ = one.close() // it is not used any more
			}
		}
	}()
	next.generation = newGeneration(r, sockets, c.frontSettings())
	if next.upstreams, err = c.newUpstreamAsker(); err != nil {
		return errors.Join(err, closeExcept(sockets, r.sockets))
	}
	next.activate()
	instance := r.instance
	if instance == nil {
		// sockets of plugins stay open after an error, because only the end of the process closes them
		if instance, err = caddy.Start(input); err != nil {
			return errors.Join(fmt.Errorf("%w: start the listeners: %w", application.ErrBroken, err), next.upstreams.close(),
				closeExcept(sockets, nil))
		}
	} else if instance, err = instance.Restart(input); err != nil {
		r.generation.install() // it still answers
		return errors.Join(fmt.Errorf("start the resolver: %w", err), next.upstreams.close(), closeExcept(sockets, r.sockets))
	}
	if err := closeExcept(r.sockets, sockets); err != nil {
		r.log.Warn("close old listeners failed", "error", err)
	}
	r.sockets, r.metrics, r.generation = sockets, endpoint, next.generation
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recursor, r.fallbackReason, r.effective = recursor, fallbackReason, effective
	r.instance, r.configuration, r.requested = instance, c, given // the check results stay valid until the next check
	r.logsQueries.Store(c.QueryLog != nil)
	r.hasZones.Store(len(c.Zones) > 0)
	r.contents.Add(1) // answers from before are not used any more
	for _, l := range []*periodicCheck{r.front, r.back} {
		select {
		case l.wake <- struct{}{}:
		default: // a check is pending already
		}
	}
	return nil
}

// Intervals of the listener and upstream checks, and the timeout of a query.
const (
	frontInterval = time.Second
	backInterval  = 5 * time.Second
	checkTimeout  = 2 * time.Second
)

// watch runs a check at intervals until ctx ends.
func (r *resolver) watch(ctx context.Context, l *periodicCheck, ask func(context.Context, Configuration) (map[string]string, int)) {
	tick := time.NewTicker(l.interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-l.wake:
		}
		r.mu.Lock()
		c, running := r.configuration, r.instance
		r.mu.Unlock()
		if running == nil {
			continue
		}
		found, silent := ask(ctx, c)
		r.mu.Lock()
		if running == r.instance && ctx.Err() == nil {
			l.found, l.failures = found, silent
		}
		r.mu.Unlock()
	}
}

// question is a query to an address; config is nil for UDP.
type question struct {
	address string
	config  *tls.Config
}

// ownQuestion is the name of the resolver's health check query.
const ownQuestion = "version.bind."

// askFront sends a version query to each listener. The resolver answers it without an upstream.
func askFront(ctx context.Context, c Configuration) (map[string]string, int) {
	questions := make([]question, len(c.Listen))
	for i, l := range c.Listen {
		questions[i].address = l.localAddress()
		if l.TLS {
			questions[i].config = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // connects to this process
		}
	}
	q := new(dns.Msg)
	q.SetQuestion(ownQuestion, dns.TypeTXT)
	q.Question[0].Qclass = dns.ClassCHAOS
	return ask(ctx, q, questions)
}

// askBack queries each upstream for the root's name servers.
func askBack(ctx context.Context, c Configuration) (map[string]string, int) {
	questions := make([]question, len(c.Upstreams))
	for i, u := range c.Upstreams {
		questions[i].address = u.Address
		if u.TLSServerName != "" {
			questions[i].config = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: u.TLSServerName}
		}
	}
	q := new(dns.Msg)
	q.SetQuestion(".", dns.TypeNS)
	return ask(ctx, q, questions)
}

// ask sends a query to several servers concurrently. It returns the response codes, or the reasons for a missing answer, by address, and
// the number of servers without an answer.
func ask(ctx context.Context, q *dns.Msg, questions []question) (found map[string]string, silent int) {
	found = map[string]string{}
	var group sync.WaitGroup
	var mu sync.Mutex
	for _, one := range questions {
		group.Go(func() {
			client := dns.Client{Timeout: checkTimeout}
			if one.config != nil {
				client.Net, client.TLSConfig = "tcp-tls", one.config
			}
			answer, _, err := client.ExchangeContext(ctx, q.Copy(), one.address)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				found[one.address] = "no answer: " + err.Error()
				silent++
				return
			}
			found[one.address] = dns.RcodeToString[answer.Rcode]
		})
	}
	group.Wait()
	return found, silent
}

// Health returns the error conditions of the last checks.
func (r *resolver) Health() (conditions []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.instance == nil || r.front.found == nil || r.back.found == nil {
		return []string{"service is not healthy: it has not answered yet"}
	}
	if r.front.failures > 0 {
		conditions = append(conditions,
			fmt.Sprintf("service is not healthy: it does not answer at %d of %d addresses", r.front.failures, len(r.configuration.Listen)))
	}
	if until := r.configuration.TLS.Expiration(); until > 0 && time.Now().UnixMilli() > until {
		conditions = append(conditions, "service is not healthy: the certificate of its listeners over TLS has expired")
	}
	if r.recursor != nil && r.recursor.down.Load() {
		conditions = append(conditions, "service is not healthy: unbound does not run, and is restarted")
	}
	if n := len(r.configuration.Upstreams); r.back.failures >= n {
		conditions = append(conditions, fmt.Sprintf("service is not healthy: none of %d upstream servers answers", n))
	}
	return conditions
}

// Diagnostics returns the last response codes of the listeners and upstreams.
func (r *resolver) Diagnostics() any {
	r.mu.Lock()
	defer r.mu.Unlock()
	return application.ResolverDiagnostics{BackendResponse: bestAnswer(r.back.found), FrontendResponse: worstAnswer(r.front.found),
		ID: r.started.UnixMilli(), Recursion: r.recursion(), Revision: r.Content(), Policies: r.content.Load().sizes(),
		Upstreams: r.back.found, Listeners: r.front.found, Answers: r.answers.byCode(),
		CertificateExpiration: r.configuration.TLS.Expiration()}
}

// recursion describes who resolves names; empty if recursion was not requested. The caller holds r.mu.
func (r *resolver) recursion() string {
	switch {
	case r.recursor == nil:
		return r.fallbackReason
	case r.recursor.settings.validates():
		return "unbound resolves names, and validates"
	}
	return "unbound resolves names"
}

// bestAnswer returns the best response code of the upstreams, because one working upstream is sufficient.
func bestAnswer(answers map[string]string) (text string) {
	rank := func(answer string) int {
		switch {
		case answer == noError:
			return 2
		case application.Resolves(answer):
			return 1
		}
		return 0
	}
	for _, at := range slices.Sorted(maps.Keys(answers)) {
		if one := answers[at]; text == "" || rank(one) > rank(text) {
			text = one
		}
	}
	return text
}

// worstAnswer returns a response code other than NOERROR if there is one, because each listener has its own clients.
func worstAnswer(answers map[string]string) (text string) {
	for _, at := range slices.Backward(slices.Sorted(maps.Keys(answers))) {
		if one := answers[at]; text == "" || one != noError {
			text = one
		}
	}
	return text
}

// noError is the response code of a working server.
var noError = dns.RcodeToString[dns.RcodeSuccess]

// Close stops the resolver.
func (r *resolver) Close() error {
	r.stop()
	r.checks.Wait()
	r.applyLock.Lock() // never unlocked, so nothing is applied any more
	if r.instance == nil {
		return nil
	}
	err := errors.Join(r.instance.ShutdownCallbacks()...)
	err = errors.Join(err, r.instance.Stop(), closeExcept(r.sockets, nil), r.metrics.close())
	if r.recursor != nil {
		r.recursor.close()
	}
	return err
}
