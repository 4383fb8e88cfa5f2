package ipam

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"

	"portolan/internal/base/space"
	"portolan/internal/engine/store"
)

// assignable lists the states of a stored IPv4 address. unassigned is the state of an address that is not stored.
var assignable = []string{"DHCP_RESERVED", gateway, "RESERVED", "STATIC"}

const unassigned = "UNASSIGNED"

// excluded is the state of the addresses in the exclusion ranges of a DHCP range.
const excluded = "DHCP_EXCLUDED"

// shownStates lists the states in the order of the usage field.
var shownStates = []string{"DHCP_ABANDONED", "DHCP_ALLOCATED", excluded, "DHCP_RESERVED", gateway, "RESERVED", "STATIC", unassigned}

// usageText returns the number of addresses by state as JSON. size is the total number of addresses.
func usageText(u Usage, size *big.Int) []byte {
	b := append(make([]byte, 0, 160), '{')
	for _, state := range shownStates {
		n, ok := u[state]
		if state != unassigned && !ok && !slices.Contains(assignable, state) {
			continue
		}
		b = append(append(append(b, '"'), state...), '"', ':')
		switch {
		case state != unassigned:
			b = strconv.AppendInt(b, n, 10)
		case size.IsInt64():
			b = strconv.AppendInt(b, size.Int64()-u.Used(), 10)
		default:
			b = new(big.Int).Sub(size, big.NewInt(u.Used())).Append(b, 10)
		}
		b = append(b, ',')
	}
	b[len(b)-1] = '}'
	return b
}

// percent returns n as a percentage of size, rounded down; 0 if size is 0.
func percent(n int64, size *big.Int) int64 {
	if size.Sign() == 0 {
		return 0
	}
	share := new(big.Int).Mul(big.NewInt(n), big.NewInt(100))
	return share.Div(share, size).Int64()
}

// blockUsage returns the share of a block that is assigned to addresses and allocated to networks. The percentages are published API
// fields; the number of addresses is an extension of Portolan.
func blockUsage(u Usage, size *big.Int) []byte {
	type share struct {
		Assigned   int64 `json:"assigned"`
		Unassigned int64 `json:"unassigned"`
		Addresses  int64 `json:"addresses"`
	}
	of := func(addresses int64) share {
		assigned := percent(addresses, size)
		return share{assigned, 100 - assigned, addresses}
	}
	text, err := json.Marshal(struct {
		Addresses share `json:"addressAllocation"`
		Networks  share `json:"networkAllocation"`
	}{of(u.Used()), of(u[networkSpace])})
	if err != nil {
		panic(err)
	}
	return text
}

// shownRange parses the field range of a response body.
func shownRange(body *store.Object) (space.Range, error) {
	return space.Parse(string(bytes.Trim(body.Get("range"), `"`))) // a range needs no JSON escapes
}

// completeSpace adds usage and inherited values to the bodies of blocks and networks.
func completeSpace(tx *store.Tx, rows []*store.Resource) error {
	ids, parents := make([]int64, len(rows)), []int64{}
	for i, r := range rows {
		ids[i] = r.ID
		if r.Parent != r.Configuration && !slices.Contains(parents, r.Parent) { // configurations have no inheritable values
			parents = append(parents, r.Parent)
		}
	}
	usage, err := UsageOf(tx, ids)
	if err != nil {
		return err
	}
	above, err := settingsOf(tx).resolve(tx, parents)
	if err != nil {
		return err
	}
	own := map[int64]map[string]bool{}
	if slices.ContainsFunc(parents, func(id int64) bool { return above[id] != nil && len(above[id].Zones) > 0 }) {
		if own, err = ownZones(tx, ids); err != nil {
			return err
		}
	}
	var body store.Object
	for _, r := range rows {
		if err := body.Read(r.Body); err != nil {
			return err
		}
		if r.Collection == "networks" && string(body.Get("dynamicUpdateEnabled")) == "null" { // stored before the field existed
			body.Set("dynamicUpdateEnabled", []byte("false"))
		}
		if r.Type == "IPv4Network" || r.Type == "IPv4Block" {
			whole, err := shownRange(&body)
			if err != nil {
				return fmt.Errorf("read the usage of resource %d: %w", r.ID, err)
			}
			if r.Type == "IPv4Network" {
				body.Set("usage", usageText(usage[r.ID], space.Hosts(whole).Size()))
			} else {
				body.Set("usagePercentage", blockUsage(usage[r.ID], whole.Size()))
			}
		}
		settingsOf(tx).fields().addInherited(above[r.Parent], r, own[r.ID], &body)
		r.Body = body.Text()
	}
	return nil
}

