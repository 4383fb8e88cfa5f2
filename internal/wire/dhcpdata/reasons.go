package dhcpdata

// ReasonTexts are the meanings of the reasons, for docs/dhcp.md and for explanations.
func ReasonTexts() map[Reason]string {
	return map[Reason]string{
		NoNetwork:         "No served network contains the relay, or an address of the interface.",
		BadMessage:        "The message lacks an identity or an address, or has an invalid one.",
		OtherServer:       "The client has chosen another server.",
		UnknownVSS:        "The relay names a virtual subnet (RFC 6607), which is not supported.",
		DeniedPool:        "The MAC pool of the client is denied, or is not among the allowed ones.",
		DeniedClass:       "A class of the client is denied, or none is among the allowed ones.",
		UnknownClient:     "Only clients with a reservation are served.",
		BootingOff:        "The service option booting is false for the client.",
		BOOTPOff:          "BOOTP is not answered, or the client has no reservation and dynamic-bootp is off.",
		MinSecs:           "The client has not tried for min-secs yet.",
		ClassLimit:        "The class or subclass of the client has as many leases as dhcp-class-lease-limit.",
		Exhausted:         "No address of the ranges is free.",
		NoRange:           "The network has no range, and the client no reservation.",
		WrongNetwork:      "The address is not one of the client's network.",
		NotLeased:         "The server does not know the client.",
		LeasedToOther:     "The address is leased or offered to another client, or abandoned.",
		ReservedForOther:  "The address is reserved for another client.",
		HasReservation:    "Another address is reserved for the client.",
		NotServedAddress:  "The address is in no range.",
		EndedByOperator:   "An operator has ended the lease.",
		DeclinesOff:       "The service option declines is false.",
		NotHolder:         "The client does not hold the address.",
		IPv6OnlyPreferred: "The client prefers IPv6 only (RFC 8925), and gets no address.",
		NoAutoConfigure:   "The client gets no address, but the option about automatic configuration (RFC 2563).",
		OwnedByPartner:    "The address belongs to the partner of the failover pair, which may have leased it.",
	}
}
