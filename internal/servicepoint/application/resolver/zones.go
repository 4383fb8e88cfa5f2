package resolver

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"portolan/internal/base/naming"
)

// Zone is a zone with its own upstreams.
type Zone struct {
	// Name is the name of the zone. It includes all names below it.
	Name string `json:"name"`
	// Upstreams are the servers in order of preference: addresses, with a port if it is not 53.
	Upstreams []string `json:"upstreams"`
}

// maxZones is the maximum number of zones with their own upstreams.
const maxZones = 1000

// lengths64 are the valid prefix lengths of DNS64 (RFC 6052 section 2.2).
var lengths64 = []int{32, 40, 48, 56, 64, 96}

// validateZones checks the zones, DNS64, the query log and dnstap.
func (c *Configuration) validateZones(bad func(field, format string, args ...any) error) error {
	if len(c.Zones) > maxZones {
		return bad("zones", "has more than %d zones", maxZones)
	}
	seen := map[string]bool{}
	for i, z := range c.Zones {
		name := strings.ToLower(strings.TrimSuffix(z.Name, "."))
		if name == "" || naming.Check(name, naming.AnyName) != nil || strings.ContainsAny(name, " \t\n{}#\"\\") {
			return bad(fmt.Sprintf("zones[%d].name", i), "%q is not the name of a zone", z.Name)
		}
		if seen[name] {
			return bad(fmt.Sprintf("zones[%d].name", i), "%s occurs twice", z.Name)
		}
		seen[name] = true
		if len(z.Upstreams) == 0 || len(z.Upstreams) > maxUpstreams {
			return bad(fmt.Sprintf("zones[%d].upstreams", i), "must have 1 to %d servers", maxUpstreams)
		}
		for j, text := range z.Upstreams {
			at, ok := withPort(text)
			if !ok {
				return bad(fmt.Sprintf("zones[%d].upstreams[%d]", i, j), "%q is neither an address nor an address and a port", text)
			}
			if c.listensAt(at) {
				return bad(fmt.Sprintf("zones[%d].upstreams[%d]", i, j), "the resolver itself listens at this address: choose another server")
			}
		}
	}
	if c.DNS64 != "" {
		p, err := netip.ParsePrefix(c.DNS64)
		if err != nil || !p.Addr().Is6() || p.Addr().Zone() != "" || p != p.Masked() || !slices.Contains(lengths64, p.Bits()) {
			return bad("dns64", "must be an IPv6 prefix of 32, 40, 48, 56, 64 or 96 bits, such as 64:ff9b::/96, not %q", c.DNS64)
		}
	}
	if c.QueryLog != nil && (c.QueryLog.Every < 1 || c.QueryLog.Every > maxEvery) {
		return bad("queryLog.every", "must be 1 to %d", maxEvery)
	}
	if c.Dnstap != "" && !isAddrPort(c.Dnstap) {
		return bad("dnstap", "must be an address with a port, not %q", c.Dnstap)
	}
	return nil
}

// withPort returns an address with its port. ok is false if the text is not an address.
func withPort(text string) (string, bool) {
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		return netip.AddrPortFrom(addr, dnsPort).String(), true
	}
	return text, isAddrPort(text)
}

// zoneBlock writes the forwarding of the zones.
func (c *Configuration) zoneBlock(b *strings.Builder) {
	for _, z := range c.Zones {
		fmt.Fprintf(b, " forward %s", strings.TrimSuffix(z.Name, "."))
		for _, text := range z.Upstreams {
			at, _ := withPort(text)
			b.WriteString(" " + at)
		}
		fmt.Fprintf(b, " {\n  policy %s\n  prefer_udp\n%s }\n", c.Policy, freshPorts)
	}
}

// logBlock writes the query log, dnstap and DNS64.
func (c *Configuration) logBlock(b *strings.Builder) {
	if c.QueryLog != nil {
		fmt.Fprintf(b, " log %d\n", c.QueryLog.Every)
	}
	if c.Dnstap != "" {
		fmt.Fprintf(b, " dnstap tcp://%s full\n", c.Dnstap)
	}
	if c.DNS64 != "" {
		fmt.Fprintf(b, " dns64 {\n  prefix %s\n  allow_ipv4\n }\n", c.DNS64)
	}
}
