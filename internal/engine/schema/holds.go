package schema

import (
	"cmp"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Holds reports whether a comparison holds of a text that stands in no row, as the store would compare one that does (CompareText); nil
// is no value at all.
func (n *Node) Holds(text *string) bool {
	return slices.ContainsFunc(n.Values, func(v Literal) bool { return n.holdsOne(text, v) })
}

func (n *Node) holdsOne(text *string, v Literal) bool {
	same := text == nil && v.Null() || text != nil && !v.Null() && *text == v.Text
	switch {
	case n.Op == "eq" || n.Op == "in":
		return same
	case n.Op == "ne":
		return !same
	case text == nil || v.Null():
		return false
	}
	switch n.Op {
	case "contains":
		return strings.Contains(*text, v.Text)
	case "startsWith":
		return strings.HasPrefix(*text, v.Text)
	case "endsWith":
		return strings.HasSuffix(*text, v.Text)
	}
	order := strings.Compare(*text, v.Text)
	if asNumber(v.Text) {
		x, ok := decimal(*text)
		if !ok {
			return false
		}
		order = compareNumbers(x, v.Text)
	}
	switch n.Op {
	case "gt":
		return order > 0
	case "ge":
		return order >= 0
	case "lt":
		return order < 0
	}
	return n.Op == "le" && order <= 0
}

// compareNumbers compares a number with one as a filter has it: to the last digit where that is a whole one of 64 bits, else as numbers of
// double precision, as the store does.
func compareNumbers(x *big.Rat, text string) int {
	if whole, err := strconv.ParseInt(text, 10, 64); err == nil {
		return x.Cmp(new(big.Rat).SetInt64(whole))
	}
	y, err := strconv.ParseFloat(text, 64)
	if err != nil { // it was read before (asNumber)
		return 0
	}
	near, _ := x.Float64()
	return cmp.Compare(near, y)
}

// asNumber reports whether what is greater or less than a text is compared as numbers.
func asNumber(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil && numeral(text)
}

// decimal reads a text that the store takes for a number (store.Numeral).
func decimal(text string) (*big.Rat, bool) {
	if len(text) > 20 || !decimals.MatchString(text) {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}

var decimals = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,19})([.][0-9]{1,18})?$`)
