package authz

import (
	"slices"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerAccessRights declares the collection of access rights.
func registerAccessRights(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "accessRights", Parents: []string{""}, Guard: resource.Granted}, &AccessRight{},
		&AdministrativeAccessRight{})
	r.Seed(seedRights)
}

// AccessRight says what a user, or the members of a group, may see and change.
type AccessRight struct {
	schema.Head `head:"readOnly"`
	// UserScope is the user or the group.
	UserScope schema.Ref `api:"userScope,post,createOnly" back:"accessRights" ref:"User|UserGroup" onDelete:"cascade"`
	// Resource is what the right is for, with all that lies below it; null for everything. When it is split, the right is for each part.
	Resource schema.Ref `api:"resource,createOnly" back:"accessRights" onDelete:"cascade" onSplit:"copy"`
	// DefaultAccessLevel is what they may do there.
	DefaultAccessLevel string `api:"defaultAccessLevel,required" enum:"HIDE|VIEW|CHANGE|ADD|FULL"`
	// AccessOverrides are other levels for resources of some types.
	AccessOverrides []AccessOverride `api:"accessOverrides,put,notNull"`
	// DeploymentsAllowed says whether they may deploy.
	DeploymentsAllowed bool `api:"deploymentsAllowed,put"`
	// QuickDeploymentsAllowed says whether they may deploy their own changes.
	QuickDeploymentsAllowed bool `api:"quickDeploymentsAllowed,put"`
	// SelectiveDeploymentsAllowed says whether they may deploy single records.
	SelectiveDeploymentsAllowed bool `api:"selectiveDeploymentsAllowed,put"`
	// WorkflowLevel says whether their changes are asked for, and whether they approve those of others.
	WorkflowLevel string `api:"workflowLevel,put,notNull" enum:"NONE|RECOMMEND|APPROVE|DELETE" default:"NONE"`
}

// AdministrativeAccessRight says what a user, or the members of a group, may see of the manager itself.
type AdministrativeAccessRight struct {
	schema.Head `head:"readOnly" later:"9.6"`
	// UserScope is the user or the group.
	UserScope schema.Ref `api:"userScope,post,createOnly" back:"accessRights" ref:"User|UserGroup" onDelete:"cascade"`
	// AdministrativeAccessRights are what they may do there.
	AdministrativeAccessRights []AdministrativeOverride `api:"administrativeAccessRights,required"`
}

// seededRights is the marker of a database whose users had rights made for them.
const seededRights = "access rights of users"

// Upgraded reports whether a database has had what seedRights makes: one of an earlier release has not.
func Upgraded(tx *store.Tx) (bool, error) {
	var done int
	err := tx.QueryRow("SELECT count(*) FROM marker WHERE name = ?", seededRights).Scan(&done)
	return done > 0, err
}

// seedRights gives, once, the right to see everything to the users who are there already and have none: before there were rights they did.
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

// level is what the right gives for resources of a type below its own, or, with the type "", for that itself.
func (x *AccessRight) level(typeName string) Level {
	for _, o := range x.AccessOverrides {
		if o.ResourceType == typeName {
			return levelOf(o.AccessLevel)
		}
	}
	return levelOf(x.DefaultAccessLevel)
}

// BeforeWrite refuses what the caller may not give.
func (x *AccessRight) BeforeWrite(c *resource.Change) error {
	if c.Creates() {
		return x.givenBy(c, "ADD_ACCESS_RIGHTS")
	}
	return x.givenBy(c, "CHANGE_ACCESS_RIGHTS")
}

// Validate refuses a second right of the same subject at the same resource, and what nothing would act upon.
func (x *AccessRight) Validate(c *resource.Change) error {
	if err := x.workflows(); err != nil {
		return err
	}
	seen := map[string]bool{}
	for i, o := range x.AccessOverrides {
		if seen[o.ResourceType] {
			return problem.Invalid("accessOverrides", "entry %d is a second one for %s", i, o.ResourceType)
		}
		seen[o.ResourceType] = true
		if c.API.TypeNamed(o.ResourceType) == nil {
			return problem.NotYet("accessOverrides: entry %d: there are no resources of type %s", i, o.ResourceType)
		}
	}
	if err := x.isGoverned(c); err != nil {
		return err
	}
	return onlyOne(c, x.Head, x.UserScope.ID, x.Resource.ID)
}

// workflows refuses a workflow level that would decide nothing.
func (x *AccessRight) workflows() error {
	if x.WorkflowLevel == "" || x.WorkflowLevel == noWorkflow {
		return nil
	}
	if x.WorkflowLevel == "DELETE" { // which later releases do not have any more
		return problem.Invalid("workflowLevel", "DELETE decides nothing: RECOMMEND asks for changes, APPROVE approves those of others")
	}
	changes := levelOf(x.DefaultAccessLevel) >= Change || slices.ContainsFunc(x.AccessOverrides, func(o AccessOverride) bool {
		return levelOf(o.AccessLevel) >= Change
	})
	if !changes {
		return problem.Invalid("workflowLevel", "%s decides nothing where nothing may be changed: it goes with the level CHANGE, ADD or FULL",
			x.WorkflowLevel)
	}
	return nil
}

