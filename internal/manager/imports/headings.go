package imports

import (
	"context"
	"encoding/json"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// stateColumn is the column with the state of an address.
const stateColumn = "state"

// netmask is a column whose value is the mask or the prefix length of the column range.
const netmask = "netmask"

// usualFields returns the fields that a column may mean, by its header as other programs and people write it (simplify). The first field
// that a type has is the guess.
func usualFields() map[string][]string {
	all := map[string][]string{}
	for _, one := range usualHeaders {
		for _, h := range strings.Fields(one.headers) {
			all[h] = append(all[h], one.field)
		}
	}
	return all
}

// usualHeaders are the usual headers of fields, the preferred fields first: those of NetBox, phpIPAM, Infoblox, and plain English.
var usualHeaders = []struct{ field, headers string }{
	{"address", "ip ips ipaddr ipaddress ipv4 ipv4address ipv6 ipv6address hostaddress headerhostaddress addr host"},
	{"range", "network networkaddress subnet subnetaddress prefix cidr block iprange networkcidr supernet aggregate"},
	{netmask, "netmask mask subnetmask prefixlength cidrmask masklength"},
	{"absoluteName", "hostname host fqdn dnsname name domain domainname zone zonename dnszone record recordname"},
	{"addresses[0].address", "ip ips ipaddr ipaddress ipv4 ipv4address ipv6 ipv6address hostaddress address addresses addr value data"},
	{"gateway", "gw defaultgateway router routers gatewayaddress"},
	{"macAddress.address", "mac macaddr macaddress hwaddress hardwareaddress ethernet ethernetaddress physicaladdress"},
	{stateColumn, "status ipstate addressstate usage"},
	{"linkedRecord.absoluteName", "target cname aliasof canonicalname pointsto value data"},
	{"text", "txt value data"},
	{"ttl", "timetolive"},
	{"view.name", "view dnsview"},
	{"configuration.name", "configuration vrf addressspace networkview"},
	{"location.code", "location site locode"},
	{"name", "hostname host dnsname fqdn devicename device label title description descr computername machine server"},
	{"device.name", "devicename device"},
	{"comment", "comments note notes remark remarks description descr"},
}

// simplify returns a header in lower case, without spaces and punctuation.
func simplify(header string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, header)
}

// headings maps the columns of a table to fields of the type of its rows.
type headings struct {
	// of is the type of rows without a type; nil if each row has its type. Headers are guessed only with it. other is the same type of the
	// other address family; nil if there is none.
	of, other *schema.Type
	// given are the fields of columns by their header, as the user chose them; an empty field ignores the column.
	given map[string]string
	// used are the fields of all columns by header.
	used map[string]string
}

// newHeadings returns the headings of an import; nil if it has none.
func (x *ResourceImport) newHeadings(a *resource.API) (*headings, error) {
	if x.ResourceType == "" && len(x.Columns) == 0 {
		return nil, nil
	}
	h := &headings{given: x.Columns}
	if x.ResourceType == "" {
		return h, nil
	}
	if h.of = importable(a, x.ResourceType); h.of == nil {
		return nil, problem.Field("InvalidResourceType", "resourceType", "resources of the type %q cannot be imported", x.ResourceType)
	}
	for _, families := range [][2]string{{"IPv4", "IPv6"}, {"IPv6", "IPv4"}} {
		if rest, ok := strings.CutPrefix(h.of.Name, families[0]); ok {
			h.other = a.TypeNamed(families[1] + rest)
		}
	}
	for header, field := range x.Columns {
		if field != "" && !h.has(field) {
			return nil, problem.Invalid("columns", "%q is %q, but the type %s has no such field", header, field, h.of.Name)
		}
	}
	return h, nil
}

// has reports whether a request that creates a resource of the type may have a field.
func (h *headings) has(field string) bool {
	if field == netmask {
		return h.of.ByName["range"] != nil
	}
	c, err := schema.ParseColumn(field)
	if err != nil {
		return false
	}
	f := h.of.ByName[c.Member()]
	return f != nil && (!f.ReadOnly || field == "id" || field == typeColumn) || field == "view.name" || field == "configuration.name"
}

// fieldOf returns the field of a column; an empty one if the column is ignored.
func (h *headings) fieldOf(header string) string {
	if field, ok := h.given[header]; ok {
		return field
	}
	if h.of == nil || h.has(header) {
		return header
	}
	plain := simplify(header)
	for _, f := range h.of.Fields {
		if !f.ReadOnly && simplify(f.Name) == plain && isPlain(f) {
			return f.Name
		}
	}
	for _, field := range usualFields()[plain] {
		if h.has(field) {
			return field
		}
	}
	return ""
}

// isPlain reports whether a cell has the whole value of a field.
func isPlain(f *schema.Field) bool {
	switch f.Kind {
	case schema.Reference, schema.References, schema.Nested, schema.NestedList, schema.Map, schema.Raw:
		return false
	}
	return true
}

