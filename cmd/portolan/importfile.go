package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"portolan/client"
)

type importFile struct {
	scopeFlags
	jsonFlag
	Into    string            `help:"What the rows belong below: a collection such as networks/100123/addresses, or a resource in which each finds its place, such as configurations/main." placeholder:"PATH" complete:"path"`
	AtOnce  bool              `help:"Import all rows or none, up to 10,000." xor:"mode"`
	DryRun  bool              `help:"Only try it: nothing is changed." short:"n" xor:"mode"`
	Action  string            `help:"What is done with a row: ${enum}." enum:"CREATE_OR_UPDATE,CREATE,UPDATE" default:"CREATE_OR_UPDATE"`
	Comment string            `help:"A remark that the history keeps with it." placeholder:"TEXT"`
	Header  map[string]string `help:"A header that holds for every row, such as x-bcn-create-reverse-record=true." placeholder:"NAME=VALUE"`
	Kind    string            `help:"What the file is: csv, json or ndjson. Default: as it is called." enum:"csv,json,ndjson," default:""`
	File    string            `arg:"" help:"The file." type:"existingfile"`
}

// importKinds are the media types of files, by how they end.
var importKinds = map[string]string{"csv": "text/csv", "json": "application/json", "ndjson": "application/x-ndjson"}

// Run sends the file to the manager, shows how far it is, and prints its log.
func (c *importFile) Run(s *session) error {
	kind := c.Kind
	if kind == "" {
		kind = strings.ToLower(strings.TrimPrefix(filepath.Ext(c.File), "."))
	}
	o := client.ImportOptions{ContentType: importKinds[kind], Into: c.Into, Action: c.Action, Comment: c.Comment, Headers: c.Header}
	if o.ContentType == "" {
		return usageError{fmt.Errorf("%s: say by --kind what it is: csv, json or ndjson", c.File)}
	}
	switch {
	case c.AtOnce:
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
	f, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
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
	if c.JSON {
		err = json.NewEncoder(s.stdout).Encode(one)
	} else {
		made := "created"
		if c.DryRun {
			made = "would be created"
		}
		_, err = fmt.Fprintf(s.stdout, "import %d: %d rows: %d %s, %d updated, %d unchanged, %d refused\n", one.ID, one.Rows, one.Created, made,
			one.Updated, one.Unchanged, one.Refused)
	}
	if err == nil && (one.State == "FAILED" || one.State == "CANCELLED" || one.Refused > 0) {
		err = fmt.Errorf("the import ended as %s", one.State)
	}
	return err
}
