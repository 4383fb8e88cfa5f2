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

// Intervals between checks of keys: the minimum after a change, and the interval without a change.
const (
	minRollInterval = 2 * time.Second
	rollInterval    = time.Minute
)

// rollTopic is touched when deployed data of keys changes.
const rollTopic = "dns_roll"

// rolling is the pending work on the keys of a configuration.
type rolling struct {
	configuration int64
	// zones are the signed zones that are deployed; due are the zones whose records must change.
	zones []*rollingZone
	due   map[*plannedZone]bool
	// signing is the new signing of zones, by server and by zone id.
	signing map[int64]map[string]*zonedata.Signing
	all     []*publication
	// served is the state of the servers. failures are the errors of zones that could not be examined.
	served   *servedNow
	failures error
}

// rollingZone is a signed zone that is deployed.
type rollingZone struct {
	*zoneSigning
	zone *plannedZone
	// noted are the tags of keys whose times have changed.
	noted map[uint16]bool
	// deletedTags are the tags of deleted keys that still have stored times.
	deletedTags []uint16
}

// isRollDue reports whether the keys of signed zones must be checked now.
func (d *Deployer) isRollDue(ctx context.Context) (bool, error) {
	none, known := d.rolled.Now(struct{}{})
	switch since := time.Since(d.rolledAt); {
	case known && (none || since < rollInterval && len(d.unconfirmed) == 0), since < minRollInterval:
		return false, nil
	case known:
		return true, nil
	}
	d.rolledAt, none = time.Now(), false // also if another manager does the work, so that the check is not repeated at once
	err := d.api.Store.View(ctx, func(tx *store.Tx) error {
		configurations, err := signedConfigurations(tx)
		if none = len(configurations) == 0; none {
			d.rolled.Put(tx, struct{}{}, true)
		}
		return err
	})
	return !none, err
}

// roll checks the keys of signed zones. It records since when they are served, creates and deletes keys when it is time, and changes how
// the servers sign (RFC 6781 section 4.1).
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
	d.unconfirmed, d.unconfirmedBefore = map[keyData]int64{}, d.unconfirmed // entries of deleted keys are dropped
	for _, id := range configurations {                                     // an error in one configuration does not stop the others
		wrong = errors.Join(wrong, d.rollConfiguration(ctx, id))
	}
	return wrong
}

// signedConfigurations returns the configurations that have keys of zones, sorted.
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

// rollConfiguration checks the keys of one configuration.
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
		r = p.computeRollovers(served, &unconfirmedData{d.unconfirmedBefore, d.unconfirmed}, d.api.Store.Now())
		return nil
	}); err != nil {
		return err
	}
	var err error
	switch {
	case r.hasWork(): // the next check handles the consequences
		err = d.rollKeys(ctx, r)
	case len(r.all)+len(r.signing) > 0:
		err = d.rollServers(ctx, r)
	}
	return errors.Join(err, r.failures)
}

// hasWork reports whether times or keys must be written.
func (r *rolling) hasWork() bool {
	return slices.ContainsFunc(r.zones, func(z *rollingZone) bool {
		return len(z.noted)+len(z.stage.Ending)+len(z.stage.Obsolete)+len(z.deletedTags) > 0 ||
			slices.ContainsFunc(slices.Concat(z.stage.Expired, z.stage.Waiting), z.isUnwarned)
	})
}

// computeRollovers computes the pending work on the keys of deployed zones. An error in one zone does not stop the others.
func (p *plan) computeRollovers(served *servedNow, unconfirmed *unconfirmedData, now time.Time) *rolling {
	r := &rolling{configuration: p.configuration, due: map[*plannedZone]bool{}, signing: map[int64]map[string]*zonedata.Signing{},
		served: served}
	for _, z := range p.zones {
		signs := served.signingKeys(z.id)
		if !p.maySign(z) || len(signs) == 0 || p.isForeign(z) {
			continue
		}
		s, err := p.signingOf(z, now)
		if err == nil && s != nil {
			one := &rollingZone{zoneSigning: s, zone: z, noted: map[uint16]bool{}}
			if err = one.inspect(p, r, signs, unconfirmed, now); err == nil {
				r.zones = append(r.zones, one)
			}
		}
		if err != nil {
			r.failures = errors.Join(r.failures, notSigned(z, err))
		}
	}
	if r.hasWork() {
		return r
	}
	for z := range r.due {
		c, err := p.keyPublication(z, now)
		if err != nil {
			r.failures = errors.Join(r.failures, notSigned(z, err))
		}
		if c != nil {
			r.all = append(r.all, c)
		}
	}
	r.failures = errors.Join(r.failures, p.raiseSerials(r, now), p.resign(r))
	return r
}

