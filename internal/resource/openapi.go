package resource

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"portolan/internal/store"
)

// doc is a piece of an OpenAPI document; maps are written with sorted keys, so the document is the
// same every time.
type doc = map[string]any

// OpenAPI gives the OpenAPI 3.1 document of the declared API.
func (a *API) OpenAPI(title, version string) ([]byte, error) {
	d := doc{
		"openapi": "3.1.0",
		"info": doc{"title": title, "version": version,
			"description": "Addresses, names and what they belong to, as resources. Compatible with the published Address Manager RESTful v2 API; not affiliated with its owner.",
			"license":     doc{"name": "Apache-2.0", "identifier": "Apache-2.0"}},
		"servers":  []any{doc{"url": "/"}},
		"security": []any{doc{"basic": []any{}}, doc{"bearer": []any{}}},
		"paths":    a.paths(),
		"components": doc{
			"securitySchemes": doc{
				"basic":  doc{"type": "http", "scheme": "basic", "description": "The user name with the session's apiToken, or with the password."},
				"bearer": doc{"type": "http", "scheme": "bearer"},
			},
			"parameters": parameters(a.MaxLimit),
			"schemas":    a.schemas(),
			"responses":  problems(),
		},
	}
	return json.MarshalIndent(d, "", " ")
}

func ref(to string) doc { return doc{"$ref": "#/components/" + to} }

func parameters(maxLimit int64) doc {
	query := func(name, description string, schema doc) doc {
		return doc{"name": name, "in": "query", "description": description, "schema": schema}
	}
	header := func(name, description string, values ...string) doc {
		schema := doc{"type": "string"}
		if len(values) > 0 {
			schema["enum"] = values
		}
		return doc{"name": name, "in": "header", "description": description, "schema": schema}
	}
	return doc{
		"limit":          query("limit", "The most resources to return.", doc{"type": "integer", "minimum": 1, "maximum": maxLimit, "default": DefaultLimit}),
		"offset":         query("offset", "The first row to return, counted from 0.", doc{"type": "integer", "minimum": 0, "default": 0}),
		"total":          query("total", "Whether to count everything that matches.", doc{"type": "boolean", "default": false}),
		"filter":         query("filter", "A condition: field:'text', field:operator(values), joined by and, or and parentheses.", doc{"type": "string"}),
		"orderBy":        query("orderBy", "Fields to order by: name, desc(id), asc(range).", doc{"type": "string"}),
		"fields":         query("fields", "Which fields to return: names, not(names), embed(subcollections).", doc{"type": "string"}),
		"comment":        header("x-bcn-change-control-comment", "A remark that the history keeps with the change."),
		"ifMatch":        header("If-Match", "The entity tag the resource must still have."),
		"idempotencyKey": header("Idempotency-Key", "Repeating a request with the same key within 24 hours gives the same answer and does nothing."),
		"traversal":      header("x-bcn-traversal-method", "Where space of a given size is looked for.", "NO_TRAVERSAL", "DEPTH_FIRST", "BREADTH_FIRST"),
		"noGateway":      header("x-bcn-no-gateway", "Make no gateway.", "true", "false"),
		"multiLabel":     header("x-bcn-allow-multi-label-zonenames", "One dotted zone instead of the zones in between.", "true", "false"),
		"sameAsZone":     header("x-bcn-same-as-zone", "Give the record the zone's own name.", "true", "false"),
	}
}

// changeHeaders are the headers by which some types' changes are steered.
func changeHeaders(types []*Type, create bool) (list []any) {
	add := func(name string, wanted ...string) {
		for _, t := range types {
			if slices.Contains(wanted, t.Name) {
				list = append(list, ref("parameters/"+name))
				return
			}
		}
	}
	if create {
		add("traversal", "IPv4Block", "IPv6Block", "IPv4Network", "IPv6Network")
		add("multiLabel", "Zone")
		add("sameAsZone", "HostRecord")
	}
	add("noGateway", "IPv4Network")
	return list
}

func problems() doc {
	one := func(description string) doc {
		return doc{"description": description, "content": doc{"application/json": doc{"schema": ref("schemas/Problem")}}}
	}
	return doc{
		"400": one("Something in the request is wrong; the message names it."),
		"401": one("Credentials are missing or wrong."),
		"403": one("The caller may not do this."),
		"404": one("It is not there."),
		"409": one("It does not fit with what is there."),
		"412": one("The resource has changed since."),
	}
}

