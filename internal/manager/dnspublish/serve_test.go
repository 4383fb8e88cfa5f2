package dnspublish_test

import (
	"testing"

	"portolan/internal/engine/store"
	"portolan/internal/manager/dnspublish"
	"portolan/internal/testkit/apitest"
)

// TestServingOverLaterOnes checks that a full deployment does not remove a zone that a live change has added since its snapshot, and that
// the live change is made again if the deployment insists.
func TestServingOverLaterOnes(t *testing.T) {
	a := start(t)
	configuration := a.ID("/api/v2/configurations", `{"name":"main"}`)
	at := "/api/v2/configurations/" + configuration
	view := a.ID(at+"/views", `{"name":"live"}`)
	zones := "/api/v2/views/" + view + "/zones"
	zone := func(name string) { a.ID(zones, `{"type":"Zone","absoluteName":"`+name+`","deploymentEnabled":true}`) }
	zone("a.test")
	id := a.ID(at+"/servers", `{"type":"Server","name":"server","profile":"DNS_DHCP_SERVER_20","servicePoint":"point",`+
		`"interfaces":[{"type":"NetworkInterface","name":"ns.example.org","managementAddress":"192.0.2.1"}]}`)
	server := "/api/v2/servers/" + id
	a.ID("/api/v2/views/"+view+"/deploymentRoles", `{"type":"DNSDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":`+
		a.Want(200, "GET", server+"/interfaces", "").Text("data.0.id")+`}]}`)
	deployment := a.ID(server+"/deployments", `{"type":"FullDeployment","service":"DNS"}`)
	apitest.Eventually(t, "the deployment is carried out", func() bool {
		return a.Want(200, "GET", "/api/v2/deployments/"+deployment, "").Text("percentComplete") == "90"
	})
	a.Want(200, "PATCH", "/api/v2/views/"+view, `{"liveDeployment":true}`)
	served := func(name string) (is bool) {
		if err := a.Store.View(t.Context(), func(tx *store.Tx) (err error) {
			is, err = dnspublish.IsServed(tx, apitest.Number(t, id), name)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return is
	}
	add := func(name string) func() {
		return func() {
			zone(name)
			apitest.Eventually(t, name+" is served", func() bool { return served(name) })
		}
	}
	serve := func(insists bool, later func()) (conflict bool) {
		conflict, err := dnspublish.ServeOver(t.Context(), a.Address, apitest.Number(t, id), insists, later)
		if err != nil {
			t.Fatal(err)
		}
		return conflict
	}
	if serve(false, func() {}) {
		t.Error("a deployment without a later one is refused")
	}
	if !serve(false, add("b.test")) || !served("b.test") {
		t.Error("a deployment of an older snapshot is not refused")
	}
	if serve(true, add("c.test")) {
		t.Error("a deployment that insists is refused")
	}
	apitest.Eventually(t, "the later zone is served again", func() bool { return served("c.test") })
}
