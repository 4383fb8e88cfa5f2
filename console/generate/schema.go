package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// describedAPI is the data for the generic pages: collections with their operations, and types with their fields. It is read from the
// OpenAPI document, which is derived from the declarations. Its JSON names are short because browsers load it.
type describedAPI struct {
	Collections map[string]*describedCollection `json:"collections"`
	Types       map[string]*describedType       `json:"types"`
}

// describedCollection is a collection or a subcollection.
type describedCollection struct {
	// Methods are the methods of the list. One are the methods of a resource in it.
	Methods string `json:"m,omitempty"`
	One     string `json:"o,omitempty"`
	// Types are the types of its resources. Makes are the types that POST can create, with the required fields of each.
	Types []string            `json:"t,omitempty"`
	Makes map[string][]string `json:"n,omitempty"`
	// Below are the subcollections of its resources.
	Below map[string]*describedCollection `json:"b,omitempty"`
}

type describedType struct {
	Description string           `json:"d"`
	Fields      []describedField `json:"f"`
}

type describedField struct {
	Name string   `json:"n"`
	Kind string   `json:"k"`
	Enum []string `json:"e,omitempty"`
	// Others reports that values outside of Enum are allowed.
	Others      bool   `json:"x,omitempty"`
	Description string `json:"d,omitempty"`
	ReadOnly    bool   `json:"r,omitempty"`
	WriteOnly   bool   `json:"w,omitempty"`
	Nullable    bool   `json:"0,omitempty"`
	// Item describes the items of a list. Members are the members of an object. Both are empty if the document does not describe them.
	Item    *describedField  `json:"i,omitempty"`
	Members []describedField `json:"m,omitempty"`
}

// propertySchema is the part of a JSON schema that is used here.
type propertySchema struct {
	Description string
	Type        any
	Format      string
	Enum        []any
	ReadOnly    bool
	WriteOnly   bool
	AnyOf       []propertySchema
	OneOf       []propertySchema
	AllOf       []propertySchema
	Ref         string `json:"$ref"`
	Required    []string
	Items       *propertySchema
	Properties  json.RawMessage
}

// base is the path prefix of the API.
const base = "/api/v2/"

