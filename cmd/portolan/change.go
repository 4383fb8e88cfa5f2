package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"portolan/client"
	"portolan/internal/client/cli"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// changeOutput are the flags for the output of a change.
type changeOutput struct {
	Output string `help:"The output format: differences (text), json, yaml, or the paths of created resources (name)." short:"o" enum:"text,json,yaml,name" default:"text"`
}

// print prints the result of an apply.
func (c changeOutput) print(s *session, a client.Applied) error {
	switch c.Output {
	case cli.JSON, cli.YAML:
		raw, err := json.Marshal(a)
		if err != nil {
			return err
		}
		return cli.NewOutput(s.stdout, c.Output, "", nil).WriteOne(raw)
	case cli.Name:
		for _, one := range a.Resources {
			if _, err := fmt.Fprintln(s.stdout, strings.TrimPrefix(one.Path, client.AddressPath)); err != nil {
				return err
			}
		}
		return nil
	}
	if err := cli.WriteApplied(s.stdout, a); err != nil {
		return err
	}
	return printSummary(s, a)
}

// printSummary prints the last line of the output.
func printSummary(s *session, a client.Applied) (err error) {
	switch {
	case a.AtLeast:
		_, err = fmt.Fprintf(s.stdout, "dry run, incomplete because it takes too long: at least %s\n", cli.Summary(a))
	case a.DryRun:
		_, err = fmt.Fprintf(s.stdout, "dry run: %s\n", cli.Summary(a))
	case a.Transaction == nil:
		_, err = fmt.Fprintln(s.stdout, "no changes")
	default:
		_, err = fmt.Fprintf(s.stdout, "%s, transaction %d\n", cli.Summary(a), *a.Transaction)
	}
	return err
}

// apply sends resources and prints the result.
func (c changeOutput) apply(s *session, m *cli.Manager, a client.Apply, o client.ChangeOptions) error {
	done, err := send(s, m, a, o)
	if err != nil {
		return err
	}
	return c.print(s, done)
}

// send sends resources. It formats an error message with one line per resource, and without indexes if there is only one resource.
func send(s *session, m *cli.Manager, a client.Apply, o client.ChangeOptions) (client.Applied, error) {
	done, err := m.Apply(s.ctx, a, o)
	var refused *client.Error
	if errors.As(err, &refused) {
		refused.Message = strings.ReplaceAll(refused.Message, "; resources[", "\n  resources[")
		if len(a.Resources) == 1 {
			refused.Message = strings.NewReplacer("resources[0].", "", "resources[0]: ", "").Replace(refused.Message)
		}
		if refused.Code == "MissingRequiredField" && slices.ContainsFunc(refused.Fields, func(f string) bool {
			return f == "configuration" || strings.HasSuffix(f, ".configuration")
		}) {
			refused.Message += ": select one with --configuration NAME"
		}
	}
	return done, err
}

// parentOrDefault returns the path that resources belong below: the path given, or that of the default configuration.
func parentOrDefault(m *cli.Manager, in string) string {
	if in == "" && m.Configuration != "" {
		return "configurations/" + m.Configuration
	}
	return in
}

// withType returns members as a resource of a type, in the default view if the type belongs to a view.
func withType(m *cli.Manager, t *schema.Type, members map[string]json.RawMessage) (json.RawMessage, error) {
	members["type"], _ = json.Marshal(t.Name) // a string can always be encoded
	if by := m.API.CollectionOf(t).PlacedBy; by == "view" && m.View != "" && members[by] == nil {
		members[by], _ = json.Marshal(m.View)
	}
	return json.Marshal(members)
}

type createCommand struct {
	scopeFlags
	changeFlags
	changeOutput
	In      string   `help:"The parent, such as servers/ns1. Not required if the fields determine it." placeholder:"PATH" complete:"path" env:"-"`
	Content string   `help:"A file to upload as the content of the resource, up to 100 MiB: a backup or a file of a TFTP group. Specify the collection by its path." placeholder:"FILE" type:"existingfile" env:"-"`
	Type    string   `arg:"" help:"The type, such as HostRecord, a short name, such as network, or a collection, such as networks/10.1.0.0/24/addresses." complete:"type"`
	Fields  []string `arg:"" optional:"" help:"Fields: FIELD=VALUE. The value of a reference is the name of the resource that it refers to." complete:"field"`
}

// Help returns examples.
func (createCommand) Help() string {
	return `Examples:

  portolan create configuration name=main
  portolan create block range=10.0.0.0/8 name=Harbour
  portolan create network range=10.1.0.0/24 name=office location="NO OSL"
  portolan create address address=10.1.0.10 state=STATIC name=printer macAddress=00:00:5e:00:53:01
  portolan create HostRecord absoluteName=www.example.net addresses=10.1.0.10 --header x-bcn-create-reverse-record=true`
}

