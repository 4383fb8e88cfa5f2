package ipam

import (
	"errors"
	"math/big"
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
		Local:    true, Vacant: describeVacancy, Space: resource.TakesSpace, Workflow: workflowOnly("IPv4Address", "IPV4_ADDRESS"),
		Options: []resource.RequestHeader{allocateWithin.Header(resource.Creating)}},
		&IPv4Address{}, &IPv6Address{})
}

// gateway is the state of a network's router.
const gateway = "GATEWAY"

// Assignment has the common fields of IPv4 and IPv6 addresses in use.
type Assignment struct {
	schema.Head
	// Configuration is the configuration that contains the address.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// Address is the IP address. If a request creates an address without it, the first free address of the network is used.
	Address netip.Addr `api:"address,createOnly,span,search"`
	// MACAddress is the hardware address of the client.
	MACAddress schema.Ref `api:"macAddress" ref:"MACAddress" identify:"address" back:"addresses"`
	// Device is the device that the address belongs to.
	Device schema.Ref `api:"device" ref:"Device" back:"addresses"`
	// Location is the location where the address is used.
	Location schema.Ref `api:"location" ref:"Location" back:"annotatedResources"`
	// ResourceRecords are host records for the address, by id or by absoluteName. Missing records are created.
	ResourceRecords schema.RefList `api:"resourceRecords"`
	// LeaseDateTime is when the address was leased.
	LeaseDateTime time.Time `api:"leaseDateTime,readOnly"`
	// LeaseExpirationDateTime is when the lease expires.
	LeaseExpirationDateTime time.Time `api:"leaseExpirationDateTime,readOnly"`
	// RemoteID is the remote id of the relay agent for the lease (RFC 3046, RFC 4649).
	RemoteID string `api:"remoteId,readOnly"`
	// LastSeenDateTime is when discovery saw the address last; null if it never did. It is an extension of Portolan.
	LastSeenDateTime time.Time `api:"lastSeenDateTime,computed"`

	// records are the host records of the request (see Named).
	records []schema.RefItem
}

// Span returns the address as first and last address.
func (x *Assignment) Span() (netip.Addr, netip.Addr) { return x.Address, x.Address }

// String returns the address.
func (x *Assignment) String() string { return x.Address.String() }

// Named returns the host records of the request for this address.
func (x *Assignment) Named() []schema.RefItem { return x.records }

// IPv4Address is an IPv4 address in use.
type IPv4Address struct {
	Assignment
	// State is the use of the address.
	State string `api:"state,required" enum:"STATIC|RESERVED|DHCP_RESERVED|GATEWAY"`
	// IPGroup is the IP group that contains the address.
	IPGroup schema.Ref `api:"ipGroup,readOnly" ref:"IPv4Group"`
	// Template is the template of the address.
	Template schema.Ref `api:"template" ref:"IPv4Template" back:"appliedResources"`
	// CircuitID is the circuit id of the relay agent for the lease (RFC 3046).
	CircuitID string `api:"circuitId,readOnly"`
	// RouterPortInfo is the router and port where the address was seen.
	RouterPortInfo string `api:"routerPortInfo,readOnly"`
	// SwitchPortInfo is the switch and port where the address was seen.
	SwitchPortInfo string `api:"switchPortInfo,readOnly"`
	// VLANInfo is the VLAN where the address was seen.
	VLANInfo string `api:"vlanInfo,readOnly"`
	// VendorClassIdentifier is the vendor class of the client that has the lease.
	VendorClassIdentifier string `api:"vendorClassIdentifier,readOnly"`
	// ParameterRequestList lists the options that the client of the lease requested.
	ParameterRequestList []int64 `api:"parameterRequestList,readOnly"`
	// ClientIdentifier is the DHCP client identifier that the address is reserved for.
	ClientIdentifier schema.Ref `api:"clientIdentifier" ref:"DHCPClientIdentifier" identify:"uid" back:"addresses"`

	internal bool // set when the network itself writes the address
}

