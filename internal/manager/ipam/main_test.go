package ipam_test

import (
	"os"
	"testing"

	"portolan/internal/manager/dhcp"
	"portolan/internal/manager/dns"
	"portolan/internal/manager/ipam"
	"portolan/internal/manager/serverconfig"
	"portolan/internal/testkit/apitest"
)

func TestMain(m *testing.M) { os.Exit(apitest.Run(m)) }

// TestOnPostgreSQL runs the tests of this package again on PostgreSQL.
func TestOnPostgreSQL(t *testing.T) { apitest.RunOnPostgreSQL(t) }

// start returns a test API with the packages that this package's tests need.
func start(t *testing.T) *apitest.API {
	t.Helper()
	return apitest.New(t, ipam.Register, dns.Register, dhcp.Register, serverconfig.Register)
}

// startConcurrent is start for several clients.
func startConcurrent(t *testing.T) *apitest.API {
	t.Helper()
	return apitest.NewConcurrent(t, ipam.Register, dns.Register, dhcp.Register, serverconfig.Register)
}
