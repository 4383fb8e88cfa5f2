package dhcppublish

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/wire/dhcpdata"
)

// finding is a sentence about the settings. A deployment with a finding that stops it changes nothing.
type finding struct {
	text  string
	stops bool
}

// fail adds a finding that stops the deployment.
func (c *compiler) fail(format string, args ...any) {
	c.addFinding(finding{fmt.Sprintf(format, args...), true})
}

// warn adds a warning.
func (c *compiler) warn(format string, args ...any) {
	c.addFinding(finding{fmt.Sprintf(format, args...), false})
}

func (c *compiler) addFinding(f finding) {
	if !slices.Contains(c.findings, f) {
		c.findings = append(c.findings, f)
	}
}

// texts returns the findings that stop the deployment, or the warnings.
func (c *compiler) texts(stops bool) (all []string) {
	for _, f := range c.findings {
		if f.stops == stops {
			all = append(all, f.text)
		}
	}
	return all
}

// validate checks the compiled networks against each other.
func (c *compiler) validate() error {
	server, err := c.merged(c.serverLevels()...)
	if err != nil {
		return err
	}
	var largest struct {
		nearer
		size int
	}
	for _, n := range c.networks {
		at := n.row.Type + " " + c.label(n.row)
		all := with(server, n.values)
		c.examine(at, all, all)
		for _, x := range n.nearer {
			c.examine(x.label, x.values, with(all, x.values))
			if sets(x.values, "default-lease-time", "dynamic-bootp") {
				c.checkPair(n, x.label, with(all, x.values))
			}
		}
		for _, x := range c.clients {
			c.checkTimes(x.label+" in "+at, with(all, x.values))
		}
		if size := c.sizeOf(all); size > largest.size {
			largest.label, largest.values, largest.size = at, all, size
		}
		c.checkKnown(n, at, all)
		c.checkPair(n, at, all)
		if err := c.checkNames(n, all); err != nil {
			return err
		}
	}
	if largest.size <= smallReply { // otherwise the network alone is reported
		c.checkSizeOfClients(largest.nearer)
	}
	if !c.whole {
		return nil
	}
	if err := c.checkUnserved(); err != nil {
		return err
	}
	return c.checkShared()
}

// nearer is an object with options that replace those of a network: a range, a reserved address, a class, or a client.
type nearer struct {
	label  string
	values map[string]chosen
}

// addNearer adds the options of a range or a reserved address to the unit of its network, and to the objects to examine.
func (c *compiler) addNearer(unit string, all *[]nearer, at level) error {
	values, err := c.addMerged(unit, at.row.ID, at)
	if err == nil && len(values) > 0 {
		*all = append(*all, nearer{at.row.Type + " " + c.label(at.row), values})
	}
	return err
}

// addClient adds the options of a class, a MAC pool or a MAC address to its unit, and to the objects to examine. id is that of the object
// in the unit.
func (c *compiler) addClient(unit string, id int64, at level) error {
	values, err := c.addMerged(unit, id, at)
	if err != nil {
		return err
	}
	x := nearer{at.row.Type + " " + c.label(at.row), values}
	if sets(values, leaseTimes...) {
		c.clients = append(c.clients, x)
	}
	if setsClientOption(values) {
		c.sized = append(c.sized, x)
	}
	return nil
}

// with returns the options in effect after those of a nearer object.
func with(all, nearer map[string]chosen) map[string]chosen {
	out := maps.Clone(all)
	maps.Copy(out, nearer)
	return out
}

// sets reports whether one of some service options is set.
func sets(values map[string]chosen, names ...string) bool {
	for _, one := range values {
		if isService(one.kind) && slices.Contains(names, one.name) {
			return true
		}
	}
	return false
}

// The names of the service options that are compared with each other.
var (
	leaseTimes  = []string{"min-lease-time", "default-lease-time", "max-lease-time"}
	accessLists = []string{"allow-mac-pool", "deny-mac-pool", "allow-dhcp-class-members", "deny-dhcp-class-members"}
)

