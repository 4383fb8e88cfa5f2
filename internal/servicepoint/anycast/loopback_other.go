//go:build !linux

package anycast

import (
	"errors"
	"net/netip"
)

// IsAssigned always returns false on this system.
func IsAssigned(netip.Addr) (bool, error) { return false, nil }

// Assign returns ErrUnsupported on this system.
func Assign(netip.Addr) error { return errors.ErrUnsupported }

// Unassign returns ErrUnsupported on this system.
func Unassign(netip.Addr) error { return errors.ErrUnsupported }
