// Package resource is the grammar of the address API: typed resources, collections, links, filter,
// order, fields, embed, pages, HAL, CSV, HTML and OpenAPI. It knows no type by name: address/
// declares types as Go structs with tags and collections with their subcollections, and this
// package serves them. Reflection runs once, at declaration.
//
// A resource is kept as the JSON that will be served, without head, inlined references and links.
// Serving one is splicing bytes; only fields, CSV and HTML look inside.
package resource

//go:generate go run portolan/internal/resource/gendoc
