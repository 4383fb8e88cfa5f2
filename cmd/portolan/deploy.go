package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"portolan/client"
)

type fleetApplications struct {
	managerFlags
	Name string `arg:"" help:"The name or the id of the service point."`
}

// Run lists the applications of a service point.
func (c *fleetApplications) Run(s *session) error {
	cl, i, err := c.instance(s, c.Name)
	if err != nil {
		return err
	}
	all, err := cl.Applications(s.ctx, i.ID)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(s.stdout).Encode(all)
	}
	w := tabwriter.NewWriter(s.stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSTATUS\tVERSION\tUNDER WAY\tID\tCONDITIONS")
	for _, a := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", a.Name, a.Status, a.Version, a.UpdateStatus, a.ID, strings.Join(a.ErrorConditions, "; "))
	}
	return w.Flush()
}

type fleetDeploy struct {
	managerFlags
	Name          string `arg:"" help:"The name or the id of the service point."`
	Application   string `arg:"" help:"The application, such as dns-resolver-service; or the id of one that runs."`
	Configuration string `help:"A file with its configuration, a JSON object; - for standard input." type:"path" placeholder:"FILE" env:"-"`
	Version       string `help:"The version. Default: the manager's own, or the one that runs." env:"-"`
}

// Run deploys an application, or configures one.
func (c *fleetDeploy) Run(s *session) error {
	var configuration json.RawMessage
	if c.Configuration != "" {
		in := os.Stdin
		if c.Configuration != "-" {
			f, err := os.Open(c.Configuration)
			if err != nil {
				return usageError{err}
			}
			defer func() { _ = f.Close() }()
			in = f
		}
		if err := json.NewDecoder(in).Decode(&configuration); err != nil {
			return usageError{fmt.Errorf("reading the configuration: %w", err)}
		}
	}
	cl, i, err := c.instance(s, c.Name)
	if err != nil {
		return err
	}
	id := c.Application
	if known := runs(i, id); known && configuration == nil && c.Version == "" {
		return usageError{fmt.Errorf("%s runs %s already: --configuration gives it another configuration, --version another version", c.Name, id)}
	} else if known {
		err = cl.ChangeApplication(s.ctx, i.ID, id, c.Version, configuration)
	} else {
		id, err = cl.Deploy(s.ctx, i.ID, c.Application, c.Version, configuration)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.stdout, id)
	return err
}

// runs reports whether a service point has an application of an id.
func runs(i client.Instance, id string) bool {
	for _, a := range i.Applications {
		if a.ID == id {
			return true
		}
	}
	return false
}

type fleetUndeploy struct {
	managerFlags
	Name string `arg:"" help:"The name or the id of the service point."`
	ID   string `arg:"" help:"The name or the id of the application."`
}

// Run ends an application.
func (c *fleetUndeploy) Run(s *session) error {
	cl, i, err := c.instance(s, c.Name)
	if err != nil {
		return err
	}
	id, err := applicationOf(i, c.ID)
	if err != nil {
		return err
	}
	return cl.Undeploy(s.ctx, i.ID, id)
}

type fleetLogs struct {
	managerFlags
	Name        string `arg:"" help:"The name or the id of the service point."`
	Application string `arg:"" optional:"" help:"The name or the id of the application. Not needed where there is one alone."`
	Bytes       int    `help:"How many of the last bytes, up to 131072." default:"65536" env:"-"`
}

// Run prints the end of a log.
func (c *fleetLogs) Run(s *session) error {
	cl, i, err := c.instance(s, c.Name)
	if err != nil {
		return err
	}
	id, err := applicationOf(i, c.Application)
	if err != nil {
		return err
	}
	text, err := cl.ApplicationLog(s.ctx, i.ID, id, c.Bytes)
	if err != nil {
		return err
	}
	_, err = s.stdout.Write(text)
	return err
}

// applicationOf gives the id of the application of a service point that has a name or an id; an empty name is that of the only one.
func applicationOf(i client.Instance, name string) (string, error) {
	var ids []string
	for _, a := range i.Applications {
		if name == "" || name == a.ID || name == a.Name {
			ids = append(ids, a.ID)
		}
	}
	switch {
	case len(ids) == 0:
		return "", fmt.Errorf("%s has no application %s", i.Name, name)
	case len(ids) > 1:
		return "", usageError{fmt.Errorf("%s has %d of them: name one by its id: %s", i.Name, len(ids), strings.Join(ids, ", "))}
	}
	return ids[0], nil
}

type fleetEvents struct {
	managerFlags
	Name string `arg:"" help:"The name or the id of the service point."`
}

// Run lists the last moves of a service point.
func (c *fleetEvents) Run(s *session) error {
	cl, i, err := c.instance(s, c.Name)
	if err != nil {
		return err
	}
	all, err := cl.FleetEvents(s.ctx, i.ID)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(s.stdout).Encode(all)
	}
	w := tabwriter.NewWriter(s.stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "AT\tFIELD\tBEFORE\tAFTER\tREASON")
	for _, e := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", time.UnixMilli(e.At).UTC().Format("2006-01-02T15:04:05.000Z"), e.Field, e.Before, e.After,
			e.Reason)
	}
	return w.Flush()
}
