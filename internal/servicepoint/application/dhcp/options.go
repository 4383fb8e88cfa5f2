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
	names := map[uint8]string{0: "BOOTP", 1: "DISCOVER", 2: "OFFER", 3: "REQUEST", 4: "DECLINE", 5: "ACK", 6: "NAK", 7: "RELEASE", 8: "INFORM",
		dhcpdata.BOOTP: "BOOTP"}
	if name, ok := names[kind]; ok {
		return name
	}
	return "OTHER"
}
