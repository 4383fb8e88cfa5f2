package rest

import (
	"portolan/internal/engine/schema"
)

func (a *Server) schemas() doc {
	schemas := doc{
		"Problem": doc{"type": "object", "required": []string{"status", "reason", "code", "message"}, "properties": doc{
			"status": doc{"type": "integer"}, "reason": doc{"type": "string"}, "code": doc{"type": "string"}, "message": doc{"type": "string"},
			"fields": doc{"type": "array", "items": doc{"type": "string"}}}},
		"Link":  doc{"type": "object", "required": []string{"href"}, "properties": doc{"href": doc{"type": "string"}}},
		"Links": doc{"type": "object", "additionalProperties": ref("schemas/Link")},

		"EffectiveRights": effectiveSchema(),
		"MadeList": doc{"type": "object", "description": "The resources that a POST of a list created, in its order.",
			"required":   []string{"count", "data"},
			"properties": doc{"count": doc{"type": "integer"}, "data": doc{"type": "array", "items": doc{"type": "object"}}}},
		"DryRun": doc{"type": "object", "required": []string{"dryRun", "created", "changed", "deleted", "operations"},
			"properties": doc{"dryRun": doc{"const": true},
				"estimate": doc{"const": true, "description": "The change is large, and was not tried, or not completely. The numbers are estimates " +
					"from stored counts."},
				"atLeast": doc{"const": true, "description": "The numbers cover the tried part of the change."},
				"approval": doc{"const": true, "description": "The change needs an approval: without a dry run it creates a workflow " +
					"request, and is answered with 202."},
				"irreversible": doc{"const": true, "description": "An undo of the change is refused."},
				"operations": doc{"type": []string{"array", "null"}, "items": ref("schemas/Operation"), "maxItems": shownOperations,
					"description": "The first changes; null if the caller may not see them."},
				"resource": doc{"type": []string{"object", "null"}}, "created": doc{"type": "integer"}, "changed": doc{"type": "integer"},
				"deleted": doc{"type": "integer"}}},
		"Step": doc{"type": "object", "required": []string{"done", "created", "changed", "deleted"}, "properties": doc{
			"done":    doc{"type": "boolean", "description": "Nothing is left; otherwise the same request executes the next step."},
			"created": doc{"type": "integer"}, "changed": doc{"type": "integer"}, "deleted": doc{"type": "integer"}}},
		"InlinedReference": doc{"type": "object", "properties": doc{"id": doc{"type": "integer", "format": "int64"},
			"type": doc{"type": "string"},
			"name": doc{"type": []string{"string", "null"}}, "_links": ref("schemas/Links")}},
	}
	for _, c := range a.Collections() {
		for _, t := range c.Types {
			schemas[t.Name] = a.schema(t)
		}
	}
	return schemas
}

// schema returns the schema of a type in answers. No field is required, because the request selects the fields.
func (a *Server) schema(t *schema.Type) doc {
	properties := doc{"_links": doc{"allOf": []any{ref("schemas/Links")}, "readOnly": true}}
	for _, f := range t.Fields {
		if f.Hidden {
			continue
		}
		properties[f.Name] = a.property(f)
	}
	if c := a.CollectionOf(t); c != nil && c.Virtual != nil { // an alias such as sessions/current can have no row, and then no id
		properties["id"] = doc{"type": []string{"integer", "null"}, "format": "int64", "readOnly": true, "description": a.Descriptions["Head.id"]}
	}
	properties["type"] = doc{"type": "string", "const": t.Name, "description": a.Descriptions["Head.type"]}
	return doc{"type": "object", "description": a.Descriptions[t.Name], "properties": properties}
}

// input returns the schema of a request that creates (POST) or replaces (PUT) a resource of one of the types, and an example.
func (a *Server) input(types []*schema.Type, create bool) (schema, example doc) {
	var all []any
	for _, t := range types {
		required := []string{}
		if len(types) > 1 {
			required = append(required, "type")
		}
		one := doc{"type": t.Name}
		for _, f := range t.Fields {
			if f.Name == "type" || f.ReadOnly || !(create && f.OnPost || !create && f.OnPut) {
				continue
			}
			one[f.Name] = exampleOf(f)
			if f.Unless == "" {
				required = append(required, f.Name)
			}
		}
		if example == nil {
			example = one
		}
		all = append(all, doc{"allOf": []any{ref("schemas/" + t.Name), doc{"type": "object", "required": required}}})
	}
	if len(all) == 1 {
		only, _ := all[0].(doc)
		return only, example
	}
	return doc{"oneOf": all}, example
}

