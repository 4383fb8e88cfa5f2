package dnspublish_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"portolan/internal/engine/store"
	"portolan/internal/testkit/apitest"
	"portolan/internal/testkit/deploytest"
)

// TestChecksOfLiveViews checks that live changes that fail the checks of a server are withheld and reported, and are deployed once they are
// corrected.
func TestChecksOfLiveViews(t *testing.T) {
	m := startAlone(t)
	d := m.plan(m.ID("/api/v2/configurations", `{"name":"main"}`))
	view := m.Want(200, "GET", d.Zone, "").Text("view.id")
	m.Want(200, "PATCH", d.Server, `{"checkNamesValidation":"FAIL","checkMxCnameValidation":"FAIL","checkIntegrityValidation":"NONE"}`)
	m.ID(d.Zone+"/resourceRecords", `{"type":"GenericRecord","name":"host","recordType":"A","rdata":"192.0.2.1"}`)
	d.Carries(d.Server+"/deployments", `{"type":"FullDeployment","service":"DNS"}`)
	m.Want(200, "PATCH", "/api/v2/views/"+view, `{"liveDeployment":true}`)
	records := func() (n int) {
		if err := m.Store.View(t.Context(), func(tx *store.Tx) error {
			return tx.QueryRow("SELECT records FROM dns_zone WHERE zone = ?", view+"/wire.example").Scan(&n)
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	told := func(what string) func() bool {
		return func() bool {
			return m.Want(200, "GET", "/api/v2/events?"+apitest.Filter("message:contains('"+what+"')"), "").Count() > 0
		}
	}
	before := records()
	bad := m.ID(d.Zone+"/resourceRecords", `{"type":"GenericRecord","name":"under_score","recordType":"A","rdata":"192.0.2.2"}`)
	apitest.Eventually(t, "it is told", told("under_score.wire.example. is not a host name"))
	m.ID(d.Zone+"/resourceRecords", `{"type":"TXTRecord","name":"good","text":"x"}`)
	apitest.Eventually(t, "what is good goes out", func() bool { return records() == before+1 })
	for _, one := range []struct{ at, body string }{{d.Zone + "/deployments", `{"type":"QuickDeployment"}`},
		{"/api/v2/deployments", `{"type":"SelectiveDeployment","resources":[{"id":` + bad + `}]}`}} {
		if message := deploytest.Await(&m.Client, m.ID(one.at, one.body), "FAILED"); !strings.Contains(message, "is not a host name") {
			t.Errorf("%s ends with %q", one.body, message)
		}
	}
	if n := records(); n != before+1 {
		t.Errorf("there are %d records, want %d", n, before+1)
	}
	m.Want(200, "PATCH", "/api/v2/resourceRecords/"+bad, `{"name":"mended"}`)
	apitest.Eventually(t, "it goes out once it is mended", func() bool { return records() == before+2 })
	alias := m.ID(d.Zone+"/resourceRecords", `{"type":"AliasRecord","name":"alias","linkedRecord":{"id":`+bad+`}}`)
	apitest.Eventually(t, "the alias goes out", func() bool { return records() == before+3 })
	mx := m.ID(d.Zone+"/resourceRecords", `{"type":"MXRecord","name":"mail","priority":10,"linkedRecord":{"id":`+alias+`}}`)
	apitest.Eventually(t, "that is told, too", told("points to an alias"))
	if n := records(); n != before+3 {
		t.Errorf("there are %d records, want %d", n, before+3)
	}
	m.Want(204, "DELETE", "/api/v2/resourceRecords/"+mx, "")
	// An alias stays deployed while the record that would replace it is withheld.
	under := m.ID(d.Zone+"/resourceRecords", `{"type":"AliasRecord","name":"under_alias","linkedRecord":{"id":`+bad+`}}`)
	apitest.Eventually(t, "another alias goes out", func() bool { return records() == before+4 })
	m.Want(200, "POST", "/api/v2/batch", `{"changes":[{"method":"DELETE","path":"resourceRecords/`+under+`"},{"method":"POST","path":"`+
		strings.TrimPrefix(d.Zone, "/api/v2/")+`/resourceRecords","body":{"type":"GenericRecord","name":"under_alias","recordType":"A","rdata":"192.0.2.3"}}]}`)
	apitest.Eventually(t, "what takes its place is withheld", told("under_alias.wire.example. is not a host name"))
	m.ID(d.Zone+"/resourceRecords", `{"type":"TXTRecord","name":"behind","text":"x"}`)
	apitest.Eventually(t, "what comes behind goes out", func() bool { return records() == before+5 })
	m.Want(204, "DELETE", "/api/v2/resourceRecords/"+alias, "")
	apitest.Eventually(t, "the alias goes", func() bool { return records() == before+4 })
}

// TestWithheldChangesAreRechecked checks that a withheld change is reported once, however often it is checked again. It is deployed after a
// change of another name has corrected the problem.
func TestWithheldChangesAreRechecked(t *testing.T) {
	m := startAlone(t)
	d := m.plan(m.ID("/api/v2/configurations", `{"name":"main"}`))
	view := m.Want(200, "GET", d.Zone, "").Text("view.id")
	m.Want(200, "PATCH", d.Server,
		`{"checkNsValidation":"FAIL","checkMxValidation":"FAIL","checkNamesValidation":"FAIL","checkIntegrityValidation":"NONE"}`)
	d.Carries(d.Server+"/deployments", `{"type":"FullDeployment","service":"DNS"}`)
	m.Want(200, "PATCH", "/api/v2/views/"+view, `{"liveDeployment":true}`)
	before := m.deployedRecords(view + "/wire.example")
	out := func(what string, more int) {
		t.Helper()
		apitest.Eventually(t, what, func() bool { return m.deployedRecords(view+"/wire.example") == before+more })
	}
	told := func(what string) string {
		return m.Want(200, "GET", "/api/v2/events?total=true&"+apitest.Filter("message:contains('"+what+"')"), "").Text("totalCount")
	}
	record := func(kind, name, more string) string {
		return m.ID(d.Zone+"/resourceRecords", `{"type":"`+kind+`","name":"`+name+`",`+more+`}`, "x-bcn-link-to-external-host: true")
	}
	alias := record("AliasRecord", "ns1", `"linkedRecord":{"absoluteName":"other.example.net"}`)
	out("the alias goes out", 1)
	record("GenericRecord", "sub", `"recordType":"NS","rdata":"ns1.wire.example."`)
	record("GenericRecord", "under_score", `"recordType":"A","rdata":"192.0.2.2"`)
	apitest.Eventually(t, "both are told", func() bool { return told("points to an alias") == "1" && told("under_score") == "1" })
	for i := range 3 { // which has nothing to do with it, and has all looked at
		m.Want(200, "PATCH", d.Server, fmt.Sprintf(`{"name":"wire-%d"}`, i))
		record("TXTRecord", fmt.Sprintf("text-%d", i), `"text":"x"`)
		out("other records go out", 2+i)
	}
	if told("points to an alias") != "1" || told("under_score") != "1" {
		t.Errorf("%s events and %s", told("points to an alias"), told("under_score"))
	}
	m.Want(204, "DELETE", "/api/v2/resourceRecords/"+alias, "")
	record("GenericRecord", "ns1", `"recordType":"A","rdata":"192.0.2.3"`)
	out("what leads to a host now goes out", 5)
	// Another fault at the same name is reported as well.
	record("MXRecord", "under_score", `"priority":10,"linkedRecord":{"absoluteName":"192.0.2.9"}`)
	apitest.Eventually(t, "that is told", func() bool { return told("the MX record of under_score") == "1" })
	// If the replacement of an alias is withheld, records that point to the alias are withheld as well.
	stays := record("AliasRecord", "al_ias", `"linkedRecord":{"absoluteName":"other.example.net"}`)
	out("another alias goes out", 6)
	m.Want(200, "POST", "/api/v2/batch", `{"changes":[{"method":"DELETE","path":"resourceRecords/`+stays+`"},{"method":"POST","path":"`+
		strings.TrimPrefix(d.Zone, "/api/v2/")+`/resourceRecords","body":{"type":"GenericRecord","name":"al_ias","recordType":"A","rdata":"192.0.2.3"}},`+
		`{"method":"POST","path":"`+strings.TrimPrefix(d.Zone, "/api/v2/")+
		`/resourceRecords","body":{"type":"GenericRecord","name":"below","recordType":"NS","rdata":"al_ias.wire.example."}}]}`)
	apitest.Eventually(t, "both are told", func() bool {
		return told("al_ias.wire.example. is not a host name") == "1" && told("below.wire.example. points to an alias") == "1"
	})
	record("TXTRecord", "behind", `"text":"x"`)
	out("the alias stays", 7)
	m.Verify()
}

// deployedRecords returns the number of deployed records of a zone.
func (m *manager) deployedRecords(zone string) (n int) {
	m.T.Helper()
	if err := m.Store.View(m.T.Context(), func(tx *store.Tx) error {
		return tx.QueryRow("SELECT records FROM dns_zone WHERE zone = ?", zone).Scan(&n)
	}); err != nil {
		m.T.Fatal(err)
	}
	return n
}

// TestSelectionExcludesForeignData checks that the deployment of a selected record does not deploy another user's data at a former name of
// the record.
func TestSelectionExcludesForeignData(t *testing.T) {
	m := startAlone(t)
	d := m.plan(m.ID("/api/v2/configurations", `{"name":"main"}`))
	mine := m.ID(d.Zone+"/resourceRecords", `{"type":"TXTRecord","name":"www","text":"mine"}`)
	d.Carries(d.Server+"/deployments", `{"type":"FullDeployment","service":"DNS"}`)
	m.Want(200, "PATCH", "/api/v2/resourceRecords/"+mine, `{"name":"web"}`)
	d.Carries("/api/v2/deployments", `{"type":"SelectiveDeployment","recordScope":"SPECIFIC","resources":[{"id":`+mine+`}]}`)
	other := m.ID(d.Zone+"/resourceRecords", `{"type":"TXTRecord","name":"www","text":"pending"}`)
	m.Want(200, "PATCH", "/api/v2/resourceRecords/"+mine, `{"text":"changed"}`)
	message := d.Carries("/api/v2/deployments", `{"type":"SelectiveDeployment","recordScope":"SPECIFIC","resources":[{"id":`+mine+`}]}`)
	if !strings.Contains(message, "now belongs to record "+other) {
		t.Errorf("the deployment says %q", message)
	}
	for _, list := range []string{"addedRecords", "updatedRecords"} {
		if r := m.Want(200, "GET", "/api/v2/deployments/"+d.Last+"/"+list, ""); strings.Contains(string(r.Body), `"id":`+other+",") {
			t.Errorf("it deployed another record: %s", r.Body)
		}
	}
}

// TestSelectionsOfAliases checks selections with an alias that replaces other data at a name, or the reverse. The new record alone deploys
// the complete name, so that no name has an alias beside other data. Data at a former name of the record is removed.
func TestSelectionsOfAliases(t *testing.T) {
	m := startAlone(t)
	d := m.plan(m.ID("/api/v2/configurations", `{"name":"main"}`))
	record := func(kind, name, more string) string {
		return m.ID(d.Zone+"/resourceRecords", `{"type":"`+kind+`","name":"`+name+`",`+more+`}`, "x-bcn-link-to-external-host: true")
	}
	const alias = `"linkedRecord":{"absoluteName":"www.other.example"}`
	first, second, third := record("AliasRecord", "first", alias), record("TXTRecord", "second", `"text":"a"`), record("TXTRecord", "third", `"text":"a"`)
	d.Carries(d.Server+"/deployments", `{"type":"FullDeployment","service":"DNS"}`)
	m.Want(204, "DELETE", "/api/v2/resourceRecords/"+first, "")
	m.Want(204, "DELETE", "/api/v2/resourceRecords/"+second, "")
	first, second = record("TXTRecord", "first", `"text":"b"`), record("AliasRecord", "second", alias)
	m.Want(200, "PUT", "/api/v2/resourceRecords/"+third, `{"type":"TXTRecord","name":"fourth","text":"a"}`)
	for _, selected := range []string{first, second, third} {
		message := d.Carries("/api/v2/deployments", `{"type":"SelectiveDeployment","recordScope":"SPECIFIC","resources":[{"id":`+selected+`}]}`)
		if !strings.Contains(message, "2 records added, 2 removed") { // with the SOA record
			t.Errorf("the deployment of one record says %q", message)
		}
	}
}

// TestQueuedDeploymentsOfAUser queues as many deployments as a user may have, in one transaction, so that none of them ends meanwhile.
func TestQueuedDeploymentsOfAUser(t *testing.T) {
	apitest.Slow(t)
	m := startAlone(t)
	configuration := m.ID("/api/v2/configurations", `{"name":"main","dnsZoneValidationEnabled":true}`)
	at := "/api/v2/configurations/" + configuration
	const most = 1000
	var servers, changes []string
	for i := range most + 1 {
		servers = append(servers, apitest.ServerBody(fmt.Sprint("ns", i), fmt.Sprintf("10.0.%d.%d", i/250, 1+i%250)))
	}
	for some := range slices.Chunk(servers, 250) { // an apply of all would exceed its time limit on a busy machine
		m.Want(200, "POST", "/api/v2/apply", `{"into":"`+strings.TrimPrefix(at, "/api/v2/")+`","resources":[`+strings.Join(some, ",")+`]}`)
	}
	for _, row := range m.Want(200, "GET", at+"/servers?limit=1001&fields=id", "").Get("data").([]any) {
		changes = append(changes, fmt.Sprintf(`{"method":"POST","path":"servers/%v/deployments","body":{"type":"ValidationDeployment","service":"DNS"}}`,
			row.(map[string]any)["id"]))
	}
	batch := func(changes []string) string { return `{"changes":[` + strings.Join(changes, ",") + `]}` }
	m.Refused(429, "TooManyRequests", "1000 deployments of admin are already queued", "POST", "/api/v2/batch", batch(changes))
	m.Want(200, "POST", "/api/v2/batch", batch(changes[:most]))
}
