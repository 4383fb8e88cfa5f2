package telemetry_test

import (
	"cmp"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/manager/dhcp"
	"portolan/internal/manager/dns"
	"portolan/internal/manager/ipam"
	"portolan/internal/manager/serverconfig"
	"portolan/internal/manager/telemetry"
	"portolan/internal/testkit/apitest"
	"portolan/internal/wire/dhcplease"
)

func TestMain(m *testing.M) { os.Exit(apitest.Run(m)) }

// TestOnPostgreSQL runs the tests of this package again on PostgreSQL.
func TestOnPostgreSQL(t *testing.T) { apitest.RunOnPostgreSQL(t) }

// target is a receiver with the messages that it has accepted. status is the status of its answers.
type target struct {
	*httptest.Server
	mu       sync.Mutex
	status   int
	answer   string
	requests []string
	bodies   []string
}

func newTarget(t *testing.T) *target {
	x := &target{status: 200, answer: "{}"}
	x.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		x.requests = append(x.requests, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
		if w.WriteHeader(x.status); x.status == 200 && r.Method == http.MethodPost {
			x.bodies = append(x.bodies, string(body))
		}
		if _, err := io.WriteString(w, x.answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(x.Close)
	return x
}

// set sets the answers.
func (x *target) set(status int, answer string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.status, x.answer = status, answer
}

// accepted returns the accepted bodies, and all requests.
func (x *target) accepted() (bodies, requests []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.bodies), slices.Clone(x.requests)
}

// plan is a DHCP server with a service that sends to a target.
type plan struct {
	*apitest.API
	server, service, network string
	mu                       sync.Mutex
	counts                   map[string]int
}

// start creates a DHCP server. The sender runs.
func start(t *testing.T) *plan {
	t.Helper()
	a := apitest.NewConcurrent(t, ipam.Register, dns.Register, serverconfig.Register, dhcp.Register, telemetry.Register)
	p := &plan{API: a, counts: map[string]int{}}
	configuration, _, _, _, network := a.Basics()
	p.network = network
	p.server = a.ID("/api/v2/configurations/"+configuration+"/servers", `{"type":"Server","name":"dhcp1","profile":"PORTOLAN_SERVICE_POINT",`+
		`"servicePoint":"aaaa","interfaces":[{"managementAddress":"10.0.0.5"}]}`)
	p.service = a.Want(200, "GET", "/api/v2/servers/"+p.server+"/services?"+apitest.Filter("type:'DHCPActivityService'"), "").Text("data.0.id")
	s := telemetry.NewSender(a.Address, slog.New(slog.DiscardHandler), "Portolan/test")
	s.Counted = func(result string, n int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.counts[result] += n
	}
	a.Work(s.Run)
	return p
}

// counted returns the number of events with a result.
func (p *plan) counted(result string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts[result]
}

// sends configures the service. most is maximumBufferedEvents, by default 1000.
func (p *plan) sends(destination, most string) {
	p.T.Helper()
	p.Want(200, "PUT", "/api/v2/servers/"+p.server+"/services/"+p.service, `{"type":"DHCPActivityService","enabled":true,`+
		`"dhcpv4Enabled":true,"dhcpv6Enabled":false,"destination":`+destination+`,"maximumBufferedEvents":`+cmp.Or(most, "1000")+`}`)
}

// report applies events of the server.
func (p *plan) report(records ...dhcplease.Record) {
	p.T.Helper()
	reporter := dhcp.NewReporter(p.Address)
	if err := p.Store.Update(context.Background(), store.Author{}, func(tx *store.Tx) error {
		all := make([]any, len(records))
		for i, r := range records {
			all[i] = r
		}
		return reporter.Apply(tx, "aaaa", 1, all)
	}); err != nil {
		p.T.Fatal(err)
	}
}

// record returns an event about a lease of a client.
func (p *plan) record(sequence uint64, kind dhcplease.Kind, mac string) dhcplease.Record {
	network, err := strconv.ParseInt(p.network, 10, 64)
	if err != nil {
		p.T.Fatal(err)
	}
	return dhcplease.Record{Journal: "j", Sequence: sequence, Previous: sequence - 1, At: int64(sequence) * 1000, //nolint:gosec // small
		Event: &dhcplease.Event{Kind: kind, Lease: dhcplease.Lease{Network: network, Address: netip.MustParseAddr("10.0.0.20"),
			Start: int64(sequence), Expires: 5000, MAC: mac, HostName: "lamp"}}} //nolint:gosec // small
}

// kinds returns the kinds, clients and reasons of events.
func kinds(t *testing.T, bodies []string) (all []string) {
	t.Helper()
	for _, body := range bodies {
		var events []struct{ Kind, MACAddress, EndReason string }
		if err := json.Unmarshal([]byte(body), &events); err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			all = append(all, strings.TrimSpace(e.Kind+" "+e.MACAddress+" "+e.EndReason))
		}
	}
	return all
}

