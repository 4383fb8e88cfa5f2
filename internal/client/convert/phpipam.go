package convert

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"portolan/internal/base/csvrows"
)

// phpipamColumns maps the column names of phpIPAM exports to the names used here. XLS exports must be saved as CSV first.
var phpipamColumns = map[string]string{"subnet": "subnet", "mask": "mask", "section": "section", "description": "description",
	"ip address": "address",
	"ip_addr":    "address", "ipaddress": "address", "ip": "address", "ip state": "state", "state": "state", "tag": "state",
	"hostname": "hostname",
	"dns_name": "hostname", "dns name": "hostname", "mac": "mac", "mac address": "mac", "is gateway": "gateway", "is_gateway": "gateway",
	"gateway":   "gateway",
	"is folder": "folder", "isfolder": "folder",
	"master subnet": "master", "vlan": "vlan", "vrf": "vrf", "owner": "owner", "device": "device", "note": "note", "port": "port"}

// Global is the name of the global table where a VRF is selected.
const Global = "global"

// Phpipam converts CSV exports of phpIPAM: of subnets, of addresses, or of both, with a header line. vrf is the name of the VRF to read, or
// Global; empty selects the only one. A row that cannot be read is skipped.
func Phpipam(vrf string, files ...[]byte) (*Document, error) {
	d := &phpipam{Document: &Document{}, vrf: vrf, vrfs: map[string]bool{}}
	for i, raw := range files {
		if len(files) > 1 {
			d.fileName = fmt.Sprintf("file %d ", i+1)
		}
		if err := d.file(raw); err != nil {
			return nil, err
		}
	}
	if len(d.vrfs) == 0 {
		d.vrfs[Global] = true
	}
	switch all := slices.Sorted(maps.Keys(d.vrfs)); {
	case vrf == "" && len(all) > 1:
		return nil, ChoiceError(fmt.Sprintf("there are the VRFs %s: choose one by --vrf", strings.Join(all, ", ")))
	case vrf != "" && !d.vrfs[vrf]:
		return nil, ChoiceError(fmt.Sprintf("nothing is in a VRF %q; there are %s", vrf, strings.Join(all, ", ")))
	}
	d.withoutVRF()
	d.subnets()
	return d.Document, nil
}

type phpipam struct {
	*Document
	// vrf is the VRF to read; empty means any. vrfs are the VRFs in the files.
	vrf      string
	vrfs     map[string]bool
	prefixes []netip.Prefix
	names    map[netip.Prefix]string
	// rows are the rows of the subnets.
	rows map[netip.Prefix]string
	// fileName is the file that is read, if there are several.
	fileName string
	// all are the subnets of all VRFs, each with the VRFs that contain it. later are address rows without a VRF.
	all   map[netip.Prefix][]string
	later []phpipamRow
}

// phpipamRow is a row: its location, and a function that returns its cells.
type phpipamRow struct {
	origin string
	cell   func(string) string
}

// addKnown records that a VRF contains the subnet of a row.
func (d *phpipam) addKnown(vrf string, of func(string) string) {
	if p, err := (&Document{}).prefixOf(of("subnet"), of("mask")); err == nil {
		if d.all == nil {
			d.all = map[netip.Prefix][]string{}
		}
		d.all[p] = append(d.all[p], vrf)
	}
}

// withoutVRF reads the addresses without a VRF. Each belongs to the VRF of its subnet.
func (d *phpipam) withoutVRF() {
	for _, row := range d.later {
		d.rowName = row.origin
		in := []string{Global}
		if len(d.vrfs) == 1 {
			in = slices.Collect(maps.Keys(d.vrfs))
		} else if a, err := netip.ParseAddr(strings.SplitN(row.cell("address"), "/", 2)[0]); err == nil {
			if p, ok := holding(d.all, a); ok {
				in = d.all[p]
			}
		}
		switch {
		case len(in) > 1:
			d.skip("its subnet is in several VRFs (%s), and the row has no VRF: export the column VRF", strings.Join(in, ", "))
			continue
		case d.vrf != "" && in[0] != d.vrf:
			d.leave("rows of the VRF %s", in[0])
			continue
		}
		if err := d.address(row.cell); err != nil {
			d.skip("%v: correct the row", err)
		}
	}
}