// read reads an OpenAPI document.
func read(file string) (*describedAPI, error) {
	text, err := os.ReadFile(file) //nolint:gosec // a file of the repository
	if err != nil {
		return nil, err
	}
	var document struct {
		Paths      map[string]map[string]json.RawMessage
		Components struct{ Schemas map[string]propertySchema }
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	a := describedAPI{Collections: map[string]*describedCollection{}, Types: map[string]*describedType{}}
	for path, operations := range document.Paths {
		rest, ok := strings.CutPrefix(path, base)
		if !ok {
			continue
		}
		if err := a.add(strings.Split(rest, "/"), operations); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	used := map[string]bool{}
	for name, c := range a.Collections {
		if len(c.Types) == 0 { // the search, the batch, the change feed
			delete(a.Collections, name)
			continue
		}
		for _, list := range append([]*describedCollection{c}, values(c.Below)...) {
			slices.Sort(list.Types)
			for _, t := range list.Types {
				used[t] = true
			}
			for t := range list.Makes {
				used[t] = true
			}
		}
	}
	for name, s := range document.Components.Schemas {
		if !used[name] {
			continue
		}
		t, err := typeOf(s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		a.Types[name] = t
	}
	return &a, nil
}

// typescript returns the types of the API as TypeScript.
func (a *describedAPI) typescript() []byte {
	var b strings.Builder
	b.WriteString("// Made from the schema of the API by go generate ./console. Do not edit.\nimport type { Links, Ref } from \"./api\"\n")
	for _, name := range slices.Sorted(maps.Keys(a.Types)) {
		t := a.Types[name]
		fmt.Fprintf(&b, "\n/** %s */\nexport type %s = {\n  id: number\n  type: %q\n  name: string | null\n  _links?: Links\n",
			strings.ReplaceAll(t.Description, "*/", "* /"), name, name)
		for _, f := range t.Fields {
			if f.Name == "id" || f.Name == "type" || f.Name == "name" {
				continue
			}
			holds := map[string]string{"text": "string", "time": "string", "number": "number", "yes": "boolean", "ref": "Ref", "list": "any[]",
				"object": "any"}[f.Kind]
			if len(f.Enum) > 0 && !f.Others {
				holds = `"` + strings.Join(f.Enum, `" | "`) + `"`
			}
			if f.Nullable && holds != "any" {
				holds += " | null"
			}
			mark := ""
			if f.WriteOnly {
				mark = "?"
			}
			fmt.Fprintf(&b, "  %s%s: %s\n", f.Name, mark, holds)
		}
		b.WriteString("}\n")
	}
	return []byte(b.String())
}

func values(m map[string]*describedCollection) (list []*describedCollection) {
	for _, c := range m {
		list = append(list, c)
	}
	return list
}

// letters are the short names of the methods.
var letters = map[string]string{"get": "G", "post": "P", "put": "U", "patch": "A", "delete": "D"}

// add adds the operations of a path to its collection.
func (a *describedAPI) add(path []string, operations map[string]json.RawMessage) error {
	if strings.HasPrefix(path[0], "{") {
		return nil
	}
	c := a.Collections[path[0]]
	if c == nil {
		c = &describedCollection{Below: map[string]*describedCollection{}}
		a.Collections[path[0]] = c
	}
	one := false
	switch {
	case len(path) == 1:
	case len(path) == 2 && path[1] == "{id}":
		one = true
	case len(path) >= 3 && path[1] == "{collectionId}" && (len(path) == 3 || len(path) == 4 && path[3] == "{id}"):
		below := c.Below[path[2]]
		if below == nil {
			below = &describedCollection{}
			c.Below[path[2]] = below
		}
		c, one = below, len(path) == 4
	default:
		return nil // an extension of Portolan, or a part of a resource: they have their own pages
	}
	methods := &c.Methods
	if one {
		methods = &c.One
	}
	for _, name := range []string{"get", "post", "put", "patch", "delete"} {
		operation, ok := operations[name]
		if !ok {
			continue
		}
		*methods += letters[name]
		if err := c.read(name, one, operation); err != nil {
			return err
		}
	}
	return nil
}

// read adds the types in the request or response of an operation.
func (c *describedCollection) read(method string, one bool, operation json.RawMessage) error {
	type content map[string]struct{ Schema propertySchema }
	var o struct {
		RequestBody struct{ Content content }
		Responses   map[string]struct{ Content content }
	}
	if err := json.Unmarshal(operation, &o); err != nil {
		return err
	}
	switch {
	case method == "get":
		s := o.Responses["200"].Content["application/json"].Schema
		if !one {
			var p struct{ Data propertySchema }
			if len(s.Properties) > 0 {
				if err := json.Unmarshal(s.Properties, &p); err != nil {
					return err
				}
			}
			if p.Data.Items != nil {
				s = *p.Data.Items
			}
		}
		for _, t := range append([]propertySchema{s}, s.AnyOf...) {
			if name, ok := strings.CutPrefix(t.Ref, "#/components/schemas/"); ok && !slices.Contains(c.Types, name) {
				c.Types = append(c.Types, name)
			}
		}
	case method == "post" && !one && !slices.Contains(c.Types, "UserSession"): // a sign-in has no form
		c.Makes = map[string][]string{}
		s := o.RequestBody.Content["application/json"].Schema
		all := append([]propertySchema{s}, s.OneOf...)
		for _, one := range s.AnyOf {
			all = append(append(all, one), one.OneOf...)
		}
		for _, t := range all {
			for i, part := range t.AllOf {
				if name, ok := strings.CutPrefix(part.Ref, "#/components/schemas/"); ok {
					c.Makes[name] = []string{}
					for _, more := range t.AllOf[i+1:] {
						c.Makes[name] = append(c.Makes[name], more.Required...)
					}
				}
			}
			if name, ok := strings.CutPrefix(t.Ref, "#/components/schemas/"); ok {
				c.Makes[name] = []string{}
			}
		}
	}
	return nil
}

// typeOf returns the description of a type.
func typeOf(s propertySchema) (t *describedType, err error) {
	t = &describedType{Description: s.Description}
	t.Fields, err = fieldsOf(s.Properties, 0)
	return t, err
}

// maxNested is the maximum depth of described objects.
const maxNested = 4

// fieldsOf returns the members in alphabetical order, after id, type and name.
func fieldsOf(text json.RawMessage, depth int) (fields []describedField, err error) {
	var properties map[string]propertySchema
	if len(text) > 0 {
		if err := json.Unmarshal(text, &properties); err != nil {
			return nil, err
		}
	}
	var names []string
	for name := range properties {
		if name != "_links" && name != "_embedded" && name != "_inheritedFields" {
			names = append(names, name)
		}
	}
	first := []string{"id", "type", "name"}
	slices.SortFunc(names, func(a, b string) int {
		if x, y := slices.Index(first, a), slices.Index(first, b); x >= 0 || y >= 0 {
			if x < 0 || y >= 0 && y < x {
				return 1
			}
			return -1
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		if strings.HasPrefix(properties[name].Description, name+" is another name of ") {
			continue // a form shows each value once
		}
		f, err := fieldOf(name, properties[name], depth)
		if err != nil {
			return nil, err
		}
		fields = append(fields, f)
	}
	return fields, nil
}

// fieldOf returns the description of a member, with its own members if a form can set them.
func fieldOf(name string, p propertySchema, depth int) (f describedField, err error) {
	f = describedField{Name: name, Description: strings.TrimPrefix(p.Description, name+" "), ReadOnly: p.ReadOnly,
		WriteOnly: p.WriteOnly || p.Format == "password"}
	f.Kind, f.Nullable = kindOf(p)
	values := p.Enum
	for _, one := range p.AnyOf {
		if len(one.Enum) > 0 {
			values, f.Others = one.Enum, true
		}
	}
	for _, e := range values {
		if text, ok := e.(string); ok {
			f.Enum = append(f.Enum, text)
		}
	}
	if p.ReadOnly || depth == maxNested {
		return f, nil
	}
	whole := p
	for _, one := range p.AnyOf { // an object, or null
		if one.Type != "null" && len(p.AnyOf) == 2 {
			whole = one
		}
	}
	switch f.Kind {
	case "object":
		f.Members, err = fieldsOf(whole.Properties, depth+1)
	case "list":
		if whole.Items != nil {
			var item describedField
			item, err = fieldOf("", *whole.Items, depth+1)
			f.Item = &item
		}
	}
	return f, err
}

// kindOf returns the kind of a field's values: ref, text, time, number, yes, list or object.
func kindOf(p propertySchema) (kind string, nullable bool) {
	var types []string
	switch t := p.Type.(type) {
	case string:
		types = []string{t}
	case []any:
		for _, one := range t {
			types = append(types, fmt.Sprint(one))
		}
	}
	for _, one := range append(slices.Clone(p.AnyOf), append(p.AllOf, propertySchema{Ref: p.Ref})...) {
		if strings.HasSuffix(one.Ref, "/InlinedReference") {
			kind = "ref"
		}
		if one.Type == "null" {
			nullable = true
		}
	}
	if kind != "" {
		return kind, nullable
	}
	for _, t := range types {
		switch t {
		case "null":
			nullable = true
		case "string":
			kind = "text"
			if p.Format == "date-time" {
				kind = "time"
			}
		case "integer", "number":
			kind = "number"
		case "boolean":
			kind = "yes"
		case "array":
			kind = "list"
		case "object":
			kind = "object"
		}
	}
	if kind == "" {
		kind = "object"
	}
	return kind, nullable
}
