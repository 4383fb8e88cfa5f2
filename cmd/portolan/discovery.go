package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"portolan/client"
	"portolan/internal/base/plural"
)

type discoveryCommand struct {
	Run      discoveryRunCommand      `cmd:"" example:"portolan discovery run 100725" help:"Run a reconciliation policy now, and wait for the result."`
	Runs     discoveryRunsCommand     `cmd:"" example:"portolan discovery runs 100725" help:"List the last runs of a policy."`
	Findings discoveryFindingsCommand `cmd:"" example:"portolan discovery findings --kind UNKNOWN_ADDRESS" help:"List differences between the network and the database."`
	Accept   discoveryAcceptCommand   `cmd:"" example:"portolan discovery accept 100741" help:"Accept findings: apply their changes in one transaction."`
	Reject   discoveryRejectCommand   `cmd:"" example:"portolan discovery reject --kind NOT_SEEN" help:"Reject findings until other values are seen."`
	Seen     discoverySeenCommand     `cmd:"" example:"portolan discovery seen 00:00:5E:00:53:01" help:"List when and where addresses were seen."`
}

type discoveryRunCommand struct {
	managerFlags
	Policy int64         `arg:"" help:"The id of the policy."`
	Wait   time.Duration `help:"The maximum time to wait for the end of the run." default:"1h" env:"-"`
}

// reconciliationRun is a run of a policy.
type reconciliationRun struct {
	ID                              int64
	State, CreationDateTime         string
	Pinged, Seen, Devices, Findings int64
	Messages                        []string
}

// runPoll is the interval at which the state of a run is read.
const runPoll = 500 * time.Millisecond

// Run starts a run and waits for its end.
func (c *discoveryRunCommand) Run(s *session) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	var r reconciliationRun
	if err := cl.Create(s.ctx, fmt.Sprintf("reconciliationPolicies/%d/reconciliationRuns", c.Policy), struct{}{}, &r); err != nil {
		return err
	}
	for end := time.Now().Add(c.Wait); r.State == "QUEUED"; {
		if time.Now().After(end) {
			return fmt.Errorf("run %d has not ended within %s", r.ID, c.Wait)
		}
		select {
		case <-s.ctx.Done():
			return s.ctx.Err()
		case <-time.After(runPoll):
		}
		if err := cl.Get(s.ctx, fmt.Sprintf("reconciliationRuns/%d", r.ID), &r); err != nil {
			return err
		}
	}
	for _, m := range r.Messages {
		fmt.Fprintln(s.stderr, "note: "+m)
	}
	if r.State == "FAILED" {
		return fmt.Errorf("run %d has failed", r.ID)
	}
	if c.JSON {
		return json.NewEncoder(s.stdout).Encode(r)
	}
	_, err = fmt.Fprintf(s.stdout, "%s pinged, %s read, %s seen, %s\n", plural.Count(r.Pinged, "address"),
		plural.Count(r.Devices, "device"), plural.Count(r.Seen, "address"), plural.Count(r.Findings, "open finding"))
	return err
}

type discoveryRunsCommand struct {
	managerFlags
	Policy int64 `arg:"" help:"The id of the policy."`
}

// Run lists the last runs of a policy.
func (c *discoveryRunsCommand) Run(s *session) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	page, err := cl.List(s.ctx, fmt.Sprintf("reconciliationPolicies/%d/reconciliationRuns", c.Policy), client.Query{OrderBy: "desc(id)"})
	if err != nil {
		return err
	}
	const head = "TIME\tSTATE\tPINGED\tDEVICES\tSEEN\tFINDINGS\tMESSAGES"
	return printRows(s, c.JSON, page, "no runs", head, func(text json.RawMessage) (string, error) {
		var r reconciliationRun
		err := json.Unmarshal(text, &r)
		return fmt.Sprintf("%s\t%s\t%d\t%d\t%d\t%d\t%s", r.CreationDateTime, r.State, r.Pinged, r.Devices, r.Seen, r.Findings,
			strings.Join(r.Messages, "; ")), err
	})
}

// findingFlags select findings.
type findingFlags struct {
	Policy int64  `help:"The id of the policy. Default: all policies." env:"-"`
	Kind   string `help:"The kind: UNKNOWN_ADDRESS, NOT_SEEN, MAC_ADDRESS_DIFFERS, HOST_NAME_DIFFERS or UNKNOWN_NETWORK. Default: all." env:"-"`
}

// filter returns the filter for findings in a state; empty for all states.
func (f *findingFlags) filter(state string) string {
	var parts []string
	for name, value := range map[string]string{"state": state, "kind": f.Kind} {
		if value != "" {
			parts = append(parts, name+":'"+strings.ReplaceAll(value, "'", `\'`)+"'")
		}
	}
	return strings.Join(parts, " and ")
}

// collection returns the collection of the findings.
func (f *findingFlags) collection() string {
	if f.Policy != 0 {
		return fmt.Sprintf("reconciliationPolicies/%d/reconciliationFindings", f.Policy)
	}
	return "reconciliationFindings"
}

type discoveryFindingsCommand struct {
	managerFlags
	findingFlags
	State string `help:"The state: OPEN, ACCEPTED, REJECTED or all." default:"OPEN" env:"-"`
	Limit int64  `help:"The maximum number of findings." default:"100" env:"-"`
}

