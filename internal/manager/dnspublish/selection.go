package dnspublish

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/dns"
	"portolan/internal/wire/zonedata"
)

// maxSelected is the maximum number of records of a selective deployment.
const maxSelected = 100

// BeforeWrite checks the records and queues the deployment.
func (x *SelectiveDeployment) BeforeWrite(c *resource.Change) error {
	if !c.IsRequested() {
		return nil
	}
	if err := x.enqueue(c); err != nil {
		return err
	}
	if x.BatchMode != "DISABLED" {
		return problem.Field("UnsupportedResourceFieldValue", "batchMode", "combined deployments are not supported yet: must be DISABLED")
	}
	if n := len(x.Resources.Items); n == 0 || n > maxSelected {
		return problem.Field("InvalidResourceFieldValue", "resources", "must have 1 to %d records", maxSelected)
	}
	configuration := int64(0)
	var wanted []int64
	zones := map[int64]bool{}
	for i, item := range x.Resources.Items {
		row, err := c.API.Visible(c.Tx, item.ID, c.Caller)
		if problem.Is(err, "ResourceNotFound") || err == nil && row.Collection != "resourceRecords" {
			return resource.NotFoundInlined("resources", "entry %d: record %d does not exist", i, item.ID)
		}
		if err != nil {
			return err
		}
		if row.Type == "ExternalHostRecord" {
			return problem.Field("InvalidResourceType", "resources", "entry %d: record %d is an external host, which is not deployed", i, item.ID)
		}
		if configuration != 0 && row.Configuration != configuration {
			return problem.Field("ResourceNotInConfiguration", "resources", "entry %d: record %d is in another configuration than the others", i,
				item.ID)
		}
		if err := authz.MayDeploy(c, c.Caller.User, x.Type, item.ID); err != nil {
			return err
		}
		configuration, zones[row.Parent] = row.Configuration, true
		wanted = append(wanted, item.ID)
	}
	x.Resources, x.Wanted = schema.RefList{}, schema.Refer(wanted)
	if x.ContinueOnFailureEnabled != nil && *x.ContinueOnFailureEnabled {
		return nil
	}
	p, err := newPlan(c.Tx, c.API, configuration)
	if err != nil {
		return err
	}
	for _, zone := range slices.Sorted(maps.Keys(zones)) {
		if err := p.checkDeployed(c.Tx, zone); err != nil {
			return err
		}
	}
	return nil
}

// selection are the records of a deployment: the types to deploy, by view and name. All records of one name and type are deployed together
// (RFC 2181 section 5).
type selection map[int64]map[string]map[uint16]bool

// anyType selects all types of a name.
const anyType = 0

