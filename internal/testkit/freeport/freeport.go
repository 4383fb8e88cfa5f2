// Package freeport reserves ports for tests.
package freeport

import (
	"net/netip"
	"testing"

	base "portolan/internal/base/freeport"
)

// Reserve returns an address of 127.0.0.1 that is free for UDP and TCP. The process gets it again only after all other ports. The test ends
// if there is none.
func Reserve(t testing.TB) netip.AddrPort {
	t.Helper()
	at, err := base.Loopback()
	if err != nil {
		t.Fatal(err)
	}
	return at
}
