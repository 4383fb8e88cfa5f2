package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"portolan/client"
	"portolan/internal/client/cli"
	"portolan/internal/manager/model"
)

type loginCommand struct {
	URL           string        `arg:"" optional:"" help:"The manager's URL." default:"http://127.0.0.1:8080"`
	Name          string        `help:"The name of the context. Default: the manager's host." placeholder:"NAME"`
	User          string        `help:"The user name. The password is read from PORTOLAN_PASSWORD, standard input or the terminal." default:"admin" placeholder:"NAME"`
	Token         string        `help:"Store this bearer token instead of creating one." placeholder:"TOKEN" env:"-"`
	Role          string        `help:"The role of the new token: ${enum}. It never exceeds the rights of the user." enum:"administrator,analyst" default:"administrator"`
	Expires       time.Duration `help:"The lifetime of the new token." default:"720h"`
	CA            string        `help:"A PEM file with a certificate authority to trust, in addition to the system's. portolan authority prints that of a manager." name:"ca" type:"existingfile" placeholder:"FILE"`
	Configuration string        `help:"The default configuration for commands." placeholder:"NAME"`
	View          string        `help:"The default view for commands." placeholder:"NAME"`
}

// Help returns examples.
func (loginCommand) Help() string {
	return `Examples:

  portolan login https://portolan.example.net --user alice
  portolan login http://127.0.0.1:8080 --name lab --configuration main --view internal
  echo "$PASSWORD" | portolan login https://portolan.example.net`
}

// Run signs in to a manager, creates a token, and stores both as the current context.
func (c *loginCommand) Run(s *session) error {
	at, err := url.Parse(strings.TrimRight(c.URL, "/"))
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return usageError{fmt.Errorf("%q is not the URL of a manager, such as https://portolan.example.net", c.URL)}
	}
	contexts, err := cli.ReadContexts()
	if err != nil {
		return err
	}
	name := c.Name
	if name == "" {
		name = strings.NewReplacer(":", "-", "[", "", "]", "").Replace(at.Host)
	}
	one := cli.Context{URL: at.String(), Token: c.Token, CA: c.CA, Configuration: c.Configuration, View: c.View}
	if err := contexts.Set(name, one); err != nil { // checks the name before a token is created
		return err
	}
	if ip := net.ParseIP(at.Hostname()); at.Scheme == "http" && at.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		fmt.Fprintln(s.stderr, "warning: plain HTTP exposes the password and the token on the network: use https")
	}
	cl, err := clientFor(one)
	if err != nil {
		return err
	}
	if one.Token == "" {
		if one.Token, one.TokenID, err = c.makeToken(s, cl); err != nil {
			return err
		}
	}
	cl.Token, cl.User, cl.Password = one.Token, "", ""
	m := &cli.Manager{Client: cl, API: model.NewAPI(nil), Configuration: c.Configuration, View: c.View}
	err = m.CheckScopes(s.ctx)
	if err == nil && c.Token != "" {
		_, err = cl.List(s.ctx, "configurations", client.Query{Limit: 1, Fields: "id"})
	}
	if err == nil {
		if err = contexts.Set(name, one); err == nil {
			err = contexts.Save()
		}
	}
	if err != nil {
		if one.TokenID != "" { // revokes a token that is not stored
			err = errors.Join(err, cl.Do(s.ctx, http.MethodDelete, client.AddressPath+"tokens/"+one.TokenID, nil, nil))
		}
		return err
	}
	_, err = fmt.Fprintf(s.stdout, "signed in at %s; stored context %s in %s\n", one.URL, name, contexts.Path())
	return err
}

// makeToken creates a token for the user and returns it with its ID.
func (c *loginCommand) makeToken(s *session, cl *client.Client) (token, id string, err error) {
	password, err := askPassword(s, c.User)
	if err != nil {
		return "", "", err
	}
	cl.User, cl.Password = c.User, password
	host, err := os.Hostname()
	if err != nil {
		host = "a machine"
	}
	var made struct{ Token, ID string }
	err = cl.Do(s.ctx, http.MethodPost, client.AddressPath+"tokens", map[string]any{"name": "portolan login on " + host,
		"kind": "bearer", "role": c.Role,
		"expires": time.Now().Add(c.Expires).UTC().Format(time.RFC3339)}, &made)
	if err == nil && made.Token == "" {
		err = errors.New("the manager returned no token")
	}
	return made.Token, made.ID, err
}

