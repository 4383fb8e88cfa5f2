package test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// network is an isolated network: a service point at 10.77.0.2, and behind its gateway 10.77.0.1 a resolver 203.0.113.53, a site
// 203.0.113.80, a proxy and a manager. It has no route to other networks.
type network struct {
	t                  *testing.T
	sp, gw             string
	sp0                string // the service point's link
	gw0                string
	proxied, tunnelled atomic.Int64
}

const proxyPassword = "s3cret/with?odd&bytes"

func newNetwork(t *testing.T, name string) *network {
	t.Helper()
	id := fmt.Sprint(name, os.Getpid())
	n := &network{t: t, sp: "ptl-sp-" + id, gw: "ptl-gw-" + id, sp0: "s0", gw0: "g0"}
	skip := func(why string) {
		if os.Getenv("CI") == "true" {
			t.Fatalf("no network of our own: %s", why)
		}
		t.Skipf("no network of our own: %s", why)
	}
	if os.Geteuid() != 0 {
		skip("it takes root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		skip("ip (iproute2) is not installed")
	}
	if out, err := exec.Command("ip", "netns", "add", n.sp).CombinedOutput(); err != nil {
		skip(fmt.Sprintf("ip netns add: %s", out))
	}
	t.Cleanup(func() {
		for _, ns := range []string{n.sp, n.gw} {
			if out, err := exec.Command("ip", "netns", "del", ns).CombinedOutput(); err != nil {
				t.Errorf("ip netns del: %s", out)
			}
		}
	})
	n.ip("netns", "add", n.gw)
	n.ip("link", "add", n.sp0, "netns", n.sp, "type", "veth", "peer", "name", n.gw0, "netns", n.gw)
	for _, line := range []string{
		n.sp + " addr add 10.77.0.2/24 dev " + n.sp0, n.sp + " link set lo up", n.sp + " link set " + n.sp0 + " up",
		n.sp + " route add default via 10.77.0.1",
		n.gw + " addr add 10.77.0.1/24 dev " + n.gw0, n.gw + " link set lo up", n.gw + " link set " + n.gw0 + " up",
		n.gw + " addr add 203.0.113.53/32 dev lo", n.gw + " addr add 203.0.113.80/32 dev lo",
	} {
		n.runIP(strings.Fields(line)...)
	}
	return n
}

func (n *network) ip(args ...string) {
	n.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		n.t.Fatalf("ip %v: %s", args, out)
	}
}

// runIP runs ip inside a namespace.
func (n *network) runIP(args ...string) {
	n.t.Helper()
	n.ip(append([]string{"-n"}, args...)...)
}

// inside runs fn with its thread in a namespace, so that its sockets belong to the namespace.
func inside(namespace string, fn func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		f, err := os.Open("/var/run/netns/" + namespace)
		if err == nil {
			err = unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
			_ = f.Close()
		}
		if err == nil {
			err = fn()
		}
		result <- err
	}()
	return <-result
}

// serveAt serves HTTP in the gateway's namespace.
func (n *network) serveAt(address string, h http.HandlerFunc) {
	n.t.Helper()
	var l net.Listener
	if err := inside(n.gw, func() (err error) { l, err = net.Listen("tcp", address); return err }); err != nil {
		n.t.Fatal(err)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: time.Second}
	go func() { _ = s.Serve(l) }()
	n.t.Cleanup(func() { _ = s.Close() })
}

// tunnel forwards data between a client of the proxy and the manager.
func (n *network) tunnel(w http.ResponseWriter, host string) {
	var there net.Conn
	if err := inside(n.gw, func() (err error) { there, err = net.DialTimeout("tcp", host, time.Second); return err }); err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer func() { _ = there.Close() }()
	w.WriteHeader(http.StatusOK)
	here, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	n.tunnelled.Add(1)
	n.t.Cleanup(func() { _ = here.Close() })
	go func() {
		_, _ = io.Copy(there, buffered)
		_ = there.Close()
	}()
	_, _ = io.Copy(here, there)
	_ = here.Close()
}

// proxy forwards requests of its only user, to the site and the manager only.
func (n *network) proxy(w http.ResponseWriter, r *http.Request) {
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte("harbour:"+proxyPassword))
	if r.Header.Get("Proxy-Authorization") != want {
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	if r.Method == http.MethodConnect && r.Host == "10.77.0.1:8443" {
		n.tunnel(w, r.Host)
		return
	}
	if r.URL.Host != "203.0.113.80" {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	n.proxied.Add(1)
	w.WriteHeader(http.StatusNoContent)
}

// get reads a document of the service point from inside its namespace.
func (n *network) get(url string) (text string, err error) {
	err = inside(n.sp, func() error {
		conn, err := net.DialTimeout("tcp", strings.Split(strings.TrimPrefix(url, "http://"), "/")[0], 5*time.Second)
		if err != nil {
			return err
		}
		h := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true,
			DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}}
		rs, err := h.Get(url)
		if err != nil {
			return err
		}
		defer func() { _ = rs.Body.Close() }()
		data, err := io.ReadAll(rs.Body)
		text = string(data)
		return err
	})
	return text, err
}

// wants waits until the diagnostics contain all parts.
func (n *network) wants(what string, parts ...string) {
	n.t.Helper()
	var last string
	if !until(func() bool {
		text, err := n.get("http://10.77.0.2:8083/api/v1/diagnostics")
		last = fmt.Sprint(text, err)
		for _, part := range parts {
			if !strings.Contains(text, part) {
				return false
			}
		}
		return true
	}) {
		n.t.Fatalf("%s: the diagnostics never showed %v:\n%s", what, parts, last)
	}
}

