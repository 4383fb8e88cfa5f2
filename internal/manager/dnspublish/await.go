package dnspublish

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"portolan/internal/engine/store"
	"portolan/internal/manager/serverconfig"
	"portolan/internal/wire/zonedata"
)

// waiting is a deployment that waits for a service point.
type waiting struct {
	id, server, number, until int64
	state, message            string
}

// endWaits ends the deployments whose service points all serve the deployed content, or have not confirmed it within waitTime.
func (d *Deployer) endWaits(ctx context.Context) error {
	over := map[int64]waiting{}
	if err := d.api.Store.View(ctx, func(tx *store.Tx) error {
		var all []waiting
		clear(over)
		if err := tx.Each(func(scan func(...any) error) error {
			var w waiting
			err := scan(&w.id, &w.server, &w.number, &w.until, &w.state, &w.message)
			all = append(all, w)
			return err
		}, "SELECT deployment, server, number, until, state, message FROM deployment_wait ORDER BY deployment, server"); err != nil {
			return err
		}
		still := map[int64]bool{}
		for _, w := range all {
			why, done, err := d.served(tx, w)
			if err != nil {
				return err
			}
			still[w.id] = still[w.id] || !done
			if before, there := over[w.id]; there && before.state == failed {
				w.state, w.message = failed, joinSentences(before.message, why)
			} else if why != "" {
				w.state, w.message = failed, why
			}
			over[w.id] = w
		}
		maps.DeleteFunc(over, func(id int64, _ waiting) bool { return still[id] })
		return nil
	}); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(over)) {
		if err := d.end(ctx, id, over[id].state, over[id].message); err != nil {
			return err
		}
	}
	return nil
}

// joinSentences joins the sentences that are not empty.
func joinSentences(sentences ...string) string {
	return strings.Join(slices.DeleteFunc(sentences, func(s string) bool { return s == "" }), "; ")
}

// served reports whether a deployment has ended for one service point. why is empty if the service point serves it, else the reason.
func (d *Deployer) served(tx *store.Tx, w waiting) (why string, done bool, err error) {
	row, err := tx.Get(w.server)
	if store.IsNotFound(err) {
		return "the server was deleted", true, nil
	}
	if err != nil {
		return "", false, err
	}
	o, err := d.api.Object(row)
	if err != nil {
		return "", false, err
	}
	x := serverconfig.FieldsOf(o)
	if x == nil || x.ServicePoint == "" {
		return "the service point of the server was deleted", true, nil
	}
	s, err := d.servingOf(tx, w.id, x.ServicePoint)
	if err != nil {
		return "", false, err
	}
	if r, err := zonedata.ParseRevision(s.Content); err == nil && r.Number >= w.number && !s.Silent {
		return "", true, nil
	}
	if tx.Now().UnixMilli() < w.until {
		return "", false, nil
	}
	why = fmt.Sprintf("service point %s did not confirm the deployment within %s; it will serve it as soon as it can", x.ServicePoint,
		waitTime)
	if s.Silent {
		why = fmt.Sprintf("service point %s is not connected; it will serve the new data when it connects", x.ServicePoint)
	}
	if len(s.Trouble) > 0 {
		why += ": " + strings.Join(s.Trouble, "; ")
	}
	return why, true, nil
}

// servingOf returns the state of a service point for the service of a deployment.
func (d *Deployer) servingOf(tx *store.Tx, deployment int64, servicePoint string) (s Serving, err error) {
	service := serverconfig.ServiceDNS
	switch row, err := tx.Get(deployment); {
	case err == nil:
		x, err := d.api.Object(row)
		if err != nil {
			return s, err
		}
		service = serviceField(x)
	case !store.IsNotFound(err):
		return s, err
	}
	return d.points.Serving(tx, servicePoint, service)
}
