package dns

import (
	"encoding/json"
	"slices"

	"portolan/internal/base/naming"
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/ipam"
)

// registerHostRecords declares the record type.
func registerHostRecords(r *resource.Registry) {
	declareRecord(r, "HostRecord", &HostRecord{}, autoCreateNetwork.Header(resource.Writing, "HostRecord"),
		ipam.AllowAddressOverlap.Header(resource.Writing, "HostRecord"))
}

// HostRecord contains the addresses of a host. It is served as A and AAAA records, and as PTR records if reverseRecord is set.
type HostRecord struct {
	RecordHead `parents:"zones" unique:"wholeName"`
	// Addresses are the addresses of the host, by id or by address. Addresses that do not exist are assigned.
	Addresses schema.RefList `api:"addresses,post" ref:"IPv4Address|IPv6Address" min:"1" back:"resourceRecords" onDelete:"cascade"`
	// ReverseRecord enables PTR records for the addresses.
	ReverseRecord bool `api:"reverseRecord,put" default:"true"`
	// Views are further views that contain the record.
	Views schema.RefList `api:"views" ref:"View"`
	// DependentRecords is rejected if it is not empty. Create aliases, MX and SRV records separately, with the host as linkedRecord.
	DependentRecords json.RawMessage `api:"dependentRecords,writeOnly,list"`
}

// BeforeWrite derives the absolute name, and finds or assigns the addresses.
func (x *HostRecord) BeforeWrite(c *resource.Change) error {
	if x.DependentRecords != nil && string(x.DependentRecords) != "[]" {
		return problem.NotYet("dependentRecords: create each dependent record with linkedRecord, or all in one batch")
	}
	if err := x.checkName(c, naming.HostName); err != nil {
		return err
	}
	if isWildcard(x.Name) { // a wildcard is not the name of a host
		x.ReverseRecord = false
	}
	seen := map[int64]bool{}
	for i := range x.Addresses.Items {
		item := &x.Addresses.Items[i]
		if item.ID == 0 {
			id, err := ipam.AddressNamed(c, x.Config, item, autoCreateNetwork.Value(c.Options))
			if err != nil {
				return err
			}
			item.ID = id
		}
		if seen[item.ID] {
			return problem.Invalid("addresses", "address %d is listed twice", item.ID)
		}
		seen[item.ID] = true
	}
	if err := x.checkReverseRights(c); err != nil {
		return err
	}
	return x.checkNetworks(c)
}

// checkReverseRights rejects addresses that would get a PTR record for the host although the user must not change them.
func (x *HostRecord) checkReverseRights(c *resource.Change) error {
	if !x.ReverseRecord || !c.IsRequested() || c.Caller.Rights == nil || c.Caller.Administrator {
		return nil
	}
	var kept []int64
	if old, ok := c.Old.(*HostRecord); ok {
		named, err := c.Tx.Links(x.ID, "addresses")
		if err != nil {
			return err
		}
		switch {
		case old.ReverseRecord:
			kept = named
		case !x.Addresses.IsSet:
			for _, id := range named {
				if err := x.checkReverseRight(c, id); err != nil {
					return err
				}
			}
		}
	}
	for _, item := range x.Addresses.Items {
		if slices.Contains(kept, item.ID) {
			continue
		}
		if err := x.checkReverseRight(c, item.ID); err != nil {
			return err
		}
	}
	return nil
}

func (x *HostRecord) checkReverseRight(c *resource.Change, address int64) error {
	row, err := c.Tx.Get(address)
	if store.IsNotFound(err) { // the reference check reports it
		return nil
	}
	if err != nil {
		return err
	}
	may, err := c.API.Effective(c.Tx, c.Caller, row, 0)
	if err != nil || may.Changes() || may.Hidden() {
		return err
	}
	return problem.FieldForbidden("AccessDenied", "addresses",
		"%s may not create a reverse record for address %d: this requires the level CHANGE there, but it is %s; set reverseRecord to false",
		c.Caller.Name, address, may.AccessLevel)
}

// checkNetworks rejects a host that the networks of its addresses do not allow.
func (x *HostRecord) checkNetworks(c *resource.Change) error {
	var ids []int64
	for _, item := range x.Addresses.Items {
		ids = append(ids, item.ID)
	}
	if !x.Addresses.IsSet {
		if c.IsCreation() || c.Row.Parent == x.Parent {
			return nil
		}
		var err error
		if ids, err = c.Tx.Links(x.ID, "addresses"); err != nil {
			return err
		}
	}
	return checkHost(c, x.AbsoluteName, x.Parent, ids)
}

// Validate rejects a second host record for the name, and a name that is an alias.
func (x *HostRecord) Validate(c *resource.Change) error { return checkConflicts(c, x) }

// SameData implements ComparableRecord.
func (x *HostRecord) SameData(o schema.Object) bool { _, ok := o.(*HostRecord); return ok }
