package dnspublish_test

import (
	"os"
	"testing"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dhcppublish"
	"portolan/internal/manager/dns"
	"portolan/internal/manager/dnspublish"
	"portolan/internal/manager/dnssec"
	"portolan/internal/manager/imports"
	"portolan/internal/manager/ipam"
	"portolan/internal/manager/serverconfig"
	"portolan/internal/manager/tftppublish"
	"portolan/internal/testkit/apitest"
	"portolan/internal/testkit/deploytest"
	"portolan/internal/wire/checkin"
)

func TestMain(m *testing.M) { os.Exit(apitest.Run(m)) }

// TestOnPostgreSQL runs the tests of this package on PostgreSQL.
func TestOnPostgreSQL(t *testing.T) { apitest.RunOnPostgreSQL(t) }

// manager is the API with a deployer, and service points that confirm what a test says.
type manager struct {
	*apitest.API
	points *deploytest.Points
}

// packages are the registrations that the tests need.
var packages = []func(*resource.Registry){ipam.Register, dns.Register, dnssec.Register, serverconfig.Register, dnspublish.Register}

// startAlone returns the API for one client.
func startAlone(t *testing.T) *manager {
	t.Helper()
	return newManager(apitest.New(t, packages...))
}

// start returns the API for several clients.
func start(t *testing.T) *manager {
	t.Helper()
	return newManager(apitest.NewConcurrent(t, packages...))
}

// plan creates a DNS server with a zone below a configuration.
func (m *manager) plan(configuration string) *deploytest.Plan {
	m.T.Helper()
	return deploytest.NewPlan(&m.Client, configuration, "wire")
}

// newManager starts the deployer of an API.
func newManager(a *apitest.API) *manager {
	m := &manager{API: a, points: &deploytest.Points{Provides: checkin.Capabilities{checkin.AnswersZones: true}}}
	resource.Provide(a.Address.Provisions, dnspublish.Options{Services: map[string]dnspublish.Service{
		dhcppublish.ServiceV4: dhcppublish.Service{API: a.Address}, serverconfig.ServiceTFTP: tftppublish.Service{API: a.Address}}})
	a.REST.Apply = imports.Apply(a.Address, a.REST.Show)
	a.Work(dnspublish.NewDeployer(a.Address, m.points, apitest.Log()).Run)
	return m
}

// liveView is a live view of a configuration, whose zones one server serves after a full deployment.
type liveView struct {
	*manager
	// first is the id of the first zone, and faces that of the interface of the server.
	configuration, view, first, server, faces string
}

// liveView creates a live view with a first zone, and deploys it.
func (m *manager) liveView(first string) *liveView {
	m.T.Helper()
	v := &liveView{manager: m, configuration: m.ID("/api/v2/configurations", `{"name":"main"}`)}
	at := "/api/v2/configurations/" + v.configuration
	v.view = m.ID(at+"/views", `{"name":"live"}`)
	v.first = v.zone(first)
	v.server = m.ID(at+"/servers", `{"type":"Server","name":"server","profile":"DNS_DHCP_SERVER_20","servicePoint":"point",`+
		`"interfaces":[{"type":"NetworkInterface","name":"ns.example.org","managementAddress":"192.0.2.1"}]}`)
	v.faces = m.Want(200, "GET", "/api/v2/servers/"+v.server+"/interfaces", "").Text("data.0.id")
	m.ID("/api/v2/views/"+v.view+"/deploymentRoles", `{"type":"DNSDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":`+v.faces+`}]}`)
	deployment := m.ID("/api/v2/servers/"+v.server+"/deployments", `{"type":"FullDeployment","service":"DNS"}`)
	apitest.Eventually(m.T, "the deployment is carried out", func() bool {
		return m.Want(200, "GET", "/api/v2/deployments/"+deployment, "").Text("percentComplete") == "90"
	})
	m.Want(200, "PATCH", "/api/v2/views/"+v.view, `{"liveDeployment":true}`)
	v.deployed()
	return v
}

// zone creates a zone, and returns its id.
func (v *liveView) zone(name string) string {
	v.T.Helper()
	return v.ID("/api/v2/views/"+v.view+"/zones", `{"type":"Zone","absoluteName":"`+name+`","deploymentEnabled":true}`)
}

// deployed waits until no change is queued, and returns the differences between the deployed content and that of a whole compilation.
func (v *liveView) deployed() (differences []string) {
	v.T.Helper()
	apitest.Eventually(v.T, "the changes are deployed", func() (done bool) {
		if err := v.Store.View(v.T.Context(), func(tx *store.Tx) error {
			_, all, pending, err := dnspublish.Deployed(tx, v.Address, apitest.Number(v.T, v.configuration))
			differences, done = all, !pending
			return err
		}); err != nil {
			v.T.Fatal(err)
		}
		return done
	})
	return differences
}

// serves reports whether the server serves a zone.
func (v *liveView) serves(name string) (is bool) {
	v.T.Helper()
	if err := v.Store.View(v.T.Context(), func(tx *store.Tx) (err error) {
		is, err = dnspublish.IsServed(tx, apitest.Number(v.T, v.server), name)
		return err
	}); err != nil {
		v.T.Fatal(err)
	}
	return is
}
