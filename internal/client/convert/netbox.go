package convert

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// NetboxPaths are the lists of NetBox's API that Netbox reads, in order.
var NetboxPaths = []string{"/api/ipam/aggregates/", "/api/ipam/prefixes/", "/api/ipam/ip-ranges/", "/api/ipam/ip-addresses/",
	"/api/ipam/vlan-groups/", "/api/ipam/vlans/"}

// named is a choice field or a reference.
type named struct {
	Value string `json:"value"`
	Name  string `json:"name"`
}

// netboxVRF is a VRF. Several VRFs may have the same name.
type netboxVRF struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
	RD   string `json:"rd"`
}

type netboxOne struct {
	ID           int64          `json:"id"`
	Prefix       string         `json:"prefix"`
	Address      string         `json:"address"`
	StartAddress string         `json:"start_address"`
	EndAddress   string         `json:"end_address"`
	Status       named          `json:"status"`
	Role         *named         `json:"role"`
	VRF          *netboxVRF     `json:"vrf"`
	VLAN         *netboxVLAN    `json:"vlan"`
	Description  string         `json:"description"`
	DNSName      string         `json:"dns_name"`
	CustomFields map[string]any `json:"custom_fields"`
	Tags         []named        `json:"tags"`
}

// Netbox converts the results of the lists at NetboxPaths. Aggregates, and prefixes that contain other prefixes, become blocks. Other
// prefixes become networks. vrf is the name of the VRF to read, or Global; empty selects the only one. view is the target view of DNS
// names. Without it, they are ignored. A resource that cannot be read is skipped.
func Netbox(lists [][]json.RawMessage, vrf, view string) (*Document, error) {
	all := lists
	lists = lists[:min(len(lists), netboxVLANGroups)] // VLANs belong to no VRF
	labels := vrfLabels(lists)
	switch all := vrfsOf(lists, labels); {
	case vrf == "" && len(all) > 1:
		return nil, ChoiceError(fmt.Sprintf("there are the VRFs %s: choose one by --vrf", strings.Join(all, ", ")))
	case vrf != "" && vrf != Global && !slices.Contains(all, vrf):
		return nil, ChoiceError(fmt.Sprintf("nothing is in a VRF %q; there are %s", vrf, strings.Join(all, ", ")))
	case vrf == "" && len(all) == 1:
		vrf = all[0]
	}
	d := &netbox{Document: &Document{unsaid: []string{"gateway"}}, view: view,
		names: map[netip.Prefix]string{}, rows: map[netip.Prefix]string{}, aggregateRows: map[netip.Prefix]string{},
		zones: map[string]bool{},
		hosts: map[string]Resource{}, met: map[netip.Addr]string{}, vlanOf: map[netip.Prefix]string{}}
	d.addVLANs(all)
	for i, list := range lists {
		for n, raw := range list {
			var one netboxOne
			err := readJSON(raw, &one)
			kind := strings.Trim(strings.TrimPrefix(NetboxPaths[i], "/api/ipam"), "/")
			if d.rowName = fmt.Sprintf("%s id %d", kind, one.ID); one.ID == 0 {
				d.rowName = fmt.Sprintf("%s number %d", kind, n+1)
			}
			if err != nil {
				d.skip("%v: correct it there", err)
				continue
			}
			d.rowName += fmt.Sprintf(" (%s)", one.Prefix+one.Address+one.StartAddress)
			if in := one.vrf(labels); i > 0 && in != vrf && vrf != "" {
				d.leave("rows of the VRF %s", in)
				continue
			}
			if len(one.Tags) > 0 {
				d.leave("tags")
			}
			for name, value := range one.CustomFields {
				if value != nil {
					d.leave("the custom field %s: define it as a user-defined field, and import it as a table", name)
				}
			}
			before := len(d.Skipped)
			if err := d.addRow(one, i == 0); err != nil {
				d.skip("%v: correct it there", err)
			}
			if len(d.Skipped) == before {
				d.reportUnsupported(raw, kind, one.VLAN)
			}
		}
	}
	d.prefixes = slices.DeleteFunc(d.prefixes, func(p netip.Prefix) bool { // a prefix with an empty container in it is also a block
		holds := slices.ContainsFunc(d.containers, func(c netip.Prefix) bool { return p.Bits() < c.Bits() && p.Contains(c.Addr()) })
		if holds {
			d.rowName = d.rows[p]
			d.add(Resource{"type": family(p.Addr()) + "Block", "range": p.String(), "name": d.names[p]})
		}
		return holds
	})
	d.hierarchy(d.prefixes, func(p netip.Prefix) string {
		d.rowName = d.rows[p]
		return d.names[p]
	})
	d.assignVLANs()
	d.rowName = ""
	for _, p := range d.aggregates { // aggregates without contents are also blocks
		if _, twice := d.names[p]; !twice {
			d.rowName = d.aggregateRows[p]
			d.add(Resource{"type": family(p.Addr()) + "Block", "range": p.String()})
		}
	}
	return d.Document, nil
}

