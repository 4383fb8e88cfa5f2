package serverconfig

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"portolan/internal/base/naming"
)

// Format is the format of an option's values: one value, a list of values, or a list of rows of a fixed length. It is written as JSON, with
// a token in the place of each value: "<ipv4_address>", ["<ipv4_address>"], [["<ipv4_address>","<ipv4_mask>"]].
type Format struct {
	list bool
	// row are the tokens of one value, or of a row.
	row  []token
	rows bool
}

// token is the type of one value.
type token struct {
	text string
	kind string
	// min and max are the bounds of a number; words are the values of an enumeration.
	min, max int64
	words    []string
}

// kinds are the kinds of tokens that are strings, each with the function that checks a string. The kinds with nil are names of resources.
var kinds = map[string]func(text string) bool{
	"ipv4_address": func(s string) bool { a, err := netip.ParseAddr(s); return err == nil && a.Is4() },
	"ipv6_address": func(s string) bool { a, err := netip.ParseAddr(s); return err == nil && a.Is6() && a.Zone() == "" },
	"ip_address":   func(s string) bool { a, err := netip.ParseAddr(s); return err == nil && a.Zone() == "" },
	"ipv4_mask":    isMask,
	"ipv4_prefix": func(s string) bool {
		p, err := netip.ParsePrefix(s)
		return err == nil && p.Addr().Is4() && p == p.Masked()
	},
	"ipv6_prefix": func(s string) bool {
		p, err := netip.ParsePrefix(s)
		return err == nil && p.Addr().Is6() && p == p.Masked()
	},
	"text":   func(s string) bool { return !strings.ContainsAny(s, "\x00\r\n") },
	"string": func(s string) bool { return s != "" && !strings.ContainsAny(s, "\x00\r\n") },
	"domain_name": func(s string) bool {
		return s == "." || naming.Check(naming.Clean(s), naming.AnyName) == nil
	},
	"url": func(s string) bool {
		u, err := url.Parse(s)
		return err == nil && u.Scheme != "" && (u.Host != "" || u.Opaque != "")
	},
	"hex":           isHex,
	"email":         func(s string) bool { a, err := mail.ParseAddress(s); return err == nil && a.Address == s },
	"match_element": nil, // checking these needs the configuration (see Names)
	"mac_pool":      nil,
	"class":         nil,
	"identity":      nil,
	"route":         isRoute,
}

// numbers are the kinds of tokens that are numbers, each with its range.
var numbers = map[string][2]int64{
	"integer_8": {math.MinInt8, math.MaxInt8}, "unsigned_integer_8": {0, math.MaxUint8},
	"integer_16": {math.MinInt16, math.MaxInt16}, "unsigned_integer_16": {0, math.MaxUint16},
	"integer_32": {math.MinInt32, math.MaxInt32}, "unsigned_integer_32": {0, math.MaxUint32},
}

// isMask reports whether s is an IPv4 netmask, such as 255.255.255.0.
func isMask(s string) bool {
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is4() {
		return false
	}
	b := a.As4()
	n := ^(uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3]))
	return n&(n+1) == 0
}

// isRoute reports whether s is an IPv4 route, such as 10.0.0.0/8:10.1.0.1 (RFC 3442).
func isRoute(s string) bool {
	prefix, gateway, found := strings.Cut(s, ":")
	p, err := netip.ParsePrefix(prefix)
	a, wrong := netip.ParseAddr(gateway)
	return found && err == nil && wrong == nil && p.Addr().Is4() && p == p.Masked() && a.Is4()
}

// HexOctets returns the octets of a text of the kind hex: hexadecimal digits, with optional colons between them and an optional 0x in
// front. ok is false for another text.
func HexOctets(text string) (data []byte, ok bool) {
	data, err := hex.DecodeString(strings.ReplaceAll(strings.TrimPrefix(text, "0x"), ":", ""))
	return data, err == nil && len(data) > 0
}

// isHex reports whether s has the kind hex.
func isHex(s string) bool {
	_, ok := HexOctets(s)
	return ok
}

