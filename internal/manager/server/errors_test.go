package server

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"portolan/internal/engine/published"
)

// raised finds the codes that problems are made with.
var raised = regexp.MustCompile(`(?:problem\.(?:Field|FieldForbidden|BadRequest|Forbidden|Conflict|New)|x\.bad)\(\s*(?:(?:http\.Status\w+|\d{3}),\s*)?"([A-Z]\w+)"`)

// TestErrorCodesAreListed checks that docs/errors.md lists every error code, with the published status if the code is published.
func TestErrorCodesAreListed(t *testing.T) {
	text, err := os.ReadFile("../../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		for code := range strings.SplitSeq(cells[2], ",") {
			listed[strings.TrimSpace(code)] = strings.TrimSpace(cells[1])
		}
	}
	for code, status := range published.ErrorCodes() {
		if at, ok := listed[code]; ok && at != fmt.Sprint(status) {
			t.Errorf("%s is listed with %s and published with %d", code, at, status)
		}
	}
	found := 0
	if err := filepath.WalkDir("../..", func(file string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "testkit" || d.Name() == "servicepoint") {
			return fs.SkipDir
		}
		if err != nil || filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
			return err
		}
		source, err := os.ReadFile(file)
		for _, match := range raised.FindAllStringSubmatch(string(source), -1) {
			if found++; listed[match[1]] == "" {
				t.Errorf("%s: %s is not in docs/errors.md", file, match[1])
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if found < 500 {
		t.Errorf("%d errors were found in the source", found)
	}
}
