package dhcppublish

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dhcp"
	"portolan/internal/manager/ipam"
	"portolan/internal/wire/dhcpdata"
)

// contentTopic is touched when deployed content changes, dueTopic when a change is queued for it.
const (
	contentTopic = "dhcp content"
	dueTopic     = "dhcp changes"
)

// liveChanges queues the changes of deployed networks with dynamicUpdateEnabled, of MAC pools with instantDeploymentEnabled, and the
// actions on leases.
type liveChanges struct {
	// units are the deployed units of all servers, cached until content changes.
	units *store.Cache[struct{}, map[string]bool]
}

func (l *liveChanges) open(s *store.Store) {
	l.units = store.NewCache[struct{}](s, store.CacheOptions[map[string]bool]{Topics: []string{contentTopic}})
}

// deployedUnits returns the units that are deployed to any server.
func (l *liveChanges) deployedUnits(tx *store.Tx) (map[string]bool, error) {
	if all, ok := l.units.Get(tx, struct{}{}); ok {
		return all, nil
	}
	all := map[string]bool{}
	err := tx.Each(func(scan func(...any) error) error {
		var id string
		err := scan(&id)
		all[id] = true
		return err
	}, "SELECT DISTINCT unit FROM dhcp_unit")
	if err == nil {
		l.units.Put(tx, struct{}{}, all)
	}
	return all, err
}

func (l *liveChanges) follow(tx *store.Tx) store.Follower {
	return &liveFollower{live: l, tx: tx, networks: map[int64]bool{}, pools: map[int64]bool{}, servers: map[int64]bool{},
		zones: map[int64]bool{}}
}

// liveFollower collects the networks and MAC pools that a transaction changes. The value of a network is true if its change is deployed
// without dynamicUpdateEnabled.
type liveFollower struct {
	live     *liveChanges
	tx       *store.Tx
	networks map[int64]bool
	pools    map[int64]bool
	// servers are those with changed failover pairs. zones are the configurations whose zones for the names of clients may have changed.
	servers map[int64]bool
	zones   map[int64]bool
	parents []int64
}

// Changed collects a change.
func (f *liveFollower) Changed(before, after *store.Resource) error {
	f.pairsChanged(before, after)
	f.zonesChanged(before, after)
	for _, r := range []*store.Resource{before, after} {
		if r == nil {
			continue
		}
		switch r.Collection {
		case "addresses", "ranges":
			f.collect(r.Parent)
		case "networks":
			f.collect(r.ID)
		case dhcp.LeaseActions:
			was, err := isPending(before)
			if err != nil {
				return err
			}
			is, err := isPending(after)
			if err != nil {
				return err
			}
			if was != is { // the server gets an order, and forgets a performed one
				f.networks[r.Parent] = true
			}
		case "macAddresses":
			f.pools[r.Ref("macPool")] = true
		case "deploymentOptions":
			if strings.HasPrefix(r.Type, "DHCP") {
				f.parents = append(f.parents, r.Parent)
			}
		}
	}
	return nil
}

// isPending reports whether a row is an action on a lease that the server has not performed yet. It may be nil.
func isPending(row *store.Resource) (pending bool, err error) {
	if row == nil {
		return false, nil
	}
	err = store.Members(row.Body, func(name, raw []byte) error {
		pending = pending || string(name) == "state" && string(raw) == strconv.Quote(dhcp.ActionPending)
		return nil
	})
	return pending, err
}

// collect collects a changed network.
func (f *liveFollower) collect(network int64) {
	if !f.networks[network] {
		f.networks[network] = false
	}
}

