package dnspublish

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/engine/event"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dnssec"
	"portolan/internal/wire/zonedata"
)

// Times of looking after the keys of signed zones: when something has changed, and when nothing has.
const (
	rollPause = 2 * time.Second
	rollEvery = time.Minute
)

// rollTopic is touched where something of keys is deployed otherwise.
const rollTopic = "dns_roll"

// rolling is what there is to do with the keys of a configuration at one moment.
type rolling struct {
	configuration int64
	// zones are the signed zones that are deployed; due are those whose records are to change.
	zones []*rollingZone
	due   map[*plannedZone]bool
	// signing is how zones are signed from now on, by server and by their ids.
	signing map[int64]map[string]*zonedata.Signing
	all     []*publication
	// served is what is served of the configuration; wrong is what could not be looked at.
	served *servedNow
	wrong  error
}

// rollingZone is a signed zone that is deployed.
type rollingZone struct {
	*zoneSigning
	zone *plannedZone
	// noted are the keys of which something else is seen than before.
	noted map[uint16]bool
	// gone are the tags of keys of which something is kept that are no more.
	gone []uint16
}

// rolls reports whether the keys of signed zones are to be looked after now.
func (d *Deployer) rolls(ctx context.Context) (bool, error) {
	none, known := d.rolled.Now(struct{}{})
	switch since := time.Since(d.rolledAt); {
	case known && (none || since < rollEvery && len(d.sightings) == 0), since < rollPause:
		return false, nil
	case known:
		return true, nil
	}
	d.rolledAt, none = time.Now(), false // also where another manager does it: it is not asked again at once
	err := d.api.Store.View(ctx, func(tx *store.Tx) error {
		configurations, err := signedConfigurations(tx)
		if none = len(configurations) == 0; none {
			d.rolled.Put(tx, struct{}{}, true)
		}
		return err
	})
	return !none, err
}

// roll looks after the keys of signed zones: it notes since when they are deployed, lets others follow them and takes their places when it
// is time, and has the servers sign as it follows (RFC 6781 section 4.1).
func (d *Deployer) roll(ctx context.Context) error {
	d.rolledAt = time.Now()
	var configurations []int64
	if err := d.api.Store.View(ctx, func(tx *store.Tx) (err error) {
		d.rolled.Put(tx, struct{}{}, false)
		configurations, err = signedConfigurations(tx)
		return err
	}); err != nil {
		return err
	}
	var wrong error
	d.sightings, d.sighted = map[sighting]int64{}, d.sightings // those of what is gone are forgotten
	for _, id := range configurations {                        // one that cannot be looked after keeps no other from it
		wrong = errors.Join(wrong, d.rollConfiguration(ctx, id))
	}
	return wrong
}

// signedConfigurations gives the configurations that have keys of zones.
func signedConfigurations(tx *store.Tx) ([]int64, error) {
	found := map[int64]bool{}
	err := tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("signingKeys"),
		store.Compare{Field: store.Field{Kind: store.ColumnText, Path: []string{"type"}}, Op: "eq", Value: "KeySigningKey"}}},
		func(r *store.Resource) error {
			found[r.Configuration] = true
			return nil
		})
	return slices.Sorted(maps.Keys(found)), err
}

// rollConfiguration looks after the keys of one configuration.
func (d *Deployer) rollConfiguration(ctx context.Context, configuration int64) error {
	var r *rolling
	if err := d.api.Store.View(ctx, func(tx *store.Tx) (err error) {
		p, err := newPlan(tx, d.api, configuration)
		if err != nil {
			return err
		}
		served, err := p.servedNow(d.points)
		if err != nil {
			return err
		}
		r = p.rolling(served, &sightings{d.sighted, d.sightings}, d.api.Store.Now())
		return nil
	}); err != nil {
		return err
	}
	var err error
	switch {
	case r.acts(): // what follows from that is seen to at the next look
		err = d.rollKeys(ctx, r)
	case len(r.all)+len(r.signing) > 0:
		err = d.rollServers(ctx, r)
	}
	return errors.Join(err, r.wrong)
}

// acts reports whether there is something to note of keys, or to do with them.
func (r *rolling) acts() bool {
	return slices.ContainsFunc(r.zones, func(z *rollingZone) bool {
		return len(z.noted)+len(z.stage.Ending)+len(z.stage.Gone)+len(z.gone) > 0 ||
			slices.ContainsFunc(slices.Concat(z.stage.Expired, z.stage.Waiting), z.unwarned)
	})
}

