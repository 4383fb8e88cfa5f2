package dns

import (
	"errors"
	"fmt"

	"portolan/internal/base/naming"
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/ipam"
)

// registerAddressNames adds host records to the requests that create or change addresses.
func registerAddressNames(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "addresses",
		Options: []resource.RequestHeader{createReverseRecord.Header(resource.Writing).ReachingOut()}})
	r.Rule(resource.Rule{Types: []string{"IPv4Address", "IPv6Address"}, AfterWrite: nameAddress})
}

// nameAddress links the host records of a request to its address.
func nameAddress(c *resource.Change) error {
	x, ok := c.New.(interface{ Named() []schema.RefItem })
	if !ok {
		return fmt.Errorf("an address is a %T", c.New)
	}
	return nameRecords(c, schema.HeadOf(c.New), x.Named())
}

// nameRecords links host records to an address. It creates missing records in the zone with the longest matching name.
func nameRecords(c *resource.Change, h *schema.Head, items []schema.RefItem) error {
	for _, item := range items {
		if item.ID == 0 {
			record, zone, name, err := findRecordOrZone(c, h, item.Text["absoluteName"])
			if err != nil {
				return err
			}
			if record == nil {
				if err := createHost(c, h, zone, name); err != nil {
					return err
				}
				continue
			}
			item.ID = record.ID
		}
		record, err := c.Tx.Get(item.ID)
		if errors.Is(err, store.ErrNotFound) || err == nil && record.Type != "HostRecord" {
			return resource.NotFoundInlined("resourceRecords", "host record %d does not exist", item.ID)
		}
		if err != nil {
			return err
		}
		linked, err := c.Tx.Links(record.ID, "addresses")
		if err != nil {
			return err
		}
		if contains(linked, h.ID) {
			continue
		}
		if err := checkHost(c, absoluteName(record), record.Parent, append(linked, h.ID)); err != nil {
			return err
		}
		if err := c.Link(record, "addresses", h.ID); err != nil {
			return err
		}
		if createReverseRecord.Value(c.Options) {
			if err := enableReverseRecord(c, record.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// createReverseRecord is the request option for the PTR record of the address.
var createReverseRecord = resource.Flag("x-bcn-create-reverse-record",
	"Create a PTR record of the address for the host that is named with it.")

// enableReverseRecord enables the PTR records of a host.
func enableReverseRecord(c *resource.Change, id int64) error {
	row, err := c.Tx.Get(id)
	if err != nil {
		return err
	}
	_, err = c.FollowingWithOptions().Change(row, func(o schema.Object) { o.(*HostRecord).ReverseRecord = true })
	return err
}

func contains(ids []int64, id int64) bool {
	for _, x := range ids {
		if x == id {
			return true
		}
	}
	return false
}

// findRecordOrZone finds a host record by its absolute name. If there is none, it returns the zone for a new record and the absolute name.
// It searches the default view of the network if there is one. A name that matches no zone is placed in the first default zone of the
// network.
func findRecordOrZone(c *resource.Change, h *schema.Head, given string) (record, zone *store.Resource, name string, err error) {
	name = naming.Clean(given)
	if err := naming.Check(name, naming.HostName); err != nil {
		return nil, nil, name, problem.Invalid("resourceRecords", "%v", err)
	}
	settings, err := ipam.SettingsIn(c, h.Parent)
	if err != nil {
		return nil, nil, name, err
	}
	p := settings[h.Parent]
	if p == nil {
		p = &ipam.Settings{}
	}
	if record, err = findInView(c.Tx, h.Config, naming.Key(name), "HostRecord", p.Refs["defaultView"]); record != nil || err != nil {
		return record, nil, name, err
	}
	for key := naming.Key(name); key != ""; key = parentName(key) {
		if zone, err = findInView(c.Tx, h.Config, key, "Zone", p.Refs["defaultView"]); zone != nil || err != nil {
			return nil, zone, name, err
		}
	}
	if zones := p.Zones["defaultZones"]; len(zones) > 0 {
		if zone, err = c.Tx.Get(zones[0]); err != nil {
			return nil, nil, name, err
		}
		return nil, zone, naming.Join(name, absoluteName(zone)), nil
	}
	return nil, nil, name, resource.NotFoundInlined("resourceRecords", "no zone contains %q", name)
}

// findInView finds a host record or zone by its name, in a view or, if view is 0, in any view.
func findInView(tx *store.Tx, configuration int64, key, kind string, view int64) (first *store.Resource, err error) {
	found, err := tx.ResourcesByKey(configuration, key)
	if err != nil {
		return nil, err
	}
	for _, r := range found {
		if r.Type != kind {
			continue
		}
		zone := r
		if r.Collection != "zones" && view != 0 {
			if zone, err = tx.Get(r.Parent); err != nil {
				return nil, err
			}
		}
		if view == 0 || ViewOf(zone) == view {
			return r, nil
		}
	}
	return nil, nil
}

func createHost(c *resource.Change, h *schema.Head, zone *store.Resource, name string) error {
	relative, _ := naming.Relative(naming.Clean(name), zone.Key)
	reverse, said := createReverseRecord.Lookup(c.Options)
	host := &HostRecord{ReverseRecord: reverse || !said, Addresses: schema.RefList{IsSet: true, Items: []schema.RefItem{{ID: h.ID}}}}
	host.Type, host.Name, host.Parent, host.Config = "HostRecord", relative, zone.ID, zone.Configuration
	t, _ := c.API.Type("HostRecord")
	_, err := c.FollowingWithOptions("name", "addresses").Create(t, host)
	return err
}
