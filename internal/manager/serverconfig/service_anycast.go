package serverconfig

import (
	"net/netip"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// AnycastService announces addresses of the server to routers.
type AnycastService struct {
	schema.Head `head:"readOnly" post:"no"`
	Service
	Overridden
	// Enabled controls whether the service runs.
	Enabled bool `api:"enabled,required"`
	// Addresses are the addresses to announce.
	Addresses []string `api:"addresses,required"`
	// Routing is the routing protocol and its settings.
	Routing *Routing `api:"routing,required,nullable"`
}

// Routing sets how addresses are announced to routers.
type Routing struct {
	// Protocol is the routing protocol.
	Protocol string `api:"protocol,required,variant" enum:"OSPF|RIP|BGP"`
	// AuthenticationEnabled controls whether messages are authenticated.
	AuthenticationEnabled bool `api:"authenticationEnabled" for:"OSPF|RIP"`
	// AuthenticationPassword is the password for authentication; it is never shown.
	AuthenticationPassword schema.Secret `api:"authenticationPassword" for:"OSPF|RIP"`
	// AuthenticationKey is the number of the MD5 key.
	AuthenticationKey *int64 `api:"authenticationKey" min:"1" max:"255" for:"OSPF"`
	// HelloInterval is the time between two hello messages.
	HelloInterval string `api:"helloInterval,duration" for:"OSPF"`
	// DeadInterval is the time without a hello message after which a neighbor is down.
	DeadInterval string `api:"deadInterval,duration" for:"OSPF"`
	// AreaID is the OSPF area, written like an IPv4 address.
	AreaID string `api:"areaId" for:"OSPF"`
	// StubArea reports whether the area is a stub area.
	StubArea bool `api:"stubArea" for:"OSPF"`
	// AutonomousSystemNumber is the autonomous system of the server.
	AutonomousSystemNumber *int64 `api:"autonomousSystemNumber" min:"1" max:"4294967295" for:"BGP"`
	// RouterID is the router ID of the server, written like an IPv4 address.
	RouterID string `api:"routerId" for:"BGP"`
	// CommandLineInterfaceEnabled controls whether the routing software has a command line.
	CommandLineInterfaceEnabled bool `api:"commandLineInterfaceEnabled" for:"BGP"`
	// CommandLineInterfacePassword is the password for the command line; it is never shown.
	CommandLineInterfacePassword schema.Secret `api:"commandLineInterfacePassword" for:"BGP"`
	// KeepAliveInterval is the time between two keepalive messages.
	KeepAliveInterval string `api:"keepAliveInterval,duration" for:"BGP"`
	// HoldTimeInterval is the time without a message after which a neighbor is down.
	HoldTimeInterval string `api:"holdTimeInterval,duration" for:"BGP"`
	// Neighbors are the BGP neighbors.
	Neighbors []Neighbor `api:"neighbors" for:"BGP"`
	// PrefixFilters select the prefixes that are accepted from the neighbors and announced to them.
	PrefixFilters []PrefixFilter `api:"prefixFilters" for:"BGP"`
}

// Neighbor is a BGP neighbor.
type Neighbor struct {
	// AutonomousSystemNumber is the autonomous system of the neighbor.
	AutonomousSystemNumber int64 `api:"autonomousSystemNumber,required" min:"1" max:"4294967295"`
	// Address is the address of the neighbor.
	Address netip.Addr `api:"address,required,identity"`
	// AuthenticationPassword authenticates the messages to the neighbor; it is never shown.
	AuthenticationPassword schema.Secret `api:"authenticationPassword"`
	// HopLimit is the maximum number of hops to the neighbor.
	HopLimit *int64 `api:"hopLimit" min:"1" max:"255"`
	// AnnounceNextHopSelfEnabled controls whether the server announces itself as the next hop.
	AnnounceNextHopSelfEnabled bool `api:"announceNextHopSelfEnabled"`
}

// PrefixFilter permits or denies a prefix.
type PrefixFilter struct {
	// FilterType is the direction and the address family that the filter applies to.
	FilterType string `api:"filterType,required" enum:"INPUTv4|OUTPUTv4|INPUTv6|OUTPUTv6"`
	// Action is the action for routes that match.
	Action string `api:"action,required" enum:"PERMIT|DENY"`
	// Prefix is the prefix to match.
	Prefix string `api:"prefix,required"`
}

// Check returns an error for a prefix that is malformed or of the wrong address family.
func (x *PrefixFilter) Check() error {
	p, err := netip.ParsePrefix(x.Prefix)
	if err != nil || p.Addr().Is4() != strings.HasSuffix(x.FilterType, "v4") {
		return schema.MemberError("prefix", "%q is not a prefix of the family of %s", x.Prefix, x.FilterType)
	}
	return nil
}

// Check returns an error for a missing or malformed field that the protocol requires.
func (x *Routing) Check() error {
	if x.Protocol == "BGP" && x.AutonomousSystemNumber == nil {
		return schema.MemberError("autonomousSystemNumber", "is required with BGP")
	}
	for name, text := range map[string]string{"areaId": x.AreaID, "routerId": x.RouterID} {
		if a, err := netip.ParseAddr(text); text != "" && (err != nil || !a.Is4()) {
			return schema.MemberError(name, "%q must have the form of an IPv4 address", text)
		}
	}
	return nil
}

// BeforeWrite rejects malformed addresses, and a server that is not connected.
func (x *AnycastService) BeforeWrite(c *resource.Change) error {
	for i, text := range x.Addresses {
		if _, err := netip.ParseAddr(text); err != nil {
			return problem.Invalid("addresses", "entry %d: %q is not an IP address", i, text)
		}
	}
	return x.Service.BeforeWrite(c)
}
