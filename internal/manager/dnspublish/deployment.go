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
	"portolan/internal/manager/authz"
	"portolan/internal/manager/serverconfig"
)

// deployments is the name of the collection, and of the topic that is touched when a deployment changes.
const deployments = "deployments"

// The states of a deployment.
const (
	queued    = "QUEUED"
	running   = "RUNNING"
	completed = "COMPLETED"
	warned    = "COMPLETED_WITH_WARNINGS"
	failed    = "FAILED"
)

// registerDeployments declares the collection of deployments, its subcollections, and the rules for servers.
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
	r.Rule(resource.Rule{Types: []string{"Server", "HAServer"}, AfterWrite: checkServicePoint, BeforeDelete: func(c *resource.Change) error {
		return deleteContent(c.Tx, schema.HeadOf(c.Old).ID)
	}})
}

// DeploymentHead are the fields of every deployment. A deployment has no name.
type DeploymentHead struct {
	schema.Head `head:"readOnly"`
	// State is the state of the deployment.
	State string `api:"state,index,readOnly" enum:"PENDING|QUEUED|RUNNING|CANCELLED|CANCELLING|COMPLETED|COMPLETED_WITH_WARNINGS|FAILED|UNKNOWN"`
	// Status is CANCEL while the deployment is being cancelled. Deployments cannot be cancelled, so it is always null.
	Status string `api:"status,readOnly" enum:"CANCEL"`
	// Message is the result in words. It is null for callers that cannot see the whole configuration.
	Message string `api:"message,readOnly,tells" length:"8000"`
	// PercentComplete is the progress, in percent.
	PercentComplete *int64 `api:"percentComplete,readOnly" min:"0" max:"100"`
	// StartDateTime is the time when the deployment started.
	StartDateTime time.Time `api:"startDateTime,readOnly"`
	// CompletionDateTime is the time when the deployment ended.
	CompletionDateTime time.Time `api:"completionDateTime,readOnly"`
	// User is the user who requested the deployment.
	User schema.Ref `api:"user,readOnly" ref:"User"`
	// Method is the origin of the deployment: API, or SCHEDULED for a schedule.
	Method string `api:"method,readOnly"`
	// CreationDateTime is the time of the request.
	CreationDateTime time.Time `api:"creationDateTime,readOnly"`
	// Group is the deployment of the server group that this one is a part of.
	Group schema.Ref `api:"group,hidden" ref:"FullDeployment|DifferentialDeployment|ValidationDeployment" onDelete:"clear"`
}

func (x *DeploymentHead) head() *DeploymentHead { return x }

// headOf returns the fields that every deployment has; nil for any other object.
func headOf(o schema.Object) *DeploymentHead {
	if x, ok := o.(interface{ head() *DeploymentHead }); ok {
		return x.head()
	}
	return nil
}

// FullDeployment deploys the complete content of a server.
type FullDeployment struct {
	DeploymentHead `parents:"servers|serverGroups"`
	// Service is the service to deploy.
	Service string `api:"service,required,createOnly" enum:"DHCPv4|DHCPv6|DNS|TFTP"`
}

// DifferentialDeployment deploys the changes of the records in a server's zones since the last deployment.
type DifferentialDeployment struct {
	DeploymentHead `parents:"servers|serverGroups"`
	// Service is the service to deploy.
	Service string `api:"service,required,createOnly" enum:"DHCPv4|DHCPv6|DNS|TFTP"`
}

// ValidationDeployment checks the content of a server, and deploys nothing.
type ValidationDeployment struct {
	DeploymentHead `parents:"servers|serverGroups"`
	// Service is the service to check.
	Service string `api:"service,required,createOnly" enum:"DNS|DHCPv4|DHCPv6"`
}

// QuickDeployment deploys the changes that its user has made to the records of a zone, and of the other zones of the same primary server.
type QuickDeployment struct {
	DeploymentHead `parents:"zones|networks"`
}

