package convert

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// Dhcpd converts a configuration of ISC dhcpd (dhcpd.conf(5)): subnets with their ranges, hosts, the options of all levels, classes, the
// permissions of pools, failover peers and zones for updates of DNS. include returns the content of an included file; if it is nil,
// included files are skipped.
func Dhcpd(raw []byte, include func(path string) ([]byte, error)) (*Document, error) {
	all, err := statements(text(raw))
	if err != nil {
		return nil, err
	}
	d := &dhcpd{Document: &Document{unsaid: []string{"name"}, shared: map[string]string{}}, subnets: map[netip.Prefix]bool{},
		keys: map[string]statement{}, peers: map[string]bool{}, include: include}
	d.rowName = ""
	all = d.included(all, 0)
	d.v6 = mentions(all, "subnet6") && !mentions(all, "subnet")
	for v6, table := range map[bool]**optionTable{false: &d.options4, true: &d.options6} {
		if *table, err = readOptions(v6); err != nil {
			return nil, err
		}
	}
	d.spaces, d.sent = map[string]map[string]subOption{}, map[string]string{}
	d.reserved = map[netip.Addr]bool{}
	d.scanStatements(all)
	d.define(all)
	d.knowsHosts = mentionsKnown(all)
	top := &dhcpdScope{own: &settings{}, subs: map[string]map[int][]byte{}}
	if err := d.block(all, top); err != nil {
		return nil, err
	}
	for _, one := range d.ranges { // ranges of pools outside the subnets
		text, _, _ := strings.Cut(one.word(len(one.words)-1), "/")
		a, err := netip.ParseAddr(text)
		p, found := holding(d.subnets, a)
		if err != nil || !found {
			d.skipStatement(one.statement, errors.New("the range is not in any subnet"))
			continue
		}
		d.rowName = fmt.Sprintf("line %d (%s)", one.line, strings.Join(one.words, " "))
		d.skipStatement(one.statement, d.span(one.statement, p, one.scope))
	}
	d.finish(top)
	return d.Document, nil
}

type dhcpd struct {
	*Document
	// v6 reports that the file is one of DHCPv6.
	v6                 bool
	options4, options6 *optionTable
	spaces             map[string]map[string]subOption
	// sent are the option spaces that are sent, with the statement that chooses each: vendor-option-space or site-option-space.
	sent    map[string]string
	subnets map[netip.Prefix]bool
	// around are the routers of the enclosing blocks.
	around []string
	// ranges are the range statements outside of subnets.
	ranges []rangeStatement
	// knowsHosts reports that permissions distinguish known clients. macs are the hardware addresses of all hosts.
	knowsHosts bool
	macs       []string
	keys       map[string]statement
	peers      map[string]bool
	zones      []statement
	local      []localCondition
	conditions int
	include    func(path string) ([]byte, error)
	// scopes are the subnets and their pools. limited are the hosts and classes with lease times, which finish adds.
	scopes  []*dhcpdScope
	limited []limitedLevel
}

// rangeStatement is a range with the pool that it is in.
type rangeStatement struct {
	statement
	scope *dhcpdScope
}

// dhcpdScope is a block of statements.
type dhcpdScope struct {
	// kind is the first word of the block; empty for the file.
	kind  string
	above *dhcpdScope
	own   *settings
	// shared is the name of the enclosing shared network.
	shared string
	// subs are options inside of another one, by space and code. space is the one that option 43 is made of.
	subs  map[string]map[int][]byte
	space string
	// class is the expression of the enclosing class.
	class *dhcpdClass
	// standard is the default-lease-time of the block as the file has it; 0 if it has none. subnet is the prefix of a subnet.
	standard int
	subnet   netip.Prefix
}

// newBlock returns the scope of a block inside of another one.
func (at *dhcpdScope) newBlock(kind string) *dhcpdScope {
	return &dhcpdScope{kind: kind, above: at, own: &settings{}, shared: at.shared, subs: map[string]map[int][]byte{}, class: at.class}
}

