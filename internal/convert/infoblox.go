package convert

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Infoblox reads what Infoblox exports as CSV: rows of several kinds, each of which has a line of names before it that begins with header-.
// view is the view that names go to; empty leaves names out. from is the name of the view there that is read, networkView that of the
// network view; empty: any, where there is one alone.
func Infoblox(raw []byte, view, from, networkView string) (*Document, error) {
	r := csv.NewReader(strings.NewReader(text(raw)))
	r.FieldsPerRecord, r.LazyQuotes = -1, true
	x := &infoblox{Document: &Document{}, view: view, from: map[string]string{"view": from, "network_view": networkView},
		columns: map[string]map[string]int{}, hosts: map[string]Resource{}, silent: map[string]map[string]Resource{}}
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		line, _ := r.FieldPos(0)
		kind := strings.ToLower(strings.TrimSpace(row[0]))
		if name, ok := strings.CutPrefix(kind, "header-"); ok {
			columns := map[string]int{}
			for i, c := range row[1:] {
				columns[strings.ToLower(strings.TrimRight(strings.TrimSpace(c), "*"))] = i + 1
			}
			x.columns[name] = columns
			continue
		}
		if kind == "" {
			continue
		}
		if x.columns[kind] == nil {
			return nil, fmt.Errorf("line %d: %s: there is no line header-%s before it", line, row[0], kind)
		}
		if err := x.row(kind, func(name string) string {
			if i, ok := x.columns[kind][name]; ok && i < len(row) {
				return strings.TrimSpace(row[i])
			}
			return ""
		}); err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", line, kind, err)
		}
	}
	if len(x.columns) == 0 {
		return nil, errors.New("has no line that begins with header-: it is no export of Infoblox")
	}
	return x.Document, nil
}

type infoblox struct {
	*Document
	view string
	// from are the views there that are read, by the columns that name them: the first one that is met, where none was asked for.
	from    map[string]string
	columns map[string]map[string]int
	// hosts are the records of hosts by their names: their addresses come in rows of their own. silent are the addresses of those that
	// are not to be in DNS, by their names.
	hosts  map[string]Resource
	silent map[string]map[string]Resource
}

// prefixOf reads a network and its mask, as 255.255.255.0, 24, or in one with the network.
func prefixOf(network, mask string) (netip.Prefix, error) {
	if strings.Contains(network, "/") {
		p, err := netip.ParsePrefix(network)
		return p.Masked(), err
	}
	a, err := netip.ParseAddr(network)
	if err != nil {
		return netip.Prefix{}, err
	}
	bits, err := strconv.Atoi(mask)
	if m := net.ParseIP(mask).To4(); m != nil {
		var size int
		if bits, size = net.IPMask(m).Size(); size == 0 {
			return netip.Prefix{}, fmt.Errorf("%q is no mask", mask)
		}
	} else if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is no mask", mask)
	}
	p := netip.PrefixFrom(a, bits)
	if !p.IsValid() {
		return p, fmt.Errorf("%s/%s is no network", network, mask)
	}
	return p.Masked(), nil
}

// row reads a row; of gives its cells by the names of its columns.
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
		case name == "" || kind == "hostaddress" || kind == "ipv6hostaddress":
		case x.from[column] == "":
			x.from[column] = name
		case x.from[column] != name:
			x.leave("what is in the %s %s: import it by itself, by --from-%s", strings.ReplaceAll(column, "_", " "), name,
				strings.ReplaceAll(column, "_", "-"))
			return nil
		}
	}
	if strings.EqualFold(of("disabled"), "true") {
		x.leave("what is disabled")
		return nil
	}
	switch kind {
	case "networkcontainer", "ipv6networkcontainer":
		p, err := prefixOf(of("address"), first("netmask", "cidr"))
		if err != nil {
			return err
		}
		x.add(Resource{"type": family(p.Addr()) + "Block", "range": p.String(), "name": of("comment")})
	case "network", "ipv6network":
		p, err := prefixOf(of("address"), first("netmask", "cidr"))
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
			return fmt.Errorf("%s to %s is no range", low, high)
		}
		x.add(Resource{"type": family(from) + "DHCPRange", "range": low + "-" + high, "name": of("name")})
	case "fixedaddress", "ipv6fixedaddress":
		return x.reservation(first("ip_address", "address"), of("mac_address"), of("duid"), of("name"))
	default:
		return x.name(kind, of, first)
	}
	return nil
}

// name reads a row of names.
func (x *infoblox) name(kind string, of func(string) string, first func(...string) string) error {
	if silent, err := x.quiet(kind, of); silent || err != nil {
		return err
	}
	if x.view == "" {
		x.leave("names (%s): say into which view, by --view", kind)
		return nil
	}
	fqdn := strings.TrimSuffix(of("fqdn"), ".")
	record := func(r Resource) {
		r["absoluteName"], r["view"] = fqdn, x.view
		if ttl, err := strconv.Atoi(of("ttl")); err == nil {
			r["ttl"] = ttl
		}
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
		r := Resource{"type": "HostRecord", "addresses": []string{}}
		for a := range strings.SplitSeq(of("addresses"), ",") {
			if err := x.hostAddress(r, a); err != nil {
				return err
			}
		}
		record(r)
		x.hosts[strings.ToLower(fqdn)] = r
	case "hostaddress", "ipv6hostaddress":
		if r := x.hosts[strings.ToLower(strings.TrimSuffix(of("parent"), "."))]; r != nil {
			if err := x.hostAddress(r, of("address")); err != nil {
				return err
			}
			if mac := of("mac_address"); mac != "" {
				return x.reservation(of("address"), mac, "", host(of("parent")))
			}
		} else {
			x.leave("addresses of hosts that are not in the file before them")
		}
	case "arecord", "aaaarecord":
		if r := x.hosts[strings.ToLower(fqdn)]; r != nil {
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
		record(Resource{"type": "TXTRecord", "text": of("text")})
	case "mxrecord":
		priority, err := strconv.Atoi(first("preference", "priority"))
		if err != nil {
			return errors.New("the preference is no number")
		}
		record(Resource{"type": "MXRecord", "priority": priority, "linkedRecord": strings.TrimSuffix(first("mx", "mail_exchanger"), ".")})
	default:
		x.leave("rows of the kind %s", kind)
	}
	return nil
}

// quiet reads a row of a host that is not to be in DNS, or of an address of one: its addresses are assigned under its name, each once.
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
	for text := range strings.SplitSeq(addresses, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		a, err := netip.ParseAddr(text)
		if err != nil {
			return true, fmt.Errorf("%q is no address", text)
		}
		r := there[a.String()]
		if r == nil {
			r = Resource{"type": family(a) + "Address", "address": a.String(), "state": "STATIC", "name": host(name)}
			there[a.String()] = r
			x.add(r)
		}
		if mac := of("mac_address"); mac != "" {
			if !hardware(mac) {
				return true, fmt.Errorf("%q is no hardware address", mac)
			}
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
		return fmt.Errorf("%q is no address", text)
	}
	all, _ := r["addresses"].([]string)
	if !slices.Contains(all, a.String()) {
		r["addresses"] = append(all, a.String())
	}
	return nil
}
