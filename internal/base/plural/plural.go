// Package plural writes numbers of things in messages: "1 zone", "2 zones".
package plural

import (
	"fmt"
	"strings"
)

// Count returns a number with its noun. noun is the singular; the plural follows the rules of English: "zone", "entry", "address". In a
// noun of several words, the last one is inflected.
func Count[N int | int32 | int64 | uint64](n N, noun string) string {
	if n != 1 {
		noun = pluralize(noun)
	}
	return fmt.Sprint(n, " ", noun)
}

// pluralize returns the plural of a noun.
func pluralize(noun string) string {
	stem, isY := strings.CutSuffix(noun, "y")
	switch {
	case isY && !strings.ContainsAny(stem[max(0, len(stem)-1):], "aeiou"):
		return stem + "ies"
	case strings.HasSuffix(noun, "s"), strings.HasSuffix(noun, "x"), strings.HasSuffix(noun, "ch"):
		return noun + "es"
	}
	return noun + "s"
}

// Verb returns the verb for a number of things: plural.Verb(n, "is", "are").
func Verb[N int | int32 | int64 | uint64](n N, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