// IPv6Address is an IPv6 address in use.
type IPv6Address struct {
	Assignment
	// State is the use of the address.
	State string `api:"state,required" enum:"DHCP_RESERVED|STATIC"`
	// ReservedUsing is the kind of identifier that the reservation uses.
	ReservedUsing string `api:"reservedUsing" enum:"CLIENT_DUID|MAC_ADDRESS"`
	// IdentityAssociationIdentifier is the lease's IAID (RFC 8415).
	IdentityAssociationIdentifier string `api:"identityAssociationIdentifier,readOnly"`
	// ClientIdentifier is the DHCP unique identifier that the address is reserved for.
	ClientIdentifier schema.Ref `api:"clientIdentifier" ref:"DHCPUniqueIdentifier" identify:"duid" back:"addresses"`
	// InterfaceID is the interface id of the relay agent for the lease (RFC 8415).
	InterfaceID string `api:"interfaceId,readOnly"`
}

// BeforeWrite removes a new address from the free space of the network. It rejects changes of a gateway.
func (x *IPv4Address) BeforeWrite(c *resource.Change) error {
	x.records, x.ResourceRecords = x.ResourceRecords.Items, schema.RefList{}
	if old, ok := c.Old.(*IPv4Address); ok && !x.internal && (old.State == gateway) != (x.State == gateway) {
		return problem.Conflict("CreateUpdateNetworkGatewayNotSupported",
			"state: set and change a gateway by the field gateway of its network")
	}
	if err := x.fillClient(c, x.State, &x.ClientIdentifier); err != nil {
		return err
	}
	if err := x.resolveClients(c, &x.ClientIdentifier, true); err != nil {
		return err
	}
	if err := x.checkReservation(c, x.State, x.ClientIdentifier); err != nil {
		return err
	}
	if !c.IsCreation() {
		return nil
	}
	if x.State == gateway && !x.internal {
		return problem.Conflict("CreateUpdateNetworkGatewayNotSupported", "state: set a gateway by the field gateway of its network")
	}
	return assign(c, &x.Head, &x.Address)
}

// BeforeWrite removes a new address from the free space of the network.
func (x *IPv6Address) BeforeWrite(c *resource.Change) error {
	x.records, x.ResourceRecords = x.ResourceRecords.Items, schema.RefList{}
	if err := x.fillClient(c, x.State, &x.ClientIdentifier); err != nil {
		return err
	}
	if err := x.resolveClients(c, &x.ClientIdentifier, false); err != nil {
		return err
	}
	if err := x.checkReservation(c, x.State, x.ClientIdentifier); err != nil {
		return err
	}
	if err := x.checkReservedUsing(c); err != nil {
		return err
	}
	if !c.IsCreation() {
		return nil
	}
	return assign(c, &x.Head, &x.Address)
}

// checkReservedUsing rejects a reservation by an identifier that the address does not have.
func (x *IPv6Address) checkReservedUsing(c *resource.Change) error {
	if x.State != "DHCP_RESERVED" || !c.IsCreation() && !c.SetFields["reservedUsing"] && !c.SetFields["macAddress"] &&
		!c.SetFields["clientIdentifier"] && !c.SetFields["state"] {
		return nil
	}
	switch {
	case x.ReservedUsing == "CLIENT_DUID" && x.ClientIdentifier.ID == 0:
		return problem.Invalid("reservedUsing", "CLIENT_DUID requires a clientIdentifier with the DUID of the client")
	case x.ReservedUsing == "MAC_ADDRESS" && x.MACAddress.ID == 0:
		return problem.Invalid("reservedUsing", "MAC_ADDRESS requires a macAddress: the hardware address of the client")
	}
	return nil
}

