// Package ipam implements address space: configurations, blocks, networks, addresses, DHCP ranges, IP groups, network templates and the
// identifiers of DHCP clients. It also maintains the derived data: free space, usage and water levels. It does not depend on DNS or DHCP:
// those packages register rules on its resources (resource.Rule).
package ipam

//go:generate go run portolan/internal/engine/resource/gendoc
