package dhcp

import (
	"encoding/json"
	"fmt"
	"net/netip"

	"portolan/internal/engine/store"
	"portolan/internal/wire/dhcpdata"
)

// EachImported calls fn for the orders to restore the imported leases of a configuration that no server has confirmed, with their networks.
func EachImported(tx *store.Tx, configuration int64, fn func(network int64, order dhcpdata.Order) error) error {
	return tx.Each(func(scan func(...any) error) error {
		var network int64
		var data string
		if err := scan(&network, &data); err != nil {
			return err
		}
		var order dhcpdata.Order
		if err := json.Unmarshal([]byte(data), &order); err != nil {
			return fmt.Errorf("imported lease: %w", err)
		}
		return fn(network, order)
	}, "SELECT l.parent, i.data FROM dhcp_lease_import i JOIN dhcp_lease l ON l.configuration = i.configuration AND l.low = i.low"+
		" WHERE i.configuration = ? ORDER BY i.id", configuration)
}

// confirm deletes the order of an imported lease that a server has answered. It returns false if the id is not that of such an order. The
// last confirmation of a network queues the network, so that its content loses the orders.
func (w *leaseWriter) confirm(id int64, address netip.Addr) (bool, error) {
	deleted, err := w.tx.Exec("DELETE FROM dhcp_lease_import WHERE id = ?", id)
	if err != nil || deleted == 0 {
		return false, err
	}
	l, err := w.read(address)
	if err != nil || !l.there {
		return true, err
	}
	if l.server == 0 && l.state != stateFree { // the server did not take it: it has ended
		at := w.tx.Now()
		if err := w.change(leaseChange{state: stateFree, start: at, began: at, network: l.parent, address: address, mac: l.mac,
			clientID: l.clientID, reason: expiredReason}); err != nil {
			return true, err
		}
	}
	w.confirmed[l.parent] = true
	return true, nil
}

// importsEnd queues the networks whose imported leases are all confirmed.
func (w *leaseWriter) importsEnd(queue func(tx *store.Tx, configuration, network int64) error) error {
	for network := range w.confirmed {
		waits := false
		if err := w.tx.QueryRow("SELECT EXISTS (SELECT 1 FROM dhcp_lease_import i JOIN dhcp_lease l ON l.configuration = i.configuration"+
			" AND l.low = i.low WHERE i.configuration = ? AND l.parent = ?)", w.configuration, network).Scan(&waits); err != nil {
			return err
		}
		if !waits {
			if err := queue(w.tx, w.configuration, network); err != nil {
				return err
			}
		}
	}
	return nil
}
