package ipam

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/base/space"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// NetworkLine is a line of a file of networks.
type NetworkLine struct {
	Number int // line number in the file, from 1
	Range  space.Range
	Name   string
	// Gateway is not valid if the network has no gateway. Default means that the cell is empty, so that a new network uses its first host.
	Gateway netip.Addr
	Default bool
	// HasName and HasGateway report whether the file has these columns.
	HasName, HasGateway bool
}

// networkColumns are the columns of a file of networks.
var networkColumns = []string{"network", "netmask", "name", "gateway"}

// ReadNetworks reads a CSV file (RFC 4180) with a header. The column network is a range in any supported format. The columns netmask, name
// and gateway are optional; gateway may be the word none. Case and surrounding spaces do not matter. Invalid rows and rows that repeat a
// network are skipped, with the reason.
func ReadNetworks(in io.Reader) (lines []NetworkLine, skipped []string, err error) {
	seen := map[space.Range]int{}
	has, skipped, err := readLines(in, networkColumns, func(at int, cell func(string) string) error {
		line, err := readNetwork(at, cell)
		if err != nil {
			return err
		}
		if first, twice := seen[line.Range]; twice {
			return fmt.Errorf("network: %s is already in line %d", line.Range, first)
		}
		seen[line.Range] = at
		lines = append(lines, line)
		return nil
	})
	_, hasName := has["name"]
	_, hasGateway := has["gateway"]
	for i := range lines {
		lines[i].HasName, lines[i].HasGateway = hasName, hasGateway
	}
	return lines, skipped, err
}

func readNetwork(at int, field func(string) string) (line NetworkLine, err error) {
	text := strings.ToLower(field("network"))
	if mask := field("netmask"); mask != "" && !strings.Contains(text, "/") {
		text += "/" + strings.TrimPrefix(mask, "/")
	}
	line = NetworkLine{Number: at, Name: strings.Clone(field("name"))}
	if line.Range, err = space.Parse(text); err != nil {
		return line, fmt.Errorf("network: %w", err)
	}
	if err := checkName(line.Name); err != nil {
		return line, err
	}
	if _, ok := line.Range.Prefix(); !ok {
		return line, fmt.Errorf("network: %s is not a CIDR network", line.Range)
	}
	switch gateway := strings.ToLower(field("gateway")); {
	case gateway == "":
		line.Default = true
	case gateway == "none" || gateway == "-":
	case !line.Range.Low.Is4():
		return line, errors.New("gateway: leave the cell empty: an IPv6 network has no gateway (routers announce themselves, RFC 4861)")
	default:
		if line.Gateway, err = netip.ParseAddr(gateway); err != nil || !space.Hosts(line.Range).Has(line.Gateway) {
			return line, fmt.Errorf("gateway: %q is not a host address of %s", gateway, line.Range)
		}
	}
	return line, nil
}

// ImportNetworks creates the networks in the smallest blocks of the configuration that contain them, in one transaction or in steps. It
// sets the name and the gateway of existing networks. A network that a rule rejects is skipped; if how is strict, it is an error instead.
func ImportNetworks(ctx context.Context, a *resource.API, configuration string, lines []NetworkLine, how Import) (done Imported,
	err error) {
	within, err := ConfigurationID(ctx, a, configuration)
	if err != nil {
		return done, err
	}
	i := &lineImport{options: how, api: a, configuration: within, refused: map[int]string{}}
	err = runImport(ctx, i, "Imported networks into "+configuration, lines,
		func(tx *store.Tx) ([]unlisted, error) { return i.unlistedNetworks(tx, lines) },
		func(by *resource.Change, part []NetworkLine, _ int) error {
			for _, line := range part {
				c := *by
				c.Extra, c.SetFields = map[string]string{}, map[string]bool{}
				if err := i.importLine(&c, line.Number, func() error { return i.importNetwork(&c, line) }); err != nil {
					return err
				}
			}
			return nil
		})
	return i.done, err
}

