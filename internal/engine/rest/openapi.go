package rest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// doc is a part of an OpenAPI document. Maps are encoded with sorted keys, so the document is the same every time.
type doc = map[string]any

// OpenAPI returns the OpenAPI 3.1 document of the declared API.
//
// paths and schemas are those of other APIs of the manager, which are written by hand.
func (a *Server) OpenAPI(title, version string, paths, schemas map[string]any) ([]byte, error) {
	all, types := a.paths(), a.schemas()
	types[a.RootType] = doc{"type": "object", "description": "The root of all resources; its id is 1.",
		"properties": doc{"id": doc{"const": resource.RootID}, "type": doc{"const": a.RootType},
			"name": doc{"type": "string"}, "version": doc{"type": "string"}, "hostname": doc{"type": "string"},
			"userDefinedFields": doc{"type": "null"}, "_links": ref("schemas/Links")}}
	maps.Copy(all, paths)
	maps.Copy(types, schemas)
	d := doc{
		"openapi": "3.1.0",
		"info": doc{"title": title, "version": version,
			"description": "IP addresses, DNS names and the objects around them, as resources. Compatible with the published Address Manager " +
				"RESTful v2 API; not affiliated with its owner.",
			"license": doc{"name": "Apache-2.0", "identifier": "Apache-2.0"}},
		"servers":  []any{doc{"url": "/"}},
		"security": []any{doc{"basic": []any{}}, doc{"bearer": []any{}}},
		"paths":    all,
		"components": doc{
			"securitySchemes": doc{
				"basic":  doc{"type": "http", "scheme": "basic", "description": "The user name with the session's apiToken, or with the password."},
				"bearer": doc{"type": "http", "scheme": "bearer"},
			},
			"parameters": a.parameters(),
			"schemas":    types,
			"responses":  problems(),
		},
	}
	return json.MarshalIndent(d, "", " ")
}

func ref(to string) doc { return doc{"$ref": "#/components/" + to} }

// parameters returns the query parameters and the request headers, by name.
func (a *Server) parameters() doc {
	query := func(name, description string, schema doc) doc {
		return doc{"name": name, "in": "query", "description": description, "schema": schema}
	}
	all := doc{
		"limit": query("limit", "The maximum number of resources to return.",
			doc{"type": "integer", "minimum": 1, "maximum": a.MaxLimit, "default": DefaultLimit}),
		"offset": query("offset", "The first row to return, counted from 0.",
			doc{"type": "integer", "minimum": 0, "maximum": MaxOffset, "default": 0}),
		"after": query("after", "The start of the page, from a next link. The page is found directly, at any distance from the start of the "+
			"list. Refused in a list with another filter or order, ignored with another offset.", doc{"type": "string"}),
		"total": query("total", "Count all matching resources.", doc{"type": "boolean", "default": false}),
		"filter": query("filter", "A condition: field:'text', field:operator(values), joined by and, or and parentheses. "+
			"Portolan adds the operator within, for a range or an address: everything inside a prefix.",
			doc{"type": "string", "example": "id:gt(100000)"}),
		"orderBy": query("orderBy", "Fields to order by: name, desc(id), asc(range).", doc{"type": "string", "example": "desc(id)"}),
		"fields": query("fields", "Which fields to return: names, not(names), embed(subcollections).",
			doc{"type": "string", "example": "id,type,name"}),
	}
	for _, h := range a.headers {
		schema := doc{"type": "string"}
		if h.Values != nil {
			schema["enum"] = h.Values
		}
		if h.Max > 0 {
			schema = doc{"type": "integer", "minimum": 1, "maximum": h.Max}
		}
		all[h.Name] = doc{"name": h.Name, "in": "header", "description": h.Description, "schema": schema}
	}
	return all
}

