package dhcppublish

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"portolan/internal/base/space"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dhcp"
	"portolan/internal/manager/ipam"
	"portolan/internal/manager/serverconfig"
	"portolan/internal/wire/dhcpdata"
)

// Services are the values of the field service of deployments.
const (
	ServiceV4 = "DHCPv4"
	ServiceV6 = "DHCPv6"
)

// compiler compiles the settings of a configuration to the content of one server, in one snapshot.
type compiler struct {
	tx            *store.Tx
	api           *resource.API
	configuration int64
	server        *store.Resource
	fields        *serverconfig.ServerFields
	// v6 selects the family that is compiled; whole means that all networks are.
	v6, whole bool

	roles       map[int64][]*serverconfig.DHCPDeploymentRole
	interfaces  map[int64]roleInterface
	options     map[int64][]option
	rows        map[int64]*store.Resource
	objects     map[int64]schema.Object
	definitions map[int64]serverconfig.Definition
	// classes and macPools are the ids by name; identifiers and macs are those of clients by id.
	classes, macPools map[string]int64
	macs, identifiers map[int64]string
	vendors           map[int64]string
	// named are the definitions by type and name; nil before the first raw option.
	named map[string]int64

	// before are the deployed units that a deployment replaces; nil for an explanation.
	before dhcpdata.Units
	// snapshot is the number of the last request for all leases; 0 if there was none. deny is the id of the pool DENY, if DHCPv6 serves it.
	snapshot, deny int64
	// orders are the pending actions on leases, by network.
	orders map[int64][]dhcpdata.Order

	zones    dnsZones
	units    map[string][]dhcpdata.Item
	findings []finding
	// networks are the served networks with their options, for the validation. unserved are the networks without a role. clients are the
	// classes, MAC pools and MAC addresses with lease times. pairs are the failover pairs by the id of the partner.
	networks []*servedNetwork
	unserved []*store.Resource
	clients  []nearer
	// sized are the classes, MAC pools and MAC addresses with options for clients.
	sized []nearer
	// pairs are the failover pairs by the id of the partner.
	pairs map[int64]dhcpdata.Pair
}

// roleInterface is an interface of a server.
type roleInterface struct {
	server int64
	v4, v6 netip.Addr
}

// servedNetwork is a network that the server serves.
type servedNetwork struct {
	row    *store.Resource
	role   *serverconfig.DHCPDeploymentRole
	shared int64
	pair   int64
	pools  int
	// reservations is the number of reserved addresses. nearer are the ranges and reserved addresses with options.
	reservations int
	nearer       []nearer
	// values are the client options and the service options in effect for the whole network.
	values map[string]chosen
}

// label returns the name of a resource for messages: its range, and its name if it has one.
func (c *compiler) label(row *store.Resource) string {
	text := row.Name
	if row.Low != nil {
		text = space.Range{Low: store.KeyAddr(row.Low), High: store.KeyAddr(row.High)}.String()
		if row.Collection == "ranges" {
			text = space.Range{Low: store.KeyAddr(row.Low), High: store.KeyAddr(row.High)}.Dashed()
		}
		if row.Name != "" {
			text += " (" + row.Name + ")"
		}
	}
	return text
}

// newCompiler reads the roles, options and names of a configuration.
func newCompiler(tx *store.Tx, api *resource.API, server *store.Resource, v6 bool) (*compiler, error) {
	c := &compiler{tx: tx, api: api, configuration: server.Configuration, server: server, v6: v6}
	c.init()
	o, err := api.Object(server)
	if err != nil {
		return nil, err
	}
	if c.fields = serverconfig.FieldsOf(o); c.fields == nil {
		return nil, fmt.Errorf("resource %d is not a server", server.ID)
	}
	return c, nil
}

// init creates the maps.
func (c *compiler) init() {
	c.roles, c.interfaces = map[int64][]*serverconfig.DHCPDeploymentRole{}, map[int64]roleInterface{}
	c.options, c.rows, c.objects = map[int64][]option{}, map[int64]*store.Resource{}, map[int64]schema.Object{}
	c.definitions, c.vendors = map[int64]serverconfig.Definition{}, map[int64]string{}
	c.classes, c.macPools = map[string]int64{}, map[string]int64{}
	c.macs, c.identifiers = map[int64]string{}, map[int64]string{}
	c.pairs = map[int64]dhcpdata.Pair{}
	c.orders, c.units = map[int64][]dhcpdata.Order{}, map[string][]dhcpdata.Item{}
}

