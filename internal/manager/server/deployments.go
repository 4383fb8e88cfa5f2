package server

import (
	"portolan/internal/engine/store"
	"portolan/internal/manager/dhcp"
	"portolan/internal/manager/dhcppublish"
	"portolan/internal/manager/dnspublish"
	"portolan/internal/manager/fleet"
	"portolan/internal/manager/imports"
	"portolan/internal/manager/server/checkinapi"
	"portolan/internal/manager/serverconfig"
	"portolan/internal/manager/tftppublish"
	"portolan/internal/wire/checkin"
	"portolan/internal/wire/content"
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

// applicationsOf are the applications that serve the content of each service.
var applicationsOf = map[string][]string{
	serverconfig.ServiceDNS:  {checkin.Authority, checkin.Resolver},
	serverconfig.ServiceTFTP: {checkin.FileServer},
	dhcppublish.ServiceV4:    {checkin.DHCP},
	dhcppublish.ServiceV6:    {checkin.DHCP},
}

// Serving returns the content that a service point serves of a service, and the capabilities of the applications for it. Of several
// applications, it returns the earliest content.
func (p fleetPoints) Serving(tx *store.Tx, servicePoint, service string) (s dnspublish.Serving, err error) {
	is, err := p.fleet.Serves(tx, servicePoint, applicationsOf[service]...)
	s.Exists, s.Applications = is.Exists, applicationsOf[service]
	for _, a := range is.Applications {
		if isEarlier(a.Content, a.Waits) {
			a.Content = a.Waits
		}
		if s.Provides == nil || isEarlier(a.Content, s.Content) {
			s.Content = a.Content
		}
		if s.Provides == nil {
			s.Provides = checkin.Capabilities{}
		}
		for _, c := range a.Provides {
			s.Provides[c] = true
		}
		s.Trouble = append(s.Trouble, a.Trouble...)
	}
	if err == nil && s.Exists {
		s.Silent, err = p.fleet.IsSilent(tx, servicePoint)
	}
	return s, err
}

// isEarlier reports whether a revision is earlier than another one. No revision is earlier than any.
func isEarlier(one, other string) bool {
	a, err := content.ParseRevision(one)
	b, e := content.ParseRevision(other)
	return e == nil && (err != nil || a.Number < b.Number)
}

// planners returns the planners by the names of the applications that use their content.
func (m *Manager) planners() map[string]checkinapi.Planner {
	zones := dnspublish.Planner{Sealer: m.Address.Sealer}
	return map[string]checkinapi.Planner{checkin.Authority: zones, checkin.Resolver: zones, checkin.FileServer: tftppublish.Planner{},
		checkin.DHCP: dhcppublish.Planner{}}
}

// otherServices returns the services of deployments other than DNS.
func (m *Manager) otherServices() map[string]dnspublish.Service {
	return map[string]dnspublish.Service{dhcppublish.ServiceV4: dhcppublish.Service{API: m.Address},
		dhcppublish.ServiceV6:    dhcppublish.Service{API: m.Address, V6: true},
		serverconfig.ServiceTFTP: tftppublish.Service{API: m.Address}}
}

// newLeaseImport returns the importer of leases of other DHCP servers.
func (m *Manager) newLeaseImport(tx *store.Tx, configuration int64) imports.LeaseTaker {
	return dhcp.NewLeaseImport(tx, m.Address, configuration, dhcppublish.NetworkChanged)
}

// takeLeases connects the records about leases of service points to the leases of the address API.
func (m *Manager) takeLeases() {
	reporter := dhcp.NewReporter(m.Address)
	reporter.Serves, reporter.Missing, reporter.Restored = dhcppublish.Serves, dhcppublish.RequestLeases, dhcppublish.NetworkChanged
	m.Fleet.RegisterTaker(dhcplease.Stream, fleet.StreamTaker{Decode: reporter.Decode,
		Apply: func(tx *store.Tx, from fleet.StreamSource, records []any) error {
			return reporter.Apply(tx, from.ServicePoint, from.Node, records)
		}})
	dhcp.Connect(m.Address, fleet.ReadConnection, dhcppublish.ServersOf)
	observations := dhcp.NewObservationReporter(m.Address)
	observations.Refused = m.metrics.clientRefused
	m.Fleet.RegisterTaker(dhcplease.Observations, fleet.StreamTaker{Decode: observations.Decode,
		Apply: func(tx *store.Tx, from fleet.StreamSource, records []any) error {
			return observations.Apply(tx, from.ServicePoint, records)
		}})
}