// problemTexts are the descriptions of the problem answers, by status.
var problemTexts = map[string]string{
	"400": "The request is invalid; the message names the error.",
	"401": "Credentials are missing or wrong.",
	"403": "The caller may not do this.",
	"404": "The resource does not exist.",
	"405": "The resource does not accept the method; Allow lists the accepted ones.",
	"406": "None of the accepted media types is available.",
	"409": "The request conflicts with existing data.",
	"410": "The requested data is no longer available.",
	"412": "The resource has changed since it was read.",
	"413": "The body is too large.",
	"414": "The URL is too long.",
	"415": "The body has an unsupported media type, or is compressed.",
	"429": "Too many requests of this kind; Retry-After is the time until the next one is accepted.",
	"431": "The header is too large.",
	"500": "Internal error; the message contains its id in the log.",
	"501": "Published, but not implemented yet.",
	"503": "The database is unreachable, or concurrent changes conflict; try again.",
}

// anyAnswer are the problem answers of every request.
var anyAnswer = []string{"400", "401", "403", "404", "405", "406", "414", "429", "500", "501", "503"}

func statusOf(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil { // the keys of the table above
		panic(err)
	}
	return n
}

func problems() doc {
	all := doc{}
	for status, description := range problemTexts {
		all[status] = doc{"description": description, "content": doc{"application/json": doc{"schema": ref("schemas/Problem"),
			"example": doc{"status": statusOf(status), "reason": http.StatusText(statusOf(status)), "code": "InvalidResourceFieldValue",
				"message": "name: must not be blank", "fields": []string{"name"}}}}}
		if status == "429" || status == "503" {
			one, _ := all[status].(doc)
			one["headers"] = doc{"Retry-After": doc{"description": "The time until the next attempt, in seconds.", "schema": doc{"type": "integer"}}}
		}
	}
	return all
}

// paths returns the path items of everything that the router serves.
func (a *Server) paths() doc {
	paths := doc{
		a.Base:           a.pathItem(resource.Target{Root: true, List: true}, a.AllTypes(), nil, "Resources", "Everything"),
		a.Base + "/{id}": a.pathItem(resource.Target{Any: true}, a.AllTypes(), nil, "Resource", "Everything"),
	}
	for name, path := range a.ownPaths {
		paths[a.Base+"/"+name] = path.document()
	}
	for _, c := range a.Collections() {
		at := a.Base + "/" + c.Path()
		if !c.Inner {
			a.addCollectionPaths(paths, at, c)
		}
		for i := range c.Subs {
			s := &c.Subs[i]
			if s.Relation == resource.Unbuilt {
				continue
			}
			types := a.ItemTypes(s)
			below := at + "/{collectionId}/" + s.Name
			paths[below] = a.pathItem(resource.Target{Collection: c, Sub: s, List: true}, types, a.PostTypes(s), c.Name+"-"+s.Name, c.Name)
			if s.Item || s.Drop {
				paths[below+"/{id}"] = a.pathItem(resource.Target{Collection: c, Sub: s}, types, nil, c.Name+"-"+s.Name+"One", c.Name)
			}
		}
	}
	return paths
}

// addCollectionPaths adds the paths of a collection, of its resources, and of the unpublished reports below them.
func (a *Server) addCollectionPaths(paths doc, at string, c *resource.Collection) {
	types := a.TargetTypes(resource.Target{Collection: c})
	paths[at] = a.pathItem(resource.Target{Collection: c, List: true}, types, types, c.Path(), c.Path())
	if c.Map != nil {
		paths[at+"/{id}/"+resource.MapName] = a.mapPath(c)
	}
	if c.Counts.Of != nil {
		paths[at+"/{id}/"+c.Counts.Name] = a.countsPath(c)
	}
	for _, rep := range c.Reports {
		paths[at+"/{id}/"+rep.Name] = a.reportPath(c, rep)
	}
	if c.Guard == resource.AnyCaller && a.Effective != nil {
		paths[at+"/{id}/"+resource.EffectiveName] = a.effectivePath(c)
	}
	paths[at+"/{id}"] = a.pathItem(resource.Target{Collection: c}, types, types, c.Path()+"One", c.Path())
	for alias := range c.Aliases {
		paths[at+"/"+alias] = a.pathItem(resource.Target{Collection: c}, types, types, c.Path()+"-"+alias, c.Path())
	}
}

