// Package httpprobe is the application http-probe-service. It probes configured URLs, addresses and host names at intervals and reports
// those that do not answer.
package httpprobe

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"portolan/internal/base/ping"
	"portolan/internal/base/problem"
	"portolan/internal/servicepoint/application"
	"portolan/internal/wire/checkin"
	"portolan/internal/wire/stream"

	"golang.org/x/net/http/httpproxy"
)

// Configuration contains the targets and the interval.
type Configuration struct {
	Targets []Target `json:"targets" about:"The targets, each with exactly one of a URL, an address and a host name."`
	// IntervalSeconds is the time between two probes of a target, 1 to 3,600; 0 means 30. The timeout of a probe is the interval, at most 10
	// seconds.
	IntervalSeconds int `json:"intervalSeconds" about:"The time between two probes of a target, 1 to 3,600. Empty: 30."`
}

// Target is a probe target: exactly one of a URL, an address or a host name.
type Target struct {
	// Name is the name of the target in reports; empty means the URL, address or host name.
	Name string `json:"name"`
	// URL is requested with GET. A status below 400 is a success or, if ExpectStatus is not 0, only that status.
	URL          string `json:"url"`
	ExpectStatus int    `json:"expectStatus"`
	// Address is probed by ICMP echo.
	Address string `json:"address"`
	// Hostname is resolved by the system's resolver.
	Hostname string `json:"hostname"`
}

// Result is the last result of a target.
type Result struct {
	Target string `json:"target"`
	// Status is OK, FAILED, or UNKNOWN before the first result.
	Status string `json:"status"`
	// Reason is the reason for a failure.
	Reason string `json:"reason,omitempty"`
	// Millis is the duration of the probe in milliseconds. At is its time in Unix milliseconds.
	Millis int64 `json:"millis"`
	At     int64 `json:"at"`
}

// Statuses of a target.
const (
	ok      = "OK"
	failed  = "FAILED"
	unknown = "UNKNOWN" // before the first result
)

// Limits of a configuration.
const (
	maxTargets      = 1000
	defaultInterval = 30
	maxInterval     = 3600
	maxName         = 128  // bytes
	maxURL          = 1000 // bytes
	shownResults    = 200
	maxTimeout      = 10 * time.Second
	// firstRound is the time within which all targets are probed for the first time.
	firstRound = 10 * time.Second
)

// Kind returns the application.
func Kind() application.Kind {
	return application.Kind{Name: "http-probe-service", Program: checkin.Program{Version: "1.0.0", Sample: Configuration{},
		Check: func(text json.RawMessage) error { _, err := read(text); return err }},
		New: func(log *slog.Logger) application.Application { return &probe{log: log} }}
}

// read decodes and checks a configuration.
func read(text json.RawMessage) (c Configuration, err error) {
	if err := application.Decode(text, &c); err != nil {
		return c, err
	}
	if c.IntervalSeconds == 0 {
		c.IntervalSeconds = defaultInterval
	}
	if c.IntervalSeconds < 1 || c.IntervalSeconds > maxInterval {
		return c, problem.Invalid("configuration.intervalSeconds", "must be 1 to %d", maxInterval)
	}
	if len(c.Targets) == 0 || len(c.Targets) > maxTargets {
		return c, problem.Invalid("configuration.targets", "must have 1 to %d entries", maxTargets)
	}
	for i, t := range c.Targets {
		if field, reason := t.validate(); reason != "" {
			return c, problem.Invalid(fmt.Sprintf("configuration.targets[%d]%s", i, field), "%s", reason)
		}
	}
	return c, nil
}

func (t Target) validate() (field, reason string) {
	given := slices.DeleteFunc([]string{t.URL, t.Address, t.Hostname}, func(text string) bool { return text == "" })
	if len(given) != 1 {
		return "", "must have exactly one of url, address and hostname"
	}
	if strings.ContainsFunc(t.Name+t.Hostname, unicode.IsControl) {
		return "", "the name contains a control character"
	}
	if len(t.Name) > maxName || len(t.Hostname) > 253 || len(t.URL) > maxURL {
		return "", fmt.Sprintf("the name has more than %d bytes, the hostname more than 253, or the url more than %d", maxName, maxURL)
	}
	if t.URL != "" {
		if u, err := url.Parse(t.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return ".url", fmt.Sprintf("%q is not an http or https URL", t.URL)
		}
	}
	if t.Address != "" {
		if _, err := netip.ParseAddr(t.Address); err != nil {
			return ".address", fmt.Sprintf("%q is not an address", t.Address)
		}
	}
	if t.ExpectStatus != 0 && (t.URL == "" || t.ExpectStatus < 100 || t.ExpectStatus > 599) {
		return ".expectStatus", "must be 100 to 599, and requires a url"
	}
	return "", ""
}

// reportName returns the name of the target in reports.
func (t Target) reportName() string {
	for _, text := range []string{t.Name, t.URL, t.Address, t.Hostname} {
		if text != "" {
			return text
		}
	}
	return ""
}

// probe is the running application.
type probe struct {
	log *slog.Logger
	// Outbox contains events about changed targets for the manager.
	application.Outbox

	mu sync.Mutex
	// The following fields are guarded by mu. stop ends the probing goroutines; group waits for them.
	stop    context.CancelFunc
	group   *sync.WaitGroup
	results []Result
	// allProbed reports that every target was probed once, and that no target had failed when the configuration was last replaced.
	allProbed bool
}

