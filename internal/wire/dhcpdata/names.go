package dhcpdata

import (
	"bytes"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Guard is the kind of the record beside an address record, which identifies the client that a name belongs to.
type Guard string

// The kinds of guard records: a DHCID record (RFC 4701), or a TXT record as of earlier servers.
const (
	GuardStandard Guard = "standard"
	GuardInterim  Guard = "interim"
)

// Names are the records in DNS that the server keeps for a leased address. They are stored with the lease. A value without Host means that
// the address has none.
type Names struct {
	// Host is the absolute name of the client, in lower case.
	Host string `json:"host,omitempty"`
	// Forward is true if the server keeps the address record of the name. If it is false, the client does.
	Forward bool `json:"forward,omitempty"`
	// Reverse is the absolute name of the PTR record; empty if the server keeps none.
	Reverse string `json:"reverse,omitempty"`
	TTL     uint32 `json:"ttl,omitempty"`
	// Guard is the kind of the guard record. IDs are its possible values: that of the client and, after it, those of the same machine in the
	// other family (guardValues).
	Guard Guard `json:"guard,omitempty"`
	IDs   []Hex `json:"ids,omitempty"`
	// Overwrite replaces records of other clients (update-conflict-detection). AnyGuard does so for names with a guard record
	// (ddns-guard-id-must-match).
	Overwrite bool `json:"overwrite,omitempty"`
	AnyGuard  bool `json:"anyGuard,omitempty"`
	// Mixed ignores address and guard records of the other family (ddns-dual-stack-mixed-mode). OtherGuard replaces address records of a name
	// with a guard record of the other kind (ddns-other-guard-is-dynamic).
	Mixed      bool `json:"mixed,omitempty"`
	OtherGuard bool `json:"otherGuard,omitempty"`
	// Always sends the updates again at each renewal (update-optimization).
	Always bool `json:"always,omitempty"`
	// Partner is true if the partner of a failover pair has granted the lease, and keeps the records.
	Partner bool `json:"partner,omitempty"`
	// Source is the address that updates are sent from; not valid if the system chooses it.
	Source netip.Addr `json:"source,omitzero"`
}

// Same reports whether two values lead to the same records by the same server, apart from their TTL. Nil and a value without Host are the
// same.
func (n *Names) Same(o *Names) bool {
	none := func(x *Names) bool { return x == nil || x.Host == "" }
	if none(n) || none(o) {
		return none(n) && none(o)
	}
	return n.Host == o.Host && n.Partner == o.Partner && n.Forward == o.Forward && n.Reverse == o.Reverse && n.Guard == o.Guard &&
		n.Source == o.Source &&
		slices.EqualFunc(n.IDs, o.IDs, func(a, b Hex) bool { return bytes.Equal(a, b) })
}

// String describes the records for explanations.
func (n *Names) String() string {
	text := n.Host
	if !n.Forward {
		text += " (its address record by the client)"
	}
	if n.Reverse != "" {
		text += ", PTR at " + n.Reverse
	}
	return text + ", TTL " + strconv.FormatUint(uint64(n.TTL), 10)
}

// Limits of the TTL of records without ddns-ttl, in seconds: a third of the lease, within these limits (RFC 4702 section 5).
const (
	minNameTTL = 600
	maxNameTTL = 86400
)

// client is a client with the facts that its names depend on.
type client struct {
	all     layers
	v6      bool
	address netip.Addr
	seconds uint32 // of the lease
	// identifiers returns those of the client; most clients have no names.
	identifiers func() []identifier
	// sent is the name of the option host-name. fqdn is the option with a full name, if the client sends it.
	sent        string
	fqdn        clientFQDN
	reservation *reservation
	hardware    []byte
	duid        []byte
}

// named is the decision on the names of a client.
type named struct {
	names *Names // nil if the server updates nothing
	// host is the name for the answer; empty if the server knows none. from is the object that decided.
	host string
	from Source
}

// decideNames decides which records the server keeps for a client.
func (c *client) decideNames() (out named) {
	style, updates := c.all.service("ddns-update-style"), c.all.service("ddns-updates")
	switch {
	case style == nil && updates == nil, updates != nil && !updates.flag, style != nil && style.text == "none":
		return out
	case updates != nil:
		out.from = updates.From
	default:
		out.from = style.From
	}
	if c.fqdn.present && c.fqdn.none || c.reservation != nil && !c.all.flag("update-static-leases", false) {
		return out
	}
	out.host = c.host()
	x := &Names{Host: out.host, Forward: c.all.flag("do-forward-updates", true), Guard: GuardStandard, TTL: c.ttl(),
		Overwrite: !c.all.flag("update-conflict-detection", true), AnyGuard: !c.all.flag("ddns-guard-id-must-match", true),
		Mixed: c.all.flag("ddns-dual-stack-mixed-mode", false), Always: !c.all.flag("update-optimization", true)}
	x.OtherGuard = x.Mixed && c.all.flag("ddns-other-guard-is-dynamic", false)
	if style != nil {
		x.Guard = Guard(style.text)
	}
	if c.fqdn.present && !c.fqdn.server && c.all.flag("client-updates", true) {
		x.Forward = false
		if strings.Contains(c.fqdn.name, ".") {
			x.Host = strings.ToLower(c.fqdn.name) + "."
			out.host = x.Host
		}
	}
	if c.all.flag("do-reverse-updates", true) {
		x.Reverse = c.reverse()
	}
	if x.Host == "" || !x.Forward && x.Reverse == "" {
		return out
	}
	local := "ddns-local-address4"
	if c.v6 {
		local = "ddns-local-address6"
	}
	if s := c.all.service(local); s != nil {
		x.Source = s.address
	}
	if x.Forward {
		x.IDs = guardValues(x.Guard, x.Host, c.identifiers(), x.Mixed)
	}
	out.names = x
	return out
}

// ttl returns the TTL of the records.
func (c *client) ttl() uint32 {
	return c.all.number("ddns-ttl", max(min(c.seconds/3, maxNameTTL), minNameTTL))
}

// host returns the absolute name of the client; empty if there is none. In this order: ddns-hostname, the name of the reservation with
// use-host-decl-names, the first label of the full name or the host name that the client sends, the name of the reservation.
func (c *client) host() string {
	reserved := ""
	if c.reservation != nil {
		reserved = CleanHostName([]byte(c.reservation.HostName))
	}
	label := ""
	if s := c.all.service("ddns-hostname"); s != nil {
		label = hostLabel(c.ruledName(s.texts))
	}
	if label == "" && reserved != "" && c.all.flag("use-host-decl-names", false) {
		return c.absolute(reserved)
	}
	for _, name := range []string{c.fqdn.name, c.sent} {
		if label == "" {
			label = hostLabel(name)
		}
	}
	if label == "" {
		return c.absolute(reserved)
	}
	return c.absolute(label)
}

// absolute returns the absolute form of a name in the domain of the client. A name of a reservation with several labels is absolute.
func (c *client) absolute(name string) string {
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	if !strings.Contains(name, ".") {
		domain := c.domain()
		if name = hostLabel(name); name == "" || domain == "" {
			return ""
		}
		name += "." + domain
	}
	if len(name) > 253 {
		return ""
	}
	return name + "."
}

// domain returns the domain of the names of clients: ddns-domainname, or the option domain-name of DHCPv4.
func (c *client) domain() string {
	if s := c.all.service("ddns-domainname"); s != nil {
		return cleanDomain(s.text)
	}
	if o := c.all.option(optionKey{code: optDomainName}); o != nil && !c.v6 {
		return cleanDomain(string(o.Value))
	}
	return ""
}

// optDomainName is the code of the option domain-name.
const optDomainName = 15

// cleanDomain returns a domain in lower case without a final dot.
func cleanDomain(text string) string {
	return strings.ToLower(strings.Trim(strings.TrimRight(text, "\x00"), ". "))
}

// hostLabel returns the first label of a name as a label of a host: in lower case, with letters, digits and hyphens.
func hostLabel(name string) string {
	label, _, _ := strings.Cut(CleanHostName([]byte(name)), ".")
	return strings.Trim(strings.ToLower(strings.ReplaceAll(label, "_", "-")), "-")
}

// The rules of ddns-hostname: the source of the name, and the place of the text.
const (
	nameByIP      = "IP"
	nameByMAC     = "MAC"
	nameByDUID    = "DUID"
	nameFixed     = "FIXED"
	textPrepended = "PREPEND"
	textAppended  = "APPEND"
)

// ruledName returns the name by the rule of ddns-hostname, which CheckValue has examined.
func (c *client) ruledName(rule []string) string {
	text, name := rule[len(rule)-1], ""
	octets := func(all []byte) string {
		parts := make([]string, len(all))
		for i, b := range all {
			parts[i] = Hex{b}.String()
		}
		return strings.Join(parts, "-")
	}
	switch rule[0] {
	case nameFixed:
		return text
	case nameByIP:
		name = strings.ReplaceAll(c.address.String(), ".", "-")
		if c.v6 {
			name = strings.ReplaceAll(strings.TrimPrefix(c.address.StringExpanded(), "::"), ":", "-")
		}
	case nameByMAC:
		name = octets(c.hardware)
	case nameByDUID:
		name = Hex(c.duid).String()
	}
	if name == "" {
		return ""
	}
	if rule[1] == textAppended {
		return name + text
	}
	return text + name
}

// checkHostNameRule reports whether a value of ddns-hostname is valid.
func checkHostNameRule(rule []string, v6 bool) bool {
	if len(rule) == 2 && rule[0] == nameFixed {
		return hostLabel(rule[1]) != ""
	}
	sources := []string{nameByIP, nameByMAC, nameFixed}
	if v6 {
		sources = []string{nameByIP, nameByDUID, nameFixed}
	}
	return len(rule) == 3 && slices.Contains(sources, rule[0]) && (rule[1] == textPrepended || rule[1] == textAppended) &&
		(rule[0] != nameFixed || hostLabel(rule[2]) != "")
}

// reverse returns the absolute name of the PTR record of the address.
func (c *client) reverse() string {
	domain, octets := "in-addr.arpa", c.address.AsSlice()
	if c.v6 {
		domain = "ip6.arpa"
	}
	if s := c.all.service("ddns-rev-domainname"); s != nil {
		domain = cleanDomain(s.text)
	}
	var out strings.Builder
	for _, b := range slices.Backward(octets) {
		if c.v6 {
			out.WriteString(strconv.FormatUint(uint64(b&15), 16) + "." + strconv.FormatUint(uint64(b>>4), 16) + ".")
		} else {
			out.WriteString(strconv.Itoa(int(b)) + ".")
		}
	}
	return out.String() + domain + "."
}

// ZoneOf returns the zone of a family that contains an absolute name: the one with the longest name; ok is false if there is none.
func (c *Content) ZoneOf(name string, v6 bool) (z Zone, ok bool) {
	for _, one := range c.Zones {
		inside := name == one.Name || one.Name == "." || strings.HasSuffix(name, "."+one.Name)
		if one.V6 == v6 && inside && (!ok || len(one.Name) > len(z.Name)) {
			z, ok = one, true
		}
	}
	return z, ok
}
