// Package space is arithmetic on address space: ranges, sets, and free space. It has no side effects, and depends neither on the database
// nor on requests.
package space

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"strconv"
	"strings"

	"go4.org/netipx"
)

// ErrNotFree reports that the requested space is not free.
var ErrNotFree = errors.New("the space is not free")

// Range is a closed interval of addresses of one family.
type Range struct{ Low, High netip.Addr }

// IsValid reports whether the range has at least one address and is of one family.
func (r Range) IsValid() bool {
	return r.Low.IsValid() && r.High.IsValid() && r.Low.Is4() == r.High.Is4() && !r.High.Less(r.Low)
}

// Prefix returns the range as a CIDR prefix, and whether it is one.
func (r Range) Prefix() (netip.Prefix, bool) {
	if !r.IsValid() {
		return netip.Prefix{}, false
	}
	return netipx.IPRangeFrom(r.Low, r.High).Prefix()
}

// String returns CIDR notation if the range is a prefix, otherwise low-high.
func (r Range) String() string {
	if p, ok := r.Prefix(); ok {
		return p.String()
	}
	if !r.IsValid() {
		return ""
	}
	return r.Low.String() + "-" + r.High.String()
}

// Contains reports whether r contains the range other.
func (r Range) Contains(other Range) bool {
	return r.Low.Is4() == other.Low.Is4() && !other.Low.Less(r.Low) && !r.High.Less(other.High)
}

// Has reports whether r contains the address.
func (r Range) Has(a netip.Addr) bool { return r.Contains(Range{a, a}) }

// Size returns the number of addresses.
func (r Range) Size() *big.Int {
	if r.Low.Is4() && r.High.Is4() {
		low, high := r.Low.As4(), r.High.As4()
		return big.NewInt(int64(binary.BigEndian.Uint32(high[:])) - int64(binary.BigEndian.Uint32(low[:])) + 1)
	}
	low, high := new(big.Int).SetBytes(r.Low.AsSlice()), new(big.Int).SetBytes(r.High.AsSlice())
	return high.Sub(high, low).Add(high, big.NewInt(1))
}

// FromPrefix returns the range of a prefix.
func FromPrefix(p netip.Prefix) Range {
	r := netipx.RangeOfPrefix(p)
	return Range{r.From(), r.To()}
}

// Parse parses a range: 10.0.0.0/8, 10.0.0.0/255.0.0.0, 10.0.0.0-10.0.0.99, or 2001:db8::/32. Spaces around the parts are allowed. Host
// bits must be 0.
func Parse(text string) (Range, error) {
	text = strings.TrimSpace(text)
	if low, high, ok := strings.Cut(text, "-"); ok {
		from, err := parseAddr(low)
		if err != nil {
			return Range{}, err
		}
		to, err := parseAddr(high)
		if err != nil {
			return Range{}, err
		}
		if from.Is4() != to.Is4() {
			return Range{}, fmt.Errorf("%q has an IPv4 and an IPv6 address: use one family", text)
		}
		if to.Less(from) {
			return Range{}, fmt.Errorf("%q ends before it starts", text)
		}
		return Range{from, to}, nil
	}
	base, length, ok := strings.Cut(text, "/")
	if !ok {
		return Range{}, fmt.Errorf("must be CIDR (10.0.0.0/24) or start-end (10.0.0.0-10.0.0.9), not %q", text)
	}
	addr, err := parseAddr(base)
	if err != nil {
		return Range{}, err
	}
	bits, err := parseLength(length, addr)
	if err != nil {
		return Range{}, err
	}
	p := netip.PrefixFrom(addr, bits)
	if p.Masked().Addr() != addr {
		return Range{}, fmt.Errorf("%s has host bits set; the network is %s", p, p.Masked())
	}
	return FromPrefix(p), nil
}

// ParseSize parses a size such as /24 for the given family. ok is false if the text does not start with a slash.
func ParseSize(text string, v4 bool) (bits int, ok bool, err error) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), "/")
	if !ok {
		return 0, false, nil
	}
	family := netip.IPv6Unspecified()
	if v4 {
		family = netip.IPv4Unspecified()
	}
	bits, err = parseLength(rest, family)
	return bits, true, err
}

func parseAddr(text string) (netip.Addr, error) {
	a, err := netip.ParseAddr(strings.TrimSpace(text))
	if err != nil {
		return a, fmt.Errorf("%q is not an IP address", strings.TrimSpace(text))
	}
	if a.Zone() != "" {
		return a, fmt.Errorf("%q must not have an IPv6 zone", text)
	}
	return a.Unmap(), nil
}

