package ipam

import (
	"errors"
	"net/netip"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/base/space"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerAddresses declares the collection of addresses.
func registerAddresses(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "addresses", Parents: []string{"networks"}, Numerous: true, Place: placeSpace,
		Complete: completeAddresses,
		Local:    true, Vacant: vacant, Space: resource.TakesSpace, Workflow: only("IPv4Address", "IPV4_ADDRESS"),
		Options: []resource.RequestHeader{takeWithin.For(resource.Creating)}},
		&IPv4Address{}, &IPv6Address{})
}

// gateway is the state of a network's router.
const gateway = "GATEWAY"

// Assignment is what an address in use has, of either family.
type Assignment struct {
	schema.Head
	// Configuration is the configuration the address lies in.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// Address is the address; a new one without takes the network's first free address.
	Address netip.Addr `api:"address,createOnly,span,search"`
	// MACAddress is the hardware address it is assigned to.
	MACAddress schema.Ref `api:"macAddress" ref:"MACAddress" identify:"address" back:"addresses"`
	// Device is the device it belongs to.
	Device schema.Ref `api:"device" ref:"Device" back:"addresses"`
	// Location is where the address is used.
	Location schema.Ref `api:"location" ref:"Location" back:"annotatedResources"`
	// ResourceRecords are host records for the address, by id or by absoluteName; missing ones
	// are made.
	ResourceRecords schema.RefList `api:"resourceRecords"`
	// LeaseDateTime is when the address was leased.
	LeaseDateTime time.Time `api:"leaseDateTime,readOnly"`
	// LeaseExpirationDateTime is when the lease ends.
	LeaseExpirationDateTime time.Time `api:"leaseExpirationDateTime,readOnly"`
	// RemoteID is the relay's remote id of the lease (RFC 3046, RFC 4649).
	RemoteID string `api:"remoteId,readOnly"`

	// records are the host records of the request (Named).
	records []schema.RefItem
}

// Span is the address.
func (x *Assignment) Span() (netip.Addr, netip.Addr) { return x.Address, x.Address }

// String is the address.
func (x *Assignment) String() string { return x.Address.String() }

// Named gives the host records that the request names the address with.
func (x *Assignment) Named() []schema.RefItem { return x.records }

// IPv4Address is an IPv4 address in use.
type IPv4Address struct {
	Assignment
	// State is what the address is used for.
	State string `api:"state,required" enum:"STATIC|RESERVED|DHCP_RESERVED|GATEWAY"`
	// IPGroup is the group the address lies in.
	IPGroup schema.Ref `api:"ipGroup,readOnly" ref:"IPv4Group"`
	// Template is the template of the address.
	Template schema.Ref `api:"template" ref:"IPv4Template" back:"appliedResources"`
	// CircuitID is the relay's circuit id of the lease (RFC 3046).
	CircuitID string `api:"circuitId,readOnly"`
	// RouterPortInfo is the router and port where the address was seen.
	RouterPortInfo string `api:"routerPortInfo,readOnly"`
	// SwitchPortInfo is the switch and port where the address was seen.
	SwitchPortInfo string `api:"switchPortInfo,readOnly"`
	// VLANInfo is the VLAN where the address was seen.
	VLANInfo string `api:"vlanInfo,readOnly"`
	// VendorClassIdentifier is the vendor class of the lease's client.
	VendorClassIdentifier string `api:"vendorClassIdentifier,readOnly"`
	// ParameterRequestList are the options the lease's client asked for.
	ParameterRequestList []int64 `api:"parameterRequestList,readOnly"`
	// ClientIdentifier is the DHCP client identifier it is reserved for.
	ClientIdentifier schema.Ref `api:"clientIdentifier" ref:"DHCPClientIdentifier" identify:"uid" back:"addresses"`

	internal bool // made by its network
}

// IPv6Address is an IPv6 address in use.
type IPv6Address struct {
	Assignment
	// State is what the address is used for.
	State string `api:"state,required" enum:"DHCP_RESERVED|STATIC"`
	// ReservedUsing says what the reservation goes by.
	ReservedUsing string `api:"reservedUsing" enum:"CLIENT_DUID|MAC_ADDRESS"`
	// IdentityAssociationIdentifier is the lease's IAID (RFC 8415).
	IdentityAssociationIdentifier string `api:"identityAssociationIdentifier,readOnly"`
	// ClientIdentifier is the DHCP unique identifier it is reserved for.
	ClientIdentifier schema.Ref `api:"clientIdentifier" ref:"DHCPUniqueIdentifier" identify:"duid" back:"addresses"`
	// InterfaceID is the relay's interface id of the lease (RFC 8415).
	InterfaceID string `api:"interfaceId,readOnly"`
}

