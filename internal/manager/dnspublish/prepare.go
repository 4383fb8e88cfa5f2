package dnspublish

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/serverconfig"
	"portolan/internal/wire/checkin"
	"portolan/internal/wire/zonedata"
)

// prepare computes the outcome of a deployment. It changes nothing.
func (d *Deployer) prepare(tx *store.Tx, row *store.Resource, o schema.Object) (*outcome, error) {
	switch x := o.(type) {
	case *FullDeployment:
		return d.prepareServer(tx, x.Parent, true, false)
	case *DifferentialDeployment:
		return d.prepareServer(tx, x.Parent, false, false)
	case *ValidationDeployment:
		return d.prepareServer(tx, x.Parent, true, true)
	case *QuickDeployment:
		zone, err := tx.Get(x.Parent)
		if err != nil {
			return nil, err
		}
		return d.prepareQuick(tx, zone, x.User.ID)
	case *SelectiveDeployment:
		return d.prepareSelected(tx, x)
	}
	return nil, fmt.Errorf("deployment %d has the unknown type %s", row.ID, row.Type)
}

// prepareServer computes the content of a server: all of it with full, else the changes of the zones that it serves already. checked is for
// a validation, which deploys nothing.
func (d *Deployer) prepareServer(tx *store.Tx, server int64, full, checked bool) (*outcome, error) {
	row, err := tx.Get(server)
	if store.IsNotFound(err) {
		return nil, problem.BadRequest("ServerNotManaged", "server %d was deleted", server)
	}
	if err != nil {
		return nil, err
	}
	p, err := newPlan(tx, d.api, row.Configuration)
	if err != nil {
		return nil, err
	}
	s, err := p.servingOf(server)
	if err != nil {
		return nil, err
	}
	if !checked {
		if err := d.checkApplications(tx, row, s); err != nil {
			return nil, err
		}
	}
	out := &outcome{configuration: row.Configuration, server: server, warnings: s.warnings, checked: checked, zones: len(s.zones)}
	if len(s.zones) == 0 && full {
		out.warnings = append(out.warnings, "the server has no DNS role for a zone with deployment enabled")
	}
	zones := s.zones
	if full {
		out.serving = s
	} else if zones, err = p.zonesServed(server, s, out); err != nil {
		return nil, err
	}
	checks, err := checksOf(tx, row)
	if err != nil {
		return nil, err
	}
	return out, d.prepareZones(p, out, zones, server, checks)
}

// checkApplications returns an error if the service point does not run the application that answers for zones. It adds warnings for other
// missing capabilities.
func (d *Deployer) checkApplications(tx *store.Tx, server *store.Resource, s *serving) error {
	o, err := d.api.Object(server)
	if err != nil {
		return err
	}
	point := serverconfig.FieldsOf(o).ServicePoint
	is, err := d.points.Serving(tx, point, serverconfig.ServiceDNS)
	resolves := slices.ContainsFunc(s.settings.Views, func(v zonedata.View) bool { return v.Recursion != nil || len(v.Policies) > 0 })
	asking := 0
	for _, v := range s.settings.Views {
		if v.Recursion != nil && len(v.Recursion.Forwarders)+len(v.Recursion.Zones) > 0 {
			asking++
		}
	}
	if asking > 1 && is.Provides[checkin.SharesForwarders] {
		s.warn("service point %s forwards to the same servers for the clients of all views: the servers of the first view", point)
	}
	switch {
	case err != nil:
		return err
	case !is.Exists:
		return problem.BadRequest("ServerNotConnected", "service point %q does not exist in the fleet", point)
	case !is.Provides[checkin.AnswersZones] && (s.answers || !is.Provides[checkin.ResolvesNames]):
		return problem.BadRequest("ServerNotConnected", "service point %s does not run the application dns-authoritative-service: deploy it "+
			"to it first (portolan fleet deploy)", point)
	case is.Provides[checkin.AnswersZones] && !is.Provides[checkin.AcceptsUpdates] &&
		slices.ContainsFunc(s.settings.Zones, func(z zonedata.Zone) bool { return z.Update != nil }):
		s.warn("service point %s runs BIND, which cannot forward updates: allow-update is ignored", point)
	case resolves && !is.Provides[checkin.ResolvesNames]:
		s.warn("service point %s does not run the application dns-resolver-service: response policies, and the roles FORWARDING, STUB and "+
			"RECURSIVE, are ignored", point)
	}
	return nil
}

