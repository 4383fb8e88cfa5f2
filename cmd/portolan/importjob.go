package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"portolan/client"
	"portolan/internal/cli"
	"portolan/internal/convert"
)

// importJob is an import of a file that the manager does in the background.
type importJob struct {
	client.ImportOptions
	name string
	// open opens the file, from its beginning each time.
	open func() (io.ReadCloser, error)
	// line words a line of the log.
	line func(line string) string
	json bool
	// strict imports nothing if a trial refuses a row. ask asks after a trial, at a terminal; elsewhere it ends there if resources would be
	// deleted.
	strict, ask bool
	// refusals counts the refused rows of the last run, by reason.
	refusals reasons
}

// do tries the import if that is asked for, and imports the file.
func (j *importJob) do(s *session, m *cli.Manager) (*client.Import, error) {
	if j.Mode == dryRunMode || !j.strict && !j.ask {
		return j.run(s, m)
	}
	tried := *j
	tried.Mode = dryRunMode
	trial := *s
	if j.json { // which has one document, that of the import
		trial.stdout = io.Discard
	}
	one, err := tried.run(&trial, m)
	ask := j.ask && (asked() || one != nil && one.Deleted > 0)
	switch {
	case err != nil && !errors.As(err, new(skippedError)):
		return one, err
	case err != nil && j.strict:
		return one, fmt.Errorf("nothing was imported: %d rows would be skipped", one.Refused)
	case ask && !asked():
		return one, usageError{errors.New("nothing was changed: run again with --yes to import, and to delete the resources listed above")}
	case ask:
		fmt.Fprintf(s.stderr, "Do that? [y/N] ")
		if !answered() {
			return one, errors.New("nothing was changed")
		}
	}
	if j.strict && one.Rows <= applyAtOnce {
		j.Mode = allOrNothing
	}
	return j.run(s, m)
}

// run imports the file, or tries it in the mode DRY_RUN, and prints the log and a summary. The error is a skippedError if rows were
// refused.
func (j *importJob) run(s *session, m *cli.Manager) (one *client.Import, err error) {
	f, err := j.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was read alone
	if one, err = m.StartImport(s.ctx, j.name, f, j.ImportOptions); err != nil {
		return nil, err
	}
	count := s.counting("worked off")
	if one, err = m.WaitForImport(s.ctx, one.ID, func(one *client.Import) { count(one.Rows) }); err != nil {
		return one, fmt.Errorf("import %d goes on at the manager: %w", one.ID, err)
	}
	log, err := m.ImportLog(s.ctx, one.ID)
	if err != nil {
		return one, err
	}
	j.refusals = nil
	for line := range strings.Lines(log) { // "line 3: Code: why"
		if line = strings.TrimSuffix(line, "\n"); line == "" {
			continue
		}
		parts := strings.SplitN(line, ": ", 3)
		if len(parts) == 3 && !strings.Contains(parts[1], " ") && parts[1] != "changed" {
			line += ": " + remedy(parts[1])
			j.refusals.add(parts[1] + ": " + parts[2] + ": " + remedy(parts[1]))
		}
		if j.line != nil {
			line = j.line(line)
		}
		if line != "" {
			fmt.Fprintln(s.stderr, line)
		}
	}
	if one.Refused > 0 && j.line == nil {
		j.refusals.print(s)
	}
	if j.json {
		err = json.NewEncoder(s.stdout).Encode(one)
	} else {
		_, err = fmt.Fprintln(s.stdout, j.summary(one))
	}
	switch {
	case err != nil:
	case one.State == "FAILED" || one.State == "CANCELLED":
		err = fmt.Errorf("the import ended as %s", one.State)
	case one.Refused > 0:
		err = skippedError{int(one.Refused)}
	}
	return one, err
}

// summary gives the numbers of an import that has ended.
func (j *importJob) summary(one *client.Import) string {
	made, tried := "created", j.Mode == dryRunMode
	if tried {
		made = "would be created"
	}
	text := fmt.Sprintf("import %d: %d rows: %d %s, %d updated, %d unchanged, %d refused", one.ID, one.Rows, one.Created, made, one.Updated,
		one.Unchanged, one.Refused)
	switch {
	case j.Prune && tried:
		text += fmt.Sprintf(", %d resources that are in no row would be deleted", one.Deleted)
	case j.Prune:
		text += fmt.Sprintf(", %d resources that are in no row deleted", one.Deleted)
	}
	return text
}

