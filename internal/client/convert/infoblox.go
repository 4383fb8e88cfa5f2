package convert

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"portolan/internal/base/csvrows"
)

// InfobloxChoice selects the parts of an Infoblox export.
type InfobloxChoice struct {
	// View is the target view of DNS names. Without it, DNS records are skipped, or ignored if WithoutNames is true.
	View         string
	WithoutNames bool
	// FromView and FromNetworkView are the views of the export to read. Empty selects the only one.
	FromView, FromNetworkView string
}

// Infoblox reads a CSV export of Infoblox. It contains rows of several kinds, each with a header line that begins with header-. A row that
// cannot be read is skipped.
func Infoblox(raw []byte, choice InfobloxChoice) (*Document, error) {
	rows := csvrows.New(text(raw), ',')
	x := &infoblox{Document: &Document{}, view: choice.View, withoutNames: choice.WithoutNames,
		selected: map[string]string{"view": choice.FromView, "network_view": choice.FromNetworkView}, records: map[string]string{},
		hostRows: map[string]string{},
		columns:  map[string]map[string]int{}, read: map[string]map[string]bool{}, unread: map[string]map[string]int{},
		hosts: map[string]Resource{}, silent: map[string]map[string]Resource{},
		views: map[string]map[string]bool{"view": {}, "network_view": {}}}
	for {
		row, line, err := rows.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			x.rowName = fmt.Sprintf("line %d", line)
			x.skip("%v: correct the row", err)
			continue
		}
		kind := strings.ToLower(strings.TrimSpace(row[0]))
		if name, ok := strings.CutPrefix(kind, "header-"); ok {
			columns := map[string]int{}
			for i, c := range row[1:] {
				c = strings.ToLower(strings.TrimRight(strings.TrimSpace(c), "*"))
				if columns[c] != 0 && c != "" {
					return nil, fmt.Errorf("line %d: the column %s occurs twice: rename or remove one of them", line, c)
				}
				columns[c] = i + 1
			}
			x.columns[name] = columns
			continue
		}
		if kind == "" {
			continue
		}
		if x.columns[kind] == nil {
			x.rowName = fmt.Sprintf("line %d (%s)", line, kind)
			x.skip("no line header-%s before it: add the line", kind)
			continue
		}
		if x.read[kind] == nil {
			x.read[kind], x.unread[kind] = map[string]bool{}, map[string]int{}
		}
		of := func(name string) string {
			x.read[kind][name] = true
			if i, ok := x.columns[kind][name]; ok && i < len(row) {
				return strings.TrimSpace(row[i])
			}
			return ""
		}
		about := of("fqdn") + " " + of("address") + " " + of("ip_address") + " " + of("start_address")
		x.rowName = fmt.Sprintf("line %d (%s %s)", line, kind, strings.Join(strings.Fields(about), " "))
		before := len(x.Skipped)
		if err := x.row(kind, of); err != nil {
			x.skip("%v: correct the row", err)
		}
		for name, i := range x.columns[kind] {
			if len(x.Skipped) == before && i < len(row) && row[i] != "" && !strings.EqualFold(row[i], "false") {
				x.unread[kind][name]++
			}
		}
	}
	if len(x.columns) == 0 {
		if len(x.Skipped) > 0 {
			return nil, errors.New(x.Skipped[0].String())
		}
		return nil, errors.New("the file is not an Infoblox export: no line begins with header-")
	}
	for _, column := range []string{"view", "network_view"} {
		all := slices.Sorted(maps.Keys(x.views[column]))
		if asked := x.selected[column]; asked != "" && !x.views[column][asked] {
			return nil, ChoiceError(fmt.Sprintf("the file has no %s %q; must be one of %s", strings.ReplaceAll(column, "_", " "), asked,
				strings.Join(all, ", ")))
		}
		if len(all) > 1 && x.selected[column] == "" {
			return nil, ChoiceError(fmt.Sprintf("the file has several %ss (%s): choose one by --from-%s", strings.ReplaceAll(column, "_", " "),
				strings.Join(all, ", "), strings.ReplaceAll(column, "_", "-")))
		}
	}
	x.rowName = ""
	for _, kind := range slices.Sorted(maps.Keys(x.unread)) {
		x.unreadColumns(kind)
	}
	return x.Document, nil
}