// anyOf returns the schema of a resource of one of the types. It is not oneOf, because a resource with fewer fields may fit several.
func anyOf(types []*schema.Type) doc {
	if len(types) == 1 {
		return ref("schemas/" + types[0].Name)
	}
	var all []any
	for _, t := range types {
		all = append(all, ref("schemas/"+t.Name))
	}
	return doc{"anyOf": all}
}

func (a *Server) pathItem(t resource.Target, types, takes []*schema.Type, name, tag string) doc {
	item := doc{}
	var inPath []any
	number := func(name string) doc {
		return doc{"name": name, "in": "path", "required": true, "schema": doc{"type": "integer", "format": "int64", "minimum": 1},
			"example": exampleID}
	}
	if t.Sub != nil {
		inPath = append(inPath, number("collectionId"))
	}
	if !t.List && !strings.Contains(name, "-current") {
		inPath = append(inPath, number("id"))
	}
	if inPath != nil {
		item["parameters"] = inPath
	}
	for _, method := range methodsOf(t) {
		item[strings.ToLower(method)] = a.operation(t, method, types, takes, name, tag)
	}
	return item
}

// summary describes in a few words what a method does with a target.
func summary(t resource.Target, method string) string {
	what := "resources"
	if t.Sub != nil {
		what = t.Sub.Name + " of one of " + t.Collection.Name
	} else if t.Collection != nil {
		what = t.Collection.Name
	}
	links := t.Sub != nil && t.Sub.Relation != resource.Children
	switch {
	case method == http.MethodGet && t.List:
		return "List the " + what
	case method == http.MethodGet:
		return "Fetch one of the " + what
	case method == http.MethodPost && links:
		return "Link one to the " + what
	case method == http.MethodPost:
		return "Add one to the " + what
	case method == http.MethodDelete && t.List:
		return "Delete the " + what + " that match a filter, with everything below them"
	case method == http.MethodDelete && links:
		return "Unlink one from the " + what
	case method == http.MethodDelete:
		return "Delete one of the " + what + ", with everything below it"
	case method == http.MethodPut:
		return "Replace one of the " + what
	}
	return "Change fields of one of the " + what
}

