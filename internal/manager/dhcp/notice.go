package dhcp

import (
	"fmt"
	"strings"
	"time"

	"portolan/internal/engine/event"
	"portolan/internal/wire/dhcplease"
)

// name adds an event about the names of clients in DNS.
func (w *refusedWriter) name(n dhcplease.NameNotice) error {
	zone, host, reason := strings.TrimSuffix(cleaned(n.Zone), "."), strings.TrimSuffix(cleaned(n.Name), "."), cleaned(n.Reason)
	e := event.Event{EventType: "WARNING", Category: "DDNS_NOTIFICATION", SourceName: w.server.Name}
	switch n.Kind {
	case dhcplease.ZoneDelayed:
		e.Message = fmt.Sprintf("DHCP server %s cannot update names of clients in zone %s: %s. The updates wait on its disk.", w.server.Name,
			zone, reason)
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

// clone adds an event about a client whose identifier two machines use.
func (w *refusedWriter) clone(c dhcplease.Clone) error {
	parent, _, err := w.parentOf(c.Network)
	if err != nil {
		return err
	}
	service, identifier := "DHCPv4", "client identifier "+strings.ToUpper(c.ClientID)
	advice := "Give each machine its own, or set ignore-client-uids."
	if c.DUID != "" {
		service, identifier, advice = "DHCPv6", "DUID "+strings.ToUpper(c.DUID), "Remove the stored DUID of the clone."
	}
	return event.Add(w.tx, event.Event{EventType: "WARNING", Category: "DHCP_ALERT", Subcategory: service, SourceName: w.server.Name,
		Message: fmt.Sprintf("The machines %s and %s have the same %s, and get the same address %s. %s", hardwareText(c.MACs[0]),
			hardwareText(c.MACs[1]), identifier, c.Address, advice)}, parent)
}

// clockStep adds an event about a step of the clock of a server.
func (w *refusedWriter) clockStep(s dhcplease.ClockStep) error {
	step := time.Duration(max(min(s.Seconds, maxStepShown), -maxStepShown)) * time.Second
	direction := "forward"
	if step < 0 {
		step, direction = -step, "back"
	}
	return event.Add(w.tx, event.Event{EventType: "WARNING", Category: "DHCP_ALERT", SourceName: w.server.Name,
		Message: fmt.Sprintf("The clock of DHCP server %s was set %s by %s. Leases do not end earlier. Synchronize the clock by NTP.",
			w.server.Name, direction, step)}, w.server.ID)
}

// maxStepShown is the largest step of a clock that an event shows, in seconds: 100 years.
const maxStepShown = 100 * 365 * 86400
