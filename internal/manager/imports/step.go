package imports

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// resultNames are the names of results in metrics.
var resultNames = [...]string{unchanged: "unchanged", created: "created", updated: "updated", refused: "refused", undone: "undone"}

// importInSteps imports the rows in steps, one transaction each. The progress is written in the same transaction as the rows.
func (j *job) importInSteps(ctx context.Context, from rowReader) error {
	in := j.readAhead(ctx, from)
	defer in.close()
	var rows []*row // rows read but not processed
	var ended error // why reading stopped: io.EOF or an error of the file
	for size := firstStep; ; {
		if err := j.holdLease(ctx); err != nil || !j.hasLease {
			return err
		}
		for len(rows) < size && ended == nil {
			one, err := in.next()
			if ended = err; err == nil {
				rows = append(rows, one)
			}
		}
		switch {
		case len(rows) == 0 && errors.Is(ended, io.EOF):
			return j.finish(ctx)
		case len(rows) == 0:
			return ended
		}
		n := min(size, len(rows))
		err := j.step(ctx, rows[:n])
		if errors.Is(err, errFewer) && n > 1 {
			size = n / 2
			continue
		}
		if err != nil {
			return err
		}
		rows = rows[n:]
		if j.mode == dryRun {
			size = min(size*2, firstStep)
			continue
		}
		size = nextStep(size, n, j.writing.Took, j.api.Store.HasOneWriter())
	}
}

// finish ends an import whose rows have all been processed.
func (j *job) finish(ctx context.Context) error {
	lines, err := j.pruneOrList(ctx)
	if err != nil || !j.hasLease {
		return err
	}
	state := completed
	if err := j.api.Store.View(ctx, func(tx *store.Tx) error {
		_, o, err := j.read(tx)
		if err != nil {
			return err
		}
		var logged bool
		err = tx.QueryRow("SELECT EXISTS (SELECT 1 FROM import_line WHERE import = ? AND line NOT LIKE ? AND line <> ?)", j.id,
			"%"+changedText+"%", logIsFull).Scan(&logged)
		head, _ := headAndState(o)
		_, below := o.(interface{ common() *ImportBelow })
		switch {
		case below && head.Refused > 0:
			state = erred
		case logged || len(lines) > 0 || head.Refused > 0:
			state = warned
		}
		return err
	}); err != nil {
		return err
	}
	return j.endWith(ctx, j.id, state, "", nil, lines)
}

// pruneOrList prunes absent resources. If it may not prune, it returns a log line for each.
func (j *job) pruneOrList(ctx context.Context) (lines []string, err error) {
	if j.tag == nil || j.prunes && j.mode == allOrNothing { // this mode prunes in the transaction of the rows
		return nil, nil
	}
	var wrong, rows int64
	if err := j.api.Store.View(ctx, func(tx *store.Tx) error {
		_, o, err := j.read(tx)
		if err == nil {
			head, _ := headAndState(o)
			rows, wrong = head.Rows, head.Rows-head.Created-head.Updated-head.Unchanged
		}
		return err
	}); err != nil {
		return nil, err
	}
	may := j.prunes && wrong == 0 && rows > 0
	if may && j.mode != dryRun {
		return nil, j.prune(ctx)
	}
	if may {
		lines, n, err := j.tryPrune(ctx)
		if err == nil {
			err = j.setDeleted(ctx, n)
		}
		return lines, err
	}
	how := absentKept
	if wrong > 0 {
		how = absentUnknown
	}
	lines, _, err = j.listAbsent(ctx, how)
	switch {
	case !j.prunes || len(lines) == 0:
	case rows == 0:
		lines = slices.Insert(lines, 0, "nothing is deleted: the file has no rows")
	case wrong > 0:
		lines = slices.Insert(lines, 0, "nothing is deleted, because rows were refused: they may describe existing resources")
	}
	return lines, err
}

