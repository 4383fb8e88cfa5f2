package dnspublish_test

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"

	"portolan/internal/engine/store"
	"portolan/internal/manager/dnspublish"
	"portolan/internal/testkit/apitest"
)

// TestPublicationOverLaterOnes checks that a deployment that commits after later ones keeps their names. It queues these names only if
// they may come from an older snapshot, and many of them do not delay single changes.
func TestPublicationOverLaterOnes(t *testing.T) {
	a := start(t)
	configuration := a.ID("/api/v2/configurations", `{"name":"main"}`)
	at := "/api/v2/configurations/" + configuration
	view := a.ID(at+"/views", `{"name":"live"}`)
	zone := "/api/v2/zones/" + a.ID("/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"a.test","deploymentEnabled":true}`)
	server := "/api/v2/servers/" + a.ID(at+"/servers", `{"type":"Server","name":"server","profile":"DNS_DHCP_SERVER_20","servicePoint":"point",`+
		`"interfaces":[{"type":"NetworkInterface","name":"ns.example.org","managementAddress":"192.0.2.1"}]}`)
	a.ID("/api/v2/views/"+view+"/deploymentRoles", `{"type":"DNSDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":`+
		a.Want(200, "GET", server+"/interfaces", "").Text("data.0.id")+`}]}`)
	deployment := a.ID(server+"/deployments", `{"type":"FullDeployment","service":"DNS"}`)
	apitest.Eventually(t, "the deployment is carried out", func() bool {
		return a.Want(200, "GET", "/api/v2/deployments/"+deployment, "").Text("percentComplete") == "90"
	})
	a.Want(200, "PATCH", "/api/v2/views/"+view, `{"liveDeployment":true}`)
	id, err := strconv.ParseInt(configuration, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	deployed := func() {
		apitest.Eventually(t, "the changes are deployed", func() bool {
			done := false
			if err := a.Store.View(t.Context(), func(tx *store.Tx) error {
				_, _, pending, err := dnspublish.Deployed(tx, a.Address, id)
				done = !pending
				return err
			}); err != nil {
				t.Fatal(err)
			}
			return done
		})
	}
	deployed()
	made := 0
	for _, test := range []struct {
		what    string
		name    string // the name that the earlier deployment changes
		changes int    // the number of names that the later ones change
		known   bool
		want    map[int]int
		kept    bool
	}{
		{"another name from a snapshot of unknown age", "early", 1, false, map[int]int{0: 1}, true},
		{"another name from a later snapshot", "early", 1, true, map[int]int{}, true},
		{"many names from snapshots of unknown age", "early", 300, false, map[int]int{1: 300}, true},
		{"the same name from a later snapshot", "n303", 1, true, map[int]int{}, false},
	} {
		later := func() {
			var changes []string
			for range test.changes {
				changes = append(changes, fmt.Sprintf(`{"method":"POST","path":"%s","body":{"type":"TXTRecord","name":"n%d","text":"later"}}`,
					strings.TrimPrefix(zone, "/api/v2/")+"/resourceRecords", made+1))
				made++
			}
			a.Want(200, "POST", "/api/v2/batch", `{"changes":[`+strings.Join(changes, ",")+`]}`)
			deployed()
		}
		lanes, kept, err := dnspublish.PublishOver(t.Context(), a.Address, id, test.name, test.known, later)
		if err != nil {
			t.Fatalf("%s: %v", test.what, err)
		}
		if !maps.Equal(lanes, test.want) {
			t.Errorf("%s: the queue has %v entries by lane, want %v", test.what, lanes, test.want)
		}
		if kept != test.kept {
			t.Errorf("%s: the record of the earlier deployment is deployed: %v", test.what, kept)
		}
		deployed()
	}
}
