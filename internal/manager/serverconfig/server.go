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

// ServerFields are what single servers and pairs have.
type ServerFields struct {
	// Configuration is the configuration the server lies in.
	Configuration schema.Ref `api:"configuration,readOnly" ref:"Configuration" column:"configuration"`
	// State says whether the server is used; a PATCH of it alone changes it, and asks for more: FAILOVER, REPAIR, RESET_CONTROL.
	State string `api:"state" enum:"ENABLED|DISABLED|FAILOVER|RESET_CONTROL|REPAIR|DISABLE"`
	// Username is the name that the machine is signed in to with.
	Username string `api:"username,nonblank"`
	// Password is the password for it; it is taken, and never shown.
	Password schema.Secret `api:"password,nonblank"`
	// ServerGroup is the group whose options the server has.
	ServerGroup schema.Ref `api:"serverGroup" ref:"ServerGroup" back:"servers"`
	// Connected says whether the server is managed, or only planned.
	Connected bool `api:"connected,notNull"`
	// MonitoringEnabled says whether the server is watched; null where its configuration says so.
	MonitoringEnabled *bool `api:"monitoringEnabled"`
	// SNMP is how it is asked by SNMP; null where its configuration says so.
	SNMP *snmp.Settings `api:"snmp"`
	// Interfaces is its interface, by name and managementAddress.
	Interfaces schema.RefList `api:"interfaces,post,writeOnly" min:"1"`
	// Location is where the server stands.
	Location schema.Ref `api:"location" ref:"Location" back:"annotatedResources"`
	// Statistics is what was measured of it; empty where it is not watched.
	Statistics map[string]string `api:"statistics,readOnly"`
	// OverrideDHCPValidation says whether the server's own fields say how DHCP data is checked.
	OverrideDHCPValidation bool `api:"overrideConfigurationLevelDhcpValidation,put"`
	// OverrideDNSValidation says whether the server's own fields say how DNS data is checked.
	OverrideDNSValidation bool `api:"overrideConfigurationLevelDnsValidation,put"`
	// DHCPConfigurationValidationEnabled says whether DHCP data is checked before it is deployed.
	DHCPConfigurationValidationEnabled bool `api:"dhcpConfigurationValidationEnabled,put"`
	// DNSConfigurationValidationEnabled says whether DNS data is checked before it is deployed.
	DNSConfigurationValidationEnabled bool `api:"dnsConfigurationValidationEnabled,put"`
	// DNSZoneValidationEnabled says whether zones are checked before they are deployed.
	DNSZoneValidationEnabled bool `api:"dnsZoneValidationEnabled,put"`
	// CheckIntegrityValidation is how far a zone's integrity is checked.
	CheckIntegrityValidation string `api:"checkIntegrityValidation,put,notNull" enum:"NONE|LOCAL|LOCAL_SIBLING|FULL|FULL_SIBLING" default:"FULL"`
	// CheckMxCnameValidation is what an MX record that leads to an alias gets.
	CheckMxCnameValidation string `api:"checkMxCnameValidation,put,notNull" enum:"IGNORE|WARN|FAIL" default:"WARN"`
	// CheckMxValidation is what an MX record that leads to an address gets.
	CheckMxValidation string `api:"checkMxValidation,put,notNull" enum:"IGNORE|WARN|FAIL" default:"WARN"`
	// CheckNamesValidation is what a name that is no host name gets.
	CheckNamesValidation string `api:"checkNamesValidation,put,notNull" enum:"IGNORE|WARN|FAIL" default:"WARN"`
	// CheckNSValidation is what an NS record that leads to an address gets.
	CheckNSValidation string `api:"checkNsValidation,put,notNull" enum:"IGNORE|WARN|FAIL" default:"WARN"`
	// CheckSrvCnameValidation is what an SRV record that leads to an alias gets.
	CheckSrvCnameValidation string `api:"checkSrvCnameValidation,put,notNull" enum:"IGNORE|WARN|FAIL" default:"WARN"`
	// CheckWildcardValidation is what a wildcard that is not at the front gets.
	CheckWildcardValidation string `api:"checkWildcardValidation,put,notNull" enum:"IGNORE|WARN" default:"WARN"`
	// PrivateAddress is the address by which the manager reaches a server behind NAT.
	PrivateAddress netip.Addr `api:"privateAddress"`
	// EncryptedNotificationsEnabled asks that the server's notifications come encrypted, as those of service points always do.
	EncryptedNotificationsEnabled *bool `api:"encryptedNotificationsEnabled,writeOnly"`
	// ManagementURL is where a load balancer is managed.
	ManagementURL string `api:"managementUrl,nonblank"`
	// SelfIPAddress is the address of a GTM in its own network.
	SelfIPAddress netip.Addr `api:"selfIpAddress"`
	// ServiceProviderAccount is the account at a provider of DNS in a cloud, which is refused: those are not driven.
	ServiceProviderAccount string `api:"serviceProviderAccount,nonblank"`
	// ServiceProviderAPIKey is the key of that account, which is refused for the same reason.
	ServiceProviderAPIKey string `api:"serviceProviderApiKey,nonblank"`
	// HABackboneEnabled says whether the nodes of a pair have a network of their own.
	HABackboneEnabled bool `api:"haBackboneEnabled,put"`
	// HAPingAddress is what a node of a pair pings to know whether it is cut off.
	HAPingAddress netip.Addr `api:"haPingAddress"`
	// DHCPServicePrincipal is who its DHCP service signs in as.
	DHCPServicePrincipal schema.Ref `api:"dhcpServicePrincipal" ref:"KerberosServicePrincipal" onDelete:"refuse"`
	// DNSServicePrincipal is who its DNS service signs in as.
	DNSServicePrincipal schema.Ref `api:"dnsServicePrincipal" ref:"KerberosServicePrincipal" onDelete:"refuse"`
	// InheritedFields are the fields whose values come from above.
	InheritedFields []string `api:"_inheritedFields,readOnly"`
	// ServicePoint is the id of the service point of the fleet that the server is; null where it is none.
	ServicePoint string `api:"servicePoint,index"`

	// wanted are the interfaces of the request, for AfterWrite to make.
	wanted schema.RefList
}

