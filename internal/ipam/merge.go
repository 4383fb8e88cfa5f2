package ipam

import (
	"cmp"
	"net/netip"
	"slices"

	"portolan/internal/problem"
	"portolan/internal/resource"
	"portolan/internal/schema"
	"portolan/internal/space"
	"portolan/internal/store"
)

// registerMerges declares the collections of merges and moves, which say what was done.
func registerMerges(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "merges"}, &IPv4BlockMerge{}, &IPv4DHCPRangeMerge{}, &IPv4NetworkMerge{})
	r.Collection(resource.Collection{Name: "moves"}, &IPMove{})
}

// IPv4BlockMerge is the merging of blocks into one, and the record of it.
type IPv4BlockMerge struct {
	schema.Head `head:"readOnly" parents:"configurations|blocks"`
	// Blocks are the blocks that go up in the destination: its siblings, or blocks right below it.
	Blocks schema.RefList `api:"blocks,required,writeOnly,createOnly" ref:"IPv4Block" min:"1"`
	// Destination is the block that is left.
	Destination schema.Ref `api:"destination,required" ref:"IPv4Block"`
}

// AfterWrite merges the blocks.
func (x *IPv4BlockMerge) AfterWrite(c *resource.Change) error {
	if !c.Creates() {
		return nil
	}
	return mergeInto(c, x.Destination, x.Blocks, "blocks", x.Parent, x.ID)
}

// IPv4NetworkMerge is the merging of networks into one, and the record of it.
type IPv4NetworkMerge struct {
	schema.Head `head:"readOnly" parents:"blocks|networks"`
	// Networks are the networks that go up in the destination, beside it.
	Networks schema.RefList `api:"networks,required,writeOnly,createOnly" ref:"IPv4Network" min:"1"`
	// Destination is the network that is left. It keeps its gateway; those of the others become
	// addresses in the state STATIC.
	Destination schema.Ref `api:"destination,required" ref:"IPv4Network"`
}

// AfterWrite merges the networks.
func (x *IPv4NetworkMerge) AfterWrite(c *resource.Change) error {
	if !c.Creates() {
		return nil
	}
	return mergeInto(c, x.Destination, x.Networks, "networks", x.Parent, x.ID)
}

// mergeInto merges resources of one collection into the destination.
func mergeInto(c *resource.Change, to schema.Ref, from schema.RefList, collection string, below, record int64) error {
	destination, err := c.Tx.Get(to.ID)
	if err != nil {
		return err
	}
	if _, err := subject(c, "destination", to, destination.Type, below); err != nil {
		return err
	}
	var others []*store.Resource
	for _, item := range from.Items {
		if item.ID == to.ID || slices.ContainsFunc(others, func(r *store.Resource) bool { return r.ID == item.ID }) {
			continue
		}
		row, err := c.Tx.Get(item.ID)
		if err != nil {
			return err
		}
		if row.Parent != destination.Parent && (row.Parent != destination.ID || collection != "blocks") {
			return problem.Invalid(collection, "%s %d, %s, does not lie beside %s %d", row.Type, row.ID, spanOf(row), destination.Type,
				destination.ID)
		}
		others = append(others, row)
	}
	if len(others) == 0 {
		return problem.Invalid(collection, "there is nothing to merge into %s %d", destination.Type, destination.ID)
	}
	whole, err := union(destination, others, collection)
	if err != nil {
		return err
	}
	r := reshape(c)
	for _, other := range others {
		if err := r.absorb(other, destination.ID); err != nil {
			return err
		}
	}
	if whole != rangeOf(destination) {
		if _, err := r.resize(destination, whole); err != nil {
			return err
		}
	}
	if err := r.finish(); err != nil {
		return err
	}
	return linkParts(c, record, collection, []*store.Resource{destination})
}

