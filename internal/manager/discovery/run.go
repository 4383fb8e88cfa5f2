package discovery

import (
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// runs is the name of the collection of runs of policies.
const runs = "reconciliationRuns"

// The states of a run.
const (
	runQueued = "QUEUED"
	runDone   = "DONE"
	runFailed = "FAILED"
)

// keptRuns is the number of runs of a policy that are kept. maxMessages limits the messages of a run.
const (
	keptRuns    = 20
	maxMessages = 100
)

// registerRuns declares the collection of runs. A run is not undone, so it has no history.
func registerRuns(r *resource.Registry) {
	r.Collection(resource.Collection{Name: runs, Parents: []string{policies}, Unpublished: true, Hidden: true, Unlogged: true,
		NoSearch: true}, &ReconciliationRun{})
	r.DeclareUnlinked(resource.FurtherSub{Below: policies, Name: runs, Item: runs, Types: []string{"ReconciliationRun"}})
}

// ReconciliationRun is a run of a policy. A POST starts a run outside of the schedule. The last 20 runs of a policy are kept. Portolan
// extension.
type ReconciliationRun struct {
	schema.Head `head:"readOnly"`
	// Configuration is the configuration of the policy.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// Policy is the policy.
	Policy schema.Ref `api:"policy,readOnly" column:"parent" ref:"IPv4ReconciliationPolicy|IPv6ReconciliationPolicy"`
	// State is QUEUED until the run has ended. A failed run changed nothing.
	State string `api:"state,readOnly,index" enum:"QUEUED|DONE|FAILED"`
	// CreationDateTime is the time of the request or of the schedule, and EndDateTime the end of the run.
	CreationDateTime time.Time `api:"creationDateTime,readOnly"`
	EndDateTime      time.Time `api:"endDateTime,readOnly"`
	// Pinged is the number of pinged addresses, Seen the number of addresses that were seen, and Devices the number of devices that answered.
	Pinged  int64 `api:"pinged,readOnly"`
	Seen    int64 `api:"seen,readOnly"`
	Devices int64 `api:"devices,readOnly"`
	// Findings is the number of open findings after the run.
	Findings int64 `api:"findings,readOnly"`
	// Messages are the problems of the run, such as devices that do not answer.
	Messages []string `api:"messages,readOnly"`
}

// BeforeWrite queues the run, unless one of the policy is waiting.
func (x *ReconciliationRun) BeforeWrite(c *resource.Change) error {
	if !c.IsRequested() || !c.IsCreation() { // all members are read-only
		return nil
	}
	row, err := c.ReadParent(x.Parent)
	if err != nil {
		return err
	}
	o, err := c.API.Object(row)
	if err != nil {
		return err
	}
	if p, ok := o.(interface{ reconciliation() *Reconciliation }); !ok || !p.reconciliation().Enabled {
		return problem.Conflict("ResourceConflictsWithOther", "policy %d is disabled. Set enabled to true first", row.ID)
	}
	if !resource.Provided[Options](c.API.Provisions).Sweeps {
		return problem.Conflict("ResourceConflictsWithOther", "discovery is disabled: start the manager with --sweep")
	}
	waiting, err := queuedRun(c, row.ID)
	if err != nil {
		return err
	}
	if waiting != nil {
		return problem.Conflict("ResourceAlreadyExists", "policy %d already has a waiting run (%d)", row.ID, waiting.ID)
	}
	x.State, x.CreationDateTime = runQueued, c.Tx.Now()
	return c.Tx.Write("INSERT INTO sweep_due (policy) VALUES (?) ON CONFLICT DO NOTHING", row.ID)
}

// queuedRun returns the waiting run of a policy; nil if there is none.
func queuedRun(c *resource.Change, policy int64) (found *store.Resource, err error) {
	err = c.Each(store.All{store.InCollection(runs), store.HasParent(policy)}, func(row *store.Resource, o schema.Object) error {
		if x, ok := o.(*ReconciliationRun); ok && x.State == runQueued {
			found = row.Clone()
		}
		return nil
	})
	return found, err
}

// recordRun stores the result of a run, in the waiting run or in a new one, and deletes old runs.
func recordRun(c *resource.Change, policy *schema.Head, result ReconciliationRun) error {
	waiting, err := queuedRun(c, policy.ID)
	if err != nil {
		return err
	}
	if len(result.Messages) > maxMessages {
		result.Messages = result.Messages[:maxMessages]
	}
	set := func(x *ReconciliationRun) {
		x.State, x.EndDateTime, x.Messages = result.State, c.Tx.Now(), result.Messages
		x.Pinged, x.Seen, x.Devices, x.Findings = result.Pinged, result.Seen, result.Devices, result.Findings
	}
	if waiting != nil {
		_, err = c.Following().Change(waiting, func(o schema.Object) { set(o.(*ReconciliationRun)) })
	} else {
		x := &ReconciliationRun{CreationDateTime: c.Tx.Now()}
		x.Type, x.Parent, x.Config = "ReconciliationRun", policy.ID, policy.Config
		set(x)
		_, err = c.Following().Create(c.API.TypeNamed(x.Type), x)
	}
	if err != nil {
		return err
	}
	var all []*store.Resource
	if err := c.Each(store.All{store.InCollection(runs), store.HasParent(policy.ID)}, func(row *store.Resource, _ schema.Object) error {
		all = append(all, row.Clone())
		return nil
	}); err != nil {
		return err
	}
	for i := 0; i < len(all)-keptRuns; i++ { // rows are in the order of their ids
		if err := c.Following().Delete(all[i]); err != nil {
			return err
		}
	}
	return nil
}