// each calls fn for the resources of a collection in the configuration that meet a condition; nil means all.
func (c *compiler) each(collection string, where store.Expr, fn func(row *store.Resource, o schema.Object) error) error {
	all := store.All{store.InCollection(collection),
		store.Compare{Field: store.Field{Kind: store.ColumnInt, Path: []string{"configuration"}}, Op: "eq", Value: c.configuration}}
	if where != nil {
		all = append(all, where)
	}
	var rows []*store.Resource
	if err := c.tx.List(store.Query{From: store.Resources, Where: all}, func(r *store.Resource) error {
		rows = append(rows, r.Clone())
		return nil
	}); err != nil {
		return err
	}
	for _, row := range rows {
		o, err := c.api.Object(row)
		if err != nil {
			return err
		}
		if err := fn(row, o); err != nil {
			return err
		}
	}
	return nil
}

// get returns a resource and its object. It caches them.
func (c *compiler) get(id int64) (*store.Resource, schema.Object, error) {
	if row := c.rows[id]; row != nil {
		return row, c.objects[id], nil
	}
	row, err := c.tx.Get(id)
	if err != nil {
		return nil, nil, err
	}
	row = row.Clone()
	o, err := c.api.Object(row)
	if err != nil {
		return nil, nil, err
	}
	c.rows[id], c.objects[id] = row, o
	return row, o, nil
}

