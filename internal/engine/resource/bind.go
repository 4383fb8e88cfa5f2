package resource

import (
	"maps"
	"slices"
	"sort"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// Scope resolves the paths of a filter or an order, within the types that a list may contain.
type Scope struct {
	api    *API
	Types  []*schema.Type
	caller Caller
}

// ScopeFor returns the scope of some types. Referenced resources are limited to those that the caller may see.
func (a *API) ScopeFor(types []*schema.Type, caller Caller) Scope { return Scope{a, types, caller} }

// Find returns the field of that name of a type in the scope; a filterable field takes precedence.
func (s Scope) Find(name string) *schema.Field {
	var found *schema.Field
	for _, t := range s.Types {
		f, ok := t.ByName[name]
		switch {
		case !ok:
		case f.Filterable():
			return f
		case found == nil:
			found = f
		}
	}
	return found
}

// Unknown returns the error for a path that is not a filterable field of the scope. It lists the filterable fields.
func (s Scope) Unknown(parameter, code string, path []string) error {
	return s.unknown(parameter, code, path, func(f *schema.Field) bool {
		return f.Filterable() && f.Kind != schema.Raw && f.Kind != schema.NestedList
	})
}

// Unshown returns the error for a path that is not a shown field of the scope. It lists the shown fields.
func (s Scope) Unshown(parameter, code string, path []string) error {
	return s.unknown(parameter, code, path, func(f *schema.Field) bool { return !f.WriteOnly && f.Also == "" })
}

func (s Scope) unknown(parameter, code string, path []string, may func(*schema.Field) bool) error {
	seen := map[string]bool{}
	for _, t := range s.Types {
		for _, f := range t.Fields {
			if may(f) {
				seen[f.Name] = true
			}
		}
	}
	names := make([]string, 0, len(seen))
	for name := range seen {
		names = append(names, name)
	}
	sort.Strings(names)
	p := problem.BadRequest(code, "%s: the field %s cannot be used here; use one of %s",
		parameter, strings.Join(path, "."), strings.Join(names, ", "))
	p.Fields = []string{strings.Join(path, ".")}
	return p
}

// Bind converts a parsed filter into a condition.
func (s Scope) Bind(n *schema.Node) (store.Expr, error) {
	list := n.And
	if n.Or != nil {
		list = n.Or
	}
	if list == nil {
		return s.compare(n, n.Path)
	}
	exprs := make([]store.Expr, len(list))
	for i, part := range list {
		e, err := s.Bind(part)
		if err != nil {
			return nil, err
		}
		exprs[i] = e
	}
	if n.Or != nil {
		return store.Any(exprs), nil
	}
	return store.All(exprs), nil
}

func (s Scope) compare(n *schema.Node, path []string) (store.Expr, error) {
	f := s.Find(path[0])
	if f != nil && f.Also != "" { // another name of a stored field
		path = append([]string{f.Also}, path[1:]...)
		f = s.Find(path[0])
	}
	if f != nil && f.Tells && s.caller.Limited() { // a filter would reveal values that the field does not show
		return nil, s.Unknown("filter", "InvalidFilterField", n.Path)
	}
	if constant := s.constant(path); constant != nil {
		return s.compareConstant(constant, f, n)
	}
	if many := s.findMany(path); many != nil {
		return s.compareMany(many, n)
	}
	if compare := s.condition(path); compare != nil {
		return compare(n)
	}
	if f == nil || !f.Filterable() {
		return nil, s.Unknown("filter", "InvalidFilterField", n.Path)
	}
	// References are compared by the resource's own value, which uses an index.
	if f.Inherit && f.Kind != schema.References && f.Kind != schema.Reference {
		return s.compareInherited(f, n, path)
	}
	return s.compareOwn(f, n, path)
}

// compareInherited compares the value in effect: the resource's own value or, if that is unset, the inherited one.
func (s Scope) compareInherited(f *schema.Field, n *schema.Node, path []string) (store.Expr, error) {
	e := store.Inherited{}
	for _, c := range s.api.collections {
		if slices.ContainsFunc(c.Types, func(t *schema.Type) bool { own := t.ByName[f.Name]; return own != nil && own.Inherit }) {
			e.From = append(e.From, c.Name)
		}
	}
	var err error
	if e.Cond, err = s.compareOwn(f, n, path); err != nil {
		return nil, err
	}
	e.Unset, err = s.compareOwn(f, &schema.Node{Path: path[:1], At: n.At, Op: "eq", Values: []schema.Literal{{Text: "null"}}}, path[:1])
	return e, err
}

// compareOwn compares the resource's own value.
func (s Scope) compareOwn(f *schema.Field, n *schema.Node, path []string) (store.Expr, error) {
	if f.Kind == schema.Reference {
		return s.compareReference(f, n, path[1:])
	}
	if f.Kind == schema.Map || f.Kind == schema.Raw {
		if len(path) == 1 && n.Op != "eq" && n.Op != "ne" || len(path) == 1 && !n.Values[0].Null() {
			return nil, s.Unknown("filter", "InvalidFilterField", n.Path)
		}
		e, err := schema.CompareText(n, store.Field{Kind: store.Text, Path: path, Indexed: s.userIndexed(path)})
		if err != nil || !isUserDefined(path) {
			return e, err
		}
		return s.withDefault(e, n, path)
	}
	if f.Members != nil {
		return s.compareNested(f, n, path)
	}
	if len(path) > 1 {
		return nil, s.Unknown("filter", "InvalidFilterField", n.Path)
	}
	e, err := f.Condition(n)
	if known := s.knownValues(n, path[0]); err == nil && len(known) < len(n.Values) {
		if len(known) == 0 {
			return store.False, nil
		}
		of := *n
		of.Values = known
		return f.Condition(&of)
	}
	if err != nil || !f.DNS || s.allNamed(path[0]) || n.Op != "eq" && n.Op != "in" || slices.ContainsFunc(n.Values, schema.Literal.Null) {
		return e, err
	}
	var named store.Any // keys of other types are not shown names, so they must not match
	for _, t := range s.Types {
		if t.ByName[path[0]] != nil {
			named = append(named, typeIs(t.Name))
		}
	}
	return store.All{e, named}, nil
}

// knownValues returns the values of a comparison that a resource of the scope can have. It omits values that the enums of the field do not
// contain: a search for them would read all resources in vain.
func (s Scope) knownValues(n *schema.Node, field string) []schema.Literal {
	if n.Op != "eq" && n.Op != "in" {
		return n.Values
	}
	var values []string
	for _, t := range s.Types {
		f, ok := t.ByName[field]
		if !ok {
			continue
		}
		if f.Kind != schema.Text || f.Enum == nil || f.Others != nil || f.ReadOnly {
			return n.Values
		}
		values = append(values, f.Enum...)
	}
	return slices.DeleteFunc(slices.Clone(n.Values), func(l schema.Literal) bool {
		return !l.Null() && l.Text != "" && !slices.Contains(values, l.Text)
	})
}

// typeIs returns the condition that a resource has a type.
func typeIs(name string) store.Expr {
	return store.Compare{Field: store.Field{Kind: store.ColumnText, Path: []string{"type"}}, Op: "eq", Value: name}
}

// withDefault extends the condition e on the stored values of a user-defined field to the shown values: resources that do not set the
// field show the default of their type.
func (s Scope) withDefault(e store.Expr, n *schema.Node, path []string) (store.Expr, error) {
	if s.api.UserFields == nil {
		return e, nil
	}
	defaults, err := s.api.UserFields.Defaults(path[1])
	if err != nil || len(defaults) == 0 {
		return e, err
	}
	unset := store.Compare{Field: store.Field{Kind: store.Text, Path: path}, Op: "eq"}
	without := n.Holds(nil)
	var found, hidden store.Any
	for _, t := range s.Types {
		value, ok := defaults[t.Name]
		switch holds := ok && n.Holds(&value); {
		case !ok || holds == without:
		case holds:
			found = append(found, store.All{typeIs(t.Name), unset})
		default:
			hidden = append(hidden, store.All{typeIs(t.Name), unset})
		}
	}
	if len(hidden) > 0 {
		e = store.All{e, store.Not{Expr: hidden}}
	}
	if len(found) > 0 {
		e = append(store.Any{e}, found...)
	}
	return e, nil
}

// constant returns the types whose resources all have the same text in the field at a path, with that text; nil if there are none.
func (s Scope) constant(path []string) map[string]string {
	var of map[string]string
	for _, t := range s.Types {
		if f := t.ByName[path[0]]; f != nil && f.Always != "" && len(path) == 1 {
			if of == nil {
				of = map[string]string{}
			}
			of[t.Name] = f.Always
		}
	}
	return of
}

// compareConstant compares a text that is the same in every resource of some types. of has these texts by type; in resources of other
// types, the text is stored in field f.
func (s Scope) compareConstant(of map[string]string, f *schema.Field, n *schema.Node) (store.Expr, error) {
	if !slices.Contains([]string{"eq", "in", "ne", "contains", "startsWith", "endsWith"}, n.Op) {
		return nil, s.Unknown("filter", "InvalidFilterField", n.Path)
	}
	either := store.Any{}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if always := of[name]; n.Holds(&always) {
			either = append(either, typeIs(name))
		}
	}
	kept := store.Any{}
	for _, t := range s.Types {
		if of[t.Name] == "" {
			kept = append(kept, typeIs(t.Name))
		}
	}
	if f != nil && f.Kind == schema.Bool {
		if _, err := f.Condition(n); err != nil {
			return nil, err
		}
	}
	if len(kept) == 0 {
		return either, nil
	}
	if !f.Filterable() { // the other types do not have the field
		if n.Op == "ne" || slices.ContainsFunc(n.Values, schema.Literal.Null) {
			return append(either, kept), nil
		}
		return either, nil
	}
	e, err := f.Condition(n)
	if err != nil {
		return nil, err
	}
	return append(either, store.All{e, kept}), nil
}

