// Package dhcplease defines the records about leases that a DHCP server sends to its manager by portolan/internal/wire/stream. They arrive
// in the order of their sequence numbers, at least once: the manager stores the last Sequence of each Journal in the transaction that
// applies a record, and skips a record that is not newer.
package dhcplease

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"portolan/internal/base/problem"
	"portolan/internal/wire/stream"
)

// Stream is the kind of the records in stream.Batch. Each record is a Record in JSON.
const Stream = stream.Leases

// Record is an entry of the journal of a server. Exactly one of Event, Renewals, Snapshot and Pair is set.
type Record struct {
	// Journal is the random id of the journal on the disk of the server. Sequence is the position in it.
	Journal  string `json:"journal"`
	Sequence uint64 `json:"sequence"`
	// Previous is the Sequence of the record before; 0 for the first one of the journal. Other entries of the journal are between them.
	Previous uint64 `json:"previous,omitempty"`
	// At is the time in Unix milliseconds by the clock of the server.
	At       int64     `json:"at"`
	Event    *Event    `json:"event,omitempty"`
	Renewals *Renewals `json:"renewals,omitempty"`
	Snapshot *Snapshot `json:"snapshot,omitempty"`
	Pair     *Pair     `json:"pair,omitempty"`
}

// Pair is the state of a failover pair. Times are in Unix seconds by the clock of the server.
type Pair struct {
	// Partner is the id of the partner's server.
	Partner int64  `json:"partner"`
	State   string `json:"state"`
	Since   int64  `json:"since"`
	// Connected reports whether the servers are connected, and Contact is the time of the last message.
	Connected bool  `json:"connected,omitempty"`
	Contact   int64 `json:"contact,omitempty"`
	// SkewMillis is the clock of the partner minus that of the server.
	SkewMillis int64 `json:"skewMillis,omitempty"`
	// Pending is the number of records that the partner lacks. Conflicts counts the addresses that both servers had leased. Contested are
	// those since the last report, at most MaxContested.
	Pending   int64       `json:"pending,omitempty"`
	Conflicts int64       `json:"conflicts,omitempty"`
	Contested []Contested `json:"contested,omitempty"`
	// Key is the SHA-256 of the public key of the server, in hexadecimal digits.
	Key  string `json:"key"`
	MCLT int64  `json:"mclt"`
	// Port is the port at which the server accepts its partner.
	Port uint16 `json:"port,omitempty"`
	// Declaration and Downed are the numbers of the last declarations that the server has followed.
	Declaration int64 `json:"declaration,omitempty"`
	Downed      int64 `json:"downed,omitempty"`
}

// MaxContested is the maximum number of contested addresses in a report.
const MaxContested = 10

// Contested is an address that both servers of a pair had leased to different clients. One of them keeps it.
type Contested struct {
	Address netip.Addr `json:"address"`
	Keeps   Holder     `json:"keeps"`
	Loses   Holder     `json:"loses"`
}

// Holder is a client with a lease. MAC, ClientID and DUID are in hexadecimal digits.
type Holder struct {
	MAC      string `json:"mac,omitempty"`
	ClientID string `json:"clientId,omitempty"`
	DUID     string `json:"duid,omitempty"`
	HostName string `json:"hostName,omitempty"`
}

// Holder returns the client of a lease.
func (l *Lease) Holder() Holder { return Holder{l.MAC, l.ClientID, l.DUID, l.HostName} }

// Kind is the kind of an event.
type Kind string

// The kinds of events.
const (
	// Begin is a new lease of an address to a client. It ends any earlier lease of the address.
	Begin Kind = "BEGIN"
	// Change is a change of a lease other than its expiry: the host name, the port of the relay, or the reservation.
	Change Kind = "CHANGE"
	// Expire, Release and End end a lease: by time, by the client, or by an order of an operator. Conflict ends it because the address belongs
	// to another client now, for example by a reservation.
	Expire   Kind = "EXPIRE"
	Release  Kind = "RELEASE"
	End      Kind = "END"
	Conflict Kind = "CONFLICT"
	// Decline and Abandon make an address DHCP_ABANDONED until Expires: a client declined it, or it answered a probe.
	Decline Kind = "DECLINE"
	Abandon Kind = "ABANDON"
	// Clear makes an abandoned address free: by time, by an order, or by a lease.
	Clear Kind = "CLEAR"
	// Ordered reports that an order without effect was performed: the address had no lease.
	Ordered Kind = "ORDERED"
)

// Event is a begin, a change or an end of a lease.
type Event struct {
	Kind  Kind  `json:"kind"`
	Lease Lease `json:"lease"`
	// Order is the id of the order that caused the event; 0 if none did.
	Order int64 `json:"order,omitempty"`
}

