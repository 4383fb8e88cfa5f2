package ipam

import (
	"fmt"
	"math/bits"
	"net/netip"
	"slices"

	"portolan/internal/base/problem"
	"portolan/internal/base/space"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerSplits declares the collection of splits, which are kept as records of the operation and link to the resulting parts.
func registerSplits(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "splits", Estimate: resource.EstimateBelow(false, "block", "network")},
		&IPv4BlockSplit{}, &IPv4NetworkSplit{})
	for _, parts := range []string{"blocks", "networks"} {
		r.Links(resource.Links{Name: parts, From: []string{"splits"}, To: parts})
	}
}

// IPv4BlockSplit splits a block in two. It is kept as a record of the operation.
type IPv4BlockSplit struct {
	schema.Head `head:"readOnly" parents:"configurations|blocks" did:"Split IPv4Block"`
	schema.Recorded
	// Block is the block to split; it keeps the part below the split point.
	Block schema.Ref `api:"block,required" ref:"IPv4Block"`
	// SplitPointAddress is the first address of the new block; the default is the middle.
	SplitPointAddress netip.Addr `api:"splitPointAddress"`
}

// BeforeWrite checks the split point and sets the name to a description of the split for the history.
func (x *IPv4BlockSplit) BeforeWrite(c *resource.Change) error {
	row, err := findSubject(c, "block", x.Block, "IPv4Block", x.Parent)
	if err != nil {
		return err
	}
	x.Block.ID = row.ID
	whole := RangeOf(row)
	x.Name = whole.String()
	if !x.SplitPointAddress.IsValid() {
		p, ok := whole.Prefix()
		if !ok || p.Bits() == p.Addr().BitLen() {
			return problem.Invalid("splitPointAddress", "is required: %s cannot be split into halves", whole)
		}
		x.SplitPointAddress = splitPrefix(p)[1].Low
	}
	if !whole.Has(x.SplitPointAddress) || x.SplitPointAddress == whole.Low {
		return problem.Invalid("splitPointAddress", "%s does not split %s", x.SplitPointAddress, whole)
	}
	return nil
}

// AfterWrite splits the block.
func (x *IPv4BlockSplit) AfterWrite(c *resource.Change) error {
	if !c.IsCreation() {
		return nil
	}
	row, err := c.Tx.Get(x.Block.ID)
	if err != nil {
		return err
	}
	whole := RangeOf(row)
	parts := []space.Range{{Low: whole.Low, High: x.SplitPointAddress.Prev()}, {Low: x.SplitPointAddress, High: whole.High}}
	return splitInto(c, row, parts, x.ID, "blocks")
}

// splitPrefix returns the two halves of a prefix.
func splitPrefix(p netip.Prefix) [2]space.Range {
	lower := netip.PrefixFrom(p.Addr(), p.Bits()+1)
	first := space.FromPrefix(lower)
	return [2]space.Range{first, {Low: first.High.Next(), High: space.FromPrefix(p).High}}
}

// findSubject returns the resource that a split or merge refers to. It must be the resource that the request was sent to, or be below it.
func findSubject(c *resource.Change, field string, ref schema.Ref, kind string, below int64) (*store.Resource, error) {
	id := ref.ID
	if id == 0 {
		return nil, problem.Invalid(field, "is required")
	}
	row, err := c.Tx.Get(id)
	if store.IsNotFound(err) {
		return nil, resource.NotFoundInlined(field, "resource %d does not exist", id)
	}
	if err != nil {
		return nil, err
	}
	if row.Type != kind {
		return nil, resource.NotFoundInlined(field, "resource %d is of type %s; must be of type %s", id, row.Type, kind)
	}
	for at := row; ; {
		if at.ID == below || at.Parent == below {
			return row, nil
		}
		if at.Parent <= resource.RootID {
			return nil, problem.Invalid(field, "%s %d is not below resource %d", kind, id, below)
		}
		if at, err = c.Tx.Get(at.Parent); err != nil {
			return nil, err
		}
	}
}

