package main

import (
	"fmt"
	"slices"
	"strings"

	"portolan/client"
	"portolan/internal/client/cli"
	"portolan/internal/engine/schema"
)

type splitCommand struct {
	scopeFlags
	changeFlags
	jsonFlag
	At    string `help:"For a block: the first address of the new block. Default: the middle of the block." placeholder:"ADDRESS" env:"-"`
	Parts int    `help:"For a network: the number of parts, a power of two." default:"2"`
	Path  string `arg:"" help:"The block or the network, such as networks/10.1.0.0/24." complete:"path"`
}

// Help returns examples.
func (splitCommand) Help() string {
	return `Examples:

  portolan split networks/10.1.0.0/24 --parts 4 --dry-run
  portolan split blocks/10.0.0.0/8 --at 10.128.0.0`
}

// Run splits a block or a network.
func (c *splitCommand) Run(s *session) error {
	m, at, t, err := c.resourceAt(s, c.Path)
	if err != nil {
		return err
	}
	split := m.API.TypeNamed(t.Name + "Split")
	if split == nil {
		return usageError{fmt.Errorf("%s is of the type %s: only IPv4 blocks and networks can be split", c.Path, t.Name)}
	}
	body := map[string]any{"type": split.Name}
	if at.Collection.Name == "networks" {
		body["network"], body["networkCount"] = map[string]int64{"id": at.ID}, c.Parts
	} else {
		body["block"] = map[string]int64{"id": at.ID}
		if c.At != "" {
			body["splitPointAddress"] = c.At
		}
	}
	above, err := pathOfParent(s, m, at)
	if err != nil {
		return err
	}
	return sendAction(s, m, above+"/splits", body, c.changeFlags, c.jsonFlag)
}

// pathOfParent returns the path of a resource's parent.
func pathOfParent(s *session, m *cli.Manager, at cli.Path) (string, error) {
	var one struct {
		Links map[string]client.Link `json:"_links"`
	}
	if err := m.Get(s.ctx, at.String()+"?fields=id,_links", &one); err != nil {
		return "", err
	}
	above := one.Links["up"].Href
	if above == "" {
		return "", fmt.Errorf("you do not have access to the parent of %s, which is required to split or merge it", at)
	}
	return strings.TrimPrefix(above, client.AddressPath), nil
}

// resourceAt returns the manager, and the resource at a path with its type.
func (f scopeFlags) resourceAt(s *session, path string) (m *cli.Manager, at cli.Path, t *schema.Type, err error) {
	if m, err = f.manager(); err == nil {
		at, t, err = typeAt(s, m, path)
	}
	return m, at, t, err
}

type mergeCommand struct {
	scopeFlags
	changeFlags
	jsonFlag
	Into   string   `arg:"" help:"The block, network or range that remains, such as networks/10.1.0.0/24." complete:"path"`
	Others []string `arg:"" help:"The adjacent blocks, networks or ranges to merge into it." complete:"path"`
}

// Help returns examples.
func (mergeCommand) Help() string {
	return `The remaining network keeps its gateway. The gateways of the others become addresses.

Examples:

  portolan merge networks/10.1.0.0/25 networks/10.1.0.128/25 --dry-run
  portolan merge blocks/10.0.0.0/9 blocks/10.128.0.0/9`
}

// Run merges blocks, networks or ranges.
func (c *mergeCommand) Run(s *session) error {
	m, at, t, err := c.resourceAt(s, c.Into)
	if err != nil {
		return err
	}
	merge := m.API.TypeNamed(t.Name + "Merge")
	if merge == nil {
		return usageError{fmt.Errorf("%s is of the type %s: only IPv4 blocks, networks and DHCP ranges can be merged", c.Into, t.Name)}
	}
	var others []map[string]int64
	for _, path := range c.Others {
		other, kind, err := typeAt(s, m, path)
		if err != nil {
			return err
		}
		if kind != t {
			return usageError{fmt.Errorf("%s is of the type %s, but %s is of %s: only resources of one type can be merged",
				path, kind.Name, c.Into, t.Name)}
		}
		others = append(others, map[string]int64{"id": other.ID})
	}
	above, err := pathOfParent(s, m, at)
	if err != nil {
		return err
	}
	return sendAction(s, m, above+"/merges", map[string]any{"type": merge.Name, at.Collection.Name: others,
		"destination": map[string]int64{"id": at.ID}}, c.changeFlags, c.jsonFlag)
}

type moveCommand struct {
	scopeFlags
	changeFlags
	jsonFlag
	Path string `arg:"" help:"The resource to move, such as networks/10.1.0.0/24, addresses/10.1.0.10 or zones/example.net." complete:"path"`
	To   string `arg:"" help:"The new range, address or name. For a block or network, the first address is enough."`
}

// Help returns examples.
func (moveCommand) Help() string {
	return `Examples:

  portolan move networks/10.1.0.0/24 10.9.0.0/24 --dry-run
  portolan move addresses/10.1.0.10 10.1.0.20
  portolan move records/www.example.net web.example.net`
}

// Run moves a resource and everything in it.
func (c *moveCommand) Run(s *session) error {
	m, at, t, err := c.resourceAt(s, c.Path)
	if err != nil {
		return err
	}
	moves := at.Collection.Sub("moves")
	if moves == nil {
		return usageError{fmt.Errorf("%s is of the type %s, which cannot be moved", c.Path, t.Name)}
	}
	key := at.Collection.KeyField()
	to := c.To
	if key == "range" && !strings.Contains(to, "/") { // the new first address is sufficient
		var one struct{ Range string }
		if err := m.Get(s.ctx, at.String()+"?fields=id,range", &one); err != nil {
			return err
		}
		if _, bits, ok := strings.Cut(one.Range, "/"); ok {
			to += "/" + bits
		}
	}
	var body map[string]any
	for _, x := range m.API.PostTypes(moves) {
		f := x.ByName["destination"]
		family := strings.HasPrefix(x.Name, "IP") && strings.HasPrefix(t.Name, "IP") && x.Name[:4] != t.Name[:4]
		if f == nil || family || !slices.ContainsFunc(f.Members, func(inner *schema.Field) bool { return inner.Name == key }) {
			continue
		}
		body = map[string]any{"type": x.Name, "destination": map[string]string{key: to}}
		break
	}
	if body == nil {
		return usageError{fmt.Errorf("%s is of the type %s, which cannot be moved this way", c.Path, t.Name)}
	}
	return sendAction(s, m, at.String()+"/moves", body, c.changeFlags, c.jsonFlag)
}
