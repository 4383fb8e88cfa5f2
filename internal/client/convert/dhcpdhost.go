package convert

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode"
)

// host reads a host: its addresses become reserved addresses, and the options of a host without an address are set at its hardware address.
func (d *dhcpd) host(s statement, above *dhcpdScope) {
	var of client
	name := s.word(1)
	var addresses []string
	at := above.newBlock("host")
	for _, one := range s.block {
		row := d.rowName
		d.rowName = one.place()
		switch {
		case one.startsWith("hardware", "ethernet") && of.mac != "":
			d.rowName = row
			d.skip("it has the hardware addresses %s and %s: use two hosts", of.mac, one.word(2))
			return
		case one.startsWith("hardware", "ethernet"):
			of.mac = one.word(2)
		case one.startsWith("hardware"):
			d.leave("hardware addresses of the type %s", one.word(1))
		case one.startsWith("fixed-address"), one.startsWith("fixed-address6"):
			addresses = append(addresses, one.words[1:]...)
		case one.startsWith("host-identifier", "option", "dhcp6.client-id"):
			of.duid = one.word(3)
		case one.startsWith("option", "dhcp6.client-id"):
			of.duid = one.word(2)
		case one.startsWith("option", "dhcp-client-identifier"), one.startsWith("host-identifier", "option", "dhcp-client-identifier"):
			last := len(one.words) - 1
			of.id = identifierOf(valueWord{one.words[last], one.quoted[last]})
		case one.startsWith("host-identifier"):
			d.leave("the statement %s: an address is reserved for a hardware address or a client identifier", strings.Join(one.words[:min(3,
				len(one.words))], " "))
		case one.startsWith("fixed-prefix6"):
			d.leave("the statement fixed-prefix6: %s", noReserved)
		case one.startsWith("option", "host-name") && len(one.words) == 3:
			name = one.word(2)
			d.setting(one, at)
		case !d.setting(one, at):
			d.other(one)
		}
		d.rowName = row
	}
	d.encapsulate(at)
	own := at.own
	for group := above; group != nil && (group.kind == "group" || group.kind == "pool"); group = group.above {
		if group.kind == "group" {
			own = own.mergeAbove(group.own)
		}
	}
	if of.mac != "" && hardware(of.mac) {
		d.macs = append(d.macs, strings.ToLower(of.mac))
	}
	if len(addresses) == 0 {
		d.unaddressed(of, own, above)
		return
	}
	for _, address := range addresses { // a host may have one address per subnet
		a, err := d.reservation(address, of, name)
		if err != nil {
			d.skip("%v: correct the statement", err)
			continue
		}
		d.emitLimited("addresses/"+a.String(), own, a, above)
	}
}

// unaddressed adds the hardware address of a host without a fixed address, with its options.
func (d *dhcpd) unaddressed(of client, own *settings, above *dhcpdScope) {
	switch {
	case of.mac == "" || !hardware(of.mac) || d.v6:
		d.omit("the host has no fixed address: add fixed-address to import it")
	case len(own.all) == 0 && !d.knowsHosts:
		d.omit("the host has neither an address nor an option, and no permission is about known clients")
	default:
		if !d.knowsHosts { // otherwise finish adds it to the pool of known clients
			d.member(of.mac, "")
		}
		d.emitLimited("macAddresses/"+dashed(of.mac), own, netip.Addr{}, above)
	}
}

// dashed returns a hardware address in the notation of Portolan.
func dashed(mac string) string {
	var out []string
	for one := range strings.FieldsFuncSeq(mac, func(r rune) bool { return r == ':' || r == '-' }) {
		out = append(out, fmt.Sprintf("%02s", strings.ToUpper(one)))
	}
	return strings.Join(out, "-")
}

// identifierOf returns a client identifier in the notation of Portolan: a text, or 0x and digits.
func identifierOf(word valueWord) string {
	if data, ok := colonOctets(word.text); ok && !word.quoted {
		return "0x" + strings.ToUpper(hex.EncodeToString(data))
	}
	if strings.HasPrefix(word.text, "0x") || strings.HasPrefix(word.text, `"`) || strings.Contains(word.text, ":") ||
		strings.ContainsFunc(word.text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "0x" + strings.ToUpper(hex.EncodeToString([]byte(word.text)))
	}
	return word.text
}

