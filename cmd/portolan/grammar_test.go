package main

import (
	"reflect"
	"testing"

	"github.com/alecthomas/kong"
)

// TestGrammarForACommand checks that the grammar of a command alone equals its part of the grammar of all commands.
func TestGrammarForACommand(t *testing.T) {
	var all commands
	whole, err := kong.New(&all, kong.Name("portolan"), kong.DefaultEnvars("PORTOLAN"))
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range whole.Model.Children {
		t.Run(command.Name, func(t *testing.T) {
			grammar := all.grammarFor([]string{command.Name})
			one, err := kong.New(grammar, kong.Name("portolan"), kong.DefaultEnvars("PORTOLAN"))
			if err != nil {
				t.Fatal(err)
			}
			read := one.Model.Children
			if grammar != any(&all) && (len(read) != 1 || len(read) == len(whole.Model.Children)) {
				t.Fatalf("%d commands are read", len(read))
			}
			for _, c := range read {
				if c.Name == command.Name && !reflect.DeepEqual(names(c), names(command)) {
					t.Errorf("the flags are %v, want %v", names(c), names(command))
				}
			}
		})
	}
	if grammar := all.grammarFor([]string{"nosuch"}); grammar != any(&all) {
		t.Error("an unknown command is not looked up among all")
	}
	if grammar := all.grammarFor([]string{"list", "--help"}); grammar != any(&all) {
		t.Error("help is not written from the whole grammar")
	}
}

// names are the flags and arguments of a command and of those below it.
func names(n *kong.Node) (all []string) {
	for _, f := range n.Flags {
		all = append(all, n.FullPath()+" --"+f.Name)
	}
	for _, p := range n.Positional {
		all = append(all, n.FullPath()+" "+p.Name)
	}
	for _, c := range n.Children {
		all = append(all, names(c)...)
	}
	return all
}