// Server is a machine that answers for names, or gives out addresses.
type Server struct {
	schema.Head `head:"required,nonblank" unique:"siblings"`
	ServerFields
	// Profile is the model of the machine; OTHER_DNS_SERVER is one that somebody else runs.
	Profile string `api:"profile,required" enum:"ADONIS_XMB4|ADONIS_XMB3|ADONIS_XMB2|OTHER_DNS_SERVER|AFILIAS_DNS_SERVER|ADONIS_800|ADONIS_1200|ADONIS_1900|ADONIS_1950|DNS_DHCP_SERVER_20|DNS_DHCP_SERVER_45|DNS_DHCP_SERVER_60|DNS_DHCP_SERVER_100|DNS_DHCP_SERVER_100_D|LTM|GTM|DNS_DHCP_GEN4_7000|DNS_DHCP_GEN4_5000|DNS_DHCP_GEN4_4000|DNS_DHCP_GEN4_2000|CLOUD_DNS_SERVER"`
	// DedicatedManagementEnabled says whether the server is managed over an interface of its own.
	DedicatedManagementEnabled bool `api:"dedicatedManagementEnabled,put"`
	// HARole is what the server is in a pair.
	HARole string `api:"haRole,readOnly" enum:"NOT_AVAILABLE|PASSIVE|ACTIVE" default:"NOT_AVAILABLE"`
	// HAPeerConnectionState is how the node sees the other one of its pair.
	HAPeerConnectionState string `api:"haPeerConnectionState,readOnly" enum:"DEGRADED|FAILOVER|HEALTHY|INITIALIZING|REPAIR|SYNCHRONIZING|UNKNOWN|UP_TO_DATE"`
	// HADiskState is how alike the disks of the pair are.
	HADiskState string `api:"haDiskState,readOnly" enum:"DEGRADED|FAILOVER|HEALTHY|INITIALIZING|REPAIR|SYNCHRONIZING|UNKNOWN|UP_TO_DATE"`
	// HSMSupportEnabled says whether a hardware security module is used.
	HSMSupportEnabled bool `api:"hsmSupportEnabled,put"`
	// InterfaceRedundancyEnabled says whether interfaces are bonded.
	InterfaceRedundancyEnabled bool `api:"interfaceRedundancyEnabled,put"`
	// TransferKey is the key that transfers of zones from a server of somebody else are signed with; null: none is. (Ours.)
	TransferKey schema.Ref `api:"transferKey" ref:"TSIGKey" onDelete:"refuse"`
}

