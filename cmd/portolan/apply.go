package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/term"

	"portolan/client"
	"portolan/internal/client/cli"
)

// planFlags are the flags of commands that apply resources from a file.
type planFlags struct {
	scopeFlags
	changeFlags
	changeOutput
	Yes bool `help:"Do not ask for confirmation." short:"y" env:"-"`

	// rows are the source rows of the resources, one for each; nil for a document. refused counts the resources that the manager rejected.
	// reasons counts them by reason.
	rows    []string
	refused int
	reasons reasons
	// applied is the result of the apply.
	applied client.Applied
}

// resourceIndex matches the index of a resource in an error message of the manager.
var resourceIndex = regexp.MustCompile(`resources\[(\d+)\]`)

// report prints the resources that the manager rejected.
func (c *planFlags) report(s *session, a client.Apply, done client.Applied) {
	c.applied = done
	for _, one := range done.Refused {
		text := resourceIndex.ReplaceAllStringFunc(one.Message, func(place string) string {
			i, err := strconv.Atoi(resourceIndex.FindStringSubmatch(place)[1])
			if err != nil || i >= len(c.rows) {
				return place
			}
			return c.rows[i]
		})
		fmt.Fprintf(s.stderr, "skipped: %s: %s: %s\n", c.rows[one.Index], text, remedy(one.Code))
		c.refused++
		c.reasons.add(one.Message + ": " + remedy(one.Code))
	}
	if len(done.Refused) > 0 && a.Prune {
		for _, one := range done.Resources {
			if one.Did == "ABSENT" {
				fmt.Fprintf(s.stderr, "not in an imported row, kept: %s %s\n", one.Type, one.Key)
			}
		}
		fmt.Fprintln(s.stderr, "nothing was deleted, because rows were skipped")
	}
}

type applyCommand struct {
	planFlags
	File  []string `help:"A YAML or JSON file, a directory of such files, or - for standard input. Repeatable." short:"f" required:"" placeholder:"FILE" env:"-"`
	Into  string   `help:"The parent of the resources, such as configurations/main, if the files do not specify it." placeholder:"PATH" complete:"path" env:"-"`
	Tag   string   `help:"A tag to add to each resource, such as tags/north." placeholder:"PATH" env:"-"`
	Prune bool     `help:"Delete resources that have the tag and are not in the files." env:"-"`
}

// Help returns examples.
func (applyCommand) Help() string {
	return `The command first prints the changes and, on a terminal, asks for confirmation. It applies all changes in one transaction, or none.

Examples:

  portolan apply -f site.yaml --dry-run
  portolan apply -f sites/ --tag tags/north --prune
  portolan export configurations/lab | portolan apply -f - --into configurations/test`
}

// Run applies the resources of the files.
func (c *applyCommand) Run(s *session) error {
	m, err := c.manager()
	if err != nil {
		return err
	}
	a, err := cli.ReadDocuments(os.Stdin, c.File)
	if err != nil {
		return err
	}
	for _, one := range []struct{ flag, file *string }{{&c.Into, &a.Into}, {&c.Tag, &a.Tag}} {
		if *one.flag != "" {
			*one.file = *one.flag
		}
	}
	a.Into, a.Prune = parentOrDefault(m, a.Into), a.Prune || c.Prune
	c.Yes = c.Yes || slices.Contains(c.File, "-") // standard input is used for the document, so it cannot answer a question
	return c.applyPlan(s, m, a)
}

// applyPlan applies resources. At a terminal it first shows the changes and asks for confirmation.
func (c *planFlags) applyPlan(s *session, m *cli.Manager, a client.Apply) error {
	if len(a.Resources) > maxApply {
		return c.applyInSteps(s, m, a)
	}
	if a.Prune && c.rows != nil && !c.DryRun && !c.Yes && !isInteractive() {
		return usageError{errors.New("--prune deletes resources that are not in the source: preview them with --dry-run, then add --yes")}
	}
	if c.DryRun || c.Yes || !isInteractive() {
		done, err := send(s, m, a, c.options())
		if err != nil {
			return err
		}
		c.report(s, a, done)
		return c.print(s, done)
	}
	o := c.options()
	o.DryRun = true
	plan, err := m.Apply(s.ctx, a, o)
	if err != nil {
		return err
	}
	if plan.Created+plan.Changed+plan.Deleted == 0 {
		c.report(s, a, plan)
		return printSummary(s, plan)
	}
	if err := cli.WriteApplied(s.stdout, plan); err != nil {
		return err
	}
	what := cli.Summary(plan)
	if plan.AtLeast {
		what = "partial preview, because there are many changes: at least " + what
	}
	fmt.Fprintf(s.stderr, "%s. Apply these changes? [y/N] ", what)
	if !confirm() {
		return errors.New("nothing was changed")
	}
	done, err := m.Apply(s.ctx, a, c.options())
	if err != nil {
		return err
	}
	c.report(s, a, done)
	return printSummary(s, done)
}

