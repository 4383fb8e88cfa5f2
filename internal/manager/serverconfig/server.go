package serverconfig

import (
	"cmp"
	"encoding/json"
	"net/netip"
	"reflect"
	"slices"

	"portolan/internal/base/naming"
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dns"
	"portolan/internal/manager/snmp"
)

// registerServers declares the collections of servers and their groups.
func registerServers(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "servers", Parents: []string{"configurations"}, Complete: CompleteServers}, &Server{}, &HAServer{})
	r.Collection(resource.Collection{Name: "serverGroups", Parents: []string{"configurations"}}, &ServerGroup{})
	r.Computed(resource.ComputedSub{Below: "servers", Name: "servers", Find: nodesOf})
	r.Computed(resource.ComputedSub{Below: "serverGroups", Name: "deploymentRoles", Find: rolesOfGroup})
	r.Collection(resource.Collection{Name: "interfaces"}, &ServerGroupInterface{})
}

// ServerFields are the fields that single servers and pairs have in common.
type ServerFields struct {
	// Configuration is the configuration of the server.
	Configuration schema.Ref `api:"configuration,readOnly" ref:"Configuration" column:"configuration"`
	// State is ENABLED or DISABLED. It is changed by a PATCH only, which can also request FAILOVER, REPAIR or RESET_CONTROL.
	State string `api:"state" enum:"ENABLED|DISABLED|FAILOVER|RESET_CONTROL|REPAIR|DISABLE"`
	// Username is the user name for the machine.
	Username string `api:"username,nonblank"`
	// Password is the password of that user; it is never shown.
	Password schema.Secret `api:"password,nonblank"`
	// ServerGroup is the group that the server inherits options from.
	ServerGroup schema.Ref `api:"serverGroup" ref:"ServerGroup" back:"servers"`
	// Connected reports whether the server is managed; false means that it is only planned.
	Connected bool `api:"connected,notNull"`
	// MonitoringEnabled controls whether the server is monitored; null for the setting of the configuration.
	MonitoringEnabled *bool `api:"monitoringEnabled"`
	// SNMP is the SNMP access data of the server; null for that of the configuration.
	SNMP *snmp.Settings `api:"snmp"`
	// Interfaces is the network interface of the server, given by name and managementAddress.
	Interfaces schema.RefList `api:"interfaces,post,writeOnly" min:"1"`
	// Location is the location of the server.
	Location schema.Ref `api:"location" ref:"Location" back:"annotatedResources"`
	// Statistics are the measurements of the server; empty where it is not monitored.
	Statistics map[string]string `api:"statistics,readOnly"`
	// OverrideDHCPValidation controls whether the server's own settings for checks of DHCP data replace those of the configuration.
	OverrideDHCPValidation bool `api:"overrideConfigurationLevelDhcpValidation,put"`
	// OverrideDNSValidation controls whether the server's own settings for checks of DNS data replace those of the configuration.
	OverrideDNSValidation bool `api:"overrideConfigurationLevelDnsValidation,put"`
	// DHCPConfigurationValidationEnabled controls whether DHCP data is checked before a deployment.
	DHCPConfigurationValidationEnabled bool `api:"dhcpConfigurationValidationEnabled,put"`
	// DNSConfigurationValidationEnabled controls whether DNS data is checked before a deployment.
	DNSConfigurationValidationEnabled bool `api:"dnsConfigurationValidationEnabled,put"`
	// DNSZoneValidationEnabled controls whether zones are checked before a deployment.
	DNSZoneValidationEnabled bool `api:"dnsZoneValidationEnabled,put"`
	// CheckIntegrityValidation is the extent of the integrity check of zones.
	CheckIntegrityValidation string `api:"checkIntegrityValidation,put,notNull" enum:"NONE|LOCAL|LOCAL_SIBLING|FULL|FULL_SIBLING" default:"FULL"`
	// CheckMxCnameValidation is the action for an MX record that points to an alias.
	CheckMxCnameValidation string `api:"checkMxCnameValidation,put,notNull" enum:"IGNORE|WARN|FAIL" default:"WARN"`
	// CheckMxValidation is the action for an MX record that points to an address.
	CheckMxValidation string `api:"checkMxValidation,put,notNull" enum:"IGNORE|WARN|FAIL" default:"WARN"`
	// CheckNamesValidation is the action for a name that is not a valid host name.
	CheckNamesValidation string `api:"checkNamesValidation,put,notNull" enum:"IGNORE|WARN|FAIL" default:"WARN"`
	// CheckNSValidation is the action for an NS record that points to an address.
	CheckNSValidation string `api:"checkNsValidation,put,notNull" enum:"IGNORE|WARN|FAIL" default:"WARN"`
	// CheckSrvCnameValidation is the action for an SRV record that points to an alias.
	CheckSrvCnameValidation string `api:"checkSrvCnameValidation,put,notNull" enum:"IGNORE|WARN|FAIL" default:"WARN"`
	// CheckWildcardValidation is the action for a wildcard that is not the first label.
	CheckWildcardValidation string `api:"checkWildcardValidation,put,notNull" enum:"IGNORE|WARN" default:"WARN"`
	// PrivateAddress is the address at which the manager reaches a server behind NAT.
	PrivateAddress netip.Addr `api:"privateAddress"`
	// EncryptedNotificationsEnabled requests encrypted notifications from the server. Service points always encrypt them.
	EncryptedNotificationsEnabled *bool `api:"encryptedNotificationsEnabled,writeOnly"`
	// ManagementURL is the management address of a load balancer.
	ManagementURL string `api:"managementUrl,nonblank"`
	// SelfIPAddress is the address of a GTM in its own network.
	SelfIPAddress netip.Addr `api:"selfIpAddress"`
	// ServiceProviderAccount is the account at a cloud DNS provider. It is rejected, because Portolan does not control such providers.
	ServiceProviderAccount string `api:"serviceProviderAccount,nonblank"`
	// ServiceProviderAPIKey is the key of that account. It is rejected for the same reason.
	ServiceProviderAPIKey string `api:"serviceProviderApiKey,nonblank"`
	// HABackboneEnabled reports whether the nodes of a pair have a network between them.
	HABackboneEnabled bool `api:"haBackboneEnabled,put"`
	// HAPingAddress is the address that a node of a pair pings to find out whether it is isolated.
	HAPingAddress netip.Addr `api:"haPingAddress"`
	// DHCPServicePrincipal is the Kerberos principal of its DHCP service.
	DHCPServicePrincipal schema.Ref `api:"dhcpServicePrincipal" ref:"KerberosServicePrincipal" onDelete:"refuse"`
	// DNSServicePrincipal is the Kerberos principal of its DNS service.
	DNSServicePrincipal schema.Ref `api:"dnsServicePrincipal" ref:"KerberosServicePrincipal" onDelete:"refuse"`
	// InheritedFields are the fields whose values are inherited from the configuration.
	InheritedFields []string `api:"_inheritedFields,readOnly"`
	// ServicePoint is the id of the service point of the fleet that runs this server; null if there is none.
	ServicePoint string `api:"servicePoint,index"`

	// requested are the interfaces of the request, which AfterWrite creates or changes.
	requested schema.RefList
}

