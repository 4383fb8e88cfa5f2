package dhcpmsg

import (
	"encoding/binary"
	"errors"
	"net/netip"
)

// The types of DHCPv6 messages (RFC 9915 section 7.3).
const (
	Solicit6 uint8 = iota + 1
	Advertise6
	Request6
	Confirm6
	Renew6
	Rebind6
	Reply6
	Release6
	Decline6
	Reconfigure6
	InformationRequest6
	RelayForward6
	RelayReply6
)

// Codes of options of DHCPv6.
const (
	OptClientID6      uint16 = 1
	OptServerID6      uint16 = 2
	OptIANA6          uint16 = 3
	OptIATA6          uint16 = 4
	OptIAAddress6     uint16 = 5
	OptRequest6       uint16 = 6
	OptPreference6    uint16 = 7
	OptElapsed6       uint16 = 8
	OptRelayMessage6  uint16 = 9
	OptStatus6        uint16 = 13
	OptRapidCommit6   uint16 = 14
	OptVendorOptions6 uint16 = 17
	OptInterfaceID6   uint16 = 18
	OptIAPD6          uint16 = 25
	OptIAPrefix6      uint16 = 26
	OptRemoteID6      uint16 = 37
	OptSubscriberID6  uint16 = 38
	OptFQDN6          uint16 = 39
	OptLinkLayer6     uint16 = 79
	OptSolMaxRT6      uint16 = 82
	OptInfMaxRT6      uint16 = 83
	OptRelayPort6     uint16 = 135
	optionHeader6            = 4
	relayHeader6             = 34
	messageHeader6           = 4
	maxRelays6               = 8
	maxHopCount6             = 32
	maxOptions6              = 1000
	maxDUID6                 = 130
	minDUID6                 = 3
)

// Option6 is an option of a DHCPv6 message.
type Option6 struct {
	Code uint16
	Data []byte
}

// Options6 are the options of a message or option, in order.
type Options6 []Option6

// Find returns the first option with a code.
func (o Options6) Find(code uint16) ([]byte, bool) {
	for _, one := range o {
		if one.Code == code {
			return one.Data, true
		}
	}
	return nil, false
}

// Count returns the number of options with a code.
func (o Options6) Count(code uint16) (n int) {
	for _, one := range o {
		if one.Code == code {
			n++
		}
	}
	return n
}

// Message6 is a DHCPv6 message of a client. Its slices refer to the packet.
type Message6 struct {
	Type        uint8
	Transaction [3]byte
	Options     Options6
	// Relays are the relay agents that forwarded the message, the one next to the server first.
	Relays []Relay6
}

// Relay6 is the header and the options of a relay agent.
type Relay6 struct {
	Hops       uint8
	Link, Peer netip.Addr
	// Options are the options of the relay without the relayed message.
	Options Options6
}

// Errors of Parse6, beside those of Parse. Each one is a reason for a message without a reply.
var (
	ErrRelays  = errors.New("relay-depth")
	ErrNoInner = errors.New("no-relayed-message")
	ErrDUID    = errors.New("client-duid")
	ErrTwice   = errors.New("option-twice")
	ErrMany    = errors.New("too-many-options")
)

// Parse6 reads a message of a client, also inside of up to eight messages of relay agents.
func Parse6(packet []byte) (*Message6, error) {
	m := &Message6{}
	for {
		if len(packet) < messageHeader6 {
			return nil, ErrShort
		}
		if packet[0] != RelayForward6 {
			break
		}
		if len(packet) < relayHeader6 {
			return nil, ErrShort
		}
		if len(m.Relays) == maxRelays6 || packet[1] > maxHopCount6 {
			return nil, ErrRelays
		}
		r := Relay6{Hops: packet[1], Link: netip.AddrFrom16([16]byte(packet[2:])), Peer: netip.AddrFrom16([16]byte(packet[18:]))}
		options, err := ParseOptions6(packet[relayHeader6:])
		if err != nil {
			return nil, err
		}
		if options.Count(OptRelayMessage6) > 1 {
			return nil, ErrTwice
		}
		inner, ok := options.Find(OptRelayMessage6)
		if !ok {
			return nil, ErrNoInner
		}
		for _, o := range options {
			if o.Code != OptRelayMessage6 {
				r.Options = append(r.Options, o)
			}
		}
		m.Relays, packet = append(m.Relays, r), inner
	}
	m.Type, m.Transaction = packet[0], [3]byte(packet[1:])
	switch m.Type {
	case Solicit6, Request6, Confirm6, Renew6, Rebind6, Release6, Decline6, InformationRequest6:
	default:
		return nil, ErrType
	}
	var err error
	if m.Options, err = ParseOptions6(packet[messageHeader6:]); err != nil {
		return nil, err
	}
	for _, code := range []uint16{OptClientID6, OptServerID6, OptRequest6} {
		if m.Options.Count(code) > 1 {
			return nil, ErrTwice
		}
	}
	if duid, ok := m.Options.Find(OptClientID6); ok && (len(duid) < minDUID6 || len(duid) > maxDUID6) {
		return nil, ErrDUID
	}
	return m, nil
}

