package dhcp

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/servicepoint/application"
	"portolan/internal/wire/checkin"
)

// Configuration contains the settings of the machine. All other settings are in the content.
type Configuration struct {
	// Interfaces are the names of the interfaces whose clients are served without a relay. If there are none, these are the interfaces with
	// an address of a served network.
	Interfaces []string `json:"interfaces" about:"The interfaces of clients without a relay. Empty: those of served networks."`
	// Listen are the addresses and ports for relays and renewals; empty means port 67 of all addresses. Clients without a relay are served if
	// a port is 67.
	Listen []string `json:"listen" about:"Addresses and ports for relays and renewals. Empty: port 67 of all addresses."`
	// Listen6 are the IPv6 addresses and ports of DHCPv6; empty means port 547 of all addresses if Listen is empty, else none.
	Listen6 []string `json:"listen6,omitempty" about:"Addresses and ports of DHCPv6. Empty: port 547 of all addresses if listen is empty."`
	// Rate limits the messages per second of a client and of a relay.
	Rate Rate `json:"rate,omitzero"`
	// ListenPair is the address and port for failover partners; empty means port 647 of all addresses. It is used only while a partner is the
	// primary of a pair.
	ListenPair string `json:"listenPair,omitempty" about:"The address and port for failover partners. Empty: port 647 of all addresses."`
	// Metrics is the address and port of the Prometheus metrics endpoint; empty disables it.
	Metrics string `json:"metrics" about:"The address and port of Prometheus metrics. Empty disables them."`
}

// serverPort and clientPort are the ports of DHCPv4.
const (
	serverPort = 67
	clientPort = 68
)

// Limits of a configuration.
const (
	maxInterfaces    = 256
	maxListeners     = 64
	maxInterfaceName = 15
	maxRate          = 1_000_000
)

// Kind returns the application. dir is the folder for its leases; without one it serves nothing.
func Kind(dir string) application.Kind {
	return application.Kind{Name: checkin.DHCP, Program: checkin.Program{Version: "1.0.0", ServesContent: true, Sample: Configuration{},
		Check: func(text json.RawMessage) error { _, err := read(text); return err },
		Claims: func(text json.RawMessage) []string {
			c, err := read(text)
			if err != nil {
				return nil
			}
			return slices.Concat(c.Listen, c.Listen6, strings.Fields(c.ListenPair), strings.Fields(c.Metrics))
		}},
		New: func(log *slog.Logger) application.Application { return newService(dir, log) }}
}

// read decodes and checks a configuration.
func read(text json.RawMessage) (c Configuration, err error) {
	if err := application.Decode(text, &c); err != nil {
		return c, err
	}
	bad := func(field, format string, args ...any) error {
		return problem.Invalid("configuration."+field, format, args...)
	}
	if len(c.Interfaces) > maxInterfaces {
		return c, bad("interfaces", "has %d entries, more than %d", len(c.Interfaces), maxInterfaces)
	}
	for i, name := range c.Interfaces {
		if name == "" || len(name) > maxInterfaceName || strings.ContainsAny(name, "/ \x00") || slices.Contains(c.Interfaces[:i], name) {
			return c, bad(fmt.Sprintf("interfaces[%d]", i), "%q is not the name of an interface, or is repeated", name)
		}
	}
	if len(c.Listen) == 0 {
		c.Listen = []string{fmt.Sprintf("0.0.0.0:%d", serverPort)}
		if len(c.Listen6) == 0 {
			c.Listen6 = []string{standard6}
		}
	}
	if len(c.Listen) > maxListeners {
		return c, bad("listen", "has %d entries, more than %d", len(c.Listen), maxListeners)
	}
	for i, one := range c.Listen {
		a, err := netip.ParseAddrPort(one)
		if err != nil || !a.Addr().Is4() || a.Port() == 0 || slices.Contains(c.Listen[:i], one) {
			return c, bad(fmt.Sprintf("listen[%d]", i), "must be an IPv4 address and port that no other entry has, not %q", one)
		}
	}
	if len(c.Listen6) > maxListeners {
		return c, bad("listen6", "has %d entries, more than %d", len(c.Listen6), maxListeners)
	}
	for i, one := range c.Listen6 {
		a, err := netip.ParseAddrPort(one)
		if err != nil || !a.Addr().Is6() || a.Addr().Is4In6() || a.Port() == 0 || slices.Contains(c.Listen6[:i], one) {
			return c, bad(fmt.Sprintf("listen6[%d]", i), "must be an IPv6 address and port that no other entry has, not %q", one)
		}
	}
	for field, limit := range map[string]uint32{"perRelay": c.Rate.PerRelay, "perClient": c.Rate.PerClient} {
		if limit > maxRate {
			return c, bad("rate."+field, "must be at most %d messages per second", maxRate)
		}
	}
	if c.ListenPair != "" {
		if a, err := netip.ParseAddrPort(c.ListenPair); err != nil || a.Addr().Zone() != "" || a.Port() == 0 {
			return c, bad("listenPair", "must be an address and port, not %q", c.ListenPair)
		}
	}
	if c.Metrics != "" {
		if a, err := netip.ParseAddrPort(c.Metrics); err != nil || a.Addr().Zone() != "" {
			return c, bad("metrics", "must be an address and port, not %q", c.Metrics)
		}
	}
	return c, nil
}

// servesLink reports whether clients without a relay are served.
func (c Configuration) servesLink() bool {
	return slices.ContainsFunc(c.Listen, func(one string) bool { return netip.MustParseAddrPort(one).Port() == serverPort })
}
