package convert

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	"portolan/internal/base/naming"
	"portolan/internal/base/space"
)

// Existing are the existing networks or blocks of a manager, with the gateway of each. The gateway is empty if there is none.
type Existing map[netip.Prefix]string

// holding returns the most specific prefix that contains an address.
func holding[V any](networks map[netip.Prefix]V, a netip.Addr) (p netip.Prefix, ok bool) {
	for bits := a.BitLen(); bits >= 0; bits-- {
		if p, err := a.Prefix(bits); err == nil {
			if _, ok := networks[p]; ok {
				return p, true
			}
		}
	}
	return p, false
}

// Settle adapts the resources to the existing networks of the manager (known, which may be empty). If the source gives no
// gateway for an existing network, the gateway is omitted, or marked as cleared if the source can express gateways.
//
// Settle skips a second row with the same range or address, an address that is a gateway or the edge of its network, and a host without any
// usable address. For names outside of networks and invalid host names it creates a GenericRecord if generic is true; otherwise it skips
// them.
func (d *Document) Settle(known Existing, generic bool) {
	own := map[netip.Prefix]Resource{}
	met := map[string]Resource{}
	d.Resources = slices.DeleteFunc(d.Resources, func(r Resource) bool {
		for name, value := range r {
			if text, ok := value.(string); ok && !utf8.ValidString(text) {
				d.skipResource(r, "the %s %q is not valid UTF-8: save the file as UTF-8", name, text)
				return true
			}
		}
		name, _ := r["type"].(string)
		var key string
		switch {
		case strings.HasSuffix(name, "Network"), strings.HasSuffix(name, "Block"), strings.HasSuffix(name, "DHCPRange"):
			key = fmt.Sprint(name, r["range"])
		case strings.HasSuffix(name, "Address"):
			key = fmt.Sprint(r["address"])
		default:
			return false
		}
		if first := met[key]; first != nil {
			d.skipResource(r, "it has the same key as %s: remove one of the two", rowOf(first))
			return true
		}
		met[key] = r
		if p, err := netip.ParsePrefix(fmt.Sprint(r["range"])); err == nil && strings.HasSuffix(name, "Network") {
			own[p] = r
		}
		return false
	})
	d.assignRouters(known, own)
	networks, gateways := map[netip.Prefix]bool{}, map[string]bool{}
	for p, gateway := range known {
		networks[p] = true
		if r := own[p]; !r.has("gateway") { // the source gives no gateway
			switch {
			case r == nil || !p.Addr().Is4(): // IPv6 networks have no gateway
				gateways[gateway] = gateway != ""
			case slices.Contains(d.unsaid, "gateway"):
				gateways[gateway] = gateway != ""
				delete(r, "gateway")
			case !d.isReserved(gateway): // otherwise it is null, also without --empty: the reservation needs the address
				r["gateway"] = cleared{}
			}
		}
	}
	for p, r := range own {
		networks[p] = true
		if r.has("gateway") {
			gateways[fmt.Sprint(r["gateway"])] = true
		}
	}
	isEdge := func(a netip.Addr) bool {
		p, ok := holding(networks, a)
		return ok && isEdge(p, a)
	}
	var further []Resource
	d.Resources = slices.DeleteFunc(d.Resources, func(r Resource) bool {
		text, name := fmt.Sprint(r["address"]), fmt.Sprint(r["type"])
		if name == "HostRecord" {
			return d.settleHost(r, func(a netip.Addr) string {
				if _, in := holding(networks, a); !in && len(networks) > 0 {
					return "it is not in any network: create the network first"
				}
				if isEdge(a) {
					return "it is the first or the last address of its network, which a host cannot use"
				}
				return ""
			}, generic, &further)
		}
		a, err := netip.ParseAddr(text)
		if err != nil || !strings.HasSuffix(name, "Address") {
			return false
		}
		switch {
		case gateways[text] && !r.has("macAddress") && !r.has("name"):
			d.rowName = rowOf(r)
			d.leave("rows of gateways that have no name: they are imported with their networks")
			d.rowName = ""
		case gateways[text]:
			d.skipResource(r, "the address is the gateway of its network, which is imported with the network")
		case isEdge(a):
			d.skipResource(r, "the address is the first or the last of its network, which a host cannot use")
		default:
			return false
		}
		return true
	})
	d.Resources = append(d.Resources, further...)
}

