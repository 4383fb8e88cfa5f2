package dhcp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// endAtOnce is the maximum number of leases that one transaction ends or releases.
const endAtOnce = 1000

// EndExpired ends the expired leases without a server: imported leases that no server has confirmed, and leases of deleted servers. It
// deletes their orders, and returns the number of ended leases.
func EndExpired(ctx context.Context, a *resource.API, update store.Updater) (ended int, err error) {
	return endExpiredOf(ctx, a, update, 0, 0)
}

// ReleaseLost processes the leases of servers that never return. Leases of a deleted server lose their server, and the next server of
// their network restores them. Leases of a server without a service point end after their expiration. queue enqueues a network for
// deployment. Pending actions that no server can perform any more are performed. It returns the numbers of released and of ended leases.
func ReleaseLost(ctx context.Context, a *resource.API, update store.Updater,
	queue func(tx *store.Tx, configuration, network int64) error) (released, ended int, err error) {
	deleted, lost, err := findLost(ctx, a)
	if err != nil {
		return 0, 0, err
	}
	for _, server := range deleted {
		for more := true; more; {
			n, expired := 0, 0
			if err := update(ctx, store.Author{}, func(tx *store.Tx) (err error) {
				n, expired, err = releaseSome(tx, a, server, queue)
				return err
			}); err != nil {
				return released, ended, fmt.Errorf("release the leases of server %d: %w", server, err)
			}
			released, ended, more = released+n-expired, ended+expired, n == endAtOnce
		}
	}
	for _, server := range lost {
		n, err := endExpiredOf(ctx, a, update, server, recallMargin)
		if ended += n; err != nil {
			return released, ended, fmt.Errorf("end the leases of server %d: %w", server, err)
		}
	}
	performed, err := performAbandoned(ctx, a, update)
	return released, ended + performed, err
}

// findLost returns the servers that leases refer to and that were deleted, and those that have no service point.
func findLost(ctx context.Context, a *resource.API) (deleted, lost []int64, err error) {
	err = a.Store.View(ctx, func(tx *store.Tx) error {
		points := connections{tx: tx}
		for last := int64(0); ; {
			// An index finds the next server. SELECT DISTINCT would read all leases.
			if err := tx.QueryRow("SELECT coalesce(min(server), 0) FROM dhcp_lease WHERE server > ?", last).Scan(&last); err != nil || last == 0 {
				return err
			}
			_, err := tx.Head(last)
			if store.IsNotFound(err) {
				deleted = append(deleted, last)
				continue
			}
			if err != nil {
				return err
			}
			there, _, err := points.read(last)
			if err != nil {
				return err
			}
			if !there {
				lost = append(lost, last)
			}
		}
	})
	return deleted, lost, err
}

// releaseSome removes the server from up to endAtOnce leases of a deleted server, and orders the next server of their networks to restore
// those that last. It returns the number of examined leases, and of those that have expired.
func releaseSome(tx *store.Tx, a *resource.API, server int64,
	queue func(tx *store.Tx, configuration, network int64) error) (n, expired int, err error) {
	writers, rows, err := leasesOf(tx, a, server, store.All{})
	for _, r := range rows {
		if err != nil {
			return n, expired, err
		}
		var had bool
		had, err = writers[r.Configuration].release(r)
		if n++; had {
			expired++
		}
	}
	for _, w := range writers {
		err = errors.Join(err, w.pages.write(), w.counts.write())
		if err == nil {
			err = w.recallsEnd(queue, nil)
		}
	}
	return n, expired, err
}

// release removes the server from a lease, or ends the lease if it has expired. It reports whether it ended the lease.
func (w *leaseWriter) release(r *store.Resource) (expired bool, err error) {
	a := store.KeyAddr(r.Low)
	l, err := w.read(a)
	if err != nil {
		return false, err
	}
	if l.state != stateFree {
		if ordered, err := w.recall(a); err != nil || ordered {
			return false, err
		}
		if err := w.expire(r); err != nil {
			return false, err
		}
		expired = true
	}
	return expired, errors.Join(w.counts.add(l.server, l.parent, r.Low, stateFree, -1), w.counts.add(0, l.parent, r.Low, stateFree, 1),
		w.tx.Write("UPDATE dhcp_lease SET server = 0, refs = '', version = version + 1 WHERE id = ?", l.id))
}

