package convert

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
)

type keaFile struct {
	Dhcp4 *keaServer
	Dhcp6 *keaServer
}

type keaServer struct {
	Subnet4        []keaSubnet      `json:"subnet4"`
	Subnet6        []keaSubnet      `json:"subnet6"`
	SharedNetworks []keaShared      `json:"shared-networks"`
	Reservations   []keaReservation `json:"reservations"`
	Options        []keaOption      `json:"option-data"`
}

type keaShared struct {
	Name         string           `json:"name"`
	Subnet4      []keaSubnet      `json:"subnet4"`
	Subnet6      []keaSubnet      `json:"subnet6"`
	Reservations []keaReservation `json:"reservations"`
	Options      []keaOption      `json:"option-data"`
}

type keaSubnet struct {
	ID           json.RawMessage  `json:"id"`
	Subnet       string           `json:"subnet"`
	Pools        []keaPool        `json:"pools"`
	PDPools      []keaPrefixPool  `json:"pd-pools"`
	Reservations []keaReservation `json:"reservations"`
	Options      []keaOption      `json:"option-data"`
	Context      struct {
		Name string `json:"name"`
	} `json:"user-context"`
	wrong error
}

// UnmarshalJSON reads the valid parts of a subnet.
func (s *keaSubnet) UnmarshalJSON(raw []byte) (err error) {
	type plain keaSubnet
	s.wrong, err = readPart(raw, (*plain)(s))
	return err
}

type keaPool struct {
	Pool    string      `json:"pool"`
	Options []keaOption `json:"option-data"`
	wrong   error
}

// UnmarshalJSON reads the valid parts of a pool.
func (p *keaPool) UnmarshalJSON(raw []byte) (err error) {
	type plain keaPool
	p.wrong, err = readPart(raw, (*plain)(p))
	return err
}

// keaPrefixPool is a pool of delegated prefixes.
type keaPrefixPool struct {
	Prefix    string          `json:"prefix"`
	Length    json.RawMessage `json:"prefix-len"`
	Delegated json.RawMessage `json:"delegated-len"`
}

type keaReservation struct {
	wrong       error
	Prefixes    []string `json:"prefixes"`
	HWAddress   string   `json:"hw-address"`
	DUID        string   `json:"duid"`
	ClientID    string   `json:"client-id"`
	IPAddress   string   `json:"ip-address"`
	IPAddresses []string `json:"ip-addresses"`
	Hostname    string   `json:"hostname"`
}

type keaOption struct {
	Name string `json:"name"`
	Code int    `json:"code"`
	Data string `json:"data"`
}

// UnmarshalJSON reads the valid parts of a reservation.
func (r *keaReservation) UnmarshalJSON(raw []byte) (err error) {
	type plain keaReservation
	r.wrong, err = readPart(raw, (*plain)(r))
	return err
}

// routersCode is the code of the option routers (RFC 2132 section 3.5).
const routersCode = 3

// called returns the name of an option, or its code.
func (o keaOption) called() string { return cmp.Or(o.Name, fmt.Sprint(o.Code)) }

// keaRouters returns the routers in a list of options. It notes all other options, with where as their location.
func (d *Document) keaRouters(all []keaOption, where string) (routers []string) {
	for _, o := range all {
		if o.Name == "routers" || o.Name == "" && o.Code == routersCode {
			routers = strings.Split(o.Data, ",")
			continue
		}
		d.leave("the option %s%s: give it as a deployment option", o.called(), where)
	}
	return routers
}

// Kea converts a configuration of Kea, in JSON with comments: subnets with their pools, routers and reservations.
func Kea(raw []byte) (*Document, error) {
	var f keaFile
	d := &Document{unsaid: []string{"name"}}
	var kind wrongKind
	content := withoutComments(text(raw))
	if before, _, found := strings.Cut(content, "<?include"); found {
		return nil, fmt.Errorf("line %d: <?include ?> is not read: put the text of the file in its place", 1+strings.Count(before, "\n"))
	}
	if err := readJSON([]byte(content), &f); err != nil && !errors.As(err, &kind) { // keys.check reports the wrong kinds
		return nil, err
	}
	keys := jsonKeys{text: []byte(content), unread: func(key, object string, line int) {
		if d.at = fmt.Sprintf("line %d", line); object != "" {
			key += " of " + object
		}
		d.leave("the setting %s", key)
	}, wrong: func(key string, line int, why string) {
		d.at = fmt.Sprintf("line %d (%s)", line, key)
		d.skip("it %s: correct it", why)
	}}
	if err := keys.check(f); err != nil {
		return nil, err
	}
	d.at = ""
	if f.Dhcp4 == nil && f.Dhcp6 == nil {
		return nil, errors.New("has neither Dhcp4 nor Dhcp6: it is not a Kea configuration file")
	}
	for _, s := range []*keaServer{f.Dhcp4, f.Dhcp6} {
		if s == nil {
			continue
		}
		around := d.keaRouters(s.Options, " of all subnets")
		for i, one := range append(s.Subnet4, s.Subnet6...) {
			d.addKeaSubnet(i+1, one, "", around)
		}
		for _, shared := range s.SharedNetworks {
			around := around
			if own := d.keaRouters(shared.Options, " of the shared network "+shared.Name); own != nil {
				around = own
			}
			d.at = "the shared network " + shared.Name
			d.keaReservations(shared.Reservations)
			for i, one := range append(shared.Subnet4, shared.Subnet6...) {
				d.addKeaSubnet(i+1, one, shared.Name, around)
			}
		}
		if d.at = "Dhcp4"; s == f.Dhcp6 {
			d.at = "Dhcp6"
		}
		d.keaReservations(s.Reservations)
	}
	return d, nil
}

