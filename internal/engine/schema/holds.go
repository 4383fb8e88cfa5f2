package schema

import (
	"cmp"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Holds reports whether the comparison is true for a text that is not in a row, as the store would compare a stored one (CompareText).
// nil is a missing value.
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
	if isNumber(v.Text) {
		x, ok := parseDecimal(*text)
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

// compareNumbers compares a number with the number in a filter. It is exact for whole numbers of 64 bits, and uses double precision
// otherwise, as the store does.
func compareNumbers(x *big.Rat, text string) int {
	if whole, err := strconv.ParseInt(text, 10, 64); err == nil {
		return x.Cmp(new(big.Rat).SetInt64(whole))
	}
	y, err := strconv.ParseFloat(text, 64)
	if err != nil { // it was parsed before (isNumber)
		return 0
	}
	near, _ := x.Float64()
	return cmp.Compare(near, y)
}

// isNumber reports whether ge, gt, le and lt with this text compare numbers.
func isNumber(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil && numeral(text)
}

// parseDecimal parses a text that the store treats as a number (store.Numeral).
func parseDecimal(text string) (*big.Rat, bool) {
	if len(text) > 20 || !decimalPattern.MatchString(text) {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}

var decimalPattern = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,19})([.][0-9]{1,18})?$`)
