package ipam

import (
	"cmp"
	"net/netip"
	"slices"

	"portolan/internal/base/problem"
	"portolan/internal/base/space"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerMoves declares the collection of moves, which are kept as records of the operation. Package dns declares the moves of names.
func registerMoves(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "moves", Estimate: resource.EstimateBelow(true)}, &IPMove{},
		&IPv4AddressMove{}, &IPv4BlockMove{}, &IPv4NetworkMove{}, &IPv6AddressMove{}, &IPv6BlockMove{}, &IPv6NetworkMove{})
}

// IPMove moves an address, or a block or network with its content. It is kept as a record of the operation.
type IPMove struct {
	schema.Head `head:"readOnly" parents:"addresses|blocks|networks" did:"Moved"`
	// Address is the new address; for a block or network, the new first address.
	Address netip.Addr `api:"address,required"`
	// MACAddress is the hardware address of an address after the move. The default is the current one.
	MACAddress schema.Ref `api:"macAddress" ref:"MACAddress"`
	// ServersUpdated notifies the servers.
	ServersUpdated *bool `api:"serversUpdated,writeOnly"`
}

// BeforeWrite sets the name to a description of the move for the history.
func (x *IPMove) BeforeWrite(c *resource.Change) error {
	if !c.IsCreation() {
		return nil
	}
	row, err := c.Tx.Get(x.Parent)
	if err == nil {
		x.Name = moveName(spanText(row), x.Address.String())
	}
	return err
}

// moveName returns the description of a move.
func moveName(from, to string) string { return from + " to " + to }

// AfterWrite moves the resource that the request was sent to.
func (x *IPMove) AfterWrite(c *resource.Change) error {
	if !c.IsCreation() {
		return nil
	}
	row, err := c.Tx.Get(x.Parent)
	if err != nil {
		return err
	}
	return moveTo(c, row, x.Address, x.MACAddress)
}

// moveTo moves an address, or a block or network, to a new first address.
func moveTo(c *resource.Change, row *store.Resource, to netip.Addr, mac schema.Ref) error {
	old := RangeOf(row)
	if to.Is4() != old.Low.Is4() {
		return problem.Invalid("address", "%s is not of the address family of %s", to, old)
	}
	if to == old.Low {
		return problem.Invalid("address", "%s is already the current address", to)
	}
	r := newReshaping(c)
	var err error
	if row.Collection == "addresses" {
		err = r.moveAddress(row, to, mac)
	} else {
		err = r.moveSpace(row, to)
	}
	if err != nil {
		return err
	}
	return r.finish()
}

// moveAddress changes the address of an address resource, which keeps its records.
func (r *reshaping) moveAddress(row *store.Resource, to netip.Addr, mac schema.Ref) error {
	network, err := NetworkOf(r.c.Tx, row.Configuration, to)
	if store.IsNotFound(err) {
		return problem.Field("AddressNotInNetwork", "address", "%s is not in a network of the configuration", to)
	}
	if err != nil {
		return err
	}
	if !Usable(network).Has(to) {
		return nonHostError(to, RangeOf(network))
	}
	if holder, err := AddressAt(r.c.Tx, network.ID, to); err == nil {
		return problem.Conflict("ResourceAlreadyExists", "address: %s is already in use by %s %d", to, holder.Type, holder.ID)
	} else if !store.IsNotFound(err) {
		return err
	}
	_, err = r.change(row, func(o schema.Object) {
		switch a := o.(type) {
		case *IPv4Address:
			if a.State == gateway {
				err = problem.Conflict("CreateUpdateNetworkGatewayNotSupported", "move a gateway by the field gateway of its network")
			}
			a.Address, a.Parent, a.MACAddress = to, network.ID, cmp.Or(mac, a.MACAddress)
		case *IPv6Address:
			a.Address, a.Parent, a.MACAddress = to, network.ID, cmp.Or(mac, a.MACAddress)
		}
	})
	return err
}

// moveSpace moves a block or network with its content by the distance between its old and its new first address.
func (r *reshaping) moveSpace(row *store.Resource, to netip.Addr) error {
	old := RangeOf(row)
	moved, ok := old.MoveTo(to)
	if _, cidr := moved.Prefix(); !ok || !cidr && row.Collection == "networks" {
		return problem.Field("IpRangeOutsideParent", "address", "%s cannot begin at %s", old, to)
	}
	parent, err := r.findHolder(row, moved)
	if err != nil {
		return err
	}
	return r.shift(row, old.Low, to, parent)
}

// findHolder returns the id of the smallest block of the configuration that contains the new range and is not the moved resource itself.
func (r *reshaping) findHolder(row *store.Resource, moved space.Range) (int64, error) {
	at := row.Configuration
	for {
		found, err := r.c.Tx.ListBelow(at, "blocks", store.AddrKey(moved.Low), store.AddrKey(moved.High))
		if err != nil {
			return 0, err
		}
		i := slices.IndexFunc(found, func(b *store.Resource) bool {
			return b.ID != row.ID && RangeOf(b).Contains(moved) && (RangeOf(b) != moved || row.Collection == "networks")
		})
		if i < 0 {
			break
		}
		at = found[i].ID
	}
	if at == row.Configuration && row.Collection == "networks" {
		return 0, problem.Field("IpRangeOutsideParent", "address", "%s is not in a block of the configuration", moved)
	}
	for _, collection := range spacesIn(r.c.Tx).holders {
		other, err := r.c.Tx.FindOverlapping(at, collection, store.AddrKey(moved.Low), store.AddrKey(moved.High), row.ID)
		if err == nil {
			return 0, problem.Field("IpRangeOverlapsSiblings", "address", "%s overlaps %s %s (%d)", moved, other.Type, spanOf(other), other.ID)
		}
		if !store.IsNotFound(err) {
			return 0, err
		}
	}
	return at, nil
}

// shift moves a resource and everything below it by the distance between two addresses.
func (r *reshaping) shift(row *store.Resource, from, to netip.Addr, parent int64) error {
	below, err := readContent(r.c.Tx, row)
	if err != nil {
		return err
	}
	place := func(a netip.Addr) netip.Addr {
		moved, _ := space.Range{Low: a, High: a}.Shift(from, to)
		return moved.Low
	}
	if _, err := r.change(row, func(o schema.Object) {
		if s, ok := o.(spaceObject); ok {
			h := s.spaceHead()
			h.Range.Range, _ = h.Range.Shift(from, to)
			h.Parent = parent
		}
		switch x := o.(type) {
		case *IPv4DHCPRange:
			x.shift(from, to)
			for i, text := range x.ExclusionRanges {
				if r, err := space.Parse(text); err == nil { // BeforeWrite normalized the text
					r, _ = r.Shift(from, to)
					x.ExclusionRanges[i] = r.Dashed()
				}
			}
		case *IPv6DHCPRange:
			x.shift(from, to)
		case *IPv4Group:
			x.shift(from, to)
		case *IPv4Network:
			if x.Gateway.IsValid() {
				x.Gateway = place(x.Gateway)
			}
		case *IPv4Address:
			x.Address, x.internal = place(x.Address), true
		case *IPv6Address:
			x.Address = place(x.Address)
		}
	}); err != nil {
		return err
	}
	// Move the children in the order that avoids an overlap with a sibling that is still in its old place.
	if from.Less(to) {
		slices.Reverse(below)
	}
	for _, child := range below {
		if err := r.shift(child, from, to, row.ID); err != nil {
			return err
		}
	}
	return nil
}