// addKeaSubnet adds a subnet and its contents. number is its position in the list, and around are the routers of the enclosing level.
func (d *Document) addKeaSubnet(number int, s keaSubnet, shared string, around []string) {
	d.at = "subnet " + cmp.Or(s.Subnet, fmt.Sprintf("number %d", number))
	if shared != "" && s.Subnet == "" {
		d.at += " of " + shared
	}
	if len(s.ID) > 0 {
		d.at += fmt.Sprintf(" (id %s)", s.ID)
	}
	subnet := d.at
	p, err := netip.ParsePrefix(s.Subnet)
	if err != nil && s.wrong == nil {
		d.skip("it is not a prefix, so only its reservations are imported: correct the subnet")
		d.keaReservations(s.Reservations)
		return
	}
	if s.wrong != nil {
		d.skip("%v, so only its reservations are imported: correct the subnet", s.wrong)
		d.keaReservations(s.Reservations)
		return
	}
	p = d.masked(p)
	gateway := d.router(p, d.keaRouters(s.Options, ""), around)
	name := s.Context.Name
	if name == "" {
		name = shared
	}
	d.network(p, name, gateway)
	for i, pool := range s.Pools {
		d.at = fmt.Sprintf("%s, pool %s", subnet, cmp.Or(pool.Pool, fmt.Sprintf("number %d", i+1)))
		if pool.wrong != nil {
			d.skip("%v: correct the pool", pool.wrong)
			continue
		}
		for _, o := range pool.Options {
			d.leave("the option %s of a pool: give it as a deployment option", o.called())
		}
		low, high, ok := strings.Cut(pool.Pool, "-")
		if !ok {
			part, err := netip.ParsePrefix(strings.TrimSpace(pool.Pool))
			if err != nil {
				d.skip("it is not a range: correct the pool")
				continue
			}
			low, high = part.Masked().Addr().String(), lastAddress(part).String()
		}
		if err := d.dhcpRange(0, strings.TrimSpace(low), strings.TrimSpace(high), p); err != nil {
			d.skip("it is not a range of the subnet: correct the pool")
		}
	}
	for _, pool := range s.PDPools {
		d.at = fmt.Sprintf("%s, pool of prefixes %s", subnet, pool.Prefix)
		d.omit("delegated prefixes (pd-pools) are not imported: keep them on the server")
	}
	d.at = subnet
	d.keaReservations(s.Reservations)
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
func (r *keaReservation) known() string { return cmp.Or(r.Hostname, r.HWAddress, r.DUID, r.ClientID) }

func (d *Document) keaReservations(all []keaReservation) {
	where := d.at
	if where != "" {
		where = " of " + where
	}
	for i, r := range all {
		row := fmt.Sprintf("reservation number %d%s", i+1, where)
		addresses := r.IPAddresses
		if r.IPAddress != "" {
			addresses = append(addresses, r.IPAddress)
		}
		if d.at = row; len(addresses) > 0 || r.known() != "" {
			d.at += fmt.Sprintf(" (%s)", cmp.Or(strings.Join(addresses, " "), r.known()))
		}
		if r.wrong != nil {
			d.skip("%v: correct the reservation", r.wrong)
			continue
		}
		switch {
		case len(addresses) == 0 && len(r.Prefixes) > 0:
			d.omit("it reserves prefixes alone (%s), and no prefix that is delegated is imported: keep it at the server",
				strings.Join(r.Prefixes, ", "))
		case len(addresses) == 0:
			d.omit("it has no address: give it one by ip-address to have it imported")
		case len(r.Prefixes) > 0:
			d.leave("prefixes that are reserved")
		}
		if len(addresses) > 0 && r.HWAddress == "" && r.DUID == "" {
			d.leave("reservations by client identifiers: what they are known by; the addresses are RESERVED")
		}
		for _, a := range addresses {
			d.at = fmt.Sprintf("%s (%s)", row, a)
			if err := d.reservation(a, r.HWAddress, r.DUID, d.label(r.Hostname)); err != nil {
				d.skip("%v: correct the reservation", err)
			}
		}
	}
	d.at = ""
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