func (a *Server) operation(t resource.Target, method string, types, takes []*schema.Type, name, tag string) doc {
	op := doc{"operationId": strings.ToLower(method) + "-" + name, "tags": []string{tag}, "summary": summary(t, method),
		"description": a.describe(t, method, types)}
	var params []any
	var answers doc
	refused := slices.Clone(anyAnswer)
	headers := types
	switch method {
	case http.MethodGet:
		params = append(params, ref("parameters/fields"))
		answers = a.resourceAnswer("200", "The resource.", types, true)
		if t.Any {
			content := answers["200"].(doc)["content"].(doc) //nolint:forcetypeassert // it was just built
			for _, media := range []string{asHAL.String(), asJSON.String()} {
				content[media] = doc{"schema": doc{"anyOf": []any{ref("schemas/" + a.RootType), anyOf(types)}}}
			}
		}
		if t.List {
			for _, p := range []string{"limit", "offset", "after", "total", "filter", "orderBy"} {
				params = append(params, ref("parameters/"+p))
			}
			answers = a.pageAnswer(types)
		} else if a.hasContent(types) {
			content := answers["200"].(doc)["content"].(doc) //nolint:forcetypeassert // as above
			content[asBytes.String()] = doc{"schema": binary}
		}
	case http.MethodPost:
		headers = takes
		answers = a.resourceAnswer("201", "The new resource.", types, false)
		schema, example := a.input(takes, true)
		if t.Sub != nil && t.Sub.Relation != resource.Children {
			schema = doc{"type": "object", "required": []string{"id"},
				"properties": doc{"id": doc{"type": "integer", "format": "int64", "minimum": 1}, "type": doc{"type": "string"}}}
			example = doc{"id": exampleID}
		}
		if listable(t) {
			schema = listOrOne(schema)
			madeListOrOne(answers)
		}
		op["requestBody"] = body(schema, example, "application/json", "application/hal+json")
		if a.tablesOf(t) != nil {
			op["requestBody"] = tableBody
		}
		refused = append(refused, "409", "413", "415")
	case http.MethodPut:
		answers = a.resourceAnswer("200", "The changed resource.", types, false)
		schema, example := a.input(types, false)
		op["requestBody"] = body(schema, example, "application/json", "application/hal+json")
		refused = append(refused, "409", "412", "413", "415")
	case http.MethodPatch:
		answers = a.resourceAnswer("200", "The changed resource.", types, false)
		op["requestBody"] = body(doc{"type": "object"}, doc{"name": "renamed"}, "application/merge-patch+json", "application/json")
		refused = append(refused, "409", "412", "413", "415")
	case http.MethodDelete:
		if t.List {
			return a.deleteListOperation(op)
		}
		answers = doc{"204": doc{"description": "Deleted; with " + atMostHeader + " the answer is 200.",
			"headers": doc{RecordedHeader: answerHeader(recordedText)}}}
		refused = append(refused, "409", "412")
	}
	if method != http.MethodGet {
		answers["200"] = dryRunAnswer(answers["200"])
	}
	if method == http.MethodDelete {
		answers["200"] = doc{"description": "The result of a dry run (" + dryRunHeader + "), or of one step (" + atMostHeader + ").",
			"content": doc{asJSON.String(): doc{"schema": doc{"anyOf": []any{ref("schemas/DryRun"), ref("schemas/Step")}}}}}
	}
	for _, h := range a.headersFor(method, headers) {
		if h.Name == confirmHeader { // for lists only
			continue
		}
		params = append(params, ref("parameters/"+h.Name))
	}
	for _, status := range refused {
		answers[status] = ref("responses/" + status)
	}
	op["parameters"], op["responses"] = params, answers
	return op
}

// deleteListOperation documents the deletion of a list.
func (a *Server) deleteListOperation(op doc) doc {
	op["parameters"] = []any{
		doc{"name": "filter", "in": "query", "required": true, "description": "The resources to delete, in the filter grammar of lists.",
			"schema": doc{"type": "string", "minLength": 1}, "example": "name:'renamed'"},
		ref("parameters/" + confirmHeader), ref("parameters/" + dryRunHeader), ref("parameters/" + commentHeader)}
	whole := doc{"type": "integer"}
	deletedSchema := doc{"type": "object", "required": []string{"count", "deleted"}, "properties": doc{"count": whole, "created": whole,
		"changed": whole, "deleted": whole}}
	answers := doc{"200": doc{"description": "Deleted; or the result of a dry run (" + dryRunHeader + ").",
		"content": doc{asJSON.String(): doc{"schema": doc{"anyOf": []any{ref("schemas/DryRun"), deletedSchema}}}}}}
	for _, status := range append(slices.Clone(anyAnswer), "409") {
		answers[status] = ref("responses/" + status)
	}
	op["responses"] = answers
	return op
}

// tableBody is the request body of a table.
var tableBody = doc{"required": true, "content": doc{asCSV.String(): doc{"schema": doc{"type": "string",
	"description": "A table (RFC 4180) whose first line names the fields, one of them the type."},
	"example": "type,range\nIPv4Network,10.0.9.0/24\n"}}}

// binary is the schema of binary data.
var binary = doc{"type": "string", "format": "binary"}

// hasContent reports whether resources of one of the types have content that can be downloaded.
func (a *Server) hasContent(types []*schema.Type) bool {
	return slices.ContainsFunc(types, func(t *schema.Type) bool {
		c := a.CollectionOf(t)
		return c.Content.Open != nil && slices.Contains(c.Content.Types, t.Name)
	})
}

// body returns a request body in some media types.
func body(schema, example doc, media ...string) doc {
	content := doc{}
	for _, m := range media {
		content[m] = doc{"schema": schema, "example": example}
	}
	return doc{"required": true, "content": content}
}

