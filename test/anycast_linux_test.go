package test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	dns "portolan/internal/base/dnsmsg"
)

// anycastNetwork is a network with a manager, a router and a service point.
type anycastNetwork struct {
	*network
	dir, data, token       string
	manager, agent, router *process
}

// start starts a program in a namespace.
func (n *anycastNetwork) start(namespace, name string, env []string, args ...string) *process {
	n.t.Helper()
	p, err := launch(filepath.Join(n.dir, name+".out"), append(os.Environ(), env...), "",
		append([]string{"ip", "netns", "exec", namespace}, args...)...)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = p.signal(syscall.SIGKILL) })
	return p
}

func newAnycastNetwork(t *testing.T) *anycastNetwork {
	t.Helper()
	n := &anycastNetwork{network: newNetwork(t, "anycast"), dir: t.TempDir()}
	n.data = filepath.Join(n.dir, "data")
	n.manager = n.start(n.gw, "manager", []string{"PORTOLAN_ADMIN_PASSWORD=a-long-password"}, binary, "serve", "--data", n.data, "--listen",
		"127.0.0.1:8080", "--checkin-listen", "10.77.0.1:8443")
	if !until(func() bool { return strings.Contains(n.manager.text(), "msg=serving") }) {
		t.Fatal(n.manager.text())
	}
	token, err := exec.Command(binary, "token", "create", "--data", n.data, "--name", "t").Output()
	if err != nil {
		t.Fatal(err)
	}
	n.token = strings.TrimSpace(string(token))
	n.router = n.start(n.gw, "router", []string{routerVariable + "=10.77.0.1 10.77.0.2"}, os.Args[0])
	text, err := n.fleet("create", "--json", "edge")
	var created struct{ RegistrationKey, RegistrationEndpoint string }
	if err != nil || json.Unmarshal([]byte(text), &created) != nil {
		t.Fatalf("%v %s", err, text)
	}
	n.agent = n.start(n.sp, "agent", []string{"PORTOLAN_REGISTRATION_KEY=" + created.RegistrationKey}, binary, "agent",
		"--registration-endpoint", created.RegistrationEndpoint, "--state", filepath.Join(n.dir, "state"), "--variant", "v4", "--ping-target",
		"off",
		"--http-target", "off", "--gateway", "off")
	return n
}

// fleet runs portolan fleet on the manager's side.
func (n *anycastNetwork) fleet(args ...string) (string, error) {
	c := exec.Command("ip", append([]string{"netns", "exec", n.gw, binary, "fleet"}, args...)...)
	c.Env = append(os.Environ(), "PORTOLAN_TOKEN="+n.token)
	out, err := c.CombinedOutput()
	return string(out), err
}

// file writes a JSON file and returns its path.
func (n *anycastNetwork) file(name, text string) string {
	n.t.Helper()
	path := filepath.Join(n.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		n.t.Fatal(err)
	}
	return path
}

// has waits until the router's last message about the address reports a route, or no route. It returns the time of the message.
func (n *anycastNetwork) has(route bool) time.Time {
	n.t.Helper()
	var at time.Time
	if !until(func() bool {
		last := ""
		for line := range strings.Lines(n.router.text()) {
			if strings.Contains(line, " 198.51.100.53/32") {
				last = line
			}
		}
		stamp, rest, _ := strings.Cut(strings.TrimSpace(last), " ")
		at, _ = time.Parse(time.RFC3339Nano, stamp)
		return route && rest == "+ 198.51.100.53/32 10.77.0.2" || !route && !strings.HasPrefix(rest, "+")
	}) {
		n.t.Fatalf("that the router has a route is never %t:\n%s\n%s", route, n.router.text(), n.agent.text())
	}
	return at
}

// lists waits until the list of applications contains a text.
func (n *anycastNetwork) lists(text string) {
	n.t.Helper()
	var last string
	if !until(func() bool { last, _ = n.fleet("applications", "edge"); return strings.Contains(last, text) }) {
		n.t.Fatalf("the applications never were %q:\n%s\n%s", text, last, n.agent.text())
	}
}

