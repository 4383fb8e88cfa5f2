package serverconfig

import (
	"fmt"
	"slices"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerRoles declares the collection of deployment roles, and the subcollection of the roles of a server.
func registerRoles(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "deploymentRoles"}, &DNSDeploymentRole{}, &DHCPDeploymentRole{}, &TFTPDeploymentRole{})
	r.Computed(resource.ComputedSub{Below: "servers", Name: "deploymentRoles", Find: func(tx *store.Tx, _ *resource.API,
		server *store.Resource) ([]int64, error) {
		return rolesOf(tx, server.ID)
	}})
}

// Types of DNS roles, and of the interfaces in them.
const (
	RolePrimary           = "PRIMARY"
	RoleHiddenPrimary     = "HIDDEN_PRIMARY"
	RoleSecondary         = "SECONDARY"
	RoleStealthSecondary  = "STEALTH_SECONDARY"
	RoleNone              = "NONE"
	RoleForwarding        = "FORWARDING"
	RoleStub              = "STUB"
	recursive             = "RECURSIVE"
	InterfaceTarget       = "TARGET"
	InterfaceZoneTransfer = "ZONE_TRANSFER"
)

// DNSDeploymentRole assigns interfaces to a view, a zone, or the reverse zones of a block or network, with the role of their servers.
type DNSDeploymentRole struct {
	schema.Head `head:"readOnly" parents:"blocks|networks|views|zones"`
	// Configuration is the configuration of the role.
	Configuration schema.Ref `api:"configuration,readOnly" ref:"Configuration" column:"configuration"`
	// RoleType is the role of the servers for the zones, such as primary, secondary or forwarding.
	RoleType string `api:"roleType,required" enum:"PRIMARY|HIDDEN_PRIMARY|SECONDARY|STEALTH_SECONDARY|FORWARDING|STUB|RECURSIVE|NONE"`
	// View is the view of the reverse zones of a block or network. For a zone or view it is the view itself or that of the zone.
	View schema.Ref `api:"view" ref:"View"`
	// NSRecordTTL is the time to live of the NS records of these servers, in seconds; null for that of the zone.
	NSRecordTTL *int64 `api:"nsRecordTtl" min:"0" max:"2147483647"`
	// Interfaces are the interfaces, each with its deploymentRoleInterfaceType and deploymentRoleInterfaceProtocol.
	Interfaces schema.RefList `api:"interfaces,post,writeOnly" min:"1" ref:"NetworkInterface|PublishedInterface" onDelete:"refuse" filterAs:"serverInterface"`
	// Resource is the resource that the role is for.
	Resource schema.Ref `api:"resource,readOnly" column:"parent" onSplit:"copy"`
	// RoleInterfaces are the interfaces as they were given, each with its type in the role.
	RoleInterfaces []RoleInterface `api:"roleInterfaces,readOnly"`

	// isParsed reports whether RoleInterfaces is already set, so that BeforeWrite does not read Interfaces again.
	isParsed bool
}

// DHCPDeploymentRole assigns the interfaces that serve the addresses of a block or network: a primary one and an optional failover peer.
type DHCPDeploymentRole struct {
	schema.Head `head:"readOnly" parents:"blocks|networks|macPools|clientClasses"`
	// Configuration is the configuration of the role.
	Configuration schema.Ref `api:"configuration,readOnly" ref:"Configuration" column:"configuration"`
	// RoleType is the role of the server: it serves (PRIMARY), or is only planned (NONE).
	RoleType string `api:"roleType,required" enum:"PRIMARY|NONE"`
	// Interfaces are the interfaces: one PRIMARY, and at most one SECONDARY, which together are a failover pair.
	Interfaces schema.RefList `api:"interfaces,post,writeOnly" min:"1" ref:"NetworkInterface|PublishedInterface" onDelete:"refuse" filterAs:"serverInterface"`
	// Resource is the resource that the role is for.
	Resource schema.Ref `api:"resource,readOnly" column:"parent" onSplit:"copy"`
	// RoleInterfaces are the interfaces as they were given, each with its type in the role.
	RoleInterfaces []RoleInterface `api:"roleInterfaces,readOnly"`

	// isParsed reports whether RoleInterfaces is already set, so that BeforeWrite does not read Interfaces again.
	isParsed bool
}

