package dhcp

import (
	"encoding/json"
	"fmt"
	"net/netip"

	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"
)

// The kinds of entries of the journal, which are their first octets.
const (
	// entryEvent is a change that the manager learns: the index of its kind, the time, the order, and the lease after it.
	entryEvent = 'E'
	// entryRenewal is a new expiry: the address, the time of the renewal, and the expiry.
	entryRenewal = 'R'
	// entryDigest contains the renewals of a network for the manager, and entrySnapshot a part of a list of all leases. Both are JSON.
	entryDigest   = 'D'
	entrySnapshot = 'S'
	// entryLease is a lease, and entryOrder a performed order, in a checkpoint.
	entryLease = 'L'
	entryOrder = 'O'
	// entryPairedRenewal is a renewal of a lease of a failover pair. entryPair is the status of a pair, and entryPairReport what the manager
	// learns about it; both are JSON.
	entryPairedRenewal = 'P'
	// entryClock is an anchor of the clock with a shift of the leases before it, and entryDamage the time until which leases may be unknown.
	entryClock      = 'T'
	entryDamage     = 'X'
	entryPair       = 'F'
	entryPairReport = 'G'
)

// kinds are the kinds of events by their index in the journal.
var kinds = []dhcplease.Kind{dhcplease.Begin, dhcplease.Change, dhcplease.Expire, dhcplease.Release, dhcplease.End, dhcplease.Conflict,
	dhcplease.Decline, dhcplease.Abandon, dhcplease.Clear, dhcplease.Ordered}

// event returns the entry of an event.
func event(kind dhcplease.Kind, at, order int64, l *lease) []byte {
	index := byte(0)
	for i, one := range kinds {
		if one == kind {
			index = byte(i)
		}
	}
	return l.append(appendNumber(appendNumber([]byte{entryEvent, index}, at), order))
}

// readEvent reads an entry of an event without its first octet.
func readEvent(text []byte) (kind dhcplease.Kind, at, order int64, l *lease, err error) {
	if len(text) == 0 || int(text[0]) >= len(kinds) {
		return "", 0, 0, nil, errLease
	}
	r := &reader{text: text[1:]}
	at, order = int64(r.number()), int64(r.number())
	if r.err != nil {
		return "", 0, 0, nil, r.err
	}
	l, err = readLease(r.text)
	return kinds[text[0]], at, order, l, err
}

// renewal returns the entry of a renewal.
func renewal(l *lease) []byte {
	a := l.address.AsSlice()
	to := append([]byte{entryRenewal, byte(len(a))}, a...)
	return appendNumber(appendNumber(to, l.renewed), l.expires)
}

// readRenewal reads an entry of a renewal without its first octet.
func readRenewal(text []byte) (a netip.Addr, renewed, expires int64, err error) {
	r := &reader{text: text}
	a = r.address()
	renewed, expires = int64(r.number()), int64(r.number())
	if r.err == nil && (!a.IsValid() || len(r.text) > 0 || renewed < 0 || expires < 0) {
		r.err = errLease
	}
	return a, renewed, expires, r.err
}

// applyEntry applies an entry of the journal at the start.
func (e *engine) applyEntry(entry []byte) error {
	switch kind, text := entry[0], entry[1:]; kind {
	case entryEvent:
		kind, _, order, l, err := readEvent(text)
		if err != nil {
			return err
		}
		if order != 0 {
			e.performed[order] = true
		}
		if kind != dhcplease.Ordered {
			e.table.set(l.address, l)
			e.renewals.forget(l)
		}
	case entryLease:
		l, err := readLease(text)
		if err != nil {
			return err
		}
		e.table.set(l.address, l)
	case entryRenewal:
		a, renewed, expires, err := readRenewal(text)
		if err != nil {
			return err
		}
		slot := e.table.slots[a]
		if slot == nil || slot.lease == nil {
			return nil // its network was forgotten after the checkpoint
		}
		l := *slot.lease
		l.renewed, l.expires = renewed, expires
		e.table.set(a, &l)
		e.renewals.add(&l)
	case entryDigest:
		var d dhcplease.Renewals
		if err := json.Unmarshal(text, &d); err != nil {
			return err
		}
		e.renewals.reported(d.Network)
	case entrySnapshot:
		var part dhcplease.Snapshot
		if err := json.Unmarshal(text, &part); err != nil {
			return err
		}
		e.snapshot = max(e.snapshot, part.Requested)
	case entryPairedRenewal:
		return e.applyPairedRenewal(text)
	case entryPair:
		return e.applyPair(text)
	case entryPairReport:
	case entryClock:
		return e.applyClock(text)
	case entryDamage:
		r := &reader{text: text}
		e.suspectUntil = int64(r.number())
		return r.err
	case entryOrder:
		r := &reader{text: text}
		e.performed[int64(r.number())] = true
		return r.err
	default:
		return fmt.Errorf("%w: an entry of the kind %q", errDamaged, kind)
	}
	return nil
}

// renewals are the renewals that the manager has not learned yet, by network.
type renewals map[int64]map[netip.Addr]int64

func (r renewals) add(l *lease) {
	if r[l.network] == nil {
		r[l.network] = map[netip.Addr]int64{}
	}
	r[l.network][l.address] = l.expires
}

// forget forgets the renewal of an address, because an event about it follows.
func (r renewals) forget(l *lease) { delete(r[l.network], l.address) }

// reported forgets the renewals of a network: a digest contains them.
func (r renewals) reported(network int64) { delete(r, network) }

// digests returns the entries of the digests of all renewals, and forgets them.
func (r renewals) digests() (entries [][]byte, err error) {
	for network, all := range r {
		var list []dhcplease.Renewal
		flush := func() error {
			text, err := json.Marshal(dhcplease.Renewals{Network: network, Packed: dhcplease.Pack(list)})
			entries, list = append(entries, append([]byte{entryDigest}, text...)), nil
			return err
		}
		for a, expires := range all {
			if list = append(list, dhcplease.Renewal{Address: a, Expires: expires}); len(list) == dhcplease.MaxRenewals {
				if err := flush(); err != nil {
					return nil, err
				}
			}
		}
		if len(list) > 0 {
			if err := flush(); err != nil {
				return nil, err
			}
		}
	}
	return entries, nil
}

// freed returns the lease of an address after its end.
func freed(l *lease, at int64) *lease {
	n := *l
	n.state, n.expires, n.ended, n.counted = dhcpdata.Free, min(at, l.expires), false, nil
	return &n
}