// mentionsKnown reports whether a permission is about known or unknown clients.
func mentionsKnown(all []statement) bool {
	return slices.ContainsFunc(all, func(s statement) bool {
		text := strings.ToLower(strings.ReplaceAll(strings.Join(s.words, " "), "-", " "))
		isPermission := !s.hasBlock && (s.startsWith("allow") || s.startsWith("deny") || s.startsWith("ignore"))
		isAboutKnown := strings.HasSuffix(text, " known clients") || strings.HasSuffix(text, " unknown clients")
		return isPermission && isAboutKnown || mentionsKnown(s.block)
	})
}

// permission reads allow, deny and ignore. In a pool they are about its ranges.
func (d *dhcpd) permission(s statement, at *dhcpdScope, allowed bool) bool {
	what := strings.ToLower(strings.Join(s.words[1:], " "))
	inPool := at.kind == "pool"
	name := map[string]string{"booting": "booting", "bootp": "bootp", "declines": "declines", "duplicates": "duplicates",
		"client-updates": "client-updates"}[what]
	switch {
	case name != "" && !d.v6, name == "client-updates":
		d.put(at, name, allowed)
	case what == "leasequery" && !allowed, what == "all clients" && allowed, what == "dynamic bootp clients" && !allowed && !d.v6:
		return true // as in Portolan
	case what == "dynamic bootp clients" && inPool && !d.v6:
		d.put(at, "dynamic-bootp", true)
	case what == "unknown-clients" || what == "unknown clients":
		d.known(at, allowed, inPool, false)
	case what == "known-clients" || what == "known clients":
		d.known(at, allowed, inPool, true)
	case strings.HasPrefix(what, "members of") && len(s.words) == 4 && !d.v6:
		list := map[bool]string{true: allowClasses, false: denyClasses}[allowed]
		members, _ := at.own.get(true, list).([]any)
		d.put(at, list, append(slices.Clone(members), className(s.word(3))))
	default:
		return false
	}
	if at.own.has(true, allowPools) && at.own.has(true, allowClasses) {
		d.leave("the alternative of allow known-clients and allow members of: in Portolan a client must be both")
	}
	return true
}

// known adds the permission for clients with a host statement, or for those without one.
func (d *dhcpd) known(at *dhcpdScope, allowed, inPool, ofKnown bool) {
	switch {
	case !inPool && !ofKnown && allowed: // the default
		d.put(at, bootUnknown, true)
	case d.v6 && ofKnown == allowed:
		d.put(at, bootUnknown, false)
	case d.v6:
		d.leave("the permission about known clients: DHCPv6 ranges can be closed for clients without a reservation only")
	case ofKnown == allowed: // only known clients
		d.put(at, allowPools, []any{knownPool})
	case inPool:
		d.put(at, denyPools, []any{knownPool})
	default:
		d.put(at, denyPools, []any{knownPool})
	}
}

// peer reads a failover peer. Its settings are those of the pairs of the configuration.
func (d *dhcpd) peer(s statement, at *dhcpdScope) {
	place := d.rowName
	d.peers[s.word(2)] = true
	for _, one := range s.block {
		d.rowName = one.place()
		switch {
		case one.startsWith("primary"), one.startsWith("secondary"), one.startsWith("address"), one.startsWith("port"), one.startsWith("peer"):
		case one.startsWith("mclt"), one.startsWith("max-response-delay"), one.startsWith("max-unacked-updates"):
			d.number(at, one.word(0), one.word(1))
		case one.startsWith("split"):
			d.number(at, "load-balance-split", one.word(1))
		case one.startsWith("load", "balance", "max", "seconds"):
			d.number(at, "load-balance-override", one.word(4))
		default:
			d.leave("the statement %s of a failover peer: Portolan has no such setting", one.word(0))
		}
	}
	d.rowName = place
}

// number adds a service option that is a number.
func (d *dhcpd) number(at *dhcpdScope, name, text string) {
	value, err := scalarOf("unsigned_integer_32", valueWord{text, false})
	if err != nil {
		d.leave("the statement %s: %v", name, err)
		return
	}
	d.put(at, name, value)
}