// SelectiveDeployment deploys selected records.
type SelectiveDeployment struct {
	DeploymentHead `parents:"deployments"`
	// Resources are the records, at most 100.
	Resources schema.RefList `api:"resources,post,writeOnly" min:"1"`
	// BatchMode controls whether the deployment is combined with others of the same server.
	BatchMode string `api:"batchMode,createOnly,notNull" enum:"DISABLED|BATCH_BY_SERVER" default:"DISABLED"`
	// RecordScope controls whether related records are deployed as well: the hosts that the records link to, and the records that link to
	// them.
	RecordScope string `api:"recordScope,createOnly,notNull" enum:"RELATED|SPECIFIC" default:"RELATED"`
	// ContinueOnFailureEnabled controls whether the other records are deployed if one cannot be; null is true with BATCH_BY_SERVER, else
	// false.
	ContinueOnFailureEnabled *bool `api:"continueOnFailureEnabled,createOnly"`
	// DynamicRecordDeploymentStrategy is the handling of dynamic records among them.
	DynamicRecordDeploymentStrategy string `api:"dynamicRecordDeploymentStrategy,createOnly,notNull" enum:"ABORT|SKIP|MAKE_STATIC" default:"ABORT"`
	// Wanted are the records, as stored.
	Wanted schema.RefList `api:"wanted,hidden" onDelete:"clear"`
}

// enqueue checks the rights of the caller for the resources in at, and queues the deployment.
func (x *DeploymentHead) enqueue(c *resource.Change, at ...int64) error {
	for _, one := range at {
		if err := authz.MayDeploy(c, c.Caller.User, x.Type, one); err != nil {
			return err
		}
	}
	if err := checkQueueLimit(c, c.Caller.User); err != nil {
		return err
	}
	zero := int64(0)
	x.State, x.PercentComplete, x.User, x.Method, x.CreationDateTime = queued, &zero, schema.Ref{ID: c.Caller.User}, "API", c.Tx.Now()
	c.Tx.Touch(deployments)
	return nil
}

// BeforeWrite rejects servers that cannot be deployed to.
func (x *FullDeployment) BeforeWrite(c *resource.Change) error { return x.queueFor(c, x.Service) }

// BeforeWrite rejects servers that cannot be deployed to, or that have no previous full deployment.
func (x *DifferentialDeployment) BeforeWrite(c *resource.Change) error {
	return x.queueFor(c, x.Service)
}

// BeforeWrite rejects servers without checks of DNS data.
func (x *ValidationDeployment) BeforeWrite(c *resource.Change) error { return x.queueFor(c, x.Service) }

// validation is the type of deployments that only check.
const validation = "ValidationDeployment"

// queueFor checks and queues a deployment of a server, or of all servers of a group.
func (x *DeploymentHead) queueFor(c *resource.Change, service string) error {
	if !c.IsRequested() {
		return nil
	}
	if err := checkService(c.API, "service", x.Type, service); err != nil {
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
	if err := x.enqueue(c, servers...); err != nil {
		return err
	}
	if group {
		x.State, x.StartDateTime = running, c.Tx.Now()
	}
	for _, server := range servers {
		if err := checkReady(c, service, x.Type, server); err != nil {
			return err
		}
		if err := x.checkNotRunning(c, service, server); err != nil {
			return err
		}
	}
	return nil
}

// AfterWrite creates the deployments of the single servers of a server group.
func (x *DeploymentHead) AfterWrite(c *resource.Change) error {
	if !c.IsRequested() || !c.IsCreation() {
		return nil
	}
	group, err := serverconfig.IsServerGroup(c.Tx, x.Parent)
	if err != nil || !group {
		return err
	}
	servers, err := serverconfig.GroupMembers(c.Tx, x.Parent)
	for _, server := range servers {
		if err == nil {
			err = orderFor(c, serviceField(c.New), x.Type, server, *x)
		}
	}
	return err
}

// BeforeDelete deletes the waits and record lists of a deployment, and updates the deployment of its group.
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

// orderFor creates a deployment of a service of one server, with user, method and group of like. The caller has checked the server (see
// checkReady).
func orderFor(c *resource.Change, service, kind string, server int64, like DeploymentHead) error {
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
		x.Service = service
	case *DifferentialDeployment:
		x.Service = service
	case *ValidationDeployment:
		x.Service = service
	}
	_, err = c.Following().Create(t, o)
	return err
}

