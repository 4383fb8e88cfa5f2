package dhcpdata

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// reply fills in the options and the fields of a reply. The address and the lease time are set already.
func (d *decider) reply(all layers, c choice) {
	out := d.d
	out.ServerID = d.identifier(all)
	out.Broadcast = d.f.Broadcast || all.flag("always-broadcast", false)
	d.bootFields(all)
	if d.f.isBOOTP() && d.f.Options == nil && !all.flag("always-reply-rfc1048", false) {
		return // the client sent no options
	}
	codes := d.listCodes(all)
	sent := make([]Sent, 0, len(codes)+ownSent)
	add := func(code uint8, name string, value []byte, from Source) {
		sent = append(sent, Sent{Code: code, Name: name, Value: value, From: from})
	}
	if out.Reply != BOOTP {
		add(optServerID, "dhcp-server-identifier", out.ServerID.AsSlice(), sourceOf(all, "server-identifier"))
	}
	if out.LeaseTime > 0 && out.Reply != BOOTP {
		add(optLeaseTime, "dhcp-lease-time", binary.BigEndian.AppendUint32(nil, out.LeaseTime), sourceOf(all, "default-lease-time"))
		sent = d.timers(all, sent)
	}
	for _, code := range codes {
		if slices.ContainsFunc(sent, func(s Sent) bool { return s.Code == code }) {
			continue
		}
		if s, ok := d.option(all, c, code); ok {
			sent = append(sent, s)
		}
	}
	out.Options = d.echo(all, sent)
	if d.f.Explain {
		for _, s := range out.Options {
			d.note(s.From, "option", "%d %s: %x", s.Code, s.Name, s.Value)
		}
	}
}

func sourceOf(all layers, service string) Source {
	if s := all.service(service); s != nil {
		return s.From
	}
	return Source{}
}

// bootFields sets siaddr, file and sname.
func (d *decider) bootFields(all layers) {
	out := d.d
	if s := all.service("next-server"); s != nil {
		out.NextServer = s.address
	} else if o := all.option(optionKey{code: optTFTPServer}); o != nil {
		if a, err := netip.ParseAddr(string(o.Value)); err == nil && a.Is4() {
			out.NextServer = a
		}
	}
	out.File = textOf(all, "filename", optBootFile, maxFile)
	out.ServerName = textOf(all, "server-name", optTFTPServer, maxServerName)
}

// textOf returns a text of a service option or else of a client option, if it fits.
func textOf(all layers, service string, code uint16, limit int) string {
	text := ""
	if s := all.service(service); s != nil {
		text = s.text
	} else if o := all.option(optionKey{code: code}); o != nil {
		text = string(o.Value)
	}
	if len(text) > limit {
		return ""
	}
	return text
}

// timers adds T1 and T2: the options if they are set and in order, else 0.5 and 0.875 of the lease time.
func (d *decider) timers(all layers, sent []Sent) []Sent {
	lease := d.d.LeaseTime
	if lease == Infinite {
		return sent
	}
	value := func(code uint16, unset uint32) (uint32, Source) {
		if o := all.option(optionKey{code: code}); o != nil && len(o.Value) == 4 {
			return binary.BigEndian.Uint32(o.Value), o.From
		}
		return unset, Source{}
	}
	t2, from2 := value(optRebinding, lease-lease/8)
	t2 = min(t2, lease)
	t1, from1 := value(optRenewal, lease/2)
	t1 = min(t1, t2)
	return append(sent,
		Sent{Code: optRenewal, Name: "dhcp-renewal-time", Value: binary.BigEndian.AppendUint32(nil, t1), From: from1},
		Sent{Code: optRebinding, Name: "dhcp-rebinding-time", Value: binary.BigEndian.AppendUint32(nil, t2), From: from2})
}

// listCodes returns the codes of the options to send, in the order of the request. A client without a list of parameters gets all options.
func (d *decider) listCodes(all layers) []uint8 {
	list := d.f.Options[optParameters]
	if d.f.Options[optParameters] == nil {
		seen := map[uint8]bool{optSubnetMask: true, optRouter: true, optHostName: true, optVendorSpaces: true}
		for _, one := range all {
			for key := range one.options {
				if key.code < 255 && key.vendor == "" {
					seen[uint8(key.code)] = true
				}
			}
		}
		for code := range 255 {
			if seen[uint8(code)] {
				list = append(list, uint8(code))
			}
		}
		return append(withoutFixed(list), optFQDN)
	}
	list = withoutFixed(list)
	if d.requests[optRouter] && d.requests[optRoutes] && all.option(optionKey{code: optRoutes}) != nil { // RFC 3442
		list = slices.DeleteFunc(list, func(code uint8) bool { return code == optRouter })
	}
	// RFC 2132 section 3.3: the subnet mask precedes the routers.
	if mask, router := slices.Index(list, optSubnetMask), slices.Index(list, optRouter); mask > router && router >= 0 {
		list = slices.Insert(slices.Delete(list, mask, mask+1), router, uint8(optSubnetMask))
	}
	return append(list, optFQDN)
}

// ownSent is the usual number of options that the server adds to those of the request.
const ownSent = 6

// fixed are the options that the server determines itself, or that belong to requests.
var fixed = []uint8{0, optRequested, optLeaseTime, 52, 53, optServerID, optParameters, optMessage, 57, optRenewal, optRebinding,
	optClientID, optRelay, optSubnet, 255}

