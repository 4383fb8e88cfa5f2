package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"
)

// settings are the flags of a command in a settings file.
type settings struct {
	values map[string]*yaml.Node
}

// ReadSettings reads a settings file for the command line parser: a mapping of flag names to values. The command line and the environment
// override the file.
func ReadSettings(r io.Reader) (kong.Resolver, error) {
	s, err := readSettings(r)
	if err != nil {
		return nil, UsageError{err}
	}
	return s, nil
}

func readSettings(r io.Reader) (s settings, err error) {
	s.values = map[string]*yaml.Node{}
	var node yaml.Node
	if err := yaml.NewDecoder(r).Decode(&node); errors.Is(err, io.EOF) {
		return s, nil
	} else if err != nil {
		return s, fmt.Errorf("settings file: %w", err)
	}
	top := node.Content[0]
	if top.Kind == yaml.ScalarNode && top.Tag == "!!null" {
		return s, nil
	}
	if top.Kind != yaml.MappingNode {
		return s, errors.New("the settings file is not a mapping of names to values")
	}
	for i := 0; i+1 < len(top.Content); i += 2 {
		if s.values[top.Content[i].Value] != nil {
			return s, fmt.Errorf("settings file, line %d: %s occurs twice", top.Content[i].Line, top.Content[i].Value)
		}
		s.values[top.Content[i].Value] = top.Content[i+1]
	}
	return s, nil
}

// Validate returns an error for names that are not flags.
func (s settings) Validate(app *kong.Application) error {
	for _, command := range app.Children {
		if command.Active { // the command that runs
			return s.validate(app.Node, command)
		}
	}
	return s.validate(app.Node, nil)
}

func (s settings) validate(app, active *kong.Node) error {
	known := map[string]bool{}
	var names []string
	note := func(flags []*kong.Flag) {
		for _, f := range flags {
			known[f.Name] = true
			names = append(names, f.Name)
		}
	}
	note(app.Flags)
	for _, command := range app.Children {
		if command == active || active == nil && (command.Name == "serve" || command.Name == "agent") {
			note(command.Flags)
		}
	}
	for name, value := range s.values {
		if known[name] && name != "config" && name != "check" {
			continue
		}
		if near := FindNearest(name, names); near != "" {
			return wrongf("settings file, line %d: no setting %q; did you mean %s?", value.Line, name, near)
		}
		return wrongf("settings file, line %d: no setting %q: settings have the names of the flags", value.Line, name)
	}
	return nil
}

// Resolve returns the value of a flag. It returns nil if the file does not set it or an environment variable does.
func (s settings) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	node := s.values[flag.Name]
	if node == nil {
		return nil, nil
	}
	for _, name := range flag.Envs {
		if _, set := os.LookupEnv(name); set {
			return nil, nil
		}
	}
	switch node.Kind {
	case yaml.ScalarNode:
		if node.ShortTag() == "!!null" { // null means not set
			return nil, nil
		}
		return node.Value, nil
	case yaml.SequenceNode:
		list := []any{}
		for _, one := range node.Content {
			list = append(list, one.Value)
		}
		return list, nil
	}
	return nil, wrongf("settings file, line %d: %s must be a value or a list of values", node.Line, flag.Name)
}

// ConfiguredLevel returns the log level in a settings file, or nil if the file does not set it.
func ConfiguredLevel(path string) (*slog.Level, error) {
	f, err := os.Open(path) //nolint:gosec // the user names the file
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	s, err := readSettings(f)
	if err != nil || s.values["log-level"] == nil {
		return nil, err
	}
	level := new(slog.Level)
	if err := level.UnmarshalText([]byte(s.values["log-level"].Value)); err != nil {
		return nil, fmt.Errorf("log-level: %w", err)
	}
	return level, nil
}
