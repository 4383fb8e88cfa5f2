package convert

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// sortedKeys returns the keys of a map in order.
func sortedKeys[K cmp.Ordered, V any](all map[K]V) []K { return slices.Sorted(maps.Keys(all)) }

// Kea converts a configuration of Kea, in JSON with comments: subnets with their pools and reservations, the options of all levels, and
// classes. include returns the content of an included file; it may be nil.
func Kea(raw []byte, include func(path string) ([]byte, error)) (*Document, error) {
	var f keaFile
	d := &Document{unsaid: []string{"name"}, shared: map[string]string{}}
	var kind wrongKind
	content, err := keaIncluded(withoutComments(text(raw)), include, 0)
	if err != nil {
		return nil, err
	}
	if err := readJSON([]byte(content), &f); err != nil && !errors.As(err, &kind) { // keys.check reports the wrong kinds
		return nil, err
	}
	keys := jsonKeys{text: []byte(content), unread: func(key, object string, line int) {
		reason := keaReasons[strings.ToLower(key)]
		if object == "dhcp-ddns" || object == "hooks-libraries" {
			reason = processOnly
		}
		if d.rowName = fmt.Sprintf("line %d", line); object != "" {
			key += " of " + object
		}
		d.leave("the setting %s: %s", key, cmp.Or(reason, "Portolan has no such setting"))
	}, wrong: func(key string, line int, why string) {
		d.rowName = fmt.Sprintf("line %d (%s)", line, key)
		d.skip("it %s: correct it", why)
	}}
	if err := keys.check(f); err != nil {
		return nil, err
	}
	d.rowName = ""
	if f.Dhcp4 == nil && f.Dhcp6 == nil {
		return nil, errors.New("has neither Dhcp4 nor Dhcp6: it is not a Kea configuration file")
	}
	for _, s := range []*keaServer{f.Dhcp4, f.Dhcp6} {
		if s == nil {
			continue
		}
		if err := d.keaServer(s, s == f.Dhcp6); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// keaInclude matches an instruction to include a file.
var keaInclude = regexp.MustCompile(`<\?include\s+"([^"]*)"\s*\?>`)

// keaIncluded replaces the instructions to include files by their contents, on one line each.
func keaIncluded(content string, include func(string) ([]byte, error), depth int) (string, error) {
	var fault error
	whole := keaInclude.ReplaceAllStringFunc(content, func(found string) string {
		path := keaInclude.FindStringSubmatch(found)[1]
		err := errors.New("replace it with the text of the file")
		var raw []byte
		if include != nil && depth < maxIncluded {
			raw, err = include(path)
		}
		var inner string
		if err == nil {
			inner, err = keaIncluded(withoutComments(text(raw)), include, depth+1)
		}
		if err != nil && fault == nil {
			before, _, _ := strings.Cut(content, found)
			fault = fmt.Errorf("line %d: the file %s is not read: %w", 1+strings.Count(before, "\n"), path, err)
		}
		return strings.ReplaceAll(inner, "\n", " ")
	})
	return whole, fault
}

// keaServer converts the configuration of one server.
func (d *Document) keaServer(s *keaServer, v6 bool) error {
	table, err := readOptions(v6)
	if err != nil {
		return err
	}
	d.rowName = map[bool]string{false: "Dhcp4", true: "Dhcp6"}[v6]
	k := &kea{Document: d, v6: v6, table: table, spaces: map[string]map[string]subOption{}, inner: map[int]string{},
		classes: map[string]string{}, required: map[string]bool{}, narrow: map[string]bool{}, halves: map[string]bool{}}
	k.pairs(s)
	if !v6 {
		k.inner[vendorCode] = "vendor-encapsulated-options-space"
	}
	k.define(s.Definitions)
	k.classList(s.ClassList)
	d.rowName = map[bool]string{false: "Dhcp4", true: "Dhcp6"}[v6]
	k.knowsHosts = !v6 && s.isAboutKnown()
	top := k.top(s)
	around := routersOf(top)
	d.reserved = s.reserved()
	for i, one := range append(s.Subnet4, s.Subnet6...) {
		k.subnet(i+1, one, "", around, &settings{})
	}
	for _, shared := range s.SharedNetworks {
		d.rowName = "the shared network " + shared.Name
		level := k.settings(&shared.keaLevel)
		own := around
		if level.has(false, routerOption) {
			own = routersOf(level)
		}
		k.reservations(shared.Reservations)
		for i, one := range append(shared.Subnet4, shared.Subnet6...) {
			k.subnet(i+1, one, shared.Name, own, level)
		}
	}
	d.rowName = map[bool]string{false: "Dhcp4", true: "Dhcp6"}[v6]
	k.reservations(s.Reservations)
	d.emit("", top, v6)
	k.overridden()
	if k.knowsHosts {
		d.rowName = ""
		d.add(Resource{"type": "MACPool", "name": knownPool, "tag": false})
		for _, mac := range slices.Compact(slices.Sorted(slices.Values(k.macs))) {
			d.member(mac, knownPool)
		}
	}
	d.rowName = ""
	return nil
}

// The defaults of Kea: the lease time in seconds, and the code of the vendor options.
const (
	defaultOfKea = 7200
	vendorCode   = 43
)

// top returns the settings of the server itself, with the defaults of Kea that differ from those of Portolan.
func (k *kea) top(s *keaServer) *settings {
	if s.Valid == nil {
		standard := defaultOfKea
		s.Valid = &standard
	}
	k.lifetimes = [3]*int{s.MinValid, s.Valid, s.MaxValid}
	s.Class, s.Classes = "", nil
	if s.Suffix == "" {
		s.Suffix = s.Updates.Suffix
	}
	s.ReplaceName, s.GeneratedPrefix = cmp.Or(s.ReplaceName, s.Updates.ReplaceName), cmp.Or(s.GeneratedPrefix, s.Updates.GeneratedPrefix)
	if s.SendUpdates == nil || s.Updates.Enabled != nil && !*s.Updates.Enabled {
		s.SendUpdates = s.Updates.Enabled
	}
	all := k.settings(&s.keaLevel)
	if len(s.CacheThreshold) == 0 { // Kea stores each renewal
		all.put(setting{k.rowName, true, "dhcp-cache-threshold", 0})
	}
	if s.EchoClientID != nil && !k.v6 {
		all.put(setting{k.rowName, true, "echo-client-id", *s.EchoClientID})
	}
	if !k.v6 { // Kea sends the name of a reservation
		all.put(setting{k.rowName, true, "use-host-decl-names", true})
	}
	if s.Probation != nil {
		all.put(setting{k.rowName, true, "abandon-lease-time", *s.Probation})
	}
	return all
}

// routersOf returns the routers of a level.
func routersOf(s *settings) (routers []string) {
	list, _ := s.get(false, routerOption).([]any)
	for _, one := range list {
		routers = append(routers, fmt.Sprint(one))
	}
	return routers
}

// isAboutKnown reports whether a subnet or pool is for known or unknown clients.
func (s *keaServer) isAboutKnown() bool {
	about := func(l keaLevel) bool {
		return slices.ContainsFunc(append(slices.Clone(l.Classes), l.Class), func(name string) bool {
			return name == "KNOWN" || name == "UNKNOWN"
		})
	}
	subnet := func(one keaSubnet) bool {
		return about(one.keaLevel) || slices.ContainsFunc(one.Pools, func(p keaPool) bool { return about(p.keaLevel) })
	}
	return slices.ContainsFunc(s.Subnet4, subnet) || slices.ContainsFunc(s.SharedNetworks, func(one keaShared) bool {
		return about(one.keaLevel) || slices.ContainsFunc(one.Subnet4, subnet)
	})
}

// subnet adds a subnet and its contents. number is its position in the list, around are the routers of the enclosing level, and above are
// the settings of its shared network.
func (k *kea) subnet(number int, s keaSubnet, shared string, around []string, above *settings) {
	k.rowName = "subnet " + cmp.Or(s.Subnet, fmt.Sprintf("number %d", number))
	if shared != "" && s.Subnet == "" {
		k.rowName += " of " + shared
	}
	if len(s.ID) > 0 {
		k.rowName += fmt.Sprintf(" (id %s)", s.ID)
	}
	place := k.rowName
	p, err := netip.ParsePrefix(s.Subnet)
	if err != nil && s.wrong == nil {
		k.skip("it is not a prefix, so only its reservations are imported: correct the subnet")
		k.reservations(s.Reservations)
		return
	}
	if s.wrong != nil {
		k.skip("%v, so only its reservations are imported: correct the subnet", s.wrong)
		k.reservations(s.Reservations)
		return
	}
	p = k.masked(p)
	own := k.settings(&s.keaLevel)
	gateway := k.router(p, routersOf(own), around)
	k.network(p, cmp.Or(s.Context.Name, shared), gateway)
	if shared != "" && p.Addr().Is4() {
		k.shared[p.String()] = shared
	} else if shared != "" {
		k.join(p, shared)
	}
	k.relays(s, p)
	all := &settings{}
	for _, one := range own.mergeAbove(above).all {
		list, ok := one.value.([]any)
		if one.name == routerOption && !one.service && ok && len(list) == 1 && list[0] == gateway && len(around) == 0 {
			continue
		}
		all.put(one)
	}
	k.remember(all)
	k.emit("networks/"+p.String(), all, k.v6)
	for i, pool := range s.Pools {
		k.rowName = fmt.Sprintf("%s, pool %s", place, cmp.Or(pool.Pool, fmt.Sprintf("number %d", i+1)))
		k.pool(pool, p)
	}
	for _, pool := range s.PDPools {
		k.rowName = fmt.Sprintf("%s, pool of prefixes %s", place, pool.Prefix)
		if err := k.delegatedPrefixes(pool, p, all); err != nil {
			k.skip("%v: correct the pool", err)
		}
	}
	k.rowName = place
	k.reservations(s.Reservations)
}

// relays notes the relays of a subnet that are outside of it: they do not lead to the network.
func (k *kea) relays(s keaSubnet, p netip.Prefix) {
	for _, text := range append(slices.Clone(s.Relay.Addresses), s.Relay.Address) {
		a, err := netip.ParseAddr(text)
		if text != "" && (err != nil || !p.Contains(a)) {
			k.leave("the relay %s outside of its subnet: the network of a relay is the one that contains its address", text)
		}
	}
}

// remember notes the options of a subnet, pool or shared network.
func (k *kea) remember(s *settings) {
	for _, one := range s.all {
		k.narrow[one.key()] = true
	}
}

// pool adds a pool of a subnet.
func (k *kea) pool(pool keaPool, p netip.Prefix) {
	if pool.wrong != nil {
		k.skip("%v: correct the pool", pool.wrong)
		return
	}
	low, high, ok := strings.Cut(pool.Pool, "-")
	if !ok {
		part, err := netip.ParsePrefix(strings.TrimSpace(pool.Pool))
		if err != nil {
			k.skip("it is not a range: correct the pool")
			return
		}
		low, high = part.Masked().Addr().String(), lastAddress(part).String()
	}
	own := k.settings(&pool.keaLevel)
	text, err := k.dhcpRange(0, strings.TrimSpace(low), strings.TrimSpace(high), p)
	if err != nil {
		k.skip("it is not a range of the subnet: correct the pool")
		return
	}
	k.remember(own)
	k.emit("ranges/"+text, own, k.v6)
}

// lastAddress returns the last address of a prefix.
func lastAddress(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// known returns the identifier of a reservation's client.
func (r *keaReservation) known() string {
	return cmp.Or(r.Hostname, r.HWAddress, r.DUID, r.ClientID, r.CircuitID, r.FlexID)
}

// reservations adds reservations of a level.
func (k *kea) reservations(all []keaReservation) {
	where := k.rowName
	if where != "" {
		where = " of " + where
	}
	before := k.rowName
	for i, r := range all {
		row := fmt.Sprintf("reservation number %d%s", i+1, where)
		addresses := r.IPAddresses
		if r.IPAddress != "" {
			addresses = append(addresses, r.IPAddress)
		}
		if k.rowName = row; len(addresses) > 0 || r.known() != "" {
			k.rowName += fmt.Sprintf(" (%s)", cmp.Or(strings.Join(addresses, " "), r.known()))
		}
		if r.wrong != nil {
			k.skip("%v: correct the reservation", r.wrong)
			continue
		}
		k.reserve(r, row, addresses)
	}
	k.rowName = before
}

// reserve adds one reservation.
func (k *kea) reserve(r keaReservation, row string, addresses []string) {
	of := client{mac: r.HWAddress, duid: r.DUID}
	if r.ClientID != "" {
		if of.id = identifierOf(valueWord{strings.Trim(r.ClientID, "'"), strings.HasPrefix(r.ClientID, "'")}); !strings.HasPrefix(r.ClientID,
			"'") && !strings.HasPrefix(of.id, "0x") {
			of.id = "0x" + strings.ToUpper(r.ClientID)
		}
	}
	classes := r.Classes
	r.Class, r.Classes = "", nil
	own := k.settings(&r.keaLevel)
	if len(classes) > 0 {
		k.leave("classes of reservations (%s): the clients of a class are selected by its condition", strings.Join(classes, ", "))
	}
	if of.mac != "" && hardware(of.mac) {
		k.macs = append(k.macs, strings.ToLower(of.mac))
	}
	switch {
	case len(addresses) == 0 && len(r.Prefixes) > 0:
		k.omit("it reserves prefixes alone (%s): %s", strings.Join(r.Prefixes, ", "), noReserved)
	case len(addresses) == 0 && of.mac != "" && hardware(of.mac) && !k.v6 && (k.knowsHosts || len(own.all) > 0 || r.Hostname != ""):
		if !k.knowsHosts {
			k.member(of.mac, "")
		}
		if r.Hostname != "" {
			own.put(setting{k.rowName, false, "host-name", r.Hostname})
		}
		k.emit("macAddresses/"+dashed(of.mac), own, false)
	case len(addresses) == 0:
		k.omit("it has no address: add ip-address to import it")
	case len(r.Prefixes) > 0:
		k.leave("prefixes that are reserved: %s", noReserved)
	}
	if len(addresses) > 0 && of == (client{}) {
		k.leave("reservations by circuit-id and flex-id: an address is reserved for a hardware address, a DUID or a client identifier; " +
			"the addresses are RESERVED")
	}
	for _, text := range addresses {
		k.rowName = fmt.Sprintf("%s (%s)", row, text)
		a, err := k.reservation(text, of, k.label(r.Hostname))
		if err != nil {
			k.skip("%v: correct the reservation", err)
			continue
		}
		k.emit("addresses/"+a.String(), own, k.v6)
	}
}

// lastComma matches strings, which are kept, and commas after the last entry of a list or an object.
var lastComma = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|,\s*[\]}]`)

// withoutComments removes the comments that Kea allows (#, // and /* */) and commas after the last entry, and replaces .5 by 0.5. Strings
// are not changed.
func withoutComments(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		rest := text[i:]
		switch {
		case rest[0] == '"':
			end := 1
			for end < len(rest) && rest[end] != '"' {
				if rest[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end, len(rest)-1)
			b.WriteString(rest[:end+1])
			i += end
		case rest[0] == '#' || strings.HasPrefix(rest, "//"):
			for i < len(text) && text[i] != '\n' {
				i++
			}
			b.WriteByte('\n')
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest, "*/")
			if end < 0 {
				return b.String()
			}
			b.WriteString(strings.Repeat("\n", strings.Count(rest[:end], "\n"))) // keeps the line numbers
			i += end + 1
		case rest[0] == '.' && (i == 0 || text[i-1] < '0' || text[i-1] > '9'):
			b.WriteString("0.")
		default:
			b.WriteByte(rest[0])
		}
	}
	return lastComma.ReplaceAllStringFunc(b.String(), func(found string) string {
		if strings.HasPrefix(found, ",") {
			return strings.TrimPrefix(found, ",")
		}
		return found // a string
	})
}
