package resolver

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/servicepoint/application"
)

// Configuration is the configuration of the resolver.
type Configuration struct {
	// Listen are the listeners: over UDP and TCP, or over TLS.
	Listen []Listener `json:"listen" about:"The addresses at which the resolver answers."`
	// TLS contains the certificate of TLS listeners; nil if there are none.
	TLS *application.Credentials `json:"tls,omitempty"`
	// Upstreams are the upstream servers in order of preference. They may be empty if Recursion resolves from the root.
	Upstreams []Upstream `json:"upstreams" about:"The servers that the resolver asks, in order of preference."`
	// Recursion makes this machine resolve names; nil means that the upstreams do.
	Recursion *Recursion `json:"recursion,omitempty" about:"Resolve names from the root instead of asking upstream servers."`
	// Policy selects the upstream: sequential (the default; the first healthy one), random or round_robin.
	Policy string `json:"policy" enum:"sequential|random|round_robin" about:"The selection of an upstream server. Empty: sequential."`
	// Allow are the prefixes of permitted clients; empty permits all.
	Allow []string `json:"allow" about:"The prefixes of permitted clients. Empty permits all."`
	Cache Cache    `json:"cache"`
	// Zones are zones with their own upstreams.
	Zones []Zone `json:"zones,omitempty" about:"Zones with their own upstream servers."`
	// DNS64 is the prefix for IPv6 addresses of IPv4-only hosts (RFC 6147), such as 64:ff9b::/96; empty disables DNS64.
	DNS64 string `json:"dns64,omitempty" about:"The prefix for IPv6 addresses of IPv4-only hosts, such as 64:ff9b::/96."`
	// QueryLog enables the query log; nil disables it.
	QueryLog *QueryLog `json:"queryLog,omitempty"`
	// Dnstap is an address and port to which queries and answers are sent in dnstap format over TCP; empty disables it.
	Dnstap string `json:"dnstap,omitempty" about:"An address and port that receives queries and answers (dnstap over TCP)."`
	// Metrics is the address and port of the Prometheus metrics endpoint; empty disables it.
	Metrics string `json:"metrics" about:"The address and port of Prometheus metrics. Empty disables them."`
}

// Listener is an address at which the resolver answers.
type Listener struct {
	Address string `json:"address"`
	// Port is 1 to 65535; 0 means 53, or 853 with TLS.
	Port int `json:"port"`
	// TLS makes it answer only over TLS (RFC 7858).
	TLS bool `json:"tls,omitempty"`
}

// Upstream is an upstream server.
type Upstream struct {
	// Address is an IP address, optionally with a port, which can also be in Port. The default port is 53, or 853 with TLS.
	Address string `json:"address"`
	Port    int    `json:"port"`
	// TLSServerName enables TLS and is the name that the server's certificate must contain.
	TLSServerName string `json:"tlsServerName" about:"The name in the certificate of the server. It enables TLS."`
}

// Cache contains the limits of the cache.
type Cache struct {
	// Entries is the maximum number of positive answers, and separately of negative answers; 0 means 10,000.
	Entries int `json:"entries" about:"The maximum number of answers. Empty: 10,000."`
	// MaxTTLSeconds is the maximum lifetime of an answer; 0 means 3,600.
	MaxTTLSeconds int `json:"maxTTLSeconds" about:"The maximum lifetime of an answer. Empty: 3,600."`
	// Prefetch refreshes frequently used answers before they expire.
	Prefetch bool `json:"prefetch" about:"Refresh frequently used answers before they expire."`
	// ServeStaleSeconds is the time for which expired answers are used while no upstream answers; 0 disables that.
	ServeStaleSeconds int `json:"serveStaleSeconds" about:"The time for which expired answers are used while no upstream server answers."`
}

// Limits and defaults of a configuration.
const (
	maxListeners   = 64
	maxUpstreams   = 16
	maxAllowed     = 1000
	maxEntries     = 10_000_000
	defaultEntries = 10_000
	maxTTL         = 86_400
	defaultTTL     = 3_600
	maxStale       = 7 * 86_400
	dnsPort        = 53
	tlsPort        = 853
)

// read decodes and checks a configuration and fills in the defaults.
func read(text json.RawMessage) (c Configuration, err error) {
	if err := application.Decode(text, &c); err != nil {
		return c, err
	}
	c.setDefaults()
	return c, c.validate()
}

// portOf returns the default port of DNS, with or without TLS.
func portOf(withTLS bool) int {
	if withTLS {
		return tlsPort
	}
	return dnsPort
}