// finish adds the resources that follow from the whole file: its own options, the pool of known clients, and zones.
func (d *dhcpd) finish(top *dhcpdScope) {
	d.rowName = ""
	d.closeConditions()
	d.encapsulate(top)
	if !top.own.has(true, defaultLease) && len(d.subnets) > 0 {
		top.own.put(setting{"", true, defaultLease, defaultOfDhcpd})
	}
	d.emit("", top.own, d.v6)
	d.emitLevels()
	d.rowName = ""
	if d.knowsHosts && !d.v6 {
		d.add(Resource{"type": "MACPool", "name": knownPool, "tag": false})
		slices.Sort(d.macs)
		for _, mac := range slices.Compact(d.macs) {
			d.member(mac, knownPool)
		}
	}
	d.updates()
	if len(d.peers) > 0 {
		d.leave(pairNote)
	}
}

// defaultOfDhcpd is the lease time of dhcpd without default-lease-time, in seconds.
const defaultOfDhcpd = 43200

// updates adds the zones of updates of DNS, with their keys.
func (d *dhcpd) updates() {
	used := map[string]bool{}
	for i, s := range d.zones {
		d.rowName = s.place()
		r := Resource{"type": "DHCPForwardZone", "in": "zoneGroups/" + ZoneGroup, "dynamicUpdateSigningKeyType": "NONE"}
		name := strings.TrimSuffix(s.word(1), ".")
		if p, ok := reverseOf(name); ok {
			r["type"], r["prefix"] = "DHCPReverseZone", map[string]string{"range": p.String()}
		} else if strings.HasSuffix(name, ".arpa") {
			d.leave("the zone %s: it is not the reverse zone of an IPv4 network", name)
			continue
		} else {
			r["zone"] = map[string]string{"absoluteName": name}
		}
		for _, one := range s.block {
			switch {
			case one.startsWith("primary"), one.startsWith("primary6"):
				r["primaryDnsServerAddress"] = one.word(1)
			case one.startsWith("secondary"):
				r["secondaryDnsServerAddress"] = one.word(1)
			case one.startsWith("key"):
				r["dynamicUpdateSigningKeyType"], r["dynamicUpdateSigningKey"] = "TSIG", "signingKeys/"+one.word(1)
				d.key(one.word(1), used)
			default:
				d.leave("the statement %s of a zone: Portolan has no such setting", one.word(0))
			}
		}
		if i == 0 {
			d.add(Resource{"type": "DHCPZoneGroup", "name": ZoneGroup, "tag": false})
			d.leave("the servers of the zone group dhcpd: --server links the first one")
		}
		d.rowName = s.place()
		d.add(r)
	}
	for _, name := range sortedKeys(d.keys) {
		if d.rowName = d.keys[name].place(); !used[name] {
			d.leave("the key %s: no zone uses it", name)
		}
	}
	d.rowName = ""
}

// key adds a key of updates once.
func (d *dhcpd) key(name string, used map[string]bool) {
	s, there := d.keys[name]
	if used[name] || !there {
		return
	}
	used[name] = true
	d.rowName = s.place()
	algorithm, secret := "", ""
	for _, one := range s.block {
		switch {
		case one.startsWith("algorithm"):
			algorithm = strings.ToLower(strings.TrimSuffix(one.word(1), "."))
		case one.startsWith("secret"):
			secret = one.word(1)
		}
	}
	known := map[string]string{"hmac-md5": "MD5", "hmac-md5.sig-alg.reg.int": "MD5", "hmac-sha1": "SHA1", "hmac-sha256": "SHA256",
		"hmac-sha512": "SHA512"}[algorithm]
	if known == "" {
		d.leave("the key %s: its algorithm is not MD5, SHA1, SHA256 or SHA512", name)
		return
	}
	bits := 256
	if octets, err := base64.StdEncoding.DecodeString(secret); err == nil && len(octets) > 0 { // else the manager refuses the secret
		bits = 8 * len(octets)
	}
	d.add(Resource{"type": "TSIGKey", "name": name, "algorithm": known, "length": bits, "privateKey": secret})
}

// reverseOf returns the network of a reverse zone such as 1.168.192.in-addr.arpa.
func reverseOf(name string) (p netip.Prefix, ok bool) {
	labels, ok := strings.CutSuffix(strings.ToLower(name), ".in-addr.arpa")
	if !ok {
		return p, false
	}
	parts := strings.Split(labels, ".")
	slices.Reverse(parts)
	bits := 8 * len(parts)
	for len(parts) < 4 {
		parts = append(parts, "0")
	}
	a, err := netip.ParseAddr(strings.Join(parts, "."))
	return netip.PrefixFrom(a, bits), err == nil
}
