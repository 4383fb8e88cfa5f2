package dhcppublish

import (
	"fmt"
	"strings"

	"portolan/internal/base/plural"
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dnspublish"
	"portolan/internal/manager/serverconfig"
	"portolan/internal/wire/content"
	"portolan/internal/wire/dhcpdata"
)

// Service deploys DHCP for the deployer of dnspublish.
type Service struct {
	API *resource.API
	// V6 selects DHCPv6.
	V6 bool
}

// Types returns the types of deployments of DHCP.
func (Service) Types() []string {
	return []string{"FullDeployment", "ValidationDeployment"}
}

// Check rejects the validation of a server without checks of DHCP data.
func (s Service) Check(c *resource.Change, kind string, server *store.Resource) error {
	if kind != "ValidationDeployment" {
		return nil
	}
	o, err := c.API.Object(server)
	if err != nil {
		return err
	}
	x := serverconfig.FieldsOf(o)
	enabled := x.OverrideDHCPValidation && x.DHCPConfigurationValidationEnabled
	if !x.OverrideDHCPValidation {
		row, err := c.Tx.Get(server.Configuration)
		if err != nil {
			return err
		}
		above, err := c.API.Object(row)
		if err != nil {
			return err
		}
		enabled = c.API.TypeNamed(row.Type).IsTrue(above, "dhcpConfigurationValidationEnabled")
	}
	if !enabled {
		return problem.BadRequest("DhcpDeploymentValidationNotEnabled", "checks of DHCP data are disabled for server %d and its configuration:"+
			" set dhcpConfigurationValidationEnabled", server.ID)
	}
	return nil
}

// serviceOf returns the value of the field service for an address family.
func serviceOf(v6 bool) string {
	if v6 {
		return ServiceV6
	}
	return ServiceV4
}

// Prepare compiles the content of a server. The units of the other family stay as they are deployed.
func (s Service) Prepare(tx *store.Tx, server int64) (dnspublish.Prepared, error) {
	var p dnspublish.Prepared
	row, err := tx.Get(server)
	if err != nil {
		return p, err
	}
	c, err := newCompiler(tx, s.API, row.Clone(), s.V6)
	if err != nil {
		return p, err
	}
	revision, there, err := deployed(tx, server)
	if err != nil {
		return p, err
	}
	before, err := unitsOf(tx, server)
	if err != nil {
		return p, err
	}
	if c.before = before; before == nil {
		c.before = dhcpdata.Units{}
	}
	if had := before[dhcpdata.ServerUnit]; had != nil {
		if c.snapshot, err = lastRequest(had); err != nil {
			return p, err
		}
	}
	if err := c.compileAll(); err != nil {
		return p, err
	}
	after, err := s.units(c, before)
	if err != nil {
		c.fail("%v", err)
	} else if _, err := dhcpdata.Compile(after, nil); err != nil {
		c.fail("%v", err)
	}
	if len(c.networks) == 0 {
		c.warn("no %s network has a DHCP role with server %s", family(s.V6), row.Name)
	}
	p.Warnings = c.texts(false)
	if faults := c.texts(true); len(faults) > 0 {
		return p, problem.BadRequest("InvalidDeploymentData", "%s cannot be deployed to server %s: %s", serviceOf(s.V6),
			problem.Describe(row.ID, row.Name), strings.Join(faults, "; "))
	}
	pools, reservations := 0, 0
	for _, items := range c.units {
		for _, x := range items {
			switch x.(type) {
			case dhcpdata.Pool:
				pools++
			case dhcpdata.Reservation:
				reservations++
			}
		}
	}
	p.Summary = fmt.Sprintf("%s with %s and %s", plural.Count(len(c.networks), "network"), plural.Count(pools, "range"),
		plural.Count(reservations, "reservation"))
	firsts, err := c.newLive(before, after)
	if err != nil {
		return p, err
	}
	p.Commit = func(tx *store.Tx, serves string) (int64, error) {
		for _, id := range firsts { // it may have changed since the snapshot, and no change of it was queued
			if err := queueChange(tx, row.Configuration, id); err != nil {
				return 0, err
			}
		}
		return commitUnits(tx, row.Configuration, server, revision, there, serves, before, after)
	}
	return p, nil
}

// commitUnits stores the content of a server, unless it has changed since the revision. It returns the number of the revision to serve.
// Unchanged content gets a new number, and the leases are requested, if the service point serves a revision that this database does not
// know, as after the restore of an older backup.
func commitUnits(tx *store.Tx, configuration, server int64, revision content.Revision, there bool, serves string, before,
	after dhcpdata.Units) (int64, error) {
	now, is, err := deployed(tx, server)
	if err != nil {
		return 0, err
	}
	if is != there || now != revision {
		return 0, dnspublish.ErrConcurrent
	}
	number, err := storeUnits(tx, server, before, after)
	if err != nil {
		return 0, err
	}
	from, wrong := content.ParseRevision(serves)
	switch latest := max(number, revision.Number); {
	case wrong == nil && from.Number >= latest && from != (content.Revision{Hash: revision.Hash, Number: latest}):
		number = max(from.Number+1, tx.Now().UnixMilli())
		if err := queueRequest(tx, configuration, server); err != nil {
			return 0, err
		}
		return number, tx.Write("UPDATE dhcp_server SET number = ? WHERE server = ?", number, server)
	case number == 0:
		return revision.Number, nil //nolint:nilerr // a service point without a readable revision gets the whole content
	}
	return number, nil
}

