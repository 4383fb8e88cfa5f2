// Package dnssec declares the signing policies and the keys of signed zones, and computes when each key is published, becomes active and is
// removed (RFC 7583). It does not sign: package dnspublish rolls keys over and sends them to name servers.
package dnssec

//go:generate go run portolan/internal/engine/resource/gendoc
