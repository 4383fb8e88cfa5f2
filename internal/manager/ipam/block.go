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
	r.Collection(resource.Collection{Name: "blocks", CacheHeads: true, Parents: []string{"configurations", "blocks"}, Place: placeSpace,
		Complete: completeSpace, Map: blockMap,
		Counts:  addressCounts,
		Space:   resource.HoldsSpace,
		Options: []resource.RequestHeader{traversal.Header(resource.Creating), reuseExisting.Header(resource.Creating)}},
		&IPv4Block{}, &IPv6Block{})
}

// Request options for creating a block or network by size.
var (
	traversal = resource.Choice("x-bcn-traversal-method",
		"The order of the search for space of a given size: directly below the parent, or through its blocks.",
		"NO_TRAVERSAL", "DEPTH_FIRST", "BREADTH_FIRST")
	reuseExisting = resource.Flag("x-bcn-reuse-existing", "With DEPTH_FIRST or BREADTH_FIRST, use an existing empty one.")
)

// SpaceHead has the common fields of IPv4 and IPv6 blocks and networks.
type SpaceHead struct {
	schema.Head
	// Configuration is the configuration that contains the block or network.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// Range is the address range: CIDR, a range (start-end, blocks only), or a size such as /24 for the first free space of the parent
	// block.
	Range schema.Range `api:"range,required,inline"`
	// Location is the location where the address space is used.
	Location schema.Ref `api:"location,inherit" ref:"Location" back:"annotatedResources"`
	// InheritedFields lists the fields whose values are inherited from a parent.
	InheritedFields []string `api:"_inheritedFields,readOnly"`
	// DefaultZones are the default zones for hosts in this address space.
	DefaultZones schema.RefList `api:"defaultZones,inherit" ref:"Zone"`
	// RestrictedZones limits hosts in this address space to these zones and views.
	RestrictedZones schema.RefList `api:"restrictedZones,inherit" ref:"Zone|View" back:"restrictedRanges"`

	// reshaped disables the placement rules, because the caller handles placement. adopting collects the existing siblings that become
	// children of a new block.
	reshaped bool
	adopting *reshaping
}

// Span returns the first and the last address.
func (x *SpaceHead) Span() (netip.Addr, netip.Addr) { return x.Range.Low, x.Range.High }

// String returns the range.
func (x *SpaceHead) String() string { return x.Range.String() }

// BeforeDelete returns the space to the free space of the parent block.
func (x *SpaceHead) BeforeDelete(c *resource.Change) error {
	if c.ParentDeleted {
		return nil
	}
	parent, err := c.Tx.Head(x.Parent)
	if err != nil || parent.Collection != "blocks" {
		return err
	}
	return freeAdd(c.Tx, x.Parent, x.Range.Low, x.Range.High)
}

// IPv4Policy has the host policy fields of IPv4 blocks and networks.
type IPv4Policy struct {
	// Template is the template that is assigned.
	Template schema.Ref `api:"template" ref:"IPv4Template" back:"appliedResources"`
	// DefaultView is the default view for host names.
	DefaultView schema.Ref `api:"defaultView,inherit" ref:"View"`
	// DuplicateHostnamesAllowed allows two addresses to have the same host name.
	DuplicateHostnamesAllowed *bool `api:"duplicateHostnamesAllowed,inherit"`
	// PingBeforeAssignEnabled enables a ping of an address before it is assigned.
	PingBeforeAssignEnabled *bool `api:"pingBeforeAssignEnabled,inherit" also:"pingBeforeAssignmentEnabled"`
	// DefaultZonesInherited enables the inheritance of default zones from the parent.
	DefaultZonesInherited bool `api:"defaultZonesInherited,put" default:"true"`
	// RestrictedZonesInherited enables the inheritance of restricted zones from the parent.
	RestrictedZonesInherited bool `api:"restrictedZonesInherited,put" default:"true"`
	// LowWaterMark is a usage in percent. An event is raised when the usage falls below it.
	LowWaterMark *int64 `api:"lowWaterMark,inherit" min:"0" max:"100"`
	// HighWaterMark is a usage in percent. An event is raised when the usage rises above it.
	HighWaterMark *int64 `api:"highWaterMark,inherit" min:"0" max:"100"`
	// ReverseZoneSigned enables signing of the reverse zone.
	ReverseZoneSigned bool `api:"reverseZoneSigned,put"`
	// ReverseZoneSigningPolicy is the signing policy of the reverse zone.
	ReverseZoneSigningPolicy schema.Ref `api:"reverseZoneSigningPolicy" ref:"DNSSECSigningPolicy" back:"appliedResources" onDelete:"refuse"`
}