// zonesServed returns the zones that a server serves already, and adds a warning if a full deployment would change its settings.
func (p *plan) zonesServed(server int64, s *serving, out *outcome) (zones []*plannedZone, err error) {
	served := map[string]bool{}
	if err := p.tx.Each(func(scan func(...any) error) error {
		var id string
		err := scan(&id)
		served[id] = true
		return err
	}, "SELECT zone FROM dns_served WHERE server = ?", server); err != nil {
		return nil, err
	}
	for _, z := range s.zones {
		if served[z.id] {
			zones = append(zones, z)
		}
	}
	_, row, _, err := revisionOf(p.tx, server)
	if err != nil {
		return nil, err
	}
	settings, err := json.Marshal(s.settings)
	if err != nil {
		return nil, err
	}
	before, err := s.sealer.Open(p.tx, settingsOfServer, row.settings)
	if err == nil && string(settings) != before {
		out.warnings = append(out.warnings, "roles, options or zones have changed since the full deployment: they take effect with the next one")
	}
	out.zones = len(zones)
	return zones, err
}

// prepareZones computes the contents of zones: of those that the server writes, and of others that were never deployed.
func (d *Deployer) prepareZones(p *plan, out *outcome, zones []*plannedZone, server int64, checks checks) error {
	var f findings
	pendingWork, err := p.pendingWork(d.changedSince, zones)
	if err != nil {
		return err
	}
	if out.at, err = p.tx.End(); err != nil {
		return err
	}
	for _, z := range zones {
		is, there, err := readDeployed(p.tx, z.id)
		if err != nil {
			return err
		}
		if there && !z.roles[server].writes() && !out.checked && !p.isPolicy(z) {
			continue
		}
		var c *publication
		now := p.api.Store.Now()
		frame, err := p.frameOf(z, now)
		w := (*zoneWork)(nil)
		if err == nil && there {
			w = pendingWork(z, is, frame)
		}
		switch {
		case err != nil || w != nil && w.isEmpty():
		case w != nil && !w.needsFullCheck(is) && !checks.enabled():
			if c, err = p.partialPublication(z, is, w.keys, w.addresses, nil, now); c != nil {
				c.complete = now.Add(-time.Minute).UnixMilli()
			}
		default:
			if err := d.whole.acquireFor(p, z, is); err != nil {
				return err
			}
			if c, err = p.publication(z, nil, now); !p.isForeign(z) {
				out.setFrame(z, frame)
				if err := out.keepFrameBase(p.tx, z); err != nil {
					return err
				}
			}
		}
		if err != nil {
			return problem.BadRequest("InvalidDeploymentData", "zone %s cannot be deployed: %v", problem.Describe(z.row.ID, z.row.Key), err)
		}
		out.examinedZones = append(out.examinedZones, z.id)
		if checks.enabled() && !p.isForeign(z) && !p.isPolicy(z) { // foreign data is not checked
			var entries []zonedata.Entry
			if c != nil {
				entries = c.after
			} else if entries, err = readParts(p.tx, z.id); err != nil {
				return err
			}
			if err := checks.checkZone(&f, z.fqdn(), entries); err != nil {
				return err
			}
		}
		if c != nil {
			c.rebases = true
			out.all = append(out.all, c)
		}
	}
	out.warnings = append(out.warnings, f.warnings...)
	return f.err()
}

