package dhcp

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"portolan/internal/base/space"
	"portolan/internal/engine/store"
	"portolan/internal/wire/dhcpdata"
)

// recallMargin is added to the ends of restored leases: renewals are reported once a minute, so that the true end may be later.
const recallMargin = 2 * time.Minute

// recall orders the servers of a network to restore a lease that its server has lost. Until one of them confirms it, the lease belongs to
// no server, like an imported one, and ends when the order does. It returns false for a lease that has ended.
func (w *leaseWriter) recall(a netip.Addr) (bool, error) {
	l, err := w.read(a)
	if err != nil || !l.there {
		return false, err
	}
	end, err := w.pages.end(a)
	if err != nil || !end.IsZero() && !end.Add(recallMargin).After(w.tx.Now()) {
		return false, err
	}
	order, err := l.order(a, end)
	if err != nil {
		return false, err
	}
	if order.ID, err = w.tx.NewID(); err != nil {
		return false, err
	}
	data, err := json.Marshal(order)
	if err != nil {
		return false, err
	}
	key := store.AddrKey(a)
	if err := errors.Join(w.counts.add(l.server, l.parent, key, l.state, -1), w.counts.add(0, l.parent, key, l.state, 1),
		w.tx.Write("UPDATE dhcp_lease SET server = 0, refs = '', version = version + 1 WHERE id = ?", l.id),
		w.tx.Write("INSERT INTO dhcp_lease_import (id, configuration, low, data) VALUES (?, ?, ?, ?)"+
			" ON CONFLICT (configuration, low) DO UPDATE SET id = excluded.id, data = excluded.data", order.ID, w.configuration, key,
			string(data))); err != nil {
		return false, err
	}
	w.recalled[l.parent] = true
	if end.IsZero() {
		return true, nil
	}
	return true, w.pages.set(a, end.Add(recallMargin))
}

// order returns the order to restore the lease of an address, without its id.
func (l storedLease) order(a netip.Addr, end time.Time) (o dhcpdata.Order, err error) {
	var body store.Object
	if err := body.Read([]byte(l.body)); err != nil {
		return o, fmt.Errorf("lease %d: %w", l.id, err)
	}
	x := &dhcpdata.RestoredLease{Start: max(0, l.start.Unix()), Expires: dhcpdata.InfiniteTime, Abandoned: l.state == stateAbandoned}
	o = dhcpdata.Order{Address: a, Action: dhcpdata.RestoreLease, Lease: x}
	if !end.IsZero() {
		x.Expires = end.Add(recallMargin).Unix()
	}
	if x.Abandoned {
		return o, nil
	}
	id, err := hex.DecodeString(l.clientID)
	if err != nil {
		return o, fmt.Errorf("lease %d: %w", l.id, err)
	}
	if mac, wrong := space.ParseHardware(l.mac); wrong == nil {
		x.HardwareType, x.Hardware = 1, dhcpdata.Hex(mac)
	}
	if x.ClientID = id; a.Is6() {
		x.ClientID, x.DUID, x.IAID = nil, id, l.iaid
	}
	x.PrefixLength = l.prefix
	x.HostName = cutText(textOf(&body, "hostName"))
	for _, one := range []struct {
		field string
		to    *dhcpdata.Hex
	}{{"circuitId", &x.CircuitID}, {"remoteId", &x.RemoteID}, {"vendorClassIdentifier", &x.VendorClass}} {
		if text := textOf(&body, one.field); text != "" {
			data, err := ReadValue(text)
			if err != nil {
				return o, fmt.Errorf("lease %d: %w", l.id, err)
			}
			*one.to = cut(data)
		}
	}
	return o, nil
}

// recallsEnd queues the networks with lost leases, and after them the server, whose content then names the list that lacked them.
func (w *leaseWriter) recallsEnd(queue func(tx *store.Tx, configuration, network int64) error,
	request func(tx *store.Tx, server *store.Resource) error) error {
	for network := range w.recalled {
		if err := queue(w.tx, w.configuration, network); err != nil {
			return err
		}
	}
	if !w.lost {
		return nil
	}
	return request(w.tx, &store.Resource{ID: w.server, Configuration: w.configuration})
}

// LastLost returns the ID of the last list of a server that had lost leases (dhcpdata.Server.Restored); 0 if there was none.
func LastLost(tx *store.Tx, server int64) (id int64, err error) {
	err = tx.QueryRow("SELECT CAST(coalesce(max(lost), 0) AS BIGINT) FROM dhcp_lease_mark WHERE server = ?", server).Scan(&id)
	return id, err
}
