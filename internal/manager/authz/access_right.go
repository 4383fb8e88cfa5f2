package authz

import (
	"slices"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerAccessRights declares the collection of access rights and seeds the rights of existing users.
func registerAccessRights(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "accessRights", Parents: []string{""}, Guard: resource.Granted}, &AccessRight{},
		&AdministrativeAccessRight{})
	r.Seed(seedRights)
}

// AccessRight sets what a user, or the members of a group, may see and change.
type AccessRight struct {
	schema.Head `head:"readOnly"`
	// UserScope is the user or group that the right is granted to.
	UserScope schema.Ref `api:"userScope,post,createOnly" back:"accessRights" ref:"User|UserGroup" onDelete:"cascade"`
	// Resource is the resource that the right covers, with everything below it; null for everything. When the resource is split, each part
	// gets the right.
	Resource schema.Ref `api:"resource,createOnly" back:"accessRights" onDelete:"cascade" onSplit:"copy"`
	// DefaultAccessLevel is the access level for the resource and everything below it.
	DefaultAccessLevel string `api:"defaultAccessLevel,required" enum:"HIDE|VIEW|CHANGE|ADD|FULL"`
	// AccessOverrides are other levels for resources of some types.
	AccessOverrides []AccessOverride `api:"accessOverrides,put,notNull"`
	// DeploymentsAllowed allows deployments.
	DeploymentsAllowed bool `api:"deploymentsAllowed,put"`
	// QuickDeploymentsAllowed allows deployments of the user's own changes.
	QuickDeploymentsAllowed bool `api:"quickDeploymentsAllowed,put"`
	// SelectiveDeploymentsAllowed allows deployments of single records.
	SelectiveDeploymentsAllowed bool `api:"selectiveDeploymentsAllowed,put"`
	// WorkflowLevel sets whether changes need an approval (RECOMMEND), and whether the user approves changes of others (APPROVE).
	WorkflowLevel string `api:"workflowLevel,put,notNull" enum:"NONE|RECOMMEND|APPROVE|DELETE" default:"NONE"`
}

// AdministrativeAccessRight sets what a user, or the members of a group, may see of the manager itself.
type AdministrativeAccessRight struct {
	schema.Head `head:"readOnly" later:"9.6"`
	// UserScope is the user or group that the right is granted to.
	UserScope schema.Ref `api:"userScope,post,createOnly" back:"accessRights" ref:"User|UserGroup" onDelete:"cascade"`
	// AdministrativeAccessRights are the access levels per part of the manager.
	AdministrativeAccessRights []AdministrativeOverride `api:"administrativeAccessRights,required"`
}

// seededRights is the marker of a database where seedRights has run.
const seededRights = "access rights of users"

// Upgraded reports whether seedRights has run in the database. It has not in a database of an earlier release.
func Upgraded(tx *store.Tx) (bool, error) {
	var done int
	err := tx.QueryRow("SELECT count(*) FROM marker WHERE name = ?", seededRights).Scan(&done)
	return done > 0, err
}

// seedRights creates, once, a VIEW right for everything for each existing user who is not an administrator. Before access rights were
// introduced, these users saw everything.
func seedRights(c *resource.Change) error {
	if done, err := Upgraded(c.Tx); err != nil || done {
		return err
	}
	if err := c.Tx.Write("INSERT INTO marker (name, value) VALUES (?, '1')", seededRights); err != nil {
		return err
	}
	return c.Each(store.InCollection("users"), func(row *store.Resource, o schema.Object) error {
		if c.API.TypeNamed(row.Type).TextOf(o, "securityPrivilege") == "ADMINISTRATOR" {
			return nil
		}
		x := &AccessRight{UserScope: schema.Ref{ID: row.ID}, DefaultAccessLevel: View.String(), WorkflowLevel: noWorkflow}
		x.Type = "AccessRight"
		_, err := c.Following().Create(c.API.TypeNamed(x.Type), x)
		return err
	})
}

