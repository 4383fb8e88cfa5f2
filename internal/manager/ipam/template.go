package ipam

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/base/space"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerTemplates declares the collections of templates and what stands in them.
func registerTemplates(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "templates", Parents: []string{"configurations"}}, &IPv4Template{})
	r.Collection(resource.Collection{Name: "templateItems", Parents: []string{"templates"}},
		&IPv4DHCPRangeTemplateItem{}, &IPv4GatewayTemplateItem{}, &IPv4GroupTemplateItem{}, &IPv4ReservedRangeTemplateItem{})
	r.Computed(resource.ComputedSub{Below: "templates", Type: "IPv4Template", Name: "conflictingResources", Find: conflicting})
}

// TemplateHead is what every template has.
type TemplateHead struct {
	schema.Head `head:"required,nonblank" unique:"siblings"`
	// Configuration is the configuration the template lies in.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
}

// IPv4Template says how networks are laid out: gateway, reserved addresses, DHCP ranges and IP groups, by
// their places in a network.
type IPv4Template struct {
	TemplateHead `parents:"configurations"`
	// TemplateItems are its items: with their ids those that are there and stay, without one new ones. A body that gives them makes them all
	// that it has.
	TemplateItems json.RawMessage `api:"templateItems,writeOnly,list"`
}

// AfterWrite gives a new template its gateway, the first host, and the items that a request has in it.
func (x *IPv4Template) AfterWrite(c *resource.Change) error {
	if c.Creates() {
		t, _ := c.API.Type(gatewayItem)
		i := &IPv4GatewayTemplateItem{}
		i.StartOffset, i.RangeDefinitionFormat = 1, fromStart
		i.Type, i.Parent, i.Config = t.Name, x.ID, x.Config
		if _, err := c.Following().Create(t, i); err != nil {
			return err
		}
	}
	return x.keepItems(c)
}

// gatewayItem is the type of the item that says where the gateway is.
const gatewayItem = "IPv4GatewayTemplateItem"

// The ways in which an item of a template says where it lies.
const (
	fromStart        = "OFFSET_SIZE_FROM_START"
	fromEnd          = "OFFSET_SIZE_FROM_END"
	byOffsets        = "OFFSETS"
	percentFromStart = "OFFSET_PERCENTAGE_FROM_START"
	percentFromEnd   = "OFFSET_PERCENTAGE_FROM_END"
)

// placeOf gives what lies in a network from an offset on, so many addresses, or up to another offset; ok is
// false where not all of it is hosts.
func placeOf(network space.Range, format string, start, end, size int64) (r space.Range, ok bool) {
	hosts := space.Hosts(network)
	count := big.NewInt(size)
	if strings.Contains(format, "PERCENTAGE") {
		if count.Mul(count, hosts.Size()).Div(count, big.NewInt(100)); count.Sign() == 0 {
			count.SetInt64(1)
		}
	}
	last := new(big.Int).Sub(network.Size(), big.NewInt(1))
	low, high := big.NewInt(start), new(big.Int)
	switch format {
	case byOffsets:
		high.SetInt64(end)
	case fromEnd, percentFromEnd:
		high.Sub(last, low)
		low = new(big.Int).Sub(high, count)
		low.Add(low, big.NewInt(1))
	default:
		high.Add(low, count)
		high.Sub(high, big.NewInt(1))
	}
	if low.Sign() < 0 || high.Cmp(last) > 0 || low.Cmp(high) > 0 {
		return r, false
	}
	r = space.Range{Low: network.Nth(low), High: network.Nth(high)}
	return r, hosts.Contains(r)
}

// TemplateItem is what every part of an IPv4 template has.
type TemplateItem struct {
	// StartOffset is how far from the network's first address, or from its last one, the part begins.
	StartOffset int64 `api:"startOffset,required" min:"1"`
}

// belongs refuses an item in anything but an IPv4 template.
func belongs(c *resource.Change, h *schema.Head) error {
	parent, err := c.Tx.Get(h.Parent)
	if err == nil && parent.Type != "IPv4Template" {
		return problem.Invalid("type", "an %s belongs to an IPv4Template, not to %s %d", h.Type, parent.Type, parent.ID)
	}
	return err
}

// part is an item of a template as it is laid out in a network.
type part interface {
	schema.Object
	in(network space.Range) (space.Range, bool)
}

