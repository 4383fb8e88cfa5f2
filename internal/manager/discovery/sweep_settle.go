package discovery

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"portolan/internal/engine/event"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/ipam"
)

// sweepResult lists the addresses of a sweep by result: findings that stay open, and addresses that were added or deleted.
type sweepResult struct{ unknown, added, reclaimable, freed []netip.Addr }

// settle compares the ping with the database, stores the open findings, and applies those that are older than the acceptance age of the
// policy.
func (w *sweep) settle(c *resource.Change) error {
	before, err := w.findings(c.Tx)
	if err != nil {
		return err
	}
	var done sweepResult
	now := map[string]finding{}
	for _, n := range w.networks {
		if err := w.compareNetwork(c, n, before, now, &done); err != nil {
			return err
		}
	}
	if err := w.saveFindings(c.Tx, now); err != nil {
		return err
	}
	if err := w.updateDiscoveredHosts(c); err != nil {
		return err
	}
	return event.Add(c.Tx, w.resultEvent(&done), w.policy.ID)
}

// finding is a difference between the database and the ping for one address. since is its start, in Unix milliseconds.
type finding struct {
	kind  string
	since int64
}

// findings returns the stored findings of the policy, by address.
func (w *sweep) findings(tx *store.Tx) (map[string]finding, error) {
	all := map[string]finding{}
	err := tx.Each(func(scan func(...any) error) error {
		var address string
		var f finding
		err := scan(&address, &f.kind, &f.since)
		all[address] = f
		return err
	}, "SELECT address, kind, since FROM sweep_finding WHERE policy = ?", w.policy.ID)
	return all, err
}

// saveFindings replaces the stored findings of the policy.
func (w *sweep) saveFindings(tx *store.Tx, now map[string]finding) error {
	if err := tx.Write("DELETE FROM sweep_finding WHERE policy = ?", w.policy.ID); err != nil {
		return err
	}
	for address, f := range now {
		if err := tx.Write("INSERT INTO sweep_finding (policy, address, kind, since) VALUES (?, ?, ?, ?)", w.policy.ID, address, f.kind,
			f.since); err != nil {
			return err
		}
	}
	return nil
}

// compareNetwork compares one network. If no address in it ping, the network itself may be unreachable, so no address is reclaimed.
func (w *sweep) compareNetwork(c *resource.Change, n *store.Resource, before, now map[string]finding, done *sweepResult) error {
	known := map[netip.Addr]*store.Resource{}
	if err := c.Tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("addresses"), store.HasParent(n.ID)}},
		func(r *store.Resource) error {
			known[ipam.RangeOf(r).Low] = r.Clone()
			return nil
		}); err != nil {
		return err
	}
	reached := slices.ContainsFunc(w.targets[n.ID], func(a netip.Addr) bool { return w.answering[a] })
	for _, a := range w.targets[n.ID] {
		row := known[a]
		var kind, age string
		switch {
		case row == nil && w.answering[a]:
			kind, age = findingUnknown, w.policy.UnknownAcceptanceAge
		case row != nil && !w.answering[a] && reached && isStatic(c, row):
			kind, age = findingReclaimed, w.policy.ReclaimAcceptanceAge
		default:
			continue
		}
		f := finding{kind, c.Tx.Now().UnixMilli()}
		if was, there := before[a.String()]; there && was.kind == kind {
			f.since = was.since
		}
		settle := age != "" && c.Tx.Now().Sub(time.UnixMilli(f.since)) >= schema.LengthOf(age)
		if !settle {
			now[a.String()] = f
		}
		if err := w.settleOne(c, n, a, row, kind, settle, done); err != nil {
			return err
		}
	}
	return nil
}

// isStatic reports whether an address may be reclaimed: only static ones are, not reserved ones and gateways.
func isStatic(c *resource.Change, row *store.Resource) bool {
	o, err := c.API.Object(row)
	x, ok := o.(*ipam.IPv4Address)
	return err == nil && ok && x.State == "STATIC"
}