func (c *Configuration) setDefaults() {
	for i := range c.Listen {
		if c.Listen[i].Port == 0 {
			c.Listen[i].Port = portOf(c.Listen[i].TLS)
		}
	}
	for i, u := range c.Upstreams {
		if addr, err := netip.ParseAddr(u.Address); err == nil && addr.Zone() == "" {
			port := uint16(portOf(u.TLSServerName != ""))
			if u.Port > 0 && u.Port <= 65535 {
				port = uint16(u.Port)
			}
			c.Upstreams[i].Address = netip.AddrPortFrom(addr, port).String()
		}
	}
	if c.Policy == "" {
		c.Policy = "sequential"
	}
	if c.Cache.Entries == 0 {
		c.Cache.Entries = defaultEntries
	}
	if c.Cache.MaxTTLSeconds == 0 {
		c.Cache.MaxTTLSeconds = defaultTTL
	}
}

// validate returns the error of an invalid configuration.
func (c *Configuration) validate() error {
	bad := func(field, format string, args ...any) error {
		return problem.Invalid("configuration."+field, format, args...)
	}
	if len(c.Listen) == 0 || len(c.Listen) > maxListeners {
		return bad("listen", "must have 1 to %d listeners", maxListeners)
	}
	seen := map[string]bool{}
	for i, l := range c.Listen {
		addr, err := netip.ParseAddr(l.Address)
		switch {
		case err != nil || addr.Zone() != "":
			return bad(fmt.Sprintf("listen[%d].address", i), "must be an address, not %q", l.Address)
		case l.Port < 1 || l.Port > 65535:
			return bad(fmt.Sprintf("listen[%d].port", i), "must be 1 to 65535")
		case seen[l.address()]:
			return bad(fmt.Sprintf("listen[%d]", i), "is there twice")
		case l.TLS && c.TLS == nil:
			return bad(fmt.Sprintf("listen[%d].tls", i), "requires a certificate and its key in configuration.tls")
		}
		seen[l.address()] = true
	}
	if err := c.TLS.Wrong(slices.ContainsFunc(c.Listen, func(l Listener) bool { return l.TLS }), bad); err != nil {
		return err
	}
	if len(c.Upstreams) == 0 && c.Recursion == nil || len(c.Upstreams) > maxUpstreams {
		return bad("upstreams", "must have 1 to %d servers, or set recursion", maxUpstreams)
	}
	if err := c.Recursion.validate(bad); err != nil {
		return err
	}
	for i, u := range c.Upstreams {
		if !isAddrPort(u.Address) {
			return bad(fmt.Sprintf("upstreams[%d].address", i), "%q is neither an address nor an address and a port", u.Address)
		}
		if at := netip.MustParseAddrPort(u.Address); u.Port != 0 && int(at.Port()) != u.Port {
			return bad(fmt.Sprintf("upstreams[%d].port", i), "must be 1 to 65535, and equal to the port in the address if that has one")
		}
		if c.listensAt(u.Address) {
			return bad(fmt.Sprintf("upstreams[%d].address", i), "the resolver itself listens at this address: choose another server")
		}
		if u.TLSServerName != c.Upstreams[0].TLSServerName {
			return bad(fmt.Sprintf("upstreams[%d].tlsServerName", i), "must be the same for all upstreams")
		}
		if strings.ContainsFunc(u.TLSServerName, func(r rune) bool {
			return r != '.' && r != '-' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z')
		}) {
			return bad(fmt.Sprintf("upstreams[%d].tlsServerName", i), "must be a host name, not %q", u.TLSServerName)
		}
	}
	return c.validateOther(bad)
}

// isAddrPort reports whether a text is an address with a port and without an IPv6 zone, which could contain arbitrary text.
func isAddrPort(text string) bool {
	at, err := netip.ParseAddrPort(text)
	return err == nil && at.Addr().Zone() == "" && at.Port() != 0
}

// validateOther checks the settings other than listeners and upstreams.
func (c *Configuration) validateOther(bad func(field, format string, args ...any) error) error {
	if !slices.Contains([]string{"sequential", "random", "round_robin"}, c.Policy) {
		return bad("policy", "must be one of sequential, random and round_robin, not %q", c.Policy)
	}
	if len(c.Allow) > maxAllowed {
		return bad("allow", "has more than %d prefixes", maxAllowed)
	}
	for i, text := range c.Allow {
		if p, err := netip.ParsePrefix(text); err != nil || p != p.Masked() {
			return bad(fmt.Sprintf("allow[%d]", i), "must be a prefix, not %q", text)
		}
	}
	if err := c.validateZones(bad); err != nil {
		return err
	}
	if c.Metrics != "" {
		if !isAddrPort(c.Metrics) {
			return bad("metrics", "must be an address with a port, not %q", c.Metrics)
		}
	}
	for _, bound := range []struct {
		field            string
		value, low, high int
	}{{"entries", c.Cache.Entries, 1, maxEntries}, {"maxTTLSeconds", c.Cache.MaxTTLSeconds, 1, maxTTL},
		{"serveStaleSeconds", c.Cache.ServeStaleSeconds, 0, maxStale}} {
		if bound.value < bound.low || bound.value > bound.high {
			return bad("cache."+bound.field, "must be %d to %d", bound.low, bound.high)
		}
	}
	return nil
}

