package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"portolan/client"
	"portolan/internal/client/cli"
)

// outputFlag selects the output format.
type outputFlag struct {
	Output string `help:"The output format: ${enum}." short:"o" enum:"table,json,yaml,csv,name" default:"table"`
}

type listCommand struct {
	scopeFlags
	outputFlag
	Filter  []string `help:"A filter: an API filter, FIELD=VALUE, or a part of the name. Repeatable; resources must match all filters." placeholder:"FILTER" env:"-" sep:"none"`
	OrderBy string   `help:"The order, such as name, or desc(id). Deployments, events and transactions begin with the newest." placeholder:"FIELDS" env:"-"`
	Fields  string   `help:"The fields to print, such as id,name,location.code." placeholder:"FIELDS" env:"-"`
	Limit   int64    `help:"The maximum number to print; 0 for all." default:"1000"`
	Total   bool     `help:"Print only the number of resources." env:"-"`
	Path    string   `arg:"" optional:"" help:"The collection, such as networks, or networks/10.1.0.0/24/addresses. Without it, the command lists the collections." complete:"path"`
}

// Help returns examples.
func (listCommand) Help() string {
	return `Examples:

  portolan list networks --filter office
  portolan list networks --filter "range:within('10.0.0.0/8')" -o csv
  portolan list networks/10.1.0.0/24/addresses --filter state=STATIC --fields address,name,macAddress.address
  portolan list zones/example.net/resourceRecords -o json`
}

// Run lists resources.
func (c *listCommand) Run(s *session) error {
	m, err := c.manager()
	if err != nil {
		return err
	}
	if c.Path == "" {
		_, err := fmt.Fprintln(s.stdout, strings.Join(cli.CollectionNames(m.API), "\n"))
		return err
	}
	at, err := m.Find(s.ctx, c.Path)
	if err != nil {
		return err
	}
	if !at.List() || at.Report != "" {
		return usageError{fmt.Errorf("%s is a single resource: use portolan get", c.Path)}
	}
	return c.list(s, m, at)
}

// setting matches FIELD=VALUE. part matches a part of a name, which is not a filter of the API.
var setting, part = regexp.MustCompile(`^([A-Za-z][\w.]*)=(.*)$`), regexp.MustCompile(`^[^:()'"]+$`)

// filters returns the filter of the API for the arguments.
func (c *listCommand) filters(m *cli.Manager, at cli.Path) string {
	var all []string
	for _, text := range c.Filter {
		switch found := setting.FindStringSubmatch(text); {
		case found != nil:
			all = append(all, cli.Condition(m.API, at.Types(m.API), found[1], unquote(found[2])))
		case part.MatchString(text):
			all = append(all, "name:contains("+cli.Quoted(text)+")")
		default:
			all = append(all, text)
		}
	}
	if at.ID == 0 {
		return m.ScopeFilters(at.Collection, all)
	}
	return strings.Join(all, " and ")
}

// unquote returns a value without the quotes around it, which filters of the API require.
func unquote(value string) string {
	if n := len(value) - 1; n > 0 && (value[0] == '\'' || value[0] == '"') && value[n] == value[0] {
		return value[1:n]
	}
	return value
}

// newestFirst are the collections that are listed from the newest resource on, unless --order-by is given.
var newestFirst = []string{"deployments", "events", "transactions"}

// list prints the resources at a path.
func (c *listCommand) list(s *session, m *cli.Manager, at cli.Path) error {
	q := client.Query{Filter: c.filters(m, at), OrderBy: c.OrderBy, Fields: c.Fields}
	if q.OrderBy == "" && slices.Contains(newestFirst, at.Items(m.API).Name) {
		q.OrderBy = "desc(id)"
	}
	if c.Total {
		q.Limit, q.Total, q.Fields = 1, true, "id"
		page, err := m.List(s.ctx, at.String(), q)
		if err == nil && page.TotalCount != nil {
			_, err = fmt.Fprintln(s.stdout, *page.TotalCount)
		}
		return err
	}
	columns := cli.Columns(at.Items(m.API), at.Types(m.API))
	if c.Fields != "" {
		columns = strings.Split(c.Fields, ",")
	}
	switch c.Output {
	case cli.Table, cli.CSV:
		q.Fields = strings.Join(columns, ",")
	case cli.Name:
		q.Fields = "id,type,_links"
	}
	out := cli.NewOutput(s.stdout, c.Output, at.Collection.Name, columns)
	q.Limit = 1000
	if c.Limit > 0 {
		q.Limit = min(q.Limit, c.Limit)
	}
	shown, more := int64(0), false
	err := m.All(s.ctx, at.String(), q, func(raw json.RawMessage) error {
		if c.Limit > 0 && shown == c.Limit {
			more = true
			return errEnough
		}
		shown++
		return out.Resource(raw)
	})
	if err != nil && err != errEnough { //nolint:errorlint // compared directly, because All returns it unwrapped
		return err
	}
	if _, err := out.End(); err != nil {
		return err
	}
	switch {
	case more && c.Limit == defaultLimit: // the default limit
		_, err = fmt.Fprintf(s.stderr, "more than %d resources match: --limit 0 prints all\n", shown)
	case shown == 0:
		if err = m.CheckScopes(s.ctx); err == nil && c.Output == cli.Table {
			_, err = fmt.Fprintln(s.stderr, "no resources found"+m.ScopeWords(at.Collection))
		}
	default:
		err = nil
	}
	return err
}

