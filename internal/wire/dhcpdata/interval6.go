package dhcpdata

import (
	"encoding/binary"
	"math"
	"math/bits"
	"net/netip"
)

// lastOf returns the last address of a prefix.
func lastOf(p netip.Prefix) netip.Addr {
	octets := p.Masked().Addr().As16()
	for i := p.Bits(); i < 128; i++ {
		octets[i/8] |= 0x80 >> (i % 8)
	}
	return netip.AddrFrom16(octets)
}

// number is a number of 128 bits.
type number struct{ high, low uint64 }

func numberOf(a netip.Addr) number {
	octets := a.As16()
	return number{binary.BigEndian.Uint64(octets[:8]), binary.BigEndian.Uint64(octets[8:])}
}

func (n number) addr() netip.Addr {
	var octets [16]byte
	binary.BigEndian.PutUint64(octets[:8], n.high)
	binary.BigEndian.PutUint64(octets[8:], n.low)
	return netip.AddrFrom16(octets)
}

// add returns the sum of n and a number of steps of 2^shift; ok is false if it is too large.
func (n number) add(steps uint64, shift int) (sum number, ok bool) {
	step := number{low: steps}
	switch {
	case shift >= 64:
		step = number{high: steps << (shift - 64)}
	case shift > 0:
		step = number{steps >> (64 - shift), steps << shift}
	}
	low, carry := bits.Add64(n.low, step.low, 0)
	high, over := bits.Add64(n.high, step.high, carry)
	return number{high, low}, over == 0
}

// firstPrefix returns the first prefix of a length inside of an interval, and the number of prefixes in it, at most the largest uint64.
func (i Interval) firstPrefix(length int) (first netip.Addr, count uint64) {
	first = netip.PrefixFrom(i.First, length).Masked().Addr()
	shift := 128 - length
	if first != i.First {
		next, ok := numberOf(first).add(1, shift)
		if !ok {
			return first, 0
		}
		first = next.addr()
	}
	last := lastOf(netip.PrefixFrom(i.Last, length))
	if last != i.Last { // the last prefix is not whole
		before := netip.PrefixFrom(i.Last, length).Masked().Addr().Prev()
		if !before.IsValid() || before.Less(first) {
			return first, 0
		}
		last = before
	}
	if last.Less(first) {
		return first, 0
	}
	a, b := numberOf(first), numberOf(last)
	low, borrow := bits.Sub64(b.low, a.low, 0)
	high, _ := bits.Sub64(b.high, a.high, borrow)
	if shift >= 64 {
		low, high = high>>(shift-64), 0
	} else if shift > 0 {
		low, high = low>>shift|high<<(64-shift), high>>shift
	}
	if high > 0 || low == math.MaxUint64 {
		return first, math.MaxUint64
	}
	return first, low + 1
}

// measure6 sets the number of addresses or prefixes of a range of IPv6.
func (p *pool) measure6() {
	for _, i := range p.Ranges {
		n := i.size()
		if p.DelegatedLength > 0 {
			_, n = i.firstPrefix(p.DelegatedLength)
		}
		if p.size6 += n; p.size6 < n {
			p.size6 = math.MaxUint64
		}
	}
}

// nth returns the address or prefix with a number, less than size6, of the range.
func (p *pool) nth(number uint64) netip.Addr {
	for _, i := range p.Ranges {
		first, n, shift := i.First, i.size(), 0
		if p.DelegatedLength > 0 {
			first, n = i.firstPrefix(p.DelegatedLength)
			shift = 128 - p.DelegatedLength
		}
		if number < n {
			sum, _ := numberOf(first).add(number, shift)
			return sum.addr()
		}
		number -= n
	}
	return netip.Addr{}
}
