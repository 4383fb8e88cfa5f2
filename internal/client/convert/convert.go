// Package convert converts the data of other IPAM, DNS and DHCP programs to resources for POST /apply. Data without an equivalent is
// omitted and reported in a note. The package is pure: it performs no I/O.
package convert

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// Resource is a desired resource: its members, including type.
type Resource map[string]any

// Document is the result of a conversion.
type Document struct {
	Resources []Resource
	// routers are gateways whose network the source does not name.
	routers []router
	// notes are the rows of each note. The key is the text of the note.
	notes map[string][]string
	// rowName is the row that is being read, or empty for sources without rows. Skipped are the rows that produced no resource.
	rowName string
	Skipped []Skipped
	// derived are the zones that the source does not name and that were derived from host names.
	derived []string
	// unsaid are members of networks that the source cannot express. An existing network keeps its values of them.
	unsaid []string
	// shared are the shared networks of IPv4 networks, by range.
	shared map[string]string
	// links are the links of IPv6 networks.
	links map[netip.Prefix]string
	// custom are the codes of custom options.
	custom []int
	// reserved are the addresses with a reservation for a client.
	reserved map[netip.Addr]bool
}

// router is a gateway and the row that names it.
type router struct {
	address netip.Addr
	row     string
}

// cleared is the value of a member that the source has but leaves empty. JSON writes null for it or omits it.
type cleared struct{}

// MarshalJSON returns null.
func (cleared) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// clearable are the members that can be cleared.
var clearable = []string{"name", "macAddress", "ttl", "gateway"}

// has reports whether a resource has a value for a member.
func (r Resource) has(name string) bool { return r[name] != nil && r[name] != cleared{} }

// ChoiceError reports that an option is missing, or that its value does not exist in the file.
type ChoiceError string

func (e ChoiceError) Error() string { return string(e) }

// Skipped is a row that was skipped.
type Skipped struct {
	// Row identifies the row: its line and its subject. Reason is the reason and the remedy.
	Row, Reason string
	// ByRule marks a row that does not describe a resource, so that --prune may delete resources of earlier imports. Other skipped rows are
	// wrong: they may describe existing resources.
	ByRule bool
}

func (s Skipped) String() string { return s.Row + ": " + s.Reason }

// root is the place of resources that are in no other resource.
const root = "/"

// origin is the internal member of a resource with the row that it was read from. JSON removes it.
const origin = "\x00row"

// skip skips the current row because it is wrong.
func (d *Document) skip(format string, args ...any) {
	d.Skipped = append(d.Skipped, Skipped{Row: d.rowName, Reason: fmt.Sprintf(format, args...)})
}

// omit skips the current row because it does not describe a resource.
func (d *Document) omit(format string, args ...any) {
	d.Skipped = append(d.Skipped, Skipped{Row: d.rowName, Reason: fmt.Sprintf(format, args...), ByRule: true})
}

// CountWrong returns the number of skipped rows that may describe existing resources.
func (d *Document) CountWrong() (n int) {
	for _, one := range d.Skipped {
		if !one.ByRule {
			n++
		}
	}
	return n
}

// skipResource reports a resource as skipped, under the row that it was read from.
func (d *Document) skipResource(r Resource, format string, args ...any) {
	d.Skipped = append(d.Skipped, Skipped{Row: rowOf(r), Reason: fmt.Sprintf(format, args...)})
}

// rowOf returns the row that a resource was read from. Without a row it returns the type and key of the resource.
func rowOf(r Resource) string {
	if row, ok := r[origin].(string); ok && row != "" {
		return row
	}
	for _, key := range []string{"range", "address", "absoluteName"} {
		if text, ok := r[key].(string); ok {
			return fmt.Sprintf("%v %s", r["type"], text)
		}
	}
	return fmt.Sprint(r["type"])
}

// leave notes an ignored part of a row or setting. Use skip or omit for a whole row.
func (d *Document) leave(format string, args ...any) {
	if d.notes == nil {
		d.notes = map[string][]string{}
	}
	text := fmt.Sprintf(format, args...)
	d.notes[text] = append(d.notes[text], d.rowName)
}

// maxNamed is the maximum number of rows that a note names.
const maxNamed = 20

