package ipam

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/netip"
	"slices"

	"portolan/internal/base/problem"
	"portolan/internal/base/space"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerBlocks declares the collection of blocks.
func registerBlocks(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "blocks", Parents: []string{"configurations", "blocks"}, Place: placeSpace,
		Complete: completeSpace, Map: blockMap,
		Counts: addressCounts,
		Space:  resource.HoldsSpace, Options: []resource.RequestHeader{traversal.For(resource.Creating), reuseExisting.For(resource.Creating)}},
		&IPv4Block{}, &IPv6Block{})
}

// Options of who makes space by its size.
var (
	traversal = resource.Choice("x-bcn-traversal-method",
		"Where space of a given size is looked for: right below the parent, or through its blocks.",
		"NO_TRAVERSAL", "DEPTH_FIRST", "BREADTH_FIRST")
	reuseExisting = resource.Flag("x-bcn-reuse-existing", "With DEPTH_FIRST or BREADTH_FIRST, take an empty one that is there already.")
)

// SpaceHead is what every piece of address space has, block or network, of either family.
type SpaceHead struct {
	schema.Head
	// Configuration is the configuration it lies in.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// Range is its space: CIDR, for a block also start-end, or when it is made a size alone, which
	// takes the first free space of the block above.
	Range schema.Range `api:"range,required,inline"`
	// Location is where it is used.
	Location schema.Ref `api:"location,inherit" ref:"Location" back:"annotatedResources"`
	// InheritedFields are the fields whose values come from above.
	InheritedFields []string `api:"_inheritedFields,readOnly"`
	// DefaultZones are the zones that hosts are put into.
	DefaultZones schema.RefList `api:"defaultZones,inherit" ref:"Zone"`
	// RestrictedZones are the only zones and views that hosts may be put into.
	RestrictedZones schema.RefList `api:"restrictedZones,inherit" ref:"Zone|View" back:"restrictedRanges"`

	// reshaped says that the place is seen to elsewhere; around is what a block is made around.
	reshaped bool
	around   *reshaping
}

// Span is the space it takes up.
func (x *SpaceHead) Span() (netip.Addr, netip.Addr) { return x.Range.Low, x.Range.High }

// String is the range.
func (x *SpaceHead) String() string { return x.Range.String() }

// BeforeDelete gives the space back to the block above.
func (x *SpaceHead) BeforeDelete(c *resource.Change) error {
	if c.With {
		return nil
	}
	parent, err := c.Tx.Head(x.Parent)
	if err != nil || parent.Collection != "blocks" {
		return err
	}
	return freeAdd(c.Tx, x.Parent, x.Range.Low, x.Range.High)
}

// IPv4Policy is what IPv4 blocks and networks say of the hosts in them.
type IPv4Policy struct {
	// Template is the template it follows.
	Template schema.Ref `api:"template" ref:"IPv4Template" back:"appliedResources"`
	// DefaultView is the view that names of hosts are put into.
	DefaultView schema.Ref `api:"defaultView,inherit" ref:"View"`
	// DuplicateHostnamesAllowed says whether two addresses may have one host name.
	DuplicateHostnamesAllowed *bool `api:"duplicateHostnamesAllowed,inherit"`
	// PingBeforeAssignEnabled says whether an address is pinged before it is assigned.
	PingBeforeAssignEnabled *bool `api:"pingBeforeAssignEnabled,inherit" also:"pingBeforeAssignmentEnabled"`
	// DefaultZonesInherited says whether the default zones come from above.
	DefaultZonesInherited bool `api:"defaultZonesInherited,put" default:"true"`
	// RestrictedZonesInherited says whether the restricted zones come from above.
	RestrictedZonesInherited bool `api:"restrictedZonesInherited,put" default:"true"`
	// LowWaterMark is the usage, in percent, below which an event is raised.
	LowWaterMark *int64 `api:"lowWaterMark,inherit" min:"0" max:"100"`
	// HighWaterMark is the usage, in percent, above which an event is raised.
	HighWaterMark *int64 `api:"highWaterMark,inherit" min:"0" max:"100"`
	// ReverseZoneSigned says whether the reverse zone is signed.
	ReverseZoneSigned bool `api:"reverseZoneSigned,put"`
	// ReverseZoneSigningPolicy is the policy the reverse zone is signed by.
	ReverseZoneSigningPolicy schema.Ref `api:"reverseZoneSigningPolicy" ref:"DNSSECSigningPolicy" back:"appliedResources" onDelete:"refuse"`
}

