package imports_test

import (
	"fmt"
	"strings"
	"testing"

	"portolan/internal/engine/store"
	"portolan/internal/testkit/apitest"
)

// TestImportFindsPlaces checks that address space is placed by its range and names by their zone, in the configuration of the row or of the
// import.
func TestImportFindsPlaces(t *testing.T) {
	apitest.Slow(t)
	m := start(t)
	configuration, view, _, _, _ := m.Basics()
	space := "type,range,name,configuration.name,address,state\n" +
		"IPv4Block,10.0.0.0/12,small,main,,\nIPv4Network,10.1.0.0/24,lab,main,,\nIPv4Address,,probe,main,10.1.0.7,STATIC\n" +
		"IPv4Network,192.0.2.0/24,,main,,\nIPv4Address,,,main,192.0.2.7,STATIC\nIPv4Network,10.1.0.0/24,again,main,,\n" +
		"IPv4Network,10.2.0.0/24,,other,,\n"
	made, log := m.Imported(`"contentType":"text/csv"`, space)
	if apitest.ImportCounts(made) != "COMPLETED_WITH_WARNINGS: 7 rows, 3 created, 0 updated, 0 unchanged, 4 refused" {
		t.Fatalf("%s\n%s", apitest.ImportCounts(made), log)
	}
	for _, want := range []string{"line 5: IpRangeOutsideParent: range: 192.0.2.0/24 is not in a block of main",
		"line 6: IpRangeOutsideParent: address: ", "line 7: ResourceConflictsWithOther: line 3 is about the same IPv4Network",
		`line 8: InlinedResourceNotFound: configuration: configuration "other" does not exist`} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %q:\n%s", want, log)
		}
	}
	lab := m.Want(200, "GET", "/api/v2/networks?"+apitest.Filter("name:'lab'"), "")
	// A row that repeats a key of the file names the first row, also if the rows only create; a dry run does the same.
	for _, mode := range []string{"DRY_RUN", "ALL_OR_NOTHING"} {
		_, log := m.Imported(`"contentType":"text/csv","action":"CREATE","mode":"`+mode+`"`, "type,range,configuration.name\n"+
			"IPv4Network,10.1.1.0/24,main\nIPv4Network,10.1.0.0/24,main\nIPv4Network,10.1.1.0/24,main\n")
		for _, want := range []string{"line 3: ResourceAlreadyExists: already exists as IPv4Network " + lab.Text("data.0.id"),
			"line 4: ResourceConflictsWithOther: line 2 is about the same IPv4Network"} {
			if !strings.Contains(log, want) {
				t.Errorf("%s: the log has no %q:\n%s", mode, want, log)
			}
		}
	}
	if up := lab.Text("data.0._links.up.href"); !strings.HasPrefix(up, "/api/v2/blocks/") ||
		m.Want(200, "GET", up, "").Text("name") != "small" {
		t.Errorf("the parent of the network is %s", up)
	}
	names := "type;absoluteName;view.name;text\nZone;eu.example.com;internal;\nTXTRecord;a.b.eu.example.com;internal;hello\n" +
		"TXTRecord;nowhere.example;internal;\nTXTRecord;x.eu.example.com;external;x\nZone;b.c.example.net;internal;\n"
	made, log = m.Imported(`"contentType":"text/csv","into":"/api/v2/configurations/`+configuration+`"`, names)
	if apitest.ImportCounts(made) != "COMPLETED_WITH_WARNINGS: 5 rows, 3 created, 0 updated, 0 unchanged, 2 refused" {
		t.Fatalf("%s\n%s", apitest.ImportCounts(made), log)
	}
	// The same again changes nothing; what has a name of its own is changed by it.
	again := `"contentType":"text/csv","into":"/api/v2/configurations/` + configuration + `"`
	if made, log = m.Imported(again,
		names); apitest.ImportCounts(made) != "COMPLETED_WITH_WARNINGS: 5 rows, 0 created, 0 updated, 3 unchanged, 2 refused" {
		t.Errorf("%s\n%s", apitest.ImportCounts(made), log)
	}
	hosts := "type,absoluteName,ttl,addresses[0].address\nHostRecord,h.eu.example.com,60,\n"
	eu := m.Want(200, "GET", "/api/v2/zones?"+apitest.Filter("absoluteName:'eu.example.com'"), "").Text("data.0.id")
	m.ID("/api/v2/zones/"+eu+"/resourceRecords",
		`{"type":"HostRecord","name":"h","addresses":[{"address":"10.1.0.7"}]}`)
	if made, log = m.Imported(again, hosts); apitest.ImportCounts(made) != "COMPLETED: 1 rows, 0 created, 1 updated, 0 unchanged, 0 refused" {
		t.Errorf("%s\n%s", apitest.ImportCounts(made), log)
	}
	if r := m.Want(200, "GET", "/api/v2/resourceRecords?"+apitest.Filter("absoluteName:'a.b.eu.example.com'"),
		""); r.Text("data.0.name") != "a.b" ||
		r.Text("data.0.text") != "hello" {
		t.Errorf("the record is %s\n%s", r.Body, log)
	}
	if r := m.Want(200, "GET", "/api/v2/views/"+view+"/zones?fields=absoluteName", ""); !strings.Contains(string(r.Body), "net") {
		t.Errorf("the view has the zones %s", r.Body)
	}
	// An empty cell says nothing, however often; null takes a value away.
	gateways := "type,range,name,gateway,configuration.name\nIPv4Network,10.5.0.0/24,gw,,main\n"
	for _, want := range []string{"1 created, 0 updated, 0 unchanged", "0 created, 0 updated, 1 unchanged"} {
		if made, log := m.Imported(`"contentType":"text/csv"`, gateways); !strings.Contains(apitest.ImportCounts(made), want) {
			t.Errorf("%s, want %s\n%s", apitest.ImportCounts(made), want, log)
		}
	}
	gw := "/api/v2/networks?" + apitest.Filter("range:'10.5.0.0/24'")
	if r := m.Want(200, "GET", gw, ""); r.Text("data.0.gateway") != "10.5.0.1" {
		t.Errorf("the gateway is %s", r.Body)
	}
	m.Imported(`"contentType":"text/csv"`, strings.Replace(gateways, "gw,,", "null,null,", 1))
	if r := m.Want(200, "GET", gw, ""); r.Text("data.0.gateway") != "" || r.Text("data.0.name") != "" {
		t.Errorf("the gateway is still there: %s", r.Body)
	}
	// A resource that can have parents of several types is not placed without a parent.
	made, log = m.Imported(`"contentType":"application/x-ndjson"`, `{"type":"DHCPv4ClientOption","code":6,"value":["10.0.0.5"]}`+"\n"+
		`{"type":"Tag","name":"lost","_links":{"up":{"href":"/api/v2/tagGroups/99999999"}}}`)
	if made.Text("refused") != "2" || !strings.Contains(log, "into") {
		t.Errorf("%s\n%s", apitest.ImportCounts(made), log)
	}
	// References are changed and taken away by their ids.
	country := m.Want(200, "GET", "/api/v2/locations?filter=code:'CH'", "").Text("data.0.id")
	lab2 := lab.Text("data.0.id")
	for _, step := range []struct{ cells, want, location string }{
		{country + ",", "1 updated, 0 unchanged, 0 refused", country},
		{country + ",Nowhere", "0 updated, 0 unchanged, 1 refused", country},
		{country + ",Switzerland", "0 updated, 1 unchanged, 0 refused", country},
		{",", "0 updated, 1 unchanged, 0 refused", country},
		{"null,Switzerland", "1 updated, 0 unchanged, 0 refused", ""},
	} {
		made, log := m.Imported(`"contentType":"text/csv"`, "id,location.id,location.name\n"+lab2+","+step.cells+"\n")
		r := m.Want(200, "GET", "/api/v2/networks/"+lab2, "")
		if !strings.Contains(apitest.ImportCounts(made), step.want) || r.Text("location.id") != step.location {
			t.Errorf("%s: %s, %s\n%s", step.cells, apitest.ImportCounts(made), r.Text("location"), log)
		}
	}
	// Or by texts: their keys, or their paths.
	for _, step := range []struct{ cell, want, location string }{
		{"CH", "1 updated, 0 unchanged, 0 refused", country}, {"Switzerland", "0 updated, 1 unchanged, 0 refused", country},
		{"locations/CH", "0 updated, 1 unchanged, 0 refused", country}, {"XX", "0 updated, 0 unchanged, 1 refused", country},
		{"locations/XX", "0 updated, 0 unchanged, 1 refused", country}, {"null", "1 updated, 0 unchanged, 0 refused", ""},
	} {
		made, log := m.Imported(`"contentType":"text/csv"`, "type,range,configuration,location\nIPv4Network,10.1.0.0/24,main,"+step.cell+"\n")
		r := m.Want(200, "GET", "/api/v2/networks/"+lab2, "")
		if !strings.Contains(apitest.ImportCounts(made), step.want) || r.Text("location.id") != step.location ||
			made.Text("refused") == "1" && !strings.Contains(log, "location") {
			t.Errorf("%s: %s, %s\n%s", step.cell, apitest.ImportCounts(made), r.Text("location"), log)
		}
	}
	// A created secret is not shown, and the log notes it.
	if made, log := m.Imported(`"contentType":"text/csv"`, "type,configuration,name,algorithm,length\nTSIGKey,main,dhcp,SHA256,256\n"); !strings.Contains(
		apitest.ImportCounts(made), "1 created") || !strings.Contains(log, "a secret was created, which imports do not show: privateKey") {
		t.Errorf("%s\n%s", apitest.ImportCounts(made), log)
	}
	// Where a resource says where it lies, as the API shows it, that is its place; one that is made in the same file is found.
	group := m.ID("/api/v2/tagGroups", `{"type":"TagGroup","name":"sites"}`)
	made, log = m.Imported(`"contentType":"application/x-ndjson"`, `{"type":"Tag","name":"north","_links":{"up":{"href":"/api/v2/tagGroups/`+group+`"}}}`+"\n\n"+
		`{"type":"TagGroup","name":"floors"}`+"\n")
	if apitest.ImportCounts(made) != "COMPLETED: 2 rows, 2 created, 0 updated, 0 unchanged, 0 refused" {
		t.Errorf("%s\n%s", apitest.ImportCounts(made), log)
	}
	made, log = m.Imported(`"contentType":"text/csv","into":"tagGroups/`+group+`/tags"`, "name\nsouth\nnorth\n")
	if apitest.ImportCounts(made) != "COMPLETED: 2 rows, 1 created, 0 updated, 1 unchanged, 0 refused" {
		t.Errorf("%s\n%s", apitest.ImportCounts(made), log)
	}
}

