// Package dhcppair contains the rules of a failover pair of DHCP servers, after RFC 8156: which of the two may lease an address to a client
// and for how long, and the messages that keep their leases equal. It is pure: the caller stores the changes on the disk, and sends the
// messages after that. Times are in seconds by the clock of the server. Messages contain durations, so the clocks of the two may differ.
//
// These rules ensure that no address has two holders.
//
//   - Each address has an owner, at first by a function of the address. Only the owner leases it to a new client, and only the owner gives
//     the ownership away.
//   - Each of the two may extend the lease of the client in its record, until it has agreed that the address is free. The owner leases
//     it to another client after the partner has agreed.
//   - A lease ends at the latest after the maximum client lead time (MCLT), or at the time that the partner has acknowledged. A
//     server without its partner therefore knows when all leases that it has not heard of are over.
package dhcppair
