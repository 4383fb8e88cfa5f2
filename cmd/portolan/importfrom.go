package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"portolan/client"
	"portolan/internal/base/naming"
	"portolan/internal/base/plural"
	"portolan/internal/client/cli"
	"portolan/internal/client/convert"
)

// sourceFlags are the flags of imports from other programs.
type sourceFlags struct {
	planFlags
	Strict bool   `help:"Import nothing if a row would be skipped."`
	Tag    string `help:"A tag to add to each resource, such as tags/import." placeholder:"PATH" env:"-"`
	Prune  bool   `help:"Delete resources that have the tag and are no longer in the source. They are listed first." env:"-"`
	Write  string `help:"Write the converted resources to this file, for portolan apply, without changing anything; - is standard output." placeholder:"FILE" env:"-"`

	// source names the source.
	source string
}

// importDocument applies a document, or writes it to a file. It creates blocks for networks without a block. If generic is true, names that
// no HostRecord can have become GenericRecords. It returns a skippedError if rows were skipped.
func (f *sourceFlags) importDocument(s *session, d *convert.Document, generic bool) error {
	if f.Prune && f.Tag == "" {
		return usageError{errors.New("--prune requires --tag: it deletes resources that have the tag and are not in the source")}
	}
	var m *cli.Manager
	var known, networks convert.Existing
	var shared string
	a := client.Apply{Tag: f.Tag, Prune: f.Prune, Skip: !f.Strict}
	var err error
	if f.Write == "" {
		if m, err = f.manager(); err != nil {
			return err
		}
		if err := oneConfiguration(s.ctx, m); err != nil {
			return err
		}
		if known, err = rangesOf(s.ctx, m, "blocks"); err != nil {
			return err
		}
		if networks, err = rangesOf(s.ctx, m, "networks"); err != nil {
			return err
		}
		if shared, err = sharedNetworkGroup(s.ctx, m, d); err != nil {
			return err
		}
		d.SkipOutside(networks)
		a.Into, f.Configuration = parentOrDefault(m, ""), m.Configuration
	} else if f.Configuration != "" {
		a.Into = "configurations/" + f.Configuration
	}
	d.Share(f.Configuration, shared)
	d.Settle(networks, generic)
	for _, note := range d.Notes() {
		fmt.Fprintln(s.stderr, "left out:", note)
	}
	for _, one := range d.Skipped {
		fmt.Fprintln(s.stderr, "skipped:", one)
	}
	if f.Strict && len(d.Skipped) > 0 {
		return f.strictError(rowsOf(d.Skipped))
	}
	d.Surround(slices.Collect(maps.Keys(known)))
	if m != nil && d.HasDerivedZones() {
		zones, err := zonesOf(s.ctx, m)
		if err != nil {
			return err
		}
		d.RemoveDerivedZones(zones)
	}
	var rows []string
	a.Prune = f.Prune && d.CountWrong() == 0
	if a.Resources, rows, err = d.JSON(a.Prune); err != nil {
		return err
	}
	if len(a.Resources) == 0 {
		return errors.New("contains nothing to import")
	}
	if f.Prune && !a.Prune {
		fmt.Fprintln(s.stderr, rowsNotPruned)
	}
	if f.Write == "" {
		if f.Header == nil { // unknown targets of records become external hosts
			f.Header = map[string]string{"x-bcn-link-to-external-host": "true"}
		}
		f.rows = rows
		if f.Comment == "" {
			f.Comment = "import of " + strings.Map(func(c rune) rune {
				if c < ' ' || c > '~' { // not allowed in a header
					return '?'
				}
				return c
			}, f.source)
		}
		if len(a.Resources) > maxApply && d.HasOptions() {
			err = fmt.Errorf("the source has %d resources and options, more than %d: write them with --write FILE and use portolan apply -f FILE",
				len(a.Resources), maxApply)
		} else if len(a.Resources) > maxApply {
			err = f.importInBackground(s, m, d, a, rows)
		} else if err = f.checkStrict(s, m, a); err != nil {
			return err
		} else if err = f.applyPlan(s, m, a); err == nil && !a.Prune {
			err = f.differences(s, m, d, a)
		}
		if err == nil {
			for _, one := range listUnnamed(f.applied, a.Resources) {
				fmt.Fprintln(s.stderr, "note:", one)
			}
		}
		if n := rowsOf(d.Skipped) + f.refused; err == nil && n > 0 {
			f.summarize(s, d)
			return skippedError{n}
		}
		return err
	}
	a.Skip = false // an option of the request, not a part of the document
	text, err := cli.WriteDocument(a, cli.YAML)
	if err == nil && f.Write == "-" {
		_, err = s.stdout.Write(text)
	} else if err == nil {
		err = os.WriteFile(f.Write, text, 0o600)
	}
	if err == nil && len(d.Skipped) > 0 {
		return skippedError{rowsOf(d.Skipped)}
	}
	return err
}

