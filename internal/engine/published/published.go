// Package published holds the facts of the published Address Manager RESTful v2 API, release 9.5, and what release 9.6 adds: operations,
// types, and what hangs below a resource of each collection. They say what is to be served, and which subcollections resources link
// to; tests hold the declared types to them. It knows nothing of how anything is served.
package published

import (
	_ "embed"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Release is the latest release that is served.
const Release = "9.6.0"

// Base is the path that every published path begins with.
const Base = "/api/v2"

// Operation is one method of one path.
type Operation struct {
	Method string `json:"method"`
	// Path is a template such as /api/v2/{collection}/{collectionId}/tags.
	Path string `json:"path"`
	// ID is the operation's published name.
	ID string `json:"operationId"`
	// Collections are what {collection} in the path may be; empty where it does not stand there.
	Collections []string `json:"collections"`
	// Types are those of the resources that are answered.
	Types []string `json:"types"`
	// Accepts are the types of the bodies that are taken; "-" stands for a link. Bodies has what is in them.
	Accepts []string `json:"accepts"`
	// Headers are the request headers of its own.
	Headers []Header `json:"headers"`
}

// Header is a request header, with the values that it may have where they are published.
type Header struct {
	Name string   `json:"name"`
	Enum []string `json:"enum"`
}

// Body is a request body of one type: its required and its known members.
type Body struct {
	Required []string `json:"required"`
	Fields   []string `json:"fields"`
}

// Field is a member of a type.
type Field struct {
	Type      string   `json:"type"`
	Nullable  *bool    `json:"nullable"`
	ReadOnly  bool     `json:"readOnly"`
	WriteOnly bool     `json:"writeOnly"`
	Map       bool     `json:"map"`
	Enum      []string `json:"enum"`
	// Ref are the types of the resources that an inlined reference may point to.
	Ref     []string `json:"ref"`
	Minimum *float64 `json:"minimum"`
	Maximum *float64 `json:"maximum"`
}

// Type is a resource type.
type Type struct {
	Collections []string         `json:"collections"`
	Fields      map[string]Field `json:"fields"`
}

//go:embed operations.json
var operationsText []byte

//go:embed bodies.json
var bodiesText []byte

//go:embed types.json
var typesText []byte

//go:embed subcollections.json
var subcollectionsText []byte

// Operations gives all operations, in the order they are published in.
var Operations = sync.OnceValue(func() (all []Operation) { return read(all, operationsText) })

// Bodies gives the request bodies of an operation, by its ID and the type.
var Bodies = sync.OnceValue(func() (all map[string]map[string]Body) { return read(all, bodiesText) })

// Types gives all types, by name.
var Types = sync.OnceValue(func() (all map[string]Type) { return read(all, typesText) })

// Subcollections gives the names of what hangs below a resource of each collection, in the order of its links.
var Subcollections = sync.OnceValue(func() (all map[string][]string) { return read(all, subcollectionsText) })

// What release 9.6 adds: operations at paths that 9.5 does not have, bodies of those, all types as they are there, and further
// subcollections. What 9.5 has stays whole.
//
//go:embed later_operations.json
var laterOperationsText []byte

//go:embed later_bodies.json
var laterBodiesText []byte

//go:embed later_types.json
var laterTypesText []byte

//go:embed later_subcollections.json
var laterSubcollectionsText []byte

// LaterOperations gives the operations that release 9.6 adds, each with those of its collections that 9.5 does not have there.
var LaterOperations = sync.OnceValue(func() (all []Operation) { return read(all, laterOperationsText) })

// LaterBodies gives the request bodies of an operation of LaterOperations, by its ID and the type.
var LaterBodies = sync.OnceValue(func() (all map[string]map[string]Body) { return read(all, laterBodiesText) })

// LaterTypes gives all types of release 9.6, by name.
var LaterTypes = sync.OnceValue(func() (all map[string]Type) { return read(all, laterTypesText) })

// LaterSubcollections gives what hangs below a resource of each collection in release 9.6 alone.
var LaterSubcollections = sync.OnceValue(func() (all map[string][]string) { return read(all, laterSubcollectionsText) })

//go:embed errors.json
var errorsText []byte

// ErrorCodes gives the status of each published code of errors.
var ErrorCodes = sync.OnceValue(func() map[string]int {
	codes := map[string]int{}
	for status, names := range read(map[string][]string{}, errorsText) {
		n, err := strconv.Atoi(status)
		if err != nil { // as with read
			panic("the published facts: " + err.Error())
		}
		for _, name := range names {
			codes[name] = n
		}
	}
	return codes
})

// read decodes facts. They are part of the program: that they can be read is tested.
func read[T any](into T, text []byte) T {
	if err := json.Unmarshal(text, &into); err != nil {
		panic("the published facts: " + err.Error())
	}
	return into
}

// paths are the operations by the path they have where {collection} is put in and other variables are {}.
var paths = sync.OnceValue(func() map[string][]*Operation {
	all := map[string][]*Operation{}
	operations := slices.Concat(Operations(), LaterOperations())
	for i := range operations {
		o := &operations[i]
		collections := o.Collections
		if len(collections) == 0 {
			collections = []string{""}
		}
		for _, c := range collections {
			path := strings.NewReplacer("{collection}", c, "{collectionId}", "{}", "{id}", "{}").Replace(o.Path)
			all[path] = append(all[path], o)
		}
	}
	return all
})

// At gives the operation of a method and a path below Base, such as "networks/{}/tags"; nil where there is none.
func At(method, path string) *Operation {
	for _, o := range paths()[Base+"/"+path] {
		if o.Method == method {
			return o
		}
	}
	return nil
}

// Methods gives the published methods of a path, in parts below Base, such as networks, 100001, tags.
func Methods(parts []string) (methods []string) {
	parts = slices.Clone(parts)
	for i, part := range parts {
		if part != "" && strings.Trim(part, "0123456789") == "" {
			parts[i] = "{}"
		}
	}
	for _, o := range paths()[Base+"/"+strings.Join(parts, "/")] {
		methods = append(methods, o.Method)
	}
	return methods
}

// Sub is what is published of a subcollection of a collection's resources.
type Sub struct {
	Name string
	// Types are those of what it holds; empty where it may hold anything.
	Types []string
	// Later says that release 9.6 alone has it: what is shown of a resource stays as release 9.5 has it, and links to none.
	Later bool
	// Post, Item, Put, Patch, Delete: POST to it, GET, PUT, PATCH and DELETE of one resource through it are published.
	Post, Item, Put, Patch, Delete bool
}

// Linked gives the names of what hangs below a resource of a collection in either release, in the order of its links.
func Linked(collection string) []string {
	return slices.Sorted(slices.Values(slices.Concat(Subcollections()[collection], LaterSubcollections()[collection])))
}

// Subs gives the subcollections of a collection, in the order of its links.
func Subs(collection string) []Sub {
	var subs []Sub
	for _, name := range Linked(collection) {
		list := collection + "/{}/" + name
		s := Sub{Name: name, Later: !slices.Contains(Subcollections()[collection], name), Post: At(http.MethodPost, list) != nil,
			Item: At(http.MethodGet, list+"/{}") != nil,
			Put:  At(http.MethodPut, list+"/{}") != nil, Patch: At(http.MethodPatch, list+"/{}") != nil,
			Delete: At(http.MethodDelete, list+"/{}") != nil}
		get := At(http.MethodGet, list)
		if get == nil { // it is written to alone
			get = At(http.MethodPost, list)
		}
		if get != nil && len(get.Types) <= maxTypes && !slices.Equal(get.Types, []string{"Resource"}) {
			s.Types = get.Types
		}
		subs = append(subs, s)
	}
	return subs
}

// maxTypes is how many types one collection has at the most: what lists more holds anything.
const maxTypes = 20

// Inner reports whether resources of a collection have no path of their own: they are reached through the one above alone. What release 9.5
// has without such a path stays so.
func Inner(collection string) bool {
	all := paths()[Base+"/"+collection]
	if !slices.Contains(slices.Concat(slices.Collect(maps.Values(Subcollections()))...), collection) {
		return len(all) == 0
	}
	return !slices.ContainsFunc(Operations(), func(o Operation) bool { return o.Path == Base+"/"+collection })
}

// Facts answer by what is published.
type Facts struct{}

// Subs gives the subcollections of a collection, in the order of its links.
func (Facts) Subs(collection string) []Sub { return Subs(collection) }

// Inner reports whether resources of a collection have no path of their own.
func (Facts) Inner(collection string) bool { return Inner(collection) }

// Methods gives the published methods of a path, in parts below the base.
func (Facts) Methods(parts []string) []string { return Methods(parts) }
