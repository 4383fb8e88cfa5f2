package dnspublish

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/event"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/engine/timetable"
	"portolan/internal/manager/serverconfig"
	"portolan/internal/wire/checkin"
)

// Times of the work of a manager on deployments.
const (
	lookEvery = 50 * time.Millisecond
	// waitEvery is how often it is looked whether a service point serves what was deployed, and waitTime how long that may take.
	waitEvery = 100 * time.Millisecond
	waitTime  = 2 * time.Minute
	// leaseLength is for how long one manager works at a time: so long nothing is deployed where it is killed.
	leaseLength = 10 * time.Second
	takeEvery   = 2 * time.Second
)

// Points are the service points of the fleet, as a deployment has to do with them.
type Points interface {
	// Changed notes, in a transaction, that a service point is to serve something else.
	Changed(tx *store.Tx, servicePoint string)
	// Wake lets a service point know, once that transaction is committed.
	Wake(servicePoint string)
	// Serving says what a service point serves.
	Serving(tx *store.Tx, servicePoint string) (Serving, error)
}

// Serving is what a service point serves.
type Serving struct {
	// There says that there is such a service point, Provides what the applications can do that it is to run.
	There    bool
	Provides checkin.Capabilities
	// Content names what it has said that it serves.
	Content string
	// Silent says that it is not connected.
	Silent bool
	// Trouble is what it has said is wrong, in sentences.
	Trouble []string
}

// Deployer works deployments off: of all managers of a database one at a time, one deployment behind the other.
type Deployer struct {
	api    *resource.API
	points Points
	log    *slog.Logger
	lease  *store.Lease
	known  *store.Cache[struct{}, bool]
	// Ended is told of each deployment that has ended, by its type and its state.
	Ended func(kind, state string)
	// Changed is told how many names and addresses of live views were deployed.
	Changed func(n int)

	// Rolled is told how many keys of signed zones were made or removed.
	Rolled func(what string, n int)

	due *store.Cache[struct{}, bool]
	// rolled is there where the keys of signed zones were looked after since anything has changed, and true where there are none.
	rolled *store.Cache[struct{}, bool]
	// schedules says when deployments are due by a schedule.
	schedules *timetable.Clock
	// What follows is Run's own: when the lease was last taken, whether it is held, and when it was last looked who serves what.
	taken, waited, rolledAt time.Time
	// sightings are what was deployed of keys that not all servers serve yet, with the numbers that they are to reach.
	// sighted are those of the look before.
	sightings, sighted map[sighting]int64
	held               bool
	// turns are how many deployments of each user were worked off: who has had the fewest turns of those who wait is next.
	turns map[int64]int64
	// plan is that of the live configuration that was last looked at, in the holding planned of the lease: nothing but records has changed
	// there since, as long as nobody else has seen to what has.
	plan    *plan
	planned int64
}

// NewDeployer makes what works deployments off. Run runs it.
func NewDeployer(a *resource.API, points Points, log *slog.Logger) *Deployer {
	return &Deployer{api: a, points: points, log: log, lease: a.Store.NewLease(deployments, leaseLength),
		known: store.NewCache[struct{}](a.Store, store.CacheOptions[bool]{Topics: []string{deployments}}), Ended: func(string, string) {},
		Changed: func(int) {}, Rolled: func(string, int) {}, sightings: map[sighting]int64{}, schedules: timetable.NewClock(a, schedules),
		due: store.NewCache[struct{}](a.Store, store.CacheOptions[bool]{Topics: []string{dueTopic}}),
		rolled: store.NewCache[struct{}](a.Store, store.CacheOptions[bool]{Topics: []string{"signingKeys", deployments,
			rollTopic}}), turns: map[int64]int64{}}
}

// Run works until ctx ends.
func (d *Deployer) Run(ctx context.Context) {
	d.api.Store.Work(ctx, lookEvery, d.log, deployments, d.look, d.lease)
}