// checkPolicy rejects a low water mark above the high one and a signed reverse zone without a signing policy. It invalidates the cached
// policies and schedules a water level check when a policy field changes.
func (x *IPv4Policy) checkPolicy(c *resource.Change) error {
	if c.SetFields["reverseZoneSigningPolicy"] && !c.SetFields["reverseZoneSigned"] {
		x.ReverseZoneSigned = x.ReverseZoneSigningPolicy.ID != 0
	}
	if x.ReverseZoneSigned && x.ReverseZoneSigningPolicy.ID == 0 {
		return problem.Field("MissingRequiredField", "reverseZoneSigningPolicy", "is required if reverseZoneSigned is true")
	}
	if err := checkWaterMarks(x.LowWaterMark, x.HighWaterMark); err != nil {
		return err
	}
	if x.LowWaterMark != nil || x.HighWaterMark != nil || x.PingBeforeAssignEnabled != nil || c.SetFields[lowWaterMark] ||
		c.SetFields[highWaterMark] || c.SetFields[pingBeforeAssign] {
		c.Tx.Touch(policyTopic)
		if id := schema.HeadOf(c.New).ID; id != 0 {
			markDirty(c.Tx, id)
		}
	}
	return nil
}

// checkWaterMarks rejects a low water mark above the high one.
func checkWaterMarks(low, high *int64) error {
	if low != nil && high != nil && *low > *high {
		return problem.Invalid(lowWaterMark, "%d is above highWaterMark (%d)", *low, *high)
	}
	return nil
}

// IPv4Block is a range of IPv4 address space that contains blocks and networks.
type IPv4Block struct {
	SpaceHead
	IPv4Policy
	// UsagePercentage is the assigned and allocated part of the block, in percent.
	UsagePercentage json.RawMessage `api:"usagePercentage,computed,sums"`
}

// IPv6Block is a range of IPv6 address space that contains blocks and networks.
type IPv6Block struct{ SpaceHead }

// BeforeWrite places the block.
func (x *IPv4Block) BeforeWrite(c *resource.Change) error {
	if err := keepInherited(c); err != nil {
		return err
	}
	return place(c, &x.SpaceHead, true, false)
}

// BeforeWrite places the block.
func (x *IPv6Block) BeforeWrite(c *resource.Change) error {
	return place(c, &x.SpaceHead, false, false)
}

// AfterWrite adds the range of a new block to its free space.
func (x *IPv4Block) AfterWrite(c *resource.Change) error {
	return takeSpace(c, &x.SpaceHead, x.Range.Range)
}

// AfterWrite adds the range of a new block to its free space.
func (x *IPv6Block) AfterWrite(c *resource.Change) error {
	return takeSpace(c, &x.SpaceHead, x.Range.Range)
}

// takeSpace updates free space after a block or network was written. gives is the usable range of the resource, which becomes its free
// space when it is created.
func takeSpace(c *resource.Change, x *SpaceHead, gives space.Range) error {
	switch {
	case x.reshaped:
		return nil
	case x.adopting != nil:
		return x.adoptSiblings(c)
	case c.IsCreation():
		return freeAdd(c.Tx, x.ID, gives.Low, gives.High)
	case x.Range.Range == RangeOf(c.Row):
		return nil
	}
	return reallocateResized(c, x.ID)
}

