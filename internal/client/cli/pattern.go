package cli

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// Parts of a name pattern. The console has the same rules (console/src/pattern.ts).
var (
	patternRange = regexp.MustCompile(`\[(\d+)(?:-(\d+))?\]`)
	patternRow   = regexp.MustCompile(`#+`)
)

// maxDigits is the maximum number of digits of a number in a pattern.
const maxDigits = 9

// NamesIn returns the number of names that a pattern itself states, such as 40 for [01-40]; 1 if it states none.
func NamesIn(pattern string) int {
	found := patternRange.FindStringSubmatch(pattern)
	if found == nil || found[2] == "" {
		return 1
	}
	first, err1 := strconv.Atoi(found[1])
	last, err2 := strconv.Atoi(found[2])
	if err1 != nil || err2 != nil || last < first {
		return 1
	}
	return last - first + 1
}

// Names returns count names of a pattern. [01-40] is replaced by the numbers from 01 to 40 in this width, [01] by the numbers from 01 on,
// and a row of # by the numbers from 1 on in its width. A text without any of these gets -1, -2 and so on if count is greater than 1. An
// empty pattern returns empty names.
func Names(pattern string, count int) ([]string, error) {
	names := make([]string, count)
	at := patternRange.FindStringSubmatchIndex(pattern)
	row := patternRow.FindStringIndex(pattern)
	rest := pattern
	if at != nil {
		rest = pattern[:at[0]] + pattern[at[1]:]
	}
	if strings.ContainsAny(rest, "[]") || at != nil && row != nil {
		return nil, errors.New("use exactly one number: [01-40] from 01 to 40, [7] from 7 on, or ## from 01 on")
	}
	first, width, found := 1, 1, at
	switch {
	case at != nil:
		text := pattern[at[2]:at[3]]
		width = len(text)
		if width > maxDigits || at[4] >= 0 && at[5]-at[4] > maxDigits {
			return nil, fmt.Errorf("a number must have at most %d digits", maxDigits)
		}
		first, _ = strconv.Atoi(text) // digits only
		if at[4] >= 0 {
			if last, _ := strconv.Atoi(pattern[at[4]:at[5]]); last-first+1 != count {
				return nil, fmt.Errorf("%s gives %d names for %d resources", pattern[at[0]:at[1]], max(0, last-first+1), count)
			}
		}
	case row != nil:
		width, found = row[1]-row[0], row
	case pattern == "" || count == 1:
		for i := range names {
			names[i] = pattern
		}
		return names, nil
	default:
		pattern += "-"
		found = []int{len(pattern), len(pattern)}
	}
	for i := range names {
		names[i] = fmt.Sprintf("%s%0*d%s", pattern[:found[0]], width, first+i, pattern[found[1]:])
	}
	return names, nil
}

// ListConsecutive returns count addresses from the first on.
func ListConsecutive(first string, count int) (list []string, err error) {
	a, err := netip.ParseAddr(first)
	if err != nil || a.Zone() != "" {
		return nil, fmt.Errorf("%q is not an IP address", first)
	}
	for range count {
		if !a.IsValid() {
			return nil, fmt.Errorf("less than %d addresses follow %s", count, first)
		}
		list, a = append(list, a.String()), a.Next()
	}
	return list, nil
}
