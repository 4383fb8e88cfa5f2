package convert

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"unicode"

	"portolan/internal/base/space"
)

// Dhcpd converts a configuration of ISC dhcpd (dhcpd.conf(5)): subnets with their ranges and routers, and hosts with fixed addresses.
func Dhcpd(raw []byte) (*Document, error) {
	all, err := statements(text(raw))
	if err != nil {
		return nil, err
	}
	d := &dhcpd{Document: &Document{unsaid: []string{"name"}}, subnets: map[netip.Prefix]bool{}}
	if err := d.block(all, ""); err != nil {
		return nil, err
	}
	for _, s := range d.ranges { // ranges of pools outside the subnets
		text, _, _ := strings.Cut(s.word(len(s.words)-1), "/")
		a, err := netip.ParseAddr(text)
		p, found := holding(d.subnets, a)
		if err != nil || !found {
			d.skipStatement(s, errors.New("the range is not in any subnet"))
			continue
		}
		d.at = fmt.Sprintf("line %d (%s)", s.line, strings.Join(s.words, " "))
		d.skipStatement(s, d.span(s, p))
	}
	return d.Document, nil
}

type dhcpd struct {
	*Document
	subnets map[netip.Prefix]bool
	// around are the routers of the enclosing blocks.
	around []string
	// ranges are the range statements outside of subnets.
	ranges []statement
}

// block reads statements. shared is the name of the enclosing shared network. Routers of the block apply to the subnets in it that do not
// set their own.
func (d *dhcpd) block(all []statement, shared string) error {
	before := d.around
	defer func() { d.around = before }()
	d.around = d.lastRouters(all, d.around)
	for _, s := range all {
		var err error
		d.at = fmt.Sprintf("line %d (%s)", s.line, strings.Join(s.words[:min(len(s.words), 4)], " "))
		switch {
		case s.startsWith("option", "routers"):
		case s.startsWith("shared-network"):
			err = d.block(s.block, s.word(1))
		case s.startsWith("group"), s.startsWith("pool"), s.startsWith("pool6"), s.startsWith("class"), s.startsWith("subclass"):
			err = d.block(s.block, shared)
		case s.startsWith("subnet"):
			if err = d.subnet(s, shared); err != nil {
				d.hosts(s)
			}
		case s.startsWith("subnet6"):
			if err = d.subnet6(s, shared); err != nil {
				d.hosts(s)
			}
		case s.startsWith("host"):
			d.host(s)
		case s.startsWith("include"):
			d.skip("the file %s is not read: put its text in the place of the statement", s.word(1))
		case s.startsWith("range"), s.startsWith("range6"):
			d.ranges = append(d.ranges, s)
		case s.startsWith("option"):
			d.leave("the option %s: give it as a deployment option", s.word(1))
		case s.describes(): // for example a condition
			d.skip("nothing in the block %s is imported: put hosts and subnets outside of it", s.word(0))
		default:
			d.leave("the statement %s", s.word(0))
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
			d.at = fmt.Sprintf("line %d", s.line)
			d.leave("an earlier option routers of the same block: the last one counts")
			d.at = ""
		}
		otherwise, found = s.words[2:], true
	}
	return otherwise
}

// hosts reads the hosts inside a subnet that was skipped. It also skips the ranges of the subnet.
func (d *dhcpd) hosts(s statement) {
	for _, one := range s.block {
		d.at = fmt.Sprintf("line %d (%s)", one.line, strings.Join(one.words[:min(len(one.words), 4)], " "))
		switch {
		case one.startsWith("host"):
			d.host(one)
		case one.startsWith("range"), one.startsWith("range6"):
			d.skip("its subnet is not imported: correct the subnet")
		case one.hasBlock:
			d.hosts(one)
		default:
			d.leave("the statement %s of subnets that are skipped", one.word(0))
		}
		d.at = ""
	}
}

// skipStatement skips a statement if err is not nil.
func (d *dhcpd) skipStatement(s statement, err error) {
	if err != nil {
		d.at = fmt.Sprintf("line %d (%s)", s.line, strings.Join(s.words[:min(len(s.words), 4)], " "))
		d.skip("%s: correct the statement", strings.TrimPrefix(err.Error(), fmt.Sprintf("line %d: ", s.line)))
	}
	d.at = ""
}

// subnet reads a subnet and its contents.
func (d *dhcpd) subnet(s statement, shared string) error {
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
	return d.readSubnet(s, p, shared)
}

func (d *dhcpd) subnet6(s statement, shared string) error {
	p, err := netip.ParsePrefix(s.word(1))
	if err != nil || p.Masked() != p {
		return fmt.Errorf("line %d: subnet6 %s: not a prefix", s.line, s.word(1))
	}
	return d.readSubnet(s, p, shared)
}

// readSubnet reads the contents of a subnet, including its pools.
func (d *dhcpd) readSubnet(s statement, p netip.Prefix, shared string) error {
	own := d.lastRouters(s.block, nil)
	d.at = fmt.Sprintf("line %d (%s)", s.line, strings.Join(s.words[:min(len(s.words), 4)], " "))
	d.network(p, shared, d.router(p, own, d.around))
	d.subnets[p] = true
	var rest []statement
	for _, one := range s.block {
		inner := []statement{one}
		if one.startsWith("pool") || one.startsWith("pool6") {
			inner = one.block
		}
		for _, x := range inner {
			switch {
			case x.startsWith("range"), x.startsWith("range6"):
				d.at = fmt.Sprintf("line %d (%s)", x.line, strings.Join(x.words, " "))
				d.skipStatement(x, d.span(x, p))
			case x.startsWith("option", "routers"):
				if one.hasBlock {
					d.at = fmt.Sprintf("line %d", x.line)
					d.leave("the option routers of a pool: give it as a deployment option")
				}
			default:
				rest = append(rest, x)
			}
		}
	}
	return d.block(rest, shared)
}

