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

// recursionOf returns how a server resolves names in a view that it has no zone for. It follows from the roles FORWARDING, STUB and
// RECURSIVE of the view and of its zones. It returns nil where there are no such roles.
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
		s.warn("the role FORWARDING of a view has no servers to forward to: add a TARGET interface or the option forwarders")
	}
	return r
}

// forwarded returns the zones that a server forwards to other servers: those with the role FORWARDING or STUB for it.
func (s *serving) forwarded(p *plan, server int64, zones []*plannedZone) (all []zonedata.Forwarded) {
	for _, z := range zones {
		a := z.roles[server]
		if a.kind != serverconfig.RoleForwarding && a.kind != serverconfig.RoleStub ||
			a.owner == z.view { // such a role of the view covers all its zones
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
			s.warn("the role %s of zone %s has no servers to forward to: add a TARGET interface or the option forwarders", a.kind,
				z.row.Key)
			continue
		}
		all = append(all, one)
	}
	return all
}

// addressesOf returns the addresses of interfaces.
func (p *plan) addressesOf(interfaces []int64) (all []netip.Addr) {
	for _, id := range interfaces {
		all = append(all, p.interfaces[id].addresses...)
	}
	return all
}

// forwarders returns the servers in the option forwarders.
func (p *plan) forwarders(chain []int64, server int64) []netip.AddrPort {
	var all []netip.Addr
	if value := p.lookUp(chain, server, "forwarders"); value == nil || json.Unmarshal(value, &all) != nil {
		return nil
	}
	return withPorts(all)
}

// forwardsOnly reports whether the option forwarding-policy restricts resolution to the forwarders.
func (p *plan) forwardsOnly(chain []int64, server int64) bool {
	var policy string
	value := p.lookUp(chain, server, "forwarding-policy")
	return value != nil && json.Unmarshal(value, &policy) == nil && policy == "only"
}

// withPorts returns the addresses with the DNS port.
func withPorts(all []netip.Addr) (to []netip.AddrPort) {
	for _, a := range all {
		to = append(to, netip.AddrPortFrom(a, dnsPort))
	}
	return to
}

// policiesOf returns the response policy zones among the zones of a server, in the order of evaluation: allow lists, local zones,
// transferred zones, feeds; by name within each group.
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
		if x := p.policies[z.row.ID]; !x.IsLocal() { // the records of local zones contain it already
			one.Override, one.Target = x.OverridePolicyType, x.RedirectTarget
		}
		all = append(all, one)
	}
	return all
}

// isPolicy reports whether a zone is a response policy zone, which is not answered for.
func (p *plan) isPolicy(z *plannedZone) bool { return p.policies[z.row.ID] != nil }