// TFTPDeploymentRole assigns the server that serves the files of a TFTP group.
type TFTPDeploymentRole struct {
	schema.Head `head:"readOnly" parents:"tftpGroups"`
	// Configuration is the configuration of the role.
	Configuration schema.Ref `api:"configuration,readOnly" ref:"Configuration" column:"configuration"`
	// RoleType is always TFTP.
	RoleType string `api:"roleType" enum:"TFTP" default:"TFTP"`
	// Server is the server that serves the files.
	Server schema.Ref `api:"server,required" ref:"Server|HAServer" onDelete:"refuse"`
}

// RoleInterface is an interface in a role.
type RoleInterface struct {
	// ID is the id of the interface.
	ID int64 `api:"id,required"`
	// Kind is the type of the interface in the role. For DNS: SERVICE (answers queries), ZONE_TRANSFER (secondaries transfer zones from it)
	// or TARGET (queries are forwarded to it). For DHCP: PRIMARY or SECONDARY.
	Kind string `api:"deploymentRoleInterfaceType,required"`
	// Protocol is the address family for zone transfers; null for either.
	Protocol string `api:"deploymentRoleInterfaceProtocol" enum:"IPV4|IPV6"`
}

// The types of interfaces in roles; the first one is the default.
var (
	dnsKinds  = []string{"SERVICE", "ZONE_TRANSFER", "TARGET"}
	dhcpKinds = []string{"PRIMARY", "SECONDARY"}
)

// readInterfaces returns the interfaces of a request. kinds are the types that the role allows; protocols reports whether it has protocols.
func readInterfaces(list schema.RefList, kinds []string, protocols bool) (all []RoleInterface, err error) {
	for i, item := range list.Items {
		one := RoleInterface{ID: item.ID, Kind: item.Text["deploymentRoleInterfaceType"], Protocol: item.Text["deploymentRoleInterfaceProtocol"]}
		if one.Kind == "" {
			one.Kind = kinds[0]
		}
		switch {
		case one.ID == 0:
			return nil, problem.Missing(fmt.Sprintf("interfaces[%d].id", i))
		case !slices.Contains(kinds, one.Kind):
			return nil, problem.Field("UnsupportedDeploymentRoleInterfaceType", "interfaces", "entry %d: must be one of %v, not %q", i, kinds,
				one.Kind)
		case one.Protocol != "" && (!protocols || one.Protocol != "IPV4" && one.Protocol != "IPV6"):
			return nil, problem.Field("InvalidEnumValue", "interfaces", "entry %d: must have a protocol of this role, not %q", i, one.Protocol)
		case slices.ContainsFunc(all, func(other RoleInterface) bool { return other.ID == one.ID && other.Kind == one.Kind }):
			return nil, problem.Field("DuplicateFieldValue", "interfaces", "interface %d is listed twice with the role %s", one.ID, one.Kind)
		}
		all = append(all, one)
	}
	return all, nil
}

// uniqueRefs returns the interfaces, each once.
func uniqueRefs(list []RoleInterface) schema.RefList {
	refs := schema.RefList{IsSet: true}
	for _, one := range list {
		if !slices.ContainsFunc(refs.Items, func(other schema.RefItem) bool { return other.ID == one.ID }) {
			refs.Items = append(refs.Items, schema.RefItem{ID: one.ID})
		}
	}
	return refs
}

