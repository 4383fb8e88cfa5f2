package deploy

import (
	"portolan/internal/naming"
	"portolan/internal/store"
	"portolan/internal/zonedata"
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

// carried are the names that a deployment changed of a zone: what was done, by the name's key (naming.Key).
type carried map[string]string

// carriedOf gives the names that a publication changes, as far as there is room for them.
func carriedOf(c *publication) (carried, error) {
	kinds := map[string]string{}
	for _, e := range c.removed {
		kinds[string(e.Key)] = recordDeleted
	}
	for _, e := range c.added {
		if _, both := kinds[string(e.Key)]; both {
			kinds[string(e.Key)] = recordUpdated
		} else {
			kinds[string(e.Key)] = recordAdded
		}
	}
	found := carried{}
	for _, entries := range [][]zonedata.Entry{c.removed, c.added} {
		for _, e := range entries {
			if len(found) >= mostNoted {
				return found, nil
			}
			rr, err := e.Record.RR()
			if err != nil {
				return nil, err
			}
			found[naming.Key(naming.Clean(rr.Header().Name))] = kinds[string(e.Key)]
		}
	}
	return found, nil
}

// noteRecords keeps which records a deployment carried: of each name that changed, those that are there, which are new or others, and those
// that are not there any more.
func (o *outcome) noteRecords(tx *store.Tx, deployment int64) error {
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
		for name, kind := range names {
			if kind != recordAdded {
				if fewer[zone] == nil {
					fewer[zone] = carried{}
				}
				fewer[zone][name], kind = kind, recordUpdated
			}
			rows, err := tx.ByKey(c.zone.row.Configuration, name)
			if err != nil {
				return err
			}
			for _, r := range rows {
				if r.Collection != "resourceRecords" || r.Parent != zone || noted >= mostNoted {
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
		if r.Collection != "resourceRecords" || fewer[r.Parent][r.Key] == "" || noted >= mostNoted {
			return nil
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
