package dnspublish

import (
	"cmp"
	"context"
	"slices"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/wire/zonedata"
)

func (d due) compare(o due) int {
	return cmp.Or(cmp.Compare(d.configuration, o.configuration), cmp.Compare(d.kind, o.kind), cmp.Compare(d.what, o.what))
}

// deployDue deploys one batch of queued changes of live views. It reports whether there may be more.
func (d *Deployer) deployDue(ctx context.Context) (more bool, err error) {
	var o *outcome
	var now dueEntries
	var servings map[int64]*serving
	err = d.api.Store.View(ctx, func(tx *store.Tx) (err error) {
		defer recoverFault(&err)
		o, servings = &outcome{}, nil
		if o.configuration, now, err = readDue(tx); err != nil {
			return err
		}
		if o.configuration == 0 {
			d.noChanges.Put(tx, struct{}{}, true)
			return nil
		}
		if now.all {
			servings, err = d.prepareAll(tx, o)
			return err
		}
		return d.prepareDue(tx, o, now)
	})
	if err == nil && o.configuration == 0 {
		return false, nil
	}
	if err == nil {
		err = d.commitDue(ctx, o, servings, now)
	}
	if isFault(err) && o.configuration != 0 {
		err = d.setAside(ctx, o.configuration, now, err)
	}
	return err == nil, err
}

// commitDue commits the outcome of queued changes, and removes them from the queue.
func (d *Deployer) commitDue(ctx context.Context, o *outcome, servings map[int64]*serving, now dueEntries) error {
	var toWake []string
	err := d.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		number, err := nextNumber(tx)
		if err != nil {
			return err
		}
		changed, err := publish(tx, o.configuration, number, o.all)
		if err != nil {
			return err
		}
		for server, s := range servings {
			also, err := s.serve(tx, server, number)
			if err != nil {
				return err
			}
			if also && !slices.Contains(changed, server) {
				changed = append(changed, server)
			}
		}
		for _, s := range servings { // after all servers have stored what they serve
			if err := deleteUnserved(tx, s.gone...); err != nil {
				return err
			}
		}
		if toWake, err = markServersChanged(tx, d.api, d.points, changed); err != nil {
			return err
		}
		if err := now.storeFaults(tx, o); err != nil {
			return err
		}
		if now.all { // the changes may include keys of zones
			tx.Touch(rollTopic)
		}
		for _, id := range o.healed {
			if err := tx.Write("UPDATE dns_zone SET complete = ? WHERE zone = ?", tx.Now().Add(-time.Minute).UnixMilli(), id); err != nil {
				return err
			}
		}
		if err := now.removeDone(tx); err != nil || !o.redoAll {
			return err
		}
		return tx.Write("INSERT INTO dns_due (configuration, kind, what, changed) VALUES (?, ?, '', ?) ON CONFLICT (configuration, kind, what)"+
			" DO UPDATE SET changed = excluded.changed", o.configuration, dueAll, number)
	})
	if err != nil {
		return err
	}
	for _, f := range o.faults {
		if !f.reported {
			continue
		}
		d.log.Error("live deployment failed", "what", f.what, "reason", f.why)
	}
	for _, point := range toWake {
		d.points.Wake(point)
	}
	d.Changed(len(now.rows))
	return nil
}

// prepareAll computes the changes of all live zones of a configuration, and the content of the servers that were deployed to before.
func (d *Deployer) prepareAll(tx *store.Tx, o *outcome) (map[int64]*serving, error) {
	d.plan = nil
	live, err := liveOf(tx)
	if err != nil {
		return nil, err
	}
	if _, err := tx.Get(o.configuration); store.IsNotFound(err) { // the configuration was deleted
		return nil, nil
	}
	p, err := newPlan(tx, d.api, o.configuration)
	if err != nil {
		return nil, err
	}
	servings := map[int64]*serving{}
	for server := range p.servers {
		_, _, there, err := revisionOf(tx, server)
		if err != nil {
			return nil, err
		}
		if !there {
			continue
		}
		s, err := p.servingOf(server)
		if isFault(err) {
			o.faults = append(o.faults, fault{what: "server " + p.heads[server].Name, why: err, server: server})
			continue
		}
		if err != nil {
			return nil, err
		}
		lives := func(all []zonedata.View) bool {
			return slices.ContainsFunc(all, func(v zonedata.View) bool { return live[v.ID] != 0 })
		}
		before, err := settingsOf(tx, d.api.Sealer, server)
		if err != nil {
			return nil, err
		}
		if !lives(s.settings.Views) && (before == nil || !lives(before.Views)) { // its last live view may have been removed just now
			continue
		}
		servings[server] = s
		for _, z := range slices.Clone(s.zones) {
			deployed, there, err := readDeployed(tx, z.id)
			if err != nil {
				return nil, err
			}
			if live[z.view] == 0 && there || slices.ContainsFunc(o.all, func(c *publication) bool { return c.zone == z }) {
				continue
			}
			c, err := p.wholePublication(z, d.api.Store.Now())
			if err == nil && c != nil {
				c, err = o.withhold(p, z, c)
			}
			if isFault(err) && !there { // no earlier content exists
				s.leaveOut(z)
			}
			if err := o.addResult(z, deployed, there, c, err); err != nil {
				return nil, err
			}
		}
	}
	return servings, nil
}

