package dnspublish

import (
	"portolan/internal/base/naming"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dns"
	"portolan/internal/wire/zonedata"
)

// Kinds of the records that a deployment carried.
const (
	recordAdded   = "added"
	recordUpdated = "updated"
	recordDeleted = "deleted"
)

// deletedRecords are the records that deployments took away, as they were last.
const deletedRecords store.Source = "deployment_deleted"

// mostNoted is how many records a deployment lists. Those that it took away are looked for among as many of the last ones that were
// deleted, in as many of the last transactions.
const mostNoted = 10_000

// carried are the records that a deployment changed of a zone: what was done, by the name's key (naming.Key) and the type.
type carried map[string]map[uint16]string

// of gives what was done with records of some types under a name; empty where nothing was.
func (c carried) of(name string, types []uint16) string {
	for _, one := range types {
		if kind := c[name][one]; kind != "" {
			return kind
		}
	}
	return ""
}

// carriedOf gives the records that a publication changes, as far as there is room for them.
func carriedOf(c *publication) (carried, error) {
	found, noted := carried{}, 0
	for i, entries := range [][]zonedata.Entry{c.removed, c.added} {
		for _, e := range entries {
			if noted >= mostNoted {
				return found, nil
			}
			rr, err := e.Record.RR()
			if err != nil {
				return nil, err
			}
			name, kind := naming.Key(naming.Clean(rr.Header().Name)), []string{recordDeleted, recordAdded}[i]
			if found[name] == nil {
				found[name] = map[uint16]string{}
			}
			switch was := found[name][e.Record.Type()]; {
			case was == "":
				noted++
			case was != kind:
				kind = recordUpdated
			}
			found[name][e.Record.Type()] = kind
		}
	}
	return found, nil
}

// noteRecords keeps which records a deployment carried: of each name that changed, those that are there, which are new or others, and those
// that are not there any more.
func (o *outcome) noteRecords(tx *store.Tx, api *resource.API, deployment int64) error {
	noted := 0
	note := func(kind string, record int64) error {
		noted++
		return tx.Write("INSERT INTO deployment_record (deployment, kind, record) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", deployment, kind,
			record)
	}
	fewer := map[int64]carried{} // names that have lost something, by their zone
	since := int64(0)
	for _, c := range o.all {
		zone := c.zone.row.ID
		if !c.existed || zone == 0 { // all of it
			continue
		}
		names, err := carriedOf(c)
		if err != nil {
			return err
		}
		for name, kinds := range names {
			for one, kind := range kinds {
				if kind == recordAdded {
					continue
				}
				if fewer[zone] == nil {
					fewer[zone] = carried{}
				}
				if fewer[zone][name] == nil {
					fewer[zone][name] = map[uint16]string{}
				}
				fewer[zone][name][one] = kind
			}
			rows, err := tx.ByKey(c.zone.row.Configuration, name)
			if err != nil {
				return err
			}
			for _, r := range rows {
				if r.Collection != "resourceRecords" || r.Parent != zone || noted >= mostNoted {
					continue
				}
				types, err := dns.RecordTypes(api, r)
				if err != nil {
					return err
				}
				kind := names.of(name, types)
				if kind == recordDeleted { // others of its name and type went
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
	return tx.EachDeleted(since, mostNoted, mostNoted, func(r *store.Resource) error {
		if r.Collection != "resourceRecords" || fewer[r.Parent][r.Key] == nil || noted >= mostNoted {
			return nil
		}
		if types, err := dns.RecordTypes(api, r); err != nil || fewer[r.Parent].of(r.Key, types) == "" {
			return err
		}
		if _, err := tx.Head(r.ID); err == nil || !store.IsNotFound(err) { // it is there again
			return err
		}
		if err := tx.Keep(deletedRecords, r); err != nil {
			return err
		}
		return note(recordDeleted, r.ID)
	})
}
