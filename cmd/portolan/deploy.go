package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"portolan/client"
)

type fleetApplications struct {
	managerFlags
	Name string `arg:"" complete:"point" help:"The name or the id of the service point."`
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
	fmt.Fprintln(w, "NAME\tSTATUS\tVERSION\tUNDER WAY\tID\tANYCAST\tCONDITIONS")
	for _, a := range all {
		var anycast []string
		for _, one := range a.AnycastIPAddress {
			up := "down"
			if one.IsUp {
				up = "up"
			}
			anycast = append(anycast, one.IPAddress+" "+up)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", a.Name, a.Status, a.Version, a.UpdateStatus, a.ID, strings.Join(anycast, ", "),
			strings.Join(a.ErrorConditions, "; "))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	one, err := cl.Instance(s.ctx, i.ID)
	if err == nil && one.Pending {
		_, err = fmt.Fprintf(s.stdout, "The desired state has changed, but %s has not received it yet.\n", one.Name)
	}
	return err
}

type fleetDeploy struct {
	managerFlags
	Name        string   `arg:"" complete:"point" help:"The name or the id of the service point."`
	Application string   `arg:"" help:"The application, such as dns-resolver-service, or the id of a running application."`
	File        string   `help:"A file with the configuration of the application, a JSON object; - for standard input." short:"f" aliases:"configuration" type:"path" placeholder:"FILE" env:"-"`
	Version     string   `help:"The version. Default: the running version, or that of the manager." env:"-"`
	Anycast     []string `help:"All anycast addresses of the application; 'none' for none." placeholder:"IP,..." env:"-"`
	Memory      *int     `help:"The memory limit in MiB, 64 or more; 0 for the default of 512. A new limit restarts the application." placeholder:"MIB" env:"-"`
	CPU         *int     `help:"The CPU limit in percent of one processor, 5 or more; 250 means 2.5 processors, 0 means all. A new limit restarts the application." name:"cpu" placeholder:"PERCENT" env:"-"`
}

// change returns the change that the flags request, without the configuration. before are the current limits of the application.
func (c *fleetDeploy) change(before *client.Limits) (a client.ApplicationChange) {
	a.Version = c.Version
	if a.AnycastAddresses = c.Anycast; len(c.Anycast) == 1 && c.Anycast[0] == "none" {
		a.AnycastAddresses = []string{}
	}
	if c.Memory == nil && c.CPU == nil {
		return a
	}
	a.Limits = &client.Limits{}
	if before != nil {
		*a.Limits = *before
	}
	if c.Memory != nil {
		a.Limits.MemoryMiB = *c.Memory
	}
	if c.CPU != nil {
		a.Limits.CPUPercent = *c.CPU
	}
	return a
}

// Run deploys or configures an application.
func (c *fleetDeploy) Run(s *session) error {
	var configuration json.RawMessage
	if c.File != "" {
		var err error
		if configuration, err = readObject(c.File); err != nil {
			return err
		}
	}
	cl, i, err := c.instance(s, c.Name)
	if err != nil {
		return err
	}
	id := c.Application
	all, err := cl.Applications(s.ctx, i.ID)
	if err != nil {
		return err
	}
	if at := slices.IndexFunc(all, func(a client.Application) bool { return a.ID == id }); at >= 0 {
		a := c.change(all[at].Limits)
		if a.Configuration = configuration; configuration == nil && a.Version == "" && a.AnycastAddresses == nil && a.Limits == nil {
			return usageError{fmt.Errorf("%s already runs %s: change it with --configuration or --version", c.Name,
				id)}
		}
		err = cl.ChangeApplication(s.ctx, i.ID, id, a)
	} else {
		a := c.change(nil)
		a.Configuration = configuration
		id, err = cl.Deploy(s.ctx, i.ID, c.Application, a)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.stdout, id)
	return err
}

// readObject reads a JSON object from a file, or from standard input if the file is -.
func readObject(file string) (text json.RawMessage, err error) {
	in := os.Stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, usageError{err}
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	if err := json.NewDecoder(in).Decode(&text); err != nil {
		return nil, usageError{fmt.Errorf("read %s: %w", file, err)}
	}
	return text, nil
}

type fleetAnycast struct {
	managerFlags
	Name     string `arg:"" complete:"point" help:"The name or the id of the service point."`
	Settings string `arg:"" optional:"" help:"A file with the settings, a JSON object of autonomousSystemNumber, neighbors and so on; - for standard input; off to disable it. Without this flag the command prints the settings."`
}

// Run shows or changes the anycast routing of a service point.
func (c *fleetAnycast) Run(s *session) error {
	cl, i, err := c.instance(s, c.Name)
	if err != nil {
		return err
	}
	if c.Settings != "" {
		settings := json.RawMessage("null")
		if c.Settings != "off" {
			if settings, err = readObject(c.Settings); err != nil {
				return err
			}
		}
		i, err = cl.ChangeInstance(s.ctx, i.ID, client.InstanceChange{Anycast: settings})
	} else {
		i, err = cl.Instance(s.ctx, i.ID)
	}
	if err != nil {
		return err
	}
	if i.Anycast == nil {
		_, err = fmt.Fprintln(s.stdout, "off")
		return err
	}
	e := json.NewEncoder(s.stdout)
	e.SetIndent("", "  ")
	return e.Encode(i.Anycast)
}

type fleetConfiguration struct {
	managerFlags
	Name        string `arg:"" complete:"point" help:"The name or the id of the service point."`
	Application string `arg:"" optional:"" help:"The name or id of the application. Not required if there is only one."`
}

// Run prints the configuration of an application, without its secrets, in the format of fleet deploy.
func (c *fleetConfiguration) Run(s *session) error {
	cl, i, id, err := c.application(s, c.Name, c.Application)
	if err != nil {
		return err
	}
	all, err := cl.Applications(s.ctx, i.ID)
	if err != nil {
		return err
	}
	for _, a := range all {
		if a.ID == id {
			e := json.NewEncoder(s.stdout)
			e.SetIndent("", "  ")
			return e.Encode(a.Configuration)
		}
	}
	return fmt.Errorf("%s no longer has application %s", i.Name, id)
}

type fleetUndeploy struct {
	managerFlags
	Name string `arg:"" complete:"point" help:"The name or the id of the service point."`
	ID   string `arg:"" help:"The name or the id of the application."`
}

// Run removes an application.
func (c *fleetUndeploy) Run(s *session) error {
	cl, i, id, err := c.application(s, c.Name, c.ID)
	if err != nil {
		return err
	}
	return cl.Undeploy(s.ctx, i.ID, id)
}

type fleetLogs struct {
	managerFlags
	Name        string `arg:"" complete:"point" help:"The name or the id of the service point."`
	Application string `arg:"" optional:"" help:"The name or id of the application. Not required if there is only one."`
	Bytes       int    `help:"The number of bytes to print from the end, up to 131072." default:"65536" env:"-"`
}

// Run prints the end of a log.
func (c *fleetLogs) Run(s *session) error {
	cl, i, id, err := c.application(s, c.Name, c.Application)
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

// application returns the manager, a service point by name or ID, and the ID of its application by name or ID.
func (f managerFlags) application(s *session, point, name string) (cl *client.Client, i client.Instance, id string, err error) {
	if cl, i, err = f.instance(s, point); err != nil {
		return nil, i, "", err
	}
	id, err = applicationOf(i, name)
	return cl, i, id, err
}

// applicationOf returns the ID of an application of a service point by name or ID. An empty name selects the only application.
func applicationOf(i client.Instance, name string) (string, error) {
	var ids, names []string
	for _, a := range i.Applications {
		if name == "" || name == a.ID || name == a.Name {
			ids, names = append(ids, a.ID), append(names, a.Name+" ("+a.ID+")")
		}
	}
	switch {
	case len(ids) == 0:
		return "", fmt.Errorf("%s has no application %s", i.Name, name)
	case len(ids) > 1:
		return "", usageError{fmt.Errorf("%s has %d of these applications; give the id of one: %s", i.Name, len(ids), strings.Join(names, ", "))}
	}
	return ids[0], nil
}

type fleetEvents struct {
	managerFlags
	Name string `arg:"" complete:"point" help:"The name or the id of the service point."`
}

// Run lists the latest status changes of a service point.
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
