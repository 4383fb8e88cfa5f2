package space

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// Relative is a range by its place in a network: so many addresses behind the network's first one, or
// so many percent of its hosts.
type Relative struct {
	Offset  uint64 // from the network's first address
	Size    uint64 // in addresses, or in percent
	Percent bool
}

// ParseRelative reads a range by its place: "10,20" are twenty addresses from the tenth behind the
// first on, "10,50%" as many as half of the network's hosts.
func ParseRelative(text string) (r Relative, err error) {
	offset, size, ok := strings.Cut(text, ",")
	if !ok {
		return r, fmt.Errorf("%q is not an offset and a size, such as 10,20 or 10,50%%", text)
	}
	size, r.Percent = strings.CutSuffix(strings.TrimSpace(size), "%")
	if r.Offset, err = strconv.ParseUint(strings.TrimSpace(offset), 10, 63); err != nil || r.Offset < 1 {
		return Relative{}, fmt.Errorf("the offset %q is not a number from 1 on", strings.TrimSpace(offset))
	}
	if r.Size, err = strconv.ParseUint(strings.TrimSpace(size), 10, 63); err != nil || r.Size < 1 || r.Percent && r.Size > 100 {
		return Relative{}, fmt.Errorf("the size %q is not a number from 1 on, or a percentage up to 100", strings.TrimSpace(size))
	}
	return r, nil
}

// In gives the range in a network. It must lie within the network's hosts.
func (r Relative) In(network Range) (Range, error) {
	hosts := Hosts(network)
	size := new(big.Int).SetUint64(r.Size)
	if r.Percent {
		size.Mul(size, hosts.Size()).Div(size, big.NewInt(100))
		if size.Sign() == 0 {
			size.SetInt64(1)
		}
	}
	low, ok := address(new(big.Int).Add(number(network.Low), new(big.Int).SetUint64(r.Offset)), network.Low.Is4())
	if !ok || !hosts.Has(low) {
		return Range{}, fmt.Errorf("the offset %d lies behind the hosts of %s", r.Offset, network)
	}
	last := new(big.Int).Add(number(low), size)
	high, ok := address(last.Sub(last, big.NewInt(1)), network.Low.Is4())
	if !ok || !hosts.Has(high) {
		return Range{}, fmt.Errorf("%s addresses from %s on do not lie within the hosts of %s", size, low, network)
	}
	return Range{low, high}, nil
}

// Dashed gives low-high, also where the range is a prefix.
func (r Range) Dashed() string { return r.Low.String() + "-" + r.High.String() }