// union is the space of all of them, which must be one piece, and for networks CIDR.
func union(destination *store.Resource, others []*store.Resource, collection string) (whole space.Range, err error) {
	all := []space.Range{rangeOf(destination)}
	for _, other := range others {
		if other.Parent == destination.Parent {
			all = append(all, rangeOf(other))
		}
	}
	slices.SortFunc(all, func(a, b space.Range) int { return a.Low.Compare(b.Low) })
	whole = all[0]
	for _, next := range all[1:] {
		if whole.High.Next() != next.Low {
			return whole, problem.Conflict("RangesNotAdjacent", "%s: there is space between %s and %s", collection, whole.High, next.Low)
		}
		whole.High = next.High
	}
	if _, ok := whole.Prefix(); !ok && collection == "networks" {
		return whole, problem.Conflict("RangesNotAdjacent", "networks: together they are %s, which is not a CIDR network", whole)
	}
	return whole, nil
}

// absorb puts what lies in a block or network into another one and deletes it.
func (r *reshaping) absorb(row *store.Resource, into int64) error {
	below, err := content(r.c.Tx, row)
	if err != nil {
		return err
	}
	var plain []*store.Resource
	for _, child := range below {
		if child.Type != "IPv4Address" {
			plain = append(plain, child)
			continue
		}
		o, err := r.c.API.Object(child)
		if err != nil {
			return err
		}
		if a, ok := o.(*IPv4Address); !ok || a.State != gateway {
			plain = append(plain, child)
			continue
		}
		// A router that is there stays known.
		if _, err := r.change(child, func(o schema.Object) {
			a := o.(*IPv4Address)
			a.State, a.Parent, a.internal = "STATIC", into, true
		}); err != nil {
			return err
		}
	}
	for _, collection := range spacesIn(r.c.Tx).all {
		some := slices.DeleteFunc(slices.Clone(plain), func(child *store.Resource) bool { return child.Collection != collection })
		if err := r.reparent(some, into); err != nil {
			return err
		}
	}
	left, err := r.c.Tx.Children(row.ID)
	if err != nil {
		return err
	}
	for _, id := range left { // records of what was done to it
		child, err := r.c.Tx.Get(id)
		if err != nil {
			return err
		}
		if err := r.c.Delete(child); err != nil {
			return err
		}
	}
	return r.deleteWithoutRelease(row)
}

// IPMove is the moving of an address, or of a block or network with all in it, and the record of it.
type IPMove struct {
	schema.Head `head:"readOnly" parents:"addresses|blocks|networks"`
	// Address is where it is moved to: for a block or network, its first address from then on.
	Address netip.Addr `api:"address,required"`
	// MACAddress is the hardware address that an address has at the new place; where it is not given,
	// the one that it had.
	MACAddress schema.Ref `api:"macAddress" ref:"MACAddress"`
	// ServersUpdated says whether servers are told.
	ServersUpdated *bool `api:"serversUpdated,writeOnly"`
}

// AfterWrite moves the resource that the request was sent below.
func (x *IPMove) AfterWrite(c *resource.Change) error {
	if !c.Creates() {
		return nil
	}
	row, err := c.Tx.Get(x.Parent)
	if err != nil {
		return err
	}
	old := rangeOf(row)
	if x.Address.Is4() != old.Low.Is4() {
		return problem.Invalid("address", "%s is not of the address family of %s", x.Address, old)
	}
	if x.Address == old.Low {
		return problem.Invalid("address", "%s is where it is already", x.Address)
	}
	r := reshape(c)
	if row.Collection == "addresses" {
		err = r.moveAddress(row, x.Address, x.MACAddress)
	} else {
		err = r.moveSpace(row, x.Address)
	}
	if err != nil {
		return err
	}
	return r.finish()
}

