package nameserver

import (
	"context"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/wire/zonedata"
)

// ahead creates signatures before they are needed, so that no question waits for one: after each change of the content, and before they
// end. It is safe for concurrent use.
type ahead struct {
	// wake contains a token if names are pending. It is nil if another engine signs.
	wake chan struct{}

	mu sync.Mutex
	// The following fields are guarded by mu. pending are the names to sign, by zone. working is true while a zone is signed.
	pending map[zoneKey]*namesToSign
	working bool
}

// zoneKey identifies a zone in a view.
type zoneKey struct {
	view int64
	apex string
}

// namesToSign are names of a zone to sign: all of them, or those that a change affects.
type namesToSign struct {
	all    bool
	owners map[string]struct{}
}

const (
	// aheadInterval is the interval at which all signatures are checked, see aheadTime.
	aheadInterval = time.Hour
	// signChunk is the number of names that are signed before a pause of the same duration. Signing therefore takes at most half of a
	// processor.
	signChunk = 32
	// maxNamesToSign is the maximum number of changed names that are checked one by one; beyond it all names of the zone are checked.
	maxNamesToSign = 10_000
)

// add adds names to sign.
func (h *ahead) add(changes ...map[zoneKey]*namesToSign) {
	if h.wake == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, zones := range changes {
		for key, of := range zones {
			there := h.pending[key]
			if there == nil {
				h.pending[key] = of
				continue
			}
			if there.all = there.all || of.all || len(there.owners)+len(of.owners) > maxNamesToSign; there.all {
				there.owners = nil
				continue
			}
			maps.Copy(there.owners, of.owners)
		}
	}
	if len(h.pending) > 0 {
		select {
		case h.wake <- struct{}{}:
		default: // there is a token already
		}
	}
}

// takeZone removes and returns the names of one zone. ok is false if none are pending.
func (h *ahead) takeZone() (key zoneKey, of *namesToSign, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.working = false
	for key, of = range h.pending {
		delete(h.pending, key)
		h.working = true
		return key, of, true
	}
	return key, nil, false
}

// zones returns the number of zones with names to sign.
func (h *ahead) zones() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.pending)
	if h.working {
		n++
	}
	return n
}

// signAhead creates signatures until ctx ends.
func (a *nameServer) signAhead(ctx context.Context) {
	tick := time.NewTicker(aheadInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			all := map[zoneKey]*namesToSign{}
			for _, v := range a.served.Load().views {
				for apex, z := range v.zones {
					if z.signing != nil {
						all[zoneKey{v.ID, apex}] = &namesToSign{all: true}
					}
				}
			}
			a.ahead.add(all)
		case <-a.ahead.wake:
		}
		before := a.signatures.created.Load()
		room := signatureShards * maxSignatures // more signatures would displace others
		for ctx.Err() == nil {
			key, of, ok := a.ahead.takeZone()
			if !ok {
				break
			}
			room -= a.signNames(ctx, key, of, room)
		}
		if a.signatures.created.Load()-before > maxNamesToSign {
			debug.FreeOSMemory() // answers allocate nothing, so the next collection may be far
		}
	}
}

// signNames creates the signatures of names of a zone that are missing or end soon. It returns the number of checked RRsets, at most about
// room. A failure is left to the question that needs the signature, which logs it.
func (a *nameServer) signNames(ctx context.Context, key zoneKey, of *namesToSign, room int) (checked int) {
	z := a.served.Load().zoneIn(key)
	if z == nil || z.signing == nil {
		return 0
	}
	owners := slices.Collect(maps.Keys(of.owners))
	if of.all {
		owners = z.owners()
	}
	var sets []ownedSet
	for chunk := range slices.Chunk(owners, signChunk) {
		start, before := time.Now(), a.signatures.created.Load()
		sets = z.setsToSign(sets[:0], chunk, !of.all)
		for _, s := range sets {
			if !s.signed {
				continue
			}
			if _, err := z.signing.signaturesUntil(s.owner, &s.set, start, start.Add(z.signing.aheadTime())); err != nil {
				return checked
			}
		}
		if checked += len(sets); checked >= room || ctx.Err() != nil {
			break
		}
		if a.signatures.created.Load() == before {
			continue
		}
		pause := time.NewTimer(time.Since(start))
		select {
		case <-ctx.Done():
		case <-pause.C:
		}
	}
	return checked
}