// Lease is a lease of an address, or an abandoned address.
type Lease struct {
	// Network is the id of the network's resource, and Pool that of the range; 0 for an address outside of ranges.
	Network int64      `json:"network"`
	Pool    int64      `json:"pool,omitempty"`
	Address netip.Addr `json:"address"`
	// PrefixLength is the length of a delegated prefix; 0 for an address.
	PrefixLength int `json:"prefixLength,omitempty"`
	// Reservation is the id of the reserved address; 0 for a dynamic lease.
	Reservation int64 `json:"reservation,omitempty"`
	// Start is the beginning of the lease, and Expires its end, in Unix seconds. Infinite means that there is no end.
	Start   int64 `json:"start"`
	Expires int64 `json:"expires"`
	// HardwareType, MAC, ClientID, DUID and IAID identify the client. Identifiers are in hexadecimal digits.
	HardwareType uint8  `json:"hardwareType,omitempty"`
	MAC          string `json:"mac,omitempty"`
	ClientID     string `json:"clientId,omitempty"`
	DUID         string `json:"duid,omitempty"`
	IAID         uint32 `json:"iaid,omitempty"`
	// HostName is the name that the client sends, cleaned.
	HostName string `json:"hostName,omitempty"`
	// CircuitID, RemoteID, SubscriberID and InterfaceID are those of the relay, in hexadecimal digits. Relay is the address of the relay.
	CircuitID    string     `json:"circuitId,omitempty"`
	RemoteID     string     `json:"remoteId,omitempty"`
	SubscriberID string     `json:"subscriberId,omitempty"`
	InterfaceID  string     `json:"interfaceId,omitempty"`
	Relay        netip.Addr `json:"relay,omitzero"`
	// VendorClass is the vendor class identifier in hexadecimal digits. Parameters is the parameter request list.
	VendorClass string `json:"vendorClass,omitempty"`
	Parameters  []int  `json:"parameters,omitempty"`
	// Abandoned is true for an abandoned address, in a snapshot.
	Abandoned bool `json:"abandoned,omitempty"`
	// Stranger is true if the hardware address is that of a machine that uses the abandoned address without a lease.
	Stranger bool `json:"stranger,omitempty"`
}

// Infinite is the Expires of a lease without an end.
const Infinite = int64(1) << 62

// Renewals are the new expiries of leases in a network.
type Renewals struct {
	Network int64 `json:"network"`
	// Packed contains the addresses and expiries: see Pack.
	Packed []byte `json:"packed"`
}

// Snapshot is a part of a list of all leases. The manager replaces its leases of the server by the list after the part with Last.
type Snapshot struct {
	// ID identifies the list, and Part numbers its parts from 0. Requested is the number of the request in the content (dhcpdata.Server).
	ID        uint64 `json:"id"`
	Part      int    `json:"part"`
	Last      bool   `json:"last,omitempty"`
	Requested int64  `json:"requested,omitempty"`
	// Lost is true if the server has lost leases: those that the manager knows and the list lacks may last. The manager restores them.
	Lost   bool    `json:"lost,omitempty"`
	Leases []Lease `json:"leases"`
}

// Renewal is the new expiry of the lease of an address, in Unix seconds.
type Renewal struct {
	Address netip.Addr
	Expires int64
}

// MaxRenewals is the maximum number of renewals in a record, so that it is shorter than stream.MaxRecord.
const MaxRenewals = 1500

// MaxSnapshotPart is the maximum number of octets of the leases in a part of a snapshot, so that its record is shorter than
// stream.MaxRecord.
const MaxSnapshotPart = stream.MaxRecord - 4<<10

// Pack returns renewals in packed form. It sorts them by address. All addresses must be of one family.
func Pack(all []Renewal) []byte {
	slices.SortFunc(all, func(a, b Renewal) int { return a.Address.Compare(b.Address) })
	if len(all) == 0 {
		return nil
	}
	family := byte(6)
	if all[0].Address.Is4() {
		family = 4
	}
	out := []byte{family}
	var last [16]byte
	base := int64(0)
	for _, one := range all {
		octets := one.Address.As16()
		common := 0
		for common < 15 && octets[common] == last[common] {
			common++
		}
		out = append(out, byte(common))
		out = append(out, octets[common:]...)
		out = binary.AppendVarint(out, one.Expires-base)
		last, base = octets, one.Expires
	}
	return out
}

var errPacked = errors.New("the renewals are truncated")

