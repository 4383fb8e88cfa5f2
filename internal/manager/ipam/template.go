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

// registerTemplates declares the collections of templates and template items.
func registerTemplates(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "templates", Parents: []string{"configurations"}}, &IPv4Template{})
	r.Collection(resource.Collection{Name: "templateItems", Parents: []string{"templates"}},
		&IPv4DHCPRangeTemplateItem{}, &IPv4GatewayTemplateItem{}, &IPv4GroupTemplateItem{}, &IPv4ReservedRangeTemplateItem{})
	r.Computed(resource.ComputedSub{Below: "templates", Type: "IPv4Template", Name: "conflictingResources", Find: findAllConflicts})
}

// TemplateHead has the common fields of all templates.
type TemplateHead struct {
	schema.Head `head:"required,nonblank" unique:"siblings"`
	// Configuration is the configuration that contains the template.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
}

// IPv4Template is a layout for networks. Its items place the gateway, reserved addresses, DHCP ranges and IP groups at offsets within a
// network.
type IPv4Template struct {
	TemplateHead `parents:"configurations"`
	// TemplateItems is the complete list of items. An item with an id changes the existing item, an item without an id is created. Existing
	// items that are not in the list are deleted, except the gateway item.
	TemplateItems json.RawMessage `api:"templateItems,writeOnly,list"`
}

// AfterWrite creates the gateway item of a new template, at the first host, and saves the items of the request.
func (x *IPv4Template) AfterWrite(c *resource.Change) error {
	if c.IsCreation() {
		t, _ := c.API.Type(gatewayItem)
		i := &IPv4GatewayTemplateItem{}
		i.StartOffset, i.RangeDefinitionFormat = 1, fromStart
		i.Type, i.Parent, i.Config = t.Name, x.ID, x.Config
		if _, err := c.Following().Create(t, i); err != nil {
			return err
		}
	}
	return x.replaceItems(c)
}

// gatewayItem is the type of the item for the gateway.
const gatewayItem = "IPv4GatewayTemplateItem"

// Formats of the position of a template item.
const (
	fromStart        = "OFFSET_SIZE_FROM_START"
	fromEnd          = "OFFSET_SIZE_FROM_END"
	byOffsets        = "OFFSETS"
	percentFromStart = "OFFSET_PERCENTAGE_FROM_START"
	percentFromEnd   = "OFFSET_PERCENTAGE_FROM_END"
)

