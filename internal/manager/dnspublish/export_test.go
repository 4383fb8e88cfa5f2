package dnspublish

import (
	"fmt"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/wire/zonedata"
)

// Deployed compares the deployed content of the zones of a configuration with their content computed as a whole, apart from zones without a
// primary server in views that are not live, which are not deployed. It returns the number of deployed zones and the differences, and
// pending, whether changes are queued.
func Deployed(tx *store.Tx, api *resource.API, configuration int64) (zones int, differences []string, pending bool, err error) {
	queued := 0
	if err := tx.QueryRow("SELECT count(*) FROM dns_due WHERE configuration > 0").Scan(&queued); err != nil || queued > 0 {
		return 0, nil, true, err
	}
	p, err := newPlan(tx, api, configuration)
	if err != nil {
		return 0, nil, false, err
	}
	states, err := readAllDeployed(tx, configuration)
	if err != nil {
		return 0, nil, false, err
	}
	served := map[string]bool{}
	if err := tx.Each(func(scan func(...any) error) error {
		var id string
		err := scan(&id)
		served[id] = true
		return err
	}, "SELECT zone FROM dns_served"); err != nil {
		return 0, nil, false, err
	}
	live, err := liveOf(tx)
	if err != nil {
		return 0, nil, false, err
	}
	for _, z := range p.zones {
		if len(z.serversOf(assigned.answers)) == 0 || p.isForeign(z) || live[z.view] == 0 && len(z.serversOf(assigned.writes)) == 0 {
			continue
		}
		is := states[z.id]
		if is.records == 0 || !served[z.id] {
			differences = append(differences, "zone "+z.id+" is not deployed")
			continue
		}
		zones++
		want, err := p.content(z, uint32(is.serial)) //nolint:gosec // of 32 bits
		if err != nil {
			return 0, nil, false, fmt.Errorf("zone %s: %w", z.id, err)
		}
		have, err := readParts(tx, z.id)
		if err != nil {
			return 0, nil, false, err
		}
		removed, added := zonedata.Diff(have, want)
		for i, list := range [][]zonedata.Entry{removed, added} {
			for _, e := range list {
				rr, err := e.Record().RR()
				if err != nil {
					return 0, nil, false, err
				}
				differences = append(differences, fmt.Sprintf("zone %s: %s %s", z.id, []string{"deployed, but not due:", "due, but not deployed:"}[i],
					rr))
			}
		}
		delete(served, z.id)
	}
	return zones, differences, false, nil
}
