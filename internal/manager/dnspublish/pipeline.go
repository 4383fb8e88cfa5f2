package dnspublish

import (
	"context"
	"errors"
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

// The services that a validation checks by the settings of DHCP.
const (
	serviceDHCPv4 = "DHCPv4"
	serviceDHCPv6 = "DHCPv6"
)

// servicesOf are the services that each type of deployment supports. Differential deployments are of DNS only, as release 9.6 publishes.
var servicesOf = map[string][]string{
	"FullDeployment":         {serverconfig.ServiceDNS, serverconfig.ServiceTFTP, serviceDHCPv4, serviceDHCPv6},
	"DifferentialDeployment": {serverconfig.ServiceDNS},
	validation:               {serverconfig.ServiceDNS, serviceDHCPv4, serviceDHCPv6},
}

// checkService rejects a service that a type of deployment does not support.
func checkService(field, kind, service string) error {
	if slices.Contains(servicesOf[kind], service) {
		return nil
	}
	return problem.Field("UnsupportedResourceFieldValue", field, "%s has no deployments of the type %s: run a FullDeployment", service, kind)
}

// ErrConcurrent is returned by Prepared.Publish if the stored content has changed since the snapshot. The deployment starts again.
var ErrConcurrent = errors.New("the deployed content has changed during the deployment")

// deployService runs a deployment of a service other than DNS.
func (d *Deployer) deployService(ctx context.Context, id int64, pipeline Pipeline) error {
	for {
		if err := d.deployServiceOnce(ctx, id, pipeline); !errors.Is(err, ErrConcurrent) {
			return err
		}
	}
}

func (d *Deployer) deployServiceOnce(ctx context.Context, id int64, pipeline Pipeline) error {
	var prepared Prepared
	checks := false
	if err := d.api.Store.View(ctx, func(tx *store.Tx) error {
		head, err := tx.Head(id)
		if err != nil {
			return err
		}
		server, point, _, err := d.targetOf(tx, id)
		if err != nil {
			return err
		}
		if checks = head.Type == validation; !checks && point.Provides == nil {
			return problem.BadRequest("ServerNotConnected", "the service point of server %s has no application for the service: deploy one with "+
				"portolan fleet deploy", server.Name)
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
	if checks {
		return d.end(ctx, id, state, message)
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

// checkHasDHCPValidation returns an error for a server without checks of DHCP data.
func checkHasDHCPValidation(c *resource.Change, server int64) error {
	row, err := c.Tx.Get(server)
	if err != nil {
		return err
	}
	o, err := c.API.Object(row)
	if err != nil {
		return err
	}
	x := serverconfig.FieldsOf(o)
	enabled := x.DHCPConfigurationValidationEnabled
	if !x.OverrideDHCPValidation {
		above, err := c.Tx.Get(row.Configuration)
		if err != nil {
			return err
		}
		of, err := c.API.Object(above)
		if err != nil {
			return err
		}
		enabled = c.API.TypeNamed(above.Type).IsTrue(of, "dhcpConfigurationValidationEnabled")
	}
	if !enabled {
		return problem.BadRequest("DhcpDeploymentValidationNotEnabled", "checks of DHCP data are disabled for server %d and its configuration:"+
			" set dhcpConfigurationValidationEnabled", server)
	}
	return nil
}
