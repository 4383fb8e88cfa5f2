package dnspublish_test

import (
	"fmt"
	"strings"
	"testing"

	"portolan/internal/engine/store"
	"portolan/internal/manager/dnspublish"
	"portolan/internal/testkit/apitest"
	"portolan/internal/wire/zonedata"
)

// TestServingOverLaterOnes checks that a full deployment does not remove a zone that a live change has added since its snapshot, also if
// the deployment insists, and that a zone that was deleted meanwhile does not fail one that insists.
func TestServingOverLaterOnes(t *testing.T) {
	v := start(t).liveView("a.test")
	add := func(name string) func() {
		return func() {
			v.zone(name)
			apitest.Eventually(t, name+" is served", func() bool { return v.serves(name) })
		}
	}
	serve := func(insists bool, later func()) (conflict bool) {
		conflict, err := dnspublish.ServeOver(t.Context(), v.Address, apitest.Number(t, v.server), insists, later)
		if err != nil {
			t.Fatal(err)
		}
		return conflict
	}
	if serve(false, func() {}) {
		t.Error("a deployment without a later one is refused")
	}
	if !serve(false, add("b.test")) || !v.serves("b.test") {
		t.Error("a deployment of an older snapshot is not refused")
	}
	if serve(true, add("c.test")) || !v.serves("c.test") || !v.serves("b.test") {
		t.Error("a deployment that insists is refused, or removes a zone")
	}
	deleted := func() {
		row := v.Want(200, "GET", "/api/v2/zones?"+apitest.Filter("absoluteName:'c.test'"), "").Text("data.0.id")
		v.Want(204, "DELETE", "/api/v2/zones/"+row, "")
		apitest.Eventually(t, "c.test is not served", func() bool { return !v.serves("c.test") })
	}
	if serve(true, deleted) || v.serves("c.test") || !v.serves("b.test") {
		t.Error("a deployment that insists is refused, or serves a deleted zone")
	}
}

// TestFrameOverLaterOne checks that a full deployment does not store the delegations of its snapshot over those of a later live change:
// when the change is taken back, the name server serves none of it.
func TestFrameOverLaterOne(t *testing.T) {
	v := start(t).liveView("p.test")
	at := "/api/v2/configurations/" + v.configuration
	other := v.ID(at+"/servers", `{"type":"Server","name":"ns.isp.example","profile":"OTHER_DNS_SERVER",`+
		`"interfaces":[{"managementAddress":"192.0.2.77"}]}`)
	faces := v.Want(200, "GET", "/api/v2/servers/"+other+"/interfaces", "").Text("data.0.id")
	child := "/api/v2/zones/" + v.ID("/api/v2/views/"+v.view+"/zones", `{"type":"Zone","absoluteName":"d.p.test","deploymentEnabled":false}`)
	v.ID(child+"/deploymentRoles", `{"type":"DNSDeploymentRole","roleType":"NONE","interfaces":[{"id":`+v.faces+`}]}`)
	v.ID(child+"/deploymentRoles", `{"type":"DNSDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":`+faces+`}]}`)
	delegates := func(on bool) []string {
		v.Want(200, "PATCH", child, fmt.Sprintf(`{"deploymentEnabled":%t}`, on))
		return v.deployed()
	}
	delegates(true)
	delegates(false)
	if err := v.Store.Update(t.Context(), store.Author{}, func(tx *store.Tx) error { // the deployment examines the whole zone
		return tx.Write("UPDATE dns_zone SET complete = 0 WHERE zone LIKE '%/p.test'")
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := dnspublish.DeployOver(t.Context(), v.Address, v.points, apitest.Number(t, v.server), func() { delegates(true) }); err != nil {
		t.Fatal(err)
	}
	v.deployed()
	v.zone("unrelated.example")
	v.deployed()
	if all := delegates(false); len(all) > 0 {
		t.Errorf("after the delegation was removed: %q", all)
	}
}

// TestSettingsSizeIsLimited checks that settings are refused that a service point would refuse, and no smaller ones.
func TestSettingsSizeIsLimited(t *testing.T) {
	if err := dnspublish.CheckSettingsSize(zonedata.MaxPart, 1); err != nil {
		t.Error(err)
	}
	err := dnspublish.CheckSettingsSize(zonedata.MaxPart+1, 40_000)
	if err == nil || !strings.Contains(err.Error(), "64 MiB for 40000 zones") {
		t.Error(err)
	}
}