// unreadColumns notes the columns of a kind of row that have values and are not imported.
func (x *infoblox) unreadColumns(kind string) {
	for _, name := range slices.Sorted(maps.Keys(x.unread[kind])) {
		attribute, ok := strings.CutPrefix(name, "ea-")
		switch {
		case x.read[kind][name] || strings.HasPrefix(name, "_new_"): // _new_ columns contain the future value of a field
		case ok:
			x.leave("the extensible attribute %s of %d rows (%s): define it as a user-defined field, and import it as a table", attribute,
				x.unread[kind][name], kind)
		default:
			x.leave("the column %s of %d rows (%s)", name, x.unread[kind][name], kind)
		}
	}
}

type infoblox struct {
	*Document
	view         string
	withoutNames bool
	// selected are the selected views of the export, by the column that names them. views are the views in the file.
	selected map[string]string
	views    map[string]map[string]bool
	columns  map[string]map[string]int
	// read are the columns that are imported, by kind of row. unread counts the imported rows with a value in each other column.
	read   map[string]map[string]bool
	unread map[string]map[string]int
	// hosts are the host records by name. Their addresses may be in later rows. silent are the addresses of hosts outside of DNS, by host
	// name.
	hosts  map[string]Resource
	silent map[string]map[string]Resource
	// records are the rows of address records, by name and address.
	records map[string]string
	// hostRows are the rows of hosts, by name.
	hostRows map[string]string
}

// prefixOf parses a network and its mask: 255.255.255.0, 24, or a prefix in network alone. Host bits are cleared, and a note reports them.
func (d *Document) prefixOf(network, mask string) (netip.Prefix, error) {
	if strings.Contains(network, "/") {
		p, err := netip.ParsePrefix(network)
		if err != nil {
			return p, fmt.Errorf("%q is not a prefix", network)
		}
		return d.masked(p), nil
	}
	a, err := netip.ParseAddr(network)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is not an IP address", network)
	}
	bits, err := strconv.Atoi(mask)
	if m := net.ParseIP(mask).To4(); m != nil {
		var size int
		if bits, size = net.IPMask(m).Size(); size == 0 {
			return netip.Prefix{}, fmt.Errorf("%q is not a netmask", mask)
		}
	} else if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is not a netmask", mask)
	}
	p := netip.PrefixFrom(a, bits)
	if !p.IsValid() {
		return p, fmt.Errorf("%s/%s is not a network", network, mask)
	}
	return d.masked(p), nil
}

// masked returns a prefix without its host bits. A note reports host bits.
func (d *Document) masked(p netip.Prefix) netip.Prefix {
	if p != p.Masked() {
		d.leave("the bits of %v behind its mask: it is %v", p, p.Masked())
	}
	return p.Masked()
}

// row reads a row. of returns a cell by the name of its column.
func (x *infoblox) row(kind string, of func(name string) string) error {
	first := func(names ...string) string {
		for _, name := range names {
			if text := of(name); text != "" {
				return text
			}
		}
		return ""
	}
	for _, column := range []string{"view", "network_view"} {
		name := of(column)
		switch {
		case name == "" || column == "view" && x.view == "":
		case (kind == "hostaddress" || kind == "ipv6hostaddress") && (x.selected[column] == "" || x.selected[column] == name): // as its host
		case x.selected[column] == "" || x.selected[column] == name:
			x.views[column][name] = true
		default:
			x.views[column][name] = true
			x.leave("the rows of the %s %s: import them separately, by --from-%s", strings.ReplaceAll(column, "_", " "), name,
				strings.ReplaceAll(column, "_", "-"))
			return nil
		}
	}
	if strings.EqualFold(of("disabled"), "true") {
		x.omit("it is disabled: enable it in the source to import it")
		return nil
	}
	switch kind {
	case "networkcontainer", "ipv6networkcontainer":
		p, err := x.prefixOf(of("address"), first("netmask", "cidr"))
		if err != nil {
			return err
		}
		x.add(Resource{"type": family(p.Addr()) + "Block", "range": p.String(), "name": of("comment")})
	case "network", "ipv6network":
		p, err := x.prefixOf(of("address"), first("netmask", "cidr"))
		if err != nil {
			return err
		}
		var routers []string
		if text := of("routers"); text != "" {
			routers = strings.Split(text, ",")
		}
		x.network(p, of("comment"), x.router(p, routers, nil))
	case "dhcprange", "ipv6dhcprange":
		low, high := of("start_address"), of("end_address")
		from, err := netip.ParseAddr(low)
		to, e := netip.ParseAddr(high)
		if err != nil || e != nil || to.Less(from) {
			return fmt.Errorf("%s to %s is not a range", low, high)
		}
		x.add(Resource{"type": family(from) + "DHCPRange", "range": low + "-" + high, "name": of("name")})
	case "fixedaddress", "ipv6fixedaddress":
		_, err := x.reservation(first("ip_address", "address"), client{mac: of("mac_address"), duid: of("duid")}, of("name"))
		return err
	default:
		return x.name(kind, of, first)
	}
	return nil
}