// fillClient reserves a leased address for the client of its lease if the request names no client.
func (x *Assignment) fillClient(c *resource.Change, state string, identifier *schema.Ref) error {
	named := func(r schema.Ref, field string) bool { return r.ID != 0 || r.By != "" || c.SetFields[field] }
	if state != "DHCP_RESERVED" || !c.IsCreation() && !c.SetFields["state"] || !x.Address.IsValid() || named(x.MACAddress, "macAddress") ||
		named(*identifier, "clientIdentifier") {
		return nil
	}
	l := leasesIn(c.Tx)
	if l == nil {
		return nil
	}
	var err error
	x.MACAddress.By, identifier.By, err = l.Client(c.Tx, x.Config, x.Address)
	return err
}

// checkReservation rejects a DHCP reservation without a client.
func (x *Assignment) checkReservation(c *resource.Change, state string, identifier schema.Ref) error {
	if state == "DHCP_RESERVED" && x.MACAddress.ID == 0 && identifier.ID == 0 &&
		(c.IsCreation() || c.SetFields["state"] || c.SetFields["macAddress"] || c.SetFields["clientIdentifier"]) {
		return problem.Invalid("state", "DHCP_RESERVED requires a macAddress or a clientIdentifier: the client to reserve the address for. "+
			"The address has no lease to take the client from")
	}
	return nil
}

// assign removes the given address, or the first free one, from the free space of its network.
func assign(c *resource.Change, h *schema.Head, a *netip.Addr) error {
	network, err := c.ReadParent(h.Parent)
	if err != nil {
		return err
	}
	within := space.Range{Low: store.KeyAddr(network.Low), High: store.KeyAddr(network.High)}
	if v4 := h.Type == "IPv4Address"; within.Low.Is4() != v4 {
		return problem.Invalid("type", "an %s cannot be in %s %s (%d)", h.Type, network.Type, within, network.ID)
	}
	if !a.IsValid() {
		*a, err = nextFree(c, network)
		return err
	}
	if !within.Has(*a) {
		return problem.Field("AddressNotInNetwork", "address", "%s is not in %s %s (%d)", a, network.Type, within, network.ID)
	}
	if !space.Hosts(within).Has(*a) {
		return nonHostError(*a, within)
	}
	err = freeRemove(c.Tx, network.ID, *a, *a)
	if err == nil {
		return checkNoReply(c, network.ID, *a)
	}
	if !errors.Is(err, space.ErrNotFree) {
		return err
	}
	holder, err := AddressAt(c.Tx, network.ID, *a)
	if errors.Is(err, store.ErrNotFound) {
		return problem.Conflict("ResourceAlreadyExists", "address: %s is not free", a)
	}
	if err != nil {
		return err
	}
	return problem.Conflict("ResourceAlreadyExists", "address: %s is already in use by %s %d", a, holder.Type, holder.ID)
}

// nonHostError returns the error for the network, broadcast or router anycast address of a range.
func nonHostError(a netip.Addr, within space.Range) error {
	code, what := "AddressIsBroadcastAddress", "broadcast address"
	switch {
	case a == within.Low && a.Is4():
		code, what = "AddressIsNetworkId", "network address"
	case a == within.Low: // RFC 4291 section 2.6.1
		code, what = "AddressIsNetworkRouterAnycast", "anycast address of the routers"
	}
	return problem.Field(code, "address", "%s is the %s of %s", a, what, within)
}

