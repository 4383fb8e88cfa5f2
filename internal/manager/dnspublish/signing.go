package dnspublish

import (
	"fmt"
	"slices"
	"strings"
	"time"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/base/naming"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dns"
	"portolan/internal/manager/dnssec"
	"portolan/internal/wire/zonedata"
)

// zoneSigning is the intended signing of a zone at a time.
type zoneSigning struct {
	*dnssec.Signed
	stage dnssec.Stage
	// seen are the times since when the data of its keys is served, by tag.
	seen map[uint16]keySeen
	// above is the parent zone, if this manager deploys it; else nil.
	above *plannedZone
}

// keySeen are the times since when the data of a key is served. warned reports that an event was added, because the key is overdue or waits
// for its DS record.
type keySeen struct {
	dnssec.CachedSince
	warned bool
}

// signingOf returns how a zone should be signed at a time; nil if it is not signed.
func (p *plan) signingOf(z *plannedZone, now time.Time) (*zoneSigning, error) {
	holder := z.row
	if z.row.ID == 0 { // a reverse zone that was not created by a user
		var err error
		if holder, err = p.tx.Get(z.chain[0]); err != nil {
			return nil, err
		}
	}
	if !slices.Contains([]string{"Zone", "IPv4Block", "IPv4Network"}, holder.Type) {
		return nil, nil
	}
	signed, err := dnssec.SignedBy(p.tx, p.api, holder, z.row.Key)
	if err != nil || signed == nil {
		return nil, err
	}
	s := &zoneSigning{Signed: signed, above: p.parentZone(z)}
	if s.seen, err = readSeen(p.tx, z.id); err != nil {
		return nil, err
	}
	s.stageAt(now)
	return s, nil
}

// stageAt computes the stage of the keys at a time.
func (s *zoneSigning) stageAt(now time.Time) { s.stage = s.Stage(s.seenKeys(), now, s.above != nil) }

// seenKeys returns the times since when the data of its keys is served, by tag.
func (s *zoneSigning) seenKeys() map[uint16]dnssec.CachedSince {
	seen := map[uint16]dnssec.CachedSince{}
	for tag, one := range s.seen {
		seen[tag] = one.CachedSince
	}
	return seen
}

// readSeen returns the stored times since when the data of the keys of a zone is served, by tag.
func readSeen(tx *store.Tx, zone string) (map[uint16]keySeen, error) {
	seen := map[uint16]keySeen{}
	at := func(ms int64) time.Time {
		if ms == 0 {
			return time.Time{}
		}
		return time.UnixMilli(ms)
	}
	err := tx.Each(func(scan func(...any) error) error {
		var tag, published, parent, signing, warned int64
		err := scan(&tag, &published, &parent, &signing, &warned)
		seen[uint16(tag)] = keySeen{ //nolint:gosec // a tag has 16 bits
			dnssec.CachedSince{Key: at(published), Parent: at(parent), Signing: at(signing)}, warned != 0,
		}
		return err
	}, "SELECT tag, published, parent, signing, warned FROM dns_key WHERE zone = ?", zone)
	return seen, err
}

// writeSeen stores the times since when the data of a key is served.
func writeSeen(tx *store.Tx, zone string, tag uint16, one keySeen) error {
	ms := func(t time.Time) int64 {
		if t.IsZero() {
			return 0
		}
		return t.UnixMilli()
	}
	warned := 0
	if one.warned {
		warned = 1
	}
	return tx.Write("INSERT INTO dns_key (zone, tag, published, parent, signing, warned) VALUES (?, ?, ?, ?, ?, ?)"+
		" ON CONFLICT (zone, tag) DO UPDATE SET published = excluded.published, parent = excluded.parent, signing = excluded.signing,"+
		" warned = excluded.warned", zone, int64(tag), ms(one.Key), ms(one.Parent), ms(one.Signing), warned)
}

// parentZone returns the parent zone, if this manager deploys it; else nil.
func (p *plan) parentZone(z *plannedZone) (found *plannedZone) {
	found = p.nearestAbove(z)
	if found == nil || p.isForeign(found) {
		return nil
	}
	if found.row.ID == 0 || z.row.ID == 0 || found.row.ID == z.row.Parent || found.row.Type == "InternalRootZone" {
		return found
	}
	return nil // a zone between them is not deployed by this manager
}

