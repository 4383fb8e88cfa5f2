package notify

// Options are the ways in which the manager can send notifications.
type Options struct {
	// Mail reports a mail server, Traps a receiver of SNMP traps.
	Mail, Traps bool
}