// strictError returns the error of a strict import that would skip n rows.
func (f *sourceFlags) strictError(n int) error {
	if f.DryRun {
		return fmt.Errorf("nothing would be imported: %s would be skipped", plural.Count(n, "row"))
	}
	return fmt.Errorf("nothing was imported: %s would be skipped", plural.Count(n, "row"))
}

// rowsOf returns the number of skipped rows. Several parts of one row may have been skipped.
func rowsOf(all []convert.Skipped) int {
	rows := map[string]bool{}
	for _, one := range all {
		rows[one.Row] = true
	}
	return len(rows)
}

// checkStrict returns an error if the manager would reject rows of a strict import. It prints these rows.
func (f *sourceFlags) checkStrict(s *session, m *cli.Manager, a client.Apply) error {
	if !f.Strict {
		return nil
	}
	o := f.options()
	o.DryRun, a.Skip = true, true
	plan, err := m.Apply(s.ctx, a, o)
	if err != nil || len(plan.Refused) == 0 {
		return err
	}
	f.report(s, a, plan)
	f.reasons.print(s)
	return f.strictError(f.refused)
}

// oneConfiguration selects the only configuration. It returns an error if there are several and none is named, or if the named one does not
// exist.
func oneConfiguration(ctx context.Context, m *cli.Manager) error {
	var names []string
	if err := m.All(ctx, "configurations", client.Query{Limit: 1000, Fields: "name"}, func(raw json.RawMessage) error {
		var one struct{ Name string }
		err := json.Unmarshal(raw, &one)
		names = append(names, one.Name)
		return err
	}); err != nil {
		return err
	}
	switch {
	case m.Configuration != "" && !slices.Contains(names, m.Configuration):
		return usageError{fmt.Errorf("--configuration: %q does not exist; existing configurations: %s",
			m.Configuration, strings.Join(names, ", "))}
	case m.Configuration == "" && len(names) != 1:
		return usageError{fmt.Errorf("--configuration is required: one of %s", strings.Join(names, ", "))}
	case m.Configuration == "":
		m.Configuration = names[0]
	}
	return nil
}

// sharedNetworkGroup returns the tag group for shared networks of the selected configuration, if the document has some. It is empty if the
// configuration has none.
func sharedNetworkGroup(ctx context.Context, m *cli.Manager, d *convert.Document) (group string, err error) {
	if !d.Shares() {
		return "", nil
	}
	at, err := m.Find(ctx, "configurations/"+m.Configuration)
	if err != nil {
		return "", err
	}
	var one struct{ SharedNetworkTagGroup struct{ Name string } }
	err = m.Do(ctx, http.MethodGet, client.AddressPath+at.String(), nil, &one)
	return one.SharedNetworkTagGroup.Name, err
}

// zonesOf returns the zones of the selected view, and whether each of them is deployed.
func zonesOf(ctx context.Context, m *cli.Manager) (all map[string]bool, err error) {
	all = map[string]bool{}
	collection := m.API.Collection("zones")
	return all, m.All(ctx, "zones", client.Query{Limit: 1000, Fields: "absoluteName,deploymentEnabled",
		Filter: m.ScopeFilters(collection, nil)},
		func(raw json.RawMessage) error {
			var one struct {
				AbsoluteName      string
				DeploymentEnabled bool
			}
			err := json.Unmarshal(raw, &one)
			all[naming.Key(one.AbsoluteName)] = one.DeploymentEnabled
			return err
		})
}

