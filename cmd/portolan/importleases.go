package main

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"portolan/client"
)

type importLeases struct {
	scopeFlags
	jsonFlag
	Yes     bool     `help:"Do not ask for confirmation." short:"y" env:"-"`
	DryRun  bool     `help:"Preview the import without changing anything." short:"n"`
	Strict  bool     `help:"Import nothing if a lease would be refused."`
	Comment string   `help:"A comment to store with the import." placeholder:"TEXT"`
	Files   []string `arg:"" help:"The lease files of one server: dhcpd.leases, dhcpd6.leases, kea-leases4.csv or kea-leases6.csv, with older parts such as kea-leases4.csv.2. - reads standard input."`
}

// Help returns examples.
func (importLeases) Help() string {
	return "Import the configuration of the server first. Active leases are listed at once, and given to the DHCP servers of their " +
		"networks. " +
		"Repeat the import after the old server has stopped.\n\nExamples:\n\n" +
		"  portolan import leases /var/lib/dhcp/dhcpd.leases --configuration main --dry-run\n" +
		"  portolan import leases /var/lib/kea/kea-leases4.csv* --configuration main"
}

// Run uploads the files as one, the oldest part first, and prints the refused leases.
func (c *importLeases) Run(s *session) error {
	files := slices.Clone(c.Files)
	slices.SortStableFunc(files, func(a, b string) int { return ageOfPart(b) - ageOfPart(a) })
	var whole bytes.Buffer
	var starts []partOfFile
	lines := 0
	for _, path := range files {
		raw, err := readFile(path)
		if err != nil {
			return err
		}
		starts = append(starts, partOfFile{filepath.Base(path), lines})
		raw = append(raw, '\n') // a last line without an end is not joined with the next file
		whole.Write(raw)
		lines += bytes.Count(raw, []byte("\n"))
	}
	m, err := c.manager()
	if err != nil {
		return err
	}
	if err := oneConfiguration(s.ctx, m); err != nil {
		return err
	}
	at, err := m.Find(s.ctx, parentOrDefault(m, ""))
	if err != nil {
		return err
	}
	text := whole.Bytes()
	j := &importJob{name: filepath.Base(files[len(files)-1]), json: c.JSON, strict: c.Strict, ask: isInteractive() && !c.Yes,
		open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil },
		ImportOptions: client.ImportOptions{ContentType: "text/plain", ResourceType: "DHCPv4Lease", Into: at.String(), Comment: c.Comment,
			Mode: modeOf(c.DryRun)}}
	if len(files) > 1 {
		j.line = func(line logLine) string {
			if line.row == 0 {
				return line.text
			}
			part := starts[0]
			for _, one := range starts {
				if one.before < line.row {
					part = one
				}
			}
			return fmt.Sprintf("%s: line %d: %s", part.name, line.row-part.before, strings.TrimPrefix(line.text, fmt.Sprintf("line %d: ", line.row)))
		}
	}
	_, err = j.do(s, m)
	return err
}

// partOfFile is a file with the number of lines before it.
type partOfFile struct {
	name   string
	before int
}

// ageOfPart orders the parts of a lease file of Kea: the file before the last cleanup, its input, and the current file.
func ageOfPart(path string) int {
	for age, suffix := range []string{".1", ".completed", ".output", ".2"} {
		if strings.HasSuffix(path, suffix) {
			return age + 1
		}
	}
	return 0
}