// maxApply is the maximum number of resources in one request. More are applied in steps, each in its own transaction.
const maxApply = 10_000

// applyInSteps applies more resources than fit into one transaction, parents before children.
func (c *planFlags) applyInSteps(s *session, m *cli.Manager, a client.Apply) error {
	n := len(a.Resources)
	switch {
	case a.Prune:
		return usageError{fmt.Errorf("--prune: the maximum is %d resources, but the files contain %d", maxApply, n)}
	case c.DryRun:
		return usageError{fmt.Errorf("--dry-run: the maximum is %d resources, but the files contain %d: "+
			"a larger set is applied in transactions of one thousand, and each depends on the previous ones", maxApply, n)}
	}
	if isInteractive() && !c.Yes {
		fmt.Fprintf(s.stderr, "Apply %d resources in transactions of %d, without a preview? [y/N] ", n, applyStep)
		if !confirm() {
			return errors.New("nothing was changed")
		}
	}
	if err := cli.Order(m.API, a.Resources); err != nil {
		return err
	}
	all, bar := client.Applied{}, s.bar("resources")
	defer bar.finish()
	for i := 0; i < n; i += applyStep {
		step := a
		step.Resources = a.Resources[i:min(i+applyStep, n)]
		done, err := m.Apply(s.ctx, step, c.options())
		if err != nil {
			bar.finish()
			return fmt.Errorf("applied the first %d resources, in order of their dependencies (see portolan history); "+
				"run the same command again to continue: %w", i, err)
		}
		bar.show("applied", int64(i+len(step.Resources)), int64(n))
		all.Created, all.Changed, all.Unchanged = all.Created+done.Created, all.Changed+done.Changed, all.Unchanged+done.Unchanged
		if done.Transaction != nil {
			all.Transaction = done.Transaction
		}
		all.Resources = append(all.Resources, done.Resources...)
	}
	bar.finish()
	return c.print(s, all)
}

// applyStep is the number of resources per transaction if resources are applied in steps.
const applyStep = 1000

// confirm reads a line from the terminal and reports whether it is y or yes.
func confirm() bool {
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	return err == nil && (answer == "y" || answer == "yes")
}

// isInteractive reports whether standard input is a terminal.
func isInteractive() bool { return term.IsTerminal(int(os.Stdin.Fd())) } //nolint:gosec // a file descriptor is small

type exportResources struct {
	scopeFlags
	Output string   `help:"The format: ${enum}." short:"o" enum:"yaml,json" default:"yaml"`
	Only   []string `help:"Export only resources of these collections, such as blocks,networks." placeholder:"NAME" complete:"collection" env:"-"`
	Whole  bool     `help:"Also write fields without a value. If you apply the document later, it clears values that were set after the export." env:"-"`
	Path   string   `arg:"" help:"The resource to export with everything below it, such as configurations/main, blocks/10.0.0.0/8 or zones/example.net." complete:"path"`
}

// Help returns examples.
func (exportResources) Help() string {
	return `Examples:

  portolan export configurations/main > main.yaml
  portolan export blocks/10.0.0.0/8 --only blocks,networks
  portolan export zones/example.net | portolan apply -f - --into configurations/test --dry-run`
}

// Run writes resources as a document that portolan apply can read.
func (c *exportResources) Run(s *session) error {
	m, err := c.manager()
	if err != nil {
		return err
	}
	for i, word := range c.Only {
		of, err := cli.CollectionNamed(m.API, word)
		if err != nil {
			return err
		}
		c.Only[i] = of.Name
	}
	at, err := m.FindOne(s.ctx, c.Path)
	if err != nil {
		return err
	}
	count := s.rowCounter("exported")
	document, notes, err := m.Export(s.ctx, at, c.Only, c.Whole, func(n int) { count(int64(n)) })
	if err != nil {
		return err
	}
	for _, note := range notes {
		fmt.Fprintln(s.stderr, note)
	}
	text, err := cli.WriteDocument(document, c.Output)
	if err == nil {
		_, err = s.stdout.Write(text)
	}
	return err
}
