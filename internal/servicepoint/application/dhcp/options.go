package dhcp

import "portolan/internal/wire/dhcpdata"

// Codes of the options of DHCPv4 that the engine uses.
const (
	optParameters  = 55
	optMaxSize     = 57
	optVendorClass = 60
	optClientID    = 61
	optRelay       = 82
)

// messageName returns the name of a message type.
func messageName(kind uint8) string {
	if kind == dhcpdata.BOOTP {
		kind = 0
	}
	if int(kind) < len(messageNames) {
		return messageNames[kind]
	}
	return "OTHER"
}

// messageNames are the names of messages by their type.
var messageNames = [...]string{"BOOTP", "DISCOVER", "OFFER", "REQUEST", "DECLINE", "ACK", "NAK", "RELEASE", "INFORM"}
