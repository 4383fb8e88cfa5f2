package test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// TestDependenciesAreListed compares the tables of docs/dependencies.md with the direct requirements of the modules of the repository.
func TestDependenciesAreListed(t *testing.T) {
	var required []string
	own := "" // the repository's module, which others require
	for _, dir := range []string{".", "tools", "packaging/release", "clients/terraform"} {
		path := filepath.Join("..", dir, "go.mod")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := modfile.Parse(path, text, nil)
		if err != nil {
			t.Fatal(err)
		}
		if dir == "." {
			own = f.Module.Mod.Path
		}
		var tools []string
		for _, tool := range f.Tool {
			tools = append(tools, tool.Path)
		}
		for _, r := range f.Require {
			of := slices.ContainsFunc(tools, func(tool string) bool { return len(tool) > len(r.Mod.Path) && tool[:len(r.Mod.Path)] == r.Mod.Path })
			if (!r.Indirect || of) && r.Mod.Path != own {
				required = append(required, r.Mod.Path)
			}
		}
	}
	page, err := os.ReadFile("../docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, row := range regexp.MustCompile(`(?m)^\| (\S+[./]\S+) \|`).FindAllStringSubmatch(string(page), -1) {
		listed = append(listed, row[1])
	}
	for _, one := range required {
		if !slices.Contains(listed, one) {
			t.Errorf("docs/dependencies.md does not list %s", one)
		}
	}
	for _, one := range listed {
		if !slices.Contains(required, one) {
			t.Errorf("docs/dependencies.md lists %s, which no module requires directly", one)
		}
	}
	// Tests import these modules themselves, and the program contains them as parts of others.
	linked := []string{"github.com/beevik/etree", "github.com/go-jose/go-jose/v4"}
	_, after, _ := strings.Cut(string(page), "\n## In the program\n")
	program, _, _ := strings.Cut(after, "\n## ")
	imported := importsOfProgram(t)
	for _, module := range listed {
		isImported := slices.ContainsFunc(imported, func(path string) bool { return path == module || strings.HasPrefix(path, module+"/") })
		isInProgram := strings.Contains(program, "| "+module+" |")
		if isInProgram != (isImported || slices.Contains(linked, module)) {
			t.Errorf("docs/dependencies.md lists %s in the program: %t, and the program imports it: %t", module, isInProgram, isImported)
		}
	}
}

// importsOfProgram returns the imports of the program, without those of tests and of packages for tests.
func importsOfProgram(t *testing.T) (all []string) {
	t.Helper()
	for _, root := range []string{"../cmd", "../internal", "../client", "../api", "../docs"} {
		if err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && (d.Name() == "testkit" || d.Name() == "testdata") {
				return fs.SkipDir
			}
			if err == nil && filepath.Ext(path) == ".go" && !strings.HasSuffix(path, "_test.go") {
				all = append(all, importsOf(t, path)...)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestNamedFilesExist checks that the source files exist that the pages for contributors name.
func TestNamedFilesExist(t *testing.T) {
	var files []string
	if err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".go" {
			files = append(files, "/"+filepath.ToSlash(path))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, page := range append(pages, "../ARCHITECTURE.md", "../CONTRIBUTING.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("`([\\w/]+\\.go)`").FindAllStringSubmatch(string(text), -1) {
			named++
			if !slices.ContainsFunc(files, func(path string) bool { return strings.HasSuffix(path, "/"+m[1]) }) {
				t.Errorf("%s names %s, which does not exist", page, m[1])
			}
		}
	}
	if named < 20 {
		t.Errorf("the pages name %d files", named)
	}
}

// TestMessagesOfTroubleshooting checks that the code contains the messages in the first column of docs/troubleshoot.md. Three dots, N, NAME
// and PATH represent variable parts.
func TestMessagesOfTroubleshooting(t *testing.T) {
	var code strings.Builder
	for _, dir := range []string{"../internal", "../cmd", "../client"} {
		if err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path) //nolint:gosec // a source of the repository
			code.Write(text)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile("../docs/troubleshoot.md")
	if err != nil {
		t.Fatal(err)
	}
	variable, checked := regexp.MustCompile(`\.\.\.|\bN\b|NAME|PATH`), 0
	for _, row := range regexp.MustCompile(`(?m)^\| (.*?) \|`).FindAllStringSubmatch(string(page), -1) {
		for _, message := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			for _, part := range variable.Split(message[1], -1) {
				checked++
				if !strings.Contains(code.String(), strings.Trim(part, " ,:;")) {
					t.Errorf("the code contains no message with %q, a part of %q", part, message[1])
				}
			}
		}
	}
	if checked < 20 {
		t.Errorf("the page has %d messages", checked)
	}
}

// TestTour checks that the files that docs/tour.md names exist.
func TestTour(t *testing.T) {
	page, err := os.ReadFile("../docs/tour.md")
	if err != nil {
		t.Fatal(err)
	}
	files := regexp.MustCompile("`([a-z]+/[^`]+\\.go)`").FindAllStringSubmatch(string(page), -1)
	for _, file := range files {
		if _, err := os.Stat(filepath.Join("../internal", file[1])); err != nil {
			t.Error(err)
		}
	}
	if len(files) < 30 {
		t.Errorf("it names %d files", len(files))
	}
}

// secondSentence matches the end of a sentence that another sentence follows in the same cell.
var secondSentence = regexp.MustCompile("[.?!][\"`)]* +(?:[^\\s\\d(a-z]|`[a-z])")

// TestDecisionsAreNumbered checks that each row of docs/decisions.md has a unique number, a date, and one sentence in each cell.
func TestDecisionsAreNumbered(t *testing.T) {
	page, err := os.ReadFile("../docs/decisions.md")
	if err != nil {
		t.Fatal(err)
	}
	row, numbers := regexp.MustCompile(`^\| <a id="d(\d+)"></a>D(\d+) \|.+\|.+\|.+\| \d{4}-\d\d-\d\d \|$`), map[string]bool{}
	for line := range strings.Lines(string(page)) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "| |") || strings.HasPrefix(line, "|---") {
			continue
		}
		found := row.FindStringSubmatch(line)
		if found == nil || found[1] != found[2] || numbers[found[1]] {
			t.Errorf("not a row with a number of its own and a date: %.100s", line)
			continue
		}
		numbers[found[1]] = true
		for i, cell := range strings.Split(strings.Trim(line, "| "), " | ") {
			if secondSentence.MatchString(cell) {
				t.Errorf("D%s: cell %d has more than one sentence: %.100s", found[1], i+1, cell)
			}
		}
	}
	if len(numbers) < 300 {
		t.Errorf("there are %d decisions", len(numbers))
	}
}
