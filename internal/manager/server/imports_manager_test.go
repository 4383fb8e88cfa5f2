package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"portolan/internal/manager/authz"
	"portolan/internal/manager/identity"
	"portolan/internal/testkit/apitest"
)

// TestExportsCanBeImported checks that an export of a collection, as CSV and as JSON, can be imported again without any change. A changed
// cell changes its field, and nothing else.
func TestExportsCanBeImported(t *testing.T) {
	apitest.Slow(t)
	apitest.OnSQLite(t)
	m := startManager(t)
	m.oneOfEach()
	network := m.Want(200, "GET", "/api/v2/networks?"+filter("name:'office'"), "").Text("data.0.id")
	zone := m.Want(200, "GET", "/api/v2/zones?limit=1&"+filter("type:'Zone'"), "").Text("data.0.id")
	m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC","address":"10.0.0.50","name":"=1+1"}`)
	m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"TXTRecord","name":"www","text":"a, \"b\"; c"}`)
	for _, c := range m.Address.Collections() {
		if c.From != "resource" || c.Inner || c.Name == "imports" || c.SignIn != nil {
			continue
		}
		before := m.Want(200, "GET", "/api/v2/"+c.Path(), "").Body
		table := m.Want(200, "GET", "/api/v2/"+c.Path(), "", "Accept: text/csv").Body
		rows := m.Want(200, "GET", "/api/v2/"+c.Path(), "").Text("count")
		if rows == "0" {
			continue
		}
		want := "COMPLETED: " + rows + " rows, 0 created, 0 updated, " + rows + " unchanged, 0 refused"
		if made, log := m.Imported(`"contentType":"text/csv"`, string(table)); apitest.ImportCounts(made) != want {
			t.Errorf("%s as CSV: %s, want %s\n%s", c.Name, apitest.ImportCounts(made), want, log)
		}
		if made, log := m.Imported(`"contentType":"application/json"`, string(before)); apitest.ImportCounts(made) != want {
			t.Errorf("%s as JSON: %s, want %s\n%s", c.Name, apitest.ImportCounts(made), want, log)
		}
		if c.Name == "databases" { // which counts what it holds
			continue
		}
		if after := m.Want(200, "GET", "/api/v2/"+c.Path(), "").Body; string(after) != string(before) {
			t.Errorf("%s has changed:\n%s\n%s", c.Name, before, after)
		}
	}
	table := string(m.Want(200, "GET", "/api/v2/networks", "", "Accept: text/csv").Body)
	made, log := m.Imported(`"contentType":"text/csv","comment":"renamed"`, strings.Replace(table, ",office,", ",Büro,", 1))
	if apitest.ImportCounts(made) != "COMPLETED: 8 rows, 0 created, 1 updated, 7 unchanged, 0 refused" {
		t.Errorf("a changed cell: %s\n%s", apitest.ImportCounts(made), log)
	}
	if r := m.Want(200, "GET", "/api/v2/networks/"+network, ""); r.Text("name") != "Büro" {
		t.Errorf("the network is %s", r.Body)
	}
	if r := m.Want(200, "GET", "/api/v2/networks/"+network+"/transactions?limit=1&orderBy=desc(id)",
		""); r.Text("data.0.comment") != "renamed" {
		t.Errorf("the history says %s", r.Body)
	}
}

// TestImportResumes checks that an import continues after a restart of the manager, and applies each row once. A cancelled import stops.
func TestImportResumes(t *testing.T) {
	apitest.RunParallel(t)
	data := t.TempDir()
	options := Options{Data: data, Database: databaseFor(t, data), Listen: "127.0.0.1:0", CheckinListen: "127.0.0.1:0",
		AdminPassword: adminPassword, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	first, err := Start(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	m := clientOf(t, first, http.DefaultClient, "")
	if m.Token, err = m.Identity.CreateToken(t.Context(), identity.Grant{Name: "one", Role: authz.Administrator, User: "admin"}); err != nil {
		t.Fatal(err)
	}
	_, _, zone, _, _ := m.Basics()
	var file strings.Builder
	file.WriteString("type,name,text\n")
	const rows = 1000
	for i := range rows {
		fmt.Fprintf(&file, "TXTRecord,n%d,t\n", i)
	}
	whole := file.String() + "TXTRecord,n0,t\n" // which the first row is about, also behind the restart
	info := `{"contentType":"text/csv","state":"QUEUED","into":"zones/` + zone + `/resourceRecords"}`
	body, kind := apitest.Form(map[string]string{"fileInfo": info}, whole)
	id := m.ID("/api/v2/imports", body, kind)
	apitest.Eventually(t, "rows are worked off", func() bool { return m.Want(200, "GET", "/api/v2/imports/"+id, "").Text("rows") != "0" })
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	m = startManager(t, func(o *Options) { *o = options })
	made, log := m.EndedImport(id)
	want := fmt.Sprintf("COMPLETED_WITH_WARNINGS: %d rows, %d created, 0 updated, 0 unchanged, 1 refused", rows+1, rows)
	if apitest.ImportCounts(made) != want || !strings.Contains(log,
		fmt.Sprintf("line %d: ResourceConflictsWithOther: line 2 is about the same", rows+2)) {
		t.Errorf("%s\n%s", apitest.ImportCounts(made), log)
	}
	body, kind = apitest.Form(map[string]string{"fileInfo": info}, file.String())
	second := m.ID("/api/v2/imports", body, kind)
	body, kind = apitest.Form(map[string]string{"fileInfo": info},
		"type,name,text\n"+strings.Repeat(file.String()[len("type,name,text\n"):], 10))
	id = m.ID("/api/v2/imports", body, kind)
	apitest.Eventually(t, "it runs", func() bool { return m.Want(200, "GET", "/api/v2/imports/"+id, "").Text("state") == "RUNNING" })
	m.Refused(400, "ImportInProgress", "", "DELETE", "/api/v2/imports/"+id, "")
	m.Want(200, "PATCH", "/api/v2/imports/"+id, `{"state":"CANCELLED"}`, apitest.MergePatch)
	if made, _ := m.EndedImport(id); made.Text("state") != "CANCELLED" {
		t.Errorf("it is %s", made.Body)
	}
	if made, _ := m.EndedImport(second); made.Text("unchanged") != fmt.Sprint(rows) { // all of them are there
		t.Errorf("the same again: %s", apitest.ImportCounts(made))
	}
	events := m.Want(200, "GET", "/api/v2/events?"+filter("category:'MIGRATION'"), "")
	var kinds []string
	var list struct{ Data []struct{ EventType string } }
	if err := json.Unmarshal(events.Body, &list); err != nil {
		t.Fatal(err)
	}
	for _, one := range list.Data {
		kinds = append(kinds, one.EventType)
	}
	slices.Sort(kinds)
	if fmt.Sprint(kinds) != "[INFO SUCCESS WARNING]" {
		t.Errorf("the events are %s", events.Body)
	}
}

// TestImportTwice checks that a second import of the same file changes nothing, whichever columns identify its rows.
func TestImportTwice(t *testing.T) {
	apitest.OnSQLite(t)
	m := startManager(t)
	_, view, zone, _, network := m.Basics()
	for into, file := range map[string]string{
		"zones/" + zone + "/resourceRecords": "type,name,text,addresses[0].address,linkedRecord.absoluteName,recordType,rdata\n" +
			"HostRecord,twice,,10.0.0.77,,,\nTXTRecord,twice,a,,,,\nTXTRecord,twice,b,,,,\nAliasRecord,alias,,,twice.example.com,,\n" +
			"GenericRecord,gen,,,,CAA,\"0 issue \"\"ca.example\"\"\"\n",
		"zones/" + zone + "/zones":           "type,name\nZone,inner\n",
		"views/" + view + "/zones":           "type,absoluteName\nZone,outer.example\nZone,deep.outer.example\n",
		"networks/" + network + "/addresses": "type,address,state\nIPv4Address,10.0.0.78,STATIC\n",
		// Resources without a name of their own.
		"views/" + view + "/deploymentOptions": "type,name,value\nDNSOption,recursion,true\nDNSRawOption,,a\nDNSRawOption,,b\n",
		"networks/" + network + "/deploymentOptions": "type,name,value,code\nDHCPv4ClientOption,domain-name,x.example,15\n" +
			"DHCPv4ClientOption,time-offset,60,2\n",
	} {
		for n := range 2 {
			made, log := m.Imported(`"contentType":"text/csv","into":"`+into+`"`, file)
			field := []string{"created", "unchanged"}[n]
			if made.Text(field) != made.Text("rows") {
				t.Errorf("%s, time %d: %s\n%s", into, n+1, apitest.ImportCounts(made), log)
			}
		}
	}
}