func (a *API) schemas() doc {
	schemas := doc{
		"Problem": doc{"type": "object", "required": []string{"status", "reason", "code", "message"}, "properties": doc{
			"status": doc{"type": "integer"}, "reason": doc{"type": "string"}, "code": doc{"type": "string"}, "message": doc{"type": "string"},
			"fields": doc{"type": "array", "items": doc{"type": "string"}}}},
		"Link":  doc{"type": "object", "required": []string{"href"}, "properties": doc{"href": doc{"type": "string"}}},
		"Links": doc{"type": "object", "additionalProperties": ref("schemas/Link")},
		"InlinedReference": doc{"type": "object", "properties": doc{"id": doc{"type": "integer", "format": "int64"}, "type": doc{"type": "string"},
			"name": doc{"type": []string{"string", "null"}}, "_links": ref("schemas/Links")}},
	}
	for _, c := range a.collections {
		for _, t := range c.Types {
			schemas[t.Name] = a.schema(t)
		}
	}
	return schemas
}

func (a *API) schema(t *Type) doc {
	properties := doc{"_links": doc{"allOf": []any{ref("schemas/Links")}, "readOnly": true}}
	var required []string
	for _, f := range t.Fields {
		properties[f.Name] = a.property(f)
		if f.OnPost && f.Unless == "" {
			required = append(required, f.Name)
		}
	}
	properties["type"] = doc{"type": "string", "const": t.Name, "description": a.Descriptions["Head.type"]}
	d := doc{"type": "object", "description": a.Descriptions[t.Name], "properties": properties}
	if len(required) > 0 {
		d["required"] = required
	}
	return d
}

