package ipam

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"portolan/internal/base/problem"
	"portolan/internal/base/space"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// reshaping is a change of address space that affects several resources. Their rows are written without the placement rules, and free space
// is updated once at the end.
type reshaping struct {
	c         *resource.Change
	moves     []resource.Respan
	moveIndex map[int64]int // index into moves, by resource id
}

func newReshaping(c *resource.Change) *reshaping { return &reshaping{c: c, moveIndex: map[int64]int{}} }

// note records the old and the new state of a resource.
func (r *reshaping) note(before, after *store.Resource) {
	one := before
	if one == nil {
		one = after
	}
	id := one.ID
	if i, ok := r.moveIndex[id]; ok {
		r.moves[i].After = after
		return
	}
	r.moveIndex[id] = len(r.moves)
	r.moves = append(r.moves, resource.Respan{Before: before, After: after})
}

// change writes a resource without the placement rules.
func (r *reshaping) change(row *store.Resource, change func(o schema.Object)) (*store.Resource, error) {
	after, err := r.c.Following().Change(row, func(o schema.Object) {
		if s, ok := o.(spaceObject); ok {
			s.spaceHead().reshaped = true
		}
		change(o)
	})
	if err == nil {
		r.note(row, after)
	}
	return after, err
}

// spaceObject is a block or a network.
type spaceObject interface{ spaceHead() *SpaceHead }

func (x *SpaceHead) spaceHead() *SpaceHead { return x }

// resize changes the range of a block or network.
func (r *reshaping) resize(row *store.Resource, to space.Range) (*store.Resource, error) {
	return r.change(row, func(o schema.Object) {
		if s, ok := o.(spaceObject); ok {
			s.spaceHead().Range = schema.Range{Range: to}
		}
	})
}

// create creates a block or network with the policy of another one and its own range.
func (r *reshaping) create(like *store.Resource, to space.Range, name string) (*store.Resource, error) {
	t, ok := r.c.API.Type(like.Type)
	if !ok {
		return nil, fmt.Errorf("unknown type %s", like.Type)
	}
	o, err := r.c.API.Object(like)
	if err != nil {
		return nil, err
	}
	s, ok := o.(spaceObject)
	if !ok {
		return nil, fmt.Errorf("%s does not use address space", like.Type)
	}
	s.spaceHead().reshaped, s.spaceHead().Range = true, schema.Range{Range: to}
	h := schema.HeadOf(o)
	h.ID, h.Name = 0, name
	row, err := r.c.Following().Create(t, o)
	if err != nil {
		return nil, err
	}
	r.note(nil, row)
	if err := r.c.CopyOnSplit(like.ID, row.ID); err != nil {
		return nil, err
	}
	if err := r.c.Tx.LoadLinks(like); err != nil {
		return nil, err
	}
	for _, link := range like.Links {
		if !slices.Contains(shared, link.Field) {
			continue
		}
		if err := r.c.Link(row, link.Field, link.Target); err != nil {
			return nil, err
		}
		if row, err = r.c.Tx.Get(row.ID); err != nil {
			return nil, err
		}
	}
	return row, nil
}

// shared lists the links that are copied to a part of a block or network.
var shared = []string{"defaultZones", "restrictedZones", "tags"}

// reparent changes the parent of resources.
func (r *reshaping) reparent(rows []*store.Resource, parent int64) error {
	after, err := r.c.Tx.Reparent(rows, parent)
	if err != nil {
		return err
	}
	for i := range rows {
		r.note(rows[i], after[i])
	}
	return nil
}

// deleteWithoutRelease deletes a block or network whose content was moved to another one.
func (r *reshaping) deleteWithoutRelease(row *store.Resource) error {
	if err := r.c.Dissolve(row); err != nil {
		return err
	}
	r.note(row, nil)
	return nil
}

// finish updates free space.
func (r *reshaping) finish() error {
	blocked, err := reallocate(r.c.Tx, r.moves)
	if blocked != nil {
		return problem.Field("IpRangeOverlapsSiblings", "range", "the space of %s %s (%d) is not free in its new parent", blocked.Type,
			spanOf(blocked), blocked.ID)
	}
	if errors.Is(err, space.ErrNotFree) {
		return problem.Field("IpRangeOverlapsSiblings", "range", "the space is not free")
	}
	return err
}

// conflictError returns an error, created by problem.Conflict or problem.BadRequest, that lists resources.
func conflictError(refuse func(code, format string, args ...any) *problem.Problem, code, sentence string, rows []*store.Resource) error {
	var list problem.Resources
	for _, r := range rows {
		list = append(list, problem.Describe(r.ID, fmt.Sprintf("%s %d, %s", r.Type, r.ID, spanText(r))))
	}
	return refuse(code, "%s: %s", sentence, list)
}