// TestImportModes imports all rows or none, as a dry run, with each mode for existing resources, and with headers that apply to all rows.
func TestImportModes(t *testing.T) {
	m := start(t)
	_, _, zone, _, network := m.Basics()
	at := func(mode string) string {
		return `"contentType":"text/csv","into":"networks/` + network + `/addresses",` + mode
	}
	total := func() string {
		return m.Want(200, "GET", "/api/v2/networks/"+network+"/addresses?limit=1&total=true&"+apitest.Filter("state:'STATIC'"),
			"").Text("totalCount")
	}
	const two, three = "type,address,state\nIPv4Address,10.0.0.20,STATIC\nIPv4Address,10.0.0.21,STATIC\n",
		"type,address,state\nIPv4Address,10.0.0.20,STATIC\nIPv4Address,10.9.0.21,STATIC\nIPv4Address,10.0.0.22,STATIC\n"
	made, log := m.Imported(at(`"mode":"ALL_OR_NOTHING"`), three)
	if apitest.ImportCounts(made) != "FAILED: 3 rows, 0 created, 0 updated, 0 unchanged, 1 refused" || total() != "0" ||
		!strings.Contains(made.Text("message"), "nothing was imported") || !strings.Contains(log, "line 3: ") {
		t.Errorf("%s, %s addresses, %s\n%s", apitest.ImportCounts(made), total(), made.Text("message"), log)
	}
	if made, log = m.Imported(at(`"mode":"DRY_RUN"`), three); apitest.ImportCounts(made) != "COMPLETED_WITH_WARNINGS: 3 rows, 2 created, 0 updated, 0 unchanged, 1 refused" ||
		total() != "0" {
		t.Errorf("%s, %s addresses\n%s", apitest.ImportCounts(made), total(), log)
	}
	if made, log = m.Imported(at(`"action":"UPDATE"`), two); apitest.ImportCounts(made) != "COMPLETED_WITH_WARNINGS: 2 rows, 0 created, 0 updated, 0 unchanged, 2 refused" {
		t.Errorf("%s\n%s", apitest.ImportCounts(made), log)
	}
	if made, log = m.Imported(at(`"mode":"ALL_OR_NOTHING"`), two); apitest.ImportCounts(made) != "COMPLETED: 2 rows, 2 created, 0 updated, 0 unchanged, 0 refused" ||
		total() != "2" {
		t.Errorf("%s, %s addresses\n%s", apitest.ImportCounts(made), total(), log)
	}
	if made, log = m.Imported(at(`"action":"CREATE"`), two); apitest.ImportCounts(made) != "COMPLETED_WITH_WARNINGS: 2 rows, 0 created, 0 updated, 0 unchanged, 2 refused" ||
		!strings.Contains(log, "ResourceAlreadyExists") {
		t.Errorf("%s\n%s", apitest.ImportCounts(made), log)
	}
	made, log = m.Imported(`"contentType":"text/csv","into":"zones/`+zone+`/resourceRecords","headers":{"x-bcn-same-as-zone":"true"}`,
		"type,name,text\nTXTRecord,,v=spf1 -all\n")
	if apitest.ImportCounts(made) != "COMPLETED: 1 rows, 1 created, 0 updated, 0 unchanged, 0 refused" {
		t.Errorf("%s\n%s", apitest.ImportCounts(made), log)
	}
	// A row that has written something before it is refused leaves nothing behind.
	made, log = m.Imported(`"contentType":"text/csv","into":"zones/`+zone+`/resourceRecords"`,
		"type,name,addresses[0].address,addresses[1].address,reverseRecord\nHostRecord,one,10.0.0.30,10.0.0.31,TRUE\n"+
			"HostRecord,two,10.0.0.32,203.0.113.1,true\nHostRecord,three,10.0.0.33,,false\n")
	if apitest.ImportCounts(made) != "COMPLETED_WITH_WARNINGS: 3 rows, 2 created, 0 updated, 0 unchanged, 1 refused" ||
		!strings.Contains(log, "line 3: ") {
		t.Errorf("%s\n%s", apitest.ImportCounts(made), log)
	}
	if r := m.Want(200, "GET", "/api/v2/addresses?"+apitest.Filter("address:'10.0.0.32' and state:ne('UNALLOCATED')"),
		""); r.Text("count") != "0" {
		t.Errorf("a refused row has left %s", r.Body)
	}
	made, _ = m.Imported(at(`"name":"many"`)+`,"comment":"c"`, "type,address,state\n"+strings.Repeat("IPv4Address,10.0.0.40,STATIC\n", 3))
	if apitest.ImportCounts(made) != "COMPLETED_WITH_WARNINGS: 3 rows, 1 created, 0 updated, 0 unchanged, 2 refused" {
		t.Errorf("the same three times: %s", apitest.ImportCounts(made))
	}
}

