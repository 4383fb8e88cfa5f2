package checkin

import (
	"encoding/json"
	"net/netip"
)

// Names of applications that managers and service points treat specially.
const (
	// Authority is the name of the application that serves the zones of a server's roles with authority.
	Authority = "dns-authoritative-service"
	// Resolver is the name of the application that resolves names for clients. A service point shows additional data for it.
	Resolver = "dns-resolver-service"
	// FileServer is the name of the application that serves the files of TFTP groups.
	FileServer = "tftp-service"
	// DHCP is the name of the application that leases addresses to clients.
	DHCP = "dhcp-service"
)

// Program describes an application that service points can run, for the checks of a manager.
type Program struct {
	// Version is the version of the application in this binary.
	Version string
	// Check validates a configuration. The returned problem names the field.
	Check func(configuration json.RawMessage) error
	// Claims returns the addresses and ports of a configuration, which no other application of the service point may use. It may be nil.
	Claims func(configuration json.RawMessage) []string
	// Hide removes the secrets from a configuration that is shown. Fill copies the secrets of the previous configuration into a new one
	// without secrets. Both may be nil, but only together.
	Hide func(configuration json.RawMessage) json.RawMessage
	Fill func(configuration, before json.RawMessage) json.RawMessage
	// ServesContent is true if the application has served content besides its configuration since its first version. The manager tells this to
	// service points that do not detect it themselves.
	ServesContent bool
	// Provides returns the capabilities of the application with the given engine; an empty engine means that the application answers
	// itself. It may be nil.
	Provides func(engine string) []Capability
	// Sample is an empty configuration, a struct. The schema of configurations is derived from its type.
	Sample any
	// Default returns the configuration of an application that is deployed without one. It may be nil.
	Default func(h Host) any
}

// Host describes the machine of a service point, for default configurations.
type Host struct {
	// Free are addresses of the machine at which port 53 is not in use by another application, the primary address first. NameServers are
	// the servers that the machine itself asks.
	Free, NameServers []netip.Addr
}

// Capability is a capability of an application that determines the content a manager publishes to it.
type Capability string

// The capabilities of applications.
const (
	// AnswersZones means that the application serves zones with authority.
	AnswersZones Capability = "zones"
	// AcceptsUpdates means that the application accepts dynamic updates (RFC 2136) of the zones that it serves.
	AcceptsUpdates Capability = "updates"
	// ResolvesNames means that the application resolves names for clients, and applies response policies and forwarding roles.
	ResolvesNames Capability = "recursion"
	// SharesForwarders means that the application forwards the queries of all views to the same servers.
	SharesForwarders Capability = "forwards alike"
	// ServesFiles means that the application serves the files of TFTP groups.
	ServesFiles Capability = "files"
)

// Capabilities is a set of capabilities.
type Capabilities map[Capability]bool

// Programs are applications by name.
type Programs map[string]Program
