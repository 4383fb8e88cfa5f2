package ipam

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/base/space"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// Line is a line of a file of addresses.
type Line struct {
	Number  int // line number in the file, from 1
	Address netip.Addr
	Name    string
	State   string
	// hasName and hasState report whether the file has these columns.
	hasName, hasState bool
}

// addressColumns are the columns of a file of addresses.
var addressColumns = []string{"address", "name", "state"}

// ReadAddresses reads a CSV file (RFC 4180) with a header. The column address is required, name and state are optional; the default state
// is STATIC. Case and surrounding spaces do not matter. Invalid rows and rows that repeat an address are skipped, with the reason.
func ReadAddresses(in io.Reader) (lines []Line, skipped []string, err error) {
	seen := map[netip.Addr]int{}
	has, skipped, err := readLines(in, addressColumns, func(at int, cell func(string) string) error {
		line := Line{Number: at, Name: strings.Clone(cell("name")), State: cmp.Or(strings.ToUpper(cell("state")), "STATIC")}
		address, err := netip.ParseAddr(cell("address"))
		if err != nil || address.Zone() != "" {
			return fmt.Errorf("address: %q is not an IP address", cell("address"))
		}
		line.Address = address.Unmap()
		if err := line.check(); err != nil {
			return err
		}
		if first, twice := seen[line.Address]; twice {
			return fmt.Errorf("address: %s is already in line %d", line.Address, first)
		}
		seen[line.Address] = at
		lines = append(lines, line)
		return nil
	})
	_, hasName := has["name"]
	_, hasState := has["state"]
	for i := range lines {
		lines[i].hasName, lines[i].hasState = hasName, hasState
	}
	return lines, skipped, err
}

// check returns an error if the name or state of the line is invalid.
func (l *Line) check() error {
	states := []string{"STATIC", "RESERVED"}
	if !l.Address.Is4() {
		states = []string{"STATIC"}
	}
	if !slices.Contains(states, l.State) {
		return fmt.Errorf("state: must be one of %s, not %q", strings.Join(states, ", "), l.State)
	}
	return checkName(l.Name)
}

// importBatch is the number of addresses that are written at a time.
const importBatch = 20_000

// ImportAddresses creates the addresses in the networks of the configuration that contain them, in one transaction or in steps. It sets the
// name and the state of existing addresses. An address that a rule rejects is skipped; if how is strict, it is an error instead.
func ImportAddresses(ctx context.Context, a *resource.API, configuration string, lines []Line, how Import) (done Imported, err error) {
	slices.SortStableFunc(lines, func(x, y Line) int { return x.Address.Compare(y.Address) })
	id, err := ConfigurationID(ctx, a, configuration)
	if err != nil {
		return done, err
	}
	i := &lineImport{options: how, api: a, configuration: id, refused: map[int]string{}}
	err = runImport(ctx, i, "Imported addresses into "+configuration, lines,
		func(tx *store.Tx) ([]unlisted, error) { return i.unlistedAddresses(tx, lines) },
		func(c *resource.Change, part []Line, count int) error {
			return i.importAddresses(c, part, func(n int) { how.progressed(count + n) })
		})
	return i.done, err
}

// importAddresses imports sorted lines.
func (i *lineImport) importAddresses(c *resource.Change, lines []Line, progress func(done int)) error {
	networks, err := i.groupByNetwork(c.Tx, lines)
	if err != nil {
		return err
	}
	done := 0
	for _, n := range networks {
		if err := i.changeAddresses(c, n); err != nil {
			return err
		}
		if err := i.allocate(c.Tx, n); err != nil {
			return err
		}
		size := importBatch
		if i.oneByOne {
			size = 1
		}
		for part := range slices.Chunk(n.lines, size) {
			err := c.Concealed(n.create(c, part))
			if p, refused := problem.As(err); refused && p.Status < 500 { // find the rejected line by creating the addresses one by one
				if i.oneByOne = true; len(part) == 1 {
					i.refused[part[0].Number] = p.Message
				}
				return errLineRefused
			}
			if err != nil {
				return err
			}
			i.done.Created += len(part)
			done += len(part)
			progress(done)
		}
	}
	return nil
}

// changeAddresses changes the existing addresses of a network and removes their lines from n.
func (i *lineImport) changeAddresses(c *resource.Change, n *importInto) error {
	if len(n.lines) == 0 {
		return nil
	}
	found, err := c.Tx.ListBelow(n.network.ID, "addresses", store.AddrKey(n.lines[0].Address), store.AddrKey(n.lines[len(n.lines)-1].Address))
	if err != nil {
		return err
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
		if err := i.importLine(c, line.Number, func() error { return i.changeAddress(c, r, line) }); err != nil {
			return err
		}
	}
	n.lines = left
	return nil
}

