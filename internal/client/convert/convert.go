// Package convert reads what other programs keep of networks, and gives it as resources that a manager can be applied (POST /apply). What
// cannot be told by resources is noted, and left out. Pure: it reads texts, and asks nobody.
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

// Resource is a resource as it is to be: its members, type among them.
type Resource map[string]any

// Document is what was read.
type Document struct {
	Resources []Resource
	// routers are gateways of which it is not said of which network they are.
	routers []router
	// notes are the rows that something was left out of, by what that was.
	notes map[string][]string
	// at is the row that is read; empty where there are no rows. Skipped are the rows that become no resource.
	at      string
	Skipped []Skipped
	// derived are the names of zones that the source does not name: each holds the names of hosts.
	derived []string
	// unsaid are the members of networks that the source cannot express: a network that exists keeps them.
	unsaid []string
}

// router is a gateway, with the row that names it.
type router struct {
	address netip.Addr
	row     string
}

// cleared is the value of a member that the source has and leaves empty: nobody says what it is, or it is to be null.
type cleared struct{}

// MarshalJSON writes null.
func (cleared) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// clearable are the members that can be cleared.
var clearable = []string{"name", "macAddress", "ttl", "gateway"}

// has reports whether a resource has a value of a member.
func (r Resource) has(name string) bool { return r[name] != nil && r[name] != cleared{} }

// ChoiceError says that a choice is missing, or is none of the file.
type ChoiceError string

func (e ChoiceError) Error() string { return string(e) }

// Skipped is a row that was left out.
type Skipped struct {
	// Row names it: its line, and what it is about. Reason is why, and what to do about it.
	Row, Reason string
	// ByRule marks a row that describes no resource, so that --prune may delete what an earlier import made of it. Other skipped rows are
	// wrong: they may describe existing resources.
	ByRule bool
}

func (s Skipped) String() string { return s.Row + ": " + s.Reason }

// origin is the member of a resource that names the row that it was read from. It is sent to nobody.
const origin = "\x00row"

// skip leaves the row out that is read.
func (d *Document) skip(format string, args ...any) {
	d.Skipped = append(d.Skipped, Skipped{Row: d.at, Reason: fmt.Sprintf(format, args...)})
}

// omit skips the current row because it describes no resource.
func (d *Document) omit(format string, args ...any) {
	d.Skipped = append(d.Skipped, Skipped{Row: d.at, Reason: fmt.Sprintf(format, args...), ByRule: true})
}

// Wrong is the number of skipped rows that may describe existing resources.
func (d *Document) Wrong() (n int) {
	for _, one := range d.Skipped {
		if !one.ByRule {
			n++
		}
	}
	return n
}

// skipResource leaves a resource out that was read from a row.
func (d *Document) skipResource(r Resource, format string, args ...any) {
	d.Skipped = append(d.Skipped, Skipped{Row: rowOf(r), Reason: fmt.Sprintf(format, args...)})
}

// rowOf names the row that a resource was read from, or the resource.
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
	d.notes[text] = append(d.notes[text], d.at)
}

// mostNamed is how many rows a note names.
const mostNamed = 20

// Notes are what was left out, each once, with how often it was there and the first rows that it was in.
func (d *Document) Notes() (all []string) {
	for _, text := range slices.Sorted(maps.Keys(d.notes)) {
		rows := d.notes[text]
		if n := len(rows); n > 1 {
			text += fmt.Sprintf(" (%d)", n)
		}
		rows = slices.Compact(slices.DeleteFunc(slices.Clone(rows), func(row string) bool { return row == "" }))
		if len(rows) > mostNamed {
			rows = append(rows[:mostNamed], fmt.Sprintf("and %d more", len(rows)-mostNamed))
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
	if d.at != "" {
		r[origin] = d.at
	}
	d.Resources = append(d.Resources, r)
}

// JSON gives the resources, what others lie in before them, and the rows that they were read from. With empty, members that the source
// leaves empty are null; else they are left out.
func (d *Document) JSON(empty bool) (all []json.RawMessage, rows []string, err error) {
	order := slices.Clone(d.Resources)
	slices.SortStableFunc(order, func(a, b Resource) int { return cmp.Compare(rank(a), rank(b)) })
	for _, r := range order {
		row := rowOf(r)
		r = maps.Clone(r)
		delete(r, origin)
		maps.DeleteFunc(r, func(_ string, value any) bool { return value == cleared{} && !empty })
		raw, err := json.Marshal(r)
		if err != nil {
			return nil, nil, err
		}
		all, rows = append(all, raw), append(rows, row)
	}
	return all, rows, nil
}

// rank is where a resource stands: blocks by their size, networks, what is in them, names.
func rank(r Resource) int {
	name, _ := r["type"].(string)
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
	case name == "HostRecord":
		return 800
	}
	return 900
}

// family is what types of a family of addresses begin with.
func family(a netip.Addr) string {
	if a.Is4() {
		return "IPv4"
	}
	return "IPv6"
}

// reserved is the state of an address that nobody is to get.
const reserved = "RESERVED"

// address adds an address. Those of IPv6 cannot be reserved for nobody.
func (d *Document) address(a netip.Addr, r Resource) {
	if r["type"] = family(a) + "Address"; a.Is6() && r["state"] == reserved {
		d.leave("that addresses of IPv6 are reserved, which is no state of theirs: they are STATIC")
		r["state"] = "STATIC"
	}
	d.add(r)
}

// network adds a network; gateway is the address of its router, empty where it has none.
func (d *Document) network(p netip.Prefix, name, gateway string) {
	p = p.Masked()
	r := Resource{"type": family(p.Addr()) + "Network", "range": p.String(), "name": name}
	if p.Addr().Is4() { // without one a new network would get its first address
		if r["gateway"] = nil; gateway != "" {
			r["gateway"] = gateway
		}
	}
	d.add(r)
}
