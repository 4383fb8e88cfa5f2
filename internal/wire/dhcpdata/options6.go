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

// ownOptions6 are the options that the server determines itself, or that belong to requests.
var ownOptions6 = []uint16{dhcpmsg.OptClientID6, dhcpmsg.OptServerID6, dhcpmsg.OptIANA6, dhcpmsg.OptIATA6, dhcpmsg.OptIAAddress6,
	dhcpmsg.OptRequest6, dhcpmsg.OptPreference6, dhcpmsg.OptElapsed6, dhcpmsg.OptRelayMessage6, 11, 12, dhcpmsg.OptStatus6,
	dhcpmsg.OptRapidCommit6, dhcpmsg.OptInterfaceID6, 19, 20, dhcpmsg.OptIAPD6, dhcpmsg.OptIAPrefix6, dhcpmsg.OptFQDN6}

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
	if data, ok := d.f.Message.Options.Find(dhcpmsg.OptFQDN6); ok && len(data) > 1 {
		// The server does not update DNS: the flag N is set, S is not, and O says that a wish for S was not followed (RFC 4704 section 4.1).
		const s, o, n = 1, 2, 4
		flags := byte(n)
		if data[0]&s != 0 {
			flags |= o
		}
		d.add(dhcpmsg.OptFQDN6, "client-fqdn", append([]byte{flags}, data[1:]...), Source{})
	}
}