// askPassword reads the password of a user: from the environment, from the terminal, or the first line of standard input.
func askPassword(s *session, user string) (string, error) {
	if password := os.Getenv("PORTOLAN_PASSWORD"); password != "" {
		return password, nil
	}
	if in := int(os.Stdin.Fd()); term.IsTerminal(in) { //nolint:gosec // a file descriptor is small
		fmt.Fprintf(s.stderr, "Password of %s: ", user)
		text, err := term.ReadPassword(in)
		fmt.Fprintln(s.stderr)
		return string(text), err
	}
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if password := strings.TrimRight(line, "\r\n"); password != "" {
		return password, nil
	}
	return "", usageError{fmt.Errorf("no password: set PORTOLAN_PASSWORD, use standard input, or run on a terminal (%w)", err)}
}

type logoutCommand struct {
	Name string `arg:"" optional:"" help:"The context. Default: the current one." complete:"context"`
}

// Run revokes the token that login created and deletes the context.
func (c *logoutCommand) Run(s *session) error {
	contexts, err := cli.ReadContexts()
	if err != nil {
		return err
	}
	name := cmp.Or(c.Name, contexts.Current)
	one, err := contexts.Get(name)
	if err != nil {
		return err
	}
	if name == "" {
		return usageError{errors.New("no current context")}
	}
	what := "its token stays valid, because login did not create it"
	if one.TokenID != "" {
		what = "its token was revoked"
		cl, err := clientFor(one)
		if err == nil {
			err = cl.Do(s.ctx, http.MethodDelete, client.AddressPath+"tokens/"+one.TokenID, nil, nil)
		}
		if err != nil {
			what = fmt.Sprintf("its token %s could not be revoked and stays valid until it expires: %v", one.TokenID, err)
		}
	}
	delete(contexts.Contexts, name)
	if contexts.Current == name {
		contexts.Current = ""
	}
	if err := contexts.Save(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.stdout, "deleted context %s; %s\n", name, what)
	return err
}

type contextCommand struct {
	List contextList `cmd:"" example:"portolan context" default:"1" help:"List the contexts: the managers stored by portolan login."`
	Use  contextUse  `cmd:"" example:"portolan context use lab --configuration main --view internal" help:"Select the current context, and set its default configuration and view."`
}

type contextList struct{}

// Run lists the contexts.
func (c *contextList) Run(s *session) error {
	contexts, err := cli.ReadContexts()
	if err != nil {
		return err
	}
	rows := [][]string{{"", "NAME", "URL", "CONFIGURATION", "VIEW"}}
	for _, name := range slices.Sorted(maps.Keys(contexts.Contexts)) {
		one, mark := contexts.Contexts[name], " "
		if name == contexts.Current {
			mark = "*"
		}
		rows = append(rows, []string{mark, name, one.URL, one.Configuration, one.View})
	}
	if len(rows) == 1 {
		_, err = fmt.Fprintln(s.stderr, "no contexts yet: create one with portolan login URL")
		return err
	}
	return cli.WriteTable(s.stdout, rows)
}

type contextUse struct {
	Name          string  `arg:"" help:"The context." complete:"context"`
	Configuration *string `help:"The default configuration for commands; empty for any." placeholder:"NAME" env:"-"`
	View          *string `help:"The default view for commands; empty for any." placeholder:"NAME" env:"-"`
}

// Run makes a context the current one.
func (c *contextUse) Run(s *session) error {
	contexts, err := cli.ReadContexts()
	if err != nil {
		return err
	}
	one, err := contexts.Get(c.Name)
	if err != nil {
		return err
	}
	if c.Configuration != nil {
		one.Configuration = *c.Configuration
	}
	if c.View != nil {
		one.View = *c.View
	}
	if err := contexts.Set(c.Name, one); err != nil {
		return err
	}
	if err := contexts.Save(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.stdout, "current context %s: %s, configuration %s, view %s\n", c.Name, one.URL,
		cmp.Or(one.Configuration, "any"), cmp.Or(one.View, "any"))
	return err
}
