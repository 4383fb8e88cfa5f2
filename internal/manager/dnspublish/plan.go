package dnspublish

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/base/naming"
	"portolan/internal/base/space"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dns"
	"portolan/internal/manager/serverconfig"
	"portolan/internal/wire/zonedata"
)

// maxReverseZones is the maximum number of reverse zones of a block or network.
const maxReverseZones = 256

// plan is a snapshot of the roles, options and servers of a configuration, and of the zones that follow from them.
type plan struct {
	tx            *store.Tx
	api           *resource.API
	configuration int64
	// inherits reports whether DNS options are inherited.
	inherits   bool
	views      []*store.Resource
	servers    map[int64]*serverconfig.ServerFields
	heads      map[int64]*schema.Head
	interfaces map[int64]roleServer
	// transferKeys are the names of the keys for transfers from foreign servers, by the id of the server.
	transferKeys map[int64]string
	// foreignServers are the foreign servers.
	foreignServers map[int64]bool
	roles          map[int64][]*serverconfig.DNSDeploymentRole
	options        map[int64][]option
	lists          map[string][]string
	// keys are the keys that have secrets, by name.
	keys map[string]zonedata.SigningKey
	// zones are the zones that a role is in effect for, sorted by view and name; byID are the same by id.
	zones []*plannedZone
	byID  map[string]*plannedZone
	// idle are the zones with a role in effect whose deployment is disabled.
	idle []*plannedZone
	// apexes are the names of all zones, by view; cuts are the same as keys of wire format, filled on demand.
	apexes map[int64][]string
	cuts   map[int64]map[string]bool
	// viewRoles are the roles of views that make servers resolve names. policies are the response policy zones, responses the response
	// policies, by id.
	viewRoles map[int64]map[int64]assigned
	policies  map[int64]*dns.ResponsePolicyZone
	responses map[int64]*dns.ResponsePolicy
	// byName are the zones by view and absolute name; below are the signed zones that a zone delegates, nearest all zones with no planned
	// zone between them. Both are filled on demand.
	byName  map[int64]map[string]*plannedZone
	below   map[*plannedZone][]*plannedZone
	nearest map[*plannedZone][]*plannedZone
	// children are the zones that a zone delegates, whether they are deployed or not, in the order of their ids; those of a view are below
	// its internal root zone.
	children map[int64][]*store.Resource
	// checks are the checks of servers, framedBy the names that the plan contributes to zones. Both are filled on demand.
	checks   map[int64]checks
	framedBy map[*plannedZone]names
}

// roleServer is an interface of a server, with its name for NS records and its addresses.
type roleServer struct {
	server    int64
	name      string
	addresses []netip.Addr
}

// option is a DNS option.
type option struct {
	kind, name string
	scope      int64
	value      json.RawMessage
}

// plannedZone is a zone that a role is in effect for.
type plannedZone struct {
	id string
	// name is the name in wire form, filled on demand (fqdn).
	name string
	// row is the zone. A reverse zone that was not created by a user has the id 0.
	row  *store.Resource
	view int64
	// chain are the resources that it inherits options from, nearest first.
	chain []int64
	// roles are the roles in effect, by server.
	roles map[int64]assigned
}

// assigned is the role of a server for a zone.
type assigned struct {
	kind  string
	iface int64
	ttl   *int64
	// owner is the resource that the role is set on; targets are the interfaces that queries are forwarded to.
	owner   int64
	targets []int64
}

// answers reports whether the server answers for the zone from its own data.
func (a assigned) answers() bool {
	return a.kind == serverconfig.RolePrimary || a.kind == serverconfig.RoleHiddenPrimary || a.kind == serverconfig.RoleSecondary ||
		a.kind == serverconfig.RoleStealthSecondary
}

// writes reports whether the server gets the zone from the manager, not from another server.
func (a assigned) writes() bool {
	return a.kind == serverconfig.RolePrimary || a.kind == serverconfig.RoleHiddenPrimary
}

// resolves reports whether the server gets answers from other servers.
func (a assigned) resolves() bool { return serverconfig.Resolves(a.kind) }

// zoneID returns the id of a zone in the tables of deployed content.
func zoneID(view int64, key string) string { return fmt.Sprintf("%d/%s", view, key) }

