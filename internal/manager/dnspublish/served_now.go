package dnspublish

import (
	"encoding/json"
	"maps"
	"time"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/wire/zonedata"
)

// servedNow is what the servers of a configuration serve, at one moment.
type servedNow struct {
	// settings are those that they serve by.
	settings map[int64]*zonedata.Settings
	// servers are those of zones, by the ids of those; numbers are what was deployed to servers last, and acknowledged what they serve.
	servers               map[string][]int64
	numbers, acknowledged map[int64]int64
}

// sighting is something of a key that was deployed, and that not all servers serve yet: its DNSKEY record, its DS record, or signatures.
type sighting struct {
	zone string
	tag  uint16
	what string
}

// sightings are those of the look before, and those of this one.
type sightings struct{ before, now map[sighting]int64 }

// signs gives the public keys that all servers of a zone sign with.
func (n *servedNow) signs(zone string) map[string]bool {
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

// servedNow gives what the servers of the configuration serve.
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
		is, err := points.Serving(p.tx, p.servers[server].ServicePoint)
		if err != nil {
			return nil, err
		}
		if serves, err := zonedata.ParseRevision(is.Content); err == nil {
			n.acknowledged[server] = serves.Number
		}
	}
	return n, nil
}

// since gives since when something is there that was deployed: all servers of a zone have said that they serve it. What not all have said
// yet is a sighting, with the number that they are to reach.
func (n *servedNow) since(before time.Time, is bool, s sighting, zone string, all *sightings, now time.Time) time.Time {
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

// signOtherwise has a server sign zones otherwise from now on, by their ids, those that it serves signed. It reports whether that is so.
func signOtherwise(tx *store.Tx, sealer resource.Sealer, server, number int64, signing map[string]*zonedata.Signing,
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
	return true, serveOtherwise(tx, sealer, server, number, string(text))
}

// serveOtherwise gives a server other settings, and leaves what zones it serves.
func serveOtherwise(tx *store.Tx, sealer resource.Sealer, server, number int64, settings string) error {
	_, row, _, err := revisionOf(tx, server)
	if err != nil {
		return err
	}
	before, err := sealer.Open(tx, settingsOfServer, row.settings)
	if err != nil {
		return err
	}
	if err := rehash(tx, server, number, func(h *zonedata.Hash) {
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

// settingsOf gives the settings that a server serves by; nil where nothing was deployed to it.
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
