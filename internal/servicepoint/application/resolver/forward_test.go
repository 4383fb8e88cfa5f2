package resolver

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/servicepoint/application"
	"portolan/internal/testkit/freeport"
)

// source is an upstream server that answers each query with its own address and counts the queries by name.
type source struct {
	t       *testing.T
	at      string
	address net.IP
	ttl     uint32
	server  *dns.Server

	mu sync.Mutex
	// The following fields are guarded by mu. After the first query for a name, further ones wait for hold if it is not nil.
	asked map[string]int
	hold  chan struct{}
	// ports counts the queries by source port.
	ports map[int]int
}

// newSource starts a source.
func newSource(t *testing.T, address string, ttl uint32) *source {
	t.Helper()
	s := &source{t: t, at: freeport.Reserve(t).String(), address: net.ParseIP(address), ttl: ttl, asked: map[string]int{},
		ports: map[int]int{}}
	s.start()
	t.Cleanup(s.stop)
	return s
}

func (s *source) start() {
	s.t.Helper()
	packets, err := net.ListenPacket("udp", s.at)
	if err != nil {
		s.t.Fatal(err)
	}
	s.server = &dns.Server{PacketConn: packets, Handler: dns.HandlerFunc(s.answer)}
	started := make(chan struct{})
	s.server.NotifyStartedFunc = func() { close(started) }
	server := s.server
	go func() { _ = server.ActivateAndServe() }()
	<-started
}

func (s *source) stop() { _ = s.server.Shutdown() }

func (s *source) answer(w dns.ResponseWriter, q *dns.Msg) {
	name := q.Question[0].Name
	s.mu.Lock()
	s.asked[name]++
	if from, is := w.RemoteAddr().(*net.UDPAddr); is && name != "." {
		s.ports[from.Port]++
	}
	hold := s.hold
	if s.asked[name] == 1 || name == "." {
		hold = nil
	}
	s.mu.Unlock()
	if hold != nil {
		<-hold
	}
	m := new(dns.Msg)
	m.SetReply(q)
	if q.Question[0].Qtype == dns.TypeA {
		m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: s.ttl}, A: s.address}}
	}
	_ = w.WriteMsg(m) // the client repeats a lost query
}

// count returns the number of queries for names that start with beginning.
func (s *source) count(beginning string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, times := range s.asked {
		if strings.HasPrefix(name, beginning) {
			n += times
		}
	}
	return n
}

// forwarding starts a resolver with upstreams and additional configuration.
func forwarding(t *testing.T, more string, upstreams ...*source) (app application.Application, at string) {
	t.Helper()
	return forwardingTo(t, slog.New(slog.DiscardHandler), more, upstreams...)
}

// forwardingTo is forwarding with a log.
func forwardingTo(t *testing.T, log *slog.Logger, more string, upstreams ...*source) (app application.Application, at string) {
	t.Helper()
	app = Kind().New(log)
	t.Cleanup(func() {
		if err := app.Close(); err != nil {
			t.Error(err)
		}
	})
	listen := freeport.Reserve(t)
	all := make([]string, len(upstreams))
	for i, u := range upstreams {
		all[i] = fmt.Sprintf(`{"address":%q}`, u.at)
	}
	configuration := fmt.Appendf(nil, `{"listen":[{"address":%q,"port":%d}],"upstreams":[%s]%s}`, listen.Addr(), listen.Port(),
		strings.Join(all, ","), more)
	if err := Kind().Check(configuration); err != nil {
		t.Fatal(err)
	}
	if err := app.Configure(configuration); err != nil {
		t.Fatal(err)
	}
	return app, listen.String()
}

// found returns the address of a name and its TTL; empty without an answer.
func found(at, name string) (address string, ttl uint32) {
	q := new(dns.Msg)
	q.SetQuestion(name, dns.TypeA)
	r, _, err := (&dns.Client{Timeout: 5 * time.Second}).Exchange(q, at)
	if err != nil || len(r.Answer) != 1 {
		return "", 0
	}
	return r.Answer[0].(*dns.A).A.String(), r.Answer[0].Header().Ttl
}

// soon waits until a condition holds.
func soon(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) { // polling interval
		if time.Now().After(deadline) {
			t.Fatalf("it never was so that %s", what)
		}
	}
}