// Server is a machine that serves DNS or DHCP.
type Server struct {
	schema.Head `head:"required,nonblank" unique:"siblings"`
	ServerFields
	// Profile is the model of the machine. PORTOLAN_SERVICE_POINT is a service point of the fleet (a Portolan extension); its only service
	// is DHCPActivityService. OTHER_DNS_SERVER is a server that Portolan does not operate.
	Profile string `api:"profile,required" enum:"ADONIS_XMB4|ADONIS_XMB3|ADONIS_XMB2|OTHER_DNS_SERVER|AFILIAS_DNS_SERVER|ADONIS_800|ADONIS_1200|ADONIS_1900|ADONIS_1950|DNS_DHCP_SERVER_20|DNS_DHCP_SERVER_45|DNS_DHCP_SERVER_60|DNS_DHCP_SERVER_100|DNS_DHCP_SERVER_100_D|LTM|GTM|DNS_DHCP_GEN4_7000|DNS_DHCP_GEN4_5000|DNS_DHCP_GEN4_4000|DNS_DHCP_GEN4_2000|CLOUD_DNS_SERVER|PORTOLAN_SERVICE_POINT"`
	// DedicatedManagementEnabled controls whether the server is managed over an interface of its own.
	DedicatedManagementEnabled bool `api:"dedicatedManagementEnabled,put"`
	// HARole is the role of the server in a pair.
	HARole string `api:"haRole,readOnly" enum:"NOT_AVAILABLE|PASSIVE|ACTIVE" default:"NOT_AVAILABLE"`
	// HAPeerConnectionState is the state of the connection to the other node of the pair.
	HAPeerConnectionState string `api:"haPeerConnectionState,readOnly" enum:"DEGRADED|FAILOVER|HEALTHY|INITIALIZING|REPAIR|SYNCHRONIZING|UNKNOWN|UP_TO_DATE"`
	// HADiskState is the state of the disk synchronization of the pair.
	HADiskState string `api:"haDiskState,readOnly" enum:"DEGRADED|FAILOVER|HEALTHY|INITIALIZING|REPAIR|SYNCHRONIZING|UNKNOWN|UP_TO_DATE"`
	// HSMSupportEnabled controls whether a hardware security module is used.
	HSMSupportEnabled bool `api:"hsmSupportEnabled,put"`
	// InterfaceRedundancyEnabled controls whether interfaces are bonded.
	InterfaceRedundancyEnabled bool `api:"interfaceRedundancyEnabled,put"`
	// TransferKey is the key that signs zone transfers from a server of the profile OTHER_DNS_SERVER; null for unsigned transfers. A
	// Portolan extension.
	TransferKey schema.Ref `api:"transferKey" ref:"TSIGKey" onDelete:"refuse"`
}

