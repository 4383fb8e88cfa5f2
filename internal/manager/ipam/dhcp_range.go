package ipam

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"

	"portolan/internal/base/problem"
	"portolan/internal/base/space"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerRanges declares the collection of DHCP ranges.
func registerRanges(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "ranges", Parents: []string{"networks"}, Place: placeSpace,
		Space: resource.SpansSpace, Complete: completeRanges, Fleeting: true,
		Options: []resource.RequestHeader{orphanState.Header(resource.Changing, "IPv4DHCPRange")}}, &IPv4DHCPRange{}, &IPv6DHCPRange{})
}

// RangeHead has the common fields of DHCP ranges and IP groups. They cover part of the hosts of a network but do not use its free space.
type RangeHead struct {
	schema.Head
	// Configuration is the configuration that contains the range.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// Range is the part of the network: start-end, CIDR, or an offset from the first address of the network. The offset has a size (10,20)
	// or a percentage of the hosts (10,50%). In IPv6 the range can be a size such as /80.
	Range schema.Range `api:"range,required"`
}

// Span returns the first and the last address.
func (x *RangeHead) Span() (netip.Addr, netip.Addr) { return x.Range.Low, x.Range.High }

// String returns the range.
func (x *RangeHead) String() string { return x.Range.String() }

// shift moves the range when its network moves.
func (x *RangeHead) shift(from, to netip.Addr) {
	x.Range.Range, _ = x.Range.Shift(from, to)
}

// place resolves the range within its network. Validate checks that it fits (see checkPlacement).
func (x *RangeHead) place(c *resource.Change, collection string, v4 bool) error {
	network, err := c.Tx.Get(x.Parent) // not c.Above: the network may have moved in this transaction
	if err != nil {
		return err
	}
	whole := RangeOf(network)
	if whole.Low.Is4() != v4 {
		return problem.Invalid("type", "%s cannot be in %s %s (%d)", x.Type, network.Type, whole, network.ID)
	}
	switch {
	case x.Range.Hardware != nil:
		return problem.Invalid("range", "a hardware address is only supported for IPv6 blocks")
	case x.Range.Relative != (space.Relative{}):
		r, err := x.Range.Relative.Resolve(whole)
		if err != nil {
			return problem.Invalid("range", "%v", err)
		}
		x.Range = schema.Range{Range: r}
	case x.Range.SizeOnly && v4:
		return problem.Invalid("range", "a size alone is only supported for IPv6 ranges; use start-end, or an offset and a size")
	case x.Range.SizeOnly:
		if x.Range.Range, err = x.firstFree(c, network, collection); err != nil {
			return err
		}
	}
	x.Range = schema.Range{Range: x.Range.Range, Dashed: true}
	if x.Range.Low.Is4() != v4 {
		return problem.Invalid("range", "%s is not of the address family of %s", x.Range, x.Type)
	}
	return nil
}

// checkPlacement rejects a range that is not within the hosts of its network or that overlaps a sibling.
func (x *RangeHead) checkPlacement(c *resource.Change, collection string) error {
	network, err := c.Tx.Get(x.Parent)
	if err != nil {
		return err
	}
	whole := RangeOf(network)
	hosts := space.Hosts(whole)
	if collection == "ranges" && whole.Low.Is6() { // a range may delegate the first prefix; its first address is never leased
		hosts = whole
	}
	if !hosts.Contains(x.Range.Range) {
		return problem.Field("IpRangeOutsideParent", "range", "%s is not within the hosts of %s %s (%d)", x.Range, network.Type, whole,
			network.ID)
	}
	other, err := c.Tx.FindOverlapping(x.Parent, collection, store.AddrKey(x.Range.Low), store.AddrKey(x.Range.High), x.ID)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return problem.Field("IpRangeOverlapsSiblings", "range", "%s overlaps %s %s (%d)", x.Range, other.Type, RangeOf(other).Dashed(), other.ID)
}

