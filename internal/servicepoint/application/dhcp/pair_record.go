package dhcp

import (
	"encoding/binary"
	"net/netip"

	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcppair"
)

// pairing is the part of a lease that only failover pairs have: see dhcppair.Record.
type pairing struct {
	mine, want, promise, theirs int64
	owner                       dhcppair.Side
	epoch                       uint32
	agreed                      bool
	versions                    [2]uint32
}

// statesOfPair are the states of a pair by those of leases.
var statesOfPair = map[dhcpdata.State]dhcppair.State{dhcpdata.Free: dhcppair.Free, dhcpdata.Leased: dhcppair.Leased,
	dhcpdata.Abandoned: dhcppair.Abandoned}

// statesOfLease are the states of leases by those of a pair.
var statesOfLease = [3]dhcpdata.State{dhcppair.Free: dhcpdata.Free, dhcppair.Leased: dhcpdata.Leased,
	dhcppair.Abandoned: dhcpdata.Abandoned}

// recordOf returns the record of an address for the rules of a pair. A lease from the time before the pair is one of this server; l may be
// nil.
func recordOf(l *lease, a netip.Addr, side dhcppair.Side) dhcppair.Record {
	r := dhcppair.NewRecord(a)
	if l == nil {
		return r
	}
	r.Client, r.State, r.Start, r.Expires = l.holder.client, statesOfPair[l.state], l.start, l.expires
	if p := l.pair; p != nil {
		r.Mine, r.Want, r.Promise, r.Theirs, r.Owner, r.Epoch, r.Agreed, r.Versions = p.mine, p.want, p.promise, p.theirs, p.owner, p.epoch,
			p.agreed, p.versions
		return r
	}
	if r.Versions[side] = 1; r.State == dhcppair.Leased {
		r.Mine = l.expires
	}
	r.Agreed = r.State == dhcppair.Free
	return r
}

// pairingOf returns the part of a record that leases have in addition.
func pairingOf(r dhcppair.Record) *pairing {
	return &pairing{mine: r.Mine, want: r.Want, promise: r.Promise, theirs: r.Theirs, owner: r.Owner, epoch: r.Epoch, agreed: r.Agreed,
		versions: r.Versions}
}

// append appends the pairing in the form of the journal. p may be nil.
func (p *pairing) append(to []byte) []byte {
	if p == nil {
		return to
	}
	agreed := uint64(0)
	if p.agreed {
		agreed = 1
	}
	for _, n := range []uint64{uint64(p.mine), uint64(p.want), uint64(p.promise), uint64(p.theirs), uint64(p.owner), uint64(p.epoch), agreed,
		uint64(p.versions[0]), uint64(p.versions[1])} {
		to = binary.AppendUvarint(to, n)
	}
	return to
}

// pairing reads a pairing; nil if nothing follows.
func (r *reader) pairing() *pairing {
	if len(r.text) == 0 || r.err != nil {
		return nil
	}
	p := &pairing{mine: int64(r.number()), want: int64(r.number()), promise: int64(r.number()), theirs: int64(r.number()),
		owner: dhcppair.Side(r.number() & 1), epoch: uint32(r.number()), agreed: r.number() != 0}
	p.versions = [2]uint32{uint32(r.number()), uint32(r.number())}
	if p.mine < 0 || p.want < 0 || p.promise < 0 || p.theirs < 0 {
		r.err = errLease
	}
	return p
}

// isHeld reports whether only the holder may get the address.
func (l *lease) isHeld() bool { return l.pair != nil && l.holder.client != "" && !l.pair.agreed }

// pairedRenewal returns the entry of a renewal of a lease of a pair.
func pairedRenewal(l *lease) []byte {
	to := appendAddress(append(make([]byte, 0, 2*usualRenewal), entryPairedRenewal), l.address)
	return l.pair.append(appendNumber(appendNumber(to, l.renewed), l.expires))
}

// applyPairedRenewal applies the entry of a renewal of a lease of a pair at the start.
func (e *engine) applyPairedRenewal(text []byte) error {
	r := &reader{text: string(text)}
	a := r.address()
	renewed, expires := int64(r.number()), int64(r.number())
	p := r.pairing()
	if r.err != nil || p == nil || len(r.text) > 0 || !a.IsValid() {
		return errLease
	}
	l := e.table.lease(a)
	if l == nil {
		return nil // its network was forgotten after the checkpoint
	}
	l.renewed, l.expires, l.pair = renewed, expires, p
	e.table.set(a, l)
	e.renewals.add(l)
	return nil
}
