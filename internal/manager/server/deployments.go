package server

import (
	"portolan/internal/engine/store"
	"portolan/internal/manager/dhcp"
	"portolan/internal/manager/dhcppublish"
	"portolan/internal/manager/dnspublish"
	"portolan/internal/manager/fleet"
	"portolan/internal/manager/server/checkinapi"
	"portolan/internal/wire/checkin"
	"portolan/internal/wire/dhcplease"
)

// fleetPoints gives deployments access to the fleet. The two packages do not import each other.
type fleetPoints struct{ fleet *fleet.Service }

// Changed records that the content of a service point has changed.
func (p fleetPoints) Changed(tx *store.Tx, servicePoint string) {
	p.fleet.ContentChanged(tx, servicePoint)
}

// Wake answers the waiting requests of a service point after the commit.
func (p fleetPoints) Wake(servicePoint string) { p.fleet.Wake(servicePoint) }

// Serving returns the content that the name servers and resolvers of a service point serve, and its capabilities.
func (p fleetPoints) Serving(tx *store.Tx, servicePoint string) (s dnspublish.Serving, err error) {
	return p.serving(tx, servicePoint, checkin.Authority, checkin.Resolver)
}

// applicationsOf are the applications of services other than DNS.
var applicationsOf = map[string]string{dhcppublish.ServiceV4: checkin.DHCP, dhcppublish.ServiceV6: checkin.DHCP}

// ServingAs returns the content that the application of a service serves.
func (p fleetPoints) ServingAs(tx *store.Tx, servicePoint, service string) (s dnspublish.Serving, err error) {
	return p.serving(tx, servicePoint, applicationsOf[service])
}

func (p fleetPoints) serving(tx *store.Tx, servicePoint string, applications ...string) (s dnspublish.Serving, err error) {
	is, err := p.fleet.Serves(tx, servicePoint, applications...)
	s = dnspublish.Serving{There: is.There, Provides: is.Provides, Content: is.Content, Trouble: is.Trouble}
	if err == nil && s.There {
		s.Silent, err = p.fleet.Silent(tx, servicePoint)
	}
	return s, err
}

// planners returns the planners by the names of the applications that use their content.
func (m *Manager) planners() map[string]checkinapi.Planner {
	zones := dnspublish.Planner{Sealer: m.Address.Sealer}
	return map[string]checkinapi.Planner{checkin.Authority: zones, checkin.Resolver: zones, checkin.DHCP: dhcppublish.Planner{}}
}

// otherServices returns the services of deployments other than DNS.
func (m *Manager) otherServices() map[string]dnspublish.Service {
	return map[string]dnspublish.Service{dhcppublish.ServiceV4: dhcppublish.Service{API: m.Address}}
}

// takeLeases connects the records about leases of service points to the leases of the address API.
func (m *Manager) takeLeases() {
	reporter := dhcp.NewReporter(m.Address)
	m.Fleet.TakeStream(dhcplease.Stream, fleet.StreamTaker{Decode: reporter.Decode,
		Apply: func(tx *store.Tx, from fleet.StreamSource, records []any) error {
			return reporter.Apply(tx, from.ServicePoint, from.Node, records)
		}})
}
