package console

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// imported matches the module of an import, also one that is loaded later, or of a re-export of another module.
var imported = regexp.MustCompile(`(?m)^(?:import|export)\b[^"\n]*(?:\n[^"\n]*)*?from "(\.[^"]+)"|\bimport\("(\.[^"]+)"\)`)

// TestModulesImportWithoutCircles checks that no module of the console imports itself through others, types included.
func TestModulesImportWithoutCircles(t *testing.T) {
	imports := map[string][]string{}
	for _, pattern := range []string{"src/*.ts", "src/*.tsx", "src/*/*.ts", "src/*/*.tsx"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name := strings.TrimSuffix(strings.TrimSuffix(file, ".tsx"), ".ts")
			imports[name] = []string{}
			for _, m := range imported.FindAllStringSubmatch(string(text), -1) {
				imports[name] = append(imports[name], filepath.Join(filepath.Dir(file), m[1]+m[2]))
			}
		}
	}
	if len(imports["src/main"]) < 5 {
		t.Fatalf("the imports of src/main are %v", imports["src/main"])
	}
	done := map[string]bool{}
	var visit func(module string, way []string)
	visit = func(module string, way []string) {
		if i := slices.Index(way, module); i >= 0 {
			t.Errorf("a circle: %s", strings.Join(append(way[i:], module), " > "))
			return
		}
		if done[module] {
			return
		}
		for _, next := range imports[module] {
			visit(next, append(slices.Clone(way), module))
		}
		done[module] = true
	}
	for module := range imports {
		visit(module, nil)
	}
}
