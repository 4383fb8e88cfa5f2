package dhcp

import (
	"encoding/base64"
	"net/netip"
	"slices"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/wire/dhcpdata"
)

// nameStep is an update message (RFC 2136). If its prerequisites do not hold, the next step of the list is tried. after is sent once the
// message has succeeded; its own prerequisites may fail.
type nameStep struct {
	message *dns.Msg
	after   *dns.Msg
}

// updateMessage is an update message of a zone with methods for the records of one name.
type updateMessage struct {
	*dns.Msg
	n *dhcpdata.Names
}

func newMessage(zone string, n *dhcpdata.Names) updateMessage {
	m := new(dns.Msg)
	m.SetUpdate(zone)
	return updateMessage{m, n}
}

func header(name string, kind uint16, ttl uint32) dns.RR_Header {
	return dns.RR_Header{Name: name, Rrtype: kind, Class: dns.ClassINET, Ttl: ttl}
}

// address returns the address record of the name.
func (m updateMessage) address(a netip.Addr) dns.RR {
	if a.Is4() {
		return &dns.A{Hdr: header(m.n.Host, dns.TypeA, m.n.TTL), A: a.AsSlice()}
	}
	return &dns.AAAA{Hdr: header(m.n.Host, dns.TypeAAAA, m.n.TTL), AAAA: a.AsSlice()}
}

// guard returns the guard record with a value.
func (m updateMessage) guard(id dhcpdata.Hex) dns.RR {
	if m.n.Guard == dhcpdata.GuardInterim {
		return &dns.TXT{Hdr: header(m.n.Host, dns.TypeTXT, m.n.TTL), Txt: []string{string(id)}}
	}
	return &dns.DHCID{Hdr: header(m.n.Host, dns.TypeDHCID, m.n.TTL), Digest: base64.StdEncoding.EncodeToString(id)}
}

// set returns a record that represents the RRset of a type, for prerequisites and deletions.
func (m updateMessage) set(kind uint16) []dns.RR {
	return []dns.RR{&dns.ANY{Hdr: header(m.n.Host, kind, 0)}}
}

// guardTypes returns the type of the guard record, and that of the other style.
func guardTypes(n *dhcpdata.Names) (own, other uint16) {
	if n.Guard == dhcpdata.GuardInterim {
		return dns.TypeTXT, dns.TypeDHCID
	}
	return dns.TypeDHCID, dns.TypeTXT
}

// addressType returns the type of the address record of an address.
func addressType(a netip.Addr) uint16 {
	if a.Is4() {
		return dns.TypeA
	}
	return dns.TypeAAAA
}

// hostSteps returns the steps that register a name for an address (RFC 4703 section 5.3). others are further addresses of the same client
// and name, which stay.
func hostSteps(zone string, n *dhcpdata.Names, a netip.Addr, others []netip.Addr) (all []nameStep) {
	own, other := guardTypes(n)
	add := func(m updateMessage, id dhcpdata.Hex) {
		for _, one := range append([]netip.Addr{a}, others...) {
			m.Insert([]dns.RR{m.address(one)})
		}
		m.Insert([]dns.RR{m.guard(id)})
		all = append(all, nameStep{message: m.Msg})
	}
	replace := func(m updateMessage) {
		m.RemoveRRset(m.set(addressType(a)))
		m.RemoveRRset(m.set(own))
		add(m, n.IDs[0])
	}
	if n.Overwrite {
		replace(newMessage(zone, n))
		return all
	}
	m := newMessage(zone, n)
	m.NameNotUsed(m.set(dns.TypeANY))
	add(m, n.IDs[0])
	for _, id := range n.IDs { // the name is that of the client already
		m := newMessage(zone, n)
		m.Used([]dns.RR{m.guard(id)})
		m.RemoveRRset(m.set(addressType(a)))
		add(m, id)
	}
	if n.AnyGuard {
		m := newMessage(zone, n)
		m.RRsetUsed(m.set(own))
		replace(m)
	}
	if n.Mixed {
		m := newMessage(zone, n)
		m.RRsetNotUsed(m.set(own))
		m.RRsetNotUsed(m.set(addressType(a)))
		add(m, n.IDs[0])
	}
	if n.OtherGuard {
		m := newMessage(zone, n)
		m.RRsetNotUsed(m.set(own))
		m.RRsetUsed(m.set(other))
		replace(m)
	}
	return all
}

// hostRemoval returns the steps that remove an address of a name, and then the guard record of a name without addresses (RFC 4703 section
// 5.5). Records of another client stay.
func hostRemoval(zone string, n *dhcpdata.Names, a netip.Addr) (all []nameStep) {
	own, _ := guardTypes(n)
	remove := func(require func(m updateMessage)) {
		first, second := newMessage(zone, n), newMessage(zone, n)
		require(first)
		first.Remove([]dns.RR{first.address(a)})
		require(second)
		for _, kind := range []uint16{dns.TypeA, dns.TypeAAAA} {
			if !n.Mixed || kind == addressType(a) {
				second.RRsetNotUsed(second.set(kind))
			}
		}
		second.RemoveRRset(second.set(own))
		all = append(all, nameStep{first.Msg, second.Msg})
	}
	if n.Overwrite {
		remove(func(updateMessage) {})
		return all
	}
	for _, id := range n.IDs {
		remove(func(m updateMessage) { m.Used([]dns.RR{m.guard(id)}) })
	}
	return all
}

// pointerSteps returns the step that registers the PTR record of an address.
func pointerSteps(zone string, n *dhcpdata.Names) []nameStep {
	m := newMessage(zone, n)
	m.RemoveRRset([]dns.RR{pointer(n)})
	m.Insert([]dns.RR{pointer(n)})
	return []nameStep{{message: m.Msg}}
}

// pointerRemoval returns the step that removes the PTR record of an address, if it still has the name.
func pointerRemoval(zone string, n *dhcpdata.Names) []nameStep {
	m := newMessage(zone, n)
	m.Used([]dns.RR{pointer(n)})
	m.RemoveRRset([]dns.RR{pointer(n)})
	return []nameStep{{message: m.Msg}}
}

func pointer(n *dhcpdata.Names) dns.RR {
	return &dns.PTR{Hdr: header(n.Reverse, dns.TypePTR, n.TTL), Ptr: n.Host}
}

// prerequisiteCodes are the response codes of prerequisites that do not hold.
var prerequisiteCodes = []int{dns.RcodeYXDomain, dns.RcodeYXRrset, dns.RcodeNXRrset, dns.RcodeNameError}

// failsPrerequisite reports whether a response code states that a prerequisite does not hold.
func failsPrerequisite(code int) bool { return slices.Contains(prerequisiteCodes, code) }
