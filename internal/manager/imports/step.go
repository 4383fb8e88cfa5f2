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
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// tooManyAsked words that too many addresses would have to be asked for a step.
const tooManyAsked = "%d addresses were asked whether they answer, and more would have to be"

// results are the names of what came of rows, for who counts.
var results = [...]string{unchanged: "unchanged", created: "created", updated: "updated", refused: "refused", undone: "undone"}

// inSteps works off row after row, some in each transaction. How far it is stands in the same transaction as what the rows did.
func (j *job) inSteps(ctx context.Context, in rowReader) error {
	var rows []*row // those that were read, and are to be done
	var ended error // why no more are read: io.EOF, or what is wrong with the file
	for size := firstStep; ; {
		if err := j.hold(ctx); err != nil || !j.held {
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
		n, began := min(size, len(rows)), time.Now()
		err := j.step(ctx, rows[:n])
		if errors.Is(err, errFewer) && n > 1 {
			size = n / 2
			continue
		}
		if err != nil {
			return err
		}
		rows = rows[n:]
		switch took := time.Since(began); {
		case j.mode == dryRun:
			size = min(size*2, firstStep)
		case took < stepTime/2:
			size = min(size*2, mostRows)
		case took > stepTime*2:
			size = max(size/2, 1)
		}
	}
}

// finish ends an import whose rows were all worked off.
func (j *job) finish(ctx context.Context) error {
	lines, err := j.beside(ctx)
	if err != nil || !j.held {
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
		head, _ := parts(o)
		_, below := o.(interface{ below() *ImportBelow })
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

// beside prunes absent resources, or gives a line for each if it may not prune.
func (j *job) beside(ctx context.Context) (lines []string, err error) {
	if j.tag == nil || j.prunes && j.mode == allOrNothing { // which prunes in the transaction of its rows
		return nil, nil
	}
	var wrong, rows int64
	if err := j.api.Store.View(ctx, func(tx *store.Tx) error {
		_, o, err := j.read(tx)
		if err == nil {
			head, _ := parts(o)
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

// step works rows off, in one transaction: each by itself.
func (j *job) step(ctx context.Context, rows []*row) error {
	var earlier []*row
	if j.mode == dryRun {
		earlier = j.prior.neededBy(rows)
	}
	outcomes, err := j.perform(ctx, slices.Concat(earlier, rows), j.mode == dryRun, func(p *perform, outcomes []outcome) error {
		return j.keep(p, rows, outcomes)
	})
	switch tooMuch := errors.Is(err, store.ErrTrialEnded) || j.mode == dryRun && errors.Is(err, errFewer); {
	case tooMuch && len(rows) > 1:
		err = errFewer
	case tooMuch:
		earlier, outcomes, err = nil, []outcome{{came: refused, said: []string{"it would change more than is tried"}}}, nil
	}
	if err == nil {
		outcomes = outcomes[len(earlier):]
	}
	if err == nil && j.mode == dryRun {
		err = j.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
			for i := range outcomes {
				if o := &outcomes[i]; o.row != nil && o.came != created {
					head, err := tx.Head(o.row.ID)
					if err != nil && !store.IsNotFound(err) {
						return err
					}
					o.provisional = err != nil || head.Collection != o.row.Collection
				}
			}
			return j.keep(&perform{job: j, Change: &resource.Change{Tx: tx, API: j.api}}, rows, outcomes)
		})
	}
	if err == nil {
		j.meet(rows, outcomes)
	}
	j.count(outcomes, err)
	return err
}

// keep writes down what came of rows, and ends an import that somebody has cancelled.
func (j *job) keep(p *perform, rows []*row, outcomes []outcome) error {
	row, o, err := j.read(p.Tx)
	if err != nil {
		return err
	}
	if err := logRows(p.Tx, j.id, linesOf(rows, outcomes)); err != nil {
		return err
	}
	if _, state := parts(o); *state == cancelling {
		return errOver
	}
	if err := j.remember(p.Tx, rows, outcomes); err != nil {
		return err
	}
	return j.note(p.Change, row, "", "", outcomes)
}

// logRows adds lines about rows to the log of an import: those of refused rows as long as there is room for lines about rows, those of
// changed rows as long as there is room for these.
func logRows(tx *store.Tx, id int64, lines []string) error {
	changed := slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return !strings.Contains(line, changedText) })
	if err := logLines(tx, id, maxChangedLines, changed); err != nil {
		return err
	}
	return logLines(tx, id, maxRowLines, slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, changedText) }))
}