// zoneIn returns a zone by its key; nil if it does not exist.
func (s *served) zoneIn(key zoneKey) *servedZone {
	for _, v := range s.views {
		if v.ID == key.view {
			return v.zones[key.apex]
		}
	}
	return nil
}

// owners returns all names of the zone.
func (z *servedZone) owners() []string {
	z.copying.RLock()
	defer z.copying.RUnlock()
	return slices.Collect(maps.Keys(z.nodes))
}

// setsToSign appends the RRsets of owners that are signed, with their proof records. around also appends the proof records before them,
// which a new or a removed name changes.
func (z *servedZone) setsToSign(out []ownedSet, owners []string, around bool) []ownedSet {
	z.copying.RLock()
	defer z.copying.RUnlock()
	soa := z.nodes[z.apex].set(dns.TypeSOA)
	if !z.signs() || soa == nil {
		return out
	}
	proof := func(i int) int {
		i = z.previousProof(z.chain, i)
		owner, s := z.proofRecord(z.chain, i, soa.negativeTTL(), new(generatedProof))
		out = append(out, ownedSet{owner, *s, true})
		return i
	}
	for _, owner := range owners {
		out = z.appendSets(out, owner)
		var key [maxKey]byte
		i, found := z.chain.find(z.chain.appendKey(key[:0], owner))
		if found {
			if yes, _ := z.hasProof(z.chain, owner); yes || around {
				i = proof(i)
			}
		}
		if around {
			proof(i - 1)
		}
	}
	return out
}

// appendSets appends the RRsets of a name.
func (z *servedZone) appendSets(out []ownedSet, owner string) []ownedSet {
	n := z.nodes[owner]
	if n == nil {
		return out
	}
	hidden := ""
	if z.chain != nil {
		_, hidden = z.hasProof(z.chain, owner)
	}
	cut := owner != z.apex && n.set(dns.TypeNS) != nil
	for _, s := range n.sets {
		out = append(out, ownedSet{owner, s, hidden == "" && (!cut || s.kind == dns.TypeDS)})
	}
	return out
}

// findUnsigned returns the names that the stream changed in signed zones.
func (t *contentReader) findUnsigned(next *served) map[zoneKey]*namesToSign {
	out := map[zoneKey]*namesToSign{}
	for v, z := range t.changedZones(next) {
		key, change := zoneKey{v.ID, z.apex}, t.zones[z.settings.ID]
		before := t.before.zoneIn(key)
		switch {
		case z.signing == nil:
		case before == nil || before.signing != z.signing || before.zone != z.zone || change != nil && change.altersAll(z.apex):
			out[key] = &namesToSign{all: true}
		case change != nil:
			out[key] = &namesToSign{owners: change.owners(z.apex, z.signing.settings.Hashed)}
		}
	}
	return out
}

// altersAll reports whether a change alters the signed records of more names than its own: those below a delegation, or the TTLs of all
// proof records.
func (c *change) altersAll(apex string) bool {
	if len(c.removed)+len(c.added) > maxNamesToSign {
		return true
	}
	var ttls [2]uint32
	for i, records := range [][]zonedata.Record{c.removed, c.added} {
		for _, r := range records {
			switch r.Type() {
			case dns.TypeDNAME:
				return true
			case dns.TypeNS:
				if string(r.Owner()) != apex {
					return true
				}
			case dns.TypeSOA:
				of := set{ttl: r.TTL()}
				of.append(r.Data())
				ttls[i] = of.negativeTTL()
			}
		}
	}
	return ttls[0] != ttls[1]
}

// owners returns the names that a change affects. hashed adds the names above them, which have proof records of their own.
func (c *change) owners(apex string, hashed bool) map[string]struct{} {
	out := map[string]struct{}{}
	for _, r := range slices.Concat(c.removed, c.added) {
		owner := string(r.Owner())
		out[owner] = struct{}{}
		for hashed && owner != apex {
			owner = parent(owner)
			out[owner] = struct{}{}
		}
	}
	return out
}