// TestAnycastInANetworkNamespace checks that the address of a healthy resolver is announced to a router. The route is withdrawn at once
// when the resolver becomes unhealthy or is killed, or when the service point ends.
func TestAnycastInANetworkNamespace(t *testing.T) {
	t.Parallel()
	n := newAnycastNetwork(t)
	up := &upstream{address: "203.0.113.53:53"}
	start := func() {
		if err := inside(n.gw, func() error { up.start(t); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	start()
	defer func() { up.stop() }()
	n.runIP(n.gw, "route", "add", "198.51.100.53/32", "via", "10.77.0.2")
	configuration := n.file("resolver.json", `{"listen":[{"address":"198.51.100.53"}],"upstreams":[{"address":"203.0.113.53"}]}`)
	deploy := []string{"deploy", "edge", "dns-resolver-service", "--configuration", configuration, "--anycast", "198.51.100.53"}
	if text, err := n.fleet(deploy...); err == nil || !strings.Contains(text, "anycastAddresses") {
		t.Errorf("without a router to be told of it, an address is taken: %s", text)
	}
	settings := n.file("anycast.json", `{"protocol":"BGP","autonomousSystemNumber":65001,
		"neighbors":[{"address":"10.77.0.1","autonomousSystemNumber":65000,"authenticationPassword":"a password"}]}`)
	if text, err := n.fleet("anycast", "edge", settings); err != nil || strings.Contains(text, "a password") ||
		!strings.Contains(text, `"authenticationPasswordIsSet": true`) {
		t.Fatalf("the settings are %v %s", err, text)
	}
	id, err := n.fleet(deploy...)
	if err != nil {
		t.Fatal(id)
	}
	id = strings.TrimSpace(id)
	n.has(true)
	n.lists("198.51.100.53 up")
	if err := inside(n.gw, func() error {
		c, err := net.Dial("udp", "198.51.100.53:53")
		if err != nil {
			return err
		}
		q := new(dns.Msg)
		q.SetQuestion("quay.example.", dns.TypeA)
		r, _, err := (&dns.Client{Timeout: 5 * time.Second}).ExchangeWithConn(q, &dns.Conn{Conn: c})
		if err == nil && len(r.Answer) != 1 {
			err = fmt.Errorf("the answer is %v", r)
		}
		return err
	}); err != nil {
		t.Errorf("at the anycast address: %v", err)
	}
	if text, err := n.get("http://10.77.0.2:8083/api/v1/diagnostics"); err != nil || !strings.Contains(text,
		`{"type":"ANYCAST","ipAddress":"198.51.100.53","isUseByAppId":"`+id+`","isUp":true,"interfaceName":"lo","inUseByServiceInstanceId":"`+id+`"}`) ||
		!strings.Contains(text, `"anycastStatus":{"status":"enabled","protocol":"bgp","ospf":{"status":"NOT_CONFIGURED"`) {
		t.Errorf("the diagnostics are %v %s", err, text)
	}
	if text, err := n.fleet("anycast", "edge", "off"); err == nil || !strings.Contains(text, "198.51.100.53") {
		t.Errorf("routers may not be told any more though there is an address: %s", text)
	}

	up.stop()
	gone := n.has(false)
	n.lists("198.51.100.53 down")
	if text, err := n.fleet("events", "edge"); err != nil || strings.Count(text, "/anycast ") != 2 || !strings.Contains(text,
		"198.51.100.53") {
		t.Errorf("of the address the events say %v %s", err, text)
	}
	for line := range strings.Lines(n.agent.text()) {
		if _, rest, found := strings.Cut(line, "time="); found && strings.Contains(line, "status=UNHEALTHY") {
			stamp, _, _ := strings.Cut(rest, " ")
			if at, err := time.Parse(time.RFC3339Nano, stamp); err == nil {
				t.Logf("withdrawn %v after it was unhealthy", gone.Sub(at))
				if gone.Sub(at) > 8*time.Second { // the router's hold time would have expired by then
					t.Error("the router was not told")
				}
			}
		}
	}
	start()
	n.has(true)
	p := &fleetPoint{t: t, state: filepath.Join(n.dir, "state")}
	killed := time.Now()
	if err := syscall.Kill(p.pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if !until(func() bool { return strings.Count(n.router.text(), " - 198.51.100.53/32") == 2 }) {
		t.Errorf("the address of a resolver that was killed is not withdrawn:\n%s", n.router.text())
	}
	t.Logf("withdrawn within %v of a kill", time.Since(killed))
	n.has(true)

	// The agent adds the address again if it disappears, as after a power failure.
	shows := func() string {
		out, err := exec.Command("ip", "-n", n.sp, "addr", "show", "dev", "lo").CombinedOutput()
		return fmt.Sprint(string(out), err)
	}
	n.runIP(n.sp, "addr", "del", "198.51.100.53/32", "dev", "lo")
	if !until(func() bool { return strings.Contains(shows(), "198.51.100.53/32") }) {
		t.Errorf("an address that has gone does not come back:\n%s", n.agent.text())
	}
	n.has(true)

	if err := n.agent.signal(syscall.SIGTERM); err != nil {
		t.Errorf("the agent ends with %v:\n%s", err, n.agent.text())
	}
	n.has(false)
	if strings.Contains(shows(), "198.51.100.53") {
		t.Errorf("the address stays: %s", shows())
	}
}
