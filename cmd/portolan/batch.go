package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"text/tabwriter"

	"portolan/client"
	"portolan/internal/base/plural"
)

type batchCommand struct {
	managerFlags
	DryRun  bool   `help:"Preview the changes without applying them."`
	Comment string `help:"A comment to store in the history." placeholder:"TEXT"`
	Key     string `help:"An Idempotency-Key: requests with the same key within 24 hours are executed once." placeholder:"TEXT"`
	File    string `arg:"" help:"A JSON file with the body of POST /api/v2/batch, or only its list of changes; - reads standard input." type:"existingfile"`
}

// Run executes all changes of the file in one transaction, or none.
func (c *batchCommand) Run(s *session) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	read := func() ([]byte, error) { return os.ReadFile(c.File) }
	if c.File == "-" {
		read = func() ([]byte, error) { return io.ReadAll(os.Stdin) }
	}
	text, err := read()
	if err != nil {
		return err
	}
	changes, sent, err := readChanges(text)
	if err != nil {
		return usageError{fmt.Errorf("%s: %w", c.File, err)}
	}
	answer, err := cl.BatchJSON(s.ctx, changes, client.BatchOptions{DryRun: c.DryRun, Comment: c.Comment, Key: c.Key})
	var refused *client.Error
	if errors.As(err, &refused) && refused.Status < http.StatusInternalServerError {
		refused.Message = strings.ReplaceAll(refused.Message, "; changes[", "\n  changes[") // one per line
		return fmt.Errorf("nothing was changed: %w", refused)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(s.stdout).Encode(answer)
	}
	w := tabwriter.NewWriter(s.stdout, 0, 4, 2, ' ', 0)
	for i, one := range answer.Results {
		fmt.Fprintf(w, "changes[%d]\t%d\t%s %s\t%s\n", i, one.Status, sent[i].Method, sent[i].Path, one.Location)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if c.DryRun {
		if answer.AtLeast {
			_, err = fmt.Fprintf(s.stdout, "dry run, incomplete because it takes too long: at least %s would be created, %d changed, %d deleted; "+
				"the result of the other changes is unknown\n", plural.Count(answer.Created, "resource"), answer.Changed, answer.Deleted)
			return err
		}
		_, err = fmt.Fprintf(s.stdout, "dry run: %s would be created, %d changed, %d deleted\n", plural.Count(answer.Created, "resource"),
			answer.Changed, answer.Deleted)
		return err
	}
	if answer.Transaction == 0 {
		_, err = fmt.Fprintln(s.stdout, "no changes")
		return err
	}
	_, err = fmt.Fprintf(s.stdout, "%s applied, transaction %d\n", plural.Count(answer.Count, "change"), answer.Transaction)
	return err
}

// sentChange is the part of a change that is printed.
type sentChange struct{ Method, Path string }

// readChanges reads the changes of a file, which may be a plain list. The manager receives them unchanged.
func readChanges(text []byte) (changes json.RawMessage, sent []sentChange, err error) {
	changes = text
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		var whole struct{ Changes json.RawMessage }
		if err := json.Unmarshal(text, &whole); err != nil {
			return nil, nil, err
		}
		if changes = whole.Changes; changes == nil {
			return nil, nil, errors.New("has no changes")
		}
	}
	err = json.Unmarshal(changes, &sent)
	return changes, sent, err
}
