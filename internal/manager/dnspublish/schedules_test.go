package dnspublish_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/manager/dnspublish"
	"portolan/internal/manager/serverconfig"
	"portolan/internal/testkit/apitest"
	"portolan/internal/testkit/deploytest"
	"portolan/internal/wire/zonedata"
)

// scheduled creates a schedule of one server with further fields.
func scheduled(d *deploytest.Plan, name, more string) string {
	return `{"type":"DeploymentSchedule","name":"` + name + `","deploymentServices":["DNS"],"servers":[{"id":` + filepath.Base(d.Server) + `}],` +
		more + `}`
}

// TestDeploymentSchedules checks that a schedule deploys at its start and at each interval. A server that it cannot deploy to is an event.
func TestDeploymentSchedules(t *testing.T) {
	var mu sync.Mutex
	ahead := time.Duration(0)
	m := newManager(apitest.NewAt(t, func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return time.Now().Add(ahead)
	}, packages...))
	configuration, _, _, _, _ := m.Basics()
	at := "/api/v2/configurations/" + configuration
	d := m.plan(configuration)
	start := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	daily := m.ID(at+"/schedules", scheduled(d, "daily", `"startDateTime":"`+start+`","interval":"P1D","deploymentType":"ValidationDeployment"`))
	path := "/api/v2/schedules/" + daily
	apitest.Eventually(t, "it is known when it is due", func() bool { return m.Want(200, "GET", path, "").Text("nextDateTime") == start })
	once := m.ID(at+"/schedules", scheduled(d, "once", `"startDateTime":"`+start+`"`))
	deployments := func(kind string) int {
		return m.Want(200, "GET", d.Server+"/deployments?"+apitest.Filter("type:'"+kind+"' and method:'SCHEDULED'"), "").Count()
	}
	if n := deployments("ValidationDeployment"); n != 0 {
		t.Errorf("%d before it is due", n)
	}
	mu.Lock()
	ahead = 61 * time.Minute
	mu.Unlock()
	apitest.Eventually(t, "both are deployed", func() bool {
		return deployments("ValidationDeployment") == 1 &&
			deployments("FullDeployment") == 1
	})
	r := m.Want(200, "GET", path, "")
	if next, err := time.Parse(time.RFC3339, r.Text("nextDateTime")); err != nil ||
		time.Until(next) < 24*time.Hour || r.Text("lastDateTime") == "" {
		t.Errorf("behind that it is due at %s, and was at %s", r.Text("nextDateTime"), r.Text("lastDateTime"))
	}
	if r := m.Want(200, "GET", "/api/v2/schedules/"+once, ""); r.Get("nextDateTime") != nil {
		t.Errorf("what is due once is due again: %s", r.Body)
	}
	// A day later it is due again. A server that is no longer a service point is an event.
	m.Want(200, "PATCH", d.Server, `{"servicePoint":null}`)
	apitest.Eventually(t, "what was deployed to it has ended", func() bool {
		return m.Want(200, "GET", d.Server+"/deployments?"+apitest.Filter("state:in('QUEUED','RUNNING')"), "").Count() == 0
	})
	m.ID(at+"/schedules", scheduled(d, "late", `"deploymentType":"FullDeployment","startDateTime":"`+
		time.Now().Add(3*time.Hour).UTC().Format(time.RFC3339)+`"`))
	mu.Lock()
	ahead += 24 * time.Hour
	mu.Unlock()
	apitest.Eventually(t, "it is deployed again", func() bool {
		return deployments("ValidationDeployment") == 2
	})
	apitest.Eventually(t, "a failed deployment is reported", func() bool {
		r := m.Want(200, "GET", "/api/v2/events?"+apitest.Filter("eventType:'NOT_DEPLOYED'"), "")
		return strings.Contains(r.Text("data.0.message"), "late did not deploy")
	})
	// Below the server and the schedule.
	if r := m.Want(200, "GET", d.Server+"/schedules", ""); r.Count() != 3 {
		t.Errorf("the server has %s", r.Body)
	}
	if r := m.Want(200, "GET", path+"/servers", ""); r.Text("data.0.name") != "wire" {
		t.Errorf("the schedule is for %s", r.Body)
	}
	m.Want(204, "DELETE", path, "")
	m.Verify()
}