// settleHost removes the addresses that a host cannot have. why returns the reason, or an empty text. It reports whether the host lost all
// its addresses. If generic is true, it appends records for the removed addresses to further; otherwise it skips them.
func (d *Document) settleHost(r Resource, why func(netip.Addr) string, generic bool, further *[]Resource) (gone bool) {
	all, _ := r["addresses"].([]string)
	name := fmt.Sprint(r["absoluteName"])
	wrong := naming.Check(naming.Clean(name), naming.HostName)
	left := slices.DeleteFunc(slices.Clone(all), func(text string) bool {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return false
		}
		reason := why(a)
		if wrong != nil {
			reason = fmt.Sprintf("not a valid host name: %v", wrong)
		}
		switch {
		case reason == "":
			return false
		case generic:
			record := Resource{"type": "GenericRecord", "absoluteName": name, "recordType": recordType(a), "rdata": a.String(), origin: rowOf(r)}
			for _, member := range []string{"view", "ttl"} {
				if r[member] != nil {
					record[member] = r[member]
				}
			}
			*further = append(*further, record)
		default:
			d.skipResource(r, "the name %s of the address %s: %s", name, text, reason)
		}
		return true
	})
	r["addresses"] = left
	return len(left) == 0 && len(all) > 0
}

// recordType returns the DNS record type of an address.
func recordType(a netip.Addr) string {
	if a.Is4() {
		return "A"
	}
	return "AAAA"
}

// assignRouters assigns the gateways in d.routers to the networks that contain them: first those of the document (own), then existing ones
// (known).
func (d *Document) assignRouters(known Existing, own map[netip.Prefix]Resource) {
	for _, one := range d.routers {
		d.rowName = one.row
		a := one.address
		p, ours := holding(own, a)
		at, there := holding(known, a)
		switch {
		case ours && isEdge(p, a) || !ours && there && isEdge(at, a):
			d.skip("the gateway %v is the first or the last address of its network, which a host cannot use: correct the row", a)
		case ours && own[p].has("gateway") && own[p]["gateway"] != a.String():
			d.skip("the network %v already has the gateway %v: a network has only one gateway", p, own[p]["gateway"])
		case ours:
			own[p]["gateway"] = a.String()
		case there:
			r := Resource{"type": family(a) + "Network", "range": at.String(), "gateway": a.String()}
			own[at] = r
			d.add(r)
		default:
			d.skip("the gateway %v is not in any network: create the network first", a)
		}
	}
	d.routers, d.rowName = nil, ""
}

// isEdge reports whether an address cannot be assigned to a host. This is the first address of a network (RFC 4291 section 2.6.1), and in
// IPv4 also the last one (RFC 1122 section 3.2.1.3).
func isEdge(p netip.Prefix, a netip.Addr) bool {
	return p.Bits() < a.BitLen()-1 && (a == p.Masked().Addr() || a.Is4() && a == lastAddress(p))
}

// SkipOutside skips addresses and ranges outside of all networks, both of the document and existing ones (known).
func (d *Document) SkipOutside(known Existing) {
	networks := map[netip.Prefix]bool{}
	for p := range known {
		networks[p] = true
	}
	for _, p := range d.Networks() {
		networks[p] = true
	}
	d.Resources = slices.DeleteFunc(d.Resources, func(r Resource) bool {
		name, _ := r["type"].(string)
		text, _ := r["address"].(string)
		if strings.HasSuffix(name, "DHCPRange") {
			text, _, _ = strings.Cut(fmt.Sprint(r["range"]), "-")
		} else if !strings.HasSuffix(name, "Address") {
			return false
		}
		a, err := netip.ParseAddr(text)
		if err != nil {
			return false
		}
		if _, in := holding(networks, a); in {
			return false
		}
		d.skipResource(r, "%v is not in any network: create the network first", text)
		return true
	})
}

