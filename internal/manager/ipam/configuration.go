package ipam

import (
	"net/netip"

	"portolan/internal/base/problem"
	"portolan/internal/base/space"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/manager/snmp"
)

// registerConfigurations declares the collection of configurations.
func registerConfigurations(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "configurations", CacheHeads: true, Parents: []string{"configurations"}, Scope: true,
		Reports: []resource.Report{fullestReport}}, &Configuration{})
}

// Configuration is the top of the address and name hierarchy. Configurations are independent of each other: their address space and names
// do not conflict.
type Configuration struct {
	schema.Head `head:"required,nonblank" unique:"siblings"`
	// ConfigurationGroup is a free label for grouping configurations.
	ConfigurationGroup string `api:"configurationGroup"`
	// Description is a free text about the purpose of the configuration.
	Description string `api:"description,search" length:"4000"`
	// SNMP contains the version, port and state of SNMP polling.
	SNMP *snmp.Settings `api:"snmp"`
	// ServerMonitoringEnabled enables monitoring of the servers of the configuration.
	ServerMonitoringEnabled bool `api:"serverMonitoringEnabled,put"`
	// DHCPConfigurationValidationEnabled enables the validation of DHCP data before deployment.
	DHCPConfigurationValidationEnabled bool `api:"dhcpConfigurationValidationEnabled,put"`
	// DNSConfigurationValidationEnabled enables the validation of DNS data before deployment.
	DNSConfigurationValidationEnabled bool `api:"dnsConfigurationValidationEnabled,put"`
	// DNSZoneValidationEnabled enables the validation of zones before deployment.
	DNSZoneValidationEnabled bool `api:"dnsZoneValidationEnabled,put"`
	// CheckIntegrityValidation is the scope of the zone integrity check.
	CheckIntegrityValidation string `api:"checkIntegrityValidation,put,notNull" enum:"NONE|LOCAL|LOCAL_SIBLING|FULL|FULL_SIBLING" default:"FULL"`
	// CheckMxCnameValidation is the result for an MX record that points to an alias.
	CheckMxCnameValidation string `api:"checkMxCnameValidation,put,notNull" enum:"IGNORE|WARN|FAIL" default:"WARN"`
	// CheckMxValidation is the result for an MX record that points to an address.
	CheckMxValidation string `api:"checkMxValidation,put,notNull" enum:"IGNORE|WARN|FAIL" default:"WARN"`
	// CheckNamesValidation is the result for a name that is not a valid host name.
	CheckNamesValidation string `api:"checkNamesValidation,put,notNull" enum:"IGNORE|WARN|FAIL" default:"WARN"`
	// CheckNsValidation is the result for an NS record that points to an address.
	CheckNsValidation string `api:"checkNsValidation,put,notNull" enum:"IGNORE|WARN|FAIL" default:"WARN"`
	// CheckSrvCnameValidation is the result for an SRV record that points to an alias.
	CheckSrvCnameValidation string `api:"checkSrvCnameValidation,put,notNull" enum:"IGNORE|WARN|FAIL" default:"WARN"`
	// CheckWildcardValidation is the result for a wildcard that is not the first label.
	CheckWildcardValidation string `api:"checkWildcardValidation,put,notNull" enum:"IGNORE|WARN" default:"WARN"`
	// DNSOptionInheritanceEnabled enables the inheritance of DNS options from the configuration.
	DNSOptionInheritanceEnabled bool `api:"dnsOptionInheritanceEnabled,put" default:"true"`
	// DNSFeedEnabled enables the feed of DNS activity.
	DNSFeedEnabled bool `api:"dnsFeedEnabled,put"`
	// DNSFeedLicense is the licence of the feed.
	DNSFeedLicense string `api:"dnsFeedLicense,nonblank"`
	// BlockUsageCalculation selects the used space of a block: assigned addresses or allocated networks.
	BlockUsageCalculation string `api:"blockUsageCalculation,put,notNull" enum:"ADDRESS_ALLOCATION|NETWORK_ALLOCATION" default:"ADDRESS_ALLOCATION"`
	// SharedNetworkTagGroup is the tag group whose tags define shared networks.
	SharedNetworkTagGroup schema.Ref `api:"sharedNetworkTagGroup" ref:"TagGroup"`
	// FourEyesTypes lists the types of networks, addresses, zones and records whose changes require approval by a second user. This applies
	// to every author. It is an extension of Portolan.
	FourEyesTypes []string `api:"fourEyesTypes,notNull"`
	// KeyAutoRegenerationEnabled enables the automatic regeneration of DNSSEC keys.
	KeyAutoRegenerationEnabled bool `api:"keyAutoRegenerationEnabled,put"`
}

// firstSpace lists the IPv6 blocks of a new configuration (RFC 4291 section 2.4, RFC 4193).
var firstSpace = []struct{ name, prefix string }{
	{"Global Unicast", "2000::/3"},
	{"Unique Local", "fc00::/7"},
}

// Validate rejects types in fourEyesTypes that do not support workflow approval.
func (x *Configuration) Validate(c *resource.Change) error {
	for i, name := range x.FourEyesTypes {
		t, ok := c.API.Type(name)
		if !ok || c.API.Collection(t.Collection).Workflow == nil || c.API.Collection(t.Collection).Workflow(name) == "" {
			return problem.Invalid("fourEyesTypes", "entry %d, %q, must be a type of IPv4 network, IPv4 address, zone or record", i, name)
		}
	}
	return nil
}

// AfterWrite creates the IPv6 blocks of a new configuration.
func (x *Configuration) AfterWrite(c *resource.Change) error {
	if !c.IsCreation() {
		return nil
	}
	t, _ := c.API.Type("IPv6Block")
	for _, one := range firstSpace {
		b := &IPv6Block{SpaceHead{Range: schema.Range{Range: space.FromPrefix(netip.MustParsePrefix(one.prefix))}}}
		b.Type, b.Name, b.Parent, b.Config = t.Name, one.name, x.ID, x.ID
		if _, err := c.Following().Create(t, b); err != nil {
			return err
		}
	}
	return nil
}
