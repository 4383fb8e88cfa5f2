package checkin

import "encoding/json"

// Names of applications that manager and service point treat specially.
const (
	// Authority is the name of the application that answers for the zones that a server has roles for.
	Authority = "dns-authoritative-service"
	// Resolver is the name of the application that answers DNS for clients. A service point shows more of it than of others.
	Resolver = "dns-resolver-service"
)

// Program is an application that service points can run, as far as a manager checks what is deployed.
type Program struct {
	// Version is the version of the application in this binary.
	Version string
	// Check refuses a configuration that the application would not take: with a problem that names the field.
	Check func(configuration json.RawMessage) error
	// Claims, which may be nil, returns the addresses and ports of a configuration that no other application of a service point may have.
	Claims func(configuration json.RawMessage) []string
	// Hide, which may be nil, removes secrets from a configuration that is shown. Fill, which is there with it, copies secrets from the
	// configuration before into one that was given without.
	Hide func(configuration json.RawMessage) json.RawMessage
	Fill func(configuration, before json.RawMessage) json.RawMessage
	// Contented reports that the application serves content beyond its configuration, and did so in its first version: service points that
	// do not report this themselves are told by their manager.
	Contented bool
	// Provides, which may be nil, returns what the application can do for who publishes to it, where an engine answers in its place; empty
	// where it answers itself.
	Provides func(engine string) []Capability
}

// Capability is something that an application can do, on which it depends what a manager publishes to it.
type Capability string

// The capabilities of applications.
const (
	// AnswersZones answers for zones with authority.
	AnswersZones Capability = "zones"
	// TakesUpdates takes dynamic updates (RFC 2136) of the zones that it answers for.
	TakesUpdates Capability = "updates"
	// ResolvesNames resolves names for clients, and acts on response policies and on the roles that ask other servers.
	ResolvesNames Capability = "recursion"
	// ForwardsAlike asks the same servers for the clients of all views.
	ForwardsAlike Capability = "forwards alike"
)

// Capabilities are a set.
type Capabilities map[Capability]bool

// Programs are applications by name.
type Programs map[string]Program
