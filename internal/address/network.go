package address

import (
	"errors"
	"net/netip"
	"strings"

	"portolan/internal/problem"
	"portolan/internal/resource"
	"portolan/internal/space"
	"portolan/internal/store"
)

// IPv4Network is an IPv4 subnet: a leaf of the address tree that holds addresses and ranges.
type IPv4Network struct {
	resource.Head
	// Configuration is the configuration the network lies in.
	Configuration resource.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// Range is the network's space: CIDR, or when it is made a size alone, which takes the first
	// free space of the block.
	Range resource.Range `api:"range,required"`
	// Location is where the network is used.
	Location resource.Ref `api:"location" ref:"Location"`
	// InheritedFields are the fields whose values come from above.
	InheritedFields []string `api:"_inheritedFields,readOnly"`
	// Gateway is the address of the router; its address has the state GATEWAY. A new network's is
	// its first host, unless the request names another one or none (x-bcn-no-gateway).
	Gateway netip.Addr `api:"gateway"`
	// Template is the template of the network.
	Template resource.Ref `api:"template" ref:"IPv4Template"`
	// RouterPortInfo is the router and port where the network was seen.
	RouterPortInfo string `api:"routerPortInfo,readOnly"`
	// DefaultView is the view that names of the network's hosts are put into.
	DefaultView resource.Ref `api:"defaultView" ref:"View"`
	// SharedNetworkTag is the tag of the shared network this is part of.
	SharedNetworkTag resource.Ref `api:"sharedNetworkTag" ref:"Tag"`
	// DuplicateHostnamesAllowed says whether two addresses may have one host name.
	DuplicateHostnamesAllowed *bool `api:"duplicateHostnamesAllowed"`
	// PingBeforeAssignEnabled says whether an address is pinged before it is assigned.
	PingBeforeAssignEnabled *bool `api:"pingBeforeAssignEnabled"`
	// DefaultZonesInherited says whether the default zones come from above.
	DefaultZonesInherited bool `api:"defaultZonesInherited,put" default:"true"`
	// DefaultZones are the zones that hosts are put into.
	DefaultZones resource.RefList `api:"defaultZones" ref:"Zone"`
	// RestrictedZonesInherited says whether the restricted zones come from above.
	RestrictedZonesInherited bool `api:"restrictedZonesInherited,put" default:"true"`
	// RestrictedZones are the only zones and views that hosts may be put into.
	RestrictedZones resource.RefList `api:"restrictedZones" ref:"Zone|View"`
	// LowWaterMark is the usage, in percent, below which an event is raised.
	LowWaterMark *int64 `api:"lowWaterMark" min:"0" max:"100"`
	// HighWaterMark is the usage, in percent, above which an event is raised.
	HighWaterMark *int64 `api:"highWaterMark" min:"0" max:"100"`
	// ReverseZoneSigned says whether the reverse zone is signed.
	ReverseZoneSigned bool `api:"reverseZoneSigned,put"`
	// ReverseZoneSigningPolicy is the policy the reverse zone is signed by.
	ReverseZoneSigningPolicy resource.Ref `api:"reverseZoneSigningPolicy" ref:"DNSSECSigningPolicy"`
	// Usage counts the network's addresses by state.
	Usage map[string]string `api:"usage,readOnly"`
}

// IPv6Network is an IPv6 subnet: a leaf of the address tree that holds addresses and ranges.
type IPv6Network struct {
	resource.Head
	// Configuration is the configuration the network lies in.
	Configuration resource.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// Range is the network's space: CIDR, or when it is made a size alone.
	Range resource.Range `api:"range,required"`
	// Location is where the network is used.
	Location resource.Ref `api:"location" ref:"Location"`
	// InheritedFields are the fields whose values come from above.
	InheritedFields []string `api:"_inheritedFields,readOnly"`
	// DefaultZones are the zones that hosts are put into.
	DefaultZones resource.RefList `api:"defaultZones" ref:"Zone"`
	// RestrictedZones are the only zones and views that hosts may be put into.
	RestrictedZones resource.RefList `api:"restrictedZones" ref:"Zone|View"`
}

// Check places the network and settles what its gateway will be.
func (x *IPv4Network) Check(c *resource.Change) error {
	if err := place(c, &x.Head, &x.Range, true, true); err != nil {
		return err
	}
	if none := strings.EqualFold(c.Header.Get("x-bcn-no-gateway"), "true"); none {
		if c.Given["gateway"] && x.Gateway.IsValid() {
			return problem.Invalid("gateway", "is given together with x-bcn-no-gateway")
		}
		x.Gateway = netip.Addr{}
	} else if c.Creates() && !c.Given["gateway"] {
		x.Gateway = space.Hosts(x.Range.Range).Low
	}
	if !x.Gateway.IsValid() {
		return nil
	}
	if !space.Hosts(x.Range.Range).Has(x.Gateway) {
		return problem.Invalid("gateway", "%s is no host address of %s", x.Gateway, x.Range)
	}
	return nil
}

// Check places the network.
func (x *IPv6Network) Check(c *resource.Change) error {
	return place(c, &x.Head, &x.Range, false, true)
}

// Settle makes the network's host addresses free, and its gateway an address.
func (x *IPv4Network) Settle(c *resource.Change) error {
	var before netip.Addr
	if c.Creates() {
		hosts := space.Hosts(x.Range.Range)
		if err := c.Tx.FreeAdd(x.ID, hosts.Low, hosts.High); err != nil {
			return err
		}
	} else if old, ok := c.Old.(*IPv4Network); ok {
		before = old.Gateway
	}
	if before == x.Gateway {
		return nil
	}
	if before.IsValid() {
		old, err := addressAt(c.Tx, x.ID, before)
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			return err
		default:
			if err := c.Delete(old); err != nil {
				return err
			}
		}
	}
	if !x.Gateway.IsValid() {
		return nil
	}
	o := &IPv4Address{State: gateway, Address: x.Gateway, internal: true}
	o.Type, o.Parent, o.Config = "IPv4Address", x.ID, x.Config
	t, _ := c.API.Type("IPv4Address")
	_, err := c.Create(t, o)
	return err
}

// Settle makes the network's host addresses free.
func (x *IPv6Network) Settle(c *resource.Change) error {
	if !c.Creates() {
		return nil
	}
	hosts := space.Hosts(x.Range.Range)
	return c.Tx.FreeAdd(x.ID, hosts.Low, hosts.High)
}

// Release gives the network's space back to its block.
func (x *IPv4Network) Release(c *resource.Change) error { return release(c, &x.Head, x.Range.Range) }

// Release gives the network's space back to its block.
func (x *IPv6Network) Release(c *resource.Change) error { return release(c, &x.Head, x.Range.Range) }

// Span is the space the network takes up.
func (x *IPv4Network) Span() (netip.Addr, netip.Addr) { return x.Range.Low, x.Range.High }

// Span is the space the network takes up.
func (x *IPv6Network) Span() (netip.Addr, netip.Addr) { return x.Range.Low, x.Range.High }

// String is the network's range.
func (x *IPv4Network) String() string { return x.Range.String() }

// String is the network's range.
func (x *IPv6Network) String() string { return x.Range.String() }