// TestImportOfBadFiles checks that an unreadable file ends its import with the place of the error, and that the rows before it stay. An
// unreadable row is refused.
func TestImportOfBadFiles(t *testing.T) {
	apitest.Slow(t)
	m := start(t)
	m.Basics()
	for _, c := range []struct{ kind, file, message string }{
		{"text/csv", "\ufeff", "the file is empty"},
		{"text/csv", "name,name\na,b\n", "names the column name twice"},
		{"text/csv", "name,\na,b\n", "is not a column"},
		{"text/csv", "a[x]\n1\n", "a position in a list"},
		{"application/json", `"x"`, "neither an array"},
		{"application/json", `{"data":{"data":[]}}`, "neither an array"},
		{"application/json", `[] and more`, "behind the list"},
		{"text/csv", "type,name,a" + strings.Repeat(".a", 200) + "\nTag,x,v\n", "the name of a column"},
		{"text/csv", "type,name,a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q\nTag,x,v\n", "parts"},
		{"text/csv", "type,name\nTag,\"" + strings.Repeat("x", 5<<20), "a line has more than"},
		{"application/json", `[{"type":"TagGroup","name":"c"}`, "ends within its list"},
	} {
		if made, _ := m.Imported(`"contentType":"`+c.kind+`"`, c.file); made.Text("state") != "FAILED" ||
			!strings.Contains(made.Text("message"), c.message) {
			t.Errorf("%s %q: %s", c.kind, c.file, made.Body)
		}
	}
	for _, c := range []struct{ kind, file, log string }{ // rows that cannot be read are refused, and the others are not
		{"text/csv", "type,name\nTagGroup,e\nTagGroup\nTagGroup,f\n", "line 3: InvalidFileDataValue: 1 cells, but the header has 2"},
		{"text/csv", "type,name\nTagGroup,g\nTagGroup,\"a b\nTagGroup,\"h \"\"x\"\"\"\n",
			"line 3: InvalidFileDataValue: a quoted cell has no closing quotation mark"},
		{"text/csv", "type,name\nTagGroup,i\nTag," + strings.Repeat("x", 2<<20) + "\nTagGroup,j\n", "line 3: InvalidFileDataValue: it has more"},
		{"application/json", `[{"type":"TagGroup","name":"k"},17,{"type":"TagGroup","name":"l"}]`, "resource 2: InvalidFileDataValue"},
		{"application/x-ndjson", `{"type":"TagGroup","name":"m"}` + "\n[]\n" + `{"type":"TagGroup","name":"n"}`, "line 2: InvalidFileDataValue"},
	} {
		if made, log := m.Imported(`"contentType":"`+c.kind+`"`, c.file); apitest.ImportCounts(made) !=
			"COMPLETED_WITH_WARNINGS: 3 rows, 2 created, 0 updated, 0 unchanged, 1 refused" || !strings.Contains(log, c.log) {
			t.Errorf("%.60q: %s\n%.300s", c.file, apitest.ImportCounts(made), log)
		}
	}
	// Rows of empty cells are ignored, however many there are.
	if made, _ := m.Imported(`"contentType":"text/csv"`, "type,name\n"+strings.Repeat(",\n", 2_000_000)+"TagGroup,behind\n"); made.Text("created") != "1" {
		t.Errorf("behind empty rows: %s", apitest.ImportCounts(made))
	}
	made, log := m.Imported(`"contentType":"text/csv"`, "type,name,color,configuration.name\nTagGroup,\xff,,\nNothing,x,,\nTagGroup,a[b,red,\n,x,,\nDevice,d,,main\n"+
		"UserSession,s,,\nTransaction,,,\n")
	for _, want := range []string{"line 2: InvalidFileCharacterEncoding: name: ", "line 3: InvalidResourceType: type: ",
		"line 4: ignored because a TagGroup has no such field: color", "line 5: MissingRequiredField: ", "line 7: ", "line 8: "} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %q:\n%s", want, log)
		}
	}
	for _, file := range []string{"type,name\n", "[]"} {
		kind := "text/csv"
		if file == "[]" {
			kind = "application/json"
		}
		for _, mode := range []string{"ALL_OR_NOTHING", "DRY_RUN", "ROW_BY_ROW"} {
			if made, _ := m.Imported(`"contentType":"`+kind+`","mode":"`+mode+`"`, file); apitest.ImportCounts(made) != "COMPLETED: 0 rows, 0 created, 0 updated, 0 unchanged, 0 refused" {
				t.Errorf("an empty file, %s: %s", mode, apitest.ImportCounts(made))
			}
		}
	}
	if made, log := m.Imported(`"contentType":"text/csv"`, "type,id,state\nResourceImport,1,CANCELLED\n"); made.Text("refused") != "1" {
		t.Errorf("an import of imports: %s\n%s", apitest.ImportCounts(made), log)
	}
	if made, log := m.Imported(`"contentType":"text/csv"`, "type,name,location,location.id\nTagGroup,parts,,5\n"); made.Text("created") != "1" {
		t.Errorf("a whole and a part: %s\n%s", apitest.ImportCounts(made), log)
	}
	var users strings.Builder
	users.WriteString("type,name,password,email,securityPrivilege,accessType\n")
	for i := range 17 {
		fmt.Fprintf(&users, "User,u%d,a long password %d,u%d@example.com,NO_ACCESS,API\n", i, i, i)
	}
	if made, log := m.Imported(`"contentType":"text/csv"`, users.String()); made.Text("created") != "17" {
		t.Errorf("users: %s\n%s", apitest.ImportCounts(made), log)
	}
	if apitest.ImportCounts(made) != "COMPLETED_WITH_WARNINGS: 7 rows, 2 created, 0 updated, 0 unchanged, 5 refused" {
		t.Errorf("%s\n%s", apitest.ImportCounts(made), log)
	}
}

