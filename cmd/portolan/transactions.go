package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"portolan/client"
	"portolan/internal/client/cli"
)

type historyCommand struct {
	scopeFlags
	outputFlag
	User  string        `help:"Show only transactions of this user." placeholder:"NAME" env:"-"`
	Since time.Duration `help:"Show only transactions of this period, such as 24h." placeholder:"DURATION" env:"-"`
	Limit int64         `help:"The maximum number to print, latest first." default:"20"`
	What  string        `arg:"" optional:"" help:"A resource, such as networks/10.1.0.0/24, to print its changes, or a transaction number, to print its changes with values." complete:"path"`
}

// Help returns examples.
func (historyCommand) Help() string {
	return `Examples:

  portolan history                                the last changes
  portolan history networks/10.1.0.0/24           those of a network
  portolan history --user alice --since 24h
  portolan history 4711                           what transaction 4711 changed, value by value`
}

// Run prints changes, latest first.
func (c *historyCommand) Run(s *session) error {
	m, err := c.manager()
	if err != nil {
		return err
	}
	if number, err := strconv.ParseInt(c.What, 10, 64); err == nil {
		return c.printTransaction(s, m, number)
	}
	path := "transactions"
	if c.What != "" {
		at, err := m.FindOne(s.ctx, c.What)
		if err != nil {
			return err
		}
		path = at.String() + "/transactions"
	}
	var filters []string
	if c.User != "" {
		filters = append(filters, "user.name:"+cli.Quoted(c.User))
	}
	if c.Since > 0 {
		filters = append(filters, "creationDateTime:ge("+cli.Quoted(time.Now().Add(-c.Since).UTC().Format(time.RFC3339))+")")
	}
	columns := []string{"id", "creationDateTime", "principal", "operation", "description", "comment"}
	q := client.Query{Limit: c.Limit, OrderBy: "desc(id)", Filter: strings.Join(filters, " and ")}
	// The order is by time, because each manager of a PostgreSQL database numbers transactions on its own. The list of all transactions has an
	// index for it, and one resource has few transactions. A user may have many, so they are sorted by ID.
	if c.User == "" {
		q.OrderBy = "desc(creationDateTime)"
	}
	page, err := m.List(s.ctx, path, q)
	if err != nil {
		return err
	}
	out := cli.NewOutput(s.stdout, c.Output, "transactions", columns)
	for _, raw := range page.Data {
		if err := out.Resource(raw); err != nil {
			return err
		}
	}
	_, err = out.End()
	return err
}

// printTransaction prints the changes of a transaction.
func (c *historyCommand) printTransaction(s *session, m *cli.Manager, number int64) error {
	path := fmt.Sprint("transactions/", number)
	var raw json.RawMessage
	if err := m.Get(s.ctx, path, &raw); err != nil {
		return err
	}
	if c.Output == cli.Table {
		if err := cli.NewOutput(s.stdout, cli.Table, "transactions", nil).WriteOne(raw); err != nil {
			return err
		}
	}
	var changes []client.Change
	var all []json.RawMessage
	if err := m.All(s.ctx, path+"/operations", client.Query{Limit: 1000}, func(raw json.RawMessage) error {
		var one client.Change
		if err := json.Unmarshal(raw, &one); err != nil {
			return err
		}
		changes, all = append(changes, one), append(all, raw)
		return nil
	}); err != nil {
		return err
	}
	if c.Output == cli.Table {
		return m.WriteChanges(s.ctx, s.stdout, changes)
	}
	out := cli.NewOutput(s.stdout, c.Output, "operations", []string{"id", "operationType", "resourceType", "resourceId"})
	for _, raw := range all {
		if err := out.Resource(raw); err != nil {
			return err
		}
	}
	_, err := out.End()
	return err
}

type undoCommand struct {
	scopeFlags
	changeFlags
	jsonFlag
	Force       bool    `help:"Undo also resources that were changed again afterwards, as far as possible."`
	Transaction []int64 `arg:"" help:"The transaction numbers from portolan history, in the order to undo them: the last one first."`
}

// Help returns examples.
func (undoCommand) Help() string {
	return `Examples:

  portolan undo 4711 --dry-run
  portolan undo 4711
  portolan undo 4713 4712 4711                    a deletion in steps, the last one first`
}

// Run undoes transactions, one by one.
func (c *undoCommand) Run(s *session) error {
	m, err := c.manager()
	if err != nil {
		return err
	}
	o := c.options()
	if c.Force {
		if o.Headers == nil {
			o.Headers = map[string]string{}
		}
		o.Headers["x-bcn-force-undo"] = "true"
	}
	if c.DryRun && len(c.Transaction) > 1 {
		return usageError{errors.New("--dry-run accepts one transaction, because each undo depends on the previous one")}
	}
	for _, number := range c.Transaction {
		if err := c.undo(s, m, number, o); err != nil {
			return err
		}
	}
	return nil
}

// undo undoes a transaction, or tries to.
func (c *undoCommand) undo(s *session, m *cli.Manager, number int64, o client.ChangeOptions) error {
	body := map[string]any{"transactionType": "UNDO", "transactionId": number}
	if c.DryRun {
		t, err := m.Try(s.ctx, http.MethodPost, "transactions", body, o)
		if err != nil {
			return err
		}
		if c.JSON {
			return c.print(s, t)
		}
		return m.WriteTally(s.ctx, s.stdout, t)
	}
	raw, err := m.Make(s.ctx, http.MethodPost, "transactions", body, o)
	if err != nil {
		return err
	}
	if c.JSON {
		return c.print(s, raw)
	}
	var made client.Head
	if err := json.Unmarshal(raw, &made); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.stdout, "undid transaction %d with transaction %d\n", number, made.ID)
	return err
}
