package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"portolan/client"
	"portolan/internal/base/plural"
)

type deleteCommand struct {
	scopeFlags
	jsonFlag
	DryRun   bool   `short:"n" help:"Print the number of resources without deleting them. The count omits resources that refer to them, such as DNS records of addresses."`
	AtMost   int    `help:"The number of resources per step, up to 10000. Other changes can run between the steps." default:"500" placeholder:"N"`
	Yes      bool   `help:"Do not ask for confirmation." short:"y" env:"-"`
	Comment  string `help:"A comment to store in the history." placeholder:"TEXT"`
	Resource string `arg:"" complete:"path" help:"The resource to delete with everything below it, such as blocks/100123 or blocks/10.8.0.0/16."`
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
		_, err = fmt.Fprintf(s.stdout, "dry run: %s%s would be deleted, %d changed\n", about, plural.Count(t.Deleted, "resource"), t.Changed)
		return err
	}
	if isInteractive() && !c.Yes {
		fmt.Fprintf(s.stderr, "Delete %s and everything below it, about %s? [y/N] ", c.Resource, plural.Count(t.Deleted, "resource"))
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
	bar.finish()
	if err != nil && deleted > 0 {
		return fmt.Errorf("deleted %s; run the same command again to continue: %w", plural.Count(deleted, "resource"), err)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(s.stdout).Encode(map[string]int{"deleted": deleted})
	}
	in := ""
	if steps > 1 {
		in = fmt.Sprintf(", in %d transactions: undo them with portolan undo, the last one first", steps)
	}
	_, err = fmt.Fprintf(s.stdout, "%s deleted%s\n", plural.Count(deleted, "resource"), in)
	return err
}
