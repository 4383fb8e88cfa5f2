// Package dns is names: views, zones, resource records, naming and response policies, templates of zones; reading and writing
// zones, and their compilation.
package dns

//go:generate go run portolan/internal/engine/resource/gendoc
