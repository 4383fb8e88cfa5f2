package dhcppublish

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"portolan/internal/base/naming"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dhcp"
	"portolan/internal/manager/dnspublish"
	"portolan/internal/wire/dhcpdata"
)

// dnsZones are the zones that the names of clients are updated in.
type dnsZones struct {
	// declared are the zones of the zone groups of the server. own are the deployed zones of the name servers of the configuration; nil before
	// they were read.
	declared []dhcpdata.Zone
	own      []dnspublish.UpdateTarget
	read     bool
	// current are the declared zones by name, for changes without a deployment; nil before they were read.
	current map[string]dhcpdata.Zone
}

// maxReverseZones is the maximum number of reverse zones of a network that are examined.
const maxReverseZones = 256

// compileZones compiles the zones for the names of clients: those of the zone groups of the server and, for names in none of them, the
// zones of name servers of the configuration that accept signed updates.
func (c *compiler) compileZones() error {
	if err := c.readDeclarations(); err != nil {
		return err
	}
	for _, z := range c.zones.declared {
		c.add(dhcpdata.ServerUnit, z)
	}
	names := c.updatedNames()
	if len(names) == 0 {
		return nil
	}
	added := map[string]bool{}
	for _, name := range names {
		if c.declares(name) {
			continue
		}
		one, err := c.ownZone(name)
		if err != nil {
			return err
		}
		if one == nil || one.Key.Name == "" || added[one.Zone] {
			continue
		}
		at := c.addressOf(one.Server)
		if !at.IsValid() {
			c.fail("zone %s: server %d has no services address on an interface", one.Zone, one.Server)
			continue
		}
		added[one.Zone] = true
		c.add(dhcpdata.ServerUnit, dhcpdata.Zone{ID: one.Server, Name: one.Zone, V6: c.v6, Primary: at, KeyName: one.Key.Name,
			KeyAlgorithm: one.Key.Algorithm, KeySecret: one.Key.Secret})
	}
	return nil
}

