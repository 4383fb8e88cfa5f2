package imports

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// An import with a tag sets the tag on the resource of each row. An absent resource has the tag and is below the target of the import, but
// is not the resource of a row. An earlier version of the file contained it.

// absentAtOnce is the number of absent resources that one transaction handles, and pruneTime the time after which it handles no more.
const (
	absentAtOnce = 500
	pruneTime    = time.Second
)

// metAtOnce is the number of resources that one statement stores in import_met.
const metAtOnce = 50

// untagged is the member of a row of JSON that is false if its resource does not get the tag of the import.
const untagged = "tag"

// mark sets the tag of the import on the resource of a row, unless the row says otherwise.
func (p *executor) mark(r *row, o *outcome) error {
	if p.tag == nil || o.row == nil || string(r.members[untagged]) == "false" {
		return nil
	}
	marked, err := p.API.Mark(p.Change, o.row, p.tag)
	if marked && o.result == unchanged {
		o.result = updated
	}
	return err
}

// saveMet stores the resources of rows in import_met, in the transaction that imports the rows. A dry run stores no resource that it would
// create.
func (j *job) saveMet(tx *store.Tx, rows []*row, outcomes []outcome) error {
	if !j.keys {
		return nil
	}
	var values []any
	for i, o := range outcomes {
		if o.row != nil && !o.provisional && o.result != refused && o.result != undone && (o.result != created || j.mode != dryRun) {
			values = append(values, j.id, o.row.ID, rows[i].at)
		}
	}
	const columns = 3
	for size := metAtOnce; len(values) > 0; {
		if n := len(values) / columns; n < size {
			size = 1
		}
		if err := tx.Write("INSERT INTO import_met (import, resource, at) VALUES (?, ?, ?)"+strings.Repeat(", (?, ?, ?)", size-1)+
			" ON CONFLICT (import, resource) DO NOTHING", values[:size*columns]...); err != nil {
			return err
		}
		values = values[size*columns:]
	}
	return nil
}

// loadMet reads the resources that an interrupted run of the import has stored. It deletes those of imports before it, which have ended.
func (j *job) loadMet(ctx context.Context) error {
	for ended := int64(1); ended != 0; {
		if err := j.api.Store.View(ctx, func(tx *store.Tx) error {
			ended = 0
			return tx.Each(func(scan func(...any) error) error { return scan(&ended) },
				"SELECT import FROM import_met WHERE import < ? ORDER BY import LIMIT 1", j.id)
		}); err != nil {
			return err
		}
		if ended != 0 {
			if err := j.deleteMet(ctx, ended); err != nil {
				return err
			}
		}
	}
	j.met = map[int64]string{}
	if !j.keys || j.rows == 0 {
		return nil
	}
	return j.api.Store.View(ctx, func(tx *store.Tx) error {
		return tx.Each(func(scan func(...any) error) error {
			var id int64
			var at string
			err := scan(&id, &at)
			j.met[id] = at
			return err
		}, "SELECT resource, at FROM import_met WHERE import = ? LIMIT ?", j.id, maxMet)
	})
}

// deleteMet deletes the stored resources of an import that has ended, in steps of maxStepRows.
func (r *Runner) deleteMet(ctx context.Context, id int64) error {
	for {
		n := 0
		if err := r.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
			var met []int64
			if err := tx.Each(func(scan func(...any) error) error {
				met = append(met, 0)
				return scan(&met[len(met)-1])
			}, "SELECT resource FROM import_met WHERE import = ? LIMIT ?", id, maxStepRows); err != nil {
				return err
			}
			for _, one := range met {
				if err := tx.Write("DELETE FROM import_met WHERE import = ? AND resource = ?", id, one); err != nil {
					return err
				}
			}
			n = len(met)
			return nil
		}); err != nil || n < maxStepRows {
			return err
		}
	}
}