// HAServer is a pair of servers: an active one that serves, and a passive one as its standby.
type HAServer struct {
	schema.Head `head:"put,nonblank" unique:"siblings"`
	ServerFields
	// Profile is the model of its nodes.
	Profile string `api:"profile,readOnly" enum:"ADONIS_XMB4|ADONIS_XMB3|ADONIS_XMB2|OTHER_DNS_SERVER|AFILIAS_DNS_SERVER|ADONIS_800|ADONIS_1200|ADONIS_1900|ADONIS_1950|DNS_DHCP_SERVER_20|DNS_DHCP_SERVER_45|DNS_DHCP_SERVER_60|DNS_DHCP_SERVER_100|DNS_DHCP_SERVER_100_D|LTM|GTM|DNS_DHCP_GEN4_7000|DNS_DHCP_GEN4_5000|DNS_DHCP_GEN4_4000|DNS_DHCP_GEN4_2000|CLOUD_DNS_SERVER|PORTOLAN_SERVICE_POINT"`
	// ActiveServer is the server that is active first, by its id.
	ActiveServer schema.Ref `api:"activeServer,post,createOnly,writeOnly" ref:"Server" onDelete:"refuse"`
	// PassiveServer is the other server, by its id.
	PassiveServer schema.Ref `api:"passiveServer,post,createOnly,writeOnly" ref:"Server" onDelete:"refuse"`
}

// The states of a server, and the further values of state that a PATCH can request.
const (
	Enabled      = "ENABLED"
	disabled     = "DISABLED"
	disable      = "DISABLE" // the spelling in published guides
	failover     = "FAILOVER"
	resetControl = "RESET_CONTROL"
	repair       = "REPAIR"
)

func (x *ServerFields) fields() *ServerFields { return x }

// FieldsOf returns the fields that single servers and pairs have in common; nil for any other object.
func FieldsOf(o schema.Object) *ServerFields {
	if x, ok := o.(interface{ fields() *ServerFields }); ok {
		return x.fields()
	}
	return nil
}

// BeforeWrite checks the fields of a single server, changes the state as requested, and keeps the interfaces for AfterWrite.
func (x *Server) BeforeWrite(c *resource.Change) error {
	if old, ok := c.Old.(*Server); ok && old.HARole != notAvailable && c.SetFields["state"] && x.State != old.State {
		return problem.FieldForbidden("OperationNotPermitted", "state", "the server is a node of a pair: change the state of the pair")
	}
	if old, ok := c.Old.(*Server); ok && old.HARole != notAvailable && x.Profile != old.Profile {
		return problem.FieldForbidden("OperationNotPermitted", "profile", "the server is a node of a pair: its profile must stay %s", old.Profile)
	}
	if x.HARole == "" {
		x.HARole = notAvailable
	}
	if x.HSMSupportEnabled {
		return problem.Field("NoHsmConfiguration", "hsmSupportEnabled", "no hardware security module is configured")
	}
	if err := checkServerName(x.Profile, x.Name); err != nil {
		return err
	}
	if old, ok := c.Old.(*Server); ok && old.Profile == IsOtherServer && x.Profile != IsOtherServer {
		links, err := c.Tx.Referring(x.ID)
		if err != nil {
			return err
		}
		for _, l := range links {
			if l.Field == "followedServer" {
				return problem.FieldForbidden("OperationNotPermitted", "profile", "view %d follows it: keep the profile %s", l.Target, IsOtherServer)
			}
		}
	}
	if x.TransferKey != (schema.Ref{}) && x.Profile != IsOtherServer {
		return problem.Field("ConflictingResourceFieldValues", "transferKey", "requires an external server (profile %s)", IsOtherServer)
	}
	return x.prepareWrite(c)
}

