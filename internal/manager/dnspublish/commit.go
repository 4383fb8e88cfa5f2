package dnspublish

import (
	"context"
	"errors"
	"slices"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/serverconfig"
)

// commitOutcome commits the outcome of a deployment in one transaction. The deployment then waits until the service points serve the
// content, or ends if there is nothing to wait for.
func (d *Deployer) commitOutcome(ctx context.Context, id int64, o *outcome, state, message string) error {
	waits := 0
	var points []string
	err := d.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		if err := o.makeStatic(&resource.Change{Tx: tx, API: d.api}); err != nil {
			return err
		}
		changed, err := o.publish(tx, d.api)
		if err != nil {
			return err
		}
		if err := o.storeFrames(tx); err != nil {
			return err
		}
		if changed, err = d.forceRevision(tx, o, changed); err != nil {
			return err
		}
		if points, err = markServersChanged(tx, d.api, d.points, changed); err != nil {
			return err
		}
		if err := o.storeRecordChanges(tx, d.api, id); err != nil {
			return err
		}
		for _, server := range o.listAwaited(changed) {
			_, err := tx.Exec("INSERT INTO deployment_wait (deployment, server, number, until, state, message) SELECT ?, server, number, ?, ?, ? "+
				"FROM dns_server WHERE server = ?", id, tx.Now().Add(waitTime).UnixMilli(), state, message, server)
			if err != nil {
				return err
			}
		}
		waits, err = d.markWaiting(tx, id, message)
		return err
	})
	if err != nil {
		return err
	}
	d.changedSince.record(o)
	for _, point := range points {
		d.points.Wake(point)
	}
	if waits > 0 {
		return nil
	}
	return d.end(ctx, id, state, message)
}

// markWaiting sets the progress of a deployment that waits for service points. It returns the number of them.
func (d *Deployer) markWaiting(tx *store.Tx, id int64, message string) (waits int, err error) {
	if err := tx.QueryRow("SELECT count(*) FROM deployment_wait WHERE deployment = ?", id).Scan(&waits); err != nil || waits == 0 {
		return waits, err
	}
	row, err := tx.Get(id)
	if err != nil {
		return waits, err
	}
	return waits, d.update(tx, row, func(x *DeploymentHead) {
		ninety := int64(90)
		x.PercentComplete, x.Message = &ninety, schema.Cut(message, maxMessageLength)
	})
}

// forceRevision forces a new revision for the server of a full deployment, if its service point serves a revision that this database does
// not know. This is the case after a restore from an older backup. It returns changed with that server added.
func (d *Deployer) forceRevision(tx *store.Tx, o *outcome, changed []int64) ([]int64, error) {
	if o.serving == nil || slices.Contains(changed, o.server) {
		return changed, nil
	}
	point, err := d.markChanged(tx, o.server)
	if err != nil || point == "" {
		return changed, err
	}
	s, err := d.points.Serving(tx, point, serverconfig.ServiceDNS)
	if err != nil {
		return changed, err
	}
	number, err := nextNumber(tx)
	if err != nil {
		return changed, err
	}
	again, err := renewRevision(tx, o.server, number, s.Content)
	if again {
		changed = append(changed, o.server)
	}
	return changed, err
}

// publish stores the contents of the zones and of the server, and returns the servers whose content changed. If the settings of the server
// have changed since the snapshot, it returns errConcurrentDeployment or, if the outcome insists, stores the settings of now.
func (o *outcome) publish(tx *store.Tx, api *resource.API) (changed []int64, err error) {
	number, err := nextNumber(tx)
	if err != nil {
		return nil, err
	}
	renewed := false
	if o.serving != nil {
		err := o.serving.checkBase(tx, o.server)
		if renewed = errors.Is(err, errConcurrentDeployment) && o.insists; renewed {
			err = o.renewServing(tx, api)
		}
		if err != nil {
			return nil, err
		}
	}
	changed, err = publish(tx, o.configuration, number, o.all, o.read)
	if err != nil || o.serving == nil {
		return changed, err
	}
	if renewed {
		if err := o.serving.leaveOutEmpty(tx); err != nil {
			return nil, err
		}
	}
	also, err := o.serving.serve(tx, o.server, number)
	switch {
	case errors.Is(err, errNoContent): // another server gave the zone up meanwhile
		err = errConcurrentDeployment
	case errors.Is(err, errSettingsSize):
		err = problem.BadRequest("InvalidDeploymentData", "server %s cannot be deployed: %v", o.serving.name, err)
	}
	if err != nil {
		return changed, err
	}
	if also {
		changed = append(changed, o.server)
	}
	return changed, deleteUnserved(tx, o.serving.unserved...)
}

