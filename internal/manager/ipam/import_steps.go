package ipam

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"portolan/internal/base/csvrows"
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// Import contains the options of a file import.
type Import struct {
	// InSteps imports in several transactions, so that other writers are not blocked. The import is then not atomic: readers see partial
	// data, and an interrupted import leaves it in place. Existing equal data is skipped, so that importing the same file again continues
	// the import.
	InSteps bool
	// StepSize is the number of lines in a step; 0 means 1,000.
	StepSize int
	// Strict rejects the file if a row would be skipped. Prune deletes the resources that the file lacks: records of its zone, networks in
	// the blocks of its networks, addresses in the networks of its addresses. Try rolls an import of networks or addresses back.
	Strict, Prune, Try bool
	// SourceRow returns the source row of a record. It may be nil, and returns an empty text for an unknown record.
	SourceRow func(record any) string
	// Progress is called with the number of imported lines; it may be nil.
	Progress func(done int64)
}

// Imported is the result of an import of networks or addresses. The numbers count the rows that created or changed a resource, or that
// match an existing one, and the deleted resources.
type Imported struct {
	Created, Changed, Existing, Deleted int
	// Skipped lists the skipped rows with the reason, Changes the changes. Differences lists the resources in the same blocks or networks
	// that the file lacks. An import with Prune has deleted these.
	Skipped, Changes, Differences []string
	// KeptGateways lists the gateways of existing networks that an empty cell left unchanged although they are not the default.
	KeptGateways []string
	// Partial is set if a trial import was stopped because it took too long. The numbers then cover part of the file.
	Partial bool
}

// importStep is the default number of lines in a step.
const importStep = 1_000

// Step returns how many of the given number of lines one transaction imports.
func (i Import) Step(lines int) int {
	if i.InSteps {
		return cmp.Or(i.StepSize, importStep)
	}
	return max(lines, 1)
}

// ReportStep reports the progress after a step and yields to waiting writers if the import runs in steps.
func (i Import) ReportStep(ctx context.Context, s *store.Store, done int) {
	i.progressed(done)
	if i.InSteps {
		s.Yield(ctx)
	}
}

func (i Import) progressed(done int) {
	if i.Progress != nil {
		i.Progress(int64(done))
	}
}

// CutOff adds to an error how many lines an import in steps has imported.
func CutOff(err error, done int) error {
	if done == 0 {
		return fmt.Errorf("nothing was imported: %w", err)
	}
	return fmt.Errorf("the import was interrupted after %d lines; import the same file again to continue: %w", done, err)
}

// lineImport is an import of the lines of a file.
type lineImport struct {
	options       Import
	api           *resource.API
	configuration int64
	done          Imported
	// refused contains the reason by line number for lines that a rule rejected after a part of them was written. oneByOne creates each
	// address on its own.
	refused  map[int]string
	oneByOne bool
}

// errLineRefused rolls the transaction back because a line was rejected after a part of it was written. The step is then repeated without
// the line.
var errLineRefused = errors.New("a line was refused half done")

// runStep runs a step in a transaction, and repeats it while it returns errLineRefused.
func (i *lineImport) runStep(ctx context.Context, summary string, step func(c *resource.Change) error) error {
	before := i.done
	by := store.Author{Name: "command line", Comment: "import"}
	for {
		run := func(tx *store.Tx) error {
			i.done = before
			i.done.Skipped, i.done.Changes = slices.Clone(before.Skipped), slices.Clone(before.Changes)
			i.done.Differences, i.done.KeptGateways = slices.Clone(before.Differences), slices.Clone(before.KeptGateways)
			tx.Describe("IMPORT_ENTITIES", summary)
			return step(&resource.Change{Tx: tx, API: i.api, Extra: map[string]string{}, SetFields: map[string]bool{}})
		}
		var err error
		if scope := store.ConfigurationScope(i.configuration, false); i.options.Try {
			err = i.api.Store.Try(ctx, scope, by, run)
		} else {
			err = i.api.Store.UpdateIn(ctx, scope, by, run)
		}
		if errors.Is(err, store.ErrTrialEnded) {
			i.done.Partial, err = true, nil
		}
		if !errors.Is(err, errLineRefused) {
			return err
		}
	}
}

// skip records a skipped line with the reason. With Strict, it returns an error instead.
func (i *lineImport) skip(line int, why string) error {
	text := fmt.Sprintf("line %d: %s", line, why)
	if i.options.Strict {
		return problem.Invalid("file", "%s", text)
	}
	i.done.Skipped = append(i.done.Skipped, text+": correct the row")
	return nil
}

// importLine runs do for a line. If a rule rejects it, the line is skipped, or the step is repeated without it.
func (i *lineImport) importLine(c *resource.Change, line int, do func() error) error {
	if why, known := i.refused[line]; known {
		return i.skip(line, why)
	}
	before := c.Tx.Writes()
	err := c.Concealed(do())
	p, refused := problem.As(err)
	switch {
	case !refused || p.Status >= 500:
		return err
	case c.Tx.Writes() == before:
		return i.skip(line, p.Message)
	}
	i.refused[line] = p.Message
	return errLineRefused
}

// maxDifferences is the maximum number of listed differences.
const maxDifferences = 100_000

// unlisted is a resource that the file lacks, in a block or network of its rows.
type unlisted struct {
	id   int64
	text string
}