// TestImportRefusals checks that an impossible import is refused when it is sent, and that an impossible change of its state is refused.
func TestImportRefusals(t *testing.T) {
	m := start(t)
	_, _, _, _, network := m.Basics()
	send := func(status int, code, naming, info, file string) {
		t.Helper()
		body, kind := apitest.Form(map[string]string{"fileInfo": info}, file)
		m.Refused(status, code, naming, "POST", "/api/v2/imports", body, kind)
	}
	send(400, "MissingRequiredField", "fileData", `{"contentType":"text/csv"}`, "")
	send(400, "UnsupportedImportFileType", "contentType", `{"contentType":"application/vnd.bcn.proteus-migration+xml; v=3.0"}`, "<x/>")
	send(400, "UnsupportedImportFileType", "contentType", `{"name":"x"}`, "x")
	send(400, "InvalidFileCharacterEncoding", "contentType", `{"contentType":"text/csv; charset=utf-16"}`, "x")
	for _, into := range []string{"nothing", "networks/x", "networks/" + network + "/transactions", "networks", "sessions",
		"a/1/b/c", "splits"} {
		send(400, "InvalidResourceFieldValue", "into", `{"contentType":"text/csv","into":"`+into+`"}`, "x")
	}
	send(400, "InvalidResourceFieldValue", "headers", `{"contentType":"text/csv","headers":{"x-nothing":"1"}}`, "x")
	send(400, "InvalidHeaderValue", "x-bcn-same-as-zone", `{"contentType":"text/csv","headers":{"x-bcn-same-as-zone":"perhaps"}}`, "x")
	send(400, "InvalidEnumValue", "state", `{"contentType":"text/csv","state":"RUNNING"}`, "x")
	body, kind := apitest.Form(map[string]string{"fileInfo": `{"contentType":"text/csv","into":"tagGroups"}`}, "name\nx\n")
	id := m.ID("/api/v2/imports", body, kind)
	at := "/api/v2/imports/" + id
	m.Refused(400, "InvalidEnumValue", "state", "PATCH", at, `{"state":"RUNNING"}`, apitest.MergePatch)
	if r := m.Want(200, "PATCH", at, `{"state":"CANCELLED"}`, apitest.MergePatch); r.Text("state") != "CANCELLED" || r.Text("completionDateTime") == "" {
		t.Errorf("cancelled: %s", r.Body)
	}
	m.Refused(409, "ImportState", "state", "PATCH", at, `{"state":"RUNNING"}`, apitest.MergePatch)
	m.Refused(409, "ImportState", "state", "PATCH", at, `{"state":"QUEUED"}`, apitest.MergePatch)
	m.Want(405, "PUT", at, `{"state":"QUEUED"}`)
	m.Want(204, "DELETE", at, "")
	if n := rows(m, "SELECT count(*) FROM import_part"); n != 0 {
		t.Errorf("%d parts of files stay", n)
	}
	m.ID("/api/v2/users", `{"name":"reader","password":"long enough 1","securityPrivilege":"NO_ACCESS","accessType":"API","email":"r@example.com"}`)
	reader := apitest.BasicAuth("reader", "long enough 1")
	m.Want(403, "POST", "/api/v2/imports", body, kind, reader)
	if r := m.Want(200, "GET", "/api/v2/imports", "", reader); r.Text("count") != "0" {
		t.Errorf("a reader sees %s", r.Body)
	}
}

