// Package published contains the facts of the published Address Manager RESTful v2 API, release 9.5, and the additions of release 9.6:
// operations, types, and the subcollections of each collection. The server derives its paths and links from them, and tests check the
// declared types against them. The package does not serve anything itself.
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

// Release is the latest release that the server implements.
const Release = "9.6.0"

// Base is the start of every published path.
const Base = "/api/v2"

// Operation is one method of one path.
type Operation struct {
	Method string `json:"method"`
	// Path is a template such as /api/v2/{collection}/{collectionId}/tags.
	Path string `json:"path"`
	// ID is the operation's published name.
	ID string `json:"operationId"`
	// Collections are the values of {collection} in the path; empty if the path does not contain it.
	Collections []string `json:"collections"`
	// Types are the types of the resources in the answer.
	Types []string `json:"types"`
	// Accepts are the types of the accepted bodies; "-" is a link. Bodies returns their members.
	Accepts []string `json:"accepts"`
	// Headers are the operation's own request headers.
	Headers []Header `json:"headers"`
}

// Header is a request header, with its values if they are published.
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

// Operations returns all operations in published order.
var Operations = sync.OnceValue(func() (all []Operation) { return read(all, operationsText) })

// Bodies returns the request bodies of an operation, by its ID and the type.
var Bodies = sync.OnceValue(func() (all map[string]map[string]Body) { return read(all, bodiesText) })

// Types returns all types, by name.
var Types = sync.OnceValue(func() (all map[string]Type) { return read(all, typesText) })

// Subcollections returns the names of the subcollections of each collection, in the order of its links.
var Subcollections = sync.OnceValue(func() (all map[string][]string) { return read(all, subcollectionsText) })

// laterOperationsText has the additions of release 9.6: operations at paths that 9.5 does not have, the bodies of these operations, all
// types of 9.6, and further subcollections. Everything in 9.5 remains.
//
//go:embed later_operations.json
var laterOperationsText []byte

//go:embed later_bodies.json
var laterBodiesText []byte

//go:embed later_types.json
var laterTypesText []byte

//go:embed later_subcollections.json
var laterSubcollectionsText []byte

// LaterOperations returns the operations that release 9.6 adds. An operation that release 9.5 has for other collections has only the
// added collections.
var LaterOperations = sync.OnceValue(func() (all []Operation) { return read(all, laterOperationsText) })

// LaterBodies returns the request bodies of an operation of LaterOperations, by its ID and the type.
var LaterBodies = sync.OnceValue(func() (all map[string]map[string]Body) { return read(all, laterBodiesText) })

// LaterTypes returns all types of release 9.6, by name.
var LaterTypes = sync.OnceValue(func() (all map[string]Type) { return read(all, laterTypesText) })

// LaterSubcollections returns the subcollections that release 9.6 adds to each collection.
var LaterSubcollections = sync.OnceValue(func() (all map[string][]string) { return read(all, laterSubcollectionsText) })

//go:embed errors.json
var errorsText []byte

// ErrorCodes returns the status of each published error code.
var ErrorCodes = sync.OnceValue(func() map[string]int {
	codes := map[string]int{}
	for status, names := range read(map[string][]string{}, errorsText) {
		n, err := strconv.Atoi(status)
		if err != nil { // as in read
			panic("the published facts: " + err.Error())
		}
		for _, name := range names {
			codes[name] = n
		}
	}
	return codes
})

// read decodes facts. They are embedded in the program, and a test checks that they can be decoded.
func read[T any](into T, text []byte) T {
	if err := json.Unmarshal(text, &into); err != nil {
		panic("the published facts: " + err.Error())
	}
	return into
}

// paths are the operations by path, with {collection} replaced and other variables as {}.
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

// FindOperation returns the operation of a method and a path below Base, such as "networks/{}/tags"; nil if it does not exist.
func FindOperation(method, path string) *Operation {
	for _, o := range paths()[Base+"/"+path] {
		if o.Method == method {
			return o
		}
	}
	return nil
}

// Methods returns the published methods of a path, given as its elements below Base, such as networks, 100001, tags.
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

// Sub are the facts about one subcollection of a collection.
type Sub struct {
	Name string
	// Types are the types of its resources; empty if they may have any type.
	Types []string
	// Later says that only release 9.6 has it. Resources have no link to it, because they are shown as in release 9.5.
	Later bool
	// Post says that POST to the subcollection is published, Item, Put, Patch and Delete that GET, PUT, PATCH and DELETE of one resource
	// through it are.
	Post, Item, Put, Patch, Delete bool
}

// ListSubcollections returns the names of the subcollections of a collection in either release, in the order of its links.
func ListSubcollections(collection string) []string {
	return slices.Sorted(slices.Values(slices.Concat(Subcollections()[collection], LaterSubcollections()[collection])))
}

// Subs returns the subcollections of a collection, in the order of its links.
func Subs(collection string) []Sub {
	var subs []Sub
	for _, name := range ListSubcollections(collection) {
		list := collection + "/{}/" + name
		s := Sub{Name: name, Later: !slices.Contains(Subcollections()[collection], name), Post: FindOperation(http.MethodPost, list) != nil,
			Item: FindOperation(http.MethodGet, list+"/{}") != nil,
			Put:  FindOperation(http.MethodPut, list+"/{}") != nil, Patch: FindOperation(http.MethodPatch, list+"/{}") != nil,
			Delete: FindOperation(http.MethodDelete, list+"/{}") != nil}
		get := FindOperation(http.MethodGet, list)
		if get == nil { // it cannot be read, only written to
			get = FindOperation(http.MethodPost, list)
		}
		if get != nil && len(get.Types) <= maxTypes && !slices.Equal(get.Types, []string{"Resource"}) {
			s.Types = get.Types
		}
		subs = append(subs, s)
	}
	return subs
}

// maxTypes is the maximum number of types of one collection; a subcollection with more may contain any type.
const maxTypes = 20

// Inner reports whether resources of a collection have no path of their own, so that they are reached only through the resource above. A
// collection without such a path in release 9.5 remains inner.
func Inner(collection string) bool {
	all := paths()[Base+"/"+collection]
	if !slices.Contains(slices.Concat(slices.Collect(maps.Values(Subcollections()))...), collection) {
		return len(all) == 0
	}
	return !slices.ContainsFunc(Operations(), func(o Operation) bool { return o.Path == Base+"/"+collection })
}

// Facts implements resource.Facts with the published facts.
type Facts struct{}

// Subs returns the subcollections of a collection, in the order of its links.
func (Facts) Subs(collection string) []Sub { return Subs(collection) }

// Inner reports whether resources of a collection have no path of their own.
func (Facts) Inner(collection string) bool { return Inner(collection) }

// Methods returns the published methods of a path, given as its elements below the base.
func (Facts) Methods(parts []string) []string { return Methods(parts) }
