package dns

import (
	"slices"
	"strconv"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/ipam"
)

// What blocks and networks say of the hosts in them.

// checkHost refuses a host that the networks of its addresses do not take: in a zone that is not among
// the restricted ones, or with a name that several of their addresses would have.
func checkHost(c *resource.Change, name string, zone int64, addresses []int64) error {
	rows, err := c.Tx.Load(addresses)
	if err != nil {
		return err
	}
	var networks []int64
	fours := 0
	for _, row := range rows {
		if !slices.Contains(networks, row.Parent) {
			networks = append(networks, row.Parent)
		}
		if row.Type == "IPv4Address" {
			fours++
		}
	}
	slices.Sort(networks)
	holds, err := ipam.SettingsIn(c, networks...)
	if err != nil {
		return err
	}
	for _, id := range networks {
		p := holds[id]
		if p == nil { // what is no network is refused where references are resolved
			continue
		}
		if zones := p.Zones["restrictedZones"]; len(zones) > 0 {
			inside, err := isWithin(c.Tx, zone, zones)
			if err != nil {
				return err
			}
			if !inside {
				return problem.Conflict("ZoneNotAllowed", "addresses: network %d takes hosts in the views and zones %s alone (restrictedZones)", id,
					resourceList(zones))
			}
		}
		if p.Values["duplicateHostnamesAllowed"] == "false" && fours > 1 {
			return problem.Conflict("DuplicateHostname",
				"addresses: network %d wants no host name twice (duplicateHostnamesAllowed), and %q would be that of several IPv4 addresses", id, name)
		}
	}
	return nil
}

// listed gives the views and zones of a setting, by their numbers.
func resourceList(ids []int64) problem.Resources {
	all := make(problem.Resources, len(ids))
	for i, id := range ids {
		all[i] = problem.About(id, strconv.FormatInt(id, 10))
	}
	return all
}

// liesIn reports whether a zone is one of those, or lies below one.
func isWithin(tx *store.Tx, zone int64, among []int64) (bool, error) {
	for id := zone; id > resource.RootID; {
		if slices.Contains(among, id) {
			return true, nil
		}
		head, err := tx.Head(id)
		if err != nil {
			return false, err
		}
		id = head.Parent
	}
	return false, nil
}
