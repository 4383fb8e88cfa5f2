package main

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// flagsFirst returns the arguments with the flags of a command before its other arguments, so that flags may be anywhere. kong ends a list
// of arguments at a flag. Unknown flags keep their position, so that kong reports them.
func flagsFirst(node *kong.Node, args []string) []string {
	var command, flags, rest []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			rest = append(rest, args[i:]...)
			break
		}
		if !strings.HasPrefix(arg, "-") || arg == "-" {
			child := slices.IndexFunc(node.Children, func(c *kong.Node) bool { return c.Name == arg || slices.Contains(c.Aliases, arg) })
			if child < 0 || len(rest) > 0 {
				rest = append(rest, arg)
				continue
			}
			node, command = node.Children[child], append(command, arg)
			if slices.ContainsFunc(node.Positional, func(p *kong.Positional) bool { return p.Passthrough }) {
				return args // the command receives all arguments unchanged
			}
			continue
		}
		flag := flagNamed(node, arg)
		if flag == nil {
			return args
		}
		flags = append(flags, arg)
		if hasValueArgument(flag, arg) && i+1 < len(args) {
			i++
			flags = append(flags, args[i])
		}
	}
	return slices.Concat(command, flags, rest)
}

// flagNamed returns the flag of a command or of its parents that an argument such as --name, --name=value or -nVALUE sets. It returns nil
// if none matches.
func flagNamed(node *kong.Node, arg string) *kong.Flag {
	long := strings.HasPrefix(arg, "--")
	name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
	for _, flags := range node.AllFlags(false) {
		for _, f := range flags {
			if long && (f.Name == name || slices.Contains(f.Aliases, name) || f.Tag.Negatable != "" && "no-"+f.Name == name) {
				return f
			}
			if !long && f.Short != 0 && strings.HasPrefix(arg[1:], string(f.Short)) {
				return f
			}
		}
	}
	return nil
}

// hasValueArgument reports whether the next argument is the value of a flag.
func hasValueArgument(f *kong.Flag, arg string) bool {
	if f.IsBool() || f.IsCounter() {
		return false
	}
	if strings.HasPrefix(arg, "--") {
		return !strings.Contains(arg, "=")
	}
	return len(arg) == 1+len(string(f.Short))
}
