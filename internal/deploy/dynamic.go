package deploy

import (
	"bytes"
	"cmp"
	"context"
	"net/netip"
	"slices"
	"time"

	"portolan/internal/dns"
	"portolan/internal/naming"
	"portolan/internal/problem"
	"portolan/internal/store"
	"portolan/internal/zonedata"

	wire "github.com/miekg/dns"
)

func (d due) compare(o due) int {
	return cmp.Or(cmp.Compare(d.configuration, o.configuration), cmp.Compare(d.kind, o.kind), cmp.Compare(d.what, o.what))
}

// change deploys what has changed of live views. It gives whether there may be more.
func (d *Deployer) change(ctx context.Context) (more bool, err error) {
	var o *outcome
	var now dueNow
	var servings map[int64]*serving
	err = d.api.Store.View(ctx, func(tx *store.Tx) (err error) {
		defer caught(&err)
		o, servings = &outcome{}, nil
		if o.configuration, now, err = readDue(tx); err != nil {
			return err
		}
		if o.configuration == 0 {
			d.due.Put(tx, struct{}{}, true)
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
		err = d.carryDue(ctx, o, servings, now)
	}
	if isFault(err) && o.configuration != 0 {
		err = d.setAside(ctx, o.configuration, now, err)
	}
	return err == nil, err
}

// carryDue keeps what has become of what was due, and takes it off the list.
func (d *Deployer) carryDue(ctx context.Context, o *outcome, servings map[int64]*serving, now dueNow) error {
	var told []string
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
		if told, err = tellServers(tx, d.api, d.points, changed); err != nil {
			return err
		}
		for _, f := range o.faults {
			if err := f.note(tx, o.configuration); err != nil {
				return err
			}
		}
		if now.all { // keys of zones may be among it
			tx.Touch(rollTopic)
		}
		return now.done(tx)
	})
	if err != nil {
		return err
	}
	for _, f := range o.faults {
		d.log.Error("changes of a live view cannot be deployed", "what", f.what, "reason", f.why)
	}
	for _, point := range told {
		d.points.Wake(point)
	}
	d.Changed(len(now.rows))
	return nil
}

// prepareAll finds what has changed of all live zones of a configuration, and what the servers that something was deployed to are to serve.
func (d *Deployer) prepareAll(tx *store.Tx, o *outcome) (map[int64]*serving, error) {
	d.plan = nil
	live, err := liveOf(tx)
	if err != nil {
		return nil, err
	}
	if _, err := tx.Get(o.configuration); store.IsNotFound(err) { // it was deleted
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
		if !slices.ContainsFunc(s.settings.Views, func(v zonedata.View) bool { return live[v.ID] != 0 }) {
			continue
		}
		servings[server] = s
		for _, z := range s.zones {
			_, there, err := readDeployed(tx, z.id)
			if err != nil {
				return nil, err
			}
			if live[z.view] == 0 && there || slices.ContainsFunc(o.all, func(c *publication) bool { return c.zone == z }) {
				continue
			}
			c, err := p.wholly(z, d.api.Store.Now())
			if err := o.take(z, c, err); err != nil {
				return nil, err
			}
		}
	}
	return servings, nil
}

// wholly is publication of all of a zone, where what is wrong with it ends nothing else.
func (p *plan) wholly(z *plannedZone, now time.Time) (c *publication, err error) {
	defer caught(&err)
	return p.publication(z, nil, now)
}

// take takes in what has become of a zone, or why it cannot be deployed.
func (o *outcome) take(z *plannedZone, c *publication, err error) error {
	switch {
	case isFault(err):
		o.faults = append(o.faults, fault{what: "zone " + z.zoneName(), why: err, zone: z.id})
	case err != nil:
		return err
	case c != nil:
		o.all = append(o.all, c)
	}
	return nil
}

// prepareDue finds what has changed of some names and addresses.
func (d *Deployer) prepareDue(tx *store.Tx, o *outcome, now dueNow) (err error) {
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
		if !there {
			continue
		}
		var c *publication
		if deployed.complete == 0 { // not all of it was, before
			c, err = p.wholly(z, d.api.Store.Now())
		} else {
			c, err = p.partly(z, deployed, mine, back, d.api.Store.Now())
		}
		if err := o.take(z, c, err); err != nil {
			return err
		}
	}
	return nil
}