// step applies rows one by one in one transaction.
func (j *job) step(ctx context.Context, rows []*row) error {
	var earlier []*row
	if j.mode == dryRun {
		earlier = j.prior.neededBy(rows)
	}
	outcomes, err := j.execute(ctx, slices.Concat(earlier, rows), j.mode == dryRun, func(p *executor, outcomes []outcome) error {
		return j.saveOutcomes(p, rows, outcomes)
	})
	switch tooMuch := errors.Is(err, store.ErrTrialEnded) || j.mode == dryRun && errors.Is(err, errFewer); {
	case tooMuch && len(rows) > 1:
		err = errFewer
	case tooMuch:
		earlier, outcomes, err = nil, []outcome{{result: refused, messages: []string{"it would change more than is tried"}}}, nil
	}
	if err == nil {
		outcomes = outcomes[len(earlier):]
	}
	if err == nil && j.mode == dryRun {
		err = j.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
			for i := range outcomes {
				if o := &outcomes[i]; o.row != nil && o.result != created {
					head, err := tx.Head(o.row.ID)
					if err != nil && !store.IsNotFound(err) {
						return err
					}
					o.provisional = err != nil || head.Collection != o.row.Collection
				}
			}
			return j.saveOutcomes(&executor{job: j, Change: &resource.Change{Tx: tx, API: j.api}}, rows, outcomes)
		})
	}
	if err == nil {
		j.recordMet(rows, outcomes)
	}
	j.countRows(outcomes, err)
	return err
}

// saveOutcomes writes the results of rows. It returns errOver if the import is being cancelled.
func (j *job) saveOutcomes(p *executor, rows []*row, outcomes []outcome) error {
	row, o, err := j.read(p.Tx)
	if err != nil {
		return err
	}
	if err := logRows(p.Tx, j.id, messageLines(rows, outcomes)); err != nil {
		return err
	}
	if _, state := headAndState(o); *state == cancelling {
		return errOver
	}
	if err := j.saveMet(p.Tx, rows, outcomes); err != nil {
		return err
	}
	return j.saveProgress(p.Change, row, "", "", outcomes)
}

// importAtOnce imports all rows in one transaction, or none.
func (j *job) importAtOnce(ctx context.Context, in rowReader) error {
	var rows []*row
	for {
		one, err := in.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if rows = append(rows, one); len(rows) > maxAtOnce {
			return problem.BadRequest("InvalidRequestBody", "at most %d rows are imported all or not at all: import more row by row", maxAtOnce)
		}
	}
	if len(rows) == 0 {
		return j.finish(ctx)
	}
	kept := map[int64]bool{}
	outcomes, err := j.execute(ctx, rows, false, func(p *executor, outcomes []outcome) error {
		for _, o := range outcomes {
			if o.result == refused {
				return errRefused
			}
		}
		if err := j.saveOutcomes(p, rows, outcomes); err != nil || !j.prunes {
			return err
		}
		deleting, err := j.inTx(p.Tx)
		if err != nil {
			return err
		}
		return deleting.pruneAll(kept)
	})
	if errors.Is(err, errFewer) {
		return problem.BadRequest("InvalidRequestBody", "at most %d rows that set passwords, or the like, are imported all or not at all",
			maxPrepared)
	}
	if !errors.Is(err, errRefused) {
		j.countRows(outcomes, err)
		if err == nil {
			err = j.finish(ctx)
		}
		return err
	}
	n := 0                    // rows after the last one tried may be wrong as well
	for i := range outcomes { // the other rows are rolled back
		if outcomes[i].result != refused {
			outcomes[i].result = undone
		} else {
			n++
		}
	}
	// One transaction writes the results and the end. A manager killed in between would otherwise treat the import as successful.
	err = j.endWith(ctx, j.id, failed, fmt.Sprintf("at least %d of %d rows are refused, and nothing was imported", n, len(rows)), outcomes,
		messageLines(rows, outcomes))
	j.countRows(outcomes, err)
	return err
}

// messageLines returns the log lines about rows.
func messageLines(rows []*row, outcomes []outcome) (lines []string) {
	for i, one := range outcomes {
		for _, said := range one.messages {
			lines = append(lines, rows[i].at+": "+said)
		}
		if one.result == updated && len(one.fields) > 0 {
			var texts []string
			for _, f := range one.fields {
				if f.Before == nil && f.After == nil { // a secret
					texts = append(texts, f.Field)
					continue
				}
				texts = append(texts, fmt.Sprintf("%s %s -> %s", f.Field, cmp.Or(string(f.Before), "null"), cmp.Or(string(f.After), "null")))
			}
			lines = append(lines, fmt.Sprintf("%s"+changedText+"%s %d: %s", rows[i].at, one.row.Type, one.row.ID, strings.Join(texts, ", ")))
		}
	}
	return lines
}

