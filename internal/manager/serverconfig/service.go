package serverconfig

import (
	"net/netip"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/manager/snmp"
)

// registerServices declares the services of servers: one of each kind, which come with the server.
func registerServices(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "services", Parents: []string{"servers"}}, &AnycastService{}, &DHCPActivityService{},
		&DHCPStatisticsService{}, &DNSActivityService{}, &DNSResolverService{}, &DNSStatisticsService{}, &FailoverAPIService{},
		&FirewallService{}, &GatewayService{},
		&InterfacesService{}, &LicenseService{}, &NTPService{}, &SNMPService{}, &SSHService{}, &SyslogService{})
}

// Service is what every service of a server has.
type Service struct {
	// ServerVersion is the version of the server that shows it.
	ServerVersion string `api:"serverVersion,readOnly"`
}

// BeforeWrite refuses a change of a service of a server that is only planned.
func (x *Service) BeforeWrite(c *resource.Change) error {
	if !c.Requested() {
		return nil
	}
	row, err := c.Tx.Get(schema.HeadOf(c.New).Parent)
	if err != nil {
		return err
	}
	o, err := c.API.Object(row)
	if err != nil {
		return err
	}
	if !FieldsOf(o).Connected {
		return problem.BadRequest("ServerNotConnected", "server %d is only planned (connected is false), and has no services to set", row.ID)
	}
	return nil
}

// Overridden is what those services have that somebody may have changed on the machine itself.
type Overridden struct {
	// ManualOverrideEnabled says whether that was done; a PUT overwrites it.
	ManualOverrideEnabled bool `api:"manualOverrideEnabled,readOnly"`
}

// DNSResolverService says whom the machine itself asks for names.
type DNSResolverService struct {
	schema.Head `head:"readOnly" post:"no"`
	Service
	// Servers are the addresses of name servers.
	Servers []string `api:"servers,required"`
}

// FirewallService says what the machine lets in.
type FirewallService struct {
	schema.Head `head:"readOnly" post:"no"`
	Service
	// Enabled says whether it runs.
	Enabled bool `api:"enabled,required" default:"true"`
	// PingAllowed says whether the machine answers pings.
	PingAllowed bool `api:"pingAllowed,required" default:"true"`
}

// FailoverAPIService lets another manager take over; there is none.
type FailoverAPIService struct {
	schema.Head `head:"readOnly" post:"no"`
	Service
	// Enabled says whether it runs.
	Enabled bool `api:"enabled,required"`
	// Certificate is its certificate.
	Certificate string `api:"certificate" length:"65535"`
	// PrivateKey is the key of the certificate; it is never shown.
	PrivateKey schema.Secret `api:"privateKey"`
	// TrustStore are the certificates that it trusts.
	TrustStore []string `api:"trustStore"`
	// TrustStorePassword is the password for them; it is never shown.
	TrustStorePassword schema.Secret `api:"trustStorePassword"`
}

// GatewayService runs a container on the machine.
type GatewayService struct {
	schema.Head `head:"readOnly" post:"no"`
	Service
	// Enabled says whether it runs.
	Enabled bool `api:"enabled,required"`
	// State is what it does.
	State string `api:"state,readOnly" enum:"RUNNING|STOPPED|DISABLED|UNKNOWN" default:"DISABLED"`
	// Container is what is run.
	Container *Container `api:"container"`
	// RepositoryUsername is who signs in to where its image is.
	RepositoryUsername string `api:"repositoryUsername,nonblank"`
	// RepositoryPassword is the password for it; it is never shown.
	RepositoryPassword schema.Secret `api:"repositoryPassword"`
	// DeleteImageOnDisable says whether the image goes when the service ends.
	DeleteImageOnDisable *bool `api:"deleteImageOnDisable"`
	// DeleteMountPointsOnDisable says whether its files go when the service ends.
	DeleteMountPointsOnDisable *bool `api:"deleteMountPointsOnDisable"`
}