// netboxRead are the members of NetBox's objects that are imported or contain no data about networks and addresses.
var netboxRead = []string{"id", "url", "display", "display_url", "family", "children", "_depth", "created", "last_updated", "prefix",
	"address", "start_address", "end_address", "vrf", "description", "dns_name", "custom_fields", "tags", "status"}

// reportUnsupported lists the members of an object that have a value and are not imported. vlan is its VLAN, which is imported if it is
// known.
func (d *netbox) reportUnsupported(raw json.RawMessage, kind string, vlan *netboxVLAN) {
	var members map[string]any
	if json.Unmarshal(raw, &members) != nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		value := members[name]
		if list, ok := value.([]any); ok && len(list) == 0 {
			continue
		}
		if name == "vlan" && vlan != nil && d.vlans[vlan.ID] != "" {
			continue
		}
		if !slices.Contains(netboxRead, name) && value != nil && value != "" && value != false {
			d.leave("the member %s of %s", name, kind)
		}
	}
	status, ok := members["status"].(map[string]any)
	if ok && kind == "prefixes" && status["value"] != "active" && status["value"] != "container" {
		d.leave("the status %v of %s", status["value"], kind)
	}
}

// vrf returns the label of the object's VRF.
func (o netboxOne) vrf(labels map[int64]string) string {
	if o.VRF == nil {
		return Global
	}
	return cmp.Or(labels[o.VRF.ID], o.VRF.Name)
}

// vrfLabels returns labels, by ID, for VRFs that share their name with another VRF: the name with the route distinguisher or, without one,
// the ID.
func vrfLabels(lists [][]json.RawMessage) map[int64]string {
	byName := map[string]map[int64]string{}
	for _, list := range lists {
		for _, raw := range list {
			var one netboxOne
			if json.Unmarshal(raw, &one) == nil && one.VRF != nil {
				if byName[one.VRF.Name] == nil {
					byName[one.VRF.Name] = map[int64]string{}
				}
				byName[one.VRF.Name][one.VRF.ID] = fmt.Sprintf("%s (%s)", one.VRF.Name, cmp.Or(one.VRF.RD, fmt.Sprint("id ", one.VRF.ID)))
			}
		}
	}
	labels := map[int64]string{}
	for _, same := range byName {
		if len(same) > 1 {
			maps.Copy(labels, same)
		}
	}
	return labels
}