// name reads a row of DNS data.
func (x *infoblox) name(kind string, of func(string) string, first func(...string) string) error {
	if silent, err := x.quiet(kind, of); silent || err != nil {
		return err
	}
	address := kind == "hostaddress" || kind == "ipv6hostaddress"
	if mac := of("mac_address"); address && mac != "" && !hardware(mac) {
		return fmt.Errorf("%q is not a hardware address", mac)
	}
	if x.view == "" && address && of("mac_address") != "" {
		_, err := x.reservation(of("address"), client{mac: of("mac_address")}, x.label(of("parent")))
		return err
	}
	switch {
	case x.view == "" && x.withoutNames:
		x.leave("DNS records (--without-names)")
		return nil
	case x.view == "":
		x.skip("it is a DNS record: choose its view by --view, or omit such rows by --without-names")
		return nil
	}
	fqdn := strings.TrimSuffix(of("fqdn"), ".")
	var ttl any = cleared{}
	if text := of("ttl"); text != "" {
		seconds, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return fmt.Errorf("the ttl %q is not a number of seconds", text)
		}
		ttl = seconds
	}
	record := func(r Resource) {
		r["absoluteName"], r["view"], r["ttl"] = fqdn, x.view, ttl
		x.add(r)
	}
	switch kind {
	case "authzone":
		if format := strings.ToUpper(of("zone_format")); format != "" && format != "FORWARD" {
			x.leave("reverse zones: they follow from the networks")
			return nil
		}
		x.add(Resource{"type": "Zone", "absoluteName": fqdn, "view": x.view})
	case "hostrecord":
		key := strings.ToLower(fqdn)
		if first := x.hostRows[key]; first != "" {
			x.skip("it has the same key as %s: remove one of the two", first)
			return nil
		}
		x.hostRows[key] = x.rowName
		r, there := x.hosts[key]
		if !there {
			r = Resource{"type": "HostRecord", "addresses": []string{}}
		}
		for a := range strings.SplitSeq(of("addresses")+","+of("ipv6_addresses"), ",") {
			if err := x.hostAddress(r, a); err != nil {
				return err
			}
		}
		if !there {
			record(r)
			x.hosts[key] = r
		}
		for alias := range strings.SplitSeq(of("aliases"), ",") {
			if alias = strings.TrimSuffix(strings.TrimSpace(alias), "."); alias == "" {
				continue
			}
			if _, zone, _ := strings.Cut(fqdn, "."); !strings.Contains(alias, ".") { // relative to the zone of the host
				alias += "." + zone
			}
			x.add(Resource{"type": "AliasRecord", "absoluteName": alias, "view": x.view, "ttl": ttl, "linkedRecord": fqdn})
		}
	case "hostaddress", "ipv6hostaddress":
		if r := x.hosts[strings.ToLower(strings.TrimSuffix(of("parent"), "."))]; r != nil {
			if err := x.hostAddress(r, of("address")); err != nil {
				return err
			}
			if mac := of("mac_address"); mac != "" {
				_, err := x.reservation(of("address"), client{mac: mac}, x.label(of("parent")))
				return err
			}
		} else {
			x.skip("the host %s is not in the file before it, or was skipped: put its row first", of("parent"))
		}
	case "arecord", "aaaarecord":
		if a, err := netip.ParseAddr(of("address")); err == nil {
			key := strings.ToLower(fqdn) + " " + a.String()
			if first := x.records[key]; first != "" {
				x.skip("it has the same name and address as %s: remove one of the two", first)
				return nil
			}
			x.records[key] = x.rowName
		}
		if r := x.hosts[strings.ToLower(fqdn)]; r != nil {
			if ttl != r["ttl"] {
				x.leave("the ttl of a further address of a name: a host has one ttl")
			}
			return x.hostAddress(r, of("address"))
		}
		r := Resource{"type": "HostRecord", "addresses": []string{}}
		if err := x.hostAddress(r, of("address")); err != nil {
			return err
		}
		record(r)
		x.hosts[strings.ToLower(fqdn)] = r
	case "cnamerecord":
		record(Resource{"type": "AliasRecord", "linkedRecord": strings.TrimSuffix(first("canonical_name", "cname"), ".")})
	case "txtrecord":
		parts, err := characterStrings(of("text"))
		switch {
		case err != nil:
			return err
		case len(parts) == 1:
			record(Resource{"type": "TXTRecord", "text": parts[0]})
		default: // a TXTRecord contains a single text
			for i, part := range parts {
				parts[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(part) + `"`
			}
			record(Resource{"type": "GenericRecord", "recordType": "TXT", "rdata": strings.Join(parts, " ")})
		}
	case "mxrecord":
		priority, err := strconv.ParseUint(first("preference", "priority"), 10, 16)
		target := first("mx", "mail_exchanger")
		switch {
		case err != nil:
			return fmt.Errorf("the preference %q is not a number up to 65535", first("preference", "priority"))
		case target == ".": // the domain accepts no mail (RFC 7505)
			record(Resource{"type": "GenericRecord", "recordType": "MX", "rdata": fmt.Sprintf("%d .", priority)})
		default:
			record(Resource{"type": "MXRecord", "priority": priority, "linkedRecord": strings.TrimSuffix(target, ".")})
		}
	case "srvrecord":
		var numbers [3]uint64
		for i, column := range []string{"priority", "weight", "port"} {
			var err error
			if numbers[i], err = strconv.ParseUint(of(column), 10, 16); err != nil {
				return fmt.Errorf("the %s %q is not a number up to 65535", column, of(column))
			}
		}
		if target := of("target"); target == "." { // the service is not available (RFC 2782)
			record(Resource{"type": "GenericRecord", "recordType": "SRV", "rdata": fmt.Sprintf("%d %d %d .", numbers[0], numbers[1], numbers[2])})
		} else {
			record(Resource{"type": "SRVRecord", "priority": numbers[0], "weight": numbers[1], "port": numbers[2],
				"linkedRecord": strings.TrimSuffix(target, ".")})
		}
	default:
		x.omit("rows of the kind %s are not imported: create the resource by hand", kind)
	}
	return nil
}

