// Package transfer brings zones and records in from elsewhere: zone files, zone transfers (AXFR and IXFR), dynamic updates (RFC 2136), and
// views that follow another server. dns declares the records that it creates.
package transfer

//go:generate go run portolan/internal/engine/resource/gendoc
