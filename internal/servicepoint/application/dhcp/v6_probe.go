package dhcp

import (
	"net"
	"net/netip"
	"slices"

	"portolan/internal/base/dhcpmsg"
	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"
)

// probes6 are the addresses of IPv6 that are probed while leases may be unknown, after a damage of the journal. At other times clients find
// duplicates themselves (RFC 4862 section 5.4).
type probes6 struct {
	// active are those that are probed now. silent are those that did not answer, with the time until which that counts.
	active map[netip.Addr]bool
	silent map[netip.Addr]int64
}

// maxSilent is the maximum number of addresses whose silence is remembered.
const maxSilent = 64 << 10

// probing is an answer of probing6.
type probing uint8

const (
	probedAlready probing = iota
	probeNeeded
	probeActive
)

// withoutRapidCommit makes a SOLICIT one that is answered by an ADVERTISE while leases may be unknown: its addresses are probed before.
// The caller holds mu.
func (e *engine) withoutRapidCommit(r *request6) {
	if e.clock.now() < e.suspectUntil && r.facts.Message.Type == dhcpmsg.Solicit6 {
		r.facts.Message.Options = slices.DeleteFunc(slices.Clone(r.facts.Message.Options), func(o dhcpmsg.Option6) bool {
			return o.Code == dhcpmsg.OptRapidCommit6
		})
	}
}

// probing6 returns the addresses of an ADVERTISE that have to be probed, and whether that is under way. Delegated prefixes are not probed.
// The caller holds mu.
func (e *engine) probing6(r *request6, d *dhcpdata.Decision6) (all []netip.Addr, is probing) {
	now := e.clock.now()
	if now >= e.suspectUntil || r.facts.Message.Type != dhcpmsg.Solicit6 {
		return nil, probedAlready
	}
	for _, c := range d.Changes {
		if c.Action != dhcpdata.ActOffer || c.PrefixLength > 0 || e.probes6.silent[c.Address] > now {
			continue
		}
		if l, ok := e.table.Lease(c.Address); ok && l.State == dhcpdata.Leased {
			continue
		}
		if e.probes6.active[c.Address] {
			return nil, probeActive
		}
		all = append(all, c.Address)
	}
	if len(all) == 0 {
		return nil, probedAlready
	}
	return all, probeNeeded
}

// probe6 probes addresses, and sends the ADVERTISE if none answers. Those that answer are abandoned, and the client gets others. The caller
// holds mu.
func (e *engine) probe6(r *request6, d *dhcpdata.Decision6, all []netip.Addr, probed int) (reason string) {
	select {
	case e.probes <- struct{}{}:
	default:
		return busy
	}
	for _, a := range all {
		e.probes6.active[a] = true
	}
	e.tasks.Go(func() {
		answered := map[netip.Addr]*holder{}
		for _, a := range all {
			if hardware, answers := e.probe(a, 1); answers {
				answered[a] = holderWithout(hardware)
			}
		}
		<-e.probes
		e.mu.Lock()
		now := e.clock.now()
		if len(e.probes6.silent) > maxSilent {
			clear(e.probes6.silent)
		}
		for _, a := range all {
			if delete(e.probes6.active, a); answered[a] == nil {
				e.probes6.silent[a] = now + offerSeconds
			}
		}
		for _, c := range d.Changes {
			if l := e.table.lease(c.Address); answered[c.Address] != nil && (l == nil || l.view(now).State != dhcpdata.Leased) {
				e.table.withdraw(c.Client)
				e.abandon6(c, answered[c.Address], now)
			}
		}
		e.mu.Unlock()
		switch {
		case len(answered) == 0:
			e.send6(r, d)
		case probed+1 < maxProbed:
			e.decide6(r, probed+1)
		}
	})
	return ""
}

// abandon6 makes an address that answers without a lease unusable for a day. The caller holds mu.
func (e *engine) abandon6(c dhcpdata.Change6, holder *holder, now int64) {
	l := &lease{network: c.Network, pool: c.Pool, address: c.Address, state: dhcpdata.Abandoned, start: now, renewed: now,
		expires: now + endedSeconds, holder: holder}
	e.change(e.table.lease(c.Address), l, dhcplease.Abandon, 0)
	e.log.Warn("address without a lease answered", "address", c.Address, "network", c.Network, "hardware",
		net.HardwareAddr(holder.hardware).String())
}
