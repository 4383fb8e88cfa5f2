package serverconfig

import (
	"net/netip"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// AnycastService tells routers of addresses that the server answers at.
type AnycastService struct {
	schema.Head `head:"readOnly" post:"no"`
	Service
	Overridden
	// Enabled says whether it runs.
	Enabled bool `api:"enabled,required"`
	// Addresses are the addresses.
	Addresses []string `api:"addresses,required"`
	// Routing is how routers are told.
	Routing *Routing `api:"routing,required,nullable"`
}

// Routing is how routers are told of addresses.
type Routing struct {
	// Protocol is the routing protocol.
	Protocol string `api:"protocol,required,variant" enum:"OSPF|RIP|BGP"`
	// AuthenticationEnabled says whether messages are signed.
	AuthenticationEnabled bool `api:"authenticationEnabled" for:"OSPF|RIP"`
	// AuthenticationPassword is what they are signed with; it is never shown.
	AuthenticationPassword schema.Secret `api:"authenticationPassword" for:"OSPF|RIP"`
	// AuthenticationKey is the number of the MD5 key.
	AuthenticationKey *int64 `api:"authenticationKey" min:"1" max:"255" for:"OSPF"`
	// HelloInterval is how often neighbors are greeted.
	HelloInterval string `api:"helloInterval,duration" for:"OSPF"`
	// DeadInterval is after how long a silent neighbor is given up.
	DeadInterval string `api:"deadInterval,duration" for:"OSPF"`
	// AreaID is the area, written like an address.
	AreaID string `api:"areaId" for:"OSPF"`
	// StubArea says whether the area is a stub.
	StubArea bool `api:"stubArea" for:"OSPF"`
	// AutonomousSystemNumber is that of the server.
	AutonomousSystemNumber *int64 `api:"autonomousSystemNumber" min:"1" max:"4294967295" for:"BGP"`
	// RouterID is what the server calls itself, written like an IPv4 address.
	RouterID string `api:"routerId" for:"BGP"`
	// CommandLineInterfaceEnabled says whether the router has a command line.
	CommandLineInterfaceEnabled bool `api:"commandLineInterfaceEnabled" for:"BGP"`
	// CommandLineInterfacePassword is the password for it; it is never shown.
	CommandLineInterfacePassword schema.Secret `api:"commandLineInterfacePassword" for:"BGP"`
	// KeepAliveInterval is how often neighbors are told that the server is there.
	KeepAliveInterval string `api:"keepAliveInterval,duration" for:"BGP"`
	// HoldTimeInterval is after how long a silent neighbor is given up.
	HoldTimeInterval string `api:"holdTimeInterval,duration" for:"BGP"`
	// Neighbors are the routers that are told.
	Neighbors []Neighbor `api:"neighbors" for:"BGP"`
	// PrefixFilters say what is taken from, and told to, them.
	PrefixFilters []PrefixFilter `api:"prefixFilters" for:"BGP"`
}

// Neighbor is a router.
type Neighbor struct {
	// AutonomousSystemNumber is its own.
	AutonomousSystemNumber int64 `api:"autonomousSystemNumber,required" min:"1" max:"4294967295"`
	// Address is where it is.
	Address netip.Addr `api:"address,required,identity"`
	// AuthenticationPassword signs the messages to it; it is never shown.
	AuthenticationPassword schema.Secret `api:"authenticationPassword"`
	// HopLimit is how many hops away it may be.
	HopLimit *int64 `api:"hopLimit" min:"1" max:"255"`
	// AnnounceNextHopSelfEnabled says whether the server names itself as the next hop.
	AnnounceNextHopSelfEnabled bool `api:"announceNextHopSelfEnabled"`
}

// PrefixFilter lets a prefix pass, or does not.
type PrefixFilter struct {
	// FilterType is which way it is for.
	FilterType string `api:"filterType,required" enum:"INPUTv4|OUTPUTv4|INPUTv6|OUTPUTv6"`
	// Action is what is done.
	Action string `api:"action,required" enum:"PERMIT|DENY"`
	// Prefix is the prefix.
	Prefix string `api:"prefix,required"`
}

// Check reads the prefix.
func (x *PrefixFilter) Check() error {
	p, err := netip.ParsePrefix(x.Prefix)
	if err != nil || p.Addr().Is4() != strings.HasSuffix(x.FilterType, "v4") {
		return schema.At("prefix", "%q is no prefix of the family of %s", x.Prefix, x.FilterType)
	}
	return nil
}

// Check asks for what the protocol needs.
func (x *Routing) Check() error {
	if x.Protocol == "BGP" && x.AutonomousSystemNumber == nil {
		return schema.At("autonomousSystemNumber", "is needed with BGP")
	}
	for name, text := range map[string]string{"areaId": x.AreaID, "routerId": x.RouterID} {
		if a, err := netip.ParseAddr(text); text != "" && (err != nil || !a.Is4()) {
			return schema.At(name, "%q is not written like an IPv4 address", text)
		}
	}
	return nil
}

// BeforeWrite reads the addresses, and asks for a server that is there.
func (x *AnycastService) BeforeWrite(c *resource.Change) error {
	for i, text := range x.Addresses {
		if _, err := netip.ParseAddr(text); err != nil {
			return problem.Invalid("addresses", "entry %d: %q is no address", i, text)
		}
	}
	return x.Service.BeforeWrite(c)
}
