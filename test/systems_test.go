package test

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// TestOtherSystems checks that each name that a package uses is declared on macOS and Windows, too. It finds functions that only the files
// of Linux declare, without a build for these systems, which takes minutes.
func TestOtherSystems(t *testing.T) {
	t.Parallel()
	for _, system := range []string{"darwin", "windows"} {
		c := build.Default
		c.GOOS, c.CgoEnabled = system, false
		s := &otherSystem{t: t, context: c, files: token.NewFileSet(), declared: map[string]map[string]bool{}}
		packages := 0
		for _, root := range []string{"../internal", "../cmd", "../client"} {
			if err := filepath.WalkDir(root, func(dir string, d fs.DirEntry, err error) error {
				if err == nil && d.IsDir() && (d.Name() == "testdata" || d.Name() == "testkit") { // tests alone use the kit
					return filepath.SkipDir
				}
				if err == nil && d.IsDir() && s.check(dir) {
					packages++
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
		if packages < 50 {
			t.Errorf("%s has %d packages", system, packages)
		}
	}
}

// otherSystem reads packages as the compiler for another system does. declared has the names that packages declare, by folder.
type otherSystem struct {
	t        *testing.T
	context  build.Context
	files    *token.FileSet
	declared map[string]map[string]bool
}

// read returns the files of a package for the system, and the names that they declare.
func (s *otherSystem) read(dir string) (all []*ast.File, declared map[string]bool) {
	p, err := s.context.ImportDir(dir, 0)
	if err != nil { // the folder has no files for the system
		return nil, nil
	}
	declared = map[string]bool{}
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(s.files, filepath.Join(dir, name), nil, 0)
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, f)
		for name := range f.Scope.Objects { //nolint:staticcheck // types of other systems are not available without a build
			declared[name] = true
		}
	}
	s.declared[dir] = declared
	return all, declared
}

// check reports names without a declaration. found reports that the folder has a package for the system.
func (s *otherSystem) check(dir string) (found bool) {
	all, declared := s.read(dir)
	for _, f := range all {
		imported := map[string]string{} // the folders of our packages, and "" for others
		for _, one := range f.Imports {
			from := strings.Trim(one.Path.Value, `"`)
			name := path.Base(from)
			if one.Name != nil {
				name = one.Name.Name
			}
			own, _ := strings.CutPrefix(from, "portolan/")
			if own != from {
				imported[name] = filepath.Join("..", own)
			}
		}
		for _, one := range f.Unresolved { //nolint:staticcheck // as above
			if !declared[one.Name] && types.Universe.Lookup(one.Name) == nil && !isImported(f, one.Name) {
				s.t.Errorf("%s: %s is not declared on %s", s.files.Position(one.Pos()), one.Name, s.context.GOOS)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			of, ok := selector.X.(*ast.Ident)
			if !ok || of.Obj != nil || imported[of.Name] == "" { //nolint:staticcheck // as above
				return true
			}
			from := imported[of.Name]
			if s.declared[from] == nil {
				s.read(from)
			}
			if !s.declared[from][selector.Sel.Name] {
				s.t.Errorf("%s: %s.%s is not declared on %s", s.files.Position(selector.Pos()), of.Name, selector.Sel.Name, s.context.GOOS)
			}
			return true
		})
	}
	return len(all) > 0
}

// isImported reports whether a file imports a package with a name. An import without a name counts if its path contains the name, because
// the last element of the path may be another one, such as a version.
func isImported(f *ast.File, name string) bool {
	for _, one := range f.Imports {
		from := strings.Trim(one.Path.Value, `"`)
		if one.Name != nil && one.Name.Name == name || one.Name == nil && strings.Contains(from, strings.TrimSuffix(name, "_")) {
			return true
		}
	}
	return false
}
