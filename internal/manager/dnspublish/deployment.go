package dnspublish

import (
	"cmp"
	"slices"
	"time"

	"portolan/internal/base/naming"
	"portolan/internal/base/problem"
	"portolan/internal/base/space"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/serverconfig"
)

// deployments is the name of the collection, and of the topic that is touched when something of a deployment changes.
const deployments = "deployments"

// The states of a deployment.
const (
	queued    = "QUEUED"
	running   = "RUNNING"
	completed = "COMPLETED"
	warned    = "COMPLETED_WITH_WARNINGS"
	failed    = "FAILED"
)

// registerDeployments declares the collection, and what hangs below its resources.
func registerDeployments(r *resource.Registry) {
	r.Collection(resource.Collection{Name: deployments, Guard: resource.Own, Hidden: true, Unlogged: true, NoUp: true}, &FullDeployment{},
		&DifferentialDeployment{}, &ValidationDeployment{}, &QuickDeployment{}, &SelectiveDeployment{})
	for name, kind := range map[string]string{"addedRecords": recordAdded, "updatedRecords": recordUpdated, "deletedRecords": recordDeleted,
		"addedResources": recordAdded, "updatedResources": recordUpdated, "deletedResources": recordDeleted} { // as release 9.6 calls them
		from := store.Resources
		if kind == recordDeleted {
			from = deletedRecords
		}
		r.Computed(resource.ComputedSub{Below: deployments, Name: name, From: from, Find: func(tx *store.Tx, _ *resource.API,
			above *store.Resource) (ids []int64, err error) {
			err = tx.Each(func(scan func(...any) error) error {
				var id int64
				err := scan(&id)
				ids = append(ids, id)
				return err
			}, "SELECT record FROM deployment_record WHERE deployment = ? AND kind = ? ORDER BY record", above.ID, kind)
			return ids, err
		}})
	}
	r.Computed(resource.ComputedSub{Below: deployments, Name: deployments, Find: func(tx *store.Tx, _ *resource.API,
		above *store.Resource) (ids []int64, err error) {
		parts, err := partsOf(tx, above.ID)
		for _, r := range parts {
			ids = append(ids, r.ID)
		}
		return ids, err
	}})
	r.Rule(resource.Rule{Types: []string{"Server", "HAServer"}, AfterWrite: followPoint, BeforeDelete: func(c *resource.Change) error {
		return forget(c.Tx, schema.HeadOf(c.Old).ID)
	}})
}

// DeploymentHead is what every deployment has. It has no name.
type DeploymentHead struct {
	schema.Head `head:"readOnly"`
	// State is how far it is.
	State string `api:"state,index,readOnly" enum:"PENDING|QUEUED|RUNNING|CANCELLED|CANCELLING|COMPLETED|COMPLETED_WITH_WARNINGS|FAILED|UNKNOWN"`
	// Status is CANCEL while the deployment is being cancelled; none is.
	Status string `api:"status,readOnly" enum:"CANCEL"`
	// Message says what came of it, for people. It is null for callers that do not see all of the configuration.
	Message string `api:"message,readOnly,tells" length:"8000"`
	// PercentComplete is how much of it is done.
	PercentComplete *int64 `api:"percentComplete,readOnly" min:"0" max:"100"`
	// StartDateTime is when it began.
	StartDateTime time.Time `api:"startDateTime,readOnly"`
	// CompletionDateTime is when it ended.
	CompletionDateTime time.Time `api:"completionDateTime,readOnly"`
	// User is who asked for it.
	User schema.Ref `api:"user,readOnly" ref:"User"`
	// Method is how it began: API, or SCHEDULED where a schedule did it.
	Method string `api:"method,readOnly"`
	// CreationDateTime is when it was asked for.
	CreationDateTime time.Time `api:"creationDateTime,readOnly"`
	// Group is the deployment of the server group that it is a part of.
	Group schema.Ref `api:"group,hidden" ref:"FullDeployment|DifferentialDeployment|ValidationDeployment" onDelete:"clear"`
}

