package dhcpdata

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
)

// Content is the compiled content of a server. It is immutable.
type Content struct {
	Server   Server
	Pairs    map[int64]Pair
	Zones    []Zone
	networks map[int64]*network
	// byPrefix contains the networks by prefix, and lengths the prefix lengths in use, the longest first.
	byPrefix map[netip.Prefix]*network
	lengths  []int
	shared   map[int64][]*network
	classes  []*class
	macs     map[string]member
	scope4   *scope
	// scope6 are the options of DHCPv6 of the server. duid identifies it.
	scope6 *scope
	duid   []byte
	// known are the addresses and DUIDs of the DHCP servers of the configuration, as octets.
	known map[string]bool
	units map[string]compiled
}

// compiled is a compiled unit, which the next Compile uses again if its hash is the same.
type compiled struct {
	hash string
	unit *parsed
}

// network is a network with its pools and reservations.
type network struct {
	Network
	scope *scope // of the levels from the configuration to the network
	pools []*pool
	// scope6 are the options of DHCPv6, of the same levels. reserved6 are the reservations of IPv6 by client.
	scope6    *scope
	reserved6 reserved6
	// byAddress contains the reservations of an address; more than one if several hardware addresses of a machine share it.
	byAddress  map[netip.Addr][]*reservation
	byMAC      map[string]*reservation
	byClientID map[string]*reservation
	orders     []Order
}

type pool struct {
	Pool
	network *network
	scope   *scope // of the levels from the configuration to the range
	size    uint64
	// scope6 are the options of DHCPv6, of the same levels. size6 is the number of addresses or of delegated prefixes.
	scope6 *scope
	size6  uint64
	// reservedPrefixes are the prefixes of the range that contain reservations.
	reservedPrefixes map[netip.Addr]bool
}

type reservation struct {
	Reservation
	network *network
	own     *scope // nil without options
	own6    *scope // of DHCPv6; nil without options
}

// class is a class with its subclasses by value.
type class struct {
	Class
	own        *scope
	subclasses map[string]*subclass
}

type subclass struct {
	Subclass
	own *scope
}

// member is a hardware address in a MAC pool. pool is nil for one in none.
type member struct {
	MACAddress
	pool *macPool
	own  *scope
}

type macPool struct {
	MACPool
	own *scope
}

// parsed is a unit with its items by kind.
type parsed struct {
	servers      []Server
	networks     []Network
	pools        []Pool
	reservations []Reservation
	classes      []Class
	subclasses   []Subclass
	macPools     []MACPool
	macs         []MACAddress
	options      map[int64][]Option
	services     map[int64][]Service
	pairs        []Pair
	zones        []Zone
	orders       []Order
}

