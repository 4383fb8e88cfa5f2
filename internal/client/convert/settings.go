package convert

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"portolan/internal/base/dhcpoption"
	"portolan/internal/wire/dhcpdata"
)

// setting is a DHCP option at a level of a source: one that is sent to clients, or a service option.
type setting struct {
	row     string
	service bool
	name    string
	value   any
}

// key identifies the settings that replace each other.
func (s setting) key() string { return fmt.Sprint(s.service, s.name) }

// settings are the DHCP options of a level of a source, in its order.
type settings struct {
	all []setting
}

// put adds a setting. A later setting of a level replaces an earlier one.
func (s *settings) put(one setting) {
	i := slices.IndexFunc(s.all, func(other setting) bool { return other.key() == one.key() })
	if i >= 0 {
		s.all[i] = one
		return
	}
	s.all = append(s.all, one)
}

// mergeAbove returns the settings with those of a farther level that they do not replace.
func (s *settings) mergeAbove(above *settings) *settings {
	both := &settings{slices.Clone(s.all)}
	for _, one := range above.all {
		if !both.has(one.service, one.name) {
			both.all = append(both.all, one)
		}
	}
	return both
}

// get returns the value of a setting, or nil.
func (s *settings) get(service bool, name string) any {
	for _, one := range s.all {
		if one.service == service && one.name == name {
			return one.value
		}
	}
	return nil
}

func (s *settings) has(service bool, name string) bool { return s.get(service, name) != nil }

// names of DHCP service options that several sources set.
const (
	bootUnknown  = "boot-unknown-clients"
	ddnsUpdates  = "ddns-updates"
	defaultLease = "default-lease-time"
	maximumLease = "max-lease-time"
	minimumLease = "min-lease-time"
	allowClasses = "allow-dhcp-class-members"
	denyClasses  = "deny-dhcp-class-members"
	allowPools   = "allow-mac-pool"
	denyPools    = "deny-mac-pool"
	fileName     = "filename"
	nextServer   = "next-server"
	serverName   = "server-name"
	routerOption = "router"
	vendorOption = "vendor-encapsulated-options"
)

// optionTable are the client options of a family: those of the standards, and those that the source defines.
type optionTable struct {
	byName map[string]dhcpoption.Definition
	byCode map[int]dhcpoption.Definition
}

// readOptions returns the client options of the standards.
func readOptions(v6 bool) (*optionTable, error) {
	table := dhcpoption.Client4
	if v6 {
		table = dhcpoption.Client6
	}
	all, err := dhcpoption.Read(table)
	t := &optionTable{map[string]dhcpoption.Definition{}, map[int]dhcpoption.Definition{}}
	for _, d := range all {
		if _, there := t.byCode[d.Code]; !there {
			t.byCode[d.Code] = d
		}
		for _, name := range append(d.OtherNames, d.Name) {
			t.byName[name] = d
		}
	}
	for name, code := range furtherNames[v6] {
		if _, there := t.byName[name]; !there {
			t.byName[name] = t.byCode[code]
		}
	}
	return t, err
}

// furtherNames are names of ISC dhcpd and Kea for client options, by family.
var furtherNames = map[bool]map[string]int{false: {
	"resource-location-servers": 11, "impress-servers": 10, "policy-filter": 21, "router-solicitation-address": 32,
	"path-mtu-plateau-table": 25, "ieee802-3-encapsulation": 36, "default-tcp-ttl": 37, "tcp-keepalive-garbage": 39, "font-servers": 48,
	"x-display-manager": 49, "nisplus-domain": 64, "nisplus-servers": 65, "mobile-ip-home-agent": 68, "smtp-server": 69, "nntp-server": 71,
	"www-server": 72, "finger-server": 73, "irc-server": 74, "streettalk-server": 75, "streettalk-directory-assistance-server": 76,
	"slp-directory-agent": 78, "slp-service-scope": 79, "nds-servers": 85, "nds-tree-name": 86, "nds-context": 87,
	"bcms-controller-names": 88, "bcms-controller-address": 89, "uap-servers": 98, "v4-captive-portal": 114, "default-url": 114,
	"sip-servers": 120, "classless-static-route": 121, "loader-configfile": 209, "loader-pathprefix": 210,
	"tz-posix": 100, "tz-database": 101, "pcode": 100, "tcode": 101, "domain-search": 119, "name-service-search": 117,
	"nis-servers": 41, "ntp-servers": 42, "perform-mask-discovery": 29, "non-local-source-routing": 20, "swap-server": 16,
	"merit-dump": 14, "nwip-domain-name": 62, "boot-file-name": 67, "capwap-ac-v4": 138, "v4-lost": 137, "tftp-server-address": 150,
	"time-servers": 4, "vivso-suboptions": 125, "pxelinux.configfile": 209, "pxelinux.pathprefix": 210, "pxelinux.reboottime": 211,
	"pxelinux.magic": 208,
}, true: {
	"name-servers": 23, "domain-search": 24, "sip-server-dns": 21, "sip-server-addr": 22, "sip-servers-names": 21,
	"sip-servers-addresses": 22, "nisp-servers": 28, "nis-servers": 27, "nis-domain-name": 29, "nisp-domain-name": 30, "sntp-servers": 31,
	"info-refresh-time": 32, "information-refresh-time": 32, "bcms-server-dns": 33, "bcms-server-addr": 34, "bcms-server-names": 33,
	"bcms-server-addresses": 34, "bcms-server-name": 33, "geoconf-civic": 36, "pana-agent": 40, "new-posix-timezone": 41,
	"new-tzdb-timezone": 42, "bootfile-url": 59, "bootfile-param": 60, "v6-captive-portal": 103, "aftr-name": 64,
	"erp-local-domain-name": 65, "vendor-opts": 17, "lost": 51,
}}