func (x *DeploymentHead) head() *DeploymentHead { return x }

// headOf gives what every deployment has; nil of anything else.
func headOf(o schema.Object) *DeploymentHead {
	if x, ok := o.(interface{ head() *DeploymentHead }); ok {
		return x.head()
	}
	return nil
}

// FullDeployment carries all that a server is to have of a service.
type FullDeployment struct {
	DeploymentHead `parents:"servers|serverGroups"`
	// Service is what is deployed.
	Service string `api:"service,required,createOnly" enum:"DHCPv4|DHCPv6|DNS|TFTP"`
}

// DifferentialDeployment carries what has changed of the records of a server's zones since the deployment before.
type DifferentialDeployment struct {
	DeploymentHead `parents:"servers|serverGroups"`
	// Service is what is deployed.
	Service string `api:"service,required,createOnly" enum:"DHCPv4|DHCPv6|DNS|TFTP"`
}

// ValidationDeployment checks what a server is to have, and carries nothing.
type ValidationDeployment struct {
	DeploymentHead `parents:"servers|serverGroups"`
	// Service is what is checked.
	Service string `api:"service,required,createOnly" enum:"DNS|DHCPv4|DHCPv6"`
}

// QuickDeployment carries what the user who asks for it has changed of the records of a zone, and of the others that its primary server
// writes.
type QuickDeployment struct {
	DeploymentHead `parents:"zones|networks"`
}

// SelectiveDeployment carries some records.
type SelectiveDeployment struct {
	DeploymentHead `parents:"deployments"`
	// Resources are the records, at most 100.
	Resources schema.RefList `api:"resources,post,writeOnly" min:"1"`
	// BatchMode says whether it is put together with others of the same server.
	BatchMode string `api:"batchMode,createOnly,notNull" enum:"DISABLED|BATCH_BY_SERVER" default:"DISABLED"`
	// RecordScope says whether records that belong to those are carried along: the hosts that they lead to, and those that lead to them.
	RecordScope string `api:"recordScope,createOnly,notNull" enum:"RELATED|SPECIFIC" default:"RELATED"`
	// ContinueOnFailureEnabled says whether others are carried where one cannot be; null is true with BATCH_BY_SERVER, else false.
	ContinueOnFailureEnabled *bool `api:"continueOnFailureEnabled,createOnly"`
	// DynamicRecordDeploymentStrategy is what is done with dynamic records among them.
	DynamicRecordDeploymentStrategy string `api:"dynamicRecordDeploymentStrategy,createOnly,notNull" enum:"ABORT|SKIP|MAKE_STATIC" default:"ABORT"`
	// Wanted are the same, as they are kept.
	Wanted schema.RefList `api:"wanted,hidden" onDelete:"clear"`
}

// begin notes who asks, and lets the deployment wait for its turn; at is where it deploys. It refuses who may not.
func (x *DeploymentHead) begin(c *resource.Change, at ...int64) error {
	for _, one := range at {
		if err := c.MayDeploy(c.Caller.User, x.Type, one); err != nil {
			return err
		}
	}
	if err := queuedOfUser(c, c.Caller.User); err != nil {
		return err
	}
	zero := int64(0)
	x.State, x.PercentComplete, x.User, x.Method, x.CreationDateTime = queued, &zero, schema.Ref{ID: c.Caller.User}, "API", c.Tx.Now()
	c.Tx.Touch(deployments)
	return nil
}

// onlyDNS refuses services that there are no deployments of.
func onlyDNS(service string) error {
	if service != serverconfig.ServiceDNS {
		return problem.New(501, "NotImplemented", "service: %s is not deployed yet; DNS is", service)
	}
	return nil
}

// BeforeWrite refuses servers that nothing can be deployed to.
func (x *FullDeployment) BeforeWrite(c *resource.Change) error { return x.order(c, x.Service) }