// HAServer is a pair of servers of which one answers, and the other stands by.
type HAServer struct {
	schema.Head `head:"put,nonblank" unique:"siblings"`
	ServerFields
	// Profile is the model of its nodes.
	Profile string `api:"profile,readOnly" enum:"ADONIS_XMB4|ADONIS_XMB3|ADONIS_XMB2|OTHER_DNS_SERVER|AFILIAS_DNS_SERVER|ADONIS_800|ADONIS_1200|ADONIS_1900|ADONIS_1950|DNS_DHCP_SERVER_20|DNS_DHCP_SERVER_45|DNS_DHCP_SERVER_60|DNS_DHCP_SERVER_100|DNS_DHCP_SERVER_100_D|LTM|GTM|DNS_DHCP_GEN4_7000|DNS_DHCP_GEN4_5000|DNS_DHCP_GEN4_4000|DNS_DHCP_GEN4_2000|CLOUD_DNS_SERVER"`
	// ActiveServer is the server that answers at first, by its id.
	ActiveServer schema.Ref `api:"activeServer,post,createOnly,writeOnly" ref:"Server" onDelete:"refuse"`
	// PassiveServer is the other one, by its id.
	PassiveServer schema.Ref `api:"passiveServer,post,createOnly,writeOnly" ref:"Server" onDelete:"refuse"`
}

// The states of a server, and what a PATCH of the state asks for beside them.
const (
	Enabled      = "ENABLED"
	disabled     = "DISABLED"
	disable      = "DISABLE" // as guides have it
	failover     = "FAILOVER"
	resetControl = "RESET_CONTROL"
	repair       = "REPAIR"
)

func (x *ServerFields) fields() *ServerFields { return x }

// FieldsOf gives what single servers and pairs have; nil of anything else.
func FieldsOf(o schema.Object) *ServerFields {
	if x, ok := o.(interface{ fields() *ServerFields }); ok {
		return x.fields()
	}
	return nil
}

// BeforeWrite takes the state that is asked for, and the interfaces.
func (x *Server) BeforeWrite(c *resource.Change) error {
	if old, ok := c.Old.(*Server); ok && old.HARole != notAvailable && c.Given["state"] && x.State != old.State {
		return problem.FieldForbidden("OperationNotPermitted", "state", "the server is a node of a pair, whose state counts")
	}
	if old, ok := c.Old.(*Server); ok && old.HARole != notAvailable && x.Profile != old.Profile {
		return problem.FieldForbidden("OperationNotPermitted", "profile", "the server is a node of a pair, and stays a %s", old.Profile)
	}
	if x.HARole == "" {
		x.HARole = notAvailable
	}
	if x.HSMSupportEnabled {
		return problem.Field("NoHsmConfiguration", "hsmSupportEnabled", "there is no hardware security module")
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
				return problem.FieldForbidden("OperationNotPermitted", "profile", "view %d follows the server: it stays a %s", l.Target, IsOtherServer)
			}
		}
	}
	if x.TransferKey != (schema.Ref{}) && x.Profile != IsOtherServer {
		return problem.Field("ConflictingResourceFieldValues", "transferKey", "is for servers that others run, of the profile %s", IsOtherServer)
	}
	return x.before(c)
}

// checkServerName refuses a name that cannot stand in NS records, of a server that others run.
func checkServerName(profile, name string) error {
	if profile != IsOtherServer {
		return nil
	}
	if err := naming.Check(naming.Clean(name), naming.AnyName); err != nil {
		return problem.Field("InvalidFullyQualifiedDomainName", "name", "the name of a server that others run stands in NS records: %v", err)
	}
	return nil
}

// IsOtherServer is the profile of a server that somebody else runs.
const IsOtherServer = dns.OtherServer