// rangesOf returns the ranges of all blocks or networks of the selected configuration, networks with their gateways.
func rangesOf(ctx context.Context, m *cli.Manager, collection string) (all convert.Existing, err error) {
	fields := "id,range"
	if collection == "networks" {
		fields += ",gateway"
	}
	all = convert.Existing{}
	err = m.All(ctx, collection, client.Query{Limit: 1000, Fields: fields,
		Filter: m.ScopeFilters(m.API.Collection(collection), nil)},
		func(raw json.RawMessage) error {
			var one struct{ Range, Gateway string }
			if err := json.Unmarshal(raw, &one); err != nil {
				return err
			}
			if p, err := netip.ParsePrefix(one.Range); err == nil { // the range of a block is not always a prefix
				all[p] = one.Gateway
			}
			return nil
		})
	return all, err
}

// maxFrom is the maximum size of a source file, in bytes. The file is read into memory.
const maxFrom = 256 << 20

// readFile reads a file, or standard input if the path is -.
func readFile(path string) (raw []byte, err error) {
	f := os.Stdin
	if path != "-" {
		f, err = os.Open(path) //nolint:gosec // the user names the file
		if errors.Is(err, fs.ErrNotExist) {
			return nil, usageError{fmt.Errorf("%s: the file does not exist", path)}
		}
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }() // only read
	}
	raw, err = io.ReadAll(io.LimitReader(f, maxFrom+1))
	if bytes.HasPrefix(raw, []byte("\xff\xfe")) || bytes.HasPrefix(raw, []byte("\xfe\xff")) {
		return nil, usageError{fmt.Errorf("%s: it is UTF-16: save it as UTF-8", path)}
	}
	if err == nil && len(raw) > maxFrom {
		err = usageError{fmt.Errorf("%s: is larger than the maximum of %d MiB", path, maxFrom>>20)}
	}
	return raw, err
}

// importFile reads a file with a reader and imports the result.
func (f *sourceFlags) importFile(s *session, path string, read func(raw []byte) (*convert.Document, error)) error {
	if f.source = filepath.Base(path); path == "-" {
		f.source = "standard input"
	}
	raw, err := readFile(path)
	if err != nil {
		return err
	}
	d, err := read(raw)
	if err != nil {
		return notImported(path, err)
	}
	return f.importDocument(s, d, true)
}

// notImported wraps the error of a source. A missing choice is a usage error.
func notImported(path string, err error) error {
	var choice convert.ChoiceError
	if err = fmt.Errorf("%s: nothing was imported: %w", path, err); errors.As(err, &choice) {
		return usageError{err}
	}
	return err
}

type importInfoblox struct {
	sourceFlags
	WithoutNames    bool   `help:"Omit DNS records. Without this flag and --view they are skipped."`
	FromView        string `help:"The Infoblox view to read names from. Required if the file has several." placeholder:"NAME"`
	FromNetworkView string `help:"The Infoblox network view to read. Required if the file has several." placeholder:"NAME"`
	File            string `arg:"" help:"The file; - reads standard input."`
}

// Help returns examples.
func (importInfoblox) Help() string {
	return "Names are imported into the view of --view. Without it they are skipped.\n\nExamples:\n\n" +
		"  portolan import infoblox export.csv --configuration main --view internal --dry-run"
}

// Run imports an export of Infoblox.
func (c *importInfoblox) Run(s *session) error {
	if c.WithoutNames && (c.View != "" || c.Prune) {
		return usageError{errors.New("--without-names cannot be combined with --view, which imports names, or with --prune, which would delete " +
			"previously imported names")}
	}
	return c.importFile(s, c.File, func(raw []byte) (*convert.Document, error) {
		return convert.Infoblox(raw, convert.InfobloxChoice{View: c.View, WithoutNames: c.WithoutNames, FromView: c.FromView,
			FromNetworkView: c.FromNetworkView})
	})
}

type importPhpipam struct {
	sourceFlags
	VRF   string   `help:"The VRF to read. Required if the files have several. global selects rows without a VRF." name:"vrf" placeholder:"NAME"`
	Files []string `arg:"" help:"The files: exports of subnets, of addresses, or of both."`
}

// Help returns examples.
func (importPhpipam) Help() string {
	return "Examples:\n\n  portolan import phpipam subnets.csv addresses.csv --configuration main --dry-run"
}