// readDeclarations reads the declarations of the zone groups that are linked to the server.
func (c *compiler) readDeclarations() error {
	var groups []int64
	if err := c.each("zoneGroups", store.LinksTo{Targets: []int64{c.server.ID}, Field: "servers"}, func(row *store.Resource,
		_ schema.Object) error {
		groups = append(groups, row.ID)
		return nil
	}); err != nil {
		return err
	}
	for _, group := range groups {
		if err := c.each("zoneDeclarations", store.HasParent(group), c.declare); err != nil {
			return err
		}
	}
	slices.SortFunc(c.zones.declared, func(a, b dhcpdata.Zone) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	for i := 1; i < len(c.zones.declared); i++ {
		a, b := c.zones.declared[i-1], c.zones.declared[i]
		if a.Name == b.Name {
			c.fail("zone %s is declared twice for server %s, as %d and %d", a.Name, c.server.Name, a.ID, b.ID)
		}
	}
	return nil
}

// declare adds the zone of a declaration.
func (c *compiler) declare(row *store.Resource, o schema.Object) error {
	var x *dhcp.ZoneDeclaration
	switch y := o.(type) {
	case *dhcp.DHCPForwardZone:
		x = &y.ZoneDeclaration
	case *dhcp.DHCPReverseZone:
		x = &y.ZoneDeclaration
	default:
		return nil
	}
	z := dhcpdata.Zone{ID: row.ID, Name: zoneName(row.Name), V6: c.v6, Primary: x.PrimaryDNSServerAddress,
		Secondary: x.SecondaryDNSServerAddress}
	ok, err := c.setKey(&z, row, x)
	if ok {
		c.zones.declared = append(c.zones.declared, z)
	}
	return err
}

// setKey sets the key of a declared zone. It returns false if there is a reason against the zone.
func (c *compiler) setKey(z *dhcpdata.Zone, row *store.Resource, x *dhcp.ZoneDeclaration) (bool, error) {
	switch x.DynamicUpdateSigningKeyType {
	case "GSS_TSIG":
		realm, _, err := c.get(x.DynamicUpdateSigningKeyRealm.ID)
		if err != nil {
			return false, err
		}
		c.fail("the declaration of zone %s (%d) uses GSS_TSIG with the realm %s, which is not supported: use TSIG", row.Name, row.ID, realm.Name)
		return false, nil
	case "TSIG":
		key, ok, err := dnspublish.TSIGKey(c.tx, c.api, x.DynamicUpdateSigningKey.ID)
		if err != nil {
			return false, err
		}
		if !ok {
			at, _, err := c.get(x.DynamicUpdateSigningKey.ID)
			if err != nil {
				return false, err
			}
			c.fail("the key %s of zone %s has no secret: generate it", at.Name, row.Name)
			return false, nil
		}
		if strings.Contains(key.Algorithm, "md5") {
			c.fail("the key %s of zone %s has the algorithm MD5, which updates do not support: use SHA256", strings.TrimSuffix(key.Name, "."),
				row.Name)
			return false, nil
		}
		z.KeyName, z.KeyAlgorithm, z.KeySecret = key.Name, key.Algorithm, key.Secret
		return true, nil
	}
	c.warn("updates of zone %s are not signed: set dynamicUpdateSigningKeyType to TSIG", row.Name)
	return true, nil
}

// zoneName returns the name of a zone as content contains it.
func zoneName(name string) string {
	text, err := naming.ASCII(name)
	if err != nil {
		text = name
	}
	return strings.ToLower(strings.TrimSuffix(text, ".")) + "."
}

// inZone reports whether a name is a zone, or in it.
func inZone(name, zone string) bool {
	return name == zone || zone == "." || strings.HasSuffix(name, "."+zone)
}

// declares reports whether a declared zone contains a name.
func (c *compiler) declares(name string) bool {
	return slices.ContainsFunc(c.zones.declared, func(z dhcpdata.Zone) bool { return inZone(name, z.Name) })
}

// ownZone returns the zone of a name server of the configuration with the longest name that contains a name; nil if there is none. One that
// accepts signed updates comes first.
func (c *compiler) ownZone(name string) (best *dnspublish.UpdateTarget, err error) {
	if !c.zones.read {
		c.zones.read = true
		if c.zones.own, err = dnspublish.UpdateTargets(c.tx, c.api, c.configuration, c.addressOf(c.server.ID)); err != nil {
			return nil, err
		}
	}
	for i := range c.zones.own {
		one := &c.zones.own[i]
		if !inZone(name, one.Zone) || best != nil && len(one.Zone) < len(best.Zone) {
			continue
		}
		if best == nil || len(one.Zone) > len(best.Zone) || best.Key.Name == "" && one.Key.Name != "" {
			best = one
			continue
		}
		if best.Key.Name != "" && one.Key.Name != "" && best.View != one.View {
			c.fail("zone %s accepts updates in the views %s and %s: declare it in a zone group of server %s", one.Zone, best.View, one.View,
				c.server.Name)
		}
	}
	return best, nil
}

// addressOf returns the services address of a server; not valid if it has none.
func (c *compiler) addressOf(server int64) netip.Addr {
	for _, id := range sortedKeys(c.interfaces) {
		if at := c.interfaces[id]; at.server == server {
			if at.v4.IsValid() {
				return at.v4
			}
			return at.v6
		}
	}
	return netip.Addr{}
}

// updatedNames returns the domains and the reverse zones that options update the names of clients in, sorted.
func (c *compiler) updatedNames() (all []string) {
	enabled := false
	domains := map[string]bool{}
	reverse := map[string]map[string]bool{} // the domains of PTR records by unit
	for unit, items := range c.units {
		reverse[unit] = map[string]bool{}
		for _, x := range items {
			switch y := x.(type) {
			case dhcpdata.Service:
				enabled = enabled || enablesNames(y.Name, y.Value)
				text := ""
				switch {
				case y.Name == "ddns-domainname" && json.Unmarshal(y.Value, &text) == nil:
					domains[zoneName(text)] = true
				case y.Name == "ddns-rev-domainname" && json.Unmarshal(y.Value, &text) == nil:
					reverse[unit][text] = true
				}
			case dhcpdata.Option:
				if y.Name == "domain-name" && !y.V6 {
					domains[zoneName(string(y.Value))] = true
				}
			case dhcpdata.Reservation:
				if _, domain, ok := strings.Cut(y.HostName, "."); ok {
					domains[zoneName(domain)] = true
				}
			}
		}
	}
	if !enabled {
		return nil
	}
	for _, n := range c.networks {
		own := reverse[dhcpdata.NetworkUnit(n.row.ID)]
		if len(own) == 0 {
			own = reverse[dhcpdata.ServerUnit]
		}
		if len(own) == 0 {
			own = map[string]bool{"": true}
		}
		for domain := range own {
			for _, name := range n.reverseZones(domain) {
				domains[name] = true
			}
		}
	}
	return sortedKeys(domains)
}

// reverseZones returns the reverse zones of a network. A domain other than "" replaces in-addr.arpa and ip6.arpa (ddns-rev-domainname).
func (n *servedNetwork) reverseZones(domain string) []string {
	names := naming.ReverseZones(store.KeyAddr(n.row.Low), store.KeyAddr(n.row.High), maxReverseZones)
	for i, name := range names {
		if names[i] = zoneName(name); domain == "" {
			continue
		}
		for _, usual := range []string{"in-addr.arpa.", "ip6.arpa."} {
			if octets, is := strings.CutSuffix(names[i], usual); is {
				names[i] = octets + zoneName(domain)
			}
		}
	}
	return names
}

// enablesNames reports whether a service option turns updates of DNS on.
func enablesNames(name string, value json.RawMessage) bool {
	return name == "ddns-updates" && string(value) == "true" || name == "ddns-update-style" && string(value) != `"none"`
}

// checkNames finds networks whose clients have names in no zone.
func (c *compiler) checkNames(n *servedNetwork, all map[string]chosen) error {
	text := func(name string) (value string) {
		for _, one := range all {
			if one.name == name && (isService(one.kind) || one.kind == "DHCPv4ClientOption") {
				_ = json.Unmarshal(one.value, &value) // an invalid value is a finding already
			}
		}
		return value
	}
	is := func(name string, unset bool) bool {
		value := unset
		for _, one := range all {
			if one.name == name && isService(one.kind) && json.Unmarshal(one.value, &value) != nil {
				return unset
			}
		}
		return value
	}
	style := text("ddns-update-style")
	if !is("ddns-updates", style != "") || style == "none" {
		return nil
	}
	at := n.row.Type + " " + c.label(n.row)
	domain := text("ddns-domainname")
	if domain == "" && !c.v6 {
		domain = text("domain-name")
	}
	if domain == "" {
		if !c.setsDomain(n) {
			c.fail("%s: ddns-updates has no domain for the names of clients: set ddns-domainname", at)
		}
		return nil
	}
	if is("do-forward-updates", true) {
		if reason, err := c.missingZone(zoneName(domain)); err != nil || reason != "" {
			c.fail("%s: the names of clients in %s cannot be updated: %s", at, domain, reason)
			return err
		}
	}
	if !is("do-reverse-updates", true) {
		return nil
	}
	for _, name := range n.reverseZones(text("ddns-rev-domainname")) {
		if reason, err := c.missingZone(name); err != nil || reason != "" {
			c.warn("%s: PTR records of clients are not updated: %s", at, reason)
			return err
		}
	}
	return nil
}

// setsDomain reports whether a range or address of a network sets ddns-domainname.
func (c *compiler) setsDomain(n *servedNetwork) bool {
	return slices.ContainsFunc(c.units[dhcpdata.NetworkUnit(n.row.ID)], func(x dhcpdata.Item) bool {
		y, ok := x.(dhcpdata.Service)
		return ok && y.Name == "ddns-domainname"
	})
}

// missingZone returns the reason why names in a domain cannot be updated; empty if they can.
func (c *compiler) missingZone(name string) (string, error) {
	if c.declares(name) {
		return "", nil
	}
	one, err := c.ownZone(name)
	switch {
	case err != nil:
		return "", err
	case one == nil:
		return fmt.Sprintf("no zone contains %s: create a declaration in a zone group of server %s, or deploy the zone to a name server",
			strings.TrimSuffix(name, "."), c.server.Name), nil
	case one.Key.Name == "":
		return fmt.Sprintf("zone %s of view %s: %s", strings.TrimSuffix(one.Zone, "."), one.View, one.Refusal), nil
	}
	return "", nil
}