// TestImportOfPolicyItems imports names for a response policy, one a line, at once.
func TestImportOfPolicyItems(t *testing.T) {
	m := start(t)
	configuration, _, _, _, _ := m.Basics()
	policy := m.ID("/api/v2/configurations/"+configuration+"/responsePolicies", `{"type":"ResponsePolicy","name":"bad","policyType":"BLOCKLIST"}`)
	at := "/api/v2/responsePolicies/" + policy
	body, kind := apitest.Form(map[string]string{"fileInfo": `{"name":"names.txt"}`}, "\ufeff# remarks\nads.example\n\nTrackers.Example\nads.example\nno good\n")
	r := m.Want(201, "POST", at+"/imports", body, kind)
	if r.Text("type") != "ResponsePolicyItemImport" || r.Text("contentType") != "text/plain" || r.Text("name") != "names.txt" {
		t.Errorf("it is %s", r.Body)
	}
	made, log := m.EndedImport(r.Text("id"))
	if apitest.ImportCounts(made) != "COMPLETED_WITH_WARNINGS: 4 rows, 2 created, 0 updated, 1 unchanged, 1 refused" ||
		!strings.Contains(log, "line 6: ") {
		t.Errorf("%s\n%s", apitest.ImportCounts(made), log)
	}
	if r := m.Want(200, "GET", at+"/policyItems?orderBy=name&fields=name", ""); r.Text("data.0.name") != "ads.example" ||
		r.Text("data.1.name") != "trackers.example" {
		t.Errorf("the policy has %s", r.Body)
	}
	if r := m.Want(200, "GET", at+"/imports", ""); r.Text("count") != "1" {
		t.Errorf("the policy's imports are %s", r.Body)
	}
	body, kind = apitest.Form(map[string]string{"fileInfo": `{"contentType":"text/csv"}`}, "x")
	m.Refused(400, "UnsupportedImportFileType", "contentType", "POST", at+"/imports", body, kind)
	m.Want(204, "DELETE", at+"/imports/"+made.Text("id"), "")
	body, kind = apitest.Form(map[string]string{"fileInfo": `{"name":"more"}`}, "more.example")
	m.EndedImport(m.Want(201, "POST", at+"/imports", body, kind).Text("id"))
	m.Want(204, "DELETE", at, "") // with its imports
	if n := rows(m, "SELECT count(*) FROM import_part") + rows(m, "SELECT count(*) FROM import_line"); n != 0 {
		t.Errorf("%d rows of imports stay", n)
	}
}

