package test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/testkit/freeport"
)

// upstream is a DNS server that answers every A query with 192.0.2.77.
type upstream struct {
	address string
	server  *dns.Server
}

func (u *upstream) start(t *testing.T) {
	t.Helper()
	packets, err := net.ListenPacket("udp", u.address)
	if err != nil {
		t.Fatal(err)
	}
	u.address = packets.LocalAddr().String()
	u.server = &dns.Server{PacketConn: packets, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg)
		m.SetReply(r)
		if r.Question[0].Qtype == dns.TypeA {
			m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: r.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60},
				A: net.IPv4(192, 0, 2, 77)}}
		}
		_ = w.WriteMsg(m) // the resolver retries
	})}
	go func() { _ = u.server.ActivateAndServe() }()
}

func (u *upstream) stop() { _ = u.server.Shutdown() }

// answers reports whether a resolver returns the upstream's answer for a name.
func answers(at, name string) bool {
	q := new(dns.Msg)
	q.SetQuestion(name, dns.TypeA)
	r, _, err := (&dns.Client{Timeout: time.Second}).Exchange(q, at)
	return err == nil && len(r.Answer) == 1 && strings.Contains(r.Answer[0].String(), "192.0.2.77")
}

// answersSoon waits until a resolver returns the upstream's answer for a name.
func answersSoon(at, name string) bool { return until(func() bool { return answers(at, name) }) }

// fleetPoint is a `portolan agent` process.
type fleetPoint struct {
	t       *testing.T
	m       *manager
	state   string
	process *process
	starts  int
	// args are additional arguments. statusAt is the address of the resolver's status.
	args     []string
	statusAt string
}

func (p *fleetPoint) start(key string) {
	p.t.Helper()
	p.starts++
	args := []string{binary, "agent", "--state", p.state, "--diagnostics-listen", "127.0.0.1:0", "--gateway", "off", "--ping-target", "off",
		"--http-target", "off"}
	args = append(args, p.args...)
	env := os.Environ()
	if key != "" {
		args = append(args, "--registration-endpoint", "https://"+p.m.door+"/enrol/v1")
		env = append(env, "PORTOLAN_REGISTRATION_KEY="+key)
	}
	var err error
	if p.process, err = launch(fmt.Sprintf("%s-%d.out", p.state, p.starts), env, "", args...); err != nil {
		p.t.Fatal(err)
	}
}

// fleet runs portolan fleet.
func (p *fleetPoint) fleet(args ...string) string {
	return p.m.portolan(append([]string{"fleet"}, append(args, "--url", "http://"+p.m.api, "--token", p.m.token)...)...)
}

// becomes waits until the list of the service point's applications contains all parts.
func (p *fleetPoint) becomes(parts ...string) {
	p.t.Helper()
	var last string
	if !until(func() bool {
		last = p.fleet("applications", "edge")
		for _, part := range parts {
			if !regexp.MustCompile(`(^|\W)` + regexp.QuoteMeta(part)).MatchString(last) { // UNHEALTHY is not HEALTHY
				return false
			}
		}
		return true
	}) {
		p.t.Fatalf("the applications never were %q:\n%s\n%s", parts, last, p.process.text())
	}
}

// configuration returns a free address and port for a resolver, and the file with its configuration.
func (p *fleetPoint) configuration(up *upstream, more string) (at, file string) {
	p.t.Helper()
	at = freeport.Reserve(p.t).String()
	host, port, err := net.SplitHostPort(at)
	if err != nil {
		p.t.Fatal(err)
	}
	file = filepath.Join(p.t.TempDir(), "resolver.json")
	text := fmt.Sprintf(`{"listen":[{"address":%q,"port":%s}],"upstreams":[{"address":%q}]%s}`, host, port, up.address, more)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return at, file
}

// pid returns the process ID of the only application.
func (p *fleetPoint) pid() (pid int) {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join(p.state, "application", "*", "pid"))
	if err != nil || len(files) != 1 {
		p.t.Fatalf("there are %v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		p.t.Fatal(err)
	}
	var started struct{ PID int }
	if err := json.Unmarshal(text, &started); err != nil {
		p.t.Fatal(err)
	}
	return started.PID
}