// wholePublication returns the publication of a whole zone. A panic becomes an error of this zone only.
func (p *plan) wholePublication(z *plannedZone, now time.Time) (c *publication, err error) {
	defer recoverFault(&err)
	return p.publication(z, nil, now)
}

// withhold removes the records that the checks of the servers reject, and records them as a fault.
func (o *outcome) withhold(p *plan, z *plannedZone, c *publication) (*publication, error) {
	left, out, err := p.withhold(z, c)
	if out != nil && !slices.ContainsFunc(o.faults, func(f fault) bool { return f.records != nil && f.zone == z.id }) {
		o.faults = append(o.faults, fault{what: "records of zone " + z.zoneName(), why: joinReasons(out), records: out, zone: z.id})
	}
	return left, err
}

// addResult records the publication of a zone, or the error that prevents its deployment.
func (o *outcome) addResult(z *plannedZone, deployed deployedZone, there bool, c *publication, err error) error {
	switch {
	case isFault(err):
		if !slices.ContainsFunc(o.faults, func(f fault) bool { return f.records == nil && f.zone == z.id }) {
			o.faults = append(o.faults, fault{what: "zone " + z.zoneName(), why: err, zone: z.id})
		}
	case err != nil:
		return err
	case c != nil:
		o.all = append(o.all, c)
	case there && deployed.complete == 0:
		o.healed = append(o.healed, z.id)
	}
	return nil
}

// prepareDue computes the changes of the queued names and addresses.
func (d *Deployer) prepareDue(tx *store.Tx, o *outcome, now dueEntries) (err error) {
	live, err := liveOf(tx)
	if err != nil {
		return err
	}
	if d.plan == nil || d.plan.configuration != o.configuration || d.planned != d.lease.Holding() {
		if d.plan, err = newPlan(tx, d.api, o.configuration); err != nil {
			return err
		}
		d.planned = d.lease.Holding()
	}
	p := d.plan
	p.tx = tx
	defer func() { p.tx = nil }()
	keys, err := withLinked(tx, o.configuration, now.keys)
	if err != nil {
		return err
	}
	for _, z := range p.zones {
		if live[z.view] == 0 {
			continue
		}
		mine, back := z.names(keys), z.addresses(now.addresses)
		if len(mine)+len(back) == 0 || p.isForeign(z) {
			continue
		}
		deployed, there, err := readDeployed(tx, z.id)
		if err != nil {
			return err
		}
		if !there && deployed.complete != neverDeployed {
			continue
		}
		if mine = append(mine, now.heldIn(z)...); o.looked == nil {
			o.looked = map[string]bool{}
		}
		o.looked[z.id] = true
		var c *publication
		if deployed.complete <= 0 { // it was not completely deployed before
			c, err = p.wholePublication(z, d.api.Store.Now())
		} else {
			c, err = p.partialPublication(z, deployed, mine, back, d.api.Store.Now())
		}
		if err == nil && c != nil {
			c, err = o.withhold(p, z, c)
		}
		if err == nil && !there { // its servers must get it as a new zone
			o.redoAll = true
			continue
		}
		if err := o.addResult(z, deployed, there, c, err); err != nil {
			return err
		}
	}
	return nil
}

// withLinked adds the keys of records that link to the records of keys: an alias changes with the name of its host.
func withLinked(tx *store.Tx, configuration int64, keys []string) ([]string, error) {
	all := slices.Clone(keys)
	for _, key := range keys {
		rows, err := tx.ByKey(configuration, key)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			if r.Collection != "resourceRecords" {
				continue
			}
			links, err := tx.Referring(r.ID)
			if err != nil {
				return nil, err
			}
			for _, l := range links {
				if l.Field != "linkedRecord" {
					continue
				}
				other, err := tx.Get(l.Target)
				if err != nil {
					return nil, err
				}
				all = append(all, other.Key)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}
