package dhcp

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"

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

// Usual sizes of entries in octets, with room for names.
const (
	usualEvent   = 160
	usualRenewal = 40
)

// event returns the entry of an event. The number of its kind is the index in dhcplease.Kinds.
func event(kind dhcplease.Kind, at, order int64, l *lease) []byte {
	index := slices.Index(dhcplease.Kinds, kind)
	if index < 0 {
		panic(fmt.Sprintf("unknown kind %q of events", kind))
	}
	return l.append(appendNumber(appendNumber(append(make([]byte, 0, usualEvent), entryEvent, byte(index)), at), order))
}

// readEvent reads an entry of an event without its first octet.
func readEvent(text []byte) (kind dhcplease.Kind, at, order int64, l *lease, err error) {
	if len(text) == 0 {
		return "", 0, 0, nil, errLease
	}
	if int(text[0]) >= len(dhcplease.Kinds) {
		return "", 0, 0, nil, errNewer
	}
	r := &reader{text: string(text[1:min(len(text), 1+2*binary.MaxVarintLen64)])}
	size := len(r.text)
	at, order = int64(r.number()), int64(r.number())
	if r.err != nil {
		return "", 0, 0, nil, r.err
	}
	l, err = readLease(text[1+size-len(r.text):])
	return dhcplease.Kinds[text[0]], at, order, l, err
}

// renewal returns the entry of a renewal.
func renewal(l *lease) []byte {
	to := append(make([]byte, 0, usualRenewal), entryRenewal)
	return appendNumber(appendNumber(appendAddress(to, l.address), l.renewed), l.expires)
}

// readRenewal reads an entry of a renewal without its first octet.
func readRenewal(text []byte) (a netip.Addr, renewed, expires int64, err error) {
	r := &reader{text: string(text)}
	a = r.address()
	renewed, expires = int64(r.number()), int64(r.number())
	if r.err == nil && (!a.IsValid() || len(r.text) > 0 || renewed < 0 || expires < 0) {
		r.err = errLease
	}
	return a, renewed, expires, r.err
}

// errNewer reports an entry that this version does not know. It is not damage: without the entry, addresses could get a second holder.
var errNewer = errors.New("a newer version has written the leases, install it again; this version does not know the kind of an entry")

// applyEntry applies an entry of the journal at the start. Its errors are not damage of the journal: the leases are not opened.
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
		l := lease{holder: &e.read}
		if err := l.read(sharedText(text)); err != nil {
			return err
		}
		if e.table.set(l.address, &l); e.table.slots.used%slotsOfBlock == 0 {
			limitGarbage(e.table.slots.used)
		}
	case entryRenewal:
		a, renewed, expires, err := readRenewal(text)
		if err != nil {
			return err
		}
		l := e.table.lease(a)
		if l == nil {
			return nil // its network was forgotten after the checkpoint
		}
		l.renewed, l.expires = renewed, expires
		e.table.set(a, l)
		e.renewals.add(l)
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
		if part.Last {
			e.snapshot = max(e.snapshot, part.Requested)
		}
	case entryPairedRenewal:
		return e.applyPairedRenewal(text)
	case entryPair:
		return e.applyPair(text)
	case entryPairReport:
	case entryClock:
		return e.applyClock(text)
	case entryDamage:
		r := &reader{text: string(text)}
		e.suspectUntil = int64(r.number())
		return r.err
	case entryOrder:
		r := &reader{text: string(text)}
		e.performed[int64(r.number())] = true
		return r.err
	default:
		return fmt.Errorf("%w: %q", errNewer, kind)
	}
	return nil
}

// renewals are the renewals that the manager has not learned yet, by network.
type renewals map[int64]map[netip.Addr]int64

func (r renewals) add(l *lease) { r.put(l.network, l.address, l.expires) }

func (r renewals) put(network int64, a netip.Addr, expires int64) {
	if r[network] == nil {
		r[network] = map[netip.Addr]int64{}
	}
	r[network][a] = expires
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

// endedLease returns the lease of an address after its end.
func endedLease(l *lease, at int64) *lease {
	n := *l
	n.state, n.expires, n.ended, n.counted = dhcpdata.Free, min(at, l.expires), false, nil
	if n.names != nil && !n.names.Partner { // the names of a partner stay until it is known who removes them
		n.names = nil
	}
	return &n
}
