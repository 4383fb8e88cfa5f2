package dnspublish

import (
	"portolan/internal/base/naming"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dns"
	"portolan/internal/wire/zonedata"
)

// Kinds of record changes in a deployment.
const (
	recordAdded   = "added"
	recordUpdated = "updated"
	recordDeleted = "deleted"
)

// deletedRecords is the table with the last images of the records that deployments deleted.
const deletedRecords store.Source = "deployment_deleted"

// maxListedRecords is the maximum number of records that a deployment lists. Deleted records are searched among as many of the last
// deletions, in as many of the last transactions.
const maxListedRecords = 10_000

// recordChanges are the record changes of a zone in a deployment: the kind of change by the key of the name (naming.Key) and the record
// type.
type recordChanges map[string]map[uint16]string

// kindOf returns the kind of change of a name for the first of the given types that changed; empty if none changed.
func (c recordChanges) kindOf(name string, types []uint16) string {
	for _, one := range types {
		if kind := c[name][one]; kind != "" {
			return kind
		}
	}
	return ""
}

// recordChangesOf returns the record changes of a publication, at most maxListedRecords of them.
func recordChangesOf(c *publication) (recordChanges, error) {
	found, noted := recordChanges{}, 0
	for i, entries := range [][]zonedata.Entry{c.removed, c.added} {
		for _, e := range entries {
			if noted >= maxListedRecords {
				return found, nil
			}
			rr, err := e.Record().RR()
			if err != nil {
				return nil, err
			}
			name, kind := naming.Key(naming.Clean(rr.Header().Name)), []string{recordDeleted, recordAdded}[i]
			if found[name] == nil {
				found[name] = map[uint16]string{}
			}
			switch was := found[name][e.Record().Type()]; {
			case was == "":
				noted++
			case was != kind:
				kind = recordUpdated
			}
			found[name][e.Record().Type()] = kind
		}
	}
	return found, nil
}

// storeRecordChanges stores the records that a deployment changed: for each changed name, the added and updated records that exist, and the
// deleted ones.
func (o *outcome) storeRecordChanges(tx *store.Tx, api *resource.API, deployment int64) error {
	noted := 0
	note := func(kind string, record int64) error {
		noted++
		return tx.Write("INSERT INTO deployment_record (deployment, kind, record) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", deployment, kind,
			record)
	}
	fewer := map[int64]recordChanges{} // names that lost records, by zone
	since := int64(0)
	for _, c := range o.all {
		zone := c.zone.row.ID
		if !c.existed || zone == 0 { // a new zone: its records are not listed
			continue
		}
		names, err := recordChangesOf(c)
		if err != nil {
			return err
		}
		for name, kinds := range names {
			for one, kind := range kinds {
				if kind == recordAdded {
					continue
				}
				if fewer[zone] == nil {
					fewer[zone] = recordChanges{}
				}
				if fewer[zone][name] == nil {
					fewer[zone][name] = map[uint16]string{}
				}
				fewer[zone][name][one] = kind
			}
			rows, err := tx.ResourcesByKey(c.zone.row.Configuration, name)
			if err != nil {
				return err
			}
			for _, r := range rows {
				if r.Collection != "resourceRecords" || r.Parent != zone || noted >= maxListedRecords {
					continue
				}
				types, err := dns.RecordTypes(api, r)
				if err != nil {
					return err
				}
				kind := names.kindOf(name, types)
				if kind == recordDeleted { // other records with its name and type were deleted
					kind = recordUpdated
				}
				if kind == "" {
					continue
				}
				if err := note(kind, r.ID); err != nil {
					return err
				}
			}
		}
		if since == 0 || c.before.complete < since {
			since = c.before.complete
		}
	}
	if len(fewer) == 0 {
		return nil
	}
	return tx.EachDeleted(since, maxListedRecords, maxListedRecords, func(r *store.Resource) error {
		if r.Collection != "resourceRecords" || fewer[r.Parent][r.Key] == nil || noted >= maxListedRecords {
			return nil
		}
		if types, err := dns.RecordTypes(api, r); err != nil || fewer[r.Parent].kindOf(r.Key, types) == "" {
			return err
		}
		if _, err := tx.Head(r.ID); err == nil || !store.IsNotFound(err) { // a record with this id exists again
			return err
		}
		if err := tx.Keep(deletedRecords, r); err != nil {
			return err
		}
		return note(recordDeleted, r.ID)
	})
}
