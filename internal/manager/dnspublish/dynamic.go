package dnspublish

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/wire/zonedata"
)

func (d due) compare(o due) int {
	return cmp.Or(cmp.Compare(d.configuration, o.configuration), cmp.Compare(d.kind, o.kind), cmp.Compare(d.name, o.name))
}

// addStructure adds the entries for the roles, options and zones of the configuration that are queued. These precede the names.
func (now *dueEntries) addStructure(tx *store.Tx) error {
	return tx.Each(func(scan func(...any) error) error {
		r := dueRow{due: due{now.configuration, dueAll, ""}}
		if err := scan(&r.name, &r.changed); err != nil || slices.Contains(now.rows, r) {
			return err
		}
		now.rows = append(now.rows, r)
		return now.add(r.kind, r.name)
	}, "SELECT what, changed FROM dns_due WHERE configuration = ? AND kind = ?", now.configuration, dueAll)
}

// livePlan returns the plan for changes of laneLive: a new one after changes of its structure, else the previous one. It is nil if the
// configuration was deleted.
func (d *Deployer) livePlan(tx *store.Tx, configuration int64, changed bool) (p *plan, err error) {
	if !changed && d.plan != nil && d.plan.configuration == configuration && d.planned == d.lease.Holding() {
		return d.plan, nil
	}
	d.plan = nil
	if _, err := tx.Get(configuration); store.IsNotFound(err) {
		return nil, nil
	}
	if p, err = newPlan(tx, d.api, configuration); err == nil {
		d.plan, d.planned = p, d.lease.Holding()
	}
	return p, err
}