// changeAddress sets the name and the state of an existing address.
func (i *lineImport) changeAddress(c *resource.Change, r *store.Resource, line Line) error {
	state, err := stateOf(r)
	if err != nil {
		return err
	}
	var texts []string
	if line.hasName && r.Name != line.Name {
		texts = append(texts, fmt.Sprintf("name %q -> %q", r.Name, line.Name))
	}
	changesState := line.hasState && state != line.State && state != gateway // the state of a gateway depends on its network
	if changesState {
		texts = append(texts, fmt.Sprintf("state %s -> %s", state, line.State))
	}
	if len(texts) == 0 {
		i.done.Existing++
		return nil
	}
	if _, err := c.Following("name", "state").Change(r, func(o schema.Object) {
		if line.hasName {
			schema.HeadOf(o).Name = line.Name
		}
		if x, four := o.(*IPv4Address); four && changesState {
			x.State = line.State
		} else if x, six := o.(*IPv6Address); six && changesState {
			x.State = line.State
		}
	}); err != nil {
		return err
	}
	i.done.Changed++
	i.done.Changes = append(i.done.Changes, fmt.Sprintf("line %d: %s: %s", line.Number, line.Address, strings.Join(texts, ", ")))
	return nil
}

// unlistedAddresses returns the addresses that the file lacks, in the networks of the addresses of the file. It includes only states that a
// file can set.
func (i *lineImport) unlistedAddresses(tx *store.Tx, lines []Line) (all []unlisted, err error) {
	for at := 0; at < len(lines); {
		network, err := NetworkOf(tx, i.configuration, lines[at].Address)
		if store.IsNotFound(err) {
			at++
			continue
		}
		if err != nil {
			return nil, err
		}
		within := space.Range{Low: store.KeyAddr(network.Low), High: store.KeyAddr(network.High)}
		inFile := map[netip.Addr]bool{}
		for ; at < len(lines) && within.Has(lines[at].Address); at++ {
			inFile[lines[at].Address] = true
		}
		rows, err := tx.ListBelow(network.ID, "addresses", network.Low, network.High)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			state, err := stateOf(r)
			if err != nil {
				return nil, err
			}
			if a := store.KeyAddr(r.Low); !inFile[a] && (state == "STATIC" || state == "RESERVED") {
				all = append(all, unlisted{r.ID, strings.TrimSpace(fmt.Sprintf("%s %s", a, r.Name))})
			}
		}
	}
	return all, nil
}

// stateOf returns the state of a stored address.
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

// ConfigurationID returns the id of a configuration by its name. An empty name selects the only configuration.
func ConfigurationID(ctx context.Context, a *resource.API, name string) (id int64, err error) {
	err = a.Store.View(ctx, func(tx *store.Tx) error {
		found, err := ConfigurationNamed(tx, name)
		if err == nil {
			id = found.ID
		}
		return err
	})
	return id, err
}

// importInto is a network with the lines of its addresses.
type importInto struct {
	network *store.Resource
	within  space.Range
	lines   []Line
}

// groupByNetwork groups sorted lines by network. Lines without a network are skipped.
func (i *lineImport) groupByNetwork(tx *store.Tx, lines []Line) (places []*importInto, err error) {
	var at *importInto
	for _, line := range lines {
		why, refused := i.refused[line.Number]
		if !refused && (at == nil || !at.within.Has(line.Address)) {
			network, err := NetworkOf(tx, i.configuration, line.Address)
			switch {
			case errors.Is(err, store.ErrNotFound):
				why = fmt.Sprintf("address: %s is not in a network of the configuration", line.Address)
			case err != nil:
				return nil, err
			default:
				at = &importInto{network: network, within: space.Range{Low: store.KeyAddr(network.Low), High: store.KeyAddr(network.High)}}
				places = append(places, at)
			}
		}
		if why == "" && !space.Hosts(at.within).Has(line.Address) {
			why = fmt.Sprintf("address: %s is the network or broadcast address of %s", line.Address, at.within)
		}
		if why != "" {
			if err := i.skip(line.Number, why); err != nil {
				return nil, err
			}
			continue
		}
		at.lines = append(at.lines, line)
	}
	return places, nil
}

// allocate removes the addresses of the lines from the free space of the network. If some are not free, it records these lines as refused
// and returns errLineRefused.
func (i *lineImport) allocate(tx *store.Tx, n *importInto) error {
	addresses := make([]netip.Addr, len(n.lines))
	for at := range n.lines {
		addresses[at] = n.lines[at].Address
	}
	taken, err := freeRemoveMany(tx, n.network.ID, addresses)
	if err != nil || len(taken) == 0 {
		return err
	}
	for _, address := range taken {
		at, _ := slices.BinarySearchFunc(n.lines, address, func(l Line, a netip.Addr) int { return l.Address.Compare(a) })
		i.refused[n.lines[at].Number] = fmt.Sprintf("address: %s is already in use", address)
	}
	return errLineRefused
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