// renewServing replaces the content of the server by that of now.
func (o *outcome) renewServing(tx *store.Tx, api *resource.API) error {
	p, err := newPlan(tx, api, o.configuration)
	if err != nil {
		return err
	}
	o.serving, err = p.servingOf(o.server)
	return err
}

// leaveOutEmpty removes the zones that are not deployed yet: a live change, or the next deployment, adds them.
func (s *serving) leaveOutEmpty(tx *store.Tx) error {
	deployed, err := readAllDeployed(tx, s.configuration)
	if err != nil {
		return err
	}
	for _, z := range slices.Clone(s.zones) {
		if deployed[z.id].records == 0 {
			s.leaveOut(z)
		}
	}
	return nil
}

// listAwaited returns the servers whose service points the deployment waits for.
func (o *outcome) listAwaited(changed []int64) []int64 {
	if o.server != 0 {
		return []int64{o.server}
	}
	return slices.Compact(slices.Sorted(slices.Values(changed)))
}

// markChanged marks the content of a server as changed and returns its service point; empty if it has none.
func (d *Deployer) markChanged(tx *store.Tx, server int64) (point string, err error) {
	return markServerChanged(tx, d.api, d.points, server)
}

// markServersChanged marks the content of servers as changed and returns their service points. Servers without one are skipped.
func markServersChanged(tx *store.Tx, api *resource.API, points Points, servers []int64) (toWake []string, err error) {
	for _, server := range servers {
		point, err := markServerChanged(tx, api, points, server)
		if err != nil {
			return nil, err
		}
		if point != "" {
			toWake = append(toWake, point)
		}
	}
	return toWake, nil
}

func markServerChanged(tx *store.Tx, api *resource.API, points Points, server int64) (point string, err error) {
	row, err := tx.Get(server)
	if store.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	o, err := api.Object(row)
	if err != nil {
		return "", err
	}
	if x := serverconfig.FieldsOf(o); x != nil && x.ServicePoint != "" {
		points.Changed(tx, x.ServicePoint)
		return x.ServicePoint, nil
	}
	return "", nil
}

// nextNumber returns a number for the next change. It is higher than any earlier number, even after an older backup was restored.
func nextNumber(tx *store.Tx) (int64, error) {
	var zones, servers int64
	if err := tx.QueryRow("SELECT coalesce(max(number), 0) FROM dns_zone").Scan(&zones); err != nil {
		return 0, err
	}
	err := tx.QueryRow("SELECT coalesce(max(number), 0) FROM dns_server").Scan(&servers)
	return max(zones+1, servers+1, tx.Now().UnixMilli()), err
}

// requeueNumber returns a number for entries that the deployer queues itself. It is below those of all transactions, so that they are
// deployed first, and below those of all such entries that are still queued: a lane that is deploying an earlier one must not remove it.
func requeueNumber(tx *store.Tx) (int64, error) {
	number, err := nextNumber(tx)
	if err != nil {
		return 0, err
	}
	again := -number
	for _, lane := range []int{laneLive, laneBulk, laneWhole} {
		var first int64
		if err := tx.QueryRow("SELECT coalesce(min(changed), 0) FROM dns_due WHERE lane = ?", lane).Scan(&first); err != nil {
			return 0, err
		}
		again = min(again, first-1)
	}
	return again, nil
}