// findMany returns the reference list that a path names by the ids of its targets (name.id); nil if it is not one, or not filterable.
func (s Scope) findMany(path []string) *schema.Field {
	if len(path) != 2 || path[1] != "id" {
		return nil
	}
	for _, t := range s.Types {
		for _, f := range t.Fields {
			if f.Kind == schema.References && f.FilterAs != "" && f.FilterAs == path[0] {
				return f
			}
		}
	}
	return nil
}

// compareMany returns the condition that a reference list has one of the given targets.
func (s Scope) compareMany(f *schema.Field, n *schema.Node) (store.Expr, error) {
	var targets []int64
	for _, v := range n.Values {
		id, ok := v.Integer()
		if !ok || n.Op != "eq" && n.Op != "in" {
			return nil, schema.FilterValue(n, v, "ids of resources accept only the operators eq and in")
		}
		targets = append(targets, id)
	}
	return store.LinksTo{Targets: targets, Field: f.Name}, nil
}

// compareNested compares a member of a nested object, such as snmp.version, or checks whether the object is set.
func (s Scope) compareNested(f *schema.Field, n *schema.Node, path []string) (store.Expr, error) {
	if len(path) == 1 && (n.Op == "eq" || n.Op == "ne") && n.Values[0].Null() {
		return schema.CompareText(n, store.Field{Kind: store.Text, Path: path})
	}
	m := f.MemberAt(path[1:])
	if m == nil || m.Members != nil || m.Kind == schema.Raw {
		return nil, s.Unknown("filter", "InvalidFilterField", n.Path)
	}
	return m.CompareWith(n, store.Field{Kind: m.StoreField().Kind, Path: path})
}