// firstFree finds the first part of the network of the requested size that does not overlap a sibling.
func (x *RangeHead) firstFree(c *resource.Change, network *store.Resource, collection string) (space.Range, error) {
	left := []space.Range{space.Hosts(RangeOf(network))}
	siblings, err := c.Tx.ListBelow(network.ID, collection, network.Low, network.High)
	if err != nil {
		return space.Range{}, err
	}
	for _, s := range siblings {
		last := left[len(left)-1]
		if s.ID != x.ID {
			left = append(left[:len(left)-1], last.Subtract(RangeOf(s))...)
		}
		if len(left) == 0 {
			break
		}
	}
	for _, free := range left {
		if found, err := space.FirstFit(free, x.Range.Bits); err == nil {
			return found, nil
		}
	}
	return space.Range{}, problem.Field("NoSpaceForRange", "range", "no free /%d in %s %s (%d)", x.Range.Bits, network.Type,
		spanOf(network), network.ID)
}

// IPv4DHCPRange is a range of addresses that a DHCP server assigns.
type IPv4DHCPRange struct {
	RangeHead
	// Usage counts the range's addresses by state.
	Usage json.RawMessage `api:"usage,computed,sums"`
	// Utilization is the use of the range by clients, with a forecast (Portolan extension).
	Utilization *Utilization `api:"utilization,computed"`
	// InheritedFields lists the fields whose values are inherited from a parent.
	InheritedFields []string `api:"_inheritedFields,readOnly"`
	// Template is the template that the range comes from.
	Template schema.Ref `api:"template" ref:"IPv4Template" back:"appliedResources"`
	// SplitAroundStaticAddresses excludes addresses that are in use from the range.
	SplitAroundStaticAddresses bool `api:"splitAroundStaticAddresses,put"`
	// ExclusionRanges lists the excluded parts of the range: start-end, or single addresses.
	ExclusionRanges []string `api:"exclusionRanges,put,notNull"`
	// LowWaterMark is a usage in percent. An event is raised when the usage falls below it.
	LowWaterMark *int64 `api:"lowWaterMark,inherit" min:"0" max:"100"`
	// HighWaterMark is a usage in percent. An event is raised when the usage rises above it.
	HighWaterMark *int64 `api:"highWaterMark,inherit" min:"0" max:"100"`
}

// BeforeWrite resolves the range and its exclusions.
func (x *IPv4DHCPRange) BeforeWrite(c *resource.Change) error {
	if err := keepInherited(c); err != nil {
		return err
	}
	if err := x.place(c, "ranges", true); err != nil {
		return err
	}
	return x.normalizeExclusions()
}

// AfterWrite changes the state of addresses outside of a range that became smaller, if the request asks for it.
func (x *IPv4DHCPRange) AfterWrite(c *resource.Change) error {
	state := orphanState.Value(c.Options)
	if state == "" || c.IsCreation() || !c.SetFields["range"] {
		return nil
	}
	return convertOrphans(c, x.Parent, RangeOf(c.Row), x.Range.Range, state)
}

// Validate rejects a range that does not fit or has crossed water marks. It schedules a water level check when a mark changes.
func (x *IPv4DHCPRange) Validate(c *resource.Change) error {
	if err := x.checkPlacement(c, "ranges"); err != nil {
		return err
	}
	if err := checkWaterMarks(x.LowWaterMark, x.HighWaterMark); err != nil {
		return err
	}
	if x.LowWaterMark != nil || x.HighWaterMark != nil || c.SetFields[lowWaterMark] || c.SetFields[highWaterMark] {
		c.Tx.Touch(policyTopic)
		markDirty(c.Tx, x.Parent)
	}
	return nil
}

// normalizeExclusions checks that the exclusions are within the range, in order, and do not overlap. It stores them as start-end.
func (x *IPv4DHCPRange) normalizeExclusions() error {
	var last space.Range
	for i, text := range x.ExclusionRanges {
		r, err := parseExclusion(text)
		if err != nil {
			return problem.Invalid("exclusionRanges", "%v", err)
		}
		if !x.Range.Contains(r) {
			return problem.Invalid("exclusionRanges", "%s is not within %s", r.Dashed(), x.Range)
		}
		if i > 0 && !last.High.Less(r.Low) {
			return problem.Invalid("exclusionRanges", "%s follows %s: ranges must be in order and must not overlap", r.Dashed(), last.Dashed())
		}
		x.ExclusionRanges[i], last = r.Dashed(), r
	}
	return nil
}

func parseExclusion(text string) (space.Range, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return space.Range{Low: a, High: a}, nil
	}
	return space.Parse(text)
}