// moveAddress gives an address resource, with its records and all, another address.
func (r *reshaping) moveAddress(row *store.Resource, to netip.Addr, mac schema.Ref) error {
	network, err := NetworkOf(r.c.Tx, row.Configuration, to)
	if store.IsNotFound(err) {
		return problem.Conflict("AddressOutsideNetwork", "address: %s lies in no network of the configuration", to)
	}
	if err != nil {
		return err
	}
	if !Usable(network).Has(to) {
		return problem.Conflict("AddressNotUsable", "address: %s is the network or broadcast address of %s", to, spanOf(network))
	}
	if holder, err := AddressAt(r.c.Tx, network.ID, to); err == nil {
		return problem.Conflict("ResourceAlreadyExists", "address: %s is in use: %s %d", to, holder.Type, holder.ID)
	} else if !store.IsNotFound(err) {
		return err
	}
	_, err = r.change(row, func(o schema.Object) {
		switch a := o.(type) {
		case *IPv4Address:
			if a.State == gateway {
				err = problem.Conflict("GatewayState", "a gateway is moved by the field gateway of its network")
			}
			a.Address, a.Parent, a.MACAddress = to, network.ID, cmp.Or(mac, a.MACAddress)
		case *IPv6Address:
			a.Address, a.Parent, a.MACAddress = to, network.ID, cmp.Or(mac, a.MACAddress)
		}
	})
	return err
}

// moveSpace moves a block or network, with all in it, by as much as its first address moves.
func (r *reshaping) moveSpace(row *store.Resource, to netip.Addr) error {
	old := rangeOf(row)
	moved, ok := old.At(to)
	if _, cidr := moved.Prefix(); !ok || !cidr && row.Collection == "networks" {
		return problem.Conflict("RangeOutsideParent", "address: %s cannot begin at %s", old, to)
	}
	parent, err := r.holder(row, moved)
	if err != nil {
		return err
	}
	return r.shift(row, old.Low, to, parent)
}

// holder finds the smallest block of the configuration that holds a range and is not moved itself.
func (r *reshaping) holder(row *store.Resource, moved space.Range) (int64, error) {
	at := row.Configuration
	for {
		found, err := r.c.Tx.Below(at, "blocks", store.AddrKey(moved.Low), store.AddrKey(moved.High))
		if err != nil {
			return 0, err
		}
		i := slices.IndexFunc(found, func(b *store.Resource) bool {
			return b.ID != row.ID && rangeOf(b).Contains(moved) && (rangeOf(b) != moved || row.Collection == "networks")
		})
		if i < 0 {
			break
		}
		at = found[i].ID
	}
	if at == row.Configuration && row.Collection == "networks" {
		return 0, problem.Conflict("RangeOutsideParent", "address: %s lies in no block of the configuration", moved)
	}
	for _, collection := range spacesIn(r.c.Tx).holders {
		other, err := r.c.Tx.Overlapping(at, collection, store.AddrKey(moved.Low), store.AddrKey(moved.High), row.ID)
		if err == nil {
			return 0, problem.Conflict("RangeOverlap", "address: %s overlaps %s %d, %s", moved, other.Type, other.ID, spanOf(other))
		}
		if !store.IsNotFound(err) {
			return 0, err
		}
	}
	return at, nil
}

// shift moves a resource and all below it from one place to another.
func (r *reshaping) shift(row *store.Resource, from, to netip.Addr, parent int64) error {
	below, err := content(r.c.Tx, row)
	if err != nil {
		return err
	}
	place := func(a netip.Addr) netip.Addr {
		moved, _ := space.Range{Low: a, High: a}.Shift(from, to)
		return moved.Low
	}
	if _, err := r.change(row, func(o schema.Object) {
		if s, ok := o.(shaper); ok {
			h := s.shape()
			h.Range.Range, _ = h.Range.Shift(from, to)
			h.Parent = parent
		}
		switch x := o.(type) {
		case *IPv4DHCPRange:
			x.shift(from, to)
			for i, text := range x.ExclusionRanges {
				if r, err := space.Parse(text); err == nil { // as BeforeWrite wrote it
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
	// In the order that lets nothing meet what has not moved yet.
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