// before takes the state that is asked for, and keeps the interfaces for after.
func (x *ServerFields) before(c *resource.Change) error {
	x.wanted, x.Interfaces = x.Interfaces, schema.RefList{}
	x.EncryptedNotificationsEnabled = nil
	switch {
	case x.ServiceProviderAccount != "":
		return problem.NotYet("serviceProviderAccount: DNS of providers is not driven: name their servers by the profile %s", IsOtherServer)
	case x.ServiceProviderAPIKey != "":
		return problem.NotYet("serviceProviderApiKey: DNS of providers is not driven: name their servers by the profile %s", IsOtherServer)
	}
	if c.Creates() {
		x.State = Enabled
		return nil
	}
	if err := x.stayInherited(c); err != nil {
		return err
	}
	old := FieldsOf(c.Old)
	if x.State == disable {
		x.State = disabled
	}
	if x.State == "" || !c.Given["state"] {
		x.State = old.State
	}
	switch {
	case x.State == old.State:
	case c.Whole:
		return problem.Field("FieldHasPatchOnlyUpdate", "state", "is changed by a PATCH alone; it is %s", old.State)
	case x.State == resetControl && old.State != disabled:
		return problem.Field("ServerNotDisabled", "state", "RESET_CONTROL is for a server that is DISABLED")
	case x.State == resetControl:
		x.State, x.Connected = disabled, false
	case x.State == failover || x.State == repair:
		pair, ok := c.New.(*HAServer)
		if !ok {
			return problem.Field("UnsupportedResourceFieldValue", "state", "%s is for a pair", x.State)
		}
		return pair.turn(c, x.State)
	}
	return nil
}

// AfterWrite makes the server's interface.
func (x *Server) AfterWrite(c *resource.Change) error {
	if err := x.keepInterfaces(c, &x.Head); err != nil || !c.Creates() {
		return err
	}
	return makeServices(c, x)
}

// BeforeBelowDelete keeps a server that has options.
func (x *Server) BeforeBelowDelete(c *resource.Change) error {
	if c.GoesAlong() {
		return nil
	}
	return noOwnOptions(c, x.ID)
}

// noOwnOptions refuses where options lie at a server.
func noOwnOptions(c *resource.Change, server int64) error {
	found, err := c.Tx.First(store.Query{From: store.Resources, Where: store.All{store.InCollection("deploymentOptions"),
		store.HasParent(server)}})
	if err == nil && found != nil {
		err = problem.InUse("server %d has the option %s, %d", server, found.Name, found.ID)
	}
	return err
}

// stayInherited leaves to the configuration what a request gives back as it was shown from there: it names the field among those inherited,
// with the value of the configuration. A field that is named there with another value is set.
func (x *ServerFields) stayInherited(c *resource.Change) error {
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
	if slices.Contains(inherited, "snmp") && sameShown(c.Sent["snmp"], shown.SNMP) {
		x.SNMP = nil
	}
	return nil
}

// sameShown reports whether a value that is sent says nothing else than one that is kept, whose secrets are shown as null.
func sameShown(sent, kept json.RawMessage) bool {
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

// keepInterfaces makes the interface that a request gives with its server, or changes the one that is there.
func (x *ServerFields) keepInterfaces(c *resource.Change, h *schema.Head) error {
	if !x.wanted.Given {
		return nil
	}
	if len(x.wanted.Items) != 1 {
		return problem.Invalid("interfaces", "a server has one network interface; published interfaces are made by servers/%d/interfaces", h.ID)
	}
	there, err := ownInterface(c, h.ID)
	if err != nil {
		return err
	}
	set := func(n *NetworkInterface) error { return n.take(x.wanted.Items[0]) }
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

// ownInterface gives the network interface of a server; nil where it has none.
func ownInterface(c *resource.Change, server int64) (*store.Resource, error) {
	return c.Tx.First(store.Query{From: store.Resources, Where: store.All{store.InCollection("interfaces"), store.HasParent(server),
		store.Compare{Field: store.Field{Kind: store.ColumnText, Path: []string{"type"}}, Op: "eq", Value: "NetworkInterface"}}})
}

// CompleteServers shows what servers have of their configuration where they do not say otherwise.
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

// fromConfiguration are the fields of servers whose values come from the configuration: those of a check where the server does not say that
// its own count (override), the others where they are null.
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