// remedy says what to do about a row that the manager refuses with a code.
func remedy(code string) string {
	switch code {
	case "IpRangeOverlapsSiblings":
		return "resize, split or delete the other one, or prune it by --tag and --prune"
	case "ZoneNotFound", "InlinedResourceNotFound", "ResourceNotFound", "IpRangeOutsideParent":
		return "create it first, or correct the row"
	case "ResourceAlreadyExists", "ResourceConflictsWithOther":
		return "remove one of the two"
	case "AccessDenied":
		return "import as a user with more rights"
	}
	return "correct the row"
}

// dryRunMode and allOrNothing are modes of imports.
const (
	dryRunMode   = "DRY_RUN"
	allOrNothing = "ALL_OR_NOTHING"
)

// sameAsLine is the row that a refusal names because it is about the same resource.
var sameAsLine = regexp.MustCompile(`line \d+ is`)

// lineOfRow is the beginning of a line of a log that is about a row.
var lineOfRow = regexp.MustCompile(`^line (\d+): `)

// inBackground imports a document of another product with more resources than one request takes: as a file of rows. rows name the rows of
// the source that the resources are read from.
func (f *fromFlags) inBackground(s *session, m *cli.Manager, d *convert.Document, a client.Apply, rows []string) error {
	if f.Output != "text" && f.Output != cli.JSON {
		return usageError{fmt.Errorf("--output %s: goes with %d resources at most, and there are %d", f.Output, applyAtOnce, len(a.Resources))}
	}
	at, err := m.Find(s.ctx, a.Into)
	if err != nil {
		return err
	}
	j := &importJob{name: "import.ndjson", open: fileOf(a.Resources), json: f.Output == cli.JSON, strict: f.Strict,
		ask: (asked() || a.Prune) && !f.Yes, ImportOptions: client.ImportOptions{ContentType: importKinds["ndjson"], Into: at.String(),
			Comment: f.Comment, Headers: f.Header, Tag: a.Tag, Prune: a.Prune}}
	j.line = func(line string) string {
		row, text := f.rowOf(rows, line)
		if row == "" {
			return line
		}
		if changed, ok := strings.CutPrefix(text, "changed: "); ok {
			return fmt.Sprintf("changed: %s: %s", row, changed)
		}
		text = sameAsLine.ReplaceAllStringFunc(text, func(other string) string {
			if row, _ := f.rowOf(rows, strings.TrimSuffix(other, " is")+": "); row != "" {
				return row + " is"
			}
			return other
		})
		return fmt.Sprintf("skipped: %s: %s", row, text)
	}
	if f.DryRun {
		j.Mode = dryRunMode
	}
	one, err := j.do(s, m)
	if errors.As(err, new(skippedError)) {
		f.refused, err = int(one.Refused), nil
	}
	f.reasons = j.refusals
	if err != nil || f.DryRun || a.Prune {
		return err
	}
	return f.emptied(s, m, d, j)
}

// emptied prints the members that have a value and that the source leaves empty. It finds them by a trial.
func (f *fromFlags) emptied(s *session, m *cli.Manager, d *convert.Document, imported *importJob) error {
	all, rows, err := d.JSON(true)
	if err != nil {
		return err
	}
	j := *imported
	j.Mode, j.Tag = dryRunMode, ""
	j.open = fileOf(all)
	j.line = func(line string) string {
		if row, text := f.rowOf(rows, line); strings.HasPrefix(text, "changed: ") {
			return fmt.Sprintf("empty in the source, kept (--prune takes it away): %s: %s", row, strings.TrimPrefix(text, "changed: "))
		}
		return ""
	}
	quiet := *s
	quiet.stdout = io.Discard
	if _, err = j.run(&quiet, m); errors.As(err, new(skippedError)) {
		err = nil
	}
	return err
}

// rowOf gives the row of the source that a line of a log is about, and the line without its number; row is empty if it is about none.
func (f *fromFlags) rowOf(rows []string, line string) (row, text string) {
	found := lineOfRow.FindStringSubmatch(line)
	if found == nil {
		return "", line
	}
	n, err := strconv.Atoi(found[1])
	if err != nil || n < 1 || n > len(rows) {
		return "", line
	}
	return rows[n-1], strings.TrimPrefix(line, found[0])
}

// fileOf gives resources as a file with one in each line.
func fileOf(all []json.RawMessage) func() (io.ReadCloser, error) {
	var file bytes.Buffer
	for _, one := range all {
		file.Write(one)
		file.WriteByte('\n')
	}
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(file.Bytes())), nil }
}