// confined checks the privileges of the only application. If the agent is root, the application runs as nobody, has at most the
// capabilities for low ports and raw sockets, and cannot gain any.
func (p *fleetPoint) confined() {
	p.t.Helper()
	if runtime.GOOS != "linux" {
		return
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid()))
	if err != nil {
		p.t.Fatal(err)
	}
	is := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		is[name] = strings.Join(strings.Fields(value), " ")
	}
	if is["NoNewPrivs"] != "1" {
		p.t.Errorf("it can gain privileges: NoNewPrivs is %q", is["NoNewPrivs"])
	}
	if os.Geteuid() != 0 {
		return
	}
	if is["Uid"] != "65534 65534 65534 65534" || is["Gid"] != "65534 65534 65534 65534" || is["Groups"] != "" {
		p.t.Errorf("it is user %q, group %q, of groups %q", is["Uid"], is["Gid"], is["Groups"])
	}
	const lowPorts, rawSockets = 1 << 10, 1 << 13 // CAP_NET_BIND_SERVICE, CAP_NET_RAW
	if has, err := strconv.ParseUint(is["CapEff"], 16, 64); err != nil || has&^(lowPorts|rawSockets) != 0 {
		p.t.Errorf("it has the capabilities %q", is["CapEff"])
	}
}

// hang stops the resolver by SIGSTOP and checks that it is replaced.
func (p *fleetPoint) hang(at string) {
	p.t.Helper()
	pid := p.pid()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		p.t.Fatal(err)
	}
	if !until(func() bool { return p.pid() != pid && answers(at, "five.example.") }) {
		p.t.Fatalf("a resolver that hangs is not replaced:\n%s", p.process.text())
	}
	if err := syscall.Kill(pid, 0); err == nil {
		p.t.Error("a resolver that hung is still there")
	}
	p.becomes("dns-resolver-service  HEALTHY")
}

// forget damages the agent's stored desired state and creates a new registration key. It checks that the resolver keeps running.
func (p *fleetPoint) forget(at string) {
	p.t.Helper()
	pid := p.pid()
	_ = p.process.signal(syscall.SIGKILL)
	if err := os.WriteFile(filepath.Join(p.state, "desired.json"), nil, 0o600); err != nil {
		p.t.Fatal(err)
	}
	var created struct{ RegistrationKey string }
	if err := json.Unmarshal([]byte(p.fleet("rekey", "--json", "edge")), &created); err != nil {
		p.t.Fatal(err)
	}
	p.start(created.RegistrationKey)
	p.becomes("dns-resolver-service  HEALTHY")
	if !until(func() bool { return strings.Contains(p.process.text(), "running application taken over") }) || !answers(at,
		"six.example.") || p.pid() != pid {
		p.t.Errorf("with a new registration key the resolver does not go on:\n%s", p.process.text())
	}
}

// status requests a path of the resolver's status. It returns status 0 without a response.
func (p *fleetPoint) status(path string) (status int, body string) {
	rs, err := http.Get("http://" + p.statusAt + path)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = rs.Body.Close() }()
	text, err := io.ReadAll(rs.Body)
	if err != nil {
		return 0, err.Error()
	}
	return rs.StatusCode, string(text)
}

// watched checks the status of a healthy resolver for load balancers and monitoring.
func (p *fleetPoint) watched(id string) {
	p.t.Helper()
	if status, body := p.status("/v1/status/health"); status != http.StatusOK {
		p.t.Errorf("the health of a resolver that is well is %d %s", status, body)
	}
	for path, parts := range map[string][]string{
		"/v1/status/spDiagnostics": {`"spStatus":"GOOD"`, `"desiredVersion":"n/a"`, `"query-resolving-availability":"GOOD"`, `"status-service":{`,
			`"matchesAllDomains":true`, `"lastSettingsPollingStatus":"UNCHANGED"`},
		"/v2/diagnostics": {`"status":"GOOD"`, `"applicationId":"` + id + `"`, `"name":"clientCertificateExpiration"`, `"value":"NOERROR"`,
			`"id":"customerInstanceConnection"`},
	} {
		status, body := p.status(path)
		for _, part := range parts {
			if status != http.StatusOK || !strings.Contains(body, part) {
				p.t.Errorf("%s is %d without %s: %s", path, status, part, body)
			}
		}
	}
	if status, body := p.status("/elsewhere"); status != http.StatusNotFound {
		p.t.Errorf("what there is not is %d %s", status, body)
	}
}

