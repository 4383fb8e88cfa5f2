package dns

import (
	"slices"
	"strconv"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/ipam"
)

// Rules of blocks and networks for the hosts in them.

// checkHost rejects a host that a network of its addresses does not allow. The network may limit hosts to restricted zones. It may also
// disallow duplicate names, which rejects a name with several IPv4 addresses.
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
	settings, err := ipam.SettingsIn(c, networks...)
	if err != nil {
		return err
	}
	for _, id := range networks {
		p := settings[id]
		if p == nil { // the reference check rejects the invalid address
			continue
		}
		if zones := p.Zones["restrictedZones"]; len(zones) > 0 {
			inside, err := isWithin(c.Tx, zone, zones)
			if err != nil {
				return err
			}
			if !inside {
				return problem.Conflict("ZoneNotAllowed", "addresses: network %d only allows hosts in the views and zones %s (restrictedZones)", id,
					resourceList(zones))
			}
		}
		if p.Values["duplicateHostnamesAllowed"] == "false" && fours > 1 {
			return problem.Conflict("DuplicateHostname",
				"addresses: network %d does not allow duplicate host names (duplicateHostnamesAllowed): %q would have several IPv4 addresses", id, name)
		}
	}
	return nil
}

// resourceList returns views and zones by id, for error messages.
func resourceList(ids []int64) problem.Resources {
	all := make(problem.Resources, len(ids))
	for i, id := range ids {
		all[i] = problem.Describe(id, strconv.FormatInt(id, 10))
	}
	return all
}

// isWithin reports whether a zone is one of the given views and zones or is below one of them.
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
