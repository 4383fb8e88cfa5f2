package ipam

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/base/space"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerMerges declares the collection of merges, which are kept as records of the operation.
func registerMerges(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "merges", Estimate: resource.EstimateBelow(false, "blocks", "networks", "ranges")},
		&IPv4BlockMerge{}, &IPv4DHCPRangeMerge{}, &IPv4NetworkMerge{})
}

// IPv4BlockMerge merges blocks into one. It is kept as a record of the operation.
type IPv4BlockMerge struct {
	schema.Head `head:"readOnly" parents:"configurations|blocks" did:"Merged IPv4Block"`
	schema.Recorded
	// Blocks are the blocks that are merged into the destination: its siblings, or blocks right below it.
	Blocks schema.RefList `api:"blocks,required,writeOnly,createOnly" ref:"IPv4Block" min:"1"`
	// Destination is the block that remains.
	Destination schema.Ref `api:"destination,required" ref:"IPv4Block"`
}

// BeforeWrite sets the name to a description of the merge for the history.
func (x *IPv4BlockMerge) BeforeWrite(c *resource.Change) (err error) {
	x.Name, err = mergeName(c.Tx, x.Blocks, x.Destination)
	return err
}

// AfterWrite merges the blocks.
func (x *IPv4BlockMerge) AfterWrite(c *resource.Change) error {
	if !c.IsCreation() {
		return nil
	}
	return mergeInto(c, x.Destination, x.Blocks, "blocks", x.Parent, x.ID)
}

// IPv4NetworkMerge merges networks into one. It is kept as a record of the operation.
type IPv4NetworkMerge struct {
	schema.Head `head:"readOnly" parents:"blocks|networks" did:"Merged IPv4Network"`
	schema.Recorded
	// Networks are the siblings that are merged into the destination.
	Networks schema.RefList `api:"networks,required,writeOnly,createOnly" ref:"IPv4Network" min:"1"`
	// Destination is the network that remains. It keeps its gateway. The gateways of the other networks become STATIC addresses.
	Destination schema.Ref `api:"destination,required" ref:"IPv4Network"`
}

// BeforeWrite sets the name to a description of the merge for the history.
func (x *IPv4NetworkMerge) BeforeWrite(c *resource.Change) (err error) {
	x.Name, err = mergeName(c.Tx, x.Networks, x.Destination)
	return err
}

// AfterWrite merges the networks.
func (x *IPv4NetworkMerge) AfterWrite(c *resource.Change) error {
	if !c.IsCreation() {
		return nil
	}
	return mergeInto(c, x.Destination, x.Networks, "networks", x.Parent, x.ID)
}

// mergeName describes the merge by the ranges. It lists at most three sources.
func mergeName(tx *store.Tx, from schema.RefList, to schema.Ref) (string, error) {
	const named = 3
	ids := []int64{}
	for _, item := range from.Items[:min(len(from.Items), named)] {
		ids = append(ids, item.ID)
	}
	var ranges []string
	for _, id := range append(ids, to.ID) {
		row, err := tx.Get(id)
		if errors.Is(err, store.ErrNotFound) { // AfterWrite rejects the reference with its field name
			return "", nil
		}
		if err != nil {
			return "", err
		}
		ranges = append(ranges, spanOf(row))
	}
	others, into := ranges[:len(ranges)-1], ranges[len(ranges)-1]
	if more := len(from.Items) - len(others); more > 0 {
		return fmt.Sprintf("%s and %d more into %s", strings.Join(others, ", "), more, into), nil
	}
	return strings.Join(others, ", ") + " into " + into, nil
}

// mergeInto merges resources of one collection into the destination.
func mergeInto(c *resource.Change, to schema.Ref, from schema.RefList, collection string, below, record int64) error {
	destination, err := c.Tx.Get(to.ID)
	if err != nil {
		return err
	}
	if _, err := findSubject(c, "destination", to, destination.Type, below); err != nil {
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
			return problem.Invalid(collection, "%s %s (%d) is not adjacent to %s %s (%d)", row.Type, spanOf(row), row.ID,
				destination.Type, spanOf(destination), destination.ID)
		}
		others = append(others, row)
	}
	if len(others) == 0 {
		return problem.Invalid(collection, "nothing to merge into %s %d", destination.Type, destination.ID)
	}
	whole, err := union(destination, others, collection)
	if err != nil {
		return err
	}
	r := newReshaping(c)
	for _, other := range others {
		if err := r.absorb(other, destination.ID); err != nil {
			return err
		}
	}
	if whole != RangeOf(destination) {
		if _, err := r.resize(destination, whole); err != nil {
			return err
		}
	}
	if err := r.finish(); err != nil {
		return err
	}
	return linkParts(c, record, collection, []*store.Resource{destination})
}

