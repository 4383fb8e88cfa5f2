package server

import (
	"context"
	"fmt"
	"net/netip"

	"portolan/internal/base/space"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dns"
	"portolan/internal/manager/ipam"
)

// sampler creates the sample organization by the rules of the API.
type sampler struct {
	c             *resource.Change
	configuration int64
}

// Sample creates the data of `portolan demo` in one transaction: an organization with about 200 networks, 10,000 addresses, five zones and
// two views. It does nothing if the data exists.
func Sample(ctx context.Context, a *resource.API) error {
	return a.Store.Update(ctx, store.Author{Comment: "sample data"}, func(tx *store.Tx) error {
		there, err := tx.ByName("configurations", 0, SampleName)
		if err != nil || len(there) > 0 {
			return err
		}
		tx.Describe("IMPORT_CONFIGURATION", "Made the sample organisation")
		s := &sampler{c: &resource.Change{Tx: tx, API: a, Extra: map[string]string{}}}
		x := newObject(a, "Configuration").(*ipam.Configuration)
		x.Description = "A made-up organisation to look around in."
		if s.configuration, err = s.create("Configuration", x, resource.RootID, SampleName); err != nil {
			return err
		}
		zones, err := s.names()
		if err != nil {
			return err
		}
		return s.space(zones)
	})
}

// SampleName is the name of the sample configuration.
const SampleName = "Harbour Authority"

func newObject(a *resource.API, name string) schema.Object {
	t, _ := a.Type(name)
	return t.New()
}

// create creates a resource and returns its id.
func (s *sampler) create(name string, o schema.Object, parent int64, called string) (int64, error) {
	t, _ := s.c.API.Type(name)
	h := schema.HeadOf(o)
	h.Type, h.Name, h.Parent, h.Config = name, called, parent, s.configuration
	c := *s.c
	c.SetFields = map[string]bool{}
	row, err := c.Create(t, o)
	if err != nil {
		return 0, fmt.Errorf("sample %s %s: %w", name, called, err)
	}
	return row.ID, nil
}

// names creates two views and five zones and returns the zones for hosts.
func (s *sampler) names() (zones []int64, err error) {
	internal, err := s.create("View", newObject(s.c.API, "View"), s.configuration, "internal")
	if err != nil {
		return nil, err
	}
	external, err := s.create("View", newObject(s.c.API, "View"), s.configuration, "external")
	if err != nil {
		return nil, err
	}
	zone := func(parent int64, name string) (int64, error) {
		x := newObject(s.c.API, "Zone").(*dns.Zone)
		x.DeploymentEnabled = true
		return s.create("Zone", x, parent, name)
	}
	top, err := zone(internal, "example")
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"harbour", "pilots"} {
		id, err := zone(top, name)
		if err != nil {
			return nil, err
		}
		zones = append(zones, id)
	}
	public, err := zone(external, "example")
	if err != nil {
		return nil, err
	}
	id, err := zone(public, "harbour")
	if err != nil {
		return nil, err
	}
	x := newObject(s.c.API, "TXTRecord").(*dns.TXTRecord)
	x.Text = "v=spf1 -all"
	_, err = s.create("TXTRecord", x, id, "")
	return zones, err
}

var (
	samplePlaces = []string{"Quay", "Dock", "Lighthouse", "Customs", "Yard", "Terminal", "Office", "Workshop"}
	sampleHosts  = []string{"crane", "scale", "camera", "printer", "desk", "radio", "gauge", "gate"}
)

// space creates the blocks, 200 networks and their addresses; every tenth host has a name.
func (s *sampler) space(zones []int64) error {
	v4 := newObject(s.c.API, "IPv4Block").(*ipam.IPv4Block)
	v4.Range = schema.Range{Range: space.FromPrefix(netip.MustParsePrefix("10.0.0.0/8"))}
	block4, err := s.create("IPv4Block", v4, s.configuration, "Harbour")
	if err != nil {
		return err
	}
	v6 := newObject(s.c.API, "IPv6Block").(*ipam.IPv6Block)
	v6.Range = schema.Range{Range: space.FromPrefix(netip.MustParsePrefix("2001:db8::/32"))}
	block6, err := s.create("IPv6Block", v6, s.configuration, "Harbour")
	if err != nil {
		return err
	}
	for site := range 10 {
		place := samplePlaces[site%len(samplePlaces)]
		b := newObject(s.c.API, "IPv4Block").(*ipam.IPv4Block)
		b.Range = schema.Range{Range: space.FromPrefix(netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(site), 0, 0}), 16))}
		id, err := s.create("IPv4Block", b, block4, fmt.Sprintf("%s %d", place, site+1))
		if err != nil {
			return err
		}
		for n := range 18 {
			if err := s.network4(id, site, n, zones[n%len(zones)]); err != nil {
				return err
			}
		}
		for n := range 2 {
			if err := s.network6(block6, site, n); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *sampler) network4(block int64, site, n int, zone int64) error {
	x := newObject(s.c.API, "IPv4Network").(*ipam.IPv4Network)
	x.Range = schema.Range{Range: space.FromPrefix(netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(site), byte(n), 0}), 24))}
	id, err := s.create("IPv4Network", x, block, fmt.Sprintf("%s %d floor %d", samplePlaces[site%len(samplePlaces)], site+1, n+1))
	if err != nil {
		return err
	}
	for i := range 54 {
		a := newObject(s.c.API, "IPv4Address").(*ipam.IPv4Address)
		a.State = "STATIC"
		name := fmt.Sprintf("%s-%d-%d-%d", sampleHosts[i%len(sampleHosts)], site+1, n+1, i+1)
		address, err := s.create("IPv4Address", a, id, name)
		if err != nil {
			return err
		}
		if i%10 != 0 {
			continue
		}
		h := newObject(s.c.API, "HostRecord").(*dns.HostRecord)
		h.ReverseRecord = true
		h.Addresses = schema.RefList{IsSet: true, Items: []schema.RefItem{{ID: address}}}
		if _, err := s.create("HostRecord", h, zone, name); err != nil {
			return err
		}
	}
	return nil
}

func (s *sampler) network6(block int64, site, n int) error {
	x := newObject(s.c.API, "IPv6Network").(*ipam.IPv6Network)
	prefix := netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, byte(site), byte(n)})
	x.Range = schema.Range{Range: space.FromPrefix(netip.PrefixFrom(prefix, 64))}
	id, err := s.create("IPv6Network", x, block, fmt.Sprintf("%s %d, IPv6 %d", samplePlaces[site%len(samplePlaces)], site+1, n+1))
	if err != nil {
		return err
	}
	for i := range 5 {
		a := newObject(s.c.API, "IPv6Address").(*ipam.IPv6Address)
		a.State = "STATIC"
		if _, err := s.create("IPv6Address", a, id, fmt.Sprintf("%s6-%d-%d-%d", sampleHosts[i%len(sampleHosts)], site+1, n+1, i+1)); err != nil {
			return err
		}
	}
	return nil
}
