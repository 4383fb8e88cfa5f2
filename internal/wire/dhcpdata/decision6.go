package dhcpdata

import (
	"encoding/binary"
	"net/netip"

	"portolan/internal/base/dhcpmsg"
)

// Facts6 are the facts about a DHCPv6 message that a decision depends on.
type Facts6 struct {
	Message *dhcpmsg.Message6
	// Interface contains the prefixes of the interface that received the message, for messages without a relay.
	Interface []netip.Prefix
	// Local are the addresses of the server on this machine, which are never leased.
	Local []netip.Addr
	// Explain records the steps of the decision.
	Explain bool
}

// Sent6 is an option of a reply with the object that it comes from.
type Sent6 struct {
	Code  uint16
	Name  string
	Value []byte
	From  Source
}

// Status6 is a status code (RFC 9915 section 21.13).
type Status6 uint16

// The status codes.
const (
	Success6       Status6 = 0
	NoAddrsAvail6  Status6 = 2
	NoBinding6     Status6 = 3
	NotOnLink6     Status6 = 4
	NoPrefixAvail6 Status6 = 6
	noStatus6      Status6 = 0xffff
)

// Change6 is a change of a lease that a decision requires: an address, or a delegated prefix.
type Change6 struct {
	Action  Action
	Address netip.Addr
	// PrefixLength is the length of a delegated prefix; 0 for an address.
	PrefixLength int
	// Network, Pool and Reservation are the ids of the objects that the address comes from; 0 if there are none.
	Network, Pool, Reservation int64
	// Client is the identity that holds the lease: see Identity6. IAID is the number of the identity association.
	Client string
	IAID   uint32
	// Preferred and Valid are the lifetimes in seconds; Infinite for one without an end. Start and Expires are the times of the lease in
	// Unix seconds.
	Preferred, Valid uint32
	Start, Expires   int64
	// Wanted is the end of the lease without the limit of a failover pair.
	Wanted int64
	// AbandonSeconds is the time that a declined address is not leased.
	AbandonSeconds uint32
	// Names are the records in DNS for the address; nil if there are none.
	Names *Names
}

// Decision6 is the result of Decide6.
type Decision6 struct {
	// Reply is the type of the reply, Advertise6 or Reply6 of package dhcpmsg; 0 if there is none.
	Reply uint8
	// Reason is the reason for no reply, or for a reply without addresses.
	Reason Reason
	// Network is the id of the network of the client; 0 if there is none.
	Network int64
	// Changes are the changes of leases. A change with ActCommit is stored before the reply is sent.
	Changes []Change6
	// Exhausted are the ids of the ranges that were searched for a free address or prefix and have none.
	Exhausted []int64
	// Options are the options of the reply in order.
	Options []Sent6
	// DUID identifies the client. Hardware is its hardware address, nil if it is not known. HostName is the name that it sends, cleaned.
	DUID         []byte
	HardwareType uint16
	Hardware     []byte
	HostName     string
	// Steps explain the decision, if Facts6.Explain is set.
	Steps []Step
}

// association is an identity association of a message: an IA_NA, IA_PD or IA_TA.
type association struct {
	code   uint16
	iaid   uint32
	hints  []hint
	t1, t2 uint32
}

// hint is an address or prefix that a client names in an association. length is 0 for an address.
type hint struct {
	address          netip.Addr
	length           int
	preferred, valid uint32
}

// maxAssociations is the maximum number of associations of a message, and of addresses in one.
const maxAssociations = 32

// readAssociations reads the associations of a message. wrong reports an association that is malformed, that exists twice, or one too many.
func readAssociations(options dhcpmsg.Options6) (all []association, wrong bool) {
	type key struct {
		code uint16
		iaid uint32
	}
	seen := map[key]bool{}
	for _, o := range options {
		head := 12
		switch o.Code {
		case dhcpmsg.OptIANA6, dhcpmsg.OptIAPD6:
		case dhcpmsg.OptIATA6:
			head = 4
		case dhcpmsg.OptIAAddress6, dhcpmsg.OptIAPrefix6: // only inside of an association
			return nil, true
		default:
			continue
		}
		if len(o.Data) < head || len(all) == maxAssociations {
			return nil, true
		}
		a := association{code: o.Code, iaid: binary.BigEndian.Uint32(o.Data)}
		if head == 12 {
			a.t1, a.t2 = binary.BigEndian.Uint32(o.Data[4:]), binary.BigEndian.Uint32(o.Data[8:])
		}
		if seen[key{a.code, a.iaid}] {
			return nil, true
		}
		seen[key{a.code, a.iaid}] = true
		inner, err := dhcpmsg.ParseOptions6(o.Data[head:])
		if err != nil {
			return nil, true
		}
		if a.hints, wrong = readHints(a.code, inner); wrong {
			return nil, true
		}
		all = append(all, a)
	}
	return all, false
}

// readHints reads the addresses or prefixes in an association.
func readHints(code uint16, inner dhcpmsg.Options6) (all []hint, wrong bool) {
	for _, o := range inner {
		var h hint
		switch {
		case o.Code == dhcpmsg.OptIAAddress6 && code != dhcpmsg.OptIAPD6 && len(o.Data) >= 24:
			h = hint{address: netip.AddrFrom16([16]byte(o.Data)), preferred: binary.BigEndian.Uint32(o.Data[16:]),
				valid: binary.BigEndian.Uint32(o.Data[20:])}
		case o.Code == dhcpmsg.OptIAPrefix6 && code == dhcpmsg.OptIAPD6 && len(o.Data) >= 25:
			h = hint{address: netip.AddrFrom16([16]byte(o.Data[9:])), length: int(o.Data[8]), preferred: binary.BigEndian.Uint32(o.Data),
				valid: binary.BigEndian.Uint32(o.Data[4:])}
			if h.length > 128 {
				return nil, true
			}
			if h.length == 0 { // no wish for a length
				continue
			}
			h.address = netip.PrefixFrom(h.address, h.length).Masked().Addr()
		case o.Code == dhcpmsg.OptIAAddress6 || o.Code == dhcpmsg.OptIAPrefix6 || o.Code == dhcpmsg.OptIANA6 || o.Code == dhcpmsg.OptIAPD6 ||
			o.Code == dhcpmsg.OptIATA6:
			return nil, true // truncated, or in a wrong association
		default:
			continue
		}
		if len(all) == maxAssociations {
			return nil, true
		}
		if h.preferred > h.valid { // no wish for lifetimes
			h.preferred, h.valid = 0, 0
		}
		all = append(all, h)
	}
	return all, false
}

// Identity6 returns the identity that holds the leases of an identity association: its kind, number and DUID.
func Identity6(prefix bool, iaid uint32, duid []byte) string {
	kind := byte('n')
	if prefix {
		kind = 'p'
	}
	return string(binary.BigEndian.AppendUint32([]byte{kind}, iaid)) + string(duid)
}

// ParseIdentity6 returns the number and the DUID of an identity that Identity6 returned. ok is false for another text, such as the identity
// of a machine without a lease.
func ParseIdentity6(client string) (iaid uint32, duid []byte, ok bool) {
	const iaidAt, duidAt = 1, 5
	if len(client) <= duidAt || IsStranger(client) {
		return 0, nil, false
	}
	return binary.BigEndian.Uint32([]byte(client[iaidAt:duidAt])), []byte(client[duidAt:]), true
}

// ServerDUID returns the identifier of the server; empty if it has none and serves no network of IPv6.
func (c *Content) ServerDUID() []byte { return c.duid }
