// Command bench measures Portolan against the physical limit. Each figure is a ratio to a bare program that performs the minimum work,
// measured in the same run on the same machine. `make bench` runs it. With -big it first prepares ten million addresses, which takes
// minutes.
//
// Servers run as processes of their own (this program started with -role), so that the load costs both sides the same and resident memory
// can be read.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"syscall"
	"text/tabwriter"
	"time"

	"portolan/console/browser"
	"portolan/internal/testkit/pgtest"
)

// row is one line of the result table.
type row struct {
	what, portolan, bare, ratio, goal string
	good                              bool
}

// bench holds the shared state of the measurements.
type bench struct {
	dir  string
	big  bool
	rows []row
	time time.Duration // the duration of one measurement
	// question selects the questions (x, y) whose names contain it.
	question string
	// server is the PostgreSQL server. databases are the URL and the network of the filled databases, by size.
	server    *pgtest.Server
	databases map[int][2]string
}

func main() {
	role := flag.String("role", "", "internal: run as a server for the measurements")
	data := flag.String("data", "", "internal: the data directory of the role")
	body := flag.String("body", "", "internal: a file with the answer of the role")
	big := flag.Bool("big", false, "also measure with ten million addresses in use")
	only := flag.String("only", "", "measure only these, such as ab")
	seconds := flag.Float64("seconds", 3, "length of one measurement")
	question := flag.String("question", "", "of the questions (x, y), only those with this in their name")
	keep := flag.Bool("keep", false, "leave the data, and say where it is")
	flag.Parse()
	if *role != "" {
		if err := serveRole(*role, *data, *body); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	dir, err := os.MkdirTemp("", "portolan-bench-")
	if err == nil {
		b := &bench{dir: dir, big: *big, question: *question, time: time.Duration(*seconds * float64(time.Second)),
			databases: map[int][2]string{}}
		err = b.run(*only)
		if b.server != nil {
			b.server.Stop()
		}
		b.print()
		if *keep {
			fmt.Fprintln(os.Stderr, "the data is in", dir)
		} else {
			_ = os.RemoveAll(dir)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (b *bench) run(only string) error {
	for _, m := range []struct {
		name rune
		run  func() error
	}{{'a', b.getOne}, {'b', b.page1000}, {'c', b.page100000}, {'d', b.nextAvailable}, {'e', b.measureCreates}, {'f', b.checkIns},
		{'g', b.startUp},
		{'h', b.compileZone}, {'i', b.renameZone}, {'j', b.splitNetwork}, {'k', b.usage},
		{'l', b.follow}, {'m', b.fleet}, {'n', b.imports}, {'x', b.questions}, {'y', b.sharedQuestions}, {'z', b.preview},
		{'p', b.sharedGet}, {'q', b.sharedPages}, {'r', b.sharedCreates}, {'s', b.sharedReshaped}, {'t', b.sharedImport},
		{'u', b.sharedCheckIns}, {'o', b.sharedFleet}, {'v', b.sharedNext}, {'w', b.sharedUsage}, {'A', b.answers}, {'B', b.wire}, {'C',
			b.rights},
		{'D', b.sharedRights}, {'E', b.console}, {'F', b.largeWork}, {'G', b.cost}, {'H', b.crowd}, {'J', b.zones},
		{'R', b.resolvers}} {
		if only != "" && !containsRune(only, m.name) {
			continue
		}
		memory.now = string(m.name)
		if err := m.run(); errors.Is(err, pgtest.ErrNone) || errors.Is(err, syscall.EMFILE) || errors.Is(err, browser.ErrNone) {
			fmt.Fprintf(os.Stderr, "(%c) is left out: %v\n", m.name, err)
		} else if err != nil {
			return fmt.Errorf("(%c): %w", m.name, err)
		}
	}
	b.add("resident memory of a manager under all of it, most in ("+memory.of+")", fmt.Sprintf("%.0f MiB", memory.mib), "256 MiB",
		memory.mib/256, "at most 1", memory.mib <= 256)
	return nil
}

func containsRune(text string, want rune) bool {
	for _, r := range text {
		if r == want {
			return true
		}
	}
	return false
}

// add adds a result. It prints the result at once, because the whole run takes long.
func (b *bench) add(what, ours, bare string, ratio float64, goal string, good bool) {
	r := row{what, ours, bare, fmt.Sprintf("%.2f", ratio), goal, good}
	b.rows = append(b.rows, r)
	fmt.Fprintf(os.Stderr, "%s: %s against %s, ratio %s (%s)\n", r.what, r.portolan, r.bare, r.ratio, r.goal)
}

// addResult adds a result without a comparison.
func (b *bench) addResult(what, ours string) {
	b.rows = append(b.rows, row{what: what, portolan: ours, bare: "-", ratio: "-", goal: "-", good: true})
	fmt.Fprintf(os.Stderr, "%s: %s\n", what, ours)
}

func (b *bench) print() {
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "MEASURED\tPORTOLAN\tBARE\tRATIO\tGOAL\t")
	for _, r := range b.rows {
		mark := "reached"
		if !r.good {
			mark = "missed"
		} else if r.goal == "-" {
			mark = ""
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.what, r.portolan, r.bare, r.ratio, r.goal, mark)
	}
	_ = w.Flush()
}
