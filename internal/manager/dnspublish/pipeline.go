package dnspublish

import (
	"context"
	"fmt"
	"slices"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/serverconfig"
)

// Pipeline deploys a service other than DNS. The Deployer runs it with the order, states, waits and events of all deployments.
type Pipeline interface {
	// Prepare computes the content of a server from a snapshot. A returned problem below status 500 is the reason why the deployment
	// fails. point is the state of the server's service point.
	Prepare(tx *store.Tx, server *store.Resource, point Serving) (Prepared, error)
}

// Prepared is the content that a Pipeline has computed.
type Prepared interface {
	// Describe returns the content in words, and warnings as sentences.
	Describe() (message string, warnings []string)
	// Publish stores the content, unless it is stored already. It returns the number of the revision that the service point is to confirm.
	// serves is the revision that it has confirmed.
	Publish(tx *store.Tx, serves string) (number int64, changed bool, err error)
}

// serviceOf returns the service of a deployment. Deployments of zones and records are of DNS.
func serviceOf(o schema.Object) string {
	switch x := o.(type) {
	case *FullDeployment:
		return x.Service
	case *DifferentialDeployment:
		return x.Service
	case *ValidationDeployment:
		return x.Service
	}
	return serverconfig.ServiceDNS
}

// servicesOf are the services that each type of deployment supports. Differential deployments are of DNS only, as release 9.6 publishes.
var servicesOf = map[string][]string{
	"FullDeployment":         {serverconfig.ServiceDNS, serverconfig.ServiceTFTP},
	"DifferentialDeployment": {serverconfig.ServiceDNS},
	validation:               {serverconfig.ServiceDNS},
}

// checkService rejects a service that a type of deployment does not support.
func checkService(field, kind, service string) error {
	switch {
	case slices.Contains(servicesOf[kind], service):
		return nil
	case kind == "DifferentialDeployment":
		return problem.Field("UnsupportedResourceFieldValue", field, "%s has no differential deployments: run a FullDeployment", service)
	case service == serverconfig.ServiceTFTP:
		return problem.Field("UnsupportedResourceFieldValue", field, "%s has no deployments of the type %s: run a FullDeployment", service, kind)
	}
	return problem.New(501, "NotImplemented", "%s: %s is not supported yet", field, service)
}

// deployService runs a deployment of a service other than DNS.
func (d *Deployer) deployService(ctx context.Context, id int64, pipeline Pipeline) error {
	var prepared Prepared
	if err := d.api.Store.View(ctx, func(tx *store.Tx) error {
		server, point, _, err := d.targetOf(tx, id)
		if err != nil {
			return err
		}
		prepared, err = pipeline.Prepare(tx, server, point)
		return err
	}); err != nil {
		return err
	}
	message, warnings := prepared.Describe()
	state := completed
	if len(warnings) > 0 {
		state = warned
	}
	for _, one := range warnings[:min(len(warnings), maxFindings)] {
		message += "; " + one
	}
	toWake := ""
	if err := d.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		server, point, name, err := d.targetOf(tx, id)
		if err != nil {
			return err
		}
		number, changed, err := prepared.Publish(tx, point.Content)
		if err != nil {
			return err
		}
		if toWake = ""; changed {
			toWake = name
			d.points.Changed(tx, name)
		}
		if err := tx.Write("INSERT INTO deployment_wait (deployment, server, number, until, state, message) VALUES (?, ?, ?, ?, ?, ?)", id,
			server.ID, number, tx.Now().Add(waitTime).UnixMilli(), state, message); err != nil {
			return err
		}
		_, err = d.markWaiting(tx, id, message)
		return err
	}); err != nil {
		return err
	}
	if toWake != "" {
		d.points.Wake(toWake)
	}
	return nil
}

// targetOf returns the server of a deployment, and the state and the id of its service point.
func (d *Deployer) targetOf(tx *store.Tx, id int64) (server *store.Resource, point Serving, name string, err error) {
	row, err := tx.Get(id)
	if err != nil {
		return nil, point, "", err
	}
	o, err := d.api.Object(row)
	if err != nil {
		return nil, point, "", err
	}
	server, err = tx.Get(row.Parent)
	if store.IsNotFound(err) {
		return nil, point, "", problem.BadRequest("ServerNotManaged", "server %d was deleted", row.Parent)
	}
	if err != nil {
		return nil, point, "", err
	}
	of, err := d.api.Object(server)
	if err != nil {
		return nil, point, "", err
	}
	if x := serverconfig.FieldsOf(of); x != nil {
		name = x.ServicePoint
	}
	point, err = d.points.Serving(tx, name, serviceOf(o))
	if err == nil && !point.There {
		err = problem.BadRequest("ServerNotConnected", "service point %q does not exist in the fleet", name)
	}
	return server, point, name, err
}

// ServicePointOf returns the service point of a server as it was before a change and as it is now; empty where there is none.
func ServicePointOf(c *resource.Change) (before, now string) {
	if old := serverconfig.FieldsOf(c.Old); old != nil {
		before = old.ServicePoint
	}
	if x := serverconfig.FieldsOf(c.New); x != nil {
		now = x.ServicePoint
	}
	return before, now
}

// ServerOfPoint returns the server of a service point of the fleet; nil if there is none.
func ServerOfPoint(tx *store.Tx, servicePoint string) (*store.Resource, error) {
	server, err := serverOfPoint(tx, servicePoint)
	if err != nil {
		return nil, fmt.Errorf("find the server of a service point: %w", err)
	}
	return server, nil
}
