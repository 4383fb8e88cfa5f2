package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"portolan/client"
)

type dhcpCommand struct {
	Ask      dhcpAskCommand      `cmd:"" example:"portolan dhcp ask 10.1.0.2 --network 10.1.0.0/24 --offer" help:"Ask a DHCP server for an address, as a client behind a relay."`
	Leases   dhcpLeasesCommand   `cmd:"" example:"portolan dhcp leases networks/10.1.0.0/24" help:"List leases of a network, an address, a hardware address or a host name."`
	Ranges   dhcpRangesCommand   `cmd:"" example:"portolan dhcp ranges networks/10.1.0.0/24" help:"List DHCP ranges with their utilization, and when they are full."`
	Refused  dhcpRefusedCommand  `cmd:"" example:"portolan dhcp refused networks/10.1.0.0/24" help:"List the last clients that got no address, and why."`
	History  dhcpHistoryCommand  `cmd:"" example:"portolan dhcp history 10.1.0.20 --at 2026-11-29T10:00:00Z" help:"List the clients that had an address, or the addresses that a client had."`
	Explain  dhcpExplainCommand  `cmd:"" example:"portolan dhcp explain networks/10.1.0.0/24 00:00:5E:00:53:01" help:"Explain which address and options a client would get."`
	Release  dhcpReleaseCommand  `cmd:"" example:"portolan dhcp release 10.1.0.20" help:"End the lease of an address, or make an abandoned address free."`
	Reserve  dhcpReserveCommand  `cmd:"" example:"portolan dhcp reserve 10.1.0.20" help:"Reserve an address for the client that has it."`
	Failover dhcpFailoverCommand `cmd:"" help:"Show failover pairs, and declare a partner down."`
}

// lease is a lease, or a span.
type lease struct {
	Address, Prefix, State, MACAddress, ClientIdentifier, HostName, CircuitID string
	LeaseExpirationDateTime, StartDateTime, EndDateTime, EndReason            string
	Network                                                                   struct{ ID int64 }
	Server                                                                    struct{ Name string }
	ServerConnectionStatus                                                    string
}

// shown returns the address, or the delegated prefix.
func (l lease) shown() string { return cmp.Or(l.Prefix, l.Address) }

// showServer returns the name of the server, with its connection if it is not connected.
func (l lease) showServer() string {
	if l.ServerConnectionStatus == "NOT_CONNECTED" {
		return l.Server.Name + " (not connected)"
	}
	return l.Server.Name
}

type dhcpLeasesCommand struct {
	managerFlags
	Limit int64  `help:"The maximum number of leases." default:"100"`
	Of    string `arg:"" optional:"" help:"A network such as networks/10.1.0.0/24, an address, a delegated prefix, a hardware address or a host name. Default: all leases."`
}

// Run lists leases.
func (c *dhcpLeasesCommand) Run(s *session) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	collection, filter, err := leasesOf(s, cl, "leases", c.Of)
	if err != nil {
		return err
	}
	return listLeases(s, cl, c.JSON, collection, client.Query{Filter: filter, OrderBy: "asc(address)", Limit: c.Limit},
		"no leases; servers report a new lease within a second", "ADDRESS\tSTATE\tMAC ADDRESS\tHOST NAME\tEXPIRES\tSERVER",
		func(l lease) string {
			return strings.Join([]string{l.shown(), l.State, l.MACAddress, l.HostName, l.LeaseExpirationDateTime, l.showServer()}, "\t")
		})
}

type dhcpHistoryCommand struct {
	managerFlags
	Limit int64  `help:"The maximum number of entries." default:"100"`
	At    string `help:"Only the clients that had an address at this time (RFC 3339)."`
	Of    string `arg:"" help:"A network such as networks/10.1.0.0/24, an address, a delegated prefix, a hardware address or a host name."`
}

// Run lists the clients that had addresses.
func (c *dhcpHistoryCommand) Run(s *session) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	collection, filter, err := leasesOf(s, cl, "leaseSpans", c.Of)
	if err != nil {
		return err
	}
	if c.At != "" {
		at, err := time.Parse(time.RFC3339, c.At)
		if err != nil {
			return usageError{fmt.Errorf("--at: %q is not a time such as 2026-11-29T10:00:00Z", c.At)}
		}
		text := at.UTC().Format(time.RFC3339)
		during := fmt.Sprintf("startDateTime:le('%s') and (endDateTime:gt('%s') or endDateTime:null)", text, text)
		if filter != "" {
			filter += " and "
		}
		filter += during
	}
	return listLeases(s, cl, c.JSON, collection, client.Query{Filter: filter, OrderBy: "desc(startDateTime)", Limit: c.Limit},
		"no leases", "ADDRESS\tFROM\tTO\tEND\tMAC ADDRESS\tHOST NAME\tPORT", func(l lease) string {
			return strings.Join([]string{l.shown(), l.StartDateTime, l.EndDateTime, l.EndReason, l.MACAddress, l.HostName, l.CircuitID}, "\t")
		})
}