// router returns the first router of a subnet that is a host address in it. It uses own, or around if own is empty. It returns an empty
// text if no router matches.
func (d *Document) router(p netip.Prefix, own, around []string) string {
	in := func(text string) bool {
		a, err := netip.ParseAddr(strings.TrimSpace(text))
		return err == nil && p.Contains(a) && !isEdge(p, a)
	}
	if len(own) == 0 {
		if i := slices.IndexFunc(around, in); i >= 0 {
			return strings.TrimSpace(around[i])
		}
		return ""
	}
	i := slices.IndexFunc(own, in)
	if i < 0 {
		d.leave("the router %s of %v, which is not a host address of it", strings.Join(own, ", "), p)
		return ""
	}
	if len(own) > 1 {
		d.leave("further routers of %v", p)
	}
	return strings.TrimSpace(own[i])
}

// keptDUID parses a DUID: hexadecimal digits (space.KeptDUID), optionally with the prefix 0x, or Kea's notation as a quoted text.
func keptDUID(text string) (string, error) {
	text = strings.TrimSpace(text)
	if n := len(text); n > 2 && text[0] == '\'' && text[n-1] == '\'' {
		text = hex.EncodeToString([]byte(text[1 : n-1]))
	}
	return space.KeptDUID(strings.TrimPrefix(text, "0x"))
}

// span reads the DHCP range of a range statement.
func (d *dhcpd) span(s statement, p netip.Prefix) error {
	words := s.words[1:]
	if len(words) > 0 && strings.EqualFold(words[0], "dynamic-bootp") {
		words = words[1:]
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
	return d.dhcpRange(s.line, words[0], words[1], p)
}

// dhcpRange adds a DHCP range of a network.
func (d *Document) dhcpRange(line int, low, high string, p netip.Prefix) error {
	from, err := netip.ParseAddr(low)
	to, e := netip.ParseAddr(high)
	if err != nil || e != nil || to.Less(from) || !p.Contains(from) || !p.Contains(to) {
		return fmt.Errorf("line %d: %s to %s is not a range of %v", line, low, high, p)
	}
	if isEdge(p, from) && from != to {
		d.leave("%v of a pool, which no host of %v has", from, p)
		from = from.Next()
	}
	if isEdge(p, to) && from != to {
		d.leave("%v of a pool, which no host of %v has", to, p)
		to = to.Prev()
	}
	d.add(Resource{"type": family(from) + "DHCPRange", "range": from.String() + "-" + to.String()})
	return nil
}

// host reads a host with its fixed addresses.
func (d *dhcpd) host(s statement) {
	mac, duid, name := "", "", s.word(1)
	var addresses []string
	for _, one := range s.block {
		switch {
		case one.startsWith("hardware", "ethernet") && mac != "":
			d.skip("it has the hardware addresses %s and %s: make two hosts of it", mac, one.word(2))
			return
		case one.startsWith("hardware", "ethernet"):
			mac = one.word(2)
		case one.startsWith("fixed-address"), one.startsWith("fixed-address6"):
			addresses = append(addresses, one.words[1:]...)
		case one.startsWith("option", "host-name"):
			name = one.word(2)
		case one.startsWith("host-identifier", "option", "dhcp6.client-id"):
			duid = one.word(3)
		default:
			d.leave("the statement %s of hosts", one.word(0))
		}
	}
	if len(addresses) == 0 {
		d.omit("the host has no fixed address: give it one by fixed-address to have it imported")
		return
	}
	for _, address := range addresses { // a host may have one address per subnet
		if err := d.reservation(address, mac, duid, name); err != nil {
			d.skip("%v: correct the statement", err)
		}
	}
}

// reservation adds an address that is reserved for a client. The client is identified by its hardware address or, in IPv6, by its DUID.
// Both may be empty.
func (d *Document) reservation(address, mac, duid, name string) error {
	a, err := netip.ParseAddr(address)
	if err != nil && strings.ContainsFunc(address, unicode.IsLetter) && !strings.Contains(address, ":") {
		return fmt.Errorf("%s is a name, which the server looks up, and no address", address)
	}
	if err != nil {
		return fmt.Errorf("%q is not an IP address", address)
	}
	if mac != "" && !hardware(mac) {
		return fmt.Errorf("%q is not a hardware address", mac)
	}
	if mac == "" && a.Is6() && duid != "" {
		if duid, err = keptDUID(duid); err != nil {
			return err
		}
	}
	if mac == "" && a.Is4() && duid != "" {
		d.leave("DUIDs of clients of IPv4: what they are known by; the addresses are %s", reserved)
	}
	r := Resource{"address": a.String(), "state": "DHCP_RESERVED", "macAddress": mac, "name": name}
	switch {
	case mac != "":
	case a.Is6() && duid != "":
		r["reservedUsing"], r["clientIdentifier"] = "CLIENT_DUID", map[string]string{"duid": duid}
	default:
		r["state"] = reserved
	}
	d.address(a, r)
	return nil
}