// Unpack returns the renewals that Pack packed.
func Unpack(packed []byte) (all []Renewal, err error) {
	if len(packed) == 0 {
		return nil, nil
	}
	is4 := packed[0] == 4
	if !is4 && packed[0] != 6 {
		return nil, fmt.Errorf("renewals of the family %d do not exist", packed[0])
	}
	packed = packed[1:]
	var octets [16]byte
	expires := int64(0)
	for len(packed) > 0 {
		common := int(packed[0])
		if common > 15 || len(packed) < 1+16-common {
			return nil, errPacked
		}
		copy(octets[common:], packed[1:])
		packed = packed[1+16-common:]
		delta, n := binary.Varint(packed)
		if n <= 0 {
			return nil, errPacked
		}
		packed = packed[n:]
		expires += delta
		a := netip.AddrFrom16(octets)
		if is4 {
			if !a.Is4In6() {
				return nil, fmt.Errorf("%s is not an IPv4 address", a)
			}
			a = a.Unmap()
		}
		all = append(all, Renewal{Address: a, Expires: expires})
	}
	return all, nil
}

// Check returns a problem if the record is invalid.
func (r Record) Check() error {
	set := 0
	for _, given := range []bool{r.Event != nil, r.Renewals != nil, r.Snapshot != nil, r.Pair != nil} {
		if given {
			set++
		}
	}
	switch {
	case r.Journal == "" || len(r.Journal) > 64:
		return problem.Invalid("journal", "must have 1 to 64 characters")
	case r.Sequence == 0:
		return problem.Invalid("sequence", "must be at least 1")
	case r.Previous >= r.Sequence:
		return problem.Invalid("previous", "must be less than sequence")
	case r.At < 0 || r.At > 1000*maxTime:
		return problem.Invalid("at", "must be a time before the year 10000")
	case set != 1:
		return problem.Invalid("event", "exactly one of event, renewals, snapshot and pair is required")
	case r.Renewals != nil:
		if _, err := Unpack(r.Renewals.Packed); err != nil {
			return problem.Invalid("renewals.packed", "%v", err)
		}
		return nil
	case r.Pair != nil:
		if r.Pair.Partner <= 0 || len(r.Pair.Key) != 64 || len(r.Pair.State) > 64 || len(r.Pair.Contested) > MaxContested {
			return problem.Invalid("pair", "the state of a pair is invalid")
		}
		return nil
	case r.Snapshot != nil:
		for _, l := range r.Snapshot.Leases {
			if err := l.check(); err != nil {
				return problem.Invalid("snapshot.leases", "%v", err)
			}
		}
		return nil
	case !slices.Contains(Kinds, r.Event.Kind):
		return problem.Invalid("event.kind", "%q does not exist", r.Event.Kind)
	}
	if err := r.Event.Lease.check(); err != nil {
		return problem.Invalid("event.lease", "%v", err)
	}
	return nil
}

// Kinds are the kinds of events. Journals contain the index of a kind: new kinds are added at the end.
var Kinds = []Kind{Begin, Change, Expire, Release, End, Conflict, Decline, Abandon, Clear, Ordered}

// maxIdentifier is the maximum number of hexadecimal digits of an identifier. maxParameters is that of a parameter request list.
// maxTime is the last second of the year 9999: later times have no text (RFC 3339).
const (
	maxIdentifier = 512
	maxParameters = 255
	maxTime       = 253402300799
)

func (l Lease) check() error {
	switch {
	case !l.Address.IsValid() || l.Address.Zone() != "" || l.Address.Is4In6():
		return fmt.Errorf("%s is not an address", l.Address)
	case l.Network <= 0:
		return fmt.Errorf("%s has no network", l.Address)
	case l.Start < 0 || l.Expires < 0:
		return fmt.Errorf("%s has a negative time", l.Address)
	case l.Start > maxTime:
		return fmt.Errorf("%s begins after the year 9999", l.Address)
	case l.PrefixLength < 0 || l.PrefixLength > 128 || l.PrefixLength > 0 && l.Address.Is4():
		return fmt.Errorf("%s has the prefix length %d", l.Address, l.PrefixLength)
	case len(l.Parameters) > maxParameters:
		return fmt.Errorf("%s has %d parameters", l.Address, len(l.Parameters))
	}
	for _, text := range []string{l.MAC, l.ClientID, l.DUID, l.HostName, l.CircuitID, l.RemoteID, l.SubscriberID, l.InterfaceID,
		l.VendorClass} {
		if len(text) > maxIdentifier {
			return fmt.Errorf("%s has an identifier of %d characters", l.Address, len(text))
		}
	}
	for _, digits := range []string{l.ClientID, l.DUID} {
		if !isDigits(digits) {
			return fmt.Errorf("%s has an identifier that is not a list of octets in hexadecimal digits", l.Address)
		}
	}
	return nil
}
