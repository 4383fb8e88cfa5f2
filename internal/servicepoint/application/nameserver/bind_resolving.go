package nameserver

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"portolan/internal/wire/zonedata"
)

// bindRecursion writes the recursion statements of a view. Without a client list BIND answers clients in its own networks.
func bindRecursion(line func(string, ...any), r *zonedata.Recursion) {
	if r == nil {
		return
	}
	line("\trecursion yes;")
	if r.Clients != nil {
		line("\tallow-recursion %s;", bindMatches(r.Clients, true))
	}
	switch {
	case r.Closed: // no other names are resolved, so there is no root to validate from
		line("\tdnssec-validation no;\n\tforward only; forwarders { %s; };\n\tserver %s { bogus yes; };", noServer, noServer)
	case len(r.Forwarders) > 0:
		line("\tforward %s; forwarders %s;", firstOrOnly(r.Only), bindServers(r.Forwarders))
	default: // recursion from the root with BIND's built-in trust anchor; zones that are forwarded elsewhere may not be known to the root
		line("\tdnssec-validation auto;")
		var names []string
		for _, z := range r.Zones {
			names = append(names, fmt.Sprintf("%q;", z.Name))
		}
		if len(names) > 0 {
			line("\tvalidate-except { %s };", strings.Join(names, " "))
		}
	}
	for _, z := range r.Zones {
		name := strings.TrimSuffix(z.Name, ".")
		if z.Stub {
			line("\tzone %q { type stub; primaries %s; forwarders { }; };", name, bindServers(z.To))
			continue
		}
		line("\tzone %q { type forward; forward %s; forwarders %s; };", name, firstOrOnly(z.Only || r.Closed), bindServers(z.To))
	}
}

// noServer is an address without a server (RFC 5737). It is the forwarder of a view that forwards nothing, and BIND is configured not to
// query it.
const noServer = "192.0.2.0"

func firstOrOnly(only bool) string {
	if only {
		return "only"
	}
	return "first"
}

// bindServers returns a list of servers.
func bindServers(all []netip.AddrPort) string {
	var parts []string
	for _, at := range all {
		parts = append(parts, fmt.Sprintf("%s port %d;", at.Addr(), at.Port()))
	}
	return "{ " + strings.Join(parts, " ") + " }"
}

// bindActions are BIND's names of the overrides of a response policy.
var bindActions = map[string]string{"": "given", "ALLOWLIST": "passthru", "BLOCKLIST": "nxdomain", "BLACKHOLE": "nodata"}

// bindPolicies writes the response policies of a view. It skips policies whose zone is not served.
func bindPolicies(line func(string, ...any), v *zonedata.View, all []bindZone) {
	var parts []string
	for _, p := range v.Policies {
		if redirectsAll(p) {
			continue
		}
		i := slices.IndexFunc(all, func(z bindZone) bool { return z.settings.ID == p.Zone && z.settings.View == v.ID })
		if i < 0 {
			continue
		}
		action, known := bindActions[p.Override]
		if !known {
			action = fmt.Sprintf("cname %q", p.Target)
		}
		parts = append(parts, fmt.Sprintf("zone %q policy %s;", all[i].name, action))
	}
	if len(parts) > 0 {
		line("\tresponse-policy { %s } break-dnssec yes;", strings.Join(parts, " "))
	}
}

// redirectsAll reports whether a policy redirects all its names to an address, which BIND does not support.
func redirectsAll(p zonedata.Policy) bool {
	_, err := netip.ParseAddr(p.Target)
	return err == nil && p.Override == "REDIRECT"
}

// checkSupport returns an error for content that BIND does not support; nil if there is none.
func (s *served) checkSupport() error {
	for _, v := range s.views {
		for _, p := range v.Policies {
			if redirectsAll(p) {
				return fmt.Errorf("BIND cannot redirect all names of a response policy zone to the address %s: "+
					"use the name of a host with the address", p.Target)
			}
		}
	}
	return nil
}
