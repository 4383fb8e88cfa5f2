package imports_test

import (
	"strings"
	"testing"

	"portolan/internal/testkit/apitest"
)

// TestImportsBelow imports a table that is sent below a block, a network, a view or a zone. The first row names the columns, each row has
// the result of a request that creates it, and the headers apply to all rows.
func TestImportsBelow(t *testing.T) {
	m := start(t)
	_, view, zone, block, network := m.Basics()
	asTable := "Content-Type: text/csv"
	sent := func(path, table, kind, want string, headers ...string) (apitest.Reply, string) {
		t.Helper()
		r := m.Want(201, "POST", "/api/v2/"+path+"/imports", table, append(headers, asTable)...)
		if r.Text("type") != kind || r.Text("state") != "QUEUED" || r.Header.Get("Location") == "" {
			t.Fatalf("%s: %s", path, r.Body)
		}
		made, log := m.EndedImport(r.Text("id"))
		if apitest.ImportCounts(made) != want {
			t.Errorf("%s: %s, want %s\n%s", path, apitest.ImportCounts(made), want, log)
		}
		if r := m.Want(200, "GET", "/api/v2/"+path+"/imports/"+r.Text("id"), ""); r.Text("type") != kind {
			t.Errorf("below %s it is %s", path, r.Body)
		}
		return made, log
	}
	sent("blocks/"+block, "type,range,name\nIPv4Network,10.7.0.0/24,a\nIPv4Network,10.7.1.0/24,b\n", "IPv4NetworkImport",
		"COMPLETED: 2 rows, 2 created, 0 updated, 0 unchanged, 0 refused", "x-bcn-no-gateway: true", "x-bcn-change-control-comment: moved here")
	r := m.Want(200, "GET", "/api/v2/networks?"+apitest.Filter("name:'a'"), "")
	if r.Text("data.0.gateway") != "" {
		t.Errorf("the header did not hold: %s", r.Body)
	}
	if c := m.Want(200, "GET", "/api/v2/networks/"+r.Text("data.0.id")+"/transactions", ""); c.Text("data.0.comment") != "moved here" {
		t.Errorf("the history says %s", c.Body)
	}
	_, log := sent("blocks/"+block, "type,range,name\nIPv4Network,10.7.0.0/24,again\nIPv4Network,10.7.2.0/24,c\n"+
		"IPv4Network,172.16.0.0/24,far\n", "IPv4NetworkImport", "COMPLETED_WITH_ERRORS: 3 rows, 1 created, 0 updated, 0 unchanged, 2 refused")
	for _, want := range []string{"line 2: ", "line 4: IpRangeOutsideParent"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %q:\n%s", want, log)
		}
	}
	sent("blocks/"+block, "type,range\nIPv4Block,10.8.0.0/16\n", "IPv4BlockImport",
		"COMPLETED: 1 rows, 1 created, 0 updated, 0 unchanged, 0 refused")
	sent("networks/"+network, "type,address,name,state,macAddress.address\nIPv4Address,10.0.0.77,printer,DHCP_RESERVED,"+
		"00-00-5E-00-53-77\nIPv4Address,,next,STATIC,\n",
		"IPv4AddressImport", "COMPLETED: 2 rows, 2 created, 0 updated, 0 unchanged, 0 refused")
	if _, log := sent("blocks/"+block, "type,range,nonsense\nIPv4Network,10.7.50.0/24,x\n", "IPv4NetworkImport",
		"COMPLETED_WITH_WARNINGS: 1 rows, 1 created, 0 updated, 0 unchanged, 0 refused"); !strings.Contains(log, "nonsense") {
		t.Errorf("a column that is not a field: %s", log)
	}
	m.Refused(400, "InvalidHeaderValue", "DRY_RUN", "POST", "/api/v2/blocks/"+block+"/imports", "type\n", asTable, "x-portolan-dry-run: true")
	m.Refused(415, "UnsupportedMediaType", "compressed", "POST", "/api/v2/blocks/"+block+"/imports", "type\n", asTable,
		"Content-Encoding: gzip")
	sent("views/"+view, "type,absoluteName\nZone,lab.test\n", "ZoneImport", "COMPLETED: 1 rows, 1 created, 0 updated, 0 unchanged, 0 refused")
	sent("zones/"+zone, "type,name,addresses[0].address,text\nHostRecord,printer,10.0.0.77,\nTXTRecord,t,,hello\n", "ResourceRecordImport",
		"COMPLETED: 2 rows, 2 created, 0 updated, 0 unchanged, 0 refused", "x-bcn-create-reverse-record: true")
	if r := m.Want(200, "GET", "/api/v2/blocks/"+block+"/imports", ""); r.Text("count") != "4" {
		t.Errorf("below the block are %s", r.Body)
	}
	made, log := m.EndedImport(m.Want(201, "POST", "/api/v2/blocks/"+block+"/imports", `{"type":"IPv4NetworkImport","name":"from a script","resources":[
		{"range":"10.9.0.0/24","name":"x","userDefinedFields":{"owner":"lab"}},{"type":"IPv4Network","range":"10.9.1.0/24"},
		{"range":"10.9.0.0/24"},{"type":"IPv4Network"}]}`, "x-bcn-no-gateway: true").Text("id"))
	if apitest.ImportCounts(made) != "COMPLETED_WITH_ERRORS: 4 rows, 2 created, 0 updated, 0 unchanged, 2 refused" ||
		!strings.Contains(log, "required and missing: range") {
		t.Errorf("%s\n%s", apitest.ImportCounts(made), log)
	}
	if r := m.Want(200, "GET", "/api/v2/networks?"+apitest.Filter("name:'x' and userDefinedFields.owner:'lab'"),
		""); r.Text("data.0.gateway") != "" ||
		r.Text("data.0.range") != "10.9.0.0/24" {
		t.Errorf("made was %s", r.Body)
	}
	for code, body := range map[string]string{
		"MissingRequiredField":     `{"type":"IPv4NetworkImport"}`,
		"EmptyFieldValue":          `{"type":"IPv4NetworkImport","resources":[]}`,
		"JsonDeserializationError": `{"type":"IPv4NetworkImport","resources":[null]}`,
		"InvalidResourceType":      `{"type":"ZoneImport","resources":[{"absoluteName":"x.test"}]}`,
	} {
		m.Refused(400, code, "", "POST", "/api/v2/blocks/"+block+"/imports", body)
	}
	m.Refused(400, "InvalidCsv", "type", "POST", "/api/v2/blocks/"+block+"/imports", "range\n10.7.9.0/24\n", asTable)
	m.Refused(400, "InvalidCsv", "rows", "POST", "/api/v2/blocks/"+block+"/imports", "type,range\n", asTable)
	m.Refused(400, "InvalidResourceType", "IPv4Address", "POST", "/api/v2/blocks/"+block+"/imports", "type,range\nIPv4Address,10.7.9.0\n",
		asTable)
	m.Refused(400, "InvalidResourceType", "HostRecord", "POST", "/api/v2/views/"+view+"/imports", "type,name\nHostRecord,x\n", asTable)
	m.Refused(400, "InvalidFileCharacterEncoding", "UTF-8", "POST", "/api/v2/blocks/"+block+"/imports",
		"type,range\nIPv4Network,10.7.9.0/24\n", "Content-Type: text/csv; charset=iso-8859-1")
	m.Refused(404, "ResourceNotFound", "999999", "POST", "/api/v2/blocks/999999/imports", "type,range\nIPv4Network,10.7.9.0/24\n", asTable)
	m.Refused(415, "UnsupportedMediaType", "", "POST", "/api/v2/configurations", "type,name\n", asTable)
	m.Verify()
}
