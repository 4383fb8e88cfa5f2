package dhcpdata

import (
	"slices"

	"portolan/internal/base/dhcpmsg"
)

// add adds an option to the reply.
func (d *decider6) add(code uint16, name string, value []byte, from Source) {
	d.d.Options = append(d.d.Options, Sent6{Code: code, Name: name, Value: value, From: from})
	d.note(from, "option", "%d %s: %x", code, name, value)
}

// head adds the identifiers of client and server.
func (d *decider6) head() {
	if len(d.d.DUID) > 0 {
		d.add(dhcpmsg.OptClientID6, "client-id", d.d.DUID, Source{})
	}
	d.add(dhcpmsg.OptServerID6, "server-id", d.c.duid, Source{})
}

// reply adds the identifiers and the options of a reply without associations.
func (d *decider6) reply(all layers) {
	d.head()
	d.addOptions(all)
}

// ownOptions6 are the options that the server determines itself, that belong to requests, or that announce what it does not do: 148
// announces that it registers addresses (RFC 9686).
var ownOptions6 = []uint16{dhcpmsg.OptClientID6, dhcpmsg.OptServerID6, dhcpmsg.OptIANA6, dhcpmsg.OptIATA6, dhcpmsg.OptIAAddress6,
	dhcpmsg.OptRequest6, dhcpmsg.OptPreference6, dhcpmsg.OptElapsed6, dhcpmsg.OptRelayMessage6, 11, 12, dhcpmsg.OptStatus6,
	dhcpmsg.OptRapidCommit6, dhcpmsg.OptInterfaceID6, 19, 20, dhcpmsg.OptIAPD6, dhcpmsg.OptIAPrefix6, dhcpmsg.OptFQDN6, 148}

// addOptions adds the options that the client requests, and its name.
func (d *decider6) addOptions(all layers) {
	codes := make([]uint16, 0, len(d.requests))
	for code := range d.requests {
		codes = append(codes, code)
	}
	slices.Sort(codes)
	for _, code := range codes {
		if slices.Contains(ownOptions6, code) {
			continue
		}
		if o := all.option(optionKey{code: code}); o != nil {
			d.add(code, o.Name, o.Value, o.From)
		}
	}
	if d.fqdn.present { // RFC 4704 section 4.1
		d.add(dhcpmsg.OptFQDN6, "client-fqdn", d.named.answer6(d.fqdn), d.named.from)
	}
}
