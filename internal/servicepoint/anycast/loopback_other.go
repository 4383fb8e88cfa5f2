//go:build !linux

package anycast

import (
	"errors"
	"net/netip"
)

// There always returns false on this system.
func There(netip.Addr) (bool, error) { return false, nil }

// Put returns ErrUnsupported on this system.
func Put(netip.Addr) error { return errors.ErrUnsupported }

// Take returns ErrUnsupported on this system.
func Take(netip.Addr) error { return errors.ErrUnsupported }
