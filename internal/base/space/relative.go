package space

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Relative is a range by its position in a network. It starts at an offset from the network's first address or end, and its size is a
// number of addresses or a percentage of the hosts.
type Relative struct {
	// Offset is relative to the first address. A negative offset is relative to the end: -1 is the last address.
	Offset  int64
	Size    uint64 // number of addresses, or percentage
	Percent bool
}

// ParseRelative parses a relative range. "10,20" has twenty addresses and starts ten after the first address. "10,50%" has half of the
// network's hosts. "-40,30" has thirty addresses and starts at the fortieth from the end.
func ParseRelative(text string) (r Relative, err error) {
	offset, size, ok := strings.Cut(text, ",")
	if !ok {
		return r, fmt.Errorf("%q is not an offset and a size, such as 10,20, -40,30 or 10,50%%", text)
	}
	size, r.Percent = strings.CutSuffix(strings.TrimSpace(size), "%")
	if r.Offset, err = strconv.ParseInt(strings.TrimSpace(offset), 10, 64); err != nil || r.Offset == 0 || r.Offset == math.MinInt64 {
		return Relative{}, fmt.Errorf("the offset %q must be a number above 0, or below 0 to count from the end", strings.TrimSpace(offset))
	}
	if r.Size, err = strconv.ParseUint(strings.TrimSpace(size), 10, 63); err != nil || r.Size < 1 || r.Percent && r.Size > 100 {
		return Relative{}, fmt.Errorf("the size %q must be a number above 0, or a percentage up to 100", strings.TrimSpace(size))
	}
	return r, nil
}

// Resolve returns the range in a network. It must be within the network's hosts.
func (r Relative) Resolve(network Range) (Range, error) {
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
		return Range{}, fmt.Errorf("the offset %d is outside the hosts of %s", r.Offset, network)
	}
	last := new(big.Int).Add(number(low), size)
	high, ok := address(last.Sub(last, big.NewInt(1)), network.Low.Is4())
	if !ok || !hosts.Has(high) {
		return Range{}, fmt.Errorf("%s addresses from %s on do not fit into the hosts of %s", size, low, network)
	}
	return Range{low, high}, nil
}

// Dashed returns low-high, also if the range is a prefix.
func (r Range) Dashed() string { return r.Low.String() + "-" + r.High.String() }
