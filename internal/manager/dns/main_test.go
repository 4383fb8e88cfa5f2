package dns_test

import (
	"os"
	"testing"

	"portolan/internal/engine/resource"
	"portolan/internal/manager/dns"
	"portolan/internal/manager/dns/transfer"
	"portolan/internal/manager/dnspublish"
	"portolan/internal/manager/dnssec"
	"portolan/internal/manager/ipam"
	"portolan/internal/manager/serverconfig"
	"portolan/internal/testkit/apitest"
)

func TestMain(m *testing.M) { os.Exit(apitest.Run(m)) }

// TestOnPostgreSQL runs the tests of this package again on PostgreSQL.
func TestOnPostgreSQL(t *testing.T) { apitest.RunOnPostgreSQL(t) }

// packages are the registrations that the tests need.
var packages = []func(*resource.Registry){ipam.Register, dns.Register, transfer.Register, dnssec.Register, serverconfig.Register,
	dnspublish.Register}

// start returns an API for one client.
func start(t *testing.T) *apitest.API {
	t.Helper()
	return apitest.New(t, packages...)
}