// characterStrings parses the text of a TXT row: a plain text, or one or more quoted texts (RFC 1035 section 3.3.14).
func characterStrings(text string) (parts []string, err error) {
	if !strings.HasPrefix(text, `"`) {
		return []string{text}, nil
	}
	for text != "" {
		rest, quoted := strings.CutPrefix(text, `"`)
		if !quoted {
			return nil, fmt.Errorf("%q follows a quoted string", text)
		}
		var part strings.Builder
		for rest != "" && rest[0] != '"' {
			if rest[0] == '\\' && len(rest) > 1 {
				rest = rest[1:]
			}
			part.WriteByte(rest[0])
			rest = rest[1:]
		}
		if rest == "" {
			return nil, errors.New("a quotation mark is not closed")
		}
		parts, text = append(parts, part.String()), strings.TrimSpace(rest[1:])
	}
	return parts, nil
}

// quiet reads a row of a host outside of DNS or of one of its addresses. The addresses are assigned with the name of the host, each once.
func (x *infoblox) quiet(kind string, of func(string) string) (silent bool, err error) {
	name, addresses := strings.TrimSuffix(of("fqdn"), "."), of("addresses")
	switch {
	case kind == "hostrecord" && strings.EqualFold(of("configure_for_dns"), "false"):
		x.leave("names of hosts that are not configured for DNS: their addresses have them")
		x.silent[strings.ToLower(name)] = map[string]Resource{}
	case kind == "hostaddress" || kind == "ipv6hostaddress":
		name, addresses = strings.TrimSuffix(of("parent"), "."), of("address")
	default:
		return false, nil
	}
	there := x.silent[strings.ToLower(name)]
	if there == nil {
		return false, nil
	}
	mac := of("mac_address")
	if mac != "" && !hardware(mac) {
		return true, fmt.Errorf("%q is not a hardware address", mac)
	}
	for text := range strings.SplitSeq(addresses, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		a, err := netip.ParseAddr(text)
		if err != nil {
			return true, fmt.Errorf("%q is not an IP address", text)
		}
		r := there[a.String()]
		if r == nil {
			r = Resource{"type": family(a) + "Address", "address": a.String(), "state": "STATIC", "name": x.label(name)}
			there[a.String()] = r
			x.add(r)
		}
		switch {
		case mac == "":
		case r.has("macAddress") && r["macAddress"] != mac:
			x.skip("the address %s of the host has the hardware address %v by an earlier row: remove one of the two", text, r["macAddress"])
		default:
			r["macAddress"], r["state"] = mac, "DHCP_RESERVED"
		}
	}
	return true, nil
}

// hostAddress adds an address to a host, once.
func (x *infoblox) hostAddress(r Resource, text string) error {
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return fmt.Errorf("%q is not an IP address", text)
	}
	all, _ := r["addresses"].([]string)
	if !slices.Contains(all, a.String()) {
		r["addresses"] = append(all, a.String())
	}
	return nil
}
