package main

import (
	"encoding/json"
	"fmt"

	"portolan/internal/client/cli"
)

type rightsCommand struct {
	scopeFlags
	jsonFlag
	User     string `help:"The user, by name or number. Default: the current user."`
	Resource string `arg:"" complete:"path" help:"The resource, such as networks/100717, networks/10.1.0.0/24 or zones/example.net."`
}

// Run prints the rights of a user on a resource, and the access rights that they result from.
func (c *rightsCommand) Run(s *session) error {
	cl, err := c.manager()
	if err != nil {
		return err
	}
	at, err := cl.FindOne(s.ctx, c.Resource)
	if err != nil {
		return err
	}
	var user cli.Path
	if c.User != "" {
		if user, err = cl.FindOne(s.ctx, "users/"+c.User); err != nil {
			return err
		}
	}
	e, err := cl.EffectiveRights(s.ctx, at.String(), user.ID)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(s.stdout).Encode(e)
	}
	fmt.Fprintf(s.stdout, "%s: %s; below it %s\n", c.Resource, e.AccessLevel, e.LevelBelow)
	for _, o := range e.AccessOverrides {
		fmt.Fprintf(s.stdout, "  %s: %s\n", o.ResourceType, o.AccessLevel)
	}
	switch e.WorkflowLevel {
	case "RECOMMEND":
		fmt.Fprintln(s.stdout, "changes there require approval (workflow level RECOMMEND)")
	case "APPROVE":
		fmt.Fprintln(s.stdout, "the user can approve or deny change requests there (workflow level APPROVE)")
	}
	fmt.Fprintf(s.stdout, "deployments: %v, quick: %v, selective: %v\n", e.DeploymentsAllowed, e.QuickDeploymentsAllowed,
		e.SelectiveDeploymentsAllowed)
	switch {
	case e.Administrator:
		_, err = fmt.Fprintln(s.stdout, "the user is an administrator: access rights do not apply")
	case e.DecidedBy == nil:
		_, err = fmt.Fprintln(s.stdout, "no access right applies")
	case e.DecidedBy.Resource == nil:
		_, err = fmt.Fprintf(s.stdout, "determined by the default access rights %v\n", e.DecidedBy.AccessRights)
	default:
		_, err = fmt.Fprintf(s.stdout, "determined at resource %d, by access rights %v\n", *e.DecidedBy.Resource, e.DecidedBy.AccessRights)
	}
	return err
}