// rolling finds what there is to do with the keys of the zones that are deployed. A zone that cannot be looked at keeps no other from it.
func (p *plan) rolling(served *servedNow, sightings *sightings, now time.Time) *rolling {
	r := &rolling{configuration: p.configuration, due: map[*plannedZone]bool{}, signing: map[int64]map[string]*zonedata.Signing{},
		served: served}
	for _, z := range p.zones {
		signs := served.signs(z.id)
		if !p.maySign(z) || len(signs) == 0 || p.isForeign(z) {
			continue
		}
		s, err := p.signingOf(z, now)
		if err == nil && s != nil {
			one := &rollingZone{zoneSigning: s, zone: z, noted: map[uint16]bool{}}
			if err = one.look(p, r, signs, sightings, now); err == nil {
				r.zones = append(r.zones, one)
			}
		}
		if err != nil {
			r.wrong = errors.Join(r.wrong, notSigned(z, err))
		}
	}
	if r.acts() {
		return r
	}
	for z := range r.due {
		c, err := p.publication(z, func(e zonedata.Entry) bool { return isKeyType(e.Record.Type()) }, now)
		if err != nil {
			r.wrong = errors.Join(r.wrong, notSigned(z, err))
		}
		if c != nil {
			r.all = append(r.all, c)
		}
	}
	r.wrong = errors.Join(r.wrong, p.raiseSerials(r, now), p.resign(r))
	return r
}

// raiseSerials gives zones that have not changed for long another serial number, so that those who copy them get signatures that hold.
func (p *plan) raiseSerials(r *rolling, now time.Time) (wrong error) {
	for _, z := range r.zones {
		validity, renewal := schema.LengthOf(z.Policy.SignatureValidityPeriod), schema.LengthOf(z.Policy.SignatureResigningPeriod)
		deployed, there, err := readDeployed(p.tx, z.zone.id)
		if err != nil {
			wrong = errors.Join(wrong, err)
			continue
		}
		if !there || r.due[z.zone] || now.Sub(time.UnixMilli(deployed.number)) < (validity-renewal)/2 {
			continue
		}
		c, err := p.onlySerial(z.zone, deployed, now)
		if err != nil {
			wrong = errors.Join(wrong, notSigned(z.zone, err))
			continue
		}
		r.all = append(r.all, c)
	}
	return wrong
}

// onlySerial gives a zone as it is, with another serial number.
func (p *plan) onlySerial(z *plannedZone, deployed deployedZone, now time.Time) (*publication, error) {
	c := &publication{zone: z, before: deployed, existed: true, complete: deployed.complete}
	soa, err := p.soaOf(z)
	if err != nil {
		return nil, err
	}
	c.serial = p.nextSerial(z, uint32(deployed.serial), true, now) //nolint:gosec // of 32 bits
	c.removed = []zonedata.Entry{soa}
	soa.Record = withSerial(soa.Record, c.serial)
	c.added = []zonedata.Entry{soa}
	return c, c.count()
}

// look compares what is deployed of the keys of a zone with what is to be.
func (z *rollingZone) look(p *plan, r *rolling, signs map[string]bool, sightings *sightings, now time.Time) error {
	owner := names{}
	if err := owner.add(z.zone.row.Key); err != nil {
		return err
	}
	_, there, err := readDeployed(p.tx, z.zone.id)
	if err != nil || !there {
		return err
	}
	own, err := p.deployedOf(z.zone.id, owner)
	if err != nil {
		return err
	}
	var above []zonedata.Entry
	aboveThere := false
	if z.above != nil {
		if _, aboveThere, err = readDeployed(p.tx, z.above.id); err == nil && aboveThere {
			above, err = p.deployedOf(z.above.id, owner)
		}
		if err != nil {
			return err
		}
	}
	if err := z.note(r.served, own, above, signs, sightings, now); err != nil {
		return err
	}
	z.stageAt(now)
	ttl := uint32(0)
	for _, e := range own {
		if e.Record.Type() == wire.TypeSOA {
			ttl = e.Record.TTL()
		}
	}
	if err := z.compare(r, z.zone, own, z.Records(z.stage, ttl)); err != nil || !aboveThere {
		return err
	}
	return z.compare(r, z.above, slices.DeleteFunc(above, func(e zonedata.Entry) bool { return e.Record.Type() != wire.TypeDS }),
		z.parentRecords())
}