// absentResources returns the next absent resources with an id higher than after that the user can see. last is the id to continue after; 0
// at the end.
func (p *executor) absentResources(after int64) (all []*store.Resource, last int64, err error) {
	var ids []int64
	if err := p.Tx.Each(func(scan func(...any) error) error {
		ids = append(ids, 0)
		return scan(&ids[len(ids)-1])
	}, "SELECT f.source FROM reference f WHERE f.target = ? AND f.field = 'tags' AND f.source > ? AND NOT EXISTS (SELECT 1 FROM import_met m "+
		"WHERE m.import = ? AND m.resource = f.source) ORDER BY f.source LIMIT ?", p.tag.ID, after, p.id, absentAtOnce); err != nil {
		return nil, 0, err
	}
	for _, id := range ids {
		row, err := p.API.Visible(p.Tx, id, p.Caller)
		if problem.IsNotFound(err) { // hidden from the caller
			continue
		}
		inside := false
		if err == nil {
			inside, err = p.isBelowTarget(row)
		}
		if err != nil {
			return nil, 0, err
		}
		if inside {
			all = append(all, row)
		}
	}
	if len(ids) == absentAtOnce {
		last = ids[len(ids)-1]
	}
	return all, last, nil
}

// isBelowTarget reports whether a resource is below the target of the import. The target itself is not.
func (p *executor) isBelowTarget(row *store.Resource) (bool, error) {
	switch at := p.at.list; {
	case at == nil && row.ID == p.at.within.ID:
		return false, nil
	case at == nil:
		return p.isInTarget(row)
	case at.Sub == nil:
		return row.Collection == at.Collection.Name, nil
	case !slices.Contains(p.API.PostTypes(at.Sub), p.API.TypeNamed(row.Type)):
		return false, nil
	default:
		return p.isBelow(row, at.ID)
	}
}

// ancestors returns the ids of all resources above those of the rows.
func (p *executor) ancestors() (map[int64]bool, error) {
	all := map[int64]bool{}
	var parents []int64
	if err := p.Tx.Each(func(scan func(...any) error) error {
		parents = append(parents, 0)
		return scan(&parents[len(parents)-1])
	}, "SELECT DISTINCT r.parent FROM import_met m JOIN resource r ON r.id = m.resource WHERE m.import = ?", p.id); err != nil {
		return nil, err
	}
	for id := range p.createdParents {
		parents = append(parents, id)
	}
	for _, id := range parents {
		for id != 0 && id != resource.RootID && !all[id] {
			all[id] = true
			head, err := p.Tx.Head(id)
			if store.IsNotFound(err) { // a dry run would create it
				break
			}
			if err != nil {
				return nil, err
			}
			id = head.Parent
		}
	}
	return all, nil
}

// describe returns the type and key of a resource for the log.
func (p *executor) describe(row *store.Resource) string {
	return row.Type + " " + p.API.Collection(row.Collection).KeyOf(row)
}

// inTx returns an executor with the rights of the user who started the import.
func (j *job) inTx(tx *store.Tx) (*executor, error) {
	caller, err := j.caller(tx)
	return &executor{job: j, Change: &resource.Change{Tx: tx, API: j.api, Caller: caller, Options: j.options, Extra: map[string]string{}}}, err
}

// tryPrune returns the lines that prune would log, and the number of deletions. If a trial takes too long, the lines do not tell which
// deletions would be rejected.
func (j *job) tryPrune(ctx context.Context) (lines []string, deleted int64, err error) {
	author, err := j.author(ctx)
	if err != nil {
		return nil, 0, err
	}
	how := pruning{wrong: map[int64]*problem.Problem{}, kept: map[int64]bool{}, careful: true, tried: true}
	for err = errAgain; errors.Is(err, errAgain); {
		err = j.api.Store.Try(ctx, store.Scope{}, author, func(tx *store.Tx) error {
			lines, deleted = nil, 0
			p, err := j.inTx(tx)
			for after, more := int64(0), true; err == nil && more; {
				var done pruned
				done, err = p.pruneSome(after, &how)
				lines, deleted = append(lines, done.lines...), deleted+done.deleted
				after, more = done.last, done.last != 0
			}
			return err
		})
	}
	if errors.Is(err, store.ErrTrialEnded) {
		return j.listAbsent(ctx, absentDeleted)
	}
	return lines, deleted, err
}