// flat returns the settings of a scope with those of the enclosing groups, shared networks and pools, which are no objects of Portolan.
func (at *dhcpdScope) flat() *settings {
	all := at.own
	for above := at.above; above != nil && slices.Contains([]string{"group", "shared-network"}, above.kind); above = above.above {
		all = all.mergeAbove(above.own)
	}
	return all
}

// maxIncluded is the maximum depth of included files.
const maxIncluded = 10

// included replaces include statements by the statements of their files. A file that is not there is skipped with a line.
func (d *dhcpd) included(all []statement, depth int) (whole []statement) {
	for _, s := range all {
		if !s.startsWith("include") {
			s.block = d.included(s.block, depth)
			whole = append(whole, s)
			continue
		}
		d.rowName = s.place()
		if d.include == nil || depth == maxIncluded {
			d.skip("the file %s is not read: replace the statement with the text of the file", s.word(1))
			continue
		}
		raw, err := d.include(s.word(1))
		if err != nil {
			d.skip("the file %s is not read: %v", s.word(1), err)
			continue
		}
		inner, err := statements(text(raw))
		if err != nil {
			d.skip("the file %s is not read: %v", s.word(1), err)
			continue
		}
		whole = append(whole, d.included(inner, depth+1)...)
	}
	d.rowName = ""
	return whole
}

// place returns the line and the first words of a statement.
func (s statement) place() string {
	return fmt.Sprintf("line %d (%s)", s.line, strings.Join(s.words[:min(len(s.words), 4)], " "))
}

// mentions reports whether a statement with a first word is in the blocks.
func mentions(all []statement, word string) bool {
	return slices.ContainsFunc(all, func(s statement) bool { return s.startsWith(word) || mentions(s.block, word) })
}

// block reads statements. Routers of the block apply to the subnets in it that do not set their own.
func (d *dhcpd) block(all []statement, at *dhcpdScope) error {
	before := d.around
	defer func() { d.around = before }()
	d.around = d.lastRouters(all, d.around)
	var rest []statement
	for _, s := range all { // the options of the block apply to all blocks inside of it
		d.rowName = s.place()
		if !d.setting(s, at) {
			rest = append(rest, s)
		}
	}
	at.limitLease()
	for i, s := range rest {
		var err error
		d.rowName = s.place()
		switch {
		case s.startsWith("shared-network"):
			inner := at.newBlock("shared-network")
			inner.shared = s.word(1)
			err = d.block(s.block, inner)
		case s.startsWith("group"):
			err = d.block(s.block, at.newBlock("group"))
		case s.startsWith("pool"), s.startsWith("pool6"):
			err = d.pool(s, at, netip.Prefix{})
		case s.startsWith("class"):
			d.class(s, at)
		case s.startsWith("subclass"):
			d.subclass(s, at)
		case s.startsWith("subnet"):
			if err = d.subnet(s, at); err != nil {
				d.hosts(s, at)
			}
		case s.startsWith("subnet6"):
			if err = d.subnet6(s, at); err != nil {
				d.hosts(s, at)
			}
		case s.startsWith("host"):
			d.host(s, at)
		case s.startsWith("range"), s.startsWith("range6"):
			d.ranges = append(d.ranges, rangeStatement{s, at})
		case s.startsWith("prefix6"):
			d.skip("the prefixes are in no subnet: move the statement into the subnet of their clients")
		case s.startsWith("if"):
			d.conditional(chainOf(rest[i:]), at)
		case s.startsWith("elsif"), s.startsWith("else"): // read with their if
		default:
			d.other(s)
		}
		d.skipStatement(s, err)
	}
	return nil
}

// describes reports whether a block contains hosts, subnets or ranges.
func (s statement) describes() bool {
	return slices.ContainsFunc(s.block, func(one statement) bool {
		return one.describes() || slices.ContainsFunc([]string{"host", "subnet", "subnet6", "range", "range6"},
			func(word string) bool { return one.startsWith(word) })
	})
}

