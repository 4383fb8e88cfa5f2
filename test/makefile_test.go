package test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestMakefileSelectsTests checks that each alternative of an option -run in the Makefile selects a test of a package that it names: a test
// that was moved or renamed would no longer run there.
func TestMakefileSelectsTests(t *testing.T) {
	text, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	lines := 0
	for _, line := range regexp.MustCompile(`(?m)^.*go test.* -run '([\w|()^]+\$*)'.*$`).FindAllStringSubmatch(string(text), -1) {
		if line[1] == "^" { // no test
			continue
		}
		lines++
		var names []string
		for _, folder := range regexp.MustCompile(` \./(\S+)`).FindAllStringSubmatch(line[0], -1) {
			if strings.HasSuffix(folder[1], "...") { // each package has it
				names = append(names, "TestOnPostgreSQL")
				continue
			}
			files, err := filepath.Glob(filepath.Join("..", folder[1], "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				source, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				for _, one := range declared.FindAllStringSubmatch(string(source), -1) {
					names = append(names, one[1])
				}
			}
		}
		for one := range strings.SplitSeq(strings.Trim(line[1], "^()$"), "|") {
			if !strings.Contains(strings.Join(names, " "), one) {
				t.Errorf("-run %s of the Makefile selects no test of the packages in the line %s", one, strings.TrimSpace(line[0]))
			}
		}
	}
	if lines < 8 {
		t.Errorf("%d lines of the Makefile select tests", lines)
	}
}
