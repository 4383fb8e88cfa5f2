package workflow_test

import (
	"os"
	"testing"

	"portolan/internal/manager/dns"
	"portolan/internal/manager/ipam"
	"portolan/internal/manager/serverconfig"
	"portolan/internal/manager/workflow"
	"portolan/internal/testkit/apitest"
)

func TestMain(m *testing.M) { os.Exit(apitest.Run(m)) }

// TestOnPostgreSQL runs the tests of this package again on PostgreSQL.
func TestOnPostgreSQL(t *testing.T) { apitest.RunOnPostgreSQL(t) }

// start returns a test API for one client, with the packages that this package's tests need.
func start(t *testing.T) *apitest.API {
	t.Helper()
	return withWorkers(apitest.New(t, ipam.Register, dns.Register, serverconfig.Register, workflow.Register))
}

// withWorkers begins the work of this package.
func withWorkers(a *apitest.API) *apitest.API {
	workflow.Open(a.Address, a.Identity.Acting)
	return a
}
