package main

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"portolan/client"
	"portolan/internal/base/csvrows"
	"portolan/internal/client/cli"
)

type importFile struct {
	scopeFlags
	jsonFlag
	Into    string            `help:"The parent of the rows: a collection, such as networks/100123/addresses, or a resource above all of them, such as configurations/main." placeholder:"PATH" complete:"path"`
	As      string            `help:"The kind of rows without a type. Without this flag it is guessed by the headers of a table: addresses, networks, blocks, ranges, zones, hosts, aliases, or a type such as IPv4Address. The headers of a table may then be those of other programs." placeholder:"ROWS"`
	Map     map[string]string `help:"The field of a column, such as Hostname=name. Without a field, the column is ignored." placeholder:"HEADER=FIELD"`
	AtOnce  bool              `help:"Import all rows or none, up to 10,000." xor:"mode"`
	Strict  bool              `help:"Import nothing if a dry run would skip a row." xor:"mode"`
	Yes     bool              `help:"Do not ask for confirmation." short:"y" env:"-"`
	DryRun  bool              `help:"Preview the import without changing anything." short:"n"`
	Action  string            `help:"The action for each row: ${enum}." enum:"CREATE_OR_UPDATE,CREATE,UPDATE" default:"CREATE_OR_UPDATE"`
	Comment string            `help:"A comment to store in the history." placeholder:"TEXT"`
	Tag     string            `help:"A tag to add to each imported resource, such as tags/import. Tagged resources without a row are listed." placeholder:"PATH" env:"-"`
	Prune   bool              `help:"Delete tagged resources without a row, below --into or, without it, everywhere. They are listed first." env:"-"`
	Header  map[string]string `help:"A request header for every row, such as x-bcn-create-reverse-record=true." placeholder:"NAME=VALUE"`
	Kind    string            `help:"The format of the file: csv, json or ndjson. Default: by its extension." enum:"csv,json,ndjson," default:""`
	File    string            `arg:"" help:"The file; - reads standard input and requires --kind."`

	// stdin is the content of standard input.
	stdin []byte
}

// rowTypes are the types of rows in plain words. A row with an IPv6 address has the IPv6 type.
var rowTypes = map[string]string{"addresses": "IPv4Address", "networks": "IPv4Network", "blocks": "IPv4Block", "ranges": "IPv4DHCPRange",
	"zones": "Zone", "hosts": "HostRecord", "aliases": "AliasRecord"}

// importKinds are the media types of files, by extension.
var importKinds = map[string]string{"csv": "text/csv", "json": "application/json", "ndjson": "application/x-ndjson"}

// Run uploads the file, shows the progress of the import, and prints its log.
func (c *importFile) Run(s *session) error {
	kind := c.Kind
	if kind == "" {
		kind = strings.ToLower(strings.TrimPrefix(filepath.Ext(c.File), "."))
	}
	j := &importJob{name: filepath.Base(c.File), open: c.read, json: c.JSON, strict: c.Strict, ask: (isInteractive() || c.Prune) && !c.Yes,
		ImportOptions: client.ImportOptions{ContentType: importKinds[kind], Action: c.Action, Comment: c.Comment, Headers: c.Header,
			Tag: c.Tag, Prune: c.Prune, ResourceType: cmp.Or(rowTypes[c.As], c.As), Columns: c.Map}}
	if j.ContentType == "" {
		return usageError{fmt.Errorf("%s: unknown format: set --kind to csv, json or ndjson", c.File)}
	}
	if c.Prune && c.Tag == "" {
		return usageError{errors.New("--prune requires --tag: it deletes resources that have the tag and are not in a row")}
	}
	switch {
	case c.DryRun:
		j.Mode = dryRunMode
	case c.AtOnce:
		j.Mode = allOrNothing
	}
	cl, err := c.manager()
	if err != nil {
		return err
	}
	if j.Into = parentOrDefault(cl, c.Into); j.Into != "" {
		at, err := cl.Find(s.ctx, j.Into)
		if err != nil {
			return err
		}
		j.Into = at.String()
	}
	hasType := slices.Contains(slices.Collect(maps.Values(c.Map)), "type") // each row has its own
	if j.ResourceType == "" && !hasType && j.ContentType == importKinds["csv"] && strings.Count(j.Into, "/") < 2 {
		if j.ResourceType, err = c.guessType(); err != nil {
			return err
		}
		if j.ResourceType != "" {
			fmt.Fprintf(s.stderr, "rows: %s, by the headers (--as changes it)\n", j.ResourceType)
		}
	}
	_, err = j.do(s, cl)
	return err
}

// guessType returns the type that the header of the table suggests, as the console does; empty if there is none.
func (c *importFile) guessType() (string, error) {
	f, err := c.read()
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // only read
	in := bufio.NewReader(io.LimitReader(f, maxHeader))
	line, err := in.ReadString('\n')
	if err == nil && strings.HasPrefix(line, "sep=") { // written by spreadsheets
		line, err = in.ReadString('\n')
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	comma := ','
	for _, other := range ";\t" { // the manager accepts these as well
		if strings.Count(line, string(other)) > strings.Count(line, string(comma)) {
			comma = other
		}
	}
	header, _, err := csvrows.New(strings.TrimPrefix(line, "\ufeff"), comma).Next()
	if err != nil { // the manager reports it
		return "", nil //nolint:nilerr // no guess
	}
	return cli.LikelyType(header), nil
}

// maxHeader is the maximum length of a header that is examined, in bytes.
const maxHeader = 1 << 20

// read opens the file. Standard input, a pipe or a device is read once and kept in memory.
func (c *importFile) read() (io.ReadCloser, error) {
	if info, err := os.Stat(c.File); c.File == "-" || err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		if c.stdin == nil {
			var err error
			if c.stdin, err = readFile(c.File); err != nil {
				return nil, err
			}
		}
		return io.NopCloser(bytes.NewReader(c.stdin)), nil
	}
	f, err := os.Open(c.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usageError{fmt.Errorf("%s: the file does not exist", c.File)}
	}
	return f, err
}
