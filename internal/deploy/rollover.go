package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"portolan/internal/dns"
	"portolan/internal/event"
	"portolan/internal/resource"
	"portolan/internal/store"
	"portolan/internal/zonedata"

	wire "github.com/miekg/dns"
)

// Times of looking after the keys of signed zones: when something has changed, and when nothing has.
const (
	rollPause = 2 * time.Second
	rollEvery = time.Minute
)

// rolling is what there is to do with the keys of a configuration at one moment.
type rolling struct {
	configuration int64
	// zones are the signed zones that are deployed; due are those whose records are to change.
	zones []*rollingZone
	due   map[*plannedZone]bool
	// settings are those of servers that sign otherwise from now on.
	settings map[int64]string
	all      []*publication
}

// rollingZone is a signed zone that is deployed.
type rollingZone struct {
	*zoneSigning
	zone *plannedZone
	// noted are the keys of which something else is seen than before.
	noted map[uint16]bool
}

// rolls reports whether the keys of signed zones are to be looked after now.
func (d *Deployer) rolls(ctx context.Context) (bool, error) {
	none, known := d.rolled.Now(struct{}{})
	switch since := time.Since(d.rolledAt); {
	case known && (none || since < rollEvery), since < rollPause:
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
	for _, id := range configurations {
		if err := d.rollConfiguration(ctx, id); err != nil {
			return err
		}
	}
	return nil
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
		r, err = p.rolling(d.api.Store.Now())
		return err
	}); err != nil {
		return err
	}
	if r.acts() { // what follows from that is seen to at the next look
		return d.rollKeys(ctx, r)
	}
	if len(r.all) == 0 && len(r.settings) == 0 {
		return nil
	}
	return d.rollServers(ctx, r)
}

// acts reports whether there is something to note of keys, or to do with them.
func (r *rolling) acts() bool {
	return slices.ContainsFunc(r.zones, func(z *rollingZone) bool {
		return len(z.noted)+len(z.stage.Ending)+len(z.stage.Gone) > 0 || slices.ContainsFunc(z.stage.Expired, z.unwarned)
	})
}

// rolling finds what there is to do with the keys of the zones that are deployed.
func (p *plan) rolling(now time.Time) (*rolling, error) {
	r := &rolling{configuration: p.configuration, due: map[*plannedZone]bool{}, settings: map[int64]string{}}
	signs, err := p.servedSigned()
	if err != nil {
		return nil, err
	}
	for _, z := range p.zones {
		if !p.maySign(z) || len(signs[z.id]) == 0 || p.isForeign(z) {
			continue
		}
		s, err := p.signingOf(z, now)
		if err != nil {
			return nil, notSigned(z, err)
		}
		if s == nil {
			continue
		}
		one := &rollingZone{zoneSigning: s, zone: z, noted: map[uint16]bool{}}
		if err := one.look(p, r, signs[z.id], now); err != nil {
			return nil, notSigned(z, err)
		}
		r.zones = append(r.zones, one)
	}
	if r.acts() {
		return r, nil
	}
	for z := range r.due {
		c, err := p.publication(z, func(e zonedata.Entry) bool { return isKeyType(e.Record.Type()) }, now)
		if err != nil {
			return nil, err
		}
		if c != nil {
			r.all = append(r.all, c)
		}
	}
	return r, p.resign(r)
}

// servedSigned gives the public keys that all servers of zones sign with, by the ids of the zones.
func (p *plan) servedSigned() (map[string]map[string]bool, error) {
	signs := map[string]map[string]bool{}
	return signs, p.eachServed(func(_ int64, settings *zonedata.Settings) error {
		for _, z := range settings.Zones {
			keys := map[string]bool{}
			if z.Signing != nil {
				for _, k := range z.Signing.Keys {
					keys[k.Public] = true
				}
			}
			if before, there := signs[z.ID]; there {
				maps.DeleteFunc(keys, func(key string, _ bool) bool { return !before[key] })
			}
			signs[z.ID] = keys
		}
		return nil
	})
}