// serversOf returns the server of each interface, or an error for an id that is not an interface of a usable server.
func serversOf(c *resource.Change, list []RoleInterface) (servers []*store.Resource, err error) {
	for _, one := range list {
		head, err := c.Tx.Head(one.ID)
		if store.IsNotFound(err) || err == nil && head.Collection != "interfaces" {
			return nil, resource.NotFoundInlined("interfaces", "interface %d does not exist", one.ID)
		}
		if err != nil {
			return nil, err
		}
		row, err := c.Tx.Get(head.Parent)
		if err != nil {
			return nil, err
		}
		if row.Configuration != schema.HeadOf(c.New).Config {
			return nil, problem.Field("ResourceNotInConfiguration", "interfaces", "interface %d is in another configuration", one.ID)
		}
		o, err := c.API.Object(row)
		if err != nil {
			return nil, err
		}
		if s, ok := o.(*Server); ok && s.HARole != notAvailable {
			return nil, problem.FieldForbidden("OperationNotPermitted", "interfaces", "server %s (%d) is a node of a pair: give the pair the role",
				s.Name, s.ID)
		}
		servers = append(servers, row)
	}
	return servers, nil
}

// BeforeWrite reads the interfaces, and sets the view.
func (x *DNSDeploymentRole) BeforeWrite(c *resource.Change) (err error) {
	x.Name = x.RoleType
	if x.Interfaces.IsSet && !x.isParsed {
		if x.RoleInterfaces, err = readInterfaces(x.Interfaces, dnsKinds, true); err != nil {
			return err
		}
		x.Interfaces = uniqueRefs(x.RoleInterfaces)
	}
	above, err := c.Tx.Head(x.Parent)
	if err != nil {
		return err
	}
	if above.Collection != "views" && above.Collection != "zones" {
		return x.setDefaultView(c, above.Configuration)
	}
	view, err := viewOf(c.Tx, above)
	if err != nil {
		return err
	}
	if c.SetFields["view"] && x.View.ID != 0 && x.View.ID != view {
		return problem.Field("ConflictingResourceFieldValues", "view", "must be %d, the view of %s %d, not %d", view, above.Type,
			above.ID, x.View.ID)
	}
	x.View = schema.Ref{ID: view}
	return nil
}

// setDefaultView sets the view of a role that names none, if its configuration has exactly one view.
func (x *DNSDeploymentRole) setDefaultView(c *resource.Change, configuration int64) error {
	if x.View.ID != 0 {
		return nil
	}
	views, err := ConfigurationViews(c.Tx, configuration)
	if err == nil && len(views) != 1 {
		return problem.Missing("view")
	}
	if err == nil {
		x.View = schema.Ref{ID: views[0]}
	}
	return err
}

// viewOf returns the view of a zone at any depth.
func viewOf(tx *store.Tx, at store.Head) (int64, error) {
	var err error
	for at.Collection != "views" {
		if at, err = tx.Head(at.Parent); err != nil {
			return 0, err
		}
	}
	return at.ID, nil
}

// Validate rejects interfaces of unusable servers, and a second role of a server for the same resource and view.
func (x *DNSDeploymentRole) Validate(c *resource.Change) error {
	_, err := serversOf(c, x.RoleInterfaces)
	if err != nil || x.RoleType == "NONE" {
		return err
	}
	if !slices.ContainsFunc(x.RoleInterfaces, func(one RoleInterface) bool { return one.Kind != "ZONE_TRANSFER" }) {
		return problem.Field("MissingRequiredDeploymenetRoleInterface", "interfaces", "must contain a SERVICE interface")
	}
	return checkNoDuplicate(c, x.ID, x.Parent, x.Type, func(o schema.Object) ([]RoleInterface, int64) {
		other, _ := o.(*DNSDeploymentRole)
		// A server may have two roles of a view: one that serves zones and one that resolves.
		if x.Parent == x.View.ID && Resolves(x.RoleType) != Resolves(other.RoleType) {
			return nil, other.View.ID
		}
		return withoutTargets(other.RoleInterfaces), other.View.ID
	}, withoutTargets(x.RoleInterfaces), x.View.ID)
}

// withoutTargets returns the interfaces other than targets: the same target may be in several roles.
func withoutTargets(all []RoleInterface) []RoleInterface {
	return slices.DeleteFunc(slices.Clone(all), func(one RoleInterface) bool { return one.Kind == InterfaceTarget })
}

// BeforeWrite reads the interfaces.
func (x *DHCPDeploymentRole) BeforeWrite(*resource.Change) (err error) {
	x.Name = x.RoleType
	if !x.Interfaces.IsSet || x.isParsed {
		return nil
	}
	if x.RoleInterfaces, err = readInterfaces(x.Interfaces, dhcpKinds, false); err != nil {
		return err
	}
	x.Interfaces = uniqueRefs(x.RoleInterfaces)
	return nil
}