// isGoverned refuses a right at what is decided about by other rules.
func (x *AccessRight) isGoverned(c *resource.Change) error {
	if x.Resource.ID == 0 {
		return nil
	}
	head, err := c.Tx.Head(x.Resource.ID)
	if err != nil {
		return err
	}
	if on := c.API.Collection(head.Collection); on == nil || on.Guard != resource.Everybody {
		return problem.Invalid("resource", "a right at a resource of type %s would decide nothing: administrators alone change it", head.Type)
	}
	return nil
}

// onlyOne refuses a right where there is another one of its type, of a subject, at a resource. One that an undo brings back is there
// already.
func onlyOne(c *resource.Change, x schema.Head, subject, at int64) error {
	if !c.Creates() { // neither of them can be changed
		return nil
	}
	rows, err := c.Tx.Some(store.All{store.InCollection("accessRights"), OfType(x.Type),
		store.LinksTo{Targets: []int64{subject}, Field: "userScope"}}, maxRights)
	if err != nil {
		return err
	}
	if len(rows) >= maxRights && x.ID == 0 {
		return problem.Conflict("TooManyAccessRights", "userScope: %d has %d access rights, and may have no more", subject, maxRights)
	}
	for _, r := range rows {
		if r.Ref("resource") == at && r.ID != x.ID {
			p := problem.Conflict("ResourceAlreadyExists", "userScope: %d has the access right %d at this resource already", subject, r.ID)
			p.Fields = []string{"userScope", "resource"}
			return p
		}
	}
	return nil
}

// maxRights is how many access rights a user, or a group, may have.
const maxRights = 1000

// BeforeDelete refuses to take away what the caller may not give. A right goes with its user, its group or its resource, whoever deletes
// those.
func (x *AccessRight) BeforeDelete(c *resource.Change) error {
	if c.GoesAlong() {
		return nil
	}
	if err := x.givenBy(c, "DELETE_ACCESS_RIGHTS"); err != nil || ManagesUsers(c) {
		return err
	}
	head, err := c.Tx.Head(x.Resource.ID)
	if err != nil {
		return err
	}
	d, err := rightsIn(c.Caller).of(c.Tx, head.ID, head.Parent, head.Type)
	if err == nil && d.place.asksAny() { // without this right, another one could allow changes without approval
		err = problem.Forbidden("AccessDenied", "%s may not delete rights where it has to ask for changes itself", c.Caller.Name)
	}
	return err
}

// givenBy refuses what takes a privilege that the caller does not have, and rights beyond what the caller may do there.
func (x *AccessRight) givenBy(c *resource.Change, needed string) error {
	if ManagesUsers(c) {
		return nil
	}
	if err := lacking(c.Caller, needed); err != nil {
		return err
	}
	r := rightsIn(c.Caller)
	if r == nil || x.Resource.ID == 0 {
		return problem.FieldForbidden("AccessDenied", "resource", "administrators alone decide about everything")
	}
	head, err := c.Tx.Head(x.Resource.ID)
	if store.IsNotFound(err) {
		return resource.NotFoundInlined("resource", "there is no resource %d", x.Resource.ID)
	}
	if err != nil {
		return err
	}
	d, err := r.of(c.Tx, head.ID, head.Parent, head.Type)
	switch {
	case err != nil:
		return err
	case d.level == Hide:
		return resource.NotFoundInlined("resource", "there is no resource %d", x.Resource.ID)
	case d.level < Full || d.place.leastBelow() < Full:
		return problem.FieldForbidden("AccessDenied", "resource", "%s decides about rights where the own level is FULL: %s", c.Caller.Name,
			d.because())
	case x.DeploymentsAllowed && !d.place.deploys("FullDeployment"), x.QuickDeploymentsAllowed && !d.place.deploys("QuickDeployment"),
		x.SelectiveDeploymentsAllowed && !d.place.deploys("SelectiveDeployment"):
		return problem.Forbidden("AccessDenied", "%s may not let others deploy where it may not deploy itself", c.Caller.Name)
	case x.WorkflowLevel == approves && !d.place.approves, x.WorkflowLevel != recommends && d.place.asksAny():
		return problem.FieldForbidden("AccessDenied", "workflowLevel",
			"%s may not let others make or approve changes that it has to ask for itself",
			c.Caller.Name)
	}
	return r.givenWithin(c, head.ID)
}

