package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"text/tabwriter"

	"portolan/client"
)

type dhcpRangesCommand struct {
	managerFlags
	Limit int64  `help:"The maximum number of ranges." default:"100"`
	Of    string `arg:"" optional:"" help:"A network such as networks/10.1.0.0/24. Default: all networks."`
}

// Run lists DHCP ranges with their utilization and forecast.
func (c *dhcpRangesCommand) Run(s *session) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	collection := "ranges"
	if c.Of != "" {
		id, err := networkID(s, cl, c.Of)
		if err != nil {
			return err
		}
		collection = fmt.Sprintf("networks/%d/ranges", id)
	}
	page, err := cl.List(s.ctx, collection, client.Query{OrderBy: "asc(range)", Limit: c.Limit})
	if err != nil {
		return err
	}
	const head = "RANGE\tNAME\tUSED\tLEASED\tRESERVED\tABANDONED\tFREE\tFULL IN"
	return printRows(s, c.JSON, page, "no ranges", head, func(text json.RawMessage) (string, error) {
		var r struct {
			Range, Name string
			Utilization struct {
				Leased, Reserved, Abandoned, Percent int64
				Free                                 *int64
				FullInHours                          *float64
			}
		}
		err := json.Unmarshal(text, &r)
		u, free, full := r.Utilization, "many", ""
		if u.Free != nil {
			free = fmt.Sprint(*u.Free)
		}
		if u.FullInHours != nil {
			full = fmt.Sprintf("%g hours", *u.FullInHours)
		}
		return fmt.Sprintf("%s\t%s\t%d%%\t%d\t%d\t%d\t%s\t%s", r.Range, r.Name, u.Percent, u.Leased, u.Reserved, u.Abandoned, free, full), err
	})
}

type dhcpRefusedCommand struct {
	managerFlags
	Limit int64  `help:"The maximum number of clients." default:"100"`
	Of    string `arg:"" optional:"" help:"A network such as networks/10.1.0.0/24, or a hardware address. Default: all networks."`
}

// Run lists the last clients that DHCP servers refused.
func (c *dhcpRefusedCommand) Run(s *session) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	collection, filter, network := "refusedClients", "", int64(0)
	if _, err := net.ParseMAC(c.Of); err == nil {
		filter = "macAddress:'" + c.Of + "'"
	} else if c.Of != "" {
		id, err := networkID(s, cl, c.Of)
		if err != nil {
			return err
		}
		collection, network = fmt.Sprintf("networks/%d/refusedClients", id), id
	}
	page, err := cl.List(s.ctx, collection, client.Query{Filter: filter, OrderBy: "desc(lastDateTime)", Limit: c.Limit})
	if err == nil && network != 0 && len(page.Data) == 0 {
		page, err = c.listUnserved(s, cl, network)
	}
	if err != nil {
		return err
	}
	return printRows(s, c.JSON, page, "no refused clients", "LAST\tMAC ADDRESS\tHOST NAME\tMESSAGE\tREASON\tCOUNT\tNETWORK\tSERVER",
		func(text json.RawMessage) (string, error) {
			var r struct {
				LastDateTime, MACAddress, HostName, MessageType, Reason string
				Count                                                   int64
				Network                                                 struct{ Range string }
				Server                                                  struct{ Name string }
			}
			err := json.Unmarshal(text, &r)
			return strings.Join([]string{r.LastDateTime, r.MACAddress, r.HostName, r.MessageType, r.Reason, fmt.Sprint(r.Count), r.Network.Range,
				r.Server.Name}, "\t"), err
		})
}

// listUnserved returns the refused clients of a network that no server serves: the server lists them by their relay, or by the address that
// they ask for.
func (c *dhcpRefusedCommand) listUnserved(s *session, cl *client.Client, network int64) (page client.Page, err error) {
	var at struct{ Range string }
	if err := cl.Do(s.ctx, http.MethodGet, fmt.Sprintf(client.AddressPath+"networks/%d", network), nil, &at); err != nil {
		return page, err
	}
	within, err := netip.ParsePrefix(at.Range)
	if err != nil {
		return page, err
	}
	all, err := cl.List(s.ctx, "refusedClients", client.Query{OrderBy: "desc(lastDateTime)", Limit: unservedLimit})
	if err != nil {
		return page, err
	}
	for _, text := range all.Data {
		var r struct {
			Network                        *struct{ ID int64 }
			RelayAddress, RequestedAddress netip.Addr
		}
		if err := json.Unmarshal(text, &r); err != nil {
			return page, err
		}
		if r.Network == nil && (within.Contains(r.RelayAddress) || within.Contains(r.RequestedAddress)) && int64(len(page.Data)) < c.Limit {
			page.Data = append(page.Data, text)
		}
	}
	if len(page.Data) > 0 {
		fmt.Fprintf(s.stderr, "note: no server serves %s; its clients are listed at the server that refused them. Give the network a DHCP role "+
			"and deploy it.\n", within)
	}
	return page, nil
}

// unservedLimit is the maximum number of refused clients that are searched for those of a network that no server serves.
const unservedLimit = 1000

// printRows prints the rows of a page as a table, or as JSON.
func printRows(s *session, asJSON bool, page client.Page, none, head string, row func(json.RawMessage) (string, error)) error {
	if asJSON {
		return json.NewEncoder(s.stdout).Encode(page.Data)
	}
	if len(page.Data) == 0 {
		_, err := fmt.Fprintln(s.stderr, none)
		return err
	}
	w := tabwriter.NewWriter(s.stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, head)
	for _, text := range page.Data {
		line, err := row(text)
		if err != nil {
			return err
		}
		fmt.Fprintln(w, line)
	}
	return w.Flush()
}