// Container is what a gateway runs.
type Container struct {
	// Name is what the machine calls it.
	Name string `api:"name,readOnly"`
	// Image is its image.
	Image string `api:"image,required,nonblank"`
	// EnvironmentVariables are its variables.
	EnvironmentVariables []Variable `api:"environmentVariables"`
	// PortMappings are its ports.
	PortMappings []PortMapping `api:"portMappings"`
	// MountPoints are its files.
	MountPoints []MountPoint `api:"mountPoints"`
}

// Variable is one of the environment.
type Variable struct {
	// Name is its name.
	Name string `api:"name,required,nonblank"`
	// Value is its value.
	Value string `api:"value" length:"4000"`
}

// PortMapping leads a port of the machine to one of the container.
type PortMapping struct {
	// HostPort is that of the machine.
	HostPort int64 `api:"hostPort,required" min:"1" max:"65535"`
	// ContainerPort is that of the container.
	ContainerPort int64 `api:"containerPort,required" min:"1" max:"65535"`
}

// MountPoint shows files of the machine to the container.
type MountPoint struct {
	// Source is where they are on the machine.
	Source string `api:"source,required,nonblank" length:"1000"`
	// ContainerPath is where the container sees them.
	ContainerPath string `api:"containerPath,required,nonblank" length:"1000"`
}

// InterfacesService says which addresses and routes the machine has.
type InterfacesService struct {
	schema.Head `head:"readOnly" post:"no"`
	Service
	// DedicatedManagementEnabled says whether the machine is managed over an interface of its own.
	DedicatedManagementEnabled bool `api:"dedicatedManagementEnabled,required"`
	// Interfaces are its interfaces.
	Interfaces []HostInterface `api:"interfaces,required"`
	// Routes are its routes.
	Routes []Route `api:"routes,required"`
}

// HostInterface is one of a machine.
type HostInterface struct {
	// InterfaceType is its kind.
	InterfaceType string `api:"interfaceType,required" enum:"LOOPBACK|PHYSICAL|VLAN|BOND"`
	// Name is what the machine calls it.
	Name string `api:"name,readOnly"`
	// Enabled says whether it is up.
	Enabled bool `api:"enabled"`
	// Description says what it is for.
	Description string `api:"description"`
	// Addresses are its addresses.
	Addresses []HostAddress `api:"addresses,required"`
	// VLANID is its VLAN.
	VLANID *int64 `api:"vlanId" min:"1" max:"4096"`
	// RedundancyScenario is how a bond uses its parts.
	RedundancyScenario string `api:"redundancyScenario" enum:"ACTIVE_BACKUP|ACTIVE_ACTIVE"`
}

// Check asks for the VLAN of one.
func (x *HostInterface) Check() error {
	if x.InterfaceType == "VLAN" && x.VLANID == nil {
		return schema.At("vlanId", "is needed with VLAN")
	}
	return nil
}

// HostAddress is an address of an interface.
type HostAddress struct {
	// Address is the address.
	Address netip.Addr `api:"address,required"`
	// PrefixLength is the length of its prefix.
	PrefixLength int64 `api:"prefixLength,required" min:"0" max:"128"`
}

// Check refuses a prefix longer than the address.
func (x *HostAddress) Check() error {
	if int(x.PrefixLength) > x.Address.BitLen() {
		return schema.At("prefixLength", "is at most %d for %s", x.Address.BitLen(), x.Address)
	}
	return nil
}

// Route is one of a machine.
type Route struct {
	// Gateway is where it leads.
	Gateway netip.Addr `api:"gateway,required"`
	// Network is where it is for; null means everywhere.
	Network netip.Addr `api:"network"`
	// PrefixLength is the length of its prefix.
	PrefixLength int64 `api:"prefixLength,required" min:"0" max:"128"`
}

// LicenseService holds the licence of the machine.
type LicenseService struct {
	schema.Head `head:"readOnly" post:"no"`
	Service
	// ClientID is who has it.
	ClientID string `api:"clientId,required,nullable,nonblank"`
	// Key is the key of it.
	Key string `api:"key,required,nullable,nonblank"`
}

// NTPService says whom the machine asks for the time.
type NTPService struct {
	schema.Head `head:"readOnly" post:"no"`
	Service
	Overridden
	// Enabled says whether it runs.
	Enabled bool `api:"enabled,required"`
	// Servers are asked in their order.
	Servers []NTPServer `api:"servers,required"`
}

