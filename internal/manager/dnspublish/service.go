package dnspublish

import (
	"context"
	"errors"
	"slices"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/serverconfig"
)

// Service deploys a service other than DNS.
type Service interface {
	// Types returns the types of deployments that the service has.
	Types() []string
	// Check returns a problem if a deployment of a type cannot be requested for a server that can be deployed to.
	Check(c *resource.Change, kind string, server *store.Resource) error
	// Prepare computes the content of a server in a snapshot. A problem means that the content cannot be deployed.
	Prepare(tx *store.Tx, server int64) (Prepared, error)
}

// Prepared is the computed content of a server.
type Prepared struct {
	// Summary is the result in words, Warnings are sentences.
	Summary  string
	Warnings []string
	// Commit stores the content in a transaction, and returns the number of the revision that the service point is to confirm. It returns
	// ErrConcurrent if the stored content has changed since the snapshot. serves is the revision that the service point has confirmed.
	Commit func(tx *store.Tx, serves string) (number int64, err error)
}

// ErrConcurrent reports that the deployed content of a server has changed during a deployment. The deployment starts again.
var ErrConcurrent = errors.New("the deployed content has changed during the deployment")

// serviceOf returns the service of the name; nil for DNS. It returns a problem for a service that cannot be deployed.
func serviceOf(a *resource.API, name string) (Service, error) {
	if name == serverconfig.ServiceDNS {
		return nil, nil
	}
	all := resource.Provided[Options](a.Provisions).Services
	if s := all[name]; s != nil {
		return s, nil
	}
	names := []string{serverconfig.ServiceDNS}
	for one := range all {
		names = append(names, one)
	}
	slices.Sort(names)
	return nil, problem.New(501, "NotImplemented", "service: %s is not supported yet; must be one of %s", name, strings.Join(names, ", "))
}

// checkService returns a problem with a field if a service cannot be deployed by deployments of a type.
func checkService(a *resource.API, field, kind, service string) error {
	s, err := serviceOf(a, service)
	if err == nil && s != nil && !slices.Contains(s.Types(), kind) {
		err = problem.Field("UnsupportedResourceFieldValue", field, "%s has no deployments of the type %s: use %s", service, kind,
			strings.Join(s.Types(), " or "))
	}
	return err
}

// serviceField returns the name of the service of a deployment; DNS for deployments of zones and records.
func serviceField(o schema.Object) string {
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

// ofService returns the condition that a deployment is of a service.
func ofService(name string) store.Expr {
	return store.Compare{Field: store.Field{Kind: store.Text, Path: []string{"service"}}, Op: "eq", Value: name}
}

// deployService runs a deployment of a service other than DNS.
func (d *Deployer) deployService(ctx context.Context, id int64, row *store.Resource, s Service) error {
	for {
		var p Prepared
		if err := d.api.Store.View(ctx, func(tx *store.Tx) (err error) {
			if row.Type != validation {
				if err := d.checkApplication(tx, row); err != nil {
					return err
				}
			}
			p, err = s.Prepare(tx, row.Parent)
			return err
		}); err != nil {
			return err
		}
		o := &outcome{text: p.Summary, warnings: p.Warnings, server: row.Parent}
		state := completed
		if len(p.Warnings) > 0 {
			state = warned
		}
		if row.Type == validation {
			return d.end(ctx, id, state, o.summary())
		}
		if err := d.commitService(ctx, id, p, o, state); !errors.Is(err, ErrConcurrent) {
			return err
		}
	}
}

// commitService stores the content of a server. The deployment then waits until the service point serves it.
func (d *Deployer) commitService(ctx context.Context, id int64, p Prepared, o *outcome, state string) error {
	point, message := "", o.summary()
	if err := d.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		serves, err := d.confirmedRevision(tx, id, o.server)
		if err != nil {
			return err
		}
		number, err := p.Commit(tx, serves)
		if err != nil {
			return err
		}
		if point, err = d.markChanged(tx, o.server); err != nil {
			return err
		}
		if err := tx.Write("INSERT INTO deployment_wait (deployment, server, number, until, state, message) VALUES (?, ?, ?, ?, ?, ?)", id,
			o.server, number, tx.Now().Add(waitTime).UnixMilli(), state, message); err != nil {
			return err
		}
		row, err := tx.Get(id)
		if err != nil {
			return err
		}
		return d.update(tx, row, func(x *DeploymentHead) {
			ninety := int64(90)
			x.PercentComplete, x.Message = &ninety, schema.Cut(message, maxMessageLength)
		})
	}); err != nil {
		return err
	}
	if point != "" {
		d.points.Wake(point)
	}
	return nil
}

// checkApplication returns a problem if the service point of a deployment has no application for the service.
func (d *Deployer) checkApplication(tx *store.Tx, deployment *store.Resource) error {
	x, err := d.api.Object(deployment)
	if err != nil {
		return err
	}
	server, err := tx.Get(deployment.Parent)
	if err != nil {
		return err
	}
	o, err := d.api.Object(server)
	if err != nil {
		return err
	}
	point := serverconfig.FieldsOf(o).ServicePoint
	is, err := d.points.Serving(tx, point, serviceField(x))
	if err == nil && is.Provides == nil {
		err = problem.BadRequest("ServerNotConnected", "service point %s of server %s does not run the application %s: deploy it to it first "+
			"(portolan fleet deploy)", point, problem.Describe(server.ID, server.Name), strings.Join(is.Applications, " or "))
	}
	return err
}

// confirmedRevision returns the revision that the service point of a server has confirmed for the service of a deployment.
func (d *Deployer) confirmedRevision(tx *store.Tx, deployment, server int64) (revision string, err error) {
	row, err := tx.Get(server)
	if err != nil {
		return "", err
	}
	o, err := d.api.Object(row)
	if err != nil {
		return "", err
	}
	s, err := d.servingOf(tx, deployment, serverconfig.FieldsOf(o).ServicePoint)
	return s.Content, err
}
