package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"portolan/client"
)

type deleteCommand struct {
	scopeFlags
	jsonFlag
	DryRun   bool   `short:"n" help:"Only say how much it is: nothing is deleted. What refers to much of it, such as records of its addresses, is not counted."`
	AtMost   int    `help:"How many resources go at once, up to 10000; others get their turn in between." default:"500" placeholder:"N"`
	Yes      bool   `help:"Do not ask." short:"y" env:"-"`
	Comment  string `help:"A remark that the history keeps with it." placeholder:"TEXT"`
	Resource string `arg:"" complete:"path" help:"The resource, such as blocks/100123 or blocks/10.8.0.0/16, which goes with all that lies below it."`
}

// Help returns examples.
func (deleteCommand) Help() string {
	return `Examples:

  portolan delete networks/10.1.0.0/24 --dry-run
  portolan delete blocks/10.8.0.0/16 --comment "site closed"`
}

// Run deletes a resource in steps.
func (c *deleteCommand) Run(s *session) error {
	if c.AtMost < 1 || c.AtMost > 10_000 {
		return usageError{errors.New("--at-most: must be from 1 to 10000")}
	}
	cl, err := c.manager()
	if err != nil {
		return err
	}
	at, err := cl.FindOne(s.ctx, c.Resource)
	if err != nil {
		return err
	}
	resource := at.String()
	t, err := cl.TryDelete(s.ctx, resource)
	if err != nil {
		return err
	}
	if c.DryRun {
		if c.JSON {
			return json.NewEncoder(s.stdout).Encode(t)
		}
		about := ""
		if t.Estimate {
			about = "about "
		}
		_, err = fmt.Fprintf(s.stdout, "only tried: %s%s would be deleted, %d changed\n", about, resources(t.Deleted), t.Changed)
		return err
	}
	if isInteractive() && !c.Yes {
		fmt.Fprintf(s.stderr, "%s and all below it: about %s. Delete that? [y/N] ", c.Resource, resources(t.Deleted))
		if !confirm() {
			return errors.New("nothing was deleted")
		}
	}
	if c.Comment == "" && t.Deleted > c.AtMost { // each transaction of the deletion refers to the others
		c.Comment = "delete " + c.Resource + " in steps"
	}
	steps, bar := 0, s.bar("rows")
	deleted, err := cl.DeleteInSteps(s.ctx, resource, client.DeleteOptions{AtMost: c.AtMost, Comment: c.Comment,
		Progress: func(deleted int) {
			steps++
			bar.show("deleted", int64(min(deleted, t.Deleted)), int64(t.Deleted))
		}})
	bar.end()
	if err != nil && deleted > 0 {
		return fmt.Errorf("%d resources are deleted, and the same command goes on: %w", deleted, err)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(s.stdout).Encode(map[string]int{"deleted": deleted})
	}
	in := ""
	if steps > 1 {
		in = fmt.Sprintf(", in %d transactions: portolan undo takes each of them back, the last one first", steps)
	}
	_, err = fmt.Fprintf(s.stdout, "%s deleted%s\n", resources(deleted), in)
	return err
}

// resources returns a number of resources as text.
func resources(n int) string {
	if n == 1 {
		return "1 resource"
	}
	return fmt.Sprint(n, " resources")
}
