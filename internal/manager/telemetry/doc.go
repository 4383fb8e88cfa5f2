// Package telemetry sends events of servers to the destinations of their services: the leases of DHCP servers to that of
// DHCPActivityService. An event is stored in the transaction that causes it, and deleted after the destination has accepted it.
package telemetry
