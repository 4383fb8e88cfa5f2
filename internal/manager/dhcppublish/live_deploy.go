package dhcppublish

import (
	"fmt"
	"slices"
	"strings"

	"portolan/internal/engine/event"
	"portolan/internal/engine/store"
	"portolan/internal/wire/dhcpdata"
)

// liveDeployment is the deployment of the queued changes of one network or MAC pool to one server.
type liveDeployment struct {
	*compiler
	row  *store.Resource
	unit string
	// changes are the deployed units that change.
	changes dhcpdata.Units
}

// deployTo deploys the changes of a network or a MAC pool to a server. It returns the service point to wake; empty if nothing changed.
// Settings that cannot be deployed are an event, and the server keeps its settings; the actions on leases are deployed all the same.
func (l *Live) deployTo(tx *store.Tx, row *store.Resource, unit string, server int64) (point string, err error) {
	at, err := tx.Get(server)
	if err != nil {
		return "", err
	}
	c, err := newCompiler(tx, l.api, at.Clone(), row.Type == "IPv6Network")
	if err != nil {
		return "", err
	}
	d := &liveDeployment{compiler: c, row: row, unit: unit}
	if d.changes, err = unitsOf(tx, server, unit); err != nil {
		return "", err
	}
	c.before = d.changes
	live, err := isLive(row)
	if err != nil {
		return "", err
	}
	var after dhcpdata.Units
	var faults []string
	if live {
		after, faults, err = d.compile()
	}
	if err == nil && after == nil && row.Collection == "networks" {
		after, err = d.ordersAlone(live)
	}
	if err != nil {
		return "", err
	}
	if len(faults) > 0 {
		if err := event.Add(tx, event.Event{EventType: "NOT_DEPLOYED", Category: "DEPLOYMENT", Subcategory: serviceOf(c.v6),
			SourceName: row.Name, Message: fmt.Sprintf("The change of %s %s was not deployed to server %s: %s", row.Type, c.label(row), at.Name,
				strings.Join(faults[:min(len(faults), 3)], "; "))}, row.ID); err != nil {
			return "", err
		}
	}
	if after == nil {
		return "", nil
	}
	number, err := storeUnits(tx, server, d.changes, after)
	if err != nil || number == 0 {
		return "", err
	}
	l.points.Changed(tx, c.fields.ServicePoint)
	return c.fields.ServicePoint, nil
}

// compile compiles the current settings. It returns nil if they cannot be served, or if the server does not serve the network any more:
// only a deployment removes it.
func (d *liveDeployment) compile() (after dhcpdata.Units, faults []string, err error) {
	if d.row.Collection == "macPools" {
		err = d.compilePool(d.row.ID)
	} else {
		err = d.compileOne(d.row.ID)
	}
	if err != nil {
		return nil, nil, err
	}
	if faults = d.texts(true); len(faults) > 0 || len(d.units[d.unit]) == 0 {
		return nil, faults, nil
	}
	if same, err := samePair(d.changes[d.unit], d.units[d.unit]); err != nil || !same {
		return nil, []string{"its role has another failover pair: run a full deployment"}, err
	}
	one, err := dhcpdata.EncodeUnit(d.unit, d.units[d.unit]...)
	if err != nil {
		return nil, []string{err.Error()}, nil //nolint:nilerr // it is a fault of the settings
	}
	after = dhcpdata.Units{d.unit: one}
	if err := d.removeMoved(after); err != nil {
		return nil, nil, err
	}
	refusal, err := d.check(after)
	if err != nil || refusal != nil {
		after = nil
	}
	if refusal != nil {
		faults = append(faults, refusal.Error())
	}
	return after, faults, err
}