// TestProbesInANetworkNamespace checks real probes in an isolated network. A link is cut and restored, and a route is deleted and added.
// The proxy's password must not appear anywhere.
func TestProbesInANetworkNamespace(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, "probes")
	n.serveAt("10.77.0.1:3128", n.proxy)
	n.serveAt("203.0.113.80:80", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	dir := t.TempDir()
	exec4 := func(ns string, args ...string) []string {
		return append([]string{"ip", "netns", "exec", ns, binary}, args...)
	}
	data := filepath.Join(dir, "data")
	manager, err := launch(filepath.Join(dir, "manager.out"), append(os.Environ(), "PORTOLAN_ADMIN_PASSWORD=a-long-password"), "",
		exec4(n.gw, "serve", "--data", data, "--listen", "127.0.0.1:8080", "--checkin-listen", "10.77.0.1:8443")...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = manager.signal(syscall.SIGKILL) })
	if !until(func() bool { return strings.Contains(manager.text(), "msg=serving") }) {
		t.Fatal(manager.text())
	}
	token, err := exec.Command(binary, "token", "create", "--data", data, "--name", "t").Output()
	if err != nil {
		t.Fatal(err)
	}
	create := exec.Command("ip", exec4(n.gw, "fleet", "create", "--json", "edge")[1:]...)
	create.Env = append(os.Environ(), "PORTOLAN_TOKEN="+strings.TrimSpace(string(token)))
	out, err := create.Output()
	var created struct{ RegistrationKey, RegistrationEndpoint string }
	if err != nil || json.Unmarshal(out, &created) != nil {
		t.Fatalf("%v %s", err, out)
	}
	passwordFile := filepath.Join(dir, "proxy-password")
	if err := os.WriteFile(passwordFile, []byte(proxyPassword+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	agent, err := launch(filepath.Join(dir, "agent.out"), append(os.Environ(), "PORTOLAN_REGISTRATION_KEY="+created.RegistrationKey), "",
		exec4(n.sp, "--log-level", "debug", "agent", "--registration-endpoint", created.RegistrationEndpoint, "--state",
			filepath.Join(dir, "state"),
			"--variant", "v4", "--http-proxy", "http://harbour@10.77.0.1:3128", "--http-proxy-password-file", passwordFile,
			"--ping-target", "203.0.113.53", "--http-target", "http://203.0.113.80/", "--probe-interval", "200ms")...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = agent.signal(syscall.SIGKILL) })

	good := []string{`"localIpStatus":"OK"`, `"localNetworkStatus":"OK"`, `"internetPingStatus":"OK"`, `"internetHttpStatus":204`,
		`"fleetMgmtEndpointStatus":200`, `"fleetMgmtEndpointErrorMessage":""`, `"state":"REGISTERED"`, `"connectionStatus":"CONNECTED"`,
		`"status":"HEALTHY"`,
		`"corporateHttpProxy":{"host":"10.77.0.1","port":"3128","proxyPasswordIsSet":true,"scheme":"http","user":"harbour"}`,
		`"addresses":[{"type":"PRIMARY","ipAddress":"10.77.0.2"}]`}
	n.wants("at first", good...)
	if n.proxied.Load() == 0 {
		t.Error("the site was not asked through the proxy")
	}
	if n.tunnelled.Load() == 0 {
		t.Error("the manager was not reached through the proxy")
	}
	instances := func() string {
		list := exec.Command("ip", exec4(n.gw, "fleet", "list", "--json")[1:]...)
		list.Env = create.Env
		out, err := list.Output()
		return fmt.Sprint(string(out), err)
	}
	if !until(func() bool {
		return strings.Contains(instances(), `"ipv4CIDRAddress":"10.77.0.2/24","ipv4GatewayAddress":"10.77.0.1"`)
	}) {
		t.Errorf("the manager does not know the node: %s", instances())
	}

	// The link is cut: all probes fail with a reason.
	n.runIP(n.gw, "link", "set", n.gw0, "down")
	n.wants("with the link cut", `"localIpStatus":"FAILED"`, `"localNetworkStatus":"FAILED"`, `"internetPingStatus":"FAILED"`,
		`"internetHttpStatus":0`,
		`"fleetMgmtEndpointStatus":0`, `"status":"UNHEALTHY"`)
	n.runIP(n.gw, "link", "set", n.gw0, "up")
	n.wants("with the link restored", good...)

	// The default route is deleted: the manager on the link stays reachable, other targets do not.
	n.runIP(n.sp, "route", "del", "default")
	n.wants("without a route", `"localIpStatus":"OK"`, `"localNetworkStatus":"FAILED"`, `"internetPingStatus":"FAILED"`,
		`"fleetMgmtEndpointStatus":200`)
	if !strings.Contains(agent.text(), "no IPv4 default route exists") {
		t.Errorf("the log has no reason:\n%s", agent.text())
	}
	n.runIP(n.sp, "route", "add", "default", "via", "10.77.0.1")
	n.wants("with the route restored", good...)

	// The password is only in its file.
	diagnostics, err := n.get("http://10.77.0.2:8083/api/v1/diagnostics")
	if err != nil {
		t.Fatal(err)
	}
	arguments, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", agent.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	state := ""
	if err := filepath.WalkDir(filepath.Join(dir, "state"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		state += string(text)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for place, text := range map[string]string{"diagnostics": diagnostics, "log": agent.text(), "arguments": string(arguments), "state": state,
		"manager's log": manager.text(), "fleet API": instances()} {
		if strings.Contains(text, "s3cret") {
			t.Errorf("the proxy's password is in the %s", place)
		}
	}
	if err := agent.signal(syscall.SIGTERM); err != nil {
		t.Errorf("the agent ends with %v:\n%s", err, agent.text())
	}
}