// readCommon reads the settings that apply to every network.
func (c *compiler) readCommon() error {
	if err := c.each("interfaces", nil, func(row *store.Resource, o schema.Object) error {
		at := roleInterface{server: row.Parent}
		var all []netip.Addr
		switch x := o.(type) {
		case *serverconfig.NetworkInterface:
			all = []netip.Addr{x.ServicesIPv4Address, x.ServicesIPv6Address}
		case *serverconfig.PublishedInterface:
			all = []netip.Addr{x.PrimaryAddress, x.SecondaryAddress}
		}
		for _, a := range all {
			switch {
			case a.Is4() && !at.v4.IsValid():
				at.v4 = a
			case a.Is6() && !at.v6.IsValid():
				at.v6 = a
			}
		}
		c.interfaces[row.ID] = at
		return nil
	}); err != nil {
		return err
	}
	if err := c.each("deploymentRoles", nil, func(row *store.Resource, o schema.Object) error {
		if x, ok := o.(*serverconfig.DHCPDeploymentRole); ok {
			c.roles[row.Parent] = append(c.roles[row.Parent], x)
		}
		return nil
	}); err != nil {
		return err
	}
	pending := store.Compare{Field: store.Field{Kind: store.Text, Path: []string{"state"}, Indexed: true}, Op: "eq", Value: dhcp.ActionPending}
	if err := c.each(dhcp.LeaseActions, pending, func(row *store.Resource, o schema.Object) error {
		x, ok := o.(*dhcp.LeaseAction)
		if !ok {
			return nil
		}
		order := dhcpdata.Order{ID: row.ID, Address: x.Address, Action: dhcpdata.EndLease}
		if x.Action == dhcp.ActionClear {
			order.Action = dhcpdata.ClearAddress
		} else if !x.LeaseDateTime.IsZero() {
			order.Start = x.LeaseDateTime.Unix()
		}
		c.orders[row.Parent] = append(c.orders[row.Parent], order)
		return nil
	}); err != nil {
		return err
	}
	if err := dhcp.EachImported(c.tx, c.configuration, func(network int64, order dhcpdata.Order) error {
		c.orders[network] = append(c.orders[network], order)
		return nil
	}); err != nil {
		return err
	}
	for collection, names := range map[string]map[string]int64{"clientClasses": c.classes, "macPools": c.macPools} {
		if err := c.each(collection, nil, func(row *store.Resource, o schema.Object) error {
			names[row.Name], c.rows[row.ID], c.objects[row.ID] = row.ID, row, o
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// compileAll compiles the units of everything that the server serves.
func (c *compiler) compileAll() error {
	c.whole = true
	if err := c.readCommon(); err != nil {
		return err
	}
	if err := c.readOptions(nil); err != nil {
		return err
	}
	if err := c.each("clientIdentifiers", nil, func(row *store.Resource, o schema.Object) error {
		c.identifiers[row.ID] = identifierOf(o)
		return nil
	}); err != nil {
		return err
	}
	byPool := map[int64][]macRow{}
	if err := c.each("macAddresses", nil, func(row *store.Resource, o schema.Object) error {
		if x, ok := o.(*ipam.MACAddress); ok {
			c.macs[row.ID] = x.Address
			byPool[x.MACPool.ID] = append(byPool[x.MACPool.ID], macRow{row.ID, row.Name, x.Address})
		}
		return nil
	}); err != nil {
		return err
	}
	for _, collection := range []string{"blocks", "networks"} {
		if err := c.each(collection, nil, func(row *store.Resource, o schema.Object) error {
			c.rows[row.ID], c.objects[row.ID] = row, o
			return nil
		}); err != nil {
			return err
		}
	}
	if err := c.compileServer(); err != nil {
		return err
	}
	if c.v6 {
		if err := c.compileDenyPool(byPool); err != nil {
			return err
		}
	} else {
		if err := c.compileMACPools(byPool); err != nil {
			return err
		}
		if err := c.compileClasses(); err != nil {
			return err
		}
	}
	var networks []*store.Resource
	for _, row := range c.rows {
		if row.Collection == "networks" && (row.Type == "IPv6Network") == c.v6 {
			networks = append(networks, row)
		}
	}
	slices.SortFunc(networks, func(a, b *store.Resource) int { return cmp.Compare(a.ID, b.ID) })
	for _, row := range networks {
		if err := c.compileNetwork(row); err != nil {
			return err
		}
	}
	if err := c.compileZones(); err != nil {
		return err
	}
	return c.validate()
}

// compileOne compiles the unit of one network; the units lack it if the server does not serve the network.
func (c *compiler) compileOne(network int64) error {
	if err := c.readCommon(); err != nil {
		return err
	}
	row, _, err := c.get(network)
	if store.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	above, err := c.chain(row)
	if err != nil {
		return err
	}
	places := store.Any{store.HasParent(c.configuration), store.HasParent(c.server.ID),
		store.Through{Ref: "parent", Column: true, Where: store.HasParent(network)}}
	if group := c.fields.ServerGroup.ID; group != 0 {
		places = append(places, store.HasParent(group))
	}
	for _, one := range above {
		places = append(places, store.HasParent(one.ID))
	}
	if err := c.readOptions(places); err != nil {
		return err
	}
	if err = c.compileNetwork(row); err != nil {
		return err
	}
	if err := c.readDeclarations(); err != nil {
		return err
	}
	return c.validate()
}

// chain returns a network and the blocks above it, nearest first.
func (c *compiler) chain(network *store.Resource) (all []*store.Resource, err error) {
	all = []*store.Resource{network}
	for id := network.Parent; id != c.configuration && id > resource.RootID; {
		row, _, err := c.get(id)
		if err != nil {
			return nil, err
		}
		all = append(all, row)
		id = row.Parent
	}
	return all, nil
}

// roleOf returns the role in effect for a network: that of the nearest resource with a role. It returns nil if there is none, or if it is
// NONE.
func (c *compiler) roleOf(chain []*store.Resource) *serverconfig.DHCPDeploymentRole {
	for _, row := range chain {
		roles := c.roles[row.ID]
		if len(roles) == 0 {
			continue
		}
		if len(roles) > 1 {
			c.fail("%s %s has %d DHCP roles: use one role with a PRIMARY and a SECONDARY interface", row.Type, c.label(row), len(roles))
		}
		if roles[0].RoleType == serverconfig.RoleNone {
			return nil
		}
		return roles[0]
	}
	return nil
}

// interfaceOf returns the interface of the server in a role, its type in the role, and whether the role has a pair.
func (c *compiler) interfaceOf(role *serverconfig.DHCPDeploymentRole) (at roleInterface, kind string, paired bool) {
	for _, i := range role.RoleInterfaces {
		if one := c.interfaces[i.ID]; one.server == c.server.ID && kind == "" {
			at, kind = one, i.Kind
		}
		paired = paired || i.Kind == serverconfig.RoleSecondary
	}
	return at, kind, paired
}

// compileServer compiles the unit of the server.
func (c *compiler) compileServer() error {
	x := dhcpdata.Server{ID: c.server.ID, Name: c.server.Name, Configuration: c.configuration,
		DUID: dhcpdata.DUIDOf(c.configuration, c.server.ID)}
	for _, id := range sortedKeys(c.interfaces) {
		at := c.interfaces[id]
		for _, a := range []netip.Addr{at.v4, at.v6} {
			if at.server == c.server.ID && a.IsValid() && !slices.Contains(x.Addresses, a) {
				x.Addresses = append(x.Addresses, a)
			}
		}
	}
	if err := c.addOthers(&x); err != nil {
		return err
	}
	if x.Snapshot = c.snapshot; x.Snapshot == 0 { // a server that is deployed for the first time may have leases already
		x.Snapshot = c.tx.Now().UnixMilli()
	}
	var err error
	if x.Restored, err = dhcp.LastLost(c.tx, c.server.ID); err != nil {
		return err
	}
	c.add(dhcpdata.ServerUnit, x)
	row, _, err := c.get(c.configuration)
	if err != nil {
		return err
	}
	levels := []level{{dhcpdata.AtConfiguration, row}}
	if group := c.fields.ServerGroup.ID; group != 0 {
		row, _, err := c.get(group)
		if err != nil {
			return err
		}
		levels = append(levels, level{dhcpdata.AtServerGroup, row})
	}
	return c.addOptions(dhcpdata.ServerUnit, 0, append(levels, level{dhcpdata.AtServer, c.server})...)
}

// add adds items to a unit.
func (c *compiler) add(unit string, items ...dhcpdata.Item) {
	c.units[unit] = append(c.units[unit], items...)
}

// compileNetwork compiles a network if the server serves it.
func (c *compiler) compileNetwork(row *store.Resource) error {
	chain, err := c.chain(row)
	if err != nil {
		return err
	}
	role := c.roleOf(chain)
	if role == nil {
		if !slices.ContainsFunc(chain, func(r *store.Resource) bool { return len(c.roles[r.ID]) > 0 }) { // not the role NONE
			c.unserved = append(c.unserved, row)
		}
		return nil
	}
	at, kind, paired := c.interfaceOf(role)
	if kind == "" {
		return nil
	}
	pair := int64(0)
	if paired {
		if pair, err = c.pairOf(role, row); err != nil || pair == 0 {
			return err
		}
	}
	prefix, whole := space.Range{Low: store.KeyAddr(row.Low), High: store.KeyAddr(row.High)}.Prefix()
	if !whole {
		return fmt.Errorf("network %d is not a prefix", row.ID)
	}
	x := dhcpdata.Network{ID: row.ID, Name: row.Name, Prefix: prefix, Identifier: at.v4, Pair: pair}
	n := &servedNetwork{row: row, role: role, pair: pair}
	if c.v6 {
		x.Identifier = at.v6
	}
	if o, ok := c.objects[row.ID].(*ipam.IPv4Network); ok {
		x.Gateway = o.Gateway
		if tag := o.SharedNetworkTag.ID; tag != 0 {
			t, _, err := c.get(tag)
			if err != nil {
				return err
			}
			x.Shared, x.SharedName, n.shared = tag, t.Name, tag
		}
	}
	if err := c.share(level{dhcpdata.AtNetwork, row}, n, &x); err != nil {
		return err
	}
	if !x.Identifier.IsValid() {
		c.fail("server %s has no %s address on the interface of the role of %s %s", c.server.Name, family(c.v6), row.Type, c.label(row))
	}
	unit := dhcpdata.NetworkUnit(row.ID)
	c.add(unit, x)
	for _, one := range c.orders[row.ID] {
		c.add(unit, one)
	}
	c.networks = append(c.networks, n)
	levels := make([]level, len(chain))
	for i, one := range chain {
		levels[len(chain)-1-i] = level{dhcpdata.AtBlock, one}
	}
	levels[len(levels)-1].name = dhcpdata.AtNetwork
	if n.values, err = c.addMerged(unit, 0, levels...); err != nil {
		return err
	}
	return c.compileSpace(unit, n, x)
}

// family returns the name of an address family.
func family(v6 bool) string {
	if v6 {
		return "IPv6"
	}
	return "IPv4"
}
