package dhcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"portolan/internal/testkit/peers"
	"portolan/internal/wire/dhcpdata"
)

// serveFolder is the environment variable with the folder of TestServe6.
const serveFolder = "PORTOLAN_TEST_SERVE6"

// manyAddresses is the content of units6 with more addresses and prefixes.
func manyAddresses(t testing.TB) dhcpdata.Units {
	t.Helper()
	u := units6(t)
	interval := func(first, last string) []dhcpdata.Interval {
		return []dhcpdata.Interval{{First: netip.MustParseAddr(first), Last: netip.MustParseAddr(last)}}
	}
	u[dhcpdata.NetworkUnit(40)] = unit(t, dhcpdata.NetworkUnit(40),
		dhcpdata.Network{ID: 40, Prefix: netip.MustParsePrefix("2001:db8:1::/48")},
		dhcpdata.Pool{ID: 41, Ranges: interval("2001:db8:1::1:0", "2001:db8:1::1000:ffff")},
		dhcpdata.Pool{ID: 42, DelegatedLength: 64, Ranges: interval("2001:db8:1:8000::", "2001:db8:1:ffff:ffff:ffff:ffff:ffff")},
		dhcpdata.Option{V6: true, Code: 23, Name: "dns-servers", Value: dhcpdata.Hex(net.ParseIP("2001:db8::53")),
			From: dhcpdata.Source{Level: dhcpdata.AtNetwork, ID: 40}})
	relayedNetworks(t, u)
	return u
}

