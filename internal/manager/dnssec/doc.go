// Package dnssec declares the signing policies and keys of signed zones, and computes when each key is published, signs and is withdrawn
// (RFC 7583). It signs nothing: dnspublish rolls keys over and gives them to name servers.
package dnssec

//go:generate go run portolan/internal/engine/resource/gendoc