const one, two = "00005e005301", "00005e005302"

// TestActivityReachesTheDestination checks that beginnings and ends of leases are sent once and in order, also after the destination was
// unreachable, and that events say so.
func TestActivityReachesTheDestination(t *testing.T) {
	p, to := start(t), newTarget(t)
	p.report(p.record(1, dhcplease.Begin, one)) // before the service is enabled
	p.sends(`{"sinkType":"HTTP","url":"`+to.URL+`/in","token":"secret","healthCheckEnabled":true,"healthCheckUrl":"`+to.URL+`/health"}`, "")
	to.set(503, "")
	p.report(p.record(2, dhcplease.Change, one), p.record(3, dhcplease.Begin, two), p.record(4, dhcplease.Abandon, two))
	apitest.Eventually(t, "a failed attempt", func() bool { return p.counted("failed") > 0 })
	apitest.Eventually(t, "a health check", func() bool {
		_, requests := to.accepted()
		return slices.Contains(requests, "GET /health Bearer secret")
	})
	to.set(200, "")
	want := []string{"LEASE_END 00-00-5E-00-53-01 REPLACED", "LEASE_BEGIN 00-00-5E-00-53-02", "LEASE_END 00-00-5E-00-53-02 CONFLICT",
		"ADDRESS_ABANDONED 00-00-5E-00-53-02 CONFLICT"}
	apitest.Eventually(t, "all events are sent", func() bool { return p.counted("sent") == len(want) })
	bodies, requests := to.accepted()
	if got := kinds(t, bodies); !slices.Equal(got, want) {
		t.Errorf("the receiver has %q, want %q", got, want)
	}
	if requests[0] != "POST /in Bearer secret" {
		t.Errorf("the first request is %q", requests[0])
	}
	if !strings.Contains(bodies[0], `"server":`+p.server) || !strings.Contains(bodies[0], `"network":`+p.network) ||
		!strings.Contains(bodies[0], `"address":"10.0.0.20"`) || !strings.Contains(bodies[0], `"hostName":"lamp"`) {
		t.Errorf("the message is %s", bodies[0])
	}
	events := string(p.Want(200, "GET", "/api/v2/events?"+apitest.Filter("category:'APPLICATION'"), "").Body)
	for _, text := range []string{"of server dhcp1 does not accept events: health check",
		"of server dhcp1 does not accept events: the receiver returned 503",
		"of server dhcp1 accepts events again"} {
		if is := strings.Contains(events, text); is != !strings.Contains(text, "health") {
			t.Errorf("%q in the events is %v: %s", text, is, events)
		}
	}
	p.report(p.record(5, dhcplease.Clear, two)) // an abandoned address has no lease that ends
	p.report(p.record(6, dhcplease.Begin, one), p.record(7, dhcplease.Release, one))
	apitest.Eventually(t, "the next events are sent", func() bool { return p.counted("sent") == len(want)+2 })
	want = append(want, "LEASE_BEGIN 00-00-5E-00-53-01", "LEASE_END 00-00-5E-00-53-01 RELEASED")
	if bodies, _ = to.accepted(); !slices.Equal(kinds(t, bodies), want) {
		t.Errorf("then the receiver has %q", bodies)
	}
	p.Verify()
}

// TestActivityIsBounded checks that the oldest events beyond maximumBufferedEvents are dropped and counted, and those of a disabled service
// are deleted.
func TestActivityIsBounded(t *testing.T) {
	p, to := start(t), newTarget(t)
	to.set(500, "")
	p.sends(`{"sinkType":"HTTP","url":"`+to.URL+`"}`, "3")
	for n := range uint64(10) {
		p.report(p.record(2*n+1, dhcplease.Begin, one), p.record(2*n+2, dhcplease.Release, one))
	}
	apitest.Eventually(t, "17 events are dropped", func() bool { return p.counted("dropped") == 17 })
	events := string(p.Want(200, "GET", "/api/v2/events?"+apitest.Filter("eventType:'ERROR'"), "").Body)
	if !strings.Contains(events, "more than maximumBufferedEvents (3) wait") || strings.Count(events, "maximumBufferedEvents") != 1 {
		t.Errorf("the events are %s", events)
	}
	p.Want(200, "PATCH", "/api/v2/servers/"+p.server+"/services/"+p.service, `{"enabled":false}`, apitest.MergePatch)
	apitest.Eventually(t, "the others are deleted", func() bool { return p.counted("dropped") == 20 })
	if bodies, _ := to.accepted(); len(bodies) != 0 {
		t.Errorf("the receiver has %q", bodies)
	}
}