// splitInto resizes a block or network to the first part and creates a similar resource for each other part, with the content in its range.
// It links the record of the split, in the given field, to the parts.
func splitInto(c *resource.Change, row *store.Resource, parts []space.Range, record int64, field string) error {
	below, err := readContent(c.Tx, row)
	if err != nil {
		return err
	}
	give := func(part space.Range) space.Range {
		if row.Collection == "networks" {
			return space.Hosts(part)
		}
		return part
	}
	into := make([][]*store.Resource, len(parts))
	var lost []*store.Resource
	for _, child := range below {
		// The parts are sorted: only the last one that starts at or before the child can contain it.
		i, found := slices.BinarySearchFunc(parts, store.KeyAddr(child.Low), func(p space.Range, a netip.Addr) int { return p.Low.Compare(a) })
		if !found {
			i--
		}
		if i < 0 || !give(parts[i]).Contains(RangeOf(child)) {
			lost = append(lost, child)
			continue
		}
		into[i] = append(into[i], child)
	}
	if len(lost) > 0 {
		return conflictError(problem.BadRequest, "IpRangeExcludesAssignedAddresses",
			fmt.Sprintf("%s %d cannot be split: these resources would be outside all parts", row.Type, row.ID), lost)
	}
	r := newReshaping(c)
	first, err := r.resize(row, parts[0])
	if err != nil {
		return err
	}
	made := []*store.Resource{first}
	for i := 1; i < len(parts); i++ {
		part, err := r.create(row, parts[i], row.Name)
		if err != nil {
			return err
		}
		for _, collection := range spacesIn(c.Tx).all {
			var children []*store.Resource
			for _, child := range into[i] {
				if child.Collection == collection {
					children = append(children, child)
				}
			}
			if err := r.reparent(children, part.ID); err != nil {
				return err
			}
		}
		made = append(made, part)
	}
	if err := r.finish(); err != nil {
		return err
	}
	return linkParts(c, record, field, made)
}

// linkParts links the record of a split or merge to the resulting resources.
func linkParts(c *resource.Change, record int64, field string, parts []*store.Resource) error {
	for _, part := range parts {
		row, err := c.Tx.Get(record)
		if err != nil {
			return err
		}
		if err := c.Link(row, field, part.ID); err != nil {
			return err
		}
	}
	return nil
}

// IPv4NetworkSplit splits a network into equal parts. It is kept as a record of the operation.
type IPv4NetworkSplit struct {
	schema.Head `head:"readOnly" parents:"blocks" did:"Split IPv4Network"`
	schema.Recorded
	// Network is the network to split; it keeps the first part.
	Network schema.Ref `api:"network,required" ref:"IPv4Network"`
	// NetworkCount is the number of resulting networks: a power of two.
	NetworkCount int64 `api:"networkCount,required" min:"2" max:"1024"`
	// GatewayPreserved keeps the gateway in the part that contains it. The default is true.
	GatewayPreserved *bool `api:"gatewayPreserved,writeOnly"`
	// DefaultGatewayAssigned assigns the first host as gateway to each part without a gateway.
	DefaultGatewayAssigned *bool `api:"defaultGatewayAssigned,writeOnly"`
	// ConflictResolutionStrategy is the treatment of resources that conflict with the template.
	ConflictResolutionStrategy string `api:"conflictResolutionStrategy,writeOnly" enum:"USE_EXISTING|OVERWRITE"`
	// Template is the template that is assigned to the parts.
	Template schema.Ref `api:"template,writeOnly" ref:"IPv4Template"`
}

// BeforeWrite checks the count and sets the name to a description of the split for the history.
func (x *IPv4NetworkSplit) BeforeWrite(c *resource.Change) error {
	row, err := findSubject(c, "network", x.Network, "IPv4Network", x.Parent)
	if err != nil {
		return err
	}
	if bits.OnesCount64(uint64(x.NetworkCount)) != 1 { //nolint:gosec // it is between 2 and 1024
		return problem.Invalid("networkCount", "%d is not a power of two", x.NetworkCount)
	}
	p, _ := RangeOf(row).Prefix()
	x.Name = fmt.Sprintf("%s in %d", p, x.NetworkCount)
	if p.Bits()+bits.TrailingZeros64(uint64(x.NetworkCount)) > p.Addr().BitLen() { //nolint:gosec // as above
		return problem.Field("IpRangeTooSmall", "networkCount", "%s is too small for %d parts", p, x.NetworkCount)
	}
	return nil
}

