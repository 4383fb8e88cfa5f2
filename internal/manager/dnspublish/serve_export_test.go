package dnspublish

import (
	"context"
	"errors"
	"log/slog"
	"strconv"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// ServeOver publishes the content of a server that was computed before later ran, as a full deployment does. insists is that of the
// outcome. conflict reports that the content was refused because of other deployments.
func ServeOver(ctx context.Context, api *resource.API, server int64, insists bool, later func()) (conflict bool, err error) {
	o := &outcome{insists: insists, server: server}
	if err := api.Store.View(ctx, func(tx *store.Tx) error {
		row, err := tx.Get(server)
		if err != nil {
			return err
		}
		o.configuration = row.Configuration
		p, err := newPlan(tx, api, row.Configuration)
		if err != nil {
			return err
		}
		o.serving, err = p.servingOf(server)
		return err
	}); err != nil {
		return false, err
	}
	later()
	err = api.Store.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		_, err := o.publish(tx, api)
		return err
	})
	if errors.Is(err, errConcurrentDeployment) {
		return true, nil
	}
	return false, err
}

// DeployOver runs a full deployment of a server with later between its snapshot and its commit. conflict reports that it was refused
// because of other deployments.
func DeployOver(ctx context.Context, api *resource.API, points Points, server int64, later func()) (conflict bool, err error) {
	d := NewDeployer(api, points, slog.New(slog.DiscardHandler))
	var o *outcome
	read := d.times.beginRead()
	if err := api.Store.View(ctx, func(tx *store.Tx) (err error) {
		read.endRead()
		o, err = d.prepareServer(tx, server, true, false)
		return err
	}); err != nil {
		return false, err
	}
	o.read = read
	later()
	err = api.Store.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		if _, err := o.publish(tx, api); err != nil {
			return err
		}
		return o.storeFrames(tx)
	})
	if errors.Is(err, errConcurrentDeployment) {
		return true, nil
	}
	return false, err
}

// CheckSettingsSize is checkSettingsSize, for tests.
func CheckSettingsSize(size, zones int) error { return checkSettingsSize(size, zones) }

// AffectsImplied reports whether a changed zone affects an implied reverse zone.
func AffectsImplied(changed, reverse string) bool {
	return branches{changed: true}.affects(&plannedZone{row: &store.Resource{Key: reverse}})
}

// IsServed reports whether a server serves a zone.
func IsServed(tx *store.Tx, server int64, zone string) (bool, error) {
	n := 0
	err := tx.QueryRow("SELECT count(*) FROM dns_served WHERE server = ? AND zone LIKE ?", server, "%"+zone).Scan(&n)
	return n > 0, err
}

// RevisionOf returns the revision that a service point should serve; empty if it has none.
func RevisionOf(tx *store.Tx, servicePoint string) (string, error) {
	server, err := serverOfPoint(tx, servicePoint)
	if err != nil || server == nil {
		return "", err
	}
	to, _, there, err := revisionOf(tx, server.ID)
	if !there {
		return "", err
	}
	return to.String(), err
}

// WriteDifferences stores a number of differences of a zone. It returns how many are stored then, and whether the oldest is a base.
func WriteDifferences(tx *store.Tx, zone string, count int) (stored int, hasBase bool, err error) {
	for i := range count {
		c := &publication{zone: &plannedZone{id: zone}, hash: strconv.Itoa(i + 1)}
		c.before = deployedZone{id: zone, hash: strconv.Itoa(i), number: int64(i)}
		if err := c.writeDifference(tx, int64(i+1)); err != nil {
			return 0, false, err
		}
	}
	var last string
	next := true
	err = tx.Each(func(scan func(...any) error) error {
		var number int64
		var from, to string
		if err := scan(&number, &from, &to); err != nil {
			return err
		}
		if stored++; stored == 1 {
			hasBase = from == ""
		} else {
			next = next && from == last
		}
		last = to
		return nil
	}, "SELECT number, from_hash, to_hash FROM dns_difference WHERE zone = ? ORDER BY number", zone)
	return stored, hasBase && next && last == strconv.Itoa(count), err
}
