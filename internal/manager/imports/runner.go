package imports

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/event"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// Times of the work of a manager.
const (
	// lookEvery is how often it looks whether an import is to be worked off: what it knows is remembered until one changes.
	lookEvery = 50 * time.Millisecond
	// leaseLength is for how long one manager works at a time; whatever it writes behind that is refused once another one works.
	leaseLength = time.Minute
	takeEvery   = 5 * time.Second
)

// Steps of rows, each of which is one transaction: as many as take stepTime, about, while others wait.
const (
	firstStep = 50
	mostRows  = 2_000
	stepTime  = 50 * time.Millisecond
	// maxAtOnce is how many rows are imported all or not at all, maxProbes how many addresses are asked for one step whether they answer,
	// maxPrepared how many rows of one may need work before, such as hashing a password.
	maxAtOnce = 10_000
	// maxBytesAtOnce is how long a file that is imported all or not at all may be, in bytes: its rows are in memory.
	maxBytesAtOnce = 16 << 20
	maxProbes      = 64
	maxPrepared    = 16
)

// Show words a resource as the caller is shown it, as JSON.
type Show func(tx *store.Tx, row *store.Resource, caller resource.Caller) ([]byte, error)

// Acting gives who works in the background for a user, or for a token by its id, as they are now.
type Acting func(tx *store.Tx, user int64, token string) (resource.Caller, error)

// Runner works imports off: of all managers of a database one at a time, one import behind the other.
type Runner struct {
	api    *resource.API
	show   Show
	acting Acting
	log    *slog.Logger
	lease  *store.Lease
	known  *store.Cache[struct{}, int64]
	// Ended is told of each import that has ended, Worked of rows that were worked off.
	Ended  func(state string)
	Worked func(rows int, result string)

	// What follows is Run's own: when the lease was last taken, and whether it is held.
	taken time.Time
	held  bool
}

// NewRunner makes what works imports off. Run runs it.
func NewRunner(a *resource.API, show Show, acting Acting, log *slog.Logger) *Runner {
	return &Runner{api: a, show: show, acting: acting, log: log, lease: a.Store.NewLease(collectionName, leaseLength),
		known: store.NewCache[struct{}](a.Store, store.CacheOptions[int64]{Topics: []string{collectionName}}),
		Ended: func(string) {}, Worked: func(int, string) {}}
}

// Run works until ctx ends.
func (r *Runner) Run(ctx context.Context) {
	r.api.Store.Work(ctx, lookEvery, r.log, "imports", r.look, r.lease)
}

// look works off what there is to do.
func (r *Runner) look(ctx context.Context) error {
	for ctx.Err() == nil {
		id, err := r.next(ctx)
		if err != nil {
			return err
		}
		if id == 0 && r.held {
			r.held, r.taken = false, time.Time{}
			return r.lease.Release(ctx)
		}
		if id == 0 {
			return nil
		}
		if err := r.hold(ctx); err != nil || !r.held {
			return err
		}
		err = r.work(ctx, id)
		if err != nil && !passes(ctx, err) { // whatever it is, it would be there at the next try, too, and be in the way of others
			r.log.Error("an import cannot go on", "import", id, "error", err)
			err = r.end(ctx, id, failed, "a fault of the manager: its log has more")
		}
		if err != nil {
			return fmt.Errorf("import %d: %w", id, err)
		}
	}
	return nil
}

// passes reports whether a failure may be over at the next try: the database was away or busy, another manager works, or this one ends.
func passes(ctx context.Context, err error) bool {
	if p, ok := problem.As(err); ok && p.Status >= 500 || errors.Is(err, store.ErrLeaseLost) || ctx.Err() != nil {
		return true
	}
	return errors.As(err, &unread{})
}

// hold takes the lease, or takes it for longer.
func (r *Runner) hold(ctx context.Context) (err error) {
	every := takeEvery
	if !r.held { // another manager works
		every = time.Second
	}
	if time.Since(r.taken) < every {
		return nil
	}
	r.taken = time.Now()
	r.held, err = r.lease.Take(ctx)
	return err
}

// next gives the import to work on: one that was begun, or else the one that was sent first; 0 where there is none.
func (r *Runner) next(ctx context.Context) (id int64, err error) {
	if id, ok := r.known.Now(struct{}{}); ok && id == 0 {
		return 0, nil
	}
	err = r.api.Store.View(ctx, func(tx *store.Tx) error {
		state := store.Field{Kind: store.Text, Path: []string{"state"}}
		for _, wanted := range [][]string{{running, cancelling}, {queued}} {
			var either store.Any
			for _, one := range wanted {
				either = append(either, store.Compare{Field: state, Op: "eq", Value: one})
			}
			first, err := tx.First(store.Query{From: store.Resources, Where: store.All{store.InCollection(collectionName), either}})
			if err != nil {
				return err
			}
			if first != nil {
				id = first.ID
				return nil
			}
		}
		r.known.Put(tx, struct{}{}, 0)
		return nil
	})
	return id, err
}