// fits refuses water marks that cross, and sees to it that new policies are looked at.
func (x *IPv4Policy) fits(c *resource.Change) error {
	if c.Given["reverseZoneSigningPolicy"] && !c.Given["reverseZoneSigned"] {
		x.ReverseZoneSigned = x.ReverseZoneSigningPolicy.ID != 0
	}
	if x.ReverseZoneSigned && x.ReverseZoneSigningPolicy.ID == 0 {
		return problem.Field("MissingRequiredField", "reverseZoneSigningPolicy", "is needed where reverseZoneSigned is true")
	}
	if err := crossing(x.LowWaterMark, x.HighWaterMark); err != nil {
		return err
	}
	if x.LowWaterMark != nil || x.HighWaterMark != nil || x.PingBeforeAssignEnabled != nil || c.Given[lowWaterMark] ||
		c.Given[highWaterMark] || c.Given[pingBeforeAssign] {
		c.Tx.Touch(policyTopic)
		if id := schema.HeadOf(c.New).ID; id != 0 {
			markDirty(c.Tx, id)
		}
	}
	return nil
}

// crossing refuses a low water mark above the high one.
func crossing(low, high *int64) error {
	if low != nil && high != nil && *low > *high {
		return problem.Invalid(lowWaterMark, "%d is above highWaterMark, %d", *low, *high)
	}
	return nil
}

// IPv4Block is a piece of IPv4 address space that holds blocks and networks.
type IPv4Block struct {
	SpaceHead
	IPv4Policy
	// UsagePercentage is how much of the block is assigned and allocated.
	UsagePercentage json.RawMessage `api:"usagePercentage,computed,sums"`
}

// IPv6Block is a piece of IPv6 address space that holds blocks and networks.
type IPv6Block struct{ SpaceHead }

// BeforeWrite places the block.
func (x *IPv4Block) BeforeWrite(c *resource.Change) error {
	if err := stayInherited(c); err != nil {
		return err
	}
	return place(c, &x.SpaceHead, true, false)
}

// BeforeWrite places the block.
func (x *IPv6Block) BeforeWrite(c *resource.Change) error {
	return place(c, &x.SpaceHead, false, false)
}

// AfterWrite makes the block's space free for what comes below.
func (x *IPv4Block) AfterWrite(c *resource.Change) error {
	return takeSpace(c, &x.SpaceHead, x.Range.Range)
}

// AfterWrite makes the block's space free for what comes below.
func (x *IPv6Block) AfterWrite(c *resource.Change) error {
	return takeSpace(c, &x.SpaceHead, x.Range.Range)
}

// takeSpace takes the space of a block or network out of what is free above it: gives is what it gives to what lies below.
func takeSpace(c *resource.Change, x *SpaceHead, gives space.Range) error {
	switch {
	case x.reshaped:
		return nil
	case x.around != nil:
		return x.adoptSiblings(c)
	case c.Creates():
		return freeAdd(c.Tx, x.ID, gives.Low, gives.High)
	case x.Range.Range == RangeOf(c.Row):
		return nil
	}
	return reallocateResized(c, x.ID)
}

