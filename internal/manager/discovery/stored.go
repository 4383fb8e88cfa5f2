package discovery

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/netip"
	"slices"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/ipam"
)

// writeObservations stores the seen addresses, in several transactions.
func (s *Sweeper) writeObservations(ctx context.Context, w *sweep) error {
	all := make([]*Observation, 0, len(w.seen))
	for _, x := range w.seen {
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b *Observation) int { return a.Address.Compare(b.Address) })
	return s.writeAll(ctx, w, all)
}

// writeAll stores copies of observations of the configuration of a sweep, in several transactions.
func (s *Sweeper) writeAll(ctx context.Context, w *sweep, all []*Observation) error {
	for part := range slices.Chunk(all, observationsAtOnce) {
		if err := s.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
			for _, x := range part {
				one := *x
				if err := writeObservation(tx, s.api, w.head.Config, w.head.ID, &one); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// storedValues are the hardware address and the host names of an address in the database.
type storedValues struct {
	mac   string
	names []string
}

// readStored reads the stored values of the seen addresses, so that the transaction that settles the run is short.
func (s *Sweeper) readStored(ctx context.Context, w *sweep) error {
	inside, _ := w.byNetwork()
	return s.api.Store.View(ctx, func(tx *store.Tx) error {
		w.stored = map[int64]storedValues{}
		for network, list := range inside {
			for _, a := range list {
				x := w.seen[a]
				if x.MACAddress == "" && x.HostName == "" {
					continue
				}
				row, err := ipam.AddressAt(tx, network, a)
				if store.IsNotFound(err) {
					continue
				}
				if err != nil {
					return err
				}
				if w.stored[row.ID], err = readValues(tx, s.api, row.ID); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// readValues returns the stored values of an address.
func readValues(tx *store.Tx, api *resource.API, address int64) (v storedValues, err error) {
	macs, err := tx.Links(address, "macAddress")
	if err != nil {
		return v, err
	}
	for _, id := range macs {
		row, err := tx.Get(id)
		if err != nil {
			return v, err
		}
		o, err := api.Object(row)
		if err != nil {
			return v, err
		}
		v.mac = api.TypeNamed(row.Type).TextOf(o, "address")
	}
	err = tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("resourceRecords"),
		store.LinksTo{Field: "addresses", Targets: []int64{address}}}}, func(r *store.Resource) error {
		var body struct{ AbsoluteName string }
		if err := json.Unmarshal(r.Body, &body); err != nil {
			return err
		}
		v.names = append(v.names, body.AbsoluteName)
		return nil
	})
	return v, err
}

// discoveredKey identifies a discovered device of a policy by its type and its address.
type discoveredKey struct{ kind, address string }

// compare orders devices by their type and address.
func (k discoveredKey) compare(other discoveredKey) int {
	return cmp.Or(cmp.Compare(k.kind, other.kind), findingKey{address: k.address}.compare(findingKey{address: other.address}))
}

// updateDiscovered replaces the discovered devices of the policy by the routers, switches and hosts that were seen.
func (w *sweep) updateDiscovered(c *resource.Change) error {
	wanted := map[discoveredKey]func(o schema.Object){}
	for _, d := range w.devices {
		kind := "DiscoveredSwitch"
		if d.IsRouter {
			kind = "DiscoveredRouter"
		}
		wanted[discoveredKey{kind, d.address.String()}] = func(o schema.Object) {
			schema.HeadOf(o).Name = d.Name
			switch x := o.(type) {
			case *DiscoveredRouter:
				x.Address, x.Description, x.Location = d.address.String(), d.Description, d.Location
			case *DiscoveredSwitch:
				x.Address, x.Description, x.Location = d.address.String(), d.Description, d.Location
			}
		}
	}
	for a, seen := range w.seen {
		wanted[discoveredKey{"DiscoveredHost", a.String()}] = func(o schema.Object) {
			if x, ok := o.(*DiscoveredHost); ok {
				x.Address, x.MACAddress = a.String(), seen.MACAddress
			}
		}
	}
	if err := c.Each(store.All{store.InCollection("discoveredDevices"), store.HasParent(w.head.ID)},
		func(row *store.Resource, o schema.Object) error {
			key := discoveredKey{kind: row.Type}
			mac := ""
			switch x := o.(type) {
			case *DiscoveredRouter:
				key.address = x.Address
			case *DiscoveredSwitch:
				key.address = x.Address
			case *DiscoveredHost:
				key.address, mac = x.Address, x.MACAddress
			}
			set, there := wanted[key]
			if a, err := netip.ParseAddr(key.address); err == nil && key.kind == "DiscoveredHost" && there && w.seen[a].MACAddress == mac {
				delete(wanted, key)
				return nil
			}
			if !there {
				return c.Following().Delete(row)
			}
			delete(wanted, key)
			_, err := c.Following().Change(row, set)
			return err
		}); err != nil {
		return err
	}
	for _, key := range slices.SortedFunc(maps.Keys(wanted), discoveredKey.compare) {
		set := wanted[key]
		t := c.API.TypeNamed(key.kind)
		o := t.New()
		h := schema.HeadOf(o)
		h.Type, h.Parent, h.Config = key.kind, w.head.ID, w.head.Config
		set(o)
		if _, err := c.Following().Create(t, o); err != nil {
			return err
		}
	}
	return nil
}