// leasesOf returns the collection and the filter for the leases that a text names.
func leasesOf(s *session, cl *client.Client, collection, text string) (at, filter string, err error) {
	quoted := "'" + strings.ReplaceAll(text, "'", `\'`) + "'"
	if a, err := netip.ParseAddr(text); err == nil {
		if a.Is4() {
			return collection, "address:" + quoted, nil
		}
		return collection, "(address:" + quoted + " or prefix:contains(" + quoted + "))", nil // the client of the prefix has the address
	}
	if _, err := net.ParseMAC(text); err == nil {
		return collection, "macAddress:" + quoted, nil
	}
	switch {
	case text == "":
		return collection, "", nil
	case isPrefix6(text):
		ids, err := cl.IDs(s.ctx, "networks", "range:"+quoted, 1)
		if err != nil || len(ids) == 0 {
			return collection, "prefix:contains(" + quoted + ")", err
		}
		return fmt.Sprintf("networks/%d/%s", ids[0], collection), "", nil
	case strings.Contains(text, "/"):
		id, err := networkID(s, cl, text)
		return fmt.Sprintf("networks/%d/%s", id, collection), "", err
	}
	return collection, "hostName:" + quoted, nil
}

// isPrefix6 reports whether a text is an IPv6 prefix: a network, or a delegated prefix.
func isPrefix6(text string) bool {
	p, err := netip.ParsePrefix(text)
	return err == nil && p.Addr().Is6()
}

// networkID returns the id of a network that a path names by its id or its range.
func networkID(s *session, cl *client.Client, path string) (int64, error) {
	name := strings.TrimPrefix(path, "networks/")
	if id, err := strconv.ParseInt(name, 10, 64); err == nil {
		return id, nil
	}
	ids, err := cl.IDs(s.ctx, "networks", "range:'"+strings.ReplaceAll(name, "'", `\'`)+"'", 2)
	switch {
	case err != nil:
		return 0, err
	case len(ids) == 0:
		return 0, fmt.Errorf("network %s does not exist", name)
	case len(ids) > 1:
		return 0, fmt.Errorf("several networks have the range %s: give the id of one, such as networks/%d", name, ids[0])
	}
	return ids[0], nil
}

// listLeases prints leases as a table.
func listLeases(s *session, cl *client.Client, asJSON bool, collection string, q client.Query, none, head string,
	row func(lease) string) error {
	page, err := cl.List(s.ctx, collection, q)
	if err != nil {
		return err
	}
	return printRows(s, asJSON, page, none, head, func(text json.RawMessage) (string, error) {
		var l lease
		err := json.Unmarshal(text, &l)
		return row(l), err
	})
}

type dhcpExplainCommand struct {
	managerFlags
	Planned          bool   `help:"Use the current settings instead of the deployed ones."`
	ClientIdentifier string `help:"The client identifier: a text, or octets such as 0x0A0B. In DHCPv6 the DUID, in hexadecimal digits."`
	IAID             string `help:"The number of the identity association of DHCPv6, by default 1." name:"iaid"`
	CircuitID        string `help:"The circuit id of the relay agent." name:"circuit-id"`
	RemoteID         string `help:"The remote id of the relay agent." name:"remote-id"`
	VendorClass      string `help:"The vendor class of the client."`
	Options          string `help:"Other options of DHCPv4 that the client sends, as CODE:VALUE separated by commas, such as 93:0x0007,77:iPXE." placeholder:"CODE:VALUE"`
	Prefix           bool   `help:"Ask for a delegated prefix of DHCPv6 instead of an address."`
	Requested        string `help:"The address that the client requests. With --prefix a prefix, such as ::/56 for any prefix of a length."`
	Relay            string `help:"The address of the relay agent (giaddr, in DHCPv6 the link address), by default the first address of the network."`
	Network          string `arg:"" help:"The network of the client, such as networks/10.1.0.0/24, or the address of its relay agent."`
	MACAddress       string `arg:"" optional:"" name:"mac-address" help:"The hardware address of the client. DHCPv6: the DUID follows from it."`
}

