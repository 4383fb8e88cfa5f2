package ipam

import (
	"cmp"
	"errors"
	"net/netip"
	"slices"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/base/space"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// SettingsIn returns the effective settings of networks by id.
func SettingsIn(c *resource.Change, networks ...int64) (map[int64]*Settings, error) {
	return settingsOf(c.Tx).resolve(c.Tx, networks)
}

// AllowAddressOverlap is the request option to create a smaller network if other resources use part of the default one.
var AllowAddressOverlap = resource.Flag("x-bcn-allow-address-overlap",
	"With x-bcn-auto-create-network, take the largest smaller network where others are in the way.")

// blockAround returns the innermost block of a configuration that contains an address, or store.ErrNotFound.
func blockAround(tx *store.Tx, configuration int64, a netip.Addr) (*store.Resource, error) {
	key := store.AddrKey(a)
	block, err := tx.FindOverlapping(configuration, "blocks", key, key, 0)
	for err == nil {
		var inner *store.Resource
		inner, err = tx.FindOverlapping(block.ID, "blocks", key, key, 0)
		if err == nil {
			block = inner
		}
	}
	if block != nil && errors.Is(err, store.ErrNotFound) {
		return block, nil
	}
	return nil, err
}

// networkFor creates the network for an address (x-bcn-auto-create-network) in the innermost block around it: a /24, in IPv6 a /64. If part
// of this range is in use, it creates the largest free network around the address, provided that x-bcn-allow-address-overlap allows it.
func networkFor(c *resource.Change, configuration int64, a netip.Addr) (*store.Resource, error) {
	block, err := blockAround(c.Tx, configuration, a)
	if errors.Is(err, store.ErrNotFound) {
		return nil, resource.NotFoundInlined("addresses", "%s is not in a block of the configuration: create a block first", a)
	}
	if err != nil {
		return nil, err
	}
	i, err := freeAt(c.Tx, block.ID, a)
	if errors.Is(err, space.ErrNotFree) {
		return nil, problem.Field("IpRangeOverlapsSiblings", "addresses", "%s is in use in %s %s (%d)", a, block.Type, spanOf(block), block.ID)
	}
	if err != nil {
		return nil, err
	}
	bits := 64
	if a.Is4() {
		bits = 24
	}
	for usual := bits; ; bits++ {
		whole := space.FromPrefix(netip.PrefixFrom(a, bits).Masked())
		if i.Contains(whole) && space.Hosts(whole).Has(a) {
			return createNetwork(c, block, whole, a)
		}
		if bits == a.BitLen() {
			return nil, problem.Field("IpRangeOverlapsSiblings", "addresses", "no room for a network around %s in %s %s (%d)", a, block.Type,
				spanOf(block), block.ID)
		}
		if bits == usual && !AllowAddressOverlap.Value(c.Options) {
			return nil, problem.Field("IpRangeOverlapsSiblings", "addresses",
				"the network %s is partly in use in %s %d; x-bcn-allow-address-overlap: true creates a smaller one", whole, block.Type,
				block.ID)
		}
	}
}

func createNetwork(c *resource.Change, block *store.Resource, whole space.Range, host netip.Addr) (*store.Resource, error) {
	name, o := "IPv6Network", schema.Object(&IPv6Network{SpaceHead: SpaceHead{Range: schema.Range{Range: whole}}})
	if whole.Low.Is4() {
		name = "IPv4Network"
		n := &IPv4Network{SpaceHead: SpaceHead{Range: schema.Range{Range: whole}}}
		n.DefaultZonesInherited, n.RestrictedZonesInherited = true, true
		o = n
	}
	h := schema.HeadOf(o)
	h.Type, h.Parent, h.Config = name, block.ID, block.Configuration
	t, _ := c.API.Type(name)
	n := c.Following()
	n.Options = noGateway.Set(n.Options, space.Hosts(whole).Low == host) // no gateway if the host has the default gateway address
	return n.Create(t, o)
}

// orphanState is the request option for the state of addresses that are outside of a DHCP range after it became smaller.
var orphanState = resource.Choice("x-bcn-orphaned-address-state", "The state of the addresses that a smaller DHCP range leaves outside. "+
	"Without it, stored addresses keep their state, and leased ones become DHCP_RESERVED for their clients.",
	stateReserved, "RESERVED", "STATIC", unassigned)

// stateReserved is the state of an address that is reserved for a DHCP client.
const stateReserved = "DHCP_RESERVED"

// OrphanedBy returns the parts of address space that a change of a DHCP range leaves outside, and the state of the leased addresses there;
// it is empty if these stay without an address.
func OrphanedBy(c *resource.Change) (parts []space.Range, state string) {
	x, ok := c.New.(*IPv4DHCPRange)
	if !ok || c.IsCreation() || !c.SetFields["range"] {
		return nil, ""
	}
	if state = cmp.Or(orphanState.Value(c.Options), stateReserved); state == unassigned {
		return nil, ""
	}
	return RangeOf(c.Row).Subtract(x.Range.Range), state
}

// convertOrphans changes the state of the addresses that are in was but not in is. It deletes them if state is UNASSIGNED.
func convertOrphans(c *resource.Change, network int64, was, is space.Range, state string) error {
	for _, part := range was.Subtract(is) {
		rows, err := c.Tx.ListBelow(network, "addresses", store.AddrKey(part.Low), store.AddrKey(part.High))
		if err != nil {
			return err
		}
		for _, row := range rows {
			o, err := c.API.Object(row)
			if err != nil {
				return err
			}
			a, ok := o.(*IPv4Address)
			if !ok || a.State == gateway || a.State == state {
				continue
			}
			n := c.Following("state")
			if state == unassigned {
				err = n.Delete(row)
			} else {
				_, err = n.Change(row, func(o schema.Object) { o.(*IPv4Address).State = state })
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// AddressNamed returns the id of the address that a request names by its text. It assigns the address if necessary. createsNetwork allows
// it to create a missing network.
func AddressNamed(c *resource.Change, configuration int64, item *schema.RefItem, createsNetwork bool) (int64, error) {
	a, err := netip.ParseAddr(strings.TrimSpace(item.Text["address"]))
	if err != nil || a.Zone() != "" {
		return 0, problem.Invalid("addresses", "%q is not an IP address", item.Text["address"])
	}
	a = a.Unmap()
	network, err := NetworkOf(c.Tx, configuration, a)
	if errors.Is(err, store.ErrNotFound) {
		if !createsNetwork {
			return 0, noNetworkError(c, a)
		}
		network, err = networkFor(c, configuration, a)
	}
	if err != nil {
		return 0, err
	}
	found, err := AddressAt(c.Tx, network.ID, a)
	if err == nil && c.Caller.Limited() {
		var sees bool
		if sees, err = c.Sees(found.Head()); err == nil && !sees {
			err = store.ErrNotFound
		}
	}
	if err == nil {
		return found.ID, nil
	}
	if errors.Is(err, store.ErrNotFound) {
		hidden, failed := hidesAddresses(c, network, a)
		if err = failed; err == nil && hidden {
			return 0, noNetworkError(c, a)
		}
	}
	if err != nil {
		return 0, err
	}
	if found != nil { // the caller may not see this address, but sees others in the network
		return 0, noNetworkError(c, a)
	}
	state := item.Text["state"]
	if state == "" || state == unassigned {
		state = "STATIC"
	}
	name := "IPv6Address"
	var o schema.Object = &IPv6Address{Assignment: Assignment{Address: a}, State: state}
	if a.Is4() {
		name, o = "IPv4Address", &IPv4Address{Assignment: Assignment{Address: a}, State: state}
	}
	t, _ := c.API.Type(name)
	if f, ok := t.Field("state"); ok && !slices.Contains(f.Enum, state) {
		return 0, problem.Invalid("addresses", "state: must be one of %s, not %q", strings.Join(f.Enum, ", "), state)
	}
	h := schema.HeadOf(o)
	h.Type, h.Parent, h.Config = name, network.ID, configuration
	row, err := c.FollowingWithOptions("state").Create(t, o)
	if err != nil {
		return 0, err
	}
	return row.ID, nil
}

// noNetworkError returns the error for an address outside of all networks. A network with addresses that are hidden from the caller yields
// the same error, so that responses do not reveal hidden networks.
func noNetworkError(c *resource.Change, a netip.Addr) error {
	if !c.Caller.Limited() {
		return resource.NotFoundInlined("addresses", "%s is not in a network of the configuration", a)
	}
	return resource.NotFoundInlined("addresses", "%s is not in a network with addresses visible to %s", a, c.Caller.Name)
}

// hidesAddresses reports whether all addresses of this family in a network are hidden from the caller.
func hidesAddresses(c *resource.Change, network *store.Resource, a netip.Addr) (bool, error) {
	if !c.Caller.Limited() || c.API.Standing == nil {
		return false, nil
	}
	typeName := "IPv6Address"
	if a.Is4() {
		typeName = "IPv4Address"
	}
	standing, err := c.API.Standing(c.Tx, c.Caller, network, true, typeName)
	return standing.Level == "HIDE", err
}

// ReleaseUnused deletes a static address without name, client, device, location or references. It reports whether the address no longer
// exists.
func ReleaseUnused(c *resource.Change, id int64) (gone bool, err error) {
	row, err := c.Tx.Get(id)
	if store.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	o, err := c.API.Object(row)
	if err != nil {
		return false, err
	}
	var a *Assignment
	state := ""
	switch x := o.(type) {
	case *IPv4Address:
		a, state = &x.Assignment, x.State
	case *IPv6Address:
		a, state = &x.Assignment, x.State
	}
	if a == nil || state != "STATIC" || a.Name != "" || a.MACAddress.ID != 0 || a.Device.ID != 0 || a.Location.ID != 0 {
		return false, nil
	}
	used, err := c.Tx.Referring(id)
	if err != nil || len(used) > 0 {
		return false, err
	}
	return true, c.Following().Delete(row)
}
