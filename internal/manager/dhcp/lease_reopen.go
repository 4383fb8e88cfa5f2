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

// reopen continues a lease that expired at another server, or without one, before a server reported its renewal. Its former server, or the
// manager, did not know the renewal. A renewal from before the end, or with an expiration in the past, changes nothing. A digest has
// the time of its report, not of its renewals. A lease that ended for another reason, such as a release, therefore stays ended.
func (w *leaseWriter) reopen(one dhcplease.Renewal, at time.Time) error {
	l, err := w.read(one.Address)
	if err != nil || l.state != stateFree || l.server == w.server {
		return err
	}
	span, err := w.endedSpan(one.Address, l.start)
	if err != nil || span.reason != expiredReason || !span.stop.Before(at) || one.Expires <= span.stop.Unix() ||
		!endOf(one.Expires).After(w.tx.Now()) {
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
	if err := w.addActivity(l, leaseChange{state: state, start: l.start, end: endOf(one.Expires), network: l.parent, address: one.Address,
		prefix: l.prefix, mac: l.mac, clientID: l.clientID, iaid: textOf(&body, "identityAssociationIdentifier"),
		hostName: textOf(&body, "hostName"), circuit: textOf(&body, "circuitId"), link: textOf(&body, "interfaceId"),
		remote: textOf(&body, "remoteId")}, true); err != nil {
		return err
	}
	key := store.AddrKey(one.Address)
	ipam.LeasesChanged(w.tx, l.parent)
	return errors.Join(w.counts.add(l.server, l.parent, key, stateFree, -1), w.counts.add(w.server, l.parent, key, state, 1),
		w.openSpan(span.id), w.pages.set(one.Address, endOf(one.Expires)),
		w.tx.Write("UPDATE dhcp_lease SET state = ?, span = ?, body = ?, version = version + 1, server = ?, refs = ?, snapshot = ? WHERE id = ?",
			state, span.id, string(body.Text()), w.server, w.refs(), w.snapshot, l.id))
}

// endedSpan is a span that has ended, with its LeaseSpan.EndReason.
type endedSpan struct {
	id     int64
	stop   time.Time
	reason string
}

// endedSpan returns the last span of an address that began at a time and has ended; its id is 0 and its reason empty if there is none.
func (w *leaseWriter) endedSpan(a netip.Addr, start time.Time) (span endedSpan, err error) {
	var seconds int64
	var text string
	err = w.tx.QueryRow("SELECT id, stop, body FROM dhcp_lease_span WHERE configuration = ? AND low = ? AND start = ? AND stop >= start"+
		" ORDER BY id DESC LIMIT 1", w.configuration, store.AddrKey(a), start.Unix()).Scan(&span.id, &seconds, &text)
	if errors.Is(err, sql.ErrNoRows) {
		return endedSpan{}, nil
	}
	if err != nil {
		return endedSpan{}, err
	}
	var body store.Object
	if err := body.Read([]byte(text)); err != nil {
		return endedSpan{}, fmt.Errorf("span %d: %w", span.id, err)
	}
	span.stop, span.reason = time.Unix(seconds, 0), textOf(&body, "endReason")
	return span, nil
}

// continuedSpan returns the ended span that a report of the same lease continues; its id is 0 if there is none. A lease that expired
// continues. So does one that a user ended, if its server or a list of all leases of another server still has it. isOld says that the
// report is older than the end, which another server has reported.
func (w *leaseWriter) continuedSpan(l storedLease, c leaseChange) (span endedSpan, isOld bool, err error) {
	if !l.there || l.span != 0 || l.state != stateFree || !l.start.Equal(c.start) {
		return endedSpan{}, false, nil
	}
	span, err = w.endedSpan(c.address, l.start)
	own := l.server == w.server
	if err != nil || span.reason == expiredReason || span.reason == endedReason && (own || c.listed) {
		return span, false, err
	}
	return endedSpan{}, span.id != 0 && !own, nil
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