// lastRouters returns the routers of the last option routers in a block, which is the effective one in dhcpd. It returns otherwise if there
// is none.
func (d *dhcpd) lastRouters(all []statement, otherwise []string) []string {
	found := false
	for _, s := range all {
		if !s.startsWith("option", "routers") {
			continue
		}
		if found {
			d.rowName = fmt.Sprintf("line %d", s.line)
			d.leave("an earlier option routers of the same block: the last one counts")
			d.rowName = ""
		}
		otherwise, found = s.words[2:], true
	}
	return otherwise
}

// hosts reads the hosts inside a subnet that was skipped. It also skips the ranges of the subnet.
func (d *dhcpd) hosts(s statement, at *dhcpdScope) {
	for _, one := range s.block {
		d.rowName = one.place()
		switch {
		case one.startsWith("host"):
			d.host(one, at)
		case one.startsWith("range"), one.startsWith("range6"):
			d.skip("its subnet is not imported: correct the subnet")
		case one.hasBlock:
			d.hosts(one, at)
		default:
			d.leave("the statement %s of subnets that are skipped", one.word(0))
		}
		d.rowName = ""
	}
}

// skipStatement skips a statement if err is not nil.
func (d *dhcpd) skipStatement(s statement, err error) {
	if err != nil {
		d.rowName = s.place()
		d.skip("%s: correct the statement", strings.TrimPrefix(err.Error(), fmt.Sprintf("line %d: ", s.line)))
	}
	d.rowName = ""
}

// subnet reads a subnet and its contents.
func (d *dhcpd) subnet(s statement, at *dhcpdScope) error {
	a, err := netip.ParseAddr(s.word(1))
	mask := net.ParseIP(s.word(3)).To4()
	if err != nil || !a.Is4() || mask == nil || !s.startsWith("subnet", s.word(1), "netmask") {
		return fmt.Errorf("line %d: a subnet is written as subnet ADDRESS netmask MASK", s.line)
	}
	bits, _ := net.IPMask(mask).Size()
	p := netip.PrefixFrom(a, bits)
	if bits == 0 || p.Masked() != p {
		return fmt.Errorf("line %d: %s/%s is not a subnet", s.line, s.word(1), s.word(3))
	}
	return d.readSubnet(s, p, at)
}

func (d *dhcpd) subnet6(s statement, at *dhcpdScope) error {
	p, err := netip.ParsePrefix(s.word(1))
	if err != nil || p.Masked() != p {
		return fmt.Errorf("line %d: subnet6 %s: not a prefix", s.line, s.word(1))
	}
	return d.readSubnet(s, p, at)
}

// readSubnet reads the contents of a subnet, including its pools.
func (d *dhcpd) readSubnet(s statement, p netip.Prefix, above *dhcpdScope) error {
	own := d.lastRouters(s.block, nil)
	at := above.newBlock("subnet")
	var rest []statement
	for _, one := range s.block {
		d.rowName = one.place()
		if !d.setting(one, at) {
			rest = append(rest, one)
		}
	}
	at.limitLease()
	at.subnet, d.scopes = p, append(d.scopes, at)
	d.rowName = s.place()
	gateway := d.router(p, own, d.around)
	d.network(p, at.shared, gateway)
	if at.shared != "" && p.Addr().Is4() {
		d.shared[p.String()] = at.shared
	} else if at.shared != "" {
		d.join(p, at.shared)
	}
	d.subnets[p] = true
	d.emit("networks/"+p.String(), d.networkSettings(at, gateway), p.Addr().Is6())
	var others []statement
	for _, one := range rest {
		d.rowName = one.place()
		switch {
		case one.startsWith("pool"), one.startsWith("pool6"):
			d.skipStatement(one, d.pool(one, at, p))
		case one.startsWith("range"), one.startsWith("range6"):
			d.rowName = fmt.Sprintf("line %d (%s)", one.line, strings.Join(one.words, " "))
			d.skipStatement(one, d.span(one, p, at))
		case one.startsWith("prefix6"):
			d.skipStatement(one, d.prefixes(one, p, at))
		default:
			others = append(others, one)
		}
	}
	return d.block(others, at)
}

