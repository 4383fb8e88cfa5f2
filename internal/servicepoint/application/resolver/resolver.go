// Package resolver is the application dns-resolver-service: a DNS server that forwards what it is asked, and remembers the answers. It is
// CoreDNS with the plugins that this takes, and no others.
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
	// The plugins that corefile names.
	_ "github.com/coredns/coredns/plugin/acl"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/chaos"
	_ "github.com/coredns/coredns/plugin/dns64"
	_ "github.com/coredns/coredns/plugin/dnstap"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/metrics"
)

// Kind is the application.
func Kind() application.Kind {
	return application.Kind{Name: checkin.Resolver, Program: checkin.Program{Version: "1.1.0", Hide: hide, Fill: application.FillKey,
		Provides: func(string) []checkin.Capability {
			return []checkin.Capability{checkin.ResolvesNames, checkin.ForwardsAlike}
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
			r := &resolver{log: log, connections: mostConnections, front: newLook(frontEvery), back: newLook(backEvery), started: time.Now()}
			r.content.Store(&content{})
			ctx, stop := context.WithCancel(context.Background())
			r.stop = stop
			r.looks.Go(func() { r.watch(ctx, r.front, askFront) })
			r.looks.Go(func() { r.watch(ctx, r.back, askBack) })
			return r
		}}
}

// resolver is the running application.
type resolver struct {
	log *slog.Logger
	// connections is mostConnections, or fewer in tests.
	connections int
	stop        context.CancelFunc
	looks       sync.WaitGroup
	started     time.Time
	// front is what the resolver answers itself, back what its upstreams answer.
	front, back *look

	// content is what a deployment says; logsQueries says that queries are logged, asksZones that some zones are asked elsewhere.
	content                atomic.Pointer[content]
	logsQueries, asksZones atomic.Bool
	// turn is held while a configuration or content is taken, and guards sockets, those that are open, and measured, which shows metrics.
	turn     sync.Mutex
	sockets  []*socket
	measured *measured

	mu sync.Mutex
	// What follows, and what was found by the looks, is guarded by mu, and changes while turn is held, too. configuration is the one in
	// force, given the one that was asked for: roles may say otherwise.
	instance             *caddy.Instance
	configuration, given Configuration
	// asked is the configuration with what roles say, recursor what looks names up; otherwise says why the upstreams are asked all the same.
	asked     Configuration
	recursor  *recursor
	otherwise string
}

// look asks something again and again.
type look struct {
	every time.Duration
	// wake has a token when it is to ask now.
	wake chan struct{}
	// found are the response codes, or why there was no answer, by address; nil before the first look. silent is how many did not answer.
	found  map[string]string
	silent int
}

func newLook(every time.Duration) *look { return &look{every: every, wake: make(chan struct{}, 1)} }

// Configure answers by another configuration from now on; queries meanwhile are answered.
func (r *resolver) Configure(text json.RawMessage) error {
	c, err := read(text)
	if err != nil {
		return err
	}
	r.turn.Lock()
	defer r.turn.Unlock()
	return r.start(c, r.content.Load())
}

// start answers by a configuration, and by what roles of a content say of it, unless that is so already. r.turn is held: what is in force
// changes here alone, and may be read. Only its end needs r.mu, so that whoever asks how it is does not wait for unbound.
func (r *resolver) start(given Configuration, of *content) error {
	c := of.asking(given)
	if r.instance != nil && reflect.DeepEqual(c, r.asked) {
		return nil
	}
	asked := c
	recursor, otherwise, err := r.recursing(c)
	if err != nil {
		return err
	}
	if recursor != nil {
		c.Upstreams = []Upstream{{Address: recursor.at}}
	}
	leaves := r.recursor
	defer func() { // which of them is not needed: the one before, or the new one where something went wrong
		if r.recursor != recursor && recursor != nil {
			recursor.close()
		}
		if leaves != nil && r.recursor != leaves {
			leaves.close()
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
	shown, err := r.measuredAt(c.Metrics)
	if err != nil {
		return errors.Join(err, closeBut(sockets, r.sockets))
	}
	before := r.measured
	defer func() { // as for recursors
		for _, one := range []*measured{before, shown} {
			if one != r.measured {
				_ = one.close() // nobody asks it any more
			}
		}
	}()
	next.generation = &generation{sockets: sockets, log: r.log, most: r.connections}
	next.begin()
	instance := r.instance
	if instance == nil {
		if instance, err = caddy.Start(input); err != nil { // what plugins have opened before stays open: only an end closes it
			return errors.Join(fmt.Errorf("%w: starting to answer: %w", application.ErrBroken, err), closeBut(sockets, nil))
		}
	} else if instance, err = instance.Restart(input); err != nil {
		return errors.Join(fmt.Errorf("starting to answer: %w", err), closeBut(sockets, r.sockets))
	}
	if err := closeBut(r.sockets, sockets); err != nil {
		r.log.Warn("closing listeners that are not wanted any more", "error", err)
	}
	r.sockets, r.measured = sockets, shown
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recursor, r.otherwise, r.asked = recursor, otherwise, asked
	r.instance, r.configuration, r.given = instance, c, given // what was found before holds until it is looked again
	r.logsQueries.Store(c.QueryLog != nil)
	r.asksZones.Store(len(c.Zones) > 0)
	for _, l := range []*look{r.front, r.back} {
		select {
		case l.wake <- struct{}{}:
		default: // it is about to ask
		}
	}
	return nil
}

// How often the resolver asks itself and its upstreams, and how long an answer may take.
const (
	frontEvery = time.Second
	backEvery  = 5 * time.Second
	askTime    = 2 * time.Second
)

// watch asks again and again until ctx ends.
func (r *resolver) watch(ctx context.Context, l *look, ask func(context.Context, Configuration) (map[string]string, int)) {
	tick := time.NewTicker(l.every)
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
			l.found, l.silent = found, silent
		}
		r.mu.Unlock()
	}
}

// question is one to an address; config is nil where it goes by UDP.
type question struct {
	at     string
	config *tls.Config
}

// ownQuestion is the name that the resolver asks itself for.
const ownQuestion = "version.bind."

// askFront asks the resolver for its version wherever it answers, which no upstream has to do with.
func askFront(ctx context.Context, c Configuration) (map[string]string, int) {
	questions := make([]question, len(c.Listen))
	for i, l := range c.Listen {
		questions[i].at = l.reached()
		if l.TLS {
			questions[i].config = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // it is this process
		}
	}
	q := new(dns.Msg)
	q.SetQuestion(ownQuestion, dns.TypeTXT)
	q.Question[0].Qclass = dns.ClassCHAOS
	return ask(ctx, q, questions)
}

// askBack asks each of the upstreams for the root's name servers.
func askBack(ctx context.Context, c Configuration) (map[string]string, int) {
	questions := make([]question, len(c.Upstreams))
	for i, u := range c.Upstreams {
		questions[i].at = u.Address
		if u.TLSServerName != "" {
			questions[i].config = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: u.TLSServerName}
		}
	}
	q := new(dns.Msg)
	q.SetQuestion(".", dns.TypeNS)
	return ask(ctx, q, questions)
}

