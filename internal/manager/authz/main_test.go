package authz_test

import (
	"os"
	"testing"

	"portolan/internal/manager/dhcp"
	"portolan/internal/manager/dns"
	"portolan/internal/manager/dnspublish"
	"portolan/internal/manager/dnssec"
	"portolan/internal/manager/ipam"
	"portolan/internal/manager/serverconfig"
	"portolan/internal/manager/webhook"
	"portolan/internal/manager/workflow"
	"portolan/internal/testkit/apitest"
)

func TestMain(m *testing.M) { os.Exit(apitest.Run(m)) }

// TestOnPostgreSQL runs the tests of the package on PostgreSQL.
func TestOnPostgreSQL(t *testing.T) { apitest.RunOnPostgreSQL(t) }

// start returns an API with the packages that the tests use.
func start(t *testing.T) *apitest.API {
	t.Helper()
	return apitest.New(t, ipam.Register, dns.Register, dhcp.Register, serverconfig.Register, dnssec.Register, dnspublish.Register,
		workflow.Register, webhook.Register)
}