// units returns the new content: the compiled units, and the deployed ones of the other family.
func (s Service) units(c *compiler, before dhcpdata.Units) (dhcpdata.Units, error) {
	after := dhcpdata.Units{}
	for id, one := range before {
		keep := false
		_, isNetwork := dhcpdata.NetworkOf(id)
		switch {
		case isNetwork:
			x, err := networkItem(one)
			if err != nil {
				return nil, err
			}
			keep = x.Prefix.Addr().Is6() != s.V6
		case id != dhcpdata.ServerUnit:
			keep = s.V6 // classes and MAC pools are those of DHCPv4, except for DENY
		}
		if keep {
			after[id] = one
		}
	}
	if had := before[dhcpdata.ServerUnit]; had != nil { // the options of the other family
		for _, r := range had.Records {
			x, err := dhcpdata.Decode(r)
			if err != nil {
				return nil, err
			}
			switch y := x.(type) {
			case dhcpdata.Option:
				if y.V6 != s.V6 {
					c.add(dhcpdata.ServerUnit, y)
				}
			case dhcpdata.Service:
				if y.V6 != s.V6 {
					c.add(dhcpdata.ServerUnit, y)
				}
			case dhcpdata.Zone:
				if y.V6 != s.V6 {
					c.add(dhcpdata.ServerUnit, y)
				}
			}
		}
	}
	if err := c.keepPairs(before, after); err != nil {
		return nil, err
	}
	if err := c.keepPools(after); err != nil {
		return nil, err
	}
	for _, id := range sortedKeys(c.units) {
		one, err := dhcpdata.EncodeUnit(id, c.units[id]...)
		if err != nil {
			return nil, err
		}
		after[id] = one
	}
	return after, nil
}

// keepPools adapts the deployed MAC pools that a deployment of DHCPv6 keeps to the pool DENY: a member of DENY is in no other pool, and
// DENY keeps its options, which are those of DHCPv4. DENY itself is removed if its roles do not name the server any more.
func (c *compiler) keepPools(after dhcpdata.Units) error {
	if !c.v6 {
		return nil
	}
	if c.deny == 0 {
		for _, id := range c.macPools {
			if c.rows[id].Type == "DenyMACPool" {
				delete(after, dhcpdata.MACPoolUnit(id))
			}
		}
		return nil
	}
	unit := dhcpdata.MACPoolUnit(c.deny)
	members, denied := map[int64]bool{0: true}, map[string]bool{}
	for _, x := range c.units[unit] {
		if m, is := x.(dhcpdata.MACAddress); is {
			members[m.ID], denied[string(m.MAC)] = true, true
		}
	}
	for id, one := range after {
		if !dhcpdata.IsMACPoolUnit(id) {
			continue
		}
		if id != unit {
			left, err := withoutMembers(one.Records, denied)
			if err != nil {
				return err
			}
			if delete(after, id); len(left) == 0 {
				continue
			}
			if after[id], err = dhcpdata.NewUnit(id, left); err != nil {
				return err
			}
			continue
		}
		for _, r := range one.Records {
			x, err := dhcpdata.Decode(r)
			if err != nil {
				return err
			}
			switch y := x.(type) {
			case dhcpdata.Option:
				if members[y.At] {
					c.add(unit, y)
				}
			case dhcpdata.Service:
				if members[y.At] {
					c.add(unit, y)
				}
			}
		}
	}
	return nil
}

// newLive returns the networks and MAC pools whose changes are live and that the server gets for the first time. A change of one is queued
// only after that.
func (c *compiler) newLive(before, after dhcpdata.Units) (ids []int64, err error) {
	for _, id := range sortedKeys(c.rows) {
		row, unit := c.rows[id], ""
		switch row.Collection {
		case "networks":
			unit = dhcpdata.NetworkUnit(id)
		case "macPools":
			unit = dhcpdata.MACPoolUnit(id)
		}
		if after[unit] == nil || before[unit] != nil {
			continue
		}
		live, err := isLive(row)
		if err != nil {
			return nil, err
		}
		if live {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// networkItem returns the item of the network of a unit.
func networkItem(u *dhcpdata.Unit) (dhcpdata.Network, error) {
	for _, r := range u.Records {
		if r[0] == 'N' {
			x, err := dhcpdata.Decode(r)
			if n, ok := x.(dhcpdata.Network); ok {
				return n, nil
			}
			return dhcpdata.Network{}, err
		}
	}
	return dhcpdata.Network{}, fmt.Errorf("the unit %s has no network", u.ID)
}
