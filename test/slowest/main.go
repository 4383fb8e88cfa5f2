// Command slowest reads the output of `go test -json` and prints it like `go test`. Only failures are printed completely, and the ten
// slowest tests follow at the end. It fails if a test failed or if no test ran.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// event is a line of `go test -json` (go doc test2json).
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

// shown is the number of slowest tests that are printed.
const shown = 10

func main() {
	failed, err := report(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "slowest:", err)
	}
	if failed || err != nil {
		os.Exit(1)
	}
}

// report prints the events. failed reports that a test or a build failed.
func report(in io.Reader, to io.Writer) (failed bool, err error) {
	type key struct{ pkg, test string }
	output, passed := map[key][]string{}, 0
	var times []event
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil { // not an event, for example the download of a module
				_, _ = to.Write(line)
				continue
			}
			at := key{e.Package, e.Test}
			switch e.Action {
			case "output":
				if e.Test == "" && (strings.HasPrefix(e.Output, "ok ") || strings.HasPrefix(e.Output, "FAIL\t")) {
					_, _ = io.WriteString(to, e.Output)
				} else {
					output[at] = append(output[at], e.Output)
				}
			case "build-output":
				_, _ = io.WriteString(to, e.Output)
			case "build-fail":
				failed = true
			case "fail", "pass", "skip":
				if e.Action == "fail" {
					failed = true
					_, _ = io.WriteString(to, strings.Join(output[at], ""))
				}
				if delete(output, at); e.Test != "" {
					times = append(times, e)
				}
				if e.Action == "pass" {
					passed++
				}
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return failed, err
		}
	}
	slices.SortFunc(times, func(a, b event) int { return cmp.Compare(b.Elapsed, a.Elapsed) })
	_, _ = fmt.Fprintln(to, "the slowest tests, in seconds:")
	for _, e := range times[:min(shown, len(times))] {
		_, _ = fmt.Fprintf(to, "%8.1f  %s %s\n", e.Elapsed, e.Package, e.Test)
	}
	if passed == 0 {
		return failed, fmt.Errorf("no test has passed")
	}
	return failed, nil
}
