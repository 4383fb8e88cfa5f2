package discovery

import (
	"encoding/json"
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

// settlement compares a scan with the database in a transaction.
type settlement struct {
	*sweep
	c *resource.Change
	// before and now are the differences of the last run and of this one, by address. list are the findings of this run.
	before, now map[string]difference
	list        map[findingKey]*ReconciliationFinding
	// assigned are the addresses of the networks.
	assigned map[netip.Addr]bool
	// unknown, reclaimable and differing are addresses whose findings stay open; added, freed and overwritten are changed ones.
	unknown, added, reclaimable, freed, differing, overwritten []netip.Addr
}

// difference is a difference between the database and the scan for one address. since is its start, in Unix milliseconds.
type difference struct {
	kind  string
	since int64
}

// settle compares the scan with the database, stores the differences and the findings, and applies those that are older than the acceptance
// age of the policy. It returns the number of open findings.
func (w *sweep) settle(c *resource.Change) (open int64, err error) {
	s := &settlement{sweep: w, c: c, now: map[string]difference{}, list: map[findingKey]*ReconciliationFinding{},
		assigned: map[netip.Addr]bool{}}
	if s.before, err = w.differences(c.Tx); err != nil {
		return 0, err
	}
	inside, outside := w.byNetwork()
	for _, n := range w.networks {
		if err := s.compareNetwork(n, inside[n.ID]); err != nil {
			return 0, err
		}
	}
	for _, a := range outside {
		s.add(kindNoNet, a, 0, s.c.Tx.Now(), storedValues{})
	}
	if err := w.saveDifferences(c.Tx, s.now); err != nil {
		return 0, err
	}
	if open, err = s.saveFindings(); err != nil {
		return 0, err
	}
	if err := w.updateDiscovered(c); err != nil {
		return 0, err
	}
	return open, event.Add(c.Tx, s.resultEvent(), w.head.ID)
}

// byNetwork returns the seen addresses by network, and those in no network, in order.
func (w *sweep) byNetwork() (inside map[int64][]netip.Addr, outside []netip.Addr) {
	inside = map[int64][]netip.Addr{}
	for a := range w.seen {
		i, _ := slices.BinarySearchFunc(w.networks, a, func(n *store.Resource, a netip.Addr) int {
			return store.KeyAddr(n.High).Compare(a)
		})
		if i < len(w.networks) && ipam.RangeOf(w.networks[i]).Has(a) {
			inside[w.networks[i].ID] = append(inside[w.networks[i].ID], a)
		} else {
			outside = append(outside, a)
		}
	}
	for _, list := range inside {
		slices.SortFunc(list, netip.Addr.Compare)
	}
	slices.SortFunc(outside, netip.Addr.Compare)
	return inside, outside
}

// differences returns the stored differences of the policy, by address.
func (w *sweep) differences(tx *store.Tx) (map[string]difference, error) {
	all := map[string]difference{}
	err := tx.Each(func(scan func(...any) error) error {
		var address string
		var f difference
		err := scan(&address, &f.kind, &f.since)
		all[address] = f
		return err
	}, "SELECT address, kind, since FROM sweep_finding WHERE policy = ?", w.head.ID)
	return all, err
}

// saveDifferences replaces the stored differences of the policy.
func (w *sweep) saveDifferences(tx *store.Tx, now map[string]difference) error {
	if err := tx.Write("DELETE FROM sweep_finding WHERE policy = ?", w.head.ID); err != nil {
		return err
	}
	for address, f := range now {
		if err := tx.Write("INSERT INTO sweep_finding (policy, address, kind, since) VALUES (?, ?, ?, ?)", w.head.ID, address, f.kind,
			f.since); err != nil {
			return err
		}
	}
	return nil
}

// compareNetwork compares one network. If no address in it was seen, the network itself may be unreachable, so no address is reclaimed.
func (s *settlement) compareNetwork(n *store.Resource, seen []netip.Addr) error {
	known := map[netip.Addr]*store.Resource{}
	if err := s.c.Tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("addresses"), store.HasParent(n.ID)}},
		func(r *store.Resource) error {
			a := ipam.RangeOf(r).Low
			known[a], s.assigned[a] = r.Clone(), true
			return nil
		}); err != nil {
		return err
	}
	for _, a := range seen {
		if err := s.compareSeen(n, a, known[a]); err != nil {
			return err
		}
	}
	silent := make([]netip.Addr, 0, len(known))
	for a := range known {
		if s.seen[a] == nil && s.covers(a) {
			silent = append(silent, a)
		}
	}
	slices.SortFunc(silent, netip.Addr.Compare)
	for _, a := range silent {
		if err := s.compareSilent(n, a, known[a], len(seen) > 0); err != nil {
			return err
		}
	}
	return nil
}