// NTPServer is who is asked for the time.
type NTPServer struct {
	// Server is its name or address.
	Server string `api:"server,required,nonblank"`
	// Stratum is that of a clock of the machine itself.
	Stratum *int64 `api:"stratum" min:"1" max:"15"`
}

// Check takes a stratum with addresses of clocks of the machine alone (127.127.0.0/16).
func (x *NTPServer) Check() error {
	a, err := netip.ParseAddr(x.Server)
	if x.Stratum != nil && (err != nil || !netip.MustParsePrefix("127.127.0.0/16").Contains(a)) {
		return schema.At("stratum", "goes with a clock of the machine, 127.127.0.0/16, alone")
	}
	return nil
}

// SNMPService answers SNMP, and sends traps.
type SNMPService struct {
	schema.Head `head:"readOnly" post:"no"`
	Service
	Overridden
	// Enabled says whether it runs.
	Enabled bool `api:"enabled,required"`
	// ContactName is who looks after the machine.
	ContactName string `api:"contactName,required,nullable,nonblank"`
	// ContactEmail is the mail address of them.
	ContactEmail string `api:"contactEmail,required,nullable,nonblank"`
	// Location is where the machine stands.
	Location string `api:"location,nonblank"`
	// Description says what it is.
	Description string `api:"description,required,nullable,nonblank"`
	// PollingInterval is how often its own figures are taken.
	PollingInterval string `api:"pollingInterval,duration"`
	// LogLevel is the least that is logged.
	LogLevel string `api:"logLevel,required" enum:"CRITICAL|ERROR|WARNING|INFO|DEBUG" default:"INFO"`
	// SNMPv1 is how version 1 is answered.
	SNMPv1 *snmp.Settings `api:"snmpv1,required,nullable"`
	// SNMPv2c is how version 2c is answered.
	SNMPv2c *snmp.Settings `api:"snmpv2c,required,nullable"`
	// SNMPv3 is how version 3 is answered.
	SNMPv3 *snmp.Settings `api:"snmpv3,required,nullable"`
	// TrapServers are who gets traps.
	TrapServers []TrapServer `api:"trapServers,required" max:"10"`
}

// BeforeWrite refuses settings of another version than they are for.
func (x *SNMPService) BeforeWrite(c *resource.Change) error {
	for version, s := range map[string]*snmp.Settings{"v1": x.SNMPv1, "v2c": x.SNMPv2c, "v3": x.SNMPv3} {
		if s != nil && s.Version != version {
			return problem.Invalid("snmp"+version, "is for version %s, not %s", version, s.Version)
		}
	}
	return x.Service.BeforeWrite(c)
}

// TrapServer is who gets traps.
type TrapServer struct {
	// Enabled says whether it gets them.
	Enabled bool `api:"enabled"`
	// Address is where it is.
	Address string `api:"address,required,nonblank,identity"`
	// Port is the port it listens on.
	Port int64 `api:"port,required" min:"1" max:"65535"`
	// SNMP is how they are sent.
	SNMP *snmp.Settings `api:"snmp"`
}

// SSHService lets people in.
type SSHService struct {
	schema.Head `head:"readOnly" post:"no"`
	Service
	// Enabled says whether it runs.
	Enabled bool `api:"enabled,required" default:"true"`
	// TACACSPlusAuthentication is who is asked whether they may.
	TACACSPlusAuthentication *TACACSPlus `api:"tacacsPlusAuthentication,required,nullable"`
}

// TACACSPlus is a server that knows who may sign in.
type TACACSPlus struct {
	// Enabled says whether it is asked.
	Enabled bool `api:"enabled"`
	// Server is its name or address.
	Server string `api:"server"`
	// SharedSecret is what messages to it are signed with; it is never shown.
	SharedSecret schema.Secret `api:"sharedSecret"`
	// Users may sign in.
	Users []TACACSPlusUser `api:"users"`
	// Groups are what users are members of.
	Groups []TACACSPlusGroup `api:"groups"`
}