func (a *Server) resourceAnswer(status, description string, types []*schema.Type, page bool) doc {
	content := doc{"application/hal+json": doc{"schema": anyOf(types)}, "application/json": doc{"schema": anyOf(types)}}
	if page {
		content["text/html"] = doc{"schema": doc{"type": "string"}}
	}
	headers := doc{"ETag": answerHeader("The entity tag, for If-Match."), "x-portolan-ignored": answerHeader(ignoredText)}
	if !page {
		headers[RecordedHeader] = answerHeader(recordedText)
	}
	if status == "201" {
		headers["Location"] = answerHeader("The path of the new resource.")
	}
	return doc{status: doc{"description": description, "headers": headers, "content": content}}
}

// ignoredText describes the header x-portolan-ignored.
const ignoredText = "The ignored parts of the request: members of the body, headers, and query parameters with a question mark in front."

// recordedText describes the header x-portolan-transaction.
const recordedText = "The number of the transaction of the change. An undo needs this number. Portolan extension."

func answerHeader(description string) doc {
	return doc{"description": description, "schema": doc{"type": "string"}}
}

func (a *Server) pageAnswer(types []*schema.Type) doc {
	page := doc{"type": "object", "required": []string{"count", "data"}, "properties": doc{"count": doc{"type": "integer"},
		"totalCount": doc{"type": "integer"}, "data": doc{"type": "array", "items": anyOf(types)}, "_links": ref("schemas/Links")}}
	return doc{"200": doc{"description": "A page of resources.", "headers": doc{"x-portolan-ignored": answerHeader(ignoredText)},
		"content": doc{"application/hal+json": doc{"schema": page},
			"application/json": doc{"schema": page}, "text/csv": doc{"schema": doc{"type": "string"}},
			"text/html": doc{"schema": doc{"type": "string"}}}}}
}

// dryRunAnswer adds the answer of a dry run to the 200 answer.
func dryRunAnswer(there any) doc {
	tried := ref("schemas/DryRun")
	answer, ok := there.(doc)
	if !ok {
		return doc{"description": "The result of a dry run (x-portolan-dry-run).",
			"content": doc{"application/json": doc{"schema": tried}}}
	}
	answer["description"] = "The changed resource, or the result of a dry run (x-portolan-dry-run)."
	content, _ := answer["content"].(doc)
	for media := range content {
		one, _ := content[media].(doc)
		content[media] = doc{"schema": doc{"anyOf": []any{one["schema"], tried}}}
	}
	return answer
}

// describe returns the description of a method of a target.
func (a *Server) describe(t resource.Target, method string, types []*schema.Type) string {
	text := ""
	switch {
	case method == http.MethodGet && t.List:
		text = "Returns a page of them, selected by filter and ordered by orderBy; next and prev link to the neighboring pages. "
	case method == http.MethodGet:
		text = "Returns one with its entity tag; fields selects the shown fields. "
	case method == http.MethodPost && t.Sub != nil && t.Sub.Relation != resource.Children:
		text = "Links an existing resource by its id. "
	case method == http.MethodPost:
		text = "Creates a new one, with the resources that belong to it, in one transaction of the history. "
		if listable(t) {
			text += "A list creates all its resources, or none. "
		}
	case method == http.MethodPut:
		text = "Sets every field: omitted fields become null if they can be null. "
	case method == http.MethodPatch:
		text = "Sets the given fields, and leaves the others unchanged (RFC 7396). "
	case method == http.MethodDelete && t.Sub != nil && t.Sub.Relation != resource.Children:
		text = "Removes the link; its target stays. "
	case method == http.MethodDelete:
		text = "Deletes it with everything below it, in one transaction of the history, which can be undone. "
	}
	if t.Any {
		text += "1 is the manager itself. "
	}
	if t.Collection != nil && t.Collection.From != store.Resources {
		text += "It is read from the history. "
	}
	if len(types) <= maxDescribed {
		for _, one := range types {
			text += a.Descriptions[one.Name] + " "
		}
	}
	return strings.TrimSpace(text)
}

// maxDescribed is the maximum number of types that an operation describes.
const maxDescribed = 3
