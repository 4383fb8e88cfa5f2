// Package dhcp declares the settings of DHCP servers other than addresses: client classes, MAC pools and the targets of DNS updates. It
// also declares the leases that servers have assigned.
package dhcp

//go:generate go run portolan/internal/engine/resource/gendoc