// parseLength parses a prefix length or, for IPv4, a netmask.
func parseLength(text string, addr netip.Addr) (int, error) {
	text = strings.TrimSpace(text)
	if addr.Is4() && strings.Contains(text, ".") {
		mask, err := netip.ParseAddr(text)
		if err != nil || !mask.Is4() {
			return 0, fmt.Errorf("%q is not a netmask", text)
		}
		four := mask.As4()
		bits := uint32(four[0])<<24 | uint32(four[1])<<16 | uint32(four[2])<<8 | uint32(four[3])
		ones := 0
		for bits&(1<<31) != 0 {
			ones++
			bits <<= 1
		}
		if bits != 0 {
			return 0, fmt.Errorf("%q is not a contiguous netmask", text)
		}
		return ones, nil
	}
	if text == "" || len(text) > 3 || text[0] == '+' || text[0] == '-' {
		return 0, fmt.Errorf("%q is not a prefix length", text)
	}
	bits, err := strconv.Atoi(text)
	if err != nil || bits > addr.BitLen() {
		return 0, fmt.Errorf("the prefix length must be between 0 and %[2]d, not %[1]q", text, addr.BitLen())
	}
	return bits, nil
}

// ErrNoFit reports that there is not enough free space.
var ErrNoFit = errors.New("no space of that size is free")

// FirstFit returns the first prefix of the given length in free.
func FirstFit(free Range, bits int) (Range, error) {
	if bits < 0 || bits > free.Low.BitLen() {
		return Range{}, ErrNoFit
	}
	candidate := FromPrefix(netip.PrefixFrom(free.Low, bits).Masked())
	if candidate.Low.Less(free.Low) {
		next := candidate.High.Next()
		if !next.IsValid() {
			return Range{}, ErrNoFit
		}
		candidate = FromPrefix(netip.PrefixFrom(next, bits))
	}
	if !free.Contains(candidate) {
		return Range{}, ErrNoFit
	}
	return candidate, nil
}

// Hosts returns the addresses of a network that hosts can use. For IPv4 networks of /30 or larger these are all except the network and
// broadcast addresses (RFC 1122 section 3.2.1.3; RFC 3021 for /31). For IPv6 these are all except the subnet-router anycast address (RFC
// 4291 section 2.6.1; RFC 6164 for /127).
func Hosts(r Range) Range {
	p, ok := r.Prefix()
	if !ok {
		return r
	}
	switch {
	case p.Addr().Is4() && p.Bits() <= 30:
		return Range{r.Low.Next(), r.High.Prev()}
	case p.Addr().Is6() && p.Bits() <= 126:
		return Range{r.Low.Next(), r.High}
	}
	return r
}

// Intersect returns the addresses in both ranges; ok is false if there are none.
func (r Range) Intersect(other Range) (both Range, ok bool) {
	if !r.IsValid() || !other.IsValid() || r.Low.Is4() != other.Low.Is4() || r.High.Less(other.Low) || other.High.Less(r.Low) {
		return Range{}, false
	}
	both = r
	if both.Low.Less(other.Low) {
		both.Low = other.Low
	}
	if other.High.Less(both.High) {
		both.High = other.High
	}
	return both, true
}

// Subtract returns the addresses of r that are not in other: none, one or two ranges, in order.
func (r Range) Subtract(other Range) []Range {
	if !r.IsValid() {
		return nil
	}
	hole, ok := r.Intersect(other)
	if !ok {
		return []Range{r}
	}
	var left []Range
	if r.Low.Less(hole.Low) {
		left = append(left, Range{r.Low, hole.Low.Prev()})
	}
	if hole.High.Less(r.High) {
		left = append(left, Range{hole.High.Next(), r.High})
	}
	return left
}

// MoveTo returns a range of the same size that starts at another address of the family. ok is false if it would exceed the address space.
func (r Range) MoveTo(low netip.Addr) (moved Range, ok bool) { return r.Shift(r.Low, low) }

// Shift moves the range by the distance from from to to. ok is false if it would leave the address space.
func (r Range) Shift(from, to netip.Addr) (moved Range, ok bool) {
	by := new(big.Int).Sub(number(to), number(from))
	low, okLow := address(new(big.Int).Add(number(r.Low), by), r.Low.Is4())
	high, okHigh := address(new(big.Int).Add(number(r.High), by), r.Low.Is4())
	return Range{low, high}, okLow && okHigh
}

func number(a netip.Addr) *big.Int { return new(big.Int).SetBytes(a.AsSlice()) }

func address(n *big.Int, v4 bool) (netip.Addr, bool) {
	size := 16
	if v4 {
		size = 4
	}
	if n.Sign() < 0 || n.BitLen() > 8*size {
		return netip.Addr{}, false
	}
	return netip.AddrFromSlice(n.FillBytes(make([]byte, size)))
}