// defaultLimit is the number of resources that are printed without --limit.
const defaultLimit = 1000

// errEnough ends a list.
var errEnough = fmt.Errorf("enough")

// writeContent writes the content of a resource.
func writeContent(s *session, m *cli.Manager, path string) error {
	body, err := m.Content(s.ctx, path)
	if err != nil {
		return err
	}
	_, err = io.Copy(s.stdout, body)
	return errors.Join(err, body.Close())
}

type getCommand struct {
	scopeFlags
	outputFlag
	Fields  string   `help:"The fields to print, such as id,name,usage." placeholder:"FIELDS" env:"-"`
	Content bool     `help:"Write only the content of the resource: a file, a backup or a log." env:"-"`
	Path    []string `arg:"" help:"The resources, such as networks/10.1.0.0/24, zones/example.net, or networks/100717." complete:"path"`
}

// Help returns examples.
func (getCommand) Help() string {
	return `Examples:

  portolan get networks/10.1.0.0/24
  portolan get zones/example.net -o yaml
  portolan get records/www.example.net --fields absoluteName,ttl
  portolan get zones/example.net/serving
  portolan get logs/manager.log --content`
}

// Run prints resources.
func (c *getCommand) Run(s *session) error {
	m, err := c.manager()
	if err != nil {
		return err
	}
	for i, text := range c.Path {
		at, err := m.Find(s.ctx, text)
		if err != nil {
			return err
		}
		if c.Content && (at.List() || at.Report != "" || c.Fields != "") {
			return usageError{fmt.Errorf("%s: --content requires one resource and cannot be combined with --fields", text)}
		}
		if c.Content {
			if err := writeContent(s, m, at.String()); err != nil {
				return err
			}
			continue
		}
		if at.List() {
			list := listCommand{scopeFlags: c.scopeFlags, outputFlag: c.outputFlag, Fields: c.Fields, Limit: defaultLimit}
			if err := list.list(s, m, at); err != nil {
				return err
			}
			continue
		}
		path, format := at.String(), c.Output
		switch fields := c.Fields; {
		case at.Report != "" && fields != "":
			return usageError{fmt.Errorf("%s cannot be limited to fields: remove --fields", text)}
		case at.Report != "" && (format == cli.CSV || format == cli.Name):
			return usageError{fmt.Errorf("%s is not a resource: use -o json or -o yaml", text)}
		case at.Report != "":
			if format == cli.Table { // a report contains lists and objects
				format = cli.YAML
			}
		case fields != "":
			path += "?fields=" + url.QueryEscape(fields)
		default:
			if fields = cli.Embedded(at.Collection); fields != "" {
				path += "?fields=" + fields
			}
		}
		var raw json.RawMessage
		if err := m.Get(s.ctx, path, &raw); err != nil {
			return err
		}
		separator := map[string]string{cli.Table: "\n", cli.YAML: "---\n"}[format]
		if i > 0 && separator != "" {
			if _, err := fmt.Fprint(s.stdout, separator); err != nil {
				return err
			}
		}
		columns := cli.Columns(at.Items(m.API), at.Types(m.API))
		if c.Fields != "" {
			columns = strings.Split(c.Fields, ",")
		}
		if err := cli.NewOutput(s.stdout, format, at.Collection.Name, columns).WriteOne(raw); err != nil {
			return err
		}
	}
	return nil
}
