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

// settled is what came of a sweep.
type settled struct{ unknown, added, reclaimable, freed []netip.Addr }

// settle compares what answers with what is known, notes since when they differ, and settles what has differed long enough.
func (w *sweep) settle(c *resource.Change) error {
	before, err := w.findings(c.Tx)
	if err != nil {
		return err
	}
	var done settled
	now := map[string]finding{}
	for _, n := range w.networks {
		if err := w.network(c, n, before, now, &done); err != nil {
			return err
		}
	}
	if err := w.keep(c.Tx, now); err != nil {
		return err
	}
	if err := w.discovered(c); err != nil {
		return err
	}
	return event.Add(c.Tx, w.event(&done), w.policy.ID)
}

// finding is that what is known of an address differs from what is out there, since a time in Unix milliseconds.
type finding struct {
	kind  string
	since int64
}

// findings reads what differed before.
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

// keep writes what differs now in place of what differed before.
func (w *sweep) keep(tx *store.Tx, now map[string]finding) error {
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

// network compares one network. Where nobody in it answers it may be the way there that is broken: nothing is reclaimed then.
func (w *sweep) network(c *resource.Change, n *store.Resource, before, now map[string]finding, done *settled) error {
	known := map[netip.Addr]*store.Resource{}
	if err := c.Tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("addresses"), store.HasParent(n.ID)}},
		func(r *store.Resource) error {
			known[ipam.RangeOf(r).Low] = r.Clone()
			return nil
		}); err != nil {
		return err
	}
	reached := slices.ContainsFunc(w.asked[n.ID], func(a netip.Addr) bool { return w.answer[a] })
	for _, a := range w.asked[n.ID] {
		row := known[a]
		var kind, age string
		switch {
		case row == nil && w.answer[a]:
			kind, age = findingUnknown, w.policy.UnknownAcceptanceAge
		case row != nil && !w.answer[a] && reached && isStatic(c, row):
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

// isStatic reports whether an address is one that may be given back: reserved ones and gateways stay.
func isStatic(c *resource.Change, row *store.Resource) bool {
	o, err := c.API.Object(row)
	x, ok := o.(*ipam.IPv4Address)
	return err == nil && ok && x.State == "STATIC"
}

// settleOne notes a finding and, where it is to be settled, adds or gives back the address.
func (w *sweep) settleOne(c *resource.Change, n *store.Resource, a netip.Addr, row *store.Resource, kind string, settle bool,
	done *settled,
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

// discovered lists the hosts that answered in place of those that did before.
func (w *sweep) discovered(c *resource.Change) error {
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
		if a, err := netip.ParseAddr(x.Address); ok && err == nil && w.answer[a] {
			there[x.Address] = true
			continue
		}
		if err := c.Following().Delete(row); err != nil {
			return err
		}
	}
	for a := range w.answer {
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

// event says what came of it.
func (w *sweep) event(done *settled) event.Event {
	total := 0
	for _, list := range w.asked {
		total += len(list)
	}
	text := fmt.Sprintf("Reconciliation policy %d asked %d addresses of %d networks: %d answer", w.policy.ID, total, len(w.networks),
		len(w.answer))
	for _, part := range []struct {
		what string
		list []netip.Addr
	}{{"not known here", done.unknown}, {"added", done.added}, {"known and silent", done.reclaimable}, {"given back", done.freed}} {
		if len(part.list) > 0 {
			text += fmt.Sprintf("; %d %s: %s", len(part.list), part.what, named(part.list))
		}
	}
	kind := "INFO"
	if w.bounded {
		kind = "WARNING"
		text += fmt.Sprintf("; no more than %d addresses are asked: set closer boundaries", mostSwept)
	}
	return event.Event{EventType: kind, Category: "IP_RECONCILIATION", SourceName: w.policy.Name, Message: text}
}

// named names the first of some addresses.
func named(list []netip.Addr) string {
	var texts []string
	for _, a := range list[:min(len(list), mostNamed)] {
		texts = append(texts, a.String())
	}
	if n := len(list) - mostNamed; n > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(texts, ", ")
}

// failed says why addresses could not be asked. Nothing is changed then, until the policy is due again.
func (w *sweep) failed(reason error) event.Event {
	return event.Event{EventType: "FAILED", Category: "IP_RECONCILIATION", SourceName: w.policy.Name,
		Message: fmt.Sprintf("Reconciliation policy %d could not ask its addresses: %v", w.policy.ID, reason)}
}
