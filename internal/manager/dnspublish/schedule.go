package dnspublish

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/event"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/engine/timetable"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/serverconfig"
)

// schedules is the name of the collection of deployment schedules.
const schedules = "schedules"

// registerSchedules declares the collection of deployment schedules.
func registerSchedules(r *resource.Registry) {
	r.Collection(resource.Collection{Name: schedules, Parents: []string{"configurations"}, Complete: timetable.Complete},
		&DeploymentSchedule{})
}

// DeploymentSchedule deploys to servers at set times.
type DeploymentSchedule struct {
	schema.Head `head:"required,nonblank" unique:"siblings"`
	// Configuration is the configuration of the servers.
	Configuration schema.Ref `api:"configuration,readOnly" ref:"Configuration" column:"configuration"`
	// StartDateTime is the time of the first run.
	StartDateTime time.Time `api:"startDateTime,required"`
	// Interval is the time between two runs, a minute or more (ISO 8601); null for a single run.
	Interval string `api:"interval,duration"`
	// Enabled controls whether the schedule runs.
	Enabled bool `api:"enabled,put,notNull" default:"true"`
	// DeploymentType is the type of the deployments.
	DeploymentType string `api:"deploymentType,put,notNull" enum:"DifferentialDeployment|FullDeployment|ValidationDeployment" default:"FullDeployment"`
	// DeploymentServices are the services to deploy.
	DeploymentServices []string `api:"deploymentServices,required" enum:"DHCPv4|DHCPv6|DNS|TFTP"`
	// Servers are the servers and server groups to deploy to, by their ids.
	Servers schema.RefList `api:"servers,post,writeOnly" ref:"Server|HAServer" back:"schedules" min:"1" onDelete:"refuse"`
	// ServerGroups are the server groups to deploy to.
	ServerGroups schema.RefList `api:"serverGroups,hidden" ref:"ServerGroup" back:"schedules" onDelete:"refuse"`
	// NextDateTime is the time of the next run; null where there is none.
	NextDateTime time.Time `api:"nextDateTime,computed"`
	// LastDateTime is the time of the last run; null where there was none.
	LastDateTime time.Time `api:"lastDateTime,computed"`
	// Owner is the user who created the schedule. Its deployments have this user.
	Owner schema.Ref `api:"owner,hidden" ref:"User" onDelete:"clear"`
	// Holder is the user without administrator rights who last created or changed the schedule. The schedule deploys with the rights of
	// that user, and is deleted with the user.
	Holder schema.Ref `api:"holder,hidden" ref:"User" onDelete:"cascade"`
}

// BeforeWrite separates server groups from servers, and rejects a schedule that never runs.
func (x *DeploymentSchedule) BeforeWrite(c *resource.Change) error {
	if c.Caller.Rights != nil && !c.Caller.Administrator { // a changed schedule uses the rights of the user who changed it
		x.Owner, x.Holder = schema.Ref{}, schema.Ref{ID: c.Caller.User}
	}
	if !c.IsRequested() {
		return nil
	}
	old, _ := c.Old.(*DeploymentSchedule)
	x.NextDateTime, x.LastDateTime = time.Time{}, time.Time{}
	if c.IsCreation() && x.Holder.ID == 0 {
		x.Owner = schema.Ref{ID: c.Caller.User}
	}
	if x.Servers.IsSet {
		if err := x.splitServers(c); err != nil {
			return err
		}
	}
	return x.checkTimes(c, old)
}

// splitServers separates server groups from servers.
func (x *DeploymentSchedule) splitServers(c *resource.Change) error {
	var servers, groups []int64
	for i, item := range x.Servers.Items {
		head, err := c.API.Visible(c.Tx, item.ID, c.Caller)
		if problem.Is(err, "ResourceNotFound") || err == nil && head.Collection != "servers" && head.Collection != "serverGroups" {
			return resource.NotFoundInlined("servers", "entry %d: server or server group %d does not exist", i, item.ID)
		}
		if err != nil {
			return err
		}
		if head.Configuration != x.Config {
			return problem.Field("ResourceNotInConfiguration", "servers", "entry %d: %s %d is in another configuration", i, head.Type, item.ID)
		}
		if head.Collection == "serverGroups" {
			groups = append(groups, item.ID)
		} else {
			servers = append(servers, item.ID)
		}
	}
	x.Servers, x.ServerGroups = schema.Refer(servers), schema.Refer(groups)
	return nil
}

