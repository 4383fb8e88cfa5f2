package ipam

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"net/netip"

	"portolan/internal/base/space"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// Contents of a map cell, for blocks and for networks. The index is the number in the map.
var (
	blockKinds   = []string{"free", "block", "network", "networks"}
	networkKinds = []string{"free", "range"}
)

// number128 is an address as an integer.
type number128 struct{ high, low uint64 }

func newNumber128(a netip.Addr) number128 {
	b := a.As16()
	if a.Is4() {
		four := a.As4()
		return number128{0, uint64(binary.BigEndian.Uint32(four[:]))}
	}
	return number128{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

func (n number128) subtract(m number128) number128 {
	low, borrow := bits.Sub64(n.low, m.low, 0)
	high, _ := bits.Sub64(n.high, m.high, borrow)
	return number128{high, low}
}

// shiftRight drops the last bits of the number. The result must fit into 64 bits.
func (n number128) shiftRight(by int) uint64 {
	if by >= 64 {
		return n.high >> (by - 64)
	}
	return n.low>>by | n.high<<(64-by)
}

func (n number128) float() float64 { return math.Ldexp(float64(n.high), 64) + float64(n.low) }

// cells are equal parts of a prefix, with the number of used addresses and the content of each.
type cells struct {
	whole space.Range
	base  number128
	// shift is the number of address bits within a cell.
	shift int
	// size is the number of addresses in a cell.
	size float64
	// used counts the addresses in use, unusable the network and broadcast addresses.
	used, unusable []float64
	kinds          []byte
}

// newCells returns the cells of prefix p, or of the smallest prefix that contains r if p is not valid. n is the number of cells, a power of
// two; it is reduced to the number of addresses.
func newCells(r space.Range, p netip.Prefix, n int) *cells {
	length := r.Low.BitLen()
	if !p.IsValid() {
		p = smallestPrefix(r)
	}
	n = min(n, 1<<min(length-p.Bits(), 30))
	c := &cells{whole: space.FromPrefix(p), base: newNumber128(p.Addr()), used: make([]float64, n),
		unusable: make([]float64, n), kinds: make([]byte, n)}
	c.shift = length - p.Bits() - bits.TrailingZeros(uint(n)) //nolint:gosec // at least 1
	c.size = math.Ldexp(1, c.shift)
	return c
}

// smallestPrefix returns the smallest prefix that contains a range.
func smallestPrefix(r space.Range) netip.Prefix {
	p, _ := r.Low.Prefix(r.Low.BitLen())
	for !p.Contains(r.High) {
		p, _ = r.Low.Prefix(p.Bits() - 1)
	}
	return p
}

// span returns the first and the last cell of a range, which must be inside of the prefix.
func (c *cells) span(r space.Range) (first, last int) {
	at := func(a netip.Addr) int { return int(newNumber128(a).subtract(c.base).shiftRight(c.shift)) } //nolint:gosec // fewer than cells
	return at(r.Low), at(r.High)
}

// setKind updates the content of the cells that a range covers. The range may be partly outside of the prefix.
func (c *cells) setKind(r space.Range, kind func(was byte) byte) {
	r, ok := r.Intersect(c.whole)
	if !ok {
		return
	}
	first, last := c.span(r)
	for i := first; i <= last; i++ {
		c.kinds[i] = kind(c.kinds[i])
	}
}

// addUsed counts all addresses of a range as used.
func (c *cells) addUsed(r space.Range) {
	first, last := c.span(r)
	low, high := newNumber128(r.Low).subtract(c.base), newNumber128(r.High).subtract(c.base)
	if first == last {
		c.used[first] += high.subtract(low).float() + 1
		return
	}
	inCell := func(n number128) float64 { // offset of the address in its cell
		if c.shift >= 64 {
			return number128{n.high & (1<<(c.shift-64) - 1), n.low}.float()
		}
		return float64(n.low & (1<<c.shift - 1))
	}
	c.used[first] += c.size - inCell(low)
	for i := first + 1; i < last; i++ {
		c.used[i] += c.size
	}
	c.used[last] += inCell(high) + 1
}

// addNetwork counts the used addresses of a network, which may be partly outside of the prefix.
func (c *cells) addNetwork(tx *store.Tx, id int64, network space.Range, used int64) error {
	hosts := space.Hosts(network)
	if hosts.Low != network.Low && c.whole.Has(network.Low) {
		first, _ := c.span(space.Range{Low: network.Low, High: network.Low})
		c.unusable[first]++
	}
	if hosts.High != network.High && c.whole.Has(network.High) {
		last, _ := c.span(space.Range{Low: network.High, High: network.High})
		c.unusable[last]++
	}
	part, ok := hosts.Intersect(c.whole)
	if !ok || used == 0 {
		return nil
	}
	if first, last := c.span(part); first == last && part == hosts {
		c.used[first] += float64(used)
		return nil
	}
	next, ended := part.Low, false
	if err := freeWithin(tx, id, part.Low, part.High, false, func(free space.Range) bool {
		if next.Less(free.Low) {
			c.addUsed(space.Range{Low: next, High: free.Low.Prev()})
		}
		ended = free.High == part.High
		next = free.High.Next()
		return true
	}); err != nil {
		return err
	}
	if !ended {
		c.addUsed(space.Range{Low: next, High: part.High})
	}
	return nil
}

// spaceMap returns the cells as a map of the part of the whole range that part covers. Cells outside of part have Outside set. kinds are
// the names of the kinds of cells.
func (c *cells) spaceMap(part space.Range, kinds []string) *resource.SpaceMap {
	part, _ = part.Intersect(c.whole)
	first, last := c.span(part)
	return &resource.SpaceMap{Range: part, Whole: c.whole, Kinds: kinds, Length: c.whole.Low.BitLen() - c.shift, Count: len(c.used),
		Cell: func(i int) resource.Cell {
			one := resource.Cell{Outside: i < first || i > last, Kind: c.kinds[i]}
			if room := c.size - c.unusable[i]; c.used[i] > 0 && room > 0 {
				one.Full = c.used[i] / room
			}
			return one
		}}
}

// blockMap returns the utilization and the content of a block in n parts, or of a prefix of it if part is valid.
func blockMap(tx *store.Tx, above *store.Resource, part netip.Prefix, n int) (*resource.SpaceMap, error) {
	whole := RangeOf(above)
	c := newCells(whole, part, n)
	type network struct {
		id   int64
		in   space.Range
		used int64
	}
	var wide []network // networks that need another query, after this one is finished
	lies := func(r *store.Resource, used int64) error {
		in := RangeOf(r)
		if r.ID == above.ID || !whole.Contains(in) { // the block itself, or an ancestor with the same first address
			return nil
		}
		if r.Collection != "networks" {
			c.setKind(in, func(was byte) byte { return max(was, 1) })
			return nil
		}
		c.setKind(in, func(was byte) byte { return min(max(was, 1)+1, 3) })
		if !c.whole.Contains(in) {
			wide = append(wide, network{r.ID, in, used})
			return nil
		}
		if first, last := c.span(in); first != last {
			wide = append(wide, network{r.ID, in, used})
			return nil
		}
		return c.addNetwork(tx, r.ID, in, used)
	}
	seen, _ := whole.Intersect(c.whole)
	err := tx.Stream(func(scan func(...any) error) error {
		var r store.Resource
		var used int64
		if err := scan(&r.ID, &r.Collection, &r.Low, &r.High, &used); err != nil {
			return err
		}
		return lies(&r, used)
	}, "SELECT r.id, r.collection, r.low, r.high, CASE WHEN r.collection = 'networks' THEN"+
		" (SELECT CAST(coalesce(sum(u.n), 0) AS BIGINT) FROM usage u WHERE u.container = r.id AND u.state <> '"+networkSpace+"') ELSE 0 END"+
		" FROM resource r WHERE r.collection IN ('blocks', 'networks') AND r.configuration = ? AND r.low >= ? AND r.low <= ?",
		above.Configuration, store.AddrKey(seen.Low), store.AddrKey(seen.High))
	if err == nil && whole.Low.Less(seen.Low) {
		err = eachContaining(tx, above.Configuration, seen.Low, lies)
	}
	if err != nil {
		return nil, fmt.Errorf("read the content of a block: %w", err)
	}
	for _, w := range wide {
		if err := c.addNetwork(tx, w.id, w.in, w.used); err != nil {
			return nil, err
		}
	}
	return c.spaceMap(whole, blockKinds), nil
}

// maxNested is the maximum number of nested blocks and networks that contain one address.
const maxNested = 129

// eachContaining calls fn for each block and network of a configuration that starts before an address and contains it, with its used
// addresses.
func eachContaining(tx *store.Tx, configuration int64, at netip.Addr, fn func(r *store.Resource, used int64) error) error {
	low := store.AddrKey(at)
	rows, err := tx.ListSome(store.All{store.InCollection("blocks", "networks"), store.Around{Low: low, High: low}, store.Compare{
		Field: store.Field{Kind: store.ColumnInt, Path: []string{"configuration"}}, Op: "eq", Value: configuration}}, maxNested)
	if err != nil {
		return err
	}
	ids := make([]int64, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	usage, err := UsageOf(tx, ids)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if bytes.Compare(r.Low, low) < 0 {
			if err := fn(r, usage[r.ID].Used()); err != nil {
				return err
			}
		}
	}
	return nil
}

// networkMap returns the utilization of a network in n parts, or of a prefix of it if part is valid, and the cells with DHCP ranges.
func networkMap(tx *store.Tx, above *store.Resource, part netip.Prefix, n int) (*resource.SpaceMap, error) {
	whole := RangeOf(above)
	c := newCells(whole, part, n)
	usage, err := UsageOf(tx, []int64{above.ID})
	if err != nil {
		return nil, err
	}
	if err := c.addNetwork(tx, above.ID, whole, usage[above.ID].Used()); err != nil {
		return nil, err
	}
	err = tx.Stream(func(scan func(...any) error) error {
		var r store.Resource
		if err := scan(&r.Low, &r.High); err != nil {
			return err
		}
		if in, ok := whole.Intersect(RangeOf(&r)); ok {
			c.setKind(in, func(byte) byte { return 1 })
		}
		return nil
	}, "SELECT low, high FROM resource WHERE parent = ? AND "+store.CollectionIs("", "ranges")+" AND low IS NOT NULL", above.ID)
	if err != nil {
		return nil, fmt.Errorf("read the ranges of a network: %w", err)
	}
	return c.spaceMap(whole, networkKinds), nil
}
