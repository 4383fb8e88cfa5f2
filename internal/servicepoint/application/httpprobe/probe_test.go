package httpprobe

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"portolan/internal/wire/stream"
)

// asked runs the application until all targets were probed, and returns the results and error conditions.
func asked(t *testing.T, configuration string) (results []Result, conditions []string) {
	t.Helper()
	p := &probe{log: slog.New(slog.DiscardHandler)}
	if err := p.Configure([]byte(configuration)); err != nil {
		t.Fatal(err)
	}
	defer p.stopProbes()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) { // polling interval
		results = p.lastResults()
		if !slices.ContainsFunc(results, func(r Result) bool { return r.Status == "UNKNOWN" }) {
			return results, p.Health()
		}
		if time.Now().After(deadline) {
			t.Fatalf("not all were asked: %+v", results)
		}
	}
}

// TestTargets checks the results of targets by status, and that failing targets are named.
func TestTargets(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/gone", http.StatusFound)
			return
		}
		var status int
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &status)
		w.WriteHeader(status)
	}))
	defer server.Close()
	closed := httptest.NewServer(nil)
	closed.Close()
	target := func(name, url, more string) string { return `{"name":"` + name + `","url":"` + url + `"` + more + `}` }
	results, conditions := asked(t, `{"targets":[`+strings.Join([]string{target("well", server.URL+"/200", ""),
		target("moved", server.URL+"/moved", ""), target("wanted", server.URL+"/503", `,"expectStatus":503`),
		target("broken", server.URL+"/500", ""), target("other", server.URL+"/204", `,"expectStatus":200`),
		target("closed", closed.URL, ""), `{"hostname":"localhost"}`}, ",")+`]}`)
	want := map[string]string{"well": "", "moved": "", "wanted": "", "broken": "it returned 500 Internal Server Error",
		"other": "it returned the status 204 instead of 200", "closed": "connection refused", "localhost": ""}
	for _, r := range results {
		reason, there := want[r.Target]
		if !there || (r.Status == "OK") != (reason == "") || !strings.Contains(r.Reason, reason) || r.At == 0 {
			t.Errorf("%+v, want %q", r, reason)
		}
		says := func(c string) bool { return strings.HasPrefix(c, "target "+r.Target+" does not answer") }
		if slices.ContainsFunc(conditions, says) != (reason != "") {
			t.Errorf("of %s says %q", r.Target, conditions)
		}
		delete(want, r.Target)
	}
	if len(want) > 0 {
		t.Errorf("%v is not reported", want)
	}
}

// TestUnhealthyUntilProbed checks that a new or unhealthy process stays unhealthy until all its targets have answered. A healthy
// one stays healthy when its targets are replaced.
func TestUnhealthyUntilProbed(t *testing.T) {
	answer := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-answer }))
	p := &probe{log: slog.New(slog.DiscardHandler)}
	defer p.stopProbes()
	if got := p.Health(); len(got) != 1 {
		t.Errorf("without a configuration it says %q", got)
	}
	configuration := func(interval int) string {
		return fmt.Sprintf(`{"intervalSeconds":%d,"targets":[{"url":"%s"},{"hostname":"localhost"}]}`, interval, server.URL)
	}
	if err := p.Configure([]byte(configuration(60))); err != nil {
		t.Fatal(err)
	}
	becomes := func(unknown int) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) { // polling interval
			n := 0
			for _, r := range p.lastResults() {
				if r.Status == "UNKNOWN" {
					n++
				}
			}
			if n == unknown {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d are unknown", n)
			}
		}
	}
	becomes(1)
	if got := p.Health(); !slices.Equal(got, []string{"1 of 2 targets have not been probed yet"}) {
		t.Errorf("with one answer of two it says %q", got)
	}
	close(answer)
	becomes(0)
	if got := p.Health(); len(got) > 0 {
		t.Errorf("with all answers it says %q", got)
	}
	if err := p.Configure([]byte(configuration(61))); err != nil {
		t.Fatal(err)
	}
	if got := p.Health(); len(got) > 0 {
		t.Errorf("with another configuration it says %q", got)
	}
	server.Close()
	if err := p.Configure([]byte(configuration(62))); err != nil {
		t.Fatal(err)
	}
	becomes(0)
	if got := p.Health(); len(got) != 1 || !strings.Contains(got[0], "does not answer") {
		t.Errorf("without the server it says %q", got)
	}
	if err := p.Configure([]byte(`{"targets":[{"url":"` + server.URL + `"}]}`)); err != nil {
		t.Fatal(err)
	}
	if got := p.Health(); len(got) != 1 { // not probed yet, or probed without an answer
		t.Errorf("configured anew, it says %q", got)
	}
}

// TestProxy checks that targets on other machines are reached through the configured proxy, except those in NO_PROXY.
func TestProxy(t *testing.T) {
	var hosts []string
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { hosts = append(hosts, r.URL.Host) }))
	defer proxy.Close()
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("NO_PROXY", "127.0.0.0/8")
	own := httptest.NewServer(http.NotFoundHandler())
	defer own.Close()
	results, _ := asked(t, `{"targets":[{"url":"http://quay.example/berths"},{"url":"`+own.URL+`"}]}`)
	if results[0].Status != "OK" || results[1].Status != "FAILED" || len(hosts) != 1 || hosts[0] != "quay.example" {
		t.Errorf("they answer %+v, the proxy was asked for %q", results, hosts)
	}
}

// TestTargetsRaiseEvents checks that the manager receives events for targets that fail and recover, but none for a new target that answers.
func TestTargetsRaiseEvents(t *testing.T) {
	var fails atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if fails.Load() {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	defer server.Close()
	p := &probe{log: slog.New(slog.DiscardHandler)}
	defer p.stopProbes()
	target, answers := Target{Name: "quay", URL: server.URL}, &Result{Status: unknown}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	go p.repeat(ctx, answers, target, 5*time.Millisecond, 0)
	var last int64
	took := func(want string) {
		t.Helper()
		waits, done := context.WithTimeout(t.Context(), time.Minute)
		defer done()
		all := p.Records(waits)
		if len(all) == 0 {
			t.Fatal("nothing comes")
		}
		var e stream.Event
		if err := json.Unmarshal(all[0].Data, &e); err != nil || e.Check() != nil || e.Field != "targets/quay" ||
			e.Before+" "+e.After != want || all[0].Number != last+1 {
			t.Fatalf("number %d behind %d is %+v %v, want %s", all[0].Number, last, e, err, want)
		}
		last = all[0].Number
		p.Acknowledge(last)
	}
	for p.statusOf(answers) != ok {
		time.Sleep(time.Millisecond) // polling interval
	}
	fails.Store(true)
	took("OK FAILED")
	fails.Store(false)
	took("FAILED OK")
}

// statusOf reads a result that may change concurrently.
func (p *probe) statusOf(r *Result) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return r.Status
}