// TestUpstreamsFailOver checks the fail-over between upstreams: the first one is used while it answers, otherwise the next.
// The resolver is healthy until no upstream answers.
func TestUpstreamsFailOver(t *testing.T) {
	one, two := newSource(t, "192.0.2.1", 60), newSource(t, "192.0.2.2", 60)
	app, at := forwarding(t, `,"policy":"sequential"`, one, two)
	names := 0
	from := func(address string) func() bool {
		return func() bool {
			names++ // a name that is not cached
			got, _ := found(at, fmt.Sprintf("n%d.quay.example.", names))
			return got == address
		}
	}
	soon(t, "it is well", func() bool { return len(app.Health()) == 0 })
	for range 10 {
		if !from("192.0.2.1")() {
			t.Error("the first upstream is not the first")
		}
	}
	one.stop()
	soon(t, "the second one is asked", from("192.0.2.2"))
	for range 10 {
		if !from("192.0.2.2")() {
			t.Error("with the first one away the second one is not asked")
		}
	}
	says := func(s *source) string {
		return app.Diagnostics().(application.ResolverDiagnostics).Upstreams[s.at]
	}
	looks := func() { // without waiting for the check interval
		select {
		case app.(*resolver).back.wake <- struct{}{}:
		default:
		}
	}
	soon(t, "it says that the first one does not answer", func() bool { looks(); return strings.HasPrefix(says(one), "no answer") })
	if wrong := app.Health(); len(wrong) > 0 || says(two) != noError {
		t.Errorf("with one of two it says %q, and of the second one %q", wrong, says(two))
	}
	one.start()
	soon(t, "the first one is asked again", from("192.0.2.1"))
	one.stop()
	two.stop()
	soon(t, "it is not well without both", func() bool {
		looks()
		return strings.Contains(strings.Join(app.Health(), ""), "none of 2 upstream servers answers")
	})
	two.start()
	soon(t, "it is well with one", func() bool { looks(); return len(app.Health()) == 0 })
	one.start() // it stops at the end of the test
}

// TestCacheLimits checks the maximum number of cached names and their maximum TTL.
func TestCacheLimits(t *testing.T) {
	up := newSource(t, "192.0.2.1", 3600)
	_, at := forwarding(t, `,"cache":{"entries":1024,"maxTTLSeconds":60}`, up)
	const names = 4000
	ask := func() {
		for i := range names {
			if got, ttl := found(at, fmt.Sprintf("n%d.quay.example.", i)); got == "" || ttl > 60 {
				t.Fatalf("name %d is %q, for %d s", i, got, ttl)
			}
		}
	}
	ask()
	first := up.count("n")
	ask()
	if again := up.count("n") - first; again < names/2 || again >= names {
		t.Errorf("of %d names %d were asked for again", names, again)
	}
	found(at, "known.quay.example.")
	found(at, "known.quay.example.")
	if n := up.count("known"); n != 1 {
		t.Errorf("a name was asked for %d times", n)
	}
}

// TestPrefetch checks that frequently used names are refreshed before they expire. Clients are answered while a slow upstream is queried.
func TestPrefetch(t *testing.T) {
	up := newSource(t, "192.0.2.1", 2)
	_, at := forwarding(t, `,"cache":{"prefetch":true}`, up)
	hold := make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	t.Cleanup(release) // before the upstream stops, because it waits for its answers
	up.mu.Lock()
	up.hold = hold
	up.mu.Unlock()
	answered := false
	for i := 0; i < 5 && !answered; i++ { // repeated in case the machine was too slow
		name := fmt.Sprintf("often%d.quay.example.", i)
		soon(t, "it is asked for again", func() bool {
			if up.count(name) < 2 {
				found(at, name)
			}
			return up.count(name) >= 2
		})
		q := new(dns.Msg)
		q.SetQuestion(name, dns.TypeA)
		r, _, err := (&dns.Client{Timeout: 500 * time.Millisecond}).Exchange(q, at)
		answered = err == nil && len(r.Answer) == 1
	}
	release()
	if !answered {
		t.Error("clients get no answer during a prefetch")
	}
}

// TestMetrics checks that queries and cache hits are counted at the configured endpoint.
func TestMetrics(t *testing.T) {
	up, shown := newSource(t, "192.0.2.1", 60), freeport.Reserve(t).String()
	_, at := forwarding(t, fmt.Sprintf(`,"metrics":%q`, shown), up)
	for range 3 {
		found(at, "quay.example.")
	}
	rs, err := http.Get("http://" + shown + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rs.Body.Close() }()
	text, err := io.ReadAll(rs.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"coredns_dns_requests_total{", "coredns_cache_hits_total{", "coredns_forward_"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("there is no %s:\n%.2000s", want, text)
		}
	}
}

