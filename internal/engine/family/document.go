package family

import (
	"strconv"
	"strings"
)

// Schema is a JSON schema, or a piece of an OpenAPI document.
type Schema = map[string]any

// Ref refers to a component of the OpenAPI document.
func Ref(name string) Schema { return Schema{"$ref": "#/components/schemas/" + name} }

// Text is the schema of a string.
func Text() Schema { return Schema{"type": "string"} }

// List is the schema of an array.
func List(items Schema) Schema { return Schema{"type": "array", "items": items} }

// Object is the schema of an object with these properties, some of them required.
func Object(properties Schema, required ...string) Schema {
	s := Schema{"type": "object", "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// DataOf is the schema of an object whose member data is a list of a component.
func DataOf(component string) Schema {
	return Object(Schema{"data": List(Ref(component))}, "data")
}

// everyProblem are the statuses of the errors that every operation may answer.
var everyProblem = []int{400, 401, 405, 414, 429, 500, 503}

// Document returns the paths of the family for the OpenAPI document, by their patterns.
func (f *Family) Document() Schema {
	all := Schema{}
	for i := range f.Paths {
		all[f.Paths[i].Pattern] = f.Paths[i].document(f.Tag)
	}
	return all
}

func (p *Path) document(tag string) Schema {
	path := Schema{}
	if len(p.Parameters) > 0 {
		path["parameters"] = describeParameters(p.Parameters, "path")
	}
	for i := range p.Operations {
		path[strings.ToLower(p.Operations[i].Method)] = p.Operations[i].document(tag)
	}
	return path
}

// describeParameters are parameters of a path or a query.
func describeParameters(parameters []Parameter, where string) (all []any) {
	for _, p := range parameters {
		schema := p.Schema
		if schema == nil {
			schema = Text()
		}
		all = append(all, Schema{"name": p.Name, "in": where, "description": p.Description, "required": where == "path", "schema": schema})
	}
	return all
}

func (o *Operation) document(tag string) Schema {
	security := []any{}
	for _, scheme := range o.Access.Schemes {
		security = append(security, Schema{scheme: []any{}})
	}
	operation := Schema{"operationId": o.ID, "tags": []string{tag}, "summary": o.Summary, "description": o.Description, "security": security,
		"responses": o.responses()}
	if len(o.Query) > 0 {
		operation["parameters"] = describeParameters(o.Query, "query")
	}
	if o.Body != nil {
		operation["requestBody"] = Schema{"required": true,
			"content": Schema{"application/json": Schema{"schema": o.Body.Schema, "example": o.Body.Example}}}
	}
	return operation
}

// responses are the answers of the operation: its own, and the errors that it may have.
func (o *Operation) responses() Schema {
	own := Schema{"description": o.Success.Description}
	if o.Success.Schema != nil {
		kind := o.Success.Type
		if kind == "" {
			kind = "application/json"
		}
		own["content"] = Schema{kind: Schema{"schema": o.Success.Schema}}
	}
	all := Schema{strconv.Itoa(o.Success.Status): own}
	for _, statuses := range [][]int{everyProblem, o.Problems, o.bodyProblems()} {
		for _, status := range statuses {
			all[strconv.Itoa(status)] = Schema{"$ref": "#/components/responses/" + strconv.Itoa(status)}
		}
	}
	return all
}

// bodyProblems are the statuses of the errors of a body: one that is too large, and one of another media type.
func (o *Operation) bodyProblems() []int {
	if o.Body == nil {
		return nil
	}
	return []int{413, 415}
}
