// Package imports imports files of resources, CSV or JSON, in the background: each row creates or changes a resource. The package stores
// the imports, parses the files, interprets the rows and runs the imports. It also applies declared resources (Apply).
package imports

//go:generate go run portolan/internal/engine/resource/gendoc