// examine checks the options in effect for an object, as far as its own options concern them.
func (c *compiler) examine(at string, own, all map[string]chosen) {
	if sets(own, leaseTimes...) {
		c.checkTimes(at, all)
	}
	if sets(own, accessLists...) {
		c.checkPermissions(at, all)
	}
	if setsClientOption(own) {
		c.checkSize(at, all)
	}
}

// setsClientOption reports whether an option for clients is set.
func setsClientOption(values map[string]chosen) bool {
	for _, one := range values {
		if !isService(one.kind) {
			return true
		}
	}
	return false
}

// checkKnown warns of a network that serves only clients with a reservation, and has none.
func (c *compiler) checkKnown(n *servedNetwork, at string, all map[string]chosen) {
	if n.reservations > 0 || n.pools == 0 {
		return
	}
	for _, one := range all {
		denies := one.name == "deny-unknown-mac-addresses" && string(one.value) == "true" ||
			one.name == "boot-unknown-clients" && string(one.value) == "false"
		if isService(one.kind) && denies {
			c.warn("%s serves no client: %s of %s %s leaves only clients with a reservation, and there is none", at, one.name, one.row.Type,
				c.label(one.row))
		}
	}
}

// maxNamed is the maximum number of networks that a warning names.
const maxNamed = 5

// checkUnserved warns of networks with ranges that no server serves, because neither they nor the blocks above have a role.
func (c *compiler) checkUnserved() error {
	ranges := map[int64]bool{}
	if err := c.tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("ranges"),
		store.Compare{Field: store.Field{Kind: store.ColumnInt, Path: []string{"configuration"}}, Op: "eq", Value: c.configuration}}},
		func(r *store.Resource) error {
			ranges[r.Parent] = true
			return nil
		}); err != nil {
		return err
	}
	var names []string
	for _, row := range c.unserved {
		if ranges[row.ID] {
			names = append(names, c.label(row))
		}
	}
	if len(names) == 0 {
		return nil
	}
	list := strings.Join(names[:min(len(names), maxNamed)], ", ")
	if more := len(names) - maxNamed; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	c.warn("the ranges of these %s networks are not served, because no DHCP role is in effect: %s", family(c.v6), list)
	return nil
}

// serverLevels returns the levels of the options of the server, the farthest first.
func (c *compiler) serverLevels() (all []level) {
	for _, at := range []level{{dhcpdata.AtConfiguration, c.rows[c.configuration]}, {dhcpdata.AtServerGroup, c.rows[c.fields.ServerGroup.ID]},
		{dhcpdata.AtServer, c.server}} {
		if at.row != nil {
			all = append(all, at)
		}
	}
	return all
}

// serviceNumber returns the number of a service option in effect.
func serviceNumber(all map[string]chosen, name string) (n int64, is bool) {
	for _, one := range all {
		if isService(one.kind) && one.name == name && json.Unmarshal(one.value, &n) == nil {
			return n, true
		}
	}
	return 0, false
}

// checkTimes compares the lease times in effect for an object.
func (c *compiler) checkTimes(at string, all map[string]chosen) {
	least, hasLeast := serviceNumber(all, "min-lease-time")
	usual, hasUsual := serviceNumber(all, "default-lease-time")
	most, hasMost := serviceNumber(all, "max-lease-time")
	switch {
	case hasLeast && hasMost && least > most:
		c.fail("%s: min-lease-time %d is greater than max-lease-time %d", at, least, most)
	case hasLeast && hasUsual && least > usual:
		c.fail("%s: min-lease-time %d is greater than default-lease-time %d", at, least, usual)
	case hasUsual && hasMost && usual > most:
		c.fail("%s: default-lease-time %d is greater than max-lease-time %d", at, usual, most)
	}
}