// addDifference adds a difference, up to maxDifferences and a final line that reports the limit.
func (i *lineImport) addDifference(text string) {
	if len(i.done.Differences) == maxDifferences {
		text = fmt.Sprintf("and others (only the first %d are listed)", maxDifferences)
	}
	if len(i.done.Differences) <= maxDifferences {
		i.done.Differences = append(i.done.Differences, text)
	}
}

// remove deletes resources that the file lacks. It stops at the first rejection and returns it.
func (i *lineImport) remove(c *resource.Change, others []unlisted) error {
	for _, one := range others {
		row, err := c.Tx.Get(one.id)
		if store.IsNotFound(err) { // already deleted together with another resource
			continue
		}
		before, e := c.Tx.Tally()
		if err == nil {
			err = e
		}
		if err == nil {
			err = c.Concealed(c.Delete(row))
		}
		if p, ok := problem.As(err); ok && p.Status < 500 {
			err = problem.New(p.Status, p.Code, "%s is not in the file and cannot be deleted: %s", one.text, p.Message)
		}
		if err != nil {
			return err
		}
		after, err := c.Tx.Tally()
		if err != nil {
			return err
		}
		if n := after.Deleted - before.Deleted - 1; n > 0 {
			one.text += fmt.Sprintf(", with %d resources inside or below it", n)
		}
		i.done.Deleted++
		i.addDifference(one.text)
	}
	return nil
}

// runImport imports lines in one transaction or in steps. do imports a part of the lines after count lines were imported. others returns
// the resources that the file lacks. With Prune, these are deleted first, so that their space is free.
func runImport[L any](ctx context.Context, i *lineImport, summary string, lines []L, others func(*store.Tx) ([]unlisted, error),
	do func(c *resource.Change, part []L, count int) error) error {
	readUnlisted := func() (all []unlisted, err error) {
		err = i.api.Store.View(ctx, func(tx *store.Tx) error {
			all, err = others(tx)
			return err
		})
		return all, err
	}
	var gone []unlisted
	if i.options.Prune {
		var err error
		if gone, err = readUnlisted(); err != nil {
			return err
		}
	}
	count, step := 0, i.options.Step(len(lines))
	if i.options.InSteps {
		for part := range slices.Chunk(gone, step) {
			if err := i.runStep(ctx, summary, func(c *resource.Change) error { return i.remove(c, part) }); err != nil {
				return CutOff(err, count)
			}
			i.options.ReportStep(ctx, i.api.Store, count)
		}
		gone = nil
	}
	for part := range slices.Chunk(lines, step) {
		if err := i.runStep(ctx, summary, func(c *resource.Change) error {
			if err := i.remove(c, gone); err != nil {
				return err
			}
			return do(c, part, count)
		}); err != nil {
			return CutOff(err, count)
		}
		gone = nil
		count += len(part)
		i.options.ReportStep(ctx, i.api.Store, count)
	}
	if i.options.Prune {
		return nil
	}
	all, err := readUnlisted()
	for _, one := range all {
		i.addDifference(one.text)
	}
	return err
}

// readLines reads a CSV file (RFC 4180) whose header may contain the given columns; the first one is required. It calls fn with each row:
// its line number and a function that returns a cell without surrounding spaces. An invalid row, or a row for which fn returns an error, is
// skipped. has contains the position of each existing column.
func readLines(in io.Reader, columns []string, fn func(line int, cell func(string) string) error) (has map[string]int, skipped []string,
	err error) {
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, nil, err
	}
	r := csvrows.New(string(text), ',')
	r.SingleLines()
	head, _, err := r.Next()
	if errors.Is(err, io.EOF) {
		return nil, nil, errors.New("the file is empty: the first line must name the columns")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the header: %w", err)
	}
	has = map[string]int{}
	for i, name := range head {
		name = strings.ToLower(strings.TrimSpace(strings.TrimPrefix(name, "\ufeff")))
		if !slices.Contains(columns, name) {
			return nil, nil, problem.Invalid(name, "is not a column of this file format; must be one of %s", strings.Join(columns, ", "))
		}
		if _, twice := has[name]; twice {
			return nil, nil, problem.Invalid(name, "the header names the column twice")
		}
		has[name] = i
	}
	if _, ok := has[columns[0]]; !ok {
		return nil, nil, problem.Invalid(columns[0], "the header has no such column")
	}
	for {
		record, line, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return has, skipped, nil
		case err != nil:
			skipped = append(skipped, fmt.Sprintf("line %d: %v: correct the row", line, err))
			continue
		case len(record) > len(head):
			skipped = append(skipped, fmt.Sprintf("line %d: %d cells, but the header has %d: correct the row", line, len(record), len(head)))
			continue
		}
		if err := fn(line, func(name string) string {
			if i, ok := has[name]; ok && i < len(record) {
				return strings.TrimSpace(record[i])
			}
			return ""
		}); err != nil {
			skipped = append(skipped, fmt.Sprintf("line %d: %v: correct the row", line, err))
		}
	}
}

// checkName rejects a name that is not valid for a resource.
func checkName(name string) error {
	switch {
	case !utf8.ValidString(name):
		return errors.New("name: is not valid UTF-8")
	case strings.ContainsFunc(name, unicode.IsControl) || utf8.RuneCountInString(name) > 255:
		return errors.New("name: has more than 255 characters, or a control character")
	}
	return nil
}
