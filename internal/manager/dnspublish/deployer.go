package dnspublish

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"portolan/internal/base/plural"
	"portolan/internal/base/problem"
	"portolan/internal/engine/event"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/engine/timetable"
	"portolan/internal/manager/serverconfig"
)

// Intervals of the deployer.
const (
	pollInterval = 50 * time.Millisecond
	// waitInterval is the interval of checks whether service points serve the deployed content, and waitTime the time after which such a
	// wait fails.
	waitInterval = 100 * time.Millisecond
	waitTime     = 2 * time.Minute
	// leaseLength is the duration of the lease. After the crash of a manager, nothing is deployed for this long.
	leaseLength   = 10 * time.Second
	leaseInterval = 2 * time.Second
)

// Deployer runs deployments one after the other. A lease ensures that only one manager of a database runs them at a time.
type Deployer struct {
	api    *resource.API
	points Points
	log    *slog.Logger
	lease  *store.Lease
	// noDeployments is true if no deployment is queued, running or waiting, noChanges if no change of a live view is queued, and noBulk if no
	// large one is. They are cached until something changes.
	noDeployments, noChanges, noBulk *store.Cache[struct{}, bool]
	// Ended is called for each deployment that has ended, with its type and state.
	Ended func(kind, state string)
	// Changed is called with the number of queue entries of live views that were deployed.
	Changed func(n int)
	// Rolled is called with the number of keys of signed zones that were made or removed.
	Rolled func(what string, n int)

	// rolled is cached until something changes that affects keys of signed zones. The value is true if there are no such keys.
	rolled *store.Cache[struct{}, bool]
	// schedules computes when deployments are due by a schedule.
	schedules *timetable.Clock
	// mu guards held, whether this manager holds the lease, and leaseTried, when it last tried to take it.
	mu         sync.Mutex
	held       bool
	leaseTried time.Time
	// waitsChecked is when waits were last checked. It, turns, conflicts, conflictsOf and changedSince are used by runDeployments only, the
	// other fields by runLive only.
	waitsChecked time.Time
	// conflicts is the number of attempts of the deployment conflictsOf that ended because the same content was deployed meanwhile.
	conflicts    int
	conflictsOf  int64
	changedSince examinedZones
	// rolledAt is when keys were last checked.
	rolledAt time.Time
	// unconfirmed are the deployed data of keys that not all servers serve yet, with the revision numbers to be reached. unconfirmedBefore
	// are those of the previous check.
	unconfirmed, unconfirmedBefore map[keyData]int64
	// turns is the number of deployments run for each user. Of the users with queued deployments, the one with the fewest is next.
	turns map[int64]int64
	// plan is the plan of the last deployed live configuration, planned the lease period that it was read in. It stays valid while
	// this manager holds the lease and only records change.
	plan    *plan
	planned int64
	// examined are the configurations all of whose zones were examined since the start.
	examined map[int64]bool
	whole    largeZoneLock
	times    contentTimes
}

// NewDeployer returns a deployer. Start it with Run.
func NewDeployer(a *resource.API, points Points, log *slog.Logger) *Deployer {
	return &Deployer{api: a, points: points, log: log, lease: a.Store.NewLease(deployments, leaseLength),
		noDeployments: store.NewCache[struct{}](a.Store, store.CacheOptions[bool]{Topics: []string{deployments}}), Ended: func(string, string) {},
		Changed: func(int) {}, Rolled: func(string, int) {}, unconfirmed: map[keyData]int64{}, examined: map[int64]bool{},
		changedSince: examinedZones{},
		schedules:    timetable.NewClock(a, schedules),
		noChanges:    store.NewCache[struct{}](a.Store, store.CacheOptions[bool]{Topics: []string{dueTopic}}),
		noBulk:       store.NewCache[struct{}](a.Store, store.CacheOptions[bool]{Topics: []string{dueTopic}}),
		rolled: store.NewCache[struct{}](a.Store, store.CacheOptions[bool]{Topics: []string{"signingKeys", deployments,
			rollTopic}}), turns: map[int64]int64{}}
}