// commitDue commits the outcome of queued changes, and removes them from the queue.
func (d *Deployer) commitDue(ctx context.Context, o *outcome, now dueEntries) error {
	var toWake []string
	within := ctx
	if len(now.rows) > maxLive {
		within = new(store.LargeStep).Context(ctx)
	}
	faults := len(o.faults)
	err := d.lease.Update(within, store.Author{}, func(tx *store.Tx) error {
		o.faults = o.faults[:faults]
		number, err := nextNumber(tx)
		if err != nil {
			return err
		}
		for server, s := range o.servings { // first, because a conflict is no fault of the data
			if err := s.checkBase(tx, server); err != nil {
				return err
			}
		}
		changed, err := publish(tx, o.configuration, number, o.all, o.read)
		if err != nil {
			return err
		}
		for server, s := range o.servings {
			also, err := s.serve(tx, server, number)
			if errors.Is(err, errNoContent) { // a full deployment gave the zone up meanwhile
				err = errConcurrentDeployment
			}
			if errors.Is(err, errSettingsSize) {
				o.faults = append(o.faults, fault{subject: "server " + s.name, cause: err, server: server})
				continue
			}
			if err != nil {
				return err
			}
			if also && !slices.Contains(changed, server) {
				changed = append(changed, server)
			}
		}
		for _, s := range o.servings { // after all servers have stored what they serve
			if err := deleteUnserved(tx, s.unserved...); err != nil {
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
		if err := o.storeFrames(tx); err != nil {
			return err
		}
		if err := now.removeDone(tx); err != nil {
			return err
		}
		return o.queueRest(tx)
	})
	if err != nil {
		return err
	}
	for _, f := range o.faults {
		if !f.reported {
			continue
		}
		d.log.Error("live deployment failed", "what", f.subject, "reason", f.cause)
	}
	for _, point := range toWake {
		d.points.Wake(point)
	}
	if now.all && now.branches == nil {
		d.examined[o.configuration] = true
	}
	d.Changed(max(len(now.rows), len(now.keys)+len(now.addresses)))
	return nil
}

// storeFrames stores the frames of the zones that were examined. If a later live change has stored a frame since the snapshot of another
// deployment, the frame is not known from now on.
func (o *outcome) storeFrames(tx *store.Tx) error {
	for id, f := range o.frames {
		if base, beside := o.frameBases[id]; beside {
			now, err := readFrame(tx, id)
			if err != nil {
				return err
			}
			if !now.equal(base) {
				f = frame{}
			}
		}
		if err := f.write(tx, id); err != nil {
			return err
		}
	}
	return nil
}

// queueRest queues what the outcome leaves to later deployments: zones that are deployed as a whole, and the configuration if a zone was
// deployed for the first time.
func (o *outcome) queueRest(tx *store.Tx) error {
	if len(o.deferred) == 0 && !o.redoAll {
		return nil
	}
	number, err := requeueNumber(tx)
	if err != nil {
		return err
	}
	for _, id := range o.deferred {
		if err := (due{o.configuration, dueZone, id}).queue(tx, number, laneWhole); err != nil {
			return err
		}
	}
	tx.Touch(dueTopic)
	if !o.redoAll {
		return nil
	}
	return due{o.configuration, dueAll, ""}.queue(tx, number, laneLive)
}

// prepareDue computes the changes of the queued names and addresses, and of roles, options and zones if they are queued.
func (d *Deployer) prepareDue(p *plan, o *outcome, now dueEntries) error {
	live, err := liveOf(p.tx)
	if err != nil {
		return err
	}
	deployed, err := p.deployedStates(now.all)
	if err != nil {
		return err
	}
	work := p.workOn(now.keys, now.addresses)
	if err := p.addLinked(work, now.keys, deployed); err != nil {
		return err
	}
	o.examined, o.byID = map[string]bool{}, p.byID
	for z := range work {
		is, there, err := deployed(z.id)
		if err != nil {
			return err
		}
		if live[z.view] == 0 || p.isForeign(z) {
			delete(work, z)
		} else if !there && is.complete != neverDeployed && !now.all {
			delete(work, z)
			if err := o.requeueZone(p.tx, z); err != nil {
				return err
			}
		}
	}
	if now.all {
		if err := d.prepareStructure(p, o, work, live, deployed, now.branches); err != nil {
			return err
		}
	}
	for _, z := range p.zones {
		w := work[z]
		if w == nil {
			continue
		}
		is, there, err := deployed(z.id)
		if err != nil {
			return err
		}
		whole := w.whole || w.needsFullCheck(is) || !there || is.complete <= 0 // it was not completely deployed before
		if whole && o.defers != nil {
			large, err := o.defers(p, z, is)
			if err != nil {
				return err
			}
			if large {
				o.deferZone(z, there)
				continue
			}
		}
		o.examined[z.id] = true
		w.keys = append(w.keys, now.heldIn(z)...)
		if err := d.prepareZone(p, o, z, w, is, there, whole); err != nil {
			return err
		}
	}
	return nil
}

// prepareZone computes the changes of a zone.
func (d *Deployer) prepareZone(p *plan, o *outcome, z *plannedZone, w *zoneWork, is deployedZone, there, whole bool) (err error) {
	var c *publication
	now := d.api.Store.Now()
	if whole {
		c, err = p.fullPublication(z, now)
	} else {
		c, err = p.partialPublication(z, is, w.keys, w.addresses, w.framed, now)
	}
	if err == nil && c != nil {
		c, err = o.withhold(p, z, c)
	}
	if err == nil && !there && o.servings == nil { // its servers must get it as a new zone
		if o.redoAll = true; !o.whole {
			return nil
		}
	}
	if isFault(err) && !there { // no earlier content exists
		o.leaveOut(z)
	}
	if err == nil && whole && o.frames[z.id].whole == 0 {
		f, wrong := p.frameOf(z, now)
		if wrong != nil {
			return wrong
		}
		o.setFrame(z, f)
		if o.defers == nil {
			if wrong := o.keepFrameBase(p.tx, z); wrong != nil {
				return wrong
			}
		}
	}
	if err != nil {
		delete(o.frames, z.id)
	}
	return o.addResult(z, is, there, c, err)
}

// prepareStructure computes the content of the servers that were deployed to before, and adds the zones whose frames have changed to work.
// changed are the zones that have changed, if nothing else of the structure has.
func (d *Deployer) prepareStructure(p *plan, o *outcome, work works, live map[int64]int64,
	deployed func(id string) (deployedZone, bool, error), changed branches,
) error {
	frames := map[string]frame{}
	if changed == nil {
		var err error
		if frames, err = readFrames(p.tx, o.configuration); err != nil {
			return err
		}
	}
	o.servings = map[int64]*serving{}
	examined := map[*plannedZone]bool{}
	for server := range p.servers {
		_, _, there, err := revisionOf(p.tx, server)
		if err != nil {
			return err
		}
		if !there {
			continue
		}
		s, err := p.servingOf(server)
		if isFault(err) {
			o.faults = append(o.faults, fault{subject: "server " + p.heads[server].Name, cause: err, server: server})
			continue
		}
		if err != nil {
			return err
		}
		lives := func(all []zonedata.View) bool {
			return slices.ContainsFunc(all, func(v zonedata.View) bool { return live[v.ID] != 0 })
		}
		before, err := settingsOf(p.tx, d.api.Sealer, server)
		if err != nil {
			return err
		}
		if !lives(s.settings.Views) && (before == nil || !lives(before.Views)) { // its last live view may have been removed just now
			continue
		}
		o.servings[server] = s
		for _, z := range s.zones {
			if examined[z] {
				continue
			}
			examined[z] = true
			is, there, err := deployed(z.id)
			if err != nil {
				return err
			}
			if live[z.view] == 0 && there || there && is.complete > 0 && !changed.affects(z) {
				continue
			}
			if changed != nil {
				if frames[z.id], err = readFrame(p.tx, z.id); err != nil {
					return err
				}
			}
			if err := d.examine(p, o, z, work, frames[z.id], is, there); err != nil {
				return err
			}
		}
	}
	for z := range work { // no server has it yet
		if _, is, err := deployed(z.id); err != nil || !is && !examined[z] {
			delete(work, z)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// examine adds a zone to work if its frame has changed since it was deployed, or if it was not completely deployed.
func (d *Deployer) examine(p *plan, o *outcome, z *plannedZone, work works, before frame, is deployedZone,
	there bool,
) error {
	if there && p.isForeign(z) { // its content comes from its primary servers
		if before.whole != 0 {
			o.setFrame(z, frame{})
		}
		return nil
	}
	w := work[z]
	if w == nil {
		w = &zoneWork{}
	}
	f, err := p.frameOf(z, d.api.Store.Now())
	if isFault(err) { // the examination of the whole zone reports it
		work[z], w.whole = w, true
		return nil
	}
	if err != nil {
		return err
	}
	w.framed, w.whole = f.changedNames(before)
	if w.whole = w.whole || !there || is.complete <= 0; w.whole || len(w.framed) > 0 {
		switch _, err := p.keepFramed(z, f); {
		case isFault(err): // a name is too long
			work[z], w.whole = w, true
			return nil
		case err != nil:
			return err
		}
		work[z] = w
		o.setFrame(z, f)
	}
	return nil
}

// keepFrameBase keeps the stored frame of a zone, for a deployment beside laneLive.
func (o *outcome) keepFrameBase(tx *store.Tx, z *plannedZone) error {
	base, err := readFrame(tx, z.id)
	if err != nil {
		return err
	}
	if o.frameBases == nil {
		o.frameBases = map[string]frame{}
	}
	o.frameBases[z.id] = base
	return nil
}

// setFrame sets the frame that a zone is deployed with.
func (o *outcome) setFrame(z *plannedZone, f frame) {
	if o.frames == nil {
		o.frames = map[string]frame{}
	}
	o.frames[z.id] = f
}

// deferZone leaves a zone to laneWhole. Until then, its servers do not get it if it is new.
func (o *outcome) deferZone(z *plannedZone, there bool) {
	o.deferred = append(o.deferred, z.id)
	delete(o.frames, z.id)
	if !there {
		o.leaveOut(z)
	}
}

// requeueZone queues a zone that waits in laneWhole once more, because it has changed since.
func (o *outcome) requeueZone(tx *store.Tx, z *plannedZone) error {
	waits := 0
	err := tx.QueryRow("SELECT count(*) FROM dns_due WHERE configuration = ? AND kind = ? AND what = ?", o.configuration, dueZone, z.id).
		Scan(&waits)
	if waits > 0 {
		o.deferred = append(o.deferred, z.id)
	}
	return err
}

// leaveOut removes a zone that has no content from the contents of servers.
func (o *outcome) leaveOut(z *plannedZone) {
	for _, s := range o.servings {
		s.leaveOut(z)
	}
}

// deployedStates returns a function that returns the deployed state of a zone. all reads the states of all zones at once.
func (p *plan) deployedStates(all bool) (func(id string) (deployedZone, bool, error), error) {
	if !all {
		return func(id string) (deployedZone, bool, error) { return readDeployed(p.tx, id) }, nil
	}
	states, err := readAllDeployed(p.tx, p.configuration)
	return func(id string) (deployedZone, bool, error) {
		z := states[id]
		z.id = id
		return z, z.records > 0, nil
	}, err
}

// fullPublication returns the publication of a whole zone. A panic becomes an error of this zone only.
func (p *plan) fullPublication(z *plannedZone, now time.Time) (c *publication, err error) {
	defer recoverFault(&err)
	return p.publication(z, nil, now)
}

// withhold removes the records that the checks of the servers reject, and records them as a fault.
func (o *outcome) withhold(p *plan, z *plannedZone, c *publication) (*publication, error) {
	left, out, err := p.withholdRecords(z, c)
	if out != nil && !slices.ContainsFunc(o.faults, func(f fault) bool { return f.records != nil && f.zone == z.id }) {
		o.faults = append(o.faults, fault{subject: "records of zone " + z.zoneName(), cause: joinReasons(out), records: out, zone: z.id})
	}
	return left, err
}

// addResult records the publication of a zone, or the error that prevents its deployment.
func (o *outcome) addResult(z *plannedZone, deployed deployedZone, there bool, c *publication, err error) error {
	switch {
	case isFault(err):
		if !slices.ContainsFunc(o.faults, func(f fault) bool { return f.records == nil && f.zone == z.id }) {
			o.faults = append(o.faults, fault{subject: "zone " + z.zoneName(), cause: err, zone: z.id})
		}
	case err != nil:
		return err
	case c != nil:
		c.rebases = o.defers == nil // laneLive examines the names again instead
		o.all = append(o.all, c)
	case there && deployed.complete == 0:
		o.healed = append(o.healed, z.id)
	}
	return nil
}