// TestServe6 is not a test: TestClients6 and TestKeaRatio6 run it as a server in a network of its own. It ends with its input.
func TestServe6(t *testing.T) {
	dir := os.Getenv(serveFolder)
	if dir == "" {
		t.Skip("a helper of TestClients6")
	}
	s := newService(dir, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if s.failed != nil {
		t.Fatal(s.failed)
	}
	deliver(t, func(text []byte) error { return s.ApplyContent(bytes.NewReader(text)) }, manyAddresses(t))
	if err := s.Configure(json.RawMessage(`{"listen":["127.0.0.1:6767"],"listen6":["[::]:547"]}`)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(os.Stderr, "SERVING")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// run6 runs a program and returns its output. A client that waits for ever, as on a busy machine, is started again.
func run6(t testing.TB, args ...string) string {
	t.Helper()
	for tries := 3; ; tries-- {
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
		c := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // the programs of the test
		c.WaitDelay = 2 * time.Second                       // a client that goes to the background keeps the output open
		out, err := c.CombinedOutput()
		late := ctx.Err() != nil
		cancel()
		switch {
		case err == nil || errors.Is(err, exec.ErrWaitDelay):
			return string(out)
		case !late || tries == 1:
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// TestClients6 lets dhclient and dhcpcd lease addresses and prefixes of a server on another machine: two network namespaces with a link.
func TestClients6(t *testing.T) {
	t.Parallel()
	dhclient, dhcpcd := peers.Program(t, "dhclient"), peers.Program(t, "dhcpcd")
	ip, server, client := link6(t)
	stop := serve6(t, ip, server)
	defer func() { t.Logf("CPU time of the server: %v", stop()) }()
	in := func(args ...string) []string { return append([]string{ip, "netns", "exec", client}, args...) }
	dir := t.TempDir()
	leases := filepath.Join(dir, "leases")
	arguments := []string{"-6", "-N", "-P", "-D", "LL", "-sf", "/bin/true", "-lf", leases, "-pf", filepath.Join(dir, "pid"), "c6"}
	run6(t, in(append([]string{dhclient, "-v", "-1"}, arguments...)...)...)
	text, err := os.ReadFile(leases)
	if err != nil {
		t.Fatal(err)
	}
	found := func(pattern string) string {
		t.Helper()
		m := regexp.MustCompile(pattern).FindSubmatch(text)
		if m == nil {
			t.Fatalf("dhclient has no %s:\n%s", pattern, text)
		}
		return string(m[1])
	}
	address, prefix := found(`iaaddr ([0-9a-f:]+) `), found(`iaprefix ([0-9a-f:/]+) `)
	if !netip.MustParsePrefix("2001:db8:1::/96").Contains(netip.MustParseAddr(address)) ||
		!netip.MustParsePrefix("2001:db8:1:8000::/49").Contains(netip.MustParsePrefix(prefix).Addr()) || !strings.HasSuffix(prefix, "/64") {
		t.Errorf("dhclient has %s and %s", address, prefix)
	}
	if dns := found(`option dhcp6.name-servers ([0-9a-f:]+);`); dns != "2001:db8::53" {
		t.Errorf("the name server of dhclient is %s", dns)
	}
	run6(t, in(append([]string{dhclient, "-v", "-r"}, arguments...)...)...)
	// The mounts are those of "ip netns exec" alone, so dhcpcd finds no files of other runs.
	out := run6(t, in("sh", "-c", "mount -t tmpfs tmpfs /var/lib/dhcpcd && mount -t tmpfs tmpfs /run && exec "+dhcpcd+
		" -6 -1 -B -d -t 20 --noipv6rs --ia_na=1 --ia_pd=2 -c /bin/true c6")...)
	if !strings.Contains(out, "2001:db8:1::") || !strings.Contains(out, "/64") {
		t.Errorf("dhcpcd has no lease:\n%s", out)
	}
	t.Logf("dhclient had %s and %s", address, prefix)
}

// link6 creates two network namespaces with a link: the interface s6 of the server with the address 2001:db8:1::1, and c6 of the client.
// The test is skipped without root.
func link6(t testing.TB) (ip, server, client string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces require root")
	}
	ip = peers.Program(t, "ip")
	server, client = namespaceName("h6-s"), namespaceName("h6-c")
	if out, err := exec.CommandContext(t.Context(), ip, "netns", "add", server).CombinedOutput(); err != nil { //nolint:gosec // as above
		t.Skipf("no network namespaces: %s", out)
	}
	run6(t, ip, "netns", "add", client)
	t.Cleanup(func() {
		for _, name := range []string{server, client} {
			if out, err := exec.Command(ip, "netns", "del", name).CombinedOutput(); err != nil { //nolint:gosec // as above
				t.Errorf("%s", out)
			}
		}
	})
	for _, at := range []string{server, client} { // a link-local address is ready at once
		run6(t, ip, "netns", "exec", at, "sh", "-c", "echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad")
	}
	run6(t, ip, "link", "add", "s6", "netns", server, "type", "veth", "peer", "name", "c6", "netns", client)
	for _, line := range []string{"-n " + server + " addr add 2001:db8:1::1/64 dev s6 nodad", "-n " + server + " link set lo up",
		"-n " + server + " link set s6 up", "-n " + client + " link set lo up", "-n " + client + " link set c6 up"} {
		run6(t, append([]string{ip}, strings.Fields(line)...)...)
	}
	out := ""
	defer func() {
		if t.Failed() {
			t.Log(out)
		}
	}()
	for _, at := range []string{server, client} {
		waitFor(t, func() bool {
			out = run6(t, ip, "-n", at, "-6", "addr")
			return strings.Count(out, "fe80:") == 1 && !strings.Contains(out, "tentative")
		})
	}
	return ip, server, client
}

// serve6 runs the server in a network namespace, and returns a function that ends it and returns its CPU time.
func serve6(t testing.TB, ip, namespace string) (stop func() time.Duration) {
	t.Helper()
	c := exec.CommandContext(t.Context(), ip, "netns", "exec", namespace, os.Args[0], "-test.run", "^TestServe6$") //nolint:gosec // this test
	c.Env = append(os.Environ(), serveFolder+"="+t.TempDir())
	log := filepath.Join(t.TempDir(), "log")
	f, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	c.Stdout, c.Stderr = f, f
	input, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	text := func() string {
		data, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	waitFor(t, func() bool { return strings.Contains(text(), "SERVING") || strings.Contains(text(), "FAIL") })
	return func() time.Duration {
		_ = input.Close()
		done := make(chan error, 1)
		go func() { done <- c.Wait() }()
		select {
		case err = <-done:
		case <-time.After(20 * time.Second):
			err = c.Process.Kill()
		}
		if err != nil || t.Failed() {
			t.Errorf("the server ended: %v\n%s", err, text())
		}
		return c.ProcessState.SystemTime() + c.ProcessState.UserTime()
	}
}
