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
	// pollInterval is the time between two checks for pending imports. The answer is cached until an import changes.
	pollInterval = 50 * time.Millisecond
	// leaseLength is the lifetime of the lease. Writes of a manager whose lease has expired are rejected once another manager has it.
	leaseLength  = time.Minute
	leaseRenewal = 5 * time.Second
)

// Steps of rows. Each step is one transaction. Its work takes at most about stepTime without its commit if other transactions wait for
// it, as on SQLite, else longStepTime: there only changes of the same rows wait.
const (
	firstStep   = 50
	maxStepRows = 2_000
	// manyRows is the number of rows of a file after which its import is large work.
	manyRows     = 200
	stepTime     = 25 * time.Millisecond
	longStepTime = 100 * time.Millisecond
	// maxAtOnce is the maximum number of rows imported in one transaction.
	maxAtOnce = 10_000
	// maxBytesAtOnce is the maximum size of a file imported in one transaction, in bytes, as its rows are in memory.
	maxBytesAtOnce = 16 << 20
	// maxProbes is the number of addresses probed for one step.
	maxProbes = 64
	// maxPrepared is the number of rows of a step that need preparation, such as hashing a password.
	maxPrepared = 16
)

// Show returns a resource as JSON, as the caller sees it.
type Show func(tx *store.Tx, row *store.Resource, caller resource.Caller) ([]byte, error)

// Acting returns a caller with the current rights of a user, or of a token by its id, for work in the background.
type Acting func(tx *store.Tx, user int64, token string) (resource.Caller, error)

// Runner runs the imports of a database, one after another. One manager at a time does so.
type Runner struct {
	api    *resource.API
	show   Show
	acting Acting
	log    *slog.Logger
	lease  *store.Lease
	known  *store.Cache[struct{}, int64]
	// Ended is called for each import that has ended, Worked for processed rows.
	Ended  func(state string)
	Worked func(rows int, result string)
	// Leases returns the importer of leases into a configuration, in a transaction.
	Leases func(tx *store.Tx, configuration int64) LeaseTaker

	// alwaysSingly makes each row write its statements at once. Tests compare that with batches.
	alwaysSingly bool

	// leaseTaken is the time of the last renewal of the lease. Only Run uses the fields below.
	leaseTaken time.Time
	hasLease   bool
}

// NewRunner returns a Runner. Run starts it.
func NewRunner(a *resource.API, show Show, acting Acting, log *slog.Logger) *Runner {
	return &Runner{api: a, show: show, acting: acting, log: log, lease: a.Store.NewLease(collectionName, leaseLength),
		known: store.NewCache[struct{}](a.Store, store.CacheOptions[int64]{Topics: []string{collectionName}}),
		Ended: func(string) {}, Worked: func(int, string) {}}
}

// Run runs imports until ctx ends.
func (r *Runner) Run(ctx context.Context) {
	r.api.Store.WorkOn(ctx, []string{collectionName}, pollInterval, r.log, "imports", r.runPending, r.lease)
}

// runPending runs all pending imports.
func (r *Runner) runPending(ctx context.Context) error {
	for ctx.Err() == nil {
		id, err := r.nextImport(ctx)
		if err != nil {
			return err
		}
		if id == 0 && r.hasLease {
			r.hasLease, r.leaseTaken = false, time.Time{}
			return r.lease.Release(ctx)
		}
		if id == 0 {
			return nil
		}
		if err := r.holdLease(ctx); err != nil || !r.hasLease {
			return err
		}
		err = r.run(ctx, id)
		if err != nil && !isTemporary(ctx, err) { // a permanent error would also block the imports after this one
			r.log.Error("import failed", "import", id, "error", err)
			err = r.end(ctx, id, failed, "internal error: see the log of the manager")
		}
		if err != nil {
			return fmt.Errorf("import %d: %w", id, err)
		}
	}
	return nil
}