// countRows counts processed rows in the metrics, unless the transaction failed.
func (j *job) countRows(outcomes []outcome, err error) {
	if err != nil {
		return
	}
	for _, o := range outcomes {
		j.Worked(1, resultNames[o.result])
	}
}

// maxRetriedRows is the number of rows of a step that may roll it back before the step is made smaller.
const maxRetriedRows = 2

// errFewer requests a step with fewer rows.
var errFewer = errors.New("fewer rows at once")

// errRefused rolls a transaction back because rows are rejected. errAgain rolls it back because a rejected row has written something.
var (
	errRefused = errors.New("rows are refused")
	errAgain   = errors.New("a row that is refused has written something")
)

// execute applies rows in one transaction and returns the outcome of each. At its end it calls keep, unless it is a trial.
func (j *job) execute(ctx context.Context, rows []*row, trial bool, keep func(*executor, []outcome) error) (outcomes []outcome, err error) {
	if err := j.prepare(ctx, rows); err != nil {
		return nil, err
	}
	defer func() { j.singly = false }()
	wrong := map[int]*problem.Problem{} // rows that are skipped, because they had written something before they were rejected
	tooMany := problem.BadRequest("NoSpaceForAddress", "this step would probe more than %d addresses: import fewer rows at once, or disable "+
		"pingBeforeAssignEnabled", maxProbes)
	for {
		err = j.api.RetryWithWork(ctx, maxProbes, tooMany, func(o resource.Outside) error {
			do := func(tx *store.Tx) (err error) {
				outcomes, err = j.applyRows(tx, o, rows, wrong)
				if err != nil || trial {
					return err
				}
				return keep(&executor{job: j, Change: &resource.Change{Tx: tx, API: j.api}}, outcomes)
			}
			author, err := j.author(ctx)
			if err != nil {
				return err
			}
			if trial {
				return j.api.Store.Try(ctx, store.Scope{}, author, do)
			}
			return j.lease.Update(j.writing.Context(ctx), author, do)
		})
		switch {
		case errors.Is(err, errKeptMore):
		case errors.Is(err, store.ErrBatch) && !j.singly:
			j.singly = true
		case !errors.Is(err, errAgain):
			return outcomes, err
		case j.mode == allOrNothing: // one rejected row is enough to reject all
			return outcomes, errRefused
		case len(wrong) > maxRetriedRows && len(rows) > 1:
			return nil, errFewer
		}
	}
}

// author returns the author of the changes of the import.
func (j *job) author(ctx context.Context) (author store.Author, err error) {
	err = j.api.Store.View(ctx, func(tx *store.Tx) error {
		return tx.QueryRow("SELECT user_id, name FROM import_starter WHERE import = ?", j.id).Scan(&author.User, &author.Name)
	})
	author.Credential = "import " + strconv.FormatInt(j.id, 10)
	author.Comment = j.comment
	return author, err
}

// caller returns the caller with the rights of the user who started the import.
func (j *job) caller(tx *store.Tx) (resource.Caller, error) {
	var user int64
	var token string
	if err := tx.QueryRow("SELECT user_id, token FROM import_starter WHERE import = ?", j.id).Scan(&user, &token); err != nil {
		return resource.Caller{}, fmt.Errorf("who started an import: %w", err)
	}
	return j.acting(tx, user, token)
}

