package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"portolan/client"
	"portolan/internal/base/plural"
	"portolan/internal/client/cli"
	"portolan/internal/client/convert"
)

// importJob is an import of a file that the manager runs in the background.
type importJob struct {
	client.ImportOptions
	name string
	// open opens the file at its beginning. It is called once per run.
	open func() (io.ReadCloser, error)
	// line formats a line of the log. An empty text omits the line. If line is nil, lines are printed unchanged, with a remedy for rejected
	// rows.
	line func(line logLine) string
	// beforeRun is called before each run. It may be nil.
	beforeRun func()
	json      bool
	// strict cancels the import if a dry run rejects a row. ask asks for confirmation after a dry run. Without a terminal, the command then
	// ends if the dry run would delete resources.
	strict, ask bool
	// refusals counts the rejected rows of the last run, by reason.
	refusals reasons
}

// do performs a dry run if required, and imports the file.
func (j *importJob) do(s *session, m *cli.Manager) (*client.Import, error) {
	if j.Mode == dryRunMode || !j.strict && !j.ask {
		one, err := j.run(s, m)
		if j.strict && errors.As(err, new(skippedError)) {
			err = fmt.Errorf("nothing would be imported: %s would be skipped", plural.Count(one.Refused, "row"))
		}
		return one, err
	}
	tried := *j
	tried.Mode = dryRunMode
	trial := *s
	if j.json { // the output is one document, that of the import
		trial.stdout = io.Discard
	}
	if word := j.line; !j.ask && word != nil { // the import prints the other lines again
		tried.line = func(line logLine) string {
			if line.code == "" {
				return ""
			}
			return word(line)
		}
	}
	one, err := tried.runOnce(&trial, m)
	// A dry run that rejects a row deletes nothing. The import may accept that row and would then delete without confirmation.
	ask := j.ask && (isInteractive() || one != nil && (one.Deleted > 0 || j.Prune && one.Refused > 0))
	switch {
	case err != nil && !errors.As(err, new(skippedError)):
		return one, err
	case err != nil && j.strict:
		return one, fmt.Errorf("nothing was imported: %s would be skipped", plural.Count(one.Refused, "row"))
	case ask && !isInteractive():
		return one, usageError{errors.New("nothing was changed: run again with --yes to import, and to delete the resources listed above")}
	case ask:
		fmt.Fprintf(s.stderr, "Do that? [y/N] ")
		if !confirm() {
			return one, errors.New("nothing was changed")
		}
	}
	if j.strict && one.Rows <= maxApply {
		j.Mode = allOrNothing
	}
	return j.run(s, m)
}

// runOnce runs an import and deletes it afterwards. It is for dry runs that the user did not request.
func (j *importJob) runOnce(s *session, m *cli.Manager) (*client.Import, error) {
	one, err := j.run(s, m)
	if one != nil && one.Ended() {
		if e := m.Do(s.ctx, http.MethodDelete, fmt.Sprintf(client.AddressPath+"imports/%d", one.ID), nil, nil); err == nil {
			err = e
		}
	}
	return one, err
}

// logLine is a line of the log of an import.
type logLine struct {
	// row is the number of its row, or 0. rest is the line without that number.
	row  int
	rest string
	// code and reason are the rejection of the row. code is empty if the row was accepted.
	code, reason string
	// text is the whole line.
	text string
}

// readLine parses a line such as "line 3: Code: why".
func readLine(text string) (line logLine) {
	line.text, line.rest = text, text
	if found := lineOfRow.FindStringSubmatch(text); found != nil {
		line.row, _ = strconv.Atoi(found[1]) // a number out of range counts as no row
		line.rest = text[len(found[0]):]
	}
	if code, why, ok := strings.Cut(line.rest, ": "); ok && line.rest != text && refusalCode.MatchString(code) {
		line.code, line.reason = code, why
	}
	return line
}

// shownRows is the maximum number of rejected rows that are printed for a reason.
const shownRows = 10

// refusalCode matches the code of a rejection.
var refusalCode = regexp.MustCompile(`^[A-Z][A-Za-z0-9]+$`)

