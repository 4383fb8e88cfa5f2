package main

import (
	"encoding/json"
	"fmt"
	"os"
	"text/tabwriter"

	"portolan/client"
)

type batchCommand struct {
	managerFlags
	DryRun  bool   `help:"Only try it: nothing is changed."`
	Comment string `help:"A remark that the history keeps with it." placeholder:"TEXT"`
	File    string `arg:"" help:"A JSON file with the changes, as POST /api/v2/batch takes them, or the list alone." type:"existingfile"`
}

// Run makes all changes of the file, or none.
func (c *batchCommand) Run(s *session) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	var whole struct{ Changes []client.BatchChange }
	if err := json.Unmarshal(text, &whole); err != nil || whole.Changes == nil {
		if err := json.Unmarshal(text, &whole.Changes); err != nil {
			return usageError{fmt.Errorf("%s: %w", c.File, err)}
		}
	}
	answer, err := cl.Batch(s.ctx, whole.Changes, client.BatchOptions{DryRun: c.DryRun, Comment: c.Comment})
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	if c.JSON {
		return json.NewEncoder(s.stdout).Encode(answer)
	}
	w := tabwriter.NewWriter(s.stdout, 0, 4, 2, ' ', 0)
	for i, one := range answer.Results {
		fmt.Fprintf(w, "changes[%d]\t%d\t%s %s\t%s\n", i, one.Status, whole.Changes[i].Method, whole.Changes[i].Path, one.Location)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if c.DryRun {
		_, err = fmt.Fprintf(s.stdout, "only tried: %d resources would be made, %d changed, %d deleted\n", answer.Created, answer.Changed,
			answer.Deleted)
		return err
	}
	_, err = fmt.Fprintf(s.stdout, "%d changes made, transaction %d\n", answer.Count, answer.Transaction)
	return err
}