// Run lists findings.
func (c *discoveryFindingsCommand) Run(s *session) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	state := c.State
	if state == "all" {
		state = ""
	}
	page, err := cl.List(s.ctx, c.collection(), client.Query{Filter: c.filter(state), Limit: c.Limit})
	if err != nil {
		return err
	}
	const head = "ID\tSTATE\tKIND\tADDRESS\tPLACE\tSINCE\tCHANGE"
	return printRows(s, c.JSON, page, "no findings", head, func(text json.RawMessage) (string, error) {
		var f struct {
			ID                                                 int64
			State, Kind, Address, Place, SinceDateTime, Change string
		}
		err := json.Unmarshal(text, &f)
		return strings.Join([]string{fmt.Sprint(f.ID), f.State, f.Kind, f.Address, f.Place, f.SinceDateTime, f.Change}, "\t"), err
	})
}

// decisionFlags select the findings of a decision: some ids, or all open ones of a policy or kind.
type decisionFlags struct {
	managerFlags
	findingFlags
	IDs    []int64 `arg:"" optional:"" name:"id" help:"The ids of the findings. Default: all open findings of --policy or --kind."`
	DryRun bool    `help:"Show the result and change nothing." env:"-"`
}

// maxDecisions is the maximum number of findings in one decision (docs/batch.md).
const maxDecisions = 10_000

type (
	discoveryAcceptCommand struct{ decisionFlags }
	discoveryRejectCommand struct{ decisionFlags }
)

// Run accepts findings.
func (c *discoveryAcceptCommand) Run(s *session) error { return c.decide(s, "ACCEPTED") }

// Run rejects findings.
func (c *discoveryRejectCommand) Run(s *session) error { return c.decide(s, "REJECTED") }

// decide sets the state of the findings in one transaction.
func (c *decisionFlags) decide(s *session, state string) error {
	if len(c.IDs) == 0 && c.Policy == 0 && c.Kind == "" {
		return usageError{errors.New("select findings by their ids, or by --policy or --kind")}
	}
	cl, err := c.client()
	if err != nil {
		return err
	}
	ids := c.IDs
	if len(ids) == 0 {
		if ids, err = cl.IDs(s.ctx, c.collection(), c.filter("OPEN"), maxDecisions); err != nil {
			return err
		}
	}
	if len(ids) == 0 {
		_, err := fmt.Fprintln(s.stderr, "no findings")
		return err
	}
	changes := make([]client.BatchChange, len(ids))
	for i, id := range ids {
		changes[i] = client.BatchChange{Method: "PATCH", Path: fmt.Sprintf("reconciliationFindings/%d", id),
			Body: map[string]string{"state": state}}
	}
	if _, err := cl.Batch(s.ctx, changes, client.BatchOptions{DryRun: c.DryRun}); err != nil {
		return err
	}
	text := strings.ToLower(state)
	if c.DryRun {
		text = "would be " + text
	}
	_, err = fmt.Fprintf(s.stdout, "%s %s\n", plural.Count(len(ids), "finding"), text)
	return err
}

type discoverySeenCommand struct {
	managerFlags
	Limit int64  `help:"The maximum number of addresses." default:"100" env:"-"`
	Of    string `arg:"" optional:"" help:"An address, a hardware address, a host name or a network such as networks/10.1.0.0/24. Default: all."`
}

// Run lists observations.
func (c *discoverySeenCommand) Run(s *session) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	collection, filter := "observations", ""
	switch kind := seenBy(c.Of); kind {
	case "":
	case "network":
		id, err := networkID(s, cl, c.Of)
		if err != nil {
			return err
		}
		collection = fmt.Sprintf("networks/%d/observations", id)
	default:
		filter = kind + ":'" + strings.ReplaceAll(c.Of, "'", `\'`) + "'"
	}
	page, err := cl.List(s.ctx, collection, client.Query{Filter: filter, OrderBy: "desc(lastSeenDateTime)", Limit: c.Limit})
	if err != nil {
		return err
	}
	return printRows(s, c.JSON, page, "no observations", "LAST SEEN\tADDRESS\tMAC ADDRESS\tHOST NAME\tSWITCH\tPORT\tVLAN\tROUTER\tFIRST SEEN",
		func(text json.RawMessage) (string, error) {
			var o struct {
				LastSeenDateTime, FirstSeenDateTime, Address, MACAddress, HostName, Switch, SwitchPort, Router string
				VLAN                                                                                           json.Number
			}
			err := json.Unmarshal(text, &o)
			return strings.Join([]string{o.LastSeenDateTime, o.Address, o.MACAddress, o.HostName, o.Switch, o.SwitchPort, o.VLAN.String(), o.Router,
				o.FirstSeenDateTime}, "\t"), err
		})
}

// seenBy returns the field of observations that a text is a value of; network for a path of a network, and empty for no text.
func seenBy(text string) string {
	switch {
	case text == "":
		return ""
	case strings.HasPrefix(text, "networks/"):
		return "network"
	}
	if _, err := netip.ParseAddr(text); err == nil {
		return "address"
	}
	if _, err := net.ParseMAC(text); err == nil {
		return "macAddress"
	}
	return "hostName"
}