// spanText returns the range of a resource as text. For an address resource this is the address.
func spanText(r *store.Resource) string {
	if string(r.Low) == string(r.High) && r.Collection == "addresses" {
		return store.KeyAddr(r.Low).String()
	}
	return spanOf(r)
}

// readContent returns the resources right below a block or network that use or cover its space.
func readContent(tx *store.Tx, parent *store.Resource) (all []*store.Resource, err error) {
	for _, collection := range spacesIn(tx).all {
		found, err := tx.ListBelow(parent.ID, collection, parent.Low, parent.High)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// RangeOf returns the range of a resource.
func RangeOf(r *store.Resource) space.Range {
	return space.Range{Low: store.KeyAddr(r.Low), High: store.KeyAddr(r.High)}
}

// checkResize checks the new range of an existing block or network: it must be within the parent, not overlap siblings, and contain all
// children. AfterWrite updates free space.
func checkResize(c *resource.Change, h *schema.Head, r *schema.Range, network bool) error {
	old := RangeOf(c.Row)
	if r.SizeOnly {
		p := netip.PrefixFrom(old.Low, r.Bits)
		if !p.IsValid() {
			return problem.Invalid("range", "/%d is not a valid prefix length", r.Bits)
		}
		*r = schema.Range{Range: space.FromPrefix(p.Masked())}
	}
	if r.Range == old {
		return nil
	}
	if r.Low.Is4() != old.Low.Is4() {
		return problem.Invalid("range", "%s is not of the address family of %s", r, old)
	}
	if _, ok := r.Prefix(); network && !ok {
		return problem.Invalid("range", "%s is not a CIDR network", r)
	}
	parent, err := c.Tx.Get(h.Parent)
	if err != nil {
		return err
	}
	if parent.Collection == "blocks" && !RangeOf(parent).Contains(r.Range) {
		return problem.Field("IpRangeOutsideParent", "range", "%s is not within %s %s (%d)", r, parent.Type, spanOf(parent), parent.ID)
	}
	low, high := store.AddrKey(r.Low), store.AddrKey(r.High)
	for _, collection := range spacesIn(c.Tx).holders {
		other, err := c.Tx.FindOverlapping(h.Parent, collection, low, high, h.ID)
		if err == nil {
			return problem.Field("IpRangeOverlapsSiblings", "range", "%s overlaps %s %s (%d)", r, other.Type, spanOf(other), other.ID)
		}
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	below, err := readContent(c.Tx, c.Row)
	if err != nil {
		return err
	}
	within := r.Range
	if network {
		within = space.Hosts(within)
	}
	var outside []*store.Resource
	for _, child := range below {
		if !within.Contains(RangeOf(child)) {
			outside = append(outside, child)
		}
	}
	if len(outside) > 0 {
		return conflictError(problem.BadRequest, "IpRangeExcludesAssignedAddresses",
			fmt.Sprintf("range: these resources would be outside %s", r), outside)
	}
	return nil
}

// reallocateResized updates free space after a block or network was resized.
func reallocateResized(c *resource.Change, id int64) error {
	after, err := c.Tx.Get(id)
	if err != nil {
		return err
	}
	r := newReshaping(c)
	r.note(c.Row, after)
	return r.finish()
}

// siblingsWithin returns the siblings that become children of a new block; none if its space is free. The block must contain them entirely.
func siblingsWithin(c *resource.Change, h *schema.Head, r space.Range) (inside []*store.Resource, err error) {
	for _, collection := range spacesIn(c.Tx).holders {
		found, err := c.Tx.ListBelow(h.Parent, collection, store.AddrKey(r.Low), store.AddrKey(r.High))
		if err != nil {
			return nil, err
		}
		for _, other := range found {
			if !r.Contains(RangeOf(other)) || RangeOf(other) == r && collection == "blocks" {
				return nil, problem.Field("IpRangeOverlapsSiblings", "range", "%s overlaps %s %s (%d)", r, other.Type, spanOf(other), other.ID)
			}
		}
		inside = append(inside, found...)
	}
	return inside, nil
}

// reparentSiblings makes the siblings children of the new block, which is created afterwards.
func (x *SpaceHead) reparentSiblings(c *resource.Change, inside []*store.Resource) (err error) {
	if x.ID, err = c.Tx.NewID(); err != nil {
		return err
	}
	x.adopting = newReshaping(c)
	return x.adopting.reparent(inside, x.ID)
}

// adoptSiblings updates free space after a block was created around siblings.
func (x *SpaceHead) adoptSiblings(c *resource.Change) error {
	row, err := c.Tx.Get(x.ID)
	if err != nil {
		return err
	}
	x.adopting.note(nil, row)
	return x.adopting.finish()
}