// Configure replaces the targets.
func (p *probe) Configure(text json.RawMessage) error {
	c, err := read(text)
	if err != nil {
		return err
	}
	p.stopProbes()
	ctx, stop := context.WithCancel(context.Background())
	group := &sync.WaitGroup{}
	results := make([]Result, len(c.Targets))
	for i, t := range c.Targets {
		results[i] = Result{Target: t.reportName(), Status: unknown}
	}
	p.mu.Lock()
	p.allProbed = p.allProbed && !slices.ContainsFunc(p.results, func(r Result) bool { return r.Status == failed })
	p.stop, p.group, p.results = stop, group, results
	p.mu.Unlock()
	every := time.Duration(c.IntervalSeconds) * time.Second
	for i, t := range c.Targets {
		// The first probes are spread over time.
		first := min(every, firstRound) * time.Duration(i) / time.Duration(len(c.Targets))
		group.Go(func() { p.repeat(ctx, &results[i], t, every, min(first, time.Second*time.Duration(i)/10)) })
	}
	return nil
}

// repeat probes a target at intervals until ctx ends.
func (p *probe) repeat(ctx context.Context, into *Result, t Target, every, first time.Duration) {
	timer := time.NewTimer(first)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		began := time.Now()
		limited, cancel := context.WithTimeout(ctx, min(every, maxTimeout))
		err := t.probeOnce(limited)
		cancel()
		if ctx.Err() != nil {
			return
		}
		r := Result{Target: t.reportName(), Status: ok, Millis: time.Since(began).Milliseconds(), At: time.Now().UnixMilli()}
		if err != nil {
			r.Status, r.Reason = failed, err.Error()
		}
		p.mu.Lock()
		if into.Status != r.Status {
			p.log.Info("target status changed", "target", r.Target, "was", into.Status, "is", r.Status, "reason", r.Reason)
		}
		if into.Status != r.Status && (into.Status != unknown || r.Status != ok) { // a new target that answers is not an event
			p.recordEvent(into.Status, r)
		}
		*into = r
		p.mu.Unlock()
		timer.Reset(every)
	}
}

// recordEvent adds an event about a target's new status to the Outbox.
func (p *probe) recordEvent(before string, r Result) {
	target := strings.ToValidUTF8(r.Target[:min(len(r.Target), stream.MaxName-len("targets/"))], "")
	if err := p.Add(stream.Events, stream.Event{At: r.At, Field: "targets/" + target, Before: before, After: r.Status,
		Reason: strings.ToValidUTF8(r.Reason[:min(len(r.Reason), stream.MaxReason)], "")}); err != nil {
		p.log.Error("record event failed", "target", r.Target, "error", err)
	}
}

// probeOnce probes a target once.
func (t Target) probeOnce(ctx context.Context) error {
	switch {
	case t.URL != "":
		return t.get(ctx)
	case t.Address != "":
		addr, err := netip.ParseAddr(t.Address)
		if err != nil {
			return err
		}
		yes, err := ping.Answers(ctx, addr, maxTimeout)
		if err == nil && !yes {
			err = fmt.Errorf("no answer from %s", addr)
		}
		return err
	}
	_, err := net.DefaultResolver.LookupHost(ctx, t.Hostname)
	return err
}

func (t Target) get(ctx context.Context) error {
	rq, err := http.NewRequestWithContext(ctx, http.MethodGet, t.URL, nil)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, Proxy: proxy},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	rs, err := client.Do(rq)
	if err != nil {
		return err
	}
	_, _ = io.CopyN(io.Discard, rs.Body, 1<<16) // only the status matters
	_ = rs.Body.Close()
	if t.ExpectStatus != 0 && rs.StatusCode != t.ExpectStatus {
		return fmt.Errorf("it returned the status %d instead of %d", rs.StatusCode, t.ExpectStatus)
	}
	if t.ExpectStatus == 0 && rs.StatusCode >= 400 {
		return fmt.Errorf("it returned %s", rs.Status)
	}
	return nil
}

// proxy returns the proxy from the environment, which the service point sets for its applications. Requests to this machine do not use
// it.
func proxy(rq *http.Request) (*url.URL, error) {
	return httpproxy.FromEnvironment().ProxyFunc()(rq.URL)
}

// Health returns a condition for each failing target. It also reports targets without a first result, unless all targets were healthy
// before the last configuration.
func (p *probe) Health() (conditions []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	unasked := 0
	for _, r := range p.results {
		switch r.Status {
		case failed:
			conditions = append(conditions, fmt.Sprintf("target %s does not answer: %s", r.Target, r.Reason))
		case unknown:
			unasked++
		}
	}
	p.allProbed = p.allProbed || unasked == 0 && len(p.results) > 0
	if !p.allProbed {
		conditions = slices.Insert(conditions, 0, fmt.Sprintf("%d of %d targets have not been probed yet", unasked, len(p.results)))
	}
	return conditions[:min(len(conditions), 20)]
}

// Diagnostics returns the last results, at most 200, failed ones first.
func (p *probe) Diagnostics() any {
	results := p.lastResults()
	slices.SortStableFunc(results, func(a, b Result) int { return cmp.Compare(a.Status, b.Status) }) // FAILED, OK, UNKNOWN
	return struct {
		Targets int      `json:"targets"`
		Results []Result `json:"results"`
	}{len(results), append([]Result{}, results[:min(len(results), shownResults)]...)}
}

func (p *probe) lastResults() []Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.results)
}

// stopProbes stops the probing goroutines and waits for them.
func (p *probe) stopProbes() {
	p.mu.Lock()
	stop, group := p.stop, p.group
	p.stop = nil
	p.mu.Unlock()
	if stop != nil {
		stop()
		group.Wait()
	}
}

// Close stops the application.
func (p *probe) Close() error {
	p.stopProbes()
	return nil
}
