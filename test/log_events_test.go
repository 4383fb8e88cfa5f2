package test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var writeEvents = flag.Bool("write-events", false, "write the table of log events anew, with the meanings that it has")

// logLevels are the levels of the events in the table, by their methods, the gravest last.
var logLevels = []string{"Info", "Warn", "Error"}

// eventsPage has the table of log events.
const eventsPage = "../docs/log-events.md"

// logEvent is an event in the code.
type logEvent struct {
	level  string
	fields []string
	// parts are the programs that log it: the manager, the service point, or both.
	parts map[string]bool
}

// TestLogEvents compares the table of log events in docs/log-events.md with the code. The meaning and the remedy of an event are written by
// hand; the other columns follow from the code. Events at level DEBUG are left out.
func TestLogEvents(t *testing.T) {
	events := logEvents(t)
	page, err := os.ReadFile(eventsPage)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(page), "<!-- events -->\n")
	if !found {
		t.Fatalf("%s has no table of events", eventsPage)
	}
	meanings := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| \\w+ \\| [^|]* \\| [^|]* \\| (.*) \\|$").FindAllStringSubmatch(rest, -1) {
		meanings[row[1]] = row[2]
	}
	var table strings.Builder
	table.WriteString("| event | level | by | fields | meaning | remedy |\n|---|---|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(events)) {
		e := events[name]
		meaning := meanings[name]
		if strings.Count(meaning, " | ") != 1 {
			meaning = " | "
		}
		if cells := strings.Split(meaning, " | "); strings.TrimSpace(cells[0]) == "" && !*writeEvents {
			t.Errorf("%s: the event %q has no meaning", eventsPage, name)
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s | %s |\n", name, strings.ToUpper(e.level), strings.Join(slices.Sorted(maps.Keys(e.parts)), ", "),
			strings.Join(e.fields, ", "), meaning)
	}
	if *writeEvents {
		if err := os.WriteFile(eventsPage, []byte(head+"<!-- events -->\n"+table.String()), 0o644); err != nil { //nolint:gosec // a page
			t.Fatal(err)
		}
		return
	}
	if table.String() != rest {
		t.Errorf("%s is not current: go test ./test -run TestLogEvents -args -write-events, and write the meanings of new events", eventsPage)
	}
}

// logEvents returns the events of shipped code, by their messages.
func logEvents(t *testing.T) map[string]*logEvent {
	t.Helper()
	events := map[string]*logEvent{}
	set := token.NewFileSet()
	for _, root := range []string{"../internal", "../cmd"} {
		if err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/testkit/") {
				return err
			}
			file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if call, is := n.(*ast.CallExpr); is {
					addEvent(events, path, call)
				}
				return true
			})
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return events
}

// addEvent adds the event of a call, if it is one of a log.
func addEvent(events map[string]*logEvent, path string, call *ast.CallExpr) {
	method, is := call.Fun.(*ast.SelectorExpr)
	if !is {
		return
	}
	level, inContext := strings.CutSuffix(method.Sel.Name, "Context")
	args := call.Args
	if inContext && len(args) > 0 {
		args = args[1:]
	}
	if !slices.Contains(logLevels, level) || len(args) == 0 || !isLog(method.X) {
		return
	}
	name := messageOf(args[0])
	if name == "" {
		return
	}
	e := events[name]
	if e == nil {
		e = &logEvent{parts: map[string]bool{}}
		events[name] = e
	}
	if slices.Index(logLevels, level) > slices.Index(logLevels, e.level) {
		e.level = level
	}
	e.parts[programOf(path)] = true
	for i := 1; i < len(args); i += 2 {
		if text := messageOf(args[i]); text != "" && !slices.Contains(e.fields, text) {
			e.fields = append(e.fields, text)
		}
	}
}

// programOf returns the program that a file is part of.
func programOf(path string) string {
	name := filepath.Base(path)
	switch {
	case strings.Contains(path, "/servicepoint/"), strings.Contains(path, "/cmd/") && name == "agent.go":
		return "service point"
	case strings.Contains(path, "/cmd/") && name != "serve.go" && !strings.HasPrefix(name, "demo"), strings.Contains(path,
		"/internal/client/"):
		return "command"
	}
	return "manager"
}

// isLog reports whether an expression is a logger, by its last name.
func isLog(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return strings.EqualFold(x.Name, "log") || x.Name == "slog" || x.Name == "logger"
	case *ast.SelectorExpr:
		return isLog(x.Sel)
	case *ast.CallExpr:
		if f, is := x.Fun.(*ast.SelectorExpr); is {
			return isLog(f.Sel) || f.Sel.Name == "With" && isLog(f.X)
		}
	}
	return false
}

// messageOf returns the text of an expression; parts that are computed are an ellipsis.
func messageOf(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(x.Value); err == nil && x.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		left, right := messageOf(x.X), messageOf(x.Y)
		if left == "" {
			left = "…"
		}
		if right == "" {
			right = "…"
		}
		return left + right
	}
	return ""
}