// union returns the joined range of the siblings, which must be contiguous, and for networks a CIDR network.
func union(destination *store.Resource, others []*store.Resource, collection string) (whole space.Range, err error) {
	all := []space.Range{RangeOf(destination)}
	for _, other := range others {
		if other.Parent == destination.Parent {
			all = append(all, RangeOf(other))
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
		return whole, problem.Conflict("RangesNotAdjacent", "networks: the merged range %s is not a CIDR network", whole)
	}
	return whole, nil
}

// absorb moves the content of a block or network into another one and deletes it.
func (r *reshaping) absorb(row *store.Resource, into int64) error {
	below, err := readContent(r.c.Tx, row)
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
		// Keep the address of the former gateway as a static address.
		if _, err := r.change(child, func(o schema.Object) {
			a := o.(*IPv4Address)
			a.State, a.Parent, a.internal = "STATIC", into, true
		}); err != nil {
			return err
		}
	}
	for _, collection := range spacesIn(r.c.Tx).all {
		kind := slices.DeleteFunc(slices.Clone(plain), func(child *store.Resource) bool { return child.Collection != collection })
		if err := r.reparent(kind, into); err != nil {
			return err
		}
	}
	left, err := r.c.Tx.Children(row.ID)
	if err != nil {
		return err
	}
	for _, id := range left { // records of earlier operations on it
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

// IPv4DHCPRangeMerge merges DHCP ranges into one. It is kept as a record of the operation.
type IPv4DHCPRangeMerge struct {
	schema.Head `head:"readOnly" parents:"networks" did:"Merged IPv4DHCPRange"`
	schema.Recorded
	// Ranges are the siblings that are merged into the destination.
	Ranges schema.RefList `api:"ranges,required,writeOnly,createOnly" ref:"IPv4DHCPRange" min:"1"`
	// Destination is the range that remains.
	Destination schema.Ref `api:"destination,required" ref:"IPv4DHCPRange"`
}

// BeforeWrite sets the name to a description of the merge for the history.
func (x *IPv4DHCPRangeMerge) BeforeWrite(c *resource.Change) (err error) {
	x.Name, err = mergeName(c.Tx, x.Ranges, x.Destination)
	return err
}

// AfterWrite merges the ranges.
func (x *IPv4DHCPRangeMerge) AfterWrite(c *resource.Change) error {
	if !c.IsCreation() {
		return nil
	}
	destination, err := findSubject(c, "destination", x.Destination, "IPv4DHCPRange", x.Parent)
	if err != nil {
		return err
	}
	var others []*store.Resource
	var excluded []string
	for _, item := range x.Ranges.Items {
		if item.ID == destination.ID || slices.ContainsFunc(others, func(r *store.Resource) bool { return r.ID == item.ID }) {
			continue
		}
		row, err := findSubject(c, "ranges", schema.Ref{ID: item.ID}, "IPv4DHCPRange", x.Parent)
		if err != nil {
			return err
		}
		o, err := c.API.Object(row)
		if err != nil {
			return err
		}
		if r, ok := o.(*IPv4DHCPRange); ok {
			excluded = append(excluded, r.ExclusionRanges...)
		}
		others = append(others, row)
	}
	if len(others) == 0 {
		return problem.Invalid("ranges", "nothing to merge into %s %d", destination.Type, destination.ID)
	}
	whole, err := union(destination, others, "ranges")
	if err != nil {
		return err
	}
	for _, other := range others {
		if err := c.Delete(other); err != nil {
			return err
		}
	}
	after, err := c.Following("range").Change(destination, func(o schema.Object) {
		r := o.(*IPv4DHCPRange)
		r.Range.Range = whole
		r.ExclusionRanges = append(r.ExclusionRanges, excluded...)
		slices.SortFunc(r.ExclusionRanges, func(a, b string) int { return exclusionLow(a).Compare(exclusionLow(b)) })
	})
	if err != nil {
		return err
	}
	return linkParts(c, x.ID, "ranges", []*store.Resource{after})
}
