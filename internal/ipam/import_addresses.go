package ipam

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"portolan/internal/problem"
	"portolan/internal/resource"
	"portolan/internal/schema"
	"portolan/internal/space"
	"portolan/internal/store"
)

// Line is a line of a file that is imported, as its fields say.
type Line struct {
	Number  int // in the file, from 1
	Address netip.Addr
	Name    string
	State   string
}

// Faults are what is wrong with a file, line by line.
type Faults []string

// faultsNamed is how many faults are named.
const faultsNamed = 20

func (f *Faults) add(line int, format string, args ...any) {
	*f = append(*f, fmt.Sprintf("line %d: ", line)+fmt.Sprintf(format, args...))
}

// Error lists the first faults.
func (f Faults) Error() string {
	text := fmt.Sprintf("%d faults:\n%s", len(f), strings.Join(f[:min(len(f), faultsNamed)], "\n"))
	if len(f) > faultsNamed {
		text += "\nand more"
	}
	return text
}

func (f Faults) orNil() error {
	if len(f) == 0 {
		return nil
	}
	return f
}

// ReadAddresses reads a CSV file (RFC 4180) with a header: address, and if it has them name and state,
// which is STATIC where it is not given. Case and spaces around fields do not matter.
func ReadAddresses(in io.Reader) ([]Line, error) {
	r := csv.NewReader(in)
	r.FieldsPerRecord, r.TrimLeadingSpace, r.ReuseRecord = -1, true, true
	columns := map[string]int{}
	head, err := r.Read()
	if err != nil {
		return nil, fmt.Errorf("reading the header: %w", err)
	}
	for i, name := range head {
		name = strings.ToLower(strings.TrimSpace(strings.TrimPrefix(name, "\ufeff")))
		if !slices.Contains([]string{"address", "name", "state"}, name) {
			return nil, problem.Invalid(name, "is no column of a file of addresses; address, name and state are")
		}
		columns[name] = i
	}
	if _, ok := columns["address"]; !ok {
		return nil, problem.Invalid("address", "the file has no such column")
	}
	var lines []Line
	var faults Faults
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return lines, faults.orNil()
		}
		if err != nil {
			return nil, err
		}
		at, _ := r.FieldPos(0)
		field := func(name string) string {
			if i, ok := columns[name]; ok && i < len(record) {
				return strings.TrimSpace(record[i])
			}
			return ""
		}
		line := Line{Number: at, Name: strings.Clone(field("name")), State: strings.ToUpper(field("state"))}
		if line.Address, err = netip.ParseAddr(field("address")); err != nil || line.Address.Zone() != "" {
			faults.add(at, "address: %q is no IP address", field("address"))
			continue
		}
		line.Address = line.Address.Unmap()
		if line.State == "" {
			line.State = "STATIC"
		}
		if what := line.fault(); what != "" {
			faults.add(at, "%s", what)
		}
		lines = append(lines, line)
	}
}

// fault says what is wrong with a line by itself.
func (l *Line) fault() string {
	states := []string{"STATIC", "RESERVED"}
	if !l.Address.Is4() {
		states = []string{"STATIC"}
	}
	switch {
	case !slices.Contains(states, l.State):
		return fmt.Sprintf("state: %q is none of %s", l.State, strings.Join(states, ", "))
	case !utf8.ValidString(l.Name) || strings.ContainsFunc(l.Name, unicode.IsControl) || utf8.RuneCountInString(l.Name) > 255:
		return "name: has more than 255 characters, or a control character"
	}
	return ""
}

// importAtOnce is how many addresses are written at a time.
const importAtOnce = 20_000

// ImportAddresses makes the addresses in the networks of the configuration that they lie in: all of them, in one transaction, or none, or
// in steps. there is how many were there already, where that is no fault.
func ImportAddresses(ctx context.Context, a *resource.API, configuration string, lines []Line, how Import) (there int, err error) {
	slices.SortStableFunc(lines, func(x, y Line) int { return x.Address.Compare(y.Address) })
	id, err := ConfigurationID(ctx, a, configuration)
	if err != nil {
		return 0, err
	}
	if how.InSteps { // what is wrong is found before anything is made, where it can be
		if err := a.Store.View(ctx, func(tx *store.Tx) error { return checkAddresses(tx, id, lines) }); err != nil {
			return 0, CutOff(err, 0)
		}
	}
	done := 0
	for part := range slices.Chunk(lines, how.Step(len(lines))) {
		var passed int
		if err := a.Store.UpdateIn(ctx, store.Within(id, false), store.Author{Name: "command line", Comment: "import"},
			func(tx *store.Tx) (err error) {
				tx.Describe("IMPORT_ADDRESSES", fmt.Sprintf("Imported %d addresses into %s", len(part), configuration))
				passed, err = importPart(&resource.Change{Tx: tx, API: a}, id, part, how.InSteps,
					func(n int) { how.progressed(done + n) })
				return err
			}); err != nil {
			return there, CutOff(err, done)
		}
		there, done = there+passed, done+len(part)
		how.Stepped(ctx, a.Store, done)
	}
	return there, nil
}

// CutOff says how far an import in steps came.
func CutOff(err error, done int) error {
	if done == 0 {
		return fmt.Errorf("nothing was imported: %w", err)
	}
	return fmt.Errorf("it was cut off, and %d lines are imported; the same file again goes on: %w", done, err)
}

