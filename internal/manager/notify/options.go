package notify

// Options report how the manager can send notifications.
type Options struct {
	// Mail means that there is a mail server, Traps that there is a receiver of SNMP traps.
	Mail, Traps bool
}
