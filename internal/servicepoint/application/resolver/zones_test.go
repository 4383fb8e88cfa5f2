package resolver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/testkit/freeport"
)

// answering starts a server that answers each A query with an address, and returns its port.
func answering(t *testing.T, address string) string {
	t.Helper()
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &dns.Server{PacketConn: packets, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg)
		m.SetReply(r)
		if r.Question[0].Qtype == dns.TypeA {
			m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: r.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60},
				A: net.ParseIP(address)}}
		}
		_ = w.WriteMsg(m)
	})}
	go func() { _ = s.ActivateAndServe() }()
	t.Cleanup(func() { _ = s.Shutdown() })
	_, port, _ := strings.Cut(packets.LocalAddr().String(), ":")
	return port
}

// lines is a log that is safe for concurrent use.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestZonesAndDNS64 checks that names are resolved by the upstreams of their zone, that DNS64 adds IPv6 addresses, and that queries are
// logged.
func TestZonesAndDNS64(t *testing.T) {
	everywhere, corporate := answering(t, "192.0.2.1"), answering(t, "10.0.0.1")
	tap, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tapped := make(chan error, 1)
	go func() {
		c, err := tap.Accept()
		if err == nil {
			_, err = c.Read(make([]byte, 4)) // it says that it is one
			_ = c.Close()
		}
		tapped <- err
	}()
	defer func() { _ = tap.Close() }()
	var log lines
	app := Kind().New(slog.New(slog.NewTextHandler(&log, nil)))
	defer func() {
		if err := app.Close(); err != nil {
			t.Error(err)
		}
	}()
	port := freeport.Reserve(t).Port()
	configuration := json.RawMessage(fmt.Sprintf(`{"listen":[{"address":"127.0.0.1","port":%d}],"upstreams":[{"address":"127.0.0.1:%s"}],`+
		`"zones":[{"name":"corp.example.","upstreams":["127.0.0.1:%s"]}],"dns64":"64:ff9b::/96","queryLog":{"every":2},"dnstap":%q}`, port,
		everywhere, corporate, tap.Addr()))
	if err := Kind().Check(configuration); err != nil {
		t.Fatal(err)
	}
	if err := app.Configure(configuration); err != nil {
		t.Fatal(err)
	}
	ask := func(name string, kind uint16) string {
		t.Helper()
		q := new(dns.Msg)
		q.SetQuestion(name, kind)
		a, _, err := (&dns.Client{Timeout: 5 * time.Second}).Exchange(q, fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil || len(a.Answer) != 1 {
			return fmt.Sprint(a, err)
		}
		return strings.TrimPrefix(a.Answer[0].String(), a.Answer[0].Header().String())
	}
	for _, c := range []struct {
		name string
		kind uint16
		want string
	}{
		{"quay.example.", dns.TypeA, "192.0.2.1"}, {"crane.corp.example.", dns.TypeA, "10.0.0.1"},
		{"Crane.Deep.corp.example.", dns.TypeA, "10.0.0.1"},
		{"quay.example.", dns.TypeAAAA, "64:ff9b::c000:201"}, {"crane.corp.example.", dns.TypeAAAA, "64:ff9b::a00:1"},
	} {
		if got := ask(c.name, c.kind); got != c.want {
			t.Errorf("%s is %s, not %s", c.name, got, c.want)
		}
	}
	if got := strings.Count(log.String(), "msg=query"); got < 2 || !strings.Contains(log.String(), "name=crane.corp.example.") ||
		!strings.Contains(log.String(), "code=NOERROR") {
		t.Errorf("%d queries are logged: %s", got, log.String())
	}
	select {
	case err := <-tapped:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("nothing is sent to dnstap")
	}
}

// TestZonesAreChecked checks that invalid settings are rejected with the name of the field.
func TestZonesAreChecked(t *testing.T) {
	for field, more := range map[string]string{
		"zones[0].name":         `"zones":[{"name":"a b","upstreams":["127.0.0.9"]}]`,
		"zones[1].name":         `"zones":[{"name":"a.example","upstreams":["127.0.0.9"]},{"name":"A.example.","upstreams":["127.0.0.9"]}]`,
		"zones[0].upstreams":    `"zones":[{"name":"a.example"}]`,
		"zones[0].upstreams[0]": `"zones":[{"name":"a.example","upstreams":["127.0.0.1:53"]}]`,
		"zones[0].upstreams[1]": `"zones":[{"name":"a.example","upstreams":["127.0.0.9","quay"]}]`,
		"dns64":                 `"dns64":"64:ff9b::/95"`,
		"queryLog.every":        `"queryLog":{"every":0}`,
		"dnstap":                `"dnstap":"quay:6000"`,
	} {
		err := Kind().Check(json.RawMessage(`{"listen":[{"address":"127.0.0.1"}],"upstreams":[{"address":"127.0.0.9"}],` + more + `}`))
		if err == nil || !strings.Contains(err.Error(), "configuration."+field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// TestPoisonedAnswers checks that answers from another sender and unrelated records in an answer are ignored.
func TestPoisonedAnswers(t *testing.T) {
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &dns.Server{PacketConn: packets, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		name := r.Question[0].Name
		forged := new(dns.Msg).SetReply(r)
		forged.Id++
		forged.Answer = rrs(t, name+" 60 IN A 198.51.100.66")
		_ = w.WriteMsg(forged)
		m := new(dns.Msg).SetReply(r)
		m.Answer = rrs(t, name+" 60 IN A 192.0.2.1")
		m.Ns = rrs(t, "test. 60 IN NS ns.crooks.test.")
		m.Extra = append(m.Extra, rrs(t, "bank.test. 60 IN A 198.51.100.66", "ns.crooks.test. 60 IN A 198.51.100.66")...)
		_ = w.WriteMsg(m)
	})}
	go func() { _ = s.ActivateAndServe() }()
	t.Cleanup(func() { _ = s.Shutdown() })
	var log lines
	_, at := startResolver(t, packets.LocalAddr().String(), &log, "")
	for range 5 {
		for _, name := range []string{"good.test.", "bank.test.", "ns.crooks.test."} {
			if got := asked(t, "udp", at, name, dns.TypeA); got != "NOERROR 192.0.2.1" {
				t.Errorf("%s is %s", name, got)
			}
		}
	}
}

// TestAliasesOutOfZones checks that aliases that lead out of a zone with its own upstreams are followed, also in loops.
func TestAliasesOutOfZones(t *testing.T) {
	far := upstream(t, "www.far.test. 60 IN CNAME host.near.test.", "two.far.test. 60 IN CNAME three.near.test.",
		"gone.far.test. 60 IN CNAME no.near.test.",
		"round.far.test. 60 IN CNAME round.near.test.", "own.far.test. 60 IN A 192.0.2.9")
	near := upstream(t, "host.near.test. 60 IN A 192.0.2.1", "three.near.test. 60 IN CNAME own.far.test.",
		"round.near.test. 60 IN CNAME round.far.test.")
	var log lines
	_, at := startResolver(t, near, &log, `,"zones":[{"name":"far.test","upstreams":["`+far+`"]}]`)
	for name, want := range map[string]string{"www.far.test.": "NOERROR host.near.test. 192.0.2.1", "own.far.test.": "NOERROR 192.0.2.9",
		"two.far.test.": "NOERROR three.near.test. own.far.test. 192.0.2.9", "gone.far.test.": "NOERROR no.near.test.",
		"host.near.test.": "NOERROR 192.0.2.1"} {
		if got := asked(t, "udp", at, name, dns.TypeA); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if got := asked(t, "udp", at, "round.far.test.", dns.TypeA); got == "nothing" || strings.Count(got, "round.") > 2*maxAliases+2 {
		t.Errorf("an alias that goes round is %s", got)
	}
	if got := asked(t, "udp", at, "www.far.test.", dns.TypeCNAME); got != "NOERROR host.near.test." {
		t.Errorf("the alias is %s", got)
	}
}