// compareReference compares a member of a reference's target: location.id, location.name, location.country.
func (s Scope) compareReference(f *schema.Field, n *schema.Node, rest []string) (store.Expr, error) {
	column, ok := s.referenceColumn(f)
	if !ok {
		return nil, s.Unknown("filter", "InvalidFilterField", n.Path)
	}
	through := store.Through{Ref: f.Name}
	if column != "" {
		through.Ref, through.Column = column, true
	}
	if len(rest) == 0 {
		v := n.Values[0]
		if !v.Null() || n.Op != "eq" && n.Op != "ne" {
			return nil, s.Unknown("filter", "InvalidFilterField", n.Path)
		}
		if seen := s.api.visible(s.caller); len(seen) > 0 { // references to hidden resources are shown as null
			through.Where = seen
		}
		if n.Op == "ne" {
			return through, nil
		}
		return store.Not{Expr: through}, nil
	}
	// A comparison by id is the most frequent one and needs no access to the target.
	if rest[0] == "id" && len(rest) == 1 && (n.Op == "eq" || n.Op == "in") && column != "" {
		field := &schema.Field{Name: n.Path[0], Kind: schema.Integer}
		return field.CompareWith(n, store.Field{Kind: store.ColumnInt, Path: []string{column}})
	}
	inner := Scope{api: s.api, caller: s.caller}
	for _, name := range f.Refs {
		if t, ok := s.api.types[name]; ok {
			inner.Types = append(inner.Types, t)
		}
	}
	if len(inner.Types) == 0 {
		inner.Types = s.api.AllTypes()
	}
	where, err := inner.compare(&schema.Node{Path: n.Path, At: n.At, Op: n.Op, Values: n.Values}, rest)
	if err != nil {
		return nil, err
	}
	var collections []string
	for _, t := range inner.Types {
		if !slices.Contains(collections, t.Collection) {
			collections = append(collections, t.Collection)
		}
	}
	where = store.All{store.InCollection(collections...), where} // indexes are by collection
	through.Where = where
	if seen := s.api.visible(s.caller); len(seen) > 0 { // hidden resources must not be found by their values
		through.Where = append(slices.Clone(seen), where)
	}
	return through, nil
}