// tokenForm matches a token: <kind>, <kind min..max> or <one|another>.
var tokenForm = regexp.MustCompile(`^<([a-zA-Z0-9_.|-]+)(?: (-?[0-9]{1,10})\.\.(-?[0-9]{1,10}))?>$`)

// readToken parses a token.
func readToken(text string) (token, error) {
	parts := tokenForm.FindStringSubmatch(text)
	if parts == nil {
		return token{}, fmt.Errorf("%q is not a type in angle brackets", text)
	}
	t := token{text: text, kind: parts[1]}
	if strings.Contains(t.kind, "|") {
		t.words = strings.Split(t.kind, "|")
		return t, nil
	}
	if t.kind == "boolean" {
		return t, nil
	}
	bounds, number := numbers[t.kind]
	if _, known := kinds[t.kind]; !known && !number {
		return t, fmt.Errorf("must be one of the types <boolean>, <%s>, not %q", strings.Join(kindNames(), ">, <"), text)
	}
	t.min, t.max = bounds[0], bounds[1]
	for i, limit := range []*int64{&t.min, &t.max} {
		if parts[2+i] == "" {
			continue
		}
		n, err := strconv.ParseInt(parts[2+i], 10, 64)
		if err != nil || !number || n < bounds[0] || n > bounds[1] {
			return t, fmt.Errorf("%q: this type does not support a range", text)
		}
		*limit = n
	}
	return t, nil
}