// place checks or finds the range of a new block or network, and removes it from the free space of the parent. The range must match the
// address family, be inside the parent and not overlap siblings. A new block may contain existing siblings; these become its children.
func place(c *resource.Change, x *SpaceHead, v4, network bool) error {
	h, r := &x.Head, &x.Range
	if err := keepInherited(c); err != nil {
		return err
	}
	if r.Relative != (space.Relative{}) {
		return problem.Invalid("range", "an offset is only supported for DHCP ranges and IP groups")
	}
	switch {
	case r.Hardware != nil && (!c.IsCreation() || v4 || network):
		return problem.Invalid("range", "a hardware address is only supported for new IPv6 blocks")
	case r.Hardware != nil:
		*r = schema.Range{Range: space.FromPrefix(space.UniqueLocal(r.Hardware, c.Tx.Now()))}
	case x.reshaped:
		return nil
	case !c.IsCreation():
		return checkResize(c, h, r, network)
	}
	parent, err := c.ReadParent(h.Parent)
	if err != nil {
		return err
	}
	if parent.Collection == "blocks" && (parent.Low[0] == 4) != v4 {
		return problem.Invalid("type", "%s cannot be in %s %d", h.Type, parent.Type, parent.ID)
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
		return problem.Field("IpRangeOutsideParent", "range", "%s is not within %s %s (%d)", r, parent.Type, spanOf(parent), parent.ID)
	}
	for _, collection := range spacesIn(c.Tx).holders {
		other, err := c.Tx.FindOverlapping(h.Parent, collection, low, high, h.ID)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		block, err := innermostBlock(c.Tx, h.Parent, r.Range)
		if err != nil {
			return err
		}
		if block != nil {
			return problem.Field("IpRangeOverlapsSiblings", "range", "%s overlaps %s %s (%d), which contains it: create it in that block", r,
				block.Type, spanOf(block), block.ID)
		}
		if network {
			return problem.Field("IpRangeOverlapsSiblings", "range", "%s overlaps %s %s (%d)", r, other.Type, spanOf(other), other.ID)
		}
		inside, err := siblingsWithin(c, h, r.Range)
		if err != nil {
			return err
		}
		return x.reparentSiblings(c, inside)
	}
	return takeFromParent(c, parent, r.Range)
}

// innermostBlock returns the smallest block below a parent that contains a range and is larger; nil if there is none.
func innermostBlock(tx *store.Tx, parent int64, r space.Range) (found *store.Resource, err error) {
	for {
		block, err := tx.FindOverlapping(parent, "blocks", store.AddrKey(r.Low), store.AddrKey(r.High), 0)
		if errors.Is(err, store.ErrNotFound) || err == nil && (!RangeOf(block).Contains(r) || RangeOf(block) == r) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		found, parent = block, block.ID
	}
}

// spaceAround returns the block right below a configuration that contains an IPv6 range and is larger than it. If there is no such block,
// it returns the configuration.
func spaceAround(tx *store.Tx, configuration *store.Resource, r space.Range) (*store.Resource, error) {
	block, err := tx.FindOverlapping(configuration.ID, "blocks", store.AddrKey(r.Low), store.AddrKey(r.High), 0)
	if errors.Is(err, store.ErrNotFound) || err == nil && (!RangeOf(block).Contains(r) || RangeOf(block) == r) {
		return configuration, nil
	}
	return block, err
}

func takeFromParent(c *resource.Change, parent *store.Resource, r space.Range) error {
	if parent.Collection != "blocks" {
		return nil
	}
	err := freeRemove(c.Tx, parent.ID, r.Low, r.High)
	if errors.Is(err, space.ErrNotFree) {
		return problem.Field("IpRangeOverlapsSiblings", "range", "%s is not free in %s %s (%d)", r, parent.Type, spanOf(parent), parent.ID)
	}
	return err
}

// spanOf returns the range of a stored resource as text.
func spanOf(r *store.Resource) string {
	return space.Range{Low: store.KeyAddr(r.Low), High: store.KeyAddr(r.High)}.String()
}

// placeBySize allocates the first free space of the requested size in the parent block. The option x-bcn-traversal-method includes the
// blocks below the parent in the search.
func placeBySize(c *resource.Change, h *schema.Head, r *schema.Range, parent *store.Resource, v4 bool) error {
	if v4 && r.Bits > 32 {
		return problem.Invalid("range", "/%d is not a valid IPv4 prefix length", r.Bits)
	}
	deep, find := false, findFree
	switch traversal.Value(c.Options) {
	case "DEPTH_FIRST":
		deep, find = true, findDepthFirst
	case "BREADTH_FIRST":
		deep, find = true, findBreadthFirst
	}
	if parent.Collection != "blocks" {
		return problem.Invalid("range", "a size such as /24 requires a parent block")
	}
	if deep && reuseExisting.Value(c.Options) {
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
		return problem.Field(code, "range", "no free /%d in %s %s (%d)", r.Bits, parent.Type, spanOf(parent), parent.ID)
	}
	if err != nil {
		return err
	}
	h.Parent = holder.ID
	*r = schema.Range{Range: found}
	return takeFromParent(c, holder, found)
}

