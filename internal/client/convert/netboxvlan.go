package convert

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
)

// NetboxOptional is the index of the first list in NetboxPaths that an import can do without: the VLANs.
const NetboxOptional = netboxVLANGroups

// netboxVLANGroups and netboxVLANs are the indexes of these lists in NetboxPaths.
const (
	netboxVLANGroups = 4
	netboxVLANs      = 5
)

// netboxNoGroup is the name of the group for VLANs that have neither a group nor a site.
const netboxNoGroup = "VLANs"

// netboxVLAN is a VLAN or a VLAN group.
type netboxVLAN struct {
	ID          int64  `json:"id"`
	VID         int64  `json:"vid"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Group       *named `json:"group"`
	Site        *named `json:"site"`
}

// groupName returns the name of the group of a VLAN: that of its group, otherwise of its site.
func (v netboxVLAN) groupName() string {
	switch {
	case v.Group != nil && v.Group.Name != "":
		return v.Group.Name
	case v.Site != nil && v.Site.Name != "":
		return v.Site.Name
	}
	return netboxNoGroup
}

// addVLANs adds the VLAN groups and the VLANs. It records the path of each VLAN for the networks that refer to it.
func (d *netbox) addVLANs(lists [][]json.RawMessage) {
	d.vlans = map[int64]string{}
	groups, names, numbers := map[string]bool{}, map[string]string{}, map[string]string{}
	each := func(index int, kind string, fn func(v netboxVLAN)) {
		if index >= len(lists) {
			return
		}
		for n, raw := range lists[index] {
			var v netboxVLAN
			err := readJSON(raw, &v)
			if d.rowName = fmt.Sprintf("%s id %d", kind, v.ID); v.ID == 0 {
				d.rowName = fmt.Sprintf("%s number %d", kind, n+1)
			}
			switch {
			case err != nil:
				d.skip("%v: correct it there", err)
			case v.Name == "":
				d.skip("it has no name: give it one")
			default:
				d.rowName += " (" + v.Name + ")"
				fn(v)
			}
		}
	}
	group := func(name, description string) {
		if groups[name] {
			return
		}
		groups[name] = true
		d.add(Resource{"type": "VLANGroup", "name": name, "description": description})
	}
	each(netboxVLANGroups, "vlan-groups", func(v netboxVLAN) {
		if groups[v.Name] {
			d.omit("another group has the name %s: their VLANs are in one group", v.Name)
			return
		}
		group(v.Name, v.Description)
	})
	each(netboxVLANs, "vlans", func(v netboxVLAN) {
		in := v.groupName()
		group(in, "")
		name := v.Name
		if _, twice := names[in+"\n"+name]; twice {
			name = fmt.Sprintf("%s %d", v.Name, v.VID)
		}
		number := fmt.Sprint(in, "\n", v.VID)
		if first := cmp.Or(numbers[number], names[in+"\n"+name]); first != "" {
			d.skip("the group %s has the number %d already, in %s: give the two different groups", in, v.VID, first)
			return
		}
		names[in+"\n"+name], numbers[number] = d.rowName, d.rowName
		d.vlans[v.ID] = "vlanGroups/" + in + "/vlans/" + name
		d.add(Resource{"type": "VLAN", "vlanGroup": in, "name": name, "number": v.VID, "description": v.Description})
	})
	d.rowName = ""
}

// assignVLANs sets the VLANs of the networks.
func (d *netbox) assignVLANs() {
	for _, r := range d.Resources {
		kind, _ := r["type"].(string)
		text, _ := r["range"].(string)
		if p, err := netip.ParsePrefix(text); err == nil && strings.HasSuffix(kind, "Network") && d.vlanOf[p] != "" {
			r["vlan"] = d.vlanOf[p]
		}
	}
}