// withLinked gives keys, and those of the records that lead to records of them: an alias follows the name of its host.
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

// names gives the keys that lie in a zone, those in zones below it included.
func (z *plannedZone) names(keys []string) (mine []string) {
	if z.row.ID == 0 {
		return nil
	}
	for _, key := range keys {
		if _, in := naming.Relative(key, z.row.Key); in {
			mine = append(mine, key)
		}
	}
	return mine
}

// addresses gives the addresses that a zone leads back from.
func (z *plannedZone) addresses(all []netip.Addr) (mine []netip.Addr) {
	low, high, ok := naming.ReverseRange(z.row.Key)
	if !ok {
		return nil
	}
	for _, a := range all {
		if a.BitLen() == low.BitLen() && !a.Less(low) && !high.Less(a) {
			mine = append(mine, a)
		}
	}
	return mine
}

// bothWays adds to names of a zone the addresses that they lead back from, and to addresses their names: a name has what leads back from
// its address, and records of its own.
func (z *plannedZone) bothWays(keys []string, back []netip.Addr) ([]string, []netip.Addr, error) {
	back = slices.Clone(back)
	for _, key := range keys {
		if a, ok := naming.ReverseAddress(key, z.row.Key); ok {
			back = append(back, a)
		}
	}
	slices.SortFunc(back, netip.Addr.Compare)
	back = z.addresses(slices.Compact(back))
	all := slices.Clone(keys)
	for _, a := range back {
		name, err := naming.ReverseName(a, z.row.Key)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, naming.Key(naming.Join(name, z.row.Key)))
	}
	slices.Sort(all)
	return slices.Compact(all), back, nil
}

// partly gives what has changed of some names of a zone, and of those that lead back from some addresses. Where the names have to do with
// more than themselves, as that of a name server, all of the zone is looked at.
func (p *plan) partly(z *plannedZone, deployed deployedZone, keys []string, back []netip.Addr, now time.Time) (c *publication, err error) {
	defer caught(&err)
	keys, back, err = z.bothWays(keys, back)
	if err != nil {
		return nil, err
	}
	owners := names{}
	for _, key := range keys {
		if err := owners.add(key); err != nil {
			return nil, err
		}
	}
	if further, err := p.reachesFurther(z, owners); err != nil || further {
		if err != nil {
			return nil, err
		}
		return p.publication(z, nil, now)
	}
	if len(owners) == 0 {
		return nil, nil
	}
	c = &publication{zone: z, before: deployed, existed: true, complete: deployed.complete,
		serial: uint32(deployed.serial)} //nolint:gosec // of 32 bits
	rrs, err := dns.NameData(p.tx, p.api, z.row, keys, back)
	if err != nil {
		return nil, err
	}
	after, err := compiled(z.fqdn(), rrs)
	if err != nil {
		return nil, err
	}
	before, err := p.deployedOf(z.id, owners)
	if err != nil {
		return nil, err
	}
	if c.removed, c.added = zonedata.Diff(before, after); len(c.removed)+len(c.added) == 0 {
		return nil, nil
	}
	c.serial = p.nextSerial(z, c.serial, true, now)
	soa, err := p.soaOf(z)
	if err != nil {
		return nil, err
	}
	c.removed = append(c.removed, soa)
	soa.Record = withSerial(soa.Record, c.serial)
	c.added = append(c.added, soa)
	slices.SortFunc(c.removed, zonedata.Entry.Compare)
	slices.SortFunc(c.added, zonedata.Entry.Compare)
	return c, c.count()
}

// compiled puts records of some names together as a zone has them, without its SOA.
func compiled(apex string, rrs []wire.RR) ([]zonedata.Entry, error) {
	head := &wire.SOA{Hdr: wire.RR_Header{Name: apex, Rrtype: wire.TypeSOA, Class: wire.ClassINET}, Ns: ".", Mbox: "."}
	zone, err := naming.Compile(apex, append(rrs, head))
	if err != nil {
		return nil, err
	}
	all, err := entriesOf(zone)
	return slices.DeleteFunc(all, func(e zonedata.Entry) bool { return e.Record.Type() == wire.TypeSOA }), err
}