// kindNames returns the names of the kinds, sorted.
func kindNames() (names []string) {
	for name := range numbers {
		names = append(names, name)
	}
	for name := range kinds {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// ParseFormat parses the value format of a definition.
func ParseFormat(raw json.RawMessage) (Format, error) {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		t, err := readToken(one)
		return Format{row: []token{t}}, err
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || len(list) != 1 {
		return Format{}, fmt.Errorf(`must be "<type>", ["<type>"] or [["<type>","<type>"]]`)
	}
	var tokens []string
	f := Format{list: true}
	if json.Unmarshal(list[0], &one) == nil {
		tokens = []string{one}
	} else if f.rows = true; json.Unmarshal(list[0], &tokens) != nil || len(tokens) == 0 {
		return f, fmt.Errorf(`must be "<type>", ["<type>"] or [["<type>","<type>"]]`)
	}
	for _, text := range tokens {
		t, err := readToken(text)
		if err != nil {
			return f, err
		}
		f.row = append(f.row, t)
	}
	return f, nil
}

// Names checks the names in a value that refer to resources of one kind: elements of access control lists, pools, classes.
type Names func(kind string, values []string) error

// Check checks a value and returns it in the form to store. An error states the entry that does not have the format.
func (f Format) Check(raw json.RawMessage, names Names) (json.RawMessage, error) {
	named := map[string][]string{}
	var out []byte
	var err error
	if !f.list {
		out, err = f.row[0].check(raw, named)
	} else {
		out, err = f.checkList(raw, named)
	}
	if err != nil {
		return nil, err
	}
	for _, kind := range slices.Sorted(maps.Keys(named)) {
		if err := names(kind, named[kind]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// unquoteJSON returns the JSON inside a string. Clients that read values from a table send numbers, booleans and lists as strings.
func unquoteJSON(raw json.RawMessage) json.RawMessage {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return raw
	}
	return json.RawMessage(strings.TrimSpace(text))
}

// checkList checks a list of values or rows.
func (f Format) checkList(raw json.RawMessage, named map[string][]string) ([]byte, error) {
	var entries []json.RawMessage
	if json.Unmarshal(unquoteJSON(raw), &entries) != nil {
		return nil, fmt.Errorf("must be a list of %s", f)
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("must have at least one entry")
	}
	out := []byte{'['}
	for i, entry := range entries {
		if i > 0 {
			out = append(out, ',')
		}
		if !f.rows {
			value, err := f.row[0].check(entry, named)
			if err != nil {
				return nil, fmt.Errorf("entry %d %w", i, err)
			}
			out = append(out, value...)
			continue
		}
		var row []json.RawMessage
		if json.Unmarshal(entry, &row) != nil || len(row) != len(f.row) {
			return nil, fmt.Errorf("entry %d must be a list of %d: %s", i, len(f.row), f)
		}
		out = append(out, '[')
		for j, raw := range row {
			value, err := f.row[j].check(raw, named)
			if err != nil {
				return nil, fmt.Errorf("entry %d, value %d %w", i, j, err)
			}
			if j > 0 {
				out = append(out, ',')
			}
			out = append(out, value...)
		}
		out = append(out, ']')
	}
	return append(out, ']'), nil
}

// Each calls fn for each value in a checked value of the format, in order, with the kind of its token.
func (f Format) Each(value json.RawMessage, fn func(kind string, value json.RawMessage) error) error {
	if !f.list {
		return fn(f.row[0].kind, value)
	}
	var entries []json.RawMessage
	if err := json.Unmarshal(value, &entries); err != nil {
		return err
	}
	for _, entry := range entries {
		row := []json.RawMessage{entry}
		if f.rows {
			if err := json.Unmarshal(entry, &row); err != nil {
				return err
			}
		}
		for i, one := range row {
			if err := fn(f.row[min(i, len(f.row)-1)].kind, one); err != nil {
				return err
			}
		}
	}
	return nil
}

// String returns the tokens of one entry.
func (f Format) String() string {
	var texts []string
	for _, t := range f.row {
		texts = append(texts, t.text)
	}
	return strings.Join(texts, ", ")
}

// hasNames reports whether values of the format refer to resources by name.
func (f Format) hasNames() bool {
	return slices.ContainsFunc(f.row, func(t token) bool {
		is, known := kinds[t.kind]
		return known && is == nil
	})
}

// rename returns a valid value with change applied to each string in it. change gets the kind of the string's token.
func (f Format) rename(raw json.RawMessage, change func(kind, text string) string) json.RawMessage {
	var whole any
	if json.Unmarshal(raw, &whole) != nil {
		return raw
	}
	one := func(t token, value any) any {
		if text, ok := value.(string); ok {
			return change(t.kind, text)
		}
		return value
	}
	entry := func(value any) any {
		row, ok := value.([]any)
		if !ok || !f.rows {
			return one(f.row[0], value)
		}
		for j := range min(len(row), len(f.row)) {
			row[j] = one(f.row[j], row[j])
		}
		return row
	}
	if list, ok := whole.([]any); ok && f.list {
		for i := range list {
			list[i] = entry(list[i])
		}
	} else {
		whole = entry(whole)
	}
	text, err := json.Marshal(whole)
	if err != nil {
		return raw
	}
	return text
}

// check checks one value and returns it in the form to store. It adds names of resources to named, by kind.
func (t token) check(raw json.RawMessage, named map[string][]string) (json.RawMessage, error) {
	raw = bytes.TrimSpace(raw)
	if _, number := numbers[t.kind]; number || t.kind == "boolean" {
		raw = unquoteJSON(raw)
	}
	if t.kind == "boolean" {
		if string(raw) == "true" || string(raw) == "false" {
			return raw, nil
		}
		return nil, fmt.Errorf("must be <boolean>: true or false")
	}
	if _, number := numbers[t.kind]; number {
		n, err := strconv.ParseInt(string(raw), 10, 64)
		if err != nil || n < t.min || n > t.max {
			return nil, fmt.Errorf("must be <number>: a whole number from %d to %d", t.min, t.max)
		}
		return strconv.AppendInt(nil, n, 10), nil
	}
	var text string
	if json.Unmarshal(raw, &text) != nil || len(text) > maxText {
		return nil, fmt.Errorf("must be %s, a string of at most %d bytes", t.text, maxText)
	}
	if t.words != nil {
		i := slices.IndexFunc(t.words, func(word string) bool { return strings.EqualFold(word, text) })
		if i < 0 {
			return nil, fmt.Errorf("is %q; must be one of %s", text, strings.Join(t.words, ", "))
		}
		return json.Marshal(t.words[i])
	}
	if is := kinds[t.kind]; is == nil {
		named[t.kind] = append(named[t.kind], text)
	} else if !is(text) {
		return nil, fmt.Errorf("is %q; must be %s", text, t.text)
	}
	return raw, nil
}

// maxText is the maximum length of a string in a value, in bytes.
const maxText = 4000
