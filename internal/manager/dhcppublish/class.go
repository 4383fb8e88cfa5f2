package dhcppublish

import (
	"slices"

	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dhcp"
	"portolan/internal/manager/serverconfig"
	"portolan/internal/wire/dhcpdata"
)

// macRow is a hardware address of a configuration.
type macRow struct {
	id      int64
	name    string
	address string
}

// compileMACPools compiles the MAC pools with their members, and the hardware addresses with options that are in no pool.
func (c *compiler) compileMACPools(members map[int64][]macRow) error {
	for _, name := range sortedKeys(c.macPools) {
		id := c.macPools[name]
		if !c.deploys(id) {
			continue
		}
		if err := c.compileMACPool(c.rows[id], members[id]); err != nil {
			return err
		}
	}
	for _, m := range members[0] {
		if len(c.options[m.id]) == 0 {
			continue
		}
		if err := c.addMember(dhcpdata.MACPoolUnit(0), m); err != nil {
			return err
		}
	}
	return nil
}

// compileDenyPool compiles the pool DENY without options: it is the only pool with an effect in DHCPv6.
func (c *compiler) compileDenyPool(members map[int64][]macRow) error {
	for _, id := range c.macPools {
		row := c.rows[id]
		if row.Type != "DenyMACPool" || !c.deploys(id) {
			continue
		}
		c.deny = id
		unit := dhcpdata.MACPoolUnit(id)
		c.add(unit, dhcpdata.MACPool{ID: id, Name: row.Name, Deny: true})
		for _, m := range members[id] {
			if err := c.addMACAddress(unit, m); err != nil {
				return err
			}
		}
	}
	return nil
}

// compileMACPool compiles a MAC pool.
func (c *compiler) compileMACPool(row *store.Resource, members []macRow) error {
	unit := dhcpdata.MACPoolUnit(row.ID)
	c.add(unit, dhcpdata.MACPool{ID: row.ID, Name: row.Name, Deny: row.Type == "DenyMACPool"})
	if err := c.addClient(unit, 0, level{dhcpdata.AtMACPool, row}); err != nil {
		return err
	}
	for _, m := range members {
		if err := c.addMember(unit, m); err != nil {
			return err
		}
	}
	return nil
}

// addMACAddress adds a hardware address to the unit of a pool.
func (c *compiler) addMACAddress(unit string, m macRow) error {
	mac, err := macOctets(m.address)
	if err != nil {
		return err
	}
	c.add(unit, dhcpdata.MACAddress{ID: m.id, Name: m.name, MAC: mac})
	return nil
}

// addMember adds a hardware address and its options to the unit of a pool.
func (c *compiler) addMember(unit string, m macRow) error {
	if err := c.addMACAddress(unit, m); err != nil {
		return err
	}
	row, _, err := c.get(m.id)
	if err != nil || len(c.options[m.id]) == 0 {
		return err
	}
	return c.addClient(unit, m.id, level{dhcpdata.AtMACAddress, row})
}

// deploys reports whether a class or MAC pool is deployed to the server: if it has roles, one of them must name the server.
func (c *compiler) deploys(id int64) bool {
	roles := c.roles[id]
	return len(roles) == 0 || slices.ContainsFunc(roles, func(r *serverconfig.DHCPDeploymentRole) bool {
		_, kind, _ := c.interfaceOf(r)
		return r.RoleType != serverconfig.RoleNone && kind != ""
	})
}

