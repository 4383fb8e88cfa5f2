package dhcppublish

import (
	"fmt"
	"strings"

	"portolan/internal/engine/event"
	"portolan/internal/engine/store"
	"portolan/internal/wire/dhcpdata"
)

// deployServer deploys the settings of a server that follow without a deployment: the keys and the declarations of its pairs, and the keys
// and the addresses of its zones for the names of clients. It returns the service point to wake.
func (l *Live) deployServer(tx *store.Tx, row *store.Resource) (wake []string, err error) {
	before, err := unitsOf(tx, row.ID, dhcpdata.ServerUnit)
	if err != nil || before[dhcpdata.ServerUnit] == nil {
		return nil, err
	}
	c, err := newCompiler(tx, l.api, row.Clone(), false)
	if err != nil {
		return nil, err
	}
	var items []dhcpdata.Item
	for _, r := range before[dhcpdata.ServerUnit].Records {
		item, err := dhcpdata.Decode(r)
		if err != nil {
			return nil, err
		}
		switch x := item.(type) {
		case dhcpdata.Pair:
			if err := completePair(tx, c, &x); err != nil {
				return nil, err
			}
			item = x
		case dhcpdata.Zone:
			if item, err = c.currentZone(x); err != nil {
				return nil, err
			}
		}
		items = append(items, item)
	}
	if faults := c.texts(true); len(faults) > 0 {
		if err := event.Add(tx, event.Event{EventType: "NOT_DEPLOYED", Category: "DEPLOYMENT", Subcategory: ServiceV4, SourceName: row.Name,
			Message: fmt.Sprintf("A change of the zones for the names of clients was not deployed to server %s: %s", row.Name,
				strings.Join(faults[:min(len(faults), 3)], "; "))}, row.ID); err != nil {
			return nil, err
		}
	}
	after, err := dhcpdata.EncodeUnit(dhcpdata.ServerUnit, items...)
	if err != nil {
		return nil, err
	}
	number, err := storeUnits(tx, row.ID, before, dhcpdata.Units{dhcpdata.ServerUnit: after})
	if err != nil || number == 0 || c.fields.ServicePoint == "" {
		return nil, err
	}
	l.points.Changed(tx, c.fields.ServicePoint)
	return []string{c.fields.ServicePoint}, nil
}

// currentZone returns a deployed zone with the servers and the key that it has now. One that is not declared any more, or that no name
// server accepts updates of, stays as it is until the next deployment.
func (c *compiler) currentZone(z dhcpdata.Zone) (dhcpdata.Zone, error) {
	if c.zones.current == nil {
		if err := c.readCommon(); err != nil {
			return z, err
		}
		if err := c.readDeclarations(); err != nil {
			return z, err
		}
		c.zones.current = map[string]dhcpdata.Zone{}
		for _, one := range c.zones.declared {
			c.zones.current[one.Name] = one
		}
	}
	now, declared := c.zones.current[z.Name]
	if declared {
		now.V6 = z.V6
		return now, nil
	}
	own, err := c.ownZone(z.Name)
	if err != nil || own == nil || own.Zone != z.Name || own.Server != z.ID || own.Key.Name == "" {
		return z, err
	}
	if at := c.addressOf(own.Server); at.IsValid() {
		z.Primary = at
	}
	z.KeyName, z.KeyAlgorithm, z.KeySecret = own.Key.Name, own.Key.Algorithm, own.Key.Secret
	return z, nil
}

// zonesChanged collects the configurations whose zones for the names of clients may have changed: by a key, a declaration, or a deployment
// of a name server.
func (f *liveFollower) zonesChanged(before, after *store.Resource) {
	r := after
	if r == nil {
		r = before
	}
	switch r.Collection {
	case "signingKeys", "zoneDeclarations":
		f.zones[r.Configuration] = true
	case "deployments":
		if after != nil && before != nil && textOf(after, "service") == `"DNS"` && textOf(after, "state") != textOf(before, "state") {
			f.zones[r.Configuration] = true
		}
	}
}

// collectZones collects the servers of the configurations in zones whose content has been deployed.
func (f *liveFollower) collectZones() error {
	if len(f.zones) == 0 {
		return nil
	}
	var servers []int64
	if err := f.tx.Each(func(scan func(...any) error) error {
		var id int64
		err := scan(&id)
		servers = append(servers, id)
		return err
	}, "SELECT server FROM dhcp_unit WHERE unit = ? ORDER BY server", dhcpdata.ServerUnit); err != nil {
		return err
	}
	for _, id := range servers {
		row, err := f.tx.Get(id)
		if store.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		if f.zones[row.Configuration] {
			f.servers[id] = true
		}
	}
	return nil
}