// Run imports exports of phpIPAM.
func (c *importPhpipam) Run(s *session) error {
	var files [][]byte
	for _, path := range c.Files {
		raw, err := readFile(path)
		if err != nil {
			return err
		}
		files = append(files, raw)
	}
	d, err := convert.Phpipam(c.VRF, files...)
	if err != nil {
		return notImported(strings.Join(c.Files, ", "), err)
	}
	c.source = filepath.Base(c.Files[0])
	return c.importDocument(s, d, false)
}

type importNetbox struct {
	sourceFlags
	From      string `help:"The URL of NetBox." required:"" placeholder:"URL"`
	FromToken string `help:"A NetBox token with read access. Prefer PORTOLAN_FROM_TOKEN." required:"" placeholder:"TOKEN"`
	VRF       string `help:"The VRF to read. Required if there are several. global selects objects without a VRF." name:"vrf" placeholder:"NAME"`
}

// Help returns examples.
func (importNetbox) Help() string {
	return "Names of addresses (dns_name) become host records in the view of --view. Without it they are omitted.\n\nExamples:\n\n" +
		"  portolan import netbox --from https://netbox.example.net --configuration main --view internal --dry-run"
}

// Run imports data from NetBox's API.
func (c *importNetbox) Run(s *session) error {
	if c.Prune && c.View == "" {
		return usageError{errors.New("--prune requires --view, because without it previously imported names would be deleted")}
	}
	at, err := url.Parse(strings.TrimRight(c.From, "/"))
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return usageError{errors.New("--from must be the URL of a NetBox")}
	}
	lists := make([][]json.RawMessage, len(convert.NetboxPaths))
	var unreadable []string
	count, n := s.rowCounter("read from NetBox"), int64(0)
	for i, path := range convert.NetboxPaths {
		next, asked := at.String()+path+"?limit=500", map[string]bool{}
		for next != "" {
			if asked[next] {
				return fmt.Errorf("read NetBox list: the next page %q was already read", next)
			}
			asked[next] = true
			page, err := c.page(s.ctx, at.Scheme+"://"+at.Host, next)
			if errors.Is(err, errNotPermitted) && i >= convert.NetboxOptional && !c.Prune { // pruning would delete earlier imports
				unreadable = append(unreadable, path)
				break
			}
			if err != nil {
				return fmt.Errorf("query NetBox: %w", err)
			}
			lists[i], next = append(lists[i], page.Results...), page.Next
			n += int64(len(page.Results))
			count(n)
		}
	}
	c.source = "netbox"
	d, err := convert.Netbox(lists, c.VRF, c.View)
	if err != nil {
		return notImported(c.From, err)
	}
	for _, path := range unreadable {
		d.Skipped = append(d.Skipped, convert.Skipped{Row: path, Reason: "the token may not read this list: permit it in NetBox"})
	}
	return c.importDocument(s, d, false)
}

// errNotPermitted is the cause of an error if the token may not read a list.
var errNotPermitted = errors.New("not permitted")

type netboxPage struct {
	Next    string            `json:"next"`
	Results []json.RawMessage `json:"results"`
}

// page reads a page of a list. The token is sent to the given host only.
func (c *importNetbox) page(ctx context.Context, host, at string) (p netboxPage, err error) {
	u, err := url.Parse(at)
	if err != nil || u.Scheme+"://"+u.Host != host {
		return p, fmt.Errorf("the next page of the list, %q, is not on %s", at, host)
	}
	rq, err := http.NewRequestWithContext(ctx, http.MethodGet, at, http.NoBody)
	if err != nil {
		return p, err
	}
	rq.Header.Set("Authorization", "Token "+c.FromToken)
	rq.Header.Set("Accept", "application/json")
	rs, err := http.DefaultClient.Do(rq)
	if err != nil {
		return p, err
	}
	defer func() { _ = rs.Body.Close() }()
	const maxPage = 64 << 20
	raw, err := io.ReadAll(io.LimitReader(rs.Body, maxPage))
	if err != nil {
		return p, err
	}
	if rs.StatusCode != http.StatusOK {
		err := fmt.Errorf("%s returned %s: %.200s", u.Path, rs.Status, raw)
		if rs.StatusCode == http.StatusForbidden {
			err = fmt.Errorf("%w: %w", errNotPermitted, err)
		}
		return p, err
	}
	return p, json.Unmarshal(raw, &p)
}
