package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// below are the parts of internal/ that a part may import in addition to itself.
var below = map[string][]string{
	"base":         nil,
	"wire":         {"base"},
	"engine":       {"base"},
	"manager":      {"base", "wire", "engine"},
	"servicepoint": {"base", "wire"},
	"client":       {"base", "wire/dhcpdata", "engine/schema", "engine/resource"},
	"testkit":      {"base", "wire", "engine", "manager", "servicepoint"},
}

// TestEveryPackageHasARule compares the import rules of .golangci.yml with the packages and the order of the parts. Each package must have
// a strict rule, and no rule may allow an upward import, or one that its package does not have.
func TestEveryPackageHasARule(t *testing.T) {
	text, err := os.ReadFile("../.golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Linters struct {
			Settings struct {
				Depguard struct {
					Rules map[string]struct {
						Files []string
						Mode  string `yaml:"list-mode"`
						Allow []string
					}
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	allowed := map[string][]string{}
	for name, rule := range config.Linters.Settings.Depguard.Rules {
		if len(rule.Files) != 2 || rule.Files[1] != "!$test" || rule.Mode != "strict" {
			t.Errorf("the rule %s is not a strict rule for the files of one package without its tests", name)
			continue
		}
		allowed[strings.TrimSuffix(strings.TrimPrefix(rule.Files[0], "**/"), "/*.go")] = rule.Allow
	}
	packages := map[string][]string{} // their imports
	for _, root := range []string{"internal", "client", "cmd/portolan", "console"} {
		if err := filepath.WalkDir(filepath.Join("..", root), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() && entry.Name() == "testdata" {
				return fs.SkipDir
			}
			if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
				at := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../")
				packages[at] = append(packages[at], importsOf(t, path)...)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	for path := range packages {
		if strings.HasPrefix(path, "console/") { // tools that build and test it
			continue
		}
		if _, ok := allowed[path]; !ok {
			t.Errorf("the package %s has no rule in .golangci.yml", path)
		}
	}
	for path, imports := range allowed {
		of, ok := packages[path]
		if !ok {
			t.Errorf(".golangci.yml has a rule for %s, which is not a package", path)
		}
		for _, one := range imports {
			whole, exact := strings.CutSuffix(one, "$")
			if one != "$gostd" && !slices.ContainsFunc(of, func(used string) bool {
				return used == whole || !exact && strings.HasPrefix(used, whole)
			}) {
				t.Errorf("the rule of %s allows %s, which it does not import", path, one)
			}
		}
		part, ok := strings.CutPrefix(path, "internal/")
		if part, _, _ = strings.Cut(part, "/"); !ok {
			continue
		}
		lower, known := below[part]
		if !known {
			t.Errorf("the package %s is not in any part", path)
		}
		for _, one := range imports {
			to, ours := strings.CutPrefix(strings.TrimSuffix(one, "$"), "portolan/internal/")
			if !ours || slices.ContainsFunc(append(lower, part), func(allowed string) bool {
				return to == allowed || strings.HasPrefix(to, allowed+"/")
			}) {
				continue
			}
			t.Errorf("the rule of %s allows %s, which is not below it", path, one)
		}
	}
}

// TestTestsFollowTheOrderOfParts checks that the tests of a part import no part above it, other than testkit: the tests of a low part
// must not link the whole product.
func TestTestsFollowTheOrderOfParts(t *testing.T) {
	above := map[string][]string{"manager": {"servicepoint"}} // service points that check in
	for part, lower := range below {
		allowed := slices.Concat(lower, above[part], []string{part, "testkit"})
		if err := filepath.WalkDir(filepath.Join("../internal", part), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			for _, one := range importsOf(t, path) {
				to, ours := strings.CutPrefix(one, "portolan/internal/")
				if ours && !slices.ContainsFunc(allowed, func(a string) bool { return to == a || strings.HasPrefix(to, a+"/") }) {
					t.Errorf("%s imports %s, which is not below it", path, one)
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// state are the variables of packages that hold state (D336), by package.
var state = map[string][]string{
	"base/freeport":                     {"last", "startOnce"},
	"engine/store":                      {"temporary"},
	"manager/outbound":                  {"allowed"},
	"manager/server":                    {"collecting"},
	"servicepoint/application/resolver": {"global", "packedAnswers", "policed", "receiveFailures"},
}

// TestPackagesHaveNoState checks that no package has a function init, a variable that a function changes, or one that holds locks, atomic
// values, metrics or clients, but for those of state. Pools and values that are computed once hold none.
func TestPackagesHaveNoState(t *testing.T) {
	packages := map[string][]*ast.File{}
	if err := filepath.WalkDir("../internal", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "testkit" {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../internal/")
		packages[name] = append(packages[name], f)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for name, files := range packages {
		if found := stateOf(t, files); !slices.Equal(found, state[name]) {
			t.Errorf("internal/%s: package variables with state are %v, D336 allows %v: move the variable into a type, or extend D336", name, found,
				state[name])
		}
	}
	for name := range state {
		if packages[name] == nil {
			t.Errorf("internal/%s has state by D336 and does not exist", name)
		}
	}
}

// stateOf returns the names of the variables of a package that hold state or that a function changes.
func stateOf(t *testing.T, files []*ast.File) (found []string) {
	declared := map[string]*ast.ValueSpec{}
	for _, f := range files {
		for _, one := range f.Decls {
			if fn, is := one.(*ast.FuncDecl); is && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("package %s has a function init", f.Name)
			}
			if d, is := one.(*ast.GenDecl); is && d.Tok == token.VAR {
				for _, spec := range d.Specs {
					v := spec.(*ast.ValueSpec)
					for _, name := range v.Names {
						if name.Name == "_" { // asserts that a type has an interface
							continue
						}
						declared[name.Name] = v
						if holdsState(v) {
							found = append(found, name.Name)
						}
					}
				}
			}
		}
	}
	changed := func(x ast.Expr) {
		for {
			switch of := x.(type) {
			case *ast.IndexExpr:
				x = of.X
				continue
			case *ast.SelectorExpr:
				x = of.X
				continue
			case *ast.Ident:
				//nolint:staticcheck // the object tells a local variable from one of the package, without the types of all packages
				if v := declared[of.Name]; v != nil && (of.Obj == nil || of.Obj.Decl == v) {
					found = append(found, of.Name)
				}
			}
			return
		}
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				if n.Tok != token.DEFINE {
					for _, x := range n.Lhs {
						changed(x)
					}
				}
			case *ast.IncDecStmt:
				changed(n.X)
			case *ast.CallExpr:
				if fn, is := n.Fun.(*ast.Ident); is && (fn.Name == "delete" || fn.Name == "clear") {
					changed(n.Args[0])
				}
			}
			return true
		})
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// holdsState reports whether the declaration of a variable refers to a type that holds state, outside of functions.
func holdsState(v *ast.ValueSpec) (holds bool) {
	ast.Inspect(v, func(n ast.Node) bool {
		if _, is := n.(*ast.FuncLit); is {
			return false
		}
		if s, is := n.(*ast.SelectorExpr); is {
			if x, is := s.X.(*ast.Ident); is {
				once := x.Name == "sync" && (s.Sel.Name == "Pool" || s.Sel.Name == "OnceValue" || s.Sel.Name == "OnceValues")
				holds = holds || !once && slices.Contains([]string{"sync", "atomic", "promauto"}, x.Name) ||
					x.Name == "http" && s.Sel.Name == "Client"
			}
		}
		return true
	})
	return holds
}

// importsOf returns the imports of a file.
func importsOf(t *testing.T, path string) (all []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range f.Imports {
		name, err := strconv.Unquote(one.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, name)
	}
	return all
}

// TestFilesAreShort checks that source files have at most 500 lines.
func TestFilesAreShort(t *testing.T) {
	const maxLines = 500
	n := 0
	for _, part := range []string{"../internal", "../cmd", "../client"} {
		if err := filepath.WalkDir(part, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path,
				"_gen.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if lines := strings.Count(string(text), "\n"); lines > maxLines {
				t.Errorf("%s has %d lines, more than %d", path, lines, maxLines)
			}
			n++
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if n < 500 {
		t.Errorf("there are %d files", n)
	}
}
