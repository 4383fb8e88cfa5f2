package dhcpdata

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"net/netip"
	"strings"
)

// Interval is a range of addresses of one family, both ends included. Its text form is first-last.
type Interval struct{ First, Last netip.Addr }

// Contains reports whether the interval contains an address.
func (i Interval) Contains(a netip.Addr) bool {
	return a.Is4() == i.First.Is4() && i.First.Compare(a) <= 0 && a.Compare(i.Last) <= 0
}

// MarshalText implements encoding.TextMarshaler.
func (i Interval) MarshalText() ([]byte, error) { return []byte(i.String()), nil }

func (i Interval) String() string { return i.First.String() + "-" + i.Last.String() }

// UnmarshalText implements encoding.TextUnmarshaler.
func (i *Interval) UnmarshalText(text []byte) (err error) {
	first, last, ok := strings.Cut(string(text), "-")
	if !ok {
		return fmt.Errorf("%q is not a range of addresses", text)
	}
	if i.First, err = netip.ParseAddr(first); err != nil {
		return err
	}
	if i.Last, err = netip.ParseAddr(last); err != nil {
		return err
	}
	return i.check()
}

// check returns an error unless the interval has two addresses of one family in order, without zones.
func (i Interval) check() error {
	first, last := i.First, i.Last
	if !first.IsValid() || !last.IsValid() || first.Is4() != last.Is4() || last.Less(first) || first.Zone()+last.Zone() != "" ||
		first.Is4In6() || last.Is4In6() {
		return fmt.Errorf("%s is not a range of addresses", i)
	}
	return nil
}

// contains reports whether one of the sorted intervals contains an address.
func contains(all []Interval, a netip.Addr) bool {
	low, high := 0, len(all)
	for low < high {
		if middle := (low + high) / 2; all[middle].Last.Less(a) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low < len(all) && all[low].Contains(a)
}

// size returns the number of addresses, at most the largest uint64.
func (i Interval) size() uint64 {
	first, last := i.First.As16(), i.Last.As16()
	high := binary.BigEndian.Uint64(last[:8]) - binary.BigEndian.Uint64(first[:8])
	low, borrow := bits.Sub64(binary.BigEndian.Uint64(last[8:]), binary.BigEndian.Uint64(first[8:]), 0)
	if high-borrow > 0 || low == math.MaxUint64 {
		return math.MaxUint64
	}
	return low + 1
}