// pendingWork returns a function that returns the names of a deployed zone that have changed since it was deployed; nil if the whole zone
// must be examined. That is the case unless the zone has the frame that it was deployed with, none of its names are withheld, and it is in
// a live view, whose changes are queued, or among the examined zones.
func (p *plan) pendingWork(examined examinedZones, deploys []*plannedZone) (func(z *plannedZone, is deployedZone, f frame) *zoneWork,
	error,
) {
	live, err := liveOf(p.tx)
	if err != nil {
		return nil, err
	}
	frames, err := readFrames(p.tx, p.configuration)
	if err != nil {
		return nil, err
	}
	held, err := readHeld(p.tx, p.configuration)
	if err != nil {
		return nil, err
	}
	var now dueEntries
	zones, more := map[string]bool{}, 0
	if err := p.tx.Each(func(scan func(...any) error) error {
		var kind, what string
		if err := scan(&kind, &what); err != nil {
			return err
		}
		more++
		if kind == dueZone {
			zones[what] = true
			return nil
		}
		return now.add(kind, what)
	}, "SELECT kind, what FROM dns_due WHERE configuration = ? LIMIT ?", p.configuration, maxPending); err != nil {
		return nil, err
	}
	hasSince, err := p.addSince(examined, deploys, live, &now, zones)
	if err != nil {
		return nil, err
	}
	work := p.workOn(now.keys, now.addresses)
	if err := p.addLinked(work, now.keys, func(id string) (deployedZone, bool, error) { return readDeployed(p.tx, id) }); err != nil {
		return nil, err
	}
	now.held = held
	return func(z *plannedZone, is deployedZone, f frame) *zoneWork {
		names, whole := f.changedNames(frames[z.id])
		if _, known := examined[z.id]; live[z.view] == 0 && (!known || !hasSince) {
			return nil
		}
		if is.complete <= 0 || whole || len(names) > 0 || zones[z.id] || more >= maxPending || len(now.heldIn(z)) > 0 {
			return nil
		}
		return cmp.Or(work[z], &zoneWork{})
	}, nil
}

// maxPending is the maximum number of changes that are compared with the zones of a deployment: of the queued ones, and of those since the
// last deployment. With more, all zones are examined.
const maxPending = 10_000

// prepareQuick computes the changes that a user made in the zones of the primary server of a zone.
func (d *Deployer) prepareQuick(tx *store.Tx, zone *store.Resource, user int64) (*outcome, error) {
	p, err := newPlan(tx, d.api, zone.Configuration)
	if err != nil {
		return nil, err
	}
	z := p.zoneOf(zone)
	if z == nil {
		return nil, problem.BadRequest("NoAssignedDnsDeploymentRoles", "%s %s (%d) no longer has a deployment role", zone.Type, zone.Key, zone.ID)
	}
	servers := z.serversOf(assigned.writes)
	if len(servers) == 0 {
		servers = z.serversOf(assigned.answers)
	}
	var zones []*plannedZone
	since := int64(0)
	for _, other := range p.zones {
		if !slices.ContainsFunc(servers, func(id int64) bool { return other.roles[id].answers() }) {
			continue
		}
		deployed, there, err := readDeployed(tx, other.id)
		if err != nil {
			return nil, err
		}
		if there {
			zones = append(zones, other)
			if since == 0 || deployed.complete < since {
				since = deployed.complete
			}
		}
	}
	wanted, err := d.changedBy(tx, user, since)
	if err != nil {
		return nil, err
	}
	out := &outcome{configuration: zone.Configuration, server: servers[0], zones: len(zones)}
	if err := out.warnNeverDeployed(p, z); err != nil {
		return nil, err
	}
	if len(wanted) == 0 {
		out.zones = 0
		return out, nil
	}
	return out, d.prepareNames(p, out, zones, wanted)
}

// warnNeverDeployed warns about servers with a role for a zone and a service point that have no content yet: they do not answer for it.
func (o *outcome) warnNeverDeployed(p *plan, z *plannedZone) error {
	for _, server := range z.serversOf(assigned.answers) {
		if x := p.servers[server]; x == nil || x.ServicePoint == "" { // not of this fleet
			continue
		}
		if _, _, there, err := revisionOf(p.tx, server); err != nil || there {
			if err != nil {
				return err
			}
			continue
		}
		o.warnings = append(o.warnings, fmt.Sprintf("server %s has a role for zone %s and was never deployed: begin with a FullDeployment of it",
			problem.Describe(server, p.heads[server].Name), z.zoneName()))
	}
	return nil
}

// prepareNames computes the changes of the wanted names in zones.
func (d *Deployer) prepareNames(p *plan, out *outcome, zones []*plannedZone, wanted selection) error {
	for _, z := range zones {
		is, _, err := readDeployed(p.tx, z.id)
		if err != nil {
			return err
		}
		if err := d.whole.acquireFor(p, z, is); err != nil {
			return err
		}
		c, err := p.publication(z, wanted.selector(z.view), p.api.Store.Now())
		if isFault(err) && out.continues {
			out.warnings = append(out.warnings, fmt.Sprintf("zone %s cannot be deployed: %v", z.row.Key, err))
			continue
		}
		if err != nil {
			return problem.BadRequest("InvalidDeploymentData", "zone %s cannot be deployed: %v", problem.Describe(z.row.ID, z.row.Key), err)
		}
		if c != nil {
			left, withheld, err := p.withholdRecords(z, c)
			switch {
			case err != nil:
				return err
			case withheld != nil && !out.continues:
				return problem.BadRequest("InvalidDeploymentData", "zone %s cannot be deployed: %v", problem.Describe(z.row.ID, z.row.Key),
					joinReasons(withheld))
			case withheld != nil:
				out.warnings = append(out.warnings, fmt.Sprintf("part of zone %s is not deployed: %v", z.row.Key, joinReasons(withheld)))
			}
			c = left
		}
		if c != nil {
			out.all = append(out.all, c)
		}
	}
	return nil
}