// IPv4GatewayTemplateItem says where the gateway is.
type IPv4GatewayTemplateItem struct {
	schema.Head `head:"readOnly" post:"no"`
	TemplateItem
	// RangeDefinitionFormat says from which end the offset counts.
	RangeDefinitionFormat string `api:"rangeDefinitionFormat,required" enum:"OFFSET_SIZE_FROM_START|OFFSET_SIZE_FROM_END"`
}

func (x *IPv4GatewayTemplateItem) in(network space.Range) (space.Range, bool) {
	return placeOf(network, x.RangeDefinitionFormat, x.StartOffset, 0, 1)
}

// BeforeWrite refuses an item outside of an IPv4 template.
func (x *IPv4GatewayTemplateItem) BeforeWrite(c *resource.Change) error { return belongs(c, &x.Head) }

// IPv4ReservedRangeTemplateItem says which addresses are reserved.
type IPv4ReservedRangeTemplateItem struct {
	schema.Head
	TemplateItem
	// RangeDefinitionFormat says from which end the offset counts.
	RangeDefinitionFormat string `api:"rangeDefinitionFormat,required" enum:"OFFSET_SIZE_FROM_START|OFFSET_SIZE_FROM_END"`
	// Size is how many addresses it has.
	Size int64 `api:"size,required" min:"1"`
}

func (x *IPv4ReservedRangeTemplateItem) in(network space.Range) (space.Range, bool) {
	return placeOf(network, x.RangeDefinitionFormat, x.StartOffset, 0, x.Size)
}

// maxReserved is how many addresses one item may reserve.
const maxReserved = 65536

// BeforeWrite refuses an item outside of an IPv4 template, and one of more addresses than are made at once.
func (x *IPv4ReservedRangeTemplateItem) BeforeWrite(c *resource.Change) error {
	if x.Size > maxReserved {
		return problem.Invalid("size", "%d is more than %d, which is the most that an item reserves", x.Size, maxReserved)
	}
	return belongs(c, &x.Head)
}

// IPv4GroupTemplateItem says where an IP group lies.
type IPv4GroupTemplateItem struct {
	schema.Head `head:"required,nonblank"`
	TemplateItem
	// RangeDefinitionFormat says from which end the offset counts.
	RangeDefinitionFormat string `api:"rangeDefinitionFormat,required" enum:"OFFSET_SIZE_FROM_START|OFFSET_SIZE_FROM_END"`
	// Size is how many addresses it has.
	Size int64 `api:"size,required" min:"1"`
}

func (x *IPv4GroupTemplateItem) in(network space.Range) (space.Range, bool) {
	return placeOf(network, x.RangeDefinitionFormat, x.StartOffset, 0, x.Size)
}

// BeforeWrite refuses an item outside of an IPv4 template.
func (x *IPv4GroupTemplateItem) BeforeWrite(c *resource.Change) error { return belongs(c, &x.Head) }

// IPv4DHCPRangeTemplateItem says where a DHCP range lies.
type IPv4DHCPRangeTemplateItem struct {
	schema.Head
	TemplateItem
	// RangeDefinitionFormat says how the range is written down.
	RangeDefinitionFormat string `api:"rangeDefinitionFormat,required" enum:"OFFSET_SIZE_FROM_START|OFFSET_SIZE_FROM_END|OFFSETS|OFFSET_PERCENTAGE_FROM_START|OFFSET_PERCENTAGE_FROM_END"`
	// EndOffset is how far from the network's first address the range ends, with OFFSETS.
	EndOffset *int64 `api:"endOffset" min:"1"`
	// Size is how many addresses, or how many percent of the hosts, it has.
	Size *int64 `api:"size" min:"1"`
	// SplitAroundStaticAddresses says whether the range leaves out static addresses within it.
	SplitAroundStaticAddresses bool `api:"splitAroundStaticAddresses,put"`
}

func (x *IPv4DHCPRangeTemplateItem) in(network space.Range) (space.Range, bool) {
	end, size := int64(0), int64(0)
	if x.EndOffset != nil {
		end = *x.EndOffset
	}
	if x.Size != nil {
		size = *x.Size
	}
	return placeOf(network, x.RangeDefinitionFormat, x.StartOffset, end, size)
}

