package dhcp

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"portolan/internal/testkit/peers"
	"portolan/internal/wire/dhcpdata"
)

// background runs a program in a namespace until the test ends, and returns a function that sends it a signal and waits for its end.
func (l *lab) background(namespace string, command ...string) (end func(syscall.Signal)) {
	l.t.Helper()
	c := exec.Command("ip", append([]string{"netns", "exec", namespace}, command...)...)
	log, err := os.CreateTemp(l.dir, filepath.Base(command[0])+"*.log")
	if err != nil {
		l.t.Fatal(err)
	}
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		l.t.Fatal(err)
	}
	running := true
	end = func(signal syscall.Signal) {
		if running {
			running = false
			_ = c.Process.Signal(signal) // it runs until then
			_ = c.Wait()
			_ = log.Close()
		}
	}
	l.t.Cleanup(func() {
		end(syscall.SIGKILL)
		if text, err := os.ReadFile(log.Name()); l.t.Failed() && err == nil {
			l.t.Logf("%s:\n%s", command[0], text)
		}
	})
	return end
}

// TestRealClientRenews checks that udhcpc renews its lease by unicast at T1, rebinds it by broadcast if it cannot reach the server by
// unicast, and releases it at its end, after which another client gets the address.
func TestRealClientRenews(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.serve(units(t, noPing, option("default-lease-time", 8), option("max-lease-time", 8), option("min-lease-time", 8)))
	script, log := filepath.Join(l.dir, "renews"), filepath.Join(l.dir, "events")
	text := "#!/bin/sh\necho \"$1 $ip\" >>" + log + "\n[ -n \"$ip\" ] && ip address replace $ip/16 dev c0\nexit 0\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	count := func(event string) int {
		text, err := os.ReadFile(log)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return strings.Count(string(text), event+"\n")
	}
	end := l.background(l.client, peers.Program(t, "udhcpc"), "-f", "-R", "-n", "-t", "10", "-T", "2", "-i", "c0", "-x", "0x3d:00414141",
		"-s", script)
	waitFor(t, func() bool { return count("bound 10.0.1.0") == 1 })
	waitFor(t, func() bool { return count("renew 10.0.1.0") == 1 })
	l.in(l.client, "ip", "route", "add", "blackhole", "10.0.0.2/32")
	before := count("renew 10.0.1.0")
	waitFor(t, func() bool { return count("renew 10.0.1.0") > before+1 }) // the first one may have been sent before the route
	if n := count("bound 10.0.1.0"); n != 1 || count("nak ") != 0 {
		t.Errorf("the client was bound %d times", n)
	}
	l.in(l.client, "ip", "route", "del", "blackhole", "10.0.0.2/32")
	end(syscall.SIGTERM)
	if text := l.udhcpc("-x", "0x3d:00424242", "-r", "10.0.1.0"); !strings.Contains(text, "\nip=10.0.1.0\n") {
		t.Errorf("another client gets, after the release,\n%s", text)
	}
}

// TestRealClientDeclines checks that an address that udhcpc declines, because another machine has it, is not offered again.
func TestRealClientDeclines(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	other := namespaceName("dhcpo")
	l.run("ip", "netns", "add", other)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "delete", other).Run() })
	for _, line := range []string{"ip link add b0 type bridge", "ip link add o1 type veth peer name o0 netns " + other,
		"ip link set c0 master b0", "ip link set o1 master b0", "ip link set b0 up", "ip link set o1 up"} {
		l.in(l.client, strings.Fields(line)...)
	}
	l.in(other, "ip", "address", "add", "10.0.1.0/16", "dev", "o0")
	l.in(other, "ip", "link", "set", "o0", "up")
	l.serve(units(t, noPing))
	if text := l.udhcpc("-a", "-i", "b0"); !strings.Contains(text, "\nip=10.0.1.1\n") {
		t.Errorf("the client gets\n%s", text)
	}
	if text := l.udhcpc("-i", "b0", "-x", "0x3d:00424242", "-r", "10.0.1.0"); strings.Contains(text, "\nip=10.0.1.0\n") {
		t.Errorf("another client gets the declined address:\n%s", text)
	}
}

