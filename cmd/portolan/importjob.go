package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"portolan/client"
	"portolan/internal/client/cli"
	"portolan/internal/client/convert"
)

// importJob is an import of a file that the manager does in the background.
type importJob struct {
	client.ImportOptions
	name string
	// open opens the file, from its beginning each time.
	open func() (io.ReadCloser, error)
	// line words a line of the log; an empty text leaves it out. nil is the line as it is, with the remedy of a refused row.
	line func(line logLine) string
	// begin is called before each run; it may be nil.
	begin func()
	json  bool
	// strict refuses the import if a trial refuses a row. ask asks at a terminal after a trial; elsewhere a trial that would delete resources
	// ends the command.
	strict, ask bool
	// refusals counts the refused rows of the last run, by reason.
	refusals reasons
}

// do tries the import if that is asked for, and imports the file.
func (j *importJob) do(s *session, m *cli.Manager) (*client.Import, error) {
	if j.Mode == dryRunMode || !j.strict && !j.ask {
		one, err := j.run(s, m)
		if j.strict && errors.As(err, new(skippedError)) {
			err = fmt.Errorf("nothing would be imported: %d rows would be skipped", one.Refused)
		}
		return one, err
	}
	tried := *j
	tried.Mode = dryRunMode
	trial := *s
	if j.json { // which has one document, that of the import
		trial.stdout = io.Discard
	}
	if word := j.line; !j.ask && word != nil { // the import says it again
		tried.line = func(line logLine) string {
			if line.code == "" {
				return ""
			}
			return word(line)
		}
	}
	one, err := tried.runOnce(&trial, m)
	// A trial that refuses a row deletes nothing; the import may take the row, and would delete unasked.
	ask := j.ask && (asked() || one != nil && (one.Deleted > 0 || j.Prune && one.Refused > 0))
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

// runOnce is run for a trial that nobody asked for: the import is deleted behind it.
func (j *importJob) runOnce(s *session, m *cli.Manager) (*client.Import, error) {
	one, err := j.run(s, m)
	if one != nil && one.Ended() {
		if e := m.Do(s.ctx, http.MethodDelete, fmt.Sprintf("/api/v2/imports/%d", one.ID), nil, nil); err == nil {
			err = e
		}
	}
	return one, err
}

// logLine is a line of the log of an import.
type logLine struct {
	// row is the number of the row that it is about, 0 if it is about none; rest is the line without it.
	row  int
	rest string
	// code and why are the refusal of the row; code is empty if the row was not refused.
	code, why string
	// text is the whole line.
	text string
}

// readLine reads a line such as "line 3: Code: why".
func readLine(text string) (line logLine) {
	line.text, line.rest = text, text
	if found := lineOfRow.FindStringSubmatch(text); found != nil {
		line.row, _ = strconv.Atoi(found[1]) // digits that are no number name no row
		line.rest = text[len(found[0]):]
	}
	if code, why, ok := strings.Cut(line.rest, ": "); ok && line.rest != text && refusalCode.MatchString(code) {
		line.code, line.why = code, why
	}
	return line
}

// refusalCode is the code of a refusal.
var refusalCode = regexp.MustCompile(`^[A-Z][A-Za-z0-9]+$`)

// run imports the file, or tries it in the mode DRY_RUN, and prints the log and a summary. The error is a skippedError if rows were
// refused.
func (j *importJob) run(s *session, m *cli.Manager) (one *client.Import, err error) {
	f, err := j.open()
	if err != nil {
		return nil, err
	}
	if j.begin != nil {
		j.begin()
	}
	defer func() { _ = f.Close() }() // only read
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
	for text := range strings.Lines(log) {
		line := readLine(strings.TrimSuffix(text, "\n"))
		if line.code != "" {
			line.text += ": " + remedy(line.code)
			line.why += ": " + remedy(line.code)
			j.refusals.add(line.code + ": " + line.why)
		}
		said := line.text
		if j.line != nil {
			said = j.line(line)
		}
		if said != "" {
			fmt.Fprintln(s.stderr, said)
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
		return "resize, split or delete the other resource"
	case "ZoneNotFound", "InlinedResourceNotFound", "ResourceNotFound", "IpRangeOutsideParent":
		return "create it first, or correct the row"
	case "ResourceAlreadyExists":
		return "let rows change what is there (--action), or remove the row"
	case "ResourceConflictsWithOther":
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
	j := &importJob{name: f.source + ".ndjson", open: fileOf(a.Resources), json: f.Output == cli.JSON, strict: f.Strict,
		ask: (asked() || a.Prune) && !f.Yes, ImportOptions: client.ImportOptions{ContentType: importKinds["ndjson"], Into: at.String(),
			Comment: f.Comment, Headers: f.Header, Tag: a.Tag, Prune: a.Prune}}
	j.begin = func() { f.applied = client.Applied{DryRun: f.DryRun} }
	j.line = func(line logLine) string {
		changed, ok := strings.CutPrefix(line.rest, "changed: ")
		if found := hostAddresses.FindString(changed); ok && found != "" && line.row <= len(a.Resources) {
			f.noteAddresses(a.Resources[line.row-1], changed[len(found):])
		}
		switch row := rowOf(rows, line.row); {
		case row == "":
			return line.text
		case line.code != "":
			return fmt.Sprintf("skipped: %s: %s: %s", row, line.code, sameAsLine.ReplaceAllStringFunc(line.why, func(other string) string {
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
	return f.emptied(s, m, d, j, a.Resources)
}

// modeOf returns the mode of an import or of a trial.
func modeOf(dry bool) string {
	if dry {
		return dryRunMode
	}
	return ""
}

// hostAddresses begins the change of the addresses of a host in a line of the log.
var hostAddresses = regexp.MustCompile(`^HostRecord \d+: (?:.*, )?addresses `)

// noteAddresses adds the change of a host of the source (raw) to the results, from which unnamed lists the addresses that no host
// has any more. text begins with the addresses before the change, as JSON.
func (f *fromFlags) noteAddresses(raw json.RawMessage, text string) {
	var before json.RawMessage
	var host struct{ AbsoluteName string }
	if json.NewDecoder(strings.NewReader(text)).Decode(&before) != nil || json.Unmarshal(raw, &host) != nil { // the host had no addresses
		return
	}
	one := client.AppliedResource{Did: "CHANGED", Type: "HostRecord", Key: host.AbsoluteName}
	one.Changes = append(one.Changes, client.FieldChange{Field: "addresses", Before: before})
	f.applied.Resources = append(f.applied.Resources, one)
}

// emptied prints the members that have a value and that the source leaves empty. It finds them by a trial.
func (f *fromFlags) emptied(s *session, m *cli.Manager, d *convert.Document, imported *importJob, without []json.RawMessage) error {
	all, rows, err := d.JSON(true)
	if err != nil || slices.EqualFunc(all, without, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
		return err
	}
	j := *imported
	j.Mode, j.Tag, j.begin = dryRunMode, "", nil
	j.open = fileOf(all)
	j.line = func(line logLine) string {
		if text, ok := strings.CutPrefix(line.rest, "changed: "); ok && strings.Contains(text, " -> null") {
			return fmt.Sprintf("empty in the source, kept (--prune takes it away): %s: %s", rowOf(rows, line.row), text)
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

// rowOf returns the row of the source with a number; empty if there is none.
func rowOf(rows []string, number int) string {
	if number < 1 || number > len(rows) {
		return ""
	}
	return rows[number-1]
}

// fileOf returns what opens resources as a file with one in each line.
func fileOf(all []json.RawMessage) func() (io.ReadCloser, error) {
	var file bytes.Buffer
	for _, one := range all {
		file.Write(one)
		file.WriteByte('\n')
	}
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(file.Bytes())), nil }
}