// locateItem returns the range of an item in a network. The range starts at an offset and has a size, or ends at another offset, depending
// on format. ok is false if part of the range is not a host.
func locateItem(network space.Range, format string, start, end, size int64) (r space.Range, ok bool) {
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

// TemplateItem has the common field of all items of an IPv4 template.
type TemplateItem struct {
	// StartOffset is the distance of the item from the first or the last address of the network.
	StartOffset int64 `api:"startOffset,required" min:"1"`
}

// checkItemParent rejects an item whose parent is not an IPv4 template.
func checkItemParent(c *resource.Change, h *schema.Head) error {
	parent, err := c.Tx.Get(h.Parent)
	if err == nil && parent.Type != "IPv4Template" {
		return problem.Invalid("type", "%s requires an IPv4Template as its parent, not %s %d", h.Type, parent.Type, parent.ID)
	}
	return err
}

// layoutItem is a template item that has a range in a network.
type layoutItem interface {
	schema.Object
	locate(network space.Range) (space.Range, bool)
}

// IPv4GatewayTemplateItem is the position of the gateway.
type IPv4GatewayTemplateItem struct {
	schema.Head `head:"readOnly" post:"no"`
	TemplateItem
	// RangeDefinitionFormat selects the end of the network that the offset counts from.
	RangeDefinitionFormat string `api:"rangeDefinitionFormat,required" enum:"OFFSET_SIZE_FROM_START|OFFSET_SIZE_FROM_END"`
}

func (x *IPv4GatewayTemplateItem) locate(network space.Range) (space.Range, bool) {
	return locateItem(network, x.RangeDefinitionFormat, x.StartOffset, 0, 1)
}

// BeforeWrite rejects an item outside of an IPv4 template.
func (x *IPv4GatewayTemplateItem) BeforeWrite(c *resource.Change) error {
	return checkItemParent(c, &x.Head)
}

// IPv4ReservedRangeTemplateItem is a range of reserved addresses.
type IPv4ReservedRangeTemplateItem struct {
	schema.Head
	TemplateItem
	// RangeDefinitionFormat selects the end of the network that the offset counts from.
	RangeDefinitionFormat string `api:"rangeDefinitionFormat,required" enum:"OFFSET_SIZE_FROM_START|OFFSET_SIZE_FROM_END"`
	// Size is the number of addresses.
	Size int64 `api:"size,required" min:"1"`
}

func (x *IPv4ReservedRangeTemplateItem) locate(network space.Range) (space.Range, bool) {
	return locateItem(network, x.RangeDefinitionFormat, x.StartOffset, 0, x.Size)
}

// maxReserved is the maximum number of addresses in one reserved range.
const maxReserved = 65536

// BeforeWrite rejects an item outside of an IPv4 template and an item with more than maxReserved addresses.
func (x *IPv4ReservedRangeTemplateItem) BeforeWrite(c *resource.Change) error {
	if x.Size > maxReserved {
		return problem.Invalid("size", "%d is more than %d, the maximum of an item", x.Size, maxReserved)
	}
	return checkItemParent(c, &x.Head)
}

// IPv4GroupTemplateItem is the position of an IP group.
type IPv4GroupTemplateItem struct {
	schema.Head `head:"required,nonblank"`
	TemplateItem
	// RangeDefinitionFormat selects the end of the network that the offset counts from.
	RangeDefinitionFormat string `api:"rangeDefinitionFormat,required" enum:"OFFSET_SIZE_FROM_START|OFFSET_SIZE_FROM_END"`
	// Size is the number of addresses.
	Size int64 `api:"size,required" min:"1"`
}

func (x *IPv4GroupTemplateItem) locate(network space.Range) (space.Range, bool) {
	return locateItem(network, x.RangeDefinitionFormat, x.StartOffset, 0, x.Size)
}

// BeforeWrite rejects an item outside of an IPv4 template.
func (x *IPv4GroupTemplateItem) BeforeWrite(c *resource.Change) error {
	return checkItemParent(c, &x.Head)
}

// IPv4DHCPRangeTemplateItem is the position of a DHCP range.
type IPv4DHCPRangeTemplateItem struct {
	schema.Head
	TemplateItem
	// RangeDefinitionFormat is the format of the position.
	RangeDefinitionFormat string `api:"rangeDefinitionFormat,required" enum:"OFFSET_SIZE_FROM_START|OFFSET_SIZE_FROM_END|OFFSETS|OFFSET_PERCENTAGE_FROM_START|OFFSET_PERCENTAGE_FROM_END"`
	// EndOffset is the distance of the last address from the first address of the network. It is required with OFFSETS.
	EndOffset *int64 `api:"endOffset" min:"1"`
	// Size is the number of addresses, or a percentage of the hosts.
	Size *int64 `api:"size" min:"1"`
	// SplitAroundStaticAddresses excludes static addresses from the range.
	SplitAroundStaticAddresses bool `api:"splitAroundStaticAddresses,put"`
}

func (x *IPv4DHCPRangeTemplateItem) locate(network space.Range) (space.Range, bool) {
	end, size := int64(0), int64(0)
	if x.EndOffset != nil {
		end = *x.EndOffset
	}
	if x.Size != nil {
		size = *x.Size
	}
	return locateItem(network, x.RangeDefinitionFormat, x.StartOffset, end, size)
}

// BeforeWrite rejects an item that lacks a field required by its format.
func (x *IPv4DHCPRangeTemplateItem) BeforeWrite(c *resource.Change) error {
	switch offsets := x.RangeDefinitionFormat == byOffsets; {
	case offsets && x.EndOffset == nil:
		return problem.Invalid("endOffset", "is required with %s", byOffsets)
	case offsets && *x.EndOffset < x.StartOffset:
		return problem.Invalid("endOffset", "%d is before startOffset (%d)", *x.EndOffset, x.StartOffset)
	case !offsets && x.Size == nil:
		return problem.Invalid("size", "is required with %s", x.RangeDefinitionFormat)
	case strings.Contains(x.RangeDefinitionFormat, "PERCENTAGE") && *x.Size > 100:
		return problem.Invalid("size", "%d is more than 100 percent", *x.Size)
	}
	return checkItemParent(c, &x.Head)
}

// readItems returns the items of an IPv4 template, the gateway first.
func readItems(c *resource.Change, template int64) (parts []layoutItem, err error) {
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
		if p, ok := o.(layoutItem); ok {
			parts = append(parts, p)
		}
	}
	slices.SortStableFunc(parts, func(a, b layoutItem) int { return rank(a) - rank(b) })
	return parts, nil
}

// rank returns the position of an item when a template is applied. Items that allocate addresses come before items that cover them.
func rank(p layoutItem) int {
	switch p.(type) {
	case *IPv4GatewayTemplateItem:
		return 0
	case *IPv4ReservedRangeTemplateItem:
		return 1
	}
	return 2
}

// TemplatedRows returns the resources of type kind, networks or zones, that have the template.
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

// findAllConflicts returns the ids of the resources that conflict with a template in the networks that have it.
func findAllConflicts(tx *store.Tx, api *resource.API, template *store.Resource) (ids []int64, err error) {
	c := &resource.Change{Tx: tx, API: api}
	networks, err := TemplatedRows(tx, template.ID, "IPv4Network")
	if err != nil {
		return nil, err
	}
	parts, err := readItems(c, template.ID)
	if err != nil {
		return nil, err
	}
	for _, network := range networks {
		for _, p := range parts {
			r, ok := p.locate(RangeOf(network))
			if !ok {
				continue
			}
			found, err := findConflicts(c, network, p, r)
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

// findConflicts returns the resources of a network that conflict with an item at range r.
func findConflicts(c *resource.Change, network *store.Resource, p layoutItem, r space.Range) (found []*store.Resource, err error) {
	low, high := store.AddrKey(r.Low), store.AddrKey(r.High)
	collection := "addresses"
	switch p.(type) {
	case *IPv4DHCPRangeTemplateItem:
		collection = "ranges"
	case *IPv4GroupTemplateItem:
		collection = "ipGroups"
	}
	rows, err := c.Tx.ListBelow(network.ID, collection, low, high)
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
	// A different gateway is a conflict as well.
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