// TACACSPlusUser may sign in.
type TACACSPlusUser struct {
	// Name is the user's name.
	Name string `api:"name,required,nonblank"`
	// MemberOf is the user's group.
	MemberOf string `api:"memberOf,nonblank"`
	// Executables are what the user may run.
	Executables []string `api:"executables"`
}

// TACACSPlusGroup is what users are members of.
type TACACSPlusGroup struct {
	// Name is its name.
	Name string `api:"name,required,nonblank"`
	// Executables are what its members may run.
	Executables []string `api:"executables"`
}

// SyslogService sends what the machine logs.
type SyslogService struct {
	schema.Head `head:"readOnly" post:"no"`
	Service
	Overridden
	// ISO8601TimestampsEnabled says whether times are written as in ISO 8601.
	ISO8601TimestampsEnabled *bool `api:"iso8601TimestampsEnabled"`
	// Servers are who gets it.
	Servers []SyslogServer `api:"servers,required"`
}

// SyslogServer is who gets what a machine logs.
type SyslogServer struct {
	// ServerType is its kind.
	ServerType string `api:"serverType,required,variant" enum:"SYSLOG|ARC_SIGHT|QRADAR"`
	// Address is where it is.
	Address string `api:"address,required,nonblank,identity"`
	// Port is the port it listens on.
	Port *int64 `api:"port" min:"1" max:"65535" for:"SYSLOG"`
	// SyslogProtocol is how messages are written.
	SyslogProtocol string `api:"syslogProtocol" enum:"RFC_5424|RFC_3164" for:"SYSLOG"`
	// SeverityLevel is the least that is sent.
	SeverityLevel string `api:"severityLevel" enum:"EMERGENCY|ALERT|CRITICAL|ERROR|WARNING|NOTICE|INFORMATIONAL|DEBUG" for:"SYSLOG"`
	// ISO8601TimestampsEnabled says whether times are written as in ISO 8601.
	ISO8601TimestampsEnabled *bool `api:"iso8601TimestampsEnabled" for:"SYSLOG"`
	// ServiceTypes are the services whose messages are sent.
	ServiceTypes []string `api:"serviceTypes" enum:"DNS|DHCP|APIV1|RESTV2|OTHERS" for:"SYSLOG"`
	// Transport is how they travel.
	Transport *Transport `api:"transport" for:"SYSLOG"`
}

// Transport is how messages travel.
type Transport struct {
	// Protocol is the protocol.
	Protocol string `api:"protocol,required,variant" enum:"UDP|TCP|TLS"`
	// PeerVerify says what is asked of the receiver's certificate.
	PeerVerify string `api:"peerVerify" enum:"REQUIRED_TRUSTED|REQUIRED_UNTRUSTED|OPTIONAL_TRUSTED|OPTIONAL_UNTRUSTED" for:"TLS"`
	// CACertificate is the authority to trust.
	CACertificate string `api:"caCertificate" length:"65535" for:"TLS"`
	// Certificate is that of the sender.
	Certificate string `api:"certificate" length:"65535" for:"TLS"`
	// PrivateKey is the sender's key; it is never shown.
	PrivateKey schema.Secret `api:"privateKey" length:"65535" for:"TLS"`
}

// BeforeWrite reads the addresses, and asks for a server that is there.
func (x *DNSResolverService) BeforeWrite(c *resource.Change) error {
	for i, text := range x.Servers {
		if _, err := netip.ParseAddr(text); err != nil {
			return problem.Invalid("servers", "entry %d: %q is no address", i, text)
		}
	}
	return x.Service.BeforeWrite(c)
}

// makeServices makes the services of a new server; one that others run has none.
func makeServices(c *resource.Change, x *Server) error {
	if x.Profile == IsOtherServer {
		return nil
	}
	for _, t := range c.API.Collection("services").Types {
		o := t.New()
		if _, ofManager := o.(*FailoverAPIService); ofManager { // it is a service of managers
			continue
		}
		h := schema.HeadOf(o)
		h.Parent, h.Config = x.ID, x.Config
		if _, err := c.Following().Create(t, o); err != nil {
			return err
		}
	}
	return nil
}

// ServiceDNS is the service that there are deployments of.
const ServiceDNS = "DNS"