// TestActivityOfReceivers checks the form of messages to Splunk and Elasticsearch. Elasticsearch accepts events one by one: one that it had
// is sent, one with a wrong form is rejected.
func TestActivityOfReceivers(t *testing.T) {
	p, to := start(t), newTarget(t)
	p.sends(`{"sinkType":"SPLUNK","url":"`+to.URL+`","token":"secret"}`, "")
	p.report(p.record(1, dhcplease.Begin, one))
	apitest.Eventually(t, "the event is sent", func() bool { return p.counted("sent") == 1 })
	bodies, requests := to.accepted()
	if requests[0] != "POST /services/collector/event Splunk secret" ||
		!strings.HasPrefix(bodies[0], `{"sourcetype":"portolan:dhcp","time":1.000,"event":{"kind":"LEASE_BEGIN"`) {
		t.Errorf("Splunk gets %q with %s", requests, bodies[0])
	}
	to.set(200, "{}") // not the answer of Elasticsearch
	p.sends(`{"sinkType":"ELASTICSEARCH","url":"`+to.URL+`","index":"leases","username":"u","password":"p"}`, "")
	p.report(p.record(2, dhcplease.Release, one), p.record(3, dhcplease.Begin, one))
	apitest.Eventually(t, "the answer is not accepted", func() bool { return p.counted("failed") == 2 })
	to.set(200, `{"errors":true,"items":[{"create":{"status":409}},{"create":{"status":403}}]}`)
	apitest.Eventually(t, "a refused event is not rejected", func() bool { return p.counted("failed") > 2 && p.counted("rejected") == 0 })
	to.set(200, `{"errors":true,"items":[{"create":{"status":409}},{"create":{"status":400,"error":{}}}]}`)
	apitest.Eventually(t, "the events are sent", func() bool { return p.counted("sent") == 2 && p.counted("rejected") == 1 })
	bodies, requests = to.accepted()
	lines := strings.Split(bodies[1], "\n")
	if requests[1] != "POST /leases/_bulk Basic dTpw" || len(lines) != 5 || !strings.HasPrefix(lines[0], `{"create":{"_id":"`) ||
		!strings.HasPrefix(lines[1], `{"@timestamp":2000,"dhcp":{"kind":"LEASE_END"`) {
		t.Errorf("Elasticsearch gets %q with %s", requests, bodies[1])
	}
}

// TestActivityOfRefusedMessage checks that a destination that refuses messages for their size gets single events, and that these are
// rejected. Other refusals lose no event.
func TestActivityOfRefusedMessage(t *testing.T) {
	p, to := start(t), newTarget(t)
	to.set(400, "") // a fault of the settings, such as an unknown index of Splunk
	p.sends(`{"sinkType":"HTTP","url":"`+to.URL+`"}`, "")
	p.report(p.record(1, dhcplease.Begin, one), p.record(2, dhcplease.Release, one), p.record(3, dhcplease.Begin, one))
	apitest.Eventually(t, "two attempts fail", func() bool { return p.counted("failed") == 6 })
	if n := p.counted("rejected"); n != 0 {
		t.Errorf("%d events are rejected", n)
	}
	to.set(413, "")
	apitest.Eventually(t, "the first events are rejected", func() bool { return p.counted("rejected") > 0 })
	to.set(200, "")
	apitest.Eventually(t, "no event waits", func() bool { return p.counted("sent")+p.counted("rejected") == 3 })
	events := string(p.Want(200, "GET", "/api/v2/events?"+apitest.Filter("eventType:'ERROR'"), "").Body)
	if strings.Count(events, "rejects events for their content") != 1 {
		t.Errorf("the events are %s", events)
	}
}

