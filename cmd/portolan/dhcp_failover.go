package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	"portolan/client"
)

type dhcpFailoverCommand struct {
	Show        dhcpFailoverShowCommand `cmd:"" default:"withargs" example:"portolan dhcp failover show" help:"List the failover pairs of DHCP servers."`
	PartnerDown dhcpPartnerDownCommand  `cmd:"" example:"portolan dhcp failover partner-down dhcp2" help:"Declare that the failover partner of a server does not run."`
}

// dhcpPartner is a failover pair of a server.
type dhcpPartner struct {
	Partner struct {
		ID   int64
		Name string
	}
	State, StateDateTime, LastContactDateTime, ReportDateTime string
	Connected                                                 bool
	ClockDifference, PendingUpdates, Conflicts                int64
}

type dhcpFailoverShowCommand struct {
	managerFlags
	Server string `arg:"" optional:"" help:"The name or the id of a server. Default: all servers."`
}

// Run lists failover pairs.
func (c *dhcpFailoverShowCommand) Run(s *session) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	filter := ""
	if c.Server != "" {
		filter = serverFilter(c.Server)
	}
	servers, err := cl.List(s.ctx, "servers", client.Query{Filter: filter, OrderBy: "asc(id)", Limit: maxShownServers})
	if err != nil {
		return err
	}
	var rows []json.RawMessage
	w := tabwriter.NewWriter(s.stdout, 0, 4, 2, ' ', 0)
	for _, text := range servers.Data {
		var server struct {
			ID   int64
			Name string
		}
		if err := json.Unmarshal(text, &server); err != nil {
			return err
		}
		page, err := cl.List(s.ctx, fmt.Sprintf("servers/%d/dhcpPartners", server.ID), client.Query{Limit: maxShownServers})
		if err != nil {
			return err
		}
		for _, one := range page.Data {
			var p dhcpPartner
			if err := json.Unmarshal(one, &p); err != nil {
				return err
			}
			if rows = append(rows, one); len(rows) == 1 {
				fmt.Fprintln(w, "SERVER\tPARTNER\tSTATE\tSINCE\tLAST CONTACT\tCLOCK\tPENDING\tCONFLICTS")
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%+.1f s\t%d\t%d\n", server.Name, p.Partner.Name, p.State, p.StateDateTime, p.LastContactDateTime,
				float64(p.ClockDifference)/1000, p.PendingUpdates, p.Conflicts)
		}
	}
	switch {
	case c.JSON:
		return json.NewEncoder(s.stdout).Encode(append([]json.RawMessage{}, rows...))
	case len(rows) == 0:
		_, err = fmt.Fprintln(s.stderr, "no failover pairs")
		return err
	}
	return w.Flush()
}

// maxShownServers is the maximum number of servers that a list of pairs examines.
const maxShownServers = 1000

// serverFilter returns the filter for a server by its name or id.
func serverFilter(text string) string {
	if id, err := strconv.ParseInt(text, 10, 64); err == nil {
		return fmt.Sprintf("id:%d", id)
	}
	return "name:'" + strings.ReplaceAll(text, "'", `\'`) + "'"
}

type dhcpPartnerDownCommand struct {
	managerFlags
	Force  bool   `help:"Declare it although the partner still reports to the manager, or the server lacks leases. Two clients can then get the same address."`
	Server string `arg:"" help:"The name or the id of the server that serves alone."`
}

// Run declares the partner of a server down.
func (c *dhcpPartnerDownCommand) Run(s *session) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	ids, err := cl.IDs(s.ctx, "servers", serverFilter(c.Server), 2)
	if err != nil {
		return err
	}
	if len(ids) != 1 {
		return fmt.Errorf("several servers (%d) have the name %s: give the id of one", len(ids), c.Server)
	}
	page, err := cl.List(s.ctx, fmt.Sprintf("servers/%d/dhcpPartners", ids[0]), client.Query{Limit: 2})
	if err != nil {
		return err
	}
	if len(page.Data) != 1 {
		return fmt.Errorf("server %s has %d failover partners: choose one by POST servers/%d/dhcpPartnerActions", c.Server, len(page.Data),
			ids[0])
	}
	var p dhcpPartner
	if err := json.Unmarshal(page.Data[0], &p); err != nil {
		return err
	}
	var done struct {
		ID    int64
		State string
	}
	if err := cl.Create(s.ctx, fmt.Sprintf("servers/%d/dhcpPartnerActions", ids[0]), map[string]any{
		"partner": map[string]int64{"id": p.Partner.ID}, "action": "PARTNER_DOWN", "force": c.Force}, &done); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.stdout, "Declared down: %s, the partner of %s (dhcpPartnerActions/%d is %s)\n", p.Partner.Name, c.Server, done.ID,
		done.State)
	return err
}