// Notes returns the notes, each once, with the number of occurrences and the first rows.
func (d *Document) Notes() (all []string) {
	for _, text := range slices.Sorted(maps.Keys(d.notes)) {
		rows := d.notes[text]
		if n := len(rows); n > 1 {
			text += fmt.Sprintf(" (%d)", n)
		}
		rows = slices.Compact(slices.DeleteFunc(slices.Clone(rows), func(row string) bool { return row == "" }))
		if len(rows) > maxNamed {
			rows = append(rows[:maxNamed], fmt.Sprintf("and %d more", len(rows)-maxNamed))
		}
		if len(rows) > 0 {
			text += ", in " + strings.Join(rows, ", ")
		}
		all = append(all, text)
	}
	return all
}

// add adds a resource.
func (d *Document) add(r Resource) {
	for name, value := range r {
		if text, ok := value.(string); !ok || text != "" {
			continue
		}
		network := strings.HasSuffix(fmt.Sprint(r["type"]), "Network")
		if delete(r, name); slices.Contains(clearable, name) && !(network && slices.Contains(d.unsaid, name)) {
			r[name] = cleared{}
		}
	}
	if d.rowName != "" {
		r[origin] = d.rowName
	}
	d.Resources = append(d.Resources, r)
}

// JSON returns the resources, parents before children, and the row of each. If empty is true, members that the source leaves empty are
// null; otherwise they are omitted.
func (d *Document) JSON(empty bool) (all []json.RawMessage, rows []string, err error) {
	order := slices.Clone(d.Resources)
	slices.SortStableFunc(order, func(a, b Resource) int { return cmp.Compare(rank(a), rank(b)) })
	for _, r := range order {
		row := rowOf(r)
		r = maps.Clone(r)
		delete(r, origin)
		if r["in"] == root {
			r["in"] = ""
		}
		maps.DeleteFunc(r, func(_ string, value any) bool { return value == cleared{} && !empty })
		raw, err := json.Marshal(r)
		if err != nil {
			return nil, nil, err
		}
		all, rows = append(all, raw), append(rows, row)
	}
	return all, rows, nil
}

// ranks are the positions of types in a document. Those below 0 precede the blocks.
var ranks = map[string]int{"TagGroup": -9, "Tag": -8, "Configuration": -7, "DHCPv4CustomClientOptionDefinition": -6, "MACPool": -5,
	"DHCPv4ClientClass": -4, "DHCPv4Subclass": -3, "TSIGKey": -2, "DHCPZoneGroup": -1, "VLANGroup": 250, "VLAN": 260, "MACAddress": 450,
	"HostRecord": 800, "DHCPv4ClientOption": 910, "DHCPv4ServiceOption": 910, "DHCPv6ClientOption": 910, "DHCPv6ServiceOption": 910,
	"DHCPForwardZone": 920, "DHCPReverseZone": 920, "DHCPDeploymentRole": 930}

// rank returns the position of a resource in the document: classes and pools, blocks by size, then networks, their contents, DNS names, and
// options.
func rank(r Resource) int {
	name, _ := r["type"].(string)
	if place, ok := ranks[name]; ok {
		return place
	}
	switch {
	case strings.HasSuffix(name, "Block"):
		p, err := netip.ParsePrefix(fmt.Sprint(r["range"]))
		if err != nil {
			return 200
		}
		return p.Bits()
	case strings.HasSuffix(name, "Network"):
		return 300
	case strings.HasSuffix(name, "DHCPRange"):
		return 400
	case strings.HasSuffix(name, "Address"):
		return 500
	case name == "Zone":
		return 600 + strings.Count(fmt.Sprint(r["absoluteName"]), ".")
	}
	return 900
}

// family returns the prefix of the type names of an address family.
func family(a netip.Addr) string {
	if a.Is4() {
		return "IPv4"
	}
	return "IPv6"
}

// reserved is the state of an address that must not be assigned.
const reserved = "RESERVED"

// address adds an address. An IPv6 address has no state RESERVED and becomes STATIC.
func (d *Document) address(a netip.Addr, r Resource) {
	if r["type"] = family(a) + "Address"; a.Is6() && r["state"] == reserved {
		d.leave("the state reserved of IPv6 addresses, which do not have it: they are STATIC")
		r["state"] = "STATIC"
	}
	d.add(r)
}

// network adds a network. gateway is the address of its router, or empty.
func (d *Document) network(p netip.Prefix, name, gateway string) {
	p = p.Masked()
	r := Resource{"type": family(p.Addr()) + "Network", "range": p.String(), "name": name}
	if p.Addr().Is4() { // without the member, a new network gets its first address as gateway
		if r["gateway"] = nil; gateway != "" {
			r["gateway"] = gateway
		}
	}
	d.add(r)
}
