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

// Configuration is how the resolver is set up.
type Configuration struct {
	// Listen are where it answers: over UDP and TCP, or over TLS.
	Listen []Listener `json:"listen"`
	// TLS is what listeners over TLS show; nil where there are none.
	TLS *application.Credentials `json:"tls,omitempty"`
	// Upstreams are the servers that it asks, in order of preference; none where Recursion begins at the root.
	Upstreams []Upstream `json:"upstreams"`
	// Recursion has names looked up by this machine; nil where the upstreams do so.
	Recursion *Recursion `json:"recursion,omitempty"`
	// Policy says which of the upstreams is asked: sequential (the default; the first that is well), random or round_robin.
	Policy string `json:"policy"`
	// Allow are the prefixes of clients that are answered; empty means all.
	Allow []string `json:"allow"`
	Cache Cache    `json:"cache"`
	// Zones are asked elsewhere than all other names.
	Zones []Zone `json:"zones,omitempty"`
	// DNS64 is the prefix that hosts which have IPv4 addresses alone have an IPv6 address in (RFC 6147), such as 64:ff9b::/96; empty is none.
	DNS64 string `json:"dns64,omitempty"`
	// QueryLog has queries logged; nil is none.
	QueryLog *QueryLog `json:"queryLog,omitempty"`
	// Dnstap is an address and port that queries and answers are sent to, over TCP, as Dnstap has them; empty is none.
	Dnstap string `json:"dnstap,omitempty"`
	// Metrics is an address and port where Prometheus finds metrics; empty means none.
	Metrics string `json:"metrics"`
}

// Listener is where the resolver answers.
type Listener struct {
	Address string `json:"address"`
	// Port is 1 to 65535; 0 means 53, or 853 with TLS.
	Port int `json:"port"`
	// TLS has it answer over TLS (RFC 7858) and by nothing else.
	TLS bool `json:"tls,omitempty"`
}

// Upstream is a server that is asked.
type Upstream struct {
	// Address is an address, or an address and a port, which may stand in Port as well. Without one it is 53, or 853 with TLS.
	Address string `json:"address"`
	Port    int    `json:"port"`
	// TLSServerName, where it is not empty, has it asked over TLS, with a certificate for that name.
	TLSServerName string `json:"tlsServerName"`
}

// Cache bounds what is remembered.
type Cache struct {
	// Entries is how many answers are remembered, and as many again that say no; 0 means 10,000.
	Entries int `json:"entries"`
	// MaxTTLSeconds is how long at most; 0 means 3,600.
	MaxTTLSeconds int `json:"maxTTLSeconds"`
	// Prefetch asks again for what is asked often, before it ends.
	Prefetch bool `json:"prefetch"`
	// ServeStaleSeconds is for how long what has ended is answered while no upstream is; 0 means not at all.
	ServeStaleSeconds int `json:"serveStaleSeconds"`
}

// Bounds and defaults of a configuration.
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

// read reads a configuration, with its defaults.
func read(text json.RawMessage) (c Configuration, err error) {
	if err := application.Decode(text, &c); err != nil {
		return c, err
	}
	c.setDefaults()
	return c, c.wrong()
}

// portOf is the port of DNS, with TLS or without.
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

// wrong says what is wrong with it.
func (c *Configuration) wrong() error {
	bad := func(field, format string, args ...any) error {
		return problem.Invalid("configuration."+field, format, args...)
	}
	if len(c.Listen) == 0 || len(c.Listen) > maxListeners {
		return bad("listen", "needs 1 to %d listeners", maxListeners)
	}
	seen := map[string]bool{}
	for i, l := range c.Listen {
		addr, err := netip.ParseAddr(l.Address)
		switch {
		case err != nil || addr.Zone() != "":
			return bad(fmt.Sprintf("listen[%d].address", i), "%q is no address", l.Address)
		case l.Port < 1 || l.Port > 65535:
			return bad(fmt.Sprintf("listen[%d].port", i), "must be 1 to 65535")
		case seen[l.at()]:
			return bad(fmt.Sprintf("listen[%d]", i), "is there twice")
		case l.TLS && c.TLS == nil:
			return bad(fmt.Sprintf("listen[%d].tls", i), "needs a certificate and its key, in configuration.tls")
		}
		seen[l.at()] = true
	}
	if err := c.TLS.Wrong(slices.ContainsFunc(c.Listen, func(l Listener) bool { return l.TLS }), bad); err != nil {
		return err
	}
	if len(c.Upstreams) == 0 && c.Recursion == nil || len(c.Upstreams) > maxUpstreams {
		return bad("upstreams", "needs 1 to %d servers, or recursion", maxUpstreams)
	}
	if err := c.Recursion.wrong(bad); err != nil {
		return err
	}
	for i, u := range c.Upstreams {
		if !isAddrPort(u.Address) {
			return bad(fmt.Sprintf("upstreams[%d].address", i), "%q is neither an address nor an address and a port", u.Address)
		}
		if at := netip.MustParseAddrPort(u.Address); u.Port != 0 && int(at.Port()) != u.Port {
			return bad(fmt.Sprintf("upstreams[%d].port", i), "must be 1 to 65535, and the one of the address where that has one")
		}
		if c.listensAt(u.Address) {
			return bad(fmt.Sprintf("upstreams[%d].address", i), "the resolver would ask itself: it listens there")
		}
		if u.TLSServerName != c.Upstreams[0].TLSServerName {
			return bad(fmt.Sprintf("upstreams[%d].tlsServerName", i), "must be the same for all upstreams")
		}
		if strings.ContainsFunc(u.TLSServerName, func(r rune) bool {
			return r != '.' && r != '-' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z')
		}) {
			return bad(fmt.Sprintf("upstreams[%d].tlsServerName", i), "%q is no name of a host", u.TLSServerName)
		}
	}
	return c.wrongBeside(bad)
}

