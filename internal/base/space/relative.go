package space

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Relative is a range by its place in a network: so many addresses behind the network's first one, or before
// its end, or so many percent of its hosts.
type Relative struct {
	// Offset is counted from the network's first address; below 0, from behind its last one: -1 is the last.
	Offset  int64
	Size    uint64 // in addresses, or in percent
	Percent bool
}

// ParseRelative reads a range by its place: "10,20" are twenty addresses from the tenth behind the
// first on, "10,50%" as many as half of the network's hosts, "-40,30" thirty from the fortieth before the end on.
func ParseRelative(text string) (r Relative, err error) {
	offset, size, ok := strings.Cut(text, ",")
	if !ok {
		return r, fmt.Errorf("%q is not an offset and a size, such as 10,20, -40,30 or 10,50%%", text)
	}
	size, r.Percent = strings.CutSuffix(strings.TrimSpace(size), "%")
	if r.Offset, err = strconv.ParseInt(strings.TrimSpace(offset), 10, 64); err != nil || r.Offset == 0 || r.Offset == math.MinInt64 {
		return Relative{}, fmt.Errorf("the offset %q is not a number from 1 on, or below 0 to count from the end", strings.TrimSpace(offset))
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
	from := number(network.Low)
	if r.Offset < 0 {
		from.Add(number(network.High), big.NewInt(1))
	}
	low, ok := address(from.Add(from, big.NewInt(r.Offset)), network.Low.Is4())
	if !ok || !hosts.Has(low) {
		return Range{}, fmt.Errorf("the offset %d does not lie within the hosts of %s", r.Offset, network)
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
