package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"portolan/client"
	"portolan/internal/client/cli"
	"portolan/internal/engine/schema"
)

// freeFlags are the flags of commands that use the next free space.
type freeFlags struct {
	scopeFlags
	Size  string   `help:"In a block: the prefix length, such as /26." placeholder:"/LENGTH" env:"-"`
	Block bool     `help:"In a block: assign a block, not a network." env:"-"`
	Count int      `help:"The number of resources. Default: that of the names, otherwise 1." placeholder:"N"`
	Path  string   `arg:"" help:"The network to take addresses from, or the block to take space from, such as networks/10.1.0.0/24." complete:"path"`
	Field []string `arg:"" optional:"" name:"fields" help:"Fields of the new resources: FIELD=VALUE. A name may be a pattern: rack7-srv-[01-40], or rack7-srv-##." complete:"field"`
}

// listResources returns the resources to create in the free space.
func (f freeFlags) listResources(s *session, m *cli.Manager) (a client.Apply, err error) {
	names, err := f.names()
	if err != nil {
		return a, err
	}
	at, t, err := typeAt(s, m, f.Path)
	if err != nil {
		return a, err
	}
	family := t.Name[:min(4, len(t.Name))]
	fields := slices.DeleteFunc(slices.Clone(f.Field), func(x string) bool { return strings.HasPrefix(x, nameField) })
	var name, sub string
	switch {
	case at.Collection.Name == "networks":
		if f.Size != "" || f.Block {
			return a, usageError{errors.New("--size and --block: valid only for blocks, but the path is a network")}
		}
		name, sub = family+"Address", "addresses"
		if !slices.ContainsFunc(fields, func(x string) bool { return strings.HasPrefix(x, "state=") }) {
			fields = append(fields, "state=STATIC")
		}
	case at.Collection.Name == "blocks" && f.Size == "":
		return a, usageError{errors.New("--size is required, such as --size /26")}
	case at.Collection.Name == "blocks":
		if length, err := strconv.Atoi(strings.TrimPrefix(f.Size, "/")); err != nil || length < 1 || length > 128 {
			return a, usageError{fmt.Errorf("--size: %q is not a prefix length, such as /26", f.Size)}
		}
		fields = append(fields, "range=/"+strings.TrimPrefix(f.Size, "/"))
		if name, sub = family+"Network", "networks"; f.Block {
			name, sub = family+"Block", "blocks"
		}
	default:
		return a, usageError{fmt.Errorf("%s is neither a network nor a block", f.Path)}
	}
	made := m.API.TypeNamed(name)
	members, err := cli.Members(made, fields)
	if err != nil {
		return a, err
	}
	a = client.Apply{Into: at.String() + "/" + sub, Action: "CREATE"}
	for _, name := range names {
		one := maps.Clone(members)
		if name != "" {
			one["name"] = schema.AppendString(nil, name)
		}
		raw, err := withType(m, made, one)
		if err != nil {
			return a, err
		}
		a.Resources = append(a.Resources, raw)
	}
	return a, nil
}

// maxAssigned is the maximum number of resources that a command creates in free space.
const maxAssigned = 10_000

// nameField is the argument that sets the name.
const nameField = "name="

// names returns the name of each resource; empty for resources without a name.
func (f freeFlags) names() ([]string, error) {
	pattern, count := "", f.Count
	for _, field := range f.Field {
		if value, ok := strings.CutPrefix(field, nameField); ok {
			pattern = value
		}
	}
	if count == 0 {
		count = cli.NamesIn(pattern)
	}
	if count < 1 || count > maxAssigned {
		return nil, usageError{fmt.Errorf("--count: must be from 1 to %d", maxAssigned)}
	}
	names, err := cli.Names(pattern, count)
	if err != nil {
		return nil, usageError{fmt.Errorf("%s%s: %w", nameField, pattern, err)}
	}
	return names, nil
}

type assignCommand struct {
	freeFlags
	First     string `help:"In a network: the first of consecutive addresses. Default: the next free addresses." placeholder:"ADDRESS" env:"-"`
	MACs      string `name:"macs" help:"In a network: a file with a hardware address for each address, one per line; - reads standard input." placeholder:"FILE" env:"-"`
	Zone      string `help:"In a network: the zone to create a host record in for each name, such as zones/example.net." placeholder:"PATH" complete:"path" env:"-"`
	NoReverse bool   `name:"no-reverse" help:"With --zone: create no PTR records."`
	changeFlags
	changeOutput
}

// Help returns examples.
func (assignCommand) Help() string {
	return `Examples:

  portolan assign networks/10.1.0.0/24 name=printer                          the next free address
  portolan assign networks/10.1.0.0/24 state=DHCP_RESERVED macAddress=00:00:5e:00:53:01
  portolan assign networks/10.1.0.0/24 "name=rack7-srv-[01-40]" --zone zones/example.net
  portolan assign blocks/10.0.0.0/8 --size /26 "name=lab-##" --count 3       the next free networks`
}