// isAddrPort reports whether a text is an address and a port, and nothing else: the zone of an address may be any text.
func isAddrPort(text string) bool {
	at, err := netip.ParseAddrPort(text)
	return err == nil && at.Addr().Zone() == "" && at.Port() != 0
}

// wrongBeside says what is wrong beside listeners and upstreams.
func (c *Configuration) wrongBeside(bad func(field, format string, args ...any) error) error {
	if !slices.Contains([]string{"sequential", "random", "round_robin"}, c.Policy) {
		return bad("policy", "%q is none of sequential, random and round_robin", c.Policy)
	}
	if len(c.Allow) > maxAllowed {
		return bad("allow", "has more than %d prefixes", maxAllowed)
	}
	for i, text := range c.Allow {
		if p, err := netip.ParsePrefix(text); err != nil || p != p.Masked() {
			return bad(fmt.Sprintf("allow[%d]", i), "%q is no prefix", text)
		}
	}
	if err := c.wrongZones(bad); err != nil {
		return err
	}
	if c.Metrics != "" {
		if !isAddrPort(c.Metrics) {
			return bad("metrics", "%q is no address and port", c.Metrics)
		}
	}
	for _, bound := range []struct {
		field            string
		value, low, most int
	}{{"entries", c.Cache.Entries, 1, maxEntries}, {"maxTTLSeconds", c.Cache.MaxTTLSeconds, 1, maxTTL},
		{"serveStaleSeconds", c.Cache.ServeStaleSeconds, 0, maxStale}} {
		if bound.value < bound.low || bound.value > bound.most {
			return bad("cache."+bound.field, "must be %d to %d", bound.low, bound.most)
		}
	}
	return nil
}

// corefile words the configuration for CoreDNS, without its listeners, which a generation serves. Everything in it was checked: nothing
// can stand in it that means something else.
func (c *Configuration) corefile() []byte {
	var b strings.Builder
	b.WriteString("dns://.:53 {\n " + endsServing + "\n " + beginsServing + "\n")
	if slices.ContainsFunc(c.Listen, func(l Listener) bool { return l.TLS }) {
		b.WriteString(" tls\n")
	}
	b.WriteString(" errors\n chaos Portolan\n")
	c.serverBlock(&b)
	return []byte(b.String())
}

// serverBlock words how questions are answered, and ends the block.
func (c *Configuration) serverBlock(b *strings.Builder) {
	if len(c.Allow) > 0 {
		fmt.Fprintf(b, " acl {\n  allow net %s\n  block\n }\n", strings.Join(c.Allow, " "))
	}
	c.toldBlock(b)
	if c.Metrics != "" {
		b.WriteString(" " + measures + "\n")
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
	b.WriteString(" }\n")
	c.zoneBlock(b)
	b.WriteString(" forward .")
	for _, u := range c.Upstreams {
		b.WriteByte(' ')
		if u.TLSServerName != "" {
			b.WriteString("tls://")
		}
		b.WriteString(u.Address)
	}
	// Over UDP also what is asked for by the cache itself, which a network may let through where it does not let TCP.
	fmt.Fprintf(b, " {\n  policy %s\n  prefer_udp\n", c.Policy)
	if name := c.Upstreams[0].TLSServerName; name != "" {
		fmt.Fprintf(b, "  tls_servername %s\n", name)
	} else {
		b.WriteString(freshPorts)
	}
	b.WriteString(" }\n}\n")
}

// freshPorts has every question to an upstream leave from a port of its own (RFC 5452 section 9.2): no socket is kept for the next one.
const freshPorts = "  expire 0s\n  max_idle_conns 1\n"

// at is its address and port.
func (l Listener) at() string { return net.JoinHostPort(l.Address, strconv.Itoa(l.Port)) }

// listensAt reports whether a question to an address and port would come back to the resolver, on whatever machine it is.
func (c *Configuration) listensAt(at string) bool {
	return c.hears(at, func(a netip.Addr) bool { return a.IsLoopback() || a.IsUnspecified() })
}

// listensHere is listensAt on this machine.
func (c *Configuration) listensHere(at string) bool { return c.hears(at, isOwn) }

// hears reports whether a question to an address and port comes to a listener; own says which addresses are those of the machine.
func (c *Configuration) hears(at string, own func(netip.Addr) bool) bool {
	to, err := netip.ParseAddrPort(at)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(c.Listen, func(l Listener) bool {
		is, err := netip.ParseAddrPort(l.at())
		if err != nil || is.Port() != to.Port() {
			return false
		}
		if is.Addr().Unmap() == to.Addr().Unmap() {
			return true
		}
		return is.Addr().IsUnspecified() && (is.Addr().Is6() || to.Addr().Unmap().Is4()) && own(to.Addr().Unmap())
	})
}

// isOwn reports whether an address is one of this machine.
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

// reached is where the resolver itself finds a listener.
func (l Listener) reached() string {
	if addr, err := netip.ParseAddr(l.Address); err == nil && addr.IsUnspecified() {
		l.Address = "127.0.0.1"
		if addr.Is6() {
			l.Address = "::1"
		}
	}
	return l.at()
}

// claims are the addresses and ports that are nobody else's.
func (c *Configuration) claims() (all []string) {
	for _, l := range c.Listen {
		all = append(all, l.at())
	}
	if c.Metrics != "" {
		all = append(all, c.Metrics)
	}
	return all
}

// hide takes the private key out of a configuration.
func hide(text json.RawMessage) json.RawMessage { return application.HideKey(text, &Configuration{}) }
