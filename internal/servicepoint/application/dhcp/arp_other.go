//go:build !linux

package dhcp

import (
	"net/netip"
	"time"
)

// askARP is not available on this system: no address answers.
func askARP(int, netip.Addr, time.Duration) (bool, error) { return false, nil }