func (d *phpipam) file(raw []byte) error {
	content := text(raw)
	d.rowName = ""
	comma := ','
	if first, _, _ := strings.Cut(content, "\n"); strings.Count(first, ";") > strings.Count(first, ",") {
		comma = ';'
	}
	r := csvrows.New(content, comma)
	head, _, err := r.Next()
	if err != nil {
		return errors.New("has no header line")
	}
	columns, names := map[string]int{}, map[string]bool{}
	for i, name := range head {
		lower := strings.ToLower(strings.TrimSpace(name))
		if names[lower] && lower != "" {
			return fmt.Errorf("line 1: the column %s occurs twice: rename or remove one of them", name)
		}
		names[lower] = true
		if known := phpipamColumns[lower]; known != "" {
			if first, there := columns[known]; there {
				d.leave("the column %s, which means the same as the column %s", name, head[first])
				continue
			}
			columns[known] = i
		} else if name != "" {
			d.leave("the column %s", name)
		}
	}
	_, subnets := columns["subnet"]
	_, addresses := columns["address"]
	_, vrfs := columns["vrf"]
	if !subnets && !addresses {
		return errors.New("has neither a column Subnet nor a column IP address: it is not a phpIPAM export")
	}
	for _, name := range []string{"vlan", "owner", "device", "note", "port", "section"} {
		if _, ok := columns[name]; ok {
			d.leave("the values of the column %s", name)
		}
	}
	for {
		row, line, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			d.rowName = fmt.Sprintf("%sline %d", d.fileName, line)
			d.skip("%v: correct the row", err)
			continue
		}
		of := func(name string) string {
			if i, ok := columns[name]; ok && i < len(row) {
				return strings.TrimSpace(row[i])
			}
			return ""
		}
		d.rowName = fmt.Sprintf("%sline %d (%s)", d.fileName, line, strings.TrimSpace(of("address")+" "+of("subnet")))
		if of("address")+of("subnet") == "" {
			d.skip("it has neither a subnet nor an address: correct the row")
			continue
		}
		if addresses && of("address") != "" && !vrfs { // it belongs to the VRF of its subnet
			d.later = append(d.later, phpipamRow{d.rowName, of})
			continue
		}
		in := cmp.Or(of("vrf"), Global)
		d.vrfs[in] = true
		if subnets && of("subnet") != "" && of("address") == "" {
			d.addKnown(in, of)
		}
		if d.vrf != "" && in != d.vrf {
			d.leave("rows of the VRF %s", in)
			continue
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
	if strings.HasSuffix(of("subnet"), "(folder)") || yes(of("folder")) { // the format of phpIPAM's export-subnets.php
		d.omit("it is a folder without a range: its subnets are imported separately")
		return nil
	}
	p, err := d.prefixOf(of("subnet"), of("mask"))
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
	d.prefixes, d.rows[p] = append(d.prefixes, p), d.rowName
	d.names[p] = of("description")
	return nil
}

// phpipamStates maps phpIPAM's address states to those of the API.
var phpipamStates = map[string]string{"": "STATIC", "used": "STATIC", "active": "STATIC", "online": "STATIC", "offline": "STATIC",
	"reserved": reserved,
	"dhcp":     "DHCP_RESERVED"}

func (d *phpipam) address(of func(string) string) error {
	a, err := netip.ParseAddr(strings.SplitN(of("address"), "/", 2)[0])
	if err != nil {
		return fmt.Errorf("%q is not an IP address", of("address"))
	}
	if gateway := yes(of("gateway")); gateway && a.Is6() {
		d.leave("the gateway of an IPv6 network: IPv6 networks have no gateway")
	} else if gateway {
		d.routers = append(d.routers, router{a, d.rowName})
		if of("hostname")+of("mac")+of("description") != "" {
			d.leave("the name, the hardware address and the description of the gateway %v: a network keeps the address alone", a)
		}
		return nil
	}
	state, mac := phpipamStates[strings.ToLower(of("state"))], of("mac")
	if mac != "" && !hardware(mac) {
		return fmt.Errorf("%q is not a hardware address", mac)
	}
	if state == "DHCP_RESERVED" && mac == "" {
		d.omit("the address was assigned by DHCP: its server reports it")
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

// yes reports whether a cell means yes.
func yes(cell string) bool {
	return slices.Contains([]string{"1", "yes", "true"}, strings.ToLower(cell))
}

// subnets adds subnets that contain others as blocks, and the rest as networks.
func (d *phpipam) subnets() {
	d.hierarchy(d.prefixes, func(p netip.Prefix) string {
		d.rowName = d.rows[p]
		return d.names[p]
	})
}

// hierarchy adds prefixes that contain others as blocks, and the rest as networks. of returns the name of a prefix.
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