// compareSeen compares a seen address with its row, which is nil if the address is not assigned.
func (s *settlement) compareSeen(n *store.Resource, a netip.Addr, row *store.Resource) error {
	x := s.seen[a]
	if row == nil {
		since, old := s.beginOf(a, findingUnknown)
		if s.v4 != nil && s.isDue(s.v4.UnknownAcceptanceAge, old) {
			s.added = append(s.added, a)
			return s.addAddress(n, a, x)
		}
		s.now[a.String()] = difference{findingUnknown, since.UnixMilli()}
		s.unknown = append(s.unknown, a)
		s.add(kindUnknown, a, n.ID, since, storedValues{})
		return nil
	}
	has := s.stored[row.ID]
	otherMAC := x.MACAddress != "" && has.mac != "" && x.MACAddress != has.mac
	otherName := x.HostName != "" && len(has.names) > 0 && !slices.ContainsFunc(has.names, func(name string) bool {
		return strings.EqualFold(name, x.HostName)
	})
	if !otherMAC && !otherName {
		return nil
	}
	since, old := s.beginOf(a, findingMismatch)
	if otherMAC && s.v4 != nil && s.isDue(s.v4.MismatchAcceptanceAge, old) {
		s.overwritten = append(s.overwritten, a)
		if _, err := s.c.Following().Patch(row, map[string]json.RawMessage{"macAddress": wrapJSON("address", x.MACAddress)}); err != nil {
			return err
		}
		otherMAC = false
	}
	if otherMAC {
		s.add(kindHardware, a, n.ID, since, has)
	}
	if otherName {
		s.add(kindName, a, n.ID, since, has)
	}
	if otherMAC || otherName {
		s.now[a.String()] = difference{findingMismatch, since.UnixMilli()}
		s.differing = append(s.differing, a)
	}
	return nil
}

// compareSilent compares an assigned address that was not seen. isReached reports that another address of the network was seen.
func (s *settlement) compareSilent(n *store.Resource, a netip.Addr, row *store.Resource, isReached bool) error {
	examined := s.targets[n.ID][a] || usesSNMP(s.method)
	if was, there := s.before[a.String()]; s.isPartial && there {
		s.now[a.String()] = was
	}
	if !isReached || !examined || s.isPartial || !isStatic(s.c, row) {
		return nil
	}
	since, old := s.beginOf(a, findingReclaimed)
	if s.v4 != nil && s.isDue(s.v4.ReclaimAcceptanceAge, old) {
		s.freed = append(s.freed, a)
		return s.c.Following().Delete(row)
	}
	s.now[a.String()] = difference{findingReclaimed, since.UnixMilli()}
	s.reclaimable = append(s.reclaimable, a)
	if old >= time.Duration(s.common.NotSeenDays)*24*time.Hour {
		s.add(kindNotSeen, a, n.ID, since, storedValues{})
	}
	return nil
}

// beginOf returns when a difference began, and its age.
func (s *settlement) beginOf(a netip.Addr, kind string) (since time.Time, old time.Duration) {
	now := s.c.Tx.Now()
	since = now
	if was, there := s.before[a.String()]; there && was.kind == kind {
		since = time.UnixMilli(was.since)
	}
	return since, now.Sub(since)
}

// isDue reports whether a difference is old enough to be applied.
func (s *settlement) isDue(age string, old time.Duration) bool {
	return age != "" && old >= schema.LengthOf(age)
}

// isStatic reports whether an address may be reclaimed: only static ones are, not reserved ones and gateways.
func isStatic(c *resource.Change, row *store.Resource) bool {
	o, err := c.API.Object(row)
	if err != nil {
		return false
	}
	switch x := o.(type) {
	case *ipam.IPv4Address:
		return x.State == stateStatic
	case *ipam.IPv6Address:
		return x.State == stateStatic
	}
	return false
}

// addAddress adds an unknown address with its hardware address.
func (s *settlement) addAddress(n *store.Resource, a netip.Addr, seen *Observation) error {
	x := &ipam.IPv4Address{Assignment: ipam.Assignment{Address: a}, State: stateStatic}
	x.Type, x.Parent, x.Config = "IPv4Address", n.ID, n.Configuration
	given := []string{"address", "state"}
	if seen.MACAddress != "" {
		x.MACAddress, given = schema.Ref{By: seen.MACAddress}, append(given, "macAddress")
	}
	_, err := s.c.Following(given...).Create(s.c.API.TypeNamed(x.Type), x)
	return err
}

// resultEvent returns the event that reports the result of the run.
func (s *settlement) resultEvent() event.Event {
	text := fmt.Sprintf("Reconciliation policy %d probed %d addresses of %d networks: %d responded", s.head.ID, s.pinged, len(s.networks),
		len(s.seen))
	if usesSNMP(s.method) {
		text = fmt.Sprintf("Reconciliation policy %d probed %d addresses of %d networks and read %d of %d devices: %d addresses were seen",
			s.head.ID, s.pinged, len(s.networks), len(s.devices), len(s.common.SeedRouterAddresses), len(s.seen))
	}
	for _, part := range []struct {
		what string
		list []netip.Addr
	}{{"not known here", s.unknown}, {"added", s.added}, {"known and silent", s.reclaimable}, {"given back", s.freed},
		{"with other values", s.differing}, {"overwritten", s.overwritten}} {
		if len(part.list) > 0 {
			text += fmt.Sprintf("; %d %s: %s", len(part.list), part.what, formatAddresses(part.list))
		}
	}
	kind := "INFO"
	if s.isTruncated {
		kind = "WARNING"
		text += fmt.Sprintf("; at most %d addresses are probed: set closer boundaries", maxSweepAddresses)
	}
	if s.isPartial {
		kind = "WARNING"
		text += "; " + s.messages[0]
	}
	return event.Event{EventType: kind, Category: "IP_RECONCILIATION", SourceName: s.head.Name, Message: text}
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

// failureEvent returns the event for a run that failed. Such a run changes nothing; the policy runs again at its next time.
func (w *sweep) failureEvent(reason error) event.Event {
	return event.Event{EventType: "FAILED", Category: "IP_RECONCILIATION", SourceName: w.head.Name,
		Message: fmt.Sprintf("Reconciliation policy %d failed to probe its addresses: %v", w.head.ID, reason)}
}
