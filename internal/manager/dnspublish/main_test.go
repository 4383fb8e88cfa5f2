package dnspublish_test

import (
	"log/slog"
	"os"
	"testing"

	"portolan/internal/engine/store"
	"portolan/internal/manager/dns"
	"portolan/internal/manager/dnspublish"
	"portolan/internal/manager/dnssec"
	"portolan/internal/manager/ipam"
	"portolan/internal/manager/serverconfig"
	"portolan/internal/testkit/apitest"
	"portolan/internal/wire/checkin"
)

func TestMain(m *testing.M) { os.Exit(apitest.Run(m)) }

// TestOnPostgreSQL runs the tests of this package on PostgreSQL.
func TestOnPostgreSQL(t *testing.T) { apitest.RunOnPostgreSQL(t) }

// points are service points that confirm nothing.
type points struct{}

func (points) Changed(*store.Tx, string) {}

func (points) Wake(string) {}

func (points) Serving(*store.Tx, string, string) (dnspublish.Serving, error) {
	return dnspublish.Serving{Exists: true, Provides: checkin.Capabilities{checkin.AnswersZones: true}, Silent: true}, nil
}

// start returns the API with a deployer, for several clients.
func start(t *testing.T) *apitest.API {
	t.Helper()
	a := apitest.NewConcurrent(t, ipam.Register, dns.Register, dnssec.Register, serverconfig.Register, dnspublish.Register)
	d := dnspublish.NewDeployer(a.Address, points{}, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	a.Work(d.Run)
	return a
}