// TestSchedulesCountFromNowOn checks that times before a schedule was set or enabled do not count. A schedule that ran once does not run
// again when its deletion is undone.
func TestSchedulesCountFromNowOn(t *testing.T) {
	m := start(t)
	configuration, _, _, _, _ := m.Basics()
	at := "/api/v2/configurations/" + configuration
	d := m.plan(configuration)
	now := time.Now().UTC()
	old := m.ID(at+"/schedules", scheduled(d, "old", `"startDateTime":"2020-01-01T00:00:00Z","interval":"P1D","deploymentType":"ValidationDeployment"`))
	off := m.ID(at+"/schedules", scheduled(d, "off", `"startDateTime":"1700-01-01T00:00:00Z","interval":"P1D","enabled":false,`+
		`"deploymentType":"ValidationDeployment"`))
	m.Want(200, "PATCH", "/api/v2/schedules/"+off, `{"enabled":true}`, apitest.MergePatch)
	once := m.ID(at+"/schedules", scheduled(d, "once", `"deploymentType":"ValidationDeployment","startDateTime":"`+now.Format(time.RFC3339)+`"`))
	for _, id := range []string{old, off} {
		apitest.Eventually(t, "it is due tomorrow", func() bool {
			r := m.Want(200, "GET", "/api/v2/schedules/"+id, "")
			next, err := time.Parse(time.RFC3339, r.Text("nextDateTime"))
			return err == nil && next.After(now) && next.Before(now.Add(25*time.Hour)) && r.Get("lastDateTime") == nil
		})
	}
	ran := func() int {
		return m.Want(200, "GET", d.Server+"/deployments?"+apitest.Filter("method:'SCHEDULED'"), "").Count()
	}
	apitest.Eventually(t, "it runs once", func() bool { return ran() == 1 })
	m.Want(204, "DELETE", "/api/v2/schedules/"+once, "")
	deleted := m.LastTransaction()
	m.Want(204, "DELETE", "/api/v2/schedules/"+old, "")
	m.Want(201, "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+deleted+`}`)
	apitest.Eventually(t, "it has run", func() bool { return m.Want(200, "GET", "/api/v2/schedules/"+once, "").Text("lastDateTime") != "" })
	other := m.ID(at+"/schedules", scheduled(d, "other", `"startDateTime":"`+now.Add(time.Hour).Format(time.RFC3339)+`"`))
	apitest.Eventually(t, "another one is seen", func() bool {
		return m.Want(200, "GET", "/api/v2/schedules/"+other,
			"").Text("nextDateTime") != ""
	})
	if n := ran(); n != 1 {
		t.Errorf("it ran %d times", n)
	}
	m.Refused(400, "DurationValueOutsideRange", "interval", "PATCH", "/api/v2/schedules/"+other, `{"interval":"P1M"}`, apitest.MergePatch)
	group := m.ID(at+"/serverGroups", `{"name":"in a schedule"}`)
	m.ID(at+"/schedules", `{"type":"DeploymentSchedule","name":"of a group","deploymentServices":["DNS"],"servers":[{"id":`+group+
		`}],"startDateTime":"2999-01-01T00:00:00Z"}`)
	m.Refused(403, "ResourceInUse", "of a group", "DELETE", "/api/v2/serverGroups/"+group, "")
}

// TestDeletedServersEndDeployments checks that a deleted server ends its deployments, including its part in those of its group. Other
// deployments continue.
func TestDeletedServersEndDeployments(t *testing.T) {
	m := startAlone(t)
	configuration, _, _, _, _ := m.Basics()
	at := "/api/v2/configurations/" + configuration
	d := m.plan(configuration)
	const point = "second"
	other := m.ID(at+"/servers", `{"type":"Server","name":"second","profile":"DNS_DHCP_SERVER_20","servicePoint":"`+point+
		`","interfaces":[{"managementAddress":"10.0.0.98"}]}`)
	group := "/api/v2/serverGroups/" + m.ID(at+"/serverGroups", `{"name":"pair","servers":[{"id":`+filepath.Base(d.Server)+`},{"id":`+other+`}]}`)
	id := m.ID(group+"/deployments", `{"type":"FullDeployment","service":"DNS"}`)
	apitest.Eventually(t, "the server is deployed to", func() bool {
		states := apitest.Filter("state:in('RUNNING','COMPLETED','COMPLETED_WITH_WARNINGS')")
		return m.Want(200, "GET", "/api/v2/servers/"+other+"/deployments?"+states, "").Count() == 1
	})
	m.Want(204, "DELETE", "/api/v2/servers/"+other, "")
	m.Want(204, "DELETE", "/api/v2/deploymentRoles/"+m.Want(200, "GET", d.Server+"/deploymentRoles", "").Text("data.0.id"), "")
	m.Want(204, "DELETE", d.Server, "")
	deploytest.Await(&m.Client, id, "COMPLETED")
	left := 1
	if err := m.Store.View(context.Background(), func(tx *store.Tx) error {
		return tx.QueryRow("SELECT (SELECT count(*) FROM deployment_wait) + (SELECT count(*) FROM dns_served) + " +
			"(SELECT count(*) FROM dns_server)").Scan(&left)
	}); err != nil || left != 0 {
		t.Errorf("%d rows of servers are left (%v)", left, err)
	}
	m.Verify()
}

// TestSchedulesRefused checks that a schedule that never runs, or for a resource that cannot be deployed, is refused by its field.
func TestSchedulesRefused(t *testing.T) {
	m := startAlone(t)
	configuration, _, _, _, _ := m.Basics()
	at := "/api/v2/configurations/" + configuration
	d := m.plan(configuration)
	elsewhere := m.ID("/api/v2/configurations/"+m.ID("/api/v2/configurations", `{"name":"other"}`)+"/serverGroups", `{"name":"far"}`)
	future := `"startDateTime":"2999-01-01T00:00:00Z"`
	for more, want := range map[string][3]string{
		`"startDateTime":"2001-01-01T00:00:00Z"`:         {"InvalidResourceFieldValue", "startDateTime", "is in the past"},
		future + `,"interval":"PT5S"`:                    {"DurationValueOutsideRange", "interval", "one minute"},
		future + `,"interval":"daily"`:                   {"InvalidDurationValue", "interval", ""},
		future + `,"deploymentType":"Quick"`:             {"InvalidEnumValue", "deploymentType", ""},
		future + `,"deploymentServices":[]`:              {"EmptyFieldValue", "deploymentServices", ""},
		future + `,"servers":[{"id":` + elsewhere + `}]`: {"ResourceNotInConfiguration", "servers", "another configuration"},
	} {
		r := m.Do("POST", at+"/schedules", scheduled(d, "bad", more))
		if r.StatusCode != 400 || r.Text("code") != want[0] || !r.Names(want[1]) || !strings.Contains(r.Text("message"), want[2]) {
			t.Errorf("%s: %d %s", more, r.StatusCode, r.Body)
		}
	}
	m.Refused(404, "InlinedResourceNotFound", "servers", "POST", at+"/schedules",
		`{"type":"DeploymentSchedule","name":"x",`+future+`,"deploymentServices":["DNS"],"servers":[{"id":99999999}]}`)
}

// TestDeploymentsArePruned checks that deployments that ended long ago are deleted, with their data.
func TestDeploymentsArePruned(t *testing.T) {
	m := startAlone(t)
	configuration, _, _, _, _ := m.Basics()
	d := m.plan(configuration)
	d.Ends(`{"type":"ValidationDeployment","service":"DNS"}`, "COMPLETED")
	for want, before := range []time.Time{time.Now().Add(-time.Hour), time.Now().Add(time.Hour)} {
		if n, err := dnspublish.Prune(t.Context(), m.Address, m.Store.Update, before); err != nil || n != want {
			t.Errorf("before %s: %d (%v)", before, n, err)
		}
	}
	if r := m.Want(200, "GET", "/api/v2/deployments", ""); r.Count() != 0 {
		t.Errorf("there are %s", r.Body)
	}
	m.Verify()
}

// TestGroupDeployments checks that a deployment of a server group is one deployment of each of its servers, and ends when these have ended.
func TestGroupDeployments(t *testing.T) {
	m := startAlone(t)
	configuration, _, _, _, _ := m.Basics()
	at := "/api/v2/configurations/" + configuration
	d := m.plan(configuration)
	other := m.ID(at+"/servers", `{"type":"Server","name":"second","profile":"DNS_DHCP_SERVER_20","overrideConfigurationLevelDnsValidation":true,`+
		`"dnsZoneValidationEnabled":true,"interfaces":[{"managementAddress":"10.0.0.98"}]}`)
	group := "/api/v2/serverGroups/" + m.ID(at+"/serverGroups", `{"name":"pair","servers":[{"id":`+filepath.Base(d.Server)+`},{"id":`+other+`}]}`)
	if r := m.Want(200, "GET", group+"/servers", ""); r.Count() != 2 {
		t.Fatalf("the group has %s", r.Body)
	}
	if r := m.Want(200, "GET", group+"/deploymentRoles", ""); r.Count() != 1 {
		t.Errorf("its roles are %s", r.Body)
	}
	m.Refused(400, "ServerNotConnected", "second", "POST", group+"/deployments", `{"type":"FullDeployment","service":"DNS"}`)
	id := m.ID(group+"/deployments", `{"type":"ValidationDeployment","service":"DNS"}`)
	if message := deploytest.Await(&m.Client, id, "COMPLETED_WITH_WARNINGS"); !strings.Contains(message,
		"server "+other+": COMPLETED_WITH_WARNINGS") {
		t.Errorf("it says %q", message)
	}
	if r := m.Want(200, "GET", "/api/v2/deployments/"+id+"/deployments", ""); r.Count() != 2 {
		t.Errorf("its parts are %s", r.Body)
	}
	m.Want(200, "PATCH", group, `{"servers":[{"id":`+other+`}]}`)
	if r := m.Want(200, "GET", group+"/servers", ""); r.Count() != 1 {
		t.Errorf("the group has %s", r.Body)
	}
	empty := m.ID(at+"/serverGroups", `{"name":"empty"}`)
	m.Refused(400, "ServerNotActive", "no servers", "POST", "/api/v2/serverGroups/"+empty+"/deployments", `{"type":"FullDeployment","service":"DNS"}`)
	// An ended deployment stays as it is, also if one of its servers is deleted.
	ended := m.Want(200, "GET", "/api/v2/deployments/"+id, "")
	m.Want(204, "DELETE", "/api/v2/servers/"+other, "")
	if r := m.Want(200, "GET", "/api/v2/deployments/"+id, ""); r.Text("message") != ended.Text("message") ||
		r.Text("completionDateTime") != ended.Text("completionDateTime") {
		t.Errorf("it is %s now", r.Body)
	}
	m.Verify()
}

// TestFullDeploymentAfterRestore checks that a full deployment reaches a service point that serves content newer than a restored database.
// A server whose service point falls silent is an event.
func TestFullDeploymentAfterRestore(t *testing.T) {
	m := startAlone(t)
	configuration, _, _, _, _ := m.Basics()
	d := m.plan(configuration)
	d.Carries(d.Server+"/deployments", `{"type":"FullDeployment","service":"DNS"}`)
	number := func() (n int64) {
		if err := m.Store.View(context.Background(), func(tx *store.Tx) error {
			return tx.QueryRow("SELECT number FROM dns_server").Scan(&n)
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	later := number() + 1
	serves := zonedata.Revision{Number: later}.String()
	m.points.Confirm(d.Point, serves)
	deploytest.Await(&m.Client, d.Last, "COMPLETED")
	d.Carries(d.Server+"/deployments", `{"type":"FullDeployment","service":"DNS"}`)
	if n := number(); n <= later {
		t.Errorf("the service point serves %d and is to serve %d: it would not ask for it", later, n)
	}
	if err := m.Store.Update(context.Background(), store.Author{}, func(tx *store.Tx) error {
		return serverconfig.PointsMoved(tx, []string{"another", d.Point}, "connectionStatus", "NOT_CONNECTED", []string{"it is silent"})
	}); err != nil {
		t.Fatal(err)
	}
	r := m.Want(200, "GET", "/api/v2/events?"+apitest.Filter("category:'SERVER_MONITORING'"), "")
	if r.Count() != 1 || r.Text("data.0.message") != "Server wire: its service point is NOT_CONNECTED: it is silent" ||
		r.Text("data.0.eventType") != "WARNING" {
		t.Errorf("the events are %s", r.Body)
	}
}
