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

// planFlags say how resources are applied that a file has.
type planFlags struct {
	scopeFlags
	changeFlags
	changeOutput
	Yes bool `help:"Do not ask." short:"y" env:"-"`

	// rows are where resources were read from, one for each; nil for a document. refused is how many the manager refused, and reasons
	// counts the codes.
	rows    []string
	refused int
	reasons reasons
	// applied is what came of the resources.
	applied client.Applied
}

// placeOfResource is how a manager names a resource by its place.
var placeOfResource = regexp.MustCompile(`resources\[(\d+)\]`)

// report prints the resources that the manager refused.
func (c *planFlags) report(s *session, a client.Apply, done client.Applied) {
	c.applied = done
	for _, one := range done.Refused {
		text := placeOfResource.ReplaceAllStringFunc(one.Message, func(place string) string {
			i, err := strconv.Atoi(placeOfResource.FindStringSubmatch(place)[1])
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
				fmt.Fprintf(s.stderr, "in no row that was imported, kept: %s %s\n", one.Type, one.Key)
			}
		}
		fmt.Fprintln(s.stderr, "nothing was deleted, because rows were skipped")
	}
}

type applyCommand struct {
	planFlags
	File  []string `help:"A file of YAML or JSON, a directory of such, or - for standard input. May be given more than once." short:"f" required:"" placeholder:"FILE" env:"-"`
	Into  string   `help:"What the resources belong below, such as configurations/main, where the files do not say so." placeholder:"PATH" complete:"path" env:"-"`
	Tag   string   `help:"A tag that each gets, such as tags/north." placeholder:"PATH" env:"-"`
	Prune bool     `help:"Delete what has the tag and is not in the files." env:"-"`
}

// Help has examples.
func (applyCommand) Help() string {
	return `What would change is printed first and, on a terminal, asked for; then all is changed in one transaction, or nothing.

Examples:

  portolan apply -f site.yaml --dry-run
  portolan apply -f sites/ --tag tags/north --prune
  portolan export configurations/lab | portolan apply -f - --into configurations/test`
}

// Run lets resources be as files say.
func (c *applyCommand) Run(s *session) error {
	m, err := c.manager()
	if err != nil {
		return err
	}
	a, err := cli.ReadDocuments(os.Stdin, c.File)
	if err != nil {
		return err
	}
	for _, one := range []struct{ said, file *string }{{&c.Into, &a.Into}, {&c.Tag, &a.Tag}} {
		if *one.said != "" {
			*one.file = *one.said
		}
	}
	a.Into, a.Prune = into(m, a.Into), a.Prune || c.Prune
	c.Yes = c.Yes || slices.Contains(c.File, "-") // who is asked answers there
	return c.planned(s, m, a)
}

// planned applies resources; at a terminal it shows what would change, and asks.
func (c *planFlags) planned(s *session, m *cli.Manager, a client.Apply) error {
	if len(a.Resources) > applyAtOnce {
		return c.inSteps(s, m, a)
	}
	if a.Prune && c.rows != nil && !c.DryRun && !c.Yes && !asked() {
		return usageError{errors.New("--prune deletes what is not in the source: see what by --dry-run, then give --yes")}
	}
	if c.DryRun || c.Yes || !asked() {
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
		return sayApplied(s, plan)
	}
	if err := cli.WriteApplied(s.stdout, plan); err != nil {
		return err
	}
	what := cli.Summary(plan)
	if plan.AtLeast {
		what = "this is a part of it alone, because it is much: at least " + what
	}
	fmt.Fprintf(s.stderr, "%s. Do that? [y/N] ", what)
	if !answered() {
		return errors.New("nothing was changed")
	}
	done, err := m.Apply(s.ctx, a, c.options())
	if err != nil {
		return err
	}
	c.report(s, a, done)
	return sayApplied(s, done)
}

// applyAtOnce is how many resources a manager takes at once; of more, each step is a transaction.
const applyAtOnce = 10_000

// inSteps applies more than go into one transaction, what others lie in before them.
func (c *planFlags) inSteps(s *session, m *cli.Manager, a client.Apply) error {
	n := len(a.Resources)
	switch {
	case a.Prune:
		return usageError{fmt.Errorf("--prune: goes with %d resources at most, and there are %d", applyAtOnce, n)}
	case c.DryRun:
		return usageError{fmt.Errorf("--dry-run: goes with %d resources at most, and there are %d: of more each thousand is a transaction, "+
			"which needs those before", applyAtOnce, n)}
	}
	if asked() && !c.Yes {
		fmt.Fprintf(s.stderr, "%d resources, a transaction for each %d, without a plan. Do that? [y/N] ", n, applyStep)
		if !answered() {
			return errors.New("nothing was changed")
		}
	}
	if err := cli.Order(m.API, a.Resources); err != nil {
		return err
	}
	all, bar := client.Applied{}, s.bar("resources")
	defer bar.end()
	for i := 0; i < n; i += applyStep {
		step := a
		step.Resources = a.Resources[i:min(i+applyStep, n)]
		done, err := m.Apply(s.ctx, step, c.options())
		if err != nil {
			bar.end()
			return fmt.Errorf("the first %d resources, in the order in which they need each other, are as the files say (portolan history); "+
				"the same command goes on: %w", i, err)
		}
		bar.show("applied", int64(i+len(step.Resources)), int64(n))
		all.Created, all.Changed, all.Unchanged = all.Created+done.Created, all.Changed+done.Changed, all.Unchanged+done.Unchanged
		if done.Transaction != nil {
			all.Transaction = done.Transaction
		}
		all.Resources = append(all.Resources, done.Resources...)
	}
	bar.end()
	return c.print(s, all)
}

// applyStep is how many resources are applied in a transaction where there are more than go into one.
const applyStep = 1000

// answered reports whether somebody at the terminal says yes.
func answered() bool {
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	return err == nil && (answer == "y" || answer == "yes")
}

// asked reports whether somebody is at a terminal who can be asked.
func asked() bool { return term.IsTerminal(int(os.Stdin.Fd())) } //nolint:gosec // a file descriptor is small

type exportResources struct {
	scopeFlags
	Output string   `help:"The format: ${enum}." short:"o" enum:"yaml,json" default:"yaml"`
	Only   []string `help:"Only resources of these collections, such as blocks,networks." placeholder:"NAME" complete:"collection" env:"-"`
	Whole  bool     `help:"Write fields without a value, too: applied later, the document takes away what was set since." env:"-"`
	Path   string   `arg:"" help:"The resource that is exported with all below it, such as configurations/main, blocks/10.0.0.0/8 or zones/example.net." complete:"path"`
}

// Help has examples.
func (exportResources) Help() string {
	return `Examples:

  portolan export configurations/main > main.yaml
  portolan export blocks/10.0.0.0/8 --only blocks,networks
  portolan export zones/example.net | portolan apply -f - --into configurations/test --dry-run`
}

// Run writes resources as a document that portolan apply takes back.
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
	count := s.counting("exported")
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
