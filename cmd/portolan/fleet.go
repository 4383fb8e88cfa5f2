package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"portolan/client"
)

type fleetCommand struct {
	List   fleetList   `cmd:"" example:"portolan fleet list --filter status=HEALTHY" help:"List the fleet."`
	Show   fleetShow   `cmd:"" example:"portolan fleet show quay" help:"Show a service point as JSON."`
	Create fleetCreate `cmd:"" example:"portolan fleet create quay" help:"Create a service point and print its registration key."`
	Rekey  fleetRekey  `cmd:"" example:"portolan fleet rekey quay" help:"Create a new registration key for a service point, for example after its machine was lost. Its old certificate becomes invalid."`
	Delete fleetDelete `cmd:"" example:"portolan fleet delete quay" help:"Delete a service point. Its certificate becomes invalid, and its machines stop their applications."`

	Node struct {
		Add    fleetNodeAdd    `cmd:"" example:"portolan fleet node add quay" help:"Add a node to a service point and print its registration key."`
		Remove fleetNodeRemove `cmd:"" example:"portolan fleet node remove quay 2" help:"Remove a node from a service point. The certificate of the node becomes invalid."`
	} `cmd:"" help:"Add and remove nodes: the machines of a service point."`
	Label    fleetLabel    `cmd:"" example:"portolan fleet label quay site=harbour" help:"Label a service point."`
	Releases fleetReleases `cmd:"" example:"portolan fleet releases" help:"List the releases that service points can be updated to."`
	Update   fleetUpdate   `cmd:"" example:"portolan fleet update quay 1.2.0" help:"Update a service point to a release."`

	Applications  fleetApplications  `cmd:"" example:"portolan fleet applications quay" help:"List the applications of a service point."`
	Deploy        fleetDeploy        `cmd:"" example:"portolan fleet deploy quay http-probe-service --file probe.json" help:"Deploy an application to a service point, or change the configuration of a running application."`
	Configuration fleetConfiguration `cmd:"" example:"portolan fleet configuration quay http-probe-service" help:"Print the configuration of an application. Edit it and apply it with fleet deploy."`
	Anycast       fleetAnycast       `cmd:"" example:"portolan fleet anycast quay" help:"Show or change how a service point announces anycast addresses by BGP."`
	Undeploy      fleetUndeploy      `cmd:"" example:"portolan fleet undeploy quay http-probe-service" help:"Remove an application from a service point."`
	Logs          fleetLogs          `cmd:"" example:"portolan fleet logs quay dns-authoritative-service" help:"Print the end of the current log of an application."`
	Events        fleetEvents        `cmd:"" example:"portolan fleet events quay" help:"List the events of a service point and its applications."`
}

type fleetList struct {
	managerFlags
	Filter []string `help:"List only service points with these fields, such as status=HEALTHY or nameContains=quay; label=site=oslo selects a label." placeholder:"FIELD=VALUE" env:"-" sep:"none"`
	Limit  int      `help:"The maximum number to list; 0 for all." placeholder:"N" env:"-"`
}

// fieldOf parses a field of a filter, FIELD=VALUE. For a label, the value is NAME:VALUE, as the API requires, and NAME=VALUE is also
// accepted.
func fieldOf(text string) (field, value string, err error) {
	field, value, ok := strings.Cut(text, "=")
	if !ok {
		return "", "", usageError{fmt.Errorf("--filter: %q is not of the form FIELD=VALUE", text)}
	}
	if at := strings.IndexAny(value, ":="); field == "label" && at >= 0 {
		value = value[:at] + ":" + value[at+1:]
	}
	return field, value, nil
}

// labelled returns labels as text, sorted by name.
func labelled(labels map[string]string) string {
	all := make([]string, 0, len(labels))
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		all = append(all, name+"="+labels[name])
	}
	return cmp.Or(strings.Join(all, " "), "-")
}

// Run lists the fleet.
func (c *fleetList) Run(s *session) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	query := url.Values{}
	for _, text := range c.Filter {
		field, value, err := fieldOf(text)
		if err != nil {
			return err
		}
		query.Add(field, value)
	}
	if c.Limit != 0 {
		query.Set("limit", strconv.Itoa(c.Limit))
	}
	all, err := cl.InstancesBy(s.ctx, query)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(s.stdout).Encode(all)
	}
	w := tabwriter.NewWriter(s.stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSTATUS\tCONNECTION\tAPPLICATIONS\tVERSION\tUPDATE\tLAST SEEN\tLABELS\tID")
	for _, i := range all {
		seen := "never"
		if i.LastSeen > 0 {
			seen = time.UnixMilli(i.LastSeen).UTC().Format(time.RFC3339)
		}
		well, all := 0, 0
		for _, a := range i.Applications {
			switch a.Status {
			case "HEALTHY":
				well, all = well+1, all+1
			case "DELETED": // the application was removed
			default:
				all++
			}
		}
		applications := "-"
		if all > 0 {
			applications = fmt.Sprintf("%d of %d well", well, all)
		}
		if i.ConnectionStatus == "NOT_CONNECTED" && all > 0 {
			applications = fmt.Sprintf("? of %d well", all)
		}
		update := i.UpdateStatus
		if i.TargetVersion != "" {
			update += " to " + i.TargetVersion
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", i.Name, i.Status, i.ConnectionStatus, applications, i.Version, update, seen,
			labelled(i.Labels), i.ID)
	}
	return w.Flush()
}