// eachServed gives the settings that the servers of the configuration serve by.
func (p *plan) eachServed(fn func(server int64, settings *zonedata.Settings) error) error {
	for _, server := range slices.Sorted(maps.Keys(p.servers)) {
		settings, err := settingsOf(p.tx, p.api.Sealer, server)
		if err != nil {
			return err
		}
		if settings == nil {
			continue
		}
		if err := fn(server, settings); err != nil {
			return err
		}
	}
	return nil
}

// look compares what is deployed of the keys of a zone with what is to be.
func (z *rollingZone) look(p *plan, r *rolling, signs map[string]bool, now time.Time) error {
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
	if err := z.note(own, above, signs, now); err != nil {
		return err
	}
	z.stageAt(now)
	ttl := uint32(0)
	for _, e := range own {
		if e.Record.Type() == wire.TypeSOA {
			ttl = e.Record.TTL()
		}
	}
	if err := compareKeys(r, z.zone, own, z.Records(z.stage, ttl)); err != nil || !aboveThere {
		return err
	}
	return compareKeys(r, z.above, slices.DeleteFunc(above, func(e zonedata.Entry) bool { return e.Record.Type() != wire.TypeDS }),
		z.parentRecords())
}

// note finds since when keys are deployed.
func (z *rollingZone) note(own, above []zonedata.Entry, signs map[string]bool, now time.Time) error {
	is := map[uint16]bool{}
	isAbove := map[uint16]bool{}
	for _, e := range slices.Concat(own, above) {
		rr, err := e.Record.RR()
		if err != nil {
			return err
		}
		switch x := rr.(type) {
		case *wire.DNSKEY:
			is[x.KeyTag()] = true
		case *wire.DS:
			isAbove[x.KeyTag] = true
		}
	}
	for _, k := range z.Keys {
		tag := k.Tag()
		one := z.seen[tag]
		one.Key, one.Signing = since(one.Key, is[tag], now), since(one.Signing, signs[k.PublicKey], now)
		if z.above != nil {
			one.Parent = since(one.Parent, isAbove[tag], now)
		}
		if one != z.seen[tag] {
			z.seen[tag], z.noted[tag] = one, true
		}
	}
	return nil
}

// since gives since when something is there.
func since(before time.Time, is bool, now time.Time) time.Time {
	switch {
	case !is:
		return time.Time{}
	case before.IsZero():
		return now
	}
	return before
}

// compareKeys finds whether the records of a zone that follow from keys are others than they are to be. Records of others are left.
func compareKeys(r *rolling, z *plannedZone, deployed []zonedata.Entry, wanted []wire.RR) error {
	entries, err := entriesOfRecords(wanted)
	if err != nil {
		return err
	}
	same := func(list []zonedata.Entry, e zonedata.Entry) bool {
		return slices.ContainsFunc(list, func(o zonedata.Entry) bool { return e.Compare(o) == 0 })
	}
	for _, e := range entries {
		if !same(deployed, e) {
			r.due[z] = true
		}
	}
	for _, e := range deployed {
		if isKeyType(e.Record.Type()) && e.Record.Type() != wire.TypeDS && !same(entries, e) {
			r.due[z] = true
		}
	}
	if len(deployed) > 0 && deployed[0].Record.Type() == wire.TypeDS && len(deployed) != len(entries) {
		r.due[z] = true
	}
	return nil
}

// resign finds the servers that are to sign with other keys than they do.
func (p *plan) resign(r *rolling) error {
	signing := map[string]*zonedata.Signing{}
	for _, z := range r.zones {
		s, err := z.served(p.tx, p.api)
		if err != nil {
			return err
		}
		signing[z.zone.id] = s
	}
	return p.eachServed(func(server int64, settings *zonedata.Settings) error {
		changed := false
		for i, z := range settings.Zones {
			if s := signing[z.ID]; s != nil && !reflect.DeepEqual(z.Signing, s) {
				settings.Zones[i].Signing, changed = s, true
			}
		}
		if !changed {
			return nil
		}
		text, err := json.Marshal(settings)
		r.settings[server] = string(text)
		return err
	})
}