// note finds since when keys are deployed, and those of which something is kept that are no more.
func (z *rollingZone) note(served *servedNow, own, above []zonedata.Entry, signs map[string]bool, sightings *sightings,
	now time.Time,
) error {
	is, err := tagsIn(own)
	if err != nil {
		return err
	}
	isAbove, err := tagsIn(above)
	if err != nil {
		return err
	}
	there := map[uint16]bool{}
	for _, k := range z.Keys {
		tag := k.Tag()
		there[tag] = true
		one := z.seen[tag]
		one.Key = served.since(one.Key, is[tag], sighting{z.zone.id, tag, "DNSKEY"}, z.zone.id, sightings, now)
		one.Signing = served.since(one.Signing, signs[k.PublicKey], sighting{z.zone.id, tag, "RRSIG"}, z.zone.id, sightings, now)
		if z.above != nil {
			one.Parent = served.since(one.Parent, isAbove[tag], sighting{z.zone.id, tag, "DS"}, z.above.id, sightings, now)
		}
		if one != z.seen[tag] {
			z.seen[tag], z.noted[tag] = one, true
		}
	}
	for tag := range z.seen {
		if !there[tag] {
			z.gone = append(z.gone, tag)
		}
	}
	return nil
}

// tagsIn gives the tags of keys among records: those of DNSKEY and of DS records.
func tagsIn(entries []zonedata.Entry) (map[uint16]bool, error) {
	tags := map[uint16]bool{}
	for _, e := range entries {
		rr, err := e.Record.RR()
		if err != nil {
			return nil, err
		}
		switch x := rr.(type) {
		case *wire.DNSKEY:
			tags[x.KeyTag()] = true
		case *wire.DS:
			tags[x.KeyTag] = true
		}
	}
	return tags, nil
}

// compare finds whether the records of a zone that follow from keys are others than they are to be: one that is wanted is missing, or one
// of a key of ours is there that is not wanted. Records of others are left.
func (z *rollingZone) compare(r *rolling, at *plannedZone, deployed []zonedata.Entry, wanted []wire.RR) error {
	entries, err := entriesOfRecords(wanted)
	if err != nil {
		return err
	}
	same := func(list []zonedata.Entry, e zonedata.Entry) bool {
		return slices.ContainsFunc(list, func(o zonedata.Entry) bool { return e.Compare(o) == 0 })
	}
	for _, e := range entries {
		if !same(deployed, e) {
			r.due[at] = true
		}
	}
	for _, e := range deployed {
		if same(entries, e) || !isKeyType(e.Record.Type()) {
			continue
		}
		tags, err := tagsIn([]zonedata.Entry{e})
		if err != nil {
			return err
		}
		for tag := range tags {
			if _, ours := z.seen[tag]; ours {
				r.due[at] = true
			}
		}
	}
	return nil
}

// resign finds the servers that are to sign with other keys than they do.
func (p *plan) resign(r *rolling) (wrong error) {
	for _, z := range r.zones {
		want, err := z.served(p.tx, p.api)
		if err != nil {
			wrong = errors.Join(wrong, notSigned(z.zone, err))
			continue
		}
		for _, server := range r.served.servers[z.zone.id] {
			for _, one := range r.served.settings[server].Zones {
				if one.ID != z.zone.id || one.Signing == nil || reflect.DeepEqual(one.Signing, want) {
					continue
				}
				if r.signing[server] == nil {
					r.signing[server] = map[string]*zonedata.Signing{}
				}
				r.signing[server][one.ID] = want
			}
		}
	}
	return wrong
}

// rollKeys notes what was seen of keys, makes those that follow, and deletes those that nobody needs any more.
func (d *Deployer) rollKeys(ctx context.Context, r *rolling) error {
	rolled := map[string]int{}
	err := d.api.WithOutside(ctx, 0, "", func(o resource.Outside) error {
		return d.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
			clear(rolled)
			tx.Touch(rollTopic)
			c := &resource.Change{Tx: tx, API: d.api, Made: o.Made}
			for _, z := range r.zones {
				if err := z.act(c, rolled); err != nil {
					return notSigned(z.zone, err)
				}
			}
			return nil
		})
	})
	if err == nil {
		for kind, n := range rolled {
			d.Rolled(kind, n)
		}
	}
	return err
}