// corefile returns the configuration as a CoreDNS Corefile, without the listeners, which a generation serves. All values were checked, so
// none can inject other directives.
func (c *Configuration) corefile() []byte {
	var b strings.Builder
	b.WriteString("dns://.:53 {\n " + stopServing + "\n " + startServing + "\n")
	if slices.ContainsFunc(c.Listen, func(l Listener) bool { return l.TLS }) {
		b.WriteString(" tls\n")
	}
	b.WriteString(" errors\n chaos Portolan\n")
	c.serverBlock(&b)
	return []byte(b.String())
}

// serverBlock writes the plugins of the server block and closes it.
func (c *Configuration) serverBlock(b *strings.Builder) {
	if len(c.Allow) > 0 {
		fmt.Fprintf(b, " acl {\n  allow net %s\n  block\n }\n", strings.Join(c.Allow, " "))
	}
	c.logBlock(b)
	b.WriteString(" " + answered + "\n")
	if c.Metrics != "" {
		b.WriteString(" " + metricsPlugin + "\n")
	}
	b.WriteString(" policies\n")
	fmt.Fprintf(b, " cache %d {\n  success %d %d\n  denial %d %d\n  servfail 0s\n", c.Cache.MaxTTLSeconds, c.Cache.Entries,
		c.Cache.MaxTTLSeconds, c.Cache.Entries, min(c.Cache.MaxTTLSeconds, defaultTTL))
	if c.Cache.Prefetch {
		b.WriteString("  prefetch 5 1m 10%\n")
	}
	if c.Cache.ServeStaleSeconds > 0 {
		fmt.Fprintf(b, "  serve_stale %ds verify\n", c.Cache.ServeStaleSeconds)
	}
	b.WriteString(" }\n " + uncached + "\n " + upstreams + "\n")
	c.zoneBlock(b)
	b.WriteString(" forward .")
	for _, u := range c.Upstreams {
		b.WriteByte(' ')
		if u.TLSServerName != "" {
			b.WriteString("tls://")
		}
		b.WriteString(u.Address)
	}
	// Prefer UDP also for the cache's own queries, because a network may permit UDP but not TCP.
	fmt.Fprintf(b, " {\n  policy %s\n  prefer_udp\n", c.Policy)
	if name := c.Upstreams[0].TLSServerName; name != "" {
		fmt.Fprintf(b, "  tls_servername %s\n", name)
	} else {
		b.WriteString(freshPorts)
	}
	b.WriteString(" }\n}\n")
}

// freshPorts makes each query to an upstream use its own source port (RFC 5452 section 9.2), because no socket is reused.
const freshPorts = "  expire 0s\n  max_idle_conns 1\n"

// address returns the address and port.
func (l Listener) address() string { return net.JoinHostPort(l.Address, strconv.Itoa(l.Port)) }

// listensAt reports whether a query to an address and port would return to the resolver on any machine.
func (c *Configuration) listensAt(at string) bool {
	return c.reaches(at, func(a netip.Addr) bool { return a.IsLoopback() || a.IsUnspecified() })
}

// listensHere reports whether a query to an address and port would return to the resolver on this machine.
func (c *Configuration) listensHere(at string) bool { return c.reaches(at, isOwn) }

// reaches reports whether a query to an address and port reaches a listener. own reports whether an address belongs to the machine.
func (c *Configuration) reaches(at string, own func(netip.Addr) bool) bool {
	to, err := netip.ParseAddrPort(at)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(c.Listen, func(l Listener) bool {
		is, err := netip.ParseAddrPort(l.address())
		if err != nil || is.Port() != to.Port() {
			return false
		}
		if is.Addr().Unmap() == to.Addr().Unmap() {
			return true
		}
		return is.Addr().IsUnspecified() && (is.Addr().Is6() || to.Addr().Unmap().Is4()) && own(to.Addr().Unmap())
	})
}

// isOwn reports whether an address belongs to this machine.
func isOwn(a netip.Addr) bool {
	if a.IsLoopback() || a.IsUnspecified() {
		return true
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	return slices.ContainsFunc(all, func(one net.Addr) bool {
		p, err := netip.ParsePrefix(one.String())
		return err == nil && p.Addr().Unmap() == a
	})
}

// localAddress returns the address at which this process reaches the listener.
func (l Listener) localAddress() string {
	if addr, err := netip.ParseAddr(l.Address); err == nil && addr.IsUnspecified() {
		l.Address = "127.0.0.1"
		if addr.Is6() {
			l.Address = "::1"
		}
	}
	return l.address()
}

// claims returns the addresses and ports that the resolver needs exclusively.
func (c *Configuration) claims() (all []string) {
	for _, l := range c.Listen {
		all = append(all, l.address())
	}
	if c.Metrics != "" {
		all = append(all, c.Metrics)
	}
	return all
}

// hide removes the private key from a configuration.
func hide(text json.RawMessage) json.RawMessage { return application.HideKey(text, &Configuration{}) }
