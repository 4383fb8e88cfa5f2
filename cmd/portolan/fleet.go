package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"text/tabwriter"
	"time"

	"portolan/client"
)

// managerFlags say which manager to talk to, and with what.
type managerFlags struct {
	URL   string `help:"The manager's URL." default:"http://127.0.0.1:8080" name:"url" placeholder:"URL"`
	Token string `help:"A bearer token. Better given as PORTOLAN_TOKEN." required:"" placeholder:"TOKEN"`
	CA    string `help:"A file with the authority to trust, in PEM, beside the system's." name:"ca" type:"existingfile" placeholder:"FILE"`
	JSON  bool   `help:"Print JSON." name:"json"`
}

func (f managerFlags) client() (*client.Client, error) {
	c := &client.Client{Base: f.URL, Token: f.Token}
	if f.CA == "" {
		return c, nil
	}
	text, err := os.ReadFile(f.CA)
	if err != nil {
		return nil, usageError{err}
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, usageError{fmt.Errorf("--ca: %s holds no certificate", f.CA)}
	}
	c.HTTP = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}}}
	return c, nil
}

type fleetCommand struct {
	List   fleetList   `cmd:"" help:"List the fleet."`
	Show   fleetShow   `cmd:"" help:"Show one service point, by its name or id, as JSON."`
	Create fleetCreate `cmd:"" help:"Create a service point and print what it needs to enrol."`
}

type fleetList struct{ managerFlags }

// Run lists the fleet.
func (c *fleetList) Run(s *session) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	all, err := cl.Instances(s.ctx, "")
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(s.stdout).Encode(all)
	}
	w := tabwriter.NewWriter(s.stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSTATUS\tCONNECTION\tVERSION\tLAST SEEN\tID")
	for _, i := range all {
		seen := "never"
		if i.LastSeen > 0 {
			seen = time.UnixMilli(i.LastSeen).UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", i.Name, i.Status, i.ConnectionStatus, i.Version, seen, i.ID)
	}
	return w.Flush()
}

type fleetShow struct {
	managerFlags
	Name string `arg:"" help:"The name or the id."`
}

// Run shows one service point.
func (c *fleetShow) Run(s *session) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	named, err := cl.Instances(s.ctx, c.Name)
	if err != nil {
		return err
	}
	if len(named) == 0 {
		i, err := cl.Instance(s.ctx, c.Name)
		var e *client.Error
		if errors.As(err, &e) && e.Status == http.StatusNotFound {
			return fmt.Errorf("there is no fleet service point with the name or id %q", c.Name)
		}
		if err != nil {
			return err
		}
		named = append(named, i)
	}
	e := json.NewEncoder(s.stdout)
	e.SetIndent("", "  ")
	return e.Encode(named[0])
}

type fleetCreate struct {
	managerFlags
	Name        string `arg:"" help:"The name, unique in the fleet."`
	Description string `help:"What it is."`
}

// Run creates a service point.
func (c *fleetCreate) Run(s *session) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	created, err := cl.CreateInstance(s.ctx, c.Name, c.Description)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(s.stdout).Encode(created)
	}
	_, err = fmt.Fprintf(s.stdout,
		"%s was created. On its machine, within seven days:\n\n  PORTOLAN_REGISTRATION_KEY=%s \\\n  portolan agent --registration-endpoint "+
			"%s --state DIR\n",
		created.FleetInstanceID, created.RegistrationKey, created.RegistrationEndpoint)
	return err
}