// level returns the level for resources of a type below the right's resource. The type "" is the resource itself.
func (x *AccessRight) level(typeName string) Level {
	for _, o := range x.AccessOverrides {
		if o.ResourceType == typeName {
			return levelOf(o.AccessLevel)
		}
	}
	return levelOf(x.DefaultAccessLevel)
}

// BeforeWrite rejects a right that the caller may not grant.
func (x *AccessRight) BeforeWrite(c *resource.Change) error {
	if c.IsCreation() {
		return x.checkGranter(c, "ADD_ACCESS_RIGHTS")
	}
	return x.checkGranter(c, "CHANGE_ACCESS_RIGHTS")
}

// Validate rejects a second right of the same user or group at the same resource, and values that would have no effect.
func (x *AccessRight) Validate(c *resource.Change) error {
	if err := x.checkWorkflow(); err != nil {
		return err
	}
	seen := map[string]bool{}
	for i, o := range x.AccessOverrides {
		if seen[o.ResourceType] {
			return problem.Invalid("accessOverrides", "entry %d is a duplicate for %s", i, o.ResourceType)
		}
		seen[o.ResourceType] = true
		if c.API.TypeNamed(o.ResourceType) == nil {
			return problem.NotYet("accessOverrides: entry %d: resources of type %s do not exist", i, o.ResourceType)
		}
	}
	if err := x.checkResource(c); err != nil {
		return err
	}
	return rejectDuplicate(c, x.Head, x.UserScope.ID, x.Resource.ID)
}

// checkWorkflow rejects a workflow level that would have no effect.
func (x *AccessRight) checkWorkflow() error {
	if x.WorkflowLevel == "" || x.WorkflowLevel == noWorkflow {
		return nil
	}
	if x.WorkflowLevel == "DELETE" { // removed in later releases
		return problem.Invalid("workflowLevel",
			"DELETE is not supported: use RECOMMEND to require approval, or APPROVE to permit the approval of other users' changes")
	}
	changes := levelOf(x.DefaultAccessLevel) >= Change || slices.ContainsFunc(x.AccessOverrides, func(o AccessOverride) bool {
		return levelOf(o.AccessLevel) >= Change
	})
	if !changes {
		return problem.Invalid("workflowLevel", "%s requires the level CHANGE, ADD or FULL",
			x.WorkflowLevel)
	}
	return nil
}

// checkResource rejects a right at a resource that access rights do not govern.
func (x *AccessRight) checkResource(c *resource.Change) error {
	if x.Resource.ID == 0 {
		return nil
	}
	head, err := c.Tx.Head(x.Resource.ID)
	if err != nil {
		return err
	}
	if on := c.API.Collection(head.Collection); on == nil || on.Guard != resource.AnyCaller {
		return problem.Invalid("resource", "a right at a resource of type %s would have no effect: only administrators can change it", head.Type)
	}
	return nil
}

// rejectDuplicate rejects a second right of the same type for a subject at a resource. When an undo restores a right, the right itself is
// found and is not a second one.
func rejectDuplicate(c *resource.Change, x schema.Head, subject, at int64) error {
	if !c.IsCreation() { // the subject and the resource cannot be changed
		return nil
	}
	rows, err := c.Tx.ListSome(store.All{store.InCollection("accessRights"), OfType(x.Type),
		store.LinksTo{Targets: []int64{subject}, Field: "userScope"}}, maxRights)
	if err != nil {
		return err
	}
	if len(rows) >= maxRights && x.ID == 0 {
		return problem.Conflict("TooManyAccessRights", "userScope: %d already has %d access rights, which is the maximum: delete one first",
			subject, maxRights)
	}
	for _, r := range rows {
		if r.Ref("resource") == at && r.ID != x.ID {
			p := problem.Conflict("ResourceAlreadyExists", "userScope: user or group %d already has the access right %d for this resource",
				subject, r.ID)
			p.Fields = []string{"userScope", "resource"}
			return p
		}
	}
	return nil
}

// maxRights is the maximum number of access rights of a user or a group.
const maxRights = 1000