// checkTimes rejects services that are not deployed, and a schedule that never runs.
func (x *DeploymentSchedule) checkTimes(c *resource.Change, old *DeploymentSchedule) error {
	if len(x.DeploymentServices) == 0 {
		return problem.Field("EmptyFieldValue", "deploymentServices", "must have at least one entry")
	}
	for _, service := range x.DeploymentServices {
		switch err := checkService(c.API, "deploymentServices", x.DeploymentType, service); {
		case problem.Is(err, "NotImplemented"):
			return problem.NotYet("deploymentServices: %s is not supported yet", service)
		case err != nil:
			return err
		}
	}
	return x.Times().Check(c.Tx.Now(), timesOf(old))
}

// timesOf returns the times of a schedule; nil for a nil schedule.
func timesOf(x *DeploymentSchedule) *timetable.Times {
	if x == nil {
		return nil
	}
	times := x.Times()
	return &times
}

// AfterWrite records the change of the times.
func (x *DeploymentSchedule) AfterWrite(c *resource.Change) error {
	old, _ := c.Old.(*DeploymentSchedule)
	return x.Times().Note(c, timesOf(old))
}

// Times returns the times of the schedule.
func (x *DeploymentSchedule) Times() timetable.Times {
	return timetable.Times{Start: x.StartDateTime, Interval: x.Interval, Enabled: x.Enabled}
}

// runSchedules creates the deployments of all schedules that are due.
func (d *Deployer) runSchedules(ctx context.Context) error {
	return d.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		c := &resource.Change{Tx: tx, API: d.api}
		return d.schedules.Turn(c, func(row *store.Resource, s timetable.Schedule) error {
			return d.deployBySchedule(c, row, s.(*DeploymentSchedule))
		})
	})
}

// deployBySchedule creates the deployments of a schedule. If a server cannot be deployed to, an event reports it and the others are
// deployed to.
func (d *Deployer) deployBySchedule(c *resource.Change, row *store.Resource, x *DeploymentSchedule) error {
	servers, err := c.Tx.Links(row.ID, "servers")
	if err != nil {
		return err
	}
	groups, err := c.Tx.Links(row.ID, "serverGroups")
	if err != nil {
		return err
	}
	for _, group := range groups {
		members, err := serverconfig.GroupMembers(c.Tx, group)
		if err != nil {
			return err
		}
		servers = append(servers, members...)
	}
	slices.Sort(servers)
	c.Tx.Touch(deployments)
	for _, server := range slices.Compact(servers) {
		for _, service := range x.DeploymentServices {
			if err := d.deployServiceBySchedule(c, row, x, server, service); err != nil {
				return err
			}
		}
	}
	return nil
}

// deployServiceBySchedule creates the deployment of one service of one server.
func (d *Deployer) deployServiceBySchedule(c *resource.Change, row *store.Resource, x *DeploymentSchedule, server int64, service string,
) error {
	// A queued deployment of this type will deploy the same changes.
	waits, err := isQueued(c.Tx, server, x.DeploymentType, service)
	if err != nil || waits {
		return err
	}
	if err = authz.MayDeploy(c, x.Holder.ID, x.DeploymentType, server); err == nil {
		err = checkReady(c, service, x.DeploymentType, server)
	}
	if err == nil {
		return orderFor(c, service, x.DeploymentType, server, DeploymentHead{User: schema.Ref{ID: cmp.Or(x.Holder.ID, x.Owner.ID)},
			Method: "SCHEDULED"})
	}
	p, ok := problem.As(err)
	if !ok || p.Status >= 500 {
		return err
	}
	return event.Add(c.Tx, event.Event{EventType: "NOT_DEPLOYED", Category: "DEPLOYMENT", Subcategory: service, SourceName: row.Name,
		Message: fmt.Sprintf("The schedule %s did not deploy to server %d: %s", row.Name, server, p.Message)}, row.ID)
}

// isQueued reports whether a deployment of a type and a service is queued for a server.
func isQueued(tx *store.Tx, server int64, kind, service string) (bool, error) {
	return tx.Exists(store.Query{From: store.Resources, Where: store.All{store.InCollection(deployments), store.HasParent(server),
		ofService(service),
		store.Compare{Field: store.Field{Kind: store.ColumnText, Path: []string{"type"}}, Op: "eq", Value: kind},
		store.Compare{Field: store.Field{Kind: store.Text, Path: []string{"state"}}, Op: "eq", Value: queued}}})
}
