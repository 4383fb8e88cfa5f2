package server

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"portolan/internal/engine/published"
)

// raised finds the codes that problems are made with.
var raised = regexp.MustCompile(`(?:problem\.(?:Field|FieldForbidden|BadRequest|Forbidden|Conflict|New)|x\.bad)\(\s*(?:http\.Status\w+,\s*)?"([A-Z]\w+)"`)

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
	files, err := filepath.Glob("../../*/*/*.go")
	if err != nil || len(files) < 100 {
		t.Fatalf("%d files (%v)", len(files), err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || strings.Contains(file, "/servicepoint/") || strings.Contains(file, "/toys/") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range raised.FindAllStringSubmatch(string(source), -1) {
			if listed[match[1]] == "" {
				t.Errorf("%s: %s is not in docs/errors.md", file, match[1])
			}
		}
	}
}
