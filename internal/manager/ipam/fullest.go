package ipam

import (
	"cmp"
	"fmt"
	"slices"

	"portolan/internal/base/space"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// Full is the utilization of an IPv4 network.
type Full struct {
	// ID, Type, Name and Range identify the network. Range is in CIDR notation.
	ID    int64  `json:"id"`
	Type  string `json:"type"`
	Name  string `json:"name"`
	Range string `json:"range"`
	// Used is the number of addresses in use, Size the number of host addresses.
	Used int64 `json:"used"`
	Size int64 `json:"size"`
}

// Share returns the part of the network that is in use, from 0 to 1.
func (f Full) Share() float64 { return float64(f.Used) / float64(max(f.Size, 1)) }

// fullestNetworks lists the IPv4 networks of a configuration with the highest utilization.
type fullestNetworks struct {
	Data []Full `json:"data"`
}

// maxFullest is the maximum number of networks in the report.
const maxFullest = 20

var fullestReport = resource.Report{Name: "fullestNetworks", Summary: "The IPv4 networks with the highest utilization",
	Description: "The twenty fullest, the fullest first, without unused networks.", Answer: fullestNetworks{},
	Of: func(tx *store.Tx, a *resource.API, caller resource.Caller, of *store.Resource) (any, error) {
		answer := fullestNetworks{Data: []Full{}}
		ranked, err := Fullest(tx, of.ID, 0)
		if err != nil {
			return nil, err
		}
		for part := range slices.Chunk(ranked, usageBatch) {
			ids := make([]int64, len(part))
			for i, f := range part {
				ids[i] = f.ID
			}
			seen, err := a.VisibleResources(tx, caller, ids)
			if err != nil {
				return nil, err
			}
			var whole map[int64]bool
			if caller.Limited() { // the number of used addresses depends on everything in the network
				if whole, err = caller.Rights.Whole(tx, ids); err != nil {
					return nil, err
				}
			}
			for _, f := range part {
				if row := seen[f.ID]; row != nil && (!caller.Limited() || whole[f.ID]) {
					f.Type, f.Name = row.Type, row.Name
					if answer.Data = append(answer.Data, f); len(answer.Data) == maxFullest {
						return answer, nil
					}
				}
			}
		}
		return answer, nil
	}}

// Fullest returns the IPv4 networks of a configuration whose share in use is at least share (0 to 1), highest share first. Configuration 0
// means all configurations. Networks without addresses in use are left out. Type and Name of the results are not set. It reads the stored
// usage of all networks.
func Fullest(tx *store.Tx, configuration int64, share float64) (all []Full, err error) {
	where, args := "", []any{}
	if configuration != 0 {
		where, args = " AND r.configuration = ?", []any{configuration}
	}
	err = tx.Stream(func(scan func(...any) error) error {
		var r store.Resource
		var f Full
		if err := scan(&f.ID, &r.Low, &r.High, &f.Used); err != nil {
			return err
		}
		in := RangeOf(&r)
		if f.Size = space.Hosts(in).Size().Int64(); f.Used > 0 && f.Share() >= share {
			f.Range = in.String()
			all = append(all, f)
		}
		return nil
	},
		"SELECT r.id, r.low, r.high, CAST(sum(u.n) AS BIGINT) FROM resource r JOIN usage u ON u.container = r.id WHERE r.collection = 'networks'"+
			" AND r.type = 'IPv4Network' AND u.state <> '"+networkSpace+"'"+where+" GROUP BY r.id, r.low, r.high", args...)
	if err != nil {
		return nil, fmt.Errorf("read the usage of networks: %w", err)
	}
	slices.SortFunc(all, func(x, y Full) int {
		return cmp.Or(cmp.Compare(y.Share(), x.Share()), cmp.Compare(y.Used, x.Used), cmp.Compare(x.ID, y.ID))
	})
	return all, nil
}

// SpaceUsage is the stored usage of a network or block: its size, the addresses in use, and in an IPv4 block the addresses that networks
// contain. Size is 0 in IPv6, where a part of all addresses tells nothing.
type SpaceUsage struct {
	ID                   int64
	Collection           string
	Size, Used, Networks float64
}

// SpaceUsages calls a function with the usage of each network and block that has one. It reads the stored usage.
func SpaceUsages(tx *store.Tx, each func(SpaceUsage) error) error {
	return tx.Stream(func(scan func(...any) error) error {
		var u SpaceUsage
		var r store.Resource
		var used, networks int64
		if err := scan(&u.ID, &u.Collection, &r.Type, &r.Low, &r.High, &used, &networks); err != nil {
			return err
		}
		switch in := RangeOf(&r); r.Type {
		case "IPv4Network":
			u.Size = float64(space.Hosts(in).Size().Int64())
		case "IPv4Block":
			u.Size = float64(in.Size().Int64())
		}
		u.Used, u.Networks = float64(used), float64(networks)
		return each(u)
	}, "SELECT r.id, r.collection, r.type, r.low, r.high, "+
		"CAST(sum(CASE WHEN u.state <> '"+networkSpace+"' THEN u.n ELSE 0 END) AS BIGINT), "+
		"CAST(sum(CASE WHEN u.state = '"+networkSpace+"' THEN u.n ELSE 0 END) AS BIGINT) "+
		"FROM resource r JOIN usage u ON u.container = r.id WHERE r.collection IN ('networks', 'blocks') "+
		"GROUP BY r.id, r.collection, r.type, r.low, r.high")
}
