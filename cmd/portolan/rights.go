package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
)

type rightsCommand struct {
	managerFlags
	User     int64  `help:"The number of the user who is asked about; without it, who asks."`
	Resource string `arg:"" help:"The resource, such as networks/100717."`
}

var resourcePath = regexp.MustCompile(`^[a-zA-Z]+/[0-9]+$`)

// Run prints what somebody may do with a resource, and which access rights decide.
func (c *rightsCommand) Run(s *session) error {
	if !resourcePath.MatchString(c.Resource) {
		return usageError{errors.New("the resource is a collection and a number, such as networks/100717")}
	}
	cl, err := c.client()
	if err != nil {
		return err
	}
	e, err := cl.EffectiveRights(s.ctx, c.Resource, c.User)
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
	fmt.Fprintf(s.stdout, "deployments: %v, quick: %v, selective: %v\n", e.DeploymentsAllowed, e.QuickDeploymentsAllowed,
		e.SelectiveDeploymentsAllowed)
	switch {
	case e.Administrator:
		_, err = fmt.Fprintln(s.stdout, "an administrator: no access right limits that")
	case e.DecidedBy == nil:
		_, err = fmt.Fprintln(s.stdout, "no access right decides")
	case e.DecidedBy.Resource == nil:
		_, err = fmt.Fprintf(s.stdout, "decided by default, by access rights %v\n", e.DecidedBy.AccessRights)
	default:
		_, err = fmt.Fprintf(s.stdout, "decided at resource %d, by access rights %v\n", *e.DecidedBy.Resource, e.DecidedBy.AccessRights)
	}
	return err
}
