package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"portolan/client"
	"portolan/internal/client/cli"
)

type rightsCommand struct {
	scopeFlags
	jsonFlag
	User     string `help:"The user, by name or number. Default: the current user."`
	Resource string `arg:"" optional:"" complete:"path" help:"The resource, such as networks/100717, networks/10.1.0.0/24 or zones/example.net. Without it: everything that the user of --user sees and may do."`
}

// Run prints the rights of a user on a resource, and the access rights that they result from.
func (c *rightsCommand) Run(s *session) error {
	cl, err := c.manager()
	if err != nil {
		return err
	}
	var user cli.Path
	if c.User != "" {
		if user, err = cl.FindOne(s.ctx, "users/"+c.User); err != nil {
			return err
		}
	}
	if c.Resource == "" {
		return c.access(s, cl, user.ID)
	}
	at, err := cl.FindOne(s.ctx, c.Resource)
	if err != nil {
		return err
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

// access prints what a user sees and may do.
func (c *rightsCommand) access(s *session, cl *cli.Manager, user int64) error {
	if user == 0 {
		return usageError{errors.New("name a resource, or a user with --user")}
	}
	a, err := cl.UserAccess(s.ctx, user)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(s.stdout).Encode(a)
	}
	switch {
	case a.Administrator:
		fmt.Fprintf(s.stdout, "%s: administrator, sees and changes everything\n", c.User)
	case len(a.Places) == 0:
		fmt.Fprintf(s.stdout, "%s: no access rights\n", c.User)
	default:
		fmt.Fprintf(s.stdout, "%s: access rights at %s\n", c.User, places(len(a.Places)))
	}
	for _, p := range a.Places {
		at := "a resource that is not visible to you"
		if p.Default {
			at = "everything else"
		} else if p.Resource != nil {
			at = p.Resource.Type + " " + p.Resource.Label
		}
		fmt.Fprintf(s.stdout, "  %s: %s; below it %s%s\n", at, p.AccessLevel, p.LevelBelow, conditions(p.Effective))
	}
	var visible, changeable []string
	for _, one := range a.Collections {
		if one.Visible != "NONE" {
			visible = append(visible, one.Collection)
		}
		if one.Changeable {
			changeable = append(changeable, one.Collection)
		}
	}
	fmt.Fprintf(s.stdout, "history: %s, access rights: %s, fleet: %s\n", a.HistoryPrivilege, a.SecurityPrivilege, a.Fleet)
	if !a.Administrator {
		fmt.Fprintf(s.stdout, "visible: %s\nchangeable: %s\n", strings.Join(visible, " "), strings.Join(changeable, " "))
	}
	return nil
}

// conditions describes the exceptions, approvals and deployments of rights.
func conditions(e client.Effective) (text string) {
	for _, o := range e.AccessOverrides {
		text += "; " + o.ResourceType + " " + o.AccessLevel
	}
	switch e.WorkflowLevel {
	case "RECOMMEND":
		text += "; changes require approval"
	case "APPROVE":
		text += "; approves requests of others"
	}
	if e.DeploymentsAllowed {
		text += "; deploys servers"
	}
	return text
}

// places returns a number of places with its noun.
func places(n int) string {
	if n == 1 {
		return "1 place"
	}
	return fmt.Sprintf("%d places", n)
}