// TestResolverOfAServicePoint deploys a resolver. It checks that the resolver serves without manager and agent, is adopted by a restarted
// agent, and is restarted when killed. It also checks a new configuration, an upstream failure with recovery, and removal.
func TestResolverOfAServicePoint(t *testing.T) {
	t.Parallel()
	m := serve(t, "")
	p := &fleetPoint{t: t, m: m, state: filepath.Join(t.TempDir(), "state")}
	var created struct{ RegistrationKey string }
	if err := json.Unmarshal([]byte(p.fleet("create", "--json", "edge")), &created); err != nil {
		t.Fatal(err)
	}
	p.statusAt = freeport.Reserve(t).String()
	p.args = []string{"--status-listen", p.statusAt}
	p.start(created.RegistrationKey)
	t.Cleanup(func() { // ends its applications
		if err := p.process.signal(syscall.SIGTERM); err != nil {
			t.Errorf("the agent ends with %v:\n%s", err, p.process.text())
		}
	})
	up := &upstream{address: "127.0.0.1:0"}
	up.start(t)
	defer func() { up.stop() }()
	at, file := p.configuration(up, "")
	id := p.fleet("deploy", "edge", "dns-resolver-service", "--configuration", file)
	p.becomes("HEALTHY")
	if !answersSoon(at, "one.example.") {
		t.Error("the resolver does not answer")
	}
	p.watched(id)
	p.confined()

	// The resolver answers without manager and agent.
	_ = m.process.signal(syscall.SIGKILL)
	_ = p.process.signal(syscall.SIGKILL)
	if !answersSoon(at, "two.example.") {
		t.Error("without manager and agent the resolver does not answer")
	}
	p.start("")
	taken := func() bool { return strings.Contains(p.process.text(), "running application taken over") }
	if !until(taken) {
		t.Fatalf("the resolver was not taken over:\n%s", p.process.text())
	}
	_, after, _ := strings.Cut(p.process.text(), "running application taken over")
	_, after, _ = strings.Cut(after, "pid=")
	var pid int
	if _, err := fmt.Sscan(after, &pid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if !until(func() bool {
		return strings.Contains(p.process.text(), "application started") && answers(at, "three.example.")
	}) {
		t.Fatalf("a resolver that was killed does not come back:\n%s", p.process.text())
	}

	m.start()
	p.becomes("dns-resolver-service  HEALTHY")
	// The events of the time without a manager arrive later.
	if !until(func() bool {
		text := p.fleet("events", "edge")
		return strings.Contains(text, id+"/process") && strings.Contains(text, "ENDED") && strings.Contains(text, "RUNNING")
	}) {
		t.Errorf("the end of the resolver's process is not told: %s", p.fleet("events", "edge"))
	}
	p.hang(at)
	p.forget(at)
	other, file := p.configuration(up, `,"cache":{"serveStaleSeconds":60,"prefetch":true},"allow":["127.0.0.0/8"]`)
	p.fleet("deploy", "edge", id, "--configuration", file)
	if !until(func() bool { return answers(other, "four.example.") }) {
		t.Errorf("the resolver does not answer where it was configured to:\n%s", p.process.text())
	}
	if answers(at, "one.example.") {
		t.Error("the resolver answers where it did before")
	}
	up.stop()
	p.becomes("UNHEALTHY", "none of 1 upstream servers answers")
	if !answersSoon(other, "four.example.") {
		t.Error("what was asked before is not answered while the upstream is away")
	}
	if status, body := p.status("/v1/status/health"); status != http.StatusOK { // it answers from the cache
		t.Errorf("while the upstream is away, the health is %d %s", status, body)
	}
	if _, body := p.status("/v1/status/spDiagnostics"); !strings.Contains(body, `"spStatus":"BAD"`) ||
		!strings.Contains(body, `"query-resolving-availability":"BAD"`) {
		t.Errorf("while the upstream is away, diagnostics are %s", body)
	}
	if answers(other, "seven.example.") {
		t.Error("a new name is answered while the upstream is away")
	}
	up.start(t)
	p.becomes("dns-resolver-service  HEALTHY")
	if !until(func() bool { return answers(other, "seven.example.") }) {
		t.Error("a name that could not be answered once is not answered later")
	}

	if got := p.fleet("logs", "edge"); !strings.Contains(got, "CoreDNS") && !strings.Contains(got, "level=") {
		t.Errorf("the resolver's log is %q", got)
	}

	p.fleet("undeploy", "edge", id)
	p.becomes("DELETED")
	if answers(other, "four.example.") {
		t.Error("a resolver that was deleted answers")
	}
	if !until(func() bool { status, _ := p.status("/v1/status/health"); return status == 0 }) {
		t.Error("without a resolver there is a status of one")
	}
	if left, err := filepath.Glob(filepath.Join(p.state, "application", "*")); err != nil || len(left) > 0 {
		t.Errorf("a deleted application leaves %v, %v", left, err)
	}
	if got := m.check(); got != "no faults found" {
		t.Errorf("check: %s", got)
	}
}
