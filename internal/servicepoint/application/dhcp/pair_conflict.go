package dhcp

import (
	"cmp"

	"portolan/internal/wire/dhcplease"
	"portolan/internal/wire/dhcppair"
)

// contest records an address that both servers had leased to different clients: after is the lease that stays, and the client of the other
// one gets a NAK at its next renewal. The caller holds mu.
func (p *pair) contest(c dhcppair.Change, before, after *lease) {
	p.conflicts++
	one := dhcplease.Contested{Address: c.Address, Keeps: holderText(after), Loses: holderText(before)}
	if len(c.Rival) > 0 {
		rival, err := readLease(c.Rival)
		if err != nil { // the record itself was not used
			rival = nil
		}
		one.Loses = holderText(rival)
	}
	if len(p.contested) < dhcplease.MaxContested {
		p.contested = append(p.contested, one)
	}
	text := func(h dhcplease.Holder) string { return cmp.Or(h.MAC, h.DUID, h.ClientID) }
	p.e.log.Error("address leased by both servers of a pair", "address", c.Address, "partner", p.settings.PartnerName,
		"keeps", text(one.Keeps), "loses", text(one.Loses))
}

// holderText returns the client of a lease for the manager. l may be nil.
func holderText(l *lease) dhcplease.Holder {
	if l == nil {
		return dhcplease.Holder{}
	}
	r := l.report()
	return r.Holder()
}
