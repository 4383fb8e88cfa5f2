package schema

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"portolan/internal/base/naming"
	"portolan/internal/base/problem"
	"portolan/internal/base/space"
	"portolan/internal/engine/store"
)

// Filterable reports whether lists can be filtered and ordered by the field.
func (f *Field) Filterable() bool {
	return !f.WriteOnly && !f.Transient && !f.Computed && f.Kind != Strings && f.Kind != Integers &&
		f.Kind != SecretText
}

// textOperators are the operators that compare a part of a text.
var textOperators = []string{"contains", "startsWith", "endsWith"}

// operators returns the operators of the field's kind. Our additions to the published ones are within, and the text operators for
// addresses.
func (f *Field) operators() string {
	switch f.Kind {
	case Bool:
		return "eq in ne"
	case Integer, Float, Time:
		return "eq in ne ge gt le lt"
	case Address:
		return "eq in ne ge gt le lt within contains startsWith endsWith"
	case Span:
		return "eq in ne ge gt le lt contains within startsWith"
	}
	return "eq in ne contains startsWith endsWith"
}

// UnsupportedOperator returns the error for an operator that a field does not support. supported lists the others.
func UnsupportedOperator(n *Node, supported string) error {
	return setCode("UnsupportedFilterOperator", FilterValue(n, n.Values[0],
		"this field does not accept the operator "+n.Op+"; use one of "+supported))
}

// Condition converts a comparison of the field into a condition.
func (f *Field) Condition(n *Node) (store.Expr, error) {
	if !slices.Contains(strings.Fields(f.operators()), n.Op) {
		return nil, UnsupportedOperator(n, f.operators())
	}
	switch {
	case f.Kind == Span:
		return f.rangeCondition(n)
	case n.Op == "within":
		r, err := RangeOf(n, n.Values[0])
		return insideRange(r, f.StoreField(), f.StoreField()), err
	case f.Kind == Address && slices.Contains(textOperators, n.Op): // in the text of the address
		text := &Field{Kind: Text}
		return text.CompareWith(n, store.Field{Kind: store.Text, Path: []string{f.Name}, Searched: f.Searched})
	}
	return f.CompareWith(n, f.StoreField())
}

// FilterValue returns the error for a value in a filter, with its position.
func FilterValue(n *Node, v Literal, message string) error {
	p := problem.BadRequest("InvalidFilterValue", "filter: %s, at position %d: %s", strings.Join(n.Path, "."), v.position+1, message)
	p.Fields = []string{strings.Join(n.Path, ".")}
	return p
}

// CompareWith compares a field of the store with each of the values.
func (f *Field) CompareWith(n *Node, at store.Field) (store.Expr, error) {
	var either store.Any
	for _, v := range n.Values {
		op := n.Op
		if op == "in" {
			op = "eq"
		}
		e, err := f.compareOne(n, at, op, v)
		if err != nil {
			return nil, err
		}
		either = append(either, e)
	}
	if len(either) == 1 {
		return either[0], nil
	}
	return either, nil
}

func (f *Field) compareOne(n *Node, at store.Field, op string, v Literal) (store.Expr, error) {
	if v.Null() || f.Blank && v.Text == "" && (op == "eq" || op == "ne") {
		if op != "eq" && op != "ne" {
			return nil, setCode("UnsupportedFilterOperatorForNullValue", FilterValue(n, v, "null is accepted only with eq, in and ne"))
		}
		return store.Compare{Field: at, Op: op}, nil
	}
	if f.Blank && v.Quoted && v.Text == "" && slices.Contains([]string{"startsWith", "contains", "endsWith"}, op) {
		return store.All{}, nil // every text contains the empty text
	}
	value, err := f.literal(n, v)
	if err != nil {
		return nil, err
	}
	if key, ok := value.([]byte); ok {
		return addressCondition(at, op, key), nil
	}
	if f.DNS && (op == "eq" || op == "ne") {
		text, _ := value.(string)
		return store.Compare{Field: store.Field{Kind: store.ColumnText, Path: []string{"key"}}, Op: op, Value: naming.Key(text)}, nil
	}
	if text, ok := value.(string); ok && f.DNS && op == "startsWith" {
		return prefixCondition(text, store.Compare{Field: at, Op: op, Value: text}), nil
	}
	if text, ok := value.(string); ok && f.KeyPrefix != "" && (op == "eq" || op == "ne") {
		return store.Compare{Field: store.Field{Kind: store.ColumnText, Path: []string{"key"}}, Op: op, Value: f.KeyPrefix + text}, nil
	}
	return store.Compare{Field: at, Op: op, Value: value}, nil
}