// AfterWrite splits the network.
func (x *IPv4NetworkSplit) AfterWrite(c *resource.Change) error {
	if !c.IsCreation() {
		return nil
	}
	row, err := c.Tx.Get(x.Network.ID)
	if err != nil {
		return err
	}
	kept, err := x.removeGateway(c, row)
	if err != nil {
		return err
	}
	if row, err = c.Tx.Get(row.ID); err != nil {
		return err
	}
	p, _ := RangeOf(row).Prefix()
	parts := []space.Range{}
	size := p.Bits() + bits.TrailingZeros64(uint64(x.NetworkCount)) //nolint:gosec // it is between 2 and 1024
	for at := p.Addr(); int64(len(parts)) < x.NetworkCount; at = parts[len(parts)-1].High.Next() {
		parts = append(parts, space.FromPrefix(netip.PrefixFrom(at, size)))
	}
	if err := splitInto(c, row, parts, x.ID, "networks"); err != nil {
		return err
	}
	links, err := c.Tx.Links(x.ID, "networks")
	if err != nil {
		return err
	}
	for _, id := range links {
		if err := x.setGateway(c, id, kept); err != nil {
			return err
		}
		if err := x.applyTemplate(c, id); err != nil {
			return err
		}
	}
	return nil
}

// applyTemplate assigns the template of the split to a part and applies it.
func (x *IPv4NetworkSplit) applyTemplate(c *resource.Change, id int64) error {
	if x.Template.ID == 0 {
		return nil
	}
	row, err := c.Tx.Get(id)
	if err != nil {
		return err
	}
	if row, err = c.Following().Change(row, func(o schema.Object) { o.(*IPv4Network).Template = x.Template }); err != nil {
		return err
	}
	a := &networkApplication{c: c, x: &IPv4TemplateApplication{}, network: row}
	a.x.Start(c)
	if x.ConflictResolutionStrategy == Overwrite {
		a.x.ConflictResolutionStrategy = Overwrite
	}
	return a.run(x.Template.ID)
}

// removeGateway removes the gateway of the network, so that each part can get its own. It returns the gateway if it is to be preserved.
func (x *IPv4NetworkSplit) removeGateway(c *resource.Change, row *store.Resource) (kept netip.Addr, err error) {
	o, err := c.API.Object(row)
	if err != nil {
		return kept, err
	}
	n, ok := o.(*IPv4Network)
	if !ok || !n.Gateway.IsValid() {
		return kept, nil
	}
	if _, err := c.Following().Change(row, func(o schema.Object) { o.(*IPv4Network).Gateway = netip.Addr{} }); err != nil {
		return kept, err
	}
	if x.GatewayPreserved != nil && !*x.GatewayPreserved {
		return kept, nil
	}
	return n.Gateway, nil
}

// setGateway sets the preserved gateway of a part, or its default gateway if the split asks for it.
func (x *IPv4NetworkSplit) setGateway(c *resource.Change, id int64, kept netip.Addr) error {
	row, err := c.Tx.Get(id)
	if err != nil {
		return err
	}
	hosts := Usable(row)
	gateway := netip.Addr{}
	switch {
	case kept.IsValid() && RangeOf(row).Has(kept):
		if !hosts.Has(kept) {
			return problem.Field("IpRangeBroadcastOrNetworkIdAssigned", "gatewayPreserved", "%s would be the network or broadcast address of %s",
				kept, problem.Describe(row.ID, spanOf(row)))
		}
		gateway = kept
	case x.DefaultGatewayAssigned != nil && *x.DefaultGatewayAssigned:
		gateway = hosts.Low
	default:
		return nil
	}
	_, err = c.Following().Change(row, func(o schema.Object) { o.(*IPv4Network).Gateway = gateway })
	return err
}
