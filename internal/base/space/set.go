package space

import (
	"math/big"
	"net/netip"
	"slices"
)

// Set is a set of addresses of one family: sorted ranges that neither overlap nor touch. The zero Set is empty.
type Set []Range

// Union returns the addresses in either set.
func (s Set) Union(other Set) (all Set) {
	both := slices.Concat(s, other)
	slices.SortFunc(both, func(a, b Range) int { return a.Low.Compare(b.Low) })
	for _, r := range both {
		if n := len(all); n > 0 {
			last := &all[n-1]
			if next := last.High.Next(); !next.IsValid() || !next.Less(r.Low) {
				if last.High.Less(r.High) {
					last.High = r.High
				}
				continue
			}
		}
		all = append(all, r)
	}
	return all
}

// Intersect returns the addresses in both sets.
func (s Set) Intersect(other Set) (both Set) {
	for i, j := 0, 0; i < len(s) && j < len(other); {
		if part, ok := s[i].Intersect(other[j]); ok {
			both = append(both, part)
		}
		if s[i].High.Less(other[j].High) {
			i++
		} else {
			j++
		}
	}
	return both
}

// Complement returns the addresses of whole that are not in the set.
func (s Set) Complement(whole Range) Set {
	left := Set{whole}
	for _, r := range s {
		last := left[len(left)-1]
		if left = append(left[:len(left)-1], last.Subtract(r)...); len(left) == 0 {
			break
		}
	}
	return left
}

// Nth returns the address at offset n from the first one. The range must have more than n addresses.
func (r Range) Nth(n *big.Int) netip.Addr {
	a, _ := address(new(big.Int).Add(number(r.Low), n), r.Low.Is4())
	return a
}