// prepareSelected computes the changes of the records of a selective deployment.
func (d *Deployer) prepareSelected(tx *store.Tx, x *SelectiveDeployment) (*outcome, error) {
	wanted, out := selection{}, &outcome{continues: x.ContinueOnFailureEnabled != nil && *x.ContinueOnFailureEnabled}
	var p *plan
	ids, err := tx.Links(x.ID, "wanted")
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		row, err := tx.Get(id)
		if store.IsNotFound(err) { // it was deleted meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		if p == nil {
			if p, err = newPlan(tx, d.api, row.Configuration); err != nil {
				return nil, err
			}
		}
		related := []int64{id}
		if x.RecordScope == "RELATED" {
			if related, err = relatedTo(tx, id); err != nil {
				return nil, err
			}
		}
		for _, one := range related {
			r, err := tx.Get(one)
			if err != nil {
				return nil, err
			}
			skips, err := d.applyDynamicStrategy(r, x.DynamicRecordDeploymentStrategy, out)
			if err != nil {
				return nil, err
			}
			if skips {
				continue
			}
			if err := wanted.add(tx, d.api, r); err != nil {
				return nil, err
			}
			if err := d.addFormer(tx, wanted, r, ids, out); err != nil {
				return nil, err
			}
		}
	}
	if p == nil || len(wanted) == 0 {
		return out, nil
	}
	out.configuration = p.configuration
	if err := d.warnUndeployed(tx, p, ids, out); err != nil {
		return nil, err
	}
	var zones []*plannedZone
	for _, z := range p.zones {
		_, there, err := readDeployed(tx, z.id)
		if err != nil {
			return nil, err
		}
		if there {
			zones = append(zones, z)
		}
	}
	out.zones = len(zones)
	return out, d.prepareNames(p, out, zones, wanted)
}

// applyDynamicStrategy applies the strategy for dynamic records: it skips the record, marks it to become static, or returns an error.
func (d *Deployer) applyDynamicStrategy(r *store.Resource, strategy string, out *outcome) (skips bool, err error) {
	o, err := d.api.Object(r)
	if err != nil || !d.api.TypeNamed(r.Type).IsTrue(o, "dynamic") {
		return false, err
	}
	switch strategy {
	case "SKIP":
		out.warnings = append(out.warnings, fmt.Sprintf("%s %s (%d) is dynamic and was skipped", r.Type, r.Key, r.ID))
		return true, nil
	case "MAKE_STATIC":
		if !slices.Contains(out.statics, r.ID) {
			out.statics = append(out.statics, r.ID)
		}
		return false, nil
	}
	return false, problem.BadRequest("InvalidDeploymentData", "%s %s (%d) is dynamic: set dynamicRecordDeploymentStrategy to SKIP to skip it "+
		"or to MAKE_STATIC to make it static", r.Type, r.Key, r.ID)
}

// makeStatic makes the marked dynamic records static.
func (o *outcome) makeStatic(c *resource.Change) error {
	for _, id := range o.statics {
		row, err := c.Tx.Get(id)
		if store.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		static := func(x schema.Object) { c.API.TypeNamed(row.Type).Unset(x, "dynamic") }
		if _, err := c.Following("dynamic").Change(row, static); err != nil {
			return err
		}
	}
	return nil
}

// relatedTo returns a record, the records that it links to, and the records that link to it.
func relatedTo(tx *store.Tx, id int64) (ids []int64, err error) {
	ids = []int64{id}
	targets, err := tx.Links(id, "linkedRecord")
	if err != nil {
		return nil, err
	}
	refs, err := tx.Referring(id)
	if err != nil {
		return nil, err
	}
	for _, r := range refs {
		if r.Field == "linkedRecord" {
			targets = append(targets, r.Target)
		}
	}
	return append(ids, targets...), nil
}
