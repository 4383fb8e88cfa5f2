package resource

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"portolan/internal/naming"
	"portolan/internal/problem"
	"portolan/internal/space"
	"portolan/internal/store"
)

// filterable reports whether a field can be filtered and ordered by.
func (f *Field) filterable() bool {
	return !f.WriteOnly && !f.Transient && !f.Computed && f.Kind != Strings && f.Kind != Integers
}

// operators lists the operators per kind, as published.
func (f *Field) operators() string {
	switch f.Kind {
	case Bool:
		return "eq in ne"
	case Integer, Float:
		return "eq in ne ge gt le lt"
	case Time:
		return "eq in ne ge gt le lt"
	case Address:
		return "eq in ne ge gt le lt"
	case Span:
		return "eq in ne ge gt le lt contains startsWith"
	}
	if f.Enum != nil {
		return "eq in ne contains startsWith endsWith"
	}
	return "eq in ne contains startsWith endsWith"
}

func (f *Field) condition(n *node) (store.Expr, error) {
	if !slices.Contains(strings.Fields(f.operators()), n.op) {
		return nil, filterValue(n, n.values[0], "the operator "+n.op+" is not for this field; these are: "+f.operators())
	}
	if f.Kind == Span {
		return f.rangeCondition(n)
	}
	return f.compareWith(n, f.field())
}

func filterValue(n *node, v literal, message string) error {
	p := problem.BadRequest("InvalidFilterValue", "filter: %s, at position %d: %s", strings.Join(n.path, "."), v.at+1, message)
	p.Fields = []string{strings.Join(n.path, ".")}
	return p
}

func (f *Field) compareWith(n *node, at store.Field) (store.Expr, error) {
	var either store.Any
	for _, v := range n.values {
		op := n.op
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

func (f *Field) compareOne(n *node, at store.Field, op string, v literal) (store.Expr, error) {
	if !v.quoted && v.text == "null" {
		if op != "eq" && op != "ne" {
			return nil, filterValue(n, v, "null goes with eq, in and ne")
		}
		return store.Compare{Field: at, Op: op}, nil
	}
	value, err := f.literal(n, v)
	if err != nil {
		return nil, err
	}
	if key, ok := value.([]byte); ok {
		return addressCondition(at, op, key), nil
	}
	if f.DNS && op == "eq" {
		text, _ := value.(string)
		return store.Compare{Field: store.Field{Kind: store.ColumnText, Path: []string{"key"}}, Op: op, Value: naming.Key(text)}, nil
	}
	return store.Compare{Field: at, Op: op, Value: value}, nil
}

// addressCondition compares addresses of one family; an index on spans is by configuration.
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
	if at.Kind == store.ColumnSpan && op != "ne" {
		all = append(all, store.AnyScope{})
	}
	return all
}

// literal reads a value for the field.
func (f *Field) literal(n *node, v literal) (any, error) {
	switch f.Kind {
	case Bool:
		if v.text != "true" && v.text != "false" {
			return nil, filterValue(n, v, "expected true or false")
		}
		return v.text == "true", nil
	case Integer:
		if i, err := strconv.ParseInt(v.text, 10, 64); err == nil {
			return i, nil
		}
		return nil, filterValue(n, v, "expected a whole number")
	case Float:
		if x, err := strconv.ParseFloat(v.text, 64); err == nil {
			return x, nil
		}
		return nil, filterValue(n, v, "expected a number")
	case Time:
		for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02"} {
			if at, err := time.Parse(layout, v.text); err == nil {
				return formatTime(at), nil
			}
		}
		return nil, filterValue(n, v, "expected a time as in RFC 3339")
	case Address:
		a, err := netip.ParseAddr(strings.TrimSpace(v.text))
		if err != nil || a.Zone() != "" {
			return nil, filterValue(n, v, "expected an IP address")
		}
		return store.AddrKey(a.Unmap()), nil
	}
	if f.Hardware && (n.op == "eq" || n.op == "in" || n.op == "ne") {
		mac, err := space.ParseHardware(v.text)
		if err != nil {
			return nil, filterValue(n, v, err.Error())
		}
		return space.FormatHardware(mac), nil
	}
	if !v.quoted && v.text != "true" && v.text != "false" && !numeral(v.text) {
		return nil, filterValue(n, v, "text needs quotes")
	}
	return v.text, nil
}

