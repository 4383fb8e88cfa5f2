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

// Rules of names (docs/style.md): a bound is a maximum or a minimum, and a function is named by a verb and a noun.
var (
	boundNames = regexp.MustCompile(`^(?i:most|least|longest|shortest|fewest)[A-Z]`)
	vagueVerbs = []string{"take", "took", "taken", "look", "looks", "begin", "begun", "said", "says", "told", "tell", "tells", "hear",
		"heard", "due",
		"of", "at", "in", "by", "over", "under", "own", "one", "again", "anew", "gone", "goes", "lies", "stands", "stays", "there", "here"}
)

// TestNames checks the names of functions and constants of shipped code.
func TestNames(t *testing.T) {
	set := token.NewFileSet()
	for _, root := range []string{"../internal", "../cmd", "../client", "../console", "../packaging"} {
		if err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "_gen.go") {
				return err
			}
			file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch x := n.(type) {
				case *ast.FuncDecl:
					if slices.Contains(vagueVerbs, x.Name.Name) {
						t.Errorf("%s: the function %s is not named by a verb and a noun", set.Position(x.Pos()), x.Name.Name)
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
