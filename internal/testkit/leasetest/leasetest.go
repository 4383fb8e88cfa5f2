// Package leasetest provides the address API with DHCP servers that report leases to it without a service point.
package leasetest

import (
	"cmp"
	"encoding/json"
	"sync"
	"time"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dhcp"
	"portolan/internal/manager/dhcppublish"
	"portolan/internal/manager/dns"
	"portolan/internal/manager/dnssec"
	"portolan/internal/manager/ipam"
	"portolan/internal/manager/serverconfig"
	"portolan/internal/manager/telemetry"
	"portolan/internal/testkit/apitest"
	"portolan/internal/wire/dhcplease"
)

// Packages returns the registrations that the leases of DHCP servers need.
func Packages() []func(*resource.Registry) {
	return []func(*resource.Registry){ipam.Register, dns.Register, dnssec.Register, serverconfig.Register, dhcp.Register, dhcppublish.Register,
		telemetry.Register}
}

// Manager is the address API with the leases of DHCP servers, which report to it without a service point. All servers are connected.
type Manager struct {
	*apitest.API
	leases       *dhcp.Reporter
	observations *dhcp.ObservationReporter
	// deleted has the names of deleted service points.
	deleted sync.Map
}

// New connects the reports of DHCP servers to an API with Packages, as a manager does.
func New(a *apitest.API) *Manager {
	m := &Manager{API: a, leases: dhcp.NewReporter(a.Address), observations: dhcp.NewObservationReporter(a.Address)}
	m.leases.Serves, m.leases.Missing, m.leases.Restored = dhcppublish.Serves, dhcppublish.RequestLeases, dhcppublish.NetworkChanged
	dhcp.Connect(a.Address, func(_ *store.Tx, servicePoint string) (there, connected bool, err error) {
		_, deleted := m.deleted.Load(servicePoint)
		return !deleted, !deleted, nil
	}, dhcppublish.ServersOf)
	return m
}

// DeleteServicePoint removes a service point from the fleet. Its server remains.
func (m *Manager) DeleteServicePoint(name string) { m.deleted.Store(name, true) }

// LeaseServer creates a server that is linked to a service point with its name.
func (m *Manager) LeaseServer(configuration, name string) (server string, source *Source) {
	m.T.Helper()
	server = m.ID("/api/v2/configurations/"+configuration+"/servers", `{"type":"Server","name":"`+name+`","profile":"DNS_DHCP_SERVER_20",`+
		`"servicePoint":"`+name+`","interfaces":[{"managementAddress":"10.0.0.5"}]}`)
	return server, m.SourceOf(name)
}

// SourceOf returns the DHCP server of a service point.
func (m *Manager) SourceOf(servicePoint string) *Source { return &Source{m: m, point: servicePoint} }

// Source is the DHCP server of a service point.
type Source struct {
	m     *Manager
	point string
	// Sequence is the number of the last record.
	Sequence uint64
}

// Next returns a record with the next sequence. The journal is j by default.
func (s *Source) Next(r dhcplease.Record) dhcplease.Record {
	s.Sequence++
	r.Journal, r.Sequence = cmp.Or(r.Journal, "j"), s.Sequence
	return r
}

// Send applies a record with the next sequence.
func (s *Source) Send(r dhcplease.Record) {
	s.m.T.Helper()
	s.Post(s.Next(r))
}

// Post applies a record.
func (s *Source) Post(r dhcplease.Record) {
	s.m.T.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		s.m.T.Fatal(err)
	}
	one, err := s.m.leases.Decode(text)
	if err != nil {
		s.m.T.Fatal(err)
	}
	if err := s.apply([]any{one}); err != nil {
		s.m.T.Fatal(err)
	}
}

// Apply applies decoded records in one transaction. It can be called from any goroutine: an error fails the test and does not end it.
func (s *Source) Apply(records []any) {
	s.m.T.Helper()
	if err := s.apply(records); err != nil {
		s.m.T.Error(err)
	}
}

func (s *Source) apply(records []any) error {
	return s.m.Store.Update(s.m.T.Context(), store.Author{}, func(tx *store.Tx) error {
		return s.m.leases.Apply(tx, s.point, 1, records)
	})
}

// Event sends an event about a lease.
func (s *Source) Event(kind dhcplease.Kind, at time.Time, l dhcplease.Lease) {
	s.m.T.Helper()
	s.Send(dhcplease.Record{At: at.UnixMilli(), Event: &dhcplease.Event{Kind: kind, Lease: l}})
}

// Observe returns a function that sends observations as a new server.
func (m *Manager) Observe(configuration, name string) (server string, send func(dhcplease.Observation)) {
	m.T.Helper()
	server, _ = m.LeaseServer(configuration, name)
	return server, func(o dhcplease.Observation) {
		m.T.Helper()
		text, err := json.Marshal(o)
		if err != nil {
			m.T.Fatal(err)
		}
		one, err := m.observations.Decode(text)
		if err != nil {
			m.T.Fatal(err)
		}
		if err := m.Store.Update(m.T.Context(), store.Author{}, func(tx *store.Tx) error {
			return m.observations.Apply(tx, name, []any{one})
		}); err != nil {
			m.T.Fatal(err)
		}
	}
}
