package dhcpdata

import (
	"net/netip"
	"strconv"
)

// Facts are the facts about a DHCPv4 message that a decision depends on.
type Facts struct {
	// Type is the message type (option 53); 0 for BOOTP.
	Type uint8
	// HardwareType, Hardware, Secs, Broadcast, Client, Relay are htype, chaddr, secs, the broadcast flag, ciaddr and giaddr. Client and Relay
	// are not valid if they are zero.
	HardwareType uint8
	Hardware     []byte
	Secs         uint16
	Broadcast    bool
	Client       netip.Addr
	Relay        netip.Addr
	// Options are the options by code, joined (RFC 3396).
	Options map[uint8][]byte
	// Packet is the message, for expressions; it may be nil.
	Packet []byte
	// Interface contains the prefixes of the interface that received the message, for messages without a relay.
	Interface []netip.Prefix
	// Unicast is true for a message sent to an address of the server.
	Unicast bool
	// Local are the addresses of the server on this machine, which count as its identifiers.
	Local []netip.Addr
	// Explain records the steps of the decision.
	Explain bool

	known   bool
	stashed []byte
}

// isBOOTP reports whether the message is one of BOOTP, without a message type.
func (f *Facts) isBOOTP() bool { return f.Type == 0 }

// option returns an option, or a sub-option of the relay information.
func (f *Facts) option(code, sub uint8) ([]byte, bool) {
	data, ok := f.Options[code]
	if !ok && code == optRelay && f.stashed != nil {
		data, ok = f.stashed, true
	}
	if !ok || sub == 0 {
		return data, ok
	}
	return SubOption(data, sub)
}

// SubOption returns the first sub-option of relay information (RFC 3046). Truncated sub-options do not exist.
func SubOption(data []byte, code uint8) ([]byte, bool) {
	for len(data) >= 2 && len(data) >= 2+int(data[1]) {
		length := int(data[1])
		if data[0] == code {
			return data[2 : 2+length], true
		}
		data = data[2+length:]
	}
	return nil, false
}

// appendNumber appends a number in a base.
func appendNumber(to []byte, n uint64, base int) []byte { return strconv.AppendUint(to, n, base) }
