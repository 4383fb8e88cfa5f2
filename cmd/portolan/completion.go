package main

import (
	"fmt"

	"github.com/alecthomas/kong"

	"portolan/internal/client/cli"
	"portolan/internal/manager/model"
)

type completionCommand struct {
	Shell string `arg:"" help:"The shell: ${enum}." enum:"bash,zsh,fish"`
}

// Help returns examples.
func (completionCommand) Help() string {
	return `Examples:

  source <(portolan completion bash)                 in ~/.bashrc
  source <(portolan completion zsh)                  in ~/.zshrc
  portolan completion fish | source                  in ~/.config/fish/config.fish

Completion of names, such as networks and zones, asks the manager of the current context (portolan login).`
}

// Run prints the completion script of a shell.
func (c *completionCommand) Run(s *session) error {
	script, err := cli.CompletionScript(c.Shell)
	if err == nil {
		_, err = fmt.Fprint(s.stdout, script)
	}
	return err
}

// completeCommand is the hidden command that the completion scripts call.
type completeCommand struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

// Run prints the completions of the last word, one per line, each with a tab and a description.
func (c *completeCommand) Run(s *session, app *kong.Kong) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	completer := cli.Completer{App: app.Model, API: model.NewAPI(nil), Manager: func(flags map[string]string) *cli.Manager {
		f := scopeFlags{connectFlags: connectFlags{Context: flags["context"], URL: flags["url"], Token: flags["token"], CA: flags["ca"]},
			Configuration: flags["configuration"], View: flags["view"]}
		f.readEnvironment()
		m, err := f.manager()
		if err != nil { // then resource names are not completed
			return nil
		}
		return m
	}}
	for _, one := range completer.Complete(s.ctx, words) {
		if _, err := fmt.Fprintf(s.stdout, "%s\t%s\n", one.Text, one.Help); err != nil {
			return err
		}
	}
	return nil
}