// applyRows applies each row. If a row is rejected after it has written something, applyRows adds it to wrong and returns errAgain. Rows in
// wrong are skipped.
func (j *job) applyRows(tx *store.Tx, o resource.Outside, rows []*row, wrong map[int]*problem.Problem) (outcomes []outcome, err error) {
	passed := maps.Clone(j.passed)
	defer func() {
		if err != nil { // the messages are rolled back as well
			j.passed = passed
		}
	}()
	caller, err := j.caller(tx)
	if err != nil {
		return nil, err
	}
	if j.tag != nil {
		if _, err := j.tagOf(tx, tagPath+strconv.FormatInt(j.tag.ID, 10)); err != nil {
			return nil, err
		}
	}
	tx.Describe("IMPORT_ENTITIES", fmt.Sprintf("Imported %s, rows %d to %d", j.name, rows[0].number, rows[len(rows)-1].number))
	if rows[len(rows)-1].number > manyRows {
		tx.MarkLargeWork()
	}
	if !j.singly && !j.alwaysSingly && j.mode != dryRun { // a trial rolls back before the rows would be written
		tx.WriteInBatches()
	}
	p := &executor{job: j, Change: &resource.Change{Tx: tx, API: j.api, Caller: caller, Options: j.options, Answers: o.Answers,
		Results: o.Results}}
	if err := p.expect(rows); err != nil {
		return nil, err
	}
	outcomes = make([]outcome, len(rows))
	met := map[int64]string{}
	p.earlier = func(id int64) string { return cmp.Or(met[id], j.met[id]) }
	j.isTaken = func(id int64) bool { return p.earlier(id) != "" }
	for i, one := range rows {
		if refusal := wrong[i]; refusal != nil {
			outcomes[i] = outcome{result: refused, messages: []string{refusal.Code + ": " + refusal.Message}}
			continue
		}
		before := tx.Writes()
		if outcomes[i], err = p.applyRow(one); err == nil {
			err = j.checkNotMet(met, one, &outcomes[i])
		}
		if err == nil {
			err = p.mark(one, &outcomes[i])
		}
		if errors.Is(err, store.ErrBatch) {
			return nil, err
		}
		if store.Duplicate(err) {
			err = problem.Conflict("ResourceAlreadyExists", "a resource with the same identity exists already")
		}
		refusal, ok := problem.As(p.Concealed(err))
		switch {
		case err == nil:
		case !ok || refusal.Status >= 500:
			return nil, err
		case tx.Writes() != before:
			wrong[i] = refusal
			outcomes[i] = outcome{result: refused, messages: append(outcomes[i].messages, refusal.Code+": "+refusal.Message)}
			return outcomes, errAgain
		default:
			outcomes[i] = outcome{result: refused, messages: append(outcomes[i].messages, refusal.Code+": "+refusal.Message)}
		}
	}
	if p.taker != nil {
		return outcomes, p.taker.Close()
	}
	return outcomes, nil
}

// maxMet is the number of resources of rows kept in memory.
const maxMet = 2_000_000

// checkNotMet returns an error if an earlier row is about the same resource. met are the resources of this transaction, with the position
// of the row.
func (j *job) checkNotMet(met map[int64]string, one *row, o *outcome) error {
	if !j.keys || o.row == nil {
		return nil
	}
	first, twice := met[o.row.ID]
	if !twice {
		first, twice = j.met[o.row.ID]
	}
	if twice {
		return sameResource(first, o.row)
	}
	if len(j.met)+len(met) < maxMet {
		met[o.row.ID] = one.at
	}
	return nil
}

// recordMet records the resources of rows in memory. Of a resource that a dry run would create it records the parent and the row.
func (j *job) recordMet(rows []*row, outcomes []outcome) {
	for i, o := range outcomes {
		if o.row != nil && o.result == created && j.mode == dryRun {
			if j.createdParents == nil {
				j.createdParents = map[int64]bool{}
			}
			j.createdParents[o.row.Parent] = true
			j.prior.add(rows[i], o.row)
		}
		if j.keys && o.row != nil && !o.provisional && len(j.met) < maxMet && (o.result != created || j.mode != dryRun) {
			j.met[o.row.ID] = rows[i].at
		}
	}
}

// prepare runs the preparations of rows that take too long for a transaction.
func (j *job) prepare(ctx context.Context, rows []*row) error {
	j.prepared = nil
	for _, one := range rows {
		p := &executor{job: j, Change: &resource.Change{API: j.api}}
		t, wrong := p.typeOf(one)
		if wrong != nil || j.api.CollectionOf(t).Beforehand == nil {
			continue
		}
		members, wrong := one.bodyOf(t)
		if wrong != nil {
			continue
		}
		if j.prepared == nil {
			j.prepared = map[int64]any{}
		}
		made, err := j.api.CollectionOf(t).Beforehand(ctx, j.api, members)
		if _, ok := problem.As(err); ok { // its row will be rejected with this error
			continue
		}
		if err != nil {
			return err
		}
		if made == nil {
			continue
		} else if len(j.prepared) == maxPrepared {
			return errFewer
		}
		j.prepared[one.number] = made
	}
	return nil
}
