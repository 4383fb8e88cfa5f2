package ipam

import (
	"errors"
	"net/netip"

	"portolan/internal/base/problem"
	"portolan/internal/base/space"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// Release 9.6 has a separate move type for each resource type. The destination is the new address or range.

// AddressMove has the common fields of moves of addresses.
type AddressMove struct {
	// Destination is the new address.
	Destination *AddressPlace `api:"destination,post,createOnly"`
	// Source is the old address.
	Source *AddressPlace `api:"source,readOnly"`
}

// AddressPlace is the place of an address.
type AddressPlace struct {
	// Address is the address.
	Address netip.Addr `api:"address,required"`
}

// SpaceMove has the common fields of moves of blocks and networks.
type SpaceMove struct {
	// Destination is the new range, which must have the same size.
	Destination *SpacePlace `api:"destination,post,createOnly"`
	// Source is the old range.
	Source *SpacePlace `api:"source,readOnly"`
}

// SpacePlace is the place of a block or network.
type SpacePlace struct {
	// Range is the range.
	Range string `api:"range,required"`
}

// IPv4AddressMove moves an IPv4 address. It is kept as a record of the operation.
type IPv4AddressMove struct {
	schema.Head `head:"readOnly" parents:"addresses" later:"9.6" did:"Moved IPv4Address"`
	schema.Recorded
	AddressMove
}

// IPv6AddressMove moves an IPv6 address. It is kept as a record of the operation.
type IPv6AddressMove struct {
	schema.Head `head:"readOnly" parents:"addresses" later:"9.6" did:"Moved IPv6Address"`
	schema.Recorded
	AddressMove
}

// IPv4BlockMove moves an IPv4 block with its content. It is kept as a record of the operation.
type IPv4BlockMove struct {
	schema.Head `head:"readOnly" parents:"blocks" later:"9.6" did:"Moved IPv4Block"`
	schema.Recorded
	SpaceMove
}

// IPv6BlockMove moves an IPv6 block with its content. It is kept as a record of the operation.
type IPv6BlockMove struct {
	schema.Head `head:"readOnly" parents:"blocks" later:"9.6" did:"Moved IPv6Block"`
	schema.Recorded
	SpaceMove
}

// IPv4NetworkMove moves an IPv4 network with its content. It is kept as a record of the operation.
type IPv4NetworkMove struct {
	schema.Head `head:"readOnly" parents:"networks" later:"9.6" did:"Moved IPv4Network"`
	schema.Recorded
	SpaceMove
}

// IPv6NetworkMove moves an IPv6 network with its content. It is kept as a record of the operation.
type IPv6NetworkMove struct {
	schema.Head `head:"readOnly" parents:"networks" later:"9.6" did:"Moved IPv6Network"`
	schema.Recorded
	SpaceMove
}

// subjectOfMove returns the resource to move. Its type must match the type of the move.
func subjectOfMove(c *resource.Change) (*store.Resource, error) {
	h := schema.HeadOf(c.New)
	row, err := c.Tx.Get(h.Parent)
	if err == nil && row.Type+"Move" != h.Type {
		err = problem.Invalid("type", "a %s requires a %sMove", row.Type, row.Type)
	}
	return row, err
}

// BeforeWrite records the old address.
func (x *AddressMove) BeforeWrite(c *resource.Change) error {
	if !c.IsCreation() {
		return nil
	}
	row, err := subjectOfMove(c)
	if err != nil {
		return err
	}
	x.Source = &AddressPlace{Address: RangeOf(row).Low}
	schema.HeadOf(c.New).Name = moveName(x.Source.Address.String(), x.Destination.Address.String())
	return nil
}

// AfterWrite moves the address that the request was sent to.
func (x *AddressMove) AfterWrite(c *resource.Change) error {
	if !c.IsCreation() {
		return nil
	}
	row, err := subjectOfMove(c)
	if err != nil {
		return err
	}
	return withField("destination", moveTo(c, row, x.Destination.Address, schema.Ref{}))
}

// BeforeWrite records the old range and rejects a destination of another size.
func (x *SpaceMove) BeforeWrite(c *resource.Change) error {
	if !c.IsCreation() {
		return nil
	}
	row, err := subjectOfMove(c)
	if err != nil {
		return err
	}
	old := RangeOf(row)
	x.Source = &SpacePlace{Range: old.String()}
	to, err := space.Parse(x.Destination.Range)
	if err != nil {
		return problem.Invalid("destination.range", "%v", err)
	}
	if same, ok := old.MoveTo(to.Low); !ok || same != to {
		return problem.Field("InvalidMoveDestination", "destination.range", "%s and %s differ in size", to, old)
	}
	x.Destination.Range = to.String()
	schema.HeadOf(c.New).Name = moveName(x.Source.Range, x.Destination.Range)
	return nil
}

// AfterWrite moves the block or network that the request was sent to.
func (x *SpaceMove) AfterWrite(c *resource.Change) error {
	if !c.IsCreation() {
		return nil
	}
	row, err := subjectOfMove(c)
	if err != nil {
		return err
	}
	to, err := space.Parse(x.Destination.Range)
	if err != nil {
		return err
	}
	return withField("destination", moveTo(c, row, to.Low, schema.Ref{}))
}

// withField sets the field of a client error.
func withField(field string, err error) error {
	var p *problem.Problem
	if errors.As(err, &p) && p.Status < 500 {
		p.Fields = []string{field}
	}
	return err
}