// Order parses the parameter orderBy.
func (s Scope) Order(text string) (orders []store.Order, err error) {
	seen := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		descending := false
		for _, form := range []string{"asc", "desc"} {
			if inner, ok := strings.CutPrefix(part, form+"("); ok {
				if inner, ok = strings.CutSuffix(inner, ")"); !ok {
					return nil, problem.Query("orderBy", "%q has no closing \")\"", part)
				}
				part, descending = strings.TrimSpace(inner), form == "desc"
				break
			}
		}
		if by, _, ok := strings.Cut(part, "("); ok && by != "" {
			return nil, problem.Parameter("UnsupportedOrderByOperator", "orderBy", "must be asc or desc, not %q", by)
		}
		path := strings.Split(part, ".")
		if seen[part] {
			return nil, problem.Parameter("DuplicateOrderByField", "orderBy", "%s is given twice", part)
		}
		seen[part] = true
		if len(path) > schema.MaxPath {
			return nil, problem.Query("orderBy", "the path %q must have at most %d names", part, schema.MaxPath)
		}
		by, ok := s.orderField(path)
		if !ok {
			return nil, s.Unknown("orderBy", "UnsupportedOrderByField", path)
		}
		if s.isUndeclared(path) { // numbers compare as numbers, after values that are not numbers
			orders = append(orders, store.Order{By: store.Field{Kind: store.Numeral, Path: by.Path}, Descending: descending})
		}
		orders = append(orders, store.Order{By: by, Descending: descending, Whole: len(path) == 1 && s.isAlwaysSet(path[0]),
			Spaceless: s.lacksSpace() && by.Via == ""})
		if len(seen) > 8 {
			return nil, problem.Query("orderBy", "must have at most 8 fields")
		}
	}
	return orders, nil
}

// isAlwaysSet reports whether every resource of the scope has a value in a field, stored in the column of the row.
func (s Scope) isAlwaysSet(name string) bool {
	for _, t := range s.Types {
		if f, ok := t.ByName[name]; !ok || f.Kind != schema.Span && !f.Span {
			return false
		}
	}
	return true
}

// allNamed reports whether the key of every resource of the scope is the DNS name in a field. The keys of other types are not shown.
func (s Scope) allNamed(name string) bool {
	return !slices.ContainsFunc(s.Types, func(t *schema.Type) bool { f := t.ByName[name]; return f == nil || !f.DNS })
}

// userIndexed reports whether the user-defined field at a path has an index in each collection of the scope.
func (s Scope) userIndexed(path []string) bool {
	if s.api.UserFields == nil || !isUserDefined(path) {
		return false
	}
	return !slices.ContainsFunc(s.Types, func(t *schema.Type) bool { return !s.api.UserFields.Indexed(t.Collection, path[1]) })
}

// isUserDefined reports whether a path is that of a user-defined field.
func isUserDefined(path []string) bool { return len(path) == 2 && path[0] == "userDefinedFields" }

// isUndeclared reports whether a path is a member that the schema does not define, such as a user-defined field.
func (s Scope) isUndeclared(path []string) bool {
	f := s.Find(path[0])
	return len(path) > 1 && (f.Kind == schema.Map || f.Kind == schema.Raw)
}

func (s Scope) orderField(path []string) (store.Field, bool) {
	f := s.Find(path[0])
	if f != nil && f.Also != "" {
		path = append([]string{f.Also}, path[1:]...)
		f = s.Find(path[0])
	}
	switch {
	case f == nil || !f.Filterable() || s.constant(path) != nil || f.Tells && s.caller.Limited():
		return store.Field{}, false
	case f.Kind == schema.Reference && len(path) == 2 && (path[1] == "id" || path[1] == "name" || path[1] == "type"):
		at := store.Field{Via: f.Name, Kind: store.ColumnText, Path: []string{path[1]}}
		if column, ok := s.referenceColumn(f); !ok {
			return store.Field{}, false
		} else if column != "" {
			at.Via, at.ViaColumn = column, true
		}
		if seen := s.api.visible(s.caller); len(seen) > 0 { // references to hidden resources are null
			at.ViaSeen = seen
		}
		return at, true
	case (f.Kind == schema.Map || f.Kind == schema.Raw) && len(path) > 1:
		return store.Field{Kind: store.Text, Path: path}, true
	case f.Members != nil:
		m := f.MemberAt(path[1:])
		if m == nil || m.Members != nil || m.Kind == schema.Raw {
			return store.Field{}, false
		}
		return store.Field{Kind: m.StoreField().Kind, Path: path}, true
	case len(path) > 1 || f.Kind == schema.Reference || f.Kind == schema.Map || f.Kind == schema.Raw:
		return store.Field{}, false
	case f.Kind == schema.Span:
		return store.Field{Kind: store.ColumnSpan, Path: []string{"low"}}, true
	case f.DNS && s.allNamed(path[0]): // DNS names are ordered in lower case
		return store.Field{Kind: store.ColumnText, Path: []string{"key"}}, true
	}
	return f.StoreField(), true
}
