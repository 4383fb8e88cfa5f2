package dnspublish

import (
	"encoding/json"
	"maps"
	"time"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/serverconfig"
	"portolan/internal/wire/zonedata"
)

// servedNow is the state of the servers of a configuration in one transaction.
type servedNow struct {
	// settings are the deployed settings, by server.
	settings map[int64]*zonedata.Settings
	// servers are the servers of each zone, by the id of the zone. numbers are the deployed revision numbers, acknowledged the numbers that
	// the service points confirmed, by server.
	servers               map[string][]int64
	numbers, acknowledged map[int64]int64
}

// keyData identifies deployed data of a key that not all servers serve yet: its DNSKEY record, its DS record, or its signatures.
type keyData struct {
	zone string
	tag  uint16
	part string
}

// unconfirmedData are the revision numbers to be reached, in the previous check and in this one.
type unconfirmedData struct{ before, now map[keyData]int64 }

// signingKeys returns the public keys that all servers of a zone sign with.
func (n *servedNow) signingKeys(zone string) map[string]bool {
	var signs map[string]bool
	for _, server := range n.servers[zone] {
		keys := map[string]bool{}
		for _, z := range n.settings[server].Zones {
			if z.ID != zone || z.Signing == nil {
				continue
			}
			for _, k := range z.Signing.Keys {
				keys[k.Public] = signs == nil || signs[k.Public]
			}
		}
		maps.DeleteFunc(keys, func(_ string, both bool) bool { return !both })
		signs = keys
	}
	return signs
}

// servedNow returns the state of the servers of the configuration.
func (p *plan) servedNow(points Points) (*servedNow, error) {
	n := &servedNow{settings: map[int64]*zonedata.Settings{}, servers: map[string][]int64{}, numbers: map[int64]int64{},
		acknowledged: map[int64]int64{}}
	for server := range p.servers {
		settings, err := settingsOf(p.tx, p.api.Sealer, server)
		if err != nil {
			return nil, err
		}
		if settings == nil {
			continue
		}
		n.settings[server] = settings
		for _, z := range settings.Zones {
			n.servers[z.ID] = append(n.servers[z.ID], server)
		}
		revision, _, _, err := revisionOf(p.tx, server)
		if err != nil {
			return nil, err
		}
		n.numbers[server] = revision.Number
		is, err := points.Serving(p.tx, p.servers[server].ServicePoint, serverconfig.ServiceDNS)
		if err != nil {
			return nil, err
		}
		if serves, err := zonedata.ParseRevision(is.Content); err == nil {
			n.acknowledged[server] = serves.Number
		}
	}
	return n, nil
}

// servedSince returns the time since when all servers of a zone serve deployed data of a key; the zero time while some do not. before is
// the time that was found earlier, is reports whether the data is deployed. Data that is not served by all yet is added to all.now.
func (n *servedNow) servedSince(before time.Time, is bool, s keyData, zone string, all *unconfirmedData, now time.Time) time.Time {
	switch {
	case !is:
		return time.Time{}
	case !before.IsZero():
		return before
	}
	number, known := all.before[s]
	if !known {
		for _, server := range n.servers[zone] {
			number = max(number, n.numbers[server])
		}
	}
	for _, server := range n.servers[zone] {
		if n.acknowledged[server] < number {
			all.now[s] = number
			return time.Time{}
		}
	}
	return now
}

// changeSigning changes how a server signs zones that it serves signed. signing is by the id of the zone. It reports whether one was
// changed.
func changeSigning(tx *store.Tx, sealer resource.Sealer, server, number int64, signing map[string]*zonedata.Signing,
) (changed bool, err error) {
	settings, err := settingsOf(tx, sealer, server)
	if err != nil || settings == nil {
		return false, err
	}
	for i, z := range settings.Zones {
		if s := signing[z.ID]; s != nil && z.Signing != nil {
			settings.Zones[i].Signing, changed = s, true
		}
	}
	if !changed {
		return false, nil
	}
	text, err := json.Marshal(settings)
	if err != nil {
		return false, err
	}
	return true, replaceSettings(tx, sealer, server, number, string(text))
}

// replaceSettings replaces the settings of a server; the zones that it serves stay the same.
func replaceSettings(tx *store.Tx, sealer resource.Sealer, server, number int64, settings string) error {
	_, row, _, err := revisionOf(tx, server)
	if err != nil {
		return err
	}
	before, err := sealer.Open(tx, settingsOfServer, row.settings)
	if err != nil {
		return err
	}
	if err := updateHash(tx, server, number, func(h *zonedata.Hash) {
		h.RemoveSettings([]byte(before))
		h.AddSettings([]byte(settings))
	}); err != nil {
		return err
	}
	sealed, err := sealer.Seal(tx, settingsOfServer, settings)
	if err != nil {
		return err
	}
	return tx.Write("UPDATE dns_server SET settings = ?, settings_number = ? WHERE server = ?", sealed, number, server)
}

// settingsOf returns the deployed settings of a server; nil if nothing was deployed to it.
func settingsOf(tx *store.Tx, sealer resource.Sealer, server int64) (*zonedata.Settings, error) {
	_, row, there, err := revisionOf(tx, server)
	if err != nil || !there {
		return nil, err
	}
	text, err := sealer.Open(tx, settingsOfServer, row.settings)
	if err != nil {
		return nil, err
	}
	var settings zonedata.Settings
	return &settings, json.Unmarshal([]byte(text), &settings)
}