// checkAddresses names what is wrong with lines before anything is made.
func checkAddresses(tx *store.Tx, configuration int64, lines []Line) error {
	var faults Faults
	networks, err := placesOf(tx, configuration, lines, &faults)
	if err != nil {
		return err
	}
	for _, n := range networks {
		if _, err := n.passOver(tx, &faults); err != nil {
			return err
		}
	}
	return faults.orNil()
}

// importPart makes addresses, all or none. again passes over those that are there, and gives how many.
func importPart(c *resource.Change, configuration int64, lines []Line, again bool, progress func(done int)) (there int, err error) {
	var faults Faults
	networks, err := placesOf(c.Tx, configuration, lines, &faults)
	if err != nil {
		return 0, err
	}
	for _, n := range networks {
		if again {
			passed, err := n.passOver(c.Tx, &faults)
			if err != nil {
				return 0, err
			}
			there += passed
		}
		if err := n.take(c.Tx, &faults); err != nil {
			return 0, err
		}
	}
	if len(faults) > 0 {
		return 0, faults
	}
	done := there
	for _, n := range networks {
		for part := range slices.Chunk(n.lines, importAtOnce) {
			if err := n.create(c, part); err != nil {
				return 0, err
			}
			done += len(part)
			progress(done)
		}
	}
	return there, nil
}

// passOver leaves the lines out whose addresses are there, as the lines say, and gives how many.
func (n *importInto) passOver(tx *store.Tx, faults *Faults) (there int, err error) {
	if len(n.lines) == 0 {
		return 0, nil
	}
	found, err := tx.Below(n.network.ID, "addresses", store.AddrKey(n.lines[0].Address), store.AddrKey(n.lines[len(n.lines)-1].Address))
	if err != nil {
		return 0, err
	}
	rows := map[netip.Addr]*store.Resource{}
	for _, r := range found {
		rows[store.KeyAddr(r.Low)] = r
	}
	var left []Line
	for _, line := range n.lines {
		r := rows[line.Address]
		if r == nil {
			left = append(left, line)
			continue
		}
		state, err := stateOf(r)
		if err != nil {
			return 0, err
		}
		if r.Name != line.Name || state != line.State {
			faults.add(line.Number, "address: %s is there already, as %q in the state %s", line.Address, r.Name, state)
			continue
		}
		there++
	}
	n.lines = left
	return there, nil
}

// stateOf gives the state of an address as it is kept.
func stateOf(r *store.Resource) (state string, err error) {
	err = store.Members(r.Body, func(name, raw []byte) error {
		if string(name) == "state" {
			state = strings.Trim(string(raw), `"`)
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("the state of address %d: %w", r.ID, err)
	}
	return state, nil
}

// ConfigurationID finds a configuration by its name; without one the only one that there is.
func ConfigurationID(ctx context.Context, a *resource.API, name string) (id int64, err error) {
	err = a.Store.View(ctx, func(tx *store.Tx) error {
		found, err := resource.ConfigurationNamed(tx, name)
		if err == nil {
			id = found.ID
		}
		return err
	})
	return id, err
}

// importInto is a network with the lines that lie in it.
type importInto struct {
	network *store.Resource
	within  space.Range
	lines   []Line
}

// placesOf finds the networks that lines, which are in order, lie in.
func placesOf(tx *store.Tx, configuration int64, lines []Line, faults *Faults) (places []*importInto, err error) {
	var at *importInto
	for i, line := range lines {
		if i > 0 && lines[i-1].Address == line.Address {
			faults.add(line.Number, "address: %s stands in line %d, too", line.Address, lines[i-1].Number)
			continue
		}
		if at == nil || !at.within.Has(line.Address) {
			network, err := NetworkOf(tx, configuration, line.Address)
			if errors.Is(err, store.ErrNotFound) {
				faults.add(line.Number, "address: %s lies in no network of the configuration", line.Address)
				continue
			}
			if err != nil {
				return nil, err
			}
			at = &importInto{network: network, within: space.Range{Low: store.KeyAddr(network.Low), High: store.KeyAddr(network.High)}}
			places = append(places, at)
		}
		if !space.Hosts(at.within).Has(line.Address) {
			faults.add(line.Number, "address: %s is the network or broadcast address of %s", line.Address, at.within)
			continue
		}
		at.lines = append(at.lines, line)
	}
	return places, nil
}

// take takes the lines' addresses out of the network's free space.
func (n *importInto) take(tx *store.Tx, faults *Faults) error {
	addresses := make([]netip.Addr, len(n.lines))
	for i := range n.lines {
		addresses[i] = n.lines[i].Address
	}
	taken, err := freeTakeMany(tx, n.network.ID, addresses)
	for _, address := range taken {
		i, _ := slices.BinarySearchFunc(n.lines, address, func(l Line, a netip.Addr) int { return l.Address.Compare(a) })
		faults.add(n.lines[i].Number, "address: %s is in use already", address)
	}
	return err
}

func (n *importInto) create(c *resource.Change, lines []Line) error {
	name := "IPv6Address"
	if n.within.Low.Is4() {
		name = "IPv4Address"
	}
	t, _ := c.API.Type(name)
	objects := make([]schema.Object, len(lines))
	for i, line := range lines {
		o := t.New()
		switch x := o.(type) {
		case *IPv4Address:
			x.Address, x.State = line.Address, line.State
		case *IPv6Address:
			x.Address, x.State = line.Address, line.State
		}
		h := schema.HeadOf(o)
		h.Name, h.Parent, h.Config = line.Name, n.network.ID, n.network.Configuration
		objects[i] = o
	}
	_, err := c.CreateMany(t, objects)
	return err
}