// look works off what there is to do.
func (d *Deployer) look(ctx context.Context) (failure error) {
	idle, known := d.known.Now(struct{}{})
	still, knownStill := d.due.Now(struct{}{})
	due, err := d.schedules.Due(ctx)
	if err != nil {
		return err
	}
	rolls, err := d.rolls(ctx)
	if err != nil {
		return err
	}
	if idle && known && still && knownStill && !due && !rolls {
		return nil
	}
	if err := d.hold(ctx); err != nil || !d.held {
		return err
	}
	if due {
		if err := d.scheduled(ctx); err != nil { // which keeps nothing else from going on
			defer func() { failure = errors.Join(failure, err) }()
		}
	}
	defer d.lease.Keep(ctx, d.log)()
	if rolls {
		if err := d.roll(ctx); err != nil { // as above
			defer func() { failure = errors.Join(failure, err) }()
		}
	}
	if err := d.changes(ctx); err != nil {
		return err
	}
	next, waiting, err := d.next(ctx)
	if err != nil || next == 0 && waiting == 0 {
		return err
	}
	if waiting > 0 && time.Since(d.waited) > waitEvery {
		d.waited = time.Now()
		if err := d.await(ctx); err != nil {
			return err
		}
	}
	if next == 0 {
		return nil
	}
	err = d.work(ctx, next)
	if p, ok := problem.As(err); ok && p.Status < 500 {
		return d.end(ctx, next, failed, p.Message)
	}
	if err != nil && !passes(ctx, err) { // whatever it is, it would be there at the next try, too, and be in the way of others
		d.log.Error("a deployment cannot go on", "deployment", next, "error", err)
		return d.end(ctx, next, failed, "a fault of the manager: its log has more")
	}
	return err
}

// changes deploys what has changed of live views, until nothing is due.
func (d *Deployer) changes(ctx context.Context) error {
	for ctx.Err() == nil {
		more, err := d.change(ctx)
		if err != nil {
			d.plan = nil
			return err
		}
		if !more {
			break
		}
	}
	return nil
}

// passes reports whether a failure may be over at the next try.
func passes(ctx context.Context, err error) bool {
	return store.IsFailure(err) || ctx.Err() != nil
}

// hold takes the lease, or takes it for longer.
func (d *Deployer) hold(ctx context.Context) (err error) {
	every := takeEvery
	if !d.held { // another manager works
		every = time.Second
	}
	if time.Since(d.taken) < every {
		return nil
	}
	d.taken = time.Now()
	d.held, err = d.lease.Take(ctx)
	return err
}

// next gives the deployment to work on, and how many wait for service points. One that runs comes first. The queued ones come by turns of
// their users, those of a user in the order in which they were asked for: a user with many of them does not keep others from theirs.
func (d *Deployer) next(ctx context.Context) (id int64, waiting int, err error) {
	first := map[int64]int64{} // the first one of each user
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
					group, err := serverconfig.IsServerGroup(tx, r.Parent) // whose parts are worked off
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
			d.known.Put(tx, struct{}{}, true)
		}
		return nil
	})
	if err != nil || len(first) == 0 {
		return 0, waiting, err
	}
	return d.turn(first), waiting, nil
}