// nextFree allocates the next available address of the network, or of the part of it that the request selects.
func nextFree(c *resource.Change, network *store.Resource) (netip.Addr, error) {
	pings, err := needsPing(c, network.ID)
	if err != nil {
		return netip.Addr{}, err
	}
	ranges, err := resource.ReservedSpace(c.Tx, "addresses", network.Configuration)
	if err != nil {
		return netip.Addr{}, err
	}
	var held map[netip.Addr]bool // reserved by pending approval requests
	for _, r := range ranges {
		if held == nil {
			held = map[netip.Addr]bool{}
		}
		held[r.Low] = true
	}
	part := allocateWithin.Value(c.Options)
	if !pings && part == 0 && held == nil {
		a, err := takeOutsideRanges(c.Tx, network.ID)
		if errors.Is(err, space.ErrNotFree) {
			return a, noFreeAddressError(network)
		}
		return a, err
	}
	within, let, err := assignableSpace(c.Tx, network, part)
	if err != nil {
		return netip.Addr{}, err
	}
	var found netip.Addr
	for _, left := range let {
		if err := freeWithin(c.Tx, network.ID, left.Low, left.High, false, func(i space.Range) bool {
			for found = i.Low; pings && answered(c, found) || held[found]; found = found.Next() {
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
			if pings {
				if _, err := answersPing(c, found); err != nil {
					return found, err
				}
			}
			return found, freeRemove(c.Tx, network.ID, found, found)
		}
	}
	return found, noFreeAddressError(within)
}

func noFreeAddressError(in *store.Resource) error {
	return problem.BadRequest("NoSpaceForAddress", "no free address in %s %s (%d)", in.Type, RangeOf(in), in.ID)
}

// needsPing reports whether addresses of a network must be pinged before they are assigned.
func needsPing(c *resource.Change, network int64) (bool, error) {
	if c.Caller.Remote == "" { // not an API request: imported addresses and sample data are in use anyway
		return false, nil
	}
	used, err := settingsOf(c.Tx).inUse(c.Tx)
	if err != nil || !used.pings {
		return false, err
	}
	settings, err := SettingsIn(c, network)
	if err != nil || settings[network] == nil {
		return false, err
	}
	return settings[network].Values[pingBeforeAssign] == "true", nil
}

// checkNoReply rejects an address that answers a ping, if the network requires one.
func checkNoReply(c *resource.Change, network int64, a netip.Addr) error {
	if x, ok := c.New.(*IPv4Address); ok && x.internal { // the router itself answers
		return nil
	}
	pings, err := needsPing(c, network)
	if err != nil || !pings {
		return err
	}
	answers, err := answersPing(c, a)
	if err != nil {
		return err
	}
	if answers {
		return problem.Conflict("AddressAnswers", "address: %s answers a ping and is in use (pingBeforeAssignEnabled)", a)
	}
	return nil
}

// describeVacancy returns the description of the free addresses of a network, for lists that show them as UNASSIGNED.
func describeVacancy(tx *store.Tx, network *store.Resource) (*resource.Vacancy, error) {
	id := network.ID // the caller may reuse the row
	v := &resource.Vacancy{Type: "IPv6Address", By: "address", Field: "state", Value: unassigned, Whole: Usable(network), Parent: id,
		Configuration: network.Configuration,
		Free: func(low, high netip.Addr, backwards bool, fn func(space.Range) bool) error {
			return freeWithin(tx, id, low, high, backwards, fn)
		},
		Size: func() (*big.Int, error) {
			usage, err := UsageOf(tx, []int64{id})
			size := Usable(network).Size()
			return size.Sub(size, big.NewInt(usage[id].withoutLeases().Used())), err
		}}
	if v.Whole.Low.Is4() {
		v.Type = "IPv4Address"
	}
	return v, nil
}

// AddressAt returns the stored address of a network, or store.ErrNotFound.
func AddressAt(tx *store.Tx, network int64, a netip.Addr) (*store.Resource, error) {
	key := store.AddrKey(a)
	return tx.FindOverlapping(network, "addresses", key, key, 0)
}

// BeforeDelete returns the address to the free space of its network. If it is the gateway, the network loses its gateway.
func (x *IPv4Address) BeforeDelete(c *resource.Change) error {
	if c.ParentDeleted {
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
			// The network's AfterWrite rule deletes this address, which is its former gateway.
			_, err := c.Change(network, func(o schema.Object) { o.(*IPv4Network).Gateway = netip.Addr{} })
			return err
		}
	}
	return freeAdd(c.Tx, x.Parent, x.Address, x.Address)
}

// BeforeDelete returns the address to the free space of its network.
func (x *IPv6Address) BeforeDelete(c *resource.Change) error {
	if c.ParentDeleted {
		return nil
	}
	return freeAdd(c.Tx, x.Parent, x.Address, x.Address)
}
