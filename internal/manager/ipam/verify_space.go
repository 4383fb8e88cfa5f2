package ipam

import (
	"maps"
	"net/netip"
	"slices"

	"portolan/internal/base/space"
	"portolan/internal/engine/store"
)

// verifySpace reports inconsistencies in the tables of the space extension and in the resources with address space.
func verifySpace(tx *store.Tx, fault func(format string, args ...any)) error {
	for _, check := range []func(*store.Tx, func(string, ...any)) error{verifySpans, verifyFree, verifyUsage, verifyWater, verifyClients,
		verifyReservations} {
		if err := check(tx, fault); err != nil {
			return err
		}
	}
	return nil
}

// verifyFree checks that the free space of every block and network is exactly its unused space. One query reads used and free intervals of
// all containers, ordered by container and address.
func verifyFree(tx *store.Tx, fault func(string, ...any)) error {
	if err := tx.ReportFaults(fault, "container %d does not exist, but has free space%s",
		"SELECT DISTINCT f.container, '' FROM free f LEFT JOIN resource r ON r.id = f.container WHERE r.id IS NULL"); err != nil {
		return err
	}
	containers := map[int64]*walk{}
	if err := tx.List(store.Query{From: store.Resources, Where: store.InCollection(spacesIn(tx).holders...)},
		func(r *store.Resource) error {
			if len(r.Low) != 17 || len(r.High) != 17 {
				fault("%s %d has no span", r.Type, r.ID)
				return nil
			}
			w := &walk{id: r.ID, kind: r.Type, whole: space.Range{Low: store.KeyAddr(r.Low), High: store.KeyAddr(r.High)}}
			if r.Collection == "networks" {
				w.whole = space.Hosts(w.whole)
			}
			w.next = w.whole.Low
			containers[r.ID] = w
			return nil
		}); err != nil {
		return err
	}
	if err := tx.Stream(func(scan func(...any) error) error {
		var container int64
		var low, high []byte
		var free bool
		if err := scan(&container, &low, &high, &free); err != nil {
			return err
		}
		if w := containers[container]; w != nil { // the parent is not a container: a different fault, or none
			w.step(fault, store.KeyAddr(low), store.KeyAddr(high), free)
		}
		return nil
	}, "SELECT parent, low, high, 0 FROM resource WHERE low IS NOT NULL AND collection IN ('blocks', 'networks', 'addresses')"+
		" UNION ALL SELECT container, low, high, 1 FROM free ORDER BY 1, 2"); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(containers)) {
		containers[id].end(fault)
	}
	return nil
}

// walk checks the used and free intervals of one container. They must follow one another without a gap or an overlap, and two free
// intervals must not touch.
type walk struct {
	id      int64
	kind    string
	whole   space.Range
	next    netip.Addr
	wasFree bool
}

func (w *walk) step(fault func(string, ...any), from, to netip.Addr, free bool) {
	if from != w.next || free && w.wasFree {
		fault("the free space of %s %d is wrong at %s: expected %s", w.kind, w.id, from, w.next)
	}
	w.next, w.wasFree = to.Next(), free
}

func (w *walk) end(fault func(string, ...any)) {
	end := w.whole.High.Next()
	if w.next != end && (w.next.IsValid() || end.IsValid()) {
		fault("the space of %s %d ends at %s, its free and used space before %s", w.kind, w.id, w.whole.High, addressOrEnd(w.next))
	}
}

// verifyUsage checks that the stored usage of blocks and networks equals newly counted usage.
func verifyUsage(tx *store.Tx, fault func(string, ...any)) error {
	counted, err := countUsage(tx)
	if err != nil {
		return err
	}
	if err := tx.ReportFaults(fault, "container %d does not exist, but its usage is stored%s",
		"SELECT DISTINCT u.container, '' FROM usage u LEFT JOIN resource r ON r.id = u.container WHERE r.id IS NULL"); err != nil {
		return err
	}
	written, err := storedUsage(tx, slices.Sorted(maps.Keys(counted)))
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(counted)) {
		if !maps.Equal(counted[id], written[id]) && len(counted[id])+len(written[id]) > 0 {
			fault("the stored usage of resource %d is %v instead of %v", id, written[id], counted[id])
		}
	}
	return nil
}

func addressOrEnd(a netip.Addr) string {
	if !a.IsValid() {
		return "the end of all addresses"
	}
	return a.String()
}

// verifySpans checks that siblings do not overlap and that every resource is within its parent.
func verifySpans(tx *store.Tx, fault func(string, ...any)) error {
	last := map[bool]*store.Resource{} // the previous resource that takes space (true) or covers it (false)
	err := tx.List(store.Query{From: store.Resources,
		Where: store.Compare{Field: store.Field{Kind: store.ColumnSpan, Path: []string{"low"}}, Op: "ne"},
		Order: []store.Order{{By: store.Field{Kind: store.ColumnInt, Path: []string{"parent"}}},
			{By: store.Field{Kind: store.ColumnSpan, Path: []string{"low"}}}},
	}, func(r *store.Resource) error {
		if r.Collection == "ipGroups" { // groups may overlap DHCP ranges
			return nil
		}
		takes := takesSpace(tx, r)
		if l := last[takes]; l != nil && l.Parent == r.Parent && string(r.Low) <= string(l.High) {
			fault("%s %d, %s, overlaps %s %d, %s", r.Type, r.ID, spanOf(r), l.Type, l.ID, spanOf(l))
		}
		last[takes] = r.Clone()
		return nil
	})
	if err != nil {
		return err
	}
	return tx.ReportFaults(fault, "resource %d, of type %s, does not lie within its parent",
		"SELECT r.id, r.type FROM resource r JOIN resource p ON p.id = r.parent WHERE r.low IS NOT NULL AND p.low IS NOT NULL AND (r.low < "+
			"p.low OR r.high > p.high)")
}

// verifyClients checks that hardware addresses and client identifiers are unique within a configuration.
func verifyClients(tx *store.Tx, fault func(string, ...any)) error {
	return tx.ReportFaults(fault, "configuration %d has more than one client %q",
		"SELECT configuration, key FROM resource WHERE collection IN ('macAddresses', 'clientIdentifiers') GROUP BY configuration, "+
			"collection, key HAVING count(*) > 1")
}

// verifyWater checks that every water level has an existing block, network or range.
func verifyWater(tx *store.Tx, fault func(string, ...any)) error {
	return tx.ReportFaults(fault, "resource %d does not exist, but its utilization threshold %s is stored",
		"SELECT w.container, w.level FROM water w LEFT JOIN resource r ON r.id = w.container WHERE r.id IS NULL")
}

// verifyReservations checks that every reserved address is reserved for a client.
func verifyReservations(tx *store.Tx, fault func(string, ...any)) error {
	return tx.ReportFaults(fault, "address %d, %s, is DHCP_RESERVED for no client: it has neither a macAddress nor a clientIdentifier",
		"SELECT r.id, coalesce(json_extract(r.body, '$.address'), '') FROM resource r WHERE r.collection = 'addresses' AND"+
			" json_extract(r.body, '$.state') = 'DHCP_RESERVED' AND NOT EXISTS (SELECT 1 FROM reference f WHERE f.source = r.id AND"+
			" f.field IN ('macAddress', 'clientIdentifier'))")
}
