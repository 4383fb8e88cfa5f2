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

// Release 9.6 has a type of move for each type of what is moved. It says where to by the address or range that it has there.

// AddressMove is what moves of addresses say.
type AddressMove struct {
	// Destination is the address that it has then.
	Destination *AddressPlace `api:"destination,post,createOnly"`
	// Source is the address that it had before.
	Source *AddressPlace `api:"source,readOnly"`
}

// AddressPlace is where an address is.
type AddressPlace struct {
	// Address is the address.
	Address netip.Addr `api:"address,required"`
}

// SpaceMove is what moves of blocks and networks say.
type SpaceMove struct {
	// Destination is the range that it has then, as large as before.
	Destination *SpacePlace `api:"destination,post,createOnly"`
	// Source is the range that it had before.
	Source *SpacePlace `api:"source,readOnly"`
}

// SpacePlace is where a block or network is.
type SpacePlace struct {
	// Range is the range.
	Range string `api:"range,required"`
}

// IPv4AddressMove is the moving of an IPv4 address, and the record of it.
type IPv4AddressMove struct {
	schema.Head `head:"readOnly" parents:"addresses" later:"9.6" did:"Moved IPv4Address"`
	schema.Recorded
	AddressMove
}

// IPv6AddressMove is the moving of an IPv6 address, and the record of it.
type IPv6AddressMove struct {
	schema.Head `head:"readOnly" parents:"addresses" later:"9.6" did:"Moved IPv6Address"`
	schema.Recorded
	AddressMove
}

// IPv4BlockMove is the moving of an IPv4 block with all in it, and the record of it.
type IPv4BlockMove struct {
	schema.Head `head:"readOnly" parents:"blocks" later:"9.6" did:"Moved IPv4Block"`
	schema.Recorded
	SpaceMove
}

// IPv6BlockMove is the moving of an IPv6 block with all in it, and the record of it.
type IPv6BlockMove struct {
	schema.Head `head:"readOnly" parents:"blocks" later:"9.6" did:"Moved IPv6Block"`
	schema.Recorded
	SpaceMove
}

// IPv4NetworkMove is the moving of an IPv4 network with all in it, and the record of it.
type IPv4NetworkMove struct {
	schema.Head `head:"readOnly" parents:"networks" later:"9.6" did:"Moved IPv4Network"`
	schema.Recorded
	SpaceMove
}

// IPv6NetworkMove is the moving of an IPv6 network with all in it, and the record of it.
type IPv6NetworkMove struct {
	schema.Head `head:"readOnly" parents:"networks" later:"9.6" did:"Moved IPv6Network"`
	schema.Recorded
	SpaceMove
}

// movedRow gives the resource that a move is about, which is of the type that the move is named after.
func subjectOfMove(c *resource.Change) (*store.Resource, error) {
	h := schema.HeadOf(c.New)
	row, err := c.Tx.Get(h.Parent)
	if err == nil && row.Type+"Move" != h.Type {
		err = problem.Invalid("type", "a %s is moved by a %sMove", row.Type, row.Type)
	}
	return row, err
}

// BeforeWrite notes where the address was.
func (x *AddressMove) BeforeWrite(c *resource.Change) error {
	if !c.Creates() {
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

// AfterWrite moves the address that the request was sent below.
func (x *AddressMove) AfterWrite(c *resource.Change) error {
	if !c.Creates() {
		return nil
	}
	row, err := subjectOfMove(c)
	if err != nil {
		return err
	}
	return withField("destination", moveTo(c, row, x.Destination.Address, schema.Ref{}))
}

// BeforeWrite notes where the block or network was, and refuses a destination of another size.
func (x *SpaceMove) BeforeWrite(c *resource.Change) error {
	if !c.Creates() {
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
	if same, ok := old.At(to.Low); !ok || same != to {
		return problem.Field("InvalidMoveDestination", "destination.range", "%s is not as large as %s", to, old)
	}
	x.Destination.Range = to.String()
	schema.HeadOf(c.New).Name = moveName(x.Source.Range, x.Destination.Range)
	return nil
}

// AfterWrite moves the block or network that the request was sent below.
func (x *SpaceMove) AfterWrite(c *resource.Change) error {
	if !c.Creates() {
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

// within says that what a problem names is a part of a field.
func withField(field string, err error) error {
	var p *problem.Problem
	if errors.As(err, &p) && p.Status < 500 {
		p.Fields = []string{field}
	}
	return err
}
