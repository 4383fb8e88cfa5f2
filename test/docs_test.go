package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// step is a command on a page and its expected output.
type step struct {
	line          int
	command, want string
}

// steps returns the commands of a page: lines that are indented by at least four blanks and begin with "$ ". The following lines with
// the\nsame indentation are the expected output; "..." in it matches anything. A blank line belongs to the output if the next line is
// indented further.
func steps(text string) (all []step) {
	margin, lines := "", strings.Split(text, "\n")
	for i, line := range lines {
		if margin != "" && line == "" && i+1 < len(lines) && strings.HasPrefix(lines[i+1], margin+" ") { // the next line is indented further
			all[len(all)-1].want += "\n"
			continue
		}
		rest := strings.TrimLeft(line, " ")
		at := line[:len(line)-len(rest)]
		if command, ok := strings.CutPrefix(rest, "$ "); ok && len(at) >= 4 {
			all, margin = append(all, step{line: i + 1, command: command}), at
			continue
		}
		if margin != "" && strings.HasPrefix(line, margin) {
			last := &all[len(all)-1]
			last.want += line[len(margin):] + "\n"
		} else {
			margin = ""
		}
	}
	return all
}

// matches reports whether the output of a command is as the page shows.
func matches(output, want string) bool {
	output = progress.ReplaceAllString(output, "")
	pattern := regexp.QuoteMeta(strings.TrimSpace(want))
	pattern = strings.ReplaceAll(pattern, `\.\.\.`, `(?s:.*?)`)
	pattern = regexp.MustCompile(` +`).ReplaceAllString(pattern, ` +`)
	return regexp.MustCompile(`^\s*` + pattern + `\s*$`).MatchString(output)
}

// progress matches the lines that long commands print each second, which pages do not show.
var progress = regexp.MustCompile(`(?m)^\d+ rows (?:read|exported|written)\n`)

// assignment matches a command that only sets a variable of the shell.
var assignment = regexp.MustCompile(`^[A-Z]+=\$\([^()]*\)$`)

// TestDocs runs the commands of each page in order, on a manager of its own, and compares their output with the page.
func TestDocs(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, page := range append(pages, "../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		all := steps(string(text))
		if len(all) == 0 {
			continue
		}
		tried++
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			m := serve(t, "")
			m.setEnvironment()
			dir, assigned := t.TempDir(), ""
			for _, s := range all {
				if name, ok := strings.CutPrefix(s.command, "cat "); ok && !strings.Contains(name, " ") { // a file that the page shows
					if err := os.WriteFile(filepath.Join(dir, name), []byte(s.want), 0o600); err != nil {
						t.Fatal(err)
					}
					continue
				}
				c := exec.Command("sh", "-c", assigned+s.command)
				c.Dir = dir
				c.Env = m.environment("PATH="+filepath.Dir(binary)+string(os.PathListSeparator)+os.Getenv("PATH"), "API=http://"+m.api,
					"TOKEN="+m.token, "DATA="+m.where[1])
				out, err := c.CombinedOutput()
				if err != nil && !strings.Contains(s.want, "portolan: ") {
					t.Fatalf("%s:%d: %s: %v\n%s", page, s.line, s.command, err, out)
				}
				if !matches(string(out), s.want) {
					t.Errorf("%s:%d: %s says\n%s\nthe page says\n%s", page, s.line, s.command, out, s.want)
				}
				if assignment.MatchString(s.command) { // later commands of the page see the variable
					assigned += s.command + "\n"
				}
			}
			m.check()
		})
	}
	if tried < 3 {
		t.Errorf("%d pages have commands", tried)
	}
}

// TestHelp checks that the help of every command contains examples.
func TestHelp(t *testing.T) {
	t.Parallel()
	out, err := exec.Command(binary, "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	if text := string(out); !strings.Contains(text, "portolan demo") || !strings.Contains(text, "List resources") {
		t.Errorf("the help is %s", text)
	}
	// There is a man page for each command.
	dir := t.TempDir()
	if out, err := exec.Command(binary, "man", dir).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	pages, err := filepath.Glob(filepath.Join(dir, "man1", "portolan-*.1"))
	if err != nil || len(pages) < 60 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), ".SH COMMANDS") { // its subcommands have examples
			continue
		}
		if !strings.Contains(string(text), "Example") {
			t.Errorf("%s has no example", filepath.Base(page))
		}
	}
	for _, name := range []string{"list", "serve", "agent", "fleet list", "import netbox", "rollout start"} {
		out, err := exec.Command(binary, append(strings.Fields(name), "--help")...).Output()
		if err != nil || !strings.Contains(string(out), "Examples:") {
			t.Errorf("the help of %s has no example: %v\n%s", name, err, out)
		}
	}
}
