package webhook_test

import (
	"log/slog"
	"os"
	"testing"

	"portolan/internal/manager/dns"
	"portolan/internal/manager/history"
	"portolan/internal/manager/ipam"
	"portolan/internal/manager/webhook"
	"portolan/internal/testkit/apitest"
)

func TestMain(m *testing.M) { os.Exit(apitest.Run(m)) }

// TestOnPostgreSQL runs the tests of this package again on PostgreSQL.
func TestOnPostgreSQL(t *testing.T) { apitest.RunOnPostgreSQL(t) }

// start returns a test API for one client, with the packages that this package's tests need.
func start(t *testing.T) *apitest.API {
	t.Helper()
	return withWorkers(apitest.New(t, ipam.Register, dns.Register, webhook.Register))
}

// startConcurrent is start for tests with several clients, or of the worker.
func startConcurrent(t *testing.T) *apitest.API {
	t.Helper()
	return withWorkers(apitest.NewConcurrent(t, ipam.Register, dns.Register, webhook.Register))
}

// withWorkers begins the work of this package.
func withWorkers(a *apitest.API) *apitest.API {
	a.Work(history.NewKeeper(a.Store, a.Address.Sealer, slog.New(slog.DiscardHandler)).Run) // what it has chained may be pruned
	a.Work(webhook.NewSender(a.Address, a.REST.FeedEntry, slog.New(slog.DiscardHandler), "Portolan/test").Run)
	return a
}
