package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"portolan/client"
)

type fleetReleases struct{ managerFlags }

// Run lists the releases of the manager.
func (c *fleetReleases) Run(s *session) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	all, expires, err := cl.Releases(s.ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(s.stdout).Encode(all)
	}
	for _, r := range all {
		fmt.Fprintf(s.stdout, "%s  %s\n", r.Version, strings.Join(r.Platforms, " "))
	}
	if expires == "" {
		_, err = fmt.Fprintln(s.stdout, "The manager has no releases; see portolan release.")
	} else {
		_, err = fmt.Fprintf(s.stdout, "Valid until %s.\n", expires)
	}
	return err
}

type fleetUpdate struct {
	managerFlags
	Name    string `arg:"" complete:"point" help:"The name or the id of the service point."`
	Version string `arg:"" optional:"" help:"The release to run. Without it, the command cancels a pending update."`
}

// Run updates a service point to a release.
func (c *fleetUpdate) Run(s *session) error {
	cl, i, err := c.instance(s, c.Name)
	if err != nil {
		return err
	}
	if i, err = cl.ChangeInstance(s.ctx, i.ID, client.InstanceChange{TargetVersion: &c.Version}); err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(s.stdout).Encode(i)
	}
	_, err = fmt.Fprintln(s.stdout, i.UpdateStatus)
	return err
}

type fleetLabel struct {
	managerFlags
	Name   string   `arg:"" complete:"point" help:"The name or the id of the service point."`
	Labels []string `arg:"" help:"Labels, such as site=oslo; site= removes a label."`
}

// Run changes the labels of a service point.
func (c *fleetLabel) Run(s *session) error {
	labels := map[string]*string{}
	for _, text := range c.Labels {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return usageError{fmt.Errorf("%q is not of the form NAME=VALUE", text)}
		}
		if labels[name] = nil; value != "" {
			labels[name] = &value
		}
	}
	cl, i, err := c.instance(s, c.Name)
	if err != nil {
		return err
	}
	_, err = cl.ChangeInstance(s.ctx, i.ID, client.InstanceChange{Labels: labels})
	return err
}