// raiseSerials gives zones that have not changed for a long time a new serial number, so that secondaries transfer fresh signatures.
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

// onlySerial returns a publication that changes only the serial number.
func (p *plan) onlySerial(z *plannedZone, deployed deployedZone, now time.Time) (*publication, error) {
	c := &publication{zone: z, before: deployed, existed: true, complete: deployed.complete}
	soa, err := p.soaOf(z)
	if err != nil {
		return nil, err
	}
	c.serial = p.nextSerial(z, uint32(deployed.serial), true, now) //nolint:gosec // of 32 bits
	c.removed = []zonedata.Entry{soa}
	soa = zonedata.NewEntry(withSerial(soa.Record(), c.serial))
	c.added = []zonedata.Entry{soa}
	return c, c.count()
}

// inspect compares the deployed data of the keys of a zone with the data that is due.
func (z *rollingZone) inspect(p *plan, r *rolling, signs map[string]bool, unconfirmed *unconfirmedData, now time.Time) error {
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
	if err := z.recordSeen(r.served, own, above, signs, unconfirmed, now); err != nil {
		return err
	}
	z.stageAt(now)
	ttl := uint32(0)
	for _, e := range own {
		if e.Record().Type() == wire.TypeSOA {
			ttl = e.Record().TTL()
		}
	}
	if err := z.compare(r, z.zone, own, z.Records(z.stage, ttl)); err != nil || !aboveThere {
		return err
	}
	return z.compare(r, z.above, slices.DeleteFunc(above, func(e zonedata.Entry) bool { return e.Record().Type() != wire.TypeDS }),
		z.parentRecords())
}

// recordSeen updates the times since when the data of keys is served, and finds deleted keys with stored times.
func (z *rollingZone) recordSeen(served *servedNow, own, above []zonedata.Entry, signs map[string]bool, unconfirmed *unconfirmedData,
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
		one.Key = served.servedSince(one.Key, is[tag], keyData{z.zone.id, tag, "DNSKEY"}, z.zone.id, unconfirmed, now)
		one.Signing = served.servedSince(one.Signing, signs[k.PublicKey], keyData{z.zone.id, tag, "RRSIG"}, z.zone.id, unconfirmed, now)
		if z.above != nil {
			one.Parent = served.servedSince(one.Parent, isAbove[tag], keyData{z.zone.id, tag, "DS"}, z.above.id, unconfirmed, now)
		}
		if one != z.seen[tag] {
			z.seen[tag], z.noted[tag] = one, true
		}
	}
	for tag := range z.seen {
		if !there[tag] {
			z.deletedTags = append(z.deletedTags, tag)
		}
	}
	return nil
}

