package dnspublish_test

import (
	"os"
	"testing"

	"portolan/internal/engine/resource"
	"portolan/internal/manager/dhcppublish"
	"portolan/internal/manager/dns"
	"portolan/internal/manager/dnspublish"
	"portolan/internal/manager/dnssec"
	"portolan/internal/manager/imports"
	"portolan/internal/manager/ipam"
	"portolan/internal/manager/serverconfig"
	"portolan/internal/manager/tftppublish"
	"portolan/internal/testkit/apitest"
	"portolan/internal/testkit/deploytest"
	"portolan/internal/wire/checkin"
)

func TestMain(m *testing.M) { os.Exit(apitest.Run(m)) }

// TestOnPostgreSQL runs the tests of this package on PostgreSQL.
func TestOnPostgreSQL(t *testing.T) { apitest.RunOnPostgreSQL(t) }

// manager is the API with a deployer, and service points that confirm what a test says.
type manager struct {
	*apitest.API
	points *deploytest.Points
}

// packages are the registrations that the tests need.
var packages = []func(*resource.Registry){ipam.Register, dns.Register, dnssec.Register, serverconfig.Register, dnspublish.Register}

// startAlone returns the API for one client.
func startAlone(t *testing.T) *manager {
	t.Helper()
	return newManager(apitest.New(t, packages...))
}

// start returns the API for several clients.
func start(t *testing.T) *manager {
	t.Helper()
	return newManager(apitest.NewConcurrent(t, packages...))
}

// plan creates a DNS server with a zone below a configuration.
func (m *manager) plan(configuration string) *deploytest.Plan {
	m.T.Helper()
	return deploytest.NewPlan(&m.Client, configuration, "wire")
}

// newManager starts the deployer of an API.
func newManager(a *apitest.API) *manager {
	m := &manager{API: a, points: &deploytest.Points{Provides: checkin.Capabilities{checkin.AnswersZones: true}}}
	resource.Provide(a.Address.Provisions, dnspublish.Options{Services: map[string]dnspublish.Service{
		dhcppublish.ServiceV4: dhcppublish.Service{API: a.Address}, serverconfig.ServiceTFTP: tftppublish.Service{API: a.Address}}})
	a.REST.Apply = imports.Apply(a.Address, a.REST.Show)
	a.Work(dnspublish.NewDeployer(a.Address, m.points, apitest.Log()).Run)
	return m
}