// changedText is in the line of a row that has changed its resource.
const changedText = ": changed: "

// atOnce imports all rows, or none.
func (j *job) atOnce(ctx context.Context, in rowReader) error {
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
	outcomes, err := j.perform(ctx, rows, false, func(p *perform, outcomes []outcome) error {
		for _, o := range outcomes {
			if o.came == refused {
				return errRefused
			}
		}
		if err := j.keep(p, rows, outcomes); err != nil || !j.prunes {
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
		j.count(outcomes, err)
		if err == nil {
			err = j.finish(ctx)
		}
		return err
	}
	n := 0                    // of which there may be more behind the last one that was tried
	for i := range outcomes { // of the others nothing stays
		if outcomes[i].came != refused {
			outcomes[i].came = undone
		} else {
			n++
		}
	}
	// In one transaction with the end: behind a kill in between it would be taken for one that was imported.
	err = j.endWith(ctx, j.id, failed, fmt.Sprintf("at least %d of %d rows are refused, and nothing was imported", n, len(rows)), outcomes,
		linesOf(rows, outcomes))
	j.count(outcomes, err)
	return err
}

// linesOf gives what is to be said of rows in the log.
func linesOf(rows []*row, outcomes []outcome) (lines []string) {
	for i, one := range outcomes {
		for _, said := range one.said {
			lines = append(lines, rows[i].at+": "+said)
		}
		if one.came == updated && len(one.fields) > 0 {
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

// count tells who counts of rows that were worked off, unless that failed.
func (j *job) count(outcomes []outcome, err error) {
	if err != nil {
		return
	}
	for _, o := range outcomes {
		j.Worked(1, results[o.came])
	}
}

// maxAgain is how many rows of a step may take it back before fewer are done at once.
const maxAgain = 2

// errFewer asks for fewer rows at once.
var errFewer = errors.New("fewer rows at once")

// errRefused takes a transaction back because of rows that are refused; errAgain because one of them has left something behind.
var (
	errRefused = errors.New("rows are refused")
	errAgain   = errors.New("a row that is refused has written something")
)

// perform does what rows say, in one transaction, and gives what came of each. keep is called at its end.
func (j *job) perform(ctx context.Context, rows []*row, trial bool, keep func(*perform, []outcome) error) (outcomes []outcome, err error) {
	if err := j.prepare(ctx, rows); err != nil {
		return nil, err
	}
	wrong := map[int]*problem.Problem{} // those that are passed over, because they wrote something before they were refused
	for {
		err = j.api.WithOutside(ctx, maxProbes, tooManyAsked, func(o resource.Outside) error {
			do := func(tx *store.Tx) (err error) {
				outcomes, err = j.each(tx, o, rows, wrong)
				if err != nil || trial {
					return err
				}
				return keep(&perform{job: j, Change: &resource.Change{Tx: tx, API: j.api}}, outcomes)
			}
			author, err := j.author(ctx)
			if err != nil {
				return err
			}
			if trial {
				return j.api.Store.Try(ctx, store.Scope{}, author, do)
			}
			return j.lease.Update(ctx, author, do)
		})
		switch {
		case errors.Is(err, errKeptMore):
		case !errors.Is(err, errAgain):
			return outcomes, err
		case j.mode == allOrNothing: // which is enough to refuse all
			return outcomes, errRefused
		case len(wrong) > maxAgain && len(rows) > 1:
			return nil, errFewer
		}
	}
}

// author is whose changes these are.
func (j *job) author(ctx context.Context) (author store.Author, err error) {
	err = j.api.Store.View(ctx, func(tx *store.Tx) error {
		return tx.QueryRow("SELECT user_id, name FROM import_starter WHERE import = ?", j.id).Scan(&author.User, &author.Name)
	})
	author.Credential = "import " + strconv.FormatInt(j.id, 10)
	author.Comment = j.comment
	return author, err
}

// caller is within whose rights rows are done.
func (j *job) caller(tx *store.Tx) (resource.Caller, error) {
	var user int64
	var token string
	if err := tx.QueryRow("SELECT user_id, token FROM import_starter WHERE import = ?", j.id).Scan(&user, &token); err != nil {
		return resource.Caller{}, fmt.Errorf("who started an import: %w", err)
	}
	return j.acting(tx, user, token)
}

// each does what each row says. A row that is refused, and has written something by then, takes all back, and is passed over (wrong).
func (j *job) each(tx *store.Tx, o resource.Outside, rows []*row, wrong map[int]*problem.Problem) (outcomes []outcome, err error) {
	passed := maps.Clone(j.passed)
	defer func() {
		if err != nil { // what was said is taken back, too
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
	p := &perform{job: j, Change: &resource.Change{Tx: tx, API: j.api, Caller: caller, Options: j.options, Probed: o.Probed, Made: o.Made}}
	outcomes = make([]outcome, len(rows))
	met := map[int64]string{}
	j.taken = func(id int64) bool { return met[id] != "" || j.met[id] != "" }
	for i, one := range rows {
		if refusal := wrong[i]; refusal != nil {
			outcomes[i] = outcome{came: refused, said: []string{refusal.Code + ": " + refusal.Message}}
			continue
		}
		before := tx.Writes()
		if outcomes[i], err = p.one(one); err == nil {
			err = j.meets(met, one, &outcomes[i])
		}
		if err == nil {
			err = p.mark(one, &outcomes[i])
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
			outcomes[i] = outcome{came: refused, said: append(outcomes[i].said, refusal.Code+": "+refusal.Message)}
			return outcomes, errAgain
		default:
			outcomes[i] = outcome{came: refused, said: append(outcomes[i].said, refusal.Code+": "+refusal.Message)}
		}
	}
	return outcomes, nil
}

// maxMet is how many resources of rows are remembered.
const maxMet = 2_000_000

// meets refuses a row that is about the same resource as an earlier one: met are those of this transaction, each with where its row stands.
func (j *job) meets(met map[int64]string, one *row, came *outcome) error {
	if !j.keys || came.row == nil {
		return nil
	}
	first, twice := met[came.row.ID]
	if !twice {
		first, twice = j.met[came.row.ID]
	}
	if twice {
		return problem.Conflict("ResourceConflictsWithOther", "%s is about the same %s %d: remove one of the two", first, came.row.Type,
			came.row.ID)
	}
	if len(j.met)+len(met) < maxMet {
		met[came.row.ID] = one.at
	}
	return nil
}

// meet records the resources of rows in memory. Of a resource that a dry run would create it records the parent and the
// row.
func (j *job) meet(rows []*row, outcomes []outcome) {
	for i, o := range outcomes {
		if o.row != nil && o.came == created && j.mode == dryRun {
			if j.createdParents == nil {
				j.createdParents = map[int64]bool{}
			}
			j.createdParents[o.row.Parent] = true
			j.prior.add(rows[i], o.row)
		}
		if j.keys && o.row != nil && !o.provisional && len(j.met) < maxMet && (o.came != created || j.mode != dryRun) {
			j.met[o.row.ID] = rows[i].at
		}
	}
}

// prepare does for rows what takes too long for a transaction.
func (j *job) prepare(ctx context.Context, rows []*row) error {
	j.prepared = nil
	for _, one := range rows {
		p := &perform{job: j, Change: &resource.Change{API: j.api}}
		t, wrong := p.typeOf(one)
		if wrong != nil || j.api.CollectionOf(t).Beforehand == nil {
			continue
		}
		members, wrong := one.body(t)
		if wrong != nil {
			continue
		}
		if j.prepared == nil {
			j.prepared = map[int64]any{}
		}
		made, err := j.api.CollectionOf(t).Beforehand(ctx, j.api, members)
		if _, ok := problem.As(err); ok { // which its row is refused for
			continue
		}
		if err != nil {
			return err
		}
		if made == nil {
			continue
		}
		if len(j.prepared) == maxPrepared {
			return errFewer
		}
		j.prepared[one.number] = made
	}
	return nil
}