// fqdn returns the name of a zone with its final dot, in lower case.
func (z *plannedZone) fqdn() string {
	if z.name == "" {
		name, err := naming.ASCII(naming.Clean(z.row.Key))
		if err != nil { // the name was checked when the zone was created
			name = z.row.Key
		}
		z.name = wire.CanonicalName(name)
	}
	return z.name
}

// newPlan reads the plan of a configuration.
func newPlan(tx *store.Tx, api *resource.API, configuration int64) (p *plan, err error) {
	p = &plan{tx: tx, api: api, configuration: configuration, servers: map[int64]*serverconfig.ServerFields{}, heads: map[int64]*schema.Head{},
		interfaces: map[int64]roleServer{}, foreignServers: map[int64]bool{},
		transferKeys: map[int64]string{}, roles: map[int64][]*serverconfig.DNSDeploymentRole{}, options: map[int64][]option{},
		lists:  map[string][]string{},
		keys:   map[string]zonedata.SigningKey{},
		byName: map[int64]map[string]*plannedZone{}, byID: map[string]*plannedZone{},
		apexes: map[int64][]string{}, cuts: map[int64]map[string]bool{}, viewRoles: map[int64]map[int64]assigned{},
		children: map[int64][]*store.Resource{}, policies: map[int64]*dns.ResponsePolicyZone{}, responses: map[int64]*dns.ResponsePolicy{}}
	if p.inherits, err = serverconfig.OptionsInherit(tx, api, configuration); err != nil {
		return nil, err
	}
	for _, read := range []func() error{p.readServers, p.readRoles, p.readOptions, p.readLists, p.readKeys, p.readPolicies, p.readZones,
		p.readSpace} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(p.zones, func(a, b *plannedZone) int {
		return cmp.Or(cmp.Compare(a.view, b.view), cmp.Compare(a.row.Key, b.row.Key))
	})
	return p, nil
}

// each calls fn for the resources of a collection in the configuration.
func (p *plan) each(collection string, fn func(row *store.Resource, o schema.Object) error) error {
	var rows []*store.Resource
	if err := p.tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection(collection),
		store.Compare{Field: store.Field{Kind: store.ColumnInt, Path: []string{"configuration"}}, Op: "eq", Value: p.configuration}}},
		func(r *store.Resource) error {
			rows = append(rows, r.Clone())
			return nil
		}); err != nil {
		return err
	}
	for _, row := range rows {
		o, err := p.api.Object(row)
		if err != nil {
			return err
		}
		if err := fn(row, o); err != nil {
			return err
		}
	}
	return nil
}

func (p *plan) readServers() error {
	if err := p.each("servers", func(row *store.Resource, o schema.Object) error {
		p.servers[row.ID], p.heads[row.ID] = serverconfig.FieldsOf(o), schema.HeadOf(o)
		x, ok := o.(*serverconfig.Server)
		if p.foreignServers[row.ID] = ok && x.Profile == serverconfig.IsOtherServer; !ok || x.TransferKey.ID == 0 {
			return nil
		}
		key, err := p.tx.Get(x.TransferKey.ID)
		if err == nil {
			p.transferKeys[row.ID] = key.Name
		}
		return err
	}); err != nil {
		return err
	}
	return p.each("interfaces", func(row *store.Resource, o schema.Object) error {
		at := roleServer{server: row.Parent}
		switch x := o.(type) {
		case *serverconfig.NetworkInterface:
			at.name, at.addresses = x.Name, []netip.Addr{x.ServicesIPv4Address, x.ServicesIPv6Address}
			if h := p.heads[row.Parent]; !isHostName(at.name) && h != nil {
				at.name = h.Name
			}
		case *serverconfig.PublishedInterface:
			at.name, at.addresses = x.Name, []netip.Addr{x.PrimaryAddress, x.SecondaryAddress}
		}
		at.addresses = slices.DeleteFunc(at.addresses, func(a netip.Addr) bool { return !a.IsValid() })
		p.interfaces[row.ID] = at
		return nil
	})
}

// isHostName reports whether a name can be used in an NS record.
func isHostName(name string) bool {
	return strings.Contains(name, ".") && naming.Check(naming.Clean(name), naming.AnyName) == nil
}

func (p *plan) readRoles() error {
	return p.each("deploymentRoles", func(row *store.Resource, o schema.Object) error {
		if x, ok := o.(*serverconfig.DNSDeploymentRole); ok {
			p.roles[row.Parent] = append(p.roles[row.Parent], x)
		}
		return nil
	})
}

