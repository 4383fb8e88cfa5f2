package convert

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// phpipamColumns are what phpIPAM calls the columns of its exports, by what they are here. Its XLS files are saved as CSV first.
var phpipamColumns = map[string]string{"subnet": "subnet", "mask": "mask", "section": "section", "description": "description",
	"ip address": "address",
	"ip_addr":    "address", "ipaddress": "address", "ip": "address", "ip state": "state", "state": "state", "tag": "state",
	"hostname": "hostname",
	"dns_name": "hostname", "dns name": "hostname", "mac": "mac", "mac address": "mac", "is gateway": "gateway", "is_gateway": "gateway",
	"gateway":       "gateway",
	"master subnet": "master", "vlan": "vlan", "vrf": "vrf", "owner": "owner", "device": "device", "note": "note", "port": "port"}

// Global is how what is in no VRF is named where a VRF is chosen.
const Global = "global"

// Phpipam reads what phpIPAM exports of subnets, of addresses, or of both, as CSV: a line of names, and a row for each. vrf is the name of
// the VRF that is read, or Global; empty: the only one. A row that cannot be read is skipped.
func Phpipam(vrf string, files ...[]byte) (*Document, error) {
	d := &phpipam{Document: &Document{}, vrf: vrf, vrfs: map[string]bool{}}
	for _, raw := range files {
		if err := d.file(raw); err != nil {
			return nil, err
		}
	}
	switch all := slices.Sorted(maps.Keys(d.vrfs)); {
	case vrf == "" && len(all) > 1:
		return nil, fmt.Errorf("there are the VRFs %s: choose one by --vrf", strings.Join(all, ", "))
	case vrf != "" && !d.vrfs[vrf]:
		return nil, fmt.Errorf("nothing is in a VRF %q; there are %s", vrf, strings.Join(all, ", "))
	}
	d.subnets()
	return d.Document, nil
}

type phpipam struct {
	*Document
	// vrf is the VRF that is read; empty is any. vrfs are those that the files have.
	vrf      string
	vrfs     map[string]bool
	prefixes []netip.Prefix
	names    map[netip.Prefix]string
	// rows are where the subnets stand.
	rows map[netip.Prefix]string
}

func (d *phpipam) file(raw []byte) error {
	content := text(raw)
	r := csv.NewReader(strings.NewReader(content))
	r.FieldsPerRecord, r.LazyQuotes = -1, true
	if first, _, _ := strings.Cut(content, "\n"); strings.Count(first, ";") > strings.Count(first, ",") {
		r.Comma = ';'
	}
	head, err := r.Read()
	if err != nil {
		return errors.New("has no line of names")
	}
	columns := map[string]int{}
	for i, name := range head {
		if known := phpipamColumns[strings.ToLower(strings.TrimSpace(name))]; known != "" {
			columns[known] = i
		} else if name != "" {
			d.leave("the column %s", name)
		}
	}
	_, subnets := columns["subnet"]
	_, addresses := columns["address"]
	if !subnets && !addresses {
		return errors.New("has neither a column Subnet nor a column IP address: it is no export of phpIPAM")
	}
	for _, name := range []string{"vlan", "owner", "device", "note", "port", "section"} {
		if _, ok := columns[name]; ok {
			d.leave("what the column %s says", name)
		}
	}
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		line, _ := r.FieldPos(0)
		of := func(name string) string {
			if i, ok := columns[name]; ok && i < len(row) {
				return strings.TrimSpace(row[i])
			}
			return ""
		}
		d.at = fmt.Sprintf("line %d (%s)", line, strings.TrimSpace(of("address")+" "+of("subnet")))
		if in := cmp.Or(of("vrf"), Global); of("address")+of("subnet") != "" {
			if d.vrfs[in] = true; d.vrf != "" && in != d.vrf {
				d.leave("what is in the VRF %s", in)
				continue
			}
		}
		if addresses && of("address") != "" {
			err = d.address(of)
		} else if subnets && of("subnet") != "" {
			err = d.subnet(of)
		}
		if err != nil {
			d.skip("%v: correct the row", err)
		}
	}
}

func (d *phpipam) subnet(of func(string) string) error {
	if strings.HasSuffix(of("subnet"), "(folder)") { // as export-subnets.php of phpIPAM words one
		d.leave("folders: what lies in them goes by its range")
		return nil
	}
	p, err := prefixOf(of("subnet"), of("mask"))
	if err != nil {
		return fmt.Errorf("the subnet %s: %w", of("subnet"), err)
	}
	if d.names == nil {
		d.names = map[netip.Prefix]string{}
	}
	if first, there := d.rows[p]; there {
		d.skip("it has the same key as %s: remove one of the two", first)
		return nil
	}
	if d.rows == nil {
		d.rows = map[netip.Prefix]string{}
	}
	d.prefixes, d.rows[p] = append(d.prefixes, p), d.at
	d.names[p] = of("description")
	return nil
}

// phpipamStates are the states of addresses.
var phpipamStates = map[string]string{"": "STATIC", "used": "STATIC", "active": "STATIC", "online": "STATIC", "offline": "STATIC",
	"reserved": reserved,
	"dhcp":     "DHCP_RESERVED"}

func (d *phpipam) address(of func(string) string) error {
	a, err := netip.ParseAddr(strings.SplitN(of("address"), "/", 2)[0])
	if err != nil {
		return fmt.Errorf("%q is no address", of("address"))
	}
	if yes := strings.ToLower(of("gateway")); yes == "1" || yes == "yes" || yes == "true" {
		d.routers = append(d.routers, a)
		return nil
	}
	state, mac := phpipamStates[strings.ToLower(of("state"))], of("mac")
	if mac != "" && !hardware(mac) {
		d.leave("hardware addresses that are none")
		mac = ""
	}
	if state == "DHCP_RESERVED" && mac == "" {
		d.leave("addresses that DHCP gave out: the next lease says it")
		return nil
	}
	if state == "" {
		state = "STATIC"
		d.leave("the state %s: STATIC", of("state"))
	}
	name := of("hostname")
	if name == "" {
		name = of("description")
	}
	d.Document.address(a, Resource{"address": a.String(), "state": state, "macAddress": mac, "name": name})
	return nil
}

// subnets adds those in which others lie as blocks, and the others as networks.
func (d *phpipam) subnets() {
	d.hierarchy(d.prefixes, func(p netip.Prefix) string {
		d.at = d.rows[p]
		return d.names[p]
	})
}

// hierarchy adds prefixes: those in which others lie as blocks, the others as networks. of gives the name of each.
func (d *Document) hierarchy(all []netip.Prefix, of func(p netip.Prefix) (name string)) {
	holds := map[netip.Prefix]bool{}
	known := map[netip.Prefix]bool{}
	for _, p := range all {
		known[p] = true
	}
	for _, p := range all {
		for bits := p.Bits() - 1; bits >= 0; bits-- {
			if above := netip.PrefixFrom(p.Addr(), bits).Masked(); known[above] {
				holds[above] = true
			}
		}
	}
	for _, p := range all {
		name := of(p)
		if holds[p] {
			d.add(Resource{"type": family(p.Addr()) + "Block", "range": p.String(), "name": name})
			continue
		}
		d.network(p, name, "")
	}
}
