package imports_test

import (
	"log/slog"
	"os"
	"testing"

	"portolan/internal/manager/dhcp"
	"portolan/internal/manager/dns"
	"portolan/internal/manager/dns/transfer"
	"portolan/internal/manager/dnspublish"
	"portolan/internal/manager/dnssec"
	"portolan/internal/manager/imports"
	"portolan/internal/manager/ipam"
	"portolan/internal/manager/serverconfig"
	"portolan/internal/testkit/apitest"
)

func TestMain(m *testing.M) { os.Exit(apitest.Run(m)) }

// TestOnPostgreSQL runs the tests of this package again on PostgreSQL.
func TestOnPostgreSQL(t *testing.T) { apitest.RunOnPostgreSQL(t) }

// start returns a test API for one client, with the packages that this package's tests need.
func start(t *testing.T) *apitest.API {
	t.Helper()
	return withWorkers(apitest.New(t, ipam.Register, dns.Register, dnssec.Register, dhcp.Register, transfer.Register,
		serverconfig.Register, dnspublish.Register, imports.Register))
}

// startConcurrent is start for tests with several clients, or of the worker.
func startConcurrent(t *testing.T) *apitest.API {
	t.Helper()
	return withWorkers(apitest.NewConcurrent(t, ipam.Register, dns.Register, dnssec.Register, dhcp.Register, transfer.Register,
		serverconfig.Register, dnspublish.Register, imports.Register))
}

// withWorkers begins the work of this package.
func withWorkers(a *apitest.API) *apitest.API {
	a.REST.Apply = imports.Apply(a.Address, a.REST.Show)
	a.Work(imports.NewRunner(a.Address, a.REST.Show, a.Identity.Acting, slog.New(slog.DiscardHandler)).Run)
	return a
}