// BeforeWrite takes the address from the network's free space.
func (x *IPv4Address) BeforeWrite(c *resource.Change) error {
	x.records, x.ResourceRecords = x.ResourceRecords.Items, schema.RefList{}
	if old, ok := c.Old.(*IPv4Address); ok && !x.internal && (old.State == gateway) != (x.State == gateway) {
		return problem.Conflict("CreateUpdateNetworkGatewayNotSupported",
			"state: a gateway is set and changed by the field gateway of its network")
	}
	if err := x.clients(c, &x.ClientIdentifier, true); err != nil {
		return err
	}
	if err := x.reserved(c, x.State, x.ClientIdentifier); err != nil {
		return err
	}
	if !c.Creates() {
		return nil
	}
	if x.State == gateway && !x.internal {
		return problem.Conflict("CreateUpdateNetworkGatewayNotSupported", "state: a gateway is set by the field gateway of its network")
	}
	return assign(c, &x.Head, &x.Address)
}

// BeforeWrite takes the address from the network's free space.
func (x *IPv6Address) BeforeWrite(c *resource.Change) error {
	x.records, x.ResourceRecords = x.ResourceRecords.Items, schema.RefList{}
	if err := x.clients(c, &x.ClientIdentifier, false); err != nil {
		return err
	}
	if err := x.reserved(c, x.State, x.ClientIdentifier); err != nil {
		return err
	}
	if !c.Creates() {
		return nil
	}
	return assign(c, &x.Head, &x.Address)
}

// reserved refuses a DHCP reservation for nobody.
func (x *Assignment) reserved(c *resource.Change, state string, identifier schema.Ref) error {
	if state == "DHCP_RESERVED" && x.MACAddress.ID == 0 && identifier.ID == 0 &&
		(c.Creates() || c.Given["state"] || c.Given["macAddress"] || c.Given["clientIdentifier"]) {
		return problem.Invalid("state", "DHCP_RESERVED needs a macAddress or a clientIdentifier that the address is reserved for")
	}
	return nil
}

// assign takes the given address, or the first free one, out of its network.
func assign(c *resource.Change, h *schema.Head, a *netip.Addr) error {
	network, err := c.Above(h.Parent)
	if err != nil {
		return err
	}
	within := space.Range{Low: store.KeyAddr(network.Low), High: store.KeyAddr(network.High)}
	if v4 := h.Type == "IPv4Address"; within.Low.Is4() != v4 {
		return problem.Invalid("type", "an %s cannot lie in %s %d, %s", h.Type, network.Type, network.ID, within)
	}
	if !a.IsValid() {
		*a, err = nextFree(c, network)
		return err
	}
	if !within.Has(*a) {
		return problem.Field("AddressNotInNetwork", "address", "%s does not lie in %s %d, %s", a, network.Type, network.ID, within)
	}
	if !space.Hosts(within).Has(*a) {
		return notForHosts(*a, within)
	}
	err = freeTake(c.Tx, network.ID, *a, *a)
	if err == nil {
		return checkSilent(c, network.ID, *a)
	}
	if !errors.Is(err, space.ErrTaken) {
		return err
	}
	holder, err := AddressAt(c.Tx, network.ID, *a)
	if errors.Is(err, store.ErrNotFound) {
		return problem.Conflict("ResourceAlreadyExists", "address: %s is not free", a)
	}
	if err != nil {
		return err
	}
	return problem.Conflict("ResourceAlreadyExists", "address: %s is in use: %s %d", a, holder.Type, holder.ID)
}

// notForHosts words why no host may have an address of a range.
func notForHosts(a netip.Addr, within space.Range) error {
	code, what := "AddressIsBroadcastAddress", "broadcast address"
	switch {
	case a == within.Low && a.Is4():
		code, what = "AddressIsNetworkId", "network address"
	case a == within.Low: // RFC 4291 section 2.6.1
		code, what = "AddressIsNetworkRouterAnycast", "anycast address of the routers"
	}
	return problem.Field(code, "address", "%s is the %s of %s", a, what, within)
}