// ParseOptions6 reads a sequence of options.
func ParseOptions6(data []byte) (all Options6, err error) {
	for len(data) > 0 {
		if len(data) < optionHeader6 {
			return nil, ErrTruncated
		}
		code, length := binary.BigEndian.Uint16(data), int(binary.BigEndian.Uint16(data[2:]))
		if len(data) < optionHeader6+length {
			return nil, ErrTruncated
		}
		if len(all) == maxOptions6 {
			return nil, ErrMany
		}
		all = append(all, Option6{Code: code, Data: data[optionHeader6 : optionHeader6+length : optionHeader6+length]})
		data = data[optionHeader6+length:]
	}
	return all, nil
}

// AppendOption6 appends an option.
func AppendOption6(to []byte, code uint16, data []byte) []byte {
	to = binary.BigEndian.AppendUint16(to, code)
	to = binary.BigEndian.AppendUint16(to, uint16(len(data))) //nolint:gosec // options have at most 65,535 octets
	return append(to, data...)
}

// Write6 returns the reply of a type to a message: with the options, and inside of the replies to the relay agents (RFC 9915 section 19.3).
func Write6(m *Message6, kind uint8, options Options6) []byte {
	packet := append([]byte{kind}, m.Transaction[:]...)
	for _, o := range options {
		packet = AppendOption6(packet, o.Code, o.Data)
	}
	for i := len(m.Relays) - 1; i >= 0; i-- {
		r := m.Relays[i]
		outer := make([]byte, 0, relayHeader6+len(packet)+64)
		outer = append(outer, RelayReply6, r.Hops)
		outer = append(outer, r.Link.AsSlice()...)
		outer = append(outer, r.Peer.AsSlice()...)
		// RFC 8357 section 5.2: the source port option is returned. RFC 9915 section 19.3: the interface id as well.
		for _, code := range []uint16{OptInterfaceID6, OptRelayPort6} {
			if data, ok := r.Options.Find(code); ok {
				outer = AppendOption6(outer, code, data)
			}
		}
		packet = AppendOption6(outer, OptRelayMessage6, packet)
	}
	return packet
}

// RelayPort6 returns the port that the reply to a relay agent is sent to: 547, or the source port of the message if the relay next to the
// server asks for it (RFC 8357).
func (m *Message6) RelayPort6(source uint16) uint16 {
	if len(m.Relays) > 0 {
		if _, ok := m.Relays[0].Options.Find(OptRelayPort6); ok {
			return source
		}
	}
	return serverPort6
}

// serverPort6 is the port of servers and relay agents of DHCPv6.
const serverPort6 = 547

// LinkLayer6 returns the hardware type and address of the client: from the relay next to the client (RFC 6939), or else from a DUID that
// contains one (types DUID-LLT and DUID-LL). hardware is nil if there is none.
func (m *Message6) LinkLayer6() (kind uint16, hardware []byte) {
	if n := len(m.Relays); n > 0 {
		if data, ok := m.Relays[n-1].Options.Find(OptLinkLayer6); ok && len(data) > 2 && len(data) <= 18 {
			return binary.BigEndian.Uint16(data), data[2:]
		}
	}
	duid, _ := m.Options.Find(OptClientID6)
	const linkLayerTime, linkLayer = 1, 3
	switch {
	case len(duid) > 8 && binary.BigEndian.Uint16(duid) == linkLayerTime:
		return binary.BigEndian.Uint16(duid[2:]), duid[8:]
	case len(duid) > 4 && binary.BigEndian.Uint16(duid) == linkLayer:
		return binary.BigEndian.Uint16(duid[2:]), duid[4:]
	}
	return 0, nil
}