// job is an import that is being worked off.
type job struct {
	*Runner
	id int64
	// What the import says: of ResourceImport and ResponsePolicyItemImport alike.
	name, comment, kind, mode, action string
	at                                target
	options                           resource.Options
	rows                              int64
	// file is the file that is read.
	file *file
	// passed are those unknown members that something was said of: once for a file.
	passed map[string]bool
	// tag is the tag that the resources of rows get, nil where there is none; prunes deletes what has it and is in no row.
	tag    *store.Resource
	prunes bool
	// keys says that a resource may be in one row alone. met are the resources of the rows that were worked off, each with where its row
	// stands.
	keys bool
	met  map[int64]string
	// createdParents are the parents of resources that a dry run would create, prior the rows that would create them.
	createdParents map[int64]bool
	prior          priorRows
	// prepared is what Collection.Beforehand gave for rows, by their numbers.
	prepared map[int64]any
	// declared: the rows are resources as they are to be, and those without a name of their own are found again, too.
	declared bool
	// taken reports whether another resource of the document is about one already.
	taken func(id int64) bool
}

// work works an import off, from where it is.
func (r *Runner) work(ctx context.Context, id int64) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	j := &job{Runner: r, id: id}
	over, err := j.begin(ctx)
	if err != nil {
		return j.failing(ctx, err)
	}
	if over {
		return j.end(ctx, id, cancelled, "")
	}
	if err := j.recall(ctx); err != nil {
		return err
	}
	j.file = &file{ctx: ctx, store: r.api.Store, id: id}
	in, err := readRows(j.kind, j.file)
	for skip := j.rows; err == nil && skip > 0; skip-- { // which were worked off before
		_, err = in.next()
	}
	if errors.Is(err, io.EOF) && j.file.err == nil { // all were worked off, and the manager was killed before it said so
		return j.failing(ctx, j.finish(ctx))
	}
	if err != nil {
		return j.failing(ctx, err)
	}
	if j.mode == allOrNothing {
		return j.failing(ctx, j.atOnce(ctx, in))
	}
	return j.failing(ctx, j.inSteps(ctx, in))
}

// errOver ends the work on an import that was cancelled or deleted.
var errOver = errors.New("the import is over")

// failing ends an import that cannot go on because of what it is; other errors are given back, and it is tried again.
func (j *job) failing(ctx context.Context, err error) error {
	if errors.Is(err, errOver) {
		return nil
	}
	if err != nil && j.file != nil && j.file.err != nil { // whatever it was taken for
		return j.file.err
	}
	if p, ok := problem.As(err); ok && p.Status < 500 {
		return j.end(ctx, j.id, failed, p.Message)
	}
	return err
}

// begin reads the import, and begins it where it has not begun. over says that somebody has cancelled it.
func (j *job) begin(ctx context.Context) (over bool, err error) {
	err = j.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		c := &resource.Change{Tx: tx, API: j.api}
		row, o, err := j.read(tx)
		if err != nil {
			return err
		}
		head, state := parts(o)
		switch x := o.(type) {
		case *ResourceImport:
			j.mode, j.action, j.keys, j.prunes = x.Mode, x.Action, true, x.Prune
			if j.at, err = placeOf(j.api, x.Into); err != nil {
				break
			}
			if x.Tag != "" {
				if j.tag, err = j.tagOf(tx, x.Tag); err != nil {
					break
				}
			}
			j.options, err = readHeaders(j.api, x.Headers)
		case interface{ below() *ImportBelow }:
			j.mode, j.action = rowByRow, createOnly
			var above store.Head
			if above, err = tx.Head(row.Parent); err != nil {
				break
			}
			if j.at, err = placeOf(j.api, fmt.Sprintf("%s/%d", above.Collection, row.Parent)); err == nil {
				j.options, err = readHeaders(j.api, x.below().Headers)
			}
		case *ResponsePolicyItemImport:
			j.mode, j.action = rowByRow, createOrUpdate
			j.at, err = placeOf(j.api, fmt.Sprintf("responsePolicies/%d/policyItems", x.Parent))
		}
		if err != nil {
			return err
		}
		j.name, j.comment, j.kind, j.rows = head.Name, head.Comment, head.ContentType, head.Rows
		if j.comment == "" {
			j.comment = "import of " + head.Name
		}
		switch *state {
		case cancelling:
			over = true
		case queued:
			log := &ImportLog{}
			log.Type, log.Name, log.Parent = "ImportLog", head.Name+".log", j.id
			if _, err := c.Create(j.api.TypeNamed("ImportLog"), log); err != nil {
				return err
			}
			return j.note(c, row, running, "", nil)
		}
		return nil
	})
	return over, err
}

// tagOf returns the tag of an import by its path, which has its number. The error is a problem if the user who started the import does not
// see it.
func (j *job) tagOf(tx *store.Tx, path string) (*store.Resource, error) {
	id, err := strconv.ParseInt(strings.TrimPrefix(path, tagPath), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("the tag of an import: %w", err)
	}
	caller, err := j.caller(tx)
	if err != nil {
		return nil, err
	}
	row, err := j.api.Visible(tx, id, caller)
	if problem.IsNotFound(err) {
		err = problem.NotFound("the tag of the import was deleted: import the file again with another tag")
	}
	return row, err
}