// IPv6DHCPRange is a range of addresses that a DHCPv6 server assigns.
type IPv6DHCPRange struct {
	RangeHead
	// Usage counts the range's addresses by state.
	Usage json.RawMessage `api:"usage,computed,sums"`
	// Utilization is the use of the range by clients, with a forecast (Portolan extension).
	Utilization *Utilization `api:"utilization,computed"`
	// InheritedFields lists the fields whose values are inherited from a parent.
	InheritedFields []string `api:"_inheritedFields,readOnly"`
}

// BeforeWrite resolves the range.
func (x *IPv6DHCPRange) BeforeWrite(c *resource.Change) error { return x.place(c, "ranges", false) }

// takeOutsideRanges allocates the first free address of the network that is not in a DHCP range.
func takeOutsideRanges(tx *store.Tx, network int64) (netip.Addr, error) {
	first, end, err := freeFirstBelow(tx, network, "ranges")
	if err != nil {
		return netip.Addr{}, err
	}
	if end.Less(first.Low) {
		return first.Low, freeCut(tx, network, first, first.Low, first.Low)
	}
	for from := end.Next(); from.IsValid(); {
		free, err := freeFirst(tx, network, from)
		if err != nil {
			return netip.Addr{}, err
		}
		key := store.AddrKey(free.Low)
		r, err := tx.FindOverlapping(network, "ranges", key, key, 0)
		if errors.Is(err, store.ErrNotFound) {
			return free.Low, freeRemove(tx, network, free.Low, free.Low)
		}
		if err != nil {
			return netip.Addr{}, fmt.Errorf("find DHCP ranges: %w", err)
		}
		from = store.KeyAddr(r.High).Next()
	}
	return netip.Addr{}, space.ErrNotFree
}

// Validate rejects a range that does not fit.
func (x *IPv6DHCPRange) Validate(c *resource.Change) error { return x.checkPlacement(c, "ranges") }

// allocateWithin is the request option that selects the DHCP range or IP group for the next available address.
var allocateWithin = resource.Number("x-portolan-within",

	"The id of a DHCP range or IP group of the network: the next free address is taken out of it. Ours.")

// assignableSpace returns the space for the next available address. In a network this is every host outside of DHCP ranges; in an IP group
// likewise. In a DHCP range it is everything but the exclusions. id selects a range or group of the network; 0 selects the network itself.
func assignableSpace(tx *store.Tx, network *store.Resource, id int64) (part *store.Resource, let space.Set, err error) {
	part, whole := network, Usable(network)
	if id != 0 {
		if part, err = findPart(tx, network, id); err != nil {
			return nil, nil, err
		}
		whole = RangeOf(part)
	}
	if part.Collection == "ranges" {
		out, err := exclusionsOf(part)
		return part, out.Complement(whole), err
	}
	ranges, err := tx.ListBelow(network.ID, "ranges", part.Low, part.High)
	if err != nil {
		return nil, nil, err
	}
	var out space.Set
	for _, r := range ranges {
		out = out.Union(space.Set{RangeOf(r)})
	}
	return part, out.Complement(whole), nil
}

func findPart(tx *store.Tx, network *store.Resource, id int64) (*store.Resource, error) {
	part, err := tx.Get(id)
	if store.IsNotFound(err) || err == nil && (part.Parent != network.ID || part.Collection != "ranges" && part.Collection != "ipGroups") {
		return nil, allocateWithin.Refuse("range or IP group %d does not exist in %s %d", id, network.Type, network.ID)
	}
	return part, err
}

// exclusionsOf returns the exclusions of a stored DHCP range.
func exclusionsOf(r *store.Resource) (out space.Set, err error) {
	var texts []string
	if err := store.Members(r.Body, func(name, raw []byte) error {
		if string(name) == "exclusionRanges" {
			return json.Unmarshal(raw, &texts)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	for _, text := range texts {
		one, err := parseExclusion(text)
		if err != nil {
			return nil, err
		}
		out = out.Union(space.Set{one})
	}
	return out, nil
}

// exclusionLow returns the first address of an exclusion, or an invalid address if text is malformed.
func exclusionLow(text string) netip.Addr {
	r, err := parseExclusion(text)
	if err != nil { // BeforeWrite reports the error
		return netip.Addr{}
	}
	return r.Low
}