// TestMetricsAreBounded checks that a client with many connections to the metrics endpoint does not block others.
func TestMetricsAreBounded(t *testing.T) {
	up, shown := newSource(t, "192.0.2.1", 60), freeport.Reserve(t).String()
	forwarding(t, fmt.Sprintf(`,"metrics":%q`, shown), up)
	var first net.Conn
	for range 3 * maxScrapers {
		c, err := net.Dial("tcp", shown)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = c
		}
		defer func() { _ = c.Close() }() //nolint:revive // all stay open until the test ends
	}
	client := &http.Client{Timeout: 5 * time.Second}
	rs, err := client.Get("http://" + shown + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	_ = rs.Body.Close()
	if rs.StatusCode != http.StatusOK {
		t.Errorf("it answers %s", rs.Status)
	}
	if err := first.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	var timeout net.Error
	if _, err := first.Read(make([]byte, 1)); err == nil || errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("the first connection stays open: %v", err)
	}
}

// TestOwnQuestionsAreNotLogged checks that the query log contains client queries, but not the health checks of the resolver.
func TestOwnQuestionsAreNotLogged(t *testing.T) {
	var mu sync.Mutex
	var lines []string
	log := slog.New(slog.NewTextHandler(writerFunc(func(line []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, string(line))
		return len(line), nil
	}), nil))
	up := newSource(t, "192.0.2.1", 60)
	app, at := forwardingTo(t, log, `,"queryLog":{"every":1}`, up)
	soon(t, "it is well", func() bool { return len(app.Health()) == 0 }) // the health check has run
	found(at, "quay.example.")
	logged := func(part string) (n int) {
		mu.Lock()
		defer mu.Unlock()
		for _, line := range lines {
			if strings.Contains(line, "msg=query") && strings.Contains(line, part) {
				n++
			}
		}
		return n
	}
	soon(t, "the query is logged", func() bool { return logged("quay.example.") == 1 })
	if n := logged("version.bind"); n != 0 {
		t.Errorf("its own questions are logged %d times", n)
	}
}

// writerFunc is a function as an io.Writer.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// TestBestAnswer checks that the best answer is that of a working upstream, independent of its address.
func TestBestAnswer(t *testing.T) {
	for answers, want := range map[string]string{"NOERROR": "NOERROR", "REFUSED NOERROR": "NOERROR", "NOERROR REFUSED": "NOERROR",
		"silence REFUSED": "REFUSED", "REFUSED silence": "REFUSED", "SERVFAIL NXDOMAIN": "NXDOMAIN", "SERVFAIL silence": "SERVFAIL", "": ""} {
		all := map[string]string{}
		for i, one := range strings.Fields(answers) {
			all[fmt.Sprint(i)] = one
		}
		if got := bestAnswer(all); got != want {
			t.Errorf("of %q the best is %q", answers, got)
		}
	}
	for answer, want := range map[string]bool{"NOERROR": true, "REFUSED": true, "NXDOMAIN": true, "SERVFAIL": false, "FORMERR": false,
		"no answer: i/o timeout": false, "": false} {
		if got := application.Resolves(answer); got != want {
			t.Errorf("%q resolves: %v", answer, got)
		}
	}
}

// TestUpstreamQuestionsLeaveFromManyPorts checks the distribution of source ports (RFC 5452 section 9.2).
func TestUpstreamQuestionsLeaveFromManyPorts(t *testing.T) {
	s := newSource(t, "192.0.2.1", 60)
	_, at := forwarding(t, "", s)
	const questions = 400
	for i := range questions {
		if address, _ := found(at, fmt.Sprintf("p%d.example.", i)); address == "" {
			t.Fatalf("question %d has no answer", i)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	low, high, most := 1<<16, 0, 0
	for port, n := range s.ports {
		low, high, most = min(low, port), max(high, port), max(most, n)
	}
	if len(s.ports) < questions*9/10 || most > 6 || high-low < 10_000 {
		t.Errorf("%d questions left from %d ports between %d and %d, at most %d from one", questions, len(s.ports), low, high, most)
	}
}