// expire ends a lease at its end, and deletes the order to restore it.
func (w *leaseWriter) expire(r *store.Resource) error {
	a := store.KeyAddr(r.Low)
	end, err := w.pages.end(a)
	if err != nil {
		return err
	}
	return w.end(r, end, expiredReason)
}

// end ends a lease at a time, but not before its start, which a server with another clock reported. It deletes the order to restore it, and
// settles the pending actions on it.
func (w *leaseWriter) end(r *store.Resource, at time.Time, reason string) error {
	a := store.KeyAddr(r.Low)
	l, err := w.read(a)
	if err != nil {
		return err
	}
	if at.Before(l.start) {
		at = l.start
	}
	return errors.Join(w.change(leaseChange{state: stateFree, start: at, began: l.start, network: l.parent, address: a, mac: l.mac,
		clientID: l.clientID, reason: reason}),
		w.tx.Write("DELETE FROM dhcp_lease_import WHERE configuration = ? AND low = ?", w.configuration, r.Low), w.settle(a, reason))
}

// serverColumn and networkColumn are the columns of leases with their server and their network.
var (
	serverColumn  = store.Field{Kind: store.ColumnInt, Path: []string{"server"}}
	networkColumn = store.Field{Kind: store.ColumnInt, Path: []string{"parent"}}
)

// leasesOf returns the first leases of a server that meet a condition, and a writer for each of their configurations.
func leasesOf(tx *store.Tx, a *resource.API, server int64, where store.Expr) (map[int64]*leaseWriter, []*store.Resource, error) {
	writers := map[int64]*leaseWriter{}
	var rows []*store.Resource
	err := tx.List(store.Query{From: leaseRows, Limit: endAtOnce, Where: store.All{store.Compare{Field: serverColumn, Op: "eq", Value: server},
		where}}, func(r *store.Resource) error {
		rows = append(rows, r.Clone())
		if writers[r.Configuration] == nil {
			writers[r.Configuration] = newLeaseWriter(tx, a, &store.Resource{ID: server, Configuration: r.Configuration})
		}
		return nil
	})
	return writers, rows, err
}

// endExpiredOf ends the leases of a server (0: leases without one) that expired at least margin ago. It returns their number. Leases of
// networks that another server serves stay: it reports their renewals and their ends.
func endExpiredOf(ctx context.Context, a *resource.API, update store.Updater, server int64, margin time.Duration) (ended int, err error) {
	where := func(tx *store.Tx) store.Expr {
		return store.All{store.Compare{Field: store.Field{Kind: store.Text, Path: []string{"state"}}, Op: "ne", Value: stateFree},
			store.Selected{Query: fmt.Sprintf(selectEnds, "p.earliest <= ?", "<= ?"), Args: []any{packEnd(tx.Now().Add(-margin).Unix()),
				packEnd(tx.Now().Add(-margin).Unix())}}}
	}
	var others store.All // leaves out the networks of other servers
	examined := map[int64]bool{}
	for {
		some, omitted := false, false
		if err := a.Store.View(ctx, func(tx *store.Tx) (err error) {
			writers, rows, err := leasesOf(tx, a, server, store.All{where(tx), others})
			for _, r := range rows {
				if err != nil || server == 0 || examined[r.Parent] {
					continue
				}
				var served bool
				if served, err = writers[r.Configuration].hasPerformer(storedLease{server: server, parent: r.Parent}); served {
					others, omitted = append(others, store.Compare{Field: networkColumn, Op: "ne", Value: r.Parent}), true
				}
				examined[r.Parent] = true
			}
			some = len(rows) > 0
			return err
		}); err != nil || !some {
			return ended, err
		}
		if omitted {
			continue
		}
		n := 0
		if err := update(ctx, store.Author{}, func(tx *store.Tx) error {
			writers, rows, err := leasesOf(tx, a, server, store.All{where(tx), others})
			for _, r := range rows {
				if err == nil {
					err = writers[r.Configuration].expire(r)
				}
			}
			for _, w := range writers {
				err = errors.Join(err, w.pages.write(), w.counts.write())
			}
			n = len(rows)
			return err
		}); err != nil {
			return ended, err
		}
		if ended += n; n < endAtOnce {
			return ended, nil
		}
	}
}