// TestActivityOfContinuedLease checks that an end that another server corrects is followed by a beginning.
func TestActivityOfContinuedLease(t *testing.T) {
	p, to := start(t), newTarget(t)
	p.sends(`{"sinkType":"HTTP","url":"`+to.URL+`"}`, "")
	now := uint64(p.Store.Now().Unix()) //nolint:gosec // a time
	begin, expire, change := p.record(1, dhcplease.Begin, one), p.record(2, dhcplease.Expire, one), p.record(3, dhcplease.Change, one)
	for i, r := range []*dhcplease.Record{&begin, &expire, &change} {
		r.At = int64(now)*1000 + int64(i)*1000                                             //nolint:gosec // a time
		r.Event.Lease.Start, r.Event.Lease.Expires = int64(now), int64(now)+int64(i)*500+1 //nolint:gosec // a time
	}
	p.report(begin, expire)
	p.report(change)
	apitest.Eventually(t, "all events are sent", func() bool { return p.counted("sent") == 3 })
	bodies, _ := to.accepted()
	if got := kinds(t, bodies); !slices.Equal(got, []string{"LEASE_BEGIN 00-00-5E-00-53-01", "LEASE_END 00-00-5E-00-53-01 EXPIRED",
		"LEASE_BEGIN 00-00-5E-00-53-01"}) {
		t.Errorf("the receiver has %q", got)
	}
}

// TestActivityIsRefused checks that a service cannot be enabled without a destination that can be sent to.
func TestActivityIsRefused(t *testing.T) {
	p := start(t)
	for destination, want := range map[string][3]string{
		`null`:                {"400", "InvalidResourceFieldValue", "destination"},
		`{"sinkType":"HTTP"}`: {"400", "InvalidResourceFieldValue", "url"},
		`{"sinkType":"ELASTICSEARCH","url":"https://x.example"}`:      {"400", "InvalidResourceFieldValue", "index"},
		`{"sinkType":"KAFKA","hosts":["x.example:9092"],"topic":"t"}`: {"400", "UnsupportedResourceFieldValue", "KAFKA"},
	} {
		status, err := strconv.Atoi(want[0])
		if err != nil {
			t.Fatal(err)
		}
		p.Refused(status, want[1], want[2], "PUT", "/api/v2/servers/"+p.server+"/services/"+p.service, fmt.Sprintf(`{"type":"DHCPActivityService","enabled":true,`+
			`"maximumBufferedEvents":3,"dhcpv4Enabled":true,"dhcpv6Enabled":false,"destination":%s}`, destination))
	}
	p.sends(`{"sinkType":"HTTP","url":"https://x.example/a","token":"secret"}`, "")
	for destination, field := range map[string]string{`{"sinkType":"HTTP","url":"https://y.example/a"}`: "token",
		`{"sinkType":"HTTP","url":"https://x.example/a","caCertificate":"x"}`: "caCertificate"} {
		p.Refused(400, "InvalidResourceFieldValue", field, "PUT", "/api/v2/servers/"+p.server+"/services/"+p.service,
			fmt.Sprintf(`{"type":"DHCPActivityService","enabled":true,"maximumBufferedEvents":3,"dhcpv4Enabled":true,"dhcpv6Enabled":false,`+
				`"destination":%s}`, destination))
	}
	p.sends(`{"sinkType":"HTTP","url":"https://x.example/b"}`, "")
	p.Verify()
}

// TestActivityVerifiesCertificates checks that a destination with a certificate of an unknown authority gets nothing, unless the
// certificate is given, or is not verified.
func TestActivityVerifiesCertificates(t *testing.T) {
	p := start(t)
	got := make(chan string, 100)
	to := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.URL.Path }))
	t.Cleanup(to.Close)
	to.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	p.sends(`{"sinkType":"HTTP","url":"`+to.URL+`/refused"}`, "")
	p.report(p.record(1, dhcplease.Begin, one))
	apitest.Eventually(t, "the certificate is refused", func() bool { return p.counted("failed") > 0 })
	p.sends(`{"sinkType":"HTTP","url":"`+to.URL+`/unverified","certificateVerificationEnabled":false}`, "")
	receive := func(want string) {
		t.Helper()
		select {
		case path := <-got:
			if path != want {
				t.Errorf("the receiver gets %s, want %s", path, want)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("nothing arrives at %s", want)
		}
	}
	receive("/unverified")
	authority, err := json.Marshal(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: to.Certificate().Raw})))
	if err != nil {
		t.Fatal(err)
	}
	p.sends(`{"sinkType":"HTTP","url":"`+to.URL+`/trusted","caCertificate":`+string(authority)+`}`, "")
	p.report(p.record(2, dhcplease.Release, one))
	receive("/trusted")
	port := to.URL[strings.LastIndex(to.URL, ":"):]
	p.sends(`{"sinkType":"HTTP","url":"https://localhost`+port+`/unnamed","hostnameVerificationEnabled":false,"caCertificate":`+
		string(authority)+`}`, "")
	p.report(p.record(3, dhcplease.Begin, one))
	receive("/unnamed")
}
