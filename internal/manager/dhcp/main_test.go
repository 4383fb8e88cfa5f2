package dhcp_test

import (
	"cmp"
	"encoding/json"
	"os"
	"testing"
	"time"

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

func TestMain(m *testing.M) { os.Exit(apitest.Run(m)) }

// TestOnPostgreSQL runs the tests of this package again on PostgreSQL.
func TestOnPostgreSQL(t *testing.T) { apitest.RunOnPostgreSQL(t) }

// manager is the API with the leases of DHCP servers, which report to it without a service point.
type manager struct {
	*apitest.API
	leases       *dhcp.Reporter
	observations *dhcp.ObservationReporter
}

// startManager returns the API for several clients.
func startManager(t *testing.T) *manager {
	t.Helper()
	return newManager(apitest.NewConcurrent(t, ipam.Register, dns.Register, dnssec.Register, serverconfig.Register, dhcp.Register,
		dhcppublish.Register, telemetry.Register))
}

// startAlone is startManager for one client.
func startAlone(t *testing.T) *manager {
	t.Helper()
	return newManager(apitest.New(t, ipam.Register, dns.Register, dnssec.Register, serverconfig.Register, dhcp.Register, dhcppublish.Register,
		telemetry.Register))
}

// newManager connects the reporters as a manager does. All servers are connected.
func newManager(a *apitest.API) *manager {
	m := &manager{API: a, leases: dhcp.NewReporter(a.Address), observations: dhcp.NewObservationReporter(a.Address)}
	m.leases.Serves, m.leases.Missing, m.leases.Restored = dhcppublish.Serves, dhcppublish.RequestLeases, dhcppublish.NetworkChanged
	dhcp.Connect(a.Address, func(*store.Tx, string) (bool, bool, error) { return true, true, nil }, dhcppublish.ServersOf)
	return m
}

// filter is the query parameter of a filter.
func filter(text string) string { return apitest.Filter(text) }

// leaseServer creates a server that is linked to a service point with its name.
func (m *manager) leaseServer(configuration, name string) (server string, source *leaseSource) {
	m.T.Helper()
	server = m.ID("/api/v2/configurations/"+configuration+"/servers", `{"type":"Server","name":"`+name+`","profile":"DNS_DHCP_SERVER_20",`+
		`"servicePoint":"`+name+`","interfaces":[{"managementAddress":"10.0.0.5"}]}`)
	return server, &leaseSource{m: m, point: name}
}

// leaseSource is the DHCP server of a service point.
type leaseSource struct {
	m        *manager
	point    string
	sequence uint64
}

// send applies a record with the next sequence.
func (s *leaseSource) send(r dhcplease.Record) {
	s.m.T.Helper()
	s.sequence++
	r.Journal, r.Sequence = cmp.Or(r.Journal, "j"), s.sequence
	s.post(r)
}

// post applies a record.
func (s *leaseSource) post(r dhcplease.Record) {
	s.m.T.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		s.m.T.Fatal(err)
	}
	one, err := s.m.leases.Decode(text)
	if err != nil {
		s.m.T.Fatal(err)
	}
	if err := s.m.Store.Update(s.m.T.Context(), store.Author{}, func(tx *store.Tx) error {
		return s.m.leases.Apply(tx, s.point, 1, []any{one})
	}); err != nil {
		s.m.T.Fatal(err)
	}
}

// event sends an event about a lease.
func (s *leaseSource) event(kind dhcplease.Kind, at time.Time, l dhcplease.Lease) {
	s.m.T.Helper()
	s.send(dhcplease.Record{At: at.UnixMilli(), Event: &dhcplease.Event{Kind: kind, Lease: l}})
}

// observe returns a function that sends observations as a new server.
func (m *manager) observe(configuration, name string) (server string, send func(dhcplease.Observation)) {
	m.T.Helper()
	server, _ = m.leaseServer(configuration, name)
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

// int64Of parses an id.
func int64Of(t testing.TB, text string) (n int64) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &n); err != nil {
		t.Fatal(err)
	}
	return n
}
