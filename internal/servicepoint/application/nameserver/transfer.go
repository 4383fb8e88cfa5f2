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

// copySize is how long a message of a transfer gets, about, in bytes; one that holds one large record may be longer.
const copySize = 32 << 10

// sending is a transfer that is being sent.
type sending struct {
	out    answer
	q      *query
	signer *signer
	send   func([]byte) error
}

// begin begins the next message.
func (s *sending) begin() {
	s.out.begin(s.q, make([]byte, 0, copySize), copySize)
	s.out.authoritative = true
}

// flush sends what there is.
func (s *sending) flush() error {
	m := s.out.end()
	if s.signer != nil {
		m = s.signer.sign(m, time.Now())
	}
	return s.send(m)
}

// put sends an RRset of an owner, record by record where it does not fit into one message.
func (s *sending) put(owner string, of *set) error {
	if s.out.put(owner, of, of.ttl, &s.out.answers) {
		return nil
	}
	if s.out.answers > 0 {
		if err := s.flush(); err != nil {
			return err
		}
		s.begin()
	}
	s.out.limit = 65535
	if s.signer != nil {
		s.out.limit -= s.signer.room()
	}
	fits := s.out.put(owner, of, of.ttl, &s.out.answers)
	s.out.limit = copySize
	switch {
	case fits:
		return nil
	case of.count == 1:
		return fmt.Errorf("a record of type %s does not fit into a message", dns.Type(of.kind))
	}
	var err error
	of.each(0, func(data []byte) bool {
		one := &set{kind: of.kind, ttl: of.ttl}
		one.append(data)
		err = s.put(owner, one)
		return err == nil
	})
	return err
}

// record sends one record.
func (s *sending) record(r zonedata.Record) error {
	data := r.Data()
	of := &set{kind: r.Type(), count: 1, ttl: r.TTL()}
	of.data = append(binary.BigEndian.AppendUint16(nil, uint16(len(data))), data...) //nolint:gosec // at most 65,535
	return s.put(string(r.Owner()), of)
}

// transfer gives the records of a zone to whom may have them, as messages, each given to send: all of them (RFC 5936), or what has changed
// since the serial that the client has (RFC 1995). It reports whether the message asks for a transfer that may be.
func (a *nameServer) transfer(m []byte, w zonedata.Client, send func([]byte) error) (yes bool, err error) {
	var q query
	if code, ok := q.parse(m); !ok || code != 0 || q.version != 0 || q.class != dns.ClassINET ||
		q.kind != dns.TypeAXFR && q.kind != dns.TypeIXFR {
		return false, nil
	}
	served := a.served.Load()
	w, signer, code := a.identify(served, m, &q, w)
	z := served.mayCopy(w, q.name)
	if code != 0 || z == nil {
		return false, nil
	}
	s := &sending{q: &q, signer: signer, send: send}
	s.begin()
	a.counts.codes[dns.RcodeSuccess].Add(1)
	if q.kind == dns.TypeIXFR {
		// Of a signed zone what has changed is not kept: signatures and what lies between names are others, too.
		if soa, steps, known := z.changes(q.serial); known && (z.signing == nil || len(steps) == 0) {
			return true, s.changes(z.zone, &soa, steps)
		}
	}
	return true, s.whole(z)
}

// transferOf is transfer where a fault of ours costs that one connection.
func (a *nameServer) transferOf(m []byte, w zonedata.Client, send func([]byte) error) (yes bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			a.log.Error("a zone could not be transferred", "question", fmt.Sprintf("%x", m), "panic", p, "stack", string(debug.Stack()))
			err = errBroken
		}
	}()
	return a.transfer(m, w, send)
}

// mayCopy gives the zone of a name that somebody may have all of; nil where there is none, or others may.
func (s *served) mayCopy(w zonedata.Client, name string) *servedZone {
	v := s.viewFor(w)
	if v == nil {
		return nil
	}
	if z := v.zones[name]; z != nil && !z.of.Void && zonedata.Allows(z.of.Transfer, w, false) {
		return z
	}
	return nil
}

// whole sends all of a zone.
func (s *sending) whole(z *servedZone) error {
	var soa *set
	err := z.each(func(owner string, of *set) error {
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

// each gives all RRsets of a zone as they are at one moment, the SOA first, with their signatures where it is signed.
func (z *servedZone) each(fn func(owner string, of *set) error) error {
	soa, others, signs := z.snapshot()
	for _, o := range append([]owned{{z.apex, soa, true}}, others...) {
		for _, part := range o.parts() {
			if err := fn(o.owner, part); err != nil {
				return err
			}
		}
		if !signs || !o.signed {
			continue
		}
		signatures, _, err := z.signing.sign(o.owner, &o.set, time.Now())
		if err == nil {
			err = fn(o.owner, signatures)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// parts gives an RRset as sets of one TTL: signatures that a zone came with have that of what they sign (RFC 4034 section 3).
func (s *set) parts() (all []*set) {
	if s.kind != dns.TypeRRSIG {
		return []*set{s}
	}
	byTTL := map[uint32]*set{}
	s.each(0, func(data []byte) bool {
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

// changes sends what has changed: nothing but the SOA where nothing has.
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

// changes gives the SOA of a zone, and what has changed behind a serial; known is false where that cannot be said.
func (z *zone) changes(serial uint32) (soa set, steps []step, known bool) {
	z.mu.RLock()
	defer z.mu.RUnlock()
	s := z.nodes[z.apex].of(dns.TypeSOA)
	if s == nil {
		return soa, nil, false
	}
	if serial == z.serial {
		return *s, nil, true
	}
	steps = z.journal.since(serial)
	return *s, steps, steps != nil
}

// owned is an RRset with its owner; signed says that it is the zone's own, and signed where the zone is.
type owned struct {
	owner string
	set
	signed bool
}

// snapshot gives all RRsets of a zone as they are at one moment, those of its chain included: their data is replaced, and never changed.
// Whoever asks does not wait for it, whoever changes the zone does.
func (z *servedZone) snapshot() (soa set, others []owned, signs bool) {
	z.copying.RLock()
	defer z.copying.RUnlock()
	signs = z.signs()
	for owner, n := range z.nodes {
		hidden := ""
		if z.chain != nil {
			_, hidden = z.speaks(z.chain, owner)
		}
		cut := owner != z.apex && n.of(dns.TypeNS) != nil
		for _, s := range n.sets {
			if s.kind == dns.TypeSOA {
				soa = s
				continue
			}
			others = append(others, owned{owner, s, hidden == "" && (!cut || s.kind == dns.TypeDS)})
		}
	}
	if !signs {
		return soa, others, false
	}
	for i, l := range z.chain.links {
		if yes, _ := z.speaks(z.chain, l.owner); yes {
			owner, s := z.denial(z.chain, i, soa.negativeTTL())
			others = append(others, owned{owner, *s, true})
		}
	}
	return soa, others, true
}

// step gives what a change does to a zone, for its journal; false where it is not to be told so: the SOA stays, and with it the serial.
func (c *change) step(before uint32) (s step, ok bool) {
	if _, ok = soaOf(c.removed); !ok {
		return s, false
	}
	soa, ok := soaOf(c.added)
	if !ok {
		return s, false
	}
	s = step{from: before, to: serialOf(soa.Data())}
	// The records are parts of what was read, which is not to stay for them.
	for _, r := range c.removed {
		s.removed = append(s.removed, slices.Clone(r))
	}
	for _, r := range c.added {
		s.added = append(s.added, slices.Clone(r))
	}
	return s, true
}
