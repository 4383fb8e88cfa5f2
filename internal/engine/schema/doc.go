// Package schema defines resource types: their declarations, which are read once from Go structs with tags; the conversion of resources
// to rows and from requests; the grammar of filters and fields. It does not access the database or requests.
package schema

//go:generate go run portolan/internal/engine/resource/gendoc
