package backup_test

import (
	"context"
	"io"
	"os"
	"testing"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store/archive"
	"portolan/internal/manager/backup"
	"portolan/internal/manager/dns"
	"portolan/internal/manager/ipam"
	"portolan/internal/manager/settings"
	"portolan/internal/testkit/apitest"
)

func TestMain(m *testing.M) { os.Exit(apitest.Run(m)) }

// TestOnPostgreSQL runs the tests of this package again on PostgreSQL.
func TestOnPostgreSQL(t *testing.T) { apitest.RunOnPostgreSQL(t) }

// manager is the API with a worker for backups.
type manager struct {
	*apitest.API
	// dir is the directory of the backups.
	dir string
}

// start returns an API with a directory for backups.
func start(t *testing.T, dir string) *manager {
	t.Helper()
	a := apitest.NewConcurrent(t, ipam.Register, dns.Register, backup.Register)
	resource.Provide(a.Address.Provisions, backup.NewOptions(dir))
	resource.Provide(a.Address.Provisions, settings.Options{Backups: true, LastBackup: backup.LastBackup})
	a.Work(backup.NewRunner(a.Address, func(ctx context.Context, w io.Writer) error {
		_, err := archive.Write(ctx, a.Store, w, "test", func(int64) {})
		return err
	}, apitest.Log()).Run)
	return &manager{a, dir}
}

// startOnce is start for a test that depends little on the database.
func startOnce(t *testing.T) *manager {
	t.Helper()
	apitest.SkipOnPostgreSQL(t)
	return start(t, t.TempDir())
}
