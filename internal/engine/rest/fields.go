package rest

import (
	"fmt"
	"slices"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// maxFields is the maximum number of names in the parameter fields, maxEmbedDepth the maximum depth of embed.
const (
	maxFields     = 200
	maxEmbedDepth = 4
)

// parseFields parses the parameter fields: names, not(names), embed(subcollections).
func (a *Server) parseFields(text string, s resource.Scope) (*schema.Projection, error) {
	bad := func(format string, args ...any) error {
		return problem.Parameter("FieldsParseError", "fields", format, args...)
	}
	p := &schema.Projection{}
	parts, err := splitTop(text)
	if err != nil {
		return nil, bad("%v", err)
	}
	if len(parts) > maxFields {
		return nil, bad("must have at most %d names", maxFields)
	}
	for _, part := range parts {
		if inner, ok := call(part, "not"); ok {
			for name := range strings.SplitSeq(inner, ",") {
				path, err := fieldPath(s, name)
				if err != nil {
					return nil, err
				}
				p.Not = p.Not.Add(path)
			}
			continue
		}
		if inner, ok := call(part, "embed"); ok {
			for name := range strings.SplitSeq(inner, ",") {
				if err := a.addEmbed(p, strings.Split(strings.TrimSpace(name), "."), s); err != nil {
					return nil, err
				}
			}
			continue
		}
		path, err := fieldPath(s, part)
		if err != nil {
			return nil, err
		}
		p.Only = p.Only.Add(path)
	}
	return p, nil
}

func call(part, form string) (string, bool) {
	inner, ok := strings.CutPrefix(part, form+"(")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(inner, ")")
}

// splitTop splits a text at the commas outside of parentheses.
func splitTop(text string) (parts []string, err error) {
	depth, from := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				parts, from = append(parts, strings.TrimSpace(text[from:i])), i+1
			}
		}
		if depth < 0 || depth > 1 {
			return nil, fmt.Errorf("at position %d: parentheses do not match", i+1)
		}
	}
	if depth != 0 {
		return nil, fmt.Errorf("at position %d: parentheses do not match", len(text)+1)
	}
	return append(parts, strings.TrimSpace(text[from:])), nil
}

// fieldPath parses a dotted name whose first part is a field of the scope's types.
func fieldPath(s resource.Scope, name string) ([]string, error) {
	path := strings.Split(strings.TrimSpace(name), ".")
	if len(path) > 8 {
		return nil, problem.Query("fields", "%q must have at most 8 parts", name)
	}
	for _, part := range path {
		if part == "" || strings.ContainsAny(part, "()") {
			return nil, problem.Parameter("InvalidFieldName", "fields", "%q is not the name of a field", name)
		}
	}
	if path[0] != "_links" && path[0] != "_embedded" && s.Find(path[0]) == nil {
		return nil, s.Unshown("fields", "InvalidFieldName", path)
	}
	if len(path) > 1 && !strings.HasPrefix(path[0], "_") && !hasMembers(s, path[0]) {
		return nil, problem.Parameter("InvalidFieldName", "fields", "%[2]q is not a field: %[1]s has no members", path[0], name)
	}
	return path, nil
}

// hasMembers reports whether a field has members, in some type of the scope.
func hasMembers(s resource.Scope, name string) bool {
	return slices.ContainsFunc(s.Types, func(t *schema.Type) bool {
		f := t.ByName[name]
		if f == nil {
			return false
		}
		switch f.Kind {
		case schema.Map, schema.Raw, schema.Reference, schema.References, schema.Nested, schema.NestedList:
			return true
		}
		return false
	})
}

func (a *Server) addEmbed(p *schema.Projection, path []string, s resource.Scope) error {
	if len(path) > maxEmbedDepth {
		return problem.Query("fields", "embed must nest at most %d deep", maxEmbedDepth)
	}
	types := s.Types
	list := &p.Embeds
	for _, name := range path {
		var sub *resource.Sub
		for _, t := range types {
			if found := a.CollectionOf(t).Sub(name); found != nil && found.Relation != resource.Unbuilt {
				sub = found
			}
		}
		if sub == nil {
			return problem.Parameter("UnsupportedEmbeddableCollection", "fields", "embed: %q is not a subcollection of this resource", name)
		}
		types = a.ItemTypes(sub)
		var at *schema.Embedding
		for _, e := range *list {
			if e.Name == name {
				at = e
			}
		}
		if at == nil {
			at = &schema.Embedding{Name: name}
			*list = append(*list, at)
		}
		list = &at.Inner
	}
	return nil
}
