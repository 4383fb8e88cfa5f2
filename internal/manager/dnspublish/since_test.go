package dnspublish_test

import (
	"testing"
	"time"

	"portolan/internal/engine/store"
)

// TestFullDeploymentsExamineChangedNames checks that a full deployment of a view that is not live reads only names that have changed since
// the one before, and the whole zone if the history does not tell them.
func TestFullDeploymentsExamineChangedNames(t *testing.T) {
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