// importNetwork creates or changes the network of a line.
func (i *lineImport) importNetwork(c *resource.Change, line NetworkLine) error {
	parent, err := findBlock(c.Tx, i.configuration, line.Range)
	if err != nil {
		return err
	}
	other, err := NetworkOf(c.Tx, i.configuration, line.Range.Low)
	switch {
	case err == nil && RangeOf(other) == line.Range:
		return i.changeNetwork(c, other, line)
	case err != nil && !store.IsNotFound(err):
		return err
	}
	name := "IPv6Network"
	if line.Range.Low.Is4() {
		name = "IPv4Network"
	}
	t, _ := c.API.Type(name)
	o := t.New()
	if n, ok := o.(*IPv4Network); ok {
		n.Gateway = line.Gateway
		c.SetFields["gateway"] = !line.Default
	}
	o.(spaceObject).spaceHead().Range = schema.Range{Range: line.Range}
	h := schema.HeadOf(o)
	h.Type, h.Name, h.Parent, h.Config = name, line.Name, parent, i.configuration
	if _, err = c.Create(t, o); err == nil {
		i.done.Created++
	}
	return err
}

// changeNetwork sets the name and the gateway of an existing network, if the line has them.
func (i *lineImport) changeNetwork(c *resource.Change, row *store.Resource, line NetworkLine) error {
	o, err := c.API.Object(row)
	if err != nil {
		return err
	}
	var texts []string
	if line.HasName && row.Name != line.Name {
		texts = append(texts, fmt.Sprintf("name %q -> %q", row.Name, line.Name))
	}
	n, four := o.(*IPv4Network)
	gateway := four && !line.Default && n.Gateway != line.Gateway
	p, _ := line.Range.Prefix()
	// Networks of /31 and /32 have no default gateway.
	if four && line.HasGateway && line.Default && p.Bits() < 31 && n.Gateway != space.Hosts(line.Range).Low {
		i.done.KeptGateways = append(i.done.KeptGateways, fmt.Sprintf("line %d: %s: gateway %s kept, the cell is empty: "+
			"write an address or the word none to change it", line.Number, line.Range, gatewayText(n.Gateway)))
	}
	if gateway {
		texts = append(texts, fmt.Sprintf("gateway %s -> %s", gatewayText(n.Gateway), gatewayText(line.Gateway)))
	}
	if len(texts) == 0 {
		i.done.Existing++
		return nil
	}
	if _, err := c.Following("name", "gateway").Change(row, func(o schema.Object) {
		if line.HasName {
			schema.HeadOf(o).Name = line.Name
		}
		if n, four := o.(*IPv4Network); four && gateway {
			n.Gateway = line.Gateway
		}
	}); err != nil {
		return err
	}
	i.done.Changed++
	i.done.Changes = append(i.done.Changes, fmt.Sprintf("line %d: %s: %s", line.Number, line.Range, strings.Join(texts, ", ")))
	return nil
}

// gatewayText returns the address as text, or "none" if it is not valid.
func gatewayText(a netip.Addr) string {
	if !a.IsValid() {
		return "none"
	}
	return a.String()
}

// unlistedNetworks returns the networks that the file lacks, in the blocks of the networks of the file.
func (i *lineImport) unlistedNetworks(tx *store.Tx, lines []NetworkLine) (rows []unlisted, err error) {
	inFile, blocks := map[space.Range]bool{}, map[int64]bool{}
	for _, line := range lines {
		inFile[line.Range] = true
		network, err := NetworkOf(tx, i.configuration, line.Range.Low)
		if err == nil {
			blocks[network.Parent] = true
			continue
		}
		if !store.IsNotFound(err) {
			return nil, err
		}
		block, err := findBlock(tx, i.configuration, line.Range)
		if _, none := problem.As(err); none { // the network is in no block; the import skips the line
			continue
		}
		if err != nil {
			return nil, err
		}
		blocks[block] = true
	}
	for _, block := range slices.Sorted(maps.Keys(blocks)) {
		if err := tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("networks"), store.HasParent(block)}},
			func(r *store.Resource) error {
				if at := RangeOf(r); !inFile[at] {
					rows = append(rows, unlisted{r.ID, strings.TrimSpace(fmt.Sprintf("%s %s", at, r.Name))})
				}
				return nil
			}); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// findBlock returns the id of the smallest block of a configuration that contains a range.
func findBlock(tx *store.Tx, configuration int64, r space.Range) (int64, error) {
	at, err := smallestBlock(tx, &store.Resource{ID: configuration}, r, false)
	if err == nil && at.ID == configuration {
		err = problem.BadRequest("IpRangeOutsideParent", "%s is not in a block of the configuration", r)
	}
	if err != nil {
		return 0, err
	}
	return at.ID, nil
}