// rows asks the database for a number.
func rows(m *apitest.API, query string) (n int) {
	m.T.Helper()
	if err := m.Store.View(m.T.Context(), func(tx *store.Tx) error { return tx.QueryRow(query).Scan(&n) }); err != nil {
		m.T.Fatal(err)
	}
	return n
}

// TestImportChangesTTL checks that a row with another TTL changes a record without a name of its own.
func TestImportChangesTTL(t *testing.T) {
	apitest.OnSQLite(t)
	m := startConcurrent(t)
	_, _, zone, _, _ := m.Basics()
	at := `"contentType":"application/json","into":"zones/` + zone + `/resourceRecords"`
	for _, one := range [][2]string{
		{`[{"type":"TXTRecord","name":"a","text":"t"},{"type":"TXTRecord","name":null,"text":"apex"}]`, "2 created, 0 updated, 0 unchanged"},
		{`[{"type":"TXTRecord","name":"a","text":"t","ttl":60},{"type":"TXTRecord","name":null,"text":"apex"}]`,
			"0 created, 1 updated, 1 unchanged"},
		{`[{"type":"TXTRecord","absoluteName":"a.example.com","text":"t","ttl":61}]`, "0 created, 1 updated, 0 unchanged"},
		{`[{"type":"TXTRecord","name":"a","text":"t","ttl":61}]`, "0 created, 0 updated, 1 unchanged"},
	} {
		made, log := m.Imported(at, one[0])
		if !strings.Contains(apitest.ImportCounts(made), one[1]) {
			t.Errorf("%s: %s\n%s", one[0], apitest.ImportCounts(made), log)
		}
	}
}

