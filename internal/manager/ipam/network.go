package ipam

import (
	"encoding/json"
	"errors"
	"net/netip"

	"portolan/internal/base/problem"
	"portolan/internal/base/space"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerNetworks declares the collection of networks.
func registerNetworks(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "networks", CacheHeads: true, Parents: []string{"blocks"}, Place: placeSpace,
		Complete: completeSpace, Map: networkMap,
		Counts: networkCounts(), Space: resource.HoldsSpace, Workflow: workflowOnly("IPv4Network", "IPV4_NETWORK"),
		Options: []resource.RequestHeader{traversal.Header(resource.Creating), reuseExisting.Header(resource.Creating),
			noGateway.Header(resource.Writing, "IPv4Network")}},
		&IPv4Network{}, &IPv6Network{})
}

// noGateway is the request option that creates a network without a gateway, or removes the gateway.
var noGateway = resource.Flag("x-bcn-no-gateway", "Create the network without a gateway, or remove its gateway.")

// IPv4Network is an IPv4 subnet: a leaf of the address tree that holds addresses and ranges.
type IPv4Network struct {
	SpaceHead
	IPv4Policy
	// Gateway is the address of the router, which has the state GATEWAY. The default for a new network is its first host; a /31 or /32 has
	// no default. The request can set another address, or none with x-bcn-no-gateway.
	Gateway netip.Addr `api:"gateway,chosen"`
	// VLAN is the VLAN that carries the network. It is an extension of Portolan.
	VLAN schema.Ref `api:"vlan" ref:"VLAN" back:"networks"`
	// RouterPortInfo is the router and port where the network was seen.
	RouterPortInfo string `api:"routerPortInfo,readOnly"`
	// SharedNetworkTag is the tag of the shared network that contains this network.
	SharedNetworkTag schema.Ref `api:"sharedNetworkTag" ref:"Tag" back:"sharedResources"`
	// DynamicUpdateEnabled sends changes of the network to its DHCP servers immediately, after a first deployment: reserved addresses,
	// ranges and options.
	DynamicUpdateEnabled bool `api:"dynamicUpdateEnabled,notNull" default:"false"`
	// Usage counts the network's addresses by state.
	Usage json.RawMessage `api:"usage,computed,sums"`
}

// IPv6Network is an IPv6 subnet: a leaf of the address tree that holds addresses and ranges.
type IPv6Network struct {
	SpaceHead
	// VLAN is the VLAN that carries the network. It is an extension of Portolan.
	VLAN schema.Ref `api:"vlan" ref:"VLAN" back:"networks"`
	// DynamicUpdateEnabled sends changes of the network to its DHCP servers immediately, after a first deployment: reserved addresses,
	// ranges and options. It is an extension of Portolan.
	DynamicUpdateEnabled bool `api:"dynamicUpdateEnabled,notNull" default:"false"`
}

// BeforeWrite places the network and determines its gateway.
func (x *IPv4Network) BeforeWrite(c *resource.Change) error {
	if err := keepInherited(c); err != nil {
		return err
	}
	if err := place(c, &x.SpaceHead, true, true); err != nil || x.reshaped {
		return err
	}
	if err := checkSharedNetwork(c, x); err != nil {
		return err
	}
	if err := checkVLAN(c, x.VLAN, x.Config); err != nil {
		return err
	}
	if noGateway.Value(c.Options) {
		if c.SetFields["gateway"] && x.Gateway.IsValid() {
			return problem.Invalid("gateway", "cannot be combined with x-bcn-no-gateway")
		}
		x.Gateway = netip.Addr{}
	} else if r := x.Range.Range; c.IsCreation() && !c.SetFields["gateway"] && r.Low != r.High &&
		r.Low.Next() != r.High { // a /31 has two hosts (RFC 3021)
		x.Gateway = space.Hosts(r).Low
	}
	if !x.Gateway.IsValid() {
		return nil
	}
	if !space.Hosts(x.Range.Range).Has(x.Gateway) {
		return problem.Invalid("gateway", "%s is not a host address of %s", x.Gateway, x.Range)
	}
	return nil
}

// BeforeWrite places the network.
func (x *IPv6Network) BeforeWrite(c *resource.Change) error {
	if err := place(c, &x.SpaceHead, false, true); err != nil {
		return err
	}
	return checkVLAN(c, x.VLAN, x.Config)
}

// AfterWrite adds the host addresses of a new network to its free space, and creates the address of its gateway.
func (x *IPv4Network) AfterWrite(c *resource.Change) error {
	if err := takeSpace(c, &x.SpaceHead, space.Hosts(x.Range.Range)); err != nil || x.reshaped {
		return err
	}
	var before netip.Addr
	if old, ok := c.Old.(*IPv4Network); ok {
		before = old.Gateway
	}
	if before == x.Gateway {
		return nil
	}
	if before.IsValid() {
		old, err := AddressAt(c.Tx, x.ID, before)
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
	o := &IPv4Address{State: gateway, internal: true}
	o.Address = x.Gateway
	o.Type, o.Parent, o.Config = "IPv4Address", x.ID, x.Config
	t, _ := c.API.Type("IPv4Address")
	_, err := c.FollowingWithOptions().Create(t, o)
	return err
}

// AfterWrite adds the host addresses of a new network to its free space.
func (x *IPv6Network) AfterWrite(c *resource.Change) error {
	return takeSpace(c, &x.SpaceHead, space.Hosts(x.Range.Range))
}

// Validate rejects invalid water marks and signing settings (see checkPolicy).
func (x *IPv4Network) Validate(c *resource.Change) error { return x.checkPolicy(c) }

// checkSharedNetwork rejects a sharedNetworkTag that is not in the sharedNetworkTagGroup of the configuration.
func checkSharedNetwork(c *resource.Change, x *IPv4Network) error {
	if x.SharedNetworkTag.ID == 0 || !c.IsCreation() && !c.SetFields["sharedNetworkTag"] {
		return nil
	}
	configuration, err := c.Tx.Get(x.Config)
	if err != nil {
		return err
	}
	o, err := c.API.Object(configuration)
	if err != nil {
		return err
	}
	group := o.(*Configuration).SharedNetworkTagGroup.ID
	if group == 0 {
		return problem.Conflict("NoSharedNetworks", "sharedNetworkTag: the configuration has no sharedNetworkTagGroup: set it first")
	}
	tag, err := c.Tx.Head(x.SharedNetworkTag.ID)
	if store.IsNotFound(err) {
		return nil // the reference check reports it
	}
	if err != nil {
		return err
	}
	if tag.Parent != group {
		return problem.Invalid("sharedNetworkTag", "tag %d is not in the configuration's sharedNetworkTagGroup (%d)", tag.ID, group)
	}
	return nil
}

// workflowOnly returns a Collection.Workflow function that supports a single type.
func workflowOnly(typeName, word string) func(string) string {
	return func(name string) string {
		if name == typeName {
			return word
		}
		return ""
	}
}
