// Package transfer imports zones and records from zone files, zone transfers (AXFR and IXFR), dynamic updates (RFC 2136), and for views
// that follow another server. Package dns declares the records that it creates.
package transfer

//go:generate go run portolan/internal/engine/resource/gendoc