// Validate requires one primary and at most one secondary interface, on two servers that can serve DHCP.
func (x *DHCPDeploymentRole) Validate(c *resource.Change) error {
	count := map[string]int{}
	for _, one := range x.RoleInterfaces {
		count[one.Kind]++
	}
	switch {
	case count["PRIMARY"] == 0:
		return problem.Field("MissingRequiredDeploymenetRoleInterface", "interfaces", "must contain a PRIMARY interface")
	case count["PRIMARY"] > 1 || count["SECONDARY"] > 1:
		return problem.Field("UnsupportedDeploymentRoleInterfaceType", "interfaces", "must be one PRIMARY and at most one SECONDARY")
	}
	servers, err := serversOf(c, x.RoleInterfaces)
	if err != nil {
		return err
	}
	for _, row := range servers {
		o, err := c.API.Object(row)
		if err != nil {
			return err
		}
		if s, ok := o.(*Server); ok && (s.Profile == IsOtherServer || s.Profile == "CLOUD_DNS_SERVER") {
			return problem.Field("IncompatibleServerProfile", "interfaces", "server %s (%d) only allows DNS roles", s.Name, s.ID)
		}
	}
	if len(servers) > 1 && servers[0].ID == servers[1].ID {
		return problem.Field("ConflictingResourceFieldValues", "interfaces", "both belong to server %d; a pair requires two servers",
			servers[0].ID)
	}
	return checkNoDuplicate(c, x.ID, x.Parent, x.Type, func(o schema.Object) ([]RoleInterface, int64) {
		other, _ := o.(*DHCPDeploymentRole)
		return other.RoleInterfaces, 0
	}, x.RoleInterfaces, 0)
}

// checkNoDuplicate rejects a second role of the same type, resource and view for an interface.
func checkNoDuplicate(c *resource.Change, id, parent int64, kind string, of func(schema.Object) ([]RoleInterface, int64),
	mine []RoleInterface, view int64,
) error {
	return c.Each(store.All{store.InCollection("deploymentRoles"), store.HasParent(parent)}, func(row *store.Resource, o schema.Object) error {
		if row.ID == id || row.Type != kind {
			return nil
		}
		theirs, in := of(o)
		for _, one := range mine {
			if in == view && slices.ContainsFunc(theirs, func(other RoleInterface) bool { return other.ID == one.ID && other.Kind == one.Kind }) {
				return problem.Conflict("ResourceAlreadyExists", "interfaces: interface %d already has a role there: change "+
					"deploymentRoles/%d", one.ID, row.ID)
			}
		}
		return nil
	})
}

// BeforeWrite sets the name and the type of the role.
func (x *TFTPDeploymentRole) BeforeWrite(*resource.Change) error {
	x.Name, x.RoleType = "TFTP", "TFTP"
	return nil
}

// Validate rejects a second role of the group for the server.
func (x *TFTPDeploymentRole) Validate(c *resource.Change) error {
	return c.Each(store.All{store.InCollection("deploymentRoles"), store.HasParent(x.Parent)}, func(row *store.Resource,
		o schema.Object) error {
		if other, ok := o.(*TFTPDeploymentRole); ok && row.ID != x.ID && other.Server == x.Server {
			return problem.Conflict("ResourceAlreadyExists", "server: the group already has a role for server %d: role %d", x.Server.ID, row.ID)
		}
		return nil
	})
}

// rolesOf returns the ids of the roles of a server: those of its interfaces, and those that name the server.
func rolesOf(tx *store.Tx, server int64) (found []int64, err error) {
	own, err := tx.Children(server)
	if err != nil {
		return nil, err
	}
	err = tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("deploymentRoles"), store.Any{
		store.LinksTo{Targets: own, Field: "interfaces"}, store.LinksTo{Targets: []int64{server}, Field: "server"}}}},
		func(r *store.Resource) error {
			found = append(found, r.ID)
			return nil
		})
	return found, err
}

