package dhcppublish

import (
	"fmt"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dnspublish"
	"portolan/internal/wire/content"
	"portolan/internal/wire/dhcpdata"
)

// Pipeline deploys DHCP for the deployer of dnspublish.
type Pipeline struct {
	API *resource.API
	// V6 selects DHCPv6.
	V6 bool
}

// name returns the value of the field service.
func (s Pipeline) name() string {
	if s.V6 {
		return ServiceV6
	}
	return ServiceV4
}

// Prepare compiles the content of a server. The units of the other family stay as they are deployed.
func (s Pipeline) Prepare(tx *store.Tx, server *store.Resource, _ dnspublish.Serving) (dnspublish.Prepared, error) {
	row := server.Clone()
	c, err := newCompiler(tx, s.API, row, s.V6)
	if err != nil {
		return nil, err
	}
	if err := c.compileAll(); err != nil {
		return nil, err
	}
	p := &prepared{server: row.ID}
	if p.revision, p.there, err = deployed(tx, row.ID); err != nil {
		return nil, err
	}
	if p.before, err = unitsOf(tx, row.ID); err != nil {
		return nil, err
	}
	if p.after, err = s.units(c, p.before); err != nil {
		c.fail("%v", err)
	} else if _, err := dhcpdata.Compile(p.after, nil); err != nil {
		c.fail("%v", err)
	}
	if len(c.networks) == 0 {
		c.warn("no %s network has a DHCP role with server %s", family(s.V6), row.Name)
	}
	if faults := c.texts(true); len(faults) > 0 {
		return nil, problem.Conflict("DeploymentFailed", "%s cannot be deployed to server %s: %s", s.name(), row.Name, strings.Join(faults, "; "))
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
	p.summary, p.warnings = fmt.Sprintf("%d networks with %d ranges and %d reservations", len(c.networks), pools, reservations), c.texts(false)
	return p, nil
}

// prepared is the compiled content of a server.
type prepared struct {
	server        int64
	summary       string
	warnings      []string
	revision      content.Revision
	there         bool
	before, after dhcpdata.Units
}

// Describe implements dnspublish.Prepared.
func (p *prepared) Describe() (message string, warnings []string) { return p.summary, p.warnings }

// Publish stores the content, unless it has changed since it was compiled. serves is the revision that the service point has confirmed: if
// it is newer, as after the restore of an older backup, the content gets a newer number.
func (p *prepared) Publish(tx *store.Tx, serves string) (number int64, changed bool, err error) {
	now, is, err := deployed(tx, p.server)
	if err != nil {
		return 0, false, err
	}
	if is != p.there || now != p.revision {
		return 0, false, dnspublish.ErrConcurrent
	}
	if number, err = storeUnits(tx, p.server, p.before, p.after); err != nil {
		return 0, false, err
	}
	changed = number != 0
	if !changed {
		number = p.revision.Number
	}
	if known, err := content.ParseRevision(serves); err == nil && known.Number > number {
		number, changed = known.Number+1, true
		return number, changed, tx.Write("UPDATE dhcp_server SET number = ? WHERE server = ?", number, p.server)
	}
	return number, changed, nil
}

// units returns the new content: the compiled units, and the deployed ones of the other family.
func (s Pipeline) units(c *compiler, before dhcpdata.Units) (dhcpdata.Units, error) {
	after := dhcpdata.Units{}
	for id, one := range before {
		keep := false
		switch {
		case networkOf(id) != 0:
			x, err := networkItem(one)
			if err != nil {
				return nil, err
			}
			keep = x.Prefix.Addr().Is6() != s.V6
		case id != dhcpdata.ServerUnit:
			keep = s.V6 // classes and MAC pools are those of DHCPv4
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
			}
		}
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