// Run works until ctx is cancelled. Live changes, large changes of live views, and deployments that users create do not wait for each
// other.
func (d *Deployer) Run(ctx context.Context) {
	live, stop := context.WithCancel(context.WithoutCancel(ctx)) // until the others have ended, because it releases the lease
	defer stop()
	var others sync.WaitGroup
	others.Go(func() {
		d.api.Store.WorkOn(ctx, []string{dueTopic}, pollInterval, d.log, "large changes of live views", d.runBulk)
	})
	others.Go(func() {
		d.api.Store.WorkOn(ctx, []string{deployments}, pollInterval, d.log, deployments, d.runDeployments)
	})
	go func() {
		<-ctx.Done()
		others.Wait()
		stop()
	}()
	d.api.Store.WorkOn(live, []string{deployments, dueTopic}, pollInterval, d.log, "live changes", d.runLive, d.lease)
}

// maxLiveRun is the time after which runLive examines schedules and keys again, while live changes go on.
const maxLiveRun = time.Second

// runLive does the work that must not wait: schedules, key rollovers, and live changes.
func (d *Deployer) runLive(ctx context.Context) (failure error) {
	unchanged, known := d.noChanges.Now(struct{}{})
	due, err := d.schedules.IsDue(ctx)
	if err != nil {
		return err
	}
	rolls, err := d.isRollDue(ctx)
	if err != nil {
		return err
	}
	if unchanged && known && !due && !rolls {
		return nil
	}
	if held, err := d.takeLease(ctx); err != nil || !held {
		return err
	}
	if due {
		if err := d.runSchedules(ctx); err != nil { // an error here does not stop the other work
			defer func() { failure = errors.Join(failure, err) }()
		}
	}
	defer d.lease.Keep(ctx, d.log)()
	if rolls {
		if err := d.roll(ctx); err != nil { // as for schedules
			defer func() { failure = errors.Join(failure, err) }()
		}
	}
	began := time.Now()
	return d.deployAll(ctx, func(ctx context.Context) (more bool, err error) {
		more, err = d.deployDue(ctx)
		return more && time.Since(began) < maxLiveRun, err
	})
}

// runDeployments ends the waits for service points, and runs the next deployment.
func (d *Deployer) runDeployments(ctx context.Context) error {
	keeps := false
	defer func() {
		if !keeps {
			d.whole.release()
		}
	}()
	if idle, known := d.noDeployments.Now(struct{}{}); idle && known {
		return nil
	}
	if held, err := d.takeLease(ctx); err != nil || !held {
		return err
	}
	defer d.lease.Keep(ctx, d.log)()
	next, waiting, err := d.nextDeployment(ctx)
	if err != nil || next == 0 && waiting == 0 {
		return err
	}
	if waiting > 0 && time.Since(d.waitsChecked) > waitInterval {
		d.waitsChecked = time.Now()
		if err := d.endWaits(ctx); err != nil {
			return err
		}
	}
	if next == 0 {
		return nil
	}
	if d.conflictsOf != next {
		d.conflicts, d.conflictsOf = 0, next
	}
	err = d.deploy(ctx, next)
	if errors.Is(err, errLargeZone) {
		d.whole.await()
		keeps = true
		return nil
	}
	if errors.Is(err, errConcurrentDeployment) { // it runs again
		d.conflicts++
		return nil
	}
	d.conflicts = 0
	if p, ok := problem.As(err); ok && p.Status < 500 {
		return d.end(ctx, next, failed, p.Message)
	}
	if err != nil && !isTransient(ctx, err) { // a retry would fail again and block other deployments
		d.log.Error("deployment failed", "deployment", next, "error", err)
		return d.end(ctx, next, failed, "internal error: see the log of the manager")
	}
	return err
}

// takeLease takes or renews the lease, at most once per interval, and reports whether this manager holds it.
func (d *Deployer) takeLease(ctx context.Context) (held bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	every := leaseInterval
	if !d.held { // another manager holds it
		every = time.Second
	}
	if time.Since(d.leaseTried) >= every {
		d.leaseTried = time.Now()
		d.held, err = d.lease.Acquire(ctx)
	}
	return d.held, err
}