// place finds or checks the space of a new block or network: of the right family, inside its
// parent, clear of its siblings; and takes it from the parent's free space.
func place(c *resource.Change, x *SpaceHead, v4, network bool) error {
	h, r := &x.Head, &x.Range
	if err := stayInherited(c); err != nil {
		return err
	}
	if r.Relative != (space.Relative{}) {
		return problem.Invalid("range", "an offset is for DHCP ranges and IP groups")
	}
	switch {
	case r.Hardware != nil && (!c.Creates() || v4 || network):
		return problem.Invalid("range", "a hardware address is for new IPv6 blocks")
	case r.Hardware != nil:
		*r = schema.Range{Range: space.FromPrefix(space.UniqueLocal(r.Hardware, c.Tx.Now()))}
	case x.reshaped:
		return nil
	case !c.Creates():
		return resized(c, h, r, network)
	}
	parent, err := c.Above(h.Parent)
	if err != nil {
		return err
	}
	if parent.Collection == "blocks" && (parent.Low[0] == 4) != v4 {
		return problem.Invalid("type", "%s cannot lie in %s %d", h.Type, parent.Type, parent.ID)
	}
	if r.SizeOnly {
		return placeBySize(c, h, r, parent, v4)
	}
	if r.Low.Is4() != v4 {
		return problem.Invalid("range", "%s is not of the address family of %s", r, h.Type)
	}
	if _, ok := r.Prefix(); network && !ok {
		return problem.Invalid("range", "%s is not a CIDR network", r)
	}
	if parent.Collection == "configurations" && !v4 {
		if parent, err = spaceAround(c.Tx, parent, r.Range); err != nil {
			return err
		}
		h.Parent = parent.ID
	}
	low, high := store.AddrKey(r.Low), store.AddrKey(r.High)
	if parent.Collection == "blocks" && (string(low) < string(parent.Low) || string(high) > string(parent.High)) {
		return problem.Field("IpRangeOutsideParent", "range", "%s does not lie within %s %d, %s", r, parent.Type, parent.ID, spanOf(parent))
	}
	for _, collection := range spacesIn(c.Tx).holders {
		other, err := c.Tx.Overlapping(h.Parent, collection, low, high, h.ID)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if network {
			return problem.Field("IpRangeOverlapsSiblings", "range", "%s overlaps %s %d, %s", r, other.Type, other.ID, spanOf(other))
		}
		inside, err := siblingsWithin(c, h, r.Range)
		if err != nil {
			return err
		}
		return x.reparentSiblings(c, inside)
	}
	return takeFromParent(c, parent, r.Range)
}

// spaceAround gives the block of a configuration that holds an IPv6 range and is larger, in which a
// request to the configuration finds its place; the configuration where there is none.
func spaceAround(tx *store.Tx, configuration *store.Resource, r space.Range) (*store.Resource, error) {
	block, err := tx.Overlapping(configuration.ID, "blocks", store.AddrKey(r.Low), store.AddrKey(r.High), 0)
	if errors.Is(err, store.ErrNotFound) || err == nil && (!RangeOf(block).Contains(r) || RangeOf(block) == r) {
		return configuration, nil
	}
	return block, err
}

func takeFromParent(c *resource.Change, parent *store.Resource, r space.Range) error {
	if parent.Collection != "blocks" {
		return nil
	}
	err := freeTake(c.Tx, parent.ID, r.Low, r.High)
	if errors.Is(err, space.ErrTaken) {
		return problem.Field("IpRangeOverlapsSiblings", "range", "%s is not free in %s %d, %s", r, parent.Type, parent.ID, spanOf(parent))
	}
	return err
}

// spanOf gives a stored resource's space as text.
func spanOf(r *store.Resource) string {
	return space.Range{Low: store.KeyAddr(r.Low), High: store.KeyAddr(r.High)}.String()
}

// placeBySize takes the first free space of that size: of the parent, or with DEPTH_FIRST of the
// first block below it that has room (x-bcn-traversal-method).
func placeBySize(c *resource.Change, h *schema.Head, r *schema.Range, parent *store.Resource, v4 bool) error {
	if v4 && r.Bits > 32 {
		return problem.Invalid("range", "/%d is no size of IPv4 space", r.Bits)
	}
	deep, find := false, fitting
	switch traversal.In(c.Options) {
	case "DEPTH_FIRST":
		deep, find = true, depthFirst
	case "BREADTH_FIRST":
		deep, find = true, breadthFirst
	}
	if parent.Collection != "blocks" {
		return problem.Invalid("range", "a size alone needs a block to find the space in")
	}
	if deep && reuseExisting.In(c.Options) {
		there, err := firstEmpty(c.Tx, parent, c.Type.Collection, r.Bits)
		if err != nil {
			return err
		}
		if there != 0 {
			return resource.Reused{ID: there}
		}
	}
	holder, found, err := find(c.Tx, parent, r.Bits)
	if errors.Is(err, space.ErrNoFit) {
		code := "NoSpaceForNetwork"
		if c.Type.Collection == "blocks" {
			code = "NoSpaceForBlock"
		}
		return problem.Field(code, "range", "there is no free /%d in %s %d, %s", r.Bits, parent.Type, parent.ID, spanOf(parent))
	}
	if err != nil {
		return err
	}
	h.Parent = holder.ID
	*r = schema.Range{Range: found}
	return takeFromParent(c, holder, found)
}

// holdsSomething is the condition of what lies in space, but for a gateway.
var holdsSomething = store.Any{store.InCollection("blocks", "networks", "ranges", "ipGroups"), store.All{store.InCollection("addresses"),
	store.Compare{Field: store.Field{Kind: store.Text, Path: []string{"state"}}, Op: "ne", Value: gateway}}}

