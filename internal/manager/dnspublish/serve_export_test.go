package dnspublish

import (
	"context"
	"errors"

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
		_, err := o.publish(tx)
		return err
	})
	if errors.Is(err, errConcurrentDeployment) {
		return true, nil
	}
	return false, err
}

// IsServed reports whether a server serves a zone.
func IsServed(tx *store.Tx, server int64, zone string) (bool, error) {
	n := 0
	err := tx.QueryRow("SELECT count(*) FROM dns_served WHERE server = ? AND zone LIKE ?", server, "%"+zone).Scan(&n)
	return n > 0, err
}
