//go:build !linux

package dhcp

// bootTime is not known on this system.
func bootTime() (id string, up int64) { return "", 0 }