// setDeleted sets the number of resources that a dry run would delete.
func (j *job) setDeleted(ctx context.Context, n int64) error {
	return j.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		row, _, err := j.read(tx)
		if err == nil {
			_, err = (&resource.Change{Tx: tx, API: j.api}).Following().Change(row, func(o schema.Object) {
				if x, ok := o.(*ResourceImport); ok {
					x.Deleted = n
				}
			})
		}
		return err
	})
}

// Prefixes of log lines about absent resources: one that is kept, one that a dry run would delete, and one that a rejected row may
// describe, so that it is kept.
const (
	absentKept    = "not in the file, kept (prune deletes it): "
	absentDeleted = "not in the file, would be deleted: "
	absentUnknown = "not in an imported row, kept: "
)

// listAbsent returns log lines about absent resources. It stops after the page with which the lines exceed maxLines. begin is the prefix of
// most lines, and n their number. A resource that contains imported resources is kept: its line has another prefix, and n excludes it. With
// absentDeleted, resources inside an absent one have no line, because they are deleted with it.
func (j *job) listAbsent(ctx context.Context, begin string) (lines []string, n int64, err error) {
	err = j.api.Store.View(ctx, func(tx *store.Tx) error {
		lines, n = nil, 0
		p, err := j.inTx(tx)
		var above map[int64]bool
		if err == nil {
			above, err = p.ancestors()
		}
		for after := int64(0); err == nil; {
			var all []*store.Resource
			if all, after, err = p.absentResources(after); err != nil {
				return err
			}
			for _, row := range all {
				if above[row.ID] {
					lines = append(lines, "not in the file, kept because it contains rows of the file: "+p.describe(row))
					continue
				}
				if inside, err := p.insideAbsent(row, above); err != nil || inside && begin == absentDeleted {
					if err != nil {
						return err
					}
					continue
				}
				lines, n = append(lines, begin+p.describe(row)), n+1
			}
			if after == 0 || len(lines) > maxLines {
				return nil
			}
		}
		return err
	})
	return lines, n, err
}

// insideAbsent reports whether a resource is inside an absent one that contains no resources of rows.
func (p *executor) insideAbsent(row *store.Resource, above map[int64]bool) (inside bool, err error) {
	for id := row.Parent; id != 0 && id != resource.RootID && !inside; {
		if above[id] { // the resources above contain it as well
			return false, nil
		}
		if err := p.Tx.QueryRow("SELECT EXISTS (SELECT 1 FROM reference f WHERE f.source = ? AND f.target = ? AND f.field = 'tags' AND "+
			"NOT EXISTS (SELECT 1 FROM import_met m WHERE m.import = ? AND m.resource = f.source))", id, p.tag.ID, p.id).
			Scan(&inside); err != nil {
			return false, err
		}
		head, err := p.Tx.Head(id)
		if err != nil {
			return false, err
		}
		id = head.Parent
	}
	return inside, nil
}

// prune deletes the absent resources, absentAtOnce in each transaction, and logs each. A rejected deletion counts as a rejected row.
func (j *job) prune(ctx context.Context) error {
	author, err := j.author(ctx)
	if err != nil {
		return err
	}
	for after, more := int64(0), true; more; {
		if err := j.holdLease(ctx); err != nil || !j.hasLease {
			return err
		}
		last, how := int64(0), pruning{limit: pruneTime, wrong: map[int64]*problem.Problem{}, kept: map[int64]bool{}}
		do := func(tx *store.Tx) error {
			p, err := j.inTx(tx)
			if err != nil {
				return err
			}
			tx.Describe("IMPORT_ENTITIES", fmt.Sprintf("Imported %s: deleted what it does not have", j.name))
			done, err := p.pruneSome(after, &how)
			if err != nil {
				return err
			}
			last = done.last
			return j.notePruned(p, done)
		}
		for err = errAgain; errors.Is(err, errAgain); {
			err = j.lease.Update(ctx, author, do)
		}
		if err != nil {
			return err
		}
		after, more = last, last != 0
	}
	return nil
}
