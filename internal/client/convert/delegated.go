package convert

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// The service options of ranges that delegate prefixes, and of networks on one link.
const (
	delegatedLength = "delegated-prefix-length"
	sharedNetwork   = "shared-network"
)

// maxDelegated is the longest prefix that a range delegates.
const maxDelegated = 64

// noReserved is the reason for prefixes that are reserved.
const noReserved = "a prefix cannot be reserved for a client"

// delegation is a list of prefixes for the clients of a network: from the prefix of low to that of high.
type delegation struct {
	low, high netip.Addr
	length    int
	// within is the network of the range if it differs from the network of the clients.
	within netip.Prefix
}

// delegate adds a range that delegates prefixes to the clients of network p, which has the settings own. A range outside of p is in a
// network of its own with the same settings, and both are on one link.
func (d *Document) delegate(p netip.Prefix, one delegation, own *settings) error {
	if one.length < 1 || one.length > maxDelegated {
		return fmt.Errorf("prefixes of the length %d cannot be delegated: it must be 1 to %d", one.length, maxDelegated)
	}
	low, high := netip.PrefixFrom(one.low, one.length).Masked().Addr(), lastAddress(netip.PrefixFrom(one.high, one.length))
	if !low.Is6() || high.Less(low) {
		return fmt.Errorf("%s to %s is not a list of prefixes", one.low, one.high)
	}
	if !p.Contains(low) || !p.Contains(high) {
		if !one.within.Contains(low) || !one.within.Contains(high) || one.within.Overlaps(p) {
			return fmt.Errorf("%s-%s is neither inside nor outside of the network %v", low, high, p)
		}
		link := "link " + p.String()
		if name := d.links[p]; name != "" {
			link = name
		} else if name := d.links[one.within]; name != "" {
			link = name
		}
		d.join(p, link)
		if d.links[one.within] == "" {
			d.network(one.within, "", "")
			d.emit("networks/"+one.within.String(), own, true)
		}
		d.join(one.within, link)
	}
	text := low.String() + "-" + high.String()
	d.add(Resource{"type": "IPv6DHCPRange", "range": text})
	d.emit("ranges/"+text, &settings{[]setting{{d.rowName, true, delegatedLength, one.length}}}, true)
	return nil
}

// join puts an IPv6 network on a link.
func (d *Document) join(p netip.Prefix, link string) {
	switch d.links[p] {
	case link:
	case "":
		if d.links == nil {
			d.links = map[netip.Prefix]string{}
		}
		d.links[p] = link
		d.emit("networks/"+p.String(), &settings{[]setting{{d.rowName, true, sharedNetwork, link}}}, true)
	default:
		d.leave("prefixes of %v, which the networks of two links would delegate", p)
	}
}

// prefixes reads the delegated prefixes of a subnet: "prefix6 LOW HIGH /BITS".
func (d *dhcpd) prefixes(s statement, p netip.Prefix, at *dhcpdScope) error {
	low, err := netip.ParseAddr(s.word(1))
	high, e := netip.ParseAddr(s.word(2))
	length, wrong := strconv.Atoi(strings.TrimPrefix(strings.Join(s.words[min(3, len(s.words)):], ""), "/"))
	if err != nil || e != nil || wrong != nil {
		return fmt.Errorf("line %d: prefixes are written as prefix6 LOW HIGH /LENGTH", s.line)
	}
	within := netip.PrefixFrom(low, min(max(length, 1), maxDelegated)).Masked()
	for within.Bits() > 1 && !within.Contains(high) {
		within = netip.PrefixFrom(low, within.Bits()-1).Masked()
	}
	own := at
	for own.kind == "pool" {
		own = own.above
	}
	return d.delegate(p, delegation{low, high, length, within}, d.networkSettings(own, ""))
}

// delegatedPrefixes reads a pool of prefixes of a subnet p with the settings own.
func (k *kea) delegatedPrefixes(pool keaPrefixPool, p netip.Prefix, own *settings) error {
	base, err := netip.ParseAddr(pool.Prefix)
	bits, e := strconv.Atoi(string(pool.Length))
	length, wrong := strconv.Atoi(string(pool.Delegated))
	if err != nil || e != nil || wrong != nil || bits < 1 || bits > length {
		return fmt.Errorf("the prefix %q cannot be delegated with the lengths %s and %s", pool.Prefix, pool.Length, pool.Delegated)
	}
	within := netip.PrefixFrom(base, bits).Masked()
	return k.delegate(p, delegation{within.Addr(), lastAddress(within), length, within}, own)
}