// exampleID is a typical id of user data.
const exampleID = 100123

// exampleOf returns a valid value of a field: that of its tag, or one of its kind.
func exampleOf(f *schema.Field) any {
	if f.Example != "" {
		return f.Example
	}
	switch f.Kind {
	case schema.Bool:
		return f.Default == "true"
	case schema.Integer, schema.Float:
		if f.Min != nil {
			return *f.Min
		}
		return 1
	case schema.Map, schema.Raw:
		if f.List {
			return []any{}
		}
		return doc{}
	case schema.Nested:
		return exampleMembers(f)
	case schema.NestedList:
		if f.Min == nil {
			return []any{}
		}
		return []any{exampleMembers(f)}
	case schema.Strings, schema.Integers:
		if f.Enum != nil {
			return f.Enum[:1]
		}
		return []any{}
	case schema.Reference:
		return doc{"id": exampleID}
	case schema.References:
		return []any{doc{"id": exampleID}}
	case schema.Time:
		return "2026-01-31T12:00:00Z"
	case schema.Address:
		return "10.1.0.5"
	case schema.Span:
		return "10.1.0.0/24"
	}
	if f.Enum != nil {
		return f.Enum[0]
	}
	if f.Duration {
		return "PT1H"
	}
	return "example"
}

// exampleMembers returns a nested object with its required members.
func exampleMembers(f *schema.Field) doc {
	d := doc{}
	for _, m := range f.Members {
		if m.OnPost {
			d[m.Name] = exampleOf(m)
		}
	}
	return d
}

// property returns a field's schema.
func (a *Server) property(f *schema.Field) doc {
	d := doc{}
	kind := ""
	switch f.Kind {
	case schema.Bool:
		kind = "boolean"
	case schema.Integer:
		kind, d["format"] = "integer", "int64"
	case schema.Float:
		kind, d["format"] = "number", "double"
	case schema.Map:
		kind, d["additionalProperties"] = "object", doc{"type": []string{"string", "null"}}
	case schema.Raw:
		kind = "object"
		if f.List {
			kind, d["items"] = "array", doc{}
		}
		if f.Any {
			kind = ""
		}
	case schema.Nested:
		kind, d["properties"] = "object", a.members(f)
	case schema.NestedList:
		kind, d["items"] = "array", doc{"type": "object", "properties": a.members(f)}
	case schema.Strings:
		kind, d["items"] = "array", doc{"type": "string"}
	case schema.Integers:
		kind, d["items"] = "array", doc{"type": "integer"}
	case schema.References:
		kind, d["items"] = "array", doc{"type": "object"}
	case schema.Reference:
		d["allOf"] = []any{ref("schemas/InlinedReference")}
		if f.Nullable {
			d = doc{"anyOf": []any{ref("schemas/InlinedReference"), doc{"type": "null"}}}
		}
	case schema.Time:
		kind, d["format"] = "string", "date-time"
	default:
		kind = "string"
	}
	if kind != "" {
		d["type"] = kind
		if f.Nullable {
			d["type"] = []string{kind, "null"}
		}
	}
	addLimits(f, d)
	if text := a.Descriptions[f.Owner+"."+f.Name]; text != "" {
		d["description"] = text
	} else if f.Also != "" {
		d["description"] = f.Name + " is another name of " + f.Also + "."
	}
	return d
}

// members returns the schemas of the members of a nested object.
func (a *Server) members(f *schema.Field) doc {
	properties := doc{}
	for _, m := range f.Members {
		properties[m.Name] = a.property(m)
	}
	return properties
}

// addLimits adds the limits of the values to a field's schema.
func addLimits(f *schema.Field, d doc) {
	if f.Enum != nil {
		values := []any{}
		for _, v := range f.Enum {
			values = append(values, v)
		}
		switch {
		case f.Kind == schema.Strings:
			d["items"] = doc{"type": "string", "enum": values}
		case f.Others != nil:
			d["anyOf"] = []doc{{"enum": values}, {"pattern": f.Others.String()}}
		case f.Nullable:
			d["enum"] = append(values, nil)
		default:
			d["enum"] = values
		}
	}
	if f.Kind == schema.Integer || f.Kind == schema.Float {
		if f.Min != nil {
			d["minimum"] = *f.Min
		}
		if f.Max != nil {
			d["maximum"] = *f.Max
		}
	}
	if f.ReadOnly {
		d["readOnly"] = true
	}
	if f.WriteOnly {
		d["writeOnly"] = true
	} else if f.Kind == schema.SecretText { // shown as null
		d["format"] = "password"
	}
}
