package nameserver

import (
	"encoding/binary"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/wire/zonedata"
)

// copySize is the target size of a transfer message in bytes. A message with one large record can be longer.
const copySize = 32 << 10

// sending is a zone transfer in progress.
type sending struct {
	out    answer
	q      *query
	signer *signer
	send   func([]byte) error
}

// startMessage starts the next message.
func (s *sending) startMessage() {
	s.out.start(s.q, make([]byte, 0, copySize), copySize)
	s.out.authoritative = true
}

// flush sends the current message.
func (s *sending) flush() error {
	m := s.out.finish()
	if s.signer != nil {
		m = s.signer.sign(m, time.Now())
	}
	return s.send(m)
}

// put adds an RRset. It sends the current message if the RRset does not fit, and splits an RRset that is too large for one message.
func (s *sending) put(owner string, of *set) error {
	if s.out.writeSet(owner, of, of.ttl, &s.out.answers) {
		return nil
	}
	if s.out.answers > 0 {
		if err := s.flush(); err != nil {
			return err
		}
		s.startMessage()
	}
	s.out.limit = 65535
	if s.signer != nil {
		s.out.limit -= s.signer.maxSize()
	}
	fits := s.out.writeSet(owner, of, of.ttl, &s.out.answers)
	s.out.limit = copySize
	switch {
	case fits:
		return nil
	case of.count == 1:
		return fmt.Errorf("a record of type %s does not fit into a message", dns.Type(of.kind))
	}
	var err error
	of.eachRecord(0, func(data []byte) bool {
		one := &set{kind: of.kind, ttl: of.ttl}
		one.append(data)
		err = s.put(owner, one)
		return err == nil
	})
	return err
}

// record adds one record.
func (s *sending) record(r zonedata.Record) error {
	data := r.Data()
	of := &set{kind: r.Type(), count: 1, ttl: r.TTL()}
	of.data = append(binary.BigEndian.AppendUint16(nil, uint16(len(data))), data...) //nolint:gosec // at most 65,535
	return s.put(string(r.Owner()), of)
}

// transfer sends a zone to a client in messages: completely (RFC 5936), or the changes since the client's serial (RFC 1995). It returns
// false if the message is not a permitted transfer request.
func (a *nameServer) transfer(m []byte, w zonedata.Client, send func([]byte) error) (yes bool, err error) {
	var q query
	if code, ok := q.parse(m); !ok || code != 0 || q.version != 0 || q.class != dns.ClassINET ||
		q.kind != dns.TypeAXFR && q.kind != dns.TypeIXFR {
		return false, nil
	}
	served := a.served.Load()
	w, signer, code := a.identify(served, m, &q, w)
	z := served.transferZone(w, q.name)
	if code != 0 || z == nil {
		return false, nil
	}
	s := &sending{q: &q, signer: signer, send: send}
	s.startMessage()
	a.counts.codes[dns.RcodeSuccess].Add(1)
	if q.kind == dns.TypeIXFR {
		// Generated signatures and proof records have no journal, so a signed zone is sent completely.
		if soa, steps, known := z.changes(q.serial); known && (z.signing == nil || len(steps) == 0) {
			return true, s.changes(z.zone, &soa, steps)
		}
	}
	return true, s.sendZone(z)
}

// safeTransfer calls transfer. A panic closes only this connection.
func (a *nameServer) safeTransfer(m []byte, w zonedata.Client, send func([]byte) error) (yes bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			a.log.Error("panic during zone transfer", "question", fmt.Sprintf("%x", m), "panic", p, "stack", string(debug.Stack()))
			err = errBroken
		}
	}()
	return a.transfer(m, w, send)
}

// transferZone returns the zone of a name if a client may transfer it; nil otherwise.
func (s *served) transferZone(w zonedata.Client, name string) *servedZone {
	v := s.viewFor(w)
	if v == nil {
		return nil
	}
	if z := v.zones[name]; z != nil && !z.settings.Void && zonedata.Allows(z.settings.Transfer, w, false) {
		return z
	}
	return nil
}

// sendZone sends a complete zone.
func (s *sending) sendZone(z *servedZone) error {
	var soa *set
	err := z.eachSet(time.Now(), func(owner string, of *set) error {
		if of.kind == dns.TypeSOA {
			soa = of
		}
		return s.put(owner, of)
	})
	if err == nil {
		err = s.put(z.apex, soa)
	}
	if err == nil {
		err = s.flush()
	}
	return err
}

