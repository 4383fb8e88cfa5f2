package dhcppublish_test

import (
	"log/slog"
	"os"
	"testing"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dhcp"
	"portolan/internal/manager/dhcppublish"
	"portolan/internal/manager/dnspublish"
	"portolan/internal/manager/imports"
	"portolan/internal/manager/server/addressapi"
	"portolan/internal/testkit/apitest"
	"portolan/internal/testkit/deploytest"
	"portolan/internal/testkit/leasetest"
	"portolan/internal/wire/checkin"
)

func TestMain(m *testing.M) { os.Exit(apitest.Run(m)) }

// TestOnPostgreSQL runs the tests of this package again on PostgreSQL.
func TestOnPostgreSQL(t *testing.T) { apitest.RunOnPostgreSQL(t) }

// manager is the API with deployments of DHCP, live changes, imports of leases, and service points that confirm what a test says.
type manager struct {
	*leasetest.Manager
	points *deploytest.Points
}

// packages returns the registrations that the tests need.
func packages() []func(*resource.Registry) {
	return append(leasetest.Packages(), dnspublish.Register, imports.Register)
}

// startAlone returns the API for one client.
func startAlone(t *testing.T) *manager {
	t.Helper()
	return newManager(apitest.New(t, packages()...))
}

// start returns the API for several clients.
func start(t *testing.T) *manager {
	t.Helper()
	return newManager(apitest.NewConcurrent(t, packages()...))
}

// newManager starts the workers of an API.
func newManager(a *apitest.API) *manager {
	m := &manager{Manager: leasetest.New(a), points: &deploytest.Points{Provides: checkin.Capabilities{}}}
	resource.Provide(a.Address.Provisions, dnspublish.Options{Services: map[string]dnspublish.Service{
		dhcppublish.ServiceV4: dhcppublish.Service{API: a.Address}, dhcppublish.ServiceV6: dhcppublish.Service{API: a.Address, V6: true}}})
	a.Mount((&addressapi.API{REST: a.REST, Address: a.Address, Identity: a.Identity, Log: slog.New(slog.DiscardHandler)}).Family())
	log := apitest.Log()
	a.Work(dnspublish.NewDeployer(a.Address, m.points, log).Run)
	a.Work(dhcppublish.NewLive(a.Address, m.points, log).Run)
	importer := imports.NewRunner(a.Address, a.REST.Show, a.Identity.Acting, log)
	importer.Leases = func(tx *store.Tx, configuration int64) imports.LeaseTaker {
		return dhcp.NewLeaseImport(tx, a.Address, configuration, dhcppublish.NetworkChanged)
	}
	a.Work(importer.Run)
	return m
}