// isTemporary reports whether an error may be gone at the next try: the database was unavailable or busy, another manager has the lease, or
// this manager shuts down.
func isTemporary(ctx context.Context, err error) bool {
	if p, ok := problem.As(err); ok && p.Status >= 500 || errors.Is(err, store.ErrLeaseLost) || ctx.Err() != nil {
		return true
	}
	return errors.As(err, &readError{})
}

// holdLease takes or renews the lease when needed.
func (r *Runner) holdLease(ctx context.Context) (err error) {
	every := leaseRenewal
	if !r.hasLease { // another manager has the lease
		every = time.Second
	}
	if time.Since(r.leaseTaken) < every {
		return nil
	}
	r.leaseTaken = time.Now()
	r.hasLease, err = r.lease.Acquire(ctx)
	return err
}

// nextImport returns the id of the next import: a started one, or else the oldest queued one. It returns 0 if there is none.
func (r *Runner) nextImport(ctx context.Context) (id int64, err error) {
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
			first, err := tx.ReadFirst(store.Query{From: store.Resources, Where: store.All{store.InCollection(collectionName), either}})
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

// job is a running import.
type job struct {
	*Runner
	id int64
	// The settings of the import, for all types of imports.
	name, comment, kind, mode, action string
	at                                target
	options                           resource.Options
	// headings map the columns of the file; nil if their names are those of fields.
	headings *headings
	rows     int64
	// file is the file being read.
	file *file
	// passed are the unknown members that were reported already. Each is reported once for a file.
	passed map[string]bool
	// macs are the first rows with a MAC address, at most maxMet.
	macs map[string]*row
	// tag is the tag set on the resources of rows; nil if there is none. prunes deletes resources that have the tag but are not in the
	// file.
	tag    *store.Resource
	prunes bool
	// keys means that a resource may be in one row only. met are the resources of the rows processed so far, with the position of the row.
	keys bool
	met  map[int64]string
	// createdParents are the parents of resources that a dry run would create. prior are the rows that would create them.
	createdParents map[int64]bool
	prior          priorRows
	// prepared are the results of Collection.Beforehand for rows, by row number.
	prepared map[int64]any
	// declared means that the rows are declared resources (Apply): resources without a name of their own are matched as well.
	declared bool
	// leases means that the file is a lease file of another DHCP server.
	leases bool
	// singly makes each row write its statements at once, so that an error of the database belongs to the row that causes it.
	singly bool
	// writing measures how long the step of rows kept other changes waiting.
	writing store.LargeStep
	// isTaken reports whether another row of the file or document is about a resource.
	isTaken func(id int64) bool
}

// run runs an import from its current position.
func (r *Runner) run(ctx context.Context, id int64) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	j := &job{Runner: r, id: id}
	over, err := j.start(ctx)
	if err != nil {
		return j.handleFailure(ctx, err)
	}
	if over {
		return j.end(ctx, id, cancelled, "")
	}
	if err := j.loadMet(ctx); err != nil {
		return err
	}
	j.file = &file{ctx: ctx, store: r.api.Store, id: id}
	in, err := j.open()
	if err == nil && j.headings != nil && j.rows == 0 && j.kind == csvType {
		err = j.saveColumns(ctx)
	}
	for skip := j.rows; err == nil && skip > 0; skip-- { // processed before a restart
		_, err = in.next()
	}
	if errors.Is(err, io.EOF) && j.file.err == nil { // the manager was killed after the last row, before the end was written
		return j.handleFailure(ctx, j.finish(ctx))
	}
	if err != nil {
		return j.handleFailure(ctx, err)
	}
	if j.mode == allOrNothing {
		return j.handleFailure(ctx, j.importAtOnce(ctx, in))
	}
	return j.handleFailure(ctx, j.importInSteps(ctx, in))
}

// open opens the rows of the file.
func (j *job) open() (rowReader, error) {
	if j.leases {
		return readLeases(j.file)
	}
	return readRows(j.kind, j.file, j.headings)
}

// errOver reports that the import was cancelled or deleted.
var errOver = errors.New("the import is over")

