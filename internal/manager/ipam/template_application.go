package ipam

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/base/space"
	"portolan/internal/engine/event"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerTemplateApplications declares the collection of template applications, which are kept as records.
func registerTemplateApplications(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "templateApplications"}, &IPv4TemplateApplication{})
}

// Strategies for conflicts with existing resources.
const (
	useExisting     = "USE_EXISTING"
	Overwrite       = "OVERWRITE"
	AbortOnConflict = "ABORT"
)

// Application has the common fields of all template applications.
type Application struct {
	schema.Head `head:"readOnly"`
	// State is the progress. It is COMPLETED_WITH_WARNINGS if there were conflicts.
	State string `api:"state,readOnly" enum:"PENDING|QUEUED|RUNNING|CANCELLED|CANCELLING|COMPLETED|COMPLETED_WITH_WARNINGS|FAILED|UNKNOWN"`
	// StartDateTime is the start time.
	StartDateTime time.Time `api:"startDateTime,readOnly"`
	// CompletionDateTime is the end time.
	CompletionDateTime time.Time `api:"completionDateTime,readOnly"`
	// ConflictResolutionStrategy is the treatment of conflicting resources. USE_EXISTING, the default, keeps them; OVERWRITE replaces them;
	// ABORT lists them and changes nothing.
	ConflictResolutionStrategy string `api:"conflictResolutionStrategy" enum:"USE_EXISTING|OVERWRITE|ABORT"`
}

// Start sets the default strategy, the state and the times of a new application.
func (x *Application) Start(c *resource.Change) {
	if x.ConflictResolutionStrategy == "" {
		x.ConflictResolutionStrategy = useExisting
	}
	x.State, x.StartDateTime = "COMPLETED", c.Tx.Now()
	x.CompletionDateTime = x.StartDateTime
}

// TemplateSubjects returns the resources that a template is applied to. If the parent of the application has the type kind, it is the only
// one. If the parent is the template, these are all resources that have it.
func TemplateSubjects(c *resource.Change, parent int64, kind, templateKind string) (rows []*store.Resource, err error) {
	above, err := c.Tx.Get(parent)
	if err != nil {
		return nil, err
	}
	switch {
	case above.Type == templateKind:
		return TemplatedRows(c.Tx, parent, kind)
	case above.Type != kind:
		return nil, problem.Invalid("type", "%s %d does not support this type of template", above.Type, above.ID)
	case above.Ref("template") == 0:
		return nil, problem.BadRequest("TemplateNotAssigned", "%s %d has no template", above.Type, above.ID)
	}
	return []*store.Resource{above}, nil
}

// IPv4TemplateApplication applies IPv4 templates to networks. It is kept as a record of the operation.
type IPv4TemplateApplication struct {
	Application `parents:"networks|templates|addresses|blocks|ranges"`
	// DeploymentOptionsApplied enables deployment options.
	DeploymentOptionsApplied *bool `api:"deploymentOptionsApplied"`
	// GatewayItemApplied enables the gateway item. The default of this and the following fields is true.
	GatewayItemApplied *bool `api:"gatewayItemApplied"`
	// ReservedRangeItemsApplied enables reserved range items.
	ReservedRangeItemsApplied *bool `api:"reservedRangeItemsApplied"`
	// DHCPRangeItemsApplied enables DHCP range items.
	DHCPRangeItemsApplied *bool `api:"dhcpRangeItemsApplied"`
	// IPGroupItemsApplied enables IP group items.
	IPGroupItemsApplied *bool `api:"ipGroupItemsApplied"`
	// OrphanedAddressConversionStrategy is the new state of addresses that are no longer in a DHCP range.
	OrphanedAddressConversionStrategy string `api:"orphanedAddressConversionStrategy" enum:"STATIC|DHCP_RESERVED|UNASSIGNED"`
}

// BeforeWrite applies the templates.
func (x *IPv4TemplateApplication) BeforeWrite(c *resource.Change) error {
	if !c.IsCreation() {
		return nil
	}
	x.Start(c)
	networks, err := x.networks(c)
	if err != nil {
		return err
	}
	for _, network := range networks {
		a := &networkApplication{c: c, x: x, network: network}
		if err := a.run(network.Ref("template")); err != nil {
			return err
		}
		if len(a.warnings) == 0 {
			continue
		}
		x.State = "COMPLETED_WITH_WARNINGS"
		if err := event.Add(c.Tx, event.Event{EventType: "WARNING", Category: "IP_TEMPLATE", SourceName: nameOf(network),
			Message: fmt.Sprintf("Template %d was only partly applied to network %s: %s", network.Ref("template"), nameOf(network),
				strings.Join(a.warnings, "; "))}, network.ID); err != nil {
			return err
		}
	}
	return nil
}

