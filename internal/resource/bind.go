package resource

import (
	"slices"
	"sort"
	"strings"

	"portolan/internal/problem"
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
	p := problem.BadRequest(code, "%s: the field %s cannot be used here; these can: %s",
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
