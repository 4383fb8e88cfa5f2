package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Rules of names (docs/style.md): a bound is a maximum or a minimum, a function is named by a verb and a noun, and a test by its subject
// and the expected behaviour.
var (
	boundNames = regexp.MustCompile(`^(?i:most|least|longest|shortest|fewest)[A-Z]`)
	vagueVerbs = []string{"take", "took", "taken", "look", "looks", "begin", "begins", "begun", "said", "says", "told", "tell", "tells",
		"hear",
		"heard", "due", "of", "at", "in", "by", "for", "over", "under", "own", "one", "again", "anew", "gone", "goes", "lies", "stands",
		"stays",
		"there", "here", "above", "below", "beside", "behind", "inside", "into", "within", "without", "until", "only", "once", "others",
		"elsewhere", "everything", "nothing", "whose", "alike", "strictly", "further", "made", "proceed", "climb", "fair", "forge", "around",
		"before", "since", "from", "plus", "minus", "turn", "victim", "unsaved", "foresee", "standing", "emptied", "accessed", "awaited",
		"batched"}
	vagueTests = regexp.MustCompile(`(Nobody|Somebody|Anybody|Everybody|Whoever|Who|What|Whose|Goes|Gone|Stands|Lies|Taken|Told|Tells?|` +
		`Said|Says?|Heard|Again|Anew|Away|Elsewhere|Somewhere|Nowhere|Beside|Behind|Door|Begins?|Gives?|Comes?|There)([A-Z0-9]|$)`)
)

// vagueFunc returns the reason why the name of a function is not clear, or an empty text. Methods may implement an interface of another
// package, so they are checked in lower case only.
func vagueFunc(f *ast.FuncDecl, isTest bool) string {
	name := f.Name.Name
	switch {
	case isTest && f.Recv == nil && strings.HasPrefix(name, "Test") && vagueTests.MatchString(name):
		return "does not name its subject and the expected behaviour"
	case isTest:
		return ""
	case slices.Contains(vagueVerbs, name), f.Recv == nil && slices.Contains(vagueVerbs, strings.ToLower(name)):
		return "is not named by a verb and a noun"
	}
	return ""
}

// TestNames checks the names of functions, tests and constants, and that errors of shipped code name a failed step in the imperative.
func TestNames(t *testing.T) {
	set := token.NewFileSet()
	for _, root := range []string{"../internal", "../cmd", "../client", "../clients", "../console", "../packaging", "../bench", "../test"} {
		if err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_gen.go") || strings.Contains(path, "node_modules") {
				return err
			}
			file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			isTest := strings.HasSuffix(path, "_test.go")
			ast.Inspect(file, func(n ast.Node) bool {
				switch x := n.(type) {
				case *ast.FuncDecl:
					if reason := vagueFunc(x, isTest); reason != "" {
						t.Errorf("%s: the function %s %s", set.Position(x.Pos()), x.Name.Name, reason)
					}
				case *ast.CallExpr:
					if text := errorText(x); !isTest && gerundErrors.MatchString(text) && !strings.HasPrefix(text, "nothing ") {
						t.Errorf("%s: the error %.40q begins with neither a noun nor an imperative", set.Position(x.Pos()), text)
					}
				case *ast.ValueSpec:
					for _, name := range x.Names {
						if boundNames.MatchString(name.Name) {
							t.Errorf("%s: the bound %s begins with neither max nor min", set.Position(x.Pos()), name.Name)
						}
					}
				}
				return true
			})
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// gerundErrors matches error texts such as "reading the file", which are to name the step in the imperative: "read the file".
var gerundErrors = regexp.MustCompile(`^[a-z]+ing (a|an|the|for|in|on|to|%[sdvq]|[a-z]+s\b)`)

// errorText returns the constant text of a call of fmt.Errorf or errors.New; empty for other calls.
func errorText(call *ast.CallExpr) string {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 || f.Sel.Name != "Errorf" && f.Sel.Name != "New" {
		return ""
	}
	if x, ok := f.X.(*ast.Ident); !ok || x.Name != "fmt" && x.Name != "errors" {
		return ""
	}
	text, ok := call.Args[0].(*ast.BasicLit)
	if !ok {
		return ""
	}
	return strings.Trim(text.Value, "`\"")
}

// TestDocComments checks that the doc comment of a function, a type or a single value begins with its name, also in tests.
func TestDocComments(t *testing.T) {
	set := token.NewFileSet()
	check := func(name *ast.Ident, doc *ast.CommentGroup) {
		rest, named := strings.CutPrefix(doc.Text(), name.Name)
		if text := doc.Text(); text != "" && name.Name != "_" && (!named || strings.IndexAny(rest, " \n,:;.'()") != 0) {
			t.Errorf("%s: the comment does not begin with %s: %.40q", set.Position(name.Pos()), name.Name, text)
		}
	}
	for _, root := range []string{"../internal", "../cmd", "../client", "../clients", "../console", "../packaging", "../bench", "../test",
		"../tools"} {
		if err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.Contains(path, "node_modules") {
				return err
			}
			file, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil || ast.IsGenerated(file) {
				return err
			}
			for _, d := range file.Decls {
				switch x := d.(type) {
				case *ast.FuncDecl:
					check(x.Name, x.Doc)
				case *ast.GenDecl:
					if x.Lparen.IsValid() || len(x.Specs) != 1 {
						continue
					}
					switch spec := x.Specs[0].(type) {
					case *ast.TypeSpec:
						check(spec.Name, x.Doc)
					case *ast.ValueSpec:
						check(spec.Names[0], x.Doc)
					}
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}