// BeforeWrite refuses servers that nothing can be deployed to, or nothing was deployed to.
func (x *DifferentialDeployment) BeforeWrite(c *resource.Change) error { return x.order(c, x.Service) }

// BeforeWrite refuses servers whose data is not checked.
func (x *ValidationDeployment) BeforeWrite(c *resource.Change) error { return x.order(c, x.Service) }

// validation is the type of deployments that carry nothing.
const validation = "ValidationDeployment"

// order takes a deployment of a server, or of all servers of a group.
func (x *DeploymentHead) order(c *resource.Change, service string) error {
	if !c.Requested() {
		return nil
	}
	if err := onlyDNS(service); err != nil {
		return err
	}
	group, err := serverconfig.IsServerGroup(c.Tx, x.Parent)
	if err != nil {
		return err
	}
	servers := []int64{x.Parent}
	if group {
		if servers, err = serverconfig.GroupMembers(c.Tx, x.Parent); err != nil {
			return err
		}
		if len(servers) == 0 {
			return problem.BadRequest("ServerNotActive", "server group %d has no servers", x.Parent)
		}
	}
	if err := x.begin(c, servers...); err != nil {
		return err
	}
	if group {
		x.State, x.StartDateTime = running, c.Tx.Now()
	}
	for _, server := range servers {
		if err := ready(c, x.Type, server); err != nil {
			return err
		}
		if err := x.notUnderWay(c, server); err != nil {
			return err
		}
	}
	return nil
}

// AfterWrite makes the parts of the deployment of a server group: one for each of its servers.
func (x *DeploymentHead) AfterWrite(c *resource.Change) error {
	if !c.Requested() || !c.Creates() {
		return nil
	}
	group, err := serverconfig.IsServerGroup(c.Tx, x.Parent)
	if err != nil || !group {
		return err
	}
	servers, err := serverconfig.GroupMembers(c.Tx, x.Parent)
	for _, server := range servers {
		if err == nil {
			err = orderFor(c, x.Type, server, *x)
		}
	}
	return err
}

// BeforeDelete lets nobody wait for a deployment that goes, as with its server, and lets that of a group that it is a part of end.
func (x *DeploymentHead) BeforeDelete(c *resource.Change) error {
	c.Tx.Touch(deployments)
	if err := c.Tx.Write("DELETE FROM deployment_deleted WHERE id IN (SELECT record FROM deployment_record WHERE deployment = ? AND kind = ?)"+
		" AND NOT EXISTS (SELECT 1 FROM deployment_record d WHERE d.record = deployment_deleted.id AND d.kind = ? AND d.deployment <> ?)", x.ID,
		recordDeleted, recordDeleted, x.ID); err != nil {
		return err
	}
	for _, table := range []string{"deployment_wait", "deployment_record"} {
		if err := c.Tx.Write("DELETE FROM "+table+" WHERE deployment = ?", x.ID); err != nil {
			return err
		}
	}
	return endGroup(c, x.Group.ID, x.ID)
}

// orderFor makes a deployment of DNS of one server, that is what like says beside. It is checked before (ready).
func orderFor(c *resource.Change, kind string, server int64, like DeploymentHead) error {
	row, err := c.Tx.Get(server)
	if err != nil {
		return err
	}
	t := c.API.TypeNamed(kind)
	o := t.New()
	h, zero := headOf(o), int64(0)
	h.Type, h.Parent, h.Config = kind, server, row.Configuration
	h.State, h.PercentComplete, h.User, h.Method, h.CreationDateTime = queued, &zero, like.User, like.Method, c.Tx.Now()
	if like.ID != 0 {
		h.Group = schema.Ref{ID: like.ID}
	}
	switch x := o.(type) {
	case *FullDeployment:
		x.Service = serverconfig.ServiceDNS
	case *DifferentialDeployment:
		x.Service = serverconfig.ServiceDNS
	case *ValidationDeployment:
		x.Service = serverconfig.ServiceDNS
	}
	_, err = c.Following().Create(t, o)
	return err
}