// Run prints what a client would get, with the object that each part comes from.
func (c *dhcpExplainCommand) Run(s *session) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	query := url.Values{}
	if a, err := netip.ParseAddr(c.Network); err == nil {
		if c.Relay != "" {
			return fmt.Errorf("%s is an address: give a network with --relay", c.Network)
		}
		c.Relay = a.String()
	} else {
		id, err := networkID(s, cl, c.Network)
		if err != nil {
			return err
		}
		query.Set("network", strconv.FormatInt(id, 10))
	}
	for name, text := range map[string]string{"macAddress": c.MACAddress, "iaid": c.IAID, "clientIdentifier": c.ClientIdentifier,
		"circuitId": c.CircuitID, "remoteId": c.RemoteID, "relay": c.Relay,
		"vendorClassIdentifier": c.VendorClass, "options": c.Options, "requested": c.Requested} {
		if text != "" {
			query.Set(name, text)
		}
	}
	if c.Planned {
		query.Set("planned", "true")
	}
	if c.Prefix {
		query.Set("prefix", "true")
	}
	var answer json.RawMessage
	if err := cl.Get(s.ctx, "dhcpExplanation?"+query.Encode(), &answer); err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(s.stdout).Encode(answer)
	}
	type place struct {
		Level, Name string
		ID          int64
	}
	var e struct {
		Server                 struct{ Name string }
		Reply, Reason, Address string
		Range, Reservation     int64
		LeaseTime              int64
		PrefixLength           int
		Classes                []string
		Options                []struct {
			Code        int
			Name, Value string
			From        place
		}
		Steps []struct {
			Rule, Result string
			From         place
		}
	}
	if err := json.Unmarshal(answer, &e); err != nil {
		return err
	}
	switch {
	case e.Reply == "":
		fmt.Fprintf(s.stdout, "server %s does not answer: %s\n", e.Server.Name, e.Reason)
	case e.Address == "":
		kind := "address"
		if c.Prefix {
			kind = "prefix"
		}
		fmt.Fprintf(s.stdout, "server %s offers no %s: %s\n", e.Server.Name, kind, e.Reason)
	default:
		if e.PrefixLength > 0 {
			e.Address += "/" + strconv.Itoa(e.PrefixLength)
		}
		fmt.Fprintf(s.stdout, "server %s offers %s for %d s\n", e.Server.Name, e.Address, e.LeaseTime)
	}
	if len(e.Classes) > 0 {
		fmt.Fprintf(s.stdout, "classes: %s\n", strings.Join(e.Classes, ", "))
	}
	w := tabwriter.NewWriter(s.stdout, 0, 4, 2, ' ', 0)
	if len(e.Options) > 0 {
		fmt.Fprintln(w, "CODE\tOPTION\tVALUE\tSET AT")
	}
	for _, o := range e.Options {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s %s\n", o.Code, o.Name, o.Value, o.From.Level, o.From.Name)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, step := range e.Steps {
		fmt.Fprintf(s.stdout, "%s: %s\n", step.Rule, step.Result)
	}
	return nil
}

type dhcpReleaseCommand struct {
	managerFlags
	Address string `arg:"" help:"The address, or the delegated prefix."`
}

// Run ends the lease of an address.
func (c *dhcpReleaseCommand) Run(s *session) error {
	return c.act(s, c.Address, func(l lease) string {
		if l.State == "DHCP_ABANDONED" {
			return "CLEAR_ADDRESS"
		}
		return "END_LEASE"
	})
}

type dhcpReserveCommand struct {
	managerFlags
	Address string `arg:"" help:"The address."`
}

// Run reserves an address for the client of its lease.
func (c *dhcpReserveCommand) Run(s *session) error {
	return c.act(s, c.Address, func(lease) string { return "RESERVE" })
}

// act requests an action on the lease of an address.
func (f *managerFlags) act(s *session, address string, action func(lease) string) error {
	cl, err := f.client()
	if err != nil {
		return err
	}
	a, err := netip.ParseAddr(address)
	prefix, wrong := netip.ParsePrefix(address)
	if wrong == nil && prefix.Addr().Is6() && prefix == prefix.Masked() {
		a, err = prefix.Addr(), nil // the lease of a prefix has its first address
	}
	if err != nil {
		return usageError{fmt.Errorf("%q is not an address", address)}
	}
	page, err := cl.List(s.ctx, "leases", client.Query{Filter: "address:'" + a.String() + "'", Limit: 2})
	if err != nil {
		return err
	}
	if len(page.Data) != 1 {
		return fmt.Errorf("%d leases of %s exist: an action needs one", len(page.Data), a)
	}
	var l lease
	if err := json.Unmarshal(page.Data[0], &l); err != nil {
		return err
	}
	if wrong == nil && l.Prefix != prefix.String() {
		return fmt.Errorf("no lease of %s exists", prefix)
	}
	if l.Network.ID == 0 {
		return errors.New("the network of the lease is not visible to you")
	}
	var done struct {
		ID          int64
		State       string
		Reservation struct{ ID int64 }
	}
	kind := action(l)
	if err := cl.Create(s.ctx, fmt.Sprintf("networks/%d/leaseActions", l.Network.ID), map[string]string{"address": a.String(), "action": kind},
		&done); err != nil {
		return err
	}
	if kind == "RESERVE" {
		_, err = fmt.Fprintf(s.stdout, "Reserved %s for %s as address %d\n", a, l.MACAddress, done.Reservation.ID)
		return err
	}
	_, err = fmt.Fprintf(s.stdout, "Ordered: %s of %s (leaseActions/%d is %s)\n", kind, a, done.ID, done.State)
	return err
}
