package serverconfig

import (
	"fmt"
	"slices"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// registerEffective declares the subcollections of effective options and roles, which are Portolan extensions.
func registerEffective(r *resource.Registry) {
	for _, above := range []string{"addresses", "blocks", "clientClasses", "configurations", "macAddresses", "macPools", "networks", "ranges",
		"servers", "serverGroups", "subclasses", "templates", "views", "zones"} {
		r.Computed(resource.ComputedSub{Below: above, Name: "effectiveDeploymentOptions", Items: []string{"deploymentOptions"},
			Find: effectiveOptions})
	}
	for _, above := range []string{"blocks", "networks", "views", "zones"} {
		r.Computed(resource.ComputedSub{Below: above, Name: "effectiveDeploymentRoles", Items: []string{"deploymentRoles"}, Find: effectiveRoles})
	}
}

// inheritanceLevels returns the resources that a resource inherits options and roles from, nearest first, starting with itself. The ranges
// that contain an address are one level.
func inheritanceLevels(tx *store.Tx, at *store.Resource) (all [][]int64, err error) {
	all = [][]int64{{at.ID}}
	switch at.Collection {
	case "addresses":
		network, err := tx.Get(at.Parent)
		if err != nil {
			return nil, err
		}
		ranges, err := tx.ListBelow(network.ID, "ranges", at.Low, at.High)
		if err != nil {
			return nil, err
		}
		var over []int64
		for _, r := range ranges {
			over = append(over, r.ID)
		}
		if over != nil {
			all = append(all, over)
		}
	case "macAddresses":
		if pool := at.Ref("macPool"); pool != 0 {
			all = append(all, []int64{pool})
		}
		return all, nil
	case "servers":
		if group := at.Ref("serverGroup"); group != 0 {
			all = append(all, []int64{group})
		}
	case "macPools", "clientClasses", "templates":
		return all, nil
	case "subclasses":
		return append(all, []int64{at.Parent}), nil
	}
	for id := at.Parent; id > resource.RootID; {
		head, err := tx.Head(id)
		if err != nil {
			return nil, err
		}
		all = append(all, []int64{id})
		id = head.Parent
	}
	return all, nil
}

// resourcesByLevel returns the resources of a collection whose parents are in the levels, grouped by level.
func resourcesByLevel(tx *store.Tx, collection string, levels [][]int64) (rows [][]*store.Resource, err error) {
	rows = make([][]*store.Resource, len(levels))
	at := map[int64]int{}
	var parents store.Any
	for i, ids := range levels {
		for _, id := range ids {
			at[id] = i
			parents = append(parents, store.HasParent(id))
		}
	}
	err = tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection(collection), parents}},
		func(r *store.Resource) error {
			rows[at[r.Parent]] = append(rows[at[r.Parent]], r.Clone())
			return nil
		})
	return rows, err
}

// effectiveOptions returns the options in effect for a resource: the nearest one for each definition and server scope. Raw options of all
// levels are in effect. DNS options are inherited only if the configuration enables it.
func effectiveOptions(tx *store.Tx, a *resource.API, at *store.Resource) (ids []int64, err error) {
	from, err := inheritanceLevels(tx, at)
	if err != nil {
		return nil, err
	}
	rows, err := resourcesByLevel(tx, "deploymentOptions", from)
	if err != nil {
		return nil, err
	}
	inherits := true
	if at.Configuration != 0 {
		if inherits, err = OptionsInherit(tx, a, at.Configuration); err != nil {
			return nil, err
		}
	}
	seen := map[string]bool{}
	for i, level := range rows {
		for _, r := range level {
			t := a.TypeNamed(r.Type)
			if i > 0 && (!slices.Contains(a.ParentsOf(t), at.Collection) || !familyFits(r.Type, at.Type) || !inherits && isDNS(r.Type)) {
				continue
			}
			key := fmt.Sprint(r.Type, r.Ref("definition"), r.Ref("serverScope"))
			if r.Ref("definition") != 0 && seen[key] {
				continue
			}
			seen[key] = true
			ids = append(ids, r.ID)
		}
	}
	return ids, nil
}

// isDNS reports whether options of a type are for name servers.
func isDNS(option string) bool {
	return option == "DNSOption" || option == "DNSRawOption" || option == "StartOfAuthority"
}

// OptionsInherit reports whether DNS options are inherited within a configuration.
func OptionsInherit(tx *store.Tx, a *resource.API, configuration int64) (bool, error) {
	row, err := tx.Get(configuration)
	if err != nil {
		return false, err
	}
	o, err := a.Object(row)
	if err != nil {
		return false, err
	}
	return a.TypeNamed(row.Type).IsTrue(o, "dnsOptionInheritanceEnabled"), nil
}

// effectiveRoles returns the roles in effect for a resource: for each type, view and server, those of the nearest level that has one.
func effectiveRoles(tx *store.Tx, _ *resource.API, at *store.Resource) (ids []int64, err error) {
	from, err := inheritanceLevels(tx, at)
	if err != nil {
		return nil, err
	}
	rows, err := resourcesByLevel(tx, "deploymentRoles", from)
	if err != nil {
		return nil, err
	}
	taken := map[string]int{}
	for i, level := range rows {
		for _, r := range level {
			interfaces, err := tx.Links(r.ID, "interfaces")
			if err != nil {
				return nil, err
			}
			counts := false
			for _, id := range interfaces {
				head, err := tx.Head(id)
				if err != nil {
					return nil, err
				}
				key := fmt.Sprint(r.Type, r.Ref("view"), head.Parent)
				if nearer, there := taken[key]; !there || nearer == i {
					taken[key], counts = i, true
				}
			}
			if counts {
				ids = append(ids, r.ID)
			}
		}
	}
	return ids, nil
}
