package server

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestEngineNamesNoTrade checks that no text in internal/engine is the name of a declared collection or type: the engine serves any trade.
func TestEngineNamesNoTrade(t *testing.T) {
	api := declared(t)
	// Words of HTTP and of OpenAPI, the history, the rights, the sign-in, the folder of backups, and the type of an example.
	words := []string{"IPv4Block", "Location", "Transaction", "UserSession", "accessRights", "backups", "operations", "servers", "tags"}
	names := map[string]bool{}
	for _, c := range api.Collections() {
		names[c.Name] = true
		for _, one := range c.Types {
			names[one.Name] = true
		}
	}
	if err := filepath.WalkDir("../../engine", func(path string, _ fs.DirEntry, err error) error {
		if part := filepath.Base(filepath.Dir(path)); part == "published" || part == "event" { // facts about the published API, and a type
			return err
		}
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if l, is := n.(*ast.BasicLit); is && l.Kind == token.STRING {
				if text, err := strconv.Unquote(l.Value); err == nil && names[text] && !slices.Contains(words, text) {
					t.Errorf("%s: %q is the name of a collection or type", set.Position(l.Pos()), text)
				}
			}
			return true
		})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