// unwarned reports whether nobody knows yet that a key goes on beyond its time.
func (z *rollingZone) unwarned(k *dnssec.SignedKey) bool { return !z.seen[k.Tag()].warned }

// act does what there is to do with the keys of a zone. A key that somebody has changed or deleted meanwhile is left to the next look.
func (z *rollingZone) act(c *resource.Change, rolled map[string]int) error {
	for _, k := range slices.Concat(z.stage.Ending, z.stage.Gone) {
		if row, err := c.Tx.Get(k.Row.ID); store.IsNotFound(err) || err == nil && row.Version != k.Row.Version {
			return nil
		} else if err != nil {
			return err
		}
	}
	seen, noted := maps.Clone(z.seen), maps.Clone(z.noted) // the transaction may be tried again
	warn := func(k *dnssec.SignedKey, text string) error {
		one := seen[k.Tag()]
		if one.warned {
			return nil
		}
		one.warned = true
		seen[k.Tag()], noted[k.Tag()] = one, true
		return z.tell(c, k, "WARNING", text)
	}
	for _, k := range z.stage.Expired {
		if err := warn(k, "its time is over, and it goes on: keys of the configuration are not made anew by themselves "+
			"(keyAutoRegenerationEnabled)"); err != nil {
			return err
		}
	}
	for _, k := range z.stage.Waiting {
		if err := warn(k, "its DS record is to be put into the zone above ("+z.DS(k).String()+
			"); then say so with dsConfirmed: the key before it stays until then"); err != nil {
			return err
		}
	}
	for _, tag := range z.gone {
		if err := c.Tx.Write("DELETE FROM dns_key WHERE zone = ? AND tag = ?", z.zone.id, int64(tag)); err != nil {
			return err
		}
	}
	for tag := range noted {
		if err := writeSeen(c.Tx, z.zone.id, tag, seen[tag]); err != nil {
			return err
		}
	}
	for _, k := range z.stage.Ending {
		if err := z.Follow(c, k); err != nil {
			return err
		}
		rolled["made"]++
		text := "another key is to follow it"
		if k.SignsKeys && z.above == nil {
			text += "; it does once the DS record of that one is in the zone above, and its dsConfirmed says so"
		}
		if err := z.tell(c, k, "INFO", text); err != nil {
			return err
		}
	}
	for _, k := range z.stage.Gone {
		if err := dnssec.Forget(c, k); err != nil {
			return err
		}
		rolled["removed"]++
		if err := c.Tx.Write("DELETE FROM dns_key WHERE zone = ? AND tag = ?", z.zone.id, int64(k.Tag())); err != nil {
			return err
		}
		if err := z.tell(c, k, "INFO", "another key has taken its place, and it is gone"); err != nil {
			return err
		}
	}
	return nil
}

// tell adds an event about a key.
func (z *rollingZone) tell(c *resource.Change, k *dnssec.SignedKey, kind, text string) error {
	return event.Add(c.Tx, event.Event{EventType: kind, Category: "DNSSEC_KEY_EXPIRATION", Subcategory: "DNS", SourceName: z.zone.zoneName(),
		Message: fmt.Sprintf("%s %d of zone %s: %s", k.Row.Type, k.Tag(), z.zone.zoneName(), text)}, z.Holder.ID)
}

// rollServers publishes the records of keys that have changed, and has servers sign with others.
func (d *Deployer) rollServers(ctx context.Context, r *rolling) error {
	d.plan = nil
	var told []string
	err := d.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		told = nil
		number, err := nextNumber(tx)
		if err != nil {
			return err
		}
		changed, err := publish(tx, r.configuration, number, r.all)
		if err != nil {
			return err
		}
		for _, server := range slices.Sorted(maps.Keys(r.signing)) {
			also, err := signOtherwise(tx, d.api.Sealer, server, number, r.signing[server])
			if err != nil {
				return err
			}
			if also && !slices.Contains(changed, server) {
				changed = append(changed, server)
			}
		}
		tx.Touch(rollTopic)
		told, err = tellServers(tx, d.api, d.points, changed)
		return err
	})
	if err == nil {
		for _, point := range told {
			d.points.Wake(point)
		}
	}
	return err
}