// BeforeDelete rejects the deletion of a right that the caller may not grant. A right that is deleted with its user, group or resource is
// not checked.
func (x *AccessRight) BeforeDelete(c *resource.Change) error {
	if c.IsCascaded() {
		return nil
	}
	if err := x.checkGranter(c, "DELETE_ACCESS_RIGHTS"); err != nil || ManagesUsers(c) {
		return err
	}
	head, err := c.Tx.Head(x.Resource.ID)
	if err != nil {
		return err
	}
	d, err := rightsIn(c.Caller).decisionFor(c.Tx, head.ID, head.Parent, head.Type)
	if err == nil && d.place.requiresAnyApproval() { // without this right, another one could allow changes without approval
		err = problem.Forbidden("AccessDenied", "%s may not delete rights where its own changes require approval", c.Caller.Name)
	}
	return err
}

// checkGranter rejects a right that the caller may not grant: it requires the privilege needed, and the caller's own rights must include
// it.
func (x *AccessRight) checkGranter(c *resource.Change, needed string) error {
	if ManagesUsers(c) {
		return nil
	}
	if err := requirePrivilege(c.Caller, needed); err != nil {
		return err
	}
	r := rightsIn(c.Caller)
	if r == nil || x.Resource.ID == 0 {
		return problem.FieldForbidden("AccessDenied", "resource", "only administrators can grant rights to everything")
	}
	head, err := c.Tx.Head(x.Resource.ID)
	if store.IsNotFound(err) {
		return resource.NotFoundInlined("resource", "resource %d does not exist", x.Resource.ID)
	}
	if err != nil {
		return err
	}
	d, err := r.decisionFor(c.Tx, head.ID, head.Parent, head.Type)
	switch {
	case err != nil:
		return err
	case d.level == Hide:
		return resource.NotFoundInlined("resource", "resource %d does not exist", x.Resource.ID)
	case d.level < Full || d.place.minBelow() < Full:
		return problem.FieldForbidden("AccessDenied", "resource", "%s may only grant rights where the own level is FULL: %s", c.Caller.Name,
			d.reason())
	case x.DeploymentsAllowed && !d.place.allowsDeployment("FullDeployment"),
		x.QuickDeploymentsAllowed && !d.place.allowsDeployment("QuickDeployment"),
		x.SelectiveDeploymentsAllowed && !d.place.allowsDeployment("SelectiveDeployment"):
		return problem.Forbidden("AccessDenied", "%s may not grant deployment rights without having them", c.Caller.Name)
	case x.WorkflowLevel == approves && !d.place.approves, x.WorkflowLevel != recommends && d.place.requiresAnyApproval():
		return problem.FieldForbidden("AccessDenied", "workflowLevel",
			"%s may not let others make or approve changes that require approval for its own",
			c.Caller.Name)
	}
	return r.checkGranterBelow(c, head.ID)
}

// checkGranterBelow rejects a right at a resource if the caller's own level is less than FULL at a place below it.
func (r *Rights) checkGranterBelow(c *resource.Change, at int64) error {
	for _, id := range r.placeIDs {
		if r.places[id].minBelow() == Full {
			continue
		}
		above, err := c.Tx.ListAncestors([]int64{id})
		if err != nil {
			return err
		}
		if above[at] {
			return problem.FieldForbidden("AccessDenied", "resource",
				"%s may only grant rights where the own level is FULL, and it is not FULL for everything "+
					"below %d", c.Caller.Name, at)
		}
	}
	return nil
}

// Validate rejects parts that do not exist yet, and a second right of the same user or group.
func (x *AdministrativeAccessRight) Validate(c *resource.Change) error {
	for i, one := range x.AdministrativeAccessRights {
		if one.ResourceType == "Report" && levelOf(one.AccessLevel) > Hide {
			return problem.NotYet("administrativeAccessRights: entry %d: %s is not available yet", i, one.ResourceType)
		}
	}
	return rejectDuplicate(c, x.Head, x.UserScope.ID, 0)
}

