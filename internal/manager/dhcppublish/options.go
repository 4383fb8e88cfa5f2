package dhcppublish

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"

	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/serverconfig"
	"portolan/internal/wire/dhcpdata"
)

// option is a deployment option of DHCP.
type option struct {
	id    int64
	kind  string
	name  string
	value json.RawMessage
	// definition is the id of the definition of a client or vendor option.
	definition int64
	code       int64
	// rank orders the options of one object: those for all servers, for the group, and for the server.
	rank int
	// raw is the text of a raw option.
	raw string
}

// level is an object that options are set at.
type level struct {
	name dhcpdata.Level
	row  *store.Resource
}

// chosen is an option in effect, with the object that it comes from.
type chosen struct {
	option
	from dhcpdata.Source
	row  *store.Resource
}

// readOptions reads the DHCP options of one family that apply to the server, at the places that meet a condition; nil means all.
func (c *compiler) readOptions(places store.Expr) error {
	group := c.fields.ServerGroup.ID
	return c.each("deploymentOptions", places, func(row *store.Resource, o schema.Object) error {
		one := option{id: row.ID, kind: row.Type, name: row.Name, definition: row.Ref("definition")}
		switch row.Ref("serverScope") {
		case 0:
		case c.server.ID:
			one.rank = 2
		case group:
			one.rank = 1
		default:
			return nil
		}
		v6 := false
		var fields serverconfig.OptionFields
		switch x := o.(type) {
		case *serverconfig.DHCPv4ClientOption:
			fields = x.OptionFields
		case *serverconfig.DHCPv4ServiceOption:
			fields = x.OptionFields
		case *serverconfig.DHCPVendorOption:
			fields = x.OptionFields
		case *serverconfig.DHCPv4RawOption:
			one.raw = x.Value
		case *serverconfig.DHCPv6ClientOption:
			fields, v6 = x.OptionFields, true
		case *serverconfig.DHCPv6ServiceOption:
			fields, v6 = x.OptionFields, true
		case *serverconfig.DHCPv6RawOption:
			one.raw, v6 = x.Value, true
		default:
			return nil
		}
		if v6 != c.v6 {
			return nil
		}
		if one.value = fields.Value; fields.Code != nil {
			one.code = *fields.Code
		}
		c.options[row.Parent] = append(c.options[row.Parent], one)
		return nil
	})
}

// key identifies the options that replace each other.
func (o *option) key() string {
	if o.definition == 0 {
		return o.kind + "/" + o.name
	}
	return o.kind + "/" + strconv.FormatInt(o.definition, 10)
}

// merged returns the options in effect after levels, the farthest first. A nearer level replaces a farther one. At one object, an option
// for the server replaces one for its group, and that one replaces one for all servers. Raw options are translated before: an explicit
// option of the same object replaces a raw one.
func (c *compiler) merged(levels ...level) (map[string]chosen, error) {
	all := map[string]chosen{}
	for _, at := range levels {
		from := dhcpdata.Source{Level: at.name, ID: at.row.ID, Name: c.label(at.row)}
		own := slices.Clone(c.options[at.row.ID])
		slices.SortStableFunc(own, func(a, b option) int {
			return cmp.Or(cmp.Compare(rawFirst(a), rawFirst(b)), cmp.Compare(a.rank, b.rank))
		})
		for _, one := range own {
			some := []option{one}
			if one.raw != "" {
				var err error
				if some, err = c.translate(one, at); err != nil {
					return nil, err
				}
			}
			for _, each := range some {
				all[each.key()] = chosen{each, from, at.row}
			}
		}
	}
	return all, nil
}

// rawFirst orders raw options before the others.
func rawFirst(o option) int {
	if o.raw != "" {
		return 0
	}
	return 1
}

// addOptions adds the options in effect after levels to a unit. at is the id of the object in the unit; 0 for the unit itself.
func (c *compiler) addOptions(unit string, at int64, levels ...level) error {
	_, err := c.addMerged(unit, at, levels...)
	return err
}

// addMerged is addOptions, and returns the options in effect.
func (c *compiler) addMerged(unit string, at int64, levels ...level) (map[string]chosen, error) {
	all, err := c.merged(levels...)
	if err != nil {
		return nil, err
	}
	parts := map[uint16]*dhcpdata.Option{}
	for _, key := range sortedKeys(all) {
		one := all[key]
		if isService(one.kind) {
			c.addService(unit, at, one)
			continue
		}
		item, sent, err := c.clientOption(at, one)
		if err != nil {
			c.fail("option %s of %s %s: %v", one.name, one.row.Type, c.label(one.row), err)
			continue
		}
		if !sent {
			continue
		}
		if _, is := subCodes[one.name]; !is {
			c.add(unit, item)
			continue
		}
		if whole := parts[item.Code]; whole != nil { // sub-options of one option are sent together
			whole.Value = append(whole.Value, item.Value...)
			whole.Name += ", " + item.Name
			continue
		}
		if item.Code == nwipCode {
			item.Value = append(slices.Clone(nwipExists), item.Value...)
		}
		parts[item.Code] = &item
	}
	for _, code := range sortedKeys(parts) {
		c.add(unit, *parts[code])
	}
	return all, nil
}