// property gives a field's schema.
func (a *API) property(f *Field) doc {
	d := doc{}
	kind := ""
	switch f.Kind {
	case Bool:
		kind = "boolean"
	case Integer:
		kind, d["format"] = "integer", "int64"
	case Float:
		kind, d["format"] = "number", "double"
	case Map:
		kind, d["additionalProperties"] = "object", doc{"type": "string"}
	case Raw:
		kind = "object"
	case Strings:
		kind, d["items"] = "array", doc{"type": "string"}
	case Integers:
		kind, d["items"] = "array", doc{"type": "integer"}
	case References:
		kind, d["items"] = "array", doc{"type": "object"}
	case Reference:
		d["allOf"] = []any{ref("schemas/InlinedReference")}
		if f.Nullable {
			d = doc{"anyOf": []any{ref("schemas/InlinedReference"), doc{"type": "null"}}}
		}
	case Time:
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
	f.bounds(d)
	if text := a.Descriptions[f.Owner+"."+f.Name]; text != "" {
		d["description"] = text
	}
	return d
}

// bounds adds to a field's schema what narrows its values.
func (f *Field) bounds(d doc) {
	if f.Enum != nil {
		values := []any{}
		for _, v := range f.Enum {
			values = append(values, v)
		}
		if f.Nullable {
			values = append(values, nil)
		}
		d["enum"] = values
	}
	if f.Kind == Integer || f.Kind == Float {
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
	}
}

// paths lists what the router answers, path by path.
func (a *API) paths() doc {
	paths := doc{
		a.Base:           a.pathItem(target{root: true, list: true}, a.allTypes(), nil, "Resources", "Everything"),
		a.Base + "/{id}": a.pathItem(target{any: true}, a.allTypes(), nil, "Resource", "Everything"),
	}
	for _, c := range a.collections {
		at := a.Base + "/" + c.Name
		if c.Inner {
			continue
		}
		paths[at] = a.pathItem(target{collection: c, list: true}, c.Types, c.Types, c.Name, c.Name)
		paths[at+"/{id}"] = a.pathItem(target{collection: c}, c.Types, c.Types, c.Name+"One", c.Name)
		for alias := range c.Aliases {
			paths[at+"/"+alias] = a.pathItem(target{collection: c}, c.Types, c.Types, c.Name+"-"+alias, c.Name)
		}
		for i := range c.Subs {
			s := &c.Subs[i]
			if s.Relation == Unbuilt {
				continue
			}
			types := a.itemTypes(s)
			below := at + "/{collectionId}/" + s.Name
			paths[below] = a.pathItem(target{collection: c, sub: s, list: true}, types, a.postTypes(s), c.Name+"-"+s.Name, c.Name)
			if s.Item || s.Drop {
				paths[below+"/{id}"] = a.pathItem(target{collection: c, sub: s}, types, nil, c.Name+"-"+s.Name+"One", c.Name)
			}
		}
	}
	return paths
}

func oneOf(types []*Type) doc {
	if len(types) == 1 {
		return ref("schemas/" + types[0].Name)
	}
	var all []any
	for _, t := range types {
		all = append(all, ref("schemas/"+t.Name))
	}
	return doc{"oneOf": all, "discriminator": doc{"propertyName": "type"}}
}

func (a *API) pathItem(t target, types, takes []*Type, name, tag string) doc {
	item := doc{}
	var inPath []any
	number := func(name string) doc {
		return doc{"name": name, "in": "path", "required": true, "schema": doc{"type": "integer", "format": "int64", "minimum": 1}}
	}
	if t.sub != nil {
		inPath = append(inPath, number("collectionId"))
	}
	if !t.list && !strings.Contains(name, "-current") {
		inPath = append(inPath, number("id"))
	}
	if inPath != nil {
		item["parameters"] = inPath
	}
	for _, method := range t.methods() {
		item[strings.ToLower(method)] = a.operation(t, method, types, takes, name, tag)
	}
	return item
}

// summary says in a few words what a method does to a target.
func summary(t target, method string) string {
	what := "resources"
	if t.sub != nil {
		what = t.sub.Name + " of one of " + t.collection.Name
	} else if t.collection != nil {
		what = t.collection.Name
	}
	links := t.sub != nil && t.sub.Relation != Children
	switch {
	case method == http.MethodGet && t.list:
		return "List the " + what
	case method == http.MethodGet:
		return "Fetch one of the " + what
	case method == http.MethodPost && links:
		return "Link one to the " + what
	case method == http.MethodPost:
		return "Add one to the " + what
	case method == http.MethodDelete && links:
		return "Unlink one from the " + what
	case method == http.MethodDelete:
		return "Delete one of the " + what + ", with all that lies below it"
	case method == http.MethodPut:
		return "Replace one of the " + what
	}
	return "Change fields of one of the " + what
}

func (a *API) operation(t target, method string, types, takes []*Type, name, tag string) doc {
	resourceAnswer := func(status, description string) doc {
		return doc{status: doc{"description": description, "headers": doc{"ETag": doc{"schema": doc{"type": "string"}}},
			"content": doc{"application/hal+json": doc{"schema": oneOf(types)}, "application/json": doc{"schema": oneOf(types)}}}}
	}
	op := doc{"operationId": strings.ToLower(method) + "-" + name, "tags": []string{tag}, "summary": summary(t, method)}
	var params []any
	var answers doc
	refused := []string{"400", "401", "403", "404"}
	switch method {
	case http.MethodGet:
		params = append(params, ref("parameters/fields"))
		if !t.list {
			answers = resourceAnswer("200", "The resource.")
			break
		}
		for _, p := range []string{"limit", "offset", "total", "filter", "orderBy"} {
			params = append(params, ref("parameters/"+p))
		}
		page := doc{"type": "object", "required": []string{"count", "data"}, "properties": doc{"count": doc{"type": "integer"},
			"totalCount": doc{"type": "integer"}, "data": doc{"type": "array", "items": oneOf(types)}, "_links": ref("schemas/Links")}}
		answers = doc{"200": doc{"description": "A page of resources.", "content": doc{"application/hal+json": doc{"schema": page},
			"application/json": doc{"schema": page}, "text/csv": doc{"schema": doc{"type": "string"}}, "text/html": doc{"schema": doc{"type": "string"}}}}}
	case http.MethodPost:
		params = append(append(params, ref("parameters/comment"), ref("parameters/idempotencyKey")), changeHeaders(takes, true)...)
		answers = resourceAnswer("201", "The new resource.")
		schema := oneOf(takes)
		if t.sub != nil && t.sub.Relation != Children {
			schema = doc{"type": "object", "required": []string{"id"}, "properties": doc{"id": doc{"type": "integer", "format": "int64"}, "type": doc{"type": "string"}}}
		}
		op["requestBody"] = doc{"required": true, "content": doc{"application/json": doc{"schema": schema}, "application/hal+json": doc{"schema": schema}}}
		refused = append(refused, "409")
	case http.MethodPut, http.MethodPatch:
		params = append(append(params, ref("parameters/comment"), ref("parameters/ifMatch")), changeHeaders(takes, false)...)
		answers = resourceAnswer("200", "The changed resource.")
		kind, schema := "application/json", oneOf(types)
		if method == http.MethodPatch {
			kind, schema = "application/merge-patch+json", doc{"type": "object"}
		}
		op["requestBody"] = doc{"required": true, "content": doc{kind: doc{"schema": schema}}}
		refused = append(refused, "409", "412")
	case http.MethodDelete:
		params = append(params, ref("parameters/comment"), ref("parameters/ifMatch"))
		answers = doc{"204": doc{"description": "It is gone."}}
		refused = append(refused, "409", "412")
	}
	for _, status := range refused {
		answers[status] = ref("responses/" + status)
	}
	if t.collection != nil && t.collection.From != store.Resources {
		op["description"] = "From the history."
	}
	op["parameters"], op["responses"] = params, answers
	return op
}
