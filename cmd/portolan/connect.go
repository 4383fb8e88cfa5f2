package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"

	"portolan/client"
	"portolan/internal/client/cli"
	"portolan/internal/manager/model"
)

// defaultURL is the manager's URL if neither a flag nor a context sets one.
const defaultURL = "http://127.0.0.1:8080"

// connectFlags select a manager and the credentials for it: from flags or from a context.
type connectFlags struct {
	Context string `help:"The context to use, as stored by portolan login. Default: the current context, unless --url or --token is given." placeholder:"NAME" complete:"context"`
	URL     string `help:"The manager's URL. Default: http://127.0.0.1:8080." name:"url" placeholder:"URL"`
	Token   string `help:"A bearer token. Prefer portolan login or PORTOLAN_TOKEN." placeholder:"TOKEN"`
	CA      string `help:"A PEM file with a certificate authority to trust, in addition to the system's. portolan authority prints that of a manager." name:"ca" placeholder:"FILE"`
}

// readEnvironment sets the flags that were not given from the environment, as the parser does.
func (f *scopeFlags) readEnvironment() {
	for name, to := range map[string]*string{"CONTEXT": &f.Context, "URL": &f.URL, "TOKEN": &f.Token, "CA": &f.CA,
		"CONFIGURATION": &f.Configuration, "VIEW": &f.View} {
		if *to == "" {
			*to = os.Getenv("PORTOLAN_" + name)
		}
	}
}

// selectedContext returns the context to use.
func (f connectFlags) selectedContext() (one cli.Context, err error) {
	given := f.URL != "" || f.Token != ""
	if f.Context != "" && given {
		return one, usageError{errors.New("--context, and --url or --token (or PORTOLAN_URL, PORTOLAN_TOKEN), " +
			"specify two managers: remove one of them")}
	}
	if !given {
		contexts, err := cli.ReadContexts()
		if err != nil {
			return one, err
		}
		if one, err = contexts.Get(f.Context); err != nil {
			return one, err
		}
	}
	if given {
		one.URL, one.Token = f.URL, f.Token
	}
	if one.URL == "" {
		one.URL = defaultURL
	}
	if f.CA != "" {
		one.CA = f.CA
	}
	return one, nil
}

// client returns the client for the chosen context.
func (f connectFlags) client() (*client.Client, error) {
	one, err := f.selectedContext()
	if err != nil {
		return nil, err
	}
	if one.Token == "" {
		return nil, usageError{errors.New("no credentials: run portolan login, or set PORTOLAN_TOKEN")}
	}
	return clientFor(one)
}

// clientFor returns a client for a context.
func clientFor(one cli.Context) (*client.Client, error) {
	c := &client.Client{Base: one.URL, Token: one.Token, Agent: "portolan/" + versionText()}
	if one.CA == "" {
		return c, nil
	}
	text, err := os.ReadFile(one.CA)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usageError{fmt.Errorf("--ca: the file %s does not exist", one.CA)}
	}
	if err != nil {
		return nil, usageError{err}
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, usageError{fmt.Errorf("--ca: the file %s contains no certificate", one.CA)}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
	c.HTTP = &http.Client{Transport: transport}
	return c, nil
}

// jsonFlag selects JSON output: by --json, or by --output json.
type jsonFlag struct {
	JSON   bool   `help:"Print JSON." name:"json"`
	Output string `help:"The output format: ${enum}." short:"o" enum:"text,json" default:"text" env:"-"`
}

// AfterApply makes both flags equivalent.
func (f *jsonFlag) AfterApply() error { //nolint:unparam // the signature that kong requires
	f.JSON = f.JSON || f.Output == cli.JSON
	return nil
}

// print prints a response of the API as JSON.
func (f jsonFlag) print(s *session, answer any) error {
	return json.NewEncoder(s.stdout).Encode(answer)
}

// managerFlags are the flags of commands that print a table or JSON.
type managerFlags struct {
	connectFlags
	jsonFlag
}

// scopeFlags select the default configuration and view of a command.
type scopeFlags struct {
	connectFlags
	Configuration string `help:"The name of the configuration. Default: that of the context, or any." placeholder:"NAME" complete:"scope"`
	View          string `help:"The name of the view. Default: that of the context, or any." placeholder:"NAME" complete:"scope"`
}

// manager returns the manager with the declarations of the API.
func (f scopeFlags) manager() (*cli.Manager, error) {
	one, err := f.selectedContext()
	if err != nil {
		return nil, err
	}
	c, err := f.client()
	if err != nil {
		return nil, err
	}
	m := &cli.Manager{Client: c, API: model.NewAPI(nil), Configuration: one.Configuration, View: one.View}
	if f.Configuration != "" {
		m.Configuration = f.Configuration
	}
	if f.View != "" {
		m.View = f.View
	}
	return m, nil
}

// changeFlags are the options of a change.
type changeFlags struct {
	DryRun  bool              `help:"Preview the changes without applying them." short:"n"`
	Comment string            `help:"A comment to store in the history." placeholder:"TEXT"`
	Header  map[string]string `help:"A request header for the manager, such as x-bcn-no-gateway=true." placeholder:"NAME=VALUE"`
}

func (f changeFlags) options() client.ChangeOptions {
	return client.ChangeOptions{DryRun: f.DryRun, Comment: f.Comment, Headers: f.Header}
}
