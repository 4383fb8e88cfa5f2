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
	r.Collection(resource.Collection{Name: "configurations", Parents: []string{"configurations"}, Scope: true,
		Reports: []resource.Report{fullestReport}}, &Configuration{})
}

// Configuration is the top of a network's data: address space and names of two configurations
// never meet.
type Configuration struct {
	schema.Head `head:"required,nonblank" unique:"siblings"`
	// ConfigurationGroup is a free label that puts configurations together.
	ConfigurationGroup string `api:"configurationGroup"`
	// Description says what the configuration is for.
	Description string `api:"description,search" length:"4000"`
	// SNMP holds the version, port and state of SNMP polling.
	SNMP *snmp.Settings `api:"snmp"`
	// ServerMonitoringEnabled says whether its servers are monitored.
	ServerMonitoringEnabled bool `api:"serverMonitoringEnabled,put"`
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
	// CheckNsValidation is what an NS record that leads to an address gets.
	CheckNsValidation string `api:"checkNsValidation,put,notNull" enum:"IGNORE|WARN|FAIL" default:"WARN"`
	// CheckSrvCnameValidation is what an SRV record that leads to an alias gets.
	CheckSrvCnameValidation string `api:"checkSrvCnameValidation,put,notNull" enum:"IGNORE|WARN|FAIL" default:"WARN"`
	// CheckWildcardValidation is what a wildcard that is not at the front gets.
	CheckWildcardValidation string `api:"checkWildcardValidation,put,notNull" enum:"IGNORE|WARN" default:"WARN"`
	// DNSOptionInheritanceEnabled says whether DNS options come down from the configuration.
	DNSOptionInheritanceEnabled bool `api:"dnsOptionInheritanceEnabled,put" default:"true"`
	// DNSFeedEnabled says whether the feed of DNS activity is on.
	DNSFeedEnabled bool `api:"dnsFeedEnabled,put"`
	// DNSFeedLicense is the licence of the feed.
	DNSFeedLicense string `api:"dnsFeedLicense,nonblank"`
	// BlockUsageCalculation says what counts as used in a block.
	BlockUsageCalculation string `api:"blockUsageCalculation,put,notNull" enum:"ADDRESS_ALLOCATION|NETWORK_ALLOCATION" default:"ADDRESS_ALLOCATION"`
	// SharedNetworkTagGroup is the tag group whose tags make shared networks.
	SharedNetworkTagGroup schema.Ref `api:"sharedNetworkTagGroup" ref:"TagGroup"`
	// FourEyesTypes are the types of networks, addresses, zones and records whose changes somebody else than their author approves,
	// whoever that is. It is ours.
	FourEyesTypes []string `api:"fourEyesTypes,notNull"`
	// KeyAutoRegenerationEnabled says whether DNSSEC keys are made anew by themselves.
	KeyAutoRegenerationEnabled bool `api:"keyAutoRegenerationEnabled,put"`
}

// The IPv6 space that a configuration begins with (RFC 4291 section 2.4, RFC 4193).
var firstSpace = []struct{ name, prefix string }{
	{"Global Unicast", "2000::/3"},
	{"Unique Local", "fc00::/7"},
}

// Validate refuses types that nobody looks at twice.
func (x *Configuration) Validate(c *resource.Change) error {
	for i, name := range x.FourEyesTypes {
		t, ok := c.API.Type(name)
		if !ok || c.API.Collection(t.Collection).Workflow == nil || c.API.Collection(t.Collection).Workflow(name) == "" {
			return problem.Invalid("fourEyesTypes", "entry %d, %q, is no type of networks and addresses of IPv4, zones or records", i, name)
		}
	}
	return nil
}

// AfterWrite makes the IPv6 space that every configuration has.
func (x *Configuration) AfterWrite(c *resource.Change) error {
	if !c.Creates() {
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