// ask puts a question to many at once. It gives the response codes, or why there was no answer, by address, and how many gave none.
func ask(ctx context.Context, q *dns.Msg, questions []question) (found map[string]string, silent int) {
	found = map[string]string{}
	var group sync.WaitGroup
	var mu sync.Mutex
	for _, one := range questions {
		group.Go(func() {
			client := dns.Client{Timeout: askTime}
			if one.config != nil {
				client.Net, client.TLSConfig = "tcp-tls", one.config
			}
			answer, _, err := client.ExchangeContext(ctx, q.Copy(), one.at)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				found[one.at] = "no answer: " + err.Error()
				silent++
				return
			}
			found[one.at] = dns.RcodeToString[answer.Rcode]
		})
	}
	group.Wait()
	return found, silent
}

// Health gives what was wrong when the resolver last looked.
func (r *resolver) Health() (conditions []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.instance == nil || r.front.found == nil || r.back.found == nil {
		return []string{"service is not healthy: it has not answered yet"}
	}
	if r.front.silent > 0 {
		conditions = append(conditions,
			fmt.Sprintf("service is not healthy: it does not answer at %d of %d addresses", r.front.silent, len(r.configuration.Listen)))
	}
	if until := r.configuration.TLS.Expiration(); until > 0 && time.Now().UnixMilli() > until {
		conditions = append(conditions, "service is not healthy: the certificate of its listeners over TLS has expired")
	}
	if r.recursor != nil && r.recursor.down.Load() {
		conditions = append(conditions, "service is not healthy: unbound does not run, and is started again")
	}
	if n := len(r.configuration.Upstreams); r.back.silent >= n {
		conditions = append(conditions, fmt.Sprintf("service is not healthy: none of %d upstream servers answers", n))
	}
	return conditions
}

// Diagnostics are the response codes that the resolver and its upstreams gave last.
func (r *resolver) Diagnostics() any {
	r.mu.Lock()
	defer r.mu.Unlock()
	return application.ResolverDiagnostics{BackendResponse: best(r.back.found), FrontendResponse: worst(r.front.found),
		ID: r.started.UnixMilli(), Recursion: r.recursion(), Revision: r.Content(), Policies: r.content.Load().sizes(),
		Upstreams: r.back.found, Listeners: r.front.found,
		CertificateExpiration: r.configuration.TLS.Expiration()}
}

// recursion says who looks names up; empty where nobody was to. r.mu is held.
func (r *resolver) recursion() string {
	switch {
	case r.recursor == nil:
		return r.otherwise
	case r.recursor.of.validates():
		return "unbound looks names up, and validates"
	}
	return "unbound looks names up"
}

// best gives the response code of an upstream that resolves, NOERROR before others, if one does: one upstream is enough.
func best(answers map[string]string) (text string) {
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

// worst gives a response code that does not say well, if one does not: each listener has its clients.
func worst(answers map[string]string) (text string) {
	for _, at := range slices.Backward(slices.Sorted(maps.Keys(answers))) {
		if one := answers[at]; text == "" || one != noError {
			text = one
		}
	}
	return text
}

// noError is the response code that says well.
var noError = dns.RcodeToString[dns.RcodeSuccess]

// Close ends it.
func (r *resolver) Close() error {
	r.stop()
	r.looks.Wait()
	r.turn.Lock() // for good: nothing is taken any more
	if r.instance == nil {
		return nil
	}
	err := errors.Join(r.instance.ShutdownCallbacks()...)
	err = errors.Join(err, r.instance.Stop(), closeBut(r.sockets, nil), r.measured.close())
	if r.recursor != nil {
		r.recursor.close()
	}
	return err
}