// TestImportPrunes checks that an import with a tag lists the resources with the tag that no row names. It deletes them if it prunes, only
// below the parents of the rows, and none if a row is refused. Resources that contain resources of rows stay.
func TestImportPrunes(t *testing.T) {
	apitest.Slow(t)
	apitest.OnSQLite(t)
	m := startConcurrent(t)
	configuration, _, _, _, network := m.Basics()
	group := m.ID("/api/v2/tagGroups", `{"name":"prunes"}`)
	tag := m.ID("/api/v2/tagGroups/"+group+"/tags", `{"name":"plan"}`)
	at := `"contentType":"text/csv","into":"configurations/` + configuration + `","tag":"tags/plan"`
	head := "type,range,address,state,name\n"
	one, two := "IPv4Network,10.7.0.0/24,,,one\n", "IPv4Network,10.7.1.0/24,,,two\n"
	inside := "IPv4Address,,10.7.0.9,STATIC,in\nIPv4Address,,10.7.1.9,STATIC,in\n"
	expect := func(step, info, file, want, said string) {
		t.Helper()
		made, log := m.Imported(at+info, file)
		if got := apitest.ImportCounts(made) + ", " + made.Text("deleted") + " deleted"; !strings.HasPrefix(got, want) ||
			!strings.Contains(log, said) {
			t.Errorf("%s: %s, want %s\n%s\nwithout %q", step, got, want, log, said)
		}
	}
	there := func(address string) string {
		return m.Want(200, "GET", "/api/v2/addresses?total=true&"+apitest.Filter("address:'"+address+"' and state:'STATIC'"),
			"").Text("totalCount")
	}
	for info, code := range map[string]string{`{"contentType":"text/csv","prune":true}`: "InvalidResourceFieldValue",
		`{"contentType":"text/csv","tag":"tags/none"}`: "InlinedResourceNotFound"} {
		body, kind := apitest.Form(map[string]string{"fileInfo": info}, head)
		status := map[string]int{"InvalidResourceFieldValue": 400, "InlinedResourceNotFound": 404}[code]
		m.Refused(status, code, "", "POST", "/api/v2/imports", body, kind)
	}
	if err := m.Store.Update(t.Context(), store.Author{}, func(tx *store.Tx) error { // as a killed manager leaves it
		return tx.Write("INSERT INTO import_met (import, resource, at) VALUES (7, 1, 'line 1')")
	}); err != nil {
		t.Fatal(err)
	}
	expect("first", "", head+one+two+inside, "COMPLETED: 4 rows, 4 created, 0 updated, 0 unchanged, 0 refused, 0 deleted", "")
	expect("again", "", head+one+two+inside, "COMPLETED: 4 rows, 0 created, 0 updated, 4 unchanged, 0 refused, 0 deleted", "")
	expect("listed", "", head+one, "COMPLETED_WITH_WARNINGS: 1 rows, 0 created, 0 updated, 1 unchanged, 0 refused, 0 deleted",
		"not in the file, kept (prune deletes it): IPv4Network 10.7.1.0/24")
	expect("tried", `,"prune":true,"mode":"DRY_RUN"`, head+one, "COMPLETED_WITH_WARNINGS: 1 rows, 0 created, 0 updated, 1 unchanged, 0 refused, 2 deleted",
		"not in the file, would be deleted: IPv4Address 10.7.0.9")
	expect("refused", `,"prune":true`, head+one+"IPv4Network,10.7.0.0/33,,,x\n",
		"COMPLETED_WITH_WARNINGS: 2 rows, 0 created, 0 updated, 1 unchanged, 1 refused, 0 deleted",
		"nothing is deleted, because rows were refused")
	expect("held", `,"prune":true,"mode":"DRY_RUN"`, head+"IPv4Address,,10.7.1.9,STATIC,in\n",
		"COMPLETED_WITH_WARNINGS: 1 rows, 0 created, 0 updated, 1 unchanged, 0 refused, 1 deleted",
		"kept because it contains rows of the file: IPv4Network 10.7.1.0/24")
	// Below another resource nothing of these is looked at.
	made, log := m.Imported(`"contentType":"text/csv","into":"networks/`+network+`/addresses","prune":true,"tag":"tags/plan"`,
		"type,address,state\nIPv4Address,10.0.0.99,STATIC\n")
	if made.Text("deleted") != "0" || made.Text("created") != "1" {
		t.Errorf("elsewhere: %s\n%s", apitest.ImportCounts(made), log)
	}
	elsewhere := m.Want(200, "GET", "/api/v2/addresses?"+apitest.Filter("address:'10.0.0.99'"), "").Text("data.0.id")
	m.Want(204, "DELETE", "/api/v2/addresses/"+elsewhere, "")
	expect("pruned", `,"prune":true`, head+one+"IPv4Address,,10.7.0.9,STATIC,in\n",
		"COMPLETED_WITH_WARNINGS: 2 rows, 0 created, 0 updated, 2 unchanged, 0 refused, 1 deleted",
		"not in the file, deleted: IPv4Network 10.7.1.0/24")
	if there("10.7.0.9")+there("10.7.1.9") != "10" {
		t.Errorf("there are %s and %s", there("10.7.0.9"), there("10.7.1.9"))
	}
	expect("immediately", `,"prune":true,"mode":"ALL_OR_NOTHING"`, head+two,
		"COMPLETED_WITH_WARNINGS: 1 rows, 1 created, 0 updated, 0 unchanged, 0 refused, 1 deleted",
		"not in the file, deleted: IPv4Network 10.7.0.0/24")
	apitest.Eventually(t, "what an import stored is deleted behind its end", func() bool {
		return rows(m,
			"SELECT count(*) FROM import_met") == 0
	})
	// A file without rows deletes nothing, and no file the resource that it is imported into.
	m.Want(201, "POST", "/api/v2/configurations/"+configuration+"/tags", `{"id":`+tag+`}`)
	expect("empty", `,"prune":true`, head, "COMPLETED_WITH_WARNINGS: 0 rows, 0 created, 0 updated, 0 unchanged, 0 refused, 0 deleted",
		"nothing is deleted: the file has no rows")
	expect("its target", `,"prune":true`, head+"MACPool,,,,p\n",
		"COMPLETED_WITH_WARNINGS: 1 rows, 1 created, 0 updated, 0 unchanged, 0 refused, 1 deleted",
		"not in the file, deleted: IPv4Network 10.7.1.0/24")
	m.Want(200, "GET", "/api/v2/configurations/"+configuration, "")
	pool := m.Want(200, "GET", "/api/v2/macPools?"+apitest.Filter("name:'p'"), "").Text("data.0.id")
	m.Want(204, "DELETE", "/api/v2/macPools/"+pool, "")
	// A host is deleted with its last address. If the host is a row of the file, both are kept.
	hosts := "type,absoluteName,address,addresses[0].address,state\n"
	host := "HostRecord,h.example.com,,10.0.0.50,\n"
	for mode, want := range map[string]string{
		"ROW_BY_ROW":     "COMPLETED_WITH_WARNINGS: 1 rows, 0 created, 0 updated, 1 unchanged, 1 refused, 0 deleted",
		"ALL_OR_NOTHING": "FAILED: 0 rows, 0 created, 0 updated, 0 unchanged, 0 refused, 0 deleted",
		"DRY_RUN":        "COMPLETED_WITH_WARNINGS: 1 rows, 0 created, 0 updated, 1 unchanged, 0 refused, 0 deleted",
	} {
		expect("both, before "+mode, "", hosts+"IPv4Address,,10.0.0.50,,STATIC\n"+host,
			"COMPLETED", "")
		expect("with a host, "+mode, `,"prune":true,"mode":"`+mode+`"`, hosts+host, want, "")
		hosts := m.Want(200, "GET", "/api/v2/resourceRecords?total=true&"+apitest.Filter("absoluteName:'h.example.com'"), "")
		if n := hosts.Text("totalCount"); n != "1" {
			t.Fatalf("%s: there are %s hosts", mode, n)
		}
	}
	// The gateway of a network in a row stays, as the network would change.
	const gateway = "type,range,address,gateway\nIPv4Network,10.7.1.0/24,,10.7.1.1\n"
	for _, mode := range []string{"DRY_RUN", "ROW_BY_ROW", "ALL_OR_NOTHING"} {
		expect("a gateway", "", gateway+"IPv4Address,,10.7.1.1,\n", "COMPLETED", "")
		expect("a gateway that is pruned", `,"prune":true,"mode":"`+mode+`"`, gateway, "COMPLETED",
			"not in the file, kept because its deletion would change resources of rows: IPv4Address 10.7.1.1")
		if at := m.Want(200, "GET", "/api/v2/networks?"+apitest.Filter("range:'10.7.1.0/24'"), "").Text("data.0.gateway"); at != "10.7.1.1" {
			t.Errorf("%s: the gateway is %q", mode, at)
		}
	}
	expect("no gateway", `,"prune":true`, "type,range\nIPv4Network,10.7.0.0/24\n", "COMPLETED", "deleted: IPv4Network 10.7.1.0/24")
	// A network is kept if a row of a dry run would create an address in it.
	expect("a network", "", head+two, "COMPLETED_WITH_WARNINGS: 1 rows, 1 created, 0 updated, 0 unchanged, 0 refused, 0 deleted", "")
	expect("tried below it", `,"prune":true,"mode":"DRY_RUN"`, head+"IPv4Address,,10.7.1.77,STATIC,new\n",
		"COMPLETED_WITH_WARNINGS: 1 rows, 1 created, 0 updated, 0 unchanged, 0 refused, 1 deleted",
		"kept because it contains rows of the file: IPv4Network 10.7.1.0/24")
}

