package resource

import (
	"net/http"
	"net/netip"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"portolan/internal/naming"
	"portolan/internal/problem"
	"portolan/internal/space"
	"portolan/internal/store"
)

// scope is what paths of a filter or an order are resolved in: the types a list may hold.
type scope struct {
	api    *API
	types  []*Type
	caller Caller
}

// find gives the field of that name in the types of the scope that have it.
func (s scope) find(name string) *Field {
	for _, t := range s.types {
		if f, ok := t.byName[name]; ok {
			return f
		}
	}
	return nil
}

// filterable reports whether a field can be filtered and ordered by.
func (f *Field) filterable() bool {
	return !f.WriteOnly && !f.Transient && !f.Computed && f.Kind != Strings && f.Kind != Integers
}

func (s scope) unknown(parameter, code string, path []string) error {
	seen := map[string]bool{}
	for _, t := range s.types {
		for _, f := range t.Fields {
			if f.filterable() {
				seen[f.Name] = true
			}
		}
	}
	names := make([]string, 0, len(seen))
	for name := range seen {
		names = append(names, name)
	}
	sort.Strings(names)
	p := problem.New(http.StatusBadRequest, code, "%s: the field %s cannot be used here; these can: %s",
		parameter, strings.Join(path, "."), strings.Join(names, ", "))
	p.Fields = []string{strings.Join(path, ".")}
	return p
}

// bind turns a parsed filter into a condition.
func (s scope) bind(n *node) (store.Expr, error) {
	list := n.and
	if n.or != nil {
		list = n.or
	}
	if list == nil {
		return s.compare(n, n.path)
	}
	exprs := make([]store.Expr, len(list))
	for i, part := range list {
		e, err := s.bind(part)
		if err != nil {
			return nil, err
		}
		exprs[i] = e
	}
	if n.or != nil {
		return store.Any(exprs), nil
	}
	return store.All(exprs), nil
}

func (s scope) compare(n *node, path []string) (store.Expr, error) {
	f := s.find(path[0])
	if f == nil || !f.filterable() {
		return nil, s.unknown("filter", "InvalidFilterField", n.path)
	}
	if f.Kind == Reference {
		return s.compareReference(f, n, path[1:])
	}
	if f.Kind == Map || f.Kind == Raw {
		if len(path) == 1 && n.op != "eq" && n.op != "ne" || len(path) == 1 && (n.values[0].text != "null" || n.values[0].quoted) {
			return nil, s.unknown("filter", "InvalidFilterField", n.path)
		}
		return compareText(n, store.Field{Kind: store.Text, Path: path})
	}
	if len(path) > 1 {
		return nil, s.unknown("filter", "InvalidFilterField", n.path)
	}
	return f.condition(n)
}

// compareReference follows a reference: location.id, location.name, location.country.
func (s scope) compareReference(f *Field, n *node, rest []string) (store.Expr, error) {
	if f.Column == "" && s.api.CollectionOf(s.types[0]).From != store.Resources { // whose references are in no table
		return nil, s.unknown("filter", "InvalidFilterField", n.path)
	}
	through := store.Through{Ref: f.Name}
	if f.Column != "" {
		through.Ref, through.Column = f.Column, true
	}
	if len(rest) == 0 {
		v := n.values[0]
		if v.quoted || v.text != "null" || n.op != "eq" && n.op != "ne" {
			return nil, s.unknown("filter", "InvalidFilterField", n.path)
		}
		if n.op == "ne" {
			return through, nil
		}
		return store.Not{Expr: through}, nil
	}
	// By id, the commonest, without a look at the target.
	if rest[0] == "id" && len(rest) == 1 && (n.op == "eq" || n.op == "in") && f.Column != "" {
		field := &Field{Name: n.path[0], Kind: Integer}
		return field.compareWith(n, store.Field{Kind: store.ColumnInt, Path: []string{f.Column}})
	}
	inner := scope{api: s.api, caller: s.caller}
	for _, name := range f.Refs {
		if t, ok := s.api.types[name]; ok {
			inner.types = append(inner.types, t)
		}
	}
	if len(inner.types) == 0 {
		inner.types = s.api.allTypes()
	}
	where, err := inner.compare(&node{path: n.path, at: n.at, op: n.op, values: n.values}, rest)
	if err != nil {
		return nil, err
	}
	through.Where = where
	if seen := s.api.visible(s.caller); len(seen) > 0 { // what is not seen is not found by what it has
		through.Where = append(slices.Clone(seen), where)
	}
	return through, nil
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
	p := problem.New(http.StatusBadRequest, "InvalidFilterValue", "filter: %s, at position %d: %s", strings.Join(n.path, "."), v.at+1, message)
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

// order reads orderBy.
func (s scope) order(text string) (orders []store.Order, err error) {
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		descending := false
		for _, form := range []string{"asc", "desc"} {
			if inner, ok := strings.CutPrefix(part, form+"("); ok {
				if inner, ok = strings.CutSuffix(inner, ")"); !ok {
					return nil, problem.Query("orderBy", "%q lacks its \")\"", part)
				}
				part, descending = strings.TrimSpace(inner), form == "desc"
				break
			}
		}
		path := strings.Split(part, ".")
		if len(path) > maxPath {
			return nil, problem.Query("orderBy", "the path %q has more than %d names", part, maxPath)
		}
		by, ok := s.orderField(path)
		if !ok {
			return nil, s.unknown("orderBy", "InvalidOrderByField", path)
		}
		orders = append(orders, store.Order{By: by, Descending: descending})
		if len(orders) > 8 {
			return nil, problem.Query("orderBy", "has more than 8 fields")
		}
	}
	return orders, nil
}

func (s scope) orderField(path []string) (store.Field, bool) {
	f := s.find(path[0])
	switch {
	case f == nil || !f.filterable():
		return store.Field{}, false
	case f.Kind == Reference && len(path) == 2 && (path[1] == "id" || path[1] == "name" || path[1] == "type"):
		at := store.Field{Via: f.Name, Kind: store.ColumnText, Path: []string{path[1]}}
		if f.Column != "" {
			at.Via, at.ViaColumn = f.Column, true
		}
		return at, true
	case (f.Kind == Map || f.Kind == Raw) && len(path) > 1:
		return store.Field{Kind: store.Text, Path: path}, true
	case len(path) > 1 || f.Kind == Reference || f.Kind == Map || f.Kind == Raw:
		return store.Field{}, false
	case f.Kind == Span:
		return store.Field{Kind: store.ColumnSpan, Path: []string{"low"}}, true
	}
	return f.field(), true
}
