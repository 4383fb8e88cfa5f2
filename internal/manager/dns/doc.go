// Package dns implements DNS data: views, zones, resource records, naming and response policies, and zone templates. It also compiles the
// data of a zone for name servers.
package dns

//go:generate go run portolan/internal/engine/resource/gendoc