// BeforeWrite asks for what the format needs.
func (x *IPv4DHCPRangeTemplateItem) BeforeWrite(c *resource.Change) error {
	switch offsets := x.RangeDefinitionFormat == byOffsets; {
	case offsets && x.EndOffset == nil:
		return problem.Invalid("endOffset", "is needed with %s", byOffsets)
	case offsets && *x.EndOffset < x.StartOffset:
		return problem.Invalid("endOffset", "%d is before startOffset, %d", *x.EndOffset, x.StartOffset)
	case !offsets && x.Size == nil:
		return problem.Invalid("size", "is needed with %s", x.RangeDefinitionFormat)
	case strings.Contains(x.RangeDefinitionFormat, "PERCENTAGE") && *x.Size > 100:
		return problem.Invalid("size", "%d is more than 100 percent", *x.Size)
	}
	return belongs(c, &x.Head)
}

// partsOf reads the items of an IPv4 template, the gateway first.
func partsOf(c *resource.Change, template int64) (parts []part, err error) {
	ids, err := c.Tx.Children(template)
	if err != nil {
		return nil, err
	}
	rows, err := c.Tx.Load(ids)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if rows[id].Collection != "templateItems" {
			continue
		}
		o, err := c.API.Object(rows[id])
		if err != nil {
			return nil, err
		}
		if p, ok := o.(part); ok {
			parts = append(parts, p)
		}
	}
	slices.SortStableFunc(parts, func(a, b part) int { return rank(a) - rank(b) })
	return parts, nil
}

// rank is the order in which items are applied: what needs addresses comes before what lies over them.
func rank(p part) int {
	switch p.(type) {
	case *IPv4GatewayTemplateItem:
		return 0
	case *IPv4ReservedRangeTemplateItem:
		return 1
	}
	return 2
}

// TemplatedRows gives the networks, or zones, that have a template.
func TemplatedRows(tx *store.Tx, template int64, kind string) (rows []*store.Resource, err error) {
	err = tx.List(store.Query{From: store.Resources, Where: store.LinksTo{Targets: []int64{template}, Field: "template"}},
		func(r *store.Resource) error {
			if r.Type == kind {
				rows = append(rows, r.Clone())
			}
			return nil
		})
	return rows, err
}

// conflicting gives the resources that are in the way of a template in the networks that have it.
func conflicting(tx *store.Tx, api *resource.API, template *store.Resource) (ids []int64, err error) {
	c := &resource.Change{Tx: tx, API: api}
	networks, err := TemplatedRows(tx, template.ID, "IPv4Network")
	if err != nil {
		return nil, err
	}
	parts, err := partsOf(c, template.ID)
	if err != nil {
		return nil, err
	}
	for _, network := range networks {
		for _, p := range parts {
			r, ok := p.in(RangeOf(network))
			if !ok {
				continue
			}
			found, err := inTheWayOf(c, network, p, r)
			if err != nil {
				return nil, err
			}
			for _, one := range found {
				ids = append(ids, one.ID)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// inTheWayOf gives what is in the way of an item that is to lie at r in a network.
func inTheWayOf(c *resource.Change, network *store.Resource, p part, r space.Range) (found []*store.Resource, err error) {
	low, high := store.AddrKey(r.Low), store.AddrKey(r.High)
	collection := "addresses"
	switch p.(type) {
	case *IPv4DHCPRangeTemplateItem:
		collection = "ranges"
	case *IPv4GroupTemplateItem:
		collection = "ipGroups"
	}
	rows, err := c.Tx.Below(network.ID, collection, low, high)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		o, err := c.API.Object(row)
		if err != nil {
			return nil, err
		}
		switch x := o.(type) {
		case *IPv4Address:
			_, reserves := p.(*IPv4ReservedRangeTemplateItem)
			if reserves && x.State == "RESERVED" || !reserves && x.State == gateway {
				continue
			}
		default:
			if RangeOf(row) == r {
				continue
			}
		}
		found = append(found, row)
	}
	if _, ok := p.(*IPv4GatewayTemplateItem); !ok {
		return found, nil
	}
	// Another gateway is in the way as well.
	o, err := c.API.Object(network)
	if err != nil {
		return nil, err
	}
	if n, ok := o.(*IPv4Network); ok && n.Gateway.IsValid() && n.Gateway != r.Low {
		other, err := AddressAt(c.Tx, network.ID, n.Gateway)
		if err != nil {
			return nil, err
		}
		found = append(found, other)
	}
	return found, nil
}