// ownZones returns the zone lists that each block or network sets itself, by id and field name.
func ownZones(tx *store.Tx, ids []int64) (map[int64]map[string]bool, error) {
	rows, err := tx.ListReferences(ids, slices.Sorted(maps.Keys(settingsOf(tx).fields().lists))...)
	if err != nil {
		return nil, err
	}
	own := map[int64]map[string]bool{}
	for id, links := range rows {
		own[id] = map[string]bool{}
		for _, link := range links {
			own[id][link.Field] = true
		}
	}
	return own, nil
}

// completeRanges adds usage and inherited values to the bodies of DHCP ranges.
func completeRanges(tx *store.Tx, rows []*store.Resource) error {
	parents := []int64{}
	for _, r := range rows {
		if !slices.Contains(parents, r.Parent) {
			parents = append(parents, r.Parent)
		}
	}
	above, err := settingsOf(tx).resolve(tx, parents)
	if err != nil {
		return err
	}
	wholes, bodies := make([]space.Range, len(rows)), make([]store.Object, len(rows))
	for i, r := range rows {
		if err := bodies[i].Read(r.Body); err != nil {
			return err
		}
		if wholes[i], err = shownRange(&bodies[i]); err != nil {
			return fmt.Errorf("read the usage of resource %d: %w", r.ID, err)
		}
	}
	usages, err := rangeUsage(tx, rows, wholes)
	if err != nil {
		return err
	}
	if err := completeUtilization(tx, rows, wholes, usages, bodies); err != nil {
		return err
	}
	for i, r := range rows {
		bodies[i].Set("usage", usageText(usages[i], wholes[i].Size()))
		settingsOf(tx).fields().addInherited(above[r.Parent], r, nil, &bodies[i])
		r.Body = bodies[i].Text()
	}
	return nil
}

// rangeUsage counts the addresses of each DHCP range by state, and its excluded addresses that are not in use.
func rangeUsage(tx *store.Tx, rows []*store.Resource, wholes []space.Range) ([]Usage, error) {
	type part struct {
		row      int
		excludes space.Range
	}
	var parts []part // counted after the ranges themselves
	spans := make([]store.Span, len(rows))
	span := func(r *store.Resource, in space.Range) store.Span {
		return store.Span{Parent: r.Parent, Low: store.AddrKey(in.Low), High: store.AddrKey(in.High)}
	}
	for i, r := range rows {
		spans[i] = span(r, wholes[i])
	}
	for i, r := range rows {
		out, err := exclusionsOf(r)
		if err != nil {
			return nil, err
		}
		for _, one := range out {
			parts, spans = append(parts, part{i, one}), append(spans, span(r, one))
		}
	}
	counts, err := tx.CountSpans("addresses", spans, store.Field{Kind: store.Text, Path: []string{"state"}})
	if err != nil {
		return nil, fmt.Errorf("count the addresses of ranges: %w", err)
	}
	usages := make([]Usage, len(rows))
	for i := range rows {
		usages[i] = counts[i]
	}
	for i, p := range parts {
		free := p.excludes.Size().Int64()
		for _, n := range counts[len(rows)+i] {
			free -= n
		}
		usages[p.row][excluded] += free
	}
	leases, err := leasesOfRanges(tx, rows)
	addLeases(rows, leases, usages)
	return usages, err
}

// observations are the observations of addresses in the network, as far as addresses show them.
type observations interface {
	// Complete adds the values of their observations to whole bodies of addresses.
	Complete(tx *store.Tx, rows []*store.Resource) error
}

// completeAddresses adds the values of leases and observations, and the reference to the IP group that contains an IPv4 address.
func completeAddresses(tx *store.Tx, rows []*store.Resource) error {
	if l := leasesIn(tx); l != nil {
		if err := l.Complete(tx, rows); err != nil {
			return err
		}
	}
	if e := tx.Extension("observations"); e != nil {
		if o, ok := e.State.(observations); ok {
			if err := o.Complete(tx, rows); err != nil {
				return err
			}
		}
	}
	if used, err := settingsOf(tx).inUse(tx); err != nil || !used.groups {
		return err
	}
	var parents, ids []int64
	for _, r := range rows {
		if r.Type == "IPv4Address" {
			ids = append(ids, r.ID)
			if !slices.Contains(parents, r.Parent) {
				parents = append(parents, r.Parent)
			}
		}
	}
	groups, err := tx.FindOverlying("ipGroups", parents, ids)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if group, ok := groups[r.ID]; ok {
			r.Refs = append(slices.Clone(r.Refs), store.Ref{Field: "ipGroup", Target: group})
		}
	}
	return nil
}