// givenWithin refuses a right at a resource with a place below it where the own level is less than FULL.
func (r *Rights) givenWithin(c *resource.Change, at int64) error {
	for _, id := range r.at {
		if r.places[id].leastBelow() == Full {
			continue
		}
		above, err := c.Tx.Above([]int64{id})
		if err != nil {
			return err
		}
		if above[at] {
			return problem.FieldForbidden("AccessDenied", "resource",
				"%s decides about rights where the own level is FULL, and it is not for all that "+
					"lies below %d", c.Caller.Name, at)
		}
	}
	return nil
}

// Validate refuses what nothing would act upon, and a second one.
func (x *AdministrativeAccessRight) Validate(c *resource.Change) error {
	for i, one := range x.AdministrativeAccessRights {
		if one.ResourceType == "Report" && levelOf(one.AccessLevel) > Hide {
			return problem.NotYet("administrativeAccessRights: entry %d: there is no %s that could be shown", i, one.ResourceType)
		}
	}
	return onlyOne(c, x.Head, x.UserScope.ID, 0)
}

// BeforeWrite lets administrators alone write it.
func (x *AdministrativeAccessRight) BeforeWrite(c *resource.Change) error {
	if ManagesUsers(c) {
		return nil
	}
	return lacking(c.Caller, "ADMINISTRATOR")
}

// BeforeDelete lets administrators alone delete it.
func (x *AdministrativeAccessRight) BeforeDelete(c *resource.Change) error {
	if c.GoesAlong() {
		return nil
	}
	return x.BeforeWrite(c)
}

// AdministrativeOverride is what may be done with a part of the manager.
type AdministrativeOverride struct {
	// ResourceType is the part.
	ResourceType string `api:"resourceType,required" enum:"Event|Log|Report"`
	// AccessLevel is what may be done with it.
	AccessLevel string `api:"accessLevel,required" enum:"HIDE|VIEW|FULL"`
}

// AccessOverride is another level for resources of a type.
type AccessOverride struct {
	// ResourceType is the type.
	ResourceType string `api:"resourceType,required" enum:"ACL|AddressManagerAuthenticator|AliasRecord|Configuration|DHCPClientIdentifier|DHCPDeploymentRole|DHCPForwardZone|DHCPReverseZone|DHCPUniqueIdentifier|DHCPVendorOption|DHCPVendorOptionDefinition|DHCPZoneGroup|DHCPv4ClientClass|DHCPv4ClientOption|DHCPv4ClientOptionDefinition|DHCPv4CustomClientOptionDefinition|DHCPv4RawOption|DHCPv4ServiceOption|DHCPv4ServiceOptionDefinition|DHCPv4Subclass|DHCPv6ClientOption|DHCPv6ClientOptionDefinition|DHCPv6RawOption|DHCPv6ServiceOption|DHCPv6ServiceOptionDefinition|DNS64|DNSDeploymentRole|DNSOption|DNSOptionDefinition|DNSRawOption|DNSSECSigningPolicy|DenyMACPool|DeploymentSchedule|Device|DeviceSubtype|DeviceType|ENUMNumberZone|ENUMZone|EntrustKeySigningKey|EntrustZoneSigningKey|ExternalHostRecord|ExternalHostsZone|GenericRecord|HAServer|HINFORecord|HSMConfiguration|HSMServer|HostRecord|IPv4Address|IPv4Block|IPv4DHCPRange|IPv4DHCPRangeTemplateItem|IPv4GatewayTemplateItem|IPv4Group|IPv4GroupTemplateItem|IPv4Network|IPv4ReconciliationPolicy|IPv4ReservedRangeTemplateItem|IPv4Template|IPv6Address|IPv6Block|IPv6DHCPRange|IPv6Network|IPv6ReconciliationPolicy|InternalRootZone|KerberosAuthenticator|KerberosRealm|KerberosServicePrincipal|KeyDistributionCenter|KeySigningKey|LDAPAuthenticator|Location|MACAddress|MACPool|MXRecord|NAPTRRecord|NamingPolicy|NamingPolicyConnectorValue|NamingPolicyIncrementalValue|NamingPolicyIntegerValue|NamingPolicyRequiredValue|NamingPolicyRestriction|NamingPolicyTextValue|NetworkInterface|NotificationGroup|OAuthAuthorizationServer|PublishedInterface|RADIUSAuthenticator|Report|ReportSchedule|ResponsePolicy|ResponsePolicyZone|SAMLIdentityProvider|SRVRecord|Server|ServerGroup|StartOfAuthority|StartOfAuthorityDefinition|TACACSPlusAuthenticator|TFTPDeploymentRole|TFTPFile|TFTPFolder|TFTPGroup|TSIGKey|TXTRecord|Tag|TagGroup|Task|User|UserGroup|VendorProfile|View|VirtualInterface|X509Authenticator|Zone|ZoneSigningKey|ZoneTemplate"`
	// AccessLevel is what may be done with them.
	AccessLevel string `api:"accessLevel,required" enum:"HIDE|VIEW|CHANGE|ADD|FULL"`
}