// prefixCondition adds a condition on the key to whole, the condition that a name starts with a text, because the key has an index. The
// key starts with the text in lower case, or its last label starts like an A-label (RFC 5890 section 2.3.2.1), because that label may go
// on with non-ASCII letters. It adds nothing if the text itself has non-ASCII letters or escapes.
func prefixCondition(text string, whole store.Compare) store.Expr {
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf || r == '\\' }) {
		return whole
	}
	key := store.Field{Kind: store.ColumnText, Path: []string{"key"}}
	from := strings.ToLower(text)
	begins := store.Any{store.Compare{Field: key, Op: "startsWith", Value: from}}
	if label := from[strings.LastIndexByte(from, '.')+1:]; label != "" && !strings.HasPrefix(label, aLabel) {
		begins = append(begins, store.Compare{Field: key, Op: "startsWith", Value: strings.TrimSuffix(from, label) + aLabel})
	}
	return store.All{begins, store.Recheck{Expr: whole}}
}

// aLabel is the prefix of A-labels, the ASCII form of labels with other letters.
const aLabel = "xn--"

// addressCondition compares addresses of the same family.
func addressCondition(at store.Field, op string, key []byte) store.Expr {
	all := store.All{store.Compare{Field: at, Op: op, Value: key}}
	edge := make([]byte, 17)
	edge[0] = key[0]
	switch op {
	case "ge", "gt":
		for i := 1; i < 17; i++ {
			edge[i] = 0xff
		}
		all = append(all, store.Compare{Field: at, Op: "le", Value: edge})
	case "le", "lt":
		all = append(all, store.Compare{Field: at, Op: "ge", Value: edge})
	}
	return all
}

// literal parses a value for the field.
func (f *Field) literal(n *Node, v Literal) (any, error) {
	switch f.Kind {
	case Bool:
		if v.Text != "true" && v.Text != "false" {
			return nil, setCode("InvalidFilterValueType", FilterValue(n, v, "expected true or false"))
		}
		return v.Text == "true", nil
	case Integer:
		if i, err := strconv.ParseInt(v.Text, 10, 64); err == nil {
			return i, nil
		}
		return nil, setCode("InvalidFilterValueType", FilterValue(n, v, "expected a whole number"))
	case Float:
		if x, err := strconv.ParseFloat(v.Text, 64); err == nil {
			return x, nil
		}
		return nil, setCode("InvalidFilterValueType", FilterValue(n, v, "expected a number"))
	case Time:
		for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02"} {
			if at, err := time.Parse(layout, v.Text); err == nil {
				return FormatTime(at), nil
			}
		}
		return nil, setCode("InvalidFilterDate", FilterValue(n, v, "expected a time as in RFC 3339"))
	case Address:
		a, err := netip.ParseAddr(strings.TrimSpace(v.Text))
		if err != nil || a.Zone() != "" {
			return nil, setCode("InvalidFilterAddress", FilterValue(n, v, "expected an IP address"))
		}
		return store.AddrKey(a.Unmap()), nil
	}
	if n.Op == "eq" || n.Op == "in" || n.Op == "ne" {
		switch kept, err := f.Normalize(v.Text); {
		case f.Hardware && err != nil:
			return nil, setCode("InvalidMacAddressFilter", FilterValue(n, v, err.Error()))
		case f.DUID && err != nil:
			return nil, FilterValue(n, v, err.Error())
		case f.Hardware || f.DUID:
			return kept, nil
		}
	}
	if f.DUID && v.Quoted && slices.Contains(textOperators, n.Op) { // as it is stored: 000100012A
		return strings.ToUpper(strings.NewReplacer(":", "", "-", "", " ", "").Replace(v.Text)), nil
	}
	if f.Hardware && v.Quoted && slices.Contains(textOperators, n.Op) { // as it is stored: 00-00-5E-00-53-01
		return strings.ToUpper(strings.ReplaceAll(v.Text, ":", "-")), nil
	}
	if !v.Quoted && v.Text != "true" && v.Text != "false" && !numeral(v.Text) {
		return nil, setCode("InvalidFilterValueType", FilterValue(n, v, "text must be in quotes"))
	}
	return v.Text, nil
}

// Normalize returns a text of the field in its stored form, which is also shown: hardware addresses and DUIDs in one notation, names
// without the final dot. It returns an error if the text is not valid for the field.
func (f *Field) Normalize(text string) (string, error) {
	switch {
	case f.Hardware:
		mac, err := space.ParseHardware(text)
		if err != nil {
			return "", err
		}
		return space.FormatHardware(mac), nil
	case f.DUID:
		return space.KeptDUID(text)
	case f.DNS:
		return strings.TrimSuffix(text, "."), nil
	}
	return text, nil
}

// Same reports whether two texts of the field are equal: addresses and ranges by value, names in any letter case (RFC 4343), others by
// their stored form (Kept).
func (f *Field) Same(one, other string) bool {
	switch f.Kind {
	case Address:
		a, err := netip.ParseAddr(strings.TrimSpace(one))
		b, wrong := netip.ParseAddr(strings.TrimSpace(other))
		return err == nil && wrong == nil && a.Unmap() == b.Unmap()
	case Span:
		a, err := space.Parse(one)
		b, wrong := space.Parse(other)
		return err == nil && wrong == nil && a == b
	case Text:
		if f.DNS {
			return naming.Key(one) == naming.Key(other)
		}
		a, err := f.Normalize(one)
		b, wrong := f.Normalize(other)
		return err == nil && wrong == nil && a == b
	}
	return false
}

