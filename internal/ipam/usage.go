package ipam

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"

	"portolan/internal/space"
	"portolan/internal/store"
)

// assignable are the states that an IPv4 address may be given, unassigned is that of one that is not there.
var assignable = []string{"DHCP_RESERVED", gateway, "RESERVED", "STATIC"}

const unassigned = "UNASSIGNED"

// excluded is the state of what a DHCP range leaves out.
const excluded = "DHCP_EXCLUDED"

// shownStates are the states that usage shows, in their order.
var shownStates = []string{excluded, "DHCP_RESERVED", gateway, "RESERVED", "STATIC", unassigned}

// usageText gives the addresses by state as JSON; size is how many there are in all.
func usageText(u Usage, size *big.Int) []byte {
	b := []byte{'{'}
	for _, state := range shownStates {
		n, ok := u[state]
		switch {
		case state == unassigned:
			b = fmt.Appendf(b, "%q:", state)
			b = new(big.Int).Sub(size, big.NewInt(u.Used())).Append(b, 10)
		case ok || slices.Contains(assignable, state):
			b = fmt.Appendf(b, "%q:%d", state, n)
		default:
			continue
		}
		b = append(b, ',')
	}
	b[len(b)-1] = '}'
	return b
}

// percent is n of size in whole percent, rounded down.
func percent(n int64, size *big.Int) int64 {
	if size.Sign() == 0 {
		return 0
	}
	share := new(big.Int).Mul(big.NewInt(n), big.NewInt(100))
	return share.Div(share, size).Int64()
}

// blockUsage gives how much of a block is assigned to addresses, and allocated to networks.
func blockUsage(u Usage, size *big.Int) []byte {
	type share struct {
		Assigned   int64 `json:"assigned"`
		Unassigned int64 `json:"unassigned"`
	}
	addresses, networks := percent(u.Used(), size), percent(u[networkSpace], size)
	text, err := json.Marshal(struct {
		Addresses share `json:"addressAllocation"`
		Networks  share `json:"networkAllocation"`
	}{share{addresses, 100 - addresses}, share{networks, 100 - networks}})
	if err != nil {
		panic(err)
	}
	return text
}

// shownRange reads the range of a row that is about to be shown.
func shownRange(r *store.Resource) (whole space.Range, err error) {
	err = store.Members(r.Body, func(name, raw []byte) error {
		if string(name) != "range" {
			return nil
		}
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return err
		}
		whole, err = space.Parse(text)
		return err
	})
	if err == nil && !whole.Low.IsValid() {
		err = fmt.Errorf("resource %d has no range", r.ID)
	}
	return whole, err
}

// completeSpace shows usage and what comes down in blocks and networks.
func completeSpace(tx *store.Tx, rows []*store.Resource) error {
	ids, parents := make([]int64, len(rows)), []int64{}
	for i, r := range rows {
		ids[i] = r.ID
		if !slices.Contains(parents, r.Parent) {
			parents = append(parents, r.Parent)
		}
	}
	usage, err := UsageOf(tx, ids)
	if err != nil {
		return err
	}
	above, err := settingsOf(tx).holdIn(tx, parents)
	if err != nil {
		return err
	}
	own := map[int64]map[string]bool{}
	if slices.ContainsFunc(parents, func(id int64) bool { return above[id] != nil && len(above[id].Zones) > 0 }) {
		if own, err = ownZones(tx, ids); err != nil {
			return err
		}
	}
	for _, r := range rows {
		values := map[string][]byte{}
		if r.Type == "IPv4Network" || r.Type == "IPv4Block" {
			whole, err := shownRange(r)
			if err != nil {
				return err
			}
			if r.Type == "IPv4Network" {
				values["usage"] = usageText(usage[r.ID], space.Hosts(whole).Size())
			} else {
				values["usagePercentage"] = blockUsage(usage[r.ID], whole.Size())
			}
		}
		above[r.Parent].show(r, own[r.ID], values)
		if r.Body, err = store.Rewritten(r.Body, values); err != nil {
			return err
		}
	}
	return nil
}