// settleOne records a finding in done. If settle is true, it adds the unknown address or deletes the silent one.
func (w *sweep) settleOne(c *resource.Change, n *store.Resource, a netip.Addr, row *store.Resource, kind string, settle bool,
	done *sweepResult,
) error {
	switch {
	case kind == findingUnknown && !settle:
		done.unknown = append(done.unknown, a)
	case kind == findingReclaimed && !settle:
		done.reclaimable = append(done.reclaimable, a)
	case kind == findingReclaimed:
		done.freed = append(done.freed, a)
		return c.Following().Delete(row)
	default:
		done.added = append(done.added, a)
		x := &ipam.IPv4Address{Assignment: ipam.Assignment{Address: a}, State: "STATIC"}
		x.Type, x.Parent, x.Config = "IPv4Address", n.ID, n.Configuration
		_, err := c.Following("address", "state").Create(c.API.TypeNamed(x.Type), x)
		return err
	}
	return nil
}

// updateDiscoveredHosts replaces the discovered hosts of the policy by the hosts that answered.
func (w *sweep) updateDiscoveredHosts(c *resource.Change) error {
	var old []*store.Resource
	if err := c.Tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("discoveredDevices"),
		store.HasParent(w.policy.ID)}}, func(r *store.Resource) error {
		old = append(old, r.Clone())
		return nil
	}); err != nil {
		return err
	}
	t, there := c.API.TypeNamed("DiscoveredHost"), map[string]bool{}
	for _, row := range old {
		o, err := c.API.Object(row)
		if err != nil {
			return err
		}
		x, ok := o.(*DiscoveredHost)
		if a, err := netip.ParseAddr(x.Address); ok && err == nil && w.answering[a] {
			there[x.Address] = true
			continue
		}
		if err := c.Following().Delete(row); err != nil {
			return err
		}
	}
	for a := range w.answering {
		if there[a.String()] {
			continue
		}
		x := &DiscoveredHost{Address: a.String()}
		x.Type, x.Parent, x.Config = t.Name, w.policy.ID, w.policy.Config
		if _, err := c.Following().Create(t, x); err != nil {
			return err
		}
	}
	return nil
}

// resultEvent returns the event that reports the result of the sweep.
func (w *sweep) resultEvent(done *sweepResult) event.Event {
	total := 0
	for _, list := range w.targets {
		total += len(list)
	}
	text := fmt.Sprintf("Reconciliation policy %d probed %d addresses of %d networks: %d responded", w.policy.ID, total, len(w.networks),
		len(w.answering))
	for _, part := range []struct {
		what string
		list []netip.Addr
	}{{"not known here", done.unknown}, {"added", done.added}, {"known and silent", done.reclaimable}, {"given back", done.freed}} {
		if len(part.list) > 0 {
			text += fmt.Sprintf("; %d %s: %s", len(part.list), part.what, formatAddresses(part.list))
		}
	}
	kind := "INFO"
	if w.isTruncated {
		kind = "WARNING"
		text += fmt.Sprintf("; at most %d addresses are probed: set closer boundaries", maxSweepAddresses)
	}
	return event.Event{EventType: kind, Category: "IP_RECONCILIATION", SourceName: w.policy.Name, Message: text}
}

// formatAddresses returns up to maxNamedAddresses addresses as text, and the number of the others.
func formatAddresses(list []netip.Addr) string {
	var texts []string
	for _, a := range list[:min(len(list), maxNamedAddresses)] {
		texts = append(texts, a.String())
	}
	if n := len(list) - maxNamedAddresses; n > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(texts, ", ")
}

// failureEvent returns the event for a sweep that failed. Such a sweep changes nothing; the policy runs again at its next time.
func (w *sweep) failureEvent(reason error) event.Event {
	return event.Event{EventType: "FAILED", Category: "IP_RECONCILIATION", SourceName: w.policy.Name,
		Message: fmt.Sprintf("Reconciliation policy %d failed to probe its addresses: %v", w.policy.ID, reason)}
}
