//go:build !linux

package dhcp

import (
	"net"
	"net/netip"
	"time"
)

// askARP is not available on this system: no address answers.
func askARP(int, netip.Addr, time.Duration) (net.HardwareAddr, error) { return nil, nil }