// ownZones gives which lists of zones blocks and networks have of their own.
func ownZones(tx *store.Tx, ids []int64) (map[int64]map[string]bool, error) {
	rows, err := tx.Linked(ids, inheritedZones...)
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

// completeRanges shows usage and what comes down in DHCP ranges.
func completeRanges(tx *store.Tx, rows []*store.Resource) error {
	parents := []int64{}
	for _, r := range rows {
		if !slices.Contains(parents, r.Parent) {
			parents = append(parents, r.Parent)
		}
	}
	above, err := settingsOf(tx).holdIn(tx, parents)
	if err != nil {
		return err
	}
	for _, r := range rows {
		whole, err := shownRange(r)
		if err != nil {
			return err
		}
		usage, err := rangeUsage(tx, r, whole)
		if err != nil {
			return err
		}
		values := map[string][]byte{"usage": usageText(usage, whole.Size())}
		above[r.Parent].show(r, nil, values)
		if r.Body, err = store.Rewritten(r.Body, values); err != nil {
			return err
		}
	}
	return nil
}

// rangeUsage counts what lies in a DHCP range: addresses by state, and those that are excluded.
func rangeUsage(tx *store.Tx, r *store.Resource, whole space.Range) (Usage, error) {
	usage := Usage{}
	err := tx.Each(func(scan func(...any) error) error {
		var state string
		var n int64
		err := scan(&state, &n)
		usage[state] = n
		return err
	}, "SELECT json_extract(body, '$.state'), count(*) FROM resource WHERE parent = ? AND collection = 'addresses' AND low IS NOT NULL "+
		"AND low >= ? AND low <= ? GROUP BY 1",
		r.Parent, store.AddrKey(whole.Low), store.AddrKey(whole.High))
	if err != nil {
		return nil, fmt.Errorf("counting the addresses of a range: %w", err)
	}
	out, err := exclusionsOf(r)
	if err != nil {
		return nil, err
	}
	for _, part := range out {
		var inUse int64
		if err := tx.QueryRow("SELECT count(*) FROM resource WHERE parent = ? AND collection = 'addresses' AND low IS NOT NULL AND low >= ? "+
			"AND low <= ?",
			r.Parent, store.AddrKey(part.Low), store.AddrKey(part.High)).Scan(&inUse); err != nil {
			return nil, err
		}
		usage[excluded] += part.Size().Int64() - inUse
	}
	return usage, nil
}

// completeAddresses shows the IP group that an IPv4 address lies in.
func completeAddresses(tx *store.Tx, rows []*store.Resource) error {
	if some, err := settingsOf(tx).inUse(tx); err != nil || !some.groups {
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
	groups, err := groupsOf(tx, parents, ids)
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

// groupsOf gives, of the addresses among ids, those that lie in an IP group of their network, with that group. parents are
// the parents of all of them.
func groupsOf(tx *store.Tx, parents, ids []int64) (map[int64]int64, error) {
	groups := map[int64]int64{}
	there := false
	for part := range slices.Chunk(parents, readAtOnce) {
		list, args := store.In(part)
		var found bool
		if err := tx.QueryRow("SELECT EXISTS (SELECT 1 FROM resource WHERE collection = 'ipGroups' AND parent IN "+list+")",
			args...).Scan(&found); err != nil {
			return nil, err
		}
		there = there || found
	}
	if !there {
		return groups, nil
	}
	for part := range slices.Chunk(ids, readAtOnce) {
		list, args := store.In(part)
		if err := tx.Each(func(scan func(...any) error) error {
			var id, group int64
			err := scan(&id, &group)
			groups[id] = group
			return err
		}, "SELECT a.id, g.id FROM resource a JOIN resource g ON g.parent = a.parent AND g.collection = 'ipGroups' AND g.low <= a.low AND "+
			"g.high >= "+
			"a.low WHERE a.id IN "+list, args...); err != nil {
			return nil, err
		}
	}
	return groups, nil
}
