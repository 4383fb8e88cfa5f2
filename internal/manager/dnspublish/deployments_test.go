package dnspublish_test

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"portolan/internal/engine/store"
	"portolan/internal/testkit/apitest"
	"portolan/internal/testkit/deploytest"
)

// TestDeploymentsRefused checks that an impossible deployment is refused with the reason, and changes nothing.
func TestDeploymentsRefused(t *testing.T) {
	m := startAlone(t)
	configuration, view, zone, _, _ := m.Basics()
	at := "/api/v2/configurations/" + configuration
	planned := "/api/v2/servers/" + m.ID(at+"/servers", apitest.ServerBody("ns1", "10.0.0.53"))
	full := `{"type":"FullDeployment","service":"DNS"}`
	m.Refused(400, "ServerNotConnected", "servicePoint", "POST", planned+"/deployments", full)
	m.Refused(400, "ServerNotConnected", "servicePoint", "POST", planned+"/deployments", `{"type":"FullDeployment","service":"DHCPv4"}`)
	m.Refused(400, "UnsupportedResourceFieldValue", "FullDeployment", "POST", planned+"/deployments",
		`{"type":"DifferentialDeployment","service":"TFTP"}`)
	m.Refused(400, "InvalidEnumValue", "service", "POST", planned+"/deployments", `{"type":"FullDeployment","service":"NTP"}`)
	m.Refused(400, "MissingRequiredField", "service", "POST", planned+"/deployments", `{"type":"FullDeployment"}`)
	m.Refused(400, "DnsDeploymentValidationNotEnabled", "dnsZoneValidationEnabled", "POST", planned+"/deployments",
		`{"type":"ValidationDeployment","service":"DNS"}`)
	m.Refused(400, "NoAssignedDnsDeploymentRoles", "example.com", "POST", "/api/v2/zones/"+zone+"/deployments", `{"type":"QuickDeployment"}`)
	m.Refused(404, "InlinedResourceNotFound", "resources", "POST", "/api/v2/deployments", `{"type":"SelectiveDeployment","resources":[{"id":`+view+`}]}`)
	m.Refused(400, "UnsupportedResourceFieldValue", "batchMode", "POST", "/api/v2/deployments",
		`{"type":"SelectiveDeployment","batchMode":"BATCH_BY_SERVER","resources":[{"id":`+view+`}]}`)
	d := m.plan(configuration)
	m.Refused(409, "ResourceConflictsWithOther", "servicePoint", "PATCH", planned, `{"servicePoint":"`+d.Point+`"}`)
	m.Refused(400, "NoPreviousFullDeploymentForDifferential", "FullDeployment", "POST", d.Server+"/deployments",
		`{"type":"DifferentialDeployment","service":"DNS"}`)
	m.Refused(400, "NoPreviousFullDeploymentForDifferential", "FullDeployment", "POST", d.Zone+"/deployments", `{"type":"QuickDeployment"}`)
	d.Carries(d.Server+"/deployments", full)
	m.Refused(400, "ServerIsDeploying", d.Last, "POST", d.Server+"/deployments", full)
	m.Want(200, "PATCH", d.Server, `{"state":"DISABLED"}`)
	m.Refused(400, "ServerNotActive", "DISABLED", "POST", d.Server+"/deployments", full)
}

// TestDeploymentsAreChecked checks that the data of zones is checked by the settings of the server: a problem is a warning or stops the
// deployment. Settings without effect are reported.
func TestDeploymentsAreChecked(t *testing.T) {
	m := startAlone(t)
	d := m.plan(m.ID("/api/v2/configurations", `{"name":"main"}`))
	generic := m.ID(d.Zone+"/resourceRecords", `{"type":"GenericRecord","name":"g","recordType":"TXT","rdata":"\"x\""}`)
	m.ID(d.Zone+"/resourceRecords", `{"type":"MXRecord","name":"m","priority":5,"linkedRecord":{"id":`+generic+`}}`)
	m.ID(d.Zone+"/resourceRecords", `{"type":"GenericRecord","name":"s_x","recordType":"A","rdata":"192.0.2.1"}`)
	validate := `{"type":"ValidationDeployment","service":"DNS"}`
	if message := d.Ends(validate, "COMPLETED_WITH_WARNINGS"); !strings.Contains(message, "g.wire.example., which has no address") ||
		!strings.Contains(message, "s_x.wire.example. is not a host name") {
		t.Errorf("the warnings are %q", message)
	}
	m.Want(200, "PATCH", d.Server, `{"checkNamesValidation":"FAIL","checkIntegrityValidation":"NONE"}`)
	if message := d.Ends(validate, "FAILED"); !strings.Contains(message, "s_x.wire.example. is not a host name") {
		t.Errorf("the fault is %q", message)
	}
	if message := d.Ends(`{"type":"FullDeployment","service":"DNS"}`, "FAILED"); !strings.Contains(message, "s_x.wire.example.") {
		t.Errorf("what fails is deployed: %q", message)
	}
	m.Want(200, "PATCH", d.Server, `{"checkNamesValidation":"IGNORE"}`)
	m.ID(d.Zone+"/deploymentOptions", `{"type":"DNSOption","name":"allow-notify","value":["any"]}`)
	if message := d.Carries(d.Server+"/deployments", `{"type":"FullDeployment","service":"DNS"}`); !strings.Contains(message,
		"the option allow-notify is ignored") {
		t.Errorf("an option that does nothing is %q", message)
	}
	if r := m.Want(200, "GET", d.Server+"/deployments", ""); r.Text("count") != "4" {
		t.Errorf("the deployments of the server are %s", r.Body)
	}
}

