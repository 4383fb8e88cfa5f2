package imports

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// pruning controls how absent resources are deleted.
type pruning struct {
	// limit is the time after which a transaction deletes no more; 0 means no limit.
	limit time.Duration
	// wrong are the errors of deletions that had written something before they were rejected, by the ids of the resources. The deletions
	// were rolled back.
	wrong map[int64]*problem.Problem
	// kept are the resources whose deletion would change those of rows, such as the gateway of a network.
	kept map[int64]bool
	// tried means that the transaction is rolled back.
	tried bool
	// careful means that each deletion is checked for resources of rows that it deletes or changes.
	careful bool
}

// pruned is the result of a transaction that deletes absent resources. last is the id to continue after; 0 at the end.
type pruned struct {
	lines         []string
	deleted, stay int64
	last          int64
	// refusal is the first error.
	refusal error
}

// errRowDeleted rejects a deletion that would delete resources of rows, such as a host with its last address.
var errRowDeleted = problem.Conflict("ResourceConflictsWithOther", "resources of rows of the file would be deleted with it")

// countMissing returns the number of resources of rows that do not exist.
func (p *executor) countMissing() (n int64, err error) {
	err = p.Tx.QueryRow("SELECT count(*) FROM import_met m WHERE m.import = ? AND NOT EXISTS "+
		"(SELECT 1 FROM resource r WHERE r.id = m.resource)", p.id).Scan(&n)
	return n, err
}

// lastChange returns the number of the last change in the transaction.
func (p *executor) lastChange() (seq int64, err error) {
	number, err := p.Tx.Number()
	if err == nil {
		err = p.Tx.QueryRow("SELECT coalesce(max(seq), 0) FROM change WHERE txn = ?", number).Scan(&seq)
	}
	return seq, err
}

// changesRows reports whether changes of the transaction after seq changed resources of rows.
func (p *executor) changesRows(seq int64) (changed bool, err error) {
	number, err := p.Tx.Number()
	if err == nil {
		err = p.Tx.QueryRow("SELECT EXISTS (SELECT 1 FROM change c WHERE c.txn = ? AND c.seq > ? AND c.operation = 'UPDATE' AND EXISTS "+
			"(SELECT 1 FROM import_met m WHERE m.import = ? AND m.resource = c.resource))", number, seq, p.id).Scan(&changed)
	}
	return changed, err
}

// errKeptMore rolls the transaction back. It is repeated without the deletions in kept.
var errKeptMore = errors.New("a resource more is kept")

// errRowChanges reports a deletion that would change resources of rows.
var errRowChanges = errors.New("resources of rows would be changed")

// pruneSome deletes up to absentAtOnce absent resources. It returns errAgain if a forbidden deletion has written something: the caller
// rolls back and calls it again.
func (p *executor) pruneSome(after int64, how *pruning) (done pruned, err error) {
	above, err := p.ancestors()
	if err != nil {
		return done, err
	}
	var all []*store.Resource
	if all, done.last, err = p.absentResources(after); err != nil {
		return done, err
	}
	gone, err := p.countMissing()
	if err != nil {
		return done, err
	}
	began, along, kept := time.Now(), false, len(how.kept)
	for _, row := range all {
		if how.limit > 0 && time.Since(began) > how.limit {
			done.last = row.ID - 1
			break
		}
		text := p.describe(row)
		if above[row.ID] {
			done.lines = append(done.lines, "not in the file, kept because it contains rows of the file: "+text)
			continue
		}
		if refusal := how.wrong[row.ID]; refusal != nil {
			done.refuse(text, refusal)
			continue
		}
		if how.kept[row.ID] {
			done.lines = append(done.lines, "not in the file, kept because its deletion would change resources of rows: "+text)
			continue
		}
		if _, err := p.Tx.Head(row.ID); store.IsNotFound(err) { // deleted with its parent
			continue
		}
		written := p.Tx.Writes()
		unmarked, err := p.API.ListUnmarked(p.Change, row, p.tag)
		if err != nil {
			return done, err
		}
		n, others, err := p.prune(row, how.careful)
		if err == nil && n > 1 && how.careful {
			var now int64
			if now, err = p.countMissing(); err == nil && now > gone {
				err = errRowDeleted
			}
		}
		along = along || others
		if errors.Is(err, errRowChanges) {
			how.kept[row.ID] = true
			continue
		}
		refusal, ok := problem.As(p.Concealed(err))
		switch {
		case err == nil:
			if done.deleted++; n > 1 {
				along = true
				text += fmt.Sprintf(", with %d resources that lie in it, or belong to it", n-1)
				if unmarked != "" {
					text += ", among them without the tag: " + unmarked
				}
			}
			begin := "not in the file, deleted: "
			if how.tried {
				begin = absentDeleted
			}
			done.lines = append(done.lines, begin+text)
		case !ok || refusal.Status >= 500:
			return done, err
		case p.Tx.Writes() != written:
			how.wrong[row.ID] = refusal
			done.refuse(text, refusal)
			return done, errAgain
		default:
			done.refuse(text, refusal)
		}
	}
	if len(how.kept) > kept {
		return done, errAgain
	}
	if along && !how.careful {
		now, err := p.countMissing()
		changed := false
		if err == nil {
			changed, err = p.changesRows(0)
		}
		if err == nil && (now > gone || changed) {
			how.careful, err = true, errAgain
		}
		return done, err
	}
	return done, nil
}