// TestImportTriesLongFiles checks that a dry run of more rows than one transaction has the same result as the import.
func TestImportTriesLongFiles(t *testing.T) {
	apitest.OnSQLite(t)
	m := startConcurrent(t)
	_, _, zone, _, _ := m.Basics()
	file := strings.Builder{}
	file.WriteString("type,name,text\n")
	const rows = 300
	for i := range rows {
		fmt.Fprintf(&file, "TXTRecord,n%d,t\n", i)
	}
	made, log := m.Imported(`"contentType":"text/csv","mode":"DRY_RUN","into":"zones/`+zone+`/resourceRecords"`, file.String())
	if want := fmt.Sprintf("COMPLETED: %d rows, %d created, 0 updated, 0 unchanged, 0 refused", rows,
		rows); apitest.ImportCounts(made) != want {
		t.Errorf("%s, want %s\n%.500s", apitest.ImportCounts(made), want, log)
	}
}

// TestImportAtTheTop imports rows of types that have no names in DNS and no parent.
func TestImportAtTheTop(t *testing.T) {
	apitest.OnSQLite(t)
	m := startConcurrent(t)
	configuration, _, _, _, _ := m.Basics()
	made, log := m.Imported(`"contentType":"application/json"`, `[{"type":"UserDefinedFieldDefinition","name":"shelf","displayName":"Shelf",`+
		`"resourceTypes":["IPv4Network"],"dataType":"TEXT"},{"type":"AccessRight","userScope":{"name":"admin","type":"User","id":`+
		m.Want(200, "GET", "/api/v2/users?"+apitest.Filter("name:'admin'"), "").Text("data.0.id")+`},"resource":{"id":`+configuration+
		`,"type":"Configuration"},"defaultAccessLevel":"FULL"}]`)
	if made.Text("state") == "FAILED" || strings.Contains(log, "internal error") {
		t.Errorf("%s\n%s", apitest.ImportCounts(made), log)
	}
}

// TestImportOfLongLines imports more than 4 MiB of lines, and TestDryRunOfChangedRows tries rows that change what earlier rows would
// create.
func TestImportOfLongLines(t *testing.T) {
	apitest.OnSQLite(t)
	m := startConcurrent(t)
	m.Basics()
	var file strings.Builder
	for i := range 600 {
		fmt.Fprintf(&file, `{"type":"MACPool","name":"pool %d","description":"%s"}`+"\n", i, strings.Repeat("x", 8<<10))
	}
	made, log := m.Imported(`"contentType":"application/x-ndjson","into":"configurations/`+
		m.Want(200, "GET", "/api/v2/configurations", "").Text("data.0.id")+`","mode":"DRY_RUN"`, file.String())
	if made.Text("state") == "FAILED" || made.Text("rows") != "600" {
		t.Errorf("%s\n%.500s", apitest.ImportCounts(made), log)
	}
}

func TestDryRunOfChangedRows(t *testing.T) {
	apitest.OnSQLite(t)
	m := startConcurrent(t)
	m.Basics()
	var file strings.Builder
	file.WriteString("type,range,address,state,name\nIPv4Block,10.90.0.0/16,,,\n")
	const networks, addresses = 8, 60
	for i := range networks {
		fmt.Fprintf(&file, "IPv4Network,10.90.%d.0/24,,,n%d\n", i, i)
	}
	for i := range networks {
		fmt.Fprintf(&file, "IPv4Address,,10.90.%d.1,,router%d\n", i, i)
	}
	for i := range networks * addresses {
		fmt.Fprintf(&file, "IPv4Address,,10.90.%d.%d,STATIC,h%d\n", i/addresses, 10+i%addresses, i)
	}
	into := `"contentType":"text/csv","into":"configurations/` + m.Want(200, "GET", "/api/v2/configurations", "").Text("data.0.id") + `"`
	tried, log := m.Imported(into+`,"mode":"DRY_RUN"`, file.String())
	made, _ := m.Imported(into, file.String())
	if apitest.ImportCounts(tried) != apitest.ImportCounts(made) {
		t.Errorf("tried: %s\nmade:  %s\n%.500s", apitest.ImportCounts(tried), apitest.ImportCounts(made), log)
	}
}
