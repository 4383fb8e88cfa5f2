package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
	"portolan/internal/manager/serverconfig"
	"portolan/internal/wire/checkin"
)

// nameServerOf returns the address and port at which a server answers DNS queries: the first plain listener of the name server application
// on its service point.
func (m *Manager) nameServerOf(ctx context.Context, server *store.Resource) (at netip.AddrPort, err error) {
	o, err := m.Address.Object(server)
	if err != nil {
		return at, err
	}
	point := serverconfig.FieldsOf(o).ServicePoint
	if point == "" {
		return at, problem.BadRequest("ServerNotConnected", "server %s is not linked to a service point",
			problem.Describe(server.ID, server.Name))
	}
	applications, err := m.Fleet.Applications(ctx, point)
	if err != nil {
		return at, err
	}
	for _, one := range applications {
		if one.Name != checkin.Authority || one.Status == checkin.Deleted {
			continue
		}
		var c struct {
			Listen []struct {
				Address    string
				Port       uint16
				TLS, HTTPS bool
			}
		}
		if err := json.Unmarshal(one.Configuration, &c); err != nil {
			return at, fmt.Errorf("read the configuration of application %s: %w", one.ID, err)
		}
		for _, l := range c.Listen {
			address, err := netip.ParseAddr(l.Address)
			if err != nil || l.TLS || l.HTTPS {
				continue
			}
			if l.Port == 0 {
				l.Port = 53
			}
			if address.IsUnspecified() {
				if address, err = m.primaryAddress(ctx, point, address); err != nil {
					return at, err
				}
			}
			return netip.AddrPortFrom(address, l.Port), nil
		}
	}
	return at, problem.BadRequest("ServerNotConnected",
		"the service point of server %s runs no name server application that listens over UDP: "+
			"deploy dns-authoritative-service to it", problem.Describe(server.ID, server.Name))
}

// primaryAddress returns an address of a service point of the same family as the unspecified address that it listens at.
func (m *Manager) primaryAddress(ctx context.Context, point string, family netip.Addr) (netip.Addr, error) {
	d, err := m.Fleet.Get(ctx, point)
	if err != nil {
		return family, err
	}
	for _, n := range d.Nodes {
		for _, a := range n.Addresses {
			address, err := netip.ParseAddr(a.IPAddress)
			if err == nil && a.Type != checkin.Anycast && (address.Is4() || family.Is6()) {
				return address, nil
			}
		}
	}
	return family, problem.BadRequest("ServerNotConnected", "service point %q has reported no address: wait until it is connected", point)
}