// isService reports whether options of a type are settings of the server.
func isService(kind string) bool {
	return kind == "DHCPv4ServiceOption" || kind == "DHCPv6ServiceOption"
}

// maxCode is the maximum code of an IPv4 option.
const maxCode = 254

// clientOption returns the item of a client option or a vendor option; sent is false if it is not sent at all.
func (c *compiler) clientOption(at int64, one chosen) (item dhcpdata.Option, sent bool, err error) {
	d, err := c.definition(one.definition)
	if err != nil {
		return item, false, err
	}
	code := one.code
	if d.Code != nil {
		code = *d.Code
	}
	most := int64(maxCode)
	if c.v6 {
		most = math.MaxUint16
	}
	if code <= 0 || code > most {
		return item, false, fmt.Errorf("option code %d is out of range: use 1 to %d", code, most)
	}
	if one.kind != "DHCPVendorOption" && dhcpdata.IsFixed(uint16(code), c.v6) { //nolint:gosec // checked
		return item, false, fmt.Errorf("option %d cannot be set: the server determines it itself, does not do what it announces, "+
			"or it is obsolete; remove the option", code)
	}
	value, err := encodeOption(one.name, c.v6, d.ValueFormat, one.value)
	if err != nil {
		return item, false, err
	}
	item = dhcpdata.Option{At: at, V6: c.v6, Code: uint16(code), Name: one.name, Value: value, From: one.from} //nolint:gosec // checked
	if one.kind == "DHCPVendorOption" {
		if item.Vendor, err = c.vendorOf(one.definition); err != nil {
			return item, false, err
		}
	}
	return item, true, nil
}

// definition returns the definition of an option.
func (c *compiler) definition(id int64) (serverconfig.Definition, error) {
	if d, known := c.definitions[id]; known {
		return d, nil
	}
	_, o, err := c.get(id)
	if err != nil {
		return serverconfig.Definition{}, err
	}
	c.definitions[id] = serverconfig.DefinitionOf(o)
	return c.definitions[id], nil
}

// vendorOf returns the identifier of the vendor profile of a definition.
func (c *compiler) vendorOf(definition int64) (string, error) {
	row, _, err := c.get(definition)
	if err != nil {
		return "", err
	}
	if text, known := c.vendors[row.Parent]; known {
		return text, nil
	}
	_, o, err := c.get(row.Parent)
	if err != nil {
		return "", err
	}
	x, ok := o.(*serverconfig.VendorProfile)
	if !ok {
		return "", fmt.Errorf("definition %d has no vendor profile", definition)
	}
	c.vendors[row.Parent] = x.Identifier
	return x.Identifier, nil
}

// addService adds a service option, or a finding if it has no effect.
func (c *compiler) addService(unit string, at int64, one chosen) {
	described, known := dhcpdata.FindService(one.name, c.v6)
	refuse := func(format string, args ...any) {
		c.fail("option %s of %s %s: %s", one.name, one.row.Type, c.label(one.row), fmt.Sprintf(format, args...))
	}
	switch {
	case !known:
		refuse("the server does not support it")
		return
	case isPairOption(one.name) && one.from.Level != dhcpdata.AtServer && one.from.Level != dhcpdata.AtServerGroup &&
		one.from.Level != dhcpdata.AtConfiguration:
		refuse("it is an option of a failover pair: set it at the primary server")
		return
	case c.isOfObject(one.name) && one.from.Level != ofObjects[one.name]:
		refuse("set it at a %s", ofObjects[one.name])
		return
	case described.Effect == "":
		refuse("it has no effect: %s", described.Refusal)
		return
	case slices.Contains(described.Without, one.from.Level):
		refuse("it has no effect at this level: set it at %s", described.Where())
		return
	}
	value, err := c.serviceValue(one, described)
	if err == nil {
		err = described.CheckValue(value)
	}
	if err != nil {
		refuse("%v", err)
		return
	}
	if c.isOfObject(one.name) { // a part of the network or range
		return
	}
	c.add(unit, dhcpdata.Service{At: at, V6: c.v6, Name: one.name, Value: value, From: one.from})
}

// serviceValue returns the value of a service option as the server reads it: names of classes and MAC pools become ids.
func (c *compiler) serviceValue(one chosen, described dhcpdata.ServiceOption) (json.RawMessage, error) {
	switch described.Value {
	case dhcpdata.IDList:
		var names []string
		if err := json.Unmarshal(one.value, &names); err != nil {
			return nil, err
		}
		known := c.classes
		if one.name == "allow-mac-pool" || one.name == "deny-mac-pool" {
			known = c.macPools
		}
		ids := make([]int64, len(names))
		for i, name := range names {
			if ids[i] = known[name]; ids[i] == 0 {
				return nil, fmt.Errorf("%q does not exist", name)
			}
		}
		slices.Sort(ids)
		return json.Marshal(slices.Compact(ids))
	case dhcpdata.Address:
		var text string
		if err := json.Unmarshal(one.value, &text); err != nil {
			return nil, err
		}
		if _, err := netip.ParseAddr(text); err != nil {
			return nil, fmt.Errorf("%q is not an address; names are not resolved", text)
		}
	case dhcpdata.Boolean, dhcpdata.Number, dhcpdata.Text, dhcpdata.Texts:
	}
	return one.value, nil
}