// handleFailure ends an import that failed permanently. It returns other errors, after which the import is tried again.
func (j *job) handleFailure(ctx context.Context, err error) error {
	if errors.Is(err, errOver) {
		return nil
	}
	if err != nil && j.file != nil && j.file.err != nil { // the read error is the cause
		return j.file.err
	}
	if p, ok := problem.As(err); ok && p.Status < 500 {
		return j.end(ctx, j.id, failed, p.Message)
	}
	return err
}

// start reads the import, and starts it if it is queued. over means that it was cancelled.
func (j *job) start(ctx context.Context) (over bool, err error) {
	err = j.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		c := &resource.Change{Tx: tx, API: j.api}
		row, o, err := j.read(tx)
		if err != nil {
			return err
		}
		head, state := headAndState(o)
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
			if j.leases = x.importsLeases(); j.leases {
				break
			}
			if j.headings, err = x.newHeadings(j.api); err != nil {
				break
			}
			j.options, err = readHeaders(j.api, x.Headers)
		case interface{ common() *ImportBelow }:
			j.mode, j.action = rowByRow, createOnly
			var above store.Head
			if above, err = tx.Head(row.Parent); err != nil {
				break
			}
			if j.at, err = placeOf(j.api, fmt.Sprintf("%s/%d", above.Collection, row.Parent)); err == nil {
				j.options, err = readHeaders(j.api, x.common().Headers)
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
			return j.saveProgress(c, row, running, "", nil)
		}
		return nil
	})
	return over, err
}

// tagOf returns the tag of an import by its path, which contains the number. It returns a problem if the user who started the import cannot
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

// saveProgress writes the state of an import, if not empty, and adds up the results of rows.
func (r *Runner) saveProgress(c *resource.Change, row *store.Resource, state, message string, outcomes []outcome) error {
	var counts [undone + 1]int64
	for _, o := range outcomes {
		counts[o.result]++
	}
	_, err := c.Following().Change(row, func(o schema.Object) {
		head, at := headAndState(o)
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

// kindsOfEvents are the types of the events of imports that have ended, by state.
var kindsOfEvents = map[string]string{completed: "SUCCESS", warned: "WARNING", erred: "ERROR", failed: "FAILED", cancelled: "INFO"}

// end ends an import.
func (r *Runner) end(ctx context.Context, id int64, state, message string) error {
	return r.endWith(ctx, id, state, message, nil, nil)
}

// endWith ends an import, and writes the results and log lines of its last rows.
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
		if x, ok := o.(*ResourceImport); ok && x.Mode == dryRun { // a trial reports errors in the file, which is not a failure
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
		return r.saveProgress(c, row, state, message, outcomes)
	})
	if errors.Is(err, errOver) {
		return nil
	}
	if err == nil {
		if err := r.deleteMet(ctx, id); err != nil { // the next import deletes them
			r.log.Warn("stored resources of import not deleted", "import", id, "error", err)
		}
		r.Ended(state)
		r.log.Log(ctx, level, "import ended", "import", id, "message", said)
	}
	return err
}

// maxLines is the maximum number of lines of a log. A log with maxRowLines lines accepts no more lines about rejected rows. A log with
// maxChangedLines lines accepts no more lines about changed rows. maxLine is the length limit of a line, in bytes.
const (
	maxLines        = 10_000
	maxRowLines     = 8_000
	maxChangedLines = 5_000
	maxLine         = 500
)

// logIsFull is the last line of a log, or of its lines about rows, if there are more.
const logIsFull = "the log has no room for more lines of this kind: they are counted, and not listed"

// file reads the stored file of an import, part by part.
type file struct {
	ctx    context.Context //nolint:containedctx // io.Reader has no room for it
	store  *store.Store
	id     int64
	number int
	rest   []byte
	// err is the read error; nil at the end of the file.
	err error
}

// readError is a temporary error of reading a file.
type readError struct{ error }

// Unwrap returns the cause.
func (u readError) Unwrap() error { return u.error }

// Read returns the next bytes.
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
			f.err = readError{fmt.Errorf("read the file: %w", err)}
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
