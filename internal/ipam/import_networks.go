package ipam

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"portolan/internal/problem"
	"portolan/internal/resource"
	"portolan/internal/schema"
	"portolan/internal/space"
	"portolan/internal/store"
)

// NetworkLine is a line of a file of networks.
type NetworkLine struct {
	Number int // in the file, from 1
	Range  space.Range
	Name   string
	// Gateway is not valid where the network is to have none; Default says that it gets its first host.
	Gateway netip.Addr
	Default bool
}

// ReadNetworks reads a CSV file (RFC 4180) with a header: network, in any form that a range has, and if
// it has them netmask, name and gateway, which may be none. Case and spaces around fields do not matter.
// Lines that say the same as an earlier one are left out and told of.
func ReadNetworks(in io.Reader) (lines []NetworkLine, notes []string, err error) {
	r := csv.NewReader(in)
	r.FieldsPerRecord, r.TrimLeadingSpace, r.ReuseRecord = -1, true, true
	head, err := r.Read()
	if err != nil {
		return nil, nil, fmt.Errorf("reading the header: %w", err)
	}
	columns := map[string]int{}
	for i, name := range head {
		name = strings.ToLower(strings.TrimSpace(strings.TrimPrefix(name, "\ufeff")))
		if !slices.Contains([]string{"network", "netmask", "name", "gateway"}, name) {
			return nil, nil, problem.Invalid(name, "is no column of a file of networks; network, netmask, name and gateway are")
		}
		columns[name] = i
	}
	if _, ok := columns["network"]; !ok {
		return nil, nil, problem.Invalid("network", "the file has no such column")
	}
	var faults Faults
	seen := map[space.Range]NetworkLine{}
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return lines, notes, faults.orNil()
		}
		if err != nil {
			return nil, nil, err
		}
		at, _ := r.FieldPos(0)
		line, err := readNetwork(at, func(name string) string {
			if i, ok := columns[name]; ok && i < len(record) {
				return strings.TrimSpace(record[i])
			}
			return ""
		})
		if err != nil {
			faults.add(at, "%v", err)
			continue
		}
		if other, ok := seen[line.Range]; ok {
			if !strings.EqualFold(other.Name, line.Name) || other.Gateway != line.Gateway {
				faults.add(at, "network: %s stands in line %d, too, with something else", line.Range, other.Number)
			} else {
				notes = append(notes, fmt.Sprintf("line %d: %s stands in line %d already", at, line.Range, other.Number))
			}
			continue
		}
		seen[line.Range] = line
		lines = append(lines, line)
	}
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
	if _, ok := line.Range.Prefix(); !ok {
		return line, fmt.Errorf("network: %s is not a CIDR network", line.Range)
	}
	switch gateway := strings.ToLower(field("gateway")); gateway {
	case "":
		line.Default = true
	case "none", "-":
	default:
		if line.Gateway, err = netip.ParseAddr(gateway); err != nil || !space.Hosts(line.Range).Has(line.Gateway) {
			return line, fmt.Errorf("gateway: %q is no host address of %s", gateway, line.Range)
		}
	}
	return line, nil
}

// ImportNetworks makes the networks in the smallest blocks of the configuration that hold them: all of them, in one transaction, or none,
// or in steps. Networks that are there already stay as they are, and are told of.
func ImportNetworks(ctx context.Context, a *resource.API, configuration string, lines []NetworkLine, how Import) (made int, notes []string,
	err error) {
	within, err := ConfigurationID(ctx, a, configuration)
	if err != nil {
		return 0, nil, err
	}
	done := 0
	for part := range slices.Chunk(lines, how.Step(len(lines))) {
		var there []string
		if err := a.Store.UpdateIn(ctx, store.Within(within, false), store.Author{Name: "command line", Comment: "import"},
			func(tx *store.Tx) (err error) {
				tx.Describe("IMPORT_NETWORKS", "Imported networks into "+configuration)
				there, err = importNetworks(&resource.Change{Tx: tx, API: a}, within, part)
				return err
			}); err != nil {
			return made, notes, CutOff(err, done)
		}
		made, notes, done = made+len(part)-len(there), append(notes, there...), done+len(part)
		how.Stepped(ctx, a.Store, done)
	}
	return made, notes, nil
}

// importNetworks makes networks, all or none; notes tells of those that are there.
func importNetworks(by *resource.Change, within int64, lines []NetworkLine) (notes []string, err error) {
	var faults Faults
	for _, line := range lines {
		c := *by
		c.Extra, c.Given = map[string]string{}, map[string]bool{}
		note, err := importNetwork(&c, within, line)
		if p, ok := problem.As(err); ok {
			faults.add(line.Number, "%s", p.Message)
			continue
		}
		if err != nil {
			return nil, err
		}
		if note != "" {
			notes = append(notes, fmt.Sprintf("line %d: %s", line.Number, note))
		}
	}
	return notes, faults.orNil()
}

func importNetwork(c *resource.Change, configuration int64, line NetworkLine) (note string, err error) {
	parent, err := blockFor(c.Tx, configuration, line.Range)
	if err != nil {
		return "", err
	}
	if other, err := NetworkOf(c.Tx, configuration, line.Range.Low); err == nil && rangeOf(other) == line.Range {
		return fmt.Sprintf("%s is %s %d already", line.Range, other.Type, other.ID), nil
	} else if err != nil && !store.IsNotFound(err) {
		return "", err
	}
	name := "IPv6Network"
	if line.Range.Low.Is4() {
		name = "IPv4Network"
	}
	t, _ := c.API.Type(name)
	o := t.New()
	if n, ok := o.(*IPv4Network); ok {
		n.Gateway = line.Gateway
		c.Given["gateway"] = !line.Default
	}
	o.(shaper).shape().Range = schema.Range{Range: line.Range}
	h := schema.HeadOf(o)
	h.Type, h.Name, h.Parent, h.Config = name, line.Name, parent, configuration
	_, err = c.Create(t, o)
	return "", err
}

// blockFor finds the smallest block of a configuration that holds a range.
func blockFor(tx *store.Tx, configuration int64, r space.Range) (int64, error) {
	at, err := smallestBlock(tx, &store.Resource{ID: configuration}, r, false)
	if err == nil && at.ID == configuration {
		err = problem.BadRequest("IpRangeOutsideParent", "%s lies in no block of the configuration", r)
	}
	if err != nil {
		return 0, err
	}
	return at.ID, nil
}
