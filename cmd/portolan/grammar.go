package main

import (
	"reflect"
	"slices"
	"strings"
)

// wholeGrammar are the commands that need the grammar of all commands.
var wholeGrammar = []string{"complete", "completion", "man"}

// grammarFor returns the grammar that a command line needs, as a pointer to a struct that kong parses into: c itself, or a struct with the
// global flags and the one command that args begin with. Reading the whole grammar takes 10 ms, longer than most commands run, and a
// service point starts each application by a command.
func (c *commands) grammarFor(args []string) any {
	if len(args) == 0 || slices.Contains(wholeGrammar, args[0]) || slices.Contains(args, "--help") || slices.Contains(args, "-h") {
		return c
	}
	all := reflect.TypeFor[commands]()
	var fields []reflect.StructField
	found := false
	for f := range all.Fields() {
		_, isCommand := f.Tag.Lookup("cmd")
		switch {
		case !isCommand:
			fields = append(fields, f)
		case commandName(f) == args[0]:
			fields, found = append(fields, f), true
		}
	}
	if !found {
		return c
	}
	for i := range fields {
		fields[i].Offset, fields[i].Index = 0, nil
	}
	return reflect.New(reflect.StructOf(fields)).Interface()
}

// commandName returns the name of the command that a field is, as kong has it.
func commandName(f reflect.StructField) string {
	if name := f.Tag.Get("name"); name != "" {
		return name
	}
	return strings.ToLower(f.Name)
}

// adopt copies the global flags of a grammar that grammarFor returned.
func (c *commands) adopt(grammar any) {
	from := reflect.ValueOf(grammar).Elem()
	c.LogFormat, c.LogLevel = from.FieldByName("LogFormat").String(), from.FieldByName("LogLevel").String()
}