// CompareText compares a member inside a field, which may be of any kind. With a number, the operators ge, gt, le and lt compare numbers,
// and texts that are not numbers do not match.
func CompareText(n *Node, at store.Field) (store.Expr, error) {
	f, text := &Field{Kind: Text}, n.Values[0].Text
	if isNumber(text) && slices.Contains([]string{"ge", "gt", "le", "lt"}, n.Op) {
		f.Kind, at.Kind, at.Indexed = Float, store.Numeral, false
		if _, err := strconv.ParseInt(text, 10, 64); err == nil { // exact for all digits
			f.Kind = Integer
		}
	}
	return f.CompareWith(n, at)
}

// insideRange returns the condition that everything from low to high is in a range.
func insideRange(r space.Range, low, high store.Field) store.Expr {
	from, to := store.AddrKey(r.Low), store.AddrKey(r.High)
	return store.All{store.Compare{Field: low, Op: "ge", Value: from}, store.Compare{Field: low, Op: "le", Value: to},
		store.Compare{Field: high, Op: "le", Value: to}}
}

var (
	lowColumn  = store.Field{Kind: store.ColumnSpan, Path: []string{"low"}}
	highColumn = store.Field{Kind: store.ColumnSpan, Path: []string{"high"}}
)

// rangeCondition compares spans. eq takes a length, a prefix or low-high; ge, gt, le and lt compare prefix lengths; contains and within
// take an address, a prefix or low-high; startsWith compares the text.
func (f *Field) rangeCondition(n *Node) (store.Expr, error) {
	text := store.Field{Kind: store.Text, Path: []string{f.Name}}
	var either store.Any
	for _, v := range n.Values {
		if !v.Quoted {
			return nil, setCode("InvalidFilterValueType", FilterValue(n, v, "expected a range in quotes"))
		}
		switch n.Op {
		case "startsWith":
			either = append(either, store.Compare{Field: text, Op: n.Op, Value: v.Text})
			continue
		case "contains", "within":
			r, err := RangeOf(n, v)
			if err != nil {
				return nil, err
			}
			if n.Op == "within" {
				either = append(either, insideRange(r, lowColumn, highColumn))
			} else {
				either = append(either, store.Around{Low: store.AddrKey(r.Low), High: store.AddrKey(r.High)})
			}
			continue
		}
		bits, sized, err := space.ParseSize(v.Text, false)
		if err != nil {
			return nil, FilterValue(n, v, err.Error())
		}
		var r space.Range
		if !sized {
			if r, err = space.Parse(v.Text); err != nil {
				return nil, FilterValue(n, v, err.Error())
			}
		}
		e, err := f.lengthCondition(n, v, bits, sized, r)
		if err != nil {
			return nil, err
		}
		either = append(either, e)
	}
	return either, nil
}

func (f *Field) lengthCondition(n *Node, v Literal, bits int, sized bool, r space.Range) (store.Expr, error) {
	length := store.Field{Kind: store.PrefixLen, Path: []string{f.Name}}
	op := n.Op
	if op == "in" {
		op = "eq"
	}
	if !sized && (op == "eq" || op == "ne") {
		same := store.All{store.Compare{Field: lowColumn, Op: "eq", Value: store.AddrKey(r.Low)},
			store.Compare{Field: highColumn, Op: "eq", Value: store.AddrKey(r.High)}}
		if op == "ne" {
			return store.Not{Expr: same}, nil
		}
		return same, nil
	}
	if sized {
		return store.Compare{Field: length, Op: op, Value: int64(bits)}, nil
	}
	p, ok := r.Prefix()
	if !ok {
		return nil, FilterValue(n, v, "ge, gt, le and lt compare prefix lengths: give a prefix length")
	}
	return store.All{store.Compare{Field: length, Op: op, Value: int64(p.Bits())}, sameFamily(r.Low)}, nil
}

func sameFamily(a netip.Addr) store.Expr {
	family := byte(6)
	if a.Is4() {
		family = 4
	}
	return store.All{store.Compare{Field: lowColumn, Op: "ge", Value: []byte{family}},
		store.Compare{Field: lowColumn, Op: "lt", Value: []byte{family + 1}}}
}

// RangeOf parses an address, a prefix or low-high in a filter.
func RangeOf(n *Node, v Literal) (space.Range, error) {
	if a, err := netip.ParseAddr(strings.TrimSpace(v.Text)); err == nil && a.Zone() == "" {
		a = a.Unmap()
		return space.Range{Low: a, High: a}, nil
	}
	r, err := space.Parse(v.Text)
	if err != nil {
		return r, FilterValue(n, v, err.Error())
	}
	return r, nil
}