// run imports the file, or tries it in the mode DRY_RUN, and prints the log and a summary. It returns a skippedError if rows were rejected.
func (j *importJob) run(s *session, m *cli.Manager) (one *client.Import, err error) {
	f, err := j.open()
	if err != nil {
		return nil, err
	}
	if j.beforeRun != nil {
		j.beforeRun()
	}
	defer func() { _ = f.Close() }() // only read
	if one, err = m.StartImport(s.ctx, j.name, f, j.ImportOptions); err != nil {
		return nil, err
	}
	count := s.rowCounter("worked off")
	if one, err = m.WaitForImport(s.ctx, one.ID, func(one *client.Import) { count(one.Rows) }); err != nil {
		return one, fmt.Errorf("import %d continues on the manager: %w", one.ID, err)
	}
	log, err := m.ImportLog(s.ctx, one.ID)
	if err != nil {
		return one, err
	}
	j.refusals = nil
	for text := range strings.Lines(log) {
		line := readLine(strings.TrimSuffix(text, "\n"))
		if line.code != "" {
			if help := remedy(line.code); !strings.HasSuffix(line.reason, help) { // also for an empty one
				line.text += ": " + help
				line.reason += ": " + help
			}
			if j.refusals.add(line.code+": "+line.reason) > shownRows && j.line == nil {
				continue // the summary counts it
			}
		}
		shown := line.text
		if j.line != nil {
			shown = j.line(line)
		}
		if shown != "" {
			fmt.Fprintln(s.stderr, shown)
		}
	}
	for _, header := range slices.Sorted(maps.Keys(one.Columns)) {
		if field := one.Columns[header]; field != "" && field != header {
			fmt.Fprintf(s.stderr, "column %q: %s\n", header, field)
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
		err = fmt.Errorf("the import ended with state %s", one.State)
	case one.Refused > 0:
		err = skippedError{int(one.Refused)}
	}
	return one, err
}

// summary returns the counts of an import that has ended, as text.
func (j *importJob) summary(one *client.Import) string {
	made, tried := "created", j.Mode == dryRunMode
	if tried {
		made = "would be created"
	}
	text := fmt.Sprintf("import %d: %s: %d %s, %d updated, %d unchanged, %d refused", one.ID, plural.Count(one.Rows, "row"), one.Created,
		made, one.Updated, one.Unchanged, one.Refused)
	switch {
	case j.Prune && tried:
		text += fmt.Sprintf(", %s without a row would be deleted", plural.Count(one.Deleted, "resource"))
	case j.Prune:
		text += fmt.Sprintf(", %s without a row deleted", plural.Count(one.Deleted, "resource"))
	}
	return text
}

// remedy returns the remedy for a row that was rejected with a code.
func remedy(code string) string {
	switch code {
	case "IpRangeOverlapsSiblings":
		return "resize, split or delete the other resource"
	case "ZoneNotFound", "InlinedResourceNotFound", "ResourceNotFound", "IpRangeOutsideParent":
		return "create it first, or correct the row"
	case "ResourceAlreadyExists":
		return "allow updates of existing resources (--action), or remove the row"
	case "ResourceConflictsWithOther":
		return "remove one of the two"
	case "LeaseNotImported": // its text has the remedy
		return ""
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

// duplicateLine matches the other row of the same resource in a rejection.
var duplicateLine = regexp.MustCompile(`line \d+ is`)

// lineOfRow matches the start of a log line about a row.
var lineOfRow = regexp.MustCompile(`^line (\d+): `)

// importInBackground imports a converted document with more resources than fit into one request, as a file of rows. rows are the source
// rows of the resources.
func (f *sourceFlags) importInBackground(s *session, m *cli.Manager, d *convert.Document, a client.Apply, rows []string) error {
	if f.Output != "text" && f.Output != cli.JSON {
		return usageError{fmt.Errorf("--output %s: the maximum is %d resources, but the source contains %d",
			f.Output, maxApply, len(a.Resources))}
	}
	at, err := m.Find(s.ctx, a.Into)
	if err != nil {
		return err
	}
	j := &importJob{name: f.source + ".ndjson", open: fileOf(a.Resources), json: f.Output == cli.JSON, strict: f.Strict,
		ask: (isInteractive() || a.Prune) && !f.Yes, ImportOptions: client.ImportOptions{ContentType: importKinds["ndjson"], Into: at.String(),
			Comment: f.Comment, Headers: f.Header, Tag: a.Tag, Prune: a.Prune}}
	j.beforeRun = func() { f.applied = client.Applied{DryRun: f.DryRun} }
	j.line = func(line logLine) string {
		changed, ok := strings.CutPrefix(line.rest, "changed: ")
		if found := hostAddresses.FindString(changed); ok && found != "" && line.row <= len(a.Resources) {
			f.recordAddresses(a.Resources[line.row-1], changed[len(found):])
		}
		switch row := rowOf(rows, line.row); {
		case row == "":
			return line.text
		case line.code != "":
			return fmt.Sprintf("skipped: %s: %s: %s", row, line.code, duplicateLine.ReplaceAllStringFunc(line.reason, func(
				other string) string {
				return cmp.Or(rowOf(rows, readLine(strings.TrimSuffix(other, " is")+": ").row), strings.TrimSuffix(other, " is")) + " is"
			}))
		case ok:
			return fmt.Sprintf("changed: %s: %s", row, changed)
		default:
			return fmt.Sprintf("note: %s: %s", row, line.rest)
		}
	}
	j.Mode = modeOf(f.DryRun)
	one, err := j.do(s, m)
	if errors.As(err, new(skippedError)) {
		f.refused, err = int(one.Refused), nil
	}
	f.reasons = j.refusals
	if err == nil && a.Tag == "" && one.Updated+one.Unchanged > 0 {
		fmt.Fprintln(s.stderr, withoutTag)
	}
	if err != nil || f.DryRun || a.Prune {
		return err
	}
	return f.printEmptied(s, m, d, j, a.Resources)
}

// modeOf returns the mode of an import or of a dry run.
func modeOf(dry bool) string {
	if dry {
		return dryRunMode
	}
	return ""
}

// hostAddresses matches the start of a log line about changed addresses of a host.
var hostAddresses = regexp.MustCompile(`^HostRecord \d+: (?:.*, )?addresses `)

// recordAddresses adds a changed host to the results. unnamed uses it to list addresses without a host. raw is the host in the source, and
// text begins with the addresses before the change, as JSON.
func (f *sourceFlags) recordAddresses(raw json.RawMessage, text string) {
	var before json.RawMessage
	var host struct{ AbsoluteName string }
	if json.NewDecoder(strings.NewReader(text)).Decode(&before) != nil || json.Unmarshal(raw, &host) != nil { // the host had no addresses
		return
	}
	one := client.AppliedResource{Did: "CHANGED", Type: "HostRecord", Key: host.AbsoluteName}
	one.Changes = append(one.Changes, client.FieldChange{Field: "addresses", Before: before})
	f.applied.Resources = append(f.applied.Resources, one)
}

// printEmptied prints the members that have a value and that the source leaves empty. It finds them by a dry run.
func (f *sourceFlags) printEmptied(s *session, m *cli.Manager, d *convert.Document, imported *importJob, without []json.RawMessage) error {
	all, rows, err := d.JSON(true)
	if err != nil || slices.EqualFunc(all, without, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
		return err
	}
	j := *imported
	j.Mode, j.Tag, j.beforeRun = dryRunMode, "", nil
	j.open = fileOf(all)
	j.line = func(line logLine) string {
		if text, ok := strings.CutPrefix(line.rest, "changed: "); ok && strings.Contains(text, " -> null") {
			return fmt.Sprintf("empty in the source, kept (--prune removes it): %s: %s", rowOf(rows, line.row), text)
		}
		return ""
	}
	quiet := *s
	quiet.stdout = io.Discard
	if _, err = j.runOnce(&quiet, m); errors.As(err, new(skippedError)) {
		err = nil
	}
	return err
}

// rowOf returns the source row with a number, or an empty text.
func rowOf(rows []string, number int) string {
	if number < 1 || number > len(rows) {
		return ""
	}
	return rows[number-1]
}

// fileOf returns a function that opens the resources as a file with one resource per line.
func fileOf(all []json.RawMessage) func() (io.ReadCloser, error) {
	var file bytes.Buffer
	for _, one := range all {
		file.Write(one)
		file.WriteByte('\n')
	}
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(file.Bytes())), nil }
}
