package dhcp

import (
	"context"
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

// lab is a set of network namespaces: a server at 10.0.0.2/16, and clients on the same link.
type lab struct {
	t              *testing.T
	server, client string
	dir            string
}

// newLab creates the namespaces. The test is skipped unless it may.
func newLab(t *testing.T) *lab {
	t.Helper()
	peers.Program(t, "ip")
	if os.Geteuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("network namespaces require root")
		}
		t.Skip("network namespaces require root")
	}
	l := &lab{t: t, dir: t.TempDir(), server: namespaceName("dhcps"), client: namespaceName("dhcpc")}
	if out, err := exec.Command("ip", "netns", "add", l.server).CombinedOutput(); err != nil {
		t.Skipf("network namespaces are not available: %s", out)
	}
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "delete", l.server).Run() })
	l.run("ip", "netns", "add", l.client)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "delete", l.client).Run() })
	l.run("ip", "link", "add", "s0", "netns", l.server, "type", "veth", "peer", "name", "c0", "netns", l.client)
	l.in(l.server, "ip", "address", "add", "10.0.0.2/16", "dev", "s0")
	for _, one := range [][2]string{{l.server, "lo"}, {l.server, "s0"}, {l.client, "lo"}, {l.client, "c0"}} {
		l.in(one[0], "ip", "link", "set", one[1], "up")
	}
	return l
}

func (l *lab) run(command ...string) string {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
	if err != nil {
		l.t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
	return string(out)
}

func (l *lab) in(namespace string, command ...string) string {
	l.t.Helper()
	return l.run(append([]string{"ip", "netns", "exec", namespace}, command...)...)
}

// serve starts a server in its namespace and waits until it serves the link.
func (l *lab) serve(u dhcpdata.Units) {
	l.t.Helper()
	child(l.t, l.dir, u, `{}`, "ip", "netns", "exec", l.server)
}

// dhclient runs dhclient in a namespace and returns the address of the newest lease.
func (l *lab) dhclient(namespace, link string, flags ...string) string {
	l.t.Helper()
	file := filepath.Join(l.dir, namespace+".leases")
	l.in(namespace, append(append([]string{peers.Program(l.t, "dhclient"), "-4", "-1", "-sf", "/bin/true", "-lf", file, "-pf",
		filepath.Join(l.dir, namespace+".pid")}, flags...), link)...)
	text, err := os.ReadFile(file)
	if err != nil {
		l.t.Fatal(err)
	}
	l.in(namespace, peers.Program(l.t, "dhclient"), "-4", "-x", "-sf", "/bin/true", "-lf", file, "-pf", filepath.Join(l.dir, namespace+".pid"),
		link)
	all := regexp.MustCompile(`fixed-address ([0-9.]+);`).FindAllStringSubmatch(string(text), -1)
	if len(all) == 0 {
		l.t.Fatalf("dhclient has no lease:\n%s", text)
	}
	return all[len(all)-1][1]
}

// udhcpc runs udhcpc at the client's link and returns its environment when it is bound.
func (l *lab) udhcpc(flags ...string) string {
	l.t.Helper()
	return l.udhcpcAt(l.client, "c0", flags...)
}

// udhcpcAt runs udhcpc in a namespace and returns its environment when it is bound.
func (l *lab) udhcpcAt(namespace, link string, flags ...string) string {
	l.t.Helper()
	script := filepath.Join(l.dir, "script")
	out := filepath.Join(l.dir, "environment")
	text := []byte("#!/bin/sh\n[ \"$1\" = bound ] && env >" + out + "\nexit 0\n")
	if err := os.WriteFile(script, text, 0o700); err != nil { //nolint:gosec // it is run
		l.t.Fatal(err)
	}
	l.in(namespace, append([]string{peers.Program(l.t, "udhcpc"), "-f", "-q", "-n", "-t", "10", "-T", "2", "-i", link, "-s", script},
		flags...)...)
	text, err := os.ReadFile(out)
	if err != nil {
		l.t.Fatal(err)
	}
	return string(text)
}

// dhcpcd runs dhcpcd in a namespace until it has a lease, and returns its report. It keeps leases in a folder of the system, which must not
// be that of an earlier run.
func (l *lab) dhcpcd(namespace, link string) string {
	l.t.Helper()
	return l.in(namespace, peers.Program(l.t, "unshare"), "-m", "sh", "-c", "mount -t tmpfs none /var/lib/dhcpcd && exec \"$@\"", "sh",
		peers.Program(l.t, "dhcpcd"), "-4", "-1", "-B", "--noarp", "-t", "20", link)
}

// TestRealClients checks that the clients of ISC, BusyBox and dhcpcd get leases on the link, the same one again, and their options.
func TestRealClients(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	dns := dhcpdata.Option{Code: 6, Name: "dns-server", Value: dhcpdata.Hex{10, 0, 0, 53},
		From: dhcpdata.Source{Level: dhcpdata.AtNetwork, ID: 7}}
	name := dhcpdata.Option{Code: 15, Name: "domain-name", Value: dhcpdata.Hex("example.com"), From: dns.From}
	l.serve(units(t, dns, name))
	first := l.dhclient(l.client, "c0")
	if first != "10.0.1.0" {
		t.Errorf("dhclient gets %s", first)
	}
	if again := l.dhclient(l.client, "c0"); again != first { // INIT-REBOOT
		t.Errorf("dhclient gets %s after %s", again, first)
	}
	text := l.udhcpc("-x", "0x3d:00424242")
	for _, want := range []string{"ip=10.0.1.1", "mask=16", "router=10.0.0.1", "dns=10.0.0.53", "domain=example.com", "lease=86400"} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("udhcpc lacks %s:\n%s", want, text)
		}
	}
	if text := l.udhcpc("-B", "-x", "0x3d:00424242"); !strings.Contains(text, "\nip=10.0.1.1\n") { // broadcast replies
		t.Errorf("udhcpc gets\n%s", text)
	}
	if out := l.dhcpcd(l.client, "c0"); !strings.Contains(out, "leased 10.0.1.") {
		t.Errorf("dhcpcd reports\n%s", out)
	}
}