// compileClasses compiles the client classes and their subclasses.
func (c *compiler) compileClasses() error {
	below := map[int64][]*store.Resource{}
	if err := c.each("subclasses", nil, func(row *store.Resource, o schema.Object) error {
		below[row.Parent] = append(below[row.Parent], row)
		c.rows[row.ID], c.objects[row.ID] = row, o
		return nil
	}); err != nil {
		return err
	}
	codes, err := c.optionCodes()
	if err != nil {
		return err
	}
	for _, name := range sortedKeys(c.classes) {
		id := c.classes[name]
		row := c.rows[id]
		x, ok := c.objects[id].(*dhcp.DHCPv4ClientClass)
		if !ok || !c.deploys(id) {
			continue
		}
		item, err := classOf(x, codes)
		if err != nil {
			c.fail("client class %s: %v", name, err)
			continue
		}
		if item == nil {
			c.warn("client class %s has no criteria: no client belongs to it", name)
			continue
		}
		unit := dhcpdata.ClassUnit(id)
		c.add(unit, *item)
		if item.Match != nil && len(below[id]) == 0 {
			c.warn("client class %s has no subclasses: no client belongs to it", name)
		}
		if err := c.addClient(unit, 0, level{dhcpdata.AtClass, row}); err != nil {
			return err
		}
		values := map[string]string{} // the names of the subclasses, by their values
		for _, sub := range below[id] {
			y, ok := c.objects[sub.ID].(*dhcp.DHCPv4Subclass)
			if !ok {
				continue
			}
			value, err := dhcp.ReadValue(y.Value)
			if err != nil {
				c.fail("subclass %s of client class %s: %v", sub.Name, name, err)
				continue
			}
			if item.Match == nil {
				c.fail("client class %s has a condition: delete its subclass %s", name, sub.Name)
				break
			}
			if first, twice := values[string(value)]; twice {
				c.fail("the subclasses %s and %s of client class %s have the same value", first, sub.Name, name)
				continue
			}
			values[string(value)] = sub.Name
			if x.MatchLength != nil && int64(len(value)) < *x.MatchLength {
				c.warn("subclass %s of client class %s has %d bytes: no client whose value has the %d bytes of matchLength belongs to it",
					sub.Name, name, len(value), *x.MatchLength)
			}
			c.add(unit, dhcpdata.Subclass{ID: sub.ID, Name: sub.Name, Value: value})
			if err := c.addClient(unit, sub.ID, level{dhcpdata.AtSubclass, sub}); err != nil {
				return err
			}
		}
	}
	return nil
}

// classOf returns the item of a class; nil if the class has no criteria.
func classOf(x *dhcp.DHCPv4ClientClass, codes func(string) (uint8, bool)) (*dhcpdata.Class, error) {
	item := &dhcpdata.Class{ID: x.ID, Name: x.Name}
	switch {
	case x.MatchExpression != "":
		e, condition, err := dhcpdata.ParseMatch(x.MatchExpression, codes)
		if err != nil {
			return nil, err
		}
		if item.Match = e; condition {
			item.Match, item.If = nil, e
		}
	case x.Option == "" || x.MatchOffset == nil || x.MatchLength == nil:
		return nil, nil
	default:
		e, err := dhcpdata.MatchOf(x.Option, int(*x.MatchOffset), int(*x.MatchLength))
		if err != nil {
			return nil, err
		}
		item.Match = e
	}
	return item, nil
}

// optionCodes returns the function that finds the code of a DHCPv4 option by its name, or by one of its other names.
func (c *compiler) optionCodes() (func(name string) (uint8, bool), error) {
	codes := map[string]uint8{}
	err := c.tx.List(store.Query{From: store.Resources, Where: store.InCollection("deploymentOptionDefinitions")},
		func(r *store.Resource) error {
			if r.Type != "DHCPv4ClientOptionDefinition" && (r.Type != "DHCPv4CustomClientOptionDefinition" || r.Configuration != c.configuration) {
				return nil
			}
			o, err := c.api.Object(r)
			if err != nil {
				return err
			}
			d := serverconfig.DefinitionOf(o)
			if d.Code == nil || *d.Code > maxCode {
				return nil
			}
			for _, name := range append(d.OtherNames, r.Name) {
				codes[name] = uint8(*d.Code) //nolint:gosec // checked
			}
			return nil
		})
	return func(name string) (uint8, bool) {
		code, known := codes[name]
		return code, known
	}, err
}
