package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"portolan/client"
	"portolan/internal/cli"
)

type importFile struct {
	scopeFlags
	jsonFlag
	Into    string            `help:"What the rows belong below: a collection such as networks/100123/addresses, or a resource in which each finds its place, such as configurations/main." placeholder:"PATH" complete:"path"`
	AtOnce  bool              `help:"Import all rows or none, up to 10,000." xor:"mode"`
	Strict  bool              `help:"Import nothing where a row would be skipped, of up to 10,000 rows: the same as --at-once." xor:"mode"`
	Yes     bool              `help:"Do not ask." short:"y" env:"-"`
	DryRun  bool              `help:"Only try it: nothing is changed." short:"n" xor:"mode"`
	Action  string            `help:"What is done with a row: ${enum}." enum:"CREATE_OR_UPDATE,CREATE,UPDATE" default:"CREATE_OR_UPDATE"`
	Comment string            `help:"A remark that the history keeps with it." placeholder:"TEXT"`
	Tag     string            `help:"Tag every imported resource, such as by tags/import. Tagged resources without a row are listed." placeholder:"PATH" env:"-"`
	Prune   bool              `help:"Delete tagged resources without a row, below --into or, without it, everywhere. They are listed first." env:"-"`
	Header  map[string]string `help:"A header that holds for every row, such as x-bcn-create-reverse-record=true." placeholder:"NAME=VALUE"`
	Kind    string            `help:"What the file is: csv, json or ndjson. Default: as it is called." enum:"csv,json,ndjson," default:""`
	File    string            `arg:"" help:"The file; - reads standard input, of a kind that --kind says."`
}

// importKinds are the media types of files, by how they end.
var importKinds = map[string]string{"csv": "text/csv", "json": "application/json", "ndjson": "application/x-ndjson"}

// Run sends the file to the manager, shows how far it is, and prints its log.
func (c *importFile) Run(s *session) error {
	kind := c.Kind
	if kind == "" {
		kind = strings.ToLower(strings.TrimPrefix(filepath.Ext(c.File), "."))
	}
	o := client.ImportOptions{ContentType: importKinds[kind], Into: c.Into, Action: c.Action, Comment: c.Comment, Headers: c.Header,
		Tag:   c.Tag,
		Prune: c.Prune}
	if o.ContentType == "" {
		return usageError{fmt.Errorf("%s: say by --kind what it is: csv, json or ndjson", c.File)}
	}
	if c.Prune && c.Tag == "" {
		return usageError{errors.New("--prune: goes with --tag: what has the tag and is in no row is deleted")}
	}
	switch {
	case c.AtOnce, c.Strict:
		o.Mode = "ALL_OR_NOTHING"
	case c.DryRun:
		o.Mode = "DRY_RUN"
	}
	cl, err := c.manager()
	if err != nil {
		return err
	}
	if o.Into = into(cl, c.Into); o.Into != "" {
		at, err := cl.Find(s.ctx, o.Into)
		if err != nil {
			return err
		}
		o.Into = at.String()
	}
	if c.Prune && !c.Yes && !c.DryRun && c.File == "-" {
		return usageError{errors.New("nothing was changed: with standard input --prune needs --yes, as the file cannot be tried first")}
	}
	if (asked() || c.Prune) && !c.Yes && !c.DryRun && c.File != "-" {
		tried := o
		tried.Mode = "DRY_RUN"
		if err := c.run(s, cl, tried, true); err != nil && !errors.As(err, new(skippedError)) {
			return err
		}
		if !asked() {
			return usageError{errors.New("nothing was changed: run again with --yes to import, and to delete the resources listed above")}
		}
		fmt.Fprintf(s.stderr, "Do that? [y/N] ")
		if !answered() {
			return errors.New("nothing was changed")
		}
	}
	return c.run(s, cl, o, c.DryRun)
}

// run imports the file, or only tries it.
func (c *importFile) run(s *session, cl *cli.Manager, o client.ImportOptions, tried bool) error {
	f := os.Stdin
	if c.File != "-" {
		var err error
		if f, err = os.Open(c.File); errors.Is(err, fs.ErrNotExist) {
			return usageError{fmt.Errorf("%s: there is no such file", c.File)}
		} else if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
	}
	one, err := cl.StartImport(s.ctx, filepath.Base(c.File), f, o)
	if err != nil {
		return err
	}
	count := s.counting("worked off")
	if one, err = cl.WaitForImport(s.ctx, one.ID, func(one *client.Import) { count(one.Rows) }); err != nil {
		return fmt.Errorf("import %d goes on at the manager: %w", one.ID, err)
	}
	log, err := cl.ImportLog(s.ctx, one.ID)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(s.stderr, log); err != nil {
		return err
	}
	var why reasons
	for line := range strings.Lines(log) { // "line 3: Code: why"
		parts := strings.SplitN(strings.TrimSpace(line), ": ", 3)
		if len(parts) == 3 && !strings.Contains(parts[1], " ") && parts[1] != "changed" {
			why.add(parts[1] + ": " + parts[2])
		}
	}
	if one.Refused > 0 {
		why.print(s)
	}
	if c.JSON {
		err = json.NewEncoder(s.stdout).Encode(one)
	} else {
		made := "created"
		if tried {
			made = "would be created"
		}
		text := fmt.Sprintf("import %d: %d rows: %d %s, %d updated, %d unchanged, %d refused", one.ID, one.Rows, one.Created, made,
			one.Updated, one.Unchanged, one.Refused)
		if c.Prune && !tried {
			text += fmt.Sprintf(", %d resources that are in no row deleted", one.Deleted)
		}
		_, err = fmt.Fprintln(s.stdout, text)
	}
	switch {
	case err != nil:
	case one.State == "FAILED" || one.State == "CANCELLED":
		err = fmt.Errorf("the import ended as %s", one.State)
	case one.Refused > 0:
		err = skippedError{int(one.Refused)}
	}
	return err
}
