package dnspublish

import (
	"database/sql"
	"errors"
	"maps"
	"net/netip"
	"slices"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/base/naming"
	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
)

// deployedName is the name of the store extension for deployed content.
const deployedName = "deployed"

// dueTopic is touched when a change of a live view is queued.
const dueTopic = "dns_due"

// Kinds of queue entries: a name by the key of its record, an address, the roles, options and zones of the configuration, or a whole zone
// by its id. An entry for the configuration with the key of a zone concerns the zones at, above and below that name only.
const (
	dueName    = "name"
	dueAddress = "address"
	dueAll     = "all"
	dueZone    = "zone"
)

// Lanes of queue entries. Those of laneLive are deployed first, by age. The entries of a transaction with more than maxLive names are in
// laneBulk, and zones that are deployed as a whole in laneWhole: both are deployed beside laneLive. laneHeld are marks of withheld records.
const (
	laneLive  = 0
	laneBulk  = 1
	laneHeld  = 2
	laneWhole = 3
)

// maxLive is the maximum number of names in one transaction that are deployed in laneLive. Steps of large work never are: on a slow
// machine, they are small, and other changes would wait for all of them.
const maxLive = 200

// liveViews caches the live views, whose changes are deployed automatically, and queues the changes of each transaction.
type liveViews struct {
	// known are the live views of all configurations, each with its configuration. The cache has a single key.
	known *store.Cache[struct{}, map[int64]int64]
}

func (l *liveViews) open(s *store.Store) {
	l.known = store.NewCache[struct{}](s, store.CacheOptions[map[int64]int64]{Topics: []string{"views"}, Late: true, Max: 1})
}

// views returns the live views, with their configurations.
func (l *liveViews) views(tx *store.Tx) (map[int64]int64, error) {
	if known, ok := l.known.Get(tx, struct{}{}); ok {
		return known, nil
	}
	found := map[int64]int64{}
	err := tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("views"),
		store.Compare{Field: store.Field{Kind: store.Bool, Path: []string{"liveDeployment"}}, Op: "eq", Value: true}}},
		func(r *store.Resource) error {
			found[r.ID] = r.Configuration
			return nil
		})
	if err == nil {
		l.known.Put(tx, struct{}{}, found)
	}
	return found, err
}

// liveOf returns the live views in a transaction.
func liveOf(tx *store.Tx) (map[int64]int64, error) {
	l, err := liveViewsOf(tx)
	if err != nil {
		return nil, err
	}
	return l.views(tx)
}

// follow returns the follower for a transaction.
func (l *liveViews) follow(tx *store.Tx) store.Follower { return l.collector(tx, nil) }

// due is a queue entry: a change to be deployed.
type due struct {
	configuration int64
	kind, name    string
}

// liveFollower collects the changes of live views in a transaction.
type liveFollower struct {
	live *liveViews
	tx   *store.Tx
	due  map[due]bool
	// of are the views whose changes are collected, with their configurations; nil for the live views.
	of map[int64]int64
	// views cache the views of zones, zones the live response policy zones of policies.
	views map[int64]int64
	zones map[int64][]*store.Resource
	// branches are the entries of zones that were queued by name, by configuration.
	branches map[int64][]due
}

// structuralCollections are the collections whose changes may affect any zone of their configuration.
var structuralCollections = []string{"views", "zones", "deploymentRoles", "deploymentOptions", "servers", "serverGroups", "interfaces",
	"accessControlLists", "signingKeys", "configurations", "responsePolicies"}

// Changed queues the names that the change of a row affects.
func (f *liveFollower) Changed(before, after *store.Resource) error {
	if before != nil && after != nil {
		if err := f.checkSigningKept(before, after); err != nil {
			return err
		}
	}
	return f.collect(before, after)
}

