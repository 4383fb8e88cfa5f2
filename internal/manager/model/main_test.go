package model_test

import (
	"log/slog"
	"os"
	"testing"

	"portolan/internal/manager/imports"
	"portolan/internal/manager/model"
	"portolan/internal/manager/workflow"
	"portolan/internal/testkit/apitest"
)

func TestMain(m *testing.M) { os.Exit(apitest.Run(m)) }

// TestOnPostgreSQL runs the tests of this package again on PostgreSQL.
func TestOnPostgreSQL(t *testing.T) { apitest.RunOnPostgreSQL(t) }

// manager is the API of all packages, without listeners.
type manager struct{ *apitest.API }

// start returns the API of all packages for one client.
func start(t *testing.T) *manager {
	t.Helper()
	return withApply(apitest.New(t, model.Services()...))
}

// startConcurrent is start for several clients.
func startConcurrent(t *testing.T) *manager {
	t.Helper()
	return withApply(apitest.NewConcurrent(t, model.Services()...))
}

// withApply connects approvals, documents and imports as a manager does.
func withApply(a *apitest.API) *manager {
	workflow.Open(a.Address, a.Identity.Acting)
	a.REST.Apply = imports.Apply(a.Address, a.REST.Show)
	a.Work(imports.NewRunner(a.Address, a.REST.Show, a.Identity.Acting, slog.New(slog.DiscardHandler)).Run)
	return &manager{a}
}