// ready refuses a server that no deployment of a type can be asked of.
func ready(c *resource.Change, kind string, server int64) error {
	if kind == validation {
		return validated(c, server)
	}
	if err := deployable(c, server); err != nil || kind != "DifferentialDeployment" {
		return err
	}
	_, _, there, err := revisionOf(c.Tx, server)
	if err == nil && !there {
		err = problem.BadRequest("NoPreviousFullDeploymentForDifferential", "nothing was deployed to server %d: begin with a FullDeployment",
			server)
	}
	return err
}

// validated refuses a server whose DNS data is not checked.
func validated(c *resource.Change, server int64) error {
	row, err := c.Tx.Get(server)
	if err != nil {
		return err
	}
	checked, err := checksOf(c.Tx, row)
	if err == nil && !checked.enabled() {
		err = problem.BadRequest("DnsDeploymentValidationNotEnabled", "server %d and its configuration say that DNS data is not checked: set "+
			"dnsZoneValidationEnabled", server)
	}
	return err
}

// BeforeWrite refuses zones that nobody answers for, or that were not deployed before.
func (x *QuickDeployment) BeforeWrite(c *resource.Change) error {
	if !c.Requested() {
		return nil
	}
	if err := x.begin(c, x.Parent); err != nil {
		return err
	}
	above, err := c.Tx.Get(x.Parent)
	if err != nil {
		return err
	}
	p, err := newPlan(c.Tx, c.API, above.Configuration)
	if err != nil {
		return err
	}
	return p.isDeployed(c.Tx, x.Parent)
}

// zoneOf gives the zone of an id, or the reverse zone that a network's addresses lie in, the first one where it has several; nil where no
// role is in effect for it.
func (p *plan) zoneOf(row *store.Resource) *plannedZone {
	if row.Collection != "networks" {
		if i := slices.IndexFunc(p.zones, func(z *plannedZone) bool { return z.row.ID == row.ID }); i >= 0 {
			return p.zones[i]
		}
		return nil
	}
	var found *plannedZone
	for _, name := range naming.ReverseZones(store.KeyAddr(row.Low), store.KeyAddr(row.High), 1) {
		for _, z := range p.zones { // the one with the longest name that the network's lies in, or one of its own
			key := naming.Key(z.row.Key)
			_, below := naming.Relative(name, key)
			_, above := naming.Relative(key, name)
			if (below || above) && (found == nil || len(key) > len(found.row.Key)) {
				found = z
			}
		}
	}
	return found
}

// isDeployed refuses a zone, or a block or network with a reverse zone, that nobody answers for, or that was not deployed before.
func (p *plan) isDeployed(tx *store.Tx, id int64) error {
	row, err := tx.Get(id)
	if err != nil {
		return err
	}
	z := p.zoneOf(row)
	if z == nil || len(z.serversOf(assigned.answers)) == 0 {
		return problem.BadRequest("NoAssignedDnsDeploymentRoles", "%s %d, %s, has no deployment role, or is not to be deployed", row.Type,
			row.ID, cmp.Or(row.Key, row.Name, spanText(row)))
	}
	_, there, err := readDeployed(tx, z.id)
	if err == nil && !there {
		err = problem.BadRequest("NoPreviousFullDeploymentForDifferential", "%s %d, %s, was not deployed: begin with a FullDeployment",
			row.Type, row.ID, cmp.Or(row.Key, row.Name, spanText(row)))
	}
	return err
}

// deployable refuses a server that is planned, disabled, run by others, or no service point of the fleet.
func deployable(c *resource.Change, server int64) error {
	row, err := c.Tx.Get(server)
	if err != nil {
		return err
	}
	o, err := c.API.Object(row)
	if err != nil {
		return err
	}
	x := serverconfig.FieldsOf(o)
	single, _ := o.(*serverconfig.Server)
	switch {
	case single != nil && single.Profile == serverconfig.IsOtherServer:
		return problem.BadRequest("ServerNotManaged", "server %d, %s, is run by others", server, problem.About(row.ID, row.Name))
	case x.State != serverconfig.Enabled:
		return problem.BadRequest("ServerNotActive", "server %d, %s, is %s", server, problem.About(row.ID, row.Name), x.State)
	case x.ServicePoint == "":
		return problem.BadRequest("ServerNotConnected", "server %d, %s, is no service point of the fleet: set its servicePoint to the id of one",
			server, problem.About(row.ID, row.Name))
	}
	return nil
}