// checkReady returns an error if a deployment of a type cannot be requested for a server.
func checkReady(c *resource.Change, service, kind string, server int64) error {
	other, err := serviceOf(c.API, service)
	if err != nil {
		return err
	}
	if other != nil {
		if err := checkDeployable(c, server); err != nil {
			return err
		}
		row, err := c.Tx.Get(server)
		if err != nil {
			return err
		}
		return other.Check(c, kind, row)
	}
	if kind == validation {
		return checkHasValidation(c, server)
	}
	if err := checkDeployable(c, server); err != nil || kind != "DifferentialDeployment" {
		return err
	}
	_, _, there, err := revisionOf(c.Tx, server)
	if err == nil && !there {
		err = problem.BadRequest("NoPreviousFullDeploymentForDifferential", "server %d has never been deployed: run a FullDeployment first",
			server)
	}
	return err
}

// checkHasValidation returns an error for a server without checks of DNS data.
func checkHasValidation(c *resource.Change, server int64) error {
	row, err := c.Tx.Get(server)
	if err != nil {
		return err
	}
	checked, err := checksOf(c.Tx, row)
	if err == nil && !checked.enabled() {
		err = problem.BadRequest("DnsDeploymentValidationNotEnabled", "checks of DNS data are disabled for server %d and its configuration: set "+
			"dnsZoneValidationEnabled", server)
	}
	return err
}