// read reads the import.
func (j *job) read(tx *store.Tx) (row *store.Resource, o schema.Object, err error) {
	row, err = tx.Get(j.id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil, errOver
	}
	if err == nil {
		o, err = j.api.Object(row)
	}
	return row, o, err
}

// note writes down how an import is: its state, where that is not empty, and what came of rows.
func (r *Runner) note(c *resource.Change, row *store.Resource, state, message string, outcomes []outcome) error {
	var counts [undone + 1]int64
	for _, o := range outcomes {
		counts[o.came]++
	}
	_, err := c.Following().Change(row, func(o schema.Object) {
		head, at := parts(o)
		head.Rows += int64(len(outcomes))
		head.Created += counts[created]
		head.Updated += counts[updated]
		head.Unchanged += counts[unchanged]
		head.Refused += counts[refused]
		if message != "" {
			head.Message = message
		}
		switch state {
		case "":
			return
		case running:
			head.StartDateTime = c.Tx.Now()
		default:
			head.CompletionDateTime = c.Tx.Now()
		}
		*at = state
	})
	if err == nil {
		c.Tx.Touch(collectionName)
	}
	return err
}

// parts gives what imports have in common, and their state.
func parts(o schema.Object) (head *ImportHead, state *string) {
	if x, ok := o.(interface{ progress() (*ImportHead, *string) }); ok {
		return x.progress()
	}
	return &ImportHead{}, new(string)
}

// kindsOfEvents are the kinds of the events of imports that have ended, by state.
var kindsOfEvents = map[string]string{completed: "SUCCESS", warned: "WARNING", erred: "ERROR", failed: "FAILED", cancelled: "INFO"}

// end ends an import.
func (r *Runner) end(ctx context.Context, id int64, state, message string) error {
	return r.endWith(ctx, id, state, message, nil, nil)
}

// endWith ends an import, and writes down what came of its last rows, with what is to be said of them.
func (r *Runner) endWith(ctx context.Context, id int64, state, message string, outcomes []outcome, lines []string) error {
	if message != "" {
		lines = append(lines, message)
	}
	said, level := "", slog.LevelInfo
	err := r.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		c := &resource.Change{Tx: tx, API: r.api}
		row, o, err := (&job{Runner: r, id: id}).read(tx)
		if err != nil {
			return err
		}
		if err := logLines(tx, id, maxLines, lines); err != nil {
			return err
		}
		kind, text := kindsOfEvents[state], fmt.Sprintf("The import of %s has ended: %s", row.Name, state)
		if x, ok := o.(*ResourceImport); ok && x.Mode == dryRun { // which was to show what is wrong: nothing is
			kind, text = "INFO", fmt.Sprintf("The trial of the import of %s has ended: %s", row.Name, state)
		}
		if message != "" {
			text += ": " + message
		}
		if said = text; kind != "SUCCESS" && kind != "INFO" {
			level = slog.LevelWarn
		}
		if err := event.Add(tx, event.Event{EventType: kind, Category: "MIGRATION", SourceName: row.Name,
			Message: text}, id); err != nil {
			return err
		}
		return r.note(c, row, state, message, outcomes)
	})
	if errors.Is(err, errOver) {
		return nil
	}
	if err == nil {
		if err := r.forget(ctx, id); err != nil { // the next import deletes them
			r.log.Warn("the stored resources of an import were not deleted", "import", id, "error", err)
		}
		r.Ended(state)
		r.log.Log(ctx, level, "an import has ended", "import", id, "said", said)
	}
	return err
}

// maxLines is how many lines a log has, maxRowLines how many of them are about rows, maxChangedLines how many lines it has when it takes no
// more lines of changed rows, maxLine how many bytes each line has.
const (
	maxLines        = 10_000
	maxRowLines     = 8_000
	maxChangedLines = 5_000
	maxLine         = 500
)

// logIsFull is the last line of a log, or of its lines about rows, if there are more.
const logIsFull = "the log has no room for more lines of this kind: they are counted, and not listed"

// file reads the file of an import, part by part.
type file struct {
	ctx    context.Context //nolint:containedctx // io.Reader has no room for it
	store  *store.Store
	id     int64
	number int
	rest   []byte
	// err is why it could not be read any further: not the end.
	err error
}

// unread is a file that could not be read for now.
type unread struct{ error }

// Unwrap gives why.
func (u unread) Unwrap() error { return u.error }

// Read gives the next bytes.
func (f *file) Read(into []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	for len(f.rest) == 0 {
		f.rest = nil
		if err := f.store.View(f.ctx, func(tx *store.Tx) error {
			return tx.Each(func(scan func(...any) error) error { return scan(&f.rest) },
				"SELECT data FROM import_part WHERE import = ? AND number = ?", f.id, f.number+1)
		}); err != nil {
			f.err = unread{fmt.Errorf("reading the file: %w", err)}
			return 0, f.err
		}
		if f.rest == nil {
			return 0, io.EOF
		}
		f.number++
	}
	n := copy(into, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}