// add adds the name and types of a record, in the view of its zone. If the zone was deleted, all types of the name are added, because the
// delegation of the zone has to be removed as well.
func (n selection) add(tx *store.Tx, api *resource.API, r *store.Resource) error {
	types, err := dns.RecordTypes(api, r)
	if err != nil || len(types) == 0 {
		return err
	}
	zone, err := tx.Get(r.Parent)
	if store.IsNotFound(err) {
		types = []uint16{anyType}
		if zone, err = tx.LastImage(r.Parent); zone == nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	name, err := keyOf(r.Key)
	if err != nil {
		return err
	}
	view := zone.Ref("view")
	if n[view] == nil {
		n[view] = map[string]map[uint16]bool{}
	}
	if n[view][name] == nil {
		n[view][name] = map[uint16]bool{}
	}
	for _, one := range types {
		n[view][name][one] = true
	}
	return nil
}

// selector returns a function that reports whether a record of a zone in a view is selected, or is a PTR record of a selected host.
func (n selection) selector(view int64) func(zonedata.Entry) bool {
	names := n[view]
	return func(e zonedata.Entry) bool {
		if of := names[string(e.Key())]; of[e.Record().Type()] || of[anyType] {
			return true
		}
		if e.Record().Type() != wire.TypePTR {
			return false
		}
		host := names[string(zonedata.Key(e.Record().Data()))]
		return host[wire.TypeA] || host[wire.TypeAAAA] || host[anyType]
	}
}

// maxFormerImages is the maximum number of changes of a record that are searched for its former names.
const maxFormerImages = 1000

// addFormer adds the former names and types of a record, which may still be deployed. If another record has taken over a former name, the
// name is left out with a warning, unless that record is in selected.
func (d *Deployer) addFormer(tx *store.Tx, wanted selection, r *store.Resource, selected []int64, out *outcome) error {
	former, err := tx.EarlierImages(r.ID, maxFormerImages)
	if err != nil {
		return err
	}
	if len(former) == maxFormerImages {
		out.warnings = append(out.warnings, fmt.Sprintf("record %d was changed at least %d times: its older names may still be served "+
			"until the next deployment of all changes", r.ID, maxFormerImages))
	}
	for _, was := range former {
		if was.Key == r.Key && r.Type != "GenericRecord" {
			continue
		}
		taken, err := d.successorOf(tx, r, was)
		if err != nil {
			return err
		}
		if taken != 0 && !slices.Contains(selected, taken) {
			warning := fmt.Sprintf("the name %[2]s of record %[1]d now belongs to record %[3]d: deploy that record to change the served data", r.ID,
				was.Key, taken)
			if !slices.Contains(out.warnings, warning) {
				out.warnings = append(out.warnings, warning)
			}
			continue
		}
		if err := wanted.add(tx, d.api, was); err != nil {
			return err
		}
	}
	return nil
}

// successorOf returns another record of the same zone that a selection of a former name would deploy as well. It has that name and one of
// the former types, or one of the two is an alias. It returns 0 if there is none.
func (d *Deployer) successorOf(tx *store.Tx, r, was *store.Resource) (int64, error) {
	if was.Key == r.Key && was.Parent == r.Parent {
		return 0, nil
	}
	before, err := dns.RecordTypes(d.api, was)
	if err != nil {
		return 0, err
	}
	rows, err := tx.ResourcesByKey(was.Configuration, was.Key)
	if err != nil {
		return 0, err
	}
	for _, other := range rows {
		if other.ID == r.ID || other.Collection != was.Collection || other.Parent != was.Parent {
			continue
		}
		now, err := dns.RecordTypes(d.api, other)
		if err != nil {
			return 0, err
		}
		if slices.Contains(now, wire.TypeCNAME) || slices.Contains(before, wire.TypeCNAME) ||
			slices.ContainsFunc(now, func(t uint16) bool { return slices.Contains(before, t) }) {
			return other.ID, nil
		}
	}
	return 0, nil
}

// warnUndeployed adds a warning for each zone of the records that is not deployed.
func (d *Deployer) warnUndeployed(tx *store.Tx, p *plan, records []int64, out *outcome) error {
	seen := map[int64]bool{}
	for _, id := range records {
		row, err := tx.Get(id)
		if store.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		if seen[row.Parent] {
			continue
		}
		seen[row.Parent] = true
		if err := p.checkDeployed(tx, row.Parent); isFault(err) {
			out.warnings = append(out.warnings, err.Error())
		} else if err != nil {
			return err
		}
	}
	return nil
}

// changedBy returns the records that a user has changed since a time, in Unix milliseconds.
func (d *Deployer) changedBy(tx *store.Tx, user, since int64) (selection, error) {
	var transactions []int64
	if err := tx.Each(func(scan func(...any) error) error {
		var id int64
		err := scan(&id)
		transactions = append(transactions, id)
		return err
	}, "SELECT id FROM txn WHERE at >= ? AND user_id = ? ORDER BY id", since, user); err != nil {
		return nil, err
	}
	found := selection{}
	for _, id := range transactions {
		changes, err := tx.Changes(id)
		if err != nil {
			return nil, err
		}
		for _, c := range changes {
			for _, image := range []json.RawMessage{c.Before, c.After} {
				r, err := store.DecodeImage(image)
				if err != nil {
					return nil, err
				}
				if r == nil || r.Collection != "resourceRecords" {
					continue
				}
				if err := found.add(tx, d.api, r); err != nil {
					return nil, err
				}
			}
		}
	}
	return found, nil
}