// IsFixed reports whether the server determines an option itself: a client option with the code has no effect.
func IsFixed(code uint16, v6 bool) bool {
	if v6 {
		return slices.Contains(ownOptions6, code)
	}
	return code != optRenewal && code != optRebinding && (code == optFQDN || code < 256 && slices.Contains(fixed, uint8(code)))
}

// withoutFixed returns a copy of a list of codes without duplicates and without fixed codes.
func withoutFixed(list []uint8) []uint8 {
	out := make([]uint8, 0, len(list)+1)
	for _, code := range list {
		if !slices.Contains(fixed, code) && !slices.Contains(out, code) {
			out = append(out, code)
		}
	}
	return out
}

// option returns the option with a code for the client.
func (d *decider) option(all layers, c choice, code uint8) (Sent, bool) {
	o := all.option(optionKey{code: uint16(code)})
	switch code {
	case optVendorSpaces:
		if s, ok := d.vendorSpace(all); ok {
			return s, true
		}
	case optFQDN:
		return d.fqdn81()
	case optRouter:
		if s := all.service("use-lease-addr-for-default-route"); s != nil && s.flag && d.d.Address.IsValid() {
			return Sent{Code: code, Name: "router", Value: d.d.Address.AsSlice(), From: s.From}, true
		}
	}
	if o != nil {
		return Sent{Code: code, Name: o.Name, Value: o.Value, From: o.From}, true
	}
	switch code {
	case optSubnetMask:
		return Sent{Code: code, Name: "subnet-mask", Value: net.CIDRMask(c.network.Prefix.Bits(), 32), From: c.network.source()}, true
	case optRouter:
		if c.network.Gateway.IsValid() {
			return Sent{Code: code, Name: "router", Value: c.network.Gateway.AsSlice(), From: c.network.source()}, true
		}
	case optHostName:
		if s := all.service("use-host-decl-names"); s != nil && s.flag && c.reservation != nil && c.reservation.HostName != "" {
			return Sent{Code: code, Name: "host-name", Value: []byte(c.reservation.HostName), From: c.reservation.source()}, true
		}
	}
	return Sent{}, false
}

// vendorSpace returns option 43 with the sub-options of the vendor profile with the longest identifier that option 60 begins with.
func (d *decider) vendorSpace(all layers) (Sent, bool) {
	vendor, best := string(d.f.Options[optVendorClass]), ""
	chosen := map[uint16]*Option{}
	for _, one := range all {
		for key, o := range one.options {
			if key.vendor == "" || len(key.vendor) < len(best) || !strings.HasPrefix(vendor, key.vendor) {
				continue
			}
			if len(key.vendor) > len(best) {
				best = key.vendor
				clear(chosen)
			}
			if chosen[key.code] == nil {
				chosen[key.code] = o
			}
		}
	}
	if best == "" {
		return Sent{}, false
	}
	// An outer scope can contain an identifier that an inner one lacks; the inner values of the same identifier win.
	s := Sent{Code: optVendorSpaces, Name: "vendor-encapsulated-options"}
	for _, code := range sortedCodes(chosen) {
		o := all.option(optionKey{code: code, vendor: best})
		s.Value = append(append(s.Value, byte(code), byte(len(o.Value))), o.Value...)
		s.From = o.From
	}
	return s, true
}

func sortedCodes(of map[uint16]*Option) []uint16 {
	codes := make([]uint16, 0, len(of))
	for code := range of {
		codes = append(codes, code)
	}
	slices.Sort(codes)
	return codes
}

// fqdn81 returns option 81 for a client that sent it (RFC 4702 section 4).
func (d *decider) fqdn81() (Sent, bool) {
	if !d.fqdn.present || d.d.Reply == Offer && d.d.Address == (netip.Addr{}) {
		return Sent{}, false
	}
	return Sent{Code: optFQDN, Name: "fqdn", Value: d.named.answer(d.fqdn), From: d.named.from}, true
}

// echo adds the options that a reply repeats: the client identifier, the subnet selection and, last, the relay information.
func (d *decider) echo(all layers, sent []Sent) []Sent {
	if data := d.f.Options[optClientID]; len(data) > 0 && all.flag("echo-client-id", true) {
		sent = append(sent, Sent{Code: optClientID, Name: "dhcp-client-identifier", Value: data})
	}
	if data, ok := d.f.Options[optSubnet]; ok && len(data) == 4 {
		sent = append(sent, Sent{Code: optSubnet, Name: "subnet-selection", Value: data})
	}
	if data, ok := d.f.Options[optRelay]; ok {
		sent = append(sent, Sent{Code: optRelay, Name: "relay-agent-information", Value: data})
	}
	return sent
}

// CleanHostName returns the name that a client sends, with letters, digits, hyphens and underscores in labels of up to 63 octets; empty if
// nothing is left.
func CleanHostName(data []byte) string {
	data, _, _ = bytes.Cut(data, []byte{0})
	var labels []string
	for label := range strings.SplitSeq(string(data), ".") {
		label = strings.Trim(strings.Map(func(r rune) rune {
			switch {
			case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
				return r
			case r == ' ':
				return '-'
			}
			return -1
		}, label), "-")
		if label != "" {
			labels = append(labels, label[:min(len(label), 63)])
		}
	}
	name := strings.Join(labels, ".")
	return name[:min(len(name), 253)]
}