// moveRoles moves the roles of a server to an interface of another server. types selects the types of roles to move; none means all.
func moveRoles(c *resource.Change, from, to int64, types ...string) error {
	found, err := rolesOf(c.Tx, from)
	if err != nil {
		return err
	}
	head, err := c.Tx.Head(to)
	if err != nil {
		return err
	}
	own, err := c.Tx.Children(from)
	if err != nil {
		return err
	}
	replace := func(list []RoleInterface) []RoleInterface {
		list = slices.Clone(list)
		for i := range list {
			if slices.Contains(own, list[i].ID) {
				list[i].ID = to
			}
		}
		return slices.CompactFunc(list, func(a, b RoleInterface) bool { return a.ID == b.ID && a.Kind == b.Kind })
	}
	for _, id := range found {
		row, err := c.Tx.Get(id)
		if err != nil {
			return err
		}
		if len(types) > 0 && !slices.Contains(types, row.Type) {
			continue
		}
		if _, err := c.Following("interfaces", "server").Change(row, func(o schema.Object) {
			switch x := o.(type) {
			case *DNSDeploymentRole:
				x.RoleInterfaces = replace(x.RoleInterfaces)
				x.Interfaces = uniqueRefs(x.RoleInterfaces)
				x.isParsed = true
			case *DHCPDeploymentRole:
				x.RoleInterfaces = replace(x.RoleInterfaces)
				x.Interfaces = uniqueRefs(x.RoleInterfaces)
				x.isParsed = true
			case *TFTPDeploymentRole:
				x.Server = schema.Ref{ID: head.Parent}
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

// registerRoleMoves declares the collection of role moves.
func registerRoleMoves(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "moves"}, &DeploymentRoleMove{})
}

// DeploymentRoleMove moves the roles of a server to another interface, and is the record of the move.
type DeploymentRoleMove struct {
	schema.Head `head:"readOnly" parents:"servers"`
	schema.Recorded
	// RoleTypes are the types of the roles to move.
	RoleTypes []string `api:"roleTypes,post" enum:"DHCPDeploymentRole|DNSDeploymentRole" min:"1"`
	// Destination is the interface to move the roles to.
	Destination schema.Ref `api:"destination,post" ref:"NetworkInterface|PublishedInterface"`
	// Source is the server whose roles are moved.
	Source schema.Ref `api:"source,readOnly" column:"parent" ref:"Server|HAServer"`
	// Moved are the roles that were moved.
	Moved schema.RefList `api:"moved,hidden" ref:"DHCPDeploymentRole|DNSDeploymentRole" back:"moves" onDelete:"clear"`
}

// BeforeWrite records the roles that are moved.
func (x *DeploymentRoleMove) BeforeWrite(c *resource.Change) error {
	found, err := rolesOf(c.Tx, x.Parent)
	if err != nil || !c.IsCreation() {
		return err
	}
	var moved []int64
	for _, id := range found {
		head, err := c.Tx.Head(id)
		if err != nil {
			return err
		}
		if slices.Contains(x.RoleTypes, head.Type) {
			moved = append(moved, id)
		}
	}
	x.Moved = schema.Refer(moved)
	return nil
}

// AfterWrite moves the roles of the server that is the parent of the request.
func (x *DeploymentRoleMove) AfterWrite(c *resource.Change) error {
	if !c.IsCreation() {
		return nil
	}
	if err := checkNoScopedOptions(c, x.Parent); err != nil {
		return err
	}
	return moveRoles(c, x.Parent, x.Destination.ID, x.RoleTypes...)
}

// Resolves reports whether servers with a role type get answers from other servers instead of their own zones.
func Resolves(kind string) bool {
	return kind == RoleForwarding || kind == RoleStub || kind == recursive
}

// ConfigurationViews returns the ids of the views of a configuration.
func ConfigurationViews(tx *store.Tx, configuration int64) (ids []int64, err error) {
	return ids, tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("views"), store.HasParent(configuration)}},
		func(r *store.Resource) error {
			ids = append(ids, r.ID)
			return nil
		})
}