// checkServerName rejects a name of a foreign server that cannot be used in NS records.
func checkServerName(profile, name string) error {
	if profile != IsOtherServer {
		return nil
	}
	if err := naming.Check(naming.Clean(name), naming.AnyName); err != nil {
		return problem.Field("InvalidFullyQualifiedDomainName", "name", "the name of an external server is used in NS records: %v", err)
	}
	return nil
}

// IsOtherServer is the profile of a foreign server: one that Portolan does not operate.
const IsOtherServer = dns.OtherServer

// isServicePoint is the profile of a service point of the fleet.
const isServicePoint = "PORTOLAN_SERVICE_POINT"

// prepareWrite changes the state as requested, and keeps the interfaces of the request for AfterWrite.
func (x *ServerFields) prepareWrite(c *resource.Change) error {
	x.requested, x.Interfaces = x.Interfaces, schema.RefList{}
	x.EncryptedNotificationsEnabled = nil
	switch {
	case x.ServiceProviderAccount != "":
		return problem.NotYet("serviceProviderAccount: DNS providers are not supported: add their servers with the profile %s", IsOtherServer)
	case x.ServiceProviderAPIKey != "":
		return problem.NotYet("serviceProviderApiKey: DNS providers are not supported: add their servers with the profile %s", IsOtherServer)
	}
	if c.IsCreation() {
		x.State = Enabled
		return nil
	}
	if err := x.clearInherited(c); err != nil {
		return err
	}
	old := FieldsOf(c.Old)
	if x.State == disable {
		x.State = disabled
	}
	if x.State == "" || !c.SetFields["state"] {
		x.State = old.State
	}
	switch {
	case x.State == old.State:
	case c.Whole:
		return problem.Field("FieldHasPatchOnlyUpdate", "state", "can only be changed by PATCH; it is %s", old.State)
	case x.State == resetControl && old.State != disabled:
		return problem.Field("ServerNotDisabled", "state", "RESET_CONTROL requires a server that is DISABLED")
	case x.State == resetControl:
		x.State, x.Connected = disabled, false
	case x.State == failover || x.State == repair:
		pair, ok := c.New.(*HAServer)
		if !ok {
			return problem.Field("UnsupportedResourceFieldValue", "state", "%s requires a pair", x.State)
		}
		return pair.changeState(c, x.State)
	}
	return nil
}

// AfterWrite creates or changes the server's interface, and creates the services of a new server.
func (x *Server) AfterWrite(c *resource.Change) error {
	if err := x.saveInterface(c, &x.Head); err != nil || !c.IsCreation() {
		return err
	}
	return createServices(c, x)
}

// BeforeBelowDelete rejects the deletion of a server that has options.
func (x *Server) BeforeBelowDelete(c *resource.Change) error {
	if c.IsCascaded() {
		return nil
	}
	return checkNoOwnOptions(c, x.ID)
}

// checkNoOwnOptions returns an error if an option is set on the server.
func checkNoOwnOptions(c *resource.Change, server int64) error {
	found, err := c.Tx.ReadFirst(store.Query{From: store.Resources, Where: store.All{store.InCollection("deploymentOptions"),
		store.HasParent(server)}})
	if err == nil && found != nil {
		err = problem.InUse("server %d still has the option %s (%d): delete it first", server, found.Name, found.ID)
	}
	return err
}

// clearInherited clears the fields that a client sent unchanged as it read them, so that they stay inherited. Such a request lists the
// field among the inherited ones, with the value of the configuration. A listed field with another value is set.
func (x *ServerFields) clearInherited(c *resource.Change) error {
	inherited := c.SentInherited("monitoringEnabled", "snmp")
	if len(inherited) == 0 {
		return nil
	}
	configuration, err := c.Tx.Get(schema.HeadOf(c.New).Config)
	if err != nil {
		return err
	}
	var shown struct {
		ServerMonitoringEnabled bool            `json:"serverMonitoringEnabled"`
		SNMP                    json.RawMessage `json:"snmp"`
	}
	if err := json.Unmarshal(configuration.Body, &shown); err != nil {
		return err
	}
	if slices.Contains(inherited, "monitoringEnabled") && x.MonitoringEnabled != nil && *x.MonitoringEnabled == shown.ServerMonitoringEnabled {
		x.MonitoringEnabled = nil
	}
	if slices.Contains(inherited, "snmp") && equalsShown(c.Sent["snmp"], shown.SNMP) {
		x.SNMP = nil
	}
	return nil
}

