package dns

import (
	"fmt"

	"portolan/internal/base/naming"
	"portolan/internal/base/problem"
	"portolan/internal/engine/event"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/ipam"
)

// registerZoneTemplates declares zone templates and their applications.
func registerZoneTemplates(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "templates", Parents: []string{"views"}}, &ZoneTemplate{})
	r.Collection(resource.Collection{Name: "templateApplications"}, &ZoneTemplateApplication{})
	r.Computed(resource.ComputedSub{Below: "templates", Type: "ZoneTemplate", Name: "conflictingResources", Find: conflictingRecords})
}

// ZoneTemplate contains records for zones.
type ZoneTemplate struct{ ipam.TemplateHead }

// conflictingRecords returns the ids of the records that conflict with a template in the zones that have it.
func conflictingRecords(tx *store.Tx, api *resource.API, template *store.Resource) (ids []int64, err error) {
	c := &resource.Change{Tx: tx, API: api}
	zones, err := ipam.TemplatedRows(tx, template.ID, "Zone")
	if err != nil {
		return nil, err
	}
	for _, zone := range zones {
		a := &zoneApplication{c: c, zone: zone, template: template}
		if err := a.compare(); err != nil {
			return nil, err
		}
		for _, r := range a.conflicts {
			ids = append(ids, r.ID)
		}
	}
	return ids, nil
}

// ZoneTemplateApplication applies zone templates to zones. It is kept as a record of the operation.
type ZoneTemplateApplication struct {
	ipam.Application `parents:"templates|zones"`
}

// BeforeWrite applies the templates.
func (x *ZoneTemplateApplication) BeforeWrite(c *resource.Change) error {
	if !c.IsCreation() {
		return nil
	}
	x.Start(c)
	zones, err := ipam.TemplateSubjects(c, x.Parent, "Zone", "ZoneTemplate")
	if err != nil {
		return err
	}
	for _, zone := range zones {
		template, err := c.Tx.Get(zone.Ref("template"))
		if err != nil {
			return err
		}
		a := &zoneApplication{c: c, zone: zone, template: template}
		if err := a.compare(); err != nil {
			return err
		}
		if len(a.conflicts) > 0 && x.ConflictResolutionStrategy == ipam.AbortOnConflict {
			return conflictError(template, zone, a.conflicts)
		}
		kept, err := a.apply(x.ConflictResolutionStrategy == ipam.Overwrite)
		if err != nil {
			return err
		}
		if kept == 0 {
			continue
		}
		x.State = "COMPLETED_WITH_WARNINGS"
		if err := event.Add(c.Tx, event.Event{EventType: "WARNING", Category: "ZONE_TEMPLATE", Subcategory: "DNS", SourceName: absoluteName(zone),
			Message: fmt.Sprintf("Template %d was only partly applied to zone %s: %d of its records conflict with others", template.ID,
				absoluteName(zone), kept)}, zone.ID); err != nil {
			return err
		}
	}
	return nil
}

func conflictError(template, zone *store.Resource, rows []*store.Resource) error {
	var list problem.Resources
	for _, r := range rows {
		list = append(list, problem.Describe(r.ID, fmt.Sprintf("%s %d, %s", r.Type, r.ID, absoluteName(r))))
	}
	return problem.Conflict("TemplateConflict", "template %d cannot be applied to zone %s (%d): it conflicts with %s", template.ID,
		absoluteName(zone), zone.ID, list)
}

// zoneApplication applies a template to one zone.
type zoneApplication struct {
	c              *resource.Change
	zone, template *store.Resource
	// missing are the template records that the zone lacks. conflicts are the records of the zone that exclude them. blocked contains the
	// indexes of the missing records with a conflict.
	missing   []ComparableRecord
	blocked   map[int]bool
	conflicts []*store.Resource
}

// compare determines the missing records and the conflicts.
func (a *zoneApplication) compare() error {
	ids, err := a.c.Tx.Children(a.template.ID)
	if err != nil {
		return err
	}
	rows, err := a.c.Tx.Load(ids)
	if err != nil {
		return err
	}
	a.blocked = map[int]bool{}
	seen := map[int64]bool{}
	for _, id := range ids {
		o, err := a.c.API.Object(rows[id])
		if err != nil {
			return err
		}
		x, ok := o.(ComparableRecord)
		if !ok {
			continue
		}
		there, others, err := a.findConflicts(x)
		if err != nil {
			return err
		}
		if there {
			continue
		}
		a.missing = append(a.missing, x)
		for _, r := range others {
			a.blocked[len(a.missing)-1] = true
			if !seen[r.ID] {
				seen[r.ID] = true
				a.conflicts = append(a.conflicts, r)
			}
		}
	}
	return nil
}

// findConflicts reports whether the zone has the record, and returns the records that conflict with it. An alias conflicts with any other
// record of its name. Different records of the same type and name conflict as well.
func (a *zoneApplication) findConflicts(x ComparableRecord) (there bool, others []*store.Resource, err error) {
	name := naming.Join(x.CommonFields().Name, absoluteName(a.zone))
	same, err := FindByName(a.c.Tx, a.zone.Configuration, ViewOf(a.zone), "resourceRecords", name)
	if err != nil {
		return false, nil, err
	}
	_, alias := x.(*AliasRecord)
	for _, r := range same {
		o, err := a.c.API.Object(r)
		if err != nil {
			return false, nil, err
		}
		_, otherAlias := o.(*AliasRecord)
		switch {
		case x.SameData(o) && x.CommonFields().Type == r.Type && !alias:
			return true, nil, nil
		case alias && otherAlias && r.Ref("linkedRecord") == x.(*AliasRecord).LinkedRecord.ID:
			return true, nil, nil
		case alias || otherAlias || r.Type == x.CommonFields().Type && genericType(x) == genericType(o):
			others = append(others, r)
		}
	}
	return false, others, nil
}

// genericType returns the DNS type of a generic record, and an empty string for other records.
func genericType(o schema.Object) string {
	if g, ok := o.(*GenericRecord); ok {
		return g.RecordType
	}
	return ""
}

// apply creates the missing records. It returns the number of records that were left out because of a conflict. If over is set, it deletes
// the conflicting records instead.
func (a *zoneApplication) apply(over bool) (kept int, err error) {
	if over {
		for _, r := range a.conflicts {
			row, err := a.c.Tx.Get(r.ID)
			if store.IsNotFound(err) { // it was deleted together with another resource
				continue
			}
			if err != nil {
				return 0, err
			}
			if err := a.c.Delete(row); err != nil {
				return 0, err
			}
		}
	}
	for i, x := range a.missing {
		if a.blocked[i] && !over {
			kept++
			continue
		}
		h := x.CommonFields()
		h.ID, h.Parent, h.AbsoluteName = 0, a.zone.ID, ""
		t, _ := a.c.API.Type(h.Type)
		if _, err := a.c.Following("name").Create(t, x); err != nil {
			return 0, err
		}
	}
	return kept, nil
}
