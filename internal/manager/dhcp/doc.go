// Package dhcp holds what DHCP servers are told beside addresses: classes of clients, pools of hardware addresses, where updates of names
// go, and the leases that servers have given.
package dhcp

//go:generate go run portolan/internal/engine/resource/gendoc