// TestLiveFaults checks that a zone of a live view that cannot be deployed does not delay other zones, whatever the order of the changes.
// It is reported once, and deployed again when it is corrected.
func TestLiveFaults(t *testing.T) {
	m := startAlone(t)
	d := m.plan(m.ID("/api/v2/configurations", `{"name":"main"}`))
	view := m.Want(200, "GET", d.Zone, "").Text("view.id")
	other := "/api/v2/zones/" + m.ID("/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"other.example","deploymentEnabled":true}`)
	bad := m.ID(d.Zone+"/resourceRecords", `{"type":"GenericRecord","name":"bad","recordType":"A","rdata":"192.0.2.1"}`)
	d.Carries(d.Server+"/deployments", `{"type":"FullDeployment","service":"DNS"}`)
	m.Want(200, "PATCH", "/api/v2/views/"+view, `{"liveDeployment":true}`)
	records := func(zone string) (n int) {
		if err := m.Store.View(t.Context(), func(tx *store.Tx) error {
			return tx.QueryRow("SELECT records FROM dns_zone WHERE zone = ?", view+"/"+zone).Scan(&n)
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before, first := records("other.example"), records("wire.example")

	// As an older release would have kept it: nothing can be made of its data now.
	if err := m.Store.Update(t.Context(), store.Author{}, func(tx *store.Tx) error {
		return tx.Write("UPDATE resource SET body = replace(CAST(body AS TEXT), '192.0.2.1', 'x') WHERE id = " + bad)
	}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two"} {
		m.Want(200, "POST", "/api/v2/batch", `{"changes":[{"method":"POST","path":"`+other+`/resourceRecords","body":{"type":"TXTRecord","name":"`+name+`","text":"x"}},`+
			`{"method":"POST","path":"`+d.Zone+`/resourceRecords","body":{"type":"TXTRecord","name":"bad","text":"`+name+`"}}]}`)
	}
	apitest.Eventually(t, "the other zone is deployed", func() bool { return records("other.example") == before+2 })
	if n := records("wire.example"); n != first {
		t.Errorf("a zone that cannot be deployed has %d records, and had %d", n, first)
	}
	events := "/api/v2/events?" + apitest.Filter("message:contains('zone wire.example could not be deployed')")
	if r := m.Want(200, "GET", events, ""); r.Text("count") != "1" {
		t.Errorf("the events are %s", r.Body)
	}
	m.Want(200, "PATCH", "/api/v2/resourceRecords/"+bad, `{"rdata":"192.0.2.2"}`)
	apitest.Eventually(t, "the zone is deployed again", func() bool { return records("wire.example") == first+2 })

	// One that was never deployed keeps no other from it either, and is served once it can be.
	m.Want(200, "PATCH", "/api/v2/views/"+view, `{"liveDeployment":false}`)
	third := "/api/v2/zones/" + m.ID("/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"third.example","deploymentEnabled":true}`)
	bad = m.ID(third+"/resourceRecords", `{"type":"GenericRecord","name":"bad","recordType":"A","rdata":"192.0.2.1"}`)
	m.ID("/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"good.example","deploymentEnabled":true}`)
	if err := m.Store.Update(t.Context(), store.Author{}, func(tx *store.Tx) error {
		return tx.Write("UPDATE resource SET body = replace(CAST(body AS TEXT), '192.0.2.1', 'x') WHERE id = " + bad)
	}); err != nil {
		t.Fatal(err)
	}
	served := func(zone string) (n int) {
		if err := m.Store.View(t.Context(), func(tx *store.Tx) error {
			return tx.QueryRow("SELECT count(*) FROM dns_served WHERE zone = ?", view+"/"+zone).Scan(&n)
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	m.Want(200, "PATCH", "/api/v2/views/"+view, `{"liveDeployment":true}`)
	apitest.Eventually(t, "the good zone is served", func() bool { return served("good.example") == 1 })
	if served("third.example") != 0 {
		t.Error("a zone is served that cannot be deployed")
	}
	apitest.Eventually(t, "it is told", func() bool {
		told := "/api/v2/events?" + apitest.Filter("message:contains('zone third.example could not be deployed')")
		return m.Want(200, "GET", told, "").Text("count") == "1"
	})
	m.Want(200, "PATCH", "/api/v2/resourceRecords/"+bad, `{"rdata":"192.0.2.2"}`)
	apitest.Eventually(t, "the zone is served", func() bool { return served("third.example") == 1 && records("third.example") > 2 })
}

// TestLongPolicyNamesAreRefused checks that a name of a response policy that is too long for one of its zones is refused, whether the name
// or the zone is created first.
func TestLongPolicyNamesAreRefused(t *testing.T) {
	m := startAlone(t)
	configuration, view, _, _, _ := m.Basics()
	policies := "/api/v2/configurations/" + configuration + "/responsePolicies"
	rules := m.ID(policies, `{"type":"ResponsePolicy","name":"blocked","policyType":"BLOCKLIST"}`)
	long := strings.Repeat("abcdefghi.", 24) + "com"
	body := func(zone string) string {
		return `{"type":"ResponsePolicyZone","name":"` + zone + `","responsePolicyZoneType":"LOCAL","responsePolicy":{"id":` + rules + `}}`
	}
	m.ID("/api/v2/responsePolicies/"+rules+"/policyItems", `{"name":"`+long+`"}`)
	m.Refused(400, "InvalidResourceFieldValue", "responsePolicy", "POST", "/api/v2/views/"+view+"/zones", body("policy.rpz"))
	m.ID("/api/v2/views/"+view+"/zones", body("rpz"))
	m.ID("/api/v2/responsePolicies/"+rules+"/policyItems", `{"name":"bad.example"}`)
	m.Refused(400, "InvalidResourceFieldValue", "name", "POST", "/api/v2/responsePolicies/"+rules+"/policyItems", `{"name":"12345678.`+long+`"}`)
}

// TestSelectiveStrategies checks that dynamic records end a selective deployment, are skipped, or become static, as the request states. A
// zone that cannot be deployed keeps others from it, unless the request states otherwise.
func TestSelectiveStrategies(t *testing.T) {
	m := startAlone(t)
	d := m.plan(m.ID("/api/v2/configurations", `{"name":"main"}`))
	view := m.Want(200, "GET", d.Zone, "").Text("view.id")
	other := "/api/v2/zones/" + m.ID("/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"other.example","deploymentEnabled":true}`)
	dynamic := m.ID(d.Zone+"/resourceRecords", `{"type":"TXTRecord","name":"d","text":"x"}`)
	if err := m.Store.Update(t.Context(), store.Author{}, func(tx *store.Tx) error { // as an update would have made it
		return tx.Write(`UPDATE resource SET body = replace(CAST(body AS TEXT), '"dynamic":false', '"dynamic":true') WHERE id = ` + dynamic)
	}); err != nil {
		t.Fatal(err)
	}
	good := m.ID(other+"/resourceRecords", `{"type":"TXTRecord","name":"good","text":"x"}`)
	bad := m.ID(d.Zone+"/resourceRecords", `{"type":"GenericRecord","name":"bad","recordType":"A","rdata":"192.0.2.1"}`)
	d.Carries(d.Server+"/deployments", `{"type":"FullDeployment","service":"DNS"}`)
	selective := func(record, more string) string {
		return `{"type":"SelectiveDeployment","resources":[{"id":` + record + `}]` + more + `}`
	}
	ends := func(body, state string) string {
		t.Helper()
		return deploytest.Await(&m.Client, m.ID("/api/v2/deployments", body), state)
	}
	if message := ends(selective(dynamic, ""), "FAILED"); !strings.Contains(message, "dynamicRecordDeploymentStrategy") {
		t.Errorf("a dynamic record: %q", message)
	}
	if message := ends(selective(dynamic, `,"dynamicRecordDeploymentStrategy":"SKIP"`), "COMPLETED_WITH_WARNINGS"); !strings.Contains(message,
		"skipped") {
		t.Errorf("a dynamic record that is passed over: %q", message)
	}
	if r := m.Want(200, "GET", "/api/v2/resourceRecords/"+dynamic, ""); r.Text("dynamic") != "true" {
		t.Errorf("it is %s", r.Body)
	}
	ends(selective(dynamic, `,"dynamicRecordDeploymentStrategy":"MAKE_STATIC"`), "COMPLETED")
	if r := m.Want(200, "GET", "/api/v2/resourceRecords/"+dynamic, ""); r.Text("dynamic") != "false" {
		t.Errorf("made static it is %s", r.Body)
	}
	if err := m.Store.Update(t.Context(), store.Author{}, func(tx *store.Tx) error {
		return tx.Write("UPDATE resource SET body = replace(CAST(body AS TEXT), '192.0.2.1', 'x') WHERE id = " + bad)
	}); err != nil {
		t.Fatal(err)
	}
	m.Want(200, "PATCH", "/api/v2/resourceRecords/"+good, `{"text":"y"}`)
	if message := ends(selective(good, ""), "FAILED"); !strings.Contains(message, "wire.example") {
		t.Errorf("beside a zone that cannot be deployed: %q", message)
	}
	d.Carries("/api/v2/deployments", selective(good, `,"continueOnFailureEnabled":true`))
}

// TestRolesMove checks that a role that moves to another server moves the records of its zones, whichever server is handled first.
func TestRolesMove(t *testing.T) {
	m := startAlone(t)
	configuration := m.ID("/api/v2/configurations", `{"name":"main"}`)
	at := "/api/v2/configurations/" + configuration
	d := m.plan(configuration)
	view := m.Want(200, "GET", d.Zone, "").Text("view.id")
	const point = "second"
	second := "/api/v2/servers/" + m.ID(at+"/servers", `{"type":"Server","name":"second","profile":"DNS_DHCP_SERVER_20","servicePoint":"`+point+
		`","interfaces":[{"type":"NetworkInterface","name":"second.example.net","managementAddress":"10.0.0.98"}]}`)
	role := "/api/v2/deploymentRoles/" + m.Want(200, "GET", "/api/v2/views/"+view+"/deploymentRoles", "").Text("data.0.id")
	interfaces := []string{m.Want(200, "GET", d.Server+"/interfaces", "").Text("data.0.id"),
		m.Want(200, "GET", second+"/interfaces", "").Text("data.0.id")}
	d.Carries(d.Server+"/deployments", `{"type":"FullDeployment","service":"DNS"}`)
	d.Carries(second+"/deployments", `{"type":"FullDeployment","service":"DNS"}`)
	m.Want(200, "PATCH", "/api/v2/views/"+view, `{"liveDeployment":true}`)
	for i := range 10 {
		m.Want(200, "PATCH", role, `{"interfaces":[{"id":`+interfaces[(i+1)%2]+`}]}`)
		wanted := strings.TrimPrefix([]string{second, d.Server}[i%2], "/api/v2/servers/")
		var server string
		var records int
		apitest.Eventually(t, "the other server serves the zone", func() bool {
			server, records = "", 0
			if err := m.Store.View(t.Context(), func(tx *store.Tx) error {
				return tx.Each(func(scan func(...any) error) error { return scan(&server, &records) },
					"SELECT CAST(s.server AS TEXT), z.records FROM dns_served s JOIN dns_zone z ON z.zone = s.zone WHERE z.zone = ?", view+"/wire.example")
			}); err != nil {
				t.Fatal(err)
			}
			return server == wanted
		})
		if records < 3 {
			t.Fatalf("move %d: the zone has %d records", i, records)
		}
	}
	m.Want(204, "DELETE", role, "")
	apitest.Eventually(t, "no server has the zone", func() bool {
		records := 1
		if err := m.Store.View(t.Context(), func(tx *store.Tx) error {
			return tx.QueryRow("SELECT records FROM dns_zone WHERE zone = ?", view+"/wire.example").Scan(&records)
		}); err != nil {
			t.Fatal(err)
		}
		return records == 0
	})
	m.ID("/api/v2/views/"+view+"/deploymentRoles", `{"type":"DNSDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":`+interfaces[0]+`}]}`)
	apitest.Eventually(t, "it is served again, with its records", func() bool {
		records := 0
		if err := m.Store.View(t.Context(), func(tx *store.Tx) error {
			return tx.QueryRow("SELECT records FROM dns_zone WHERE zone = ?", view+"/wire.example").Scan(&records)
		}); err != nil {
			t.Fatal(err)
		}
		return records >= 3
	})
}

// TestDeployZoneNamesNewServers checks that the deployment of a zone warns about a server with a role that was never deployed to.
func TestDeployZoneNamesNewServers(t *testing.T) {
	m := startAlone(t)
	configuration := m.ID("/api/v2/configurations", `{"name":"main"}`)
	at := "/api/v2/configurations/" + configuration
	d := m.plan(configuration)
	d.Carries(d.Server+"/deployments", `{"type":"FullDeployment","service":"DNS"}`)
	const point = "second"
	server := m.ID(at+"/servers", `{"type":"Server","name":"buoy","profile":"DNS_DHCP_SERVER_20","servicePoint":"`+point+`",`+
		`"interfaces":[{"type":"NetworkInterface","name":"buoy.example.net","managementAddress":"10.0.0.98"}]}`)
	own := m.Want(200, "GET", "/api/v2/servers/"+server+"/interfaces", "").Text("data.0.id")
	m.ID(d.Zone+"/deploymentRoles", `{"type":"DNSDeploymentRole","roleType":"SECONDARY","interfaces":[{"id":`+own+`}]}`)
	m.Want(200, "PATCH", "/api/v2/resourceRecords/"+d.Record, `{"text":"other"}`)
	d.Last = d.ID(d.Zone+"/deployments", `{"type":"QuickDeployment"}`)
	apitest.Eventually(t, "the deployment names the server", func() bool {
		message := m.Want(200, "GET", "/api/v2/deployments/"+d.Last, "").Text("message")
		return strings.Contains(message, "buoy") && strings.Contains(message, "has a role for zone wire.example and was never deployed")
	})
}

// TestRecordsOfDeployments checks that a deployment lists its records: new, changed and deleted ones, with their last values, until the
// deployment is deleted.
func TestRecordsOfDeployments(t *testing.T) {
	m := startAlone(t)
	configuration := m.ID("/api/v2/configurations", `{"name":"main"}`)
	at := "/api/v2/configurations/" + configuration
	d := m.plan(configuration)
	record := func(name, text string) string {
		return m.ID(d.Zone+"/resourceRecords", `{"type":"TXTRecord","name":"`+name+`","text":"`+text+`"}`)
	}
	one, two, three, kept := record("gone", "1"), record("gone", "2"), record("half", "3"), record("half", "4")
	d.Carries(d.Server+"/deployments", `{"type":"FullDeployment","service":"DNS"}`)
	first := d.Last
	for _, id := range []string{one, two, three} {
		m.Want(204, "DELETE", "/api/v2/resourceRecords/"+id, "")
	}
	passing := record("passing", "x") // which is gone before it was ever deployed
	m.Want(204, "DELETE", "/api/v2/resourceRecords/"+passing, "")
	added := record("new", "5")
	m.Want(200, "PATCH", "/api/v2/resourceRecords/"+d.Record, `{"text":"other"}`)
	d.Carries(d.Zone+"/deployments", `{"type":"QuickDeployment"}`)
	list := func(deployment, name, filter, ids string) {
		t.Helper()
		r := m.Want(200, "GET", "/api/v2/deployments/"+deployment+"/"+name+"?orderBy=id&total=true"+filter, "")
		var got []string
		for i := range r.Count() {
			got = append(got, r.Text(fmt.Sprintf("data.%d.id", i)))
		}
		if strings.Join(got, " ") != ids || r.Text("totalCount") != strconv.Itoa(len(got)) {
			t.Errorf("%s of deployment %s are %v, want %s: %s", name, deployment, got, ids, r.Body)
		}
	}
	all := one + " " + two + " " + three
	list(d.Last, "addedRecords", "", added)
	list(d.Last, "updatedRecords", "", d.Record+" "+kept)
	list(d.Last, "deletedRecords", "", all)
	list(d.Last, "deletedResources", "", all)
	list(d.Last, "deletedRecords", "&filter="+url.QueryEscape("name:contains('al') and type:'TXTRecord'"), three)
	list(d.Last, "deletedRecords", "&filter="+url.QueryEscape("absoluteName:'gone.wire.example'"), one+" "+two)
	list(first, "deletedRecords", "", "")
	if r := m.Want(200, "GET", "/api/v2/deployments/"+d.Last+"/deletedRecords?limit=1", ""); r.Text("data.0.text") != "1" ||
		r.Text("data.0.absoluteName") != "gone.wire.example" {
		t.Errorf("a record that is gone is shown as %s", r.Body)
	}
	user, as := m.User("ada", "NO_ACCESS")
	m.Right(user, strings.TrimPrefix(d.Server, "/api/v2/servers/"), "FULL", "")
	if r := m.Do("GET", "/api/v2/deployments/"+d.Last+"/deletedRecords", "", as); r.StatusCode == 200 && r.Count() != 0 {
		t.Errorf("who does not see the zone sees what it had: %s", r.Body)
	}
	m.Want(204, "DELETE", at, "") // and its deployments
	if err := m.Store.View(t.Context(), func(tx *store.Tx) error {
		var n int64
		err := tx.QueryRow("SELECT count(*) FROM deployment_deleted").Scan(&n)
		if n != 0 {
			t.Errorf("%d deleted records are kept although no server has them", n)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// TestSelectionsStayInTheirView checks that a selective deployment deploys only its selection: neither the same name in another view nor
// records of another type. Records without a server or a previous deployment are refused.
func TestSelectionsStayInTheirView(t *testing.T) {
	m := startAlone(t)
	configuration := m.ID("/api/v2/configurations", `{"name":"main"}`)
	at := "/api/v2/configurations/" + configuration
	d := m.plan(configuration)
	own := m.Want(200, "GET", d.Server+"/interfaces", "").Text("data.0.id")
	outside := m.ID(at+"/views", `{"name":"outside"}`)
	twin := "/api/v2/zones/" + m.ID("/api/v2/views/"+outside+"/zones", `{"type":"Zone","absoluteName":"wire.example","deploymentEnabled":true}`)
	m.ID("/api/v2/views/"+outside+"/deploymentRoles", `{"type":"DNSDeploymentRole","roleType":"PRIMARY","view":{"id":`+outside+`},"interfaces":[{"id":`+own+`}]}`)
	nobody := "/api/v2/zones/" + m.ID("/api/v2/views/"+m.ID(at+"/views", `{"name":"nowhere"}`)+"/zones", `{"type":"Zone","absoluteName":"wire.example","deploymentEnabled":true}`)
	d.Carries(d.Server+"/deployments", `{"type":"FullDeployment","service":"DNS"}`)
	record := func(zone, kind, more string) string {
		return m.ID(zone+"/resourceRecords", `{"type":"`+kind+`","name":"b",`+more+`}`)
	}
	wanted := record(d.Zone, "TXTRecord", `"text":"wanted"`)
	record(d.Zone, "HINFORecord", `"cpu":"a","os":"b"`)
	pending := record(twin, "TXTRecord", `"text":"pending"`)
	lost := record(nobody, "TXTRecord", `"text":"lost"`)
	selective := func(record, more string) string {
		return `{"type":"SelectiveDeployment","recordScope":"SPECIFIC","resources":[{"id":` + record + `}]` + more + `}`
	}
	m.Refused(400, "NoAssignedDnsDeploymentRoles", "wire.example", "POST", "/api/v2/deployments", selective(lost, ""))
	if message := deploytest.Await(&m.Client, m.ID("/api/v2/deployments", selective(lost, `,"continueOnFailureEnabled":true`)), "COMPLETED_WITH_WARNINGS"); !strings.Contains(message, "no deployment role") {
		t.Errorf("a zone without a server is skipped with %q", message)
	}
	const changed = "1 of them changed: 2 records added, 1 removed" // with the SOA record
	if message := d.Carries("/api/v2/deployments", selective(wanted, "")); !strings.Contains(message, changed) {

		t.Errorf("a selective deployment of one record says %q", message)
	}
	if r := m.Want(200, "GET", "/api/v2/deployments/"+d.Last+"/addedRecords?total=true", ""); r.Text("totalCount") != "1" ||
		r.Text("data.0.id") != wanted {
		t.Errorf("it added %s", r.Body)
	}
	if r := m.Want(200, "GET", "/api/v2/deployments/"+d.Last+"/updatedRecords?total=true", ""); r.Text("totalCount") != "0" {
		t.Errorf("it changed %s", r.Body)
	}
	d.Carries("/api/v2/deployments", selective(pending, ""))
	if r := m.Want(200, "GET", "/api/v2/deployments/"+d.Last+"/addedRecords", ""); r.Text("data.0.id") != pending || r.Count() != 1 {
		t.Errorf("the other view got %s", r.Body)
	}
}