// TestNetworkd checks that systemd-networkd gets an address and its routes. It is skipped where it does not exist.
func TestNetworkd(t *testing.T) {
	t.Parallel()
	const program = "/lib/systemd/systemd-networkd"
	if _, err := os.Stat(program); err != nil {
		t.Skip("systemd-networkd is not installed")
	}
	l := newLab(t)
	l.serve(units(t, noPing))
	file := filepath.Join(l.dir, "c0.network")
	const text = "[Match]\nName=c0\n[Network]\nDHCP=ipv4\nIPv6AcceptRA=no\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // read by another user
		t.Fatal(err)
	}
	// It waits for udev unless /sys cannot be written, and needs folders of its own in /run.
	l.background(l.client, peers.Program(t, "unshare"), "-m", "sh", "-c", "mount -t tmpfs none /run && mkdir -p /run/systemd/network "+
		"/run/systemd/netif/links /run/systemd/netif/leases /run/systemd/netif/lldp && chown -R systemd-network:systemd-network "+
		"/run/systemd/netif && cp "+file+" /run/systemd/network/ && mount -o remount,ro /sys && exec "+program)
	waitFor(t, func() bool {
		return strings.Contains(l.in(l.client, "ip", "-4", "address", "show", "dev", "c0"), "inet 10.0.1.0/16") &&
			strings.Contains(l.in(l.client, "ip", "route"), "default via 10.0.0.1 dev c0 proto dhcp")
	})
}

// TestRelayChain6 checks that a client of DHCPv6 gets its address and its delegated prefix through one and through three relays of ISC.
func TestRelayChain6(t *testing.T) {
	t.Parallel()
	dhclient, dhcrelay := peers.Program(t, "dhclient"), peers.Program(t, "dhcrelay")
	ip, server, first := link6(t)
	stop := serve6(t, ip, server)
	defer func() { t.Logf("CPU time of the server: %v", stop()) }()
	l := &lab{t: t, dir: t.TempDir()}
	upper, towards, at := "c6", "2001:db8:1::1", first
	l.in(first, "ip", "address", "add", "2001:db8:1::3/64", "dev", "c6", "nodad")
	for n := range 3 {
		// The link of the relay, with the namespace of the next one.
		next := namespaceName(fmt.Sprintf("h6-%d", n))
		l.run("ip", "netns", "add", next)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "delete", next).Run() })
		lower, far := fmt.Sprintf("l%d", n), fmt.Sprintf("u%d", n+1)
		prefix := fmt.Sprintf("2001:db8:%x::", 0xc0+n)
		l.run("ip", "link", "add", lower, "netns", at, "type", "veth", "peer", "name", far, "netns", next)
		l.in(at, "ip", "address", "add", prefix+"1/64", "dev", lower, "nodad")
		for _, one := range [][2]string{{at, lower}, {next, "lo"}, {next, far}} {
			l.in(one[0], "ip", "link", "set", one[1], "up")
		}
		for _, one := range [][2]string{{at, lower}, {next, far}} {
			waitFor(t, func() bool {
				out := l.in(one[0], "ip", "-6", "address", "show", "dev", one[1])
				return strings.Contains(out, "fe80:") && !strings.Contains(out, "tentative")
			})
		}
		l.background(at, dhcrelay, "-6", "-d", "--no-pid", "-l", lower, "-u", towards+"%"+upper)
		if n != 1 {
			leases := filepath.Join(l.dir, next)
			run6(t, ip, "netns", "exec", next, dhclient, "-6", "-1", "-N", "-P", "-D", "LL", "-sf", "/bin/true", "-lf", leases, "-pf", leases+".pid",
				far)
			text, err := os.ReadFile(leases)
			if err != nil || !strings.Contains(string(text), "iaaddr "+prefix) || !strings.Contains(string(text), "iaprefix 2001:db8:") {
				t.Errorf("through %d relays the client has %v\n%s", n+1, err, text)
			}
			run6(t, ip, "netns", "exec", next, dhclient, "-6", "-x", "-N", "-P", "-D", "LL", "-sf", "/bin/true", "-lf", leases, "-pf",
				leases+".pid", far)
		}
		l.in(next, "ip", "address", "add", prefix+"3/64", "dev", far, "nodad")
		upper, towards, at = far, prefix+"1", next
	}
}

// relayedNetworks are networks behind relays, with addresses and delegated prefixes.
func relayedNetworks(t testing.TB, u dhcpdata.Units) {
	t.Helper()
	for n := range int64(3) {
		prefix := fmt.Sprintf("2001:db8:%x::", 0xc0+n)
		id := 50 + 10*n
		at := func(end string) netip.Addr { return netip.MustParseAddr(strings.TrimSuffix(prefix, "::") + end) }
		u[dhcpdata.NetworkUnit(id)] = unit(t, dhcpdata.NetworkUnit(id), dhcpdata.Network{ID: id, Prefix: netip.MustParsePrefix(prefix + "/48")},
			dhcpdata.Pool{ID: id + 1, Ranges: []dhcpdata.Interval{{First: at("::100"), Last: at("::1ff")}}},
			dhcpdata.Pool{ID: id + 2, DelegatedLength: 64, Ranges: []dhcpdata.Interval{{First: at(":8000::"),
				Last: at(":8fff:ffff:ffff:ffff:ffff")}}})
	}
}
