// Package ipam is address space: configurations, blocks, networks, addresses, DHCP ranges and IP groups, templates of networks,
// what identifies DHCP clients; and what is kept in step with them: free space, usage, water levels. It knows no names and
// nothing of the other trades: they hook in by rules (resource.Rule).
package ipam

//go:generate go run portolan/internal/engine/resource/gendoc