// Compile compiles content. It uses the unchanged units of previous content, which may be nil. The errors name the unit.
func Compile(units Units, previous *Content) (*Content, error) {
	c := &Content{Pairs: map[int64]Pair{}, networks: map[int64]*network{}, byPrefix: map[netip.Prefix]*network{},
		shared: map[int64][]*network{}, macs: map[string]member{}, units: map[string]compiled{}}
	for id, one := range units {
		if previous != nil && previous.units[id].hash == one.Hash {
			c.units[id] = previous.units[id]
			continue
		}
		p, err := parseRecords(one)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
		c.units[id] = compiled{hash: one.Hash, unit: p}
	}
	if len(units) == 0 {
		c.scope4, c.scope6 = newScope(nil, nil, nil), newScope(nil, nil, nil)
		return c, nil
	}
	if err := c.compileServer(); err != nil {
		return nil, fmt.Errorf("%s: %w", ServerUnit, err)
	}
	for _, id := range slices.Sorted(maps.Keys(units)) {
		prefix, number, err := parseUnit(id)
		p := c.units[id].unit
		switch {
		case err != nil || prefix == ServerUnit:
		case prefix == networkPrefix:
			err = c.compileNetwork(number, p)
		case prefix == classPrefix:
			err = c.compileClass(number, p)
		case prefix == macPoolPrefix:
			err = c.compileMACPool(number, p)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
	}
	slices.SortFunc(c.classes, func(a, b *class) int { return cmp.Compare(a.ID, b.ID) })
	c.known = knownServers(c.Server, c.Pairs)
	c.indexPrefixes()
	return c, nil
}

// parseRecords returns the items of a unit by kind.
func parseRecords(u *Unit) (*parsed, error) {
	p := &parsed{options: map[int64][]Option{}, services: map[int64][]Service{}}
	for _, r := range u.Records {
		x, err := Decode(r)
		if err != nil {
			return nil, err
		}
		switch x := x.(type) {
		case Server:
			p.servers = append(p.servers, x)
		case Network:
			p.networks = append(p.networks, x)
		case Pool:
			p.pools = append(p.pools, x)
		case Reservation:
			p.reservations = append(p.reservations, x)
		case Class:
			p.classes = append(p.classes, x)
		case Subclass:
			p.subclasses = append(p.subclasses, x)
		case MACPool:
			p.macPools = append(p.macPools, x)
		case MACAddress:
			p.macs = append(p.macs, x)
		case Option:
			p.options[x.At] = append(p.options[x.At], x)
		case Service:
			p.services[x.At] = append(p.services[x.At], x)
		case Pair:
			p.pairs = append(p.pairs, x)
		case Zone:
			p.zones = append(p.zones, x)
		case Order:
			p.orders = append(p.orders, x)
		}
	}
	return p, nil
}

// checkKinds returns an error if the unit contains items of other kinds than allowed, which would have no effect.
func (p *parsed) checkKinds(allowed ...string) error {
	for kind, n := range map[string]int{"server": len(p.servers), "network": len(p.networks), "pool": len(p.pools),
		"reservation": len(p.reservations), "class": len(p.classes), "subclass": len(p.subclasses), "MAC pool": len(p.macPools),
		"MAC address": len(p.macs), "pair": len(p.pairs), "zone": len(p.zones), "order": len(p.orders)} {
		if n > 0 && !slices.Contains(allowed, kind) {
			return fmt.Errorf("the unit contains a %s, which has no effect there", kind)
		}
	}
	return nil
}

// scope returns the options and service options at an object of the unit; nil if there are none. It adds the object to used.
func (p *parsed) scope(at int64, used map[int64]bool) *scope {
	used[at] = true
	if len(p.options[at])+len(p.services[at]) == 0 {
		return nil
	}
	return newScope(nil, p.options[at], p.services[at])
}

// checkUsed returns an error if an option is at an object that does not exist.
func (p *parsed) checkUsed(used map[int64]bool) error {
	for at := range p.options {
		if !used[at] {
			return fmt.Errorf("the option %s is at the object %d, which does not exist", p.options[at][0].Name, at)
		}
	}
	for at := range p.services {
		if !used[at] {
			return fmt.Errorf("the service option %s is at the object %d, which does not exist", p.services[at][0].Name, at)
		}
	}
	return nil
}

func (c *Content) compileServer() error {
	p := c.units[ServerUnit].unit
	if p == nil || len(p.servers) != 1 {
		return errors.New("there must be one record of the server")
	}
	c.Server, c.Zones = p.servers[0], p.zones
	for _, one := range p.pairs {
		c.Pairs[one.ID] = one
	}
	c.scope4 = newScope(nil, p.options[0], p.services[0])
	c.compileServer6(p)
	if err := p.checkUsed(map[int64]bool{0: true}); err != nil {
		return err
	}
	return p.checkKinds("server", "pair", "zone")
}

func (c *Content) compileNetwork(id int64, p *parsed) error {
	if len(p.networks) != 1 || p.networks[0].ID != id {
		return errors.New("there must be one record of the network")
	}
	n := &network{Network: p.networks[0], byAddress: map[netip.Addr][]*reservation{}, byMAC: map[string]*reservation{},
		byClientID: map[string]*reservation{}, orders: p.orders}
	used := map[int64]bool{0: true}
	n.scope = newScope(c.scope4, p.options[0], p.services[0])
	n.scope6 = newScope6(c.scope6, p.options[0], p.services[0])
	if _, ok := c.Pairs[n.Pair]; n.Pair != 0 && !ok {
		return fmt.Errorf("the pair %d does not exist", n.Pair)
	}
	for _, one := range p.reservations {
		r := &reservation{Reservation: one, network: n, own: p.scope(one.ID, used)}
		add := n.reserve
		if !n.Prefix.Addr().Is4() {
			add = func(r *reservation) error { return n.addReservation6(r, p) }
		}
		if err := add(r); err != nil {
			return err
		}
	}
	for _, one := range p.pools {
		used[one.ID] = true
		x := &pool{Pool: one, network: n, scope: newScope(n.scope, p.options[one.ID], p.services[one.ID]),
			scope6: newScope6(n.scope6, p.options[one.ID], p.services[one.ID])}
		for _, i := range one.Ranges {
			if !n.Prefix.Contains(i.First) || !n.Prefix.Contains(i.Last) {
				return fmt.Errorf("the range %s is outside of %s", i, n.Prefix)
			}
			x.size += i.size()
		}
		n.pools = append(n.pools, x)
	}
	if err := n.checkPools(); err != nil {
		return err
	}
	if !n.Prefix.Addr().Is4() && len(c.duid) == 0 {
		return errors.New("a network of IPv6 needs a server with a DUID")
	}
	n.measurePools6()
	if c.byPrefix[n.Prefix] != nil {
		return fmt.Errorf("the prefix %s is served twice, also as network %d", n.Prefix, c.byPrefix[n.Prefix].ID)
	}
	c.networks[id], c.byPrefix[n.Prefix] = n, n
	if n.Shared != 0 {
		c.shared[n.Shared] = append(c.shared[n.Shared], n)
	}
	return errors.Join(p.checkUsed(used), p.checkKinds("network", "pool", "reservation", "order"))
}

// reserve adds a reservation.
func (n *network) reserve(r *reservation) error {
	if !n.Prefix.Contains(r.Address) {
		return fmt.Errorf("the reserved address %s is outside of %s", r.Address, n.Prefix)
	}
	for key, all := range map[string]map[string]*reservation{string(r.MAC): n.byMAC, string(r.ClientID): n.byClientID} {
		if key == "" {
			continue
		}
		if other := all[key]; other != nil {
			return fmt.Errorf("the client %x has two reservations, %s and %s", key, other.Address, r.Address)
		}
	}
	if len(r.MAC) > 0 {
		n.byMAC[string(r.MAC)] = r
	}
	if len(r.ClientID) > 0 {
		n.byClientID[string(r.ClientID)] = r
	}
	n.byAddress[r.Address] = append(n.byAddress[r.Address], r)
	return nil
}

// checkPools sorts the pools by their first address and returns an error if two overlap.
func (n *network) checkPools() error {
	type owned struct {
		Interval
		pool *pool
	}
	var all []owned
	for _, p := range n.pools {
		for _, i := range p.Ranges {
			all = append(all, owned{i, p})
		}
	}
	slices.SortFunc(all, func(a, b owned) int { return a.First.Compare(b.First) })
	for i := range all {
		if i > 0 && !all[i-1].Last.Less(all[i].First) {
			return fmt.Errorf("the ranges %d and %d overlap at %s", all[i-1].pool.ID, all[i].pool.ID, all[i].First)
		}
	}
	slices.SortFunc(n.pools, func(a, b *pool) int { return cmp.Compare(a.ID, b.ID) })
	return nil
}

func (c *Content) compileClass(id int64, p *parsed) error {
	if len(p.classes) != 1 || p.classes[0].ID != id {
		return errors.New("there must be one record of the class")
	}
	used := map[int64]bool{}
	x := &class{Class: p.classes[0], own: p.scope(0, used), subclasses: map[string]*subclass{}}
	if x.If != nil && len(p.subclasses) > 0 {
		return errors.New("a class with a condition has no subclasses")
	}
	for _, one := range p.subclasses {
		if x.subclasses[string(one.Value)] != nil {
			return fmt.Errorf("the value %x has two subclasses", one.Value)
		}
		x.subclasses[string(one.Value)] = &subclass{Subclass: one, own: p.scope(one.ID, used)}
	}
	c.classes = append(c.classes, x)
	return errors.Join(p.checkUsed(used), p.checkKinds("class", "subclass"))
}

func (c *Content) compileMACPool(id int64, p *parsed) error {
	if len(p.macPools) > 1 || id != 0 && (len(p.macPools) != 1 || p.macPools[0].ID != id) || id == 0 && len(p.macPools) > 0 {
		return errors.New("there must be one record of the pool")
	}
	used := map[int64]bool{}
	var x *macPool
	if id != 0 {
		x = &macPool{MACPool: p.macPools[0], own: p.scope(0, used)}
	}
	for _, one := range p.macs {
		if other, ok := c.macs[string(one.MAC)]; ok {
			return fmt.Errorf("the MAC address %x is listed twice, as %d and %d", []byte(one.MAC), other.ID, one.ID)
		}
		c.macs[string(one.MAC)] = member{MACAddress: one, pool: x, own: p.scope(one.ID, used)}
	}
	return errors.Join(p.checkUsed(used), p.checkKinds("MAC pool", "MAC address"))
}

// indexPrefixes lists the prefix lengths in use.
func (c *Content) indexPrefixes() {
	seen := map[int]bool{}
	for p := range c.byPrefix {
		seen[p.Bits()] = true
	}
	c.lengths = slices.Sorted(maps.Keys(seen))
	slices.Reverse(c.lengths)
	for _, all := range c.shared {
		slices.SortFunc(all, func(a, b *network) int { return cmp.Compare(a.ID, b.ID) })
	}
}

// find returns the most specific network that contains an address; nil if there is none.
func (c *Content) find(a netip.Addr) *network {
	for _, bits := range c.lengths {
		p, err := a.Prefix(bits)
		if err != nil {
			continue
		}
		if n := c.byPrefix[p]; n != nil {
			return n
		}
	}
	return nil
}

// optionKey identifies an option at an object.
type optionKey struct {
	code   uint16
	vendor string
}

func keyOf(o *Option) optionKey { return optionKey{o.Code, o.Vendor} }

// setting is a service option with its decoded value.
type setting struct {
	Service
	number  uint32
	flag    bool
	text    string
	address netip.Addr
	ids     []int64
	texts   []string
}

// scope is the set of options of DHCPv4 in effect at an object.
type scope struct {
	options  map[optionKey]*Option
	services map[string]*setting
}

// newScope returns the options of DHCPv4 of an outer scope, replaced by more specific ones. It returns the outer scope itself if there are
// none.
func newScope(outer *scope, options []Option, services []Service) *scope {
	options = slices.DeleteFunc(slices.Clone(options), func(o Option) bool { return o.V6 })
	services = slices.DeleteFunc(slices.Clone(services), func(s Service) bool { return s.V6 })
	return nestScope(outer, options, services)
}

// newScope6 returns the options of DHCPv6, as newScope those of DHCPv4.
func newScope6(outer *scope, options []Option, services []Service) *scope {
	options = slices.DeleteFunc(slices.Clone(options), func(o Option) bool { return !o.V6 })
	services = slices.DeleteFunc(slices.Clone(services), func(s Service) bool { return !s.V6 })
	return nestScope(outer, options, services)
}

// nestScope returns an outer scope with more specific options.
func nestScope(outer *scope, options []Option, services []Service) *scope {
	if outer != nil && len(options)+len(services) == 0 {
		return outer
	}
	s := &scope{options: map[optionKey]*Option{}, services: map[string]*setting{}}
	if outer != nil {
		maps.Copy(s.options, outer.options)
		maps.Copy(s.services, outer.services)
	}
	for i := range options {
		s.options[keyOf(&options[i])] = &options[i]
	}
	for _, one := range services {
		s.services[one.Name] = newSetting(one)
	}
	return s
}

// newSetting decodes the value of a service option, which check has examined.
func newSetting(x Service) *setting {
	s := &setting{Service: x}
	var into any
	switch o, _ := FindService(x.Name, x.V6); o.Value {
	case Boolean:
		into = &s.flag
	case Number:
		into = &s.number
	case Text:
		into = &s.text
	case Address:
		into = &s.address
	case IDList:
		into = &s.ids
	case Texts:
		into = &s.texts
	}
	if err := json.Unmarshal(x.Value, into); err != nil {
		panic(fmt.Sprintf("the service option %s was not checked: %v", x.Name, err))
	}
	return s
}
