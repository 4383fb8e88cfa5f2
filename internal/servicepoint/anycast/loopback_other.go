//go:build !linux

package anycast

import (
	"errors"
	"net/netip"
)

// There reports whether the loopback interface has an address: of that nothing is known.
func There(netip.Addr) (bool, error) { return false, nil }

// Put puts an address on the loopback interface, where that can be done.
func Put(netip.Addr) error { return errors.ErrUnsupported }

// Take takes an address off the loopback interface.
func Take(netip.Addr) error { return errors.ErrUnsupported }