// keyRecords returns the records of a zone for DNSSEC: its own keys, and the DS records of signed zones that it delegates.
func (p *plan) keyRecords(z *plannedZone, ttl uint32, now time.Time) (all []zonedata.Entry, err error) {
	var rrs []wire.RR
	s, err := p.signingOf(z, now)
	if err != nil {
		return nil, err
	}
	if s != nil {
		rrs = s.Records(s.stage, ttl)
	}
	for _, below := range p.signedBelow(z) {
		s, err := p.signingOf(below, now)
		if err != nil {
			return nil, err
		}
		if s != nil {
			rrs = append(rrs, s.parentRecords()...)
		}
	}
	return entriesOfRecords(rrs)
}

// keyPublication returns the changes of the records of keys at the names of a deployed zone and of the signed zones that it delegates, or
// nil if there are none. The other records of the zone are not read.
func (p *plan) keyPublication(z *plannedZone, now time.Time) (*publication, error) {
	deployed, there, err := readDeployed(p.tx, z.id)
	if err != nil || !there || p.isForeign(z) {
		return nil, err
	}
	owners := map[string]bool{z.fqdn(): true}
	for _, below := range p.signedBelow(z) {
		owners[below.fqdn()] = true
	}
	before, err := p.deployedAt(z, owners)
	if err != nil {
		return nil, err
	}
	after, err := p.keyRecords(z, p.authority(z).Hdr.Ttl, now)
	if err != nil {
		return nil, err
	}
	others := func(e zonedata.Entry) bool { return !isKeyType(e.Record().Type()) }
	return p.changeOf(z, deployed, slices.DeleteFunc(before, others), inOrder(after), now)
}

// parentRecords returns the DS records of a zone for its parent zone.
func (s *zoneSigning) parentRecords() (rrs []wire.RR) {
	for _, k := range s.stage.DS {
		ds := s.DS(k)
		ds.Hdr.Ttl = dns.DefaultTTL
		rrs = append(rrs, ds)
	}
	return rrs
}

// entriesOfRecords returns the records in wire format.
func entriesOfRecords(rrs []wire.RR) (all []zonedata.Entry, err error) {
	for _, rr := range rrs {
		r, err := zonedata.NewRecord(rr)
		if err != nil {
			return nil, err
		}
		all = append(all, zonedata.NewEntry(r))
	}
	return all, nil
}

// signedBelow returns the signed zones that a zone delegates.
func (p *plan) signedBelow(z *plannedZone) []*plannedZone {
	if p.below == nil {
		p.below = map[*plannedZone][]*plannedZone{}
		for _, one := range p.zones {
			if !p.maySign(one) {
				continue
			}
			if above := p.parentZone(one); above != nil {
				p.below[above] = append(p.below[above], one)
			}
		}
	}
	return p.below[z]
}

// maySign reports whether a zone may have a signing policy: its own, or that of its block or network.
func (p *plan) maySign(z *plannedZone) bool {
	return z.row.ID == 0 || z.row.Ref("signingPolicy") != 0
}

// served returns the signing settings of a zone for a server, including the private keys.
func (s *zoneSigning) served(tx *store.Tx, api *resource.API) (*zonedata.Signing, error) {
	out := &zonedata.Signing{Validity: int64(schema.LengthOf(s.Policy.SignatureValidityPeriod) / time.Second),
		Renewal: int64(schema.LengthOf(s.Policy.SignatureResigningPeriod) / time.Second), Hashed: s.Hashed()}
	for _, k := range s.stage.Signing {
		plain, err := api.Secrets(tx, k.Object)
		if err != nil {
			return nil, err
		}
		out.Keys = append(out.Keys, zonedata.ZoneKey{Flags: k.Record.Flags, Algorithm: k.Record.Algorithm, Public: k.PublicKey,
			Private: plain["privateKey"]})
	}
	return out, nil
}

// isKeyType reports whether records of a type exist because a zone, or a zone that it delegates (DS), is signed.
func isKeyType(kind uint16) bool {
	return slices.Contains([]uint16{wire.TypeDNSKEY, wire.TypeCDS, wire.TypeCDNSKEY, wire.TypeNSEC3PARAM, wire.TypeDS}, kind)
}

// zoneName returns the name of a zone for messages, without its final dot.
func (z *plannedZone) zoneName() string { return strings.TrimSuffix(naming.Clean(z.row.Key), ".") }

// notSigned wraps an error about the signing of a zone.
func notSigned(z *plannedZone, err error) error {
	return fmt.Errorf("read the signing state of zone %s: %w", z.zoneName(), err)
}
