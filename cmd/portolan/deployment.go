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
	Server deployServer `cmd:"" example:"portolan deploy server ns1" help:"Deploy what a server is to answer for: all of it, or what has changed of it."`
	Zone   deployZone   `cmd:"" example:"portolan deploy zone example.net --view internal" help:"Deploy what you have changed of a zone, and of the others that its server writes."`
}

// deployFlags are the flags of all deployments.
type deployFlags struct {
	managerFlags
	Configuration string `help:"The configuration. Not needed where one alone has something of that name." placeholder:"NAME" env:"-"`
	Detach        bool   `help:"Do not wait until it has ended." env:"-"`
}

type deployServer struct {
	deployFlags
	Changes  bool   `help:"Only what has changed of the records of zones that the server has. Roles and options act with the next one of all." env:"-"`
	Validate bool   `help:"Check the data as the server says, and deploy nothing." env:"-"`
	Name     string `arg:"" help:"The name or the id of the server."`
}

// Run deploys to a server.
func (c *deployServer) Run(s *session) error {
	kind := "FullDeployment"
	switch {
	case c.Changes && c.Validate:
		return usageError{errors.New("--changes, --validate: name one of them")}
	case c.Changes:
		kind = "DifferentialDeployment"
	case c.Validate:
		kind = "ValidationDeployment"
	}
	cl, id, err := c.find(s, "servers", "name", c.Name, "")
	if err != nil {
		return err
	}
	d, err := cl.DeployServer(s.ctx, id, kind)
	if err != nil {
		return err
	}
	return c.wait(s, cl, d)
}

type deployZone struct {
	deployFlags
	View string `help:"The view. Not needed where one alone has such a zone." placeholder:"NAME" env:"-"`
	Name string `arg:"" help:"The whole name of the zone, or its id."`
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
	id, err = onlyOne(s.ctx, cl, collection, field, text, condition, "name the configuration or the view, or give the id")
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
		return 0, fmt.Errorf("there is nothing in %s with the %s %q", collection, field, value)
	case len(ids) == 1:
		return ids[0], nil
	}
	return 0, usageError{fmt.Errorf("several of %s have the %s %q: %s", collection, field, value, otherwise)}
}
