package dhcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"

	"portolan/internal/engine/resource"
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
			clientID: l.clientID, reason: "EXPIRED"}); err != nil {
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

// expireAtOnce is the maximum number of imported leases that are examined in one transaction.
const expireAtOnce = 1000

// ExpireImported ends the imported leases that have expired before a server has confirmed them, and deletes the orders of leases that do
// not exist any more. It returns the number of ended leases.
func ExpireImported(ctx context.Context, a *resource.API, update store.Updater) (ended int, err error) {
	waits := false
	if err := a.Store.View(ctx, func(tx *store.Tx) error {
		return tx.QueryRow("SELECT EXISTS (SELECT 1 FROM dhcp_lease WHERE server = 0 AND state <> ?)", stateFree).Scan(&waits)
	}); err != nil || !waits {
		return 0, err
	}
	for last := int64(0); ; {
		examined, n := 0, 0
		next := last
		if err := update(ctx, store.Author{}, func(tx *store.Tx) error {
			var err error
			examined, n, next, err = expireSome(tx, a, last)
			return err
		}); err != nil {
			return ended, err
		}
		if ended += n; examined < expireAtOnce {
			return ended, nil
		}
		last = next
	}
}

// expireSome examines the leases without a server after an id.
func expireSome(tx *store.Tx, a *resource.API, last int64) (examined, ended int, next int64, err error) {
	type lease struct{ id, configuration int64 }
	writers := map[int64]*leaseWriter{}
	var all []lease
	var addresses []netip.Addr
	if err := tx.Each(func(scan func(...any) error) error {
		var one lease
		var low []byte
		err := scan(&one.id, &one.configuration, &low)
		all, addresses = append(all, one), append(addresses, store.KeyAddr(low))
		return err
	}, "SELECT id, configuration, low FROM dhcp_lease WHERE server = 0 AND id > ? AND state <> ? ORDER BY id LIMIT ?", last, stateFree,
		expireAtOnce); err != nil {
		return 0, 0, last, err
	}
	for n, one := range all {
		w := writers[one.configuration]
		if w == nil {
			w = newLeaseWriter(tx, a, &store.Resource{Configuration: one.configuration})
			writers[one.configuration] = w
		}
		next = one.id
		end, err := w.pages.end(addresses[n])
		if err != nil {
			return 0, 0, last, err
		}
		if end.IsZero() || end.After(tx.Now()) {
			continue
		}
		l, err := w.read(addresses[n])
		if err == nil {
			err = w.change(leaseChange{state: stateFree, start: end, began: l.start, network: l.parent, address: addresses[n], mac: l.mac,
				clientID: l.clientID, reason: "EXPIRED"})
		}
		if err == nil {
			err = tx.Write("DELETE FROM dhcp_lease_import WHERE configuration = ? AND low = ?", one.configuration,
				store.AddrKey(addresses[n]))
		}
		if err != nil {
			return 0, 0, last, err
		}
		ended++
	}
	for _, w := range writers {
		if err := errors.Join(w.pages.write(), w.counts.write()); err != nil {
			return 0, 0, last, err
		}
	}
	return len(all), ended, next, nil
}
