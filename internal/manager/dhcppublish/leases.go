package dhcppublish

import (
	"fmt"

	"portolan/internal/engine/store"
	"portolan/internal/manager/dhcp"
	"portolan/internal/wire/dhcpdata"
)

// RequestLeases requests the list of all leases of a server.
func RequestLeases(tx *store.Tx, server *store.Resource) error {
	return queueRequest(tx, server.Configuration, server.ID)
}

// NetworkChanged queues a network for the servers that have it: its orders about leases have changed.
func NetworkChanged(tx *store.Tx, configuration, network int64) error {
	return queueChange(tx, configuration, network)
}

// queueRequest queues the request for all leases of a server, by the negative id of the server.
func queueRequest(tx *store.Tx, configuration, server int64) error {
	return queueChange(tx, configuration, -server)
}

// requestedServer returns the id of the server in a queued request for leases (a negative what). ok is false for other queued changes.
func requestedServer(what int64) (server int64, ok bool) { return -what, what < 0 }

// queueChange queues a changed network or MAC pool for the live deployment.
func queueChange(tx *store.Tx, configuration, what int64) error {
	tx.Touch(dueTopic)
	return tx.Write("INSERT INTO dhcp_due (configuration, what, changed) VALUES (?, ?, ?) ON CONFLICT (configuration, what) DO UPDATE SET"+
		" changed = excluded.changed", configuration, what, tx.Now().UnixMilli())
}

// lastRequest returns the number of the last request for all leases in the unit of a server.
func lastRequest(unit *dhcpdata.Unit) (int64, error) {
	for _, r := range unit.Records {
		x, err := dhcpdata.Decode(r)
		if err != nil {
			return 0, err
		}
		if s, is := x.(dhcpdata.Server); is {
			return s.Snapshot, nil
		}
	}
	return 0, fmt.Errorf("the unit %s has no server", unit.ID)
}

// requestLeases deploys a new request for all leases to a server. It returns the service points to wake. A server without content is asked
// by its first deployment.
func (l *Live) requestLeases(tx *store.Tx, server *store.Resource) (wake []string, err error) {
	before, err := unitsOf(tx, server.ID, dhcpdata.ServerUnit)
	if err != nil || len(before) == 0 {
		return nil, err
	}
	records := append([]dhcpdata.Record(nil), before[dhcpdata.ServerUnit].Records...)
	for i, r := range records {
		x, err := dhcpdata.Decode(r)
		if err != nil {
			return nil, err
		}
		s, is := x.(dhcpdata.Server)
		if !is {
			continue
		}
		s.Snapshot = max(s.Snapshot+1, tx.Now().UnixMilli())
		if s.Restored, err = dhcp.LastLost(tx, server.ID); err != nil {
			return nil, err
		}
		if records[i], err = dhcpdata.Encode(s); err != nil {
			return nil, err
		}
	}
	after, err := dhcpdata.NewUnit(dhcpdata.ServerUnit, records)
	if err != nil {
		return nil, err
	}
	if _, err := storeUnits(tx, server.ID, before, dhcpdata.Units{dhcpdata.ServerUnit: after}); err != nil {
		return nil, err
	}
	c, err := newCompiler(tx, l.api, server, false)
	if err != nil {
		return nil, err
	}
	if c.fields.ServicePoint == "" {
		return nil, nil
	}
	l.points.Changed(tx, c.fields.ServicePoint)
	return []string{c.fields.ServicePoint}, nil
}
