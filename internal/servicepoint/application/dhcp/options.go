package dhcp

// Codes of the options of DHCPv4 that the engine uses.
const (
	optParameters  = 55
	optMaxSize     = 57
	optVendorClass = 60
	optClientID    = 61
	optRelay       = 82
)
