package naming

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// generate expands a $GENERATE directive: a range, and a record that contains $ in place of the number.
func (r *zoneFileReader) generate(arguments []string) error {
	if len(arguments) < 4 {
		r.addFault("$GENERATE requires a range, an owner, a type and data")
		return nil
	}
	if data := arguments[len(arguments)-1]; len(data) > 1 && data[0] == '"' { // quotes around the data keep its fields together
		arguments = append(arguments[:len(arguments)-1:len(arguments)-1], strings.ReplaceAll(data[1:len(data)-1], `\"`, `"`))
	}
	first, last, step, ok := rangeOf(arguments[0])
	if !ok {
		r.addFault("$GENERATE: %q is not a range such as 1-9 or 1-9/2", arguments[0])
		return nil
	}
	if r.generated += (last-first)/step + 1; r.generated > MaxGenerated {
		return fmt.Errorf("%s: the $GENERATE directives of the file create more than %d records", r.position(), MaxGenerated)
	}
	run, ttls := r.run, r.runTTLs // the run of records continues after the directive
	defer func() { r.run, r.runTTLs = run, ttls }()
	for number := first; number <= last; number += step {
		r.run = ""
		tokens := make([]string, len(arguments)-1)
		for i, text := range arguments[1:] {
			var err error
			if tokens[i], err = numberedText(text, number); err != nil {
				r.addFault("$GENERATE: %v", err)
				return nil
			}
		}
		r.record(r.complete(tokens[0]), tokens[1:])
	}
	return nil
}

// rangeForm is first-last or first-last/step. BIND ignores any text after it.
var rangeForm = regexp.MustCompile(`^\+?(\d+)-\+?(\d+)(?:/+\+?(\d+))?`)

// rangeOf parses a range of numbers.
func rangeOf(text string) (first, last, step int, ok bool) {
	parts := rangeForm.FindStringSubmatch(text)
	if parts == nil || parts[3] == "" && strings.HasSuffix(text, "/") {
		return 0, 0, 0, false
	}
	step = 1
	var err [3]error
	first, err[0] = strconv.Atoi(parts[1])
	last, err[1] = strconv.Atoi(parts[2])
	if parts[3] != "" {
		step, err[2] = strconv.Atoi(parts[3])
	}
	return first, last, step, errors.Join(err[:]...) == nil && last >= first && step > 0 && last <= maxTTL
}

// numberedText replaces $, ${offset}, ${offset,width} and ${offset,width,base} in a text of $GENERATE by a number. The base is d, o, x, X,
// n or N. $$ and \$ are a literal $.
func numberedText(text string, number int) (string, error) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && i+1 < len(text):
			b.WriteString(text[i : i+2])
			i++
		case text[i] != '$':
			b.WriteByte(text[i])
		case strings.HasPrefix(text[i:], "$$"):
			b.WriteByte('$')
			i++
		case strings.HasPrefix(text[i:], "${"):
			length := strings.IndexByte(text[i:], '}')
			if length < 0 {
				return "", fmt.Errorf("%q has no closing brace", text)
			}
			formatted, err := formatNumber(text[i+2:i+length], number)
			if err != nil {
				return "", fmt.Errorf("%q: %w", text, err)
			}
			b.WriteString(formatted)
			i += length
		default:
			b.WriteString(strconv.Itoa(number))
		}
	}
	return b.String(), nil
}

// formatNumber formats a number by the text between the braces of ${}.
func formatNumber(format string, number int) (string, error) {
	parts := strings.Split(format, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	wide, err := strconv.ParseInt(parts[0], 10, 64)
	offset := int(int32(wide)) //nolint:gosec // BIND takes the low 32 bits as a signed number
	width, base := 0, "d"
	if err == nil && len(parts) > 1 {
		width, err = strconv.Atoi(parts[1])
	}
	if len(parts) > 2 {
		base = parts[2]
	}
	if number = int(int32(number + offset)); err != nil || len(parts) > 3 || width < 0 || width > MaxName { //nolint:gosec // as above
		return "", fmt.Errorf("{%s} is not an offset, a width and a base", format)
	}
	switch base {
	case "d":
		return fmt.Sprintf("%0*d", width, number), nil
	case "o", "x", "X":
		return fmt.Sprintf("%0*"+base, width, uint32(number)), nil //nolint:gosec // its 32 bits are printed
	case "n", "N":
		digits := "0123456789abcdef"
		if base == "N" {
			digits = "0123456789ABCDEF"
		}
		var b strings.Builder
		for value := uint32(number); ; { //nolint:gosec // its bits are taken
			b.WriteByte(digits[value&15])
			value >>= 4
			if width--; width > 0 || value != 0 {
				b.WriteByte('.')
				width--
			}
			if width <= 0 && value == 0 {
				break
			}
		}
		return b.String(), nil
	}
	return "", fmt.Errorf("the base of {%s} must be one of d, o, x, X, n, N", format)
}
