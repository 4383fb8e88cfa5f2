package dnspublish_test

import (
	"fmt"
	"testing"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/testkit/apitest"
)

// TestFullDeploymentsExamineChangedNames checks that a full deployment of a view that is not live reads only names that have changed since
// the one before, and the whole zone if the history does not tell them.
func TestFullDeploymentsExamineChangedNames(t *testing.T) {
	apitest.OnSQLite(t) // on PostgreSQL, transactions of other tests delay the place in the change feed, and more names are examined
	v := start(t).liveView("a.test")
	v.Want(200, "PATCH", "/api/v2/views/"+v.view, `{"liveDeployment":false}`)
	record := v.ID("/api/v2/zones/"+v.first+"/resourceRecords", `{"type":"TXTRecord","name":"txt","text":"x"}`)
	deploy := func() (state string) { return v.deployFully("/api/v2/servers/"+v.server, "point") }
	isDeployed := func(text string) {
		t.Helper()
		if differences := v.deployed(); len(differences) > 0 {
			t.Errorf("after %s: %v", text, differences)
		}
	}
	deploy()
	isDeployed("the first deployment")
	v.Want(200, "PATCH", "/api/v2/resourceRecords/"+record, `{"text":"y"}`)
	deploy()
	isDeployed("a change")
	// A whole examination fails from here on.
	if err := v.Store.Update(t.Context(), store.Author{}, func(tx *store.Tx) error {
		return tx.Write("UPDATE dns_part SET data = ? WHERE zone LIKE '%a.test'", []byte("invalid"))
	}); err != nil {
		t.Fatal(err)
	}
	if state := deploy(); state != "COMPLETED" {
		t.Errorf("a deployment without changes is %s", state)
	}
	v.ID("/api/v2/tagGroups", `{"name":"unrelated"}`)
	if state := deploy(); state != "COMPLETED" {
		t.Errorf("a deployment after an unrelated change is %s", state)
	}
	v.ID("/api/v2/tagGroups", `{"name":"deleted from the history"}`)
	if _, err := v.Store.Chain(t.Context(), v.Store.Update); err != nil {
		t.Fatal(err)
	}
	if n, err := v.Store.PruneHistory(t.Context(), v.Store.Update, time.Now().Add(time.Hour), nil); err != nil || n == 0 {
		t.Fatalf("%d transactions were deleted: %v", n, err)
	}
	if state := deploy(); state != "FAILED" {
		t.Errorf("a deployment after a part of the history was deleted is %s: it has not examined the whole zone", state)
	}
}

// TestLinkedRecordsFollowUndeployedOnes checks that an alias and an MX record follow a change of their host in a zone that is not deployed,
// or outside of all zones, in a live view and in others.
func TestLinkedRecordsFollowUndeployedOnes(t *testing.T) {
	for _, live := range []bool{true, false} {
		v := start(t).liveView("a.test")
		zone := v.ID("/api/v2/views/"+v.view+"/zones", `{"type":"Zone","absoluteName":"idle.example","deploymentEnabled":false}`)
		external := v.Want(200, "GET", "/api/v2/views/"+v.view+"/zones?"+apitest.Filter("type:'ExternalHostsZone'"), "").Text("data.0.id")
		hosts := []string{v.ID("/api/v2/zones/"+external+"/resourceRecords", `{"type":"ExternalHostRecord","name":"mail.other.org"}`),
			v.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"GenericRecord","name":"mail","recordType":"A","rdata":"192.0.2.7"}`)}
		for i, host := range hosts {
			at := "/api/v2/zones/" + v.first + "/resourceRecords"
			v.ID(at, fmt.Sprintf(`{"type":"MXRecord","name":"mx%d","priority":1,"linkedRecord":{"id":%s}}`, i, host))
			v.ID(at, fmt.Sprintf(`{"type":"AliasRecord","name":"alias%d","linkedRecord":{"id":%s}}`, i, host))
		}
		if !live {
			v.Want(200, "PATCH", "/api/v2/views/"+v.view, `{"liveDeployment":false}`)
		}
		deployed := func(text string) {
			t.Helper()
			if !live {
				v.deployFully("/api/v2/servers/"+v.server, "point")
			}
			if differences := v.deployed(); len(differences) > 0 {
				t.Errorf("after %s, in a live view: %t: %v", text, live, differences)
			}
		}
		deployed("the first deployment")
		v.Want(200, "PATCH", "/api/v2/resourceRecords/"+hosts[0], `{"name":"mail2.other.org"}`)
		v.Want(200, "PATCH", "/api/v2/resourceRecords/"+hosts[1], `{"name":"mail2"}`)
		deployed("new names of the hosts")
		v.Want(200, "PATCH", "/api/v2/zones/"+zone, `{"absoluteName":"renamed.example"}`)
		deployed("a new name of their zone")
	}
}