// notUnderWay refuses a deployment of a server beside another one that has not ended, and a validation beside another one that the same
// user waits for. A validation changes nothing: a deployment does not wait for it.
func (x *DeploymentHead) notUnderWay(c *resource.Change, server int64) error {
	isValidation := store.Compare{Field: store.Field{Kind: store.ColumnText, Path: []string{"type"}}, Op: "eq", Value: validation}
	beside := store.All{store.InCollection(deployments), store.HasParent(server)}
	states := []string{queued}
	if x.Type == validation {
		beside = append(beside, isValidation, store.LinksTo{Targets: []int64{x.User.ID}, Field: "user"})
	} else {
		beside = append(beside, store.Not{Expr: isValidation})
		states = append(states, running)
	}
	for _, state := range states {
		found, err := c.Tx.First(store.Query{From: store.Resources, Where: append(slices.Clone(beside), inState(state))})
		if err != nil {
			return err
		}
		if found != nil {
			return problem.BadRequest("ServerIsDeploying", "deployment %d of server %d is %s", found.ID, server, state)
		}
	}
	return nil
}

// inState is the condition that a deployment is in a state.
func inState(state string) store.Expr {
	return store.Compare{Field: store.Field{Kind: store.Text, Path: []string{"state"}}, Op: "eq", Value: state}
}

// mostQueued is how many deployments of a user may be queued.
const mostQueued = 1000

// queuedOfUser refuses a deployment of a user who has mostQueued of them queued.
func queuedOfUser(c *resource.Change, user int64) error {
	if user == 0 {
		return nil
	}
	n, err := c.Tx.Count(store.Query{From: store.Resources, Where: store.All{store.InCollection(deployments),
		store.LinksTo{Targets: []int64{user}, Field: "user"}, inState(queued)}})
	if err != nil || n < mostQueued {
		return err
	}
	p := problem.New(429, "TooManyRequests", "%d deployments of %s are queued: wait until some of them have ended", n,
		c.Caller.Name)
	p.RetryAfter = 10 * time.Second
	return p
}

// followPoint refuses a service point that is another server already. Where the service point of a server is another one, it serves what
// the server serves as if that had changed just now.
func followPoint(c *resource.Change) error {
	x := serverconfig.FieldsOf(c.New)
	var before string
	if old := serverconfig.FieldsOf(c.Old); old != nil {
		before = old.ServicePoint
	}
	if x.ServicePoint == before {
		return nil
	}
	h := schema.HeadOf(c.New)
	if x.ServicePoint != "" {
		if err := c.Tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("servers"),
			store.Compare{Field: store.Field{Kind: store.Text, Path: []string{"servicePoint"}}, Op: "eq", Value: x.ServicePoint}}},
			func(r *store.Resource) error {
				if r.ID == h.ID {
					return nil
				}
				return problem.Conflict("ResourceConflictsWithOther", "servicePoint: %s is server %d, %s", x.ServicePoint, r.ID, r.Name)
			}); err != nil {
			return err
		}
	}
	return c.Tx.Write("UPDATE dns_server SET number = ? WHERE server = ? AND number < ?", c.Tx.Now().UnixMilli(), h.ID, c.Tx.Now().UnixMilli())
}

// spanText gives the space of a row as text; empty where it has none.
func spanText(row *store.Resource) string {
	if row.Low == nil {
		return ""
	}
	return space.Range{Low: store.KeyAddr(row.Low), High: store.KeyAddr(row.High)}.String()
}