func (p *plan) readOptions() error {
	return p.each("deploymentOptions", func(row *store.Resource, o schema.Object) error {
		one := option{kind: row.Type, name: row.Name, scope: row.Ref("serverScope")}
		switch x := o.(type) {
		case *serverconfig.DNSOption:
			one.value = x.Value
		case *serverconfig.StartOfAuthority:
			one.value = x.Value
		case *serverconfig.DNSRawOption:
		default:
			return nil
		}
		p.options[row.Parent] = append(p.options[row.Parent], one)
		return nil
	})
}

func (p *plan) readLists() error {
	return p.each("accessControlLists", func(row *store.Resource, o schema.Object) error {
		if x, ok := o.(*dns.ACL); ok && !x.Predefined {
			p.lists[row.Name] = x.MatchElements
		}
		return nil
	})
}

func (p *plan) readPolicies() error {
	return p.each("responsePolicies", func(row *store.Resource, o schema.Object) error {
		if x, ok := o.(*dns.ResponsePolicy); ok {
			p.responses[row.ID] = x
		}
		return nil
	})
}

// readZones computes the roles in effect for the zones of the views.
func (p *plan) readZones() error {
	below := map[int64][]*store.Resource{}
	deployed := map[int64]bool{}
	if err := p.each("zones", func(row *store.Resource, o schema.Object) error {
		below[row.Parent] = append(below[row.Parent], row)
		if dns.IsDelegated(row) {
			p.children[row.Parent] = append(p.children[row.Parent], row)
		}
		t := p.api.TypeNamed(row.Type)
		deployed[row.ID] = t.IsTrue(o, "deploymentEnabled")
		if x, ok := o.(*dns.ResponsePolicyZone); ok { // a policy zone has no such field; roles alone decide
			p.policies[row.ID], deployed[row.ID] = x, true
		}
		return nil
	}); err != nil {
		return err
	}
	var visit func(rows []*store.Resource, view int64, above map[int64]assigned, chain []int64)
	visit = func(rows []*store.Resource, view int64, above map[int64]assigned, chain []int64) {
		for _, row := range rows {
			from := above
			if p.policies[row.ID] != nil { // policy zones are used wherever names are resolved
				from = mergeRoles(above, p.viewRoles[view])
			}
			roles, own := p.rolesAt(from, row.ID, view, anyRole), append([]int64{row.ID}, chain...)
			p.apexes[view] = append(p.apexes[view], row.Key)
			z := &plannedZone{row: row, view: view, chain: own, roles: roles}
			if deployed[row.ID] {
				p.add(z)
			} else if len(roles) > 0 && row.Type == "Zone" {
				p.idle = append(p.idle, z)
			}
			visit(below[row.ID], view, roles, own)
		}
	}
	return p.each("views", func(row *store.Resource, _ schema.Object) error {
		p.views = append(p.views, row)
		p.viewRoles[row.ID] = p.rolesAt(nil, row.ID, row.ID, serverconfig.Resolves)
		answering := p.rolesAt(nil, row.ID, row.ID, func(kind string) bool { return !serverconfig.Resolves(kind) })
		visit(below[row.ID], row.ID, answering, []int64{row.ID})
		return nil
	})
}

// add adds a zone, unless no server has a role for it.
func (p *plan) add(z *plannedZone) {
	z.id = zoneID(z.view, z.row.Key)
	if len(z.roles) > 0 && p.byID[z.id] == nil {
		p.byID[z.id] = z
		if p.byName[z.view] == nil {
			p.byName[z.view] = map[string]*plannedZone{}
		}
		p.byName[z.view][z.fqdn()] = z
		p.zones = append(p.zones, z)
	}
}

// anyRole accepts all roles.
func anyRole(string) bool { return true }

// mergeRoles returns the roles of first, and those of second for other servers.
func mergeRoles(first, second map[int64]assigned) map[int64]assigned {
	all := maps.Clone(second)
	if all == nil {
		all = map[int64]assigned{}
	}
	maps.Copy(all, first)
	return all
}