// equalsShown reports whether a sent value equals a stored one. Members that are null in the sent value are ignored, because secrets are
// shown as null.
func equalsShown(sent, kept json.RawMessage) bool {
	var x, y any
	if json.Unmarshal(sent, &x) != nil || json.Unmarshal(kept, &y) != nil {
		return false
	}
	a, is := x.(map[string]any)
	b, was := y.(map[string]any)
	if !is || !was {
		return reflect.DeepEqual(x, y)
	}
	for name, value := range a {
		if value != nil && !reflect.DeepEqual(value, b[name]) {
			return false
		}
	}
	return true
}

// saveInterface creates the interface that a request for its server contains, or changes the existing one.
func (x *ServerFields) saveInterface(c *resource.Change, h *schema.Head) error {
	if !x.requested.IsSet {
		return nil
	}
	if len(x.requested.Items) != 1 {
		return problem.Invalid("interfaces", "a server has one network interface; create published interfaces by servers/%d/interfaces", h.ID)
	}
	there, err := ownInterface(c, h.ID)
	if err != nil {
		return err
	}
	set := func(n *NetworkInterface) error { return n.applyRequest(x.requested.Items[0]) }
	if there == nil {
		n := &NetworkInterface{Configuration: schema.Ref{ID: h.Config}, Server: schema.Ref{ID: h.ID}}
		n.Type, n.Name, n.Parent, n.Config = "NetworkInterface", h.Name, h.ID, h.Config
		if err := set(n); err != nil {
			return err
		}
		_, err := c.Following().Create(c.API.TypeNamed(n.Type), n)
		return err
	}
	var bad error
	_, err = c.Following("managementAddress").Change(there, func(o schema.Object) { bad = set(o.(*NetworkInterface)) })
	return cmp.Or(bad, err)
}

// ownInterface returns the network interface of a server; nil if there is none.
func ownInterface(c *resource.Change, server int64) (*store.Resource, error) {
	return c.Tx.ReadFirst(store.Query{From: store.Resources, Where: store.All{store.InCollection("interfaces"), store.HasParent(server),
		store.Compare{Field: store.Field{Kind: store.ColumnText, Path: []string{"type"}}, Op: "eq", Value: "NetworkInterface"}}})
}

// CompleteServers fills in the values that servers inherit from their configuration, and the list of inherited fields.
func CompleteServers(tx *store.Tx, rows []*store.Resource) error {
	configurations := map[int64]map[string]json.RawMessage{}
	for _, r := range rows {
		above := configurations[r.Configuration]
		if above == nil {
			row, err := tx.Get(r.Configuration)
			if err != nil {
				return err
			}
			if err := json.Unmarshal(schema.Hide(row.Body), &above); err != nil {
				return err
			}
			configurations[r.Configuration] = above
		}
		var own map[string]json.RawMessage
		if err := json.Unmarshal(r.Body, &own); err != nil {
			return err
		}
		set, inherited := map[string][]byte{}, []string{}
		for _, f := range fromConfiguration {
			if f.override != "" && string(own[f.override]) == "true" || f.override == "" && string(own[f.name]) != "null" {
				continue
			}
			value := above[f.above]
			if value == nil {
				value = json.RawMessage("null")
			}
			set[f.name] = value
			inherited = append(inherited, f.name)
		}
		set["_inheritedFields"] = schema.AppendStrings(nil, inherited)
		shown, err := store.Rewritten(r.Body, set)
		if err != nil {
			return err
		}
		r.Body = shown
	}
	return nil
}

// fromConfiguration are the fields of servers that can be inherited from the configuration. A field with an override is inherited unless
// the override is true on the server. Any other field is inherited where it is null.
var fromConfiguration = func() (all []struct{ name, above, override string }) {
	add := func(override string, names ...string) {
		for _, name := range names {
			all = append(all, struct{ name, above, override string }{name, name, override})
		}
	}
	add("overrideConfigurationLevelDhcpValidation", "dhcpConfigurationValidationEnabled")
	add("overrideConfigurationLevelDnsValidation", "dnsConfigurationValidationEnabled", "dnsZoneValidationEnabled", "checkIntegrityValidation",
		"checkMxCnameValidation", "checkMxValidation", "checkNamesValidation", "checkNsValidation", "checkSrvCnameValidation",
		"checkWildcardValidation")
	add("", "snmp")
	return append(all, struct{ name, above, override string }{"monitoringEnabled", "serverMonitoringEnabled", ""})
}()