// firstEmpty finds the first block or network of a size, in a block and the blocks below it, in which
// there is nothing but a gateway; 0 where there is none.
func firstEmpty(tx *store.Tx, block *store.Resource, collection string, bits int) (int64, error) {
	below, err := content(tx, block)
	if err != nil {
		return 0, err
	}
	slices.SortStableFunc(below, func(a, b *store.Resource) int { return bytes.Compare(a.Low, b.Low) })
	for _, child := range below {
		if p, ok := RangeOf(child).Prefix(); ok && p.Bits() == bits && child.Collection == collection {
			used, err := tx.Exists(store.Query{From: store.Resources, Where: store.All{store.HasParent(child.ID), holdsSomething}})
			if err != nil {
				return 0, err
			}
			if !used {
				return child.ID, nil
			}
		}
		if child.Collection != "blocks" {
			continue
		}
		if found, err := firstEmpty(tx, child, collection, bits); found != 0 || err != nil {
			return found, err
		}
	}
	return 0, nil
}

// fitting finds free space of a size in a block itself; space.ErrNoFit where there is none.
func fitting(tx *store.Tx, block *store.Resource, bits int) (holder *store.Resource, found space.Range, err error) {
	held, err := resource.HeldSpace(tx, "networks", block.Configuration) // by requests that are not decided yet
	if err != nil {
		return nil, found, err
	}
	err = space.ErrNoFit
	if e := freeEach(tx, block.ID, func(i space.Range) bool {
		left := []space.Range{i}
		for _, h := range held {
			last := left[len(left)-1]
			if left = append(left[:len(left)-1], last.Without(h)...); len(left) == 0 {
				break
			}
		}
		for _, one := range left {
			if found, err = space.FirstFit(one, bits); err == nil {
				return false
			}
		}
		return true
	}); e != nil {
		return nil, found, e
	}
	return block, found, err
}

// depthFirst looks in a block, then in each of the blocks below it with all that lies below that.
func depthFirst(tx *store.Tx, block *store.Resource, bits int) (holder *store.Resource, found space.Range, err error) {
	if holder, found, err = fitting(tx, block, bits); !errors.Is(err, space.ErrNoFit) {
		return holder, found, err
	}
	err = eachBlock(tx, block, func(child *store.Resource) error {
		if holder, found, err = depthFirst(tx, child, bits); errors.Is(err, space.ErrNoFit) {
			return nil
		}
		if err == nil {
			return errFound
		}
		return err
	})
	return ended(holder, found, err)
}

// breadthFirst looks in a block, then in all blocks right below it, then in those below them.
func breadthFirst(tx *store.Tx, block *store.Resource, bits int) (holder *store.Resource, found space.Range, err error) {
	for level := []*store.Resource{block}; len(level) > 0; {
		var next []*store.Resource
		for _, b := range level {
			if holder, found, err = fitting(tx, b, bits); !errors.Is(err, space.ErrNoFit) {
				return holder, found, err
			}
		}
		for _, b := range level {
			if err := eachBlock(tx, b, func(child *store.Resource) error {
				next = append(next, child)
				return nil
			}); err != nil {
				return nil, found, err
			}
		}
		level = next
	}
	return nil, found, space.ErrNoFit
}

// errFound ends a search that has found something.
var errFound = errors.New("found")

// ended words the end of a search: nothing found is space.ErrNoFit.
func ended(holder *store.Resource, found space.Range, err error) (*store.Resource, space.Range, error) {
	switch {
	case errors.Is(err, errFound):
		return holder, found, nil
	case err == nil:
		return nil, found, space.ErrNoFit
	}
	return nil, found, err
}

// eachBlock calls fn for the blocks right below a block, in order.
func eachBlock(tx *store.Tx, block *store.Resource, fn func(child *store.Resource) error) error {
	const page = 100
	for from := block.Low; ; {
		children, err := tx.Within(block.ID, "blocks", from, block.High, page)
		if err != nil {
			return err
		}
		for _, child := range children {
			if err := fn(child); err != nil {
				return err
			}
		}
		if len(children) < page {
			return nil
		}
		from = store.AddrKey(store.KeyAddr(children[page-1].High).Next())
	}
}

// Validate refuses water marks that cross, and notes that there are some.
func (x *IPv4Block) Validate(c *resource.Change) error { return x.fits(c) }