// Run assigns the next free addresses or ranges.
func (c *assignCommand) Run(s *session) error {
	m, err := c.manager()
	if err != nil {
		return err
	}
	a, err := c.listResources(s, m)
	if err == nil && (c.First != "" || c.MACs != "" || c.Zone != "") {
		a, err = c.addNetworkFlags(s, m, a)
	}
	if err != nil {
		return err
	}
	return c.apply(s, m, a, c.options())
}

// addNetworkFlags adds the flags for addresses of a network: their addresses, hardware addresses and host records.
func (c *assignCommand) addNetworkFlags(s *session, m *cli.Manager, a client.Apply) (client.Apply, error) {
	if !strings.HasPrefix(a.Into, "networks/") {
		return a, usageError{errors.New("--first, --macs and --zone: valid only for networks, but the path is a block")}
	}
	members := make([]map[string]json.RawMessage, len(a.Resources))
	for i, raw := range a.Resources {
		if err := json.Unmarshal(raw, &members[i]); err != nil {
			return a, err
		}
	}
	if c.MACs != "" {
		macs, err := readWords(c.MACs)
		if err != nil {
			return a, err
		}
		if len(macs) != len(members) {
			return a, usageError{fmt.Errorf("--macs: %s has %d hardware addresses for %d addresses", c.MACs, len(macs), len(members))}
		}
		for i, mac := range macs {
			members[i]["macAddress"] = schema.AppendString(nil, mac)
		}
	}
	addresses, err := c.addresses(s, m, a)
	if err != nil {
		return a, err
	}
	a.Resources = nil
	for i, one := range members {
		one["address"] = schema.AppendString(nil, addresses[i])
		raw, err := json.Marshal(one)
		if err != nil {
			return a, err
		}
		a.Resources = append(a.Resources, raw)
	}
	if c.Zone == "" {
		return a, nil
	}
	zone, err := m.FindOne(s.ctx, c.Zone)
	if err != nil {
		return a, err
	}
	if zone.Collection.Name != "zones" {
		return a, usageError{fmt.Errorf("--zone: %s is not a zone", c.Zone)}
	}
	for i, one := range members {
		if one["name"] == nil {
			return a, usageError{errors.New("--zone: requires names: name=PATTERN")}
		}
		raw, err := json.Marshal(map[string]any{"type": "HostRecord", "in": zone.String(), "name": one["name"], "addresses": addresses[i : i+1],
			"reverseRecord": !c.NoReverse})
		if err != nil {
			return a, err
		}
		a.Resources = append(a.Resources, raw)
	}
	return a, nil
}

// addresses returns the addresses to assign: consecutive ones from --first on, or the next free ones.
func (c *assignCommand) addresses(s *session, m *cli.Manager, a client.Apply) (list []string, err error) {
	if c.First != "" {
		list, err = cli.ListConsecutive(c.First, len(a.Resources))
		if err != nil {
			return nil, usageError{fmt.Errorf("--first: %w", err)}
		}
		return list, nil
	}
	tried, err := m.Apply(s.ctx, a, client.ChangeOptions{DryRun: true})
	if err != nil {
		return nil, err
	}
	for _, one := range tried.Resources {
		list = append(list, one.Key)
	}
	if len(list) != len(a.Resources) {
		return nil, fmt.Errorf("the dry run lists %d of %d addresses: use a smaller --count", len(list), len(a.Resources))
	}
	return list, nil
}

// readWords returns the words of a file; "-" is standard input.
func readWords(name string) (words []string, err error) {
	var in io.Reader = os.Stdin
	if name != "-" {
		file, err := os.Open(name) //nolint:gosec // the user names the file
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }() // only read
		in = file
	}
	lines := bufio.NewScanner(in)
	lines.Split(bufio.ScanWords)
	for lines.Scan() {
		words = append(words, strings.Trim(lines.Text(), ",;"))
	}
	return slices.DeleteFunc(words, func(w string) bool { return w == "" }), lines.Err()
}

type nextCommand struct {
	freeFlags
	jsonFlag
}

// Help returns examples.
func (nextCommand) Help() string {
	return `Examples:

  portolan next networks/10.1.0.0/24 --count 5
  portolan next blocks/10.0.0.0/8 --size /22`
}

// Run prints the next free addresses or ranges without changing anything.
func (c *nextCommand) Run(s *session) error {
	m, err := c.manager()
	if err != nil {
		return err
	}
	a, err := c.listResources(s, m)
	if err != nil {
		return err
	}
	done, err := m.Apply(s.ctx, a, client.ChangeOptions{DryRun: true})
	if err != nil {
		return err
	}
	if c.JSON {
		free := []string{}
		for _, one := range done.Resources {
			free = append(free, one.Key)
		}
		return c.print(s, free)
	}
	for _, one := range done.Resources {
		if _, err := fmt.Fprintln(s.stdout, one.Key); err != nil {
			return err
		}
	}
	return nil
}