// reachesFurther reports whether one of the names has to do with more than its own records: that of the zone itself, of one below it, or of
// a name server. Names that lie in zones below, and have nothing to do with this one, are taken out.
func (p *plan) reachesFurther(z *plannedZone, owners names) (bool, error) {
	apex, err := keyOf(z.row.Key)
	if err != nil || z.row.Type != "Zone" && !p.isPolicy(z) || owners[apex] {
		return true, err
	}
	if p.isPolicy(z) { // each of its names stands for itself
		return false, nil
	}
	for _, server := range p.nameServers(z) {
		if key, err := keyOf(server.Name); err != nil || owners[key] {
			return true, err
		}
	}
	cuts, err := p.cutsOf(z.view)
	if err != nil {
		return true, err
	}
	for owner := range owners {
		cut := cutAbove(owner, apex, cuts)
		if cut == "" {
			continue
		}
		if cut == owner {
			return true, nil
		}
		entries, err := p.deployedOf(z.id, names{owner: true, cut: true})
		if err != nil {
			return true, err
		}
		for _, e := range entries {
			if string(e.Key) == owner || e.Record.Type() == wire.TypeNS && string(zonedata.Key(lower(e.Record.Data()))) == owner {
				return true, nil
			}
		}
		delete(owners, owner)
	}
	return false, nil
}

// lower gives a name in wire form in lower case.
func lower(name []byte) []byte { return bytes.ToLower(name) }

// keyOf is the key of a name in the data of zones.
func keyOf(name string) (string, error) {
	one := names{}
	if err := one.add(name); err != nil {
		return "", err
	}
	for key := range one {
		return key, nil
	}
	return "", nil
}

// cutAbove gives the first zone, from the apex down, that a name below the apex lies in; empty where there is none.
func cutAbove(owner, apex string, cuts map[string]bool) string {
	for i := len(apex); i < len(owner); i++ {
		if owner[i] == 0 && cuts[owner[:i+1]] {
			return owner[:i+1]
		}
	}
	return ""
}

// cutsOf gives the keys of all zones of a view.
func (p *plan) cutsOf(view int64) (map[string]bool, error) {
	if cuts, known := p.cuts[view]; known {
		return cuts, nil
	}
	cuts := map[string]bool{}
	for _, key := range p.apexes[view] {
		cut, err := keyOf(key)
		if err != nil {
			return nil, err
		}
		cuts[cut] = true
	}
	p.cuts[view] = cuts
	return cuts, nil
}

// deployedOf gives what is deployed of some names of a zone, in order.
func (p *plan) deployedOf(zone string, owners names) (all []zonedata.Entry, err error) {
	return deployedOf(p.tx, zone, owners)
}

func deployedOf(tx *store.Tx, zone string, owners names) (all []zonedata.Entry, err error) {
	read := map[string]bool{}
	for owner := range owners {
		first, _, entries, err := readPart(tx, zone, []byte(owner))
		if err != nil {
			return nil, err
		}
		if read[string(first)] {
			continue
		}
		read[string(first)] = true
		for _, e := range entries {
			if owners[string(e.Key)] {
				all = append(all, e)
			}
		}
	}
	slices.SortFunc(all, zonedata.Entry.Compare)
	return all, nil
}

// soaOf gives the SOA record that is deployed of a zone.
func (p *plan) soaOf(z *plannedZone) (soa zonedata.Entry, err error) {
	apex := names{}
	if err := apex.add(z.row.Key); err != nil {
		return soa, err
	}
	entries, err := p.deployedOf(z.id, apex)
	if err != nil {
		return soa, err
	}
	for _, e := range entries {
		if e.Record.Type() == wire.TypeSOA {
			return e, nil
		}
	}
	return soa, problem.BadRequest("InvalidDeploymentData", "nothing is deployed of the start of authority of zone %s", z.row.Key)
}
