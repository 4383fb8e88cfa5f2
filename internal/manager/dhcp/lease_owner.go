package dhcp

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/wire/dhcplease"
)

// serves reports whether a network is deployed to the server.
func (w *leaseWriter) serves(network int64) (is bool, err error) {
	is, known := w.served[network]
	if !known {
		if is, err = w.deployed(w.tx, w.server, network); err == nil {
			w.served[network] = is
		}
	}
	return is, err
}

// isLatest reports whether a change applies to the lease that is stored. A change of another lease of the address only completes the
// history: it comes from the former server of a network, or late.
//
//   - An end ends the lease that began when it did, or earlier. From another server it ends a lease of the same client only.
//   - A lease does not replace a newer one of another server. It replaces an older one that lasts only if its server has the network.
func (w *leaseWriter) isLatest(l storedLease, c leaseChange, same bool) (bool, error) {
	other := l.there && l.server != w.server
	lasts := l.state == stateAllocated || l.state == stateLeased
	switch {
	case !l.there, l.server == 0 && (c.lasts() || c.state == stateAbandoned): // an imported lease has no server
		return true, nil
	case !c.lasts() && c.state != stateAbandoned:
		return !c.began.Before(l.start) && (same || !other), nil
	case !other:
		return true, nil
	case c.start.Before(l.start):
		return false, nil
	case lasts:
		return w.serves(c.network)
	}
	return true, nil
}

// complete adds a change that does not concern the stored lease to the history: the span of a lease of another server, or its end.
func (w *leaseWriter) complete(l storedLease, c leaseChange, same bool) error {
	if c.lasts() {
		if same || c.start.After(l.start) {
			return nil
		}
		_, err := w.writeSpan(0, c, l.start, "REPLACED")
		return err
	}
	var id, stop int64
	err := w.tx.QueryRow("SELECT id, coalesce(stop, 0) FROM dhcp_lease_span WHERE configuration = ? AND low = ? AND start = ?"+
		" AND refs = ? AND id <> ? ORDER BY id DESC LIMIT 1", w.configuration, store.AddrKey(c.address), c.began.Unix(), w.refs(), l.span).
		Scan(&id, &stop)
	if errors.Is(err, sql.ErrNoRows) || err == nil && stop != 0 && stop <= c.start.Unix() {
		return nil
	}
	if err != nil {
		return err
	}
	return w.closeSpan(id, c.start, c.reason)
}

// renew stores new ends of leases that were reported at a time. It skips addresses without a lease, and leases of other servers of networks
// that the server does not have.
func (w *leaseWriter) renew(all []dhcplease.Renewal, at time.Time) error {
	for first := 0; first < len(all); {
		page, _ := pageOf(all[first].Address)
		end := first + 1
		for ; end < len(all) && all[end-1].Address.Less(all[end].Address); end++ {
			if next, _ := pageOf(all[end].Address); !slices.Equal(next, page) {
				break
			}
		}
		if err := w.renewPage(all[first:end], at); err != nil {
			return err
		}
		first = end
	}
	return nil
}

// renewPage stores new ends of leases of one page, in the order of their addresses.
func (w *leaseWriter) renewPage(all []dhcplease.Renewal, at time.Time) error {
	type owner struct {
		server, network int64
		state           string
	}
	owners := map[string]owner{}
	if err := w.tx.Each(func(scan func(...any) error) error {
		var low []byte
		var one owner
		err := scan(&low, &one.server, &one.network, &one.state)
		owners[string(low)] = one
		return err
	}, "SELECT low, server, parent, state FROM dhcp_lease WHERE configuration = ? AND low >= ? AND low <= ? AND state <> ?", w.configuration,
		store.AddrKey(all[0].Address), store.AddrKey(all[len(all)-1].Address), stateAbandoned); err != nil {
		return err
	}
	for _, one := range all {
		has, there := owners[string(store.AddrKey(one.Address))]
		if !there {
			continue
		}
		if has.server != w.server {
			if serves, err := w.serves(has.network); err != nil {
				return err
			} else if !serves {
				continue
			}
		}
		if has.state == stateFree {
			if err := w.reopen(one, at); err != nil {
				return err
			}
			continue
		}
		if err := w.pages.set(one.Address, endOf(one.Expires)); err != nil {
			return err
		}
	}
	return nil
}

// answersFor reports whether the server performs an action on a lease: it has the lease, or the network.
func (w *leaseWriter) answersFor(action *store.Resource) (bool, error) {
	o, err := w.api.Object(action)
	if err != nil {
		return false, err
	}
	x, ok := o.(*LeaseAction)
	if !ok {
		return false, fmt.Errorf("resource %d is a %s", action.ID, action.Type)
	}
	l, err := w.read(x.Address)
	if err != nil || l.there && l.server == w.server {
		return err == nil, err
	}
	return w.serves(action.Parent)
}