// rollKeys notes what was seen of keys, makes those that follow, and deletes those that nobody needs any more.
func (d *Deployer) rollKeys(ctx context.Context, r *rolling) error {
	rolled := map[string]int{}
	err := d.api.WithOutside(ctx, 0, "", func(o resource.Outside) error {
		return d.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
			clear(rolled)
			tx.Touch(dueTopic)
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
func (z *rollingZone) unwarned(k *dns.SignedKey) bool { return !z.seen[k.Tag()].warned }

// act does what there is to do with the keys of a zone. A key that somebody has changed or deleted meanwhile is left to the next look.
func (z *rollingZone) act(c *resource.Change, rolled map[string]int) error {
	for _, k := range slices.Concat(z.stage.Ending, z.stage.Gone) {
		if row, err := c.Tx.Get(k.Row.ID); store.IsNotFound(err) || err == nil && row.Version != k.Row.Version {
			return nil
		} else if err != nil {
			return err
		}
	}
	for _, k := range z.stage.Expired {
		one := z.seen[k.Tag()]
		if one.warned {
			continue
		}
		one.warned = true
		z.seen[k.Tag()], z.noted[k.Tag()] = one, true
		if err := z.tell(c, k, "WARNING", "its time is over, and it goes on: keys of the configuration are not made anew by themselves "+
			"(keyAutoRegenerationEnabled)"); err != nil {
			return err
		}
	}
	for tag := range z.noted {
		if err := writeSeen(c.Tx, z.zone.id, tag, z.seen[tag]); err != nil {
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
		if err := dns.Forget(c, k); err != nil {
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
func (z *rollingZone) tell(c *resource.Change, k *dns.SignedKey, kind, text string) error {
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
		for _, server := range slices.Sorted(maps.Keys(r.settings)) {
			if err := serveOtherwise(tx, d.api.Sealer, server, number, r.settings[server]); err != nil {
				return err
			}
			if !slices.Contains(changed, server) {
				changed = append(changed, server)
			}
		}
		for _, server := range changed {
			point, err := d.tell(tx, server)
			if err != nil {
				return err
			}
			told = append(told, point)
		}
		tx.Touch(dueTopic)
		return nil
	})
	if err == nil {
		for _, point := range told {
			d.points.Wake(point)
		}
	}
	return err
}

// serveOtherwise gives a server other settings, and leaves what zones it serves.
func serveOtherwise(tx *store.Tx, sealer resource.Sealer, server, number int64, settings string) error {
	_, row, _, err := revisionOf(tx, server)
	if err != nil {
		return err
	}
	before, err := sealer.Open(tx, settingsOfServer, row.settings)
	if err != nil {
		return err
	}
	if err := rehash(tx, server, number, func(h *zonedata.Hash) {
		h.RemoveSettings([]byte(before))
		h.AddSettings([]byte(settings))
	}); err != nil {
		return err
	}
	sealed, err := sealer.Seal(tx, settingsOfServer, settings)
	if err != nil {
		return err
	}
	return tx.Write("UPDATE dns_server SET settings = ?, settings_number = ? WHERE server = ?", sealed, number, server)
}

// settingsOf gives the settings that a server serves by; nil where nothing was deployed to it.
func settingsOf(tx *store.Tx, sealer resource.Sealer, server int64) (*zonedata.Settings, error) {
	_, row, there, err := revisionOf(tx, server)
	if err != nil || !there {
		return nil, err
	}
	text, err := sealer.Open(tx, settingsOfServer, row.settings)
	if err != nil {
		return nil, err
	}
	var settings zonedata.Settings
	return &settings, json.Unmarshal([]byte(text), &settings)
}