// networkSettings returns the settings of a network: those of its subnet and the enclosing blocks. Routers that are the gateway of the
// network are its member gateway, and the mask is that of the network.
func (d *dhcpd) networkSettings(at *dhcpdScope, gateway string) *settings {
	d.encapsulate(at)
	all := &settings{}
	top := at
	for top.above != nil {
		top = top.above
	}
	for _, one := range at.flat().all {
		if !one.service && one.name == routerOption && gateway != "" && !top.own.has(false, routerOption) {
			if list, ok := one.value.([]any); ok && len(list) == 1 && list[0] == gateway {
				continue
			}
		}
		all.put(one)
	}
	whole := all.mergeAbove(top.own)
	style := whole.get(true, "ddns-update-style")
	if style != nil && style != "none" && !whole.has(true, "ddns-domainname") && !whole.has(false, "domain-name") &&
		whole.get(true, ddnsUpdates) != false { // dhcpd registers only names with a domain
		all.put(setting{d.rowName, true, ddnsUpdates, false})
	}
	return all
}

// pool reads a pool of a subnet p, or of a shared network if p is invalid.
func (d *dhcpd) pool(s statement, above *dhcpdScope, p netip.Prefix) error {
	at := above.newBlock("pool")
	var rest []statement
	for _, one := range s.block {
		d.rowName = one.place()
		if !d.setting(one, at) {
			rest = append(rest, one)
		}
	}
	at.limitLease()
	d.scopes = append(d.scopes, at)
	d.encapsulate(at)
	var others []statement
	for _, one := range rest {
		d.rowName = fmt.Sprintf("line %d (%s)", one.line, strings.Join(one.words, " "))
		switch {
		case (one.startsWith("range") || one.startsWith("range6")) && p.IsValid():
			d.skipStatement(one, d.span(one, p, at))
		case one.startsWith("prefix6") && p.IsValid():
			d.skipStatement(one, d.prefixes(one, p, at))
		case one.startsWith("failover", "peer"):
			d.peers[one.word(2)] = true
		default:
			others = append(others, one)
		}
	}
	return d.block(others, at)
}

// span reads the DHCP range of a range statement. at is the pool or the subnet of the range.
func (d *dhcpd) span(s statement, p netip.Prefix, at *dhcpdScope) error {
	words := s.words[1:]
	own := &settings{}
	if at.kind == "pool" {
		own = &settings{slices.Clone(at.own.all)}
	}
	if len(words) > 0 && strings.EqualFold(words[0], "dynamic-bootp") {
		words = words[1:]
		own.put(setting{d.rowName, true, "dynamic-bootp", true})
	}
	if n := len(words); n > 1 && strings.EqualFold(words[n-1], "temporary") {
		d.leave("the range %s of temporary addresses: clients choose those themselves (RFC 8981)", words[0])
		return nil
	}
	if len(words) == 1 && strings.Contains(words[0], "/") {
		part, err := netip.ParsePrefix(words[0])
		if err != nil {
			return fmt.Errorf("line %d: the range %s is not a prefix", s.line, words[0])
		}
		words = []string{part.Masked().Addr().String(), lastAddress(part).String()}
	}
	if len(words) == 1 {
		words = append(words, words[0])
	}
	if len(words) < 2 {
		return fmt.Errorf("line %d: a range requires two addresses", s.line)
	}
	in, err := d.dhcpRange(s.line, words[0], words[1], p)
	if err == nil {
		d.emit("ranges/"+in, own, p.Addr().Is6())
	}
	return err
}
