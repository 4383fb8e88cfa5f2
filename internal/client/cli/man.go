package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"
)

// WritePages writes a man page for the program and each command (man1), and the completion scripts of all shells (completions), into a
// directory.
func WritePages(app *kong.Application, version, dir string) error {
	files := map[string]string{}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script, err := CompletionScript(shell)
		if err != nil {
			return err
		}
		files["completions/portolan."+shell] = script
	}
	var visit func(node *kong.Node)
	visit = func(node *kong.Node) {
		files["man1/"+pageName(node)+".1"] = page(node, version)
		for _, child := range node.Children {
			if !child.Hidden {
				visit(child)
			}
		}
	}
	visit(app.Node)
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // readable by all users
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // readable by all users
			return err
		}
	}
	return nil
}

// pageName returns the name of the man page of a command: portolan-fleet-list.
func pageName(node *kong.Node) string {
	if node.Parent == nil || node.Type == kong.ApplicationNode {
		return node.Name
	}
	return pageName(node.Parent) + "-" + node.Name
}

// escapeRoff escapes a text for man(7).
func escapeRoff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

// page returns the man page of a command.
func page(node *kong.Node, version string) string {
	var b strings.Builder
	name := pageName(node)
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"portolan %s\" \"Portolan\"\n.SH NAME\n%s \\- %s\n", strings.ToUpper(name), version, escapeRoff(name),
		escapeRoff(strings.TrimSuffix(strings.SplitN(node.Help, "\n", 2)[0], ".")))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", escapeRoff(strings.TrimSpace(node.Summary())))
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n", escapeRoff(node.Help))
	if detail := strings.TrimSpace(node.Detail); detail != "" {
		fmt.Fprintf(&b, ".PP\n.nf\n%s\n.fi\n", escapeRoff(detail))
	}
	if node.Tag != nil && node.Tag.Get("example") != "" {
		fmt.Fprintf(&b, ".PP\nExample:\n.PP\n.nf\n  %s\n.fi\n", escapeRoff(node.Tag.Get("example")))
	}
	if len(node.Positional) > 0 {
		b.WriteString(".SH ARGUMENTS\n")
		for _, p := range node.Positional {
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", escapeRoff(p.Summary()), escapeRoff(p.Help))
		}
	}
	var options strings.Builder
	for _, f := range node.Flags {
		if f.Hidden {
			continue
		}
		fmt.Fprintf(&options, ".TP\n.B %s\n%s", escapeRoff(f.String()), escapeRoff(f.Help))
		if len(f.Envs) > 0 {
			fmt.Fprintf(&options, " (%s)", escapeRoff("$"+strings.Join(f.Envs, ", $")))
		}
		options.WriteByte('\n')
	}
	if options.Len() > 0 {
		b.WriteString(".SH OPTIONS\n" + options.String())
	}
	if len(node.Children) > 0 {
		b.WriteString(".SH COMMANDS\n")
		for _, child := range node.Children {
			if !child.Hidden {
				fmt.Fprintf(&b, ".TP\n.BR %s (1)\n%s\n", escapeRoff(pageName(child)), escapeRoff(child.Help))
			}
		}
	}
	b.WriteString(".SH EXIT STATUS\n0: success. 1: failure. 2: usage error.\n")
	if node.Parent != nil {
		b.WriteString(".SH SEE ALSO\n.BR portolan (1)\n")
	}
	return b.String()
}
