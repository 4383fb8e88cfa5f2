package main

import (
	"fmt"

	"github.com/alecthomas/kong"

	"portolan/internal/client/cli"
	"portolan/internal/manager/server"
)

type completionCommand struct {
	Shell string `arg:"" help:"The shell: ${enum}." enum:"bash,zsh,fish"`
}

// Help has examples.
func (completionCommand) Help() string {
	return `Examples:

  source <(portolan completion bash)                 in ~/.bashrc
  source <(portolan completion zsh)                  in ~/.zshrc
  portolan completion fish | source                  in ~/.config/fish/config.fish

Names of networks, zones and so on are completed from the manager of the current context (portolan login).`
}

// Run prints what a shell is told so that it completes.
func (c *completionCommand) Run(s *session) error {
	script, err := cli.CompletionScript(c.Shell)
	if err == nil {
		_, err = fmt.Fprint(s.stdout, script)
	}
	return err
}

// completeCommand is what those scripts ask.
type completeCommand struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

// Run prints what the last word may become, a line each, with what it is behind a tab.
func (c *completeCommand) Run(s *session, app *kong.Kong) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	completer := cli.Completer{App: app.Model, API: server.NewAPI(nil), Manager: func(flags map[string]string) *cli.Manager {
		f := scopeFlags{connectFlags: connectFlags{Context: flags["context"], URL: flags["url"], Token: flags["token"], CA: flags["ca"]},
			Configuration: flags["configuration"], View: flags["view"]}
		f.fromEnvironment()
		m, err := f.manager()
		if err != nil { // then names are not completed, and all else is
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