// columns returns the columns of a header row; those that are ignored are nil.
func (h *headings) columns(names []string) (all []*schema.Column, err error) {
	h.used = map[string]string{}
	by := map[string]string{}
	for _, name := range names {
		if _, twice := h.used[name]; twice {
			return nil, badFile("the header names the column %q twice", name)
		}
		field := h.fieldOf(name)
		h.used[name] = field
		if field == "" {
			all = append(all, nil)
			continue
		}
		if other, ok := by[field]; ok {
			return nil, problem.Field("InvalidFileDataValue", "columns", "the columns %q and %q both describe %s: choose one", other, name, field)
		}
		by[field] = name
		c, err := schema.ParseColumn(field)
		if err != nil {
			return nil, badFile("the first line, which names the columns: %v", err)
		}
		all = append(all, c)
	}
	for name := range h.given {
		if !slices.Contains(names, name) {
			return nil, problem.Field("InvalidFileDataValue", "columns", "the file has no column %q; its columns are %s", name, quoted(names))
		}
	}
	if len(by) == 0 {
		return nil, badFile("no column describes a field of the type %s; the columns are %s", h.of.Name, quoted(names))
	}
	return all, nil
}

// quoted lists names.
func quoted(names []string) string {
	var all []string
	for _, name := range names {
		all = append(all, strconv.Quote(name))
	}
	return strings.Join(all, ", ")
}

// ignored returns the headers of the columns that are ignored.
func (h *headings) ignored() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(h.used)) {
		if h.used[name] == "" {
			names = append(names, name)
		}
	}
	return names
}

// usualStates are the states of addresses in other programs (simplify), and those that they mean.
var usualStates = map[string]string{"active": "STATIC", "used": "STATIC", "assigned": "STATIC", "static": "STATIC", "inuse": "STATIC",
	"online": "STATIC", "reserved": "RESERVED", "dhcpreserved": "DHCP_RESERVED", "dhcpreservation": "DHCP_RESERVED", "gateway": "GATEWAY"}

// translate changes the cells of a row to values of fields: an address without its prefix length, a range with its mask, and the common
// names of states.
func (h *headings) translate(cells []cell) []cell {
	mask := slices.IndexFunc(cells, func(c cell) bool { return c.column.Name == netmask })
	for i, c := range cells {
		text := strings.TrimSpace(c.text)
		switch c.column.Name {
		case "address", "addresses[0].address":
			if p, err := netip.ParsePrefix(text); err == nil {
				cells[i].text = p.Addr().String()
			}
		case "range":
			if mask >= 0 && !strings.Contains(text, "/") && strings.TrimSpace(cells[mask].text) != "" {
				cells[i].text = text + "/" + maskLength(strings.TrimSpace(cells[mask].text))
			}
		case stateColumn:
			if state := usualStates[simplify(text)]; state != "" {
				cells[i].text = state
			}
		}
	}
	if mask >= 0 {
		cells = slices.Delete(cells, mask, mask+1)
	}
	return cells
}

// maskLength returns the length of an IPv4 mask in dotted form. Any other text is returned without its slash: the range reports it.
func maskLength(text string) string {
	if a, err := netip.ParseAddr(text); err == nil && a.Is4() {
		if ones, bits := net.IPMask(a.AsSlice()).Size(); bits > 0 {
			return strconv.Itoa(ones)
		}
	}
	return strings.TrimPrefix(text, "/")
}

// typeOf returns the type of a row without a type: the one with the family of its address.
func (h *headings) typeOf(cells []cell) *schema.Type {
	if h.other == nil {
		return h.of
	}
	for _, c := range cells {
		if c.column.Name == "address" || c.column.Name == "range" {
			if is6 := strings.Contains(c.text, ":"); is6 != strings.HasPrefix(h.of.Name, "IPv6") {
				return h.other
			}
		}
	}
	return h.of
}

// saveColumns stores the fields of the columns in the import, and logs the ignored columns.
func (j *job) saveColumns(ctx context.Context) error {
	return j.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		row, _, err := j.read(tx)
		if err != nil {
			return err
		}
		if none := j.headings.ignored(); len(none) > 0 {
			if err := logRows(tx, j.id, []string{"ignored columns: " + quoted(none)}); err != nil {
				return err
			}
		}
		c := &resource.Change{Tx: tx, API: j.api}
		_, err = c.Following().Change(row, func(o schema.Object) {
			if x, ok := o.(*ResourceImport); ok {
				x.Columns = j.headings.used
			}
		})
		return err
	})
}

// sameMAC returns the position of an earlier row whose address has the same MAC address; empty if there is none.
func (j *job) sameMAC(r *row, members map[string]json.RawMessage) string {
	var mac struct {
		Address string `json:"address"`
	}
	if raw, ok := members["macAddress"]; !ok || json.Unmarshal(raw, &mac) != nil || mac.Address == "" {
		return ""
	}
	key := simplify(mac.Address)
	switch first := j.macs[key]; {
	case first != nil && first.number < r.number:
		return first.at
	case first == nil && len(j.macs) < maxMet:
		if j.macs == nil {
			j.macs = map[string]*row{}
		}
		j.macs[key] = &row{number: r.number, at: r.at}
	}
	return ""
}