// nextDeployment returns the deployment to run, and how many deployments wait for service points. A running deployment comes first. Queued
// deployments are taken from their users in turn, and those of one user in the order of their creation. So a user with many deployments
// does not block others.
func (d *Deployer) nextDeployment(ctx context.Context) (id int64, waiting int, err error) {
	first := map[int64]int64{} // the first deployment of each user
	err = d.api.Store.View(ctx, func(tx *store.Tx) error {
		id = 0
		clear(first)
		if err := tx.QueryRow("SELECT count(*) FROM deployment_wait").Scan(&waiting); err != nil {
			return err
		}
		waits := map[int64]bool{}
		if err := tx.Each(func(scan func(...any) error) error {
			var one int64
			err := scan(&one)
			waits[one] = true
			return err
		}, "SELECT deployment FROM deployment_wait"); err != nil {
			return err
		}
		for _, state := range []string{running, queued} {
			if err := tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection(deployments), inState(state)}},
				func(r *store.Resource) error {
					user := r.Ref("user")
					if known := first[user]; waits[r.ID] || known != 0 && known < r.ID {
						return nil
					}
					group, err := serverconfig.IsServerGroup(tx, r.Parent) // the deployments of its servers are run instead
					if err == nil && !group {
						first[user] = r.ID
					}
					return err
				}); err != nil {
				return err
			}
			if len(first) > 0 {
				break
			}
		}
		if len(first) == 0 && waiting == 0 {
			d.noDeployments.Put(tx, struct{}{}, true)
		}
		return nil
	})
	if err != nil || len(first) == 0 {
		return 0, waiting, err
	}
	return d.nextInTurn(first), waiting, nil
}

// nextInTurn returns one of the first deployments of users, and counts it. A user without earlier turns starts with the lowest count of the
// others.
func (d *Deployer) nextInTurn(first map[int64]int64) (id int64) {
	fewest := int64(math.MaxInt64)
	for user := range d.turns {
		if first[user] == 0 {
			delete(d.turns, user)
			continue
		}
		fewest = min(fewest, d.turns[user])
	}
	var whose int64
	for user, one := range first {
		if _, known := d.turns[user]; !known {
			d.turns[user] = 0
			if fewest < math.MaxInt64 {
				d.turns[user] = fewest
			}
		}
		if id == 0 || d.turns[user] < d.turns[whose] || d.turns[user] == d.turns[whose] && one < id {
			id, whose = one, user
		}
	}
	d.turns[whose]++
	return id
}

// outcome is the result of a deployment, before service points serve it.
type outcome struct {
	configuration int64
	read          readTime // the moment of the snapshot that it was computed from
	// all are the changed zones. serving is the new content of the server; nil if its settings stay the same.
	all     []*publication
	serving *serving
	// server is the server to wait for; 0 to wait for every server with changed content.
	server int64
	// zones is the number of zones that were examined; warnings are sentences.
	zones    int
	warnings []string
	// faults are zones that cannot be deployed, which does not stop the others.
	faults []fault
	// healed are zones that had a fault before and now equal their deployed content.
	healed []string
	// redoAll reports that the structure of the configuration must be examined once more, because a zone was deployed for the first time.
	redoAll bool
	// servings are the new contents of servers for queued changes of the structure; nil if only names are queued.
	servings map[int64]*serving
	// frames are the frames of the zones that were examined, by id. byID are all zones of the plan.
	// frameBases are the stored frames of the snapshot, for a deployment beside laneLive.
	frames     map[string]frame
	frameBases map[string]frame
	byID       map[string]*plannedZone
	// defers reports whether a zone is too large to be examined as a whole in laneLive; nil if no zone is. deferred are the ids of such
	// zones.
	defers   func(p *plan, z *plannedZone, is deployedZone) (bool, error)
	deferred []string
	// whole reports that zones which no server has yet are deployed too.
	whole bool
	// examined are the ids of the zones that were examined for queue entries.
	examined map[string]bool
	// examinedZones are the ids of the zones that a full or differential deployment has examined, at the place at of the change feed.
	examinedZones []string
	at            store.Position
	// checked reports that nothing is to be deployed (validation), continues that a zone that cannot be deployed does not stop the others.
	checked, continues bool
	// insists reports that the outcome is committed although the settings of the server have changed since the snapshot.
	insists bool
	// text is the summary of a service other than DNS.
	text string
	// statics are the dynamic records to make static.
	statics []int64
}

