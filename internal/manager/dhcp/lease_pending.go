package dhcp

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// pendingAction is an action on a lease that no server has performed yet.
type pendingAction struct {
	row    *store.Resource
	action *LeaseAction
}

// stateOf is the column of states.
var stateOf = store.Field{Kind: store.Text, Path: []string{"state"}, Indexed: true}

// pendingActions returns the pending actions on leases.
func pendingActions(c *resource.Change) (all []pendingAction, err error) {
	pending := store.All{store.InCollection(LeaseActions), store.Compare{Field: stateOf, Op: "eq", Value: ActionPending}}
	err = c.Each(pending, func(row *store.Resource, o schema.Object) error {
		if x, ok := o.(*LeaseAction); ok {
			all = append(all, pendingAction{row.Clone(), x})
		}
		return nil
	})
	return all, err
}

// settle stores the result of the pending actions on an address whose lease the manager has ended: DONE if a user ended it, and
// NO_EFFECT if it expired first. The network of an action may have been divided since.
func (w *leaseWriter) settle(a netip.Addr, reason string) (err error) {
	c := &resource.Change{Tx: w.tx, API: w.api}
	if !w.actionsRead {
		if w.actions, err = pendingActions(c); err != nil {
			return err
		}
		w.actionsRead = true
	}
	for _, one := range w.actions {
		if one.action.Address != a || one.row.Configuration != w.configuration {
			continue
		}
		state := actionVain
		if reason == endedReason {
			state = actionDone
		}
		if err := setState(c, one.row, state); err != nil {
			return err
		}
	}
	return nil
}

// setState stores the state of a pending action.
func setState(c *resource.Change, row *store.Resource, state string) error {
	_, err := c.Following().Change(row, func(o schema.Object) {
		if x, ok := o.(*LeaseAction); ok && x.State == ActionPending {
			x.State = state
		}
	})
	return err
}

// performAbandoned performs the pending actions that no server can perform any more, because its service point was deleted. It returns the
// number of ended leases.
func performAbandoned(ctx context.Context, a *resource.API, update store.Updater) (ended int, err error) {
	var ids []int64
	if err := a.Store.View(ctx, func(tx *store.Tx) error {
		exist := map[[2]int64]bool{}
		all, err := pendingActions(&resource.Change{Tx: tx, API: a})
		for _, one := range all {
			if err != nil {
				return err
			}
			w := newLeaseWriter(tx, a, &store.Resource{Configuration: one.row.Configuration})
			var l storedLease
			if l, err = w.read(one.action.Address); err != nil {
				return err
			}
			if !l.there {
				l.parent = one.row.Parent
			}
			key := [2]int64{l.server, l.parent}
			if _, known := exist[key]; !known {
				exist[key], err = w.hasPerformer(l)
			}
			if !exist[key] {
				ids = append(ids, one.row.ID)
			}
		}
		return err
	}); err != nil {
		return 0, err
	}
	for some := range slices.Chunk(ids, endAtOnce) {
		n := 0
		if err := update(ctx, store.Author{}, func(tx *store.Tx) error {
			n = 0
			for _, id := range some {
				done, err := performOne(tx, a, id)
				if err != nil {
					return fmt.Errorf("action %d: %w", id, err)
				}
				if done {
					n++
				}
			}
			return nil
		}); err != nil {
			return ended, fmt.Errorf("perform actions on leases: %w", err)
		}
		ended += n
	}
	return ended, nil
}

// performOne performs a pending action that no server can perform. It reports whether the action ended a lease.
func performOne(tx *store.Tx, a *resource.API, id int64) (ended bool, err error) {
	row, err := tx.Get(id)
	if store.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	o, err := a.Object(row.Clone())
	if err != nil {
		return false, err
	}
	x, ok := o.(*LeaseAction)
	if !ok || x.State != ActionPending { // an earlier action on the address has settled it
		return false, nil
	}
	w := newLeaseWriter(tx, a, &store.Resource{Configuration: row.Configuration})
	l, err := w.read(x.Address)
	if err != nil {
		return false, err
	}
	at := l
	if !l.there {
		at.parent = row.Parent
	}
	if exist, err := w.hasPerformer(at); err != nil || exist {
		return false, err
	}
	lasts := l.state == stateAllocated || l.state == stateLeased
	if !lasts && l.state != stateAbandoned || lasts != (x.Action == ActionEnd) ||
		lasts && !x.LeaseDateTime.IsZero() && !l.start.Equal(x.LeaseDateTime) {
		return false, setState(&resource.Change{Tx: tx, API: a}, row.Clone(), actionVain)
	}
	w.server = l.server
	return lasts, errors.Join(w.end(&store.Resource{Low: store.AddrKey(x.Address)}, tx.Now(), endedReason), w.pages.write(),
		w.counts.write())
}
