package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"portolan/client"
	"portolan/internal/client/cli"
)

type deployCommand struct {
	Server deployServer `cmd:"" example:"portolan deploy server ns1" help:"Deploy the data of a service to a server: all of it, or only the changes."`
	Zone   deployZone   `cmd:"" example:"portolan deploy zone example.net --view internal" help:"Deploy your changes to a zone and to the other zones of its server."`
}

// deployFlags are the flags of all deployments.
type deployFlags struct {
	managerFlags
	Configuration string `help:"The configuration. Not required if the name is unique." placeholder:"NAME" env:"-"`
	Detach        bool   `help:"Do not wait for the deployment to finish." env:"-"`
}

type deployServer struct {
	deployFlags
	Changes  bool   `help:"Deploy only record changes in zones that the server already has. Changes of roles and options require a full deployment." env:"-"`
	Validate bool   `help:"Validate the data on the server without deploying it." env:"-"`
	Service  string `help:"The service: DNS, DHCPv4, DHCPv6 or TFTP." enum:"DNS,DHCPv4,DHCPv6,TFTP" default:"DNS" env:"-"`
	Name     string `arg:"" help:"The name or the id of the server."`
}

// Run deploys to a server.
func (c *deployServer) Run(s *session) error {
	kind := "FullDeployment"
	switch {
	case c.Changes && c.Validate:
		return usageError{errors.New("--changes and --validate cannot be combined")}
	case c.Changes:
		kind = "DifferentialDeployment"
	case c.Validate:
		kind = "ValidationDeployment"
	}
	cl, id, err := c.find(s, "servers", "name", c.Name, "")
	if err != nil {
		return err
	}
	d, err := cl.DeployService(s.ctx, id, kind, c.Service)
	if err != nil {
		return err
	}
	return c.wait(s, cl, d)
}

type deployZone struct {
	deployFlags
	View string `help:"The view. Not required if the zone is in only one view." placeholder:"NAME" env:"-"`
	Name string `arg:"" help:"The absolute name of the zone, or its id."`
}

// Run deploys a zone.
func (c *deployZone) Run(s *session) error {
	condition := ""
	if c.View != "" {
		condition = " and view.name:" + cli.Quoted(c.View)
	}
	cl, id, err := c.find(s, "zones", "absoluteName", strings.TrimSuffix(c.Name, "."), condition)
	if err != nil {
		return err
	}
	d, err := cl.DeployZone(s.ctx, id)
	if err != nil {
		return err
	}
	return c.wait(s, cl, d)
}

// find returns the manager and the ID of one resource of a collection. text is the value of the field or the ID.
func (f deployFlags) find(s *session, collection, field, text, condition string) (cl *client.Client, id int64, err error) {
	if cl, err = f.client(); err != nil {
		return nil, 0, err
	}
	one, err := f.selectedContext()
	if err != nil {
		return nil, 0, err
	}
	f.Configuration = cmp.Or(f.Configuration, one.Configuration)
	if collection == "zones" && condition == "" && one.View != "" {
		condition = " and view.name:" + cli.Quoted(one.View)
	}
	if id, err = strconv.ParseInt(text, 10, 64); err == nil {
		return cl, id, nil
	}
	if f.Configuration != "" {
		condition += " and configuration.name:" + cli.Quoted(f.Configuration)
	}
	id, err = onlyOne(s.ctx, cl, collection, field, text, condition, "specify the configuration or the view, or use the id")
	return cl, id, err
}

// wait waits until a deployment has ended and prints its result.
func (f deployFlags) wait(s *session, cl *client.Client, d *client.Deployment) (err error) {
	if !f.Detach {
		if d, err = cl.WaitForDeployment(s.ctx, d.ID); err != nil {
			return err
		}
	}
	if f.JSON {
		err = json.NewEncoder(s.stdout).Encode(d)
	} else {
		_, err = fmt.Fprintln(s.stdout, strings.TrimSpace(fmt.Sprintf("%d %s %s", d.ID, d.State, d.Message)))
	}
	if err == nil && d.State == "FAILED" {
		return fmt.Errorf("deployment %d failed", d.ID)
	}
	return err
}

// onlyOne returns the ID of the only resource of a collection whose field has a value. condition is appended to the filter, for example "
// and disabled:false". otherwise is the advice in the error if there are several.
func onlyOne(ctx context.Context, cl *client.Client, collection, field, value, condition, otherwise string) (id int64, err error) {
	ids, err := cl.IDs(ctx, collection, field+":"+cli.Quoted(value)+condition, 2)
	switch {
	case err != nil:
		return 0, err
	case len(ids) == 0:
		return 0, fmt.Errorf("%s contains no resource with the %s %q", collection, field, value)
	case len(ids) == 1:
		return ids[0], nil
	}
	return 0, usageError{fmt.Errorf("several of %s have the %s %q: %s", collection, field, value, otherwise)}
}
