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
	"sync"
	"time"

	"portolan/internal/application"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/miekg/dns"

	// The plugins that corefile names.
	_ "github.com/coredns/coredns/plugin/acl"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/metrics"
)

// Kind is the application.
func Kind() application.Kind {
	return application.Kind{Name: "dns-resolver-service", Version: "1.0.0",
		Check: func(text json.RawMessage) error { _, err := read(text); return err },
		Claims: func(text json.RawMessage) []string {
			c, err := read(text)
			if err != nil {
				return nil
			}
			return c.claims()
		},
		New: func(log *slog.Logger) application.Application {
			r := &resolver{log: log, wake: make(chan struct{}, 1), ended: make(chan struct{}), started: time.Now()}
			ctx, stop := context.WithCancel(context.Background())
			r.stop = stop
			go r.watch(ctx)
			return r
		}}
}

// resolver is the running application.
type resolver struct {
	log     *slog.Logger
	stop    context.CancelFunc
	wake    chan struct{}
	ended   chan struct{}
	started time.Time

	mu sync.Mutex
	// What follows is guarded by mu.
	instance      *caddy.Instance
	configuration Configuration
	found         found
}

// found is what the resolver saw when it asked itself and its upstreams.
type found struct {
	// conditions are sentences; front and back are the response codes, by address.
	conditions  []string
	front, back map[string]string
	at          time.Time
}

// Configure answers by another configuration from now on; queries meanwhile are answered.
func (r *resolver) Configure(text json.RawMessage) error {
	c, err := read(text)
	if err != nil {
		return err
	}
	input := caddy.CaddyfileInput{Contents: c.corefile(), Filepath: "configuration", ServerTypeName: "dns"}
	r.mu.Lock()
	defer r.mu.Unlock()
	dnsserver.Quiet, caddy.Quiet = true, true
	instance := r.instance
	if instance == nil {
		if instance, err = caddy.Start(input); err != nil { // what it has opened before stays open: only an end closes it
			return fmt.Errorf("%w: starting to answer: %w", application.ErrBroken, err)
		}
	} else if instance, err = instance.Restart(input); err != nil {
		return fmt.Errorf("starting to answer: %w", err)
	}
	r.instance, r.configuration = instance, c // what was found before holds until it is looked again
	select {
	case r.wake <- struct{}{}:
	default:
	}
	return nil
}

// How often the resolver asks itself and its upstreams, and how long an answer may take.
const (
	askEvery = 5 * time.Second
	askTime  = 2 * time.Second
)

// watch asks the resolver itself and its upstreams, again and again.
func (r *resolver) watch(ctx context.Context) {
	defer close(r.ended)
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-r.wake:
		}
		r.mu.Lock()
		c, running := r.configuration, r.instance
		r.mu.Unlock()
		if running == nil {
			continue
		}
		f := look(ctx, c)
		r.mu.Lock()
		if running == r.instance && ctx.Err() == nil {
			r.found = f
		}
		r.mu.Unlock()
	}
}

// look asks for the root's name servers wherever the resolver answers, and each of its upstreams.
func look(ctx context.Context, c Configuration) found {
	f := found{front: map[string]string{}, back: map[string]string{}, at: time.Now()}
	var group sync.WaitGroup
	var mu sync.Mutex
	silent := 0
	ask := func(client dns.Client, at string, into map[string]string, failed func(error)) {
		group.Go(func() {
			client.Timeout = askTime
			q := new(dns.Msg)
			q.SetQuestion(".", dns.TypeNS)
			answer, _, err := client.ExchangeContext(ctx, q, at)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				into[at] = "no answer: " + err.Error()
				failed(err)
				return
			}
			into[at] = dns.RcodeToString[answer.Rcode]
		})
	}
	for _, at := range c.at() {
		ask(dns.Client{}, at, f.front, func(error) { silent++ })
	}
	failed := 0
	for _, u := range c.Upstreams {
		client := dns.Client{}
		if u.TLSServerName != "" {
			client.Net, client.TLSConfig = "tcp-tls", &tls.Config{MinVersion: tls.VersionTLS12, ServerName: u.TLSServerName}
		}
		ask(client, u.Address, f.back, func(error) { failed++ })
	}
	group.Wait()
	// Where no upstream answers, the resolver does not either: that is one fault, not two.
	switch {
	case failed == len(c.Upstreams):
		f.conditions = append(f.conditions, fmt.Sprintf("service is not healthy: none of %d upstream servers answers", failed))
	case silent > 0: // who is not allowed gets an answer, too
		f.conditions = append(f.conditions,
			fmt.Sprintf("service is not healthy: it does not answer at %d of %d addresses", silent, len(c.Listen)))
	}
	return f
}

// Health gives what was wrong when the resolver last looked.
func (r *resolver) Health() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.instance == nil || r.found.at.IsZero() {
		return []string{"service is not healthy: it has not answered yet"}
	}
	return r.found.conditions
}

// Diagnostics are the response codes that the resolver and its upstreams gave last.
func (r *resolver) Diagnostics() any {
	r.mu.Lock()
	defer r.mu.Unlock()
	return struct {
		BackendResponse  string            `json:"backendResponse"`
		FrontendResponse string            `json:"frontendResponse"`
		ID               int64             `json:"id"`
		Upstreams        map[string]string `json:"upstreams"`
		Listeners        map[string]string `json:"listeners"`
	}{first(r.found.back), first(r.found.front), r.started.UnixMilli(), r.found.back, r.found.front}
}

// first gives a response code that says well, if one does.
func first(answers map[string]string) (text string) {
	for _, one := range answers {
		if text == "" || one == "NOERROR" {
			text = one
		}
	}
	return text
}

// Close ends it.
func (r *resolver) Close() error {
	r.stop()
	<-r.ended
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.instance == nil {
		return nil
	}
	err := errors.Join(r.instance.ShutdownCallbacks()...)
	return errors.Join(err, r.instance.Stop())
}