// BeforeCommit queues the changes of deployed content.
func (f *liveFollower) BeforeCommit() error {
	if len(f.networks)+len(f.pools)+len(f.parents)+len(f.servers)+len(f.zones) == 0 {
		return nil
	}
	units, err := f.live.deployedUnits(f.tx)
	if err != nil || len(units) == 0 {
		return err
	}
	for _, id := range f.parents {
		if err := f.collectParent(id); err != nil {
			return err
		}
	}
	for _, id := range sortedKeys(f.networks) {
		if units[dhcpdata.NetworkUnit(id)] {
			if err := f.queue(id, f.networks[id]); err != nil {
				return err
			}
		}
	}
	if err := f.collectZones(); err != nil {
		return err
	}
	for _, id := range sortedKeys(f.servers) {
		if err := f.queue(id, true); err != nil {
			return err
		}
	}
	for _, id := range sortedKeys(f.pools) {
		if id != 0 && units[dhcpdata.MACPoolUnit(id)] {
			if err := f.queue(id, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// collectParent collects the network or the MAC pool of an object with a changed option.
func (f *liveFollower) collectParent(id int64) error {
	row, err := f.tx.Get(id)
	if store.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	switch row.Collection {
	case "networks":
		f.collect(id)
	case "addresses", "ranges":
		f.collect(row.Parent)
	case "macPools":
		f.pools[id] = true
	case "macAddresses":
		f.pools[row.Ref("macPool")] = true
	}
	return nil
}

// queue queues a network or a MAC pool, if its changes are live or always is true.
func (f *liveFollower) queue(id int64, always bool) error {
	row, err := f.tx.Get(id)
	if store.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !always {
		if live, err := isLive(row); err != nil || !live {
			return err
		}
	}
	return queueChange(f.tx, row.Configuration, id)
}

// isLive reports whether the changes of a network or a MAC pool are deployed at once.
func isLive(row *store.Resource) (live bool, err error) {
	field := "dynamicUpdateEnabled"
	if row.Collection == "macPools" {
		field = "instantDeploymentEnabled"
	}
	live = row.Type == "DenyMACPool"
	err = store.Members(row.Body, func(name, raw []byte) error {
		if string(name) == field {
			live = live || string(raw) == "true"
		}
		return nil
	})
	return live, err
}

// Points are the service points of the fleet.
type Points interface {
	// Changed records in a transaction that the content of a service point has changed.
	Changed(tx *store.Tx, servicePoint string)
	// Wake notifies a service point after that transaction was committed.
	Wake(servicePoint string)
}

// Intervals of the live deployment. A lease ensures that only one manager of a database runs it.
const (
	pollInterval = 50 * time.Millisecond
	leaseLength  = 10 * time.Second
	leaseRenewal = 2 * time.Second
	dueAtOnce    = 50
	// maxHold is the time after which a transaction with several changes ends. Other writers wait for it.
	maxHold = 50 * time.Millisecond
)

// Live deploys queued changes.
type Live struct {
	api    *resource.API
	points Points
	log    *slog.Logger
	lease  *store.Lease
	// nothing is true if no change is queued. It is cached until one is.
	nothing *store.Cache[struct{}, bool]
	tried   time.Time
	held    bool
	// Deployed is called with the number of deployed changes.
	Deployed func(n int)
}

// NewLive returns the live deployment. Start it with Run.
func NewLive(a *resource.API, points Points, log *slog.Logger) *Live {
	return &Live{api: a, points: points, log: log, lease: a.Store.NewLease(dueTopic, leaseLength), Deployed: func(int) {},
		nothing: store.NewCache[struct{}](a.Store, store.CacheOptions[bool]{Topics: []string{dueTopic}})}
}

// Run works until ctx is cancelled.
func (l *Live) Run(ctx context.Context) {
	l.api.Store.WorkOn(ctx, []string{dueTopic}, pollInterval, l.log, dueTopic, l.runOnce, l.lease)
}

// dueChange is a queued change.
type dueChange struct{ configuration, what, changed int64 }

// runOnce deploys the queued changes.
func (l *Live) runOnce(ctx context.Context) error {
	if nothing, known := l.nothing.Now(struct{}{}); known && nothing {
		return nil
	}
	every := leaseRenewal
	if !l.held {
		every = time.Second
	}
	if time.Since(l.tried) >= every {
		l.tried = time.Now()
		var err error
		if l.held, err = l.lease.Acquire(ctx); err != nil {
			return err
		}
	}
	if !l.held {
		return nil
	}
	for ctx.Err() == nil {
		more, err := l.deploySome(ctx)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// deploySome deploys some changes, at most dueAtOnce, in one transaction. It returns false if none is queued.
func (l *Live) deploySome(ctx context.Context) (more bool, err error) {
	var all []dueChange
	if err := l.api.Store.View(ctx, func(tx *store.Tx) error {
		all = nil
		if err := tx.Each(func(scan func(...any) error) error {
			var d dueChange
			err := scan(&d.configuration, &d.what, &d.changed)
			all = append(all, d)
			return err
		}, "SELECT configuration, what, changed FROM dhcp_due ORDER BY changed, what DESC LIMIT ?", dueAtOnce); err != nil {
			return err
		}
		if len(all) == 0 {
			l.nothing.Put(tx, struct{}{}, true)
		}
		all = slices.DeleteFunc(all, func(d dueChange) bool { return d.changed > tx.Now().UnixMilli() }) // it has failed
		return nil
	}); err != nil || len(all) == 0 {
		return false, err
	}
	if l.deploy(ctx, all) != nil { // the error is that of a single change, below
		err = l.deployAlone(ctx, all)
	}
	return err == nil, err
}

// deploy deploys changes in one transaction, and wakes the service points. It deploys the first one, and others until maxHold is over.
func (l *Live) deploy(ctx context.Context, all []dueChange) error {
	var wake []string
	done := 0
	if err := l.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		wake, done = nil, 0
		tx.Touch(dueTopic)
		start := time.Now()
		for _, d := range all {
			if done > 0 && time.Since(start) > maxHold {
				break
			}
			done++
			if err := tx.Write("DELETE FROM dhcp_due WHERE configuration = ? AND what = ? AND changed = ?", d.configuration, d.what,
				d.changed); err != nil {
				return err
			}
			points, err := l.deployOne(tx, d.what)
			if err != nil {
				return fmt.Errorf("deploy the change of resource %d: %w", d.what, err)
			}
			wake = append(wake, points...)
		}
		return nil
	}); err != nil {
		return err
	}
	slices.Sort(wake)
	for _, point := range slices.Compact(wake) {
		l.points.Wake(point)
	}
	l.Deployed(done)
	return nil
}

// failedAgain is the time after which a change that could not be deployed is tried again.
const failedAgain = 10 * time.Second

// deployAlone deploys changes one by one, after one of them has failed: it does not delay the others. One that fails is tried again later.
func (l *Live) deployAlone(ctx context.Context, all []dueChange) (err error) {
	for _, d := range all {
		failed := l.deploy(ctx, []dueChange{d})
		if failed == nil {
			continue
		}
		err = errors.Join(err, failed)
		if failed := l.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
			return tx.Write("UPDATE dhcp_due SET changed = ? WHERE configuration = ? AND what = ? AND changed = ?",
				tx.Now().Add(l.api.Store.ShortenPause(failedAgain)).UnixMilli(), d.configuration, d.what, d.changed)
		}); failed != nil { // the database is at fault, not the change
			return errors.Join(err, failed)
		}
	}
	return err
}

// deployOne deploys the changes of a network or a MAC pool to all servers that have it, or a request for leases. It returns the service
// points to wake.
func (l *Live) deployOne(tx *store.Tx, id int64) (wake []string, err error) {
	server, requests := requestedServer(id)
	if requests {
		id = server
	}
	row, err := tx.Get(id)
	if store.IsNotFound(err) { // the next deployment removes it from the servers
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if requests {
		return l.requestLeases(tx, row.Clone())
	}
	unit := dhcpdata.NetworkUnit(id)
	if row.Collection == "servers" {
		return l.deployServer(tx, row)
	}
	if row.Collection == "macPools" {
		unit = dhcpdata.MACPoolUnit(id)
	}
	var servers []int64
	if err := tx.Each(func(scan func(...any) error) error {
		var server int64
		err := scan(&server)
		servers = append(servers, server)
		return err
	}, "SELECT server FROM dhcp_unit WHERE unit = ? ORDER BY server", unit); err != nil {
		return nil, err
	}
	for _, server := range servers {
		point, err := l.deployTo(tx, row, unit, server)
		if err != nil {
			return nil, err
		}
		if point != "" {
			wake = append(wake, point)
		}
	}
	return wake, nil
}

// compilePool compiles the unit of a MAC pool.
func (c *compiler) compilePool(id int64) error {
	if err := c.readCommon(); err != nil {
		return err
	}
	row, _, err := c.get(id)
	if err != nil {
		return err
	}
	var members []macRow
	places := store.Any{store.HasParent(id)}
	if err := c.each("macAddresses", store.LinksTo{Targets: []int64{id}, Field: "macPool"}, func(row *store.Resource, o schema.Object) error {
		if x, ok := o.(*ipam.MACAddress); ok {
			members = append(members, macRow{row.ID, row.Name, x.Address})
		}
		return nil
	}); err != nil {
		return err
	}
	places = append(places, store.Through{Ref: "parent", Column: true, Where: store.All{store.InCollection("macAddresses"),
		store.LinksTo{Targets: []int64{id}, Field: "macPool"}}})
	if err := c.readOptions(places); err != nil {
		return err
	}
	return c.compileMACPool(row, members)
}
