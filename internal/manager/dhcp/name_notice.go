package dhcp

import (
	"fmt"
	"strings"

	"portolan/internal/engine/event"
	"portolan/internal/wire/dhcplease"
)

// name adds an event about the names of clients in DNS.
func (w *refusedWriter) name(n dhcplease.NameNotice) error {
	zone, host, reason := strings.TrimSuffix(cleaned(n.Zone), "."), strings.TrimSuffix(cleaned(n.Name), "."), cleaned(n.Reason)
	e := event.Event{EventType: "WARNING", Category: "DDNS_NOTIFICATION", SourceName: w.server.Name}
	switch n.Kind {
	case dhcplease.ZoneDelayed:
		e.Message = fmt.Sprintf("DHCP server %s cannot update names of clients in zone %s: %s. The updates wait on its disk.", w.server.Name, zone,
			reason)
	case dhcplease.ZoneResumed:
		e.EventType = "INFO"
		e.Message = fmt.Sprintf("DHCP server %s updates names of clients in zone %s again.", w.server.Name, zone)
	case dhcplease.NameConflict:
		e.Message = fmt.Sprintf("The client with the address %s did not get the name %s: another client has it.", n.Address, host)
	case dhcplease.NameRefused:
		e.Message = fmt.Sprintf("A name server refused to update the name %s of the address %s in zone %s: %s.", host, n.Address, zone, reason)
	}
	if n.Address.IsValid() {
		e.Subcategory = "DHCPv4"
		if n.Address.Is6() {
			e.Subcategory = "DHCPv6"
		}
	}
	return event.Add(w.tx, e, w.server.ID)
}