// networks returns the networks that templates are applied to. For a block these are all networks below it that have a template. For a
// range or address it is the network that contains it. Otherwise TemplateSubjects decides.
func (x *IPv4TemplateApplication) networks(c *resource.Change) ([]*store.Resource, error) {
	at, err := c.Tx.Head(x.Parent)
	if err != nil {
		return nil, err
	}
	switch at.Type {
	case "IPv4Block":
		found, err := templatedBelow(c.Tx, at.ID)
		if err == nil && len(found) == 0 {
			err = problem.BadRequest("TemplateNotAssigned", "no network in IPv4Block %d has a template", at.ID)
		}
		return found, err
	case "IPv4DHCPRange", "IPv4Address":
		return TemplateSubjects(c, at.Parent, "IPv4Network", "")
	}
	return TemplateSubjects(c, at.ID, "IPv4Network", "IPv4Template")
}

// templatedBelow returns the networks below a block, at any depth, that have a template.
func templatedBelow(tx *store.Tx, block int64) (networks []*store.Resource, err error) {
	for blocks := []int64{block}; len(blocks) > 0; blocks = blocks[1:] {
		if err := tx.List(store.Query{From: store.Resources, Where: store.HasParent(blocks[0])}, func(r *store.Resource) error {
			switch {
			case r.Type == "IPv4Block":
				blocks = append(blocks, r.ID)
			case r.Type == "IPv4Network" && r.Ref("template") != 0:
				networks = append(networks, r.Clone())
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return networks, nil
}

// networkApplication applies a template to one network.
type networkApplication struct {
	c        *resource.Change
	x        *IPv4TemplateApplication
	network  *store.Resource
	warnings []string
}

// appliesTo reports whether items of the type of p are applied.
func (x *IPv4TemplateApplication) appliesTo(p layoutItem) bool {
	flag := x.DHCPRangeItemsApplied
	switch p.(type) {
	case *IPv4GatewayTemplateItem:
		flag = x.GatewayItemApplied
	case *IPv4ReservedRangeTemplateItem:
		flag = x.ReservedRangeItemsApplied
	case *IPv4GroupTemplateItem:
		flag = x.IPGroupItemsApplied
	}
	return flag == nil || *flag
}

func (a *networkApplication) run(template int64) error {
	parts, err := readItems(a.c, template)
	if err != nil {
		return err
	}
	var all []*store.Resource
	for _, p := range parts {
		if !a.x.appliesTo(p) {
			continue
		}
		r, ok := p.locate(RangeOf(a.network))
		if !ok {
			if a.x.ConflictResolutionStrategy == AbortOnConflict {
				return problem.Conflict("TemplateConflict", "item %d of template %d is not within the hosts of network %s (%d)",
					schema.HeadOf(p).ID, template, spanOf(a.network), a.network.ID)
			}
			a.warnings = append(a.warnings, fmt.Sprintf("item %d is not within its host addresses", schema.HeadOf(p).ID))
			continue
		}
		found, err := findConflicts(a.c, a.network, p, r)
		if err != nil {
			return err
		}
		if a.x.ConflictResolutionStrategy == AbortOnConflict {
			all = append(all, found...)
			continue
		}
		if err := a.applyItem(p, r, found); err != nil {
			return err
		}
	}
	if len(all) > 0 {
		return conflictError(problem.Conflict, "TemplateConflict",
			fmt.Sprintf("template %d cannot be applied to network %d: it conflicts with", template,
				a.network.ID), all)
	}
	if a.x.ConflictResolutionStrategy != AbortOnConflict {
		return nil
	}
	// No resource conflicts with the items: apply them.
	quiet := *a.x
	quiet.ConflictResolutionStrategy = useExisting
	again := &networkApplication{c: a.c, x: &quiet, network: a.network}
	return again.run(template)
}

// applyItem applies one item to the network.
func (a *networkApplication) applyItem(p layoutItem, r space.Range, found []*store.Resource) error {
	switch p.(type) {
	case *IPv4GatewayTemplateItem:
		return a.applyGateway(r.Low, found)
	case *IPv4ReservedRangeTemplateItem:
		return a.applyReserved(r, found)
	}
	return a.applyRange(p, r, found)
}

// warnKept adds a warning for each conflicting resource that was kept.
func (a *networkApplication) warnKept(found []*store.Resource) {
	for _, r := range found {
		a.warnings = append(a.warnings, fmt.Sprintf("kept the existing %s %s (%d)", r.Type, spanText(r), r.ID))
	}
}

func (a *networkApplication) change() *resource.Change {
	return a.c.Following()
}

func (a *networkApplication) applyGateway(at netip.Addr, found []*store.Resource) error {
	o, err := a.c.API.Object(a.network)
	if err != nil {
		return err
	}
	n, ok := o.(*IPv4Network)
	if !ok || n.Gateway == at {
		return nil
	}
	if len(found) > 0 && a.x.ConflictResolutionStrategy != Overwrite {
		a.warnKept(found)
		return nil
	}
	for _, r := range found {
		if RangeOf(r).Low == at { // a host has the address of the new gateway
			if err := a.change().Delete(r); err != nil {
				return err
			}
		}
	}
	a.network, err = a.change().Change(a.network, func(o schema.Object) { o.(*IPv4Network).Gateway = at })
	return err
}

func (a *networkApplication) applyReserved(r space.Range, found []*store.Resource) error {
	if len(found) > 0 && a.x.ConflictResolutionStrategy != Overwrite {
		a.warnKept(found)
	} else {
		for _, row := range found {
			o, err := a.c.API.Object(row)
			if err != nil {
				return err
			}
			if x, ok := o.(*IPv4Address); ok && x.State == gateway {
				a.warnKept([]*store.Resource{row})
				continue
			}
			if _, err := a.change().Change(row, func(o schema.Object) { o.(*IPv4Address).State = "RESERVED" }); err != nil {
				return err
			}
		}
	}
	var free []netip.Addr
	if err := freeWithin(a.c.Tx, a.network.ID, r.Low, r.High, false, func(i space.Range) bool {
		for at := i.Low; ; at = at.Next() {
			if free = append(free, at); at == i.High {
				return true
			}
		}
	}); err != nil {
		return err
	}
	t, _ := a.c.API.Type("IPv4Address")
	objects := make([]schema.Object, len(free))
	for i, at := range free {
		o := &IPv4Address{Assignment: Assignment{Address: at}, State: "RESERVED"}
		o.Type, o.Parent, o.Config = t.Name, a.network.ID, a.network.Configuration
		objects[i] = o
	}
	if _, err := freeRemoveMany(a.c.Tx, a.network.ID, free); err != nil {
		return err
	}
	_, err := a.c.CreateMany(t, objects)
	return err
}

// applyRange creates a DHCP range or an IP group.
func (a *networkApplication) applyRange(p layoutItem, r space.Range, found []*store.Resource) error {
	if len(found) > 0 && a.x.ConflictResolutionStrategy != Overwrite {
		a.warnKept(found)
		return nil
	}
	for _, row := range found {
		if state := a.x.OrphanedAddressConversionStrategy; state != "" && row.Collection == "ranges" {
			if err := convertOrphans(a.change(), a.network.ID, RangeOf(row), r, state); err != nil {
				return err
			}
		}
		if err := a.change().Delete(row); err != nil {
			return err
		}
	}
	collection, kind := "ipGroups", "IPv4Group"
	head := RangeHead{Range: schema.Range{Range: r, Dashed: true}}
	var o schema.Object
	if x, ok := p.(*IPv4DHCPRangeTemplateItem); ok {
		collection, kind = "ranges", "IPv4DHCPRange"
		o = &IPv4DHCPRange{RangeHead: head, SplitAroundStaticAddresses: x.SplitAroundStaticAddresses, ExclusionRanges: []string{},
			Template: schema.Ref{ID: x.Parent}}
	} else {
		o = &IPv4Group{RangeHead: head}
	}
	same, err := a.c.Tx.FindOverlapping(a.network.ID, collection, store.AddrKey(r.Low), store.AddrKey(r.High), 0)
	if err == nil && RangeOf(same) == r { // the item was applied before
		return nil
	}
	h := schema.HeadOf(o)
	h.Type, h.Name, h.Parent, h.Config = kind, schema.HeadOf(p).Name, a.network.ID, a.network.Configuration
	t, _ := a.c.API.Type(kind)
	_, err = a.change().Create(t, o)
	return err
}