// prune deletes a resource and returns the number of deleted resources, including those deleted with it. others means that other resources
// were changed. If careful, it returns errRowChanges if these are resources of rows.
func (p *executor) prune(row *store.Resource, careful bool) (n int64, others bool, err error) {
	if err := p.checkAccess(resource.ActionDelete, resource.Subject{Collection: p.API.Collection(row.Collection), ID: row.ID}); err != nil {
		return 0, false, err
	}
	seq := int64(0)
	before, err := p.Tx.Tally()
	if err == nil && careful {
		seq, err = p.lastChange()
	}
	if err == nil {
		err = p.Delete(row)
	}
	if err != nil {
		return 0, false, err
	}
	after, err := p.Tx.Tally()
	others = after.Changed > before.Changed
	if err == nil && others && careful {
		if changed, e := p.changesRows(seq); e != nil || changed {
			err = cmp.Or(e, errRowChanges)
		}
	}
	return int64(after.Deleted - before.Deleted), others, err
}

// refuse records that a resource cannot be deleted.
func (d *pruned) refuse(text string, refusal *problem.Problem) {
	d.stay++
	d.lines = append(d.lines, fmt.Sprintf("not in the file, and cannot be deleted: %s: %s: %s", text, refusal.Code, refusal.Message))
	if d.refusal == nil {
		d.refusal = problem.New(refusal.Status, refusal.Code, "%s is not in the file, and cannot be deleted: %s", text, refusal.Message)
	}
}

// notePruned adds the numbers of deleted resources and rejected deletions to the import, and lines to its log. It returns errOver if the
// import is being cancelled.
func (j *job) notePruned(p *executor, done pruned) error {
	row, o, err := j.read(p.Tx)
	if err != nil {
		return err
	}
	if x, ok := o.(*ResourceImport); ok && x.State == cancelling {
		return errOver
	}
	if err := logLines(p.Tx, j.id, maxLines, done.lines); err != nil || done.deleted+done.stay == 0 {
		return err
	}
	_, err = (&resource.Change{Tx: p.Tx, API: j.api}).Following().Change(row, func(o schema.Object) {
		if x, ok := o.(*ResourceImport); ok {
			x.Deleted += done.deleted
			x.Refused += done.stay
		}
	})
	if err == nil {
		p.Tx.Touch(collectionName)
	}
	return err
}

// pruneAll deletes all absent resources in the transaction of the rows. It returns the first error, or errKeptMore if it has added a
// resource to kept.
func (p *executor) pruneAll(kept map[int64]bool) error {
	how := pruning{wrong: map[int64]*problem.Problem{}, kept: kept, careful: true}
	var all pruned
	for after, more := int64(0), true; more; {
		before := len(kept)
		done, err := p.pruneSome(after, &how)
		if len(kept) > before {
			return errKeptMore
		}
		if err = cmp.Or(done.refusal, err); err != nil {
			return err
		}
		all.lines, all.deleted = append(all.lines, done.lines...), all.deleted+done.deleted
		after, more = done.last, done.last != 0
	}
	return p.notePruned(p, all)
}