// TestReservedClient checks that a client with a reservation by hardware address gets one address with any client identifier.
func TestReservedClient(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.in(l.client, "ip", "link", "set", "c0", "address", "02:00:00:00:00:09")
	l.serve(units(t))
	if a := l.dhclient(l.client, "c0"); a != "10.0.0.20" {
		t.Errorf("dhclient gets %s", a)
	}
	for _, id := range []string{"0x3d:00414141", "0x3d:00424242"} {
		if text := l.udhcpc("-x", id); !strings.Contains(text, "\nip=10.0.0.20\n") {
			t.Errorf("udhcpc gets\n%s", text)
		}
	}
}

// TestRelay checks the clients of ISC, BusyBox and dhcpcd behind a relay that adds option 82.
func TestRelay(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	far := namespaceName("dhcpf")
	l.run("ip", "netns", "add", far)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "delete", far).Run() })
	l.run("ip", "link", "add", "r0", "netns", l.client, "type", "veth", "peer", "name", "f0", "netns", far)
	l.in(l.client, "ip", "address", "add", "10.0.0.3/16", "dev", "c0")
	l.in(l.client, "ip", "address", "add", "10.9.0.1/24", "dev", "r0")
	l.in(l.client, "ip", "link", "set", "r0", "up")
	l.in(l.client, "sysctl", "-qw", "net.ipv4.ip_forward=1")
	l.in(far, "ip", "link", "set", "f0", "up")
	l.in(l.server, "ip", "route", "add", "10.9.0.0/24", "via", "10.0.0.3")
	u := units(t)
	u[dhcpdata.NetworkUnit(9)] = unit(t, dhcpdata.NetworkUnit(9),
		dhcpdata.Network{ID: 9, Prefix: netip.MustParsePrefix("10.9.0.0/24"), Gateway: netip.MustParseAddr("10.9.0.1")},
		dhcpdata.Pool{ID: 10, Ranges: []dhcpdata.Interval{{First: netip.MustParseAddr("10.9.0.50"), Last: netip.MustParseAddr("10.9.0.60")}}})
	l.serve(u)
	relay := exec.Command("ip", "netns", "exec", l.client, peers.Program(t, "dhcrelay"), "-4", "-d", "-a", "-id", "r0", "-iu", "c0",
		"10.0.0.2")
	if err := relay.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = relay.Process.Kill() // it runs until then
		_ = relay.Wait()
	})
	if a := l.dhclient(far, "f0"); a != "10.9.0.50" {
		t.Errorf("dhclient gets %s", a)
	}
	if text := l.udhcpcAt(far, "f0", "-x", "0x3d:00424242"); !strings.Contains(text, "\nip=10.9.0.51\n") {
		t.Errorf("udhcpc gets\n%s", text)
	}
	if out := l.dhcpcd(far, "f0"); !strings.Contains(out, "leased 10.9.0.52 ") {
		t.Errorf("dhcpcd reports\n%s", out)
	}
}

// TestConflictOnLink checks that an address of a machine that does not answer to pings is not offered, and abandoned.
func TestConflictOnLink(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	other := namespaceName("dhcpo")
	l.run("ip", "netns", "add", other)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "delete", other).Run() })
	// The machine is behind a bridge in the client's namespace, on the same link.
	for _, line := range []string{"ip link add b0 type bridge",
		"ip link add o1 type veth peer name o0 netns " + other, "ip link set c0 master b0",
		"ip link set o1 master b0", "ip link set b0 up", "ip link set o1 up"} {
		l.in(l.client, strings.Fields(line)...)
	}
	l.in(other, "ip", "address", "add", "10.0.1.0/16", "dev", "o0")
	l.in(other, "sysctl", "-qw", "net.ipv4.icmp_echo_ignore_all=1")
	l.in(other, "ip", "link", "set", "o0", "up")
	l.serve(units(t))
	if a := l.dhclient(l.client, "b0"); a != "10.0.1.1" {
		t.Errorf("dhclient gets %s", a)
	}
}