// nextFree takes the next available address: of the network, or of the part of it that the request names.
func nextFree(c *resource.Change, network *store.Resource) (netip.Addr, error) {
	asks, err := asksFirst(c, network.ID)
	if err != nil {
		return netip.Addr{}, err
	}
	ranges, err := resource.HeldSpace(c.Tx, "addresses", network.Configuration)
	if err != nil {
		return netip.Addr{}, err
	}
	var held map[netip.Addr]bool // by requests that are not decided yet
	for _, r := range ranges {
		if held == nil {
			held = map[netip.Addr]bool{}
		}
		held[r.Low] = true
	}
	part := takeWithin.In(c.Options)
	if !asks && part == 0 && held == nil {
		a, err := nextOutside(c.Tx, network.ID)
		if errors.Is(err, space.ErrTaken) {
			return a, noneAvailable(network)
		}
		return a, err
	}
	within, let, err := partOf(c.Tx, network, part)
	if err != nil {
		return netip.Addr{}, err
	}
	var found netip.Addr
	for _, left := range let {
		if err := freeWithin(c.Tx, network.ID, left.Low, left.High, false, func(i space.Range) bool {
			for found = i.Low; asks && c.Probed[found] || held[found]; found = found.Next() {
				if found == i.High {
					found = netip.Addr{}
					return true
				}
			}
			return false
		}); err != nil {
			return found, err
		}
		if found.IsValid() {
			if _, asked := c.Probed[found]; asks && !asked {
				return found, resource.NeedsProbe{Addr: found}
			}
			return found, freeTake(c.Tx, network.ID, found, found)
		}
	}
	return found, noneAvailable(within)
}

func noneAvailable(in *store.Resource) error {
	return problem.BadRequest("NoSpaceForAddress", "there is no free address in %s %d, %s", in.Type, in.ID, RangeOf(in))
}

// asksFirst reports whether addresses of a network are asked before they are assigned.
func asksFirst(c *resource.Change, network int64) (bool, error) {
	if c.Caller.Remote == "" { // no request: what imports and samples bring is in use anyway
		return false, nil
	}
	used, err := settingsOf(c.Tx).inUse(c.Tx)
	if err != nil || !used.pings {
		return false, err
	}
	holds, err := SettingsIn(c, network)
	if err != nil || holds[network] == nil {
		return false, err
	}
	return holds[network].Values[pingBeforeAssign] == "true", nil
}

// checkSilent refuses an address that answers, where it has to be asked.
func checkSilent(c *resource.Change, network int64, a netip.Addr) error {
	if x, ok := c.New.(*IPv4Address); ok && x.internal { // the gateway answers for itself
		return nil
	}
	asks, err := asksFirst(c, network)
	if err != nil || !asks {
		return err
	}
	answers, asked := c.Probed[a]
	if !asked {
		return resource.NeedsProbe{Addr: a}
	}
	if answers {
		return problem.Conflict("AddressAnswers", "address: %s answers, and is in use by somebody (pingBeforeAssignEnabled)", a)
	}
	return nil
}

// vacant says what lies in the free space of a network.
func vacant(tx *store.Tx, network *store.Resource) (*resource.Vacancy, error) {
	id := network.ID // the row is the caller's
	v := &resource.Vacancy{Type: "IPv6Address", By: "address", Field: "state", Value: unassigned, Whole: Usable(network), Parent: id,
		Configuration: network.Configuration,
		Free: func(low, high netip.Addr, backwards bool, fn func(space.Range) bool) error {
			return freeWithin(tx, id, low, high, backwards, fn)
		}}
	if v.Whole.Low.Is4() {
		v.Type = "IPv4Address"
	}
	return v, nil
}

// AddressAt finds the address resource of a network.
func AddressAt(tx *store.Tx, network int64, a netip.Addr) (*store.Resource, error) {
	key := store.AddrKey(a)
	return tx.Overlapping(network, "addresses", key, key, 0)
}

// BeforeDelete gives the address back to its network. A gateway leaves its network without one.
func (x *IPv4Address) BeforeDelete(c *resource.Change) error {
	if c.With {
		return nil
	}
	if x.State == gateway {
		network, err := c.Tx.Get(x.Parent)
		if err != nil {
			return err
		}
		o, err := c.API.Object(network)
		if err != nil {
			return err
		}
		if n, ok := o.(*IPv4Network); ok && n.Gateway == x.Address {
			// The network's rule takes its former gateway away: this address.
			_, err := c.Change(network, func(o schema.Object) { o.(*IPv4Network).Gateway = netip.Addr{} })
			return err
		}
	}
	return freeAdd(c.Tx, x.Parent, x.Address, x.Address)
}

// BeforeDelete gives the address back to its network.
func (x *IPv6Address) BeforeDelete(c *resource.Change) error {
	if c.With {
		return nil
	}
	return freeAdd(c.Tx, x.Parent, x.Address, x.Address)
}