// collect adds what the change of a row affects.
func (f *liveFollower) collect(before, after *store.Resource) error {
	r := after
	if r == nil {
		r = before
	}
	switch {
	case slices.Contains(structuralCollections, r.Collection):
		if !isStructural(r) || before != nil && after != nil && isEqualServed(before, after) {
			return nil
		}
		if r.Collection == "zones" {
			return f.markBranches(before, after)
		}
		return f.markAll(r)
	case r.Collection == "blocks" || r.Collection == "networks":
		if before != nil && (after == nil || string(before.Low) != string(after.Low) || string(before.High) != string(after.High)) {
			return f.markAll(r)
		}
	case r.Collection == "policyItems":
		return f.markPolicyItem(before, after)
	case r.Collection == "resourceRecords":
		for _, one := range []*store.Resource{before, after} {
			if one != nil {
				if err := f.markRecord(one); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// isStructural reports whether DNS uses a resource of structuralCollections. Roles and options of other services are in the same
// collections.
func isStructural(r *store.Resource) bool {
	switch r.Collection {
	case "deploymentRoles":
		return r.Type == "DNSDeploymentRole"
	case "deploymentOptions":
		return slices.Contains([]string{"DNSOption", "StartOfAuthority", "DNSRawOption"}, r.Type)
	}
	return true
}

// unservedFields are fields of structuralCollections that describe a resource for its users only.
var unservedFields = []string{"userDefinedFields", "comment", "description", "tags", "location", "restrictedRanges", "template"}

// isEqualServed reports whether both versions of a resource differ only in unservedFields.
func isEqualServed(before, after *store.Resource) bool {
	if before.Name != after.Name || before.Parent != after.Parent || before.Key != after.Key || before.Configuration != after.Configuration {
		return false
	}
	refs := func(r *store.Resource) []store.Ref {
		return slices.DeleteFunc(slices.Clone(r.Refs), func(ref store.Ref) bool { return slices.Contains(unservedFields, ref.Field) })
	}
	links := func(r *store.Resource) []store.Ref {
		return slices.DeleteFunc(slices.Clone(r.Links), func(l store.Ref) bool { return slices.Contains(unservedFields, l.Field) })
	}
	if !slices.Equal(refs(before), refs(after)) || !slices.Equal(links(before), links(after)) {
		return false
	}
	was, err := servedMembers(before.Body)
	if err != nil {
		return false
	}
	is, err := servedMembers(after.Body)
	return err == nil && maps.Equal(was, is)
}

// servedMembers returns the members of a resource that are not among unservedFields.
func servedMembers(body []byte) (map[string]string, error) {
	all := map[string]string{}
	err := store.Members(body, func(name, raw []byte) error {
		if !slices.Contains(unservedFields, string(name)) {
			all[string(name)] = string(raw)
		}
		return nil
	})
	return all, err
}

// checkSigningKept rejects a change of a zone to unsigned, or to another policy, while its parent zone has its DS records. Resolvers would
// reject all answers of the zone.
func (f *liveFollower) checkSigningKept(before, after *store.Resource) error {
	ends := func(field string) bool { return before.Ref(field) != 0 && before.Ref(field) != after.Ref(field) }
	switch {
	case before.Collection == "zones" && ends("signingPolicy"):
		return f.checkNotDelegated("signingPolicy", before.Ref("view"), before.Key)
	case (before.Collection == "blocks" || before.Collection == "networks") && ends("reverseZoneSigningPolicy"):
		names := naming.ReverseZones(store.KeyAddr(before.Low), store.KeyAddr(before.High), maxReverseZones)
		if len(names) == 0 {
			return nil
		}
		var views []int64
		if err := f.tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("views"),
			store.HasParent(before.Configuration)}}, func(r *store.Resource) error {
			views = append(views, r.ID)
			return nil
		}); err != nil {
			return err
		}
		for _, view := range views { // the policy signs the first reverse zone only
			if err := f.checkNotDelegated("reverseZoneSigningPolicy", view, naming.Key(naming.Clean(names[0]))); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkNotDelegated returns an error if the parent zone, deployed by this manager, has DS records of a zone.
func (f *liveFollower) checkNotDelegated(field string, view int64, key string) error {
	owner, err := keyOf(key)
	if err != nil {
		return err
	}
	for above := key; ; {
		_, rest, more := naming.Cut(above)
		if above = rest; !more {
			return nil
		}
		id := zoneID(view, above)
		_, there, err := readDeployed(f.tx, id)
		if err != nil {
			return err
		}
		if !there {
			continue
		}
		if refreshed, _, err := readCopy(f.tx, id); err != nil || refreshed > 0 { // the content of a copied zone is not ours
			return err
		}
		_, _, entries, err := readPart(f.tx, id, []byte(owner))
		if err != nil {
			return err
		}
		for _, e := range entries {
			if string(e.Key()) != owner || e.Record().Type() != wire.TypeDS {
				continue
			}
			return problem.New(409, "ResourceConflictsWithOther", "%s: the DS record of zone %s is in the parent zone %s: remove it first, by "+
				`PATCH of its KeySigningKeys with {"dsWithdrawn":true}, and wait until its TTL has expired`, field, key, above)
		}
		return nil
	}
}

// markAll queues the whole configuration of a resource, if it has live views or the resource is a view.
func (f *liveFollower) markAll(r *store.Resource) error { return f.mark(r, "") }

// mark queues the configuration of a resource, or the branch of a zone in it.
func (f *liveFollower) mark(r *store.Resource, branch string) error {
	live, err := f.followed()
	if err != nil {
		return err
	}
	configuration := r.Configuration
	if r.Collection == "configurations" {
		configuration = r.ID
	}
	for _, one := range live {
		if one == configuration {
			f.due[due{configuration, dueAll, branch}] = true
			return nil
		}
	}
	if r.Collection == "views" { // it may be live from now on
		f.due[due{configuration, dueAll, ""}] = true
	}
	return nil
}

// markPolicyItem queues the names of an item of a response policy in the live zones of the policy.
func (f *liveFollower) markPolicyItem(before, after *store.Resource) error {
	live, err := f.followed()
	if err != nil || len(live) == 0 {
		return err
	}
	for _, item := range []*store.Resource{before, after} {
		if item == nil {
			continue
		}
		zones, known := f.zones[item.Parent]
		if !known {
			links, err := f.tx.Referring(item.Parent)
			if err != nil {
				return err
			}
			for _, l := range links {
				if l.Field != "responsePolicy" {
					continue
				}
				zone, err := f.tx.Get(l.Target)
				if err != nil {
					return err
				}
				if live[zone.Ref("view")] != 0 {
					zones = append(zones, zone)
				}
			}
			f.zones[item.Parent] = zones
		}
		for _, zone := range zones {
			f.due[due{zone.Configuration, dueName, naming.Join(item.Name, zone.Key)}] = true
		}
	}
	return nil
}

// markRecord queues the name of a record in a live view, and its addresses for their PTR records.
func (f *liveFollower) markRecord(r *store.Resource) error {
	live, err := f.followed()
	if err != nil || len(live) == 0 {
		return err
	}
	view, known := f.views[r.Parent]
	if !known {
		zone, err := f.get(r.Parent)
		if err != nil {
			return err
		}
		if zone != nil { // otherwise it was deleted as well, and is queued itself
			view = zone.Ref("view")
		}
		f.views[r.Parent] = view
	}
	if live[view] == 0 {
		return nil
	}
	f.due[due{r.Configuration, dueName, r.Key}] = true
	for _, l := range r.Links {
		if l.Field != "addresses" {
			continue
		}
		a, err := f.get(l.Target)
		if err != nil {
			return err
		}
		if a == nil {
			continue
		}
		f.due[due{r.Configuration, dueAddress, store.KeyAddr(a.Low).String()}] = true
	}
	return nil
}

// BeforeCommit stores the queue entries.
func (f *liveFollower) BeforeCommit() error {
	if len(f.due) == 0 {
		return nil
	}
	number, err := f.tx.Number()
	if err != nil {
		return err
	}
	all := make([]due, 0, len(f.due))
	for d := range f.due {
		all = append(all, d)
	}
	slices.SortFunc(all, due.compare)
	lane := laneLive
	if len(all) > maxLive || f.tx.IsLargeWork() {
		lane = laneBulk
	}
	for _, d := range all {
		at := lane
		if d.kind == dueAll {
			at = laneLive
		}
		if err := d.queue(f.tx, number, at); err != nil {
			return err
		}
	}
	f.tx.Touch(dueTopic)
	return nil
}

// queue stores a queue entry in a lane. number is that of the transaction.
func (d due) queue(tx *store.Tx, number int64, lane int) error {
	return tx.Write("INSERT INTO dns_due (configuration, kind, what, changed, lane) VALUES (?, ?, ?, ?, ?) ON CONFLICT (configuration, kind,"+
		" what) DO UPDATE SET changed = excluded.changed, lane = excluded.lane", d.configuration, d.kind, d.name, number, lane)
}

// dueEntries are the queue entries of a configuration at a moment.
type dueEntries struct {
	// all reports that roles, options or zones have changed; branches are the keys of the zones if nothing else has.
	all       bool
	branches  branches
	keys      []string
	addresses []netip.Addr
	rows      []dueRow
	// configuration is that of the entries. numbers are the transactions with entries of laneBulk, all of which are among the names and
	// addresses; rows lists those of the other lanes.
	configuration int64
	numbers       []int64
	// held are the marks of records that were withheld before.
	held []string
}

// dueRow is a queue entry as read. It is removed after the deployment, unless it has changed meanwhile.
type dueRow struct {
	due
	changed int64
}

// maxDue is the maximum number of queue entries of one deployment in laneLive.
const maxDue = 2000

// readDue returns the configuration with the oldest queue entry of a lane, and its oldest entries; 0 if the lane is empty. It returns the
// first limit entries; all for the limit 0.
func readDue(tx *store.Tx, lane, limit int) (configuration int64, now dueEntries, err error) {
	err = tx.QueryRow("SELECT configuration FROM dns_due WHERE lane = ? ORDER BY changed LIMIT 1", lane).Scan(&configuration)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, now, nil
	}
	if err != nil {
		return 0, now, err
	}
	now.configuration = configuration
	if now.held, err = readHeld(tx, configuration); err != nil {
		return 0, now, err
	}
	query, args := "SELECT kind, what, changed FROM dns_due WHERE lane = ? AND configuration = ? ORDER BY changed", []any{lane, configuration}
	if limit > 0 {
		query, args = query+" LIMIT ?", append(args, limit)
	}
	return configuration, now, tx.Each(func(scan func(...any) error) error {
		r := dueRow{due: due{configuration: configuration}}
		if err := scan(&r.kind, &r.name, &r.changed); err != nil {
			return err
		}
		if limit > 0 {
			now.rows = append(now.rows, r)
		} else if n := len(now.numbers); n == 0 || now.numbers[n-1] != r.changed {
			now.numbers = append(now.numbers, r.changed)
		}
		return now.add(r.kind, r.name)
	}, query, args...)
}

// add adds a queue entry.
func (now *dueEntries) add(kind, what string) error {
	switch kind {
	case dueAll:
		now.branches = now.branches.add(what, !now.all)
		now.all = true
	case dueName:
		now.keys = append(now.keys, what)
	case dueAddress:
		a, err := netip.ParseAddr(what)
		if err != nil {
			return err
		}
		now.addresses = append(now.addresses, a)
	}
	return nil
}
