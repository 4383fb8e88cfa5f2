package dhcpdata

import (
	"net/netip"
	"strings"
)

// Leases is the view of the leases that a decision depends on. The caller of Decide keeps it unchanged until it has applied the decision.
type Leases interface {
	// Lease returns the state of an address; ok is false if it was never leased.
	Lease(a netip.Addr) (l LeaseState, ok bool)
	// ClientLease returns the address that a client holds in a network, or held last; ok is false if it never had one.
	ClientLease(network int64, client string) (l LeaseState, ok bool)
	// HardwareLeases returns the leases of a hardware address in a network.
	HardwareLeases(network int64, hardware []byte) []LeaseState
	// OtherLeases returns the leases of a client in other networks.
	OtherLeases(network int64, client string) []LeaseState
	// NextFree returns the address of a range that has been free for longest, for which usable returns true. With abandoned it returns an
	// abandoned address instead.
	NextFree(network, pool int64, ranges []Interval, abandoned bool, usable func(netip.Addr) bool) (netip.Addr, bool)
	// Exhausted reports that a search of a range found no free address, and that nothing in the range has changed since.
	Exhausted(pool int64) bool
	// CountUsed returns the number of leases in a range.
	CountUsed(pool int64) uint64
	// Members returns the number of leases that count for a class or subclass, without those of a client.
	Members(class int64, without string) int
}

// State is the state of an address.
type State uint8

// The states of an address. An Offered address is held for a client for a short time.
const (
	Free State = iota
	Offered
	Leased
	Abandoned
)

// LeaseState is the state of an address that was leased or offered.
type LeaseState struct {
	Network int64
	Address netip.Addr
	State   State
	// Client is the identity of the client that holds the address, or held it last: see Identity.
	Client   string
	Hardware []byte
	// Start and Expires are in Unix seconds by the clock that Decide gets.
	Start, Expires int64
	// Relay is the relay information (option 82) of the request, for stash-agent-options.
	Relay []byte
	// Names are the records in DNS that were decided on with the lease; nil if none were.
	Names *Names
	// Ended is true for a lease that an operator has ended: the client gets a NAK, and the address is not leased until Expires.
	Ended bool
	// Partner is true for an address that the partner of a failover pair may have leased: the server neither leases nor refuses it.
	Partner bool
}

// Limiter is implemented by Leases that limit the ends of leases, for failover pairs.
type Limiter interface {
	// Limit returns the end of a lease of an address to a client that may last until wanted.
	Limit(network int64, a netip.Addr, client string, wanted, now int64) int64
}

// InfiniteTime is the Expires of a lease without an end, in Unix seconds.
const InfiniteTime = int64(1) << 62

// strangerPrefix begins the identity of a machine that uses an address without a lease.
const strangerPrefix = "s"

// StrangerIdentity returns the identity that holds the abandoned address of a machine without a lease. hardware may be empty.
func StrangerIdentity(hardware []byte) string { return strangerPrefix + string(hardware) }

// IsStranger reports whether an identity is that of a machine without a lease (StrangerIdentity).
func IsStranger(client string) bool { return strings.HasPrefix(client, strangerPrefix) }

// Identity returns the identity of a client: its client identifier or, if there is none or it is ignored, its hardware address.
func Identity(hardwareType uint8, hardware, clientID []byte) string {
	if len(clientID) > 0 {
		return "c" + string(clientID)
	}
	return "h" + string([]byte{hardwareType}) + string(hardware)
}