// tagsIn returns the key tags of the DNSKEY and DS records.
func tagsIn(entries []zonedata.Entry) (map[uint16]bool, error) {
	tags := map[uint16]bool{}
	for _, e := range entries {
		rr, err := e.Record().RR()
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

// compare marks a zone as due if a wanted record is missing, or if an unwanted record of one of our keys is deployed. Records of other keys
// are ignored.
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
		if same(entries, e) || !isKeyType(e.Record().Type()) {
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

// resign finds the servers that must sign with other keys.
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

// rollKeys stores the times of keys, creates successors, and deletes keys that are no longer needed.
func (d *Deployer) rollKeys(ctx context.Context, r *rolling) error {
	rolled := map[string]int{}
	err := d.api.RetryWithWork(ctx, 0, errors.New("the rollover of keys asks no questions"), func(o resource.Outside) error {
		return d.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
			clear(rolled)
			tx.Touch(rollTopic)
			c := &resource.Change{Tx: tx, API: d.api, Results: o.Results}
			for _, z := range r.zones {
				if err := z.apply(c, rolled); err != nil {
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

// isUnwarned reports whether no event was added yet for an overdue or waiting key.
func (z *rollingZone) isUnwarned(k *dnssec.SignedKey) bool { return !z.seen[k.Tag()].warned }

// apply does the pending work on the keys of a zone. If a key was changed or deleted meanwhile, all is left to the next check.
func (z *rollingZone) apply(c *resource.Change, rolled map[string]int) error {
	for _, k := range slices.Concat(z.stage.Ending, z.stage.Obsolete) {
		if row, err := c.Tx.Get(k.Row.ID); store.IsNotFound(err) || err == nil && row.Version != k.Row.Version {
			return nil
		} else if err != nil {
			return err
		}
	}
	seen, noted := maps.Clone(z.seen), maps.Clone(z.noted) // the transaction may be retried
	warn := func(k *dnssec.SignedKey, text string) error {
		one := seen[k.Tag()]
		if one.warned {
			return nil
		}
		one.warned = true
		seen[k.Tag()], noted[k.Tag()] = one, true
		return z.addEvent(c, k, "WARNING", text)
	}
	for _, k := range z.stage.Expired {
		if err := warn(k, "its lifetime is over but it stays in use: automatic key regeneration is disabled "+
			"(keyAutoRegenerationEnabled)"); err != nil {
			return err
		}
	}
	for _, k := range z.stage.Waiting {
		if err := warn(k, "add its DS record to the parent zone ("+z.DS(k).String()+
			"), then set dsConfirmed: the previous key stays until then"); err != nil {
			return err
		}
	}
	for _, tag := range z.deletedTags {
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
		text := "a successor key was created"
		if k.SignsKeys && z.above == nil {
			text += "; it takes over after its DS record is in the parent zone and its dsConfirmed is true"
		}
		if err := z.addEvent(c, k, "INFO", text); err != nil {
			return err
		}
	}
	for _, k := range z.stage.Obsolete {
		if err := dnssec.Forget(c, k); err != nil {
			return err
		}
		rolled["removed"]++
		if err := c.Tx.Write("DELETE FROM dns_key WHERE zone = ? AND tag = ?", z.zone.id, int64(k.Tag())); err != nil {
			return err
		}
		if err := z.addEvent(c, k, "INFO", "it was replaced by another key and deleted"); err != nil {
			return err
		}
	}
	return nil
}

// addEvent adds an event about a key.
func (z *rollingZone) addEvent(c *resource.Change, k *dnssec.SignedKey, kind, text string) error {
	return event.Add(c.Tx, event.Event{EventType: kind, Category: "DNSSEC_KEY_EXPIRATION", Subcategory: "DNS", SourceName: z.zone.zoneName(),
		Message: fmt.Sprintf("%s %d of zone %s: %s", k.Row.Type, k.Tag(), z.zone.zoneName(), text)}, z.Holder.ID)
}

// rollServers publishes changed records of keys, and changes how servers sign.
func (d *Deployer) rollServers(ctx context.Context, r *rolling) error {
	d.plan = nil
	var toWake []string
	err := d.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		toWake = nil
		number, err := nextNumber(tx)
		if err != nil {
			return err
		}
		changed, err := publish(tx, r.configuration, number, r.all, readTime{})
		if err != nil {
			return err
		}
		for _, server := range slices.Sorted(maps.Keys(r.signing)) {
			also, err := changeSigning(tx, d.api.Sealer, server, number, r.signing[server])
			if err != nil {
				return err
			}
			if also && !slices.Contains(changed, server) {
				changed = append(changed, server)
			}
		}
		tx.Touch(rollTopic)
		toWake, err = markServersChanged(tx, d.api, d.points, changed)
		return err
	})
	if err == nil {
		for _, point := range toWake {
			d.points.Wake(point)
		}
	}
	return err
}
