package dhcp

import (
	"database/sql"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/ipam"
	"portolan/internal/wire/dhcplease"
)

// reopen continues a lease that ended at another server, or without one, before a server reported its renewal. The manager ended it without
// a report, or its former server did not know the renewal. A renewal from before the end changes nothing.
func (w *leaseWriter) reopen(one dhcplease.Renewal, at time.Time) error {
	l, err := w.read(one.Address)
	if err != nil || l.state != stateFree || l.server == w.server {
		return err
	}
	id, stop, err := w.endedSpan(one.Address, l.start)
	if err != nil || id == 0 || !stop.Before(at) || one.Expires <= stop.Unix() {
		return err
	}
	state := stateAllocated
	row, err := ipam.AddressAt(w.tx, l.parent, one.Address)
	if err != nil && !store.IsNotFound(err) {
		return err
	}
	if err == nil && l.prefix == 0 {
		if is, err := isReserved(row); err != nil {
			return err
		} else if is {
			state = stateLeased
		}
	}
	var body store.Object
	if err := body.Read([]byte(l.body)); err != nil {
		return fmt.Errorf("lease %d: %w", l.id, err)
	}
	body.Set("state", schema.AppendString(nil, state))
	key := store.AddrKey(one.Address)
	ipam.LeasesChanged(w.tx, l.parent)
	return errors.Join(w.counts.add(l.server, l.parent, key, stateFree, -1), w.counts.add(w.server, l.parent, key, state, 1),
		w.openSpan(id), w.pages.set(one.Address, endOf(one.Expires)),
		w.tx.Write("UPDATE dhcp_lease SET state = ?, span = ?, body = ?, version = version + 1, server = ?, refs = ?, snapshot = ? WHERE id = ?",
			state, id, string(body.Text()), w.server, w.refs(), w.snapshot, l.id))
}

// endedSpan returns the last span of an address that began at a time and has ended after it; the id is 0 if there is none.
func (w *leaseWriter) endedSpan(a netip.Addr, start time.Time) (id int64, stop time.Time, err error) {
	var seconds int64
	err = w.tx.QueryRow("SELECT id, stop FROM dhcp_lease_span WHERE configuration = ? AND low = ? AND start = ? AND stop > start"+
		" ORDER BY id DESC LIMIT 1", w.configuration, store.AddrKey(a), start.Unix()).Scan(&id, &seconds)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, time.Time{}, nil
	}
	return id, time.Unix(seconds, 0), err
}

// openSpan removes the end of a span.
func (w *leaseWriter) openSpan(id int64) error {
	var text string
	if err := w.tx.QueryRow("SELECT body FROM dhcp_lease_span WHERE id = ?", id).Scan(&text); err != nil {
		return err
	}
	var body store.Object
	if err := body.Read([]byte(text)); err != nil {
		return fmt.Errorf("span %d: %w", id, err)
	}
	body.Set("endDateTime", []byte("null"))
	body.Set("endReason", []byte("null"))
	return w.tx.Write("UPDATE dhcp_lease_span SET body = ?, stop = NULL, refs = ?, version = version + 1 WHERE id = ?", string(body.Text()),
		w.refs(), id)
}
