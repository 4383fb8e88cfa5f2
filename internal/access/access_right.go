package access

import (
	"portolan/internal/resource"
	"portolan/internal/schema"
)

// registerAccessRights declares the collection of access rights.
func registerAccessRights(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "accessRights", Parents: []string{""},
		NotYet: "access rights are not enforced yet, and none is taken before: administrators may do everything, others read"},
		&AccessRight{}, &AdministrativeAccessRight{})
}

// AccessRight says what a user, or the members of a group, may see and change.
type AccessRight struct {
	schema.Head `head:"readOnly"`
	// UserScope is the user or the group.
	UserScope schema.Ref `api:"userScope,post,createOnly" back:"accessRights" ref:"User|UserGroup" onDelete:"cascade"`
	// Resource is what the right is for, with all that lies below it; null for everything.
	Resource schema.Ref `api:"resource,createOnly" back:"accessRights" onDelete:"cascade"`
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
	schema.Head `head:"readOnly"`
	// UserScope is the user or the group.
	UserScope schema.Ref `api:"userScope,post,createOnly" back:"accessRights" ref:"User|UserGroup" onDelete:"cascade"`
	// AdministrativeAccessRights are what they may do there.
	AdministrativeAccessRights []AdministrativeOverride `api:"administrativeAccessRights,required"`
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
