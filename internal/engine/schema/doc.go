// Package schema is what a type is: declarations, read once from Go structs with tags; how its resources are written into rows
// and read from requests; the grammar of filters and fields. It is pure: it asks no database and knows no requests.
package schema

//go:generate go run portolan/internal/engine/resource/gendoc