// Networks returns the prefixes of the networks in the document.
func (d *Document) Networks() (all []netip.Prefix) { return d.prefixes("Network") }

// Blocks returns the prefixes of the blocks in the document.
func (d *Document) Blocks() (all []netip.Prefix) { return d.prefixes("Block") }

func (d *Document) prefixes(kind string) (all []netip.Prefix) {
	for _, r := range d.Resources {
		if name, _ := r["type"].(string); strings.HasSuffix(name, kind) {
			if p, err := netip.ParsePrefix(fmt.Sprint(r["range"])); err == nil {
				all = append(all, p)
			}
		}
	}
	return all
}

// private are the private ranges of RFC 1918 section 3. Surround creates them as blocks.
var private = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"),
	netip.MustParsePrefix("192.168.0.0/16")}

// Surround adds blocks for IPv4 networks outside of all blocks, both existing ones (known) and those of the document. A private network
// gets the private range that contains it, any other network a block of its own size. A new configuration already contains blocks for IPv6.
func (d *Document) Surround(known []netip.Prefix) {
	blocks := map[netip.Prefix]bool{}
	for _, b := range append(slices.Clone(known), d.Blocks()...) {
		blocks[b.Masked()] = true
	}
	within := func(p netip.Prefix) bool {
		for bits := p.Bits(); bits >= 0; bits-- {
			if blocks[netip.PrefixFrom(p.Addr(), bits).Masked()] {
				return true
			}
		}
		return false
	}
	for _, p := range d.Networks() {
		if p.Addr().Is6() || within(p) {
			continue
		}
		block := p
		for _, whole := range private {
			if whole.Contains(p.Addr()) && whole.Bits() <= p.Bits() {
				block = whole
			}
		}
		// The block is not in the source, so it does not receive the tag of the import.
		d.add(Resource{"type": family(block.Addr()) + "Block", "range": block.String(), "tag": false})
		blocks[block] = true
	}
}

// RemoveDerivedZones removes derived zones that are below a deployed zone of the view. known are the zones of the view and whether each is
// deployed. A zone that is not deployed may exist only as the parent of another zone.
func (d *Document) RemoveDerivedZones(known map[string]bool) {
	d.Resources = slices.DeleteFunc(d.Resources, func(r Resource) bool {
		name := naming.Key(fmt.Sprint(r["absoluteName"]))
		_, there := known[name]
		if r["type"] != "Zone" || there || !slices.ContainsFunc(d.derived, func(one string) bool { return naming.Key(one) == name }) {
			return false
		}
		for _, above, _ := strings.Cut(name, "."); above != ""; _, above, _ = strings.Cut(above, ".") {
			if known[above] {
				return true
			}
		}
		return false
	})
}

// HasDerivedZones reports whether the document contains derived zones.
func (d *Document) HasDerivedZones() bool { return len(d.derived) > 0 }

// text returns the text of a file without its byte order mark.
func text(raw []byte) string { return string(bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))) }

// hardware reports whether a text is an Ethernet address of 6 bytes.
func hardware(text string) bool {
	mac, err := space.ParseHardware(text)
	return err == nil && len(mac) == 6
}

// label returns the first label of a name. It notes that the rest is ignored.
func (d *Document) label(name string) string {
	if first := host(name); strings.Contains(strings.TrimSuffix(name, "."), ".") {
		d.leave("the domain of names of addresses: an address has the first label alone")
		return first
	}
	return host(name)
}

// host returns the first label of a name.
func host(name string) string {
	first, _, _ := strings.Cut(strings.TrimSuffix(name, "."), ".")
	return first
}