// levelOf returns the level of the options of a resource by its path.
func levelOf(in string) dhcpdata.Level {
	collection, _, _ := strings.Cut(in, "/")
	return map[string]dhcpdata.Level{"ranges": dhcpdata.AtRange, "addresses": dhcpdata.AtAddress, "macAddresses": dhcpdata.AtMACAddress,
		"clientClasses": dhcpdata.AtClass}[collection]
}

// refusal returns the reason why a deployment refuses a service option of a resource; empty if it does not.
func (s setting) refusal(in string, v6 bool) string {
	described, known := dhcpdata.FindService(s.name, v6)
	switch {
	case !s.service || !known:
		return ""
	case described.Effect == "":
		return described.Refusal
	case slices.Contains(described.Without, levelOf(in)):
		return fmt.Sprintf("it has no effect at a %s: the server reads it at %s", levelOf(in), described.Where())
	}
	return ""
}

// emit adds the settings of a level as options of a resource. in is its path; an empty path is the configuration.
func (d *Document) emit(in string, s *settings, v6 bool) {
	before := d.rowName
	defer func() { d.rowName = before }()
	for _, one := range s.all {
		if d.rowName = one.row; one.value == "" {
			d.leave("the option %s: its value is empty", one.name)
			continue
		}
		if why := one.refusal(in, v6); why != "" {
			d.leave("the option %s: %s", one.name, why)
			continue
		}
		kind := "DHCPv4"
		if v6 {
			kind = "DHCPv6"
		}
		if one.service {
			kind += "ServiceOption"
		} else {
			kind += "ClientOption"
		}
		r := Resource{"type": kind, "name": one.name, "value": one.value}
		if in != "" {
			r["in"] = in
		}
		d.add(r)
	}
}

// knownPool is the MAC pool with the hardware addresses of all hosts of a source. Ranges that are for known clients allow it.
const knownPool = "known-clients"

// member adds a hardware address, with a MAC pool or without one.
func (d *Document) member(mac, pool string) {
	r := Resource{"type": "MACAddress", "address": mac}
	if pool != "" {
		r["macPool"] = "macPools/" + pool
	}
	d.add(r)
}

// Shares reports whether the source has shared networks of several IPv4 subnets.
func (d *Document) Shares() bool { return len(d.sharedNetworks()) > 0 }

// sharedNetworks returns the names of the shared networks with several IPv4 subnets, sorted.
func (d *Document) sharedNetworks() (names []string) {
	number := map[string]int{}
	for _, name := range d.shared {
		number[name]++
	}
	for _, name := range slices.Sorted(maps.Keys(number)) {
		if number[name] > 1 {
			names = append(names, name)
		}
	}
	return names
}

// Share gives the networks of each shared network a common tag. group is the tag group for shared networks of the configuration. If it is
// empty, the document creates one and sets it in the configuration.
func (d *Document) Share(configuration, group string) {
	names := d.sharedNetworks()
	if len(names) == 0 {
		return
	}
	d.rowName = ""
	if group == "" {
		group = "shared networks of " + configuration
		d.add(Resource{"type": "TagGroup", "in": root, "name": group, "tag": false})
		d.add(Resource{"type": "Configuration", "in": root, "name": configuration, "sharedNetworkTagGroup": "tagGroups/" + group, "tag": false})
	}
	for _, name := range names {
		d.add(Resource{"type": "Tag", "in": "tagGroups/" + group, "name": name, "tag": false})
	}
	for _, r := range d.Resources {
		if name := d.shared[fmt.Sprint(r["range"])]; slices.Contains(names, name) && r["type"] == "IPv4Network" {
			r["sharedNetworkTag"] = "tagGroups/" + group + "/tags/" + name // another configuration may have a tag of the name
		}
	}
}

// HasOptions reports whether the document has resources that name the resource above them, such as options of networks.
func (d *Document) HasOptions() bool {
	return slices.ContainsFunc(d.Resources, func(r Resource) bool { return r.has("in") })
}

// ZoneGroup is the zone group with the zones for updates of DNS.
const ZoneGroup = "dhcpd"

// HasZoneGroup reports whether the document contains the zone group.
func (d *Document) HasZoneGroup() bool {
	return slices.ContainsFunc(d.Resources, func(r Resource) bool { return r["type"] == "DHCPZoneGroup" })
}

// Serve gives each network a DHCP role with the interfaces: those of the server and, in a failover pair, of its partner.
func (d *Document) Serve(interfaces []int64) {
	d.rowName = ""
	if len(interfaces) > 1 {
		delete(d.notes, pairNote)
	}
	for _, p := range d.Networks() {
		var all []map[string]any
		for i, id := range interfaces {
			all = append(all, map[string]any{"id": id, "deploymentRoleInterfaceType": []string{"PRIMARY", "SECONDARY"}[i]})
		}
		d.add(Resource{"type": "DHCPDeploymentRole", "in": "networks/" + p.String(), "roleType": "PRIMARY", "interfaces": all})
	}
}
