package serverconfig

import (
	"net/netip"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/snmp"
)

// registerServices declares the services of servers. The services of a server are created with it.
func registerServices(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "services", Parents: []string{"servers"}}, &AnycastService{}, &DHCPActivityService{},
		&DHCPStatisticsService{}, &DNSActivityService{}, &DNSResolverService{}, &DNSStatisticsService{}, &FailoverAPIService{},
		&FirewallService{}, &GatewayService{},
		&InterfacesService{}, &LicenseService{}, &NTPService{}, &SNMPService{}, &SSHService{}, &SyslogService{})
	r.Seed(createActivityServices)
}

// Service are the fields that every service of a server has.
type Service struct {
	// ServerVersion is the version of the server that reports the service.
	ServerVersion string `api:"serverVersion,readOnly"`
}

// BeforeWrite rejects requests to change a service of a server that is only planned: it is not connected and has no service point.
func (x *Service) BeforeWrite(c *resource.Change) error {
	if !c.IsRequested() {
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
	if f := FieldsOf(o); !f.Connected && f.ServicePoint == "" {
		return problem.BadRequest("ServerNotConnected",
			"server %s (%d) is only planned: set connected or servicePoint before you configure its services", row.Name, row.ID)
	}
	return nil
}

// Overridden are the fields of services whose settings may have been changed on the machine itself.
type Overridden struct {
	// ManualOverrideEnabled reports whether the settings were changed on the machine; a PUT overwrites such changes.
	ManualOverrideEnabled bool `api:"manualOverrideEnabled,readOnly"`
}

// DNSResolverService sets the name servers that the machine itself queries.
type DNSResolverService struct {
	schema.Head `head:"readOnly" post:"no"`
	Service
	// Servers are the addresses of the name servers.
	Servers []string `api:"servers,required"`
}

// FirewallService sets the traffic that the machine accepts.
type FirewallService struct {
	schema.Head `head:"readOnly" post:"no"`
	Service
	// Enabled controls whether the service runs.
	Enabled bool `api:"enabled,required" default:"true"`
	// PingAllowed controls whether the machine answers pings.
	PingAllowed bool `api:"pingAllowed,required" default:"true"`
}

// FailoverAPIService lets another manager take over; servers do not have it.
type FailoverAPIService struct {
	schema.Head `head:"readOnly" post:"no"`
	Service
	// Enabled controls whether the service runs.
	Enabled bool `api:"enabled,required"`
	// Certificate is the certificate of the service.
	Certificate string `api:"certificate" length:"65535"`
	// PrivateKey is the private key of the certificate; it is never shown.
	PrivateKey schema.Secret `api:"privateKey"`
	// TrustStore are the certificates that the service trusts.
	TrustStore []string `api:"trustStore"`
	// TrustStorePassword is the password of the trust store; it is never shown.
	TrustStorePassword schema.Secret `api:"trustStorePassword"`
}

// GatewayService runs a container on the machine.
type GatewayService struct {
	schema.Head `head:"readOnly" post:"no"`
	Service
	// Enabled controls whether the service runs.
	Enabled bool `api:"enabled,required"`
	// State is the state of the container.
	State string `api:"state,readOnly" enum:"RUNNING|STOPPED|DISABLED|UNKNOWN" default:"DISABLED"`
	// Container is the container to run.
	Container *Container `api:"container"`
	// RepositoryUsername is the user name for the repository of the image.
	RepositoryUsername string `api:"repositoryUsername,nonblank"`
	// RepositoryPassword is the password of that user; it is never shown.
	RepositoryPassword schema.Secret `api:"repositoryPassword"`
	// DeleteImageOnDisable controls whether the image is deleted when the service is disabled.
	DeleteImageOnDisable *bool `api:"deleteImageOnDisable"`
	// DeleteMountPointsOnDisable controls whether the mounted files are deleted when the service is disabled.
	DeleteMountPointsOnDisable *bool `api:"deleteMountPointsOnDisable"`
}

// Container is the container of a gateway service.
type Container struct {
	// Name is the name of the container on the machine.
	Name string `api:"name,readOnly"`
	// Image is the image of the container.
	Image string `api:"image,required,nonblank"`
	// EnvironmentVariables are the environment variables of the container.
	EnvironmentVariables []Variable `api:"environmentVariables"`
	// PortMappings are the published ports.
	PortMappings []PortMapping `api:"portMappings"`
	// MountPoints are the mounted files.
	MountPoints []MountPoint `api:"mountPoints"`
}

// Variable is an environment variable.
type Variable struct {
	// Name is the name of the variable.
	Name string `api:"name,required,nonblank"`
	// Value is the value of the variable.
	Value string `api:"value" length:"4000"`
}

// PortMapping forwards a port of the machine to a port of the container.
type PortMapping struct {
	// HostPort is the port of the machine.
	HostPort int64 `api:"hostPort,required" min:"1" max:"65535"`
	// ContainerPort is the port of the container.
	ContainerPort int64 `api:"containerPort,required" min:"1" max:"65535"`
}

// MountPoint mounts files of the machine in the container.
type MountPoint struct {
	// Source is the path on the machine.
	Source string `api:"source,required,nonblank" length:"1000"`
	// ContainerPath is the path in the container.
	ContainerPath string `api:"containerPath,required,nonblank" length:"1000"`
}

// InterfacesService sets the addresses and routes of the machine.
type InterfacesService struct {
	schema.Head `head:"readOnly" post:"no"`
	Service
	// DedicatedManagementEnabled controls whether the machine is managed over an interface of its own.
	DedicatedManagementEnabled bool `api:"dedicatedManagementEnabled,required"`
	// Interfaces are the network interfaces of the machine.
	Interfaces []HostInterface `api:"interfaces,required"`
	// Routes are the static routes of the machine.
	Routes []Route `api:"routes,required"`
}

// HostInterface is a network interface of a machine.
type HostInterface struct {
	// InterfaceType is the kind of the interface.
	InterfaceType string `api:"interfaceType,required" enum:"LOOPBACK|PHYSICAL|VLAN|BOND"`
	// Name is the name of the interface on the machine.
	Name string `api:"name,readOnly"`
	// Enabled controls whether the interface is up.
	Enabled bool `api:"enabled"`
	// Description is a free text about the interface.
	Description string `api:"description"`
	// Addresses are the addresses of the interface.
	Addresses []HostAddress `api:"addresses,required"`
	// VLANID is the VLAN of the interface.
	VLANID *int64 `api:"vlanId" min:"1" max:"4096"`
	// RedundancyScenario is the mode of a bond.
	RedundancyScenario string `api:"redundancyScenario" enum:"ACTIVE_BACKUP|ACTIVE_ACTIVE"`
}

// Check returns an error for a VLAN interface without a VLAN.
func (x *HostInterface) Check() error {
	if x.InterfaceType == "VLAN" && x.VLANID == nil {
		return schema.MemberError("vlanId", "is required with VLAN")
	}
	return nil
}

// HostAddress is an address of an interface.
type HostAddress struct {
	// Address is the address.
	Address netip.Addr `api:"address,required"`
	// PrefixLength is the prefix length of the address.
	PrefixLength int64 `api:"prefixLength,required" min:"0" max:"128"`
}

// Check returns an error for a prefix that is longer than the address.
func (x *HostAddress) Check() error {
	if int(x.PrefixLength) > x.Address.BitLen() {
		return schema.MemberError("prefixLength", "must be at most %d for %s", x.Address.BitLen(), x.Address)
	}
	return nil
}

// Route is a static route of a machine.
type Route struct {
	// Gateway is the next hop.
	Gateway netip.Addr `api:"gateway,required"`
	// Network is the destination; null means the default route.
	Network netip.Addr `api:"network"`
	// PrefixLength is the prefix length of the destination.
	PrefixLength int64 `api:"prefixLength,required" min:"0" max:"128"`
}

// LicenseService holds the licence of the machine.
type LicenseService struct {
	schema.Head `head:"readOnly" post:"no"`
	Service
	// ClientID is the holder of the licence.
	ClientID string `api:"clientId,required,nullable,nonblank"`
	// Key is the licence key.
	Key string `api:"key,required,nullable,nonblank"`
}

// NTPService sets the time servers of the machine.
type NTPService struct {
	schema.Head `head:"readOnly" post:"no"`
	Service
	Overridden
	// Enabled controls whether the service runs.
	Enabled bool `api:"enabled,required"`
	// Servers are the time servers, in query order.
	Servers []NTPServer `api:"servers,required"`
}

// NTPServer is a time server.
type NTPServer struct {
	// Server is its name or address.
	Server string `api:"server,required,nonblank"`
	// Stratum is the stratum of a local clock of the machine.
	Stratum *int64 `api:"stratum" min:"1" max:"15"`
}

// Check returns an error for a stratum of a server that is not a local clock (127.127.0.0/16).
func (x *NTPServer) Check() error {
	a, err := netip.ParseAddr(x.Server)
	if x.Stratum != nil && (err != nil || !netip.MustParsePrefix("127.127.0.0/16").Contains(a)) {
		return schema.MemberError("stratum", "is only supported for a local clock (127.127.0.0/16)")
	}
	return nil
}

// SNMPService answers SNMP queries, and sends traps.
type SNMPService struct {
	schema.Head `head:"readOnly" post:"no"`
	Service
	Overridden
	// Enabled controls whether the service runs.
	Enabled bool `api:"enabled,required"`
	// ContactName is the name of the machine's administrator.
	ContactName string `api:"contactName,required,nullable,nonblank"`
	// ContactEmail is the mail address of the administrator.
	ContactEmail string `api:"contactEmail,required,nullable,nonblank"`
	// Location is the location of the machine.
	Location string `api:"location,nonblank"`
	// Description is a free text about the machine.
	Description string `api:"description,required,nullable,nonblank"`
	// PollingInterval is the time between two collections of the machine's own statistics.
	PollingInterval string `api:"pollingInterval,duration"`
	// LogLevel is the minimum level of the log.
	LogLevel string `api:"logLevel,required" enum:"CRITICAL|ERROR|WARNING|INFO|DEBUG" default:"INFO"`
	// SNMPv1 are the settings for queries of version 1.
	SNMPv1 *snmp.Settings `api:"snmpv1,required,nullable"`
	// SNMPv2c are the settings for queries of version 2c.
	SNMPv2c *snmp.Settings `api:"snmpv2c,required,nullable"`
	// SNMPv3 are the settings for queries of version 3.
	SNMPv3 *snmp.Settings `api:"snmpv3,required,nullable"`
	// TrapServers are the receivers of traps.
	TrapServers []TrapServer `api:"trapServers,required" max:"10"`
}

// BeforeWrite rejects settings whose version differs from that of their field.
func (x *SNMPService) BeforeWrite(c *resource.Change) error {
	for version, s := range map[string]*snmp.Settings{"v1": x.SNMPv1, "v2c": x.SNMPv2c, "v3": x.SNMPv3} {
		if s != nil && s.Version != version {
			return problem.Invalid("snmp"+version, "requires version %s, not %s", version, s.Version)
		}
	}
	return x.Service.BeforeWrite(c)
}

// TrapServer is a receiver of traps.
type TrapServer struct {
	// Enabled controls whether traps are sent to the receiver.
	Enabled bool `api:"enabled"`
	// Address is the address of the receiver.
	Address string `api:"address,required,nonblank,identity"`
	// Port is the port of the receiver.
	Port int64 `api:"port,required" min:"1" max:"65535"`
	// SNMP are the SNMP settings for the traps.
	SNMP *snmp.Settings `api:"snmp"`
}

// SSHService allows sign-in over SSH.
type SSHService struct {
	schema.Head `head:"readOnly" post:"no"`
	Service
	// Enabled controls whether the service runs.
	Enabled bool `api:"enabled,required" default:"true"`
	// TACACSPlusAuthentication is the TACACS+ server that authenticates users.
	TACACSPlusAuthentication *TACACSPlus `api:"tacacsPlusAuthentication,required,nullable"`
}

// TACACSPlus is a TACACS+ server, and the users and groups that may sign in.
type TACACSPlus struct {
	// Enabled controls whether the server is used.
	Enabled bool `api:"enabled"`
	// Server is its name or address.
	Server string `api:"server"`
	// SharedSecret is the shared secret of the server; it is never shown.
	SharedSecret schema.Secret `api:"sharedSecret"`
	// Users are the users that may sign in.
	Users []TACACSPlusUser `api:"users"`
	// Groups are the groups of the users.
	Groups []TACACSPlusGroup `api:"groups"`
}

// TACACSPlusUser is a user that may sign in.
type TACACSPlusUser struct {
	// Name is the user's name.
	Name string `api:"name,required,nonblank"`
	// MemberOf is the user's group.
	MemberOf string `api:"memberOf,nonblank"`
	// Executables are the programs that the user may run.
	Executables []string `api:"executables"`
}

// TACACSPlusGroup is a group of users.
type TACACSPlusGroup struct {
	// Name is the name of the group.
	Name string `api:"name,required,nonblank"`
	// Executables are the programs that the members may run.
	Executables []string `api:"executables"`
}

// SyslogService sends the log of the machine to syslog servers.
type SyslogService struct {
	schema.Head `head:"readOnly" post:"no"`
	Service
	Overridden
	// ISO8601TimestampsEnabled controls whether timestamps are in the format of ISO 8601.
	ISO8601TimestampsEnabled *bool `api:"iso8601TimestampsEnabled"`
	// Servers are the receivers of the log.
	Servers []SyslogServer `api:"servers,required"`
}

// SyslogServer is a receiver of the log of a machine.
type SyslogServer struct {
	// ServerType is the kind of the receiver.
	ServerType string `api:"serverType,required,variant" enum:"SYSLOG|ARC_SIGHT|QRADAR"`
	// Address is the address of the receiver.
	Address string `api:"address,required,nonblank,identity"`
	// Port is the port of the receiver.
	Port *int64 `api:"port" min:"1" max:"65535" for:"SYSLOG"`
	// SyslogProtocol is the message format.
	SyslogProtocol string `api:"syslogProtocol" enum:"RFC_5424|RFC_3164" for:"SYSLOG"`
	// SeverityLevel is the minimum severity to send.
	SeverityLevel string `api:"severityLevel" enum:"EMERGENCY|ALERT|CRITICAL|ERROR|WARNING|NOTICE|INFORMATIONAL|DEBUG" for:"SYSLOG"`
	// ISO8601TimestampsEnabled controls whether timestamps are in the format of ISO 8601.
	ISO8601TimestampsEnabled *bool `api:"iso8601TimestampsEnabled" for:"SYSLOG"`
	// ServiceTypes are the services whose messages are sent.
	ServiceTypes []string `api:"serviceTypes" enum:"DNS|DHCP|APIV1|RESTV2|OTHERS" for:"SYSLOG"`
	// Transport is the transport of the messages.
	Transport *Transport `api:"transport" for:"SYSLOG"`
}

// Transport is the transport protocol of messages and its TLS settings.
type Transport struct {
	// Protocol is the protocol.
	Protocol string `api:"protocol,required,variant" enum:"UDP|TCP|TLS"`
	// PeerVerify is the verification of the receiver's certificate.
	PeerVerify string `api:"peerVerify" enum:"REQUIRED_TRUSTED|REQUIRED_UNTRUSTED|OPTIONAL_TRUSTED|OPTIONAL_UNTRUSTED" for:"TLS"`
	// CACertificate is the certificate authority to trust.
	CACertificate string `api:"caCertificate" length:"65535" for:"TLS"`
	// Certificate is the certificate of the sender.
	Certificate string `api:"certificate" length:"65535" for:"TLS"`
	// PrivateKey is the private key of the sender; it is never shown.
	PrivateKey schema.Secret `api:"privateKey" length:"65535" for:"TLS"`
}

// BeforeWrite rejects malformed addresses, and a server that is not connected.
func (x *DNSResolverService) BeforeWrite(c *resource.Change) error {
	for i, text := range x.Servers {
		if _, err := netip.ParseAddr(text); err != nil {
			return problem.Invalid("servers", "entry %d: %q is not an IP address", i, text)
		}
	}
	return x.Service.BeforeWrite(c)
}

// createServices creates the services of a new server. A foreign server has none, and a service point has those that act: the others are
// settings of an appliance (D459).
func createServices(c *resource.Change, x *Server) error {
	if x.Profile == IsOtherServer {
		return nil
	}
	for _, t := range c.API.Collection("services").Types {
		switch t.New().(type) {
		case *DHCPActivityService:
		case *FailoverAPIService: // a service of managers only
			continue
		default:
			if x.Profile == isServicePoint {
				continue
			}
		}
		if err := createService(c, t, x); err != nil {
			return err
		}
	}
	return nil
}

// createService creates a service of a server.
func createService(c *resource.Change, t *schema.Type, x *Server) error {
	o := t.New()
	h := schema.HeadOf(o)
	h.Parent, h.Config = x.ID, x.Config
	_, err := c.Following().Create(t, o)
	return err
}

// createActivityServices creates the DHCPActivityService of each server that lacks it: servers with the profile PORTOLAN_SERVICE_POINT had
// none in earlier releases.
func createActivityServices(c *resource.Change) error {
	t := c.API.TypeNamed("DHCPActivityService")
	has := store.Compare{Field: store.Field{Kind: store.ColumnText, Path: []string{"type"}}, Op: "eq", Value: t.Name}
	return resource.EachWithout(c, "servers", "services", has, func(id int64) error {
		row, err := c.Tx.Get(id)
		if err != nil {
			return err
		}
		o, err := c.API.Object(row)
		if err != nil {
			return err
		}
		x, is := o.(*Server)
		if !is || x.Profile == IsOtherServer {
			return nil
		}
		return createService(c, t, x)
	})
}

// The services that can be deployed.
const (
	ServiceDNS  = "DNS"
	ServiceTFTP = "TFTP"
)