// ordersAlone returns the deployed unit of the network with the actions on leases that are pending now. Settings that are not deployed stay
// as they are. wasRead reports whether the actions were read already.
func (d *liveDeployment) ordersAlone(wasRead bool) (dhcpdata.Units, error) {
	if !wasRead {
		if err := d.readCommon(); err != nil {
			return nil, err
		}
	}
	records := slices.DeleteFunc(slices.Clone(d.changes[d.unit].Records), func(r dhcpdata.Record) bool { return r[0] == 'Q' })
	for _, one := range d.orders[d.row.ID] {
		r, err := dhcpdata.Encode(one)
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	one, err := dhcpdata.NewUnit(d.unit, records)
	return dhcpdata.Units{d.unit: one}, err
}

// removeMoved removes the hardware addresses that a MAC pool now lists from the other deployed pools of the server: an address is in one
// pool. The other settings of these pools stay as they are deployed.
func (d *liveDeployment) removeMoved(after dhcpdata.Units) error {
	if d.row.Collection != "macPools" {
		return nil
	}
	var had []dhcpdata.Record
	if one := d.changes[d.unit]; one != nil {
		had = one.Records
	}
	_, added := dhcpdata.Diff(had, after[d.unit].Records)
	listed := map[string]bool{}
	for _, r := range added {
		x, err := dhcpdata.Decode(r)
		if err != nil {
			return err
		}
		if m, is := x.(dhcpdata.MACAddress); is {
			listed[string(m.MAC)] = true
		}
	}
	if len(listed) == 0 {
		return nil
	}
	others, err := macPoolUnits(d.tx, d.server.ID)
	if err != nil {
		return err
	}
	for id, one := range others {
		if id == d.unit {
			continue
		}
		left, err := withoutMembers(one.Records, listed)
		if err != nil {
			return err
		}
		if len(left) < len(one.Records) {
			d.changes[id] = one
			if len(left) == 0 { // the unit of the addresses in no pool is gone with the last one
				continue
			}
			if after[id], err = dhcpdata.NewUnit(id, left); err != nil {
				return err
			}
		}
	}
	return nil
}

// withoutMembers returns the records of a MAC pool without hardware addresses and their options.
func withoutMembers(records []dhcpdata.Record, macs map[string]bool) (left []dhcpdata.Record, err error) {
	items := make([]dhcpdata.Item, len(records))
	gone := map[int64]bool{}
	for i, r := range records {
		if items[i], err = dhcpdata.Decode(r); err != nil {
			return nil, err
		}
		if m, is := items[i].(dhcpdata.MACAddress); is && macs[string(m.MAC)] {
			gone[m.ID] = true
		}
	}
	for i, x := range items {
		at := int64(0)
		switch y := x.(type) {
		case dhcpdata.MACAddress:
			at = y.ID
		case dhcpdata.Option:
			at = y.At
		case dhcpdata.Service:
			at = y.At
		}
		if !gone[at] {
			left = append(left, records[i])
		}
	}
	return left, nil
}

// macPoolUnits returns the deployed MAC pools of a server.
func macPoolUnits(tx *store.Tx, server int64) (dhcpdata.Units, error) {
	first := dhcpdata.MACPoolUnit(0)
	prefix := first[:len(first)-1]
	var ids []string
	if err := tx.Each(func(scan func(...any) error) error {
		var id string
		err := scan(&id)
		ids = append(ids, id)
		return err
	}, "SELECT unit FROM dhcp_unit WHERE server = ? AND unit LIKE ? ORDER BY unit", server, prefix+"%"); err != nil || len(ids) == 0 {
		return nil, err
	}
	return unitsOf(tx, server, ids...)
}

// check compiles the changed units as the service point does, with the units that they may contradict: the one of the server, the other MAC
// pools for a MAC pool, and all networks for a network with another prefix. refusal is the reason why the service point would refuse the
// content, and every later change with it.
func (d *liveDeployment) check(after dhcpdata.Units) (refusal, err error) {
	beside, err := d.besides(after)
	if err != nil {
		return nil, err
	}
	server, err := unitsOf(d.tx, d.server.ID, dhcpdata.ServerUnit)
	if err != nil {
		return nil, err
	}
	whole := dhcpdata.Units{}
	for _, some := range []dhcpdata.Units{beside, server} {
		for id, one := range some {
			if d.changes[id] == nil {
				whole[id] = one
			}
		}
	}
	for id, one := range after {
		whole[id] = one
	}
	_, refusal = dhcpdata.Compile(whole, nil)
	return refusal, nil
}

// besides returns the deployed units that the changed ones may contradict, apart from the one of the server.
func (d *liveDeployment) besides(after dhcpdata.Units) (dhcpdata.Units, error) {
	if d.row.Collection == "macPools" {
		return macPoolUnits(d.tx, d.server.ID)
	}
	if same, err := d.samePrefix(after); err != nil || same {
		return nil, err
	}
	return unitsOf(d.tx, d.server.ID)
}

// samePrefix reports whether the unit of a network has the same prefix as before.
func (d *liveDeployment) samePrefix(after dhcpdata.Units) (bool, error) {
	now, err := networkItem(after[d.unit])
	if err != nil {
		return false, err
	}
	was, err := networkItem(d.changes[d.unit])
	return now.Prefix == was.Prefix, err
}