// rolesAt returns the roles in effect at a resource: its own roles of the wanted types, and for other servers those of above.
func (p *plan) rolesAt(above map[int64]assigned, at, view int64, wanted func(kind string) bool) map[int64]assigned {
	own := map[int64]assigned{}
	for _, r := range p.roles[at] {
		if r.View.ID != view || !wanted(r.RoleType) {
			continue
		}
		var targets []int64
		for _, i := range r.RoleInterfaces {
			if i.Kind == serverconfig.InterfaceTarget {
				targets = append(targets, i.ID)
			}
		}
		for _, i := range r.RoleInterfaces {
			server := p.interfaces[i.ID].server
			if had, twice := own[server]; i.Kind == serverconfig.InterfaceZoneTransfer || i.Kind == serverconfig.InterfaceTarget || twice &&
				had.writes() {
				continue
			}
			own[server] = assigned{kind: r.RoleType, iface: i.ID, ttl: r.NSRecordTTL, owner: at, targets: targets}
		}
	}
	return mergeRoles(own, above)
}

// readSpace computes the reverse zones of the blocks and networks that have roles of their own. Blocks and networks below are part of the
// same zone.
func (p *plan) readSpace() error {
	var parents []int64
	for id := range p.roles {
		parents = append(parents, id)
	}
	slices.Sort(parents)
	views := map[int64]*store.Resource{}
	for _, v := range p.views {
		views[v.ID] = v
	}
	for _, id := range parents {
		head, err := p.tx.Head(id)
		if err != nil || head.Collection != "blocks" && head.Collection != "networks" {
			if err != nil {
				return err
			}
			continue
		}
		row, err := p.tx.Get(id)
		if err != nil {
			return err
		}
		path := []int64{id}
		for above := row.Parent; above != p.configuration && above > resource.RootID; {
			h, err := p.tx.Head(above)
			if err != nil {
				return err
			}
			path = append(path, above)
			above = h.Parent
		}
		for _, view := range p.viewsOf(id) {
			if v := views[view]; v != nil {
				if err := p.reverseZones(row, v, path); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// viewsOf returns the views of the roles of a resource, each once.
func (p *plan) viewsOf(id int64) (views []int64) {
	for _, r := range p.roles[id] {
		if !slices.Contains(views, r.View.ID) {
			views = append(views, r.View.ID)
		}
	}
	return views
}

// reverseZones adds the reverse zones of a block or network in a view.
func (p *plan) reverseZones(row, view *store.Resource, path []int64) error {
	var roles map[int64]assigned
	for _, id := range slices.Backward(path) {
		roles = p.rolesAt(roles, id, view.ID, anyRole)
	}
	names := naming.ReverseZones(store.KeyAddr(row.Low), store.KeyAddr(row.High), maxReverseZones)
	if names == nil {
		r := space.Range{Low: store.KeyAddr(row.Low), High: store.KeyAddr(row.High)}
		return fmt.Errorf("%s %s (%d) has more than %d reverse zones", row.Type, r, row.ID, maxReverseZones)
	}
	for _, name := range names {
		zone, err := dns.ImpliedZone(p.tx, view, name)
		if err != nil {
			return err
		}
		if zone == nil {
			continue
		}
		known := p.byID[zoneID(view.ID, zone.Key)]
		if known == nil {
			p.apexes[view.ID] = append(p.apexes[view.ID], zone.Key)
			p.add(&plannedZone{row: zone, view: view.ID, chain: append(slices.Clone(path), view.ID), roles: roles})
			continue
		}
		for server, a := range roles { // created by a user: its own roles take precedence
			if _, nearer := known.roles[server]; !nearer {
				known.roles[server] = a
			}
		}
	}
	return nil
}

// serversOf returns the servers of a zone whose role satisfies holds, sorted by id.
func (z *plannedZone) serversOf(holds func(assigned) bool) (servers []int64) {
	for id, a := range z.roles {
		if holds(a) {
			servers = append(servers, id)
		}
	}
	slices.Sort(servers)
	return servers
}

// lookUp returns the value of an option in effect for a server along a chain of resources, nearest first; nil if there is none. On one
// resource, an option for the server takes precedence over one for its group, and that over one for all servers.
func (p *plan) lookUp(chain []int64, server int64, name string) json.RawMessage {
	group := int64(0)
	if s := p.servers[server]; s != nil {
		group = s.ServerGroup.ID
	}
	if !p.inherits {
		chain = chain[:min(1, len(chain))]
	}
	places := append(slices.Clone(chain), server, group, p.configuration)
	for i, place := range places {
		if place == 0 || !p.inherits && i >= len(chain) {
			continue
		}
		for _, scope := range []int64{server, group, 0} {
			for _, o := range p.options[place] {
				if o.name == name && o.scope == scope {
					return o.value
				}
			}
		}
	}
	return nil
}
