package dhcp

import (
	"net/netip"
	"slices"

	"portolan/internal/base/dhcpmsg"
	"portolan/internal/wire/dhcpdata"
)

// foreignSource is the reason for messages without a relay that do not come from the link of the server or from a client with a lease.
const foreignSource = "foreign-source"

// isStranger reports whether a message without a relay can come from anywhere: it is not a broadcast, its source is not on the link, and is
// not the address that the client names. A reply would also reach a victim whose address the message names.
func isStranger(in incoming, f *dhcpdata.Facts, prefixes []netip.Prefix) bool {
	source := in.from.Addr()
	if f.Relay.IsValid() || source.IsLoopback() {
		return false
	}
	onLink := func(a netip.Addr) bool {
		return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	if f.Client.IsValid() && f.Client != source && !onLink(f.Client) { // replies are sent to it
		return true
	}
	return f.Unicast && f.Client != source && !onLink(source)
}

// isStranger6 reports whether a message without a relay can come from anywhere. Clients that do not know the server send to the group of
// servers, so these messages to an address of the server are discarded (RFC 9915 section 16).
func isStranger6(m *dhcpmsg.Message6, source, to netip.Addr, prefixes []netip.Prefix) bool {
	if len(m.Relays) > 0 || source.IsLoopback() {
		return false
	}
	switch m.Type {
	case dhcpmsg.Solicit6, dhcpmsg.Confirm6, dhcpmsg.Rebind6, dhcpmsg.InformationRequest6:
		if !to.IsMulticast() {
			return true
		}
	}
	return !source.IsLinkLocalUnicast() && !slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(source) })
}