// isOccupied is the query condition for content of a block or network other than a gateway.
var isOccupied = store.Any{store.InCollection("blocks", "networks", "ranges", "ipGroups"), store.All{store.InCollection("addresses"),
	store.Compare{Field: store.Field{Kind: store.Text, Path: []string{"state"}}, Op: "ne", Value: gateway}}}

// firstEmpty returns the id of the first empty block or network of a given prefix length, in a block and the blocks below it. A gateway
// does not count as content. It returns 0 if there is none.
func firstEmpty(tx *store.Tx, block *store.Resource, collection string, bits int) (int64, error) {
	below, err := readContent(tx, block)
	if err != nil {
		return 0, err
	}
	slices.SortStableFunc(below, func(a, b *store.Resource) int { return bytes.Compare(a.Low, b.Low) })
	for _, child := range below {
		if p, ok := RangeOf(child).Prefix(); ok && p.Bits() == bits && child.Collection == collection {
			used, err := tx.Exists(store.Query{From: store.Resources, Where: store.All{store.HasParent(child.ID), isOccupied}})
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

// findFree finds free space of a prefix length directly in a block. It returns space.ErrNoFit if there is none.
func findFree(tx *store.Tx, block *store.Resource, bits int) (holder *store.Resource, found space.Range, err error) {
	held, err := resource.ReservedSpace(tx, "networks", block.Configuration) // reserved by pending approval requests
	if err != nil {
		return nil, found, err
	}
	err = space.ErrNoFit
	if e := freeEach(tx, block.ID, func(i space.Range) bool {
		left := []space.Range{i}
		for _, h := range held {
			last := left[len(left)-1]
			if left = append(left[:len(left)-1], last.Subtract(h)...); len(left) == 0 {
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

// findDepthFirst searches a block, then each block below it together with its descendants.
func findDepthFirst(tx *store.Tx, block *store.Resource, bits int) (holder *store.Resource, found space.Range, err error) {
	if holder, found, err = findFree(tx, block, bits); !errors.Is(err, space.ErrNoFit) {
		return holder, found, err
	}
	err = eachBlock(tx, block, func(child *store.Resource) error {
		if holder, found, err = findDepthFirst(tx, child, bits); errors.Is(err, space.ErrNoFit) {
			return nil
		}
		if err == nil {
			return errFound
		}
		return err
	})
	return searchResult(holder, found, err)
}

// findBreadthFirst searches a block, then all blocks right below it, then the next level.
func findBreadthFirst(tx *store.Tx, block *store.Resource, bits int) (holder *store.Resource, found space.Range, err error) {
	for level := []*store.Resource{block}; len(level) > 0; {
		var next []*store.Resource
		for _, b := range level {
			if holder, found, err = findFree(tx, b, bits); !errors.Is(err, space.ErrNoFit) {
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

// errFound stops a search after a match.
var errFound = errors.New("found")

// searchResult converts the result of a search that errFound stops. It returns space.ErrNoFit if nothing was found.
func searchResult(holder *store.Resource, found space.Range, err error) (*store.Resource, space.Range, error) {
	switch {
	case errors.Is(err, errFound):
		return holder, found, nil
	case err == nil:
		return nil, found, space.ErrNoFit
	}
	return nil, found, err
}

// eachBlock calls fn for the blocks right below a block, in address order.
func eachBlock(tx *store.Tx, block *store.Resource, fn func(child *store.Resource) error) error {
	const page = 100
	for from := block.Low; ; {
		children, err := tx.ListWithin(block.ID, "blocks", from, block.High, page)
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

// Validate rejects invalid water marks and signing settings (see checkPolicy).
func (x *IPv4Block) Validate(c *resource.Change) error { return x.checkPolicy(c) }
