package dnspublish

import (
	"context"
	"errors"

	"portolan/internal/engine/store"
)

// deployDue deploys one batch of the queued changes of laneLive. It reports whether there may be more.
func (d *Deployer) deployDue(ctx context.Context) (more bool, err error) {
	o, now, read := &outcome{}, dueEntries{}, d.times.beginRead()
	err = d.api.Store.View(ctx, func(tx *store.Tx) (err error) {
		defer recoverFault(&err)
		o = &outcome{defers: isLarge}
		if o.configuration, now, err = readDue(tx, laneLive, maxDue); err != nil {
			return err
		}
		read.endRead()
		if o.configuration == 0 {
			d.noChanges.Put(tx, struct{}{}, true)
			return nil
		}
		if err := now.addStructure(tx); err != nil {
			return err
		}
		if !d.examined[o.configuration] { // the rules of the frames may be those of an older manager
			now.branches = nil
		}
		p, err := d.livePlan(tx, o.configuration, now.all)
		if err != nil || p == nil {
			return err
		}
		p.tx = tx
		defer func() { p.tx = nil }()
		return d.prepareDue(p, o, now)
	})
	if err == nil && o.configuration == 0 {
		return false, nil
	}
	if err != nil {
		d.plan = nil
	}
	o.read = read
	return d.finishDue(ctx, o, now, err)
}

// finishDue commits an outcome. If it failed because of its data, its entries are set aside; after a concurrent deployment of the same
// zones they stay queued.
func (d *Deployer) finishDue(ctx context.Context, o *outcome, now dueEntries, err error) (more bool, failure error) {
	if err == nil {
		err = d.commitDue(ctx, o, now)
	}
	switch {
	case errors.Is(err, errConcurrentDeployment):
		return true, nil
	case isFault(err) && o.configuration != 0:
		err = d.setAside(ctx, o.configuration, now, err)
	}
	return err == nil, err
}

// runBulk deploys the large changes of live views.
func (d *Deployer) runBulk(ctx context.Context) error {
	if unchanged, known := d.noBulk.Now(struct{}{}); unchanged && known {
		return nil
	}
	if held, err := d.takeLease(ctx); err != nil || !held {
		return err
	}
	defer d.lease.Keep(ctx, d.log)()
	return d.deployAll(ctx, func(ctx context.Context) (more bool, err error) { // in turn, because an import queues names all the time
		names, err := d.deployBulk(ctx)
		if err != nil {
			return false, err
		}
		waits, err := d.waitsWhole(ctx)
		if err != nil || !waits || !d.whole.mu.TryLock() { // a deployment of a large zone does not delay names
			return names, err
		}
		defer d.whole.mu.Unlock()
		zones, err := d.deployWhole(ctx)
		return names || zones, err
	})
}

// deployBulk deploys all queued changes of a configuration in laneBulk. It reports whether there may be more.
func (d *Deployer) deployBulk(ctx context.Context) (more bool, err error) {
	o, now, read := &outcome{}, dueEntries{}, d.times.beginRead()
	err = d.api.Store.View(ctx, func(tx *store.Tx) (err error) {
		defer recoverFault(&err)
		o = &outcome{}
		if o.configuration, now, err = readDue(tx, laneBulk, 0); err != nil || o.configuration == 0 {
			return err
		}
		read.endRead()
		if _, err := tx.Get(o.configuration); store.IsNotFound(err) {
			return nil
		}
		p, err := newPlan(tx, d.api, o.configuration)
		if err != nil {
			return err
		}
		return d.prepareDue(p, o, now)
	})
	if err == nil && o.configuration == 0 {
		return false, nil
	}
	o.read = read
	return d.finishDue(ctx, o, now, err)
}

// waitsWhole reports whether a zone waits in laneWhole.
func (d *Deployer) waitsWhole(ctx context.Context) (waits bool, err error) {
	err = d.api.Store.View(ctx, func(tx *store.Tx) error {
		if err := tx.QueryRow("SELECT EXISTS (SELECT 1 FROM dns_due WHERE lane = ?)", laneWhole).Scan(&waits); err != nil || waits {
			return err
		}
		configuration, _, err := readDue(tx, laneBulk, 1)
		if err == nil && configuration == 0 {
			d.noBulk.Put(tx, struct{}{}, true)
		}
		return err
	})
	return waits, err
}

// deployWhole deploys the zone that has waited longest in laneWhole. It reports whether there may be more. The caller holds the lock of
// large zones.
func (d *Deployer) deployWhole(ctx context.Context) (more bool, err error) {
	o, now, read := &outcome{}, dueEntries{}, d.times.beginRead()
	err = d.api.Store.View(ctx, func(tx *store.Tx) (err error) {
		defer recoverFault(&err)
		o = &outcome{whole: true}
		if o.configuration, now, err = readDue(tx, laneWhole, 1); err != nil {
			return err
		}
		read.endRead()
		if o.configuration == 0 {
			return nil
		}
		live, err := liveOf(tx)
		if err != nil {
			return err
		}
		if _, err := tx.Get(o.configuration); store.IsNotFound(err) {
			return nil
		}
		p, err := newPlan(tx, d.api, o.configuration)
		if err != nil {
			return err
		}
		o.examined, o.byID = map[string]bool{}, p.byID
		z := p.byID[now.rows[0].name]
		if z == nil || live[z.view] == 0 {
			return nil
		}
		is, there, err := readDeployed(tx, z.id)
		if err != nil {
			return err
		}
		o.examined[z.id] = true
		return d.prepareZone(p, o, z, &zoneWork{}, is, there, true)
	})
	if err == nil && o.configuration == 0 {
		return false, nil
	}
	o.read = read
	return d.finishDue(ctx, o, now, err)
}

// maxInline is the maximum number of records of a zone that is examined as a whole in laneLive.
const maxInline = 2000

// isLarge reports whether the examination of a whole zone would delay other changes.
func isLarge(p *plan, z *plannedZone, is deployedZone) (bool, error) {
	if is.records > maxInline {
		return true, nil
	}
	count := func(query string, args ...any) (n int, err error) {
		err = p.tx.QueryRow("SELECT count(*) FROM (SELECT 1 FROM resource WHERE "+query+" LIMIT ?) one", append(args, maxInline+1)...).Scan(&n)
		return n, err
	}
	var n int
	var err error
	switch low, high, reverse := z.reverseRange(); {
	case reverse:
		n, err = count("configuration = ? AND collection = 'addresses' AND low >= ? AND low <= ?", p.configuration, store.AddrKey(low),
			store.AddrKey(high))
	case p.policies[z.row.ID] != nil:
		n, err = count("parent = ? AND collection = 'policyItems'", p.policies[z.row.ID].ResponsePolicy.ID)
	default:
		n, err = count("parent = ? AND collection = 'resourceRecords'", z.row.ID)
	}
	return n > maxInline, err
}

// deployAll calls deploy until there is no more.
func (d *Deployer) deployAll(ctx context.Context, deploy func(context.Context) (more bool, err error)) error {
	for ctx.Err() == nil {
		if more, err := deploy(ctx); err != nil || !more {
			return err
		}
	}
	return nil
}

// isTransient reports whether a failure may disappear with a retry.
func isTransient(ctx context.Context, err error) bool {
	return store.IsFailure(err) || ctx.Err() != nil
}