// BeforeWrite rejects zones without servers, or that were not deployed before.
func (x *QuickDeployment) BeforeWrite(c *resource.Change) error {
	if !c.IsRequested() {
		return nil
	}
	if err := x.enqueue(c, x.Parent); err != nil {
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
	return p.checkDeployed(c.Tx, x.Parent)
}

// zoneOf returns the planned zone of a zone, or the first reverse zone of a network; nil if no role is in effect for it.
func (p *plan) zoneOf(row *store.Resource) *plannedZone {
	if row.Collection != "networks" {
		if i := slices.IndexFunc(p.zones, func(z *plannedZone) bool { return z.row.ID == row.ID }); i >= 0 {
			return p.zones[i]
		}
		return nil
	}
	var found *plannedZone
	for _, name := range naming.ReverseZones(store.KeyAddr(row.Low), store.KeyAddr(row.High), 1) {
		for _, z := range p.zones { // the longest zone name that contains the network's reverse name or is below it
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

// checkDeployed returns an error for a zone, block or network that has no servers or was not deployed before.
func (p *plan) checkDeployed(tx *store.Tx, id int64) error {
	row, err := tx.Get(id)
	if err != nil {
		return err
	}
	z := p.zoneOf(row)
	if z == nil || len(z.serversOf(assigned.answers)) == 0 {
		return problem.BadRequest("NoAssignedDnsDeploymentRoles", "%s %s (%d) has no deployment role, or its deployment is disabled", row.Type,
			cmp.Or(row.Key, row.Name, spanText(row)), row.ID)
	}
	_, there, err := readDeployed(tx, z.id)
	if err == nil && !there {
		err = problem.BadRequest("NoPreviousFullDeploymentForDifferential", "%s %s (%d) has never been deployed: run a FullDeployment first",
			row.Type, cmp.Or(row.Key, row.Name, spanText(row)), row.ID)
	}
	return err
}

// checkDeployable returns an error for a server that is disabled, foreign, or not a service point of the fleet.
func checkDeployable(c *resource.Change, server int64) error {
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
		return problem.BadRequest("ServerNotManaged", "server %s (%d) is an external server", problem.Describe(row.ID, row.Name), server)
	case x.State != serverconfig.Enabled:
		return problem.BadRequest("ServerNotActive", "server %s (%d) is %s", problem.Describe(row.ID, row.Name), server, x.State)
	case x.ServicePoint == "":
		return problem.BadRequest("ServerNotConnected", "server %s (%d) is not linked to a service point: set its servicePoint to the id of one",
			problem.Describe(row.ID, row.Name), server)
	}
	return nil
}

// checkNotRunning rejects a deployment of a service of a server while another one has not ended, and a validation while the same user has
// another one queued. A validation changes nothing, so it does not block deployments.
func (x *DeploymentHead) checkNotRunning(c *resource.Change, service string, server int64) error {
	isValidation := store.Compare{Field: store.Field{Kind: store.ColumnText, Path: []string{"type"}}, Op: "eq", Value: validation}
	beside := store.All{store.InCollection(deployments), store.HasParent(server), ofService(service)}
	states := []string{queued}
	if x.Type == validation {
		beside = append(beside, isValidation, store.Recheck{Expr: store.LinksTo{Targets: []int64{x.User.ID}, Field: "user"}})
	} else {
		beside = append(beside, store.Not{Expr: isValidation})
		states = append(states, running)
	}
	for _, state := range states {
		found, err := c.Tx.ReadFirst(store.Query{From: store.Resources, Where: append(slices.Clone(beside), inState(state))})
		if err != nil {
			return err
		}
		if found != nil {
			return problem.BadRequest("ServerIsDeploying", "deployment %d of server %d is %s", found.ID, server, state)
		}
	}
	return nil
}

// inState returns the condition that a deployment is in a state.
func inState(state string) store.Expr {
	return store.Compare{Field: store.Field{Kind: store.Text, Path: []string{"state"}}, Op: "eq", Value: state}
}

// maxQueued is the maximum number of queued deployments of a user.
const maxQueued = 1000

// checkQueueLimit returns an error if a user has maxQueued queued deployments.
func checkQueueLimit(c *resource.Change, user int64) error {
	if user == 0 {
		return nil
	}
	n, err := c.Tx.Count(store.Query{From: store.Resources, Where: store.All{store.InCollection(deployments),
		store.Recheck{Expr: store.LinksTo{Targets: []int64{user}, Field: "user"}}, inState(queued)}})
	if err != nil || n < maxQueued {
		return err
	}
	p := problem.New(429, "TooManyRequests", "%d deployments of %s are already queued: wait until some of them finish", n,
		c.Caller.Name)
	p.RetryAfter = 10 * time.Second
	return p
}

// checkServicePoint rejects a service point that another server has. If the service point of a server changes, the server gets a new
// revision number, so that the new service point fetches its content.
func checkServicePoint(c *resource.Change) error {
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
				return problem.Conflict("ResourceConflictsWithOther", "servicePoint: %s is linked to server %s (%d)", x.ServicePoint, r.Name, r.ID)
			}); err != nil {
			return err
		}
	}
	return c.Tx.Write("UPDATE dns_server SET number = ? WHERE server = ? AND number < ?", c.Tx.Now().UnixMilli(), h.ID, c.Tx.Now().UnixMilli())
}

// spanText returns the address range of a row as text; empty where it has none.
func spanText(row *store.Resource) string {
	if row.Low == nil {
		return ""
	}
	return space.Range{Low: store.KeyAddr(row.Low), High: store.KeyAddr(row.High)}.String()
}

// end sets the fields of an ended deployment.
func (x *DeploymentHead) end(tx *store.Tx, state, message string) {
	all := int64(100)
	x.State, x.Message, x.PercentComplete, x.CompletionDateTime = state, schema.Cut(message, maxMessageLength), &all, tx.Now()
}