type fleetShow struct {
	managerFlags
	Name string `arg:"" complete:"point" help:"The name or the id."`
}

// Run shows one service point.
func (c *fleetShow) Run(s *session) error {
	cl, i, err := c.instance(s, c.Name)
	if err == nil {
		i, err = cl.Instance(s.ctx, i.ID) // contains more fields than the list
	}
	if err != nil {
		return err
	}
	e := json.NewEncoder(s.stdout)
	e.SetIndent("", "  ")
	return e.Encode(i)
}

// instance returns the manager and a service point by name, or else by ID.
func (f managerFlags) instance(s *session, name string) (cl *client.Client, i client.Instance, err error) {
	if cl, err = f.client(); err != nil {
		return nil, i, err
	}
	named, err := cl.Instances(s.ctx, name)
	if err != nil {
		return nil, i, err
	}
	if len(named) > 0 {
		return cl, named[0], nil
	}
	i, err = cl.Instance(s.ctx, name)
	var e *client.Error
	if errors.As(err, &e) && e.Status == http.StatusNotFound {
		err = fmt.Errorf("no fleet service point has the name or id %q", name)
	}
	return cl, i, err
}

type fleetCreate struct {
	managerFlags
	Name        string `arg:"" help:"The name, unique in the fleet."`
	Description string `help:"A description."`
	Nodes       int    `help:"The maximum number of machines. All of them enrol with the same key." default:"1"`
}

// Run creates a service point.
func (c *fleetCreate) Run(s *session) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	if c.Nodes < 1 {
		return usageError{errors.New("--nodes must be 1 or more")}
	}
	created, err := cl.CreateInstance(s.ctx, c.Name, c.Description, c.Nodes)
	if err != nil {
		return err
	}
	if c.Nodes > 1 {
		return c.print(s, created, fmt.Sprintf("was created. The key is valid for %d machines", c.Nodes))
	}
	return c.print(s, created, "was created")
}

// print prints the registration data of a service point.
func (f managerFlags) print(s *session, created client.Created, what string) error {
	if f.JSON {
		return json.NewEncoder(s.stdout).Encode(created)
	}
	_, err := fmt.Fprintf(s.stdout,
		"%s %s. Run this on its machine within seven days:\n\n  PORTOLAN_REGISTRATION_KEY=%s \\\n  portolan agent --registration-endpoint "+
			"%s --state DIR\n",
		created.FleetInstanceID, what, created.RegistrationKey, created.RegistrationEndpoint)
	return err
}

type fleetNodeAdd struct {
	managerFlags
	Name string `arg:"" complete:"point" help:"The name or the id of the service point."`
}

// Run allows a service point one more node.
func (c *fleetNodeAdd) Run(s *session) error {
	cl, i, err := c.instance(s, c.Name)
	if err != nil {
		return err
	}
	created, err := cl.AddNode(s.ctx, i.ID)
	if err != nil {
		return err
	}
	return c.print(s, created, "has one more node")
}

type fleetNodeRemove struct {
	managerFlags
	Name string `arg:"" complete:"point" help:"The name or the id of the service point."`
	Node string `arg:"" help:"The node, such as node-2; fleet show prints the ids."`
}

// Run removes a node.
func (c *fleetNodeRemove) Run(s *session) error {
	cl, i, err := c.instance(s, c.Name)
	if err != nil {
		return err
	}
	node := c.Node
	if !strings.HasPrefix(node, i.ID) {
		node = i.ID + "-" + node
	}
	return cl.RemoveNode(s.ctx, i.ID, node)
}

type fleetRekey struct {
	managerFlags
	Name string `arg:"" complete:"point" help:"The name or the id."`
}

// Run creates a new registration key for a service point.
func (c *fleetRekey) Run(s *session) error {
	cl, i, err := c.instance(s, c.Name)
	if err != nil {
		return err
	}
	created, err := cl.Rekey(s.ctx, i.ID)
	if err != nil {
		return err
	}
	return c.print(s, created, "has a new registration key")
}

type fleetDelete struct {
	managerFlags
	Name string `arg:"" complete:"point" help:"The name or the id."`
}

// Run deletes a service point.
func (c *fleetDelete) Run(s *session) error {
	cl, i, err := c.instance(s, c.Name)
	if err != nil {
		return err
	}
	if err := cl.DeleteInstance(s.ctx, i.ID); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.stdout, "%s was deleted\n", i.ID)
	return err
}
