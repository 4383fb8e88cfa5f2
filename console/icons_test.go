package console_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestIcons checks that the console has each icon that its sources name, and names each icon that it has. An unknown name shows a dot.
func TestIcons(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("npm/lucide-static/icons/*.svg")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d icons, %v", len(files), err)
	}
	var icons []string
	for _, file := range files {
		icons = append(icons, strings.TrimSuffix(filepath.Base(file), ".svg"))
	}
	var all strings.Builder
	uses := regexp.MustCompile(`\bicon="([^"]+)"|<Icon name="([^"]+)"|\["/[^"]*", "[^"]+", "([^"]+)", "."\]`)
	if err := filepath.WalkDir("src", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".tsx") {
			return err
		}
		text, err := os.ReadFile(path) //nolint:gosec // a source of the console
		all.Write(text)
		for _, use := range uses.FindAllStringSubmatch(string(text), -1) {
			if name := use[1] + use[2] + use[3]; !slices.Contains(icons, name) {
				t.Errorf("%s: the icon %s does not exist", path, name)
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, name := range icons {
		if !strings.Contains(all.String(), `"`+name+`"`) && !strings.Contains(all.String(), name+":") {
			t.Errorf("no source names the icon %s", name)
		}
	}
}