// turn gives one of the first deployments of users, and counts it. Who has waited for nothing meanwhile begins with the fewest turns of the
// others.
func (d *Deployer) turn(first map[int64]int64) (id int64) {
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

// outcome is what a deployment has come to, before service points serve it.
type outcome struct {
	configuration int64
	// all are the zones with another content; serving is what the server is to serve from now on, nil where that stays as it is.
	all     []*publication
	serving *serving
	// server is the one that is waited for; 0 where it is every one that a change goes to.
	server int64
	// zones is how many were looked at; warnings are sentences.
	zones    int
	warnings []string
	// faults are zones that cannot be deployed as they are, and keep no other from it; healed are those that could not be, and are as they
	// were deployed before. anew says that all of the configuration is to be looked at once more: such a zone can be deployed for the first
	// time.
	faults []fault
	healed []string
	anew   bool
	// looked are the zones that were looked at for what is due, by their ids.
	looked map[string]bool
	// checked says that nothing is to be carried, continues that zones that cannot be deployed keep no others from it.
	checked, continues bool
	// statics are dynamic records that are made static with it.
	statics []int64
}

// work works a deployment off: first what there is to do, in a snapshot, and then all of it in one transaction.
func (d *Deployer) work(ctx context.Context, id int64) (err error) {
	defer caught(&err)
	if err := d.begin(ctx, id); err != nil {
		return err
	}
	var o *outcome
	if err := d.api.Store.View(ctx, func(tx *store.Tx) error {
		row, err := tx.Get(id)
		if err != nil {
			return err
		}
		x, err := d.api.Object(row)
		if err != nil {
			return err
		}
		o, err = d.prepare(tx, row, x)
		return err
	}); err != nil {
		return err
	}
	state, message := completed, o.words()
	if len(o.warnings) > 0 {
		state = warned
	}
	if o.checked {
		return d.end(ctx, id, state, message)
	}
	return d.carry(ctx, id, o, state, message)
}

// begin notes that a deployment runs.
func (d *Deployer) begin(ctx context.Context, id int64) error {
	return d.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		row, err := tx.Get(id)
		if err != nil {
			return err
		}
		return d.note(tx, row, func(x *DeploymentHead) {
			if x.StartDateTime.IsZero() {
				x.State, x.StartDateTime = running, tx.Now()
			}
		})
	})
}

// note changes what a deployment says of itself.
func (d *Deployer) note(tx *store.Tx, row *store.Resource, fn func(x *DeploymentHead)) error {
	return note(&resource.Change{Tx: tx, API: d.api}, row, fn)
}

func note(c *resource.Change, row *store.Resource, fn func(x *DeploymentHead)) error {
	c.Tx.Touch(deployments)
	_, err := c.Following().Change(row, func(o schema.Object) { fn(headOf(o)) })
	return err
}

// words says what came of it.
func (o *outcome) words() string {
	removed, added := 0, 0
	for _, c := range o.all {
		removed += len(c.removed)
		added += len(c.added)
	}
	text := fmt.Sprintf("%d zones, of which %d have changed: %d records added, %d removed", o.zones, len(o.all), added, removed)
	if o.checked {
		text = fmt.Sprintf("%d zones were checked", o.zones)
	}
	for _, one := range o.warnings[:min(len(o.warnings), mostFindings)] {
		text += "; " + one
	}
	if n := len(o.warnings) - mostFindings; n > 0 {
		text += fmt.Sprintf("; and %d more", n)
	}
	return text
}

// longestMessage is how long the message of a deployment may be, in characters.
const longestMessage = 8000

// kindsOfEvents are the kinds of the events of deployments that have ended, by state.
var kindsOfEvents = map[string]string{completed: "SUCCESS", warned: "WARNING", failed: "FAILED"}

// end notes that a deployment has ended.
func (x *DeploymentHead) end(tx *store.Tx, state, message string) {
	all := int64(100)
	x.State, x.Message, x.PercentComplete, x.CompletionDateTime = state, schema.Cut(message, longestMessage), &all, tx.Now()
}

// end ends a deployment.
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
		if err := event.Add(tx, event.Event{EventType: kindsOfEvents[state], Category: category, Subcategory: "DNS", SourceName: kind,
			Message: fmt.Sprintf("%s %d%s has ended: %s: %s", kind, id, of, state, schema.Cut(message, 1000))}, id); err != nil {
			return err
		}
		if err := d.note(tx, row, func(x *DeploymentHead) { x.end(tx, state, message) }); err != nil {
			return err
		}
		return endGroup(&resource.Change{Tx: tx, API: d.api}, row.Ref("group"), 0)
	})
	if err == nil && kind != "" {
		d.Ended(kind, state)
	}
	return err
}