// Run creates a resource.
func (c *createCommand) Run(s *session) error {
	m, err := c.manager()
	if err != nil {
		return err
	}
	if strings.Contains(c.Type, "/") || c.Content != "" {
		at, err := m.Find(s.ctx, c.Type)
		if err != nil {
			return err
		}
		if c.Content != "" && at.List() && c.In == "" {
			return c.send(s, m, at)
		}
		if at.Sub == nil || at.Sub.Relation != resource.Children || c.In != "" {
			return usageError{fmt.Errorf("%s: cannot create resources there; specify a type or a subcollection", c.Type)}
		}
		c.In, c.Type = at.String(), at.Types(m.API)[0].Collection
	}
	t, err := cli.TypeFor(m.API, c.Type, c.Fields)
	if err != nil {
		return err
	}
	members, err := cli.Members(t, c.Fields)
	if err != nil {
		return err
	}
	raw, err := withType(m, t, members)
	if err != nil {
		return err
	}
	if c.In != "" { // by ID, because several configurations may contain the same path
		at, err := m.Find(s.ctx, c.In)
		if err != nil {
			return err
		}
		c.In = at.String()
	}
	in := parentOrDefault(m, c.In)
	if m.API.CollectionOf(t).Post && c.In == "" { // outside of all configurations
		in = ""
	}
	return c.apply(s, m, client.Apply{Into: in, Action: "CREATE", Resources: []json.RawMessage{raw}}, c.options())
}

// send creates a resource with the content of a file.
func (c *createCommand) send(s *session, m *cli.Manager, at cli.Path) error {
	if c.DryRun {
		return usageError{errors.New("--dry-run: not supported for resources with content")}
	}
	types := slices.DeleteFunc(at.Types(m.API), func(t *schema.Type) bool {
		return !slices.Contains(m.API.CollectionOf(t).Content.Types, t.Name)
	})
	if len(types) == 0 {
		return usageError{fmt.Errorf("--content: resources of %s have no content", c.Type)}
	}
	t := types[0]
	members, err := cli.Members(t, c.Fields)
	if err != nil {
		return err
	}
	members["type"] = schema.AppendString(nil, t.Name)
	file, err := os.Open(c.Content)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // only read
	var made json.RawMessage
	if err := m.CreateWithContent(s.ctx, at.String(), filepath.Base(c.Content), file, members, c.options(), &made); err != nil {
		return err
	}
	format := c.Output
	if format == "text" {
		format = cli.Table
	}
	return cli.NewOutput(s.stdout, format, t.Collection, cli.Columns(m.API.CollectionOf(t), types)).WriteOne(made)
}

type setCommand struct {
	scopeFlags
	changeFlags
	changeOutput
	Path   string   `arg:"" help:"The resource, such as networks/10.1.0.0/24." complete:"path"`
	Fields []string `arg:"" help:"The fields: FIELD=VALUE; FIELD= clears a value." complete:"field"`
}

// Help returns examples.
func (setCommand) Help() string {
	return `Examples:

  portolan set networks/10.1.0.0/24 name=office location="NO OSL"
  portolan set records/www.example.net ttl=300 --dry-run
  portolan set addresses/10.1.0.10 userDefinedFields.rack=A7 macAddress=`
}

// Run changes fields of a resource.
func (c *setCommand) Run(s *session) error {
	m, err := c.manager()
	if err != nil {
		return err
	}
	at, t, err := typeAt(s, m, c.Path)
	if err != nil {
		return err
	}
	members, err := cli.Members(t, c.Fields)
	if err != nil {
		return err
	}
	members["id"] = json.RawMessage(strconv.FormatInt(at.ID, 10))
	members["type"], _ = json.Marshal(t.Name)
	raw, err := json.Marshal(members)
	if err != nil {
		return err
	}
	return c.apply(s, m, client.Apply{Action: "UPDATE", Resources: []json.RawMessage{raw}}, c.options())
}

// typeAt returns a resource and its type.
func typeAt(s *session, m *cli.Manager, text string) (at cli.Path, t *schema.Type, err error) {
	if at, err = m.FindOne(s.ctx, text); err != nil {
		return at, nil, err
	}
	var one client.Head
	if err := m.Get(s.ctx, at.String()+"?fields=id,type", &one); err != nil {
		return at, nil, err
	}
	if t = m.API.TypeNamed(one.Type); t == nil {
		err = fmt.Errorf("%s has the unknown type %s: this program is older than the manager", text, one.Type)
	}
	return at, t, err
}

// sendAction sends a change of another kind than an apply, or its dry run, and prints the result.
func sendAction(s *session, m *cli.Manager, path string, body any, f changeFlags, as jsonFlag) error {
	if f.DryRun {
		t, err := m.Try(s.ctx, http.MethodPost, path, body, f.options())
		if err != nil {
			return err
		}
		if as.JSON {
			return as.print(s, t)
		}
		return m.WriteTally(s.ctx, s.stdout, t)
	}
	raw, err := m.Make(s.ctx, http.MethodPost, path, body, f.options())
	if err != nil {
		return err
	}
	if as.JSON {
		return as.print(s, raw)
	}
	var made struct{ Transaction client.Head }
	if err := json.Unmarshal(raw, &made); err != nil {
		return err
	}
	var changes []client.Change
	if err := m.All(s.ctx, fmt.Sprintf("transactions/%d/operations", made.Transaction.ID), client.Query{Limit: 1000},
		func(raw json.RawMessage) error {
			var one client.Change
			err := json.Unmarshal(raw, &one)
			changes = append(changes, one)
			return err
		}); err != nil {
		return err
	}
	if err := m.WriteChanges(s.ctx, s.stdout, changes); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.stdout, "done, transaction %d\n", made.Transaction.ID)
	return err
}
