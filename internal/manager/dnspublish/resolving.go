package dnspublish

import (
	"cmp"
	"encoding/json"
	"net/netip"
	"slices"

	"portolan/internal/manager/dns"
	"portolan/internal/manager/serverconfig"
	"portolan/internal/wire/zonedata"
)

// recursionOf says how a server answers names of a view that it has no zone for, by the roles FORWARDING, STUB and RECURSIVE of the view
// and of its zones; nil where there are none.
func (s *serving) recursionOf(p *plan, view, server int64, zones []*plannedZone) *zonedata.Recursion {
	chain := []int64{view}
	r := &zonedata.Recursion{Zones: s.forwarded(p, server, zones)}
	role := p.viewRoles[view][server]
	if !role.resolves() && len(r.Zones) == 0 {
		return nil
	}
	r.Clients = s.matches(p, p.lookUp(chain, server, "allow-recursion"))
	if r.Closed = !role.resolves(); r.Closed {
		return r
	}
	r.Forwarders, r.Only = withPorts(p.addressesOf(role.targets)), p.forwardsOnly(chain, server)
	if len(r.Forwarders) == 0 {
		r.Forwarders = p.forwarders(chain, server)
	}
	if role.kind == serverconfig.RoleForwarding && len(r.Forwarders) == 0 {
		s.warn("the role FORWARDING of a view names nobody who is asked: add an interface that is a TARGET, or the option forwarders")
	}
	return r
}

// forwarded gives the zones that a server asks others for: those whose roles for it are FORWARDING or STUB.
func (s *serving) forwarded(p *plan, server int64, zones []*plannedZone) (all []zonedata.Forwarded) {
	for _, z := range zones {
		a := z.roles[server]
		if a.kind != serverconfig.RoleForwarding && a.kind != serverconfig.RoleStub ||
			a.at == z.view { // a view with such a role asks others for all there is
			continue
		}
		one := zonedata.Forwarded{Name: z.fqdn(), To: withPorts(p.addressesOf(a.targets)), Stub: a.kind == serverconfig.RoleStub,
			Only: p.forwardsOnly(z.chain, server)}
		if len(one.To) == 0 {
			one.To = p.forwarders(z.chain, server)
		}
		if len(one.To) == 0 {
			one.To = withPorts(p.primariesOf(z))
		}
		if len(one.To) == 0 {
			s.warn("the role %s of zone %s names nobody who is asked: add an interface that is a TARGET, or the option forwarders", a.kind,
				z.row.Key)
			continue
		}
		all = append(all, one)
	}
	return all
}

// addressesOf gives the addresses of interfaces.
func (p *plan) addressesOf(interfaces []int64) (all []netip.Addr) {
	for _, id := range interfaces {
		all = append(all, p.interfaces[id].addresses...)
	}
	return all
}

// forwarders gives the servers that the option of that name says.
func (p *plan) forwarders(chain []int64, server int64) []netip.AddrPort {
	var all []netip.Addr
	if value := p.lookUp(chain, server, "forwarders"); value == nil || json.Unmarshal(value, &all) != nil {
		return nil
	}
	return withPorts(all)
}

// forwardsOnly reports whether the option forwarding-policy says that nobody else is asked.
func (p *plan) forwardsOnly(chain []int64, server int64) bool {
	var policy string
	value := p.lookUp(chain, server, "forwarding-policy")
	return value != nil && json.Unmarshal(value, &policy) == nil && policy == "only"
}

// withPorts gives addresses with the port of DNS.
func withPorts(all []netip.Addr) (to []netip.AddrPort) {
	for _, a := range all {
		to = append(to, netip.AddrPortFrom(a, dnsPort))
	}
	return to
}

// policiesOf gives the response policy zones among the zones of a server, in the order in which they are asked: those that let names
// through, then those whose names come from here, then those that are transferred, then feeds; among those by name.
func (p *plan) policiesOf(zones []*plannedZone) (all []zonedata.Policy) {
	rank := func(z *plannedZone) int {
		x := p.policies[z.row.ID]
		switch override, kind := x.RuleOf(p.responses); {
		case cmp.Or(override, kind) == "ALLOWLIST":
			return 0
		case x.IsLocal():
			return 1
		case x.ResponsePolicyZoneType == dns.ExternalPolicy:
			return 2
		}
		return 3
	}
	zones = slices.Clone(zones)
	slices.SortStableFunc(zones, func(a, b *plannedZone) int { return cmp.Compare(rank(a), rank(b)) })
	for _, z := range zones {
		one := zonedata.Policy{Zone: z.id}
		if x := p.policies[z.row.ID]; !x.IsLocal() { // the records of local ones say it already
			one.Override, one.Target = x.OverridePolicyType, x.RedirectTarget
		}
		all = append(all, one)
	}
	return all
}

// isPolicy reports whether a zone tells resolvers what to answer, and is no zone that is asked.
func (p *plan) isPolicy(z *plannedZone) bool { return p.policies[z.row.ID] != nil }
