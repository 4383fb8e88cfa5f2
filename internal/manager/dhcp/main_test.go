package dhcp_test

import (
	"os"
	"testing"

	"portolan/internal/testkit/apitest"
	"portolan/internal/testkit/leasetest"
)

func TestMain(m *testing.M) { os.Exit(apitest.Run(m)) }

// TestOnPostgreSQL runs the tests of this package again on PostgreSQL.
func TestOnPostgreSQL(t *testing.T) { apitest.RunOnPostgreSQL(t) }

// startManager returns the API for several clients.
func startManager(t *testing.T) *leasetest.Manager {
	t.Helper()
	return leasetest.New(apitest.NewConcurrent(t, leasetest.Packages()...))
}

// startAlone is startManager for one client.
func startAlone(t *testing.T) *leasetest.Manager {
	t.Helper()
	return leasetest.New(apitest.New(t, leasetest.Packages()...))
}