func compareText(n *node, at store.Field) (store.Expr, error) {
	f := &Field{Kind: Text}
	if (n.op == "ge" || n.op == "gt" || n.op == "le" || n.op == "lt") && !n.values[0].quoted {
		f.Kind, at.Kind = Float, store.Number
	}
	return f.compareWith(n, at)
}

// Spans in filters: eq takes a length, a prefix or low-high; ge, gt, le and lt compare prefix
// lengths; contains takes an address or a prefix; startsWith compares the text.
func (f *Field) rangeCondition(n *node) (store.Expr, error) {
	low := store.Field{Kind: store.ColumnSpan, Path: []string{"low"}}
	high := store.Field{Kind: store.ColumnSpan, Path: []string{"high"}}
	text := store.Field{Kind: store.Text, Path: []string{f.Name}}
	var either store.Any
	for _, v := range n.values {
		if !v.quoted {
			return nil, filterValue(n, v, "expected a range in quotes")
		}
		switch n.op {
		case "startsWith":
			either = append(either, store.Compare{Field: text, Op: n.op, Value: v.text})
			continue
		case "contains":
			r, err := addressOrRange(v.text)
			if err != nil {
				return nil, filterValue(n, v, err.Error())
			}
			either = append(either, store.All{
				store.Compare{Field: low, Op: "le", Value: store.AddrKey(r.Low)},
				store.Compare{Field: high, Op: "ge", Value: store.AddrKey(r.High)}, sameFamily(low, r.Low), store.AnyScope{}})
			continue
		}
		bits, sized, err := space.ParseSize(v.text, false)
		if err != nil {
			return nil, filterValue(n, v, err.Error())
		}
		var r space.Range
		if !sized {
			if r, err = space.Parse(v.text); err != nil {
				return nil, filterValue(n, v, err.Error())
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

func (f *Field) lengthCondition(n *node, v literal, bits int, sized bool, r space.Range) (store.Expr, error) {
	low := store.Field{Kind: store.ColumnSpan, Path: []string{"low"}}
	high := store.Field{Kind: store.ColumnSpan, Path: []string{"high"}}
	length := store.Field{Kind: store.PrefixLen, Path: []string{f.Name}}
	op := n.op
	if op == "in" {
		op = "eq"
	}
	if !sized && (op == "eq" || op == "ne") {
		same := store.All{store.Compare{Field: low, Op: "eq", Value: store.AddrKey(r.Low)},
			store.Compare{Field: high, Op: "eq", Value: store.AddrKey(r.High)}}
		if op == "ne" {
			return store.Not{Expr: same}, nil
		}
		return append(same, store.AnyScope{}), nil
	}
	if sized {
		return store.Compare{Field: length, Op: op, Value: int64(bits)}, nil
	}
	p, ok := r.Prefix()
	if !ok {
		return nil, filterValue(n, v, "ge, gt, le and lt compare prefix lengths and need one")
	}
	return store.All{store.Compare{Field: length, Op: op, Value: int64(p.Bits())}, sameFamily(low, r.Low)}, nil
}

func sameFamily(low store.Field, a netip.Addr) store.Expr {
	family := byte(6)
	if a.Is4() {
		family = 4
	}
	return store.All{store.Compare{Field: low, Op: "ge", Value: []byte{family}},
		store.Compare{Field: low, Op: "lt", Value: []byte{family + 1}}}
}

func addressOrRange(text string) (space.Range, error) {
	if a, err := netip.ParseAddr(strings.TrimSpace(text)); err == nil && a.Zone() == "" {
		a = a.Unmap()
		return space.Range{Low: a, High: a}, nil
	}
	return space.Parse(text)
}
