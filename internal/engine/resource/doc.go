// Package resource is the unit of work of the engine: collections and the relations between them, changes with the rules of their types,
// references, deletion, undo, search and filters. It knows no type by name and no HTTP; package rest serves it over HTTP.
//
// A resource is stored as the JSON that will be served, without its head, inlined references and links. Serving a resource copies these
// bytes into the answer. Only field selection, CSV and HTML parse them.
package resource