// vrfsOf returns the labels of the VRFs that contain objects. Aggregates do not belong to a VRF.
func vrfsOf(lists [][]json.RawMessage, labels map[int64]string) []string {
	all := map[string]bool{}
	for _, list := range lists[min(1, len(lists)):] {
		for _, raw := range list {
			var one netboxOne
			if json.Unmarshal(raw, &one) == nil { // errors are reported where the object is read
				all[one.vrf(labels)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

type netbox struct {
	*Document
	view                 string
	prefixes, aggregates []netip.Prefix
	containers           []netip.Prefix
	names, rows          map[netip.Prefix]string
	aggregateRows        map[netip.Prefix]string
	zones                map[string]bool
	hosts                map[string]Resource
	met                  map[netip.Addr]string
	// vlans are the paths of the VLANs by their id, vlanOf those of the prefixes.
	vlans  map[int64]string
	vlanOf map[netip.Prefix]string
}

func (d *netbox) addRow(addRow netboxOne, aggregate bool) error {
	switch {
	case addRow.Prefix != "":
		p, err := netip.ParsePrefix(addRow.Prefix)
		if err != nil {
			return fmt.Errorf("%q is not a prefix", addRow.Prefix)
		}
		p = d.masked(p)
		if aggregate {
			if first, twice := d.aggregateRows[p]; twice {
				d.skip("it has the same key as %s: remove one of the two", first)
				return nil
			}
			d.aggregates, d.aggregateRows[p] = append(d.aggregates, p), d.rowName
			return nil
		}
		if first, twice := d.rows[p]; twice {
			d.skip("it has the same key as %s: remove one of the two", first)
			return nil
		}
		d.names[p], d.rows[p] = addRow.Description, d.rowName
		if addRow.VLAN != nil {
			d.vlanOf[p] = d.vlans[addRow.VLAN.ID]
		}
		if addRow.Status.Value == "container" {
			d.containers = append(d.containers, p)
			d.add(Resource{"type": family(p.Addr()) + "Block", "range": p.String(), "name": addRow.Description})
			return nil
		}
		d.prefixes = append(d.prefixes, p)
	case addRow.StartAddress != "":
		d.omit("no range of addresses (ip-ranges) is imported: import those of DHCP from the settings of its server")
	case addRow.Address != "":
		return d.address(addRow)
	default:
		return errors.New("it has neither a prefix nor an address")
	}
	return nil
}

func (d *netbox) address(one netboxOne) error {
	p, err := netip.ParsePrefix(one.Address)
	if err != nil {
		return fmt.Errorf("%q is not an IP address", one.Address)
	}
	state := "STATIC"
	switch one.Status.Value {
	case "dhcp", "slaac":
		d.omit("the address was assigned by DHCP or SLAAC (status %s): its server reports it", one.Status.Value)
		return nil
	case "reserved", "deprecated":
		state = reserved
	}
	name := host(one.DNSName) // the rest of the name becomes the zone
	if name == "" {
		name = one.Description
	}
	if first, twice := d.met[p.Addr()]; twice {
		d.skip("it has the same key as %s: remove one of the two", first)
		return nil
	}
	d.met[p.Addr()] = d.rowName
	d.Document.address(p.Addr(), Resource{"address": p.Addr().String(), "state": state, "name": name})
	_, zone, _ := strings.Cut(strings.ToLower(strings.TrimSuffix(one.DNSName, ".")), ".")
	switch {
	case one.DNSName == "":
	case zone == "":
		d.leave("the name %s, which is in no zone", one.DNSName)
	case d.view == "":
		d.leave("names of addresses (dns_name): choose their view by --view")
	default:
		if !d.zones[zone] {
			d.zones[zone] = true
			d.derived = append(d.derived, zone)
			d.add(Resource{"type": "Zone", "absoluteName": zone, "view": d.view})
		}
		full := strings.ToLower(strings.TrimSuffix(one.DNSName, "."))
		r := d.hosts[full]
		if r == nil {
			r = Resource{"type": "HostRecord", "absoluteName": full, "view": d.view, "addresses": []string{}}
			d.hosts[full] = r
			d.add(r)
		}
		all, _ := r["addresses"].([]string)
		if !slices.Contains(all, p.Addr().String()) {
			r["addresses"] = append(all, p.Addr().String())
		}
	}
	return nil
}