// deploy runs a deployment: it computes the outcome from a snapshot, and then commits it in one transaction.
func (d *Deployer) deploy(ctx context.Context, id int64) (err error) {
	defer d.whole.release()
	defer recoverFault(&err)
	if err := d.markStarted(ctx, id); store.IsNotFound(err) { // a user deleted it meanwhile
		return nil
	} else if err != nil {
		return err
	}
	var o *outcome
	var other Service
	var row *store.Resource
	read := d.times.beginRead()
	if err := d.api.Store.View(ctx, func(tx *store.Tx) error {
		found, err := tx.Get(id)
		if err != nil {
			return err
		}
		read.endRead()
		row = found.Clone()
		x, err := d.api.Object(row)
		if err != nil {
			return err
		}
		if other, err = serviceOf(d.api, serviceField(x)); err != nil || other != nil {
			return err
		}
		if o, err = d.prepare(tx, row, x); o != nil {
			o.read, o.insists = read, d.conflicts >= maxConflictRetries
		}
		return err
	}); err != nil {
		return err
	}
	if other != nil {
		return d.deployService(ctx, id, row, other)
	}
	state, message := completed, o.summary()
	if len(o.warnings) > 0 {
		state = warned
	}
	if o.checked {
		return d.end(ctx, id, state, message)
	}
	return d.commitOutcome(ctx, id, o, state, message)
}

// markStarted sets the deployment to RUNNING.
func (d *Deployer) markStarted(ctx context.Context, id int64) error {
	return d.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		row, err := tx.Get(id)
		if err != nil {
			return err
		}
		return d.update(tx, row, func(x *DeploymentHead) {
			if x.StartDateTime.IsZero() {
				x.State, x.StartDateTime = running, tx.Now()
			}
		})
	})
}

// update changes the fields of a deployment.
func (d *Deployer) update(tx *store.Tx, row *store.Resource, fn func(x *DeploymentHead)) error {
	return updateDeployment(&resource.Change{Tx: tx, API: d.api}, row, fn)
}

func updateDeployment(c *resource.Change, row *store.Resource, fn func(x *DeploymentHead)) error {
	c.Tx.Touch(deployments)
	_, err := c.Following().Change(row, func(o schema.Object) { fn(headOf(o)) })
	return err
}

// summary returns the message of the outcome.
func (o *outcome) summary() string {
	removed, added := 0, 0
	for _, c := range o.all {
		removed += len(c.removed)
		added += len(c.added)
	}
	text := fmt.Sprintf("%s, %d of them changed: %s added, %d removed", plural.Count(o.zones, "zone"), len(o.all),
		plural.Count(added, "record"), removed)
	if o.checked {
		text = plural.Count(o.zones, "zone") + plural.Verb(o.zones, " was", " were") + " checked"
	}
	if o.text != "" {
		text = o.text
	}
	for _, one := range o.warnings[:min(len(o.warnings), maxFindings)] {
		text += "; " + one
	}
	if n := len(o.warnings) - maxFindings; n > 0 {
		text += fmt.Sprintf("; and %d more", n)
	}
	return text
}

// maxMessageLength is the maximum length of the message of a deployment, in characters.
const maxMessageLength = 8000

// kindsOfEvents are the event types of ended deployments, by state.
var kindsOfEvents = map[string]string{completed: "SUCCESS", warned: "WARNING", failed: "FAILED"}

// end ends a deployment: it deletes its waits, sets its state, adds an event, and updates the deployment of its group.
func (d *Deployer) end(ctx context.Context, id int64, state, message string) error {
	kind := ""
	err := d.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		kind = ""
		if err := tx.Write("DELETE FROM deployment_wait WHERE deployment = ?", id); err != nil {
			return err
		}
		tx.Touch(deployments)
		row, err := tx.Get(id)
		if store.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		kind = row.Type
		of, err := deployedTo(tx, row)
		if err != nil {
			return err
		}
		category := "DEPLOYMENT"
		if kind == validation {
			category = "DEPLOYMENT_DATA_VALIDATION"
		}
		x, err := d.api.Object(row)
		if err != nil {
			return err
		}
		if err := event.Add(tx, event.Event{EventType: kindsOfEvents[state], Category: category, Subcategory: serviceField(x), SourceName: kind,
			Message: fmt.Sprintf("%s %d%s has ended: %s: %s", kind, id, of, state, schema.Cut(message, 1000))}, id); err != nil {
			return err
		}
		if err := d.update(tx, row, func(x *DeploymentHead) { x.end(tx, state, message) }); err != nil {
			return err
		}
		return endGroup(&resource.Change{Tx: tx, API: d.api}, row.Ref("group"), 0)
	})
	if err == nil && kind != "" {
		d.Ended(kind, state)
	}
	return err
}