// eachSet calls fn with all RRsets of a consistent snapshot of the zone, the SOA first, with their signatures if the zone is signed. The
// signatures last until the copy is replaced.
func (z *servedZone) eachSet(now time.Time, fn func(owner string, of *set) error) error {
	soa, others, signs := z.snapshot()
	for _, o := range append([]ownedSet{{z.apex, soa, true}}, others...) {
		for _, part := range o.parts() {
			if err := fn(o.owner, part); err != nil {
				return err
			}
		}
		if !signs || !o.signed {
			continue
		}
		signatures, err := z.signing.signaturesUntil(o.owner, &o.set, now, now.Add(z.signing.copyTime()))
		if err == nil {
			err = fn(o.owner, signatures)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// parts splits signatures by TTL: signatures in a presigned zone have the TTL of the RRset that they sign (RFC 4034 section 3).
func (s *set) parts() (all []*set) {
	if s.kind != dns.TypeRRSIG {
		return []*set{s}
	}
	byTTL := map[uint32]*set{}
	s.eachRecord(0, func(data []byte) bool {
		ttl := s.ttl
		if len(data) >= 8 {
			ttl = binary.BigEndian.Uint32(data[4:])
		}
		part := byTTL[ttl]
		if part == nil {
			part = &set{kind: s.kind, ttl: ttl}
			byTTL[ttl] = part
			all = append(all, part)
		}
		part.append(data)
		return true
	})
	return all
}

// changes sends the changes between two serials; only the SOA if there are none.
func (s *sending) changes(z *zone, soa *set, steps []step) error {
	err := s.put(z.apex, soa)
	for _, one := range steps {
		for _, records := range [][]zonedata.Record{one.removed, one.added} {
			first, _ := soaOf(records)
			if err == nil {
				err = s.record(first)
			}
			for _, r := range records {
				if err == nil && r.Type() != dns.TypeSOA {
					err = s.record(r)
				}
			}
		}
	}
	if err == nil && len(steps) > 0 {
		err = s.put(z.apex, soa)
	}
	if err == nil {
		err = s.flush()
	}
	return err
}

// changes returns the SOA of a zone and the changes after a serial. known is false if the journal does not contain them.
func (z *zone) changes(serial uint32) (soa set, steps []step, known bool) {
	z.mu.RLock()
	defer z.mu.RUnlock()
	s := z.nodes[z.apex].set(dns.TypeSOA)
	if s == nil {
		return soa, nil, false
	}
	if serial == z.serial {
		return *s, nil, true
	}
	steps = z.journal.changesAfter(serial)
	return *s, steps, steps != nil
}

// ownedSet is an RRset with its owner. signed reports that it is signed if the zone is.
type ownedSet struct {
	owner string
	set
	signed bool
}

// snapshot returns all RRsets of a zone at one moment, including the generated proof records. RRset data is immutable. Queries are not
// blocked meanwhile; changes of the zone are.
func (z *servedZone) snapshot() (soa set, others []ownedSet, signs bool) {
	z.copying.RLock()
	defer z.copying.RUnlock()
	signs = z.signs()
	for owner := range z.nodes {
		others = z.appendSets(others, owner)
	}
	if at := slices.IndexFunc(others, func(o ownedSet) bool { return o.kind == dns.TypeSOA }); at >= 0 {
		soa, others[at] = others[at].set, others[len(others)-1]
		others = others[:len(others)-1]
	}
	if !signs {
		return soa, others, false
	}
	for i, l := range z.chain.links {
		if yes, _ := z.hasProof(z.chain, l.owner); yes {
			owner, s := z.proofRecord(z.chain, i, soa.negativeTTL(), new(generatedProof))
			others = append(others, ownedSet{owner, *s, true})
		}
	}
	return soa, others, true
}

// step returns the journal entry of a change. ok is false if the change does not replace the SOA.
func (c *change) step(before uint32) (s step, ok bool) {
	if _, ok = soaOf(c.removed); !ok {
		return s, false
	}
	soa, ok := soaOf(c.added)
	if !ok {
		return s, false
	}
	s = step{from: before, to: serialOf(soa.Data())}
	// The records are cloned, because they refer to the read buffer.
	for _, r := range c.removed {
		s.removed = append(s.removed, slices.Clone(r))
	}
	for _, r := range c.added {
		s.added = append(s.added, slices.Clone(r))
	}
	return s, true
}
