// Package dhcpmsg reads the DHCPv4 messages of clients and writes the replies of a server (RFC 2131, 2132, 3396). It keeps the order of
// options, overloads the fields file and sname, and obeys the maximum message size of the client. It is pure.
package dhcpmsg

import (
	"encoding/binary"
	"errors"
	"net/netip"
)

// Message is a message of a client. Its slices refer to the packet where possible.
type Message struct {
	HardwareType, HardwareLength uint8
	Hops                         uint8
	Transaction                  uint32
	Secs, Flags                  uint16
	// Client, Yours, Server and Relay are ciaddr, yiaddr, siaddr and giaddr; they may be 0.0.0.0.
	Client, Yours, Server, Relay netip.Addr
	// Hardware is chaddr without its padding, and Padded with it.
	Hardware []byte
	Padded   [16]byte
	// Options are the options by code. Parts of an option are joined. It is nil for a BOOTP message, whose vendor field is not used: without
	// the magic cookie, and with zeros in its place.
	Options map[uint8][]byte
	// Type is the message type; 0 for BOOTP.
	Type uint8
}

// Errors of Parse. Each one is a reason for a message without a reply.
var (
	ErrShort     = errors.New("short")
	ErrOperation = errors.New("not-a-request")
	ErrHardware  = errors.New("hardware-length")
	ErrHops      = errors.New("hops")
	ErrCookie    = errors.New("magic-cookie")
	ErrTruncated = errors.New("truncated-option")
	ErrNoEnd     = errors.New("no-end-option")
	ErrType      = errors.New("message-type")
)

// Sizes and values of a message.
const (
	headerSize    = 236
	cookie        = 0x63825363
	maxHops       = 16
	request       = 1
	bootReply     = 2
	snameAt       = 44
	snameSize     = 64
	fileAt        = 108
	fileSize      = 128
	hardwareAt    = 28
	optionsAt     = headerSize + 4
	padOption     = 0
	overload      = 52
	messageType   = 53
	endOption     = 255
	relayOption   = 82
	overloadFile  = 1
	overloadSName = 2
	// BroadcastFlag is the flag of clients that cannot receive unicast.
	BroadcastFlag = 0x8000
)

// Parse reads a message of a client.
func Parse(packet []byte) (*Message, error) {
	m := &Message{}
	switch {
	case len(packet) < headerSize:
		return nil, ErrShort
	case packet[0] != request:
		return nil, ErrOperation
	case packet[2] > 16:
		return nil, ErrHardware
	case packet[3] > maxHops:
		return nil, ErrHops
	}
	m.HardwareType, m.HardwareLength, m.Hops = packet[1], packet[2], packet[3]
	m.Transaction = binary.BigEndian.Uint32(packet[4:])
	m.Secs, m.Flags = binary.BigEndian.Uint16(packet[8:]), binary.BigEndian.Uint16(packet[10:])
	for i, a := range []*netip.Addr{&m.Client, &m.Yours, &m.Server, &m.Relay} {
		*a = netip.AddrFrom4([4]byte(packet[12+4*i:]))
	}
	m.Hardware = packet[hardwareAt : hardwareAt+int(m.HardwareLength)]
	copy(m.Padded[:], packet[hardwareAt:hardwareAt+16])
	if len(packet) < optionsAt {
		return m, nil // BOOTP
	}
	switch binary.BigEndian.Uint32(packet[headerSize:]) {
	case cookie:
	case 0:
		return m, nil // BOOTP
	default:
		return nil, ErrCookie
	}
	m.Options = make(map[uint8][]byte, countOptions(packet[optionsAt:]))
	if err := m.parseOptions(packet[optionsAt:], false); err != nil {
		return nil, err
	}
	// RFC 3396 section 5: the options, then file, then sname. An overload option in an overloaded field has no meaning.
	if o := m.Options[overload]; len(o) == 1 {
		if o[0]&overloadFile != 0 {
			if err := m.parseOptions(packet[fileAt:fileAt+fileSize], true); err != nil {
				return nil, err
			}
		}
		if o[0]&overloadSName != 0 {
			if err := m.parseOptions(packet[snameAt:snameAt+snameSize], true); err != nil {
				return nil, err
			}
		}
	}
	if t, ok := m.Options[messageType]; ok {
		if len(t) != 1 || t[0] == 0 {
			return nil, ErrType
		}
		m.Type = t[0]
	}
	return m, nil
}

// countOptions returns the number of options in a field, for the size of the map: one of more than eight entries takes four times the
// memory.
func countOptions(field []byte) (n int) {
	for at := 0; at+1 < len(field) && field[at] != endOption; {
		if field[at] == padOption {
			at++
			continue
		}
		n++
		at += 2 + int(field[at+1])
	}
	return n
}

// parseOptions reads a field of options. The end of an overloaded field may lack an END option.
func (m *Message) parseOptions(field []byte, overloaded bool) error {
	for at := 0; at < len(field); {
		code := field[at]
		at++
		switch {
		case code == endOption:
			return nil
		case code == padOption:
			continue
		case at == len(field):
			return ErrTruncated
		}
		end := at + 1 + int(field[at])
		if end > len(field) {
			return ErrTruncated
		}
		value := field[at+1 : end : end]
		if before, ok := m.Options[code]; ok {
			value = append(before, value...) // before has no capacity left, so this copies
		}
		m.Options[code] = value
		at = end
	}
	if overloaded {
		return nil
	}
	return ErrNoEnd
}
