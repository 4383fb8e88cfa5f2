package dhcp

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"portolan/internal/testkit/peers"
	"portolan/internal/wire/dhcpdata"
)

// only6 is content with the network 2001:db8:1::/48 alone.
func only6(t *testing.T) dhcpdata.Units {
	t.Helper()
	u := units6(t)
	delete(u, dhcpdata.NetworkUnit(7))
	return u
}

// TestLinkOfOneProtocol checks that a named interface without an address of one protocol is healthy unless that protocol is deployed to it,
// and that clients of the other one are served.
func TestLinkOfOneProtocol(t *testing.T) {
	t.Parallel()
	both := func(t *testing.T) dhcpdata.Units { t.Helper(); return units6(t) }
	only4 := func(t *testing.T) dhcpdata.Units { t.Helper(); return units(t) }
	none := func(t *testing.T) dhcpdata.Units {
		t.Helper()
		u := units(t)
		delete(u, dhcpdata.NetworkUnit(7))
		return u
	}
	// An interface with a maximum size of packets below 1,280 octets has no IPv6.
	const no4, no6, add6 = "ip address flush dev s0 scope global", "ip link set s0 mtu 1000", "ip address add 2001:db8:1::1/64 dev s0 nodad"
	for name, one := range map[string]struct {
		lines []string
		units func(t *testing.T) dhcpdata.Units
		want  string
	}{
		"IPv6 alone, deployed":           {[]string{no4, add6}, only6, ""},
		"IPv6 alone, nothing deployed":   {[]string{no4}, none, ""},
		"IPv6 alone, both deployed":      {[]string{no4, add6}, both, ""},
		"IPv6 alone, IPv4 deployed":      {[]string{no4}, only4, noAddress4},
		"IPv4 alone, deployed":           {[]string{no6}, only4, ""},
		"IPv4 alone, nothing deployed":   {[]string{no6}, none, ""},
		"IPv4 alone, both deployed":      {[]string{no6}, both, ""},
		"IPv4 alone, IPv6 deployed":      {[]string{no6}, only6, noAddress6},
		"no addresses, nothing deployed": {[]string{no6, no4}, none, noAddress4 + "; " + noAddress6},
		"down":                           {[]string{"ip link set s0 down"}, both, "the interface is down"},
		"another name":                   {[]string{"ip link set s0 name s1"}, both, noInterface},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			for _, line := range one.lines {
				l.in(l.server, strings.Fields(line)...)
			}
			child(t, l.dir, one.units(t), `{"interfaces":["s0"]}`, "ip", "netns", "exec", l.server)
			got, err := os.ReadFile(filepath.Join(l.dir, readyFile))
			want := ""
			if one.want != "" {
				want = "clients on s0 are not served without a relay: " + one.want
			}
			if err != nil || string(got) != want {
				t.Errorf("the conditions are %q, want %q; %v", got, want, err)
			}
		})
	}
}

// TestClientsOfOneProtocol checks that a client leases an address at an interface without the other protocol, also after the interface was
// down.
func TestClientsOfOneProtocol(t *testing.T) {
	t.Parallel()
	dhclient := peers.Program(t, "dhclient")
	t.Run("IPv4", func(t *testing.T) {
		t.Parallel()
		l := newLab(t)
		l.in(l.server, "ip", "link", "set", "s0", "mtu", "1000")
		child(t, l.dir, units(t, noPing), `{"interfaces":["s0"]}`, "ip", "netns", "exec", l.server)
		if a := l.dhclient(l.client, "c0"); a != "10.0.1.0" {
			t.Errorf("dhclient gets %s", a)
		}
	})
	t.Run("IPv6", func(t *testing.T) {
		t.Parallel()
		l := newLab(t)
		address := strings.Fields("ip address add 2001:db8:1::1/64 dev s0 nodad")
		l.in(l.server, "ip", "address", "flush", "dev", "s0", "scope", "global")
		l.in(l.server, address...)
		child(t, l.dir, only6(t), `{"interfaces":["s0"]}`, "ip", "netns", "exec", l.server)
		groups := func() bool {
			return strings.Contains(l.in(l.server, "ip", "maddress", "show", "dev", "s0"), allAgents6.String())
		}
		waitFor(t, groups)
		l.in(l.server, "ip", "link", "set", "s0", "down")
		waitFor(t, func() bool { return !groups() })
		l.in(l.server, "ip", "link", "set", "s0", "up")
		l.in(l.server, address...)
		waitFor(t, groups)
		waitFor(t, func() bool { // the client needs an address of its link
			text := l.in(l.client, "ip", "-6", "address", "show", "dev", "c0", "scope", "link")
			return strings.Contains(text, "fe80") && !strings.Contains(text, "tentative")
		})
		leases := filepath.Join(l.dir, "leases6")
		run6(t, "ip", "netns", "exec", l.client, dhclient, "-6", "-N", "-1", "-D", "LL", "-sf", "/bin/true", "-lf", leases, "-pf",
			filepath.Join(l.dir, "pid6"), "c0")
		text, err := os.ReadFile(leases)
		run6(t, "ip", "netns", "exec", l.client, dhclient, "-6", "-x", "-sf", "/bin/true", "-lf", leases, "-pf",
			filepath.Join(l.dir, "pid6"), "c0")
		_, after, found := strings.Cut(string(text), "iaaddr ")
		a, failed := netip.ParseAddr(strings.Fields(after + " none")[0])
		if err != nil || failed != nil || !found || !netip.MustParsePrefix("2001:db8:1::1:0/112").Contains(a) {
			t.Errorf("dhclient gets %v\n%s", err, text)
		}
	})
}