// BeforeWrite allows only administrators.
func (x *AdministrativeAccessRight) BeforeWrite(c *resource.Change) error {
	if ManagesUsers(c) {
		return nil
	}
	return requirePrivilege(c.Caller, "ADMINISTRATOR")
}

// BeforeDelete allows only administrators. A right that is deleted with its user or group is not checked.
func (x *AdministrativeAccessRight) BeforeDelete(c *resource.Change) error {
	if c.IsCascaded() {
		return nil
	}
	return x.BeforeWrite(c)
}

// AdministrativeOverride is the access level for a part of the manager.
type AdministrativeOverride struct {
	// ResourceType is the part of the manager.
	ResourceType string `api:"resourceType,required" enum:"Event|Log|Report"`
	// AccessLevel is the access level.
	AccessLevel string `api:"accessLevel,required" enum:"HIDE|VIEW|FULL"`
}

// AccessOverride is the access level for resources of a type.
type AccessOverride struct {
	// ResourceType is the resource type.
	ResourceType string `api:"resourceType,required" enum:"ACL|AddressManagerAuthenticator|AliasRecord|Configuration|DHCPClientIdentifier|DHCPDeploymentRole|DHCPForwardZone|DHCPReverseZone|DHCPUniqueIdentifier|DHCPVendorOption|DHCPVendorOptionDefinition|DHCPZoneGroup|DHCPv4ClientClass|DHCPv4ClientOption|DHCPv4ClientOptionDefinition|DHCPv4CustomClientOptionDefinition|DHCPv4RawOption|DHCPv4ServiceOption|DHCPv4ServiceOptionDefinition|DHCPv4Subclass|DHCPv6ClientOption|DHCPv6ClientOptionDefinition|DHCPv6RawOption|DHCPv6ServiceOption|DHCPv6ServiceOptionDefinition|DNS64|DNSDeploymentRole|DNSOption|DNSOptionDefinition|DNSRawOption|DNSSECSigningPolicy|DenyMACPool|DeploymentSchedule|Device|DeviceSubtype|DeviceType|ENUMNumberZone|ENUMZone|EntrustKeySigningKey|EntrustZoneSigningKey|ExternalHostRecord|ExternalHostsZone|GenericRecord|HAServer|HINFORecord|HSMConfiguration|HSMServer|HostRecord|IPv4Address|IPv4Block|IPv4DHCPRange|IPv4DHCPRangeTemplateItem|IPv4GatewayTemplateItem|IPv4Group|IPv4GroupTemplateItem|IPv4Network|IPv4ReconciliationPolicy|IPv4ReservedRangeTemplateItem|IPv4Template|IPv6Address|IPv6Block|IPv6DHCPRange|IPv6Network|IPv6ReconciliationPolicy|InternalRootZone|KerberosAuthenticator|KerberosRealm|KerberosServicePrincipal|KeyDistributionCenter|KeySigningKey|LDAPAuthenticator|Location|MACAddress|MACPool|MXRecord|NAPTRRecord|NamingPolicy|NamingPolicyConnectorValue|NamingPolicyIncrementalValue|NamingPolicyIntegerValue|NamingPolicyRequiredValue|NamingPolicyRestriction|NamingPolicyTextValue|NetworkInterface|NotificationGroup|OAuthAuthorizationServer|PublishedInterface|RADIUSAuthenticator|Report|ReportSchedule|ResponsePolicy|ResponsePolicyZone|SAMLIdentityProvider|SRVRecord|Server|ServerGroup|StartOfAuthority|StartOfAuthorityDefinition|TACACSPlusAuthenticator|TFTPDeploymentRole|TFTPFile|TFTPFolder|TFTPGroup|TSIGKey|TXTRecord|Tag|TagGroup|Task|User|UserGroup|VendorProfile|View|VirtualInterface|X509Authenticator|Zone|ZoneSigningKey|ZoneTemplate"`
	// AccessLevel is the access level.
	AccessLevel string `api:"accessLevel,required" enum:"HIDE|VIEW|CHANGE|ADD|FULL"`
}