// checkPermissions finds options that leave no client to serve.
func (c *compiler) checkPermissions(at string, all map[string]chosen) {
	lists := map[string][]string{}
	for _, one := range all {
		var names []string
		if isService(one.kind) && json.Unmarshal(one.value, &names) == nil {
			lists[one.name] = names
		}
	}
	for _, pair := range [][3]string{{"allow-mac-pool", "deny-mac-pool", "MAC pools"},
		{"allow-dhcp-class-members", "deny-dhcp-class-members", "client classes"}} {
		allowed, denied := lists[pair[0]], lists[pair[1]]
		if len(allowed) > 0 && !slices.ContainsFunc(allowed, func(name string) bool { return !slices.Contains(denied, name) }) {
			c.fail("%s serves no client: it allows and denies the %s %s", at, pair[2], strings.Join(allowed, ", "))
		}
	}
}

// smallReply is the number of octets for options in a reply of 576 octets, which every client accepts (RFC 2131 section 2), without the
// fields file and sname. fixedOptions is the size of the options in every reply.
const (
	smallReply   = 576 - 20 - 8 - 240
	fixedOptions = 3 + 6 + 6 + 6 + 6 + 1
)

// checkSize warns of options that together need the fields file and sname, or more.
func (c *compiler) checkSize(at string, all map[string]chosen) {
	if size := c.sizeOf(all); size > smallReply {
		c.warn("%s: the options have %d octets; a client with messages of 576 octets gets at most %d without option overload", at, size,
			smallReply)
	}
}

// checkSizeOfClients warns of classes, MAC pools and MAC addresses whose options are too many together with those of a network, the one
// with the most octets. Other networks are not examined.
func (c *compiler) checkSizeOfClients(network nearer) {
	var names []string
	largest := 0
	for _, x := range c.sized {
		if size := c.sizeOf(with(network.values, x.values)); size > smallReply {
			names, largest = append(names, x.label), max(largest, size)
		}
	}
	if len(names) == 0 {
		return
	}
	list := strings.Join(names[:min(len(names), maxNamed)], ", ")
	if more := len(names) - maxNamed; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	c.warn("%s: together with the options of %s there are up to %d octets; a client with messages of 576 octets gets at most %d without "+
		"option overload", network.label, list, largest, smallReply)
}

// sizeOf returns the number of octets of the options in a reply of DHCPv4; 0 in DHCPv6.
func (c *compiler) sizeOf(all map[string]chosen) int {
	if c.v6 {
		return 0
	}
	size := fixedOptions
	for _, one := range all {
		if isService(one.kind) {
			continue
		}
		if item, sent, err := c.clientOption(0, one); err == nil && sent { // other errors are findings already
			size += len(item.Value) + 2*(1+len(item.Value)/255)
		}
	}
	return size
}

// checkShared requires the same role for all networks of a shared network.
func (c *compiler) checkShared() error {
	first, served := map[int64]*servedNetwork{}, map[int64]bool{}
	for _, n := range c.networks {
		if served[n.row.ID] = true; n.shared == 0 {
			continue
		}
		one := first[n.shared]
		if one == nil {
			first[n.shared] = n
			continue
		}
		if one.role.ID != n.role.ID && !sameServers(one, n) {
			c.fail("%s %s and %s are in one shared network and have different roles", n.row.Type, c.label(one.row), c.label(n.row))
		}
	}
	for _, tag := range sortedKeys(first) {
		var members []*store.Resource
		if err := c.each("networks", store.LinksTo{Targets: []int64{tag}, Field: "sharedNetworkTag"},
			func(row *store.Resource, _ schema.Object) error {
				members = append(members, row)
				return nil
			}); err != nil {
			return err
		}
		for _, row := range members {
			if !served[row.ID] {
				c.fail("%s %s is in the shared network of %s, and has no role with this server", row.Type, c.label(row), c.label(first[tag].row))
			}
		}
	}
	return nil
}

// sameServers reports whether two networks have roles with the same interfaces.
func sameServers(a, b *servedNetwork) bool {
	return slices.Equal(a.role.RoleInterfaces, b.role.RoleInterfaces)
}
